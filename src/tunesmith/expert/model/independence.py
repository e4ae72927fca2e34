"""Whether the turns of a loop touch nothing of each other's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Number,
    Stmt,
    Type,
    Unary,
)
from tunesmith.csource.printing import print_expr
from tunesmith.csource.walk import declared_in, nodes_in
from tunesmith.expert.model.affine import affine, number, same_value, terms
from tunesmith.expert.model.places import Place, place_of


@dataclass(frozen=True)
class Touch:
    """One access to an array in a body. `node` is the canonical `Index`."""

    place: Place
    node: Index
    writes: bool
    reads: bool
    atomic: bool = False


def touches(body: Sequence[Stmt], arrays: Mapping[str, Type]) -> tuple[Touch, ...]:
    """Every access to these arrays, in the order of the text."""
    found: list[Touch] = []
    written: dict[int, bool] = {}  # id of the target -> whether it is read as well
    atomic: set[int] = set()
    for node in nodes_in(body):
        if isinstance(node, Assign):
            target = node.target
            while isinstance(target, Member):
                target = target.base
            written[id(target)] = node.op != "="
        elif isinstance(node, Unary) and node.op in ("++", "--"):
            written[id(node.operand)] = True
        elif isinstance(node, Call) and "atomic" in node.function.lower() and node.args:
            first = node.args[0]
            if isinstance(first, Unary) and first.op == "&":
                written[id(first.operand)] = True
                atomic.add(id(first.operand))
    for node in nodes_in(body):
        if isinstance(node, Index):
            place = place_of(node)
            if place is not None and place.array in arrays:
                key = id(node)
                found.append(
                    Touch(place, node, key in written, key not in written or written[key], key in atomic)
                )
    return tuple(found)


def clash(
    body: Sequence[Stmt],
    index: str,
    arrays: Mapping[str, Type],
    aliases: Mapping[str, str],
    parallel: bool,
) -> str | None:
    """Why turns may depend on each other, in words; None where they do not.

    `parallel`: the kernel runs the turns on different threads already. Then stores are taken to be apart, and
    only reading what another turn writes is looked for.
    """
    by_array: dict[str, list[Touch]] = {}
    for touch in touches(body, arrays):
        by_array.setdefault(aliases.get(touch.place.array, touch.place.array), []).append(touch)
    for array, found in by_array.items():
        stores = [touch for touch in found if touch.writes and not touch.atomic]
        if not stores:
            continue
        for touch in found:
            if touch.atomic:
                return f"'{array}' is written both plainly and by atomics"
            if any(_same_place(touch.place, store.place) for store in stores):
                continue
            if parallel and touch.writes:
                continue
            if not any(_apart(touch.place, store.place, index) for store in stores):
                here, there = print_expr(stores[0].node), print_expr(touch.node)
                return f"'{array}' is written at '{here}' and touched at '{there}'"
        if not parallel:
            inner = declared_in(body)
            for store in stores:
                reason = _repeats(store, index, inner)
                if reason is not None:
                    return reason
    return None


def _flat(place: Place) -> Expr:
    return place.index if place.offset is None else Binary("+", place.index, place.offset)


def _same_place(left: Place, right: Place) -> bool:
    if (left.as_type is None) != (right.as_type is None):
        return False
    if left.as_type is not None and right.as_type is not None and left.as_type.base != right.as_type.base:
        return False
    return same_value(left.index, right.index) and same_value(
        left.offset or number(0), right.offset or number(0)
    )


def _apart(left: Place, right: Place, index: str) -> bool:
    """Whether c * i + r and c * j + s never meet for i != j: their distance is no multiple of c."""
    a, b = affine(_flat(left), index), affine(_flat(right), index)
    if a is None or b is None or left.as_type != right.as_type or not same_value(a[0], b[0]):
        return False
    distance = terms(Binary("-", a[1], b[1]))
    coefficient = a[0]
    if not isinstance(coefficient, Number) or not isinstance(coefficient.value, int) or set(distance) - {()}:
        return False
    return coefficient.value != 0 and distance.get((), 0) % coefficient.value != 0


def _repeats(store: Touch, index: str, inner: Sequence[str]) -> str | None:
    """Why two turns may store to the same element."""
    found = affine(_flat(store.place), index)
    if found is None:
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    coefficient = found[0]
    if coefficient == number(0):
        return f"'{print_expr(store.node)}' is the same element in every turn"
    if any(name in inner for name in _names(found[1])):
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    return None


def _names(expr: Expr) -> frozenset[str]:
    return frozenset(node.name for node in nodes_in(expr) if isinstance(node, Name))
