"""Pieces of C as trees, read from text with holes: for code that is made, not read.

    code("for (int i = 0; i < n; i++) body;", i="k", n=count, body=stmts)

Every word of the text that is given as a hole stands for something else: a name (also of a function, or of
what is declared), an expression, or, as a statement of its own, statements. `T` and `U` are types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import TypeAlias

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.preprocess import NOTHING
from tunesmith.source.reader.parse import read_source_tree

Hole: TypeAlias = str | c.Expr | c.Type | Sequence[c.Stmt]
_FILE = "typedef int T;\ntypedef int U;\n__device__ void snippet()\n{{\n{}\n}}\n"


def parse_snippet(text: str, **holes: Hole) -> tuple[c.Stmt, ...]:
    names = {word: part for word, part in holes.items() if isinstance(part, str)}

    def statement(stmt: c.Stmt) -> c.Stmt | Sequence[c.Stmt]:
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Name):
            part = holes.get(stmt.expr.name)
            if part is not None and not isinstance(part, str | c.Expr | c.Type):
                return part
        comments = tuple(replace(said, line=0) for said in stmt.comments)
        return walk.map_declared(replace(stmt, line=0, comments=comments), declared)

    def declared(declare: c.Declare) -> c.Declare:
        return replace(declare, name=names.get(declare.name, declare.name), line=0)

    def node(part: c.Expr) -> c.Expr:
        match part:
            case c.Name(name=name):
                hole = holes.get(name)
                return c.Name(hole) if isinstance(hole, str) else hole if isinstance(hole, c.Expr) else part
            case c.Call(function=function) if function in names:
                return replace(part, function=names[function])
        return part

    typed = (
        walk.map_types(_read_snippet(text), lambda type_: _fill_type_hole(type_, holes))
        if holes
        else _read_snippet(text)
    )
    return walk.map_statements(typed, lambda expr: walk.map_expr(expr, node), statement)


def parse_snippet_expr(text: str, **holes: Hole) -> c.Expr:
    (stmt,) = parse_snippet(f"return ({text});", **holes)
    assert isinstance(stmt, c.Return) and stmt.value is not None
    return stmt.value


def chain_operator(op: str, *parts: c.Expr) -> c.Expr:
    """One behind the other, joined by an operator from the left."""
    return reduce(lambda left, right: c.Binary(op, left, right), parts)


@dataclass(frozen=True)
class Wording:
    """Snippets with the same words for the same things all over."""

    words: Mapping[str, Hole]

    def code(self, text: str, **holes: Hole) -> tuple[c.Stmt, ...]:
        return parse_snippet(text, **{**self.words, **holes})

    def expr(self, text: str, **holes: Hole) -> c.Expr:
        return parse_snippet_expr(text, **{**self.words, **holes})

    def define(self, word: str, value: str, said: str = "") -> c.MacroDefinition:
        """A macro for what a snippet comes to."""
        comments = (c.Comment(said, behind=True),) if said else ()
        return c.MacroDefinition(str(self.words[word]), self.expr(value), comments=comments)

    def when(
        self, condition: str, then: Sequence[c.Stmt], otherwise: Sequence[c.Stmt] = (), said: str = ""
    ) -> tuple[c.Stmt, ...]:
        """Statements where a condition on parameters holds; without a condition always."""
        if not condition:
            return tuple(then)
        comments = (c.Comment(said, behind=True),) if said else ()
        return (c.Alternative(self.expr(condition), tuple(then), tuple(otherwise), comments=comments),)


def _fill_type_hole(type_: c.Type, holes: Mapping[str, Hole]) -> c.Type:
    hole = holes.get(type_.base)
    filled = c.Type(hole) if isinstance(hole, str) else hole
    if not isinstance(filled, c.Type):
        return type_
    return replace(filled, pointers=filled.pointers + type_.pointers, const=filled.const or type_.const)


@cache
def _read_snippet(text: str) -> tuple[c.Stmt, ...]:
    source = read_source_tree(_FILE.format(text), "cuda", predefined=NOTHING)  # conditions stay as they are
    body = source.functions[0].body if len(source.functions) == 1 and not source.unread else ()
    if not body or any(_is_unread(node) for node in walk.nodes_in(body)):
        raise ValueError(f"not understood as statements: {text}")
    return body


def _is_unread(node: c.Expr | c.Stmt) -> bool:
    is_method = isinstance(node, c.Call) and node.of is not None
    return is_method or isinstance(node, c.Opaque | c.Verbatim)
