"""Statements from tree-sitter's nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource.fold import integer
from tunesmith.csource.lex import read_number
from tunesmith.csource.nodes import (
    MAX_DEPTH,
    Braces,
    Cast,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Jump,
    Name,
    Number,
    Return,
    Scope,
    Stmt,
    Storage,
    TooDeep,
    Type,
    Unreadable,
    Verbatim,
    While,
)
from tunesmith.csource.parse_expressions import ExpressionReader, plain_value
from tunesmith.csource.parse_types import Declarator, Specifiers
from tunesmith.csource.walk import statements_in

if TYPE_CHECKING:
    from tree_sitter import Node

_NOTHING = frozenset({"comment", "preproc_call", ";"})


class StatementReader(ExpressionReader):
    def block(self, node: Node | None, depth: int = 0) -> tuple[Stmt, ...]:
        """The statements of `{ ... }`, or of the single statement that stands for them."""
        if node is None:
            return ()
        parts = node.named_children if node.type == "compound_statement" else [node]
        done: list[Stmt] = []
        for part in parts:
            done.extend(self.statement(part, depth + 1))
        return tuple(done)

    def statement(self, node: Node, depth: int) -> tuple[Stmt, ...]:
        line = self.line(node)
        if depth > MAX_DEPTH:
            raise TooDeep(line)
        if node.is_missing:
            raise Unreadable("a statement is missing", line)
        d = depth + 1
        match node.type:
            case "expression_statement":
                return self._expression_statement(node, line)
            case "declaration":
                return self._declaration(node, line)
            case "compound_statement":
                return (Scope(self.block(node, d), line=line),)
            case "if_statement":
                return (self._if(node, line, d),)
            case "for_statement":
                return (self._for(node, line, d),)
            case "while_statement" | "do_statement":
                condition = node.child_by_field_name("condition")
                if _declares(condition):
                    return (self._verbatim(node, line),)
                body = self.block(node.child_by_field_name("body"), d)
                loop = While(self.expr(condition), body, after=node.type == "do_statement", line=line)
                return (_once(loop),)
            case "return_statement":
                value = next((c for c in node.named_children if c.type != "comment"), None)
                return (Return(None if value is None else self.expr(value), line=line),)
            case "break_statement":
                return (Jump("break", line=line),)
            case "continue_statement":
                return (Jump("continue", line=line),)
            case "attributed_statement":
                return self._attributed(node, d)
            case kind if kind in _NOTHING:
                return ()
            case "static_assert_declaration":
                return ()  # it has no effect on a kernel that compiles
            case _:
                return (self._verbatim(node, line),)

    def _verbatim(self, node: Node, line: int) -> Verbatim:
        return Verbatim(self.text(node), self.names(node), line=line)

    def _expression_statement(self, node: Node, line: int) -> tuple[Stmt, ...]:
        inside = [child for child in node.named_children if child.type != "comment"]
        if not inside:
            return ()
        if inside[0].type == "gnu_asm_expression":
            return (self._verbatim(node, line),)
        if inside[0].type == "comma_expression":
            return tuple(Evaluate(part, line=line) for part in self.commas(inside[0]))
        return (Evaluate(self.expr(inside[0]), line=line),)

    def _attributed(self, node: Node, d: int) -> tuple[Stmt, ...]:
        """`#pragma unroll` reached the grammar as [[unroll]]."""
        inner = node.named_children[-1]
        done = self.statement(inner, d)
        attribute = (node.named_children[0].text or b"").decode()
        count: int | None = None
        if "unroll" in attribute:
            inside = attribute.partition("(")[2].partition(")")[0].strip()
            value = read_number(inside) if inside else 0
            count = value if isinstance(value, int) else 0
        if len(done) == 1 and isinstance(done[0], For) and count is not None:
            return (replace(done[0], unroll=count),)
        return done

    def _if(self, node: Node, line: int, d: int) -> Stmt:
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        otherwise = node.child_by_field_name("alternative")
        if otherwise is not None and otherwise.type == "else_clause":
            inside = [child for child in otherwise.named_children if child.type != "comment"]
            otherwise = inside[-1] if inside else None
        return If(
            self.expr(condition),
            self.block(node.child_by_field_name("consequence"), d),
            self.block(otherwise, d),
            constexpr=any(child.type == "constexpr" for child in node.children),
            line=line,
        )

    def _for(self, node: Node, line: int, d: int) -> Stmt:
        head = node.child_by_field_name("initializer")
        condition = node.child_by_field_name("condition")
        if _declares(condition):
            return self._verbatim(node, line)
        init: list[Declare | Evaluate] = []
        if head is not None and head.type == "declaration":
            for part in self._declaration(head, line):
                if not isinstance(part, Declare):
                    return self._verbatim(node, line)
                init.append(part)
        elif head is not None:
            init += [Evaluate(part, line=line) for part in self.commas(head)]
        return For(
            tuple(init),
            None if condition is None else self.expr(condition),
            tuple(self.commas(node.child_by_field_name("update"))),
            self.block(node.child_by_field_name("body"), d),
            line=line,
        )

    # -- declarations -------------------------------------------------------------------------------

    def _declaration(self, node: Node, line: int) -> tuple[Stmt, ...]:
        try:
            specifiers = self.specifiers(node)
            declarators = node.children_by_field_name("declarator")
            if not declarators or specifiers.words & {"mutable", "thread_local", "inline"}:
                return (self._verbatim(node, line),)
            return tuple([self._declared(specifiers, part, line) for part in declarators])
        except TooDeep:
            raise
        except Unreadable:
            return (self._verbatim(node, line),)  # kept as text: only what names it is not understood

    def _declared(self, specifiers: Specifiers, node: Node, line: int) -> Declare:
        value = None
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
            inner = node.child_by_field_name("declarator")
        else:
            inner = node
        found = self.declarator(inner, specifiers.type)
        init: Expr | None = None
        if found.arguments is not None:
            init = self._constructed(found)
        elif value is not None and value.type == "argument_list":
            args = tuple(self.expr(a) for a in value.named_children if a.type != "comment")
            init = _construction(found, args)
        elif value is not None:
            init = self.expr(value)
        storage = _storage(specifiers, found.type, self.language)
        if storage == "shared" and not found.type.is_pointer:
            found = replace(found, type=replace(found.type, space=""))
        dims: tuple[Expr, ...] = ()
        if storage != "dynamic shared":
            if None in found.dims and not isinstance(init, Braces):
                raise Unreadable("an array without a size", line)
            dims = tuple(self.expr(dim) if dim is not None else _count(init) for dim in found.dims)
        self.variables.add(found.name)
        if found.type.is_pointer or found.dims:
            self.pointers.add(found.name)
        align = None if specifiers.align is None else self.expr(specifiers.align)
        return Declare(found.type, found.name, init, dims, storage, align, line=line)

    def _constructed(self, found: Declarator) -> Expr:
        """`float4 v(a, b);`, which the grammar takes for the declaration of a function."""
        items: list[Expr] = []
        for parameter in found.arguments.named_children if found.arguments is not None else []:
            words = self.place.words(parameter.start_byte, parameter.end_byte)
            if len(words) != 1 or words[0].kind != "word" or self.is_type(words[0].text):
                raise Unreadable("a function is declared inside a function", self.line(parameter))
            items.append(Name(words[0].text))
        if not items:
            raise Unreadable("a function is declared inside a function")
        return _construction(found, tuple(items))


def _construction(found: Declarator, args: tuple[Expr, ...]) -> Expr:
    type_ = plain_value(found.type)
    return Cast(type_, args[0]) if len(args) == 1 else Braces(args, type_)


def _once(loop: While) -> Stmt:
    """`do { ... } while (0)` of a macro is only a scope."""
    never = isinstance(loop.condition, Number) and loop.condition.value == 0
    if (
        loop.after
        and never
        and not any(isinstance(part, Jump | Verbatim) for part in statements_in(loop.body))
    ):
        return Scope(loop.body, line=loop.line)
    return loop


def _count(init: Expr | None) -> Expr:
    return integer(len(init.items) if isinstance(init, Braces) else 0)


def _declares(condition: Node | None) -> bool:
    """`if (int x = f(); x > 0)`: a declaration where a plain condition is expected."""
    if condition is None:
        return False
    return any(child.type in ("declaration", "init_statement") for child in condition.named_children)


def _storage(specifiers: Specifiers, type_: Type, language: str) -> Storage:
    words = specifiers.words
    if "__shared__" in words:
        return "dynamic shared" if "extern" in words else "shared"
    if language == "opencl" and type_.space == "local" and not type_.is_pointer:
        return "shared"
    if "constexpr" in words:
        return "constexpr"
    return "static" if "static" in words else ""
