"""Sectors and banks by hand, and costs that answer to what they are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import access, launch, profile, with_code
from tunesmith.profiles.costs import bank_ways, costs_of, ideal_sectors, touched_sectors
from tunesmith.profiles.facts import Profile, StaticFacts


@pytest.mark.parametrize(
    ("width", "stride", "touched"),
    [
        (1, 1, 1),
        (2, 2, 2),
        (4, 4, 4),
        (4, 8, 8),
        (4, 32, 32),
        (4, 4096, 32),
        (8, 8, 8),
        (16, 16, 16),
        (16, 64, 32),
    ],
)
def test_sectors_of_a_warp(width: int, stride: int, touched: int) -> None:
    assert touched_sectors(access(width=width, stride=stride)) == touched


def test_sectors_where_the_stride_is_not_known() -> None:
    assert touched_sectors(access(width=4, pattern="uniform")) == 1
    assert touched_sectors(access(width=4, pattern="far")) == 32
    assert touched_sectors(access(width=4, pattern="unknown")) == ideal_sectors(access(width=4)) == 4


@pytest.mark.parametrize(
    ("width", "stride", "ways"),
    [
        (4, 4, 1),
        (4, 8, 2),
        (4, 12, 1),
        (4, 128, 32),
        (4, 132, 1),
        (4, 64, 16),
        (8, 8, 1),
        (16, 16, 1),
        (16, 128, 8),
        (16, 144, 1),
        (1, 1, 1),
        (2, 64, 16),
    ],
)
def test_how_often_shared_memory_is_asked(width: int, stride: int, ways: int) -> None:
    assert bank_ways(access("shared", width=width, stride=stride)) == ways


def test_no_code_no_costs() -> None:
    assert costs_of(Profile("k", "w")) is None
    assert costs_of(profile(static=StaticFacts())) is None


def test_the_scope_is_the_loop_where_that_touches_memory() -> None:
    own = with_code(access(width=4, count=3))
    inside = costs_of(own)
    assert inside.loaded == 12
    code = own.static.instructions
    outside = tuple(replace(a, hot=False) for a in code.accesses)
    dry = replace(code, accesses=outside, hot=replace(code.hot, total=7))
    costs = costs_of(replace(own, static=replace(own.static, instructions=dry)))
    assert costs.mix == code.all


def test_more_warps_hide_latency() -> None:
    thin = with_code(access(width=4, count=4), bytes_in_flight=4)
    few, many = (costs_of(replace(thin, launch=launch(n))) for n in (132, 132 * 8))
    assert few.pass_cost() > many.pass_cost()
    assert few.stake("few_warps") > many.stake("few_warps")


def test_a_device_with_few_double_units_pays_more_for_doubles() -> None:
    own = with_code(access(width=4), total=80, fp64=10)
    assert own.limits is not None
    small = replace(own, limits=replace(own.limits, capability=89))
    here, there = costs_of(own), costs_of(small)
    assert there.stake("fp64") > here.stake("fp64")
