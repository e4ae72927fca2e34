"""Written CUDA kernels give what the originals give, thread by thread on the host, and write nowhere else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.expert.writing import models
from tests.expert.writing.building import DEVICE, read
from tests.expert.writing.emulator import needs_emulator, run
from tests.expert.writing.models import MAP, ROWS, Model
from tests.running import FIXTURES
from tunesmith.backends.messages import Draw
from tunesmith.expert.model.kernel import KernelModel, Schedule, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.passes.convert import FORMATS
from tunesmith.expert.writing import write
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem, element_type
from tunesmith.problem.template import Variant, original
from tunesmith.session.problems import load_problem
from tunesmith.space.params import Config

ANY_LANES = models.choice("LANES", 4, 16, 32, 64, 96, default=64)
SMALL_ROWS = ROWS.having(lanes=ANY_LANES).without("load_hint")
SMALL_MAP = MAP.having(lanes=ANY_LANES, tasks=models.choice("TASKS", 1, 4)).without("load_hint")


def planned(problem: Problem, made: Variant, sizes: dict[str, int]) -> Plan:
    found = plan_launch(problem, made, sizes, DEVICE, None)
    assert isinstance(found, Plan), found
    return found


def compare(
    model: Model,
    schedule: Schedule,
    sizes: dict[str, int],
    folder: Path,
    hardware: tuple[str, str, str] | None = None,
    **values: int,
) -> None:
    """`hardware`: a helper, and the statements that do the same for one and for two."""
    kernel, problem = model()
    draft = TemplateDraft(kernel, schedule)
    if hardware is not None:
        helper, one, two = hardware
        draft = replace(draft, hardware=((helper, one),), in_pairs=((helper, two),))
    template = read(write(draft, problem), problem)
    known = {name: value for name, value in values.items() if name in template.default.as_dict()}
    made = template.render(problem, Config.of({**template.default.as_dict(), **known}), sizes)
    alike(problem, made, sizes, folder)


def alike(problem: Problem, made: Variant, sizes: dict[str, int], folder: Path) -> None:
    """It leaves in all arrays what the original leaves."""
    first = original(problem, sizes)
    plans = [planned(problem, v, sizes) for v in (first, made)]
    inputs = draw_inputs(plans[0], Draw("normal", 7, problem.inputs))
    # A kernel that waits in vain ends its process.
    child = os.fork()
    if child == 0:
        try:
            want, got = (
                run(v, plan, inputs, folder, 7) for v, plan in zip((first, made), plans, strict=True)
            )
            np.savez(
                folder / "found.npz",
                **{f"want {n}": want[n] for n in want},
                **{f"got {n}": got[n] for n in got},
            )
            os._exit(0)
        except BaseException as error:
            print(error)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    found = np.load(folder / "found.npz")
    for buffer in plans[0].buffers:
        kind = element_type(buffer.type)
        want, got = (found[f"{w} {buffer.name}"].view(kind.numpy).astype(np.float64) for w in ("want", "got"))
        assert np.isfinite(got).all()
        tolerance = {1: 0.13, 2: 2e-2}.get(kind.bytes, 1e-4)  # of float8 the next code, beside a tie
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance / 10, err_msg=buffer.name)


@needs_emulator
@pytest.mark.parametrize(
    ("d", "values"),
    [
        (37, {}),
        (96, {"LANES": 4, "TASKS": 8, "VEC": 4}),
        (512, {"LANES": 96, "TASKS": 2, "VEC": 2, "ITEMS": 2}),
        (512, {"LANES": 32, "TASKS": 2, "VEC": 8, "KEEP": 2, "STORE": 1}),
        (400, {"LANES": 64, "VEC": 8, "KEEP": 1, "PERSIST": 1, "FAST": 1, "BAKE": 1}),
    ],
)
@pytest.mark.few(1)
def test_rows_with_a_total(d: int, values: dict[str, int], emulated: Path) -> None:
    compare(models.rmsnorm, SMALL_ROWS, {"tokens": 7, "d": d}, emulated, **values)


@needs_emulator
@pytest.mark.long
def test_blocks_that_go_on_take_every_task(emulated: Path) -> None:
    sizes = {"tokens": 2 * DEVICE.limits.sms + 5, "d": 64}
    compare(models.rmsnorm, SMALL_ROWS, sizes, emulated, LANES=64, TASKS=2, VEC=1, PERSIST=1)


@needs_emulator
@pytest.mark.parametrize(
    "values",
    [
        {"LANES": 64, "VEC": 8},
        {"LANES": 32, "TASKS": 2, "VEC": 2, "KEEP": 8},
        {"LANES": 16, "TASKS": 8, "VEC": 8, "KEEP": 4, "ITEMS": 1},
    ],
)
@pytest.mark.few(1)
def test_what_a_loop_leaves_for_a_later_one(values: dict[str, int], emulated: Path) -> None:
    compare(models.fused_add_rmsnorm, SMALL_ROWS, {"tokens": 5, "d": 480}, emulated, **values)


@needs_emulator
@pytest.mark.parametrize(
    "values",
    [
        {"LANES": 16},
        {"LANES": 16, "TASKS": 8, "VEC": 8, "KEEP": 1, "RECIPROCAL": 2},
        {"LANES": 4, "TASKS": 2, "VEC": 4, "KEEP": 8, "RECIPROCAL": 1},
    ],
)
@pytest.mark.few(1)
@pytest.mark.long
def test_groups_with_a_maximum(values: dict[str, int], emulated: Path) -> None:
    compare(models.group_quant, SMALL_ROWS, {"tokens": 3, "d": 384}, emulated, **values)


@needs_emulator
@pytest.mark.parametrize("vec", [1, 2, 8])
@pytest.mark.few(1)
def test_conversions_by_twos(vec: int, emulated: Path) -> None:
    form = next(form for form in FORMATS if form.name == "float8_e4m3")
    hardware = ("to_e4m3", form.statement.format(x="value"), form.pair)
    schedule = SMALL_ROWS.having(convert=models.choice("CONVERT", 0, 1))
    sizes = {"tokens": 3, "d": 384}
    compare(models.group_quant, schedule, sizes, emulated, hardware, CONVERT=1, VEC=vec, LANES=16, TASKS=2)


@needs_emulator
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"LANES": 16, "TASKS": 4, "VEC": 4, "ITEMS": 2},
        {"VEC": 8, "ITEMS": 4, "SPLIT": 1, "FAST": 1, "STORE": 1},
        {"LANES": 4, "TASKS": 4, "VEC": 2, "SPLIT": 1},
    ],
)
@pytest.mark.few(1)
def test_maps(values: dict[str, int], emulated: Path) -> None:
    compare(models.silu_and_mul, SMALL_MAP, {"tokens": 6, "d": 328}, emulated, **values)


def of_the_zoo(name: str) -> Model:
    def model() -> tuple[KernelModel, Problem]:
        problem, _ = load_problem(FIXTURES / "zoo" / name)
        kernel = lift(problem)
        assert isinstance(kernel, KernelModel)
        return kernel, problem

    return model


@needs_emulator
@pytest.mark.parametrize("values", [{"LANES": 32, "TASKS": 2}, {"LANES": 64, "VEC": 4, "KEEP": 2}])
@pytest.mark.few(1)
@pytest.mark.long
def test_axes_that_only_the_grid_tells(values: dict[str, int], emulated: Path) -> None:
    schedule = SMALL_ROWS.without("persistent")
    sizes = {"rows": 4, "channels": 2, "samples": 3, "cols": 40}
    compare(of_the_zoo("norm_by_axes"), schedule, sizes, emulated, **values)


@needs_emulator
@pytest.mark.parametrize(
    "values", [{"LANES": 16, "TASKS": 4}, {"LANES": 4, "TASKS": 8, "VEC": 2, "ITEMS": 2}]
)
@pytest.mark.few(1)
@pytest.mark.long
def test_a_total_that_was_stored_in_memory(values: dict[str, int], emulated: Path) -> None:
    compare(of_the_zoo("matvec_in_memory"), SMALL_ROWS, {"rows": 9, "cols": 46}, emulated, **values)


@needs_emulator
@pytest.mark.parametrize("values", [{"LANES": 32}, {"LANES": 64, "ITEMS": 4, "STORE": 1}])
@pytest.mark.few(1)
@pytest.mark.long
def test_vectors_and_what_is_left_of_them(values: dict[str, int], emulated: Path) -> None:
    schedule = SMALL_MAP.without("split", "tasks")
    compare(of_the_zoo("fp8_vectors_and_rest"), schedule, {"rows": 5, "cols": 67}, emulated, **values)
