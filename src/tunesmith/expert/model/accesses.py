"""How loops and steps touch arrays: what depends on each other, what is stored again or handed over.

Whether steps hand elements to each other through global memory, between different threads.

An element that a loop stores may be read or stored again by a later loop only where the same turn does it:
the same range, the same place. Anything else needs a barrier between the loops, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import declared_in, nodes_in
from tunesmith.expert.model.affine import affine, number, same_value, simplified, stride, terms
from tunesmith.expert.model.kernel import ArrayAccess, Each, Let, Once, OutOfReach, Step
from tunesmith.expert.model.places import ArrayPlace, place_of
from tunesmith.expert.model.step_tree import all_steps, parts_of


@dataclass(frozen=True)
class Touch:
    """One access to an array in a body. `node` is the canonical `Index`."""

    place: ArrayPlace
    node: c.Index
    writes: bool
    reads: bool
    atomic: bool = False


def touches(body: Sequence[c.Stmt], arrays: Mapping[str, c.Type]) -> tuple[Touch, ...]:
    """Every access to these arrays, in the order of the text."""
    found: list[Touch] = []
    written: dict[int, bool] = {}  # id of the target -> whether it is read as well
    atomic: set[int] = set()
    for node in nodes_in(body):
        if isinstance(node, c.Assign):
            target = node.target
            while isinstance(target, c.Member):
                target = target.base
            written[id(target)] = node.op != "="
        elif isinstance(node, c.Unary) and node.op in ("++", "--"):
            written[id(node.operand)] = True
        elif isinstance(node, c.Call) and "atomic" in node.function.lower() and node.args:
            first = node.args[0]
            if isinstance(first, c.Unary) and first.op == "&":
                written[id(first.operand)] = True
                atomic.add(id(first.operand))
    for node in nodes_in(body):
        if isinstance(node, c.Index):
            place = place_of(node)
            if place is not None and place.array in arrays:
                key = id(node)
                found.append(
                    Touch(place, node, key in written, key not in written or written[key], key in atomic)
                )
    return tuple(found)


def clash(
    body: Sequence[c.Stmt],
    index: str,
    arrays: Mapping[str, c.Type],
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


def _flat(place: ArrayPlace) -> c.Expr:
    return place.index if place.offset is None else c.Binary("+", place.index, place.offset)


def _same_place(left: ArrayPlace, right: ArrayPlace) -> bool:
    if (left.as_type.base if left.as_type else "") != (right.as_type.base if right.as_type else ""):
        return False
    offsets = left.offset or number(0), right.offset or number(0)
    return same_value(left.index, right.index) and same_value(*offsets)


def _apart(left: ArrayPlace, right: ArrayPlace, index: str) -> bool:
    """Whether c * i + r and c * j + s never meet for i != j: their distance is no multiple of c."""
    a, b = affine(_flat(left), index), affine(_flat(right), index)
    if a is None or b is None or left.as_type != right.as_type or not same_value(a[0], b[0]):
        return False
    distance = terms(c.Binary("-", a[1], b[1]))
    every = a[0].value if isinstance(a[0], c.Number) else None
    if not isinstance(every, int) or set(distance) - {()}:
        return False
    return every != 0 and distance.get((), 0) % every != 0


def _repeats(store: Touch, index: str, inner: Sequence[str]) -> str | None:
    """Why two turns may store to the same element."""
    found = affine(_flat(store.place), index)
    if found is None:
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    if found[0] == number(0):
        return f"'{print_expr(store.node)}' is the same element in every turn"
    if any(name in inner for name in _names(found[1])):
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    return None


def _names(expr: c.Expr) -> frozenset[str]:
    return frozenset(node.name for node in nodes_in(expr) if isinstance(node, c.Name))


# -- how the steps of a kernel touch its arrays, and which loops store what was stored before -------


def accesses(steps: Sequence[Step], arrays: Mapping[str, c.Type]) -> tuple[ArrayAccess, ...]:
    """Each way once, in the order of the steps."""
    found: dict[ArrayAccess, None] = {}
    for step in all_steps(steps):
        index = step.index if isinstance(step, Each) else ""
        for stmt in step.body if isinstance(step, Each | Let | Once) else ():
            for touch in touches((stmt,), arrays):
                found[_access(touch, index, arrays, stmt.line or step.line)] = None
    return tuple(found)


def _access(touch: Touch, index: str, arrays: Mapping[str, c.Type], line: int) -> ArrayAccess:
    place = touch.place
    own = arrays[place.array]
    type_ = place.as_type or c.Type(own.base, own.pointers - 1, own.const)
    kind: Literal["load", "store", "update", "atomic"] = "load"
    if touch.atomic:
        kind = "atomic"
    elif touch.writes:
        kind = "update" if touch.reads else "store"
    moved = stride(place.index, index) if index else None
    step = moved.step if moved is not None else None
    within = moved.within if moved is not None else ()
    if index and place.offset is not None and step is not None:
        by_offset = stride(place.offset, index)
        mine, theirs = byte_size(own.base), byte_size(type_.base)
        if by_offset is None or not mine or not theirs or by_offset.step * mine % theirs:
            step = None
        else:
            step += by_offset.step * mine // theirs
            within = (*within, *by_offset.within)
    return ArrayAccess(
        place.array, kind, type_, place.index, step, index, tuple(dict.fromkeys(within)), place.offset, line
    )


def marked_again(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], multiples: Mapping[str, int]
) -> tuple[Step, ...]:
    """Loops marked whose stores an earlier loop has made already, all of them.

    An earlier loop that stores every place from `low` to `high` in an array covers a later one that stays
    within; of the top level only, where both surely run. `multiples`: what the contract promises of
    parameters.
    """
    covered: list[tuple[str, c.Expr, c.Expr, c.Expr]] = []  # array, base, first, last + 1
    done: list[Step] = []
    for step in steps:
        if isinstance(step, Each):
            stores = [t for t in touches(step.body, arrays) if t.writes]
            read = {t.place.array for t in touches(step.body, arrays) if t.reads}
            plain = not step.totals and all(not t.atomic and t.place.array not in read for t in stores)
            ranges = [_range(t, step, arrays, multiples) for t in stores]
            inside = [r is not None and any(_holds(one, r) for one in covered) for r in ranges]
            if stores and plain and all(inside):
                step = replace(step, again=True)
            unconditional = {id(t.node) for stmt in step.body for t in touches((stmt,), arrays)
                             if not isinstance(stmt, c.If | c.For | c.While)}  # fmt: skip
            covered += [r for t, r in zip(stores, ranges, strict=True) if r and id(t.node) in unconditional]
        done.append(step)
    return tuple(done)


def _range(
    touch: Touch, step: Each, arrays: Mapping[str, c.Type], multiples: Mapping[str, int]
) -> tuple[str, c.Expr, c.Expr, c.Expr] | None:
    """The places a store covers, from the loop's first to its last turn, in the array's own elements."""
    place = touch.place
    own = byte_size(arrays[place.array].base)
    wide = byte_size(place.as_type.base) if place.as_type is not None else own
    found = affine(place.index, step.index)
    if own is None or wide is None or wide % own or found is None or found[0] != number(1):
        return None
    ratio = number(wide // own)
    base = c.Binary("*", found[1], ratio)
    if place.offset is not None:
        base = c.Binary("+", base, place.offset)
    first = simplified(c.Binary("*", step.start, ratio))
    last = c.Binary("*", step.stop, ratio)
    return place.array, simplified(base), first, _whole(last, multiples)


def _whole(expr: c.Expr, multiples: Mapping[str, int]) -> c.Expr:
    """`d / 8 * 8` is d where the contract says that 8 divides d."""
    match expr:
        case c.Binary(
            op="*",
            left=c.Binary(op="/", left=c.Name(name=name), right=c.Number(value=a)),
            right=c.Number(value=b),
        ):
            if a == b and isinstance(a, int) and multiples.get(name, 1) % a == 0:
                return c.Name(name)
    return simplified(expr)


def _holds(outer: tuple[str, c.Expr, c.Expr, c.Expr], inner: tuple[str, c.Expr, c.Expr, c.Expr]) -> bool:
    """Whether the earlier range holds the later one: same array, same base, same end, and starts at 0."""
    return (
        outer[0] == inner[0]
        and same_value(outer[1], inner[1])
        and outer[2] == number(0)
        and same_value(outer[3], inner[3])
    )


@dataclass(frozen=True)
class _Seen:
    touch: Touch
    step: Step


def check_exchange(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], aliases: Mapping[str, str], has_barriers: bool
) -> None:
    seen: dict[str, list[_Seen]] = {}
    for step in all_steps(steps):
        if getattr(step, "then", None) is not None:
            continue  # its parts are met on their own
        found = [
            touch for part in parts_of(step) if isinstance(part, tuple) for touch in touches(part, arrays)
        ]
        now = [(aliases.get(t.place.array, t.place.array), _Seen(t, step)) for t in found]
        for array, later in now:
            for earlier in seen.get(array, []):
                _check(earlier, later, array, has_barriers)
        for array, later in now:
            seen.setdefault(array, []).append(later)


def _check(earlier: _Seen, later: _Seen, array: str, has_barriers: bool) -> None:
    if not (earlier.touch.writes or later.touch.writes) or (earlier.touch.atomic and later.touch.atomic):
        return
    if _same_turn(earlier, later):
        return
    both_store = earlier.touch.writes and later.touch.writes
    only_store = both_store and not (earlier.touch.reads or later.touch.reads)
    if only_store and not has_barriers and not _same_thread(earlier, later):
        return  # the kernel itself leaves the order open
    line = later.step.line
    raise OutOfReach.at(
        line,
        f"'{print_expr(later.touch.node)}' is touched here by other threads than in line "
        f"{earlier.step.line} ('{print_expr(earlier.touch.node)}'): '{array}' passes values between threads",
    )


def _same_turn(earlier: _Seen, later: _Seen) -> bool:
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.stop, b.stop):
        return False
    return _same_thread(earlier, later)


def _same_thread(earlier: _Seen, later: _Seen) -> bool:
    """Whether the same thread of the original comes to an element in both: its order is no accident."""
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.start, b.start):
        return False
    one, names = earlier.touch.place, {a.index: c.Name(b.index)}
    offset = None if one.offset is None else substitute(one.offset, names)
    return _same_place(replace(one, index=substitute(one.index, names), offset=offset), later.touch.place)
