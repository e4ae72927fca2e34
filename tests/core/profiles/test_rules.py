"""One fault at a time, on profiles that have no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import CEILINGS, access, code, counted, found, launch, profile, with_code
from tests.core.profiles.recorded import BAD, planted, recorded, without_counters
from tests.wording import says
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.problem.device import Resources
from tunesmith.problem.template import Remedy
from tunesmith.profiles.costs import RuleInput, costs_of
from tunesmith.profiles.diagnose import diagnose_profile, instruction_classes, unit_shares
from tunesmith.profiles.facts import (
    BlockTime,
    Bound,
    Counters,
    Experiments,
    Finding,
    Instructions,
    Kind,
    LaunchPart,
    Mix,
    Profile,
    StaticFacts,
    WorkNeeded,
)
from tunesmith.profiles.roofline import compute_roofline

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
    ("registers", "shared", "remedy"), [(255, 0, Remedy.REGISTER_CAP), (32, 100_000, Remedy.LESS_SHARED)]
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


FITS = WorkNeeded(8 << 20, 8 << 20)  # 16 MiB: the cache holds 50
TAKES = 50e-6  # of a floor of 5.6 µs


def tried(half: float = 0.5, gone: float = 0.2, *, blocks: int = 1 << 14, **changes: object) -> Profile:
    """Half the grid takes `half` of the time, and with data in the cache the share `gone` of it goes."""
    experiments = Experiments(warm=TAKES * (1 - gone), cold=TAKES, whole_grid=TAKES, half_grid=half * TAKES)
    own = profile(work=FITS, seconds=TAKES, experiments=experiments, launch=launch(blocks))
    return replace(own, **changes)  # type: ignore[arg-type]


def test_between_all_of_them_nothing_is_said() -> None:
    assert diagnose_profile(tried()).findings == ()


@pytest.mark.parametrize(
    ("own", "kind", "bound", "gain", "words"),
    [
        # Half the grid takes as long while all blocks are there: a block waits for itself.
        (tried(0.97, blocks=132 * 4), Kind.LATENCY, Bound.LATENCY, 0.5, "half the grid takes 97 %"),
        # There are several rounds: a few blocks take most of it.
        (tried(0.95), Kind.UNEVEN_BLOCKS, Bound.SERIALISATION, 0.5, "16384 blocks"),
        # Blocks share one work and take longer by half.
        (tried(1.9, blocks=132), Kind.TOO_FEW_BLOCKS, Bound.OCCUPANCY, 0.5, "half the grid"),
        (tried(gone=0.7), Kind.MEMORY, Bound.BANDWIDTH, 0.7, "memory is waited for"),
        (tried(0.51, gone=0.02), Kind.COMPUTE, Bound.COMPUTE, 0.3, "compute units are busy"),
    ],
)
def test_what_experiments_tell(own: Profile, kind: Kind, bound: Bound, gain: float, words: str) -> None:
    told = found(own, kind)
    assert (told.source, told.bound, told.gain) == ("experiment", bound, pytest.approx(gain))
    assert words in told.evidence[0]


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        (tried(0.8, blocks=132 * 4), Kind.LATENCY),
        (tried(0.95), Kind.LATENCY),
        (tried(0.95, counters=Counters(sm_active=0.97)), Kind.UNEVEN_BLOCKS),
        (tried(1.9, blocks=132 * 8), Kind.TOO_FEW_BLOCKS),  # there is no room
        (tried(gone=0.7, work=WorkNeeded(1 << 27, 1 << 27)), Kind.MEMORY),  # nothing was in the cache
        (tried(gone=0.7, counters=Counters(dram=0.3)), Kind.MEMORY),
        (tried(0.51, gone=0.02, blocks=132 * 2), Kind.COMPUTE),  # half is one turn of two
        (tried(0.75, gone=0.02), Kind.COMPUTE),
    ],
)
def test_what_they_do_not_tell(own: Profile, kind: Kind) -> None:
    assert not found(own, kind)


def test_it_is_surer_where_a_thread_has_one_element() -> None:
    shared = tried(half=0.97, blocks=132 * 4)
    one_each = replace(shared, launch=replace(shared.launch, idle_threads=0.0))
    assert found(one_each, Kind.LATENCY).confidence > found(shared, Kind.LATENCY).confidence


def test_a_block_for_each_multiprocessor_tells_nothing_where_no_second_fits() -> None:
    full = launch(132, threads=1024, registers=64)
    assert full.blocks_per_sm == 1
    assert diagnose_profile(replace(tried(half=1.0), launch=full)).findings == ()


def test_nothing_is_concluded_from_what_is_mostly_the_launch() -> None:
    slow = replace(CEILINGS, graph_launch=TAKES / 2)
    for own in (tried(half=0.97), tried(gone=0.7), tried(half=0.51, gone=0.0), tried(1.9, blocks=132)):
        assert any(f.source == "experiment" for f in diagnose_profile(own).findings)
        findings = diagnose_profile(replace(own, ceilings=slow)).findings
        assert findings[0].kind is Kind.LAUNCH
        assert not any(f.source == "experiment" for f in findings)


def test_data_that_does_not_fit_the_cache_is_said_to_tell_nothing() -> None:
    large = tried(gone=0.0, work=WorkNeeded(1 << 27, 1 << 27))
    assert any("warm against cold tells nothing" in note for note in diagnose_profile(large).notes)
    assert any("20 % of the time goes" in note for note in diagnose_profile(tried()).notes)


@pytest.mark.parametrize("name", BAD)
def test_no_experiment_takes_the_place_of_a_fault_that_was_read(name: str) -> None:
    """Also were the data in the cache, and it would make no difference."""
    own = without_counters(recorded(name))
    shown = Experiments(own.seconds, own.seconds, own.seconds, 0.5 * own.seconds)
    roomy = replace(own.ceilings, cache_bytes=2 * own.work.bytes)
    assert diagnose_profile(own).findings[0].kind in planted(name)
    first = diagnose_profile(replace(own, experiments=shown, ceilings=roomy)).findings[0]
    assert first.kind in planted(name)


def of(own: Instructions, **changes: object) -> Profile:
    plain = profile()
    return replace(plain, static=StaticFacts(plain.static.resources, own), **changes)  # type: ignore[arg-type]


def test_a_loop_that_only_reads_ahead_of_one_that_reads_all_is_reading_twice() -> None:
    own = found(of(code(reading_loops=1, loaded_per_stored=1.0)), Kind.EXTRA_TRAFFIC)
    says(own.evidence, "a loop only reads", "1 bytes for each byte it stores", "1 must be", "read again")
    assert 0.1 < own.gain < 0.3


@pytest.mark.parametrize(("loops", "ratio", "read"), [(0, 1.0, 1), (1, 1.0, 3), (1, None, 1)])
def test_nothing_is_read_twice_where_the_last_loop_needs_the_others(
    loops: int, ratio: float | None, read: int
) -> None:
    """Of three arrays to be read for each written, the loop that writes reads one: two are read elsewhere."""
    own = code(reading_loops=loops, loaded_per_stored=ratio)
    work = WorkNeeded(read << 27, 1 << 27)
    assert found(of(own, work=work), Kind.EXTRA_TRAFFIC) is None


def test_barriers_count_against_the_time_of_a_block() -> None:
    busy = of(code(barrier=12, shuffle=40))
    short, long = (found(replace(busy, seconds=s), Kind.BARRIERS) for s in (128e-6, 2000e-6))
    says(short.evidence, "12 barriers and 40 shuffles, 1480 cycles")
    assert long is None
    assert found(of(code(shuffle=40), seconds=128e-6), Kind.BARRIERS) is None, "nobody waits for another warp"


def test_many_instructions_for_few_bytes_are_told_with_their_classes() -> None:
    small = (access(width=4), access(direction="store", width=4))
    own = found(of(code(*small, total=300, conversion=60, multiply=30)), Kind.COMPUTE)
    says(own.evidence, "300 instructions for 8 bytes", "of the time to issue")
    says(own.evidence, "30 integer products", "60 conversions", "210 others")
    assert found(of(code(total=60)), Kind.COMPUTE) is None


def test_classes_that_are_few_are_not_listed() -> None:
    assert instruction_classes(Mix(total=1000, fp32=600, special=10)).startswith(
        "600 in single precision, 390 others"
    )


def test_shares_follow_from_the_bytes_that_must_move() -> None:
    one = of(code(access(count=2), access(direction="store", count=2)))
    shares = unit_shares(RuleInput(one, costs_of(one), compute_roofline(one)))
    twice = replace(one, seconds=2 * (one.seconds or 0.0))
    slower = unit_shares(RuleInput(twice, costs_of(twice), compute_roofline(twice)))
    assert shares["device memory"] == pytest.approx(2 * slower["device memory"])
    assert unit_shares(RuleInput(replace(one, seconds=None), costs_of(one), compute_roofline(one))) is None


def test_a_kernel_without_a_fault_is_bound_by_what_needs_much_of_the_time() -> None:
    """And where nothing does, that is not known; it is said what was looked at."""
    near, far = (
        diagnose_profile(replace(profile(), ceilings=CEILINGS, seconds=64e-6 * t)) for t in (1.5, 4.0)
    )
    assert (near.bound, near.findings) == (Bound.BANDWIDTH, ())
    assert far.bound is Bound.UNKNOWN
    for one in (near, far):
        says(one.notes[-1], "looked at:", "device memory needs most", "bytes in flight", "barriers")


def test_a_remainder_beside_wide_accesses_is_not_taken_for_narrow_access() -> None:
    wide = (access(count=2), access(direction="store", count=1))
    rest = (access(width=2, count=2), access(direction="store", width=2, count=1))
    assert found(of(code(*wide, *rest)), Kind.NARROW_ACCESS) is None
    assert found(of(code(*rest)), Kind.NARROW_ACCESS) is not None


LOOPS = """
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   IMAD.WIDE R2, R0, 0x4, R10 ;
.L_x_1:
        /*0020*/                   LDG.E R4, [R2.64] ;
        /*0030*/                   FADD R6, R6, R4 ;
        /*0040*/               @P0 BRA `(.L_x_1) ;
.L_x_2:
        /*0050*/                   LDG.E R4, [R2.64] ;
        /*0060*/                   FMUL R5, R6, R4 ;
        /*0070*/                   STG.E [R2.64], R5 ;
        /*0080*/               @P1 BRA `(.L_x_2) ;
        /*0090*/                   EXIT ;
"""


def test_loops_are_told_apart_by_what_they_load_and_store() -> None:
    read = read_sass(LOOPS)
    assert (read.loops, read.reading_loops, read.loaded_per_stored) == (2, 1, 1.0)
    stores = read_sass(LOOPS.replace("FADD R6, R6, R4", "STG.E [R2.64], R4"))
    assert (stores.reading_loops, stores.loaded_per_stored) == (0, 1.0)
