"""Memory that timed launches rotate through: laid out once, filled with numbers, kept between requests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.backends.messages import Contender, Draw, Timed, TimeRuns, TimingPolicy
from tunesmith.backends.port import Executable, LaunchCall, Memory, OutOfMemory, Pointer, Recording, Session
from tunesmith.lab import references as reference
from tunesmith.lab.memory import bind_calls, initial_payload
from tunesmith.problem.device import Device
from tunesmith.problem.draws import BLOCK, draw_array
from tunesmith.problem.plan import BufferPlan, Plan
from tunesmith.problem.problem import PythonFunction

UNKNOWN_CACHE = 64 << 20  # rotate as if the last-level cache were this large when the device does not say
MEMORY_SHARE = 0.6
LINE = 256  # bytes; slots of a GPU's arrays share no cache line
RESTORED_SLOTS = 16  # a chain over arrays that are restored after it is no longer than the rotation


@dataclass
class Arena:
    """The memory one argument rotates through, and of one that is restored a second that stays as it was."""

    memory: Memory
    nbytes: int
    source: Memory | None


class Arenas:
    """Filling costs more than timing, so what an earlier request has laid out stays for the next."""

    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas: dict[tuple[str, str], Arena] = {}  # by argument and what it is filled from
        self._linked: dict[PythonFunction, frozenset[str]] = {}  # arguments that the function makes

    def lay_out(self, buffers: Sequence[BufferPlan], slots: int, plan: Plan, draw: Draw) -> dict[str, Arena]:
        """Memory for every buffer, filled. Arenas of earlier requests may be replaced by larger ones."""
        try:
            return self._lay_out(buffers, slots, plan, draw)
        except OutOfMemory:
            self.give_back()  # what other workloads have left may take the room
            return self._lay_out(buffers, slots, plan, draw)

    def has(self, arenas: dict[str, Arena]) -> bool:
        """Whether they are still there, and not replaced by others since."""
        return all(any(arena is known for known in self._arenas.values()) for arena in arenas.values())

    def give_back(self) -> None:
        """Release all memory; the next request lays out its data anew."""
        for key in list(self._arenas):
            self._drop(key)

    def restore(self, b: BufferPlan, arena: Arena, slots: Sequence[int]) -> None:
        """Give an in-place array its values back, at slots that lie side by side."""
        assert arena.source is not None
        stride = self.stride(b)
        place, nbytes = slots[0] * stride, len(slots) * stride
        self._session.copy(Pointer(arena.memory, place, nbytes), Pointer(arena.source, place, nbytes))

    def _drop(self, key: tuple[str, str]) -> None:
        arena = self._arenas.pop(key)
        self._session.release(arena.memory)
        if arena.source is not None:
            self._session.release(arena.source)

    def slots(self, buffers: Sequence[BufferPlan], warm: bool, rotation: float) -> int:
        """How many copies of the arrays it takes to leave the cache cold, as far as there is room."""
        if warm:
            return 1
        fewest = RESTORED_SLOTS if any(map(needs_restoring, buffers)) and self._device.inspects else 2
        strides = [self.stride(b) for b in buffers]
        limits = self._device.limits
        # What a kernel does not touch pushes nothing out of the cache.
        touched = max(1, sum(min(b.touched, s) for b, s in zip(buffers, strides, strict=True)))
        wanted = math.ceil(rotation * (limits.llc or UNKNOWN_CACHE) / touched)
        twice = sum(stride for b, stride in zip(buffers, strides, strict=True) if needs_restoring(b))
        room = int(limits.memory * MEMORY_SHARE) // max(1, sum(strides) + twice)
        room = min([room, *(limits.max_allocation // s for s in strides if s)])
        return max(1, min(max(wanted, fewest), room))

    def stride(self, b: BufferPlan) -> int:
        # Neighbours in one cache line would warm each other's.
        align = max(b.align, self._device.limits.alignment, LINE if self._device.inspects else 1)
        return max(1, -(-b.nbytes // align)) * align

    def _lay_out(self, buffers: Sequence[BufferPlan], slots: int, plan: Plan, draw: Draw) -> dict[str, Arena]:
        made: dict[str, bytes] | None = None  # by the user's function: asked only when there is need
        if draw.inputs is not None and draw.inputs not in self._linked:
            made = _made(plan, draw)
            self._linked[draw.inputs] = frozenset(made)
        linked = self._linked[draw.inputs] if draw.inputs is not None else frozenset()
        arenas: dict[str, Arena] = {}
        for b in buffers:
            needed = slots * self.stride(b)
            # Drawn numbers are right for any size; linked or promised ones only for their own.
            is_fixed = b.name in linked or b.init is not None
            content = repr((b, plan.sizes, draw) if is_fixed else (b.type, b.values, b.range, draw))
            key = (b.name, content)
            arena = self._arenas.get(key)
            if arena is not None and arena.nbytes < needed:
                self._drop(key)
                arena = None
            if arena is None:
                data: bytes | None = None
                if b.name in linked:
                    made = made or _made(plan, draw)
                    data = made[b.name]
                elif b.init is not None:
                    data = initial_payload(b, b"\0")
                arena = self._arenas[key] = self._fill(b, needed, draw, data)
            arenas[b.name] = arena
        return arenas

    def _fill(self, b: BufferPlan, nbytes: int, draw: Draw, fixed: bytes | None) -> Arena:
        """An arena filled from `fixed`, the same at every slot, or else with drawn numbers, on and on."""
        data = fixed
        if data is None:
            count = b.packed * min(BLOCK, -(-nbytes // b.itemsize))
            flat = replace(b, shape=(count,), strides=(1,), extent=count)
            data = draw_array(flat, draw.distribution, draw.seed).tobytes()
        taken: list[Memory] = []
        try:
            for size in (nbytes, len(data), nbytes if needs_restoring(b) else 0):
                memory = self._session.allocate(max(1, size))
                taken.append(memory)
        except OutOfMemory:
            for memory in taken:
                self._session.release(memory)
            raise
        memory, block, source = taken
        if data:
            self._session.write(block, 0, data)
            self._repeat(b, Pointer(memory, 0, nbytes), Pointer(block, 0, len(data)), fixed is not None)
        self._session.release(block)
        if not needs_restoring(b):
            self._session.release(source)
            return Arena(memory, nbytes, None)
        self._session.copy(Pointer(source, 0, nbytes), Pointer(memory, 0, nbytes))
        return Arena(memory, nbytes, source)

    def _repeat(self, b: BufferPlan, to: Pointer, block: Pointer, aligned: bool) -> None:
        memory, size = to.memory, block.nbytes
        if aligned:
            for offset in range(0, to.nbytes, self.stride(b)):
                self._session.copy(Pointer(memory, offset, size), block)
            return
        position = shift = 0
        while position < to.nbytes:
            length = min(size - shift, to.nbytes - position)
            self._session.copy(Pointer(memory, position, length), Pointer(block.memory, shift, length))
            position += length
            # An odd shift each time round: slots hold the same distribution, never the same numbers.
            shift = (shift + 7919 * b.itemsize) % (size // 2 + 1) // b.itemsize * b.itemsize


def needs_restoring(b: BufferPlan) -> bool:
    return b.role == "inout" or b.init is not None


def _made(plan: Plan, draw: Draw) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in reference.linked_inputs(plan, draw).items()}


MAX_CHAIN = 512
PROBE = 8  # launches that tell how long one takes
QUICK = 0.002  # seconds: what is slower the first time is looked at alone
WHOLE = 4  # a chain may take this many times as long as wanted, if it goes all the way round then


@dataclass
class _Contestant:
    """One kernel in the race, with its launches bound to the first slot, and the chains recorded so far."""

    calls: list[LaunchCall]
    slots: int
    restored: list[tuple[BufferPlan, Arena]]  # after every chain, in which no slot may then come twice
    once: float = 0.0  # seconds of a launch by itself
    length: int = 1  # launches per sample
    hopeless: bool = False  # slower than anyone would wait for: one look is enough
    plain: bool = False  # launched one by one
    recordings: dict[tuple[int, int], Recording] = field(default_factory=dict)  # by first slot and length


class Stopwatch:
    """Times on one session."""

    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas = Arenas(session, device)
        self._cursor = 0  # the slot after the one used last
        self._thrift = 1

    def time(self, request: TimeRuns, executables: Sequence[Executable]) -> Timed:
        """All contenders in alternation, each sample seen before the next is taken."""
        policy = request.policy
        runners, _ = self._line_up(request, executables)
        samples: list[list[float]] = [[] for _ in runners]
        discarded = rounds = 0
        start = time.perf_counter()
        while rounds < policy.rounds:
            order = range(len(runners)) if rounds % 2 == 0 else range(len(runners) - 1, -1, -1)
            taken = {i: self._sample(runners[i], runners[i].length)() for i in order}
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
        busy = sum(sum(s) * r.length for s, r in zip(samples, runners, strict=True))
        return Timed(tuple(map(tuple, samples)), discarded, busy)

    def time_each(self, requests: Sequence[tuple[TimeRuns, Executable]]) -> tuple[Timed, ...]:
        """One contender after the other, each at its own workload. While the device plays the chains of one,
        those of the next are recorded; samples are looked at when all have been queued."""
        for request, _ in requests:
            self._lay_out(request)  # now, because a larger workload may replace what a smaller one has
        lined_up = [self._line_up(request, [executable]) for request, executable in requests]
        if not all(self._arenas.has(arenas) for _, arenas in lined_up):
            return self._one_by_one(requests)  # there is not room for all at once
        queued: list[list[Callable[[], float]]] = []
        for (request, _), ((contestant,), _) in zip(requests, lined_up, strict=True):
            rounds = 0 if contestant.hopeless else _rounds(contestant, request.policy)
            queued.append([self._sample(contestant, contestant.length) for _ in range(rounds)])
        samples = [
            tuple(seconds() for seconds in chains) or (contestant.once,)
            for chains, ((contestant,), _) in zip(queued, lined_up, strict=True)
        ]
        if self._session.throttled():
            return self._one_by_one(requests)  # which discards what was taken under a held clock
        return tuple(
            Timed((taken,), 0, sum(taken) * contestant.length)
            for taken, ((contestant,), _) in zip(samples, lined_up, strict=True)
        )

    def _one_by_one(self, requests: Sequence[tuple[TimeRuns, Executable]]) -> tuple[Timed, ...]:
        return tuple(self.time(request, [executable]) for request, executable in requests)

    def rotate_less(self) -> None:
        """Others may use the device too: half the memory from now on. Better a time less cold than none."""
        self._thrift *= 2

    def give_back(self) -> None:
        """Release all memory; the next request lays out its data anew."""
        self._arenas.give_back()

    def _lay_out(self, request: TimeRuns) -> tuple[list[BufferPlan], int, dict[str, Arena]]:
        buffers = _union([c.plan.buffers for c in request.contenders])
        plan, draw = request.contenders[0].plan, request.draw
        wanted = self._arenas.slots(buffers, request.warm, request.policy.rotation)
        slots = min(wanted, max(2, wanted // self._thrift))
        return buffers, slots, self._arenas.lay_out(buffers, slots, plan, draw)

    def _line_up(
        self, request: TimeRuns, executables: Sequence[Executable]
    ) -> tuple[list[_Contestant], dict[str, Arena]]:
        buffers, slots, arenas = self._lay_out(request)
        runners = [
            self._contestant(c, x, buffers, arenas, slots, request)
            for c, x in zip(request.contenders, executables, strict=True)
        ]
        return runners, arenas

    def _contestant(
        self,
        contender: Contender,
        executable: Executable,
        buffers: list[BufferPlan],
        arenas: dict[str, Arena],
        slots: int,
        request: TimeRuns,
    ) -> _Contestant:
        policy = request.policy
        names = {b.name for b in contender.plan.buffers}
        own = [b for b in buffers if b.name in names]
        stride = self._arenas.stride
        pointers = {b.name: Pointer(arenas[b.name].memory, 0, max(b.nbytes, 1), stride(b)) for b in own}
        restored = [(b, arenas[b.name]) for b in own if needs_restoring(b)]
        calls = bind_calls(contender.plan, executable, pointers)
        contestant = _Contestant(calls, slots, restored, plain=request.plain)
        started = time.perf_counter()
        self._session.run(calls)  # loads code, finishes compiling
        is_quick = time.perf_counter() - started < QUICK
        self._restore(contestant, (0,))
        # Of one short launch by itself the device's own start would be most of the time.
        probe = min(PROBE, slots) if is_quick and self._device.inspects else 1
        contestant.once = self._sample(contestant, probe)()
        contestant.hopeless = policy.give_up is not None and contestant.once > policy.give_up
        contestant.length = probe if contestant.hopeless else _length(contestant, policy)
        return contestant

    def _sample(self, contestant: _Contestant, length: int) -> Callable[[], float]:
        """Queue a chain; the answer waits for its end and gives the seconds of one launch."""
        start = self._start(length, contestant.slots)
        visited = [(start + i) % contestant.slots for i in range(length)]
        key = (start, length)
        if key not in contestant.recordings:
            make = self._session.queue if contestant.plain else self._session.record
            contestant.recordings[key] = make(contestant.calls, visited)
        seconds = contestant.recordings[key].start()
        self._restore(contestant, visited)
        return lambda: seconds() / length

    def _restore(self, contestant: _Contestant, slots: Sequence[int]) -> None:
        """After use, not before: by its next turn a slot has left the caches again."""
        for b, arena in contestant.restored:
            self._arenas.restore(b, arena, slots)

    def _start(self, length: int, slots: int) -> int:
        """Where the next chain starts: beyond what the last one used, whoever that was, and at a multiple of
        its length, so that a chain once recorded comes round again."""
        if length >= slots:
            self._cursor = 0
            return 0
        segment = -(-self._cursor // length) % (slots // length)
        self._cursor = (segment + 1) * length
        return segment * length


def _length(contestant: _Contestant, policy: TimingPolicy) -> int:
    slots, once = contestant.slots, contestant.once
    length = min(MAX_CHAIN, max(1, math.ceil(policy.chain_seconds / max(once, 1e-7))))
    whole = slots <= MAX_CHAIN and slots * once <= WHOLE * policy.chain_seconds
    if whole and not contestant.restored:
        return -(-length // slots) * slots  # whole rounds: one recording serves every sample
    return slots // -(-slots // min(length, slots))  # parts of one size, that together go all the way round


def _rounds(contestant: _Contestant, policy: TimingPolicy) -> int:
    """As many as the policy wants, fewer where they would take too long, by the one launch seen so far."""
    affordable = int(policy.max_seconds / max(contestant.once * contestant.length, 1e-9))
    return max(policy.min_rounds, min(policy.rounds, affordable))


def _union(groups: list[tuple[BufferPlan, ...]]) -> list[BufferPlan]:
    """Every buffer any contender needs, the larger where two need the same name."""
    found: dict[str, BufferPlan] = {}
    for group in groups:
        for b in group:
            if b.name not in found or found[b.name].nbytes < b.nbytes:
                found[b.name] = b
    return list(found.values())
