"""One fault at a time, on profiles that have no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import access, code, counted, found, launch, profile, with_code
from tunesmith.problem.device import Resources
from tunesmith.problem.template import Remedy
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import BlockTime, Counters, Experiments, Kind, LaunchPart, StaticFacts


def test_the_plain_profile_has_no_fault() -> None:
    assert diagnose_profile(profile()).findings == ()


# -- launch ---------------------------------------------------------------------------------------------


def test_fewer_blocks_than_multiprocessors() -> None:
    few = found(profile(launch=launch(33)), Kind.TOO_FEW_BLOCKS)
    assert few.gain == pytest.approx(1 - 1 / 3, abs=0.01)  # three times its floor: no more to be had
    assert few.evidence == ("33 blocks on 132 compute units: 75 % of them have none",)
    assert few.remedies[0] is Remedy.SPLIT_ROWS
    one = found(profile(launch=launch(1)), Kind.TOO_FEW_BLOCKS)
    assert one.evidence[0].startswith("1 block on 132 compute units")
    assert not found(profile(launch=launch(132 * 8)), Kind.TOO_FEW_BLOCKS)


def test_a_grid_that_leaves_multiprocessors_half_empty_matters_where_loads_are_waited_for() -> None:
    thin = with_code(access(width=4), access(direction="store", width=4), bytes_in_flight=4)
    assert found(replace(thin, launch=launch(132)), Kind.TOO_FEW_BLOCKS)
    assert not found(replace(thin, launch=launch(132 * 8)), Kind.TOO_FEW_BLOCKS)
    assert not found(profile(launch=launch(132 * 2)), Kind.TOO_FEW_BLOCKS)  # 64 bytes a thread are enough


@pytest.mark.parametrize(
    ("blocks", "lost"), [(132 + 1, True), (132 * 8 + 1, True), (132 * 8, False), (132 * 72 + 1, False)]
)
def test_the_last_wave(blocks: int, lost: bool) -> None:
    assert bool(found(profile(launch=launch(blocks)), Kind.TAIL)) is lost


def test_a_tail_that_keeps_all_multiprocessors_busy_is_none() -> None:
    short = profile(launch=launch(132 + 1, threads=1024))
    assert not found(replace(short, counters=Counters(sm_active=0.98)), Kind.TAIL)
    seen = found(replace(short, counters=Counters(sm_active=0.7)), Kind.TAIL)
    assert seen.gain == pytest.approx(0.3)
    assert seen.source == "counters"


def test_lanes_without_a_thread() -> None:
    idle = found(profile(launch=launch(threads=40)), Kind.IDLE_THREADS)
    assert idle.gain == pytest.approx(0.375)
    assert not found(profile(launch=launch(threads=992)), Kind.IDLE_THREADS)


def test_threads_without_an_element() -> None:
    excess = replace(launch(), idle_threads=0.6)
    assert found(profile(launch=excess), Kind.IDLE_THREADS)


@pytest.mark.parametrize(
    ("registers", "shared", "remedy"),
    [(255, 0, Remedy.REGISTER_CAP), (32, 100_000, Remedy.LESS_SHARED)],
)
def test_low_occupancy_names_what_limits_it(registers: int, shared: int, remedy: Remedy) -> None:
    thin = with_code(access(width=4, count=4), bytes_in_flight=4)
    low = found(replace(thin, launch=launch(registers=registers, shared=shared)), Kind.LOW_OCCUPANCY)
    assert low.remedies[0] is remedy


def test_a_block_size_that_was_timed() -> None:
    swept = Experiments(blocks=(BlockTime(128, 150e-6), BlockTime(256, 190e-6), BlockTime(512, 200e-6)))
    better = found(profile(experiments=swept), Kind.BLOCK_SIZE)
    assert better.source == "experiment"
    assert better.gain == pytest.approx(1 - 150 / 190)
    alike = Experiments(blocks=(BlockTime(128, 188e-6), BlockTime(256, 190e-6)))
    assert not found(profile(experiments=alike), Kind.BLOCK_SIZE)


def test_a_time_that_is_mostly_the_launch() -> None:
    assert found(profile(seconds=1.9e-6, work=None), Kind.LAUNCH)
    assert not found(profile(seconds=19e-6, work=None), Kind.LAUNCH)


def test_every_one_of_several_launches_has_its_cost() -> None:
    own = profile(seconds=5e-6, work=None)
    assert own.launch is not None
    assert not found(own, Kind.LAUNCH)  # 0.6 of 5 µs
    three = replace(own, parts=(LaunchPart("k", own.static, own.launch),) * 3)
    finding = found(three, Kind.LAUNCH)
    assert finding.gain == pytest.approx(0.36)
    assert finding.evidence == ("3 empty launches take 1.80 µs of 5.00 µs",)


# -- memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "stride", "far"),
    [(4, 4, False), (4, 8, False), (4, 64, True), (16, 16, False), (8, 512, True), (16, 512, False)],
)
def test_neighbours_far_apart(width: int, stride: int, far: bool) -> None:
    own = with_code(access(width=width, stride=stride), access(direction="store", width=width, stride=stride))
    assert bool(found(own, Kind.UNCOALESCED)) is far


def test_a_stride_that_only_the_run_knows_is_far() -> None:
    assert found(with_code(access(width=4, pattern="far")), Kind.UNCOALESCED)
    assert not found(with_code(access(width=4, pattern="unknown")), Kind.UNCOALESCED)
    assert not found(with_code(access(width=4, pattern="uniform")), Kind.UNCOALESCED)


def test_strides_say_nothing_of_a_warp_that_spans_rows_of_a_block() -> None:
    far = with_code(access(width=4, pattern="far"))
    tall = replace(launch(), block=(16, 16, 1))
    assert not found(replace(far, launch=tall), Kind.UNCOALESCED)


def test_one_thread_that_reads_alone_is_not_uncoalesced() -> None:
    assert not found(counted(load_sectors=1.2, load_bytes_per_sector=4.0), Kind.UNCOALESCED)
    assert found(counted(load_sectors=30.0, load_bytes_per_sector=4.0), Kind.UNCOALESCED)
    assert not found(counted(load_sectors=16.0, load_bytes_per_sector=32.0), Kind.UNCOALESCED)


def test_narrow_accesses_unless_memory_is_saturated_all_the_same() -> None:
    narrow = with_code(access(width=2), access(direction="store", width=2), bytes_in_flight=2)
    assert found(narrow, Kind.NARROW_ACCESS)
    assert not found(replace(narrow, counters=Counters(dram=0.83)), Kind.NARROW_ACCESS)
    half = with_code(access(width=16, count=3), access(direction="store", width=1))
    assert not found(half, Kind.NARROW_ACCESS)


@pytest.mark.parametrize(("stride", "bad"), [(128, True), (132, False), (4, False), (8, True)])
def test_shared_strides(stride: int, bad: bool) -> None:
    own = with_code(access(width=4), access("shared", width=4, stride=stride, count=200))
    assert bool(found(own, Kind.BANK_CONFLICTS)) is bad


def test_conflicts_of_a_unit_that_is_idle_do_not_matter() -> None:
    assert not found(
        counted(shared_wavefronts=100.0, shared_conflicts=90.0, shared_pipe=0.01), Kind.BANK_CONFLICTS
    )


def test_spills_and_arrays_on_the_stack_are_distinguished() -> None:
    own = code(local_load=40, local_store=40)
    spilled = StaticFacts(Resources(registers=32, shared=0, spills=64, private=64), own, doubles=False)
    stacked = StaticFacts(Resources(registers=32, shared=0, spills=0, private=64), own, doubles=False)
    first, second = (
        found(profile(static=s), k) for s, k in ((spilled, Kind.SPILLS), (stacked, Kind.LOCAL_ARRAYS))
    )
    assert Remedy.REGISTER_CAP in first.remedies
    assert Remedy.UNROLL in second.remedies
    silent = replace(stacked, resources=replace(stacked.resources, spills=None))
    third = found(profile(static=silent), Kind.SPILLS)
    assert "did not say what is spilled" in third.evidence[0]


def test_spills_that_are_seldom_reached_are_not_reported() -> None:
    cold = StaticFacts(Resources(registers=32, shared=0, spills=64, private=64), code(), doubles=False)
    assert not found(profile(static=cold), Kind.SPILLS)


def test_atomics_on_one_address() -> None:
    assert found(with_code(access(), access(direction="atomic", width=4, pattern="uniform")), Kind.ATOMICS)
    assert not found(with_code(access(), access(direction="atomic", width=4)), Kind.ATOMICS)


def test_bytes_moved_twice() -> None:
    extra = found(counted(dram=0.7, dram_read=4e8, dram_written=1.4e8), Kind.EXTRA_TRAFFIC)
    assert Remedy.ROW_IN_REGISTERS in extra.remedies


def test_loads_that_wait_for_each_other() -> None:
    own = with_code(access(width=4, count=8), bytes_in_flight=4)
    assert found(own, Kind.LATENCY)
    assert not found(replace(own, counters=Counters(dram=0.7, stalls=(("memory", 0.9),))), Kind.LATENCY)


# -- computing ------------------------------------------------------------------------------------------


def test_doubles_are_a_fault_only_where_no_argument_is_one() -> None:
    own = with_code(access(width=4), total=100, fp64=60)
    assert found(own, Kind.FP64)
    meant = replace(own, static=replace(own.static, doubles=True))
    assert not found(meant, Kind.FP64)


def test_a_few_doubles_beside_much_memory_are_not_reported() -> None:
    assert not found(with_code(access(count=8), total=60, fp64=1), Kind.FP64)


def test_integer_division() -> None:
    assert found(with_code(access(width=4), total=150, division=4), Kind.INTEGER_DIVISION)
    assert not found(with_code(access(count=8), total=100, division=1), Kind.INTEGER_DIVISION)


def test_special_functions() -> None:
    assert found(with_code(access(width=4), special=20, total=60), Kind.SPECIAL_FUNCTIONS)
    assert found(counted(special=0.9), Kind.SPECIAL_FUNCTIONS)
    assert not found(counted(special=0.3), Kind.SPECIAL_FUNCTIONS)


def test_ways_that_split_by_the_threads_number_are_surer_than_by_data() -> None:
    lane = found(with_code(access(width=4), total=200, split_by_lane=150), Kind.DIVERGENCE)
    data = found(with_code(access(width=4), total=200, split_by_data=150), Kind.DIVERGENCE)
    assert lane.confidence > data.confidence
    assert not found(with_code(access(), total=200, split_by_lane=6), Kind.DIVERGENCE)


def test_one_thread_in_a_loop() -> None:
    walk = found(with_code(one_thread=80, one_thread_loop=60, one_thread_global=8), Kind.SERIAL_THREAD)
    short = found(with_code(one_thread=80, one_thread_loop=60), Kind.SERIAL_THREAD)
    assert walk.gain > short.gain
    assert not found(with_code(one_thread=20), Kind.SERIAL_THREAD)


def test_barriers_and_saturated_pipes() -> None:
    assert found(counted({"barrier": 0.5}), Kind.BARRIERS)
    assert found(counted(fma=0.9), Kind.COMPUTE)
    assert not found(counted(fma=0.5, issue=0.6), Kind.COMPUTE)
