"""Kernels of several loops over the whole grid: one of vectors and one of what is left, say.

Each is read by itself. What is computed before the loops belongs to each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Assign, Binary, Declare, Expr, For, Name, Stmt, Type
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import assigned_in, names_in
from tunesmith.expert.model.geometry import BLOCK, THREAD, Strided
from tunesmith.expert.model.loops import Head, head_of
from tunesmith.expert.model.normal import Normal


def loops_apart(normal: Normal, loops: Mapping[str, Strided]) -> tuple[Normal, ...]:
    """The kernel in parts of one loop; empty for any other kernel."""
    before = [stmt for stmt in normal.body if isinstance(stmt, Declare)]
    rest = normal.body[len(before) :]
    if len(rest) < 2 or normal.body[: len(before)] != tuple(before):
        return ()
    parts: list[Normal] = []
    for stmt in rest:
        head = head_of(stmt) if isinstance(stmt, For) else None
        if head is None or not isinstance(stmt, For) or head.index not in loops:
            return ()
        if loops[head.index].role not in ("grid", "task"):
            return ()
        parts.append(replace(normal, body=(*_needed(before, stmt), _from_zero(stmt, head, normal))))
    return () if assigned_in(rest) & {stmt.name for stmt in before} else tuple(parts)


def _needed(before: Sequence[Declare], stmt: Stmt) -> list[Declare]:
    used, found = names_in(stmt), list[Declare]()
    for declare in reversed(before):
        if declare.name in used:
            used |= names_in(declare)
            found.insert(0, declare)
    return found


def _from_zero(loop: For, head: Head, normal: Normal) -> For:
    """`i = first + thread; i < n` counts from `first`: the same turns with `i - first` from 0."""
    parts = _addends(head.start)
    own = [part for part in parts if names_in(part) & (set(normal.ids) | THREAD | BLOCK)]
    first = [part for part in parts if part not in own]
    if not own or not first or head.index in assigned_in(loop.body):
        return loop
    offset = _sum(first)
    body = substitute(loop.body, {head.index: Binary("+", Name(head.index), offset)})
    return replace(
        loop,
        init=(Declare(Type(head.type), head.index, _sum(own), line=loop.line),),
        condition=Binary("<", Name(head.index), Binary("-", head.stop, offset)),
        step=(Assign("+=", Name(head.index), head.step),),
        body=body,
    )


def _addends(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == "+":
        return [*_addends(expr.left), *_addends(expr.right)]
    return [expr]


def _sum(parts: Sequence[Expr]) -> Expr:
    total = parts[0]
    for part in parts[1:]:
        total = Binary("+", total, part)
    return total
