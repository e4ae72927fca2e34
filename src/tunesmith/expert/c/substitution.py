"""Names replaced by expressions in a part of the tree, with respect for scopes.

A declaration hides an outer variable of its name; a declaration that would capture a name of a replacement
is itself renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import overload

from tunesmith.expert.c.nodes import (
    Call,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Name,
    Opaque,
    Return,
    Scope,
    Stmt,
    Verbatim,
    While,
)
from tunesmith.expert.c.printing import print_expr
from tunesmith.expert.c.unreadable import MAX_DEPTH, TooDeep
from tunesmith.expert.c.walk import calls_in, declared_in, map_expr, map_simple, map_statements, names_in

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[xyz]\b)?")


@overload
def substitute(part: Expr, values: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(part: Iterable[Stmt], values: Mapping[str, Expr]) -> tuple[Stmt, ...]: ...
def substitute(part: Expr | Iterable[Stmt], values: Mapping[str, Expr]) -> Expr | tuple[Stmt, ...]:
    """Every free use of a name in `values` replaced by its expression."""
    if isinstance(part, Expr):
        return _in_expr(part, values)
    stmts = tuple(part)
    used = names_in(stmts)
    # Only what is used: a file may have thousands of constants, and this is done statement by statement.
    wanted = {name: values[name] for name in (used | _template_words(stmts)) if name in values}
    if not wanted:
        return stmts
    taken = set(declared_in(stmts)) | used | set(wanted)
    for value in wanted.values():
        taken |= names_in(value)
    return _Scopes(taken).block(stmts, wanted, 0)


def _template_words(stmts: tuple[Stmt, ...]) -> set[str]:
    return {word for call in calls_in(stmts) for text in call.template_args for word in _WORD.findall(text)}


def rename(stmts: Iterable[Stmt], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Variables renamed where they are declared and wherever they are used, whatever the scope."""
    values: dict[str, Expr] = {old: Name(new) for old, new in names.items()}

    def simple(part: Declare | Evaluate) -> Declare | Evaluate:
        return replace(part, name=names.get(part.name, part.name)) if isinstance(part, Declare) else part

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case Declare():
                return simple(stmt)
            case For():
                return replace(stmt, init=tuple([simple(part) for part in stmt.init]))
            case Verbatim(text=text, names=used) if any(name in values for name in used):
                return replace(stmt, text=replace_words(text, values), names=_names_after(used, values))
            case _:
                return stmt

    return map_statements(stmts, lambda expr: _in_expr(expr, values), statement)


def replace_words(text: str, values: Mapping[str, Expr]) -> str:
    """Text that was not understood, with names replaced word by word; members of a struct are left."""

    def word(match: re.Match[str]) -> str:
        if text[: match.start()].endswith("->"):
            return match.group()
        whole = match.group()
        plain, dot, rest = whole.partition(".")
        if whole in values:
            return _inserted(values[whole])
        return _inserted(values[plain]) + dot + rest if plain in values else whole

    return _WORD.sub(word, text)


def _inserted(value: Expr) -> str:
    return value.name if isinstance(value, Name) else f"({print_expr(value)})"


def _in_expr(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    if not values:
        return expr

    def leaf(node: Expr) -> Expr:
        match node:
            case Name(name=name):
                return values.get(name, node)
            case Call(function=function, args=args, template_args=texts) if texts:
                changed = tuple([_bare(replace_words(text, values)) for text in texts])
                return Call(function, args, changed)
            case Opaque(text=text, names=names) if any(name in values for name in names):
                return Opaque(replace_words(text, values), _names_after(names, values))
            case _:
                return node

    return map_expr(expr, leaf)


def _bare(text: str) -> str:
    """`(32)` as a template argument reads better as `32`."""
    return text[1:-1] if re.fullmatch(r"\(\w+\)", text) else text


def _names_after(names: frozenset[str], values: Mapping[str, Expr]) -> frozenset[str]:
    after: set[str] = set()
    for name in names:
        after |= names_in(values[name]) if name in values else {name}
    return frozenset(after)


class _Scopes:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def block(self, stmts: Iterable[Stmt], values: dict[str, Expr], depth: int) -> tuple[Stmt, ...]:
        """`values` is this block's own: a declaration changes it for what follows."""
        if depth > MAX_DEPTH:
            raise TooDeep
        return tuple([self._statement(stmt, values, depth + 1) for stmt in stmts])

    def _statement(self, stmt: Stmt, values: dict[str, Expr], depth: int) -> Stmt:
        match stmt:
            case Declare() | Evaluate():
                return self._simple(stmt, values)
            case If():
                return replace(
                    stmt,
                    condition=_in_expr(stmt.condition, values),
                    then=self.block(stmt.then, dict(values), depth),
                    otherwise=self.block(stmt.otherwise, dict(values), depth),
                )
            case For():
                inner = dict(values)
                init = tuple([self._simple(part, inner) for part in stmt.init])
                return replace(
                    stmt,
                    init=init,
                    condition=None if stmt.condition is None else _in_expr(stmt.condition, inner),
                    step=tuple([_in_expr(step, inner) for step in stmt.step]),
                    body=self.block(stmt.body, dict(inner), depth),
                )
            case While():
                body = self.block(stmt.body, dict(values), depth)
                return replace(stmt, condition=_in_expr(stmt.condition, values), body=body)
            case Return(value=value):
                return stmt if value is None else replace(stmt, value=_in_expr(value, values))
            case Scope():
                return replace(stmt, body=self.block(stmt.body, dict(values), depth))
            case Verbatim(text=text, names=names) if any(name in values for name in names):
                return replace(stmt, text=replace_words(text, values), names=_names_after(names, values))
            case _:
                return stmt

    def _simple(self, stmt: Declare | Evaluate, values: dict[str, Expr]) -> Declare | Evaluate:
        if isinstance(stmt, Declare):
            dims = tuple([_in_expr(dim, values) for dim in stmt.dims])
            values.pop(stmt.name, None)  # in scope from its own initialiser on
            if any(stmt.name in names_in(value) for value in values.values()):
                fresh = self._fresh(stmt.name)
                values[stmt.name] = Name(fresh)
                stmt = replace(stmt, name=fresh)
            init = None if stmt.init is None else _in_expr(stmt.init, values)
            return replace(stmt, init=init, dims=dims)
        return map_simple(stmt, lambda expr: _in_expr(expr, values))

    def _fresh(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"
