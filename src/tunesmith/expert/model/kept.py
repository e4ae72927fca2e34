"""Shared memory in the body of a loop over elements: known single values, or a value kept for every element.

What one loop leaves for a later one over the same range becomes a `Kept` array. In the bodies its accesses
have one of two forms, with the loop's own index, whatever the place in shared memory was:

    Index(Name(kept), Name(index))                         one value for an element (`width` 1)
    Index(Index(Name(kept), Name(index)), Number(k))       `width` of them, 0 <= k < width

`Kept.type` is the type moved at once: `((float4 *)row)[2 * i + 1]` is `row[i][1]` of a float4 array of width
2. Any other use of shared memory in a loop over elements is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tunesmith.csource.nodes import Expr, Index, Name, Stmt, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import assigned_in, map_expr, map_statements, names_in
from tunesmith.expert.model.affine import coefficient_of, number, same_value
from tunesmith.expert.model.kernel import Kept
from tunesmith.expert.model.loops import Head
from tunesmith.expert.model.places import Place, place_of
from tunesmith.expert.model.team_memory import Threads, blame, one_value
from tunesmith.expert.model.team_values import Int, expr_of

if TYPE_CHECKING:
    from tunesmith.expert.model.team_names import Named

Span = tuple[Expr, Expr, int]  # start, stop and unit of a loop


@dataclass(frozen=True)
class KeptArray:
    """`bounds`: first and last place of every team, in the shared array's own elements."""

    kept: Kept
    array: str
    bounds: tuple[tuple[int, int], ...]
    span: Span


@dataclass
class KeptArrays:
    """By array, type and first places."""

    found: dict[tuple[str, str, tuple[int, ...]], KeptArray] = field(default_factory=dict)

    def covers(self, array: str, place: int) -> bool:
        return any(
            kept.array == array and any(low <= place < high for low, high in kept.bounds)
            for kept in self.found.values()
        )


class SharedPlaces:
    def __init__(
        self,
        team: Named,
        head: Head,
        own: frozenset[str],
        active: Threads,
        index: str,
        span: Span,
        stored: frozenset[str],
    ) -> None:
        self._team = team
        self._head = head
        self._own = own
        self._active = active
        self._index = index
        self._span = span
        self._stored = stored
        self._changed: frozenset[str] = frozenset()
        # Known values stand in the body under names that no source can have, until all are put in at once.
        self.known: dict[str, Expr] = {}

    def in_body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        self._changed = assigned_in(body)
        return map_statements(body, lambda expr: map_expr(expr, self._node))

    def _node(self, node: Expr) -> Expr:
        team = self._team
        if isinstance(node, Name) and node.name in team.shared and not team.shared[node.name].is_array:
            if node.name in self._changed:
                raise team.beyond(f"the shared variable '{node.name}' is changed in a loop over elements")
            return self._single(node)
        if not isinstance(node, Index):
            return node
        place = place_of(node)
        array = team.shared_name(node)
        if place is not None and place.array in team.shared:
            array = place.array
        if array is None:
            return node
        indices: list[Expr] = []
        inner: Expr = node
        while isinstance(inner, Index):
            indices.insert(0, inner.index)
            inner = inner.base
        if len(indices) < len(team.shared[array].dims):
            return node  # a row of a 2-D array: met again with its last index
        if not names_in(node) & self._own:
            if array in self._stored:
                raise team.beyond(f"shared memory '{array}' is written at one place by a loop over elements")
            return self._single(node)
        return self._element(node, array, indices, place)

    def _single(self, node: Expr) -> Expr:
        team = self._team
        held = team.eval(node, self._active)
        value = one_value(held, self._active)
        expr = None if value is None else expr_of(value)
        if expr is None:
            raise team.beyond(f"the loop reads '{print_expr(node)}': {blame(held, self._active)}")
        name = f"@{len(self.known)}"
        self.known[name] = expr
        return Name(name)

    def _element(self, node: Index, array: str, indices: Sequence[Expr], place: Place | None) -> Expr:
        team, index = self._team, self._head.index
        unit = coefficient_of(indices[-1], index)
        outer = any(names_in(i) & self._own for i in indices[:-1])
        beside = names_in(indices[-1]) & (self._own - {index})
        if unit is None or unit <= 0 or outer or beside:
            raise self._unfit(node)
        firsts = self._firsts(node, array, indices)
        own, moved = byte_size(team.shared[array].type.base), None
        type_ = team.shared[array].type
        if place is not None and place.as_type is not None:
            type_ = place.as_type
            moved = byte_size(type_.base)
        ratio = 1 if moved is None or own is None else moved // own
        if ratio == 0 or (moved is not None and own is None):
            raise self._unfit(node)
        offset = self._offset(place)
        width = unit * self._span[2]
        k = firsts[0] % width
        bases = tuple(first - k for first in firsts)
        if any(first % width != k for first in firsts):
            raise self._unfit(node)
        name = self._kept(array, Type(type_.base), offset, bases, width, ratio, node)
        result: Expr = Index(Name(name), Name(self._index))
        return result if width == 1 else Index(result, number(k))

    def _unfit(self, node: Expr) -> Exception:
        return self._team.beyond(
            f"shared memory is used as '{print_expr(node)}', not as a value for every element"
        )

    def _firsts(self, node: Expr, array: str, indices: Sequence[Expr]) -> list[int]:
        """The place with the loop's index at its unit's start, for every team."""
        team = self._team
        at_zero = [substitute(index, {self._head.index: number(0)}) for index in indices]
        numbers = team.flat_index(array, at_zero, self._active)
        firsts: dict[int, int] = {}
        for thread in self._active:
            value = numbers.at(thread)
            if not isinstance(value, Int) or firsts.setdefault(team.team(thread), value.value) != value.value:
                raise self._unfit(node)
        return list(firsts.values())

    def _offset(self, place: Place | None) -> int:
        if place is None or place.offset is None:
            return 0
        values = {self._team.eval(place.offset, self._active).at(thread) for thread in self._active}
        value = values.pop()
        if values or not isinstance(value, Int):
            raise self._team.beyond("shared memory is used at an offset that differs between threads")
        return value.value

    def _kept(
        self, array: str, type_: Type, offset: int, bases: tuple[int, ...], width: int, ratio: int, node: Expr
    ) -> str:
        team = self._team
        places = tuple(offset + base * ratio for base in bases)
        known = team.kept_arrays.found
        key = (array, type_.base, places)
        if key in known:
            found = known[key]
            same = same_value(found.span[0], self._span[0]) and same_value(found.span[1], self._span[1])
            if not same or found.span[2] != self._span[2] or found.kept.width != width:
                raise team.beyond(
                    f"shared memory '{array}' is filled by one range of elements and used by another"
                )
            return found.kept.name
        if array not in self._stored:
            raise team.beyond(
                f"shared memory is read as '{print_expr(node)}', which no loop over the same elements wrote"
            )
        ends = [team.eval(end, self._active).at(self._active[0]) for end in self._span[:2]]
        start, stop = (end.value if isinstance(end, Int) else 0 for end in ends)
        length = max(0, -(-(stop - start) // self._span[2])) * width * ratio
        bounds = tuple(
            (place + start * width * ratio, place + start * width * ratio + length) for place in places
        )
        for low, high in bounds:
            for other in known.values():
                if other.array == array and any(low < b and a < high for a, b in other.bounds):
                    raise team.beyond(f"shared memory '{array}' holds two things at the same place")
            if any(low <= cell < high for cell in team.cells[array]):
                raise team.beyond(f"shared memory '{array}' holds single values and a row's elements")
        name, count = array, 2
        while name in team.kept_names:
            name, count = f"{array}_{count}", count + 1
        known[key] = KeptArray(Kept(name, type_, width), array, bounds, self._span)
        return name
