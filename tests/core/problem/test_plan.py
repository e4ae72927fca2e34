"""Launches made concrete: shapes, bytes, geometry, and what the hardware forbids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import DEVICE, HOPPER, a_device, a_problem, a_template, config
from tests.wording import says
from tunesmith.base.codec import encode_json
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import (
    CannotRun,
    Geometry,
    Plan,
    necessary_traffic,
    overstated_traffic,
    plan_launch,
)
from tunesmith.problem.problem import Argument, Launch, Role
from tunesmith.problem.template import Variant, original_variant
from tunesmith.space.expr import parse_expr

PROBLEM = a_problem()
SIZES = {"rows": 16, "d": 256}


def array(name: str, *shape: str, role: Role = "input", **more: object) -> Argument:
    return Argument(name, "float32", role, tuple(map(parse_expr, shape)), **more)  # type: ignore[arg-type]


def launch(
    grid: str = "1", block: str = "64", shared: str = "", args: str = "", entry: str = "k", **more: object
) -> Launch:
    sides = (tuple(map(parse_expr, side.split(";"))) for side in (grid, block))
    bytes_ = parse_expr(shared) if shared else None
    return Launch(entry, *sides, tuple(args.split()), bytes_, **more)  # type: ignore[arg-type]


def variant(*launches: Launch, arguments: tuple[Argument, ...] = (), domain: tuple[str, ...] = ()) -> Variant:
    arguments = arguments or (array("out", "rows", "d", role="output"),)
    conditions = tuple(map(parse_expr, domain))
    return Variant("k.cl", "", "opencl", (), launches or (launch(),), arguments, conditions)


def plan_of(
    made: Variant, sizes: Mapping[str, int], device: Device = DEVICE, **more: Any
) -> Plan | CannotRun:
    return plan_launch(PROBLEM, made, sizes, device, more.get("resources"))


def planned(made: Variant, sizes: Mapping[str, int] = SIZES, **where: Any) -> Plan:
    plan = plan_of(made, sizes, **where)
    assert isinstance(plan, Plan), plan
    return plan


def refused(made: Variant, sizes: Mapping[str, int] = SIZES, **where: Any) -> CannotRun:
    refusal = plan_of(made, sizes, **where)
    assert isinstance(refusal, CannotRun), refusal
    return refusal


def test_the_original_as_it_is_launched() -> None:
    plan = planned(original_variant(PROBLEM))
    assert plan.sizes == (("rows", 16), ("d", 256))
    assert plan.launches == (Geometry("scale", (16, 1, 1), (64, 1, 1), 0, ("out", "x", "rows", "d")),)
    out = plan.buffer("out")
    assert (out.shape, out.strides) == ((16, 256), (256, 1))
    assert (out.extent, out.nbytes, out.count) == (4096, 16384, 4096)
    assert (out.align, out.itemsize, out.compare) == (4, 4, "close")
    assert [(s.name, s.value) for s in plan.scalars] == [("rows", 16), ("d", 256)]
    assert plan.nbytes == 2 * 16384
    assert [b.name for b in plan.compared()] == ["out"]


def test_a_configuration_with_its_own_geometry() -> None:
    made = a_template(PROBLEM).render(PROBLEM, config(128, 4))
    assert planned(made).launches[0].grid == (8, 1, 1)
    assert planned(made).launches[0].block == (128, 1, 1)


def test_axes_that_are_not_given_are_one() -> None:
    (geometry,) = planned(variant(launch("2;3;rows", "4;5"))).launches
    assert (geometry.grid, geometry.block) == ((2, 3, 16), (4, 5, 1))


def test_expressions_may_ask_the_device_and_the_build() -> None:
    made = variant(launch("device.sms * resources.blocks_per_sm"))
    assert planned(made, resources=Resources(blocks_per_sm=3)).launches[0].grid == (48, 1, 1)
    refusal = refused(made)
    assert not refusal.over_limits
    assert "'resources.blocks_per_sm' has no value" in refusal.reason


def test_tolerances_and_comparison_of_an_argument_come_first() -> None:
    own = array("a", "d", role="output", rtol=0.5, compare="exact", align=64, init=1.0)
    whole = Argument("n", "int32", "output", (parse_expr("d"),))
    plan = planned(variant(arguments=(own, whole)))
    first, second = plan.buffers
    assert (first.rtol, first.atol, first.compare) == (0.5, PROBLEM.accuracy.atol, "exact")
    assert (first.align, first.init) == (64, 1.0)
    assert second.compare == "exact"


def test_scalars_may_be_numbers_or_expressions() -> None:
    scale = Argument("scale", "float32", "scalar", value=0.5)
    count = Argument("count", "int64", "scalar", value=parse_expr("rows * d"))
    plan = planned(variant(arguments=(scale, count)))
    assert [(s.type, s.value) for s in plan.scalars] == [("float32", 0.5), ("int64", 4096)]


def test_an_alias_shares_a_buffer() -> None:
    held = array("x", "d", role="inout")
    plan = planned(variant(arguments=(held, Argument("y", "float32", "inout", alias="x"))))
    assert plan.aliases == (("y", "x"),)
    assert [b.name for b in plan.buffers] == ["x"]


def test_local_memory_is_counted_in_bytes() -> None:
    plan = planned(variant(arguments=(array("tile", "4", "d", role="local"),)))
    assert [(item.name, item.nbytes) for item in plan.locals] == [("tile", 4096)]
    assert plan.buffers == ()


shapes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=3)


@given(shapes)
def test_the_extent_reaches_the_last_element_touched(axes: list[tuple[int, int]]) -> None:
    lengths, steps = zip(*axes, strict=True)
    strided = array("a", *map(str, lengths), strides=tuple(parse_expr(step) for step in steps))
    places = [sum(i * s for i, s in zip(at, steps, strict=True)) for at in np.ndindex(*lengths)]
    buffer = planned(variant(arguments=(strided,))).buffers[0]
    assert buffer.extent == max(places, default=-1) + 1
    assert buffer.nbytes == 4 * (max(places, default=-1) + 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_a_dense_array_has_the_last_axis_fastest(lengths: list[int]) -> None:
    (buffer,) = planned(variant(arguments=(array("a", *map(str, lengths)),))).buffers
    assert buffer.extent == buffer.count == int(np.prod(lengths))
    if buffer.count:
        steps = np.zeros(lengths, dtype=np.int8).strides  # of a single element NumPy's mean nothing
        for mine, numpys, length in zip(buffer.strides, steps, lengths, strict=True):
            assert mine == numpys or length == 1


def test_a_length_below_zero_is_an_empty_array() -> None:
    plan = planned(variant(arguments=(array("a", "rows - 20", "d"),)))
    assert (plan.buffers[0].shape, plan.buffers[0].nbytes) == ((0, 256), 0)


def test_outside_its_domain_a_variant_is_infeasible() -> None:
    made = variant(domain=("d % 512 == 0",))
    assert refused(made) == CannotRun(False, "requires d % 512 == 0, not so at rows=16, d=256")
    assert planned(made, {"rows": 1, "d": 512})


def test_a_condition_on_the_build_waits_for_it() -> None:
    made = variant(domain=("resources.spills == 0",))
    assert planned(made)
    assert planned(made, resources=Resources(spills=0))
    assert planned(made, resources=Resources(registers=9))  # a compiler that does not say
    assert refused(made, resources=Resources(spills=8)).over_limits


def test_an_expression_without_a_value_is_infeasible() -> None:
    refusal = refused(variant(launch("d // (rows - 16)")))
    assert not refusal.over_limits
    assert "division by zero" in refusal.reason
    assert "rows=16" in refusal.reason


SMALL = a_device(
    max_threads=256, max_block=(256, 128, 4), max_grid=(1000, 100, 10), shared=1024, max_allocation=65536
)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (launch(block="257"), "257 threads per block, the device allows 256"),
        (launch(block="128;4"), "512 threads per block"),
        (launch(block="1;129"), r"block \(1, 129, 1\), the device allows"),
        (launch(block="8;8;5"), "320 threads"),
        (launch(block="1;1;5"), r"block \(1, 1, 5\)"),
        (launch("1001"), r"grid \(1001, 1, 1\), the device allows"),
        (launch("1;101"), r"grid \(1, 101, 1\)"),
        (launch("1;1;11"), r"grid \(1, 1, 11\)"),
        (launch(shared="1025"), "1025 bytes of shared memory per block, the device allows 1024"),
        (launch(shared="rows - 17"), "-1 bytes of shared memory"),
        (launch("rows - 16"), "the launch is empty"),
        (launch(block="0"), "the launch is empty"),
        (launch("rows - 17; rows - 17"), "the launch is empty"),
        (launch(block="-2;-2"), "the launch is empty"),
    ],
)
def test_limits_of_a_launch(made: Launch, words: str) -> None:
    refusal = refused(variant(launch(), made), device=SMALL)
    assert refusal.over_limits
    assert re.search(words, refusal.reason), refusal.reason


def test_at_the_limits_it_runs() -> None:
    for made in (launch("1000;100;10", "256"), launch(block="2;128"), launch(shared="1024")):
        assert planned(variant(made), device=SMALL)


def test_a_build_may_allow_fewer_threads_than_the_device() -> None:
    made = variant(launch(block="128"))
    assert planned(made, resources=Resources(max_threads=128))
    refusal = refused(made, resources=Resources(max_threads=127))
    assert refusal == CannotRun(True, "128 threads per block, this build allows 127")


def test_shared_memory_adds_up() -> None:
    tile, other = array("tile", "100", role="local"), array("other", "200", role="local")
    made = variant(launch(args="tile", shared="100"), launch(args="other"), arguments=(tile, other))
    assert planned(made, device=SMALL, resources=Resources(shared=224))
    refusal = refused(made, device=SMALL, resources=Resources(shared=225))
    assert refusal.over_limits
    says(refusal.reason, "1025 bytes", "shared memory", "allows 1024")


@pytest.mark.parametrize("length", ["0", "rows - 20"])
def test_local_memory_of_no_bytes_is_refused(length: str) -> None:
    assert refused(variant(arguments=(array("tile", length, role="local"),))).over_limits


def test_an_array_larger_than_one_allocation() -> None:
    made = variant(arguments=(array("a", "d", "64"),))
    assert planned(made, {"rows": 1, "d": 256}, device=SMALL)
    refusal = refused(made, {"rows": 1, "d": 257}, device=SMALL)
    assert refusal == CannotRun(True, "array a needs 65792 bytes, the device allows 65536")


H200 = replace(DEVICE, limits=HOPPER)
SMALL_KERNEL = Resources(registers=32, shared=0)  # 8 blocks of 256 threads, 100 %
LARGE_KERNEL = Resources(registers=128, shared=0)  # 2 blocks of 256 threads, 25 %
BOTH = replace(LARGE_KERNEL, by_entry=(("small", SMALL_KERNEL), ("large", LARGE_KERNEL)))


def test_a_grid_may_fill_the_device() -> None:
    made = variant(launch("device.sms * resources.blocks_per_sm", "256"))
    (geometry,) = planned(made, device=H200, resources=SMALL_KERNEL).launches
    assert geometry.grid == (132 * 8, 1, 1)
    assert (geometry.occupancy, geometry.blocks_per_sm) == (100, 8)
    known = replace(SMALL_KERNEL, blocks_per_sm=3)  # of no launch in particular
    assert planned(made, device=H200, resources=known).launches[0].grid == (132 * 8, 1, 1)
    assert planned(made, device=DEVICE, resources=known).launches[0].grid == (16 * 3, 1, 1)


def test_blocks_and_shared_memory_decide_and_so_come_first() -> None:
    made = variant(launch("resources.blocks_per_sm", "256", shared="resources.registers * 2000"))
    assert planned(made, device=H200, resources=SMALL_KERNEL).launches[0].grid == (3, 1, 1)
    circular = variant(launch(block="resources.blocks_per_sm"))
    refusal = refused(circular, device=H200, resources=SMALL_KERNEL)
    assert not refusal.over_limits
    assert "'resources.blocks_per_sm' has no value" in refusal.reason


def test_a_block_that_fits_nowhere_is_refused_before_a_grid_of_none() -> None:
    made = variant(launch("device.sms * resources.blocks_per_sm", "1024"))
    refusal = refused(made, device=H200, resources=Resources(registers=255, shared=0))
    assert refusal.over_limits
    assert refusal.reason.startswith("255 registers × 1024 threads: ")


def test_every_kernel_of_a_build_has_its_own() -> None:
    grid = "device.sms * resources.blocks_per_sm"
    made = variant(launch(grid, "256", entry="small"), launch(grid, "256", entry="large"))
    small, large = planned(made, device=H200, resources=BOTH).launches
    assert (small.blocks_per_sm, large.blocks_per_sm) == (8, 2)
    assert (small.grid[0], large.grid[0]) == (132 * 8, 132 * 2)


def test_a_condition_on_occupancy_is_held_against_the_worst_launch() -> None:
    two = (launch(block="256", entry="small"), launch(block="256", entry="large"))
    enough, more = (variant(*two, domain=(f"resources.occupancy >= {n}",)) for n in (25, 26))
    assert planned(enough, device=H200, resources=BOTH)
    refusal = refused(more, device=H200, resources=BOTH)
    assert refusal.over_limits
    says(refusal.reason, "resources.occupancy >= 26", "rows=16, d=256")


def test_where_nobody_says_how_many_a_condition_on_it_is_not_judged() -> None:
    made = variant(launch(block="256"), domain=("resources.occupancy > 100",))
    assert refused(made, device=H200, resources=SMALL_KERNEL)
    assert planned(made, device=DEVICE, resources=SMALL_KERNEL)
    assert planned(made, device=H200, resources=Resources(registers=32))
    assert planned(made, device=H200)
    half = replace(BOTH, by_entry=(("k", SMALL_KERNEL), ("dark", Resources())))
    both = variant(launch(block="256"), launch(entry="dark"), domain=("resources.occupancy > 100",))
    assert planned(both, device=H200, resources=half)
    assert refused(both, device=H200, resources=replace(half, occupancy=99))  # as the compiler told it


def test_all_blocks_of_a_cooperative_grid_run_at_once() -> None:
    full, more = (variant(launch(grid, "256", cooperative=True)) for grid in ("132 * 8", "132 * 8 + 1"))
    assert planned(full, device=H200, resources=SMALL_KERNEL)
    refusal = refused(more, device=H200, resources=SMALL_KERNEL)
    assert refusal.over_limits
    assert "1057 blocks cannot run at once: 132 multiprocessors hold 8 blocks each" in refusal.reason
    assert planned(more, device=H200)  # nobody knows
    assert planned(variant(launch("132 * 8 + 1", "256")), device=H200, resources=SMALL_KERNEL)


def test_limits_are_those_of_the_kernel_that_is_launched() -> None:
    few, wide = Resources(max_threads=64), Resources(max_threads=1024)
    built = replace(few, by_entry=(("wide", wide), ("k", few)))
    assert planned(variant(launch(block="512", entry="wide"), launch(block="64")), resources=built)
    assert refused(variant(launch(block="128")), resources=built).over_limits


def test_clusters_are_planned_and_refused_like_the_rest() -> None:
    four, three = (parse_expr(4), parse_expr(1)), (parse_expr(3),)
    (geometry,) = planned(variant(launch("rows", cluster=four)), device=H200).launches
    assert geometry.cluster == (4, 1, 1)
    assert refused(variant(launch("rows", cluster=three)), device=H200).over_limits


def nibbles(name: str, *shape: str, role: Role = "input") -> Argument:
    return Argument(name, "int4", role, tuple(map(parse_expr, shape)))


def test_two_elements_of_four_bits_share_a_byte() -> None:
    plan = planned(variant(arguments=(nibbles("w", "rows", "d"), nibbles("t", "d", role="local"))))
    (w,) = plan.buffers
    assert (w.shape, w.count, w.extent, w.nbytes) == ((16, 256), 4096, 4096, 2048)
    assert (w.itemsize, w.packed, w.align, w.compare) == (1, 2, 1, "exact")
    assert plan.locals[0].nbytes == 128
    assert traffic(nibbles("w", "rows", "d")) == 2048


def test_a_row_of_packed_elements_is_whole_bytes() -> None:
    made = variant(arguments=(nibbles("w", "rows", "d"),))
    rule = "array w: 2 int4 share a byte, so its last axis must be a multiple of 2, got 7"
    assert refused(made, {"rows": 2, "d": 7}) == CannotRun(False, rule)
    assert planned(made, {"rows": 3, "d": 8})
    assert planned(made, {"rows": 0, "d": 7}).nbytes == 0


def traffic(*arguments: Argument, whole: str | None = None) -> int:
    stated = parse_expr(whole) if whole is not None else None
    return necessary_traffic(replace(PROBLEM, arguments=arguments, traffic=stated), SIZES)


def test_inputs_move_once_and_what_is_changed_in_place_twice() -> None:
    assert traffic(array("x", "d")) == 1024
    assert traffic(array("x", "d"), array("out", "rows", role="output")) == 1024 + 64
    assert traffic(array("x", "d", role="inout")) == 2048
    assert necessary_traffic(PROBLEM, SIZES) == 2 * 16 * 256 * 4


def test_an_original_that_is_faster_than_its_bytes_is_said() -> None:
    name = PROBLEM.workloads[0].name
    seconds = necessary_traffic(PROBLEM, PROBLEM.workloads[0].as_dict()) / 1e9
    limits = a_device(pin_bandwidth=1e9).limits
    (said,) = overstated_traffic(PROBLEM, limits, {name: 0.9 * seconds})
    says(said, name, "faster", "`traffic`")
    assert not overstated_traffic(PROBLEM, limits, {name: 1.1 * seconds})
    assert not overstated_traffic(PROBLEM, a_device(pin_bandwidth=0).limits, {name: 0.9 * seconds})


def test_what_need_not_move_does_not_count() -> None:
    scalar = Argument("n", "int32", "scalar", value=parse_expr("d"))
    alias = Argument("y", "float32", "inout", alias="x")
    arrays = [array("w", "d", role="workspace"), array("t", "d", role="local")]
    assert traffic(array("x", "d", role="inout"), alias, scalar, *arrays) == 2048


def test_gaps_between_rows_do_not_move() -> None:
    assert traffic(array("x", "rows", "d", strides=(parse_expr("4 * d"), parse_expr("1")))) == 16 * 256 * 4


def test_what_the_problem_states_holds() -> None:
    table = array("table", "1000", "d", traffic=parse_expr("4 * rows * d"))
    assert traffic(table) == 4 * 16 * 256
    assert traffic(table, array("x", "d")) == 4 * 16 * 256 + 1024
    assert traffic(table, array("x", "d"), whole="8 * d") == 2048


def test_a_launch_is_left_out_where_its_condition_does_not_hold() -> None:
    tail = replace(launch("d // (d % 64)", entry="tail"), when=parse_expr("d % 64 != 0"))
    made = variant(launch(), tail)
    assert [one.entry for one in planned(made, {"rows": 1, "d": 100}).launches] == ["k", "tail"]
    assert [one.entry for one in planned(made, {"rows": 1, "d": 128}).launches] == ["k"]  # no division by 0
    assert refused(variant(tail), {"rows": 1, "d": 128}).reason == "no launch is left at rows=1, d=128"


def test_a_condition_does_not_touch_the_digest_of_other_kernels() -> None:
    plain = variant(launch())
    assert plain.digest != variant(replace(launch(), when=parse_expr("d > 1"))).digest
    assert b"when" not in encode_json(plain.launches).replace(b',"when":null', b"")
