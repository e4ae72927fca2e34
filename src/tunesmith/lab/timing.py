"""Timing inside the worker: serial chains of launches over rotated data, contenders in alternation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tunesmith.core.checks.draws import draw_array
from tunesmith.core.device import Device
from tunesmith.core.messages import Contender, Draw, Timed, TimeRuns, TimingPolicy
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.core.ports import Call, Executable, Memory, OutOfMemory, Pointer, Session
from tunesmith.lab import reference
from tunesmith.lab.calls import bind_calls, initial_payload

UNKNOWN_CACHE = 64 << 20  # rotate as if the last-level cache were this large when the device does not say
BLOCK = 1 << 22  # elements drawn once and laid out again and again, shifted, to fill an arena
MEMORY_SHARE = 0.6
MAX_CHAIN = 512


@dataclass
class _Arena:
    """The memory one argument rotates through."""

    memory: Memory
    nbytes: int
    content: str  # what it was filled from; refilled when that changes


@dataclass
class _Contestant:
    """One kernel in the race, with its launches bound to every slot visited so far."""

    plan: Plan
    executable: Executable
    buffers: list[BufferPlan]
    slots: int
    length: int = 1  # launches per sample
    hopeless: bool = False  # slower than anyone would wait for: one look is enough
    calls: dict[int, list[Call]] = field(default_factory=dict)


class Stopwatch:
    """Times on one session. Arenas are kept between requests: filling them costs more than timing."""

    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas: dict[str, _Arena] = {}
        self._sources: dict[str, bytes] = {}  # what each argument's arena was filled from
        self._cursor = 0

    def time(self, request: TimeRuns, executables: Sequence[Executable]) -> Timed:
        policy = request.policy
        buffers = _union([c.plan.buffers for c in request.contenders])
        slots = self._slots(buffers, request.warm, policy)
        try:
            self._lay_out(buffers, slots, request)
        except OutOfMemory:
            self.give_back()  # what other workloads have left may take the room
            self._lay_out(buffers, slots, request)
        runners = [
            self._contestant(c, x, buffers, slots, policy)
            for c, x in zip(request.contenders, executables, strict=True)
        ]
        samples: list[list[float]] = [[] for _ in runners]
        discarded = rounds = 0
        start = time.perf_counter()
        while rounds < policy.rounds:
            order = range(len(runners)) if rounds % 2 == 0 else range(len(runners) - 1, -1, -1)
            taken = {i: self._sample(runners[i], runners[i].length) for i in order}
            if self._session.throttled() and discarded < policy.rounds:
                discarded += 1
                continue
            rounds += 1
            for i, seconds in taken.items():
                samples[i].append(seconds)
            if any(contestant.hopeless for contestant in runners):
                break
            if rounds >= policy.min_rounds and time.perf_counter() - start > policy.max_seconds:
                break
        return Timed(tuple(map(tuple, samples)), discarded)

    def give_back(self) -> None:
        """Release all memory; the next request lays out its data anew."""
        for arena in self._arenas.values():
            self._session.release(arena.memory)
        self._arenas.clear()

    def _contestant(
        self,
        contender: Contender,
        executable: Executable,
        buffers: list[BufferPlan],
        slots: int,
        policy: TimingPolicy,
    ) -> _Contestant:
        names = {b.name for b in contender.plan.buffers}
        contestant = _Contestant(contender.plan, executable, [b for b in buffers if b.name in names], slots)
        self._sample(contestant, 1)  # loads code, finishes compiling
        once = self._sample(contestant, 1)
        if policy.give_up is not None and once > policy.give_up:
            contestant.hopeless = True
            return contestant
        length = min(MAX_CHAIN, max(1, math.ceil(policy.chain_seconds / max(once, 1e-7))))
        # An array that is restored between chains must be visited once in each.
        restored = any(_needs_restoring(b) for b in contestant.buffers)
        contestant.length = min(length, slots) if restored else length
        return contestant

    def _sample(self, contestant: _Contestant, length: int) -> float:
        visited = [(self._cursor + i) % contestant.slots for i in range(length)]
        self._cursor = (self._cursor + length) % contestant.slots
        calls = [call for slot in visited for call in self._calls(contestant, slot)]
        seconds = self._session.chain(calls) / length
        # Restored after use, not before: by its next turn a slot has left the caches again.
        for b in contestant.buffers:
            if _needs_restoring(b):
                for slot in visited:
                    self._restore(b, slot * self._stride(b))
        return seconds

    def _calls(self, contestant: _Contestant, slot: int) -> list[Call]:
        if slot not in contestant.calls:
            pointers = {
                b.name: Pointer(self._arenas[b.name].memory, slot * self._stride(b), max(b.nbytes, 1))
                for b in contestant.buffers
            }
            contestant.calls[slot] = bind_calls(contestant.plan, contestant.executable, pointers)
        return contestant.calls[slot]

    def _slots(self, buffers: list[BufferPlan], warm: bool, policy: TimingPolicy) -> int:
        if warm:
            return 1
        strides = [self._stride(b) for b in buffers]
        limits = self._device.limits
        wanted = math.ceil(policy.rotation * (limits.llc or UNKNOWN_CACHE) / max(1, sum(strides)))
        room = int(limits.memory * MEMORY_SHARE) // max(1, sum(strides))
        room = min([room, *(limits.max_allocation // s for s in strides if s)])
        return max(1, min(max(wanted, 2), room))

    def _stride(self, b: BufferPlan) -> int:
        align = max(b.align, self._device.limits.alignment)
        return max(1, -(-b.nbytes // align)) * align

    def _lay_out(self, buffers: list[BufferPlan], slots: int, request: TimeRuns) -> None:
        draw, sizes = request.draw, request.contenders[0].plan.sizes
        fixed = {b.name: initial_payload(b, b"\0") for b in buffers if b.init is not None}
        if draw.inputs is not None:
            drawn = reference.draw_inputs(request.contenders[0].plan, draw)
            fixed |= {name: array.tobytes() for name, array in drawn.items()}
        for b in buffers:
            needed = slots * self._stride(b)
            # Drawn numbers are right for any size; linked or promised ones only for their own.
            content = repr((b, sizes, draw) if b.name in fixed else (b.type, b.values, b.range, draw))
            arena = self._arenas.get(b.name)
            if arena is not None and arena.nbytes >= needed and arena.content == content:
                continue
            if arena is not None:
                del self._arenas[b.name]
                self._session.release(arena.memory)
            self._arenas[b.name] = _Arena(self._session.allocate(needed), needed, content)
            self._fill(b, needed, draw, fixed.get(b.name))

    def _fill(self, b: BufferPlan, nbytes: int, draw: Draw, fixed: bytes | None) -> None:
        memory = self._arenas[b.name].memory
        source = self._sources[b.name] = self._draw_block(b, nbytes, draw) if fixed is None else fixed
        if fixed is not None:
            for offset in range(0, nbytes, self._stride(b)):
                self._session.write(memory, offset, source)
            return
        position = shift = 0
        while position < nbytes:
            piece = memoryview(source)[shift : shift + nbytes - position]
            self._session.write(memory, position, piece)
            position += len(piece)
            # An odd shift each time round: slots hold the same distribution, never the same numbers.
            shift = (shift + 7919 * b.itemsize) % (len(source) // 2 + 1) // b.itemsize * b.itemsize

    def _draw_block(self, b: BufferPlan, nbytes: int, draw: Draw) -> bytes:
        count = min(BLOCK, -(-nbytes // b.itemsize))
        flat = replace(b, shape=(count,), strides=(1,), extent=count)
        return draw_array(flat, draw.distribution, draw.seed).tobytes()

    def _restore(self, b: BufferPlan, offset: int) -> None:
        """Give an in-place array fresh values, outside any timed window."""
        source = memoryview(self._sources[b.name])
        position = 0
        while position < b.nbytes:
            piece = source[: b.nbytes - position]
            self._session.write(self._arenas[b.name].memory, offset + position, piece)
            position += len(piece)


def _needs_restoring(b: BufferPlan) -> bool:
    return b.role == "inout" or b.init is not None


def _union(groups: list[tuple[BufferPlan, ...]]) -> list[BufferPlan]:
    """Every buffer any contender needs, the larger where two need the same name."""
    found: dict[str, BufferPlan] = {}
    for group in groups:
        for b in group:
            if b.name not in found or found[b.name].nbytes < b.nbytes:
                found[b.name] = b
    return list(found.values())
