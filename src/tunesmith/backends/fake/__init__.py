"""A simulated device: kernels are a few lines of TOML that say what they compute, cost and do wrong.

    // /// fake
    // args  = ["out", "x", "rows", "d"]     names of the arguments, so that expressions can use the scalars
    // op    = "scale"                       out = 2 * x; "copy" and "increment" (in place) are there too
    // time  = "100 + rows * d // BLOCK"     nanoseconds; macros defined in the source are names too
    // fault = "3 if BLOCK == 64 else 0"     one of FAULTS
    // ///

Crashes and hangs are real ones, so that everything above a backend is tested without a device. There are
several of one kind: most a few per cent apart, as real ones are; one has its clock held down, one is slow.

Their templates stand in the kernel's own comments, one for each move:

    //draft: wide
    //| // /// tunesmith
    //| // [params]
    //| // BLOCK = [64, 128]
    //| ...

So everything around an author is tested without one. Values it is told to leave out go; with `//refuses:` in
place of `//draft:` the rest of the line is why there is no template. `//mended:` is what a second try gives.
"""

from __future__ import annotations

import math
import os
import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tunesmith.backends import port
from tunesmith.backends.messages import Unit
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of
from tunesmith.problem.device import FAKE, Device, Limits, Resources
from tunesmith.problem.problem import Problem
from tunesmith.space.expr import Expr, Undefined, parse_expr

if TYPE_CHECKING:
    from tunesmith.run.ports import Declined, Refactoring, Written

FAULTS = (
    *("none", "build", "wrong", "abort", "segfault", "hang", "unstable", "past_end", "print", "garbage"),
    "idle",
)
_BLOCK = re.compile(r"^// /// fake\n(.*?)^// ///\s*$", re.MULTILINE | re.DOTALL)
_DEFINE = re.compile(r"^#define (\w+) (-?\d+)\s*$", re.MULTILINE)
FILL_RATE = 1e10  # bytes a second of what is filled before a launch
PRINTED = 1 << 18  # more than a pipe holds
PACES = (1.0, 1.03, 0.97, 1.02, 1.25, 3.0)  # of each device, times what a kernel says that it takes
HELD_DOWN = 4  # the number of the one whose clock is


@dataclass(frozen=True)
class FakeKernel:
    args: tuple[str, ...]
    op: str
    time: Expr
    fault: Expr
    shared: int
    macros: Mapping[str, int]

    @staticmethod
    def read(unit: Unit) -> FakeKernel:
        block = _BLOCK.search(unit.source)
        if block is None:
            raise port.BuildFailed(f"{unit.path}: no '// /// fake' block")
        try:
            table = tomllib.loads("".join(line[3:] + "\n" for line in block.group(1).splitlines()))
            # The first definition wins: the prologue of a rendered template stands before its defaults.
            macros = {name: int(value) for name, value in reversed(_DEFINE.findall(unit.source))}
            kernel = FakeKernel(
                args=tuple(table["args"]),
                op=str(table.get("op", "scale")),
                time=parse_expr(table.get("time", 1000)),
                fault=parse_expr(table.get("fault", 0)),
                shared=int(table.get("shared", 0)),
                macros=macros,
            )
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, BadInput) as error:
            raise port.BuildFailed(f"{unit.path}: bad fake block: {error}") from error
        if kernel.fault_with({}) == "build":
            raise port.BuildFailed(f"{unit.path}:1: error: this kernel was written not to compile")
        return kernel

    def fault_with(self, scalars: Mapping[str, int]) -> str:
        try:
            return FAULTS[self.fault.evaluate({**scalars, **self.macros})]
        except Undefined:
            return "none"  # depends on sizes that only a launch knows

    def seconds(self, scalars: Mapping[str, int]) -> float:
        return max(0, self.time.evaluate({**scalars, **self.macros})) * 1e-9


class FakeBackend:
    name = "fake"

    def devices(self) -> tuple[Device, ...]:
        limits = Limits(
            max_threads=1024,
            max_block=(1024, 1024, 64),
            max_grid=(1 << 31, 65535, 65535),
            shared=48 << 10,
            sms=16,
            warp=32,
            llc=1 << 18,
            memory=1 << 28,
            max_allocation=1 << 27,
            alignment=16,
            pin_bandwidth=1e14,
        )
        device = ("simulated device", "fake", "1", "simulated", limits)
        return tuple(Device("fake", str(number), *device) for number in range(len(PACES)))  # type: ignore[arg-type]

    def build(self, unit: Unit, device: Device) -> port.KernelBinary:
        k = FakeKernel.read(unit)
        code = repr((k.args, k.op, k.time.text, k.fault.text, sorted(k.macros.items())))
        resources = Resources(registers=32, shared=k.shared, spills=0, max_threads=1024)
        return port.KernelBinary(unit.source.encode(), digest_of(code), resources)

    def open(self, device: Device) -> port.Session:
        return FakeSession(device)


@dataclass
class FakeMemory:
    data: bytearray
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = len(self.data)


class _WaitingCall(NamedTuple):
    call: port.LaunchCall
    slots: port.Slots
    nbytes: int  # that it writes


@dataclass(frozen=True)
class _FakeRecording:
    """Time is computed, not spent, and once for all samples, so that tests of a long run take no longer than
    its arithmetic."""

    session: FakeSession
    calls: tuple[port.LaunchCall, ...]
    slots: tuple[port.Slots, ...]

    def start(self) -> Callable[[], float]:
        self.session.play(port.at_slots(self.calls[0], self.slots[0]), self._later_calls)
        seconds = self._seconds
        return lambda: seconds

    @cached_property
    def _seconds(self) -> float:
        each = [self.session.call_seconds(call) for call in self.calls]
        each += [place.nbytes / FILL_RATE for call in self.calls for place, _ in call.fills]
        return self.session.pace * sum(each * len(self.slots))

    @cached_property
    def _later_calls(self) -> dict[int, dict[int, _WaitingCall]]:
        """All calls but the first: by the memory they write, and where in it."""
        writing = [(call, next(iter(pointers_of(call)), None)) for call in self.calls]
        visits = ((call, pointer, at) for at in self.slots for call, pointer in writing)
        found: dict[int, dict[int, _WaitingCall]] = {}
        for call, pointer, at in islice(visits, 1, None):
            if pointer is not None:
                calls = found.setdefault(id(pointer.memory), {})
                start = pointer.offset + at[pointer.turns] * pointer.stride
                calls.pop(start, None)
                calls[start] = _WaitingCall(call, at, pointer.nbytes)
        return found


class FakeSession(port.PlainSession):
    def __init__(self, device: Device) -> None:
        self._device = device
        self.pace = PACES[int(device.id)] if device.id.isdecimal() and int(device.id) < len(PACES) else 1.0
        self._allocated = 0
        # Not yet carried out: by the memory they write, and where in it.
        self._queued: dict[int, dict[int, _WaitingCall]] = {}

    def load(self, unit: Unit, binary: bytes) -> port.Executable:
        return FakeKernel.read(unit)

    def allocate(self, nbytes: int) -> port.Memory:
        free = self._device.limits.memory - self._allocated
        if nbytes > min(self._device.limits.max_allocation, free):
            raise port.OutOfMemory(f"{nbytes} bytes wanted, {free} free")
        self._allocated += nbytes
        return FakeMemory(bytearray(nbytes))

    def release(self, memory: port.Memory) -> None:
        self._allocated -= memory.nbytes
        self._queued.pop(id(memory), None)

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, FakeMemory)
        self._carry_out(memory, offset, len(data))
        memory.data[offset : offset + len(data)] = data

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, FakeMemory)
        self._carry_out(memory, offset, nbytes)
        return bytes(memory.data[offset : offset + nbytes])

    def copy(self, to: port.Pointer, source: port.Pointer) -> None:
        self.write(to.memory, to.offset, self.read(source.memory, source.offset, source.nbytes))

    def run(self, calls: Sequence[port.LaunchCall]) -> None:
        for call in calls:
            for pointer in pointers_of(call):
                self._carry_out(pointer.memory, pointer.offset, pointer.nbytes)
            for place, element in call.fills:
                self.write(place.memory, place.offset, element * (place.nbytes // len(element)))
            execute_fake_call(call)

    def _carry_out(self, memory: port.Memory, offset: int, nbytes: int) -> None:
        """Whatever was to write there."""
        queued = self._queued.get(id(memory), {})
        for start, one in list(queued.items()):
            if start < offset + nbytes and offset < start + one.nbytes:
                del queued[start]
                execute_fake_call(port.at_slots(one.call, one.slots))

    def record(
        self, calls: Sequence[port.LaunchCall], slots: Sequence[port.Slots] = port.HERE
    ) -> port.Recording:
        return _FakeRecording(self, tuple(calls), tuple(slots))

    def play(self, first: port.LaunchCall, later: Mapping[int, Mapping[int, _WaitingCall]]) -> None:
        """Of a chain one call is carried out now, the others when somebody looks at what they write."""
        self.run([first])
        for memory, calls in later.items():
            queued = self._queued.setdefault(memory, {})
            for start in calls:
                queued.pop(start, None)  # the last to write there is the last to be carried out
            queued.update(calls)

    def throttled(self) -> bool | None:
        return self._device.id == str(HELD_DOWN)

    def seconds_of(self, calls: Sequence[port.LaunchCall]) -> float:
        return self.record(calls).start()()

    def call_seconds(self, call: port.LaunchCall) -> float:
        assert isinstance(call.executable, FakeKernel)
        return call.executable.seconds(scalar_values(call))


def pointers_of(call: port.LaunchCall) -> list[port.Pointer]:
    return [arg for arg in call.args if isinstance(arg, port.Pointer)]


def scalar_values(call: port.LaunchCall) -> dict[str, int]:
    assert isinstance(call.executable, FakeKernel)
    named = zip(call.executable.args, call.args, strict=False)
    return {name: int(arg.value) for name, arg in named if isinstance(arg, port.Scalar)}


def execute_fake_call(call: port.LaunchCall) -> None:
    assert isinstance(call.executable, FakeKernel)
    kernel = call.executable
    if len(kernel.args) != len(call.args):
        raise port.LaunchFailed(f"the kernel takes {len(kernel.args)} arguments, {len(call.args)} are given")
    fault = kernel.fault_with(scalar_values(call))
    _trigger_fault(fault)
    pointers = pointers_of(call)
    if not pointers or fault == "idle" or math.prod(call.grid) < 1:
        return
    out = pointers[0]
    if kernel.op == "increment":
        result = _read_floats(out) + np.float32(1)
    else:
        factor = {"scale": 2.0, "copy": 1.0}.get(kernel.op)
        if factor is None:
            raise port.LaunchFailed(f"unknown operation {kernel.op!r}")
        with np.errstate(over="ignore"):
            result = _read_floats(pointers[1]) * np.float32(factor)
    if fault == "wrong":
        result[-1] += np.float32(1)
    if fault == "unstable":
        result[-1] += np.float32(int.from_bytes(os.urandom(2), "little") / 1e9)
    payload = os.urandom(out.nbytes) if fault == "garbage" else result.tobytes()
    assert isinstance(out.memory, FakeMemory)
    out.memory.data[out.offset : out.offset + len(payload)] = payload
    if fault == "past_end":
        out.memory.data[out.offset + out.nbytes : out.offset + out.nbytes + 4] = b"oops"


def _read_floats(pointer: port.Pointer) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    assert isinstance(pointer.memory, FakeMemory)
    return np.frombuffer(pointer.memory.data, np.float32, pointer.nbytes // 4, pointer.offset).copy()


def _trigger_fault(fault: str) -> None:
    if fault == "abort":
        os.abort()
    if fault == "segfault":
        import ctypes

        ctypes.string_at(0)
    if fault == "print":
        os.write(1, b"hello from a kernel\n" * (PRINTED // 20))
    while fault == "hang":
        time.sleep(60)


_HEADING = re.compile(r"//(draft|refuses|mended): *(\w+) *(.*)")
_LINE = re.compile(r"//\| ?(.*)")


@dataclass(frozen=True)
class Scripted:
    text: str
    refusal: str = ""


def drafts_in(source: str) -> dict[str, Scripted]:
    """By the name of the move that they add."""
    return {name: script for kind, name, script in _parse_drafts(source) if kind != "mended"}


class FakeAuthor:
    reading: tuple[str, ...] = ("a simulated kernel says itself what it does",)

    def moves_in(self, problem: Problem) -> tuple[str, ...]:
        return tuple(drafts_in(problem.kernel.text))

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        del device
        found = drafts_in(problem.kernel.text)
        names = tuple(name for name, script in found.items() if not script.refusal)
        return names, tuple((name, script.refusal) for name, script in found.items() if script.refusal)

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        from tunesmith.run.ports import Declined, Written  # no worker writes templates

        del device
        if not task.moves:
            return Declined("the kernel has no draft of a template in its comments")
        wanted = task.moves[-1]
        found = [
            (kind, script) for kind, name, script in _parse_drafts(problem.kernel.text) if name == wanted
        ]
        mended = [script for kind, script in found if kind == "mended"]
        script = mended[0] if task.failure and mended else found[0][1]
        if script.refusal:
            return Declined(script.refusal)
        text = script.text
        for name, value in task.without:
            text = re.sub(rf"^(// {name} = \[.*?)\b{value}\b,? ?(.*)$", r"\1\2", text, flags=re.MULTILINE)
        return Written(text, task.moves)


def _parse_drafts(source: str) -> Iterator[tuple[str, str, Scripted]]:
    kind = name = refusal = ""
    lines: list[str] = []
    for line in [*source.splitlines(), "//draft: end"]:
        if heading := _HEADING.fullmatch(line):
            if name:
                yield kind, name, Scripted("\n".join([*lines, ""]), refusal)
            kind, name, refusal = heading[1], heading[2], heading[3]
            lines = []
        elif (body := _LINE.fullmatch(line)) and name:
            lines.append(body[1])


KIND = port.BackendKind(
    name="fake",
    languages=(FAKE,),
    make=lambda _argument: FakeBackend(),
    simulated=True,
    plays_absent=True,
    check=lambda _devices: [port.DoctorFinding("simulated device (fake, replay)", True, "always there")],
    no_profiles="a simulated device has nothing to profile",
    no_counters="a simulated device has no counters",
    no_sanitizer="a simulated device has nothing to watch",
    author=FakeAuthor,
)
