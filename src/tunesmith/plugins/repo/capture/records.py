"""What was seen of a running program, as `capture.json` holds it.

The folder of a capture:

    capture.json            a `Capture`, everything below
    images/DIGEST.cubin     modules as the driver loaded them (`.ptx` or `.bin` where it was something else)
    arrays/DIGEST.bin       contents of memory before and after a launch (`--keep`), by SHA-256 of the bytes
    raw/PID.trace           what the library inside a process wrote while it ran; `capture.json` is made of it

A digest is the SHA-256 of the file's bytes, in hexadecimal digits. Nothing names an absolute path but the
program's own command. Times are seconds on the device, sizes are bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, read_plain, write_whole
from tunesmith.base.text import sha256_hex

FORMAT = 1
CAPTURE, IMAGES, ARRAYS, RAW = "capture.json", "images", "arrays", "raw"

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class CapturedDevice:
    ordinal: int  # as the program numbers its devices
    name: str
    capability: int  # 90 for sm_90
    sms: int
    memory: int
    llc: int
    bandwidth: float | None = None  # bytes a second by its data: memory clock and width of the bus


@dataclass(frozen=True)
class CapturedProcess:
    """One that used CUDA."""

    pid: int
    parent: int
    command: str  # as the system shows it, cut
    ended: bool  # False: it was killed, crashed, or left by _exit; the last launches may be missing
    launches: int = 0


@dataclass(frozen=True)
class CapturedProgram:
    command: tuple[str, ...]  # empty: seen from inside, by `with tunesmith.capture()`
    started: str  # ISO 8601, UTC
    seconds: float  # from its start to its end
    exit_code: int | None  # negative: ended by that signal; None: not known
    processes: tuple[CapturedProcess, ...] = ()


@dataclass(frozen=True)
class PointedMemory:
    """The allocation that an address lies in, as the driver knows it. A framework that hands out parts of
    its own allocations (PyTorch's caching allocator) hides where an array ends: an upper bound."""

    base: int  # address of the allocation's first byte
    size: int
    offset: int  # of the pointer, from the base
    kind: str = "device"  # or "managed", "host"

    @property
    def extent(self) -> int:
        """Bytes from the pointer to the end of the allocation."""
        return self.size - self.offset

    @property
    def alignment(self) -> int:
        """The largest power of two that divides the address."""
        address = self.base + self.offset
        return address & -address


@dataclass(frozen=True)
class ArgumentPointer:
    at: int  # byte of the argument at which the address begins: 0, or the place in a struct
    memory: PointedMemory  # of the first of launches that are alike
    least: int = 0  # the smallest extent among them: no array is larger, where all are alike


@dataclass(frozen=True)
class CapturedArgument:
    offset: int  # in the kernel's parameters, as the driver says
    size: int
    data: str  # its bytes, in hexadecimal digits, as they lie in memory; empty where they could not be read
    pointers: tuple[ArgumentPointer, ...] = ()

    @property
    def value(self) -> bytes:
        return bytes.fromhex(self.data)

    @property
    def memory(self) -> PointedMemory | None:
        """Where the argument as a whole is a pointer into memory that the driver knows: that memory."""
        whole = self.size == 8 and len(self.pointers) == 1 and self.pointers[0].at == 0
        return self.pointers[0].memory if whole else None


@dataclass(frozen=True)
class CapturedLaunch:
    """Launches of one kernel that are alike: geometry, device, and arguments but for addresses.

    Two launches are alike where everything but addresses is equal, and these have the same alignment (up to
    256). Extents may differ: an allocator's blocks move. `arguments` are those of the first.
    """

    number: int  # its own in this capture, counted over all kernels
    grid: Triple
    block: Triple
    shared: int  # dynamic
    cluster: Triple  # (0, 0, 0): none was asked for
    device: int  # its ordinal
    streams: tuple[int, ...]  # numbers of their own, 0 for the default one
    count: int
    timed: int  # of these, how many the device's clock was read for
    seconds: float  # of all that were timed
    least: float  # of the fastest; 0 where none was timed
    arguments: tuple[CapturedArgument, ...]
    cooperative: bool = False
    in_graph: bool = False  # launched as a node of a CUDA graph
    complete: bool = True  # False: arguments were not looked at (limits), or could not be read

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def mean(self) -> float | None:
        return self.seconds / self.timed if self.timed else None

    @property
    def total(self) -> float:
        """Of all of them; those that were not timed by the mean of those that were."""
        return self.seconds * max(1.0, self.count / self.timed) if self.timed else 0.0


@dataclass(frozen=True)
class CapturedKernel:
    name: str  # as the driver names it: mangled
    demangled: str  # the same where it cannot be
    image: str  # digest of the module's image; empty where it was not to be had
    code: str  # digest of this kernel's machine code and what it uses (`Cubin.kernel_digest`); or empty
    count: int
    timed: int
    seconds: float  # of all launches; where not all were timed, by the mean of those that were
    launches: tuple[CapturedLaunch, ...]
    registers: int | None = None
    static_shared: int | None = None
    local: int | None = None  # bytes of local memory a thread has
    ptx_version: int | None = None  # the virtual architecture it was compiled for, 90 for compute_90
    binary_version: int | None = None
    sources: tuple[str, ...] = ()  # files that its module's line table names, where it was built with one

    @property
    def shown(self) -> str:
        return self.demangled or self.name

    def launch(self, number: int) -> CapturedLaunch | None:
        return next((launch for launch in self.launches if launch.number == number), None)


@dataclass(frozen=True)
class Succession:
    """On the same stream, launch `after` came next after launch `before`, so many times."""

    before: int  # numbers of launches
    after: int
    count: int


@dataclass(frozen=True)
class ModuleImage:
    digest: str
    kind: str  # "cubin", "ptx" or "bin"
    size: int

    @property
    def file(self) -> str:
        return f"{IMAGES}/{self.digest}.{self.kind}"


@dataclass(frozen=True)
class KeptRange:
    """Part of an allocation that a launch's pointers lead to: from the lowest of them to its end."""

    base: int  # of the allocation
    start: int  # of the range, from the base
    size: int
    before: str  # digests of its contents; empty: not kept, larger than was allowed
    after: str
    again: str = ""  # after the same launch was made once more from the same contents; empty: it was not


@dataclass(frozen=True)
class KeptLaunch:
    """One launch with the memory around it. `arguments` are its own, with the addresses it had."""

    kernel: str  # mangled name
    launch: int  # number of the launches that it is one of
    arguments: tuple[CapturedArgument, ...]
    ranges: tuple[KeptRange, ...]

    def range_of(self, memory: PointedMemory) -> KeptRange | None:
        """Where the contents behind a pointer were kept. They begin `memory.offset - range.start` bytes into
        that range."""
        inside = (r for r in self.ranges if r.base == memory.base and r.start <= memory.offset)
        return next(inside, None)


@dataclass(frozen=True)
class CapturedCopies:
    """Copies and fills, which take the device's time too."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Capture:
    format: int
    program: CapturedProgram
    driver: int  # CUDA's version as the driver reports it, 13000; 0 where none was seen
    devices: tuple[CapturedDevice, ...]
    kernels: tuple[CapturedKernel, ...]  # what takes longest first
    successions: tuple[Succession, ...]
    order: tuple[int, ...]  # numbers of launches as the program made them, the first ones
    images: tuple[ModuleImage, ...]
    kept: tuple[KeptLaunch, ...]
    copies: CapturedCopies
    span: float  # seconds from the first kernel's beginning to the last one's end
    graphs: int = 0  # launches of CUDA graphs
    dropped: int = 0  # records that the profiler lost
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Of kernels, copies and fills."""
        return sum(kernel.seconds for kernel in self.kernels) + self.copies.seconds

    def share(self, kernel: CapturedKernel) -> float:
        """Of the device's time."""
        return kernel.seconds / self.seconds if self.seconds > 0 else 0.0

    def named(self, text: str) -> Iterator[CapturedKernel]:
        """Kernels whose name is that, or else has it in it."""
        exact = [k for k in self.kernels if text in (k.name, k.demangled)]
        yield from exact or (k for k in self.kernels if text and (text in k.name or text in k.demangled))


# -- The folder of a capture: read whole, each file checked against what names it.


_DIGEST = re.compile(r"[0-9a-f]{64}")
AGAIN = "capture the program again: tunesmith capture -- PROGRAM"


def read_capture(folder: Path) -> Capture:
    """What was seen, as it was written when the program ended."""
    path = folder / CAPTURE
    if not path.is_file():
        fault = "this is not a capture: it has no capture.json"
        raise BadInput(fault, where=str(folder), hint=AGAIN)
    with explain_disk_errors("read it", path):
        data = read_plain(path)
    try:
        found = decode_json(data, Capture, "capture")
    except Malformed as error:
        raise BadInput(str(error), where=str(path), hint=AGAIN) from error
    if found.format != FORMAT:
        fault = f"a capture of format {found.format}, and this version reads format {FORMAT}"
        raise BadInput(fault, where=str(path), hint=AGAIN)
    return found


def write_capture(folder: Path, capture: Capture) -> Path:
    path = folder / CAPTURE
    with explain_disk_errors("write what was seen", path):
        write_whole(path, encode_json(capture) + b"\n")
    return path


def read_image(folder: Path, image: ModuleImage) -> bytes:
    """A module's image, as the driver loaded it."""
    return _read_by_digest(folder / image.file, image.digest)


def read_array(folder: Path, digest: str) -> bytes:
    """Contents of a range of memory, as a `KeptRange` names them."""
    return _read_by_digest(folder / ARRAYS / f"{digest}.bin", digest)


def read_sized(path: Path) -> bytes:
    """A plain file, however large it is."""
    return read_plain(path, path.lstat().st_size)


def _read_by_digest(path: Path, digest: str) -> bytes:
    if not _DIGEST.fullmatch(digest):
        raise BadInput(f"not a digest: {digest!r}", where=str(path), hint=AGAIN)
    with explain_disk_errors("read it", path):
        data = read_sized(path)
    if sha256_hex(data) != digest:
        raise BadInput("its contents are not those that were captured", where=str(path), hint=AGAIN)
    return data
