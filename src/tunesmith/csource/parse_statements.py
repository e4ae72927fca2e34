"""Statements from tree-sitter's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.lex import Token, read_number
from tunesmith.csource.parse_assembly import AsmOperand, as_statements
from tunesmith.csource.parse_expressions import ExpressionReader
from tunesmith.csource.parse_types import Declarator, Specifiers, plain_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.switches import leaves_switch, without_break
from tunesmith.csource.types import byte_size, integer
from tunesmith.csource.walk import commented, statements_in

if TYPE_CHECKING:
    from tree_sitter import Node

    from tunesmith.csource.grammar import GrammarText

_NOTHING = frozenset({"comment", "preproc_call", ";", "static_assert_declaration"})


class StatementReader(ExpressionReader):
    template: frozenset[str] = frozenset()  # names of the template's parameters, of the function at hand

    def __init__(self, place: GrammarText) -> None:
        super().__init__(place)
        self.arrays: dict[str, c.Declare | None] = {}  # of the function; None: a name that is declared twice

    def block(self, node: Node | None, depth: int = 0) -> tuple[c.Stmt, ...]:
        """The statements of `{ ... }`, or of the single statement that stands for them."""
        if node is None:
            return ()
        parts = node.named_children if node.type == "compound_statement" else [node]
        done: list[c.Stmt] = []
        for part in parts:
            done.extend(self.statement(part, depth + 1))
        return tuple(done)

    def statement(self, node: Node, depth: int) -> tuple[c.Stmt, ...]:
        """With the comments before it and on its lines; those of a block's statements are their own."""
        done = self._statement(node, depth)
        return commented(done, self.place.comments(node.start_byte, _head_end(node)))

    def _statement(self, node: Node, depth: int) -> tuple[c.Stmt, ...]:
        line = self.place.line(node)
        if depth > c.MAX_DEPTH:
            raise c.TooDeep(line)
        if node.is_missing:
            raise c.Unreadable("a statement is missing", line)
        d = depth + 1
        match node.type:
            case "expression_statement":
                return self._expression_statement(node, line)
            case "declaration":
                return self.declaration(node, line)
            case "compound_statement":
                return (c.Scope(self.block(node, d), line=line),)
            case "if_statement":
                return (self._if(node, line, d),)
            case "for_statement":
                return (self._for(node, line, d),)
            case "for_range_loop":
                return (self._for_each(node, line, d),)
            case "while_statement" | "do_statement":
                condition = node.child_by_field_name("condition")
                if _declares(condition):
                    return (self._verbatim(node, line),)
                body = self.block(node.child_by_field_name("body"), d)
                test = self.expr(condition)
                return (_once(c.While(test, body, node.type == "do_statement", line=line)),)
            case "switch_statement":
                found = self._switch(node, line, d)
                return (self._verbatim(node, line),) if found is None else found
            case "return_statement":
                value = next(iter(parts_of(node)), None)
                return (c.Return(None if value is None else self.expr(value), line=line),)
            case "break_statement" | "continue_statement":
                return (c.Jump("break" if node.type == "break_statement" else "continue", line=line),)
            case "attributed_statement":
                return self._attributed(node, d)
            case kind if kind in _NOTHING:
                return ()
        return (self._verbatim(node, line),)

    def _switch(self, node: Node, line: int, d: int) -> tuple[c.Stmt, ...] | None:
        """One that a template argument decides, as branches; None where a case goes on into the next one."""
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        cases = parts_of(body)
        if _declares(condition) or any(case.type != "case_statement" for case in cases):
            return None
        asked = self.expr(condition)
        names = walk.names_in(asked)
        if not names or not names <= self.template or not is_pure(asked):
            return None
        ways: list[tuple[c.Expr | None, tuple[c.Stmt, ...]]] = []
        labels: list[c.Expr] = []
        is_default = False
        for case in cases:
            label = case.child_by_field_name("value")
            is_default = is_default or label is None
            labels += [] if label is None else [self.expr(label)]
            inside = [part for part in parts_of(case) if part != label]
            if not inside and case != cases[-1]:
                continue  # with the next one
            stmts = tuple(stmt for part in inside for stmt in self.statement(part, d))
            ended = without_break(stmts)
            stmts = stmts if ended is None and case == cases[-1] else ended if ended is not None else ()
            if (ended is None and case != cases[-1]) or leaves_switch(stmts):
                return None
            test: c.Expr | None = None
            for value in labels:
                one = c.Binary("==", asked, value)
                test = one if test is None else c.Binary("||", test, one)
            if is_default and case != cases[-1]:
                return None
            ways.append((None if is_default else test, stmts))
            labels, is_default = [], False
        done: tuple[c.Stmt, ...] = ()
        for choice, stmts in reversed(ways):
            done = stmts if choice is None else (c.If(choice, stmts, done, line=line),)
        return (c.Scope(done, line=line),)

    def _verbatim(self, node: Node, line: int) -> c.Verbatim:
        return c.Verbatim(self.place.written(node), self.place.names(node), line=line)

    def _expression_statement(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        inside = parts_of(node)
        if not inside:
            return ()
        if inside[0].type == "gnu_asm_expression":
            return self._assembly(node, inside[0], line)
        if inside[0].type == "comma_expression":
            return tuple(c.Evaluate(part, line=line) for part in self.commas(inside[0]))
        return (c.Evaluate(self.expr(inside[0]), line=line),)

    def _assembly(self, node: Node, inside: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            outputs, inputs = (
                [self._operand(part) for part in parts_of(inside.child_by_field_name(f"{side}_operands"))]
                for side in ("output", "input")
            )
        except c.Unreadable:
            return (self._verbatim(node, line),)
        found = as_statements(self.place.written(node), outputs, inputs, self.variables, line)
        return (self._verbatim(node, line),) if found is None else found

    def _operand(self, node: Node) -> AsmOperand:
        constraint, value = node.child_by_field_name("constraint"), node.child_by_field_name("value")
        if constraint is None or value is None or node.child_by_field_name("symbol") is not None:
            raise self.place.trouble(node, "", " is an operand that is not understood")
        words = self.place.words(constraint.start_byte, constraint.end_byte)
        return AsmOperand("".join(word.text for word in words).strip('"'), self.expr(value))

    def _attributed(self, node: Node, d: int) -> tuple[c.Stmt, ...]:
        """`#pragma unroll` reached the grammar as [[unroll]]."""
        inner = node.named_children[-1]
        done = self.statement(inner, d)
        attribute = (node.named_children[0].text or b"").decode()
        count: int | None = None
        if "unroll" in attribute:
            inside = attribute.partition("(")[2].partition(")")[0].strip()
            value = read_number(inside) if inside else 0
            count = value if isinstance(value, int) else 0
        if len(done) == 1 and isinstance(done[0], c.For) and count is not None:
            return (replace(done[0], unroll=count),)
        return done

    def _if(self, node: Node, line: int, d: int) -> c.Stmt:
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        then, otherwise = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        about_rest: tuple[c.Comment, ...] = ()
        if otherwise is not None and otherwise.type == "else_clause":
            start, otherwise = otherwise.start_byte, next(reversed(parts_of(otherwise)), None)
            if otherwise is not None and otherwise.type == "compound_statement":
                about_rest = self.place.comments(start, otherwise.start_byte + 1)
        return c.If(
            self.expr(condition),
            self.block(then, d),
            commented(self.block(otherwise, d), tuple(replace(said, behind=False) for said in about_rest)),
            constexpr=any(child.type == "constexpr" for child in node.children),
            line=line,
        )

    def _for(self, node: Node, line: int, d: int) -> c.Stmt:
        head = node.child_by_field_name("initializer")
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        init: list[c.Declare | c.Evaluate] = []
        if head is not None and head.type == "declaration":
            for part in self.declaration(head, line):
                if not isinstance(part, c.Declare):
                    return self._verbatim(node, line)
                init.append(part)
        elif head is not None:
            init += [c.Evaluate(part, line=line) for part in self.commas(head)]
        return c.For(
            tuple(init),
            None if condition is None else self.expr(condition),
            tuple(self.commas(node.child_by_field_name("update"))),
            self.block(node.child_by_field_name("body"), d),
            line=line,
        )

    def _for_each(self, node: Node, line: int, d: int) -> c.Stmt:
        """`for (float &v : a)` over an array of the function: a loop that counts, v as a copy or as a[at]."""
        right = node.child_by_field_name("right")
        array = self.place.short(right) if right is not None and right.type == "identifier" else ""
        known = self.arrays.get(array)
        declarator = node.child_by_field_name("declarator")
        if known is None or declarator is None or node.child_by_field_name("initializer") is not None:
            return self._verbatim(node, line)
        own = self.declarator(declarator, self.specifiers(node).type)
        same = own.type.base in ("auto", known.type.base) and own.type.pointers == 0 == known.type.pointers
        if own.dims or (own.type.reference and not same) or (len(known.dims) > 1 and not own.type.reference):
            return self._verbatim(node, line)
        self.arrays[own.name] = replace(known, dims=known.dims[1:]) if len(known.dims) > 1 else None
        self.declare(own.name, replace(known.type, pointers=len(known.dims) - 1))
        body = self.block(node.child_by_field_name("body"), d)
        at = c.Name(walk.fresh_name(f"{own.name}_at", {*self.variables, *walk.names_in(body)}))
        element = c.Index(c.Name(array), at)
        if array in walk.declared_in(body) or own.name in walk.declared_in(body):
            return self._verbatim(node, line)
        if own.type.reference:
            if any(isinstance(n, c.Verbatim | c.Opaque) and own.name in n.names for n in walk.nodes_in(body)):
                return self._verbatim(node, line)
            if own.type.const and byte_size(known.type.base) is None:  # of an object methods ask
                named = replace(own.type, base=known.type.base)
                body = (c.Declare(named, own.name, element, line=line), *body)
            else:
                body = substitute(body, {own.name: element})
        else:
            body = (c.Declare(own.type, own.name, element, line=line), *body)
        count = c.Declare(c.Type("int"), at.name, integer(0), line=line)
        return c.For((count,), c.Binary("<", at, known.dims[0]), (c.Unary("++", at),), body, line=line)

    # -- declarations -------------------------------------------------------------------------------

    def declaration(self, node: Node, line: int) -> tuple[c.Stmt, ...]:
        try:
            specifiers = self.specifiers(node)
            declarators = node.children_by_field_name("declarator")
            if not declarators or specifiers.words & {"mutable", "thread_local", "inline"}:
                return (self._verbatim(node, line),)
            if specifiers.type.base.startswith("decltype"):
                return (self._verbatim(node, line),)
            plain = [part for part in declarators if not self._is_lambda(part)]
            return tuple([self._declared(specifiers, part, line) for part in plain])
        except c.TooDeep:
            raise
        except c.Unreadable:
            return (self._verbatim(node, line),)  # kept as text: only what names it is not understood

    def lambda_declared(self, name: str, value: Node) -> bool:
        """Whether a variable that is set to a lambda was read as a function."""
        return False

    def _is_lambda(self, node: Node) -> bool:
        value, name = node.child_by_field_name("value"), node.child_by_field_name("declarator")
        if value is None or name is None or value.type != "lambda_expression" or name.type != "identifier":
            return False
        return self.lambda_declared(self.place.short(name), value)

    def _declared(self, specifiers: Specifiers, node: Node, line: int) -> c.Declare:
        with_value = node.type == "init_declarator"
        value = node.child_by_field_name("value") if with_value else None
        inner = node.child_by_field_name("declarator") if with_value else node
        found = self.declarator(inner, specifiers.type)
        init: c.Expr | None = None
        if found.arguments is not None:
            init = self._constructed(found)
        elif value is not None and value.type == "argument_list":
            init = _construction(found, tuple(self.expr(a) for a in parts_of(value)))
        elif value is not None:
            init = self.expr(value)
        storage = _storage(specifiers, found.type, self.place.language)
        if storage == "shared" and not found.type.is_pointer:
            found = replace(found, type=replace(found.type, space=""))
        dims: tuple[c.Expr, ...] = ()
        if storage != "dynamic shared":
            if None in found.dims and not isinstance(init, c.Braces):
                raise c.Unreadable("an array without a size", line)
            count = integer(len(init.items) if isinstance(init, c.Braces) else 0)
            dims = tuple(self.expr(dim) if dim is not None else count for dim in found.dims)
        again = found.name in self.variables
        self.declare(found.name, replace(found.type, pointers=found.type.pointers + len(found.dims)))
        align = None if specifiers.align is None else self.expr(specifiers.align)
        done = c.Declare(found.type, found.name, init, dims, storage, align, line=line)
        self.arrays[found.name] = done if dims and not again else None
        return done

    def _constructed(self, found: Declarator) -> c.Expr:
        """`float4 v(a, b);`, which the grammar takes for the declaration of a function."""
        items: list[c.Expr] = []
        for parameter in parts_of(found.arguments):
            if not self._is_value(self.place.words(parameter.start_byte, parameter.end_byte)):
                raise c.Unreadable("a function is declared inside a function", self.place.line(parameter))
            items.append(self.reread(parameter))
        if not items:
            raise c.Unreadable("a function is declared inside a function")
        return _construction(found, tuple(items))

    def _is_value(self, words: Sequence[Token]) -> bool:
        """Whether `a`, `x[i]`, `a * b` between parentheses are a value, and not a parameter's type."""
        first = words[0]
        if first.text in self.variables:
            return True
        if first.kind != "word" or self.place.is_type(first.text):
            return False
        return len(words) == 1 or any(w.kind == "number" or w.text in self.variables for w in words)


def _head_end(node: Node) -> int:
    """Where the statement's own words end: with a block's opening brace, before another statement."""
    if node.type == "attributed_statement":
        return node.named_children[-1].start_byte
    body = node.child_by_field_name("consequence" if node.type == "if_statement" else "body")
    body = node if node.type == "compound_statement" else body
    if body is None:
        return node.end_byte
    return body.start_byte + (body.type == "compound_statement")


def _construction(found: Declarator, args: tuple[c.Expr, ...]) -> c.Expr:
    type_ = plain_value(found.type)
    return c.Cast(type_, args[0]) if len(args) == 1 else c.Braces(args, type_)


def _once(loop: c.While) -> c.Stmt:
    """`do { ... } while (0)` of a macro is only a scope."""
    never = isinstance(loop.condition, c.Number) and loop.condition.value == 0
    leaves = any(isinstance(part, c.Jump | c.Verbatim) for part in statements_in(loop.body))
    return c.Scope(loop.body, line=loop.line) if loop.after and never and not leaves else loop


def _declares(condition: Node | None) -> bool:
    """`if (int x = f(); x > 0)`: a declaration where a plain condition is expected."""
    if condition is None:
        return False
    return any(child.type in ("declaration", "init_statement") for child in condition.named_children)


def _storage(specifiers: Specifiers, type_: c.Type, language: str) -> c.Storage:
    words = specifiers.words
    if "__shared__" in words:
        return "dynamic shared" if "extern" in words else "shared"
    if language == "opencl" and type_.space == "local" and not type_.is_pointer:
        return "shared"
    if "constexpr" in words:
        return "constexpr"
    return "static" if "static" in words else ""


def parts_of(node: Node | None) -> list[Node]:
    """What stands below a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"] if node is not None else []
