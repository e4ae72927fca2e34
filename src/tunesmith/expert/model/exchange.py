"""How the steps of a kernel touch its arrays: what is stored again, and what is handed over.

An element that a loop stores may be read or stored again by a later loop only where the same turn does it:
the same range, the same place. Anything else needs a barrier between the loops, and is refused. So is a loop
that writes what says how far it goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.expert.model.accesses import Touch, element_type, moved_by, same_place, touches
from tunesmith.expert.model.affine import (
    affine,
    exact,
    from_terms,
    head_of,
    number,
    same_value,
    simplified,
    terms,
)
from tunesmith.expert.model.kernel import (
    ArrayAccess,
    Each,
    Let,
    Once,
    OutOfReach,
    Step,
    When,
    all_steps,
    own_parts,
    parts_of,
)


def accesses(steps: Sequence[Step], arrays: Mapping[str, c.Type]) -> tuple[ArrayAccess, ...]:
    """Each way once, in the order of the steps."""
    found: dict[ArrayAccess, None] = {}
    for step in all_steps(steps):
        index = step.index if isinstance(step, Each) else ""
        body = step.body if isinstance(step, Each | Let | Once) else ()
        computed = _computed(body, index)
        for stmt in body:
            for touch in touches((stmt,), arrays):
                found[_access(touch, index, computed, arrays, stmt.line or step.line)] = None
    return tuple(found)


def _computed(body: Sequence[c.Stmt], index: str) -> set[str]:
    """Variables of a loop's body that may differ from turn to turn; not the indices of loops in it that count
    alike in every turn."""
    loops = [head for node in walk.nodes_in(body) if isinstance(node, c.For) and (head := head_of(node))]
    heads = {head.index for head in loops}
    found = set(walk.assigned_in(body)) - heads
    declared = [n for n in walk.nodes_in(body) if isinstance(n, c.Declare) and n.name not in heads]
    of = [(d.name, walk.names_in(d)) for d in declared]
    of += [(head.index, walk.names_in(head.start) | walk.names_in(head.step)) for head in loops]
    while True:
        more = {name for name, used in of if used & (found | {index})} - found
        if not more:
            return found
        found |= more


def _access(
    touch: Touch, index: str, computed: set[str], arrays: Mapping[str, c.Type], line: int
) -> ArrayAccess:
    """`computed`: what each turn computes for itself, so that nobody knows how far apart neighbours are."""
    place = touch.place
    own = arrays[place.array]
    type_ = element_type(place, own)
    kind: Literal["load", "store", "update", "atomic"] = "load"
    if touch.atomic:
        kind = "atomic"
    elif touch.writes:
        kind = "update" if touch.reads else "store"
    used = walk.names_in(place.index) | (walk.names_in(place.offset) if place.offset is not None else set())
    moved = moved_by(place, index, own) if index and not used & computed else None
    step, within = (None, ()) if moved is None else (moved.step, moved.within)
    return ArrayAccess(place.array, kind, type_, place.index, step, index, within, place.offset, line)


def marked_again(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], multiples: Mapping[str, int]
) -> tuple[Step, ...]:
    """Loops marked whose stores an earlier loop has made already, all of them.

    An earlier loop that stores every place from `low` to `high` in an array covers a later one that stays
    within; of the top level only, where both surely run. `multiples`: what the contract promises of
    parameters.
    """
    covered: list[_Range] = []
    done: list[Step] = []
    for step in steps:
        if isinstance(step, Each):
            stores = [t for t in touches(step.body, arrays) if t.writes]
            read = {t.place.array for t in touches(step.body, arrays) if t.reads}
            plain = not step.totals and all(not t.atomic and t.place.array not in read for t in stores)
            ranges = [_range(t, step, arrays) for t in stores]
            inside = [r is not None and any(_holds(one, r, multiples) for one in covered) for r in ranges]
            if stores and plain and all(inside):
                step = replace(step, again=True)
            unconditional = {id(t.node) for stmt in step.body for t in touches((stmt,), arrays)
                             if not isinstance(stmt, c.If | c.For | c.While)}  # fmt: skip
            covered += [r for t, r in zip(stores, ranges, strict=True) if r and id(t.node) in unconditional]
        done.append(step)
    return tuple(done)


_Range = tuple[str, c.Expr, c.Expr, c.Expr]  # array, base, first, last + 1


def _range(touch: Touch, step: Each, arrays: Mapping[str, c.Type]) -> _Range | None:
    """The places a store covers, from the loop's first to its last turn, in the array's own elements."""
    place = touch.place
    own = byte_size(arrays[place.array].base)
    wide = byte_size(place.as_type.base) if place.as_type is not None else own
    if own is None or wide is None or wide % own:
        return None
    ratio = number(wide // own)
    whole: c.Expr = c.Binary("*", place.index, ratio)
    if place.offset is not None:
        whole = c.Binary("+", whole, place.offset)
    found = affine(simplified(whole), step.index)
    if found is None or found[0] != ratio:
        return None
    base = found[1]
    first = simplified(c.Binary("*", step.start, ratio))
    return place.array, simplified(base), first, c.Binary("*", step.stop, ratio)


def _holds(outer: _Range, inner: _Range, multiples: Mapping[str, int]) -> bool:
    """Whether the earlier range holds the later one: same array, same base, same end, and starts at 0."""
    array, base, first, end = outer
    if array != inner[0]:
        return False
    apart = exact(c.Binary("-", end, inner[3]), multiples)
    same = same_value(base, inner[1]) and apart == first == number(0)
    return same or _ends_alike(outer, inner, multiples)


def _ends_alike(outer: _Range, inner: _Range, multiples: Mapping[str, int]) -> bool:
    """Whether both end at the same place, and the later starts `n - n % m` behind the earlier."""
    (_, base, first, end), (_, other, start, stop) = outer, inner
    ends = c.Binary("-", c.Binary("+", base, end), c.Binary("+", other, stop))
    if exact(ends, multiples) != number(0):
        return False
    behind = terms(c.Binary("-", c.Binary("+", other, start), c.Binary("+", base, first)))
    rest = [key[0] for key, count in behind.items() if count == -1 and len(key) == 1]
    if len(behind) != 2 or len(rest) != 1 or not isinstance(rest[0], c.Binary) or rest[0].op != "%":
        return False
    return same_value(from_terms(behind), c.Binary("-", rest[0].left, rest[0]))


@dataclass(frozen=True)
class _Seen:
    touch: Touch
    step: Step


def check_exchange(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], aliases: Mapping[str, str], has_barriers: bool
) -> None:
    seen: dict[str, list[_Seen]] = {}
    for step in all_steps(steps):
        if isinstance(step, Each):
            _check_head(step, arrays, aliases)
        # What is in a branch is met on its own.
        parts = own_parts(step) if isinstance(step, When) else parts_of(step)
        found = [touch for part in parts for touch in touches(part, arrays)]
        now = [(aliases.get(t.place.array, t.place.array), _Seen(t, step)) for t in found]
        for array, later in now:
            for earlier in seen.get(array, []):
                _check(earlier, later, array, has_barriers)
        for array, later in now:
            seen.setdefault(array, []).append(later)


def _check_head(loop: Each, arrays: Mapping[str, c.Type], aliases: Mapping[str, str]) -> None:
    """What says where a loop starts and ends may not change while it runs."""
    written = {aliases.get(t.place.array, t.place.array) for t in touches(loop.body, arrays) if t.writes}
    for part in (loop.start, loop.stop, *(total.start for total in loop.totals)):
        for touch in touches(part, arrays):
            if aliases.get(touch.place.array, touch.place.array) in written:
                raise OutOfReach.at(
                    loop.line,
                    f"the loop writes '{touch.place.array}', and "
                    f"'{print_expr(touch.node)}' says how far it goes",
                )


def _check(earlier: _Seen, later: _Seen, array: str, has_barriers: bool) -> None:
    if not (earlier.touch.writes or later.touch.writes) or (earlier.touch.atomic and later.touch.atomic):
        return
    a, b = earlier.step, later.step
    same_thread = _same_thread(earlier, later)
    if same_thread and isinstance(a, Each) and isinstance(b, Each) and same_value(a.stop, b.stop):
        return  # the same turn
    both_store = earlier.touch.writes and later.touch.writes
    only_store = both_store and not (earlier.touch.reads or later.touch.reads)
    if only_store and not has_barriers and not same_thread:
        return  # the kernel itself leaves the order open
    raise OutOfReach.at(
        b.line,
        f"'{print_expr(later.touch.node)}' is touched here by other threads than in line "
        f"{a.line} ('{print_expr(earlier.touch.node)}'): '{array}' passes values between threads",
    )


def _same_thread(earlier: _Seen, later: _Seen) -> bool:
    """Whether the same thread of the original comes to an element in both: its order is no accident."""
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.start, b.start):
        return False
    one, names = earlier.touch.place, {a.index: c.Name(b.index)}
    offset = None if one.offset is None else substitute(one.offset, names)
    return same_place(replace(one, index=substitute(one.index, names), offset=offset), later.touch.place)
