"""What must move, and the floor under what the device can do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.profiles.made_up import CEILINGS, WORK, profile
from tests.samples import a_problem
from tunesmith.profiles.facts import Ceilings, Operations, Point, WorkNeeded
from tunesmith.profiles.roofline import (
    Ceiling,
    best_bandwidth,
    compute_roofline,
    correct_ceilings,
    describe_corrections,
    is_sound,
    move_seconds,
    work_of,
)

SIZES = {"rows": 64, "d": 1024}


def test_bytes_by_direction() -> None:
    assert work_of(a_problem(), SIZES) == WorkNeeded(64 * 1024 * 4, 64 * 1024 * 4)


def test_stated_bytes_are_shared_out_as_the_arrays_are() -> None:
    problem = a_problem()
    stated = replace(problem, traffic=problem.arguments[0].shape[0])  # "rows", as if these were bytes
    assert work_of(stated, SIZES) == WorkNeeded(32, 32)


def test_stated_operations_go_along() -> None:
    stated = Operations(fp32=1e9)
    assert work_of(a_problem(), SIZES, stated).operations == stated


def test_between_two_measured_sizes_time_is_a_straight_line() -> None:
    ceilings = Ceilings(copy=(Point(100, 1.0), Point(300, 2.0)))
    assert move_seconds(WorkNeeded(100, 100), ceilings) == pytest.approx(1.5)
    assert move_seconds(WorkNeeded(10, 10), ceilings) == 1.0  # less takes no less
    assert move_seconds(WorkNeeded(300, 300), ceilings) == pytest.approx(4.0)


def test_reads_alone_take_less_than_copies() -> None:
    ceilings = Ceilings(copy=(Point(100, 2.0),), read=(Point(100, 1.0),))
    assert move_seconds(WorkNeeded(50, 50), ceilings) == 2.0
    assert move_seconds(WorkNeeded(100, 0), ceilings) == 1.0
    assert move_seconds(WorkNeeded(75, 25), ceilings) == 1.5
    assert move_seconds(WorkNeeded(0, 100), ceilings) == 2.0
    assert move_seconds(WorkNeeded(50, 50), Ceilings()) is None
    assert move_seconds(WorkNeeded(50, 50), Ceilings(read=(Point(100, 1.0),))) == 1.0


def test_reads_that_were_measured_slower_than_copies_are_not_believed() -> None:
    ceilings = Ceilings(copy=(Point(100, 1.0),), read=(Point(100, 2.0),))
    assert move_seconds(WorkNeeded(100, 0), ceilings) == 1.0
    assert move_seconds(WorkNeeded(75, 25), ceilings) == 1.0


def test_the_highest_floor_counts() -> None:
    plain = compute_roofline(profile())
    assert plain.floor.ceiling is Ceiling.MEMORY
    assert plain.distance == pytest.approx(3.0)
    heavy = replace(WORK, operations=Operations(fp32=6e10))
    computing = compute_roofline(profile(work=heavy, ceilings=replace(CEILINGS, fp32=6e13)))
    assert computing.floor.ceiling is Ceiling.FP32
    assert computing.floor.seconds == pytest.approx(1e-3)


def test_a_small_copy_is_bound_by_its_launch() -> None:
    small = compute_roofline(profile(work=WorkNeeded(1 << 17, 1 << 17)))
    assert small.floor.ceiling is Ceiling.LAUNCH
    assert small.floor.seconds == pytest.approx(1.6e-6)


def test_warm_data_is_held_against_the_cache() -> None:
    ceilings = replace(CEILINGS, cache_bytes=50 << 20, cache_bandwidth=6e12)
    warm = compute_roofline(profile(warm=True, work=WorkNeeded(6 << 20, 6 << 20), ceilings=ceilings))
    assert warm.floor.ceiling is Ceiling.CACHE
    too_much = compute_roofline(profile(warm=True, ceilings=ceilings))
    assert too_much.floor.ceiling is Ceiling.MEMORY


def test_nothing_known_gives_no_floor() -> None:
    unknown = compute_roofline(profile(limits=None, ceilings=Ceilings()))
    assert unknown.floor is None
    assert unknown.distance is None


def test_the_best_bandwidth() -> None:
    assert best_bandwidth(CEILINGS) == pytest.approx((1 << 28) / 60e-6)
    assert best_bandwidth(Ceilings()) is None


MIB = 1 << 20
seconds = st.floats(1e-7, 1.0)


def points(times: list[float]) -> tuple[Point, ...]:
    return tuple(Point(4**k * MIB, s) for k, s in enumerate(times))


def test_what_can_be_stays_as_it_is() -> None:
    sound = replace(CEILINGS, cache_bytes=50 << 20, cache_bandwidth=6e12)
    assert correct_ceilings(sound) == sound
    assert describe_corrections(sound, sound) == ""


def test_more_bytes_take_no_less_time() -> None:
    busy = Ceilings(copy=points([1e-5, 9e-4, 4e-4, 1e-3]))
    found = correct_ceilings(busy)
    assert [p.seconds for p in found.copy] == [1e-5, 4e-4, 4e-4, 1e-3]
    said = describe_corrections(busy, found)
    assert "copies of 4096 KiB" in said
    assert "--remeasure" in said


def test_reads_take_no_longer_than_copies_also_of_other_sizes() -> None:
    found = correct_ceilings(Ceilings(copy=points([1e-5, 2e-5]), read=points([5e-5, 1e-5])))
    assert [p.seconds for p in found.read] == [1e-5, 1e-5]
    rounded = correct_ceilings(Ceilings(copy=points([8.3741e-05, 0.000480268]), read=points([1e-5, 1e-3])))
    assert rounded.read[1].seconds == 0.000480268  # not by a line that ends a rounding above it
    between = Ceilings(copy=points([1e-5, 4e-5]), read=(Point(5 * MIB // 2, 9e-5),))
    assert correct_ceilings(between).read[0].seconds == pytest.approx(2.5e-5)


def test_the_cache_is_no_slower_than_memory_and_a_launch_no_slower_than_a_copy() -> None:
    busy = Ceilings(copy=points([1e-5]), cache_bytes=MIB, cache_bandwidth=1e9, launch=1e-3)
    found = correct_ceilings(busy)
    assert found.cache_bandwidth == pytest.approx(MIB / 1e-5)
    assert found.launch == 1e-5
    said = describe_corrections(busy, found)
    assert "the cache's bandwidth" in said
    assert "an empty launch" in said
    graphs = correct_ceilings(replace(busy, graph_launch=2e-5))
    assert (graphs.graph_launch, graphs.launch) == (1e-5, 1e-3)  # copies are timed in graphs there


@given(st.lists(seconds, max_size=6), st.lists(seconds, max_size=6), seconds, st.floats(1e6, 1e13))
def test_whatever_was_measured(copies: list[float], reads: list[float], launch: float, cache: float) -> None:
    measured = Ceilings(copy=points(copies), read=points(reads), launch=launch, cache_bandwidth=cache)
    found = correct_ceilings(measured)
    for own in (found.copy, found.read):
        assert all(a.seconds <= b.seconds for a, b in pairwise(own))
    assert all(r.seconds <= c.seconds for r, c in zip(found.read, found.copy, strict=False))
    assert all(new.seconds <= old.seconds for old, new in zip(measured.copy, found.copy, strict=True))
    assert found.cache_bandwidth is not None
    assert found.cache_bandwidth >= (best_bandwidth(found) or 0.0)
    assert correct_ceilings(found) == found


@pytest.mark.parametrize(
    "spoilt",
    [
        {"copy": (Point(MIB, 0.0),)},
        {"copy": (Point(0, 1e-5),)},
        {"read": (Point(MIB, float("nan")),)},
        {"read": (Point(MIB, float("inf")),)},
        {"launch": 0.0},
        {"fp32": -1.0},
        {"cache_bytes": 0},
        {"cache_bandwidth": float("inf")},
    ],
)
def test_numbers_that_nobody_measures(spoilt: dict[str, object]) -> None:
    assert is_sound(CEILINGS)
    assert is_sound(Ceilings())
    assert not is_sound(replace(CEILINGS, **spoilt))  # type: ignore[arg-type]
