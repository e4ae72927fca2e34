"""Where memory is touched: pointer arithmetic folded into one canonical form of access.

The canonical forms of an access to an array (a kernel parameter or shared memory), which the rest of the
expert may rely on:

    Index(Name(array), index)                                     in the array's own type
    Index(Cast(Type("uint4", pointers=1), Name(array)), index)    the same bytes read as another type,
    Index(Cast(Type(...), Binary("+", Name(array), offset)), index)   `offset` in elements of the array's own
                                                                  type, `index` in units of the type read

`__ldg(p)`, `__ldcs(p)` and their like become plain accesses: how to cache is the schedule's to say. So does
`__stcs(p, v)`. `&a[i]` as a pointer is `a + i`. A cast to the type that the pointer has anyway is dropped.

How loops and steps touch arrays: what depends on each other, what is stored again or handed over. An element
that a loop stores may be read or stored again by a later loop only where the same turn does it: the same
range, the same place. Anything else needs a barrier between the loops, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import declared_in, map_expr, names_in, nodes_in
from tunesmith.expert.model.affine import affine, number, same_value, simplified, stride, terms
from tunesmith.expert.model.kernel import ArrayAccess, Each, Let, Once, OutOfReach, Step, all_steps, parts_of

_LOADS = frozenset({"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv", "__builtin_nontemporal_load"})
_STORES = frozenset({"__stcs", "__stcg", "__stwb", "__stwt"})


def folded(expr: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    """Every access in the expression in canonical form. `types` are those of pointers and arrays."""
    return map_expr(expr, lambda node: _fold(node, types))


def _fold(node: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    match node:
        case c.Call(function=function, args=(pointer,)) if function in _LOADS:
            return _fold(c.Index(pointer, number(0)), types)
        case c.Call(function=function, args=(pointer, value)) if function in _STORES:
            return c.Assign("=", _fold(c.Index(pointer, number(0)), types), value)
        case c.Unary(op="*", operand=operand):
            return _fold(c.Index(operand, number(0)), types)
        case c.Member(base=base, field=field, arrow=True):
            return c.Member(_fold(c.Index(base, number(0)), types), field)
        case c.Index(base=c.Binary() | c.Cast() | c.Unary() | c.Name() as base, index=index):
            return _indexed(base, index, types)
    return node


def _indexed(base: c.Expr, index: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    while True:
        match base:
            case c.Binary(op="+", left=left, right=right) if is_pointer(left, types):
                base, index = left, _sum(right, index)
            case c.Binary(op="+", left=left, right=right) if is_pointer(right, types):
                base, index = right, _sum(left, index)
            case c.Binary(op="-", left=left, right=right) if is_pointer(left, types):
                base, index = left, _difference(index, right)
            case c.Unary(op="&", operand=c.Index(base=inner, index=at)) if _address(inner, types) is not None:
                base, index = inner, _sum(at, index)
            case c.Cast(type=type_, value=value) if type_.is_pointer:
                address = _address(value, types)
                if address is None:
                    return c.Index(base, index)
                own = address.type
                if own is not None and own.base == type_.base and own.pointers == type_.pointers:
                    base = _pointer(address)
                    continue
                return c.Index(c.Cast(replace(type_, restrict=False), _pointer(address)), index)
            case _:
                return c.Index(base, index)


@dataclass(frozen=True)
class _Address:
    array: str
    offset: c.Expr | None  # in elements of the array's own type
    type: c.Type | None  # of the pointer


def _address(expr: c.Expr, types: Mapping[str, c.Type]) -> _Address | None:
    """An array's name and the offset into it; None where the pointer is to something else."""
    match expr:
        case c.Name(name=name) if name in types and types[name].is_pointer:
            return _Address(name, None, types[name])
        case c.Binary(op="+" | "-" as op, left=left, right=right):
            if op == "+" and not is_pointer(left, types):
                left, right = right, left
            inner = _address(left, types)
            scale = None if inner is None else _scale(left, inner, types)
            if inner is None or scale is None:
                return None
            moved = right if scale == 1 else c.Binary("*", right, number(scale))
            joined = (_sum if op == "+" else _difference)(inner.offset or number(0), moved)
            return _Address(inner.array, joined, inner.type)
        case c.Unary(op="&", operand=c.Index(base=base, index=index)):
            return _address(c.Binary("+", base, index), types)
        case c.Cast(type=type_, value=value) if type_.is_pointer:
            return _address(value, types)
    return None


def _scale(pointer: c.Expr, address: _Address, types: Mapping[str, c.Type]) -> int | None:
    """How many elements of the array one step of the pointer is; None where it is no whole number."""
    while isinstance(pointer, c.Binary):
        pointer = pointer.left if is_pointer(pointer.left, types) else pointer.right
    if not isinstance(pointer, c.Cast) or address.type is None or pointer.type.base == address.type.base:
        return 1
    step, own = byte_size(pointer.type.base), byte_size(address.type.base)
    return step // own if step and own and step % own == 0 else None


def _pointer(address: _Address) -> c.Expr:
    if address.offset is None or address.offset == number(0):
        return c.Name(address.array)
    return c.Binary("+", c.Name(address.array), address.offset)


def is_pointer(expr: c.Expr, types: Mapping[str, c.Type]) -> bool:
    match expr:
        case c.Name(name=name):
            return name in types and types[name].is_pointer
        case c.Cast(type=type_):
            return type_.is_pointer
        case c.Binary(op="+" | "-", left=left, right=right):
            return is_pointer(left, types) != is_pointer(right, types)
        case c.Unary(op="&"):
            return True
    return False


def _sum(left: c.Expr, right: c.Expr) -> c.Expr:
    if left == number(0):
        return right
    if right == number(0):
        return left
    return c.Binary("+", left, right)


def _difference(left: c.Expr, right: c.Expr) -> c.Expr:
    return c.Unary("-", right) if left == number(0) else c.Binary("-", left, right)


# -- reading canonical accesses ---------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayPlace:
    """A canonical access taken apart. `as_type` is None where the array is read in its own type."""

    array: str
    index: c.Expr
    offset: c.Expr | None = None  # in elements of the array's own type
    as_type: c.Type | None = None


def without_members(expr: c.Expr) -> c.Expr:
    """`a[i].x` -> `a[i]`"""
    while isinstance(expr, c.Member):
        expr = expr.base
    return expr


def place_of(expr: c.Expr) -> ArrayPlace | None:
    """The place of an `Index` in canonical form; of `a[y][x]` too, with the outer index in `offset`."""
    if not isinstance(expr, c.Index):
        return None
    match expr.base:
        case c.Name(name=name):
            return ArrayPlace(name, expr.index)
        case c.Cast(type=type_, value=c.Name(name=name)) if type_.is_pointer:
            return ArrayPlace(name, expr.index, as_type=_pointee(type_))
        case c.Cast(type=type_, value=c.Binary(op="+", left=c.Name(name=name), right=offset)) if (
            type_.is_pointer
        ):
            return ArrayPlace(name, expr.index, offset, _pointee(type_))
    return None


def _pointee(type_: c.Type) -> c.Type:
    return c.Type(type_.base, type_.pointers - 1, type_.const, volatile=type_.volatile)


# -- how bodies touch arrays -------------------------------------------------------------------------


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
            written[id(without_members(node.target))] = node.op != "="
        elif isinstance(node, c.Unary) and node.op in ("++", "--"):
            written[id(node.operand)] = True
        elif isinstance(node, c.Call) and "atomic" in node.function.lower() and node.args:
            first = node.args[0]
            if isinstance(first, c.Unary) and first.op == "&":
                written[id(first.operand)] = True
                atomic.add(id(first.operand))
    for node in nodes_in(body):
        if isinstance(node, c.Index):
            place, key = place_of(node), id(node)
            if place is not None and place.array in arrays:
                reads = written.get(key, True)
                found.append(Touch(place, node, key in written, reads, key in atomic))
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
    if found is not None and found[0] == number(0):
        return f"'{print_expr(store.node)}' is the same element in every turn"
    if found is None or names_in(found[1]) & set(inner):
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    return None


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
        case c.Binary("*", c.Binary("/", c.Name(name), c.Number(value=int(a))), c.Number(value=b)) if a == b:
            return c.Name(name) if multiples.get(name, 1) % a == 0 else simplified(expr)
    return simplified(expr)


def _holds(outer: tuple[str, c.Expr, c.Expr, c.Expr], inner: tuple[str, c.Expr, c.Expr, c.Expr]) -> bool:
    """Whether the earlier range holds the later one: same array, same base, same end, and starts at 0."""
    array, base, first, end = outer
    same = array == inner[0] and same_value(base, inner[1]) and same_value(end, inner[3])
    return same and first == number(0)


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
    return _same_place(replace(one, index=substitute(one.index, names), offset=offset), later.touch.place)
