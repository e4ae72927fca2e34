"""What a captured program says of a kernel: its instance, sizes and values, and where it must be fast."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.capture.records import CapturedKernel, CapturedLaunch
from tunesmith.expert.reading.arguments import DraftArgument
from tunesmith.expert.reading.known import KnownFacts, KnownWorkload
from tunesmith.expert.reading.launches import FILL, DraftLaunch
from tunesmith.problem.problem import TYPES
from tunesmith.session.extract.agreeing import FORMATS
from tunesmith.session.extract.fitting import fit, fit_extent
from tunesmith.space.expr import Undefined, parse

_CAST = re.compile(r"\((?:unsigned )?(?:int|long|short|char|long long|unsigned)\)\s*(-?\d+)")
_FLAG = re.compile(r"\(bool\)\s*([01])")
_GRAIN = 512  # bytes to which PyTorch's allocator rounds up
_MOST_WORKLOADS = 8
_AXIS_NAMES = ("rows", "count_y", "count_z")


def instance_of(demangled: str) -> tuple[str, ...]:
    """Its template arguments, as they are written in C++."""
    text = demangled.replace("(anonymous namespace)::", "")
    start = text.find("<")
    brace = text.find("(")
    if start < 0 or (0 <= brace < start):
        return ()
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "<") - (text[at] == ">")
        if depth == 0:
            inside = text[start + 1 : at]
            break
    else:
        return ()
    return tuple(_spelled(part) for part in _split(inside))


def _split(text: str) -> Iterator[str]:
    depth, last = 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            yield text[last:at]
            last = at + 1
    yield text[last:]


def _spelled(text: str) -> str:
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
            if not argument.parameter.pointer and (values := self._column(at, argument)) is not None
        }
        integers = {a.name for a in arguments if a.is_integer and a.parameter.base != "bool"}
        sizes = [a.name for a in arguments if a.role == "size"]
        self._sizes: dict[str, list[int]] = {
            name: [int(v) for v in self._scalars[name]]
            for name in sizes
            if name in self._scalars
            and name in integers
            and known.values.get(name, name) == name
            and all(v >= 1 for v in self._scalars[name])
        }

    def facts(self) -> SeenFacts:
        grid = self._grid()
        block = self._fitted_axes("block", self._launch.block, [one.block for one in self._launches])
        shared = self._shared()
        values = dict(self._values())
        shapes = dict(self._found_shapes())
        known = replace(
            self._known,
            values={**self._known.values, **values},
            shapes=shapes,
            aligned={**self._known.aligned, **self._aligned()},
            nulls=self._known.nulls | self._nulls(),
            workloads=self._known.workloads or tuple(self._workloads()),
            requires=tuple(text for text in self._known.requires if self._holds(text)),
        )
        launch = replace(self._launch, grid=grid, block=block, shared=shared, about=self._about())
        sizes = tuple((one.number, self._sizes_at(at)) for at, one in enumerate(self._launches))
        return SeenFacts(known, launch, tuple(dict.fromkeys(self._notes)), sizes)

    # -- numbers -------------------------------------------------------------------------------------

    def _column(self, at: int, argument: DraftArgument) -> list[float] | None:
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

    def _about(self) -> str:
        count = sum(launch.count for launch in self._launches)
        return f"as it was launched {count} times while the program was watched"

    def _holds(self, text: str) -> bool:
        """Conditions that what was seen contradicts are not those of this instance."""
        expr = parse(text)
        if not expr.names <= self._sizes.keys():
            self._notes.append(f"the host also asks for {text}, of which not all sizes were seen")
            return False
        for at in range(len(self._launches)):
            try:
                if not expr.evaluate({name: self._sizes[name][at] for name in expr.names}):
                    self._notes.append(f"{text} did not hold where it was launched, and was left out")
                    return False
            except Undefined:
                return False
        return True

    # -- geometry ------------------------------------------------------------------------------------

    def _grid(self) -> tuple[str, ...]:
        """Each axis over sizes; one that no size gives is a size of its own."""
        seen = [launch.grid for launch in self._launches]
        axes: list[str] = []
        for at in range(3):
            column = [grid[at] for grid in seen]
            said = self._launch.grid[at] if at < len(self._launch.grid) else "1"
            if said != FILL and self._agrees(said, column):
                axes.append(said)
                continue
            name = said if said.isidentifier() and said != FILL and said not in self._sizes else ""
            fitted = None if name else fit(column, self._sizes)
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
            own = said[at] if at < len(said) else "1"
            if own != FILL and self._agrees(own, column):
                axes.append(own)
                continue
            fitted = fit(column, self._sizes, constant_first=True)
            if fitted is None:
                common = max(set(column), key=column.count)
                self._notes.append(
                    f"the {what} was {', '.join(map(str, dict.fromkeys(column)))} along {'xyz'[at]}, and no "
                    f"expression over {', '.join(self._sizes) or 'sizes'} gives that; most often {common}"
                )
            axes.append(fitted or FILL)
        return _without_ones(axes)

    def _shared(self) -> str | None:
        column = [launch.shared for launch in self._launches]
        said = self._launch.shared
        if said not in (None, FILL) and self._agrees(said or "0", column):
            return said
        fitted = fit(column, self._sizes, constant_first=True)
        return None if fitted == "0" else fitted or FILL

    def _agrees(self, text: str, column: Sequence[int]) -> bool:
        expr = parse(text)
        if not expr.names <= self._sizes.keys():
            return False
        try:
            return all(
                expr.evaluate({name: self._sizes[name][at] for name in expr.names}) == value
                for at, value in enumerate(column)
            )
        except Undefined:
            return False

    def _fresh(self, name: str) -> str:
        taken = {argument.name for argument in self._arguments} | self._sizes.keys()
        while name in taken:
            name += "_"
        return name

    # -- arguments -----------------------------------------------------------------------------------

    def _values(self) -> Iterator[tuple[str, str]]:
        for argument in self._arguments:
            column = self._scalars.get(argument.name)
            if column is None:
                continue
            if argument.element is not None and TYPES[argument.element].kind == "float":
                if len(set(column)) == 1 and math.isfinite(column[0]):
                    yield argument.name, _shortest(column[0], argument.element)
                else:
                    shown = ", ".join(f"{value:g}" for value in dict.fromkeys(column))
                    self._notes.append(f"{argument.name} was {shown}: one number is wanted")
                continue
            numbers = [int(value) for value in column]
            said = self._known.values.get(argument.name)
            if said is not None and said != argument.name and self._agrees(said, numbers):
                continue
            if argument.name in self._sizes:
                yield argument.name, argument.name
                continue
            fitted = fit(numbers, self._sizes)
            if fitted is not None:
                yield argument.name, fitted
            else:
                self._sizes[argument.name] = numbers
                yield argument.name, argument.name

    def _nulls(self) -> frozenset[str]:
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
            fits = said is not None and FILL not in said and self._room(said, extents)
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
                yield argument.name, tuple(part.strip() for part in _axes(fitted))
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

    def _room(self, shape: Sequence[str], extents: Sequence[int | None]) -> bool | None:
        """Whether so many elements fit into what was seen; None: not known."""
        exprs = [parse(axis) for axis in shape]
        names = frozenset(name for expr in exprs for name in expr.names)
        if not names <= self._sizes.keys():
            return None
        for at, extent in enumerate(extents):
            if extent is None:
                return None
            try:
                count = math.prod(e.evaluate({n: self._sizes[n][at] for n in e.names}) for e in exprs)
            except Undefined:
                return False
            if count > extent:
                return False
        return True

    # -- where it must be fast -----------------------------------------------------------------------

    def _sizes_at(self, at: int) -> tuple[tuple[str, int], ...]:
        return tuple((name, column[at]) for name, column in self._sizes.items())

    def _workloads(self) -> Iterator[KnownWorkload]:
        total = sum(launch.seconds for launch in self._launches) or 1.0
        groups: dict[tuple[tuple[str, int], ...], list[CapturedLaunch]] = {}
        for at, launch in enumerate(self._launches):
            groups.setdefault(self._sizes_at(at), []).append(launch)
        ordered = sorted(groups.items(), key=lambda pair: -sum(launch.seconds for launch in pair[1]))
        if len(ordered) > _MOST_WORKLOADS:
            self._notes.append(
                f"{len(ordered)} sizes were seen: the {_MOST_WORKLOADS} that took longest are taken"
            )
        for number, (sizes, launches) in enumerate(ordered[:_MOST_WORKLOADS], 1):
            seconds = sum(launch.seconds for launch in launches)
            count = sum(launch.count for launch in launches)
            share = seconds / total
            weight = max(round(share * min(len(ordered), _MOST_WORKLOADS), 4), 0.001)
            about = f"{count} launches, {100 * share:.0f} % of its time" if seconds else f"{count} launches"
            yield KnownWorkload(f"seen_{number}", sizes, weight if seconds else 1.0, about)


def _axes(text: str) -> list[str]:
    """`rows * d` elements are rows of d."""
    if "(" in text or "//" in text or "+" in text or "-" in text:
        return [text]
    return text.split(" * ")


def _without_ones(axes: Sequence[str]) -> tuple[str, ...]:
    found = list(axes)
    while len(found) > 1 and found[-1] == "1":
        found.pop()
    return tuple(found)


def _shortest(value: float, element: str) -> str:
    """The shortest number that is this one once it is rounded to its type."""
    form = FORMATS[element]
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if struct.pack(f"<{form}", float(text)) == struct.pack(f"<{form}", value):
            return repr(float(text))
    return repr(value)
