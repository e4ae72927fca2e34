"""Places that are counted in bytes, counted in elements: `(float *)((char *)x + row * nb1)`.

Every term of the bytes is a whole number of elements: by its own factor, or by an argument that the problem
file says is a multiple (`value = "4 * d"`). What is not is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.types import byte_size, declared_types
from tunesmith.expert.model.affine import from_terms, number, terms
from tunesmith.expert.model.translate import LaunchTerms
from tunesmith.space import grammar as size

_BYTES = frozenset({"char", "signed char", "unsigned char", "uchar", "uint8_t", "int8_t", "void"})
_NARROW = frozenset({*_BYTES, "short", "unsigned short", "int16_t", "uint16_t", "bool"})


def in_elements(function: c.Function, body: tuple[c.Stmt, ...], launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    types = {**declared_types(function), **{p.name: p.type for p in function.parameters}}
    changed = walk.assigned_in(body)

    def node(expr: c.Expr) -> c.Expr:
        match expr:
            case c.Cast(type=type_, value=c.Binary("+") as place) if type_.pointers == 1:
                return _counted(type_, place) or expr
        return expr

    def _counted(type_: c.Type, place: c.Expr) -> c.Expr | None:
        offsets: list[c.Expr] = []
        while isinstance(place, c.Binary) and place.op == "+":
            offsets.append(place.right)
            place = place.left
        unit = byte_size(type_.base)
        if not (isinstance(place, c.Cast) and place.type.pointers == 1 and place.type.base in _BYTES):
            return None
        pointer = place.value
        known = types.get(pointer.name) if isinstance(pointer, c.Name) else None
        if known is None or unit is None or (known.base, known.pointers) != (type_.base, 1):
            return None
        total: c.Expr = number(0)
        for offset in reversed(offsets):
            found = _in_units(offset, unit, launch.parameters, changed)
            if found is None:
                return None
            total = found if total == number(0) else c.Binary("+", total, found)
        return c.Binary("+", pointer, total)

    return walk.map_nodes(body, node)


def _in_units(
    offset: c.Expr, unit: int, known: Mapping[str, size.Node], changed: frozenset[str]
) -> c.Expr | None:
    if any(isinstance(part, c.Cast) and part.type.base in _NARROW for part in walk.nodes_in(offset)):
        return None
    done: dict[tuple[c.Expr, ...], int] = {}
    for key, count in terms(offset).items():
        if count < 0:
            return None
        if count % unit == 0:
            done[key] = done.get(key, 0) + count // unit
            continue
        at = next((i for i, factor in enumerate(key) if _is_multiple(factor, unit, known, changed)), None)
        if at is None:
            return None
        whole = (*key[:at], c.Binary("/", key[at], number(unit)), *key[at + 1 :])
        done[whole] = done.get(whole, 0) + count
    return from_terms(done)


def _is_multiple(factor: c.Expr, unit: int, known: Mapping[str, size.Node], changed: frozenset[str]) -> bool:
    if not isinstance(factor, c.Name) or factor.name in changed or factor.name not in known:
        return False
    return _divides(unit, known[factor.name])


def _divides(unit: int, tree: size.Node) -> bool:
    match tree:
        case size.Num(value=value):
            return value % unit == 0
        case size.Arithmetic("*", left, right):
            return _divides(unit, left) or _divides(unit, right)
        case size.Arithmetic("+" | "-", left, right):
            return _divides(unit, left) and _divides(unit, right)
    return False
