"""Captured launches kept as cases of a problem that has no reference: what they read, what they left."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.capture.records import Capture, CapturedArgument, KeptLaunch
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.recorded import MOST_BYTES, MOST_TEXT, recorded_array, recorded_text
from tunesmith.session.extract.agreeing import FORMATS, ReadArray
from tunesmith.space.expr import Expr, Undefined
from tunesmith.space.real import RealExpr

MOST_KEPT = 3  # cases
MOST_OF_ALL = 2 * MOST_TEXT  # characters of their files
Sizes = Mapping[str, int]


class _NotKept(Exception):
    """Why a launch does not become a case, in words."""


def recorded_files(
    problem: Problem, capture: Capture, kernel: str, sizes: Mapping[int, Sizes], array: ReadArray
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Name -> text, the smallest launches first, of sizes that differ; and why others are not among them.
    `sizes`: those of launches, by number."""
    kept = [one for one in capture.kept if one.kernel == kernel]
    files: dict[str, str] = {}
    notes: list[str] = []
    taken: set[tuple[tuple[str, int], ...]] = set()
    for one in sorted(kept, key=lambda one: sum(r.size for r in one.ranges)):
        try:
            known = _known_sizes(problem, sizes.get(one.launch, {}))
            if known in taken or len(files) == MOST_KEPT:
                continue
            text = _case_text(problem, one, dict(known), array)
        except _NotKept as why:
            notes.append(f"launch {one.launch} is not kept as a case: {why}")
            continue
        if text is None or sum(map(len, files.values())) + len(text) > MOST_OF_ALL:
            limit = f"{MOST_BYTES >> 20} MiB, {MOST_TEXT // 1_000_000} MB compressed"
            notes.append(f"launch {one.launch} is not kept as a case: larger than {limit}")
            continue
        taken.add(known)
        files[f"recorded_{one.launch}.json"] = text
    return files, tuple(notes)


def with_recorded(toml: str, names: Sequence[str]) -> str:
    """The problem file with its cases named."""
    listed = ", ".join(f'"{name}"' for name in names)
    line = f"recorded = [{listed}]  # launches of the program that was captured"
    return re.sub(r"^(name = .*)$", lambda match: f"{match[1]}\n{line}", toml, count=1, flags=re.MULTILINE)


def _known_sizes(problem: Problem, seen: Sizes) -> tuple[tuple[str, int], ...]:
    missing = [name for name in problem.size_names if name not in seen]
    if missing:
        raise _NotKept(f"nobody saw {', '.join(missing)}")
    found = {name: seen[name] for name in problem.size_names}
    if outside := problem.contract.violations(found):
        raise _NotKept(outside[0])
    return tuple(found.items())


def _case_text(problem: Problem, kept: KeptLaunch, sizes: Sizes, array: ReadArray) -> str | None:
    if len(kept.arguments) != len(problem.arguments):
        raise _NotKept(f"it has {len(kept.arguments)} arguments, the problem {len(problem.arguments)}")
    found = []
    for captured, argument in zip(kept.arguments, problem.arguments, strict=True):
        if argument.role == "scalar":
            _check_scalar(captured, argument, sizes)
            continue
        if argument.alias is not None or argument.role == "workspace":
            continue
        if argument.role in ("input", "inout") and argument.formula is None:
            values = _contents(kept, captured, argument, sizes, array, after=False)
            found.append(recorded_array(argument.name, "before", argument.type, values))
        if argument.is_written:
            values = _contents(kept, captured, argument, sizes, array, after=True)
            found.append(recorded_array(argument.name, "after", argument.type, values))
    about = f"launch {kept.launch} of a captured program"
    return recorded_text(about, tuple(sizes.items()), found)


def _check_scalar(captured: CapturedArgument, argument: Argument, sizes: Sizes) -> None:
    """That the problem passes what the program did."""
    form, value = FORMATS.get(argument.type), argument.value
    if form is None or len(captured.value) < struct.calcsize(form) or value is None:
        raise _NotKept(f"{argument.name} is of type {argument.type}")
    number = value.evaluate(sizes) if isinstance(value, Expr | RealExpr) else value
    kind = argument.element.kind
    try:
        passed = struct.pack(f"<{form}", float(number) if kind == "float" else int(number))
    except (struct.error, OverflowError):
        passed = b""
    if passed != captured.value[: struct.calcsize(form)]:
        raise _NotKept(f"its {argument.name} is not what the problem passes there, {number}")


def _contents(
    kept: KeptLaunch,
    captured: CapturedArgument,
    argument: Argument,
    sizes: Sizes,
    array: ReadArray,
    *,
    after: bool,
) -> NDArray[Any]:
    memory = captured.memory
    found = kept.range_of(memory) if memory is not None else None
    digest = "" if found is None else found.after if after else found.before
    if memory is None or found is None or not digest:
        raise _NotKept(f"the memory behind {argument.name} was not kept")
    try:
        shape = tuple(axis.evaluate(sizes) for axis in argument.shape)
        strides = tuple(axis.evaluate(sizes) for axis in argument.strides) or _dense(shape)
    except Undefined as error:
        raise _NotKept(f"{argument.name} has no shape there: {error}") from error
    element = argument.element
    if math.prod(shape) * element.bytes > MOST_BYTES:
        raise _NotKept(f"{argument.name} has more than {MOST_BYTES >> 20} MiB")
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    data = array(digest)[memory.offset - found.start :]
    if element.packed > 1 or len(data) < extent * element.bytes:
        raise _NotKept(f"less of {argument.name} was kept than the problem has")
    words = np.frombuffer(data, f"u{element.bytes}", extent)
    steps = tuple(stride * element.bytes for stride in strides)
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=False)


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
