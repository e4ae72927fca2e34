"""What a backend is: it builds kernels and opens a device that runs them; and what is said to one.

A new one needs a `BackendKind` with `name`, `languages` and `make`, all else having defaults; the `Backend`
that `make` gives (`devices`, `build`, `open`); and the `Session` that `open` gives. Without graphs that is a
`PlainSession`: `load`, `allocate`, `release`, `write`, `read`, `copy`, `run` and `seconds_of`. One on the
simulated device is in `tests/toy_plugin`. A kind lies in its own folder and is loaded when asked for; drivers
on use.
"""

from __future__ import annotations

import importlib.util
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tunesmith.backends.messages import Counted, CountLaunches, Unit
from tunesmith.problem.device import Clock, Device, Resources, SourceLanguage
from tunesmith.problem.problem import Kernel, element_type
from tunesmith.profiles.facts import Instructions

if TYPE_CHECKING:
    from tunesmith.run.events import SanitizerFinding
    from tunesmith.run.ports import OwnAuthor
    from tunesmith.source.preprocess import Predefined

ListDevices = Callable[[], tuple[Device, ...]]


class BuildFailed(Exception):
    """The compiler's words; a verdict about the source, not about us."""


class OutOfMemory(Exception):
    """The device has no room for an allocation."""


class LaunchFailed(Exception):
    """The driver refused or aborted a launch; the session may be unusable afterwards."""


class DeviceLost(Exception):
    """The device was there and is no longer: no verdict about any kernel."""


class Unsupported(Exception):
    """This backend has no such feature; says which."""


@dataclass(frozen=True)
class KernelBinary:
    """A device binary. `code_digest` is equal for equal code, whatever path or time the compiler put in."""

    data: bytes
    code_digest: str
    resources: Resources
    log: str = ""


Executable = object  # loaded code, in whatever form a session keeps it


class Memory(Protocol):
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class Pointer:
    memory: Memory
    offset: int
    nbytes: int
    stride: int = 0  # bytes to the same array's next copy, where a recording rotates through several
    turns: bool = False  # moves with the slot that is written, not with the one that is read

    def part(self, start: int, nbytes: int) -> Pointer:
        return Pointer(self.memory, self.offset + start, nbytes)

    def at(self, slots: Slots) -> Pointer:
        moved = self.offset + slots[self.turns] * self.stride
        return Pointer(self.memory, moved, self.nbytes, self.stride, self.turns)


PointerPair = tuple[Pointer, Pointer]


@dataclass(frozen=True)
class Scalar:
    type: str
    value: float | int


@dataclass(frozen=True)
class LocalBytes:
    nbytes: int


@dataclass(frozen=True)
class LaunchCall:
    """One launch with everything bound."""

    executable: Executable
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    args: tuple[Pointer | Scalar | LocalBytes, ...]
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    pdl: bool = False
    fills: tuple[tuple[Pointer, bytes], ...] = ()  # before it, one element over all of an array, in its time


# Where a launch reads and where it writes: the two go round at different times, so that no output lies
# where the same inputs gave it before.
Slots = tuple[int, int]
HERE: tuple[Slots, ...] = ((0, 0),)


class Recording(Protocol):
    """Launches made ready to be played again and again, one after the other."""

    def start(self) -> Callable[[], float]:
        """Queue it all. The answer waits for the end, and gives the seconds from the first launch's start to
        the last one's end."""
        ...


@dataclass(frozen=True)
class Difference:
    """How many bytes differ, and where the first and the last of them are; -1 where none does."""

    count: int
    first: int = -1
    last: int = -1


@dataclass(frozen=True)
class Comparison:
    """What a device finds when it compares numbers: wrong ones by the rule given, errors over finite ones."""

    wrong: int
    max_error: float
    squared_error: float
    squared_ulp: float
    count: int  # of finite ones


class Inspector(Protocol):
    """Fills and compares memory on the device, by kernels of our own: inputs and outputs never leave it."""

    def fill(self, to: Pointer, pattern: bytes) -> None: ...
    def disturb(self, first: Pointer, stride: int, slots: int, places: int, seed: int) -> None:
        """Change a few bytes of every slot, at that many places drawn at random."""

    def spread(self, to: Pointer, block: Pointer, itemsize: int, roll: int, negate: bool) -> None:
        """Repeat a block, each time rolled by `roll` elements more and, where `negate`, every second negated
        (its sign bit flipped)."""

    def copy_late(self, to: Pointer, source: Pointer) -> None:
        """Copy by a kernel that lets the next one begin, where that may, before it does so."""

    def are_like(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> bool:
        """Whether each is like the other, or like the pattern, byte by byte."""

    def differing(self, a: Pointer, b: Pointer) -> Difference: ...
    def unlike(self, a: Pointer, pattern: bytes) -> Difference: ...
    def compare(
        self, got: Pointer, type: str, expected: Pointer, expected_type: str, rule: NumberRule
    ) -> Comparison: ...


@dataclass(frozen=True)
class NumberRule:
    """An element is right if its error is at most max(atol + rtol * |expected|, ulps * ulp), and at most
    `cap` + 1 ulp where there is a cap."""

    rtol: float
    atol: float
    ulps: float
    cap: float | None = None
    add_ulps: bool = False  # codes: half an ulp *plus* the tolerance, of what the type can hold


def at_slots(call: LaunchCall, slots: Slots) -> LaunchCall:
    args = tuple(a.at(slots) if isinstance(a, Pointer) and a.stride else a for a in call.args)
    fills = tuple((place.at(slots), element) for place, element in call.fills)
    return replace(call, args=args, fills=fills)


class Session(Protocol):
    """An open device in this process. Calls are serial; `run` returns when the device is idle."""

    inspector: Inspector | None  # None: the host fills and compares

    def load(self, unit: Unit, binary: bytes) -> Executable: ...
    def allocate(self, nbytes: int) -> Memory: ...
    def release(self, memory: Memory) -> None: ...
    def write(self, memory: Memory, offset: int, data: bytes | memoryview) -> None: ...
    def read(self, memory: Memory, offset: int, nbytes: int) -> bytes: ...
    def copy(self, to: Pointer, source: Pointer) -> None: ...
    def run(self, calls: Sequence[LaunchCall]) -> None: ...
    def record(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = HERE) -> Recording:
        """The calls once for each slot; there every pointer has moved on by slot × its stride."""
        ...

    def queue(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = HERE) -> Recording:
        """The same, with every launch handed to the driver by itself each time."""

    def throttled(self) -> bool | None:
        """Whether the clock is being held down right now; None where the device does not say."""
        ...

    def clocks(self) -> tuple[Clock, ...]:
        """How fast its parts run right now; empty where the device does not say."""
        ...

    def parts(self) -> tuple[float, ...]:
        """Seconds of the parts of the recording that was waited for last; empty where it has none."""
        ...

    def neighbours(self) -> str:
        """Who else has the device open, in words; empty where nobody says."""
        ...


@dataclass(frozen=True)
class QueuedCalls:
    """A recording of a device without graphs: the calls are queued anew every time."""

    calls: tuple[LaunchCall, ...]
    seconds_of: Callable[[Sequence[LaunchCall]], float]

    def start(self) -> Callable[[], float]:
        seconds = self.seconds_of(self.calls)
        return lambda: seconds


class QuietSession:
    """What sessions have in common that know nothing of clocks, and leave judging to the host."""

    inspector: Inspector | None = None

    def throttled(self) -> bool | None:
        return None

    def clocks(self) -> tuple[Clock, ...]:
        return ()

    def parts(self) -> tuple[float, ...]:
        return ()

    def neighbours(self) -> str:
        return ""


class PlainSession(QuietSession, ABC):
    """One that knows no graphs either."""

    @abstractmethod
    def seconds_of(self, calls: Sequence[LaunchCall]) -> float:
        """From the start of the first call to the end of the last."""

    def record(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = HERE) -> Recording:
        return QueuedCalls(tuple(at_slots(c, at) for at in slots for c in calls), self.seconds_of)

    def queue(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = HERE) -> Recording:
        return self.record(calls, slots)


class Backend(Protocol):
    """A way to build and run kernels. `build` needs the device's description, not the device."""

    name: str

    def devices(self) -> tuple[Device, ...]: ...
    def build(self, unit: Unit, device: Device) -> KernelBinary: ...
    def open(self, device: Device) -> Session: ...


class Counting(Protocol):
    """Counts in a process of its own, so that nothing of it lands in a timing. Never raises for what a tool,
    a permission or a kernel does: that is a sentence."""

    def count(self, what: CountLaunches, binary: bytes) -> Counted: ...


@dataclass(frozen=True)
class NoCounting:
    """Where there is nothing to count with."""

    why: str

    def count(self, what: CountLaunches, binary: bytes) -> Counted:
        return Counted(None, self.why)


@dataclass(frozen=True)
class SanitizerKind:
    """A program that watches launches for faults which results need not show."""

    program: str
    tools: tuple[str, ...]  # what it looks for, each in a process of its own
    at_gate: tuple[str, ...]  # of these, those that drafts by models are shown to
    find: Callable[[], str | None]
    missing: str  # why there is none, where `find` finds none
    fix: str
    version: Callable[[str], str]
    command: Callable[[str, str, Path], list[str]]  # program, tool, log file; a worker's command follows
    read: Callable[[str, str], tuple[SanitizerFinding, ...]]  # tool, and what it wrote into the log
    nbytes: int  # of a case, at most, where the contract has any so small
    unable: Callable[[str], str] = lambda _log: ""  # what it met that it cannot judge
    # The tool that must find such a fault too, where this one is known to imagine some; empty: none. And
    # whether it imagines them in such a source however one looks.
    confirm: Callable[[SanitizerFinding], str] = lambda _finding: ""
    imagines: Callable[[SanitizerFinding, str], bool] = lambda _finding, _source: False
    own_device: bool = False  # what it watches is built there, from source
    sockets: bool = False  # it speaks over the network with what it watches

    def doctor(self) -> DoctorFinding:
        path = self.find()
        if path is None:
            return DoctorFinding(self.program, False, f"{self.missing}: nothing watches winners", self.fix)
        return DoctorFinding(self.program, True, f"{path}, watches winners ({', '.join(self.tools)})")


@runtime_checkable
class Marking(Protocol):
    """A session that can tell a profiler where to look."""

    def profiled(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class DoctorFinding:
    """Something `tunesmith doctor` looked at, and the one command that enables what is not usable."""

    what: str
    usable: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class CeilingKernels:
    """Kernels that measure what a device can do at best, as files beside the kind's own module."""

    file: str
    half: str  # the file with half precision
    lanes: Mapping[str, int]  # numbers that a thread works on at once, by kind
    items: tuple[int, ...]  # vectors that a thread of its copies and reads takes


@dataclass(frozen=True)
class PortableForm:
    """Machine code as programs load it with each entry's symbol; and both as our workers take them."""

    name: str  # and ending of such a file
    unpack: Callable[[bytes], tuple[dict[str, str], bytes]]
    pack: Callable[[Mapping[str, str], bytes], bytes]


@dataclass(frozen=True)
class TuningFlags:
    """Build flags that a template may have with a parameter as their value, {}; empty where there is none."""

    register_cap: str = ""  # registers of a thread, at most
    register_level: str = ""  # how hard the assembler saves registers


@dataclass(frozen=True)
class Toolchain:
    """The compilers of a backend that has a choice of them."""

    compilers: Callable[[], tuple[tuple[str, str], ...]]  # name and version, the preferred one first
    none_here: str
    how_to_install: Callable[[str], str]
    lacks: Callable[[str, str], bool]  # compiler and log: it failed for want of what another compiler has
    advice: Callable[[Collection[str]], str]  # then; given the names of those here


@dataclass(frozen=True)
class BackendKind:
    name: str
    languages: tuple[SourceLanguage, ...]
    make: Callable[[str], Backend]  # given what follows the colon in `name:argument`
    extra: str = ""  # of pip, which brings what it needs
    packages: tuple[str, ...] = ()  # whose versions a run writes down
    simulated: bool = False  # its times are computed
    untimed: bool = False  # it stands in for devices that are not here
    from_file: bool = False  # the argument is a file that holds its device: a recording
    plays_absent: bool = False  # `name:absent` is its device as if it were elsewhere
    check: Callable[[ListDevices], list[DoctorFinding]] = lambda _devices: []  # what doctor says of it
    # Variables of its workers, given those inherited. Files that they name may go into the scratch folder.
    environment: Callable[[Path, Mapping[str, str]], Mapping[str, str]] = lambda _scratch, _inherited: {}
    # What its workers need besides: patterns of variables that they inherit, and of devices; what they read.
    inherits: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    readable: Callable[[], Iterable[Path]] = lambda: ()
    absent_device: Callable[[str | None], Device | None] = lambda _wanted: None  # to build for, without one
    is_architecture: Callable[[Device, str], bool] = lambda _device, _wanted: False
    toolchain: Toolchain | None = None  # None: there is no choice
    # Of names in a source, what the compilers that may build it for a device define; None: none tells.
    macros: Callable[[Kernel, Device, Sequence[str]], tuple[Predefined, ...]] | None = None
    flags: TuningFlags = TuningFlags()
    # The command that compiles kernels with the host's part in one file; None: they are delivered without.
    host_command: Callable[[Sequence[str], Device], str] | None = None
    portable: PortableForm | None = None  # None: sources alone are delivered
    no_profiles: str = ""  # why a search has no profile to be steered by
    no_counters: str = "this backend reads no hardware counters"
    counting: Callable[[Sequence[str], Mapping[str, str], Path], Counting] | None = None
    no_sanitizer: str = "this backend has no sanitizer"
    sanitizer: SanitizerKind | None = None
    instructions: ReadInstructions | None = None  # reads the machine code of a build
    ceilings: CeilingKernels | None = None
    author: Callable[[], OwnAuthor] | None = None  # None: the expert reads its kernels

    @property
    def install(self) -> str:
        return f"pip install 'tunesmith[{self.extra}]'" if self.extra else ""


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def module_finding(name: str, purpose: str, fix: str) -> DoctorFinding:
    if has_module(name):
        return DoctorFinding(name, True, purpose)
    return DoctorFinding(name, False, f"not installed: {purpose} needs it", fix)


def system_package(package: str, apt: str = "") -> str:
    """The command that installs it here."""
    commands = ("apt-get install", "dnf install", "pacman -S", "apk add", "zypper install", "brew install")
    for command in commands:
        tool = command.partition(" ")[0]
        if shutil.which(tool):
            return f"{command} {apt if apt and tool == 'apt-get' else package}"
    return f"install {package} with your system's package manager"


def check_arguments(call: LaunchCall, sizes: Sequence[int]) -> None:
    """Drivers take the kernel's word for how many bytes there are, and read on."""
    if len(sizes) != len(call.args):
        raise LaunchFailed(f"{call.entry} takes {len(sizes)} arguments, {len(call.args)} are given")
    for number, (arg, size) in enumerate(zip(call.args, sizes, strict=True), start=1):
        given = element_type(arg.type).bytes if isinstance(arg, Scalar) else 8
        if given != size:
            what = arg.type if isinstance(arg, Scalar) else "an array"
            raise LaunchFailed(f"argument {number} of {call.entry} has {size} bytes, {what} has {given}")


def argument_bits(arg: object, address: Callable[[Pointer], int], language: str) -> int:
    """An argument's value as the low bytes of one word."""
    if isinstance(arg, Pointer):
        return address(arg)
    if isinstance(arg, Scalar):
        return int.from_bytes(element_type(arg.type).numpy.type(arg.value).tobytes(), "little")
    raise LaunchFailed(f"{language} has no local-memory arguments: use the launch's `shared`")


# Of a build and an entry: what it consists of; or why that is not known.
ReadInstructions = Callable[[bytes, str], tuple[Instructions | None, str]]


@runtime_checkable
class Scrambling(Protocol):
    """A session with a kernel of its own that leaves nothing of what others have in local memory."""

    def scramble(self, is_local: bool, is_patient: bool = False) -> None:
        """Run it, on all parts of the device; or one that fills as much of other memory. On a busy one it
        waits longer for parts that others have when it `is_patient`."""


def scramble_local_memory(session: Session) -> None:
    """Nothing of what others have left in local memory is there any more, where the session can see to it."""
    if isinstance(session, Scrambling):
        session.scramble(is_local=True)


@runtime_checkable
class Overseeing(Protocol):
    """A session where another kernel can read while a launch runs."""

    def run_overseen(self, calls: Sequence[LaunchCall], pairs: Sequence[PointerPair]) -> int | None:
        """The number of a pair, alike before, that was seen to be unlike meanwhile; None: of none."""


@runtime_checkable
class Shielding(Protocol):
    """A session whose memory is pages of this process."""

    def shielded(self, spans: Sequence[Pointer]) -> AbstractContextManager[None]:
        """Whoever writes there meanwhile dies of it. Whole pages."""
