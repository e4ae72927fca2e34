"""What machine code tells where nobody has counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import CEILINGS, access, code, found, profile
from tests.wording import says
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.profiles.costs import RuleInput, costs_of
from tunesmith.profiles.diagnose import diagnose_profile, instruction_classes, unit_shares
from tunesmith.profiles.facts import Bound, Instructions, Kind, Mix, Profile, StaticFacts, WorkNeeded
from tunesmith.profiles.roofline import compute_roofline


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
