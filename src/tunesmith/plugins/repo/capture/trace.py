"""What the library inside a process wrote (`native/trace.h`), read back.

A torn or damaged file gives what of it makes sense, and a note.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path

from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.base.codec import Malformed
from tunesmith.base.files import NotPlain, explain_disk_errors, open_plain, read_plain
from tunesmith.base.text import format_count, truncate_text
from tunesmith.plugins.repo.capture.records import (
    ARRAYS,
    FORMAT,
    IMAGES,
    RAW,
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
    read_sized,
    write_capture,
)

MAGIC = b"TSWATCH1"
_HEADER = struct.Struct("<8s15Q")
_HEAD = struct.Struct("<II")
_PROCESS = struct.Struct("<iiii400s")
_DEVICE = struct.Struct("<6IQQ128s")
_FUNCTION = struct.Struct("<II5iI")
_POINTER = struct.Struct("<IIQQQQ")
_CLASS = struct.Struct("<II3I3II3III5QII")
_IMAGE = struct.Struct("<IIQ")
_KEPT = struct.Struct("<IIII")
_RANGE = struct.Struct("<QQQQIIII")
_PAIR = struct.Struct("<II")
PROCESS, DEVICE, FUNCTION, CLASS, IMAGE, KEPT, NOTE, ORDER = range(1, 9)
COOPERATIVE, IN_GRAPH, INCOMPLETE = 1, 2, 4
KINDS = {1: "device", 2: "managed", 3: "host"}


@dataclass(frozen=True)
class TraceCounters:
    launches: int
    failed: int
    graphs: int
    dropped: int
    forks: int
    unseen: int
    copies: int
    copied_bytes: int
    copied_ns: int
    first_ns: int
    last_ns: int
    ended: int  # 1: the process came to its end
    full: int  # 1: the trace is as long as it may be; 2: the disk was full
    images_left: int


@dataclass(frozen=True)
class RawProcess:
    pid: int
    parent: int
    driver: int
    command: bytes


@dataclass(frozen=True)
class RawFunction:
    index: int
    name: bytes
    params: tuple[tuple[int, int], ...]  # offset and size
    registers: int  # these are -1 where the driver did not say
    shared: int
    local: int
    ptx: int
    binary: int
    after: int  # records of images before it


@dataclass(frozen=True)
class RawPointer:
    at: int  # byte of all arguments
    kind: str
    base: int
    size: int
    offset: int
    least: int


@dataclass(frozen=True)
class RawClass:
    index: int
    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int]
    device: int
    flags: int
    count: int
    timed: int
    ns: int
    least_ns: int
    streams: int  # a bit for each
    pointers: tuple[RawPointer, ...]
    arguments: bytes


@dataclass(frozen=True)
class RawImage:
    module: int
    file: int  # 0: it was not stored
    size: int


@dataclass(frozen=True)
class RawRange:
    base: int
    start: int
    size: int
    extent: int
    before: int  # numbers of files; 0: none
    after: int
    again: int


@dataclass(frozen=True)
class RawKept:
    klass: int
    ranges: tuple[RawRange, ...]
    pointers: tuple[RawPointer, ...]
    arguments: bytes


@dataclass
class RawTrace:
    """It grows while it is read."""

    name: str  # what the names of its files begin with
    counters: TraceCounters
    process: RawProcess | None = None
    devices: list[CapturedDevice] = field(default_factory=list)
    functions: list[RawFunction] = field(default_factory=list)
    classes: list[RawClass] = field(default_factory=list)
    images: list[RawImage] = field(default_factory=list)
    kept: list[RawKept] = field(default_factory=list)
    order: list[tuple[int, int]] = field(default_factory=list)  # class and stream of each launch
    notes: list[str] = field(default_factory=list)


def read_counters(data: bytes) -> TraceCounters | None:
    """Of the beginning of a trace, which may still grow; None where it is none."""
    if len(data) < _HEADER.size:
        return None
    magic, _, *counted = _HEADER.unpack_from(data)
    return TraceCounters(*counted) if magic == MAGIC else None


def read_trace(name: str, data: bytes) -> RawTrace | None:
    """None where this is no trace at all."""
    counters = read_counters(data)
    if counters is None:
        return None
    length = min(_HEADER.unpack_from(data)[1], len(data))
    trace = RawTrace(name, counters)
    if length < _HEADER.unpack_from(data)[1]:
        trace.notes.append("its trace is torn: what was written last is missing")
    for kind, body in _split_records(data, length, trace.notes):
        try:
            if kind in _READERS:  # else it is of a later version
                _READERS[kind](trace, body)
        except (struct.error, ValueError, IndexError):
            trace.notes.append(f"a record of its trace (kind {kind}) is damaged and left out")
    functions = {function.index: function for function in trace.functions}
    classes = {c.index: c for c in trace.classes if c.function in functions}
    trace.functions, trace.classes = [*functions.values()], [*classes.values()]
    trace.kept = [kept for kept in trace.kept if kept.klass in classes]
    trace.order = [entry for entry in trace.order if entry[0] in classes]
    trace.notes = [*dict.fromkeys(trace.notes)]
    return trace


def _split_records(data: bytes, length: int, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    at = _HEADER.size
    while at + _HEAD.size <= length:
        kind, size = _HEAD.unpack_from(data, at)
        if size < _HEAD.size or at + size > length:
            notes.append("its trace is damaged: nothing is read from there on")
            return
        yield kind, data[at + _HEAD.size : at + size]
        at += size


def _read_process(trace: RawTrace, body: bytes) -> None:
    pid, parent, driver, _, command = _PROCESS.unpack_from(body)
    trace.process = RawProcess(pid, parent, driver, command.partition(b"\0")[0].rstrip())


def _read_device(trace: RawTrace, body: bytes) -> None:
    index, sms, major, minor, clock, bus, memory, llc, name = _DEVICE.unpack_from(body)
    bandwidth = 2e3 * clock * bus / 8  # kilohertz and bits; two transfers a cycle
    shown = name.partition(b"\0")[0].decode(errors="replace")
    sizes = (10 * major + minor, sms, memory, llc)
    trace.devices.append(CapturedDevice(index, shown, *sizes, bandwidth or None))


def _read_raw_function(trace: RawTrace, body: bytes) -> None:
    index, count, registers, shared, local, ptx, binary, length = _FUNCTION.unpack_from(body)
    at = _FUNCTION.size
    params = _unpack_many(_PAIR, body, at, count)
    at += count * _PAIR.size
    if at + length > len(body):
        raise ValueError("a name that ends outside its record")
    name = body[at : at + length]
    pairs = tuple((offset, size) for offset, size in params)
    images = len(trace.images)
    trace.functions.append(RawFunction(index, name, pairs, registers, shared, local, ptx, binary, images))


def _read_raw_class(trace: RawTrace, body: bytes) -> None:
    found = _CLASS.unpack_from(body)
    index, function, *geometry = found[:12]
    device, flags, count, timed, ns, least_ns, streams, nbytes, listed = found[12:]
    at = _CLASS.size
    pointers = _read_pointers(body, at, listed)
    at += listed * _POINTER.size
    if at + nbytes > len(body):
        raise ValueError("arguments that end outside their record")
    gx, gy, gz, bx, by, bz, shared, cx, cy, cz = geometry
    made = RawClass(
        index, function, (gx, gy, gz), (bx, by, bz), shared, (cx, cy, cz), device, flags, count, timed, ns,
        least_ns, streams, pointers, body[at : at + nbytes],
    )  # fmt: skip
    trace.classes.append(made)


def _read_kept(trace: RawTrace, body: bytes) -> None:
    klass, range_count, listed, nbytes = _KEPT.unpack_from(body)
    at = _KEPT.size
    ranges = tuple(RawRange(*one[:7]) for one in _unpack_many(_RANGE, body, at, range_count))
    at += range_count * _RANGE.size
    pointers = _read_pointers(body, at, listed)
    at += listed * _POINTER.size
    if at + nbytes > len(body):
        raise ValueError("arguments that end outside their record")
    trace.kept.append(RawKept(klass, ranges, pointers, body[at : at + nbytes]))


def _read_note(trace: RawTrace, body: bytes) -> None:
    trace.notes.append(body.partition(b"\0")[0].decode(errors="replace"))


def _read_order(trace: RawTrace, body: bytes) -> None:
    room, count = _PAIR.unpack_from(body)
    entries = _unpack_many(_PAIR, body, _PAIR.size, min(count, room))
    trace.order += [(klass, stream) for klass, stream in entries]


def _read_pointers(body: bytes, at: int, count: int) -> tuple[RawPointer, ...]:
    found = _unpack_many(_POINTER, body, at, count)
    return tuple(
        RawPointer(place, KINDS.get(kind, "device"), base, size, offset, least)
        for place, kind, base, size, offset, least in found
        if offset <= size
    )


def _unpack_many(form: struct.Struct, body: bytes, at: int, count: int) -> list[tuple[int, ...]]:
    if at + count * form.size > len(body):
        raise ValueError("a list that ends outside its record")
    return [form.unpack_from(body, at + i * form.size) for i in range(count)]


_READERS: Mapping[int, Callable[[RawTrace, bytes], None]] = {
    PROCESS: _read_process,
    DEVICE: _read_device,
    FUNCTION: _read_raw_function,
    CLASS: _read_raw_class,
    IMAGE: lambda trace, body: trace.images.append(RawImage(*_IMAGE.unpack_from(body))),
    KEPT: _read_kept,
    NOTE: _read_note,
    ORDER: _read_order,
}


# -- What processes wrote, put together to one `Capture`.


MAX_ORDER = 20_000
MAX_SUCCESSIONS = 20_000
MAX_STREAM = 63  # the number of all streams for which there was none left
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


def assemble_capture(
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
        codes = {function.index: _find_code(trace, function, files) for function in trace.functions}
        for klass in trace.classes:
            function, found = functions[klass.function], codes[klass.function]
            numbers[trace.name, klass.index] = _gather_launch(klass, function, found, gathered, fresh)
    names = demangled([key[0] for key in gathered])
    kernels = [_gathered_kernel(key[0], names.get(key[0], key[0]), one) for key, one in gathered.items()]
    kernels.sort(key=lambda kernel: (-kernel.seconds, -kernel.count, kernel.name))
    longest = max(traces, key=lambda trace: len(trace.order), default=None)
    order = [numbers[longest.name, klass] for klass, _ in longest.order[:MAX_ORDER]] if longest else []
    used = {one.image.image.digest for one in gathered.values() if one.image}
    images = {found.image.digest: found.image for found in files.images.values()}
    processes = tuple(_captured_process(trace) for trace in traces)
    devices = {device.ordinal: device for trace in traces for device in trace.devices}
    return Capture(
        format=FORMAT,
        program=replace(program, processes=processes),
        driver=max((t.process.driver for t in traces if t.process is not None), default=0),
        devices=tuple(devices[ordinal] for ordinal in sorted(devices)),
        kernels=tuple(kernels),
        successions=_count_successions(traces, numbers),
        order=tuple(order),
        images=tuple(image for digest, image in sorted(images.items()) if digest in used),
        kept=tuple(_kept_launch(one, t, files, numbers) for t in traces for one in t.kept if one.ranges),
        copies=_count_copies([trace.counters for trace in traces]),
        span=_measure_span([trace.counters for trace in traces]),
        graphs=sum(trace.counters.graphs for trace in traces),
        dropped=sum(trace.counters.dropped for trace in traces),
        notes=tuple(dict.fromkeys((*notes, *_trace_notes(traces)))),
    )


def _count_copies(counters: Sequence[TraceCounters]) -> CapturedCopies:
    count, size = sum(one.copies for one in counters), sum(one.copied_bytes for one in counters)
    return CapturedCopies(count, size, sum(one.copied_ns for one in counters) * NANO)


def _measure_span(counters: Sequence[TraceCounters]) -> float:
    starts = [one.first_ns for one in counters if one.first_ns]
    return max(0, max(one.last_ns for one in counters) - min(starts)) * NANO if starts else 0.0


def _gather_launch(
    klass: RawClass,
    function: RawFunction,
    found: tuple[FoundImage | None, FoundCode | None],
    gathered: dict[KernelKey, _Gathered],
    fresh: Iterator[int],
) -> int:
    """The number of its launch."""
    image, code = found
    told = (function.registers, function.shared, function.local)
    key = (_decode_name(function.name), code.digest if code else "", told)
    kernel = gathered.setdefault(key, _Gathered(function, image, code))
    geometry = (klass.grid, klass.block, klass.shared, klass.cluster, klass.device, klass.flags)
    likeness = (*geometry, _mask_addresses(klass))
    known = kernel.launches.get(likeness)
    launch = _captured_launch(klass, function, code, known.number if known else next(fresh))
    kernel.launches[likeness] = _merge_launches(known, launch) if known else launch
    return launch.number


def _find_code(
    trace: RawTrace, function: RawFunction, files: StoredFiles
) -> tuple[FoundImage | None, FoundCode | None]:
    """Of the image loaded last before the function was first seen; else of any that has it."""
    name = _decode_name(function.name)
    places = [*range(function.after - 1, -1, -1), *range(function.after, len(trace.images))]
    for place in places:
        found = files.images.get((trace.name, trace.images[place].file))
        if found is not None and name in found.kernels:
            return found, found.kernels[name]
    return None, None


def _captured_launch(
    klass: RawClass, function: RawFunction, code: FoundCode | None, number: int
) -> CapturedLaunch:
    takes_nothing = code is not None and not code.parameters
    complete = not klass.flags & INCOMPLETE or takes_nothing
    return CapturedLaunch(
        number=number,
        grid=klass.grid,
        block=klass.block,
        shared=klass.shared,
        cluster=klass.cluster,
        device=klass.device,
        streams=tuple(bit for bit in range(MAX_STREAM + 1) if klass.streams >> bit & 1),
        count=klass.count,
        timed=klass.timed,
        seconds=klass.ns * NANO,
        least=klass.least_ns * NANO,
        arguments=_captured_arguments(function, klass.arguments, klass.pointers) if complete else (),
        cooperative=bool(klass.flags & COOPERATIVE),
        in_graph=bool(klass.flags & IN_GRAPH),
        complete=complete,
    )


def _captured_arguments(
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


def _mask_addresses(klass: RawClass) -> bytes:
    """Its arguments with alignments in the place of addresses."""
    data = bytearray(klass.arguments)
    for pointer in klass.pointers:
        address = pointer.base + pointer.offset
        data[pointer.at : pointer.at + 8] = min(address & -address, 256).to_bytes(8, "little")
    return bytes(data)


def _merge_launches(first: CapturedLaunch, second: CapturedLaunch) -> CapturedLaunch:
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


def _gathered_kernel(name: str, demangled: str, one: _Gathered) -> CapturedKernel:
    launches = sorted(one.launches.values(), key=lambda launch: (-launch.total, launch.number))
    raw = one.function
    registers, static_shared, local, ptx_version, binary_version = (
        value if value >= 0 else None for value in (raw.registers, raw.shared, raw.local, raw.ptx, raw.binary)
    )
    return CapturedKernel(
        name=name,
        demangled=demangled,
        image=one.image.image.digest if one.image else "",
        code=one.code.digest if one.code else "",
        count=sum(launch.count for launch in launches),
        timed=sum(launch.timed for launch in launches),
        seconds=sum(launch.total for launch in launches),
        launches=tuple(launches),
        registers=registers,
        static_shared=static_shared,
        local=local,
        ptx_version=ptx_version,
        binary_version=binary_version,
        sources=one.image.sources if one.image else (),
    )


def _kept_launch(
    kept: RawKept, trace: RawTrace, files: StoredFiles, numbers: Mapping[tuple[str, int], int]
) -> KeptLaunch:
    klass = next(c for c in trace.classes if c.index == kept.klass)
    function = next(f for f in trace.functions if f.index == klass.function)
    return KeptLaunch(
        kernel=_decode_name(function.name),
        launch=numbers[trace.name, kept.klass],
        arguments=_captured_arguments(function, kept.arguments, kept.pointers),
        ranges=tuple(_kept_range(one, trace.name, files) for one in kept.ranges),
    )


def _kept_range(one: RawRange, trace: str, files: StoredFiles) -> KeptRange:
    before, after, again = (files.arrays.get((trace, n), "") for n in (one.before, one.after, one.again))
    if not (before and after):
        return KeptRange(one.base, one.start, one.extent, "", "")
    return KeptRange(one.base, one.start, one.size, before, after, again)


def _captured_process(trace: RawTrace) -> CapturedProcess:
    process, counters = trace.process, trace.counters
    return CapturedProcess(
        pid=process.pid if process else 0,
        parent=process.parent if process else 0,
        command=process.command.decode(errors="replace") if process else "",
        ended=bool(counters.ended),
        launches=sum(klass.count for klass in trace.classes),
    )


def _count_successions(
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
    common = pairs.most_common(MAX_SUCCESSIONS)
    return tuple(Succession(before, after, times) for (before, after), times in common)


def _decode_name(name: bytes) -> str:
    """A name that is no UTF-8 shows its bytes; one that is too long ends with a mark."""
    return truncate_text(name.decode("utf-8", "backslashreplace"), LONGEST_NAME)


def _trace_notes(traces: Sequence[RawTrace]) -> Iterable[str]:
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
            times = format_count(counters.forks, "time")
            yield f"{who} forked {times}; what a child does with its parent's CUDA is not seen"
        if counters.full:
            why = "the disk was full" if counters.full == 2 else "there was too much of it"
            yield f"{who}: its trace could not grow ({why}): later kernels are missing"
    if failed := sum(counters.failed for counters in all_of):
        yield f"{format_count(failed, 'launch', 'launches')} failed and are not counted"
    if dropped := sum(counters.dropped for counters in all_of):
        yield f"CUPTI lost {format_count(dropped, 'record')}: that many times are missing"
    if unseen := sum(counters.unseen for counters in all_of):
        yield f"of {format_count(unseen, 'launch', 'launches')} there is no record"
    if left := sum(counters.images_left for counters in all_of):
        yield f"{format_count(left, 'module')} too large to be stored: the code of their kernels is not known"
    if graphs := sum(counters.graphs for counters in all_of):
        yield f"CUDA graphs were launched {graphs} times; their kernels are counted one by one"
    if (devices := len({device.ordinal for trace in traces for device in trace.devices})) > 1:
        yield f"{devices} devices were used; shares are of the time of all of them"


# -- Names as people write them, from the host's C++ library, which knows how compilers spell them.


_SYMBOLS = r"\(\)|\[\]|<=>|->\*?|<<=|>>=|<<|>>|\+\+|--|&&|\|\||[-+*/%^&|!=<>]=|[-+*/%^&|~!=<>,]"
_PIECE = re.compile(rf"""operator(?:(?:{_SYMBOLS})(?: (?=<))?|[ "][^(]*)|::|\w+|.""", re.DOTALL)
_CLOSING = {"(": ")", "<": ">", "{": "}", "[": "]"}
LONGEST = 16_000  # characters: nobody reads more, and demangling may take time and memory


def demangle_names(names: Sequence[str]) -> Mapping[str, str]:
    """Each with its plain name; with itself where it is no mangled one, or nobody here can tell."""
    return {name: _demangle_name(name) for name in names}


def _demangle_name(name: str) -> str:
    tools = _load_demangler()
    if tools is None or not name.startswith("_Z") or len(name) > LONGEST or "\0" in name:
        return name
    demangle, free = tools
    status = ctypes.c_int(-1)
    found = demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        text = ctypes.cast(found, ctypes.c_char_p).value
    finally:
        free(found)
    return text.decode(errors="backslashreplace") if status.value == 0 and text else name


def function_name(name: str) -> str:
    """`void a::(anonymous namespace)::k<float, 4>(float*)` is `a::k`: nothing of what it gives back and
    takes, of templates' arguments and of what has no name."""
    scopes, word, is_over = list[str](), "", False
    for piece in _name_pieces(name.strip()):
        if piece == "::":
            scopes, word, is_over = [*scopes, word], "", False
        elif is_over:
            pass
        elif piece == " ":
            scopes, word = [], ""
        elif piece == "(":
            is_over = word != ""  # its arguments; before a name it is a scope without one
        else:
            word += piece
    return "::".join(filter(None, [*scopes, word.rstrip()]))


def _name_pieces(name: str) -> Iterator[str]:
    """Words and signs; of parentheses with all in them the first, and of other brackets nothing."""
    at = 0
    while (found := _PIECE.match(name, at)) is not None:
        piece, start, at = found[0], at, found.end()
        if piece in _CLOSING:
            at = _past_brackets(name, start)
            # Those of a lambda, or of a number that is still to be put in, are part of a name.
            piece = name[start:at] if piece == "{" else piece.strip("<[")
        yield piece


def _past_brackets(name: str, at: int) -> int:
    due: list[str] = []
    for end in range(at, len(name)):
        sign = name[end]
        if sign in _CLOSING:
            due.append(_CLOSING[sign])
        elif sign in due and (sign != ">" or due[-1] == ">"):  # within parentheses it compares
            while due.pop() != sign:
                pass
            if not due:
                return end + 1
    return len(name)


@cache
def _load_demangler() -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer] | None:
    for path in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            library = ctypes.CDLL(path)
            demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        free.restype, free.argtypes = None, (ctypes.c_void_p,)
        return demangle, free
    return None


# -- From what processes left in a capture's folder to `capture.json` and the files it names.


_FILE = re.compile(r"(?P<trace>\d+(?:-\d+)?)-(?P<what>image|kept)-(?P<number>\d+)\.bin")
_MAX_SOURCES = 16
_COUNTERS = 256  # bytes, more than a trace's header has
# Headers that every module includes.
_OF_CUDA = re.compile(r"(?:^|/)(?:cuda|crt|cooperative_groups|sm_\d|device_|vector_|texture|surface|math_)")


def counters_in(folder: Path) -> list[TraceCounters]:
    """How far the processes have come."""
    found = []
    for path in sorted((folder / RAW).glob("*.trace")):
        try:
            counters = read_counters(read_plain(path, _COUNTERS))
        except OSError:
            continue  # a process is only making it
        if counters is not None:
            found.append(counters)
    return found


def traces_in(folder: Path) -> tuple[list[RawTrace], list[str]]:
    """With notes on those that are none."""
    traces, notes = [], []
    for path in sorted((folder / RAW).glob("*.trace")):
        try:
            found = read_trace(path.stem, read_sized(path))
        except NotPlain as error:
            found = None
            notes.append(f"{path.name} is left out: {error.strerror}")
        if found is not None:
            traces.append(found)
        else:
            notes.append(f"{path.name} is no trace, and left out")
    return traces, notes


def collect_capture(
    folder: Path, program: CapturedProgram, traces: Sequence[RawTrace], notes: Sequence[str] = ()
) -> Capture:
    """Everything put together and written; files in `raw` that are used get their places, others go."""
    names = {function.name for trace in traces for function in trace.functions if function.name}
    with explain_disk_errors("put the capture together", folder):
        files = _store_raw_files(folder, names)
        capture = assemble_capture(program, traces, files, demangle_names, notes)
    write_capture(folder, capture)
    return capture


def _store_raw_files(folder: Path, names: Iterable[bytes]) -> StoredFiles:
    images: dict[tuple[str, int], FoundImage] = {}
    arrays: dict[tuple[str, int], str] = {}
    wanted = frozenset(names)
    for path in sorted((folder / RAW).glob("*.bin")):
        named = _FILE.fullmatch(path.name)
        if named is None:
            continue
        key = named["trace"], int(named["number"])
        try:
            digest = _hash_file(path)
            if named["what"] == "kept":
                arrays[key] = digest
                _move_file(path, folder / ARRAYS / f"{digest}.bin")
            elif (found := found_image(read_sized(path), digest, wanted)) is not None:
                images[key] = found
                _move_file(path, folder / found.image.file)
            else:
                path.unlink()
        except NotPlain:
            continue
    return StoredFiles(images, arrays)


def _hash_file(path: Path) -> str:
    """Of a file that may be larger than memory."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move_file(path: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    path.replace(target)


def found_image(data: bytes, digest: str, names: Iterable[bytes]) -> FoundImage | None:
    """None where none of these kernels is in it."""
    inside = [name for name in names if name in data]
    if not inside:
        return None
    if not data.startswith(b"\x7fELF"):
        text = data.lstrip()[:400]
        kind = "ptx" if text.startswith((b"//", b".version")) else "bin"
        return FoundImage(ModuleImage(digest, kind, len(data)))
    try:
        cubin = Cubin(data)
    except Malformed:
        return FoundImage(ModuleImage(digest, "bin", len(data)))
    kernels = {
        symbol: FoundCode(cubin.kernel_digest(symbol), cubin.kernels[symbol].parameters)
        for symbol in (name.decode(errors="replace") for name in inside)
        if symbol in cubin.kernels
    }
    if not kernels:
        return None
    return FoundImage(ModuleImage(digest, "cubin", len(data)), kernels, sources_of(cubin))


def sources_of(cubin: Cubin) -> tuple[str, ...]:
    """Files that its line tables name, without CUDA's own headers."""
    named = [name for name in cubin.source_names() if not _OF_CUDA.search(name)]
    return tuple(sorted(named, key=lambda name: not name.endswith((".cu", ".py")))[:_MAX_SOURCES])


def folders_made(folder: Path) -> None:
    for name in (RAW, IMAGES, ARRAYS):
        (folder / name).mkdir(parents=True, exist_ok=True)
