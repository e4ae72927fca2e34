"""Written OpenCL kernels give what the originals give, on the CPU here; ragged rows and tails included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.expert.moves.kernels import CPU as A_CPU
from tests.core.expert.write import models
from tests.core.expert.write.building import DEVICE, read
from tests.core.expert.write.comparing import of_the_zoo
from tests.core.expert.write.models import CPU, Model, choice
from tests.opencl_here import needs_opencl
from tests.running import FIXTURES
from tunesmith.backends.messages import Draw
from tunesmith.expert.moves.move import Context
from tunesmith.expert.moves.sharing import unflatten_rows as by_rows
from tunesmith.expert.read.model import KernelModel, Schedule, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, original_variant
from tunesmith.space.configset import Config

FLAT = Schedule.of(lanes=choice("LANES", 1, 16), vector=CPU["vector"], items=CPU["items"], fast=CPU["fast"])


def _silu_rows() -> tuple[KernelModel, Problem]:
    kernel, problem = models.cl_silu_and_mul()
    rows = by_rows.apply(TemplateDraft(kernel), Context(problem, A_CPU))
    assert isinstance(rows, TemplateDraft)
    return rows.kernel, problem


def _published(name: str) -> Model:
    return models.lifted(FIXTURES / "published" / name)


CASES: list[tuple[Model, Schedule, dict[str, int], dict[str, int]]] = [
    (models.cl_rmsnorm, CPU, {"rows": 5, "d": 203}, {}),
    (models.cl_rmsnorm, CPU, {"rows": 5, "d": 203}, {"VEC": 8, "TASKS": 8}),
    (models.cl_rmsnorm, CPU, {"rows": 5, "d": 203}, {"VEC": 16, "ITEMS": 4, "LANES": 8, "TASKS": 8}),
    (
        models.cl_softmax,
        CPU,
        {"rows": 9, "d": 131},
        {"VEC": 8, "ITEMS": 2, "FAST": 1, "RECIPROCAL": 1, "TASKS": 1},
    ),
    (models.cl_softmax, CPU, {"rows": 9, "d": 7}, {"VEC": 16, "FAST": 1, "LANES": 8}),
    (models.cl_silu_and_mul, FLAT, {"tokens": 3, "d": 64}, {"VEC": 16, "ITEMS": 2, "FAST": 1}),
    (models.cl_silu_and_mul, FLAT, {"tokens": 3, "d": 71}, {"LANES": 16}),
    (of_the_zoo("cl_blur_tile"), CPU, {"rows": 5, "cols": 131}, {"VEC": 8, "ITEMS": 2, "TASKS": 1}),
    (_published("cl_image_gain"), CPU, {"rows": 13, "cols": 71}, {"VEC": 8, "TASKS": 1}),
    (_published("cl_image_gain"), CPU, {"rows": 5, "cols": 37}, {"VEC": 16, "ITEMS": 2, "LANES": 8}),
    (
        _published("cl_window_mean"),
        FLAT,
        {"images": 2, "planes": 3, "height": 5, "width": 7},
        {"LANES": 16, "VEC": 4, "ITEMS": 2},
    ),
    (_silu_rows, CPU, {"tokens": 3, "d": 71}, {"VEC": 16, "ITEMS": 2, "FAST": 1, "TASKS": 1}),
]


def run_opencl(made: Variant, plan: Plan, inputs: dict[str, Any]) -> dict[str, Any]:
    import pyopencl as cl

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    (launch,) = plan.launches
    kernel = getattr(cl.Program(context, made.source).build(), launch.entry)
    memory: dict[str, Any] = {}
    arguments: list[Any] = []
    for name in launch.args:
        scalar = next((s for s in plan.scalars if s.name == name), None)
        if scalar is not None:
            arguments.append(np.dtype(scalar.type).type(scalar.value))
            continue
        buffer = plan.buffer(name)
        empty = np.nan if buffer.type.startswith("float") else 0
        host = np.array(inputs.get(name, np.full(buffer.words, empty, buffer.type)))
        memory[name] = (
            cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=host),
            host,
        )
        arguments.append(memory[name][0])
    whole = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
    kernel(queue, whole, launch.block, *arguments)
    for device, host in memory.values():
        cl.enqueue_copy(queue, host, device)
    queue.finish()
    return {name: host for name, (_, host) in memory.items()}


def outputs(problem: Problem, made: Variant, sizes: dict[str, int]) -> tuple[dict[str, Any], Plan]:
    """What the kernel leaves in its arrays on the CPU here."""
    plan = plan_launch(problem, made, sizes, DEVICE, None)
    assert isinstance(plan, Plan), plan
    return run_opencl(made, plan, draw_inputs(plan, Draw("normal", 3, problem.inputs))), plan


@needs_opencl
@pytest.mark.parametrize(("model", "schedule", "sizes", "values"), CASES)
@pytest.mark.few(1)
def test_the_original_and_the_template_agree(
    model: Model, schedule: Schedule, sizes: dict[str, int], values: dict[str, int]
) -> None:
    kernel, problem = model()
    template = read(render_draft(TemplateDraft(kernel, schedule), problem), problem)
    default = template.default.as_dict()
    config = Config.of({**default, **{name: value for name, value in values.items() if name in default}})
    wanted, plan = outputs(problem, original_variant(problem, sizes), sizes)
    found, _ = outputs(problem, template.render(problem, config, sizes), sizes)
    for buffer in plan.compared():
        np.testing.assert_allclose(found[buffer.name], wanted[buffer.name], rtol=2e-5, atol=1e-6)


def test_vectors_are_used_where_a_body_has_a_vector_form() -> None:
    kernel, problem = models.cl_softmax()
    text = render_draft(TemplateDraft(kernel, CPU), problem)
    assert "vec power = EXP(input_pack - largest);" in text
    assert "fast_exp(vec x)" in text


def test_a_body_without_a_vector_form_stays_scalar_and_loses_the_idle_parameters() -> None:
    kernel, problem = models.cl_rmsnorm()
    loop = models.each("d", "out[(size_t)row * d + i] = (float)(i & 3) * weight[i];", language="opencl")
    plain = models.kernel(problem, kernel.tasks, loop, team="thread")
    text = render_draft(TemplateDraft(plain, CPU), problem)
    assert "VEC" not in text
    assert [p.name for p in read(text, problem).space.params] == ["LANES", "TASKS"]
