"""What processes wrote, put together to one `Capture`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from tunesmith.capture.records import (
    FORMAT,
    ArgumentPointer,
    Capture,
    CapturedArgument,
    CapturedCopies,
    CapturedDevice,
    CapturedKernel,
    CapturedLaunch,
    CapturedProcess,
    CapturedProgram,
    KeptLaunch,
    KeptRange,
    ModuleImage,
    PointedMemory,
    Succession,
)
from tunesmith.capture.trace import (
    COOPERATIVE,
    IN_GRAPH,
    INCOMPLETE,
    RawClass,
    RawDevice,
    RawFunction,
    RawKept,
    RawPointer,
    RawRange,
    RawTrace,
)
from tunesmith.text import counted, cut

MOST_ORDER = 20_000
MOST_SUCCESSIONS = 20_000
MOST_STREAM = 63  # the number of all streams for which there was none left
LONGEST_NAME = 16_000  # characters
NANO = 1e-9


@dataclass(frozen=True)
class FoundCode:
    """A kernel in a module's image."""

    digest: str
    parameters: tuple[int, ...]  # bytes of each


@dataclass(frozen=True)
class FoundImage:
    image: ModuleImage
    kernels: Mapping[str, FoundCode] = field(default_factory=dict)  # by mangled name
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredFiles:
    """Files beside the traces, by the trace's name and the number of the file."""

    images: Mapping[tuple[str, int], FoundImage] = field(default_factory=dict)
    arrays: Mapping[tuple[str, int], str] = field(default_factory=dict)  # digests


KernelKey = tuple[str, str, tuple[int, ...]]  # name, digest of its code, what the compiler says of it


@dataclass
class _Gathered:
    """A kernel while its launches come together."""

    function: RawFunction
    image: FoundImage | None
    code: FoundCode | None
    launches: dict[tuple[object, ...], CapturedLaunch] = field(default_factory=dict)


def assemble(
    program: CapturedProgram,
    traces: Sequence[RawTrace],
    files: StoredFiles,
    demangled: Callable[[Sequence[str]], Mapping[str, str]],
    notes: Sequence[str] = (),
) -> Capture:
    gathered: dict[KernelKey, _Gathered] = {}
    numbers: dict[tuple[str, int], int] = {}  # of launches, by trace and class
    fresh = count()
    for trace in traces:
        functions = {function.index: function for function in trace.functions}
        codes = {function.index: _code(trace, function, files) for function in trace.functions}
        for klass in trace.classes:
            function, found = functions[klass.function], codes[klass.function]
            numbers[trace.name, klass.index] = _gather(klass, function, found, gathered, fresh)
    names = demangled([key[0] for key in gathered])
    kernels = [_kernel(key[0], names.get(key[0], key[0]), one) for key, one in gathered.items()]
    kernels.sort(key=lambda kernel: (-kernel.seconds, -kernel.count, kernel.name))
    longest = max(traces, key=lambda trace: len(trace.order), default=None)
    order = [numbers[longest.name, klass] for klass, _ in longest.order[:MOST_ORDER]] if longest else []
    used = {one.image.image.digest for one in gathered.values() if one.image}
    images = {found.image.digest: found.image for found in files.images.values()}
    processes = tuple(_process(trace) for trace in traces)
    starts = [trace.counters.first_ns for trace in traces if trace.counters.first_ns]
    ends = [trace.counters.last_ns for trace in traces]
    return Capture(
        format=FORMAT,
        program=replace(program, processes=processes),
        driver=max((t.process.driver for t in traces if t.process is not None), default=0),
        devices=_devices(traces),
        kernels=tuple(kernels),
        successions=_successions(traces, numbers),
        order=tuple(order),
        images=tuple(image for digest, image in sorted(images.items()) if digest in used),
        kept=tuple(
            _kept(kept, trace, files, numbers) for trace in traces for kept in trace.kept if kept.ranges
        ),
        copies=CapturedCopies(
            sum(trace.counters.copies for trace in traces),
            sum(trace.counters.copied_bytes for trace in traces),
            sum(trace.counters.copied_ns for trace in traces) * NANO,
        ),
        span=max(0, max(ends, default=0) - min(starts, default=0)) * NANO if starts else 0.0,
        graphs=sum(trace.counters.graphs for trace in traces),
        dropped=sum(trace.counters.dropped for trace in traces),
        notes=tuple(dict.fromkeys((*notes, *_notes(traces)))),
    )


def _gather(
    klass: RawClass,
    function: RawFunction,
    found: tuple[FoundImage | None, FoundCode | None],
    gathered: dict[KernelKey, _Gathered],
    fresh: Iterator[int],
) -> int:
    """The number of its launch."""
    image, code = found
    told = (function.registers, function.shared, function.local)
    key = (_text(function.name), code.digest if code else "", told)
    kernel = gathered.setdefault(key, _Gathered(function, image, code))
    geometry = (klass.grid, klass.block, klass.shared, klass.cluster, klass.device, klass.flags)
    likeness = (*geometry, _blurred(klass))
    known = kernel.launches.get(likeness)
    launch = _launch(klass, function, code, known.number if known else next(fresh))
    kernel.launches[likeness] = _merged(known, launch) if known else launch
    return launch.number


def _code(
    trace: RawTrace, function: RawFunction, files: StoredFiles
) -> tuple[FoundImage | None, FoundCode | None]:
    """Of the image loaded last before the function was first seen; else of any that has it."""
    name = _text(function.name)
    places = [*range(function.after - 1, -1, -1), *range(function.after, len(trace.images))]
    for place in places:
        found = files.images.get((trace.name, trace.images[place].file))
        if found is not None and name in found.kernels:
            return found, found.kernels[name]
    return None, None


def _launch(klass: RawClass, function: RawFunction, code: FoundCode | None, number: int) -> CapturedLaunch:
    takes_nothing = code is not None and not code.parameters
    complete = not klass.flags & INCOMPLETE or takes_nothing
    return CapturedLaunch(
        number=number,
        grid=klass.grid,
        block=klass.block,
        shared=klass.shared,
        cluster=klass.cluster,
        device=klass.device,
        streams=tuple(bit for bit in range(MOST_STREAM + 1) if klass.streams >> bit & 1),
        count=klass.count,
        timed=klass.timed,
        seconds=klass.ns * NANO,
        least=klass.least_ns * NANO,
        arguments=_arguments(function, klass.arguments, klass.pointers) if complete else (),
        cooperative=bool(klass.flags & COOPERATIVE),
        in_graph=bool(klass.flags & IN_GRAPH),
        complete=complete,
    )


def _arguments(
    function: RawFunction, data: bytes, pointers: Iterable[RawPointer]
) -> tuple[CapturedArgument, ...]:
    listed = list(pointers)
    made = []
    for offset, size in function.params:
        inside = tuple(
            ArgumentPointer(p.at - offset, PointedMemory(p.base, p.size, p.offset, p.kind), p.least)
            for p in listed
            if offset <= p.at < offset + size
        )
        made.append(CapturedArgument(offset, size, data[offset : offset + size].hex(), inside))
    return tuple(made)


def _blurred(klass: RawClass) -> bytes:
    """Its arguments with alignments in the place of addresses."""
    data = bytearray(klass.arguments)
    for pointer in klass.pointers:
        address = pointer.base + pointer.offset
        data[pointer.at : pointer.at + 8] = min(address & -address, 256).to_bytes(8, "little")
    return bytes(data)


def _merged(first: CapturedLaunch, second: CapturedLaunch) -> CapturedLaunch:
    """The same launch in two processes."""
    fastest = [launch.least for launch in (first, second) if launch.timed]
    return replace(
        first,
        streams=tuple(sorted({*first.streams, *second.streams})),
        count=first.count + second.count,
        timed=first.timed + second.timed,
        seconds=first.seconds + second.seconds,
        least=min(fastest, default=0.0),
    )


def _kernel(name: str, demangled: str, one: _Gathered) -> CapturedKernel:
    launches = sorted(one.launches.values(), key=lambda launch: (-launch.total, launch.number))
    function = one.function
    return CapturedKernel(
        name=name,
        demangled=demangled,
        image=one.image.image.digest if one.image else "",
        code=one.code.digest if one.code else "",
        count=sum(launch.count for launch in launches),
        timed=sum(launch.timed for launch in launches),
        seconds=sum(launch.total for launch in launches),
        launches=tuple(launches),
        registers=_known(function.registers),
        static_shared=_known(function.shared),
        local=_known(function.local),
        ptx_version=_known(function.ptx),
        binary_version=_known(function.binary),
        sources=one.image.sources if one.image else (),
    )


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _kept(
    kept: RawKept, trace: RawTrace, files: StoredFiles, numbers: Mapping[tuple[str, int], int]
) -> KeptLaunch:
    klass = next(c for c in trace.classes if c.index == kept.klass)
    function = next(f for f in trace.functions if f.index == klass.function)
    return KeptLaunch(
        kernel=_text(function.name),
        launch=numbers[trace.name, kept.klass],
        arguments=_arguments(function, kept.arguments, kept.pointers),
        ranges=tuple(_range(one, trace.name, files) for one in kept.ranges),
    )


def _range(one: RawRange, trace: str, files: StoredFiles) -> KeptRange:
    before, after, again = (files.arrays.get((trace, n), "") for n in (one.before, one.after, one.again))
    whole = bool(before and after)
    return KeptRange(
        one.base,
        one.start,
        one.size if whole else one.extent,
        before if whole else "",
        after if whole else "",
        again if whole else "",
    )


def _devices(traces: Sequence[RawTrace]) -> tuple[CapturedDevice, ...]:
    found = {device.index: _device(device) for trace in traces for device in trace.devices}
    return tuple(found[index] for index in sorted(found))


def _device(raw: RawDevice) -> CapturedDevice:
    # Kilohertz and bits; two transfers a cycle.
    bandwidth = 2e3 * raw.clock * raw.bus / 8
    capability = 10 * raw.major + raw.minor
    name = raw.name.decode(errors="replace")
    return CapturedDevice(raw.index, name, capability, raw.sms, raw.memory, raw.llc, bandwidth or None)


def _process(trace: RawTrace) -> CapturedProcess:
    process, counters = trace.process, trace.counters
    return CapturedProcess(
        pid=process.pid if process else 0,
        parent=process.parent if process else 0,
        command=process.command.decode(errors="replace") if process else "",
        ended=bool(counters.ended),
        launches=sum(klass.count for klass in trace.classes),
    )


def _successions(
    traces: Sequence[RawTrace], numbers: Mapping[tuple[str, int], int]
) -> tuple[Succession, ...]:
    pairs: Counter[tuple[int, int]] = Counter()
    for trace in traces:
        last: dict[int, int] = defaultdict(lambda: -1)
        for klass, stream in trace.order:
            number = numbers[trace.name, klass]
            if last[stream] >= 0:
                pairs[last[stream], number] += 1
            last[stream] = number
    common = pairs.most_common(MOST_SUCCESSIONS)
    return tuple(Succession(before, after, times) for (before, after), times in common)


def _text(name: bytes) -> str:
    """A name that is no UTF-8 shows its bytes; one that is too long ends with a mark."""
    return cut(name.decode("utf-8", "backslashreplace"), LONGEST_NAME)


def _notes(traces: Sequence[RawTrace]) -> Iterable[str]:
    all_of = [trace.counters for trace in traces]
    if len(traces) > 1:
        yield f"{len(traces)} processes used CUDA; their launches are put together, kernels by name and code"
    for trace, counters in zip(traces, all_of, strict=True):
        who = f"process {trace.process.pid}" if trace.process else f"the process of {trace.name}.trace"
        for note in trace.notes:
            yield f"{who}: {note}"
        if not counters.ended:
            yield f"{who} did not come to its end: times of its last launches may be missing"
        if counters.forks:
            times = counted(counters.forks, "time")
            yield f"{who} forked {times}; what a child does with its parent's CUDA is not seen"
        if counters.full:
            why = "the disk was full" if counters.full == 2 else "there was too much of it"
            yield f"{who}: its trace could not grow ({why}): later kernels are missing"
    if failed := sum(counters.failed for counters in all_of):
        yield f"{counted(failed, 'launch', 'launches')} failed and are not counted"
    if dropped := sum(counters.dropped for counters in all_of):
        yield f"CUPTI lost {counted(dropped, 'record')}: that many times are missing"
    if unseen := sum(counters.unseen for counters in all_of):
        yield f"of {counted(unseen, 'launch', 'launches')} there is no record"
    if left := sum(counters.images_left for counters in all_of):
        yield f"{counted(left, 'module')} too large to be stored: the code of their kernels is not known"
    if graphs := sum(counters.graphs for counters in all_of):
        yield f"CUDA graphs were launched {graphs} times; their kernels are counted one by one"
    if (devices := len({device.index for trace in traces for device in trace.devices})) > 1:
        yield f"{devices} devices were used; shares are of the time of all of them"
