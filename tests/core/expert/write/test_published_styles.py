"""Kernels in the style of published ones: what is written gives what their references give, on the host."""

from __future__ import annotations

import importlib.util
import inspect
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.core.expert.moves.kernels import GPU
from tests.core.expert.write.building import read
from tests.core.expert.write.comparing import SMALL_MAP, SMALL_ROWS, in_a_process_of_its_own, planned
from tests.core.expert.write.emulator import needs_emulator, run
from tests.running import FIXTURES
from tunesmith.backends.messages import Draw
from tunesmith.expert.moves.move import Context
from tunesmith.expert.moves.sharing import unflatten_rows as by_rows
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.problem import Problem, element_type
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

ROWS = SMALL_ROWS.without("persistent")
MAP = SMALL_MAP
CASES = {
    "add_norm": (ROWS, {"rows": 3, "d": 776}, {"LANES": 32}),
    "vec_norm": (ROWS, {"rows": 3, "d": 776}, {"LANES": 32}),
    "vec_silu": (ROWS, {"tokens": 3, "d": 264}, {"LANES": 16}),
    "bf_rope": (ROWS, {"tokens": 3, "heads": 2, "head_size": 64, "rot_dim": 32, "max_pos": 9}, {"VEC": 4}),
    "cub_norm": (ROWS, {"tokens": 3, "d": 200}, {"VEC": 4}),
    "cg_softmax": (ROWS, {"rows": 5, "d": 77}, {}),
    "fp8_struct": (ROWS, {"groups": 16, "size": 48}, {"VEC": 2}),
    "header_norm": (ROWS, {"rows": 3, "d": 776}, {"LANES": 32}),
    "packs_of_heads": (ROWS, {"tokens": 3, "heads": 2, "dim": 64}, {"LANES": 4}),
    "block_copies": (MAP, {"rows": 5, "columns": 204}, {}),
    "byte_rows": (MAP, {"rows": 5, "d": 204}, {"VEC": 4}),
    "mode_norm": (ROWS, {"rows": 3, "d": 192}, {"VEC": 4}),
    "policy_gate": (MAP, {"rows": 5, "d": 264}, {}),
    "union_merge": (MAP, {"tokens": 3, "heads": 2, "head_size": 40}, {}),
    "vec_operators": (MAP, {"n": 1004}, {}),
    "joined_planes": (MAP, {"groups": 3, "first": 2, "planes": 5, "n": 36}, {"VEC": 4}),
    "ways_by_alignment": (ROWS, {"rows": 3, "d": 776}, {"LANES": 32}),
    "chosen_rows": (MAP, {"rows": 7, "first": 3, "packs": 33}, {}),
    "table_of_rows": (MAP, {"rows": 3, "d": 36}, {"VEC": 4}),
    "own_packs": (MAP, {"rows": 3}, {}),
    "copied_packs": (MAP.without("persistent"), {"n": 6144}, {"LANES": 32}),
    "parts_of_packs": (ROWS, {"rows": 3, "packs": 77}, {"LANES": 32}),
}

BY_ROWS = {"joined_planes", "table_of_rows"}  # with a flat loop as rows


@cache
def problem_of(name: str) -> Problem:
    return load_problem(FIXTURES / "published" / name)[0]


def expected(problem: Problem, name: str, inputs: dict[str, np.ndarray], scalars: dict[str, float]) -> object:
    path = FIXTURES / "published" / name / "reference.py"
    spec = importlib.util.spec_from_file_location(f"reference_of_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    assert problem.accuracy.reference is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, problem.accuracy.reference.function)
    given = {**inputs, **scalars}
    return function(**{key: given[key] for key in inspect.signature(function).parameters})


@needs_emulator
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(1)
@pytest.mark.long
def test_what_is_written_gives_what_the_reference_gives(name: str, emulated: Path) -> None:
    problem, (schedule, sizes, values) = problem_of(name), CASES[name]
    kernel = lift_kernel(problem)
    assert isinstance(kernel, KernelModel), kernel
    draft = TemplateDraft(kernel, schedule)
    if name in BY_ROWS:
        moved = by_rows.apply(draft, Context(problem, GPU))
        assert isinstance(moved, TemplateDraft), moved
        draft = moved
    template = read(render_draft(draft, problem), problem)
    assert values.keys() <= template.default.as_dict().keys() or name not in BY_ROWS
    known = {key: value for key, value in values.items() if key in template.default.as_dict()}
    made = template.render(problem, Config.of({**template.default.as_dict(), **known}), sizes)
    # What the libraries' headers are for is gone from what is written; the host has none of them.
    made = replace(made, source=re.sub(r"#include <(?:cub|cuda/|cooperative_groups)[^>]*>", "", made.source))
    made = replace(
        made, source=re.sub(r"asm volatile\(\"rsqrt[^;]*;\"[^;]*;", "y = 1.0f / sqrtf(x);", made.source)
    )
    plan = planned(problem, made, sizes)
    inputs = draw_inputs(plan, Draw("normal", 7, problem.inputs))
    found = in_a_process_of_its_own(lambda: run(made, plan, inputs, emulated), emulated)
    shapes = {buffer.name: buffer for buffer in plan.buffers}
    plain = {
        key: array.view(element_type(shapes[key].type).numpy).astype(np.float64).reshape(shapes[key].shape)
        for key, array in inputs.items()
    }
    plain = {k: v if "int" not in shapes[k].type else v.astype(np.int64) for k, v in plain.items()}
    wanted = expected(problem, name, plain, {s.name: s.value for s in plan.scalars})
    for buffer, want in zip(plan.compared(), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        kind = element_type(buffer.type)
        got = found[buffer.name].view(kind.numpy).astype(np.float64).reshape(buffer.shape)
        tolerance = {1: 0.13, 2: 3e-2}.get(kind.bytes, 1e-4)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
