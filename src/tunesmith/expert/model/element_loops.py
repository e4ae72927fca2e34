"""The body of a loop over elements, made to stand on its own.

What the team knows by then replaces the names it reads; totals and what is merely set in every turn are told
apart. Shared memory becomes known values, or an array of one value for every element.

What one loop leaves for a later one over the same range becomes an `ElementArray`. In the bodies its accesses
have one of two forms, with the loop's own index, whatever the place in shared memory was:

    Index(Name(staged), Name(index))                         one value for an element (`width` 1)
    Index(Index(Name(staged), Name(index)), Number(k))       `width` of them, 0 <= k < width

`ElementArray.type` is the type moved at once: `((float4 *)row)[2 * i + 1]` is `row[i][1]` of float4s of
width 2. Any other use of shared memory in a loop over elements is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tunesmith.csource import walk
from tunesmith.csource.nodes import Assign, Binary, Declare, Expr, For, Index, Name, Stmt, Type, Verbatim
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size, is_integer, type_of
from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.accesses import ArrayPlace, clash, place_of
from tunesmith.expert.model.affine import Head, coefficient_of, number, same_value
from tunesmith.expert.model.kernel import ElementArray
from tunesmith.expert.model.team_expressions import Expressions
from tunesmith.expert.model.tidy import check_no_return, structured
from tunesmith.expert.model.totals import Update, carried, cooperates, is_set_first, update_in


@dataclass(frozen=True)
class Element:
    body: tuple[Stmt, ...]
    updates: Mapping[str, Update]
    stores: bool


def element_body(
    team: Expressions,
    loop: For,
    head: Head,
    active: tv.Threads,
    index: str,
    span: tuple[Expr, Expr, int],
    shared_by_team: bool,
) -> Element:
    """`index` is the name the loop's index will have; `span` its start, stop and unit in the source."""
    memory = team.memory
    memory.line = loop.line
    call = cooperates(loop.body)
    if call is not None:
        raise memory.refusal(f"{call.function} inside a loop over elements")
    check_no_return(loop.body)
    body = structured(loop.body)
    for node in walk.nodes_in(body):
        if isinstance(node, Verbatim):
            raise memory.refusal(f"'{node.text.strip().splitlines()[0][:60]}' is not understood")
    own = frozenset(walk.declared_in(body)) | {head.index}
    body, updates, locals_ = _carried(memory, body, own)
    places = SharedPlaces(team, head, own, active, index, span, walk.stored_in(body), walk.assigned_in(body))
    body = walk.map_nodes(body, places.node)
    body = _known(team, body, own | set(updates) | locals_ | {index}, places.known, active)
    trouble = clash(body, head.index, memory.arrays, memory.aliases, shared_by_team)
    if trouble is not None:
        kind = "elements" if shared_by_team else "turns"
        raise memory.refusal(f"the {kind} of the loop over '{head.index}' depend on each other: {trouble}")
    atomic = any("atomic" in call.function.lower() for call in walk.calls_in(body))
    return Element(body, updates, atomic or bool(walk.stored_in(body) & set(memory.arrays)))


def _carried(
    memory: tv.BlockMemory, body: tuple[Stmt, ...], own: frozenset[str]
) -> tuple[tuple[Stmt, ...], dict[str, Update], frozenset[str]]:
    updates: dict[str, Update] = {}
    locals_: list[Declare] = []
    for name in sorted(carried(body, own)):
        if name in memory.shared:
            continue
        if f"{name}[]" in memory.variables:
            raise memory.refusal(f"the array '{name}' is carried from one element to the next")
        if name not in memory.types:
            raise memory.refusal(f"'{name}' is changed in a loop over elements")
        update = update_in(body, name)
        if update is not None:
            _check_exact(memory, body, name)
            updates[name] = update
        elif is_set_first(body, name):
            locals_.append(Declare(Type(memory.types[name].base), name, line=memory.line))
            lost = tv.Poison(f"'{name}' is what the last element left, whichever that is", memory.line)
            memory.variables[name] = tv.Vec(lost)
        else:
            raise memory.refusal(
                f"'{name}' is carried from one element to the next in a way that is no sum, product, "
                f"maximum or minimum{_of_running_mean(body)}"
            )
    return (*locals_, *body), updates, frozenset(declare.name for declare in locals_)


def _of_running_mean(body: Sequence[Stmt]) -> str:
    """Words about a mean that counts as it goes, `mean += (x - mean) / count`: Welford's."""
    changed = walk.assigned_in(body)
    for node in walk.nodes_in(body):
        if isinstance(node, Assign) and node.op == "+=" and isinstance(node.target, Name):
            quotients = [n for n in walk.nodes_in(node.value) if isinstance(n, Binary) and n.op == "/"]
            if any(walk.names_in(n.right) & changed for n in quotients):
                return (
                    ": a running mean (Welford's), whose parts are joined by how many elements they are of. "
                    "With a sum and a second loop for the squares it would be read"
                )
    return ""


def _check_exact(memory: tv.BlockMemory, body: Sequence[Stmt], name: str) -> None:
    """An integer that floats are added to is cut off in every turn: their order would matter."""
    if not is_integer(memory.types[name]):
        return
    own = {n.name: n.type for n in walk.nodes_in(body) if isinstance(n, Declare)}
    for node in walk.nodes_in(body):
        if isinstance(node, Assign) and node.target == Name(name):
            found = type_of(node.value, {**memory.types, **own}, memory.functions)
            if found is None or not is_integer(found):
                raise memory.refusal(f"'{name}', an integer, adds up what are no integers: the order matters")


def _known(
    team: Expressions,
    body: tuple[Stmt, ...],
    own: frozenset[str],
    shared: Mapping[str, Expr],
    active: tv.Threads,
) -> tuple[Stmt, ...]:
    """Names from before the loop replaced by what the team knows them to be."""
    memory = team.memory
    values: dict[str, Expr] = dict(shared)
    changed = walk.assigned_in(body)
    for name in sorted(walk.names_in(body) - own - set(shared)):
        if name in memory.arrays or name in memory.staged_names:
            continue
        if f"{name}[]" in memory.variables:
            raise memory.refusal(f"the array '{name}' is filled before the loop that reads it")
        if name in memory.shared:
            raise memory.refusal(f"shared memory '{name}' is used in a way that is not followed")
        expr = _held(team, Name(name), active)
        if name in changed:
            raise memory.refusal(f"'{name}' is changed in a loop over elements")
        if expr != Name(name):
            values[name] = expr
    return substitute(body, values) if values else body


def _held(team: Expressions, node: Expr, active: tv.Threads) -> Expr:
    """What the whole team knows it to be before the loop."""
    expr = tv.expr_of(team.shared(node, active))
    if expr is None:
        why = tv.blame(team.eval(node, active), active)
        raise team.memory.refusal(f"the loop reads '{print_expr(node)}': {why}")
    return expr


@dataclass
class SharedPlaces:
    _team: Expressions
    _head: Head
    _own: frozenset[str]
    _active: tv.Threads
    _index: str
    _span: tv.Span
    _stored: frozenset[str]
    _changed: frozenset[str]
    # Known values stand in the body under names that no source can have, until all are put in at once.
    known: dict[str, Expr] = field(default_factory=dict)

    @property
    def _memory(self) -> tv.BlockMemory:
        return self._team.memory

    def node(self, node: Expr) -> Expr:
        memory = self._memory
        if isinstance(node, Name) and node.name in memory.shared and not memory.shared[node.name].is_array:
            if node.name in self._changed:
                raise memory.refusal(f"the shared variable '{node.name}' is changed in a loop over elements")
            return self._single(node)
        if not isinstance(node, Index):
            return node
        place = place_of(node)
        array = memory.shared_name(node)
        if place is not None and place.array in memory.shared:
            array = place.array
        if array is None:
            return node
        _, indices = tv.array_and_indices(node)
        if len(indices) < len(memory.shared[array].dims):
            return node  # a row of a 2-D array: met again with its last index
        if not walk.names_in(node) & self._own:
            if array in self._stored:
                raise memory.refusal(
                    f"shared memory '{array}' is written at one place by a loop over elements"
                )
            return self._single(node)
        return self._element(node, array, indices, place)

    def _single(self, node: Expr) -> Expr:
        name = f"@{len(self.known)}"
        self.known[name] = _held(self._team, node, self._active)
        return Name(name)

    def _element(self, node: Index, array: str, indices: Sequence[Expr], place: ArrayPlace | None) -> Expr:
        memory, index = self._memory, self._head.index
        unit = coefficient_of(indices[-1], index)
        outer = any(walk.names_in(i) & self._own for i in indices[:-1])
        beside = walk.names_in(indices[-1]) & (self._own - {index})
        moves = self._moved_by(place)
        if unit is None or unit + moves <= 0 or min(unit, moves) < 0 or outer or beside:
            raise self._unfit(node)
        firsts = self._firsts(node, array, indices)
        own, moved = byte_size(memory.shared[array].type.base), None
        type_ = memory.shared[array].type
        if place is not None and place.as_type is not None:
            type_ = place.as_type
            moved = byte_size(type_.base)
        ratio = 1 if moved is None or own is None else moved // own
        if ratio == 0 or (moved is not None and own is None) or moves * self._span[2] % ratio:
            raise self._unfit(node)
        offset = self._offset(place)
        width = unit * self._span[2] + moves * self._span[2] // ratio
        k = firsts[0] % width
        bases = tuple(first - k for first in firsts)
        if any(first % width != k for first in firsts):
            raise self._unfit(node)
        name = self._staged(array, Type(type_.base), offset, bases, width, ratio, node)
        result: Expr = Index(Name(name), Name(self._index))
        return result if width == 1 else Index(result, number(k))

    def _moved_by(self, place: ArrayPlace | None) -> int:
        """How many of the array's own elements the place moves on with the loop's index, by its offset;
        below zero where that is not known."""
        if place is None or place.offset is None or not walk.names_in(place.offset) & self._own:
            return 0
        found = coefficient_of(place.offset, self._head.index)
        beside = walk.names_in(place.offset) & (self._own - {self._head.index})
        return -1 if found is None or beside else found

    def _unfit(self, node: Expr) -> Exception:
        return self._memory.refusal(
            f"shared memory is used as '{print_expr(node)}', not as a value for every element"
        )

    def _firsts(self, node: Expr, array: str, indices: Sequence[Expr]) -> list[int]:
        """The place with the loop's index at its unit's start, for every team."""
        memory = self._memory
        at_zero = [substitute(index, {self._head.index: number(0)}) for index in indices]
        numbers = self._team.flat_index(array, at_zero, self._active)
        firsts: dict[int, int] = {}
        for thread in self._active:
            value = numbers.at(thread)
            if (
                not isinstance(value, tv.Int)
                or firsts.setdefault(memory.team(thread), value.value) != value.value
            ):
                raise self._unfit(node)
        return list(firsts.values())

    def _offset(self, place: ArrayPlace | None) -> int:
        if place is None or place.offset is None:
            return 0
        offset = substitute(place.offset, {self._head.index: number(0)})
        found = self._team.eval(offset, self._active)
        values = set(found.values(self._active))
        value = values.pop()
        if values or not isinstance(value, tv.Int):
            raise self._memory.refusal("shared memory is used at an offset that differs between threads")
        return value.value

    def _staged(
        self, array: str, type_: Type, offset: int, bases: tuple[int, ...], width: int, ratio: int, node: Expr
    ) -> str:
        memory = self._memory
        places = tuple(offset + base * ratio for base in bases)
        known = memory.staged
        key = (array, type_.base, places)
        if key in known:
            found = known[key]
            same = same_value(found.span[0], self._span[0]) and same_value(found.span[1], self._span[1])
            if not same or found.span[2] != self._span[2] or found.staged.width != width:
                raise memory.refusal(
                    f"shared memory '{array}' is filled by one range of elements and used by another"
                )
            return found.staged.name
        if array not in self._stored:
            raise memory.refusal(
                f"shared memory is read as '{print_expr(node)}', which no loop over the same elements wrote"
            )
        ends = [self._team.eval(end, self._active).at(self._active[0]) for end in self._span[:2]]
        start, stop = (end.value if isinstance(end, tv.Int) else 0 for end in ends)
        length = max(0, -(-(stop - start) // self._span[2])) * width * ratio
        bounds = tuple(
            (place + start * width * ratio, place + start * width * ratio + length) for place in places
        )
        for low, high in bounds:
            for other in known.values():
                if other.array == array and any(low < b and a < high for a, b in other.bounds):
                    raise memory.refusal(f"shared memory '{array}' holds two things at the same place")
            if any(low <= cell < high for cell in memory.cells[array]):
                raise memory.refusal(f"shared memory '{array}' holds single values and a row's elements")
        name = walk.fresh_name(array, set(memory.staged_names))
        known[key] = tv.StagedArray(ElementArray(name, type_, width), array, bounds, self._span)
        return name
