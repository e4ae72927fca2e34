"""What the library inside a process wrote (`native/trace.h`), read back.

A torn or damaged file gives what of it makes sense, and a note.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

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
class RawDevice:
    index: int
    sms: int
    major: int
    minor: int
    clock: int  # kHz
    bus: int  # bits
    memory: int
    llc: int
    name: bytes


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


@dataclass(frozen=True)
class RawTrace:
    name: str  # what the names of its files begin with
    counters: TraceCounters
    process: RawProcess | None = None
    devices: tuple[RawDevice, ...] = ()
    functions: tuple[RawFunction, ...] = ()
    classes: tuple[RawClass, ...] = ()
    images: tuple[RawImage, ...] = ()
    kept: tuple[RawKept, ...] = ()
    order: tuple[tuple[int, int], ...] = ()  # class and stream of each launch
    notes: tuple[str, ...] = ()


@dataclass
class _TraceReading:
    process: RawProcess | None = None
    devices: list[RawDevice] = field(default_factory=list)
    functions: list[RawFunction] = field(default_factory=list)
    classes: list[RawClass] = field(default_factory=list)
    images: list[RawImage] = field(default_factory=list)
    kept: list[RawKept] = field(default_factory=list)
    order: tuple[tuple[int, int], ...] = ()
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
    reading = _TraceReading()
    if length < _HEADER.unpack_from(data)[1]:
        reading.notes.append("its trace is torn: what was written last is missing")
    for kind, body in _records(data, length, reading.notes):
        try:
            _READERS.get(kind, _ignored)(reading, body)
        except (struct.error, ValueError, IndexError):
            reading.notes.append(f"a record of its trace (kind {kind}) is damaged and left out")
    functions = {function.index: function for function in reading.functions}
    classes = {c.index: c for c in reading.classes if c.function in functions}
    return RawTrace(
        name,
        counters,
        reading.process,
        tuple(reading.devices),
        tuple(functions.values()),
        tuple(classes.values()),
        tuple(reading.images),
        tuple(kept for kept in reading.kept if kept.klass in classes),
        tuple(entry for entry in reading.order if entry[0] in classes),
        tuple(dict.fromkeys(reading.notes)),
    )


def _records(data: bytes, length: int, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    at = _HEADER.size
    while at + _HEAD.size <= length:
        kind, size = _HEAD.unpack_from(data, at)
        if size < _HEAD.size or at + size > length:
            notes.append("its trace is damaged: nothing is read from there on")
            return
        yield kind, data[at + _HEAD.size : at + size]
        at += size


def _ignored(reading: _TraceReading, body: bytes) -> None:
    """A record of a later version."""


def _process(reading: _TraceReading, body: bytes) -> None:
    pid, parent, driver, _, command = _PROCESS.unpack_from(body)
    reading.process = RawProcess(pid, parent, driver, command.partition(b"\0")[0].rstrip())


def _device(reading: _TraceReading, body: bytes) -> None:
    *numbers, name = _DEVICE.unpack_from(body)
    index, sms, major, minor, clock, bus, memory, llc = numbers
    name = name.partition(b"\0")[0]
    reading.devices.append(RawDevice(index, sms, major, minor, clock, bus, memory, llc, name))


def _function(reading: _TraceReading, body: bytes) -> None:
    index, count, registers, shared, local, ptx, binary, length = _FUNCTION.unpack_from(body)
    at = _FUNCTION.size
    params = _several(_PAIR, body, at, count)
    at += count * _PAIR.size
    if at + length > len(body):
        raise ValueError("a name that ends outside its record")
    name = body[at : at + length]
    pairs = tuple((offset, size) for offset, size in params)
    images = len(reading.images)
    reading.functions.append(RawFunction(index, name, pairs, registers, shared, local, ptx, binary, images))


def _class(reading: _TraceReading, body: bytes) -> None:
    found = _CLASS.unpack_from(body)
    index, function, *geometry = found[:12]
    device, flags, count, timed, ns, least_ns, streams, nbytes, listed = found[12:]
    at = _CLASS.size
    pointers = _pointers(body, at, listed)
    at += listed * _POINTER.size
    if at + nbytes > len(body):
        raise ValueError("arguments that end outside their record")
    gx, gy, gz, bx, by, bz, shared, cx, cy, cz = geometry
    made = RawClass(
        index, function, (gx, gy, gz), (bx, by, bz), shared, (cx, cy, cz), device, flags, count, timed, ns,
        least_ns, streams, pointers, body[at : at + nbytes],
    )  # fmt: skip
    reading.classes.append(made)


def _image(reading: _TraceReading, body: bytes) -> None:
    reading.images.append(RawImage(*_IMAGE.unpack_from(body)))


def _kept(reading: _TraceReading, body: bytes) -> None:
    klass, range_count, listed, nbytes = _KEPT.unpack_from(body)
    at = _KEPT.size
    ranges = tuple(RawRange(*one[:7]) for one in _several(_RANGE, body, at, range_count))
    at += range_count * _RANGE.size
    pointers = _pointers(body, at, listed)
    at += listed * _POINTER.size
    if at + nbytes > len(body):
        raise ValueError("arguments that end outside their record")
    reading.kept.append(RawKept(klass, ranges, pointers, body[at : at + nbytes]))


def _note(reading: _TraceReading, body: bytes) -> None:
    reading.notes.append(body.partition(b"\0")[0].decode(errors="replace"))


def _order(reading: _TraceReading, body: bytes) -> None:
    room, count = _PAIR.unpack_from(body)
    entries = _several(_PAIR, body, _PAIR.size, min(count, room))
    reading.order += tuple((klass, stream) for klass, stream in entries)


def _pointers(body: bytes, at: int, count: int) -> tuple[RawPointer, ...]:
    found = _several(_POINTER, body, at, count)
    return tuple(
        RawPointer(place, KINDS.get(kind, "device"), base, size, offset, least)
        for place, kind, base, size, offset, least in found
        if offset <= size
    )


def _several(form: struct.Struct, body: bytes, at: int, count: int) -> list[tuple[int, ...]]:
    if at + count * form.size > len(body):
        raise ValueError("a list that ends outside its record")
    return [form.unpack_from(body, at + i * form.size) for i in range(count)]


_READERS = {
    PROCESS: _process,
    DEVICE: _device,
    FUNCTION: _function,
    CLASS: _class,
    IMAGE: _image,
    KEPT: _kept,
    NOTE: _note,
    ORDER: _order,
}
