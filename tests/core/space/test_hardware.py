"""Limits of a device as constraints: they drop what planning would refuse, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.samples import LIMITS, a_device, a_problem, a_template
from tests.thoroughness import examples
from tunesmith.problem.device import Limits, Resources
from tunesmith.problem.plan import CannotRun, plan_launch
from tunesmith.problem.problem import Launch
from tunesmith.problem.template import Template, hardware_constraints
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint, Space

PROBLEM = a_problem()
WORKLOADS = [w.as_dict() for w in PROBLEM.workloads]


def template(params: Mapping[str, tuple[int, ...]], *launches: Launch) -> Template:
    space = Space(tuple(Param(name, values) for name, values in params.items()))
    default = Config(tuple((param.name, param.values[0]) for param in space.params))
    return replace(a_template(PROBLEM), space=space, default=default, launches=launches)


def launch(block: str, shared: str | None = None, grid: str = "1") -> Launch:
    sides = tuple(parse_expr(part) for part in block.split(";"))
    return Launch(
        "scale", (parse_expr(grid),), sides, (), shared=parse_expr(shared) if shared is not None else None
    )


def names(made: Template, limits: Limits = LIMITS) -> list[str]:
    return [constraint.name for constraint in hardware_constraints(made, limits)]


def left(made: Template, limits: Limits = LIMITS) -> list[dict[str, int]]:
    space = replace(made.space, constraints=hardware_constraints(made, limits))
    return [config.as_dict() for config in space.configs(WORKLOADS, limits.names())]


def test_what_every_configuration_keeps_to_is_no_constraint() -> None:
    made = template({"X": (32, 64), "Y": (1, 16)}, launch("X;Y", "X * Y * 4"))
    assert names(made) == []
    assert names(a_template(PROBLEM)) == []


def test_threads_axes_and_shared_memory() -> None:
    made = template({"X": (32, 512), "Y": (1, 2, 128)}, launch("X;1;Y", "X * 100"))
    limits = ("threads per block", "block axis z", "shared memory per block")
    assert names(made) == [f"device: {limit}" for limit in limits]
    assert left(made) == [{"X": 32, "Y": 1}, {"X": 32, "Y": 2}]
    assert all(c.kind == "require" for c in hardware_constraints(made, LIMITS))


def test_each_of_several_launches_counts() -> None:
    made = template({"X": (512, 2048), "Y": (2048, 64)}, launch("X"), launch("Y"), launch("X"))
    assert names(made) == [
        "device: threads per block of launch 1",
        "device: threads per block of launch 2",
    ]  # the third is the first
    assert left(made) == [{"X": 512, "Y": 64}]


def test_what_a_size_or_a_build_decides_is_left_for_planning() -> None:
    made = template({"X": (4096,)}, launch("min(X, d)", "X * resources.registers"), launch("X - 4000"))
    assert names(made) == []


def test_a_device_may_be_asked() -> None:
    made = template({"W": (1, 4, 64)}, launch("W * device.warp", "device.shared // 2 * W"))
    assert left(made) == [{"W": 1}]


def test_a_launch_that_fits_with_no_configuration() -> None:
    made = template({"X": (1, 2)}, launch("2048"))
    assert names(made) == ["device: threads per block"]
    assert left(made) == []


def test_more_combinations_than_are_tried_keep_their_constraint() -> None:
    many = {f"P{i}": (1, 2, 3, 4) for i in range(11)}
    made = template(many, launch("64", " + ".join(many)))
    assert names(made) == ["device: shared memory per block"]


sides = st.sampled_from(["A", "B", "A * B", "A + B", "min(A, 64)", "A // (B - 2)", "4 * B", "A - 3", "C"])


@given(
    st.lists(sides, min_size=1, max_size=3),
    sides,
    st.integers(1, 300),
    st.tuples(st.integers(1, 300), st.integers(1, 100), st.integers(1, 50)),
    st.integers(0, 400),
)
@examples(60)
def test_it_drops_just_what_planning_refuses(
    block: list[str], shared: str, threads: int, axes: tuple[int, int, int], memory: int
) -> None:
    device = a_device(max_threads=threads, max_block=axes, shared=memory)
    made = template({"A": (1, 2, 64, 200), "B": (1, 2, 3, 16), "C": (7,)}, launch(";".join(block), shared))
    remaining = left(made, device.limits)
    for config in made.space.configs(WORKLOADS):
        variant = made.render(PROBLEM, config)
        plan = plan_launch(PROBLEM, variant, WORKLOADS[0], device, Resources())
        assert isinstance(plan, CannotRun) == (config.as_dict() not in remaining), (config, plan)


def test_a_large_space_is_listed_within_a_second() -> None:
    """1.3 million combinations tied together, as a matrix multiplication ties them."""
    params: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("MWG", "NWG", "VM", "VN"), (16, 32, 64, 128)),
        **dict.fromkeys(("MD", "ND", "MA", "NB"), (8, 16, 32)),
        **dict.fromkeys(("SA", "SB", "RM", "RN", "KI", "KW"), (0, 1)),
    }
    made = template(params, launch("MD;ND", "8 * (16 + 16 * KW) * (SA * MWG + SB * NWG)"))
    own = Constraint("tile", parse_expr("MWG % MD == 0 and NWG % ND == 0"))
    limits = replace(LIMITS, max_threads=256)
    space = replace(made.space, constraints=(own,))
    start = time.perf_counter()
    found = hardware_constraints(made, limits)
    configs = replace(space, constraints=(own, *found)).configs(WORKLOADS, limits.names())
    assert time.perf_counter() - start < 1.0
    assert [c.name for c in found] == ["device: threads per block", "device: shared memory per block"]
    assert space.combinations == 1_327_104
    assert 0 < len(configs) < len(space.configs(WORKLOADS, limits.names()))
