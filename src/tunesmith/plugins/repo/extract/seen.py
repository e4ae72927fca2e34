"""What a captured program says of a kernel: its instance, sizes and values, and where it must be fast."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.errors import BadInput
from tunesmith.base.text import flatten_text, format_count, truncate_text
from tunesmith.expert.drafts.bare import KnownFacts, KnownWorkload
from tunesmith.expert.drafts.launches import FILL, DraftArgument, DraftLaunch
from tunesmith.plugins.repo.capture.ranking import KernelKind, kind_of
from tunesmith.plugins.repo.capture.records import (
    Capture,
    CapturedArgument,
    CapturedKernel,
    CapturedLaunch,
    KeptLaunch,
    KeptRange,
)
from tunesmith.plugins.repo.capture.trace import function_name
from tunesmith.plugins.repo.extract.items import past_bracket, split_text
from tunesmith.problem.problem import (
    MAX_BYTES,
    MAX_TEXT,
    TYPES,
    Argument,
    Problem,
    recorded_array,
    recorded_text,
)
from tunesmith.space.expr import Expr, RealExpr, Undefined, parse_expr

# Expressions over sizes fitted to numbers that were seen: the simplest that gives every one of them. `rows`,
# `rows * d`, `rows * (d // 2)`, `ceildiv(n, 256)`: candidates are tried in their order.
_FACTORS = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_BLOCKS = (256, 128, 512, 1024, 64, 32, 16, 8, 4, 2)
_MAX_NAMES = 8
Column = Sequence[int]  # a number for each launch that was seen


def fit_expression(
    target: Column, sizes: Mapping[str, Column], *, constant_first: bool = False
) -> str | None:
    """The simplest expression over sizes whose value is `target` at every launch; None: there is none.

    `constant_first`: a number that never changes is taken for itself, as of blocks, not for a size that it
    happens to be equal to.
    """
    if not target:
        return None
    constant = str(target[0]) if len(set(target)) == 1 else None
    if constant is not None and (constant_first or target[0] in (0, 1)):
        return constant
    fitting = (
        t for t in _candidate_expressions(sizes) if _evaluate_column(t, sizes, len(target)) == [*target]
    )
    return next(fitting, constant)


def fit_extent(limits: Column, sizes: Mapping[str, Column], grain: int = 1) -> str | None:
    """The same where what was seen is rounded up to a multiple of `grain`, as allocators do."""
    if not limits or any(limit <= 0 for limit in limits):
        return None
    for text in _candidate_expressions(sizes):
        values = _evaluate_column(text, sizes, len(limits))
        if values is not None and all(
            value == limit or (0 < value < limit and -(-value // grain) * grain == limit)
            for value, limit in zip(values, limits, strict=True)
        ):
            return text
    return None


def _candidate_expressions(sizes: Mapping[str, Column]) -> Iterator[str]:
    """The simplest first; of two that are alike the one whose sizes change."""
    names = sorted(sizes, key=lambda name: len(set(sizes[name])) == 1)[:_MAX_NAMES]
    pairs, triples = list(combinations(names, 2)), list(combinations(names, 3))
    yield from names
    yield from (f"{a} * {b}" for a, b in pairs)
    for a in names:
        yield from (f"{a} {sign} {factor}" for sign in ("*", "//") for factor in _FACTORS)
    for a in names:
        yield from (f"ceildiv({a}, {block})" for block in _BLOCKS)
        yield from (f"{a} + 1", f"{a} - 1")
    for a, b in pairs:
        yield from (f"{a} + {b}", f"{a} - {b}", f"{b} - {a}", f"{a} // {b}", f"{b} // {a}")
        yield from (f"ceildiv({a}, {b})", f"ceildiv({b}, {a})")
    for a, b in pairs:
        for factor in _FACTORS[:4]:
            yield from (f"{a} * {b} * {factor}", f"{a} * ({b} // {factor})", f"{b} * ({a} // {factor})")
        yield from (f"ceildiv({a} * {b}, {block})" for block in _BLOCKS)
    yield from map(" * ".join, triples)
    for a, b, c in combinations_with_replacement(names, 3):
        if not a == b == c:
            yield f"({a} + {b}) * {c}"
    yield from (f"ceildiv({' * '.join(three)}, {block})" for three in triples for block in _BLOCKS)
    yield from map(" * ".join, combinations(names, 4))
    for a in names:
        for least in (1024, 512, 256, 128, 64, 32):
            yield f"min({a}, {least})"
            yield from (f"min({a} // {factor}, {least})" for factor in _FACTORS[:4])
            yield f"min(round_up({a}, 32), {least})"


def _evaluate_column(text: str, sizes: Mapping[str, Column], count: int) -> list[int] | None:
    """None: it has no value somewhere."""
    expr = parse_expr(text)
    try:
        return [expr.evaluate({name: sizes[name][at] for name in expr.names}) for at in range(count)]
    except Undefined:
        return None


# -- What a problem says of a captured launch, held against that launch: geometry, values, extents, roles.


ReadArray = Callable[[str], bytes]
Sizes = Mapping[str, int]
FORMATS = {  # of scalars, as `struct` has them
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float32": "f", "float64": "d", "float16": "e",
}  # fmt: skip


class NotCompared(Exception):
    """Why nothing can be said, in words."""


def launch_difference(
    problem: Problem, kept: KeptLaunch, launch: CapturedLaunch, sizes: Sizes, array: ReadArray
) -> str:
    """What the problem says otherwise than the launch was, in words; empty: nothing. Raises NotCompared."""
    missing = [name for name in problem.size_names if name not in sizes]
    if missing:
        raise NotCompared(f"nobody saw {', '.join(missing)}")
    try:
        found = next(_launch_differences(problem, kept, launch, sizes, array), "")
    except Undefined as error:
        raise NotCompared(str(error)) from error
    at = ", ".join(f"{name} = {sizes[name]}" for name in problem.size_names)
    return f"{found}, at {at or 'no sizes'}" if found else ""


def _launch_differences(
    problem: Problem, kept: KeptLaunch, launch: CapturedLaunch, sizes: Sizes, array: ReadArray
) -> Iterator[str]:
    said = problem.launches[0]
    if said.when is not None and not said.when.evaluate(sizes):
        yield f"the problem does not launch it where {said.when.text} does not hold"
    for what, exprs, ran in (("grid", said.grid, launch.grid), ("block", said.block, launch.block)):
        axes = _evaluate_axes(exprs, sizes)
        if axes != tuple(ran):
            yield f"the problem's {what} is {_join_axes(axes)}, it was launched with {_join_axes(ran)}"
    shared = 0 if said.shared is None else said.shared.evaluate(sizes)
    if shared != launch.shared:
        yield f"the problem's shared memory is {shared} bytes, it was launched with {launch.shared}"
    for captured, argument in zip(kept.arguments, problem.arguments, strict=True):
        if argument.role == "scalar":
            yield from _other_value(captured, argument, sizes)
        else:
            yield from _other_array(kept, captured, argument, problem.arguments, sizes, array)


def _evaluate_axes(exprs: Sequence[Expr], sizes: Sizes) -> tuple[int, ...]:
    found = [expr.evaluate(sizes) for expr in exprs]
    return (*found, *[1] * (3 - len(found)))


def _join_axes(axes: Sequence[int]) -> str:
    return " x ".join(map(str, axes))


def _other_value(captured: CapturedArgument, argument: Argument, sizes: Sizes) -> Iterator[str]:
    passed, number = _passed_number(captured, argument, sizes)
    if passed is not None:
        yield f"the problem passes {number} as {argument.name}, the program passed {passed}"


def _passed_number(captured: CapturedArgument, argument: Argument, sizes: Sizes) -> tuple[object, object]:
    """What the program passed, where the problem passes something else, and what the problem passes."""
    form, value = FORMATS.get(argument.type), argument.value
    if form is None or len(captured.value) < struct.calcsize(form) or value is None:
        raise NotCompared(f"{argument.name} is of type {argument.type}")
    number = value.evaluate(sizes) if isinstance(value, Expr | RealExpr) else value
    try:
        passed = struct.pack(f"<{form}", float(number) if argument.element.kind == "float" else int(number))
    except (struct.error, OverflowError):
        passed = b""
    if passed == captured.value[: struct.calcsize(form)]:
        return None, number
    return struct.unpack_from(f"<{form}", captured.value)[0], number


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
    strides = [axis.evaluate(sizes) for axis in argument.strides] or _dense_strides(shape)
    last = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    return -(-(last + 1) // argument.element.packed) * argument.element.bytes


def _written_there(
    kept: KeptLaunch, arguments: Sequence[Argument], where: KeptRange, start: int, end: int, sizes: Sizes
) -> bool:
    """Whether an array that the problem lets the kernel write shares these bytes."""
    for captured, argument in zip(kept.arguments, arguments, strict=True):
        memory = captured.memory
        if not argument.is_written and argument.role != "workspace":
            continue
        if memory is None or kept.range_of(memory) is not where:
            continue
        begin = memory.offset - where.start
        if begin < end and start < begin + extent_bytes(argument, sizes):
            return True
    return False


_CAST = re.compile(r"\((?:unsigned )?(?:int|long|short|char|long long|unsigned)\)\s*(-?\d+)")
_FLAG = re.compile(r"\(bool\)\s*([01])")
_GRAIN = 512  # bytes to which PyTorch's allocator rounds up
_MAX_WORKLOADS = 8
_AXIS_NAMES = ("rows", "count_y", "count_z")


def instance_of(demangled: str) -> tuple[str, ...]:
    """Its template arguments, as they are written in C++."""
    text = demangled.replace("(anonymous namespace)::", "")
    start, brace = text.find("<"), text.find("(")
    if start < 0 or 0 <= brace < start or not (end := past_bracket(text, start, "<>")):
        return ()
    return tuple(map(_normalize_type, split_text(text[start + 1 : end - 1])))


def _normalize_type(text: str) -> str:
    text = _FLAG.sub(lambda match: "true" if match[1] == "1" else "false", text)
    return re.sub(r"\s+([*&>])", r"\1", _CAST.sub(r"\1", text)).strip()


SeenSizes = tuple[tuple[int, tuple[tuple[str, int], ...]], ...]  # of launches, by number


@dataclass(frozen=True)
class SeenFacts:
    """What follows for a problem. `notes`: what does not fit, in words."""

    known: KnownFacts
    launch: DraftLaunch
    notes: tuple[str, ...]
    sizes: SeenSizes = ()


def seen_facts(
    kernel: CapturedKernel,
    arguments: Sequence[DraftArgument],
    known: KnownFacts,
    launch: DraftLaunch,
    shapes: Mapping[str, tuple[str, ...]],
) -> SeenFacts:
    """`known`, `launch`: what the host's code says, where it was read; `shapes`: how the kernel indexes."""
    whole = [one for one in kernel.launches if one.complete and len(one.arguments) == len(arguments)]
    if not whole:
        taken = len(kernel.launches[0].arguments) if kernel.launches else 0
        fault = f"no launch whose arguments are known: {len(arguments)} are wanted, {taken} were seen"
        return SeenFacts(known, launch, (fault,))
    return _SeenReader(whole, arguments, known, launch, shapes).facts()


class _SeenReader:
    def __init__(
        self,
        launches: Sequence[CapturedLaunch],
        arguments: Sequence[DraftArgument],
        known: KnownFacts,
        launch: DraftLaunch,
        shapes: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._launches, self._arguments = launches, arguments
        self._known, self._launch, self._shapes = known, launch, shapes
        self._notes: list[str] = []
        self._scalars = {
            argument.name: values
            for at, argument in enumerate(arguments)
            if not argument.parameter.pointer and (values := self._scalar_column(at, argument)) is not None
        }
        integers = {a.name for a in arguments if a.is_integer and a.parameter.base != "bool"}
        sizes = [a.name for a in arguments if a.role == "size" and a.name in integers & self._scalars.keys()]
        self._sizes: dict[str, list[int]] = {
            name: [int(value) for value in self._scalars[name]]
            for name in sizes
            if known.values.get(name, name) == name and min(self._scalars[name]) >= 1
        }

    def facts(self) -> SeenFacts:
        grid = self._grid()
        block = self._fitted_axes("block", self._launch.block, [one.block for one in self._launches])
        shared = self._fit_shared()
        values = dict(self._values())
        shapes = dict(self._found_shapes())
        known = replace(
            self._known,
            values={**self._known.values, **values},
            shapes=shapes,
            aligned={**self._known.aligned, **self._aligned()},
            nulls=self._known.nulls | self._null_pointers(),
            workloads=self._known.workloads or tuple(self._workloads()),
            requires=tuple(text for text in self._known.requires if self._holds(text)),
        )
        launch = replace(self._launch, grid=grid, block=block, shared=shared, about=self._launch_count_note())
        sizes = tuple((one.number, self._sizes_at(at)) for at, one in enumerate(self._launches))
        return SeenFacts(known, launch, tuple(dict.fromkeys(self._notes)), sizes)

    def _scalar_column(self, at: int, argument: DraftArgument) -> list[float] | None:
        form = FORMATS.get(argument.element or "")
        if form is None:
            return None
        found = []
        for launch in self._launches:
            data = launch.arguments[at].value
            if len(data) < struct.calcsize(form):
                return None
            found.append(struct.unpack_from(f"<{form}", data)[0])
        return found

    def _launch_count_note(self) -> str:
        count = sum(launch.count for launch in self._launches)
        return f"as it was launched {count} times while the program was watched"

    def _holds(self, text: str) -> bool:
        """Conditions that what was seen contradicts are not those of this instance."""
        expr = parse_expr(text)
        if not expr.names <= self._sizes.keys():
            self._notes.append(f"the host also asks for {text}, of which not all sizes were seen")
            return False
        held = _evaluate_column(text, self._sizes, len(self._launches))
        if held is not None and not all(held):
            self._notes.append(f"{text} did not hold where it was launched, and was left out")
        return held is not None and all(held)

    def _grid(self) -> tuple[str, ...]:
        """Each axis over sizes; one that no size gives is a size of its own."""
        seen = [launch.grid for launch in self._launches]
        axes: list[str] = []
        for at in range(3):
            column = [grid[at] for grid in seen]
            said = self._launch.grid[at] if at < len(self._launch.grid) else "1"
            if said != FILL and self._is_column_match(said, column):
                axes.append(said)
                continue
            name = said if said.isidentifier() and said != FILL and said not in self._sizes else ""
            fitted = None if name else fit_expression(column, self._sizes)
            if fitted is None or (fitted.isdecimal() and fitted != "1" and not name and not self._sizes):
                name = name or self._fresh(_AXIS_NAMES[at])
            if name:
                self._sizes = {name: column, **self._sizes}
                fitted = name
            axes.append(fitted or str(column[0]))
        return _without_ones(axes)

    def _fitted_axes(
        self, what: str, said: Sequence[str], seen: Sequence[tuple[int, int, int]]
    ) -> tuple[str, ...]:
        axes: list[str] = []
        for at in range(3):
            column = [one[at] for one in seen]
            written = said[at] if at < len(said) else "1"
            if written != FILL and self._is_column_match(written, column):
                axes.append(written)
                continue
            fitted = fit_expression(column, self._sizes, constant_first=True)
            if fitted is None:
                common = max(set(column), key=column.count)
                self._notes.append(
                    f"the {what} was {', '.join(map(str, dict.fromkeys(column)))} along {'xyz'[at]}, and no "
                    f"expression over {', '.join(self._sizes) or 'sizes'} gives that; most often {common}"
                )
            axes.append(fitted or FILL)
        return _without_ones(axes)

    def _fit_shared(self) -> str | None:
        column = [launch.shared for launch in self._launches]
        said = self._launch.shared
        if said not in (None, FILL) and self._is_column_match(said or "0", column):
            return said
        fitted = fit_expression(column, self._sizes, constant_first=True)
        return None if fitted == "0" else fitted or FILL

    def _is_column_match(self, text: str, column: Sequence[int]) -> bool:
        if not parse_expr(text).names <= self._sizes.keys():
            return False
        return _evaluate_column(text, self._sizes, len(column)) == [*column]

    def _fresh(self, name: str) -> str:
        taken = {argument.name for argument in self._arguments} | self._sizes.keys()
        while name in taken:
            name += "_"
        return name

    def _values(self) -> Iterator[tuple[str, str]]:
        for argument in self._arguments:
            column = self._scalars.get(argument.name)
            if column is None:
                continue
            if argument.element is not None and TYPES[argument.element].kind == "float":
                if len(set(column)) == 1 and math.isfinite(column[0]):
                    yield argument.name, _shortest_number(column[0], argument.element)
                else:
                    shown = ", ".join(f"{value:g}" for value in dict.fromkeys(column))
                    self._notes.append(f"{argument.name} was {shown}: one number is wanted")
                continue
            numbers = [int(value) for value in column]
            said = self._known.values.get(argument.name)
            if said is not None and said != argument.name and self._is_column_match(said, numbers):
                continue
            if argument.name in self._sizes:
                yield argument.name, argument.name
                continue
            fitted = fit_expression(numbers, self._sizes)
            if fitted is not None:
                yield argument.name, fitted
            else:
                self._sizes[argument.name] = numbers
                yield argument.name, argument.name

    def _null_pointers(self) -> frozenset[str]:
        return frozenset(
            argument.name
            for at, argument in enumerate(self._arguments)
            if argument.parameter.pointer and all(not any(one.arguments[at].value) for one in self._launches)
        )

    def _aligned(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for at, argument in enumerate(self._arguments):
            memories = [launch.arguments[at].memory for launch in self._launches]
            if argument.parameter.pointer and memories and all(memories):
                least = min(memory.alignment for memory in memories if memory is not None)
                if least >= 16:
                    found[argument.name] = 16
        return found

    def _found_shapes(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for at, argument in enumerate(self._arguments):
            if not argument.parameter.pointer or argument.element is None:
                continue
            said = self._known.shapes.get(argument.name) or self._shapes.get(argument.name)
            extents = [self._elements(launch, at, argument) for launch in self._launches]
            fits = said is not None and FILL not in said and self._has_room(said, extents)
            if said is not None and (fits or None in extents):
                if argument.name in self._known.shapes:
                    yield argument.name, said
                continue
            if None in extents:
                continue
            limits = [extent for extent in extents if extent is not None]
            grain = max(_GRAIN // TYPES[argument.element].bytes, 1)
            fitted = fit_extent(limits, self._sizes, grain)
            if fitted is not None:
                yield argument.name, tuple(part.strip() for part in _split_axes(fitted))
            elif said is not None and fits is None:
                yield argument.name, said
            elif said is not None and fits is False and FILL not in said:
                self._notes.append(
                    f"{argument.name} has fewer elements than {' * '.join(said)} where it was seen"
                )

    def _elements(self, launch: CapturedLaunch, at: int, argument: DraftArgument) -> int | None:
        memory = launch.arguments[at].memory
        assert argument.element is not None
        return None if memory is None else memory.extent // TYPES[argument.element].bytes

    def _has_room(self, shape: Sequence[str], extents: Sequence[int | None]) -> bool | None:
        """Whether so many elements fit into what was seen; None: not known."""
        names = frozenset(name for axis in shape for name in parse_expr(axis).names)
        limits = [extent for extent in extents if extent is not None]
        if not names <= self._sizes.keys() or len(limits) < len(extents):
            return None
        columns = [_evaluate_column(axis, self._sizes, len(limits)) for axis in shape]
        known = [column for column in columns if column is not None]
        return len(known) == len(columns) and all(
            math.prod(column[at] for column in known) <= limit for at, limit in enumerate(limits)
        )

    def _sizes_at(self, at: int) -> tuple[tuple[str, int], ...]:
        return tuple((name, column[at]) for name, column in self._sizes.items())

    def _workloads(self) -> Iterator[KnownWorkload]:
        total = sum(launch.seconds for launch in self._launches) or 1.0
        groups: dict[tuple[tuple[str, int], ...], list[CapturedLaunch]] = {}
        for at, launch in enumerate(self._launches):
            groups.setdefault(self._sizes_at(at), []).append(launch)
        ordered = sorted(groups.items(), key=lambda pair: -sum(launch.seconds for launch in pair[1]))
        if len(ordered) > _MAX_WORKLOADS:
            self._notes.append(
                f"{len(ordered)} sizes were seen: the {_MAX_WORKLOADS} that took longest are taken"
            )
        for number, (sizes, launches) in enumerate(ordered[:_MAX_WORKLOADS], 1):
            seconds = sum(launch.seconds for launch in launches)
            count = sum(launch.count for launch in launches)
            share = seconds / total
            weight = max(round(share * min(len(ordered), _MAX_WORKLOADS), 4), 0.001)
            about = f"{count} launches, {100 * share:.0f} % of its time" if seconds else f"{count} launches"
            yield KnownWorkload(f"seen_{number}", sizes, weight if seconds else 1.0, about)


def _split_axes(text: str) -> list[str]:
    """`rows * d` elements are rows of d."""
    if "(" in text or "//" in text or "+" in text or "-" in text:
        return [text]
    return text.split(" * ")


def _without_ones(axes: Sequence[str]) -> tuple[str, ...]:
    found = list(axes)
    while len(found) > 1 and found[-1] == "1":
        found.pop()
    return tuple(found)


def _shortest_number(value: float, element: str) -> str:
    """The shortest number that is this one once it is rounded to its type."""
    form = FORMATS[element]
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if struct.pack(f"<{form}", float(text)) == struct.pack(f"<{form}", value):
            return repr(float(text))
    return repr(value)


# -- Which captured kernel is meant; and where it cannot be extracted, why, and what can still be had.


_MAX_LISTED = 6
_LONGEST_NAME = 80
_WITHOUT_SOURCE = {
    KernelKind.VENDOR: "it belongs to a vendor's library, whose source nobody has",
    KernelKind.TRITON: "it is Triton's, compiled from Python: its own tuner is the one to ask",
    KernelKind.TEMPLATES: "it is a template of CUB or Thrust: its source is in that library's headers",
    KernelKind.TORCH: "it is PyTorch's own: name a folder with PyTorch's sources",
    KernelKind.CUPY: "CuPy makes its source while the program runs",
}


def captured_kernel(capture: Capture, name: str, symbol: str | None = None) -> CapturedKernel:
    """The kernel that is meant; of several instances the one that took longest. `symbol`: as the driver names
    it, where that is not its name in the sources. Raises BadInput."""
    if not capture.kernels:
        hint = "see what it did with: tunesmith capture --show FOLDER"
        raise BadInput("the capture has no kernels: the program launched none", hint=hint)
    if symbol is not None:
        found = [kernel for kernel in capture.kernels if symbol in (kernel.name, kernel.demangled)]
        if not found:
            hint = f"it launched {_list_names(kernel.name for kernel in capture.kernels)}"
            raise BadInput(f"the capture has no kernel whose symbol is {symbol}", hint=hint)
        return max(found, key=lambda kernel: kernel.seconds)
    exact = _of_name(capture.kernels, name)
    if not exact:
        raise _unknown_kernel_error(capture.kernels, name.split("<")[0].strip())
    return max(exact, key=lambda kernel: kernel.seconds)


def _of_name(kernels: Sequence[CapturedKernel], name: str) -> list[CapturedKernel]:
    plain = name.split("<")[0].strip()
    named = [(kernel, function_name(kernel.shown)) for kernel in kernels]
    last = plain.split("::")[-1]
    exact = [one for one, full in named if full.endswith(plain) and full.split("::")[-1] == last]
    if "<" in name:
        wanted = name[name.index("<") :].replace(" ", "")
        return [kernel for kernel in exact if wanted in kernel.shown.replace(" ", "")] or exact
    return exact


def is_stripped(kernel: CapturedKernel) -> bool:
    """Without a name, or with one that nobody wrote: mangled, and not to be taken apart again."""
    return not kernel.shown or kernel.shown.startswith("_Z")


def _unknown_kernel_error(kernels: Sequence[CapturedKernel], plain: str) -> BadInput:
    stripped = [kernel for kernel in kernels if is_stripped(kernel)]
    if stripped:
        words = format_count(len(stripped), "kernel of it has", "kernels of it have")
        fault = f"the capture has no kernel called {plain}; {words} no readable name"
        symbols = _list_names(kernel.name or "(none)" for kernel in stripped)
        hint = (
            f"say which it is with --symbol SYMBOL, one of {symbols} (tunesmith capture --show has their "
            "launches); or leave --capture out, and take what the sources say"
        )
        return BadInput(fault, hint=hint)
    names = _list_names(function_name(kernel.shown) for kernel in kernels)
    return BadInput(f"the capture has no kernel called {plain}", hint=f"it launched {names}")


def _list_names(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(truncate_text(flatten_text(name), _LONGEST_NAME) for name in names))
    return ", ".join(listed[:_MAX_LISTED]) + (", ..." if len(listed) > _MAX_LISTED else "")


def without_source(kernel: CapturedKernel, missing: BadInput) -> BadInput:
    """What is said of a kernel that ran and that the repository does not have."""
    what = truncate_text(flatten_text(function_name(kernel.shown)) or kernel.name, _LONGEST_NAME)
    why = _WITHOUT_SOURCE.get(kind_of(kernel))
    had = f"its launches, arguments and times: tunesmith capture --show --kernel {what}"
    if kernel.image:
        had += f"; its machine code: images/{kernel.image[:12]}...cubin of the capture"
    if why is not None:
        fault = f"{what} ran, and its source is not there: {why}"
        return BadInput(fault, hint=f"what can be had is {had}")
    fault = f"{what} ran, and {missing.message}"
    named = f"its module's line table names {', '.join(kernel.sources[:3])}; " if kernel.sources else ""
    hint = f"{named}name the folder that has its source: tunesmith extract FOLDER. What can be had is {had}"
    return BadInput(fault, hint=hint)


# -- Captured launches kept as cases of a problem that has no reference: what they read, what they left.


MAX_KEPT = 3  # cases
MAX_OF_ALL = 2 * MAX_TEXT  # characters of their files


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
            if known in taken or len(files) == MAX_KEPT:
                continue
            text = _case_text(problem, one, dict(known), array)
        except NotCompared as why:
            notes.append(f"launch {one.launch} is not kept as a case: {why}")
            continue
        if text is None or sum(map(len, files.values())) + len(text) > MAX_OF_ALL:
            limit = f"{MAX_BYTES >> 20} MiB, {MAX_TEXT // 1_000_000} MB compressed"
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
        raise NotCompared(f"nobody saw {', '.join(missing)}")
    found = {name: seen[name] for name in problem.size_names}
    if outside := problem.contract.violations(found):
        raise NotCompared(outside[0])
    return tuple(found.items())


def _case_text(problem: Problem, kept: KeptLaunch, sizes: Sizes, array: ReadArray) -> str | None:
    if len(kept.arguments) != len(problem.arguments):
        raise NotCompared(f"it has {len(kept.arguments)} arguments, the problem {len(problem.arguments)}")
    found = []
    for captured, argument in zip(kept.arguments, problem.arguments, strict=True):
        if argument.role == "scalar":
            passed, number = _passed_number(captured, argument, sizes)
            if passed is not None:
                raise NotCompared(f"its {argument.name} is not what the problem passes there, {number}")
            continue
        if argument.alias is not None or argument.role == "workspace":
            continue
        if argument.role in ("input", "inout") and argument.formula is None:
            values = _array_contents(kept, captured, argument, sizes, array, after=False)
            found.append(recorded_array(argument.name, "before", argument.type, values))
        if argument.is_written:
            values = _array_contents(kept, captured, argument, sizes, array, after=True)
            found.append(recorded_array(argument.name, "after", argument.type, values))
    about = f"launch {kept.launch} of a captured program"
    return recorded_text(about, tuple(sizes.items()), found)


def _array_contents(
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
        raise NotCompared(f"the memory behind {argument.name} was not kept")
    try:
        shape = tuple(axis.evaluate(sizes) for axis in argument.shape)
        strides = tuple(axis.evaluate(sizes) for axis in argument.strides) or _dense_strides(shape)
    except Undefined as error:
        raise NotCompared(f"{argument.name} has no shape there: {error}") from error
    element = argument.element
    if math.prod(shape) * element.bytes > MAX_BYTES:
        raise NotCompared(f"{argument.name} has more than {MAX_BYTES >> 20} MiB")
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    data = array(digest)[memory.offset - found.start :]
    if element.packed > 1 or len(data) < extent * element.bytes:
        raise NotCompared(f"less of {argument.name} was kept than the problem has")
    words = np.frombuffer(data, f"u{element.bytes}", extent)
    steps = tuple(stride * element.bytes for stride in strides)
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=False)


def _dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
