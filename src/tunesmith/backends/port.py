"""What a backend is: it builds kernels and opens a device that runs them; and what is said to one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from tunesmith.backends.messages import Draw, Unit
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Plan
from tunesmith.profiles.facts import Counters


class BuildFailed(Exception):
    """The compiler's words; a verdict about the source, not about us."""


class OutOfMemory(Exception):
    """The device has no room for an allocation."""


class LaunchFailed(Exception):
    """The driver refused or aborted a launch; the session may be unusable afterwards."""


class Unsupported(Exception):
    """This backend has no such feature; says which."""


@dataclass(frozen=True)
class KernelBinary:
    """A device binary. `code_digest` is equal for equal code, whatever path or time the compiler put in."""

    data: bytes
    code_digest: str
    resources: Resources
    log: str = ""


class Executable(Protocol):
    @property
    def entries(self) -> tuple[str, ...]: ...


class Memory(Protocol):
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class Pointer:
    memory: Memory
    offset: int
    nbytes: int
    stride: int = 0  # bytes to the same array's next copy, where a recording rotates through several

    def part(self, start: int, nbytes: int) -> Pointer:
        return Pointer(self.memory, self.offset + start, nbytes)


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
    def spread(self, to: Pointer, block: Pointer, itemsize: int, roll: int, negate: bool) -> None:
        """Repeat a block, each time rolled by `roll` elements more and, where `negate`, every second negated
        (its sign bit flipped)."""
        ...

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


def at_slot(call: LaunchCall, slot: int) -> LaunchCall:
    args = tuple(
        replace(a, offset=a.offset + slot * a.stride) if isinstance(a, Pointer) and a.stride else a
        for a in call.args
    )
    return replace(call, args=args)


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
    def record(self, calls: Sequence[LaunchCall], slots: Sequence[int] = (0,)) -> Recording:
        """The calls once for each slot; there every pointer has moved on by slot × its stride."""
        ...

    def queue(self, calls: Sequence[LaunchCall], slots: Sequence[int] = (0,)) -> Recording:
        """The same, with every launch handed to the driver by itself each time."""
        ...

    def throttled(self) -> bool | None:
        """Whether the clock is being held down right now; None where the device does not say."""
        ...


@dataclass(frozen=True)
class QueuedCalls:
    """A recording of a device without graphs: the calls are queued anew every time."""

    calls: tuple[LaunchCall, ...]
    seconds_of: Callable[[Sequence[LaunchCall]], float]

    def start(self) -> Callable[[], float]:
        seconds = self.seconds_of(self.calls)
        return lambda: seconds


class PlainSession(ABC):
    """What sessions have in common that know neither graphs nor clocks, and leave judging to the host."""

    inspector: Inspector | None = None

    @abstractmethod
    def seconds_of(self, calls: Sequence[LaunchCall]) -> float:
        """From the start of the first call to the end of the last."""

    def record(self, calls: Sequence[LaunchCall], slots: Sequence[int] = (0,)) -> Recording:
        return QueuedCalls(tuple(at_slot(c, slot) for slot in slots for c in calls), self.seconds_of)

    def queue(self, calls: Sequence[LaunchCall], slots: Sequence[int] = (0,)) -> Recording:
        return self.record(calls, slots)

    def throttled(self) -> bool | None:
        return None


class Backend(Protocol):
    """A way to build and run kernels. `build` needs the device's description, not the device."""

    name: str

    def devices(self) -> tuple[Device, ...]: ...
    def build(self, unit: Unit, device: Device) -> KernelBinary: ...
    def open(self, device: Device) -> Session: ...


@dataclass(frozen=True)
class Counted:
    """What the hardware counted, or why it did not."""

    counters: Counters | None
    why_not: str = ""
    left_out: tuple[str, ...] = ()  # what the tool that is here cannot count, by its own names


@dataclass(frozen=True)
class ToCount:
    """A built kernel at a workload, with everything a process of its own needs to launch it once."""

    unit: Unit
    binary: bytes
    code_digest: str
    device: Device
    plan: Plan
    draw: Draw
    warm: bool
    main: int = 0  # which of the plan's launches is told of


class Counting(Protocol):
    """Counts in a process of its own, so that nothing of it lands in a timing. Never raises for what a tool,
    a permission or a kernel does: that is a sentence."""

    def count(self, what: ToCount) -> Counted: ...


@dataclass(frozen=True)
class NoCounting:
    """Where there is nothing to count with."""

    why: str

    def count(self, what: ToCount) -> Counted:
        return Counted(None, self.why)


@runtime_checkable
class Marking(Protocol):
    """A session that can tell a profiler where to look."""

    def profiled(self) -> AbstractContextManager[None]: ...
