"""Pointers to a thread's own arrays, as the arrays: `float *p = b + 2; p[k]` is `b[2 + k]`.

Only of a pointer that always points to the same place. Another one is refused where its thread's work would
be shared out (`team_statements`): whoever looks for the array's name would miss what the pointer does to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.expert.model.affine import number, plus


@dataclass(frozen=True)
class _PointedAt:
    array: str
    at: c.Expr


def with_arrays_for_pointers(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`body` has unique names."""
    arrays = _own_arrays(body)
    if not arrays:
        return body
    changed = walk.assigned_in(body) - _counters(body)
    fixed = {
        stmt.name: stmt
        for stmt in walk.statements_in(body)
        if isinstance(stmt, c.Declare) and _is_pointer(stmt) and stmt.name not in changed
    }
    hidden = _hidden(body)
    found: dict[str, _PointedAt] = {}
    for name, declare in fixed.items():
        target = None if declare.init is None else _target(declare.init, declare.type, arrays, found)
        if target is not None and name not in hidden and not walk.names_in(target.at) & changed:
            found[name] = target
    if not found:
        return body
    pointed = {target.array for target in found.values()}
    return _without(walk.map_nodes(body, lambda node: _followed(node, found, pointed)), found)


def _own_arrays(body: tuple[c.Stmt, ...]) -> dict[str, c.Declare]:
    """Arrays of one dimension that each thread has for itself."""
    nodes = (node for node in walk.nodes_in(body) if isinstance(node, c.Declare))
    return {node.name: node for node in nodes if len(node.dims) == 1 and not node.storage}


def _is_pointer(stmt: c.Declare) -> bool:
    plain = not stmt.dims and not stmt.storage and not stmt.type.reference
    return plain and stmt.type.pointers == 1 and not stmt.type.volatile


def _counters(body: tuple[c.Stmt, ...]) -> set[str]:
    """Indices of loops that only their heads move: each turn has one value of them."""
    return {
        part.name
        for node in walk.nodes_in(body)
        if isinstance(node, c.For)
        for part in node.init
        if isinstance(part, c.Declare) and not part.type.is_pointer
        and part.name not in walk.assigned_in(node.body)
    }  # fmt: skip


def _hidden(body: tuple[c.Stmt, ...]) -> set[str]:
    """Names whose address is taken, or that stand in a text that is not understood."""
    found: set[str] = set()
    for node in walk.nodes_in(body):
        match node:
            case c.Unary(op="&", operand=c.Name(name=name)):
                found.add(name)
            case c.Opaque() | c.Verbatim():
                found |= set(node.names)
    return found


def _target(
    value: c.Expr, type_: c.Type, arrays: Mapping[str, c.Declare], known: Mapping[str, _PointedAt]
) -> _PointedAt | None:
    match value:
        case c.Name(name=name) if name in known:
            return known[name]
        case c.Name(name=name) if name in arrays:
            same = arrays[name].type.base == type_.base and not arrays[name].type.is_pointer
            return _PointedAt(name, number(0)) if same else None
        case c.Cast(type=to, value=inner) if (to.base, to.pointers) == (type_.base, 1):
            return _target(inner, type_, arrays, known)
        case c.Unary(op="&", operand=c.Index(base=base, index=index)):
            return _moved(_target(base, type_, arrays, known), index)
        case c.Binary(op="+", left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if (found := _target(one, type_, arrays, known)) is not None:
                    return _moved(found, other)
    return None


def _moved(target: _PointedAt | None, by: c.Expr) -> _PointedAt | None:
    return None if target is None else _PointedAt(target.array, plus(target.at, by))


def _followed(node: c.Expr, known: Mapping[str, _PointedAt], arrays: set[str]) -> c.Expr:
    """`map_nodes` comes to what is inside first, so that pointers are `b + at` by then."""
    match node:
        case c.Name(name=name) if name in known:
            array, at = c.Name(known[name].array), known[name].at
            return array if at == number(0) else c.Binary("+", array, at)
        case c.Index(base=c.Binary(op="+", left=c.Name(name=name), right=at), index=index) if name in arrays:
            return c.Index(c.Name(name), plus(at, index))
        case c.Unary(op="*", operand=c.Binary(op="+", left=c.Name(name=name), right=at)) if name in arrays:
            return c.Index(c.Name(name), at)
        case c.Unary(op="*", operand=c.Name(name=name)) if name in arrays:
            return c.Index(c.Name(name), number(0))
    return node


def _without(body: tuple[c.Stmt, ...], known: Mapping[str, _PointedAt]) -> tuple[c.Stmt, ...]:
    def block(stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        kept = (s for s in stmts if not (isinstance(s, c.Declare) and s.name in known))
        return tuple(walk.map_blocks(stmt, block) for stmt in kept)

    return block(body)
