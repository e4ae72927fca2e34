"""Shared memory declared as bytes, or as anything, but used as one type throughout: read as that type.

extern __shared__ char raw[];  float *row = (float *)raw;      ->  raw is an array of floats
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Declare, Expr, Index, Name, Stmt, Type
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import map_expr, map_statements, nodes_in
from tunesmith.expert.model.affine import from_terms, number, terms
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.places import place_of


def with_used_types(normal: Normal) -> Normal:
    found = {
        name: type_
        for name, declare in normal.shared.items()
        if len(declare.dims) <= 1 and (type_ := _used_as(normal.body, declare)) is not None
    }
    if not found:
        return normal
    sizes = {name: byte_size(normal.shared[name].type.base) or 1 for name in found}

    def retyped(node: Expr) -> Expr:
        if not isinstance(node, Index):
            return node
        place = place_of(node)
        if place is None or place.array not in found:
            return node
        moved = _in_units(place.offset, sizes[place.array], byte_size(found[place.array].base) or 1)
        index = place.index if moved is None or moved == number(0) else Binary("+", moved, place.index)
        return Index(Name(place.array), index)

    body = map_statements(normal.body, lambda expr: map_expr(expr, retyped))
    shared = {
        name: replace(declare, type=found[name], dims=(), storage="dynamic shared")
        if name in found
        else declare
        for name, declare in normal.shared.items()
    }
    return replace(normal, body=body, shared=shared)


def _used_as(body: Sequence[Stmt], declare: Declare) -> Type | None:
    """The one type that every access reads the array as; None where that is its own or there are several."""
    seen: dict[str, Type] = {}
    own = byte_size(declare.type.base)
    uses = accesses = 0
    for node in nodes_in(body):
        if node == Name(declare.name):
            uses += 1
        place = place_of(node) if isinstance(node, Index) else None
        if place is None or place.array != declare.name:
            continue
        accesses += 1
        if place.as_type is None or own is None:
            return None
        size = byte_size(place.as_type.base)
        if size is None or _in_units(place.offset, own, size) is None:
            return None
        seen[place.as_type.base] = Type(place.as_type.base)
    return next(iter(seen.values())) if len(seen) == 1 and uses == accesses else None


def _in_units(offset: Expr | None, own: int, size: int) -> Expr | None:
    """An offset in elements of the declared type, in units of the type used; None where that is not whole."""
    if offset is None:
        return number(0)
    found = {key: count * own for key, count in terms(offset).items()}
    if any(count % size for count in found.values()):
        return None
    return from_terms({key: count // size for key, count in found.items()})
