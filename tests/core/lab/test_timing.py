"""Timing, on a session that writes down what it is asked: order, rotation, chains and what memory holds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.core.lab.labs import device_of, fake_kernel, plan_at, read_problem
from tunesmith.backends.messages import Contender, Draw, Timed, TimeRuns, TimingPolicy, Unit
from tunesmith.backends.port import Executable, LaunchCall, Memory, OutOfMemory, Pointer, Slots, at_slots
from tunesmith.lab.worker import buffer_ring, timing
from tunesmith.lab.worker.buffer_ring import MEMORY_SHARE
from tunesmith.lab.worker.timing import MAX_CHAIN, TURNS, Stopwatch, spare_slot, visits_of
from tunesmith.problem.device import Clock, Device
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem, PythonFunction
from tunesmith.problem.template_file import parse_template

PROBLEM = """
name = "example"
[kernel]
source = "kernel.fake"
entry = "kernel"
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
{out}
[[argument]]
name = "x"
type = "{type}*"
shape = ["n"]
role = "{role}"
[[argument]]
name = "n"
type = "int32"
value = "n"
[[argument]]
name = "m"
type = "int32"
value = "m"
[launch]
grid = ["n"]
block = ["64"]
[contract]
n = {{ min = 1, max = 1000000 }}
m = {{ min = 1, max = 1000000 }}
[workloads]
only = {{ n = 1024, m = 1 }}
"""
TEMPLATE = """// /// tunesmith
// [params]
// A = [1, 2]
// [default]
// A = 1
// [workspace]
// counter = {{ type = "int32*", shape = ["{count}"], init = 7 }}
// partial = {{ type = "float32*", shape = ["n * A"] }}
// [launch]
// grid = ["n"]
// block = ["64"]
// args = ["out", "x", "n", "m", "counter", "partial"]
// ///
int a[A];
"""
DRAW = Draw("normal", 1)
POLICY = TimingPolicy(rounds=6, min_rounds=3, chain_seconds=0.01, max_seconds=60.0)
FILLING = 5e-5  # seconds of a fill
SPENT = 0xEE  # what memory a kernel has written to holds afterwards


def problem(role: str = "input", out: str = "", type_: str = "float32") -> Problem:
    text = PROBLEM.format(role=role, out=out, type=type_)
    return read_problem(text, {"kernel.fake": fake_kernel(args="out, x, n, m")})


def plan(example: Problem, n: int = 1024, m: int = 1) -> Plan:
    return plan_at(example, n=n, m=m)


def small_device(**limits: Any) -> Device:
    device = device_of("fake")
    return replace(device, limits=replace(device.limits, **{"llc": 1 << 14, "alignment": 64, **limits}))


@dataclass
class Block:
    data: np.ndarray[Any, np.dtype[np.uint8]]

    @property
    def nbytes(self) -> int:
        return self.data.size


@dataclass(frozen=True)
class Kernel:
    """Takes so long; `writes` are the arguments, by place, that it changes."""

    name: str
    seconds: float = 1e-3
    writes: tuple[int, ...] = (0,)
    entries: tuple[str, ...] = ("kernel",)


@dataclass(frozen=True)
class Chain:
    kernel: str
    slots: tuple[int, ...]  # that were read
    written: tuple[int, ...]
    regions: tuple[tuple[tuple[int, int, int], ...], ...]  # of every pointer in every call
    seen: tuple[tuple[bytes, ...], ...]  # what every pointer's memory held when its call began


@dataclass
class RecordingSession:
    memory: int = 1 << 30
    throttle: tuple[bool, ...] = ()  # answers in turn, then never again
    blocks: list[Block] = field(default_factory=list)
    released: list[Block] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    writes: int = 0
    clock: float = 0.0
    inspector: Any = None
    recorded: int = 0

    def load(self, unit: Unit, binary: bytes) -> Executable:
        raise AssertionError

    def run(self, calls: Sequence[LaunchCall]) -> None:
        self.play(calls)

    def read(self, memory: Memory, offset: int, nbytes: int) -> bytes:
        return memory.data[offset : offset + nbytes].tobytes()

    def allocate(self, nbytes: int) -> Block:
        if self.in_use + nbytes > self.memory:
            raise OutOfMemory(f"{nbytes} wanted")
        self.blocks.append(Block(np.full(nbytes, SPENT, dtype=np.uint8)))
        return self.blocks[-1]

    @property
    def in_use(self) -> int:
        return sum(b.nbytes for b in self.blocks if not any(b is r for r in self.released))

    def release(self, memory: Memory) -> None:
        assert isinstance(memory, Block)
        self.released.append(memory)

    def write(self, memory: Memory, offset: int, data: bytes | memoryview) -> None:
        assert offset + len(data) <= memory.nbytes
        memory.data[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
        self.writes += 1

    def copy(self, to: Pointer, source: Pointer) -> None:
        self.write(to.memory, to.offset, self.read(source.memory, source.offset, source.nbytes))

    def record(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = ((0, 0),)) -> SimpleNamespace:
        self.recorded += 1
        rotated = [at_slots(c, at) for at in slots for c in calls]

        def start() -> Callable[[], float]:
            seconds = self.play(rotated)
            return lambda: seconds

        return SimpleNamespace(start=start)

    def play(self, calls: Sequence[LaunchCall]) -> float:
        slots, written, regions, seen = [], [], [], []
        kernel = calls[0].executable
        assert isinstance(kernel, Kernel)
        for call in calls:
            for p, element in call.fills:
                p.memory.data[p.offset : p.offset + p.nbytes] = np.resize(
                    np.frombuffer(element, np.uint8), p.nbytes
                )
            pointers = [a for a in call.args if isinstance(a, Pointer)]
            for p in pointers:
                assert not any(p.memory is r for r in self.released), (
                    "a kernel uses memory that was given back"
                )
                assert p.offset + p.nbytes <= p.memory.nbytes
            wrote, read = (p.offset // p.stride if p.stride else 0 for p in pointers[:2])
            slots.append(read)
            written.append(wrote)
            regions.append(tuple((id(p.memory), p.offset, p.nbytes) for p in pointers))
            seen.append(tuple(self.read(p.memory, p.offset, p.nbytes) for p in pointers))
            for place in kernel.writes:
                p = pointers[place]
                p.memory.data[p.offset : p.offset + p.nbytes] = SPENT
        self.chains.append(Chain(kernel.name, tuple(slots), tuple(written), tuple(regions), tuple(seen)))
        seconds = sum(kernel.seconds + FILLING * len(call.fills) for call in calls)
        self.clock += seconds
        return seconds

    def parts(self) -> tuple[float, ...]:
        return ()

    def neighbours(self) -> str:
        return ""

    def throttled(self) -> bool | None:
        answer, self.throttle = (self.throttle[0], self.throttle[1:]) if self.throttle else (False, ())
        return answer

    def clocks(self) -> tuple[Clock, ...]:
        return (Clock("SM", 1500 + len(self.chains), 1980),)


Contestant = Kernel | tuple[Kernel, Plan]  # a kernel alone: with the plan of the example


def planned(contenders: Sequence[Contestant]) -> list[tuple[Kernel, Plan]]:
    return [(c, plan(problem())) if isinstance(c, Kernel) else c for c in contenders]


def run(
    session: RecordingSession,
    *contenders: Contestant,
    device: Device | None = None,
    policy: TimingPolicy = POLICY,
    warm: bool = False,
    draw: Draw = DRAW,
    stopwatch: Stopwatch | None = None,
) -> Timed:
    watch, pairs = stopwatch or Stopwatch(session, device or small_device()), planned(contenders)
    entries = tuple(Contender(kernel.name, p) for kernel, p in pairs)
    return watch.time(TimeRuns(entries, draw, policy, warm), [kernel for kernel, _ in pairs])[0]


class TestOrder:
    def test_contenders_take_turns_in_both_orders(self) -> None:
        session = RecordingSession()
        one, other = Kernel("one"), Kernel("other", 2e-3)
        timed = run(session, (one, plan(problem())), (other, plan(problem())))
        assert [c.kernel for c in session.chains[:4]] == ["one", "one", "other", "other"], "to warm up"
        rounds = [c.kernel for c in session.chains[4:]]
        assert rounds == ["one", "other", "other", "one"] * 3
        assert timed.samples == (pytest.approx((1e-3,) * 6), pytest.approx((2e-3,) * 6))
        assert timed.discarded == 0
        after_the_last = 1500 + len(session.chains)
        assert timed.clocks == (Clock("SM", after_the_last, 1980),)

    def test_one_alone(self) -> None:
        timed = run(RecordingSession(), Kernel("one"))
        assert timed.clocks == ()
        assert [len(s) for s in timed.samples] == [6]

    @pytest.mark.parametrize(("kind", "rounds"), [("cpu", POLICY.min_rounds), ("simulated", POLICY.rounds)])
    def test_ends_early_when_it_takes_long_but_not_too_early(
        self, kind: str, rounds: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a simulated device the host's clock says nothing, and all its runs are alike."""
        session = RecordingSession()
        monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: session.clock))
        policy, device = replace(POLICY, max_seconds=0.5), replace(small_device(), kind=kind)
        timed = run(session, Kernel("slow", 1.0), policy=policy, device=device)
        assert [len(s) for s in timed.samples] == [rounds]

    @pytest.mark.parametrize("hopeless", [0, 1])
    def test_one_look_at_the_hopeless(self, hopeless: int) -> None:
        session = RecordingSession()
        pair = [Kernel("fast"), Kernel("slow", 0.5)]
        timed = run(session, *(pair if hopeless else pair[::-1]), policy=replace(POLICY, give_up=0.1))
        assert [len(s) for s in timed.samples] == [1, 1]
        assert sum(len(c.slots) for c in session.chains if c.kernel == "slow") <= 3

    def test_nobody_is_hopeless_without_a_limit(self) -> None:
        timed = run(RecordingSession(), Kernel("slow", 0.5))
        assert [len(s) for s in timed.samples] == [6]


class TestThrottling:
    def test_rounds_under_a_held_clock_are_taken_again(self) -> None:
        session = RecordingSession(throttle=(True, False, True, True))
        timed = run(session, Kernel("one"))
        assert timed.discarded == 3
        assert [len(s) for s in timed.samples] == [6]
        assert len(session.chains) == 2 + 6 + 3

    def test_a_clock_that_is_always_held_ends_all_the_same(self) -> None:
        timed = run(RecordingSession(throttle=(True,) * 100), Kernel("one"))
        assert timed.discarded == POLICY.rounds
        assert [len(s) for s in timed.samples] == [6]


@dataclass
class DisturbedSession(RecordingSession):
    """A GPU of which others take a slice from the chains of so many rounds, after the two looks before."""

    hit: frozenset[int] = frozenset()

    def neighbours(self) -> str:
        return "NVML counts 3 processes on the device"

    samples: int = 0

    def play(self, calls: Sequence[LaunchCall]) -> float:
        seconds = super().play(calls)
        self.samples += 1
        number = (self.samples - 5) // 2  # two contenders, each run and tried once before
        return seconds + (0.05 if number in self.hit else 0.0)


GPU = replace(small_device(), kind="gpu", inspects=True)


class TestDisturbance:
    def timed(self, *hit: int) -> tuple[Timed, DisturbedSession]:
        session = DisturbedSession(hit=frozenset(hit))
        contenders = Kernel("one"), Kernel("other", 5e-4)
        return run(session, *contenders, device=GPU), session

    def test_a_round_that_was_disturbed_is_taken_again(self) -> None:
        timed, session = self.timed(1, 4)
        assert timed.samples == (pytest.approx((1e-3,) * 6), pytest.approx((5e-4,) * 6))
        assert (timed.disturbed, timed.disturbance) == (2, "")
        assert session.samples == 4 + 2 * 8

    def test_a_quiet_one_takes_no_more_than_it_did(self) -> None:
        timed, session = self.timed()
        assert (timed.disturbed, timed.disturbance, session.samples) == (0, "", 4 + 2 * 6)

    def test_what_stays_disturbed_is_all_kept_and_said(self) -> None:
        timed, session = self.timed(*range(1, 20))
        assert session.samples == 4 + 2 * 12, "twice as many rounds, and no more"
        assert timed.disturbance.startswith("in 11 of 12 rounds launches were held up for 78 % of the time")
        assert timed.disturbance.endswith("; NVML counts 3 processes on the device")
        assert len(timed.samples[0]) == 12


class TestChains:
    @pytest.mark.parametrize(
        ("seconds", "length"),
        [(1e-3, 12), (3e-3, 6), (5e-3, 6), (7e-3, 2), (1.0, 1), (1e-4, 102), (1e-7, 516), (0.0, 516)],
    )
    def test_are_as_long_as_the_policy_says(self, seconds: float, length: int) -> None:
        """And go round the six slots as a whole where that does not take much longer."""
        session = RecordingSession()
        run(session, Kernel("one", seconds))
        assert [len(c.slots) for c in session.chains] == [1, 1] + [length] * 6
        assert length <= MAX_CHAIN + 6

    def test_each_contender_has_its_own(self) -> None:
        session = RecordingSession()
        run(session, Kernel("one", 1e-3), Kernel("other", 5e-3))
        assert {(c.kernel, len(c.slots)) for c in session.chains[4:]} == {("one", 30), ("other", 6)}

    @pytest.mark.parametrize(
        ("one", "other", "longest"),
        [
            (1e-3, 1e-3, 1.01),
            (40e-6, 2e-6, 2.01),
            (42e-3, 1e-4, 2.01),
            (1e-3, 1e-5, 2.01),
            (5e-5, 1e-6, 2.01),
        ],
    )
    def test_samples_of_two_contenders_are_of_like_length(
        self, one: float, other: float, longest: float
    ) -> None:
        """So that a slice of time that somebody else has hits one as often as the other."""
        session = RecordingSession()
        run(session, Kernel("one", one), Kernel("other", other))
        seconds = {
            c.kernel: len(c.slots) * {"one": one, "other": other}[c.kernel] for c in session.chains[4:]
        }
        assert max(seconds.values()) <= longest * min(seconds.values())

    def test_a_chain_is_recorded_once_and_played_again(self) -> None:
        session = RecordingSession()
        run(session, Kernel("one", 1e-3))
        assert len(session.chains) == 2 + 6
        assert session.recorded == 1 + TURNS, "the first launch is not recorded"

    def test_where_the_device_disturbs_what_lies_there_one_recording_serves_all_samples(self) -> None:
        calls: list[tuple[int, int]] = []
        session = RecordingSession()
        # Spreading is not what is tested: every block is written by the host here.
        session.inspector = SimpleNamespace(
            spread=lambda *_, **__: None,
            disturb=lambda first, stride, slots, places, seed: calls.append((slots, seed)),
        )
        run(session, Kernel("one", 1e-3))
        assert session.recorded == 1 + 1
        assert [slots for slots, _ in calls] == [6] * 7, "before the first look and each sample"
        assert len({seed for _, seed in calls}) == 7
        run(session, Kernel("one", 5e-3), Kernel("other", 5e-3))
        last = {chain.kernel: chain for chain in session.chains[-2:]}
        pairs = {name: set(zip(c.slots, c.written, strict=True)) for name, c in last.items()}
        assert not pairs["one"] & pairs["other"], "neither writes where the other has written the same"


class TestRotation:
    def test_no_slot_comes_again_before_all_others(self) -> None:
        session = RecordingSession()
        pair = Kernel("one", 1e-3), Kernel("other", 3e-3)
        run(session, *pair)
        visits = [slot for chain in session.chains[4:] for slot in chain.slots]
        slots = len(set(visits))
        assert slots == 6  # 3 × 16 KiB of cache, 2 × 4 KiB in a slot
        assert all(len(set(visits[i : i + slots])) == slots for i in range(len(visits) - slots))

    @pytest.mark.parametrize("seconds", [1e-4, 1.3e-4, 1.9e-4, 3e-4, 7e-4, 2e-3])
    @pytest.mark.parametrize("rotation", [60.0, 61.0, 83.5, 299.5])
    @pytest.mark.few(3)
    def test_chains_shorter_than_the_rotation_go_all_the_way_round(
        self, seconds: float, rotation: float
    ) -> None:
        session = RecordingSession()
        policy = replace(POLICY, rotation=rotation, rounds=200)
        run(session, Kernel("one", seconds), policy=policy)
        visited = {slot for chain in session.chains for slot in chain.slots}
        slots = math.ceil(rotation * (1 << 14) / (2 * 4096))
        assert len(visited) > 0.93 * slots

    def test_after_a_whole_round_the_next_chain_starts_at_its_beginning(self) -> None:
        """What a whole round used last is warm."""
        session = RecordingSession()
        policy = replace(POLICY, rotation=20.0, chain_seconds=0.01)  # 40 slots
        run(session, Kernel("whole", 5e-4), Kernel("part", 2e-3), policy=policy)
        chains = session.chains[4:]
        assert {len(c.slots) for c in chains} == {40, 5}
        for before, after in itertools.pairwise(chains):
            if before.kernel == "whole" and after.kernel == "part":
                assert after.slots[0] == 0

    @pytest.mark.parametrize("others", [(7e-4,), (2e-3,), (1.1e-3,)])
    def test_part_of_the_way_round_a_chain_starts_where_the_last_one_ended(
        self, others: tuple[float, ...]
    ) -> None:
        """A slot must not be warm from another contender's chain: most of the rest was visited since."""
        session = RecordingSession()
        long = replace(POLICY, rotation=60.0, rounds=12)  # 120 slots: no chain goes all the way round
        kernels = [Kernel("one", 9e-4), *(Kernel(f"other {i}", s) for i, s in enumerate(others))]
        run(session, *((kernel, plan(problem())) for kernel in kernels), policy=long)
        warm_up = 2 * len(kernels)
        visits = [slot for chain in session.chains[warm_up:] for slot in chain.slots]
        last: dict[int, int] = {}
        for now, slot in enumerate(visits):
            assert now - last.get(slot, now - 120) >= 60
            last[slot] = now

    @pytest.mark.parametrize("n", [5000, 1, 100, 1024, 100_000])
    @pytest.mark.few(1)
    def test_covers_three_caches(self, n: int) -> None:
        session = RecordingSession()
        run(session, (Kernel("one", 1e-7), plan(problem(), n)))
        covered = {region for chain in session.chains for call in chain.regions for region in call}
        assert sum(-(-nbytes // 64) * 64 for _, _, nbytes in covered) >= 3 * (1 << 14)
        for a, b in itertools.combinations(sorted(covered), 2):
            assert a[0] != b[0] or a[1] + a[2] <= b[1], "slots do not overlap"
        assert all(offset % 64 == 0 for _, offset, _ in covered)

    def test_more_rotation_when_the_policy_says_so(self) -> None:
        session = RecordingSession()
        run(session, Kernel("one", 1e-5), policy=replace(POLICY, rotation=10.0))
        assert len({slot for chain in session.chains for slot in chain.slots}) == 20

    def test_at_least_two_slots_for_what_is_larger_than_the_cache(self) -> None:
        session = RecordingSession()
        run(session, (Kernel("one"), plan(problem(), 100_000)))
        assert {slot for chain in session.chains for slot in chain.slots} == {0, 1}

    def test_keeps_within_the_memory_there_is(self) -> None:
        device = small_device(memory=100_000, max_allocation=50_000)
        wide = RecordingSession(memory=100_000)
        run(
            wide,
            (Kernel("one", 1e-5), plan(problem(), 1024)),
            device=replace(device, limits=replace(device.limits, llc=1 << 20)),
        )
        assert wide.in_use <= MEMORY_SHARE * 100_000
        assert len({slot for chain in wide.chains for slot in chain.slots}) == 7

    def test_keeps_within_the_largest_allocation(self) -> None:
        session = RecordingSession()
        run(
            session,
            (Kernel("one", 1e-5), plan(problem(), 1024)),
            device=small_device(llc=1 << 20, max_allocation=20_000),
        )
        assert max(b.nbytes for b in session.blocks) <= 20_000

    def test_two_slots_when_warm(self) -> None:
        session = RecordingSession()
        run(session, Kernel("one"), warm=True)
        assert {slot for chain in session.chains for slot in chain.slots} == {0, 1}
        assert [len(c.slots) for c in session.chains[2:]] == [10] * 6
        assert session.in_use == 2 * 2 * (4096 + 64), "what the arrays were filled from is given back"

    @pytest.mark.parametrize("warm", [False, True])
    @pytest.mark.parametrize(("one", "other"), [(1e-3, 1e-3), (1e-5, 3e-3), (5e-3, 7e-3), (2e-3, 1e-7)])
    @pytest.mark.parametrize("rotation", [3.0, 0.1, 20.0])
    @pytest.mark.few(8)
    def test_nothing_is_written_where_it_lies_already(
        self, warm: bool, one: float, other: float, rotation: float
    ) -> None:
        """Else a kernel could see that its work is done, and go home."""
        session = RecordingSession()
        pair = Kernel("one", one), Kernel("other", other)
        run(session, *pair, policy=replace(POLICY, rotation=rotation), warm=warm)
        lies: dict[int, int] = {}
        for chain in session.chains[4:]:
            for read, wrote in zip(chain.slots, chain.written, strict=True):
                assert lies.get(wrote) != read
                lies[wrote] = read
        assert len(lies) > 1

    def test_slots_hold_different_numbers_of_the_same_kind(self) -> None:
        session = RecordingSession()
        run(session, Kernel("one", 1e-5))
        seen = {
            slot: call[1]
            for chain in session.chains
            for slot, call in zip(chain.slots, chain.seen, strict=True)
        }
        assert len(set(seen.values())) == len(seen) == 6
        for data in seen.values():
            values = np.frombuffer(data, dtype=np.float32)
            assert abs(values.mean()) < 0.2
            assert 0.8 < values.std() < 1.2

    def test_an_arena_larger_than_the_drawn_block(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(buffer_ring, "BLOCK", 1500)
        session = RecordingSession()
        run(session, Kernel("one", 1e-5))
        seen = {
            slot: call[1]
            for chain in session.chains
            for slot, call in zip(chain.slots, chain.seen, strict=True)
        }
        assert len(set(seen.values())) == 6
        assert all(np.isfinite(np.frombuffer(data, dtype=np.float32)).all() for data in seen.values())


class TestLayoutIsKept:
    def test_between_requests_of_one_workload(self) -> None:
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        run(session, Kernel("one"), stopwatch=watch)
        blocks, writes = len(session.blocks), session.writes
        run(session, Kernel("other"), stopwatch=watch)
        assert (len(session.blocks), session.writes) == (blocks, writes)

    def test_a_smaller_workload_uses_what_is_there(self) -> None:
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        run(session, (Kernel("one"), plan(problem(), 5000)), stopwatch=watch)
        blocks = len(session.blocks)
        run(session, (Kernel("one"), plan(problem(), 1024)), stopwatch=watch)
        assert len(session.blocks) == blocks

    def test_a_larger_one_replaces_it(self) -> None:
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        for n in (100, 100_000):
            run(session, (Kernel("one"), plan(problem(), n)), stopwatch=watch)
        assert session.in_use == 2 * 2 * (400_000 + 64)

    def test_what_an_earlier_workload_left_makes_room(self) -> None:
        """One workload has a large x, the next a large out: never both at once."""
        first, second = plan(problem(), 10_000), plan(problem(), 10_000)
        shrink = lambda p, name: replace(  # noqa: E731
            p, buffers=tuple(replace(b, shape=(16,), extent=16) if b.name == name else b for b in p.buffers)
        )
        session = RecordingSession(memory=200_000)
        watch = Stopwatch(session, small_device(memory=150_000, max_allocation=140_000))
        run(session, (Kernel("one"), shrink(first, "out")), stopwatch=watch)
        assert session.in_use > 75_000
        run(session, (Kernel("one"), shrink(second, "x")), stopwatch=watch)
        assert session.in_use <= 200_000

    def test_everything_can_be_given_back(self) -> None:
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        run(session, Kernel("one"), stopwatch=watch)
        watch.give_back()
        assert session.in_use == 0
        run(session, Kernel("one"), stopwatch=watch)


class TestInPlace:
    def fresh(self, session: RecordingSession, place: int) -> list[bytes]:
        return [call[place] for chain in session.chains for call in chain.seen]

    def test_every_launch_finds_its_own_values(self) -> None:
        session = RecordingSession()
        run(session, (Kernel("one", 1e-4, writes=(0, 1)), plan(problem("inout"))))
        assert all(bytes([SPENT]) * 8 not in data for data in self.fresh(session, 1))

    def test_a_chain_visits_each_slot_once(self) -> None:
        session = RecordingSession()
        run(session, (Kernel("one", 1e-4, writes=(0, 1)), plan(problem("inout"))))
        assert [len(c.slots) for c in session.chains] == [1, 1] + [6] * 6
        assert all(len(set(c.slots)) == len(c.slots) for c in session.chains)

    def test_no_slot_twice_in_a_sample_when_warm(self) -> None:
        session = RecordingSession()
        timed = run(session, (Kernel("one", 1e-4, writes=(0, 1)), plan(problem("inout"))), warm=True)
        assert {c.slots for c in session.chains[2:]} == {(0, 1)}
        assert all(bytes([SPENT]) * 8 not in data for data in self.fresh(session, 1))
        assert timed.samples[0] == pytest.approx((1e-4,) * 6), "restoring is not timed"

    def test_both_contenders(self) -> None:
        session = RecordingSession()
        p = plan(problem("inout"))
        run(session, (Kernel("one", 1e-4, writes=(1,)), p), (Kernel("other", 2e-4, writes=(1,)), p))
        assert all(bytes([SPENT]) * 8 not in data for data in self.fresh(session, 1))

    def test_an_output_the_caller_fills_first(self) -> None:
        """From the very first launch on, and again when another workload has used the memory."""
        example = problem(out="init = 3.0")
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        for n in (1024, 700):
            run(session, (Kernel("one", 1e-4), plan(example, n)), stopwatch=watch)
        for data in self.fresh(session, 0):
            assert set(np.frombuffer(data, dtype=np.float32).tolist()) == {3.0}

    def test_a_workspace_that_starts_from_a_value(self) -> None:
        example = problem()
        template = parse_template(TEMPLATE.format(count="n"), path="t.fake", problem=example)
        variant = template.render(example, template.default)
        p = plan_launch(example, variant, {"n": 1024, "m": 1}, device_of("fake"), None)
        assert isinstance(p, Plan)
        session = RecordingSession()
        timed = run(session, (Kernel("original"), plan(example)), (Kernel("one", 1e-4, writes=(0, 2, 3)), p))
        seen = [call for chain in session.chains if chain.kernel == "one" for call in chain.seen]
        assert seen
        for _, _, counter, _ in seen:
            assert set(np.frombuffer(counter, dtype=np.int32).tolist()) == {7}
        assert timed.samples[1] == pytest.approx((1e-4 + FILLING,) * 6), (
            "what only the template asks for counts"
        )
        assert session.in_use < 2 * (1 << 16), "and is kept nowhere, to be restored"

    def test_what_the_original_asks_of_its_callers_too_is_in_no_time(self) -> None:
        p = plan(problem(out="init = 3.0"))
        assert not any(b.is_filled_by_launch for b in p.buffers)
        timed = run(RecordingSession(), (Kernel("one", 1e-4), p))
        assert timed.samples[0] == pytest.approx((1e-4,) * 6)

    def test_contenders_with_workspaces_of_different_sizes(self) -> None:
        example = problem()
        template = parse_template(TEMPLATE.format(count="16"), path="t.fake", problem=example)
        plans = [
            plan_launch(example, template.render(example, c), {"n": 1024, "m": 1}, device_of("fake"), None)
            for c in (template.default, template.default.replace("A", 2))
        ]
        session = RecordingSession()
        first, second = plans
        assert isinstance(first, Plan)
        assert isinstance(second, Plan)
        run(session, (Kernel("small"), first), (Kernel("large"), second))
        sizes = {c.kernel: {call[3][2] for call in c.regions} for c in session.chains}
        assert min(sizes["small"]) >= 4096
        assert min(sizes["large"]) >= 8192


class TestLinkedInputs:
    DRAW = Draw(
        "normal",
        5,
        PythonFunction(
            "inputs.py",
            "make",
            "import numpy as np\ndef make(n, m):\n    return {'x': np.arange(n) % m + 1000 * m}\n",
        ),
    )

    def test_are_in_every_slot(self) -> None:
        session = RecordingSession()
        run(session, (Kernel("one"), plan(problem(type_="int32"), 1000, m=7)), draw=self.DRAW)
        expected = (np.arange(1000, dtype=np.int32) % 7 + 7000).tobytes()
        assert {slot for chain in session.chains for slot in chain.slots} == set(range(7))
        assert {call[1] for chain in session.chains for call in chain.seen} == {expected}

    def test_are_those_of_the_workload_also_where_only_another_size_changed(self) -> None:
        """The array has the same shape: with the values of another workload an index may lie outside."""
        session = RecordingSession()
        watch = Stopwatch(session, small_device())
        example = problem(type_="int32")
        for m in (7, 3):
            run(session, (Kernel("one"), plan(example, 1000, m)), draw=self.DRAW, stopwatch=watch)
            expected = (np.arange(1000, dtype=np.int32) % m + 1000 * m).tobytes()
            assert {call[1] for call in session.chains[-1].seen} == {expected}

    def test_are_restored_where_they_are_changed_in_place(self) -> None:
        session = RecordingSession()
        example = problem("inout", type_="int32")
        run(session, (Kernel("one", writes=(0, 1)), plan(example, 1000, 7)), draw=self.DRAW)
        expected = (np.arange(1000, dtype=np.int32) % 7 + 7000).tobytes()
        assert {call[1] for chain in session.chains for call in chain.seen} == {expected}


class TestOneAfterTheOther:
    """Several requests of one contender each, queued before the first sample is looked at."""

    def times(
        self, session: RecordingSession, *contenders: Contestant, policy: TimingPolicy = POLICY
    ) -> tuple[Timed, ...]:
        watch, pairs = Stopwatch(session, small_device()), planned(contenders)
        requests = [(TimeRuns((Contender(k.name, p),), DRAW, policy, False), k, None) for k, p in pairs]
        return watch.time_each(requests)[0]

    def test_gives_what_each_alone_would_give(self) -> None:
        kernels = [Kernel("one", 1e-3), Kernel("two", 2e-3), Kernel("three", 5e-4)]
        plans = [plan(problem(), n) for n in (100, 1024, 5000)]
        together = self.times(RecordingSession(), *zip(kernels, plans, strict=True))
        alone = [run(RecordingSession(), pair) for pair in zip(kernels, plans, strict=True)]
        assert [t.samples for t in together] == [t.samples for t in alone]
        assert all(t.busy == pytest.approx(sum(t.samples[0]) * 12, rel=3) for t in together)

    def test_a_smaller_workload_does_not_lose_its_memory_to_a_larger_one(self) -> None:
        session = RecordingSession()  # which refuses kernels on memory that was given back
        pairs = [(Kernel(f"k{n}"), plan(problem(), n)) for n in (10, 100_000, 1000, 50_000)]
        assert len(self.times(session, *pairs)) == 4

    def test_without_room_for_all_each_has_its_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The larger one's arrays push out what the smaller one has; memory given back is not used again."""
        turns: list[int] = []
        usual = Stopwatch._one_by_one
        monkeypatch.setattr(Stopwatch, "_one_by_one", lambda w, r: (turns.append(len(r)), usual(w, r))[1])
        large = plan(problem(type_="float16"), 10_000)
        pairs = (Kernel("small"), plan(problem(), 100)), (Kernel("large"), large)
        found = self.times(RecordingSession(memory=145_000), *pairs)
        assert [len(t.samples[0]) for t in found] == [6, 6]
        assert turns == [2]

    def test_one_look_at_the_hopeless(self) -> None:
        policy = replace(POLICY, give_up=0.1)
        found = self.times(RecordingSession(), Kernel("slow", 0.5), Kernel("one"), policy=policy)
        assert [len(t.samples[0]) for t in found] == [1, 6]

    def test_fewer_rounds_where_they_take_long(self) -> None:
        policy = replace(POLICY, max_seconds=0.1)
        (found,) = self.times(RecordingSession(), Kernel("slow", 0.05), policy=policy)
        assert len(found.samples[0]) == POLICY.min_rounds

    def test_all_is_timed_again_when_the_clock_was_held(self) -> None:
        session = RecordingSession(throttle=(True,))
        found = self.times(session, Kernel("one"), Kernel("two"))
        assert [len(t.samples[0]) for t in found] == [6, 6]
        assert sum(c.kernel == "one" for c in session.chains) == 2 * (2 + 6)


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
def test_any_launch_of_a_chain_can_be_looked_at(slots: int) -> None:
    """What it wrote is still there at the end; until then, and of what is read, nothing changes."""
    plain = visits_of(0, 4 * slots, slots, 1)
    for kept in range(len(plain)) if slots > 1 else (len(plain) - 1,):
        visits = spare_slot(plain, kept, slots)
        assert visits[: kept + 1] == plain[: kept + 1]
        assert [read for read, _ in visits] == [read for read, _ in plain]
        assert visits[kept][1] not in {written for _, written in visits[kept + 1 :]}
        assert {written for _, written in visits} <= set(range(slots))


def test_looks_go_to_every_part_of_a_chain() -> None:
    watch = timing.OutputSampler.__new__(timing.OutputSampler)
    watch.chance = random.Random(1)
    chosen = [watch.choose(100, 2) for _ in range(2000)]
    assert set(chosen) == set(range(100))
    assert watch.choose(100, 1) == 99
