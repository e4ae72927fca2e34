"""The tree as C text: as few parentheses as precedence allows, `language` decides how things are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tunesmith.source import tree as c
from tunesmith.source.types import PRIMITIVE

_BINARY = {
    ",": 1, "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, ">": 10, "<=": 10, ">=": 10,
    "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13,
}  # fmt: skip
_ASSIGN, _TERNARY, _UNARY, _POSTFIX, _PRIMARY = 2, 3, 14, 15, 16
# Compilers warn about these where a reader may err: a & b == c, a << b + c, a && b || c.
_UNCLEAR = {
    "&": frozenset({"==", "!=", "<", ">", "<=", ">=", "+", "-", "<<", ">>"}),
    "|": frozenset({"==", "!=", "<", ">", "<=", ">=", "&", "^", "+", "-", "<<", ">>"}),
    "^": frozenset({"==", "!=", "<", ">", "<=", ">=", "&", "+", "-", "<<", ">>"}),
    "<<": frozenset({"+", "-"}),
    ">>": frozenset({"+", "-"}),
    "||": frozenset({"&&"}),
}
_OPENCL_INDICES = {
    f"{cuda}.{axis}": f"{opencl}({number})"
    for opencl, cuda in c.OPENCL_INDICES.items()
    for number, axis in enumerate("xyz")
}
_INDENT, _WIDEST_HEAD = "    ", 108


def print_expr(expr: c.Expr, language: str = "cuda") -> str:
    return _Printer(language).expr(expr, 0, 0)


def print_type(type_: c.Type, declarator: str = "", language: str = "cuda") -> str:
    """`const float *name`; the type alone without a declarator."""
    opencl = language == "opencl"
    words = [f"__{type_.space}"] if opencl and type_.space else []
    words += ["const"] if type_.const else []
    words += ["volatile"] if type_.volatile else []
    stars = "*" * type_.pointers + ("&" if type_.reference else "")
    restrict = ("restrict" if opencl else "__restrict__") if type_.restrict else ""
    if restrict:
        stars += restrict + (" " if declarator else "")
    return " ".join([*words, type_.base, *([stars + declarator] if stars + declarator else [])])


def print_parameter(parameter: c.Parameter, language: str = "cuda") -> str:
    return print_type(parameter.type, parameter.name, language)


def print_statements(stmts: Iterable[c.Stmt], indent: int = 0, language: str = "cuda") -> str:
    """One or more lines for each statement, `indent` levels in; ends with a line break unless empty."""
    printer = _Printer(language)
    lines: list[str] = []
    for stmt in stmts:
        printer.statement(stmt, indent, lines, 0)
    return "".join(part + "\n" for line in lines for part in wrap_line(line))


def print_function(function: c.Function, language: str = "cuda", head: str = "") -> str:
    """The whole function; `head` stands before its result type: qualifiers, launch bounds."""
    if not head:
        kernel, helper = ("__kernel", "") if language == "opencl" else ("__global__", "__device__")
        head = kernel if function.is_kernel else helper
    parameters = ", ".join(print_parameter(p, language) for p in function.parameters)
    line = f"{head} {print_type(function.result, function.name, language)}({parameters})".strip()
    return f"{line}\n{{\n{print_statements(function.body, 1, language)}}}\n"


def print_kernel(kernel: c.Function, head: str, language: str = "cuda") -> str:
    """With its comments; what stands before its name has a line of its own, parameters what they need."""
    start = f"{kernel.name}("
    parameters = [print_parameter(p, language) for p in kernel.parameters]
    lines = [*_comment_lines(kernel.comments, 0), head, start]
    for number, text in enumerate(parameters):
        piece = text + (", " if number < len(parameters) - 1 else ")")
        if number and len(lines[-1]) + len(piece.rstrip()) > _WIDEST_HEAD:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(start))
        lines[-1] += piece
    lines[-1] += "" if parameters else ")"
    return "\n".join([*lines, "{", f"{print_statements(kernel.body, 1, language)}}}", ""])


class _Printer:
    """`parameters`: of the macro whose value is printed."""

    def __init__(self, language: str, parameters: frozenset[str] = frozenset()) -> None:
        self._opencl, self._language = language == "opencl", language
        self._parameters = parameters

    def expr(self, expr: c.Expr, least: int, depth: int) -> str:
        """In parentheses where the expression binds less than `least`."""
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        text, level = self._print_with_precedence(expr, depth + 1)
        return f"({text})" if level < least else text

    def _print_with_precedence(self, expr: c.Expr, d: int) -> tuple[str, int]:
        match expr:
            case c.Number(text=text):
                return text, _UNARY if text.startswith("-") else _PRIMARY
            case c.Name(name=name) if name in self._parameters:
                return f"({name})", _PRIMARY
            case c.Name(name=name):
                return (_OPENCL_INDICES.get(name, name) if self._opencl else name), _PRIMARY
            case c.Unary(op=op, operand=operand, postfix=True):
                return self.expr(operand, _POSTFIX, d) + op, _POSTFIX
            case c.Unary(op=op, operand=operand):
                inner = self.expr(operand, _UNARY, d)
                # `- -x` must not become `--x`.
                return (op + (f"({inner})" if inner[:1] == op[-1] else inner)), _UNARY
            case c.Binary(op=op, left=left, right=right):
                return self._binary(op, left, right, d), _BINARY[op]
            case c.Assign(op=op, target=target, value=value):
                return f"{self.expr(target, _UNARY, d)} {op} {self.expr(value, _ASSIGN, d)}", _ASSIGN
            case c.Ternary(condition=condition, yes=yes, no=no):
                parts = (self.expr(condition, 4, d), self.expr(yes, _TERNARY, d), self.expr(no, _TERNARY, d))
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", _TERNARY
            case c.Call():
                return self._call(expr, d), _POSTFIX
            case c.Index(base=base, index=index):
                return f"{self.expr(base, _POSTFIX, d)}[{self.expr(index, 0, d)}]", _POSTFIX
            case c.Member(base=base, field=field, arrow=arrow):
                return f"{self.expr(base, _POSTFIX, d)}{'->' if arrow else '.'}{field}", _POSTFIX
            case c.Cast(type=type_, value=value):
                inner = self.expr(value, _UNARY, d)
                # `(T)-x` is a subtraction to a reader that does not know T.
                unclear = not type_.is_pointer and not set(type_.base.split()) <= PRIMITIVE
                inner = f"({inner})" if unclear and inner[0] in "+-*&~!" else inner
                return f"({print_type(type_, '', self._language)}){inner}", _UNARY
            case c.Braces(items=items, type=type_):
                return self._print_braces(items, type_, d), _POSTFIX if type_ is not None else _PRIMARY
            case c.SizeOf(type=type_):
                return f"sizeof({print_type(type_, '', self._language)})", _PRIMARY
            case c.Opaque(text=text):
                return text, _PRIMARY if text.isidentifier() or _is_grouped(text) else _ASSIGN

    def _binary(self, op: str, left: c.Expr, right: c.Expr, d: int) -> str:
        level = _BINARY[op]
        unclear = _UNCLEAR.get(op, frozenset())
        sides = [self.expr(left, level, d), self.expr(right, level + 1, d)]
        for at, side in enumerate((left, right)):
            if isinstance(side, c.Binary) and side.op in unclear and (at == 0 or _BINARY[side.op] > level):
                sides[at] = f"({sides[at]})"
        return f"{sides[0]}, {sides[1]}" if op == "," else f"{sides[0]} {op} {sides[1]}"

    def _call(self, call: c.Call, d: int) -> str:
        args = ", ".join([self._argument(arg, d) for arg in call.args])
        if self._opencl and call.function == "__syncthreads":
            return f"barrier({args or 'CLK_LOCAL_MEM_FENCE'})"
        template = f"<{', '.join(call.template_args)}>" if call.template_args else ""
        if call.of is None:
            return f"{call.function}{template}({args})"
        of = self.expr(call.of, _POSTFIX, d)
        if isinstance(call.of, c.Cast) and not call.of.type.is_pointer:  # Reduce(temp).Sum(x)
            type_ = print_type(call.of.type, "", self._language)
            of = f"{type_}({self.expr(call.of.value, _ASSIGN, d)})"
        if call.function == "operator()":
            return f"{of}({args})"
        return f"{of}.{call.function}{template}({args})"

    def _argument(self, arg: c.Expr, d: int) -> str:
        is_parameter = isinstance(arg, c.Name) and arg.name in self._parameters  # commas end it either way
        return arg.name if is_parameter and isinstance(arg, c.Name) else self.expr(arg, _ASSIGN, d)

    def _print_braces(self, items: tuple[c.Expr, ...], type_: c.Type | None, d: int) -> str:
        inner = ", ".join([self.expr(item, _ASSIGN, d) for item in items])
        if type_ is None:
            return f"{{{inner}}}"
        name = print_type(type_, "", self._language)
        return f"({name})({inner})" if self._opencl else f"{name}{{{inner}}}"

    def declaration(self, declare: c.Declare) -> str:
        shared = "__local " if self._opencl else "__shared__ "
        words = {"": "", "shared": shared, "dynamic shared": f"extern {shared}", "constexpr": "constexpr ",
                 "static": "static "}[declare.storage]  # fmt: skip
        if declare.align is not None and not self._opencl:
            words += f"__align__({self.expr(declare.align, 0, 0)}) "
        return words + print_type(declare.type, self._print_declarator(declare), self._language)

    def _print_declarator(self, declare: c.Declare) -> str:
        text = declare.name + "".join(f"[{self.expr(dim, 0, 0)}]" for dim in declare.dims)
        if declare.storage == "dynamic shared":
            text += "[]"
        if self._opencl and declare.align is not None:
            text += f" __attribute__((aligned({self.expr(declare.align, 0, 0)})))"
        return text if declare.init is None else f"{text} = {self.expr(declare.init, _ASSIGN, 0)}"

    def statement(self, stmt: c.Stmt, indent: int, lines: list[str], depth: int) -> None:
        """With its comments: those before it, and one behind its first line where that stays short."""
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        before = [said for said in stmt.comments if not said.behind]
        if c.BLANK in before and lines and lines[-1]:
            lines.append("")
        lines += _comment_lines(before, indent)
        start = len(lines)
        self._print_bare_statement(stmt, indent, lines, depth)
        behind = [said for said in stmt.comments if said.behind]
        if not behind:
            return
        first = next((at for at in range(start, len(lines)) if not lines[at].startswith("#pragma")), start)
        text = "; ".join(said.text for said in behind)
        is_long = "\n" in text or len(lines[first]) + len("  // ") + len(text) > WIDTH
        if is_long or isinstance(stmt, c.Verbatim):
            lines[start:start] = _comment_lines(behind, indent)
        else:
            lines[first] += f"  // {text}"

    def _print_bare_statement(self, stmt: c.Stmt, indent: int, lines: list[str], depth: int) -> None:
        pad = _INDENT * indent
        match stmt:
            case c.Declare():
                lines.append(f"{pad}{self.declaration(stmt)};")
            case c.Evaluate(expr=expr):
                lines.append(f"{pad}{self.expr(expr, 0, 0)};")
            case c.If():
                self._if(stmt, indent, lines, depth)
            case c.For():
                if stmt.unroll is not None:
                    lines.append("#pragma unroll" + (f" {stmt.unroll}" if stmt.unroll else ""))
                self._body(f"{pad}{self._for_head(stmt)}", stmt.body, indent, lines, depth)
            case c.While(condition=condition, body=body, after=False):
                self._body(f"{pad}while ({self.expr(condition, 0, 0)})", body, indent, lines, depth)
            case c.While(condition=condition, body=body):
                self._print_braced_block(f"{pad}do", body, indent, lines, depth)
                lines[-1] += f" while ({self.expr(condition, 0, 0)});"
            case c.Return(value=value):
                lines.append(f"{pad}return;" if value is None else f"{pad}return {self.expr(value, 0, 0)};")
            case c.Jump(word=word):
                lines.append(f"{pad}{word};")
            case c.Scope(body=body):
                self._print_braced_block(f"{pad}", body, indent, lines, depth)
            case c.Verbatim(text=text):
                lines.extend(pad + line.rstrip() for line in text.split("\n"))
            case c.Alternative():
                self._alternative(stmt, indent, lines, depth)
            case c.MacroDefinition(name=name, value=value, parameters=parameters):
                head = f"{name}({', '.join(parameters)})" if parameters else name
                text = _Printer(self._language, frozenset(parameters)).expr(value, _POSTFIX, 0)
                lines.append(f"#define {head} {text}")

    def _alternative(self, stmt: c.Alternative, indent: int, lines: list[str], depth: int) -> None:
        word, branch = "if", stmt
        while True:
            said = [said.text for said in branch.comments if said.behind] if word == "elif" else []
            lines.append("  // ".join([f"#{word} {self.expr(branch.condition, 0, 0)}", *said]))
            self._branch(branch.then, stmt.inside, indent, lines, depth)
            rest = branch.otherwise
            if len(rest) != 1 or not isinstance(rest[0], c.Alternative) or rest[0].inside:
                break
            word, branch = "elif", rest[0]
        if rest or stmt.inside:
            lines.append("#else")
            self._branch(rest, stmt.inside, indent, lines, depth)
        lines.append("#endif")
        for part in stmt.inside:
            self.statement(part, indent + 1, lines, depth + 1)
        lines += [_INDENT * indent + "}"] if stmt.inside else []

    def _branch(
        self, stmts: tuple[c.Stmt, ...], inside: tuple[c.Stmt, ...], indent: int, lines: list[str], depth: int
    ) -> None:
        """The last block stays open where more follows in it."""
        for stmt in stmts[:-1] if inside else stmts:
            self.statement(stmt, indent, lines, depth + 1)
        if inside:
            last = stmts[-1] if stmts else None
            if not isinstance(last, c.For | c.Scope):
                raise ValueError("a branch with something to follow in it ends with a loop or a block")
            head = self._for_head(last) if isinstance(last, c.For) else ""
            self._print_braced_block(_INDENT * indent + head, last.body, indent, lines, depth)
            lines.pop()

    def _if(self, stmt: c.If, indent: int, lines: list[str], depth: int) -> None:
        pad = _INDENT * indent
        head = pad
        branch: c.If | None = stmt
        while branch is not None:  # a chain of else-if is as deep as it is long: no recursion
            word = "if constexpr" if branch.constexpr else "if"
            head += f"{word} ({self.expr(branch.condition, 0, 0)})"
            self._body(head, branch.then, indent, lines, depth, keep_braces=bool(branch.otherwise))
            rest = branch.otherwise
            if not rest:
                return
            head = f"{pad}else "
            if lines[-1] == pad + "}":
                lines.pop()
                head = f"{pad}}} else "
            branch = rest[0] if len(rest) == 1 and isinstance(rest[0], c.If) else None
            if branch is not None and branch.then:  # between `else` and `if` is no place for comments
                said = tuple(replace(said, behind=False) for said in branch.comments)
                first = replace(branch.then[0], comments=(*said, *branch.then[0].comments))
                branch = replace(branch, then=(first, *branch.then[1:]))
        self._body(head.rstrip(), rest, indent, lines, depth)

    def _for_head(self, stmt: c.For) -> str:
        declares = [part for part in stmt.init if isinstance(part, c.Declare)]
        evaluates = [part.expr for part in stmt.init if isinstance(part, c.Evaluate)]
        if stmt.init and isinstance(stmt.init[0], c.Declare):
            others = ("*" * part.type.pointers + self._print_declarator(part) for part in declares[1:])
            init = ", ".join([self.declaration(declares[0]), *others])
        else:
            init = ", ".join(self.expr(part, _ASSIGN, 0) for part in evaluates)
        condition = "" if stmt.condition is None else f" {self.expr(stmt.condition, 0, 0)}"
        step = ", ".join(self.expr(part, _ASSIGN, 0) for part in stmt.step)
        return f"for ({init};{condition};{' ' + step if step else ''})"

    def _body(
        self,
        head: str,
        body: tuple[c.Stmt, ...],
        indent: int,
        lines: list[str],
        depth: int,
        keep_braces: bool = False,
    ) -> None:
        """One simple statement goes without braces; anything in which an `else` could go astray does not."""
        alone = body[0] if len(body) == 1 and all(said.behind for said in body[0].comments) else None
        simple = isinstance(alone, c.Evaluate | c.Return | c.Jump)
        plain_loop = isinstance(alone, c.For) and alone.unroll is None and not keep_braces
        if simple or plain_loop:
            lines.append(head)
            self.statement(body[0], indent + 1, lines, depth + 1)
        else:
            self._print_braced_block(head, body, indent, lines, depth)

    def _print_braced_block(
        self, head: str, body: tuple[c.Stmt, ...], indent: int, lines: list[str], depth: int
    ) -> None:
        lines.append(f"{head} {{" if head.strip() else f"{head}{{")
        for stmt in body:
            self.statement(stmt, indent + 1, lines, depth + 1)
        lines.append(_INDENT * indent + "}")


def _comment_lines(comments: Iterable[c.Comment], indent: int) -> list[str]:
    return [f"{_INDENT * indent}// {line}" for said in comments for line in said.lines if said.text]


def _is_grouped(text: str) -> bool:
    """Whether the text is one group in parentheses: safe inside any expression."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return at == len(text) - 1
    return False


WIDTH = 118
_DEEP = 72  # a column from which a line is too short to go on in
_STEP = 4
# Before these a line is broken, the weakest first; behind commas and semicolons sooner than before any.
_OPERATORS = ("? :", "||", "&&", "| ^ &", "+ -", "* / %")
_RANK = {word: rank for rank, words in enumerate(_OPERATORS, 1) for word in words.split()}
_EQUALS = len(_OPERATORS) + 1  # behind these last of all
_ASSIGNED = re.compile(r" (?:[-+*/%&|^]|<<|>>)?= $")
_BRACKET_PLACES = re.compile(r"[(\[{]|[)\]}]|(?<=\w)<(?=\w)|(?<=[\w*>])>(?=[:(>*]|$| \w)")


@dataclass(frozen=True)
class _Break:
    depth: int
    rank: int
    at: int
    opened: tuple[int, ...]  # columns behind the brackets that are open there


def wrap_line(line: str, width: int = WIDTH) -> list[str]:
    """The line, or what it is broken into; directives, comments and lines with strings stay as they are."""
    if len(line) <= width or '"' in line or line.lstrip().startswith(("#", "//")):
        return [line]
    indent = len(line) - len(line.lstrip())
    code, mark, said = line.partition("  // ")
    if mark:
        return [f"{' ' * indent}// {said}", *wrap_line(code, width)]
    further = indent + (2 * _STEP if code.endswith(("{", ")")) else _STEP)  # below a head is a step in
    found: list[str] = []
    opened: tuple[int, ...] = ()
    while len(code) > width:
        places = [place for place in _find_line_breaks(code, opened) if place.at <= width + 1]
        if not places:
            break
        best = min(places, key=lambda place: (place.depth, place.rank, -place.at))
        found.append(code[: best.at].rstrip())
        opened = best.opened
        column = max((at for at in opened if at <= _DEEP), default=further)
        code = " " * column + code[best.at :]
    return [*found, code]


def _find_line_breaks(code: str, opened: tuple[int, ...]) -> Iterator[_Break]:
    start = len(code) - len(code.lstrip())
    brackets = {found.start(): found[0] for found in _BRACKET_PLACES.finditer(code)}
    for at in range(start, len(code)):
        if at > start and code[at - 1] == " ":
            rank = _break_rank(code, at)
            if rank is not None:
                yield _Break(len(opened), rank, at, opened)
        if (bracket := brackets.get(at)) is not None:
            opened = (*opened, at + 1) if bracket in "([{<" else opened[:-1]


def _break_rank(code: str, at: int) -> int | None:
    """How firmly what stands around the place holds together; None: no place to break a line at."""
    if code[at - 2] in ",;":
        return 0
    if _ASSIGNED.search(code, 0, at):
        return _EQUALS
    return _RANK.get(code[at:].partition(" ")[0])
