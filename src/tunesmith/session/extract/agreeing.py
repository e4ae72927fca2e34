"""What a problem says of a captured launch, held against that launch: geometry, values, extents, roles."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tunesmith.capture.records import CapturedArgument, CapturedLaunch, KeptLaunch, KeptRange
from tunesmith.problem.problem import Argument, Problem
from tunesmith.space.expr import Expr, Undefined
from tunesmith.space.real import RealExpr

ReadArray = Callable[[str], bytes]
Sizes = Mapping[str, int]
FORMATS = {  # of scalars, as `struct` has them
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float32": "f", "float64": "d", "float16": "e",
}  # fmt: skip


class NotCompared(Exception):
    """Why nothing can be said, in words."""


def difference(
    problem: Problem, kept: KeptLaunch, launch: CapturedLaunch, sizes: Sizes, array: ReadArray
) -> str:
    """What the problem says otherwise than the launch was, in words; empty: nothing. Raises NotCompared."""
    missing = [name for name in problem.size_names if name not in sizes]
    if missing:
        raise NotCompared(f"nobody saw {', '.join(missing)}")
    try:
        found = next(_differences(problem, kept, launch, sizes, array), "")
    except Undefined as error:
        raise NotCompared(str(error)) from error
    at = ", ".join(f"{name} = {sizes[name]}" for name in problem.size_names)
    return f"{found}, at {at or 'no sizes'}" if found else ""


def _differences(
    problem: Problem, kept: KeptLaunch, launch: CapturedLaunch, sizes: Sizes, array: ReadArray
) -> Iterator[str]:
    said = problem.launches[0]
    if said.when is not None and not said.when.evaluate(sizes):
        yield f"the problem does not launch it where {said.when.text} does not hold"
    for what, exprs, ran in (("grid", said.grid, launch.grid), ("block", said.block, launch.block)):
        own = _three(exprs, sizes)
        if own != tuple(ran):
            yield f"the problem's {what} is {_by(own)}, it was launched with {_by(ran)}"
    shared = 0 if said.shared is None else said.shared.evaluate(sizes)
    if shared != launch.shared:
        yield f"the problem's shared memory is {shared} bytes, it was launched with {launch.shared}"
    for captured, argument in zip(kept.arguments, problem.arguments, strict=True):
        if argument.role == "scalar":
            yield from _other_value(captured, argument, sizes)
        else:
            yield from _other_array(kept, captured, argument, problem.arguments, sizes, array)


def _three(exprs: Sequence[Expr], sizes: Sizes) -> tuple[int, ...]:
    found = [expr.evaluate(sizes) for expr in exprs]
    return (*found, *[1] * (3 - len(found)))


def _by(axes: Sequence[int]) -> str:
    return " x ".join(map(str, axes))


def _other_value(captured: CapturedArgument, argument: Argument, sizes: Sizes) -> Iterator[str]:
    form, value = FORMATS.get(argument.type), argument.value
    if form is None or len(captured.value) < struct.calcsize(form) or value is None:
        raise NotCompared(f"{argument.name} is of type {argument.type}")
    number = value.evaluate(sizes) if isinstance(value, Expr | RealExpr) else value
    try:
        passed = struct.pack(f"<{form}", float(number) if argument.element.kind == "float" else int(number))
    except (struct.error, OverflowError):
        passed = b""
    if passed != captured.value[: struct.calcsize(form)]:
        ran = struct.unpack_from(f"<{form}", captured.value)[0]
        yield f"the problem passes {number} as {argument.name}, the program passed {ran}"


def _other_array(
    kept: KeptLaunch,
    captured: CapturedArgument,
    argument: Argument,
    all_of_them: Sequence[Argument],
    sizes: Sizes,
    array: ReadArray,
) -> Iterator[str]:
    memory = captured.memory
    if memory is None:
        raise NotCompared(f"the memory behind {argument.name} is not known")
    needed = extent_bytes(argument, sizes)
    if needed > memory.extent:
        yield f"the problem's {argument.name} has {needed} bytes, behind the pointer were {memory.extent}"
        return
    found = kept.range_of(memory)
    if found is None or not found.before or not found.after:
        return  # what was not kept is said by the comparison of memory
    start = memory.offset - found.start
    before, after = (array(digest)[start : start + needed] for digest in (found.before, found.after))
    changed = argument.role == "input" and argument.alias is None and before != after
    if changed and not _written_there(kept, all_of_them, found, start, start + needed, sizes):
        yield f"{argument.name} is an input to the problem, the launch changed it"
    if argument.init is not None and argument.element.packed == 1 and not argument.strides:
        words = np.frombuffer(before, argument.element.memory)
        if words.tobytes() != np.full(words.shape, argument.init).astype(words.dtype).tobytes():
            yield f"{argument.name} did not hold {argument.init:g} before the launch, as the problem says"


def extent_bytes(argument: Argument, sizes: Sizes) -> int:
    """From an array's first element to behind its last."""
    shape = [axis.evaluate(sizes) for axis in argument.shape]
    if any(count <= 0 for count in shape):
        return 0
    strides = [axis.evaluate(sizes) for axis in argument.strides]
    if not strides:
        strides = [1] * len(shape)
        for at in range(len(shape) - 2, -1, -1):
            strides[at] = strides[at + 1] * shape[at + 1]
    last = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    return -(-(last + 1) // argument.element.packed) * argument.element.bytes


def _written_there(
    kept: KeptLaunch,
    arguments: Sequence[Argument],
    where: KeptRange,
    start: int,
    end: int,
    sizes: Sizes,
) -> bool:
    """Whether an array that the problem lets the kernel write shares these bytes."""
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        memory = captured.memory
        if not argument.is_written and argument.role != "workspace":
            continue
        if memory is None or kept.range_of(memory) is not where:
            continue
        own = memory.offset - where.start
        if own < end and start < own + extent_bytes(argument, sizes):
            return True
    return False
