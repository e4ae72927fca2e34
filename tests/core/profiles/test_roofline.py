"""What must move, and the floor under what the device can do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import CEILINGS, WORK, profile
from tests.samples import a_problem
from tunesmith.profiles.facts import Ceilings, Operations, Point, WorkNeeded
from tunesmith.profiles.roofline import Ceiling, best_bandwidth, compute_roofline, move_seconds, work_of

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
