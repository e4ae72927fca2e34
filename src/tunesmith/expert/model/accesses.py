"""How the steps of a kernel touch its arrays, and which loops store what was stored before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from tunesmith.csource.nodes import Binary, Expr, For, If, Name, Number, Stmt, Type, While
from tunesmith.csource.types import byte_size
from tunesmith.expert.model.affine import affine, number, same_value, simplified, stride
from tunesmith.expert.model.independence import Touch, touches
from tunesmith.expert.model.kernel import Access, Each, Let, Once, Step
from tunesmith.expert.model.step_tree import all_steps


def accesses(steps: Sequence[Step], arrays: Mapping[str, Type]) -> tuple[Access, ...]:
    """Each way once, in the order of the steps."""
    found: dict[Access, None] = {}
    for step in all_steps(steps):
        index = step.index if isinstance(step, Each) else ""
        bodies = [step.body] if isinstance(step, Each) else _own_parts(step)
        for body in bodies:
            for stmt, touch in _by_statement(body, arrays):
                found[_access(touch, index, arrays, getattr(stmt, "line", 0) or step.line)] = None
    return tuple(found)


def _own_parts(step: Step) -> list[tuple[Stmt, ...]]:
    return [step.body] if isinstance(step, Let | Once) else []


def _by_statement(body: Sequence[Stmt], arrays: Mapping[str, Type]) -> list[tuple[Stmt, Touch]]:
    return [(stmt, touch) for stmt in body for touch in touches((stmt,), arrays)]


def _access(touch: Touch, index: str, arrays: Mapping[str, Type], line: int) -> Access:
    place = touch.place
    own = arrays[place.array]
    type_ = place.as_type or Type(own.base, own.pointers - 1, own.const)
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
    return Access(
        place.array, kind, type_, place.index, step, index, tuple(dict.fromkeys(within)), place.offset, line
    )


def marked_again(
    steps: Sequence[Step], arrays: Mapping[str, Type], multiples: Mapping[str, int]
) -> tuple[Step, ...]:
    """Loops marked whose stores an earlier loop has made already, all of them.

    An earlier loop that stores every place from `low` to `high` in an array covers a later one that stays
    within; of the top level only, where both surely run. `multiples`: what the contract promises of
    parameters.
    """
    covered: list[tuple[str, Expr, Expr, Expr]] = []  # array, base, first, last + 1
    done: list[Step] = []
    for step in steps:
        if isinstance(step, Each):
            stores = [t for t in touches(step.body, arrays) if t.writes]
            read = {t.place.array for t in touches(step.body, arrays) if t.reads}
            plain = not step.totals and all(not t.atomic and t.place.array not in read for t in stores)
            ranges = [_range(t, step, arrays, multiples) for t in stores]
            inside = [r is not None and any(_holds(c, r) for c in covered) for r in ranges]
            if stores and plain and all(inside):
                step = replace(step, again=True)
            unconditional = {id(t.node) for stmt in step.body for t in touches((stmt,), arrays)
                             if not _is_conditional(stmt)}  # fmt: skip
            covered += [r for t, r in zip(stores, ranges, strict=True) if r and id(t.node) in unconditional]
        done.append(step)
    return tuple(done)


def _is_conditional(stmt: Stmt) -> bool:
    return isinstance(stmt, If | For | While)


def _range(
    touch: Touch, step: Each, arrays: Mapping[str, Type], multiples: Mapping[str, int]
) -> tuple[str, Expr, Expr, Expr] | None:
    """The places a store covers, from the loop's first to its last turn, in the array's own elements."""
    place = touch.place
    own = byte_size(arrays[place.array].base)
    wide = byte_size(place.as_type.base) if place.as_type is not None else own
    found = affine(place.index, step.index)
    if own is None or wide is None or wide % own or found is None or found[0] != number(1):
        return None
    ratio = number(wide // own)
    base = Binary("*", found[1], ratio)
    if place.offset is not None:
        base = Binary("+", base, place.offset)
    first = simplified(Binary("*", step.start, ratio))
    last = Binary("*", step.stop, ratio)
    return place.array, simplified(base), first, _whole(last, multiples)


def _whole(expr: Expr, multiples: Mapping[str, int]) -> Expr:
    """`d / 8 * 8` is d where the contract says that 8 divides d."""
    match expr:
        case Binary(
            op="*", left=Binary(op="/", left=Name(name=name), right=Number(value=a)), right=Number(value=b)
        ):
            if a == b and isinstance(a, int) and multiples.get(name, 1) % a == 0:
                return Name(name)
    return simplified(expr)


def _holds(outer: tuple[str, Expr, Expr, Expr], inner: tuple[str, Expr, Expr, Expr]) -> bool:
    """Whether the earlier range holds the later one: same array, same base, same end, and starts at 0."""
    return (
        outer[0] == inner[0]
        and same_value(outer[1], inner[1])
        and outer[2] == number(0)
        and same_value(outer[3], inner[3])
    )
