"""Sectors and banks by hand, and costs that answer to what they are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.profiles.made_up import access, launch, profile, with_code
from tests.samples import HOPPER, LIMITS
from tunesmith.problem.device import Resources, compute_occupancy
from tunesmith.problem.plan import Geometry
from tunesmith.profiles.costs import bank_ways, costs_of, ideal_sectors, touched_sectors
from tunesmith.profiles.facts import LaunchFacts, Profile, StaticFacts, launch_facts, occupancy_limiters


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


def facts(blocks: int, threads: int = 256, registers: int = 32, **more: int) -> LaunchFacts:
    geometry = Geometry("k", (blocks, 1, 1), (threads, 1, 1), more.pop("shared", 0), ())
    return launch_facts(geometry, HOPPER, Resources(registers=registers, shared=0), **more)


def test_waves_and_the_share_of_the_last() -> None:
    whole = facts(132 * 8 * 2)
    assert (whole.waves, whole.last_wave, whole.blocks_per_sm) == (2.0, 1.0, 8)
    more = facts(132 * 8 * 2 + 264)
    assert more.waves == pytest.approx(2.25)
    assert more.last_wave == pytest.approx(0.25)


def clustered(size: int, **more: int) -> LaunchFacts:
    geometry = Geometry("k", (132 * 8, 1, 1), (256, 1, 1), 0, (), cluster=(size, 1, 1))
    return launch_facts(geometry, HOPPER, Resources(registers=32, shared=0), **more)


def test_clusters_at_once_are_the_drivers_count_or_what_limits_would_allow() -> None:
    computed, told = clustered(8), clustered(8, clusters=128)
    assert (computed.cluster, computed.clusters, computed.is_counted) == (8, 132, False)
    assert computed.cluster_words == (
        "clusters of 8 blocks: 132 at once at most, computed from limits; the driver may hold fewer"
    )
    assert told.cluster_words == (
        "clusters of 8 blocks: 128 run at once by the driver, 1024 blocks of the 1056 that would fit without "
        "them"
    )
    nobody = launch_facts(Geometry("k", (8, 1, 1), (64, 1, 1), 0, (), cluster=(2, 1, 1)), LIMITS, Resources())
    assert nobody.cluster_words == "clusters of 2 blocks: how many run at once is not known"
    assert facts(8).cluster_words == ""


def test_threads_that_are_there_at_once() -> None:
    assert facts(132 * 100).resident_threads == 2048
    assert facts(132 * 2).resident_threads == 512
    assert facts(8).resident_threads == 256


def test_lanes_and_threads_with_nothing_to_do() -> None:
    assert facts(1, threads=48).idle_lanes == 0.25
    assert facts(10, threads=100, elements=750).idle_threads == pytest.approx(0.25)
    assert facts(1).idle_threads is None


def test_local_arguments_take_shared_memory() -> None:
    assert facts(1, local=100_000).blocks_per_sm == 2


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "limit"),
    [
        (256, 64, 0, ("registers",)),
        (256, 16, 60_000, ("shared memory",)),
        (1024, 16, 0, ("threads",)),
        (32, 16, 0, ("blocks",)),
        (256, 32, 0, ("registers", "threads")),
    ],
)
def test_what_limits_occupancy(threads: int, registers: int, shared: int, limit: tuple[str, ...]) -> None:
    assert facts(1, threads, registers, shared=shared).limited_by == limit


@given(
    st.integers(1, 1024), st.integers(1, 255), st.integers(0, 200_000), st.sampled_from([75, 80, 86, 90, 100])
)
def test_the_limiter_is_the_one_whose_relief_helps(
    threads: int, registers: int, shared: int, capability: int
) -> None:
    limits = replace(HOPPER, capability=capability)
    resources = Resources(registers=registers, shared=0)
    held = compute_occupancy(limits, resources, threads, shared)
    named = occupancy_limiters(limits, resources, threads, shared)
    assert held is not None
    assert named
    if named == ("blocks",):
        more = compute_occupancy(replace(limits, blocks_per_sm=1000), resources, threads, shared)
        assert more.blocks_per_sm > held.blocks_per_sm


def test_where_the_device_says_little_so_do_the_facts() -> None:
    geometry = Geometry("k", (7, 1, 1), (64, 1, 1), 0, ())
    unknown = launch_facts(geometry, LIMITS, Resources())
    assert (unknown.blocks, unknown.threads, unknown.waves, unknown.limited_by) == (7, 64, None, ())
    assert occupancy_limiters(LIMITS, Resources(registers=32, shared=0), 64, 0) == ()
