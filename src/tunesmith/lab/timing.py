"""Timing inside the worker: serial chains of launches over rotated data, contenders in alternation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tunesmith.backends.port import Call, Executable, Pointer, Recording, Session
from tunesmith.core.device import Device
from tunesmith.core.messages import Contender, Timed, TimeRuns, TimingPolicy
from tunesmith.core.plan import BufferPlan
from tunesmith.lab.arenas import Arena, Arenas, needs_restoring
from tunesmith.lab.guards import bind_calls

MAX_CHAIN = 512
PROBE = 8  # launches that tell how long one takes
QUICK = 0.002  # seconds: what is slower the first time is looked at alone
WHOLE = 4  # a chain may take this many times as long as wanted, if it goes all the way round then


@dataclass
class _Contestant:
    """One kernel in the race, with its launches bound to the first slot, and the chains recorded so far."""

    calls: list[Call]
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
        pointers = {
            b.name: Pointer(arenas[b.name].memory, 0, max(b.nbytes, 1), self._arenas.stride(b)) for b in own
        }
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
