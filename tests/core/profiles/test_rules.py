"""One fault at a time, on profiles that have no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import access, code, counted, found, launch, profile, with_code
from tunesmith.problem.device import Resources
from tunesmith.problem.template import Remedy
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import (
    BlockTime,
    Counters,
    Experiments,
    Finding,
    Kind,
    LaunchPart,
    Profile,
    StaticFacts,
)

STORE_4 = access(direction="store", width=4)
THIN = with_code(access(width=4), STORE_4, bytes_in_flight=4)
NARROW = with_code(access(width=2), access(direction="store", width=2), bytes_in_flight=2)
WAITING = with_code(access(width=4, count=8), bytes_in_flight=4)
DOUBLES = with_code(access(width=4), total=100, fp64=60)
FAR = with_code(access(width=4, pattern="far"))
TIMED = (BlockTime(128, 150e-6), BlockTime(256, 190e-6), BlockTime(512, 200e-6))
ALIKE = (BlockTime(128, 188e-6), BlockTime(256, 190e-6))
IDLE_UNIT = counted(shared_wavefronts=100.0, shared_conflicts=90.0, shared_pipe=0.01)
SPILLED_COLD = StaticFacts(Resources(registers=32, shared=0, spills=64, private=64), code(), doubles=False)


def both_ways(width: int, stride: int) -> Profile:
    ways = (access(direction=way, width=width, stride=stride) for way in ("load", "store"))
    return with_code(*ways)


def shared_stride(stride: int) -> Profile:
    return with_code(access(width=4), access("shared", width=4, stride=stride, count=200))


def atomics(**more: str) -> Profile:
    return with_code(access(), access(direction="atomic", width=4, **more))


def test_the_plain_profile_has_no_fault() -> None:
    assert diagnose_profile(profile()).findings == ()


@pytest.mark.parametrize(
    ("kind", "own", "is_found"),
    [
        (Kind.TOO_FEW_BLOCKS, profile(launch=launch(132 * 8)), False),
        # A grid that leaves multiprocessors half empty matters where loads are waited for.
        (Kind.TOO_FEW_BLOCKS, replace(THIN, launch=launch(132)), True),
        (Kind.TOO_FEW_BLOCKS, replace(THIN, launch=launch(132 * 8)), False),
        (Kind.TOO_FEW_BLOCKS, profile(launch=launch(132 * 2)), False),  # 64 bytes a thread are enough
        (Kind.TAIL, profile(launch=launch(132 + 1)), True),
        (Kind.TAIL, profile(launch=launch(132 * 8 + 1)), True),
        (Kind.TAIL, profile(launch=launch(132 * 8)), False),
        (Kind.TAIL, profile(launch=launch(132 * 72 + 1)), False),
        (Kind.IDLE_THREADS, profile(launch=launch(threads=992)), False),
        (Kind.IDLE_THREADS, profile(launch=replace(launch(), idle_threads=0.6)), True),
        (Kind.BLOCK_SIZE, profile(experiments=Experiments(blocks=ALIKE)), False),
        (Kind.LAUNCH, profile(seconds=1.9e-6, work=None), True),
        (Kind.LAUNCH, profile(seconds=19e-6, work=None), False),
        *((Kind.UNCOALESCED, both_ways(4, step), step == 64) for step in (4, 8, 64)),
        *((Kind.UNCOALESCED, both_ways(16, step), False) for step in (16, 512)),
        (Kind.UNCOALESCED, both_ways(8, 512), True),
        (Kind.UNCOALESCED, FAR, True),
        (Kind.UNCOALESCED, with_code(access(width=4, pattern="unknown")), False),
        (Kind.UNCOALESCED, with_code(access(width=4, pattern="uniform")), False),
        # Strides say nothing of a warp that spans rows of a block, nor of one thread that reads alone.
        (Kind.UNCOALESCED, replace(FAR, launch=replace(launch(), block=(16, 16, 1))), False),
        (Kind.UNCOALESCED, counted(load_sectors=1.2, load_bytes_per_sector=4.0), False),
        (Kind.UNCOALESCED, counted(load_sectors=30.0, load_bytes_per_sector=4.0), True),
        (Kind.UNCOALESCED, counted(load_sectors=16.0, load_bytes_per_sector=32.0), False),
        (Kind.NARROW_ACCESS, NARROW, True),
        (Kind.NARROW_ACCESS, replace(NARROW, counters=Counters(dram=0.83)), False),
        (Kind.NARROW_ACCESS, with_code(access(count=3), access(direction="store", width=1)), False),
        *((Kind.BANK_CONFLICTS, shared_stride(step), step in (128, 8)) for step in (128, 132, 4, 8)),
        (Kind.BANK_CONFLICTS, IDLE_UNIT, False),
        (Kind.SPILLS, profile(static=SPILLED_COLD), False),  # seldom reached
        (Kind.ATOMICS, atomics(pattern="uniform"), True),
        (Kind.ATOMICS, atomics(), False),
        (Kind.LATENCY, WAITING, True),
        (Kind.LATENCY, replace(WAITING, counters=Counters(dram=0.7, stalls=(("memory", 0.9),))), False),
        (Kind.FP64, DOUBLES, True),
        (Kind.FP64, replace(DOUBLES, static=replace(DOUBLES.static, doubles=True)), False),
        (Kind.FP64, with_code(access(count=8), total=60, fp64=1), False),
        (Kind.INTEGER_DIVISION, with_code(access(width=4), total=150, division=4), True),
        (Kind.INTEGER_DIVISION, with_code(access(count=8), total=100, division=1), False),
        (Kind.SPECIAL_FUNCTIONS, with_code(access(width=4), special=20, total=60), True),
        (Kind.SPECIAL_FUNCTIONS, counted(special=0.9), True),
        (Kind.SPECIAL_FUNCTIONS, counted(special=0.3), False),
        (Kind.DIVERGENCE, with_code(access(), total=200, split_by_lane=6), False),
        (Kind.SERIAL_THREAD, with_code(one_thread=20), False),
        (Kind.BARRIERS, counted({"barrier": 0.5}), True),
        (Kind.COMPUTE, counted(fma=0.9), True),
        (Kind.COMPUTE, counted(fma=0.5, issue=0.6), False),
    ],
)
def test_what_is_a_fault_and_what_is_none(kind: Kind, own: Profile, is_found: bool) -> None:
    assert bool(found(own, kind)) is is_found


def test_fewer_blocks_than_multiprocessors() -> None:
    few = found(profile(launch=launch(33)), Kind.TOO_FEW_BLOCKS)
    assert few.gain == pytest.approx(1 - 1 / 3, abs=0.01)  # three times its floor: no more to be had
    assert few.evidence == ("33 blocks on 132 compute units: 75 % of them have none",)
    assert few.remedies[0] is Remedy.SPLIT_ROWS
    one = found(profile(launch=launch(1)), Kind.TOO_FEW_BLOCKS)
    assert one.evidence[0].startswith("1 block on 132 compute units")


def test_a_tail_that_keeps_all_multiprocessors_busy_is_none() -> None:
    short = profile(launch=launch(132 + 1, threads=1024))
    assert not found(replace(short, counters=Counters(sm_active=0.98)), Kind.TAIL)
    seen = found(replace(short, counters=Counters(sm_active=0.7)), Kind.TAIL)
    assert (seen.gain, seen.source) == (pytest.approx(0.3), "counters")


def test_lanes_without_a_thread() -> None:
    assert found(profile(launch=launch(threads=40)), Kind.IDLE_THREADS).gain == pytest.approx(0.375)


@pytest.mark.parametrize(
    ("registers", "shared", "remedy"),
    [(255, 0, Remedy.REGISTER_CAP), (32, 100_000, Remedy.LESS_SHARED)],
)
def test_low_occupancy_names_what_limits_it(registers: int, shared: int, remedy: Remedy) -> None:
    thin = with_code(access(width=4, count=4), bytes_in_flight=4)
    low = found(replace(thin, launch=launch(registers=registers, shared=shared)), Kind.LOW_OCCUPANCY)
    assert low.remedies[0] is remedy


def test_a_block_size_that_was_timed() -> None:
    better = found(profile(experiments=Experiments(blocks=TIMED)), Kind.BLOCK_SIZE)
    assert (better.source, better.gain) == ("experiment", pytest.approx(1 - 150 / 190))


def test_every_one_of_several_launches_has_its_cost() -> None:
    own = profile(seconds=5e-6, work=None)
    assert not found(own, Kind.LAUNCH)  # 0.6 of 5 µs
    finding = found(replace(own, parts=(LaunchPart("k", own.static, own.launch),) * 3), Kind.LAUNCH)
    assert finding.gain == pytest.approx(0.36)
    assert finding.evidence == ("3 empty launches take 1.80 µs of 5.00 µs",)


def test_spills_and_arrays_on_the_stack_are_distinguished() -> None:
    def told(kind: Kind, spills: int | None) -> Finding:
        uses = Resources(registers=32, shared=0, spills=spills, private=64)
        own = code(local_load=40, local_store=40)
        return found(profile(static=StaticFacts(uses, own, doubles=False)), kind)

    assert Remedy.REGISTER_CAP in told(Kind.SPILLS, 64).remedies
    assert Remedy.UNROLL in told(Kind.LOCAL_ARRAYS, 0).remedies
    assert "did not say what is spilled" in told(Kind.SPILLS, None).evidence[0]


def test_bytes_moved_twice() -> None:
    extra = found(counted(dram=0.7, dram_read=4e8, dram_written=1.4e8), Kind.EXTRA_TRAFFIC)
    assert Remedy.ROW_IN_REGISTERS in extra.remedies


def test_ways_that_split_by_the_threads_number_are_surer_than_by_data() -> None:
    lane = found(with_code(access(width=4), total=200, split_by_lane=150), Kind.DIVERGENCE)
    data = found(with_code(access(width=4), total=200, split_by_data=150), Kind.DIVERGENCE)
    assert lane.confidence > data.confidence


def test_one_thread_in_a_loop() -> None:
    walk = found(with_code(one_thread=80, one_thread_loop=60, one_thread_global=8), Kind.SERIAL_THREAD)
    short = found(with_code(one_thread=80, one_thread_loop=60), Kind.SERIAL_THREAD)
    assert walk.gain > short.gain
