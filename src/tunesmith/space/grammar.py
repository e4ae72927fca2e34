"""The expression tree, its text, and how that is read, refusing everything that is not in the language.

Python's own parser splits the text; what it returns is translated node by node into our tree, and whatever
has no translation is an error. Nothing of the text is ever evaluated.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never, cast, get_args

from tunesmith.errors import BadInput

# The largest magnitude of a value. Two of them add up to 64 bits at most, so that NumPy can check afterwards.
LIMIT = 2**62

ArithmeticOp = Literal["+", "-", "*", "//", "%"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
BoolOp = Literal["and", "or"]
Function = Literal["min", "max", "ceildiv", "round_up", "next_pow2", "is_pow2"]


@dataclass(frozen=True, slots=True)
class Num:
    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    id: str  # "d", or dotted: "device.sms"


@dataclass(frozen=True, slots=True)
class Neg:
    """Minus something. Minus a plain number is `Num(-3)`, so that a text has one tree and a tree one text."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: ArithmeticOp
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right op right ...`, chained as in Python."""

    left: Node
    links: tuple[tuple[CompareOp, Node], ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    item: Node
    options: tuple[int, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Logic:
    op: BoolOp
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    test: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class FunctionCall:
    function: Function
    args: tuple[Node, ...]


Node = Num | Variable | Neg | Not | Arithmetic | Compare | OneOf | Logic | Conditional | FunctionCall


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Num() | Variable():
            return ()
        case Neg(operand) | Not(operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Compare(left, links):
            return (left, *(right for _, right in links))
        case OneOf(item):
            return (item,)
        case Logic(_, operands):
            return operands
        case Conditional(test, then, other):
            return (test, then, other)
        case FunctionCall(_, args):
            return args
    assert_never(node)


def names(node: Node) -> Iterator[str]:
    """Every name in the tree, in reading order, repeats included."""
    if isinstance(node, Variable):
        yield node.id
    for child in children(node):
        yield from names(child)


# Binding strength, weakest first, as in Python's grammar.
_IF, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)


def unparse(node: Node) -> str:
    """The text of a tree, with the fewest parentheses; reading it again gives the same tree."""
    return _render(node, _IF)


def tidy(text: str) -> str:
    """The same expression with the fewest parentheses."""
    return unparse(read(text, None))


def product_text(factors: Iterable[str]) -> str:
    return tidy(" * ".join(f"({text})" for text in factors))


def _render(node: Node, at_least: int) -> str:
    text, strength = _text(node)
    return text if strength >= at_least else f"({text})"


def _text(node: Node) -> tuple[str, int]:
    match node:
        case Num(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Variable(id):
            return id, _ATOM
        case Neg(operand):
            return f"-{_render(operand, _UNARY)}", _UNARY
        case Not(operand):
            return f"not {_render(operand, _NOT)}", _NOT
        case Arithmetic(op, left, right):
            strength = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_render(left, strength)} {op} {_render(right, strength + 1)}", strength
        case Compare(left, links):
            tail = "".join(f" {op} {_render(right, _SUM)}" for op, right in links)
            return f"{_render(left, _SUM)}{tail}", _COMPARE
        case OneOf(item, options, negated):
            listed = ", ".join(map(str, options)) + ("," if len(options) == 1 else "")
            return f"{_render(item, _SUM)} {'not in' if negated else 'in'} ({listed})", _COMPARE
        case Logic(op, operands):
            strength = _OR if op == "or" else _AND
            return f" {op} ".join(_render(operand, strength + 1) for operand in operands), strength
        case Conditional(test, then, other):
            return f"{_render(then, _OR)} if {_render(test, _OR)} else {_render(other, _IF)}", _IF
        case FunctionCall(function, args):
            return f"{function}({', '.join(_render(arg, _IF) for arg in args)})", _ATOM
    assert_never(node)


# Binding a name to a number may lengthen a text but adds no word, and such a text must be readable again:
# words are what is scarce, and there is room for all of them to become numbers.
MAX_WORDS = 3_000  # where a kernel serves is one condition, with all that its template requires in it
MAX_LENGTH = 80_000
MAX_DEPTH = 100  # far above any constraint written by hand, far below Python's own recursion limit
NAMESPACES = ("device", "resources")
FUNCTIONS: tuple[str, ...] = get_args(Function)

_ALLOWED = (
    "an expression has integers, names, + - * // %, comparisons, in (1, 2), and, or, not, a if c else b, "
    + ", ".join(FUNCTIONS)
)
_SMALLER = "no size or limit is that large"
_ARITHMETIC: dict[type[ast.operator], ArithmeticOp] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_RELATIONS: dict[type[ast.cmpop], CompareOp] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ARITY = {"ceildiv": 2, "round_up": 2, "next_pow2": 1, "is_pow2": 1}
_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_+\-*/%<>=!()\[\],. \t\r\n]")
_WORD = re.compile(r"\w+")
_DEEP = re.compile(rf"([-(\[]\s*){{{MAX_DEPTH + 1}}}")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*|\.\d\w*")
_INTEGER = re.compile(r"\d+(_\d+)*|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELD = re.compile(r"[a-z][a-z0-9_]*")
_WORDS = frozenset(("and", "or", "not", "in", "is", "if", "else", "lambda", "None", "True", "False"))
_HABITS = (  # what people used to C and to Python write instead
    (re.compile(r"&&"), "write 'and' for '&&'"),
    (re.compile(r"\|\|"), "write 'or' for '||'"),
    (re.compile(r"\?"), "write 'a if c else b' for 'c ? a : b'"),
    (re.compile(r"!(?!=)"), "write 'not' for '!'"),
    (re.compile(r"(?<![=<>!])=(?!=)"), "compare with '=='"),
    (re.compile(r"\*\*"), "there is no power; multiply, or use next_pow2"),
    (re.compile(r"(?<!/)/(?!/)"), "divide with '//' (rounds down) or ceildiv(a, b) (rounds up)"),
    (re.compile(r"\b(True|true|False|false)\b"), "write 1 for true and 0 for false"),
    (re.compile(r"[\"']"), "give a choice a number, such as 0 and 1, and say in a comment what they mean"),
)


class ExprError(BadInput):
    """A text that is not an expression, or that names what is not there."""


def is_name(text: str) -> bool:
    """Whether a parameter or a size may be called so: it must also do as a C macro."""
    reserved = text in _WORDS or text in FUNCTIONS or text in NAMESPACES
    return _NAME.fullmatch(text) is not None and not reserved


def read(text: str, names: Collection[str] | None) -> Node:
    return _ExprReader(text, names).read()


def suggestion(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, as a hint."""
    lowered = {other.lower(): other for other in sorted(known)}
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    if name.lower() in lowered:
        close = [lowered[name.lower()]]
    return f"did you mean '{close[0]}'?" if close else None


def shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


class _ExprReader:
    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.text = text
        # A TOML text may run over several lines; to Python's parser a line break would end it.
        self.line = re.sub(r"\s", " ", text).strip()
        self.names = names

    def read(self) -> Node:
        text = self.text
        if len(text) > MAX_LENGTH:
            raise self.refused(
                f"it has {len(text)} characters, at most {MAX_LENGTH} are allowed", hint="split it up"
            )
        if not text.strip():
            raise self.refused("it is empty", hint='write an integer or an expression such as "d % VEC == 0"')
        if len(_WORD.findall(text)) > MAX_WORDS:
            raise self.refused(f"it has more than {MAX_WORDS} names and numbers", hint="split it up")
        if _DEEP.search(text):
            raise self.refused("it is nested too deeply", hint="split it up")
        if foreign := _FOREIGN_CHARACTER.search(text):
            raise self.refused(f"the character {foreign[0]!a} is not allowed")
        for number in _NUMBER.findall(text):
            if not _INTEGER.fullmatch(number):
                raise self.refused(f"'{shorten(number)}' is not an integer")
            if len(number) > 40:  # Python would refuse thousands of digits in words of its own
                raise self.refused(
                    f"an integer in it has {len(number)} digits, larger than 2**62", hint=_SMALLER
                )
        try:
            tree = ast.parse(self.line, mode="eval")
        except SyntaxError as error:
            offset = error.offset or 0
            place = f"near character {offset}" if 0 < offset <= len(self.line) else "at its end"
            # After the first sentence Python advises in terms of Python.
            raise self.refused(f"{error.msg.split('. ')[0]}, {place}") from error
        except (RecursionError, MemoryError, ValueError) as error:
            raise self.refused("it is nested too deeply", hint="split it up") from error
        return self.node(tree.body, 1)

    def refused(self, reason: str, *, hint: str | None = None) -> ExprError:
        habit = next((advice for pattern, advice in _HABITS if pattern.search(self.text)), None)
        message = f'"{shorten(self.text)}" is not an expression: {reason}'
        return ExprError(message, hint=hint or habit or _ALLOWED)

    def node(self, tree: ast.expr, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.refused(f"it is nested more than {MAX_DEPTH} deep", hint="split it up")
        depth += 1
        match tree:
            case ast.Constant(value):
                return Num(self.integer(value))
            case ast.Name(id):
                return self.name(id)
            case ast.Attribute(ast.Name(space), field):
                return self.dotted(space, field)
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return Num(-self.integer(value))
            case ast.UnaryOp(ast.USub(), operand):
                return Neg(self.node(operand, depth))
            case ast.UnaryOp(ast.Not(), operand):
                return Not(self.node(operand, depth))
            case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
                return Arithmetic(_ARITHMETIC[type(op)], self.node(left, depth), self.node(right, depth))
            case ast.BoolOp(joint, operands):
                parts = tuple(self.node(operand, depth) for operand in operands)
                return Logic("and" if isinstance(joint, ast.And) else "or", parts)
            case ast.Compare():
                return self.comparison(tree, depth)
            case ast.IfExp(test, then, other):
                return Conditional(self.node(test, depth), self.node(then, depth), self.node(other, depth))
            case ast.Call(ast.Name(function), args, []):
                return self.call(function, args, depth)
            case _:
                raise self.refused(f"'{self.source(tree)}' is not allowed")

    def source(self, tree: ast.expr) -> str:
        return shorten(self.line[tree.col_offset : tree.end_col_offset])

    def integer(self, value: object) -> int:
        if type(value) is not int:
            raise self.refused(f"'{value!r}' is not an integer")
        if value > LIMIT:
            raise self.refused("an integer in it is larger than 2**62", hint=_SMALLER)
        return value

    def name(self, name: str) -> Variable:
        if name in FUNCTIONS:
            raise self.refused(f"'{name}' is a function", hint=f"call it: {name}(...)")
        if name in NAMESPACES:
            raise self.refused(f"'{name}' alone has no value", hint=f"name one of its fields: {name}.<field>")
        return self.known(name)

    def dotted(self, space: str, field: str) -> Variable:
        if space not in NAMESPACES or not _FIELD.fullmatch(field):
            allowed = " and ".join(f"{namespace}.<field>" for namespace in NAMESPACES)
            raise self.refused(f"'{space}.{field}' is not allowed", hint=f"names with a dot are {allowed}")
        return self.known(f"{space}.{field}")

    def known(self, name: str) -> Variable:
        if self.names is not None and name not in self.names:
            listed = ", ".join(sorted(self.names)) or "none"
            message = f"unknown name '{name}' in \"{shorten(self.text)}\": known names are {listed}"
            boolean = "write 1 for true and 0 for false" if name in ("true", "false") else None
            raise ExprError(message, hint=boolean or suggestion(name, self.names))
        return Variable(name)

    def comparison(self, tree: ast.Compare, depth: int) -> Node:
        left, op, right = tree.left, tree.ops[0], tree.comparators[0]
        if len(tree.ops) == 1 and isinstance(op, ast.In | ast.NotIn):
            return OneOf(self.node(left, depth), self.options(right), isinstance(op, ast.NotIn))
        links: list[tuple[CompareOp, Node]] = []
        for op, right in zip(tree.ops, tree.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                raise self.refused("'in' cannot be part of a chain", hint="join two comparisons with 'and'")
            if type(op) not in _RELATIONS:
                raise self.refused("'is' is not allowed", hint="compare with '==' or '!='")
            links.append((_RELATIONS[type(op)], self.node(right, depth)))
        return Compare(self.node(left, depth), tuple(links))

    def options(self, tree: ast.expr) -> tuple[int, ...]:
        rule = "write the integers in parentheses or brackets: x in (1, 2) or x in [1]"
        if not isinstance(tree, ast.Tuple | ast.List) or not tree.elts:
            raise self.refused("'in' needs a list of integers on its right", hint=rule)
        values: list[int] = []
        for element in tree.elts:
            match element:
                case ast.Constant(value):
                    values.append(self.integer(value))
                case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                    values.append(-self.integer(value))
                case _:
                    raise self.refused(f"the list after 'in' holds '{self.source(element)}'", hint=rule)
        return tuple(values)

    def call(self, function: str, args: list[ast.expr], depth: int) -> FunctionCall:
        if function not in FUNCTIONS:
            hint = suggestion(function, FUNCTIONS) or f"functions: {', '.join(FUNCTIONS)}"
            raise self.refused(f"there is no function '{function}'", hint=hint)
        arity = _ARITY.get(function)
        if len(args) != arity if arity else len(args) < 2:
            wants = arity or "at least 2"
            raise self.refused(
                f"{function} takes {wants} arguments, got {len(args)}", hint=f"give it {wants}"
            )
        return FunctionCall(cast("Function", function), tuple(self.node(arg, depth) for arg in args))
