"""Times on one session: chains of launches, in alternation, over memory that goes round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tunesmith.backends.messages import Contender, Timed, TimedLook, TimeRuns, TimingPolicy
from tunesmith.backends.port import Executable, Inspector, LaunchCall, Pointer, Recording, Session, Slots
from tunesmith.lab.disturbance import (
    RETAKEN,
    Sample,
    disturbed_rounds,
    judge_rounds,
    read_waits,
    sensitivity_of,
)
from tunesmith.lab.memory import bind_calls
from tunesmith.lab.worker.buffer_ring import Arena, BufferRing, needs_restoring
from tunesmith.lab.worker.device_cases import CaseMemory
from tunesmith.lab.worker.host_cases import tell_left_over
from tunesmith.lab.worker.output_sampling import CHANCE, OutputSampler, is_rotated
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan

MAX_CHAIN = 512
PROBE = 8  # launches that tell how long one takes
QUICK = 0.002  # seconds: what is slower the first time is looked at alone
TURNS = 3  # how far writing may be ahead of reading: each takes a recording of its own
DISTURBED = 4  # places of each slot that is written, before each chain
ALIKE = 2  # times as long as another's: samples of two contenders differ by no more, where that can be
WHOLE = 4  # a chain may take this many times as long as wanted, if it goes all the way round then


@dataclass
class _Contestant:
    """One kernel in the race, with its launches bound to the first slot, and the chains recorded so far."""

    calls: list[LaunchCall]
    slots: int
    restored: list[tuple[BufferPlan, Arena]]  # after every chain, in which no slot may then come twice
    written: list[tuple[Pointer, int]]  # what turns: its first slot, and the bytes to the next
    turn: int  # how far writing is ahead of reading, where that stays
    once: float = 0.0  # seconds of a launch by itself
    length: int = 1  # launches per sample
    hopeless: bool = False  # slower than anyone would wait for: one look is enough
    plain: bool = False  # launched one by one
    spared: int = -1  # the launch of a chain after which nobody writes where it did
    # By start, length, turn, and that launch.
    recordings: dict[tuple[int, int, int, int], Recording] = field(default_factory=dict)
    watch: OutputSampler | None = None  # None: nobody looks

    @property
    def seconds(self) -> float:
        """Of a sample."""
        return self.length * self.once


class Stopwatch:
    """Times on one session."""

    def __init__(self, session: Session, device: Device) -> None:
        self._session = session
        self._device = device
        self._arenas = BufferRing(session, device)
        self._scratch = CaseMemory(session, device)
        self._cursor = 0  # the slot after the one used last
        self._turn = 0  # how far writing was ahead of reading the last time round
        self._thrift = 1
        self._sensitivity = sensitivity_of(device)

    def time(
        self, request: TimeRuns, executables: Sequence[Executable], original: Executable | None = None
    ) -> tuple[Timed, list[bytes]]:
        """All contenders in alternation, each sample seen before the next is taken. Any round may be one in
        which somebody looks, also the last."""
        policy = request.policy
        runners, _ = self._line_up(request, executables, original)
        watch, most = runners[-1].watch, self._choose_rounds(runners, policy)
        watched = set(CHANCE.sample(range(most), min(policy.looks, most))) if watch is not None else set()
        least = max(policy.min_rounds, max(watched, default=0) + 1)
        rounds: list[list[Sample]] = []
        looks: list[TimedLook] = []
        blobs: list[bytes] = []
        discarded = quiet = 0
        start = time.perf_counter()
        retaken = RETAKEN if len(runners) > 1 else 1  # what is timed alone is claimed by nobody
        while quiet < most and len(rounds) < retaken * most:
            order = range(len(runners)) if len(rounds) % 2 == 0 else range(len(runners) - 1, -1, -1)
            # A round that is taken again is looked at as often as another.
            look = len(rounds) in watched if len(rounds) < most else CHANCE.random() * most < len(watched)
            taken = {i: self._taken(runners[i], look) for i in order}
            if self._session.throttled() and discarded < policy.rounds:
                discarded += 1
                if watch is not None:
                    watch.drop()  # who looks, looks at a round that counts, and once
                continue
            if watch is not None and look:
                seen, data = watch.settle()
                looks += seen
                blobs += data
            rounds.append([taken[i] for i in range(len(runners))])
            if any(contestant.hopeless for contestant in runners):
                break
            spent = self._elapsed_seconds(start)
            is_late = len(rounds) >= least and spent > policy.max_seconds
            if is_late or len(rounds) >= most:
                quiet = len(rounds) - len(disturbed_rounds(rounds, self._sensitivity))
            # Where quiet rounds are too few, it goes on for as long again.
            if is_late and (quiet >= policy.min_rounds or spent > retaken * policy.max_seconds):
                break
        judged = judge_rounds(rounds, policy.min_rounds, self._sensitivity)
        if judged.disturbance and (others := self._session.neighbours()):
            judged = replace(judged, disturbance=f"{judged.disturbance}; {others}")
        if not request.needs_turn:
            judged = replace(
                judged, disturbance="other Tunesmith processes timed on the device all the while"
            )
        samples = [[rounds[n][i].seconds for n in judged.kept] for i in range(len(runners))]
        disturbed = len(rounds) - len(judged.kept)
        if watch is not None and policy.whole and self._session.inspector is not None:
            changed, blobs_of_changed = watch.inputs_changed()
            looks += changed
            blobs += blobs_of_changed
        busy = sum(sum(s) * r.length for s, r in zip(samples, runners, strict=True))
        clocks = self._session.clocks() if len(runners) > 1 else ()
        left_over = ""
        if policy.whole and not runners[-1].hopeless:
            left_over = tell_left_over(
                self._session, lambda: self._queue_sample(runners[-1], 1, look=False)()
            )
        about = (discarded, busy, tuple(looks), clocks, disturbed, judged.disturbance, left_over)
        return Timed(tuple(map(tuple, samples)), *about), blobs

    def _taken(self, contestant: _Contestant, look: bool) -> Sample:
        """A sample, with what tells whether others had the device meanwhile."""
        if not self._device.is_host:
            seconds = self._queue_sample(contestant, contestant.length, look)()
            return Sample(seconds, _by_launch(self._session.parts(), contestant.length) or (seconds,))
        before = read_waits()
        seconds = self._queue_sample(contestant, contestant.length, look)()
        return Sample(seconds, waited=before.share_until(read_waits()))

    def _elapsed_seconds(self, start: float) -> float:
        """A simulated device spends no time: how busy the host is must not decide how often it is sampled."""
        return 0.0 if self._device.kind == "simulated" else time.perf_counter() - start

    def _choose_rounds(self, contestants: Sequence[_Contestant], policy: TimingPolicy) -> int:
        return policy.rounds if self._device.kind == "simulated" else _affordable_rounds(contestants, policy)

    def time_each(
        self, requests: Sequence[tuple[TimeRuns, Executable, Executable | None]]
    ) -> tuple[tuple[Timed, ...], list[bytes]]:
        """One contender after the other, each at its own workload. While the device plays the chains of one,
        those of the next are recorded; samples are looked at when all have been queued."""
        self.lay_out([request for request, _, _ in requests])
        lined_up = [
            self._line_up(request, [executable], original, number)
            for number, (request, executable, original) in enumerate(requests)
        ]
        if not all(self._arenas.has(arenas) for _, arenas in lined_up):
            return self._one_by_one(requests)  # there is not room for all at once
        queued: list[list[Callable[[], float]]] = []
        for (request, _, _), ((contestant,), _) in zip(requests, lined_up, strict=True):
            rounds = 0 if contestant.hopeless else _affordable_rounds([contestant], request.policy)
            watched = CHANCE.randrange(rounds) if rounds else -1
            queued.append(
                [self._queue_sample(contestant, contestant.length, n == watched) for n in range(rounds)]
            )
        samples = [
            tuple(seconds() for seconds in chains) or (contestant.once,)
            for chains, ((contestant,), _) in zip(queued, lined_up, strict=True)
        ]
        if self._session.throttled():
            return self._one_by_one(requests)  # which discards what was taken under a held clock
        timed, blobs = [], []
        for taken, ((contestant,), _) in zip(samples, lined_up, strict=True):
            looks, data = contestant.watch.settle() if contestant.watch is not None else ((), [])
            timed.append(Timed((taken,), 0, sum(taken) * contestant.length, looks))
            blobs += data
        return tuple(timed), blobs

    def _one_by_one(
        self, requests: Sequence[tuple[TimeRuns, Executable, Executable | None]]
    ) -> tuple[tuple[Timed, ...], list[bytes]]:
        found = [self.time(request, [executable], original) for request, executable, original in requests]
        return tuple(timed for timed, _ in found), [blob for _, blobs in found for blob in blobs]

    def rotate_less(self) -> None:
        """Others may use the device too: half the memory from now on. Better a time less cold than none."""
        self._thrift *= 2

    def give_back(self) -> None:
        """Release all memory; the next request lays out its data anew."""
        self._arenas.give_back()
        self._scratch.give_back()

    def lay_out(self, requests: Sequence[TimeRuns]) -> None:
        """Now, because a larger workload may replace what a smaller one has, and drawing takes its time."""
        for request in requests:
            self._lay_out(request)

    def _lay_out(self, request: TimeRuns) -> tuple[list[BufferPlan], int, dict[str, Arena]]:
        judges = () if request.original is None else (request.original,)
        buffers = _merge_buffers([c.plan.buffers for c in (*request.contenders, *judges)])
        plan, draw = request.contenders[0].plan, request.draw
        wanted = self._arenas.slots(buffers, request.warm, request.policy.rotation)
        slots = min(wanted, max(2, wanted // self._thrift))
        return buffers, slots, self._arenas.lay_out(buffers, slots, plan, draw)

    def _line_up(
        self,
        request: TimeRuns,
        executables: Sequence[Executable],
        original: Executable | None,
        number: int = 0,
    ) -> tuple[list[_Contestant], dict[str, Arena]]:
        buffers, slots, arenas = self._lay_out(request)
        runners = [
            self._prepare_contestant(c, x, buffers, arenas, slots, request)
            for c, x in zip(request.contenders, executables, strict=True)
        ]
        _make_alike(runners)
        if self._session.inspector is not None and len(runners) > 1:
            for contestant in runners:
                self._turn += -(-contestant.length // slots)  # so that the next writes elsewhere
                contestant.turn = self._turn % slots
        if request.original is not None:
            plan, parts = request.contenders[-1].plan, (self._session, self._device, self._arenas)
            runners[-1].watch = OutputSampler(*parts, self._scratch, arenas, plan, request, original, number)
        return runners, arenas

    def _prepare_contestant(
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
        needed = [b for b in buffers if b.name in names]
        stride = self._arenas.stride
        pointers = {
            b.name: Pointer(arenas[b.name].memory, 0, max(b.nbytes, 1), stride(b), is_rotated(b))
            for b in needed
        }
        restored = [(b, arenas[b.name]) for b in needed if needs_restoring(b)]
        written = [(pointers[b.name].part(0, b.nbytes), stride(b)) for b in needed if is_rotated(b)]
        calls = bind_calls(contender.plan, executable, pointers)
        contestant = _Contestant(calls, slots, restored, written, self._turn % slots, plain=request.plain)
        started = time.perf_counter()
        self._session.run(calls)  # loads code, finishes compiling
        is_quick = time.perf_counter() - started < QUICK
        self._restore_slots(contestant, (0,))
        # Of one short launch by itself the device's own start would be most of the time.
        probe = min(PROBE, slots) if is_quick and self._device.inspects else 1
        contestant.once = self._queue_sample(contestant, probe, look=False)()
        contestant.hopeless = policy.give_up is not None and contestant.once > policy.give_up
        contestant.length = probe if contestant.hopeless else _chain_length(contestant, policy.chain_seconds)
        if self._session.inspector is not None:
            self._turn += -(-contestant.length // slots)  # so that the next writes elsewhere
        return contestant

    def _queue_sample(self, contestant: _Contestant, length: int, look: bool) -> Callable[[], float]:
        """Queue a chain; the answer waits for its end and gives the seconds of one launch."""
        start, turn = self._next_start(contestant, length)
        watch, spared = contestant.watch if look else None, self._choose_spared(contestant, length, look)
        visits = visits_of(start, length, contestant.slots, turn, spared)
        if watch is not None:
            chosen = spared if spared >= 0 else watch.choose(length, contestant.slots)
            watch.prepare(visits[chosen])
        elif contestant.watch is not None and contestant.slots == 1:
            contestant.watch.scramble(0)  # there is no other place to write to
        key = (start, length, turn, spared)
        if key not in contestant.recordings:
            make = self._session.queue if contestant.plain else self._session.record
            contestant.recordings[key] = make(contestant.calls, visits)
        if self._session.inspector is not None:
            self._disturb_outputs(contestant, self._session.inspector)
        seconds = contestant.recordings[key].start()
        if watch is not None:
            watch.take()
        if contestant.restored:
            self._restore_slots(contestant, [read for read, _ in visits])
        return lambda: seconds() / length

    def _choose_spared(self, contestant: _Contestant, length: int, look: bool) -> int:
        """The launch that can be looked at in a chain that comes to a slot more than once. Drawn anew for
        every look at a finalist; else once, because each takes a recording of its own."""
        watch = contestant.watch
        if watch is None or length <= contestant.slots:
            return -1
        if contestant.spared < 0 or (look and watch.request.policy.whole):
            contestant.spared = watch.choose(length, contestant.slots)
        return contestant.spared

    def _restore_slots(self, contestant: _Contestant, slots: Sequence[int]) -> None:
        """After use, not before: by its next turn a slot has left the caches again."""
        for b, arena in contestant.restored:
            self._arenas.restore(b, arena, slots)

    def _disturb_outputs(self, contestant: _Contestant, inspector: Inspector) -> None:
        """What an earlier chain has written is not right any more: a kernel that finds it there, and does
        nothing, is seen by the next look."""
        for first, stride in contestant.written:
            inspector.disturb(first, stride, contestant.slots, DISTURBED, CHANCE.getrandbits(62))

    def _next_start(self, contestant: _Contestant, length: int) -> tuple[int, int]:
        """Where the next chain starts: beyond what the last one used, whoever that was, and at a multiple of
        its length, so that a chain once recorded comes round again. And by how much writing is ahead of
        reading: not as the last time round, so that nothing is written where it lies already. Where recording
        is what takes time, it stays, and what lies there is disturbed."""
        slots = contestant.slots
        segment = 0 if length >= slots else -(-self._cursor // length) % (slots // length)
        self._cursor = 0 if length >= slots else (segment + 1) * length
        if self._session.inspector is not None:
            return segment * length, contestant.turn
        if segment == 0:
            self._turn = (self._turn + 1) % min(TURNS, slots)
        turn = self._turn
        if length > slots:
            self._turn = (turn + -(-length // slots) - 1) % slots  # it moves on each time round
        return segment * length, turn


@lru_cache(256)
def visits_of(start: int, length: int, slots: int, turn: int, spared: int = -1) -> tuple[Slots, ...]:
    """The slots that a chain reads from and writes to, launch by launch."""
    launches = range(start, start + length)
    visits = tuple((i % slots, (i + i // slots + turn) % slots) for i in launches)
    return visits if spared < 0 else spare_slot(visits, spared, slots)


def spare_slot(visits: Sequence[Slots], kept: int, slots: int) -> tuple[Slots, ...]:
    """The same, but that nobody writes where launch `kept` did after it: so any launch can be looked at, and
    a kernel that counts how often it has been at a place does not know which."""
    spared = visits[kept][1]
    other = (spared + max(1, slots // 2)) % slots
    return tuple((r, other if n > kept and w == spared else w) for n, (r, w) in enumerate(visits))


def _by_launch(parts: Sequence[float], length: int) -> tuple[float, ...]:
    """Seconds of one launch, by the parts that a chain falls into."""
    ends = [(n + 1) * length // len(parts) for n in range(len(parts))]
    return tuple(part / (end - start) for part, start, end in zip(parts, [0, *ends], ends, strict=False))


def _make_alike(contestants: Sequence[_Contestant]) -> None:
    """Samples of like length, so that whatever else the device does hits one as often as the other: the short
    one is repeated, as far as a chain may be long; then the long one is cut."""
    if any(contestant.hopeless for contestant in contestants):
        return
    wanted = max(contestant.seconds for contestant in contestants)
    for contestant in contestants:
        if contestant.seconds * ALIKE < wanted:
            contestant.length = _chain_length(contestant, wanted)
    least = min(contestant.seconds for contestant in contestants)
    for contestant in contestants:
        if contestant.seconds > ALIKE * least:
            contestant.length = _chain_length(contestant, least, whole=1.0)


def _chain_length(contestant: _Contestant, seconds: float, whole: float = WHOLE) -> int:
    """Launches for a sample of so many seconds."""
    slots, once = contestant.slots, contestant.once
    length = min(MAX_CHAIN, max(1, math.ceil(seconds / max(once, 1e-7))))
    goes_round = slots <= MAX_CHAIN and slots * once <= whole * seconds
    if goes_round and not contestant.restored:
        return -(-length // slots) * slots  # whole rounds: one recording serves every sample
    return slots // -(-slots // min(length, slots))  # parts of one size, that together go all the way round


def _affordable_rounds(contestants: Sequence[_Contestant], policy: TimingPolicy) -> int:
    """As many as the policy wants, fewer where they would take too long, by the one launch seen so far."""
    once = sum(contestant.once * contestant.length for contestant in contestants)
    affordable = int(policy.max_seconds / max(once, 1e-9))
    return max(policy.min_rounds, min(policy.rounds, affordable))


def _merge_buffers(groups: list[tuple[BufferPlan, ...]]) -> list[BufferPlan]:
    """Every buffer any of them needs, the larger where two need the same name."""
    found: dict[str, BufferPlan] = {}
    for group in groups:
        for b in group:
            if b.name not in found or found[b.name].nbytes < b.nbytes:
                found[b.name] = b
    return list(found.values())
