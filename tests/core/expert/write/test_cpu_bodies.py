"""Bodies on OpenCL's vectors: integers, conversions, loops inside; and what has no such form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.expert.write.building import read
from tests.core.expert.write.models import CPU
from tests.core.expert.write.test_opencl import outputs
from tests.golden.made_problems import made_problem
from tests.opencl_here import needs_opencl
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.expert.write.page import declared_parameters
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.space.configset import Config

_SIZES = {"rows": 5, "cols": 71}


def _problem(
    body: str, given: str = "uint8", made: str = "uint8", integers: tuple[int, int] = (0, 255)
) -> Problem:
    c_types = {"uint8": "uchar", "int16": "short", "int32": "int", "float32": "float"}
    drawn = {"range": list(integers)} if given != "float32" else {"range": None}
    head = (
        f"__kernel void k(__global const {c_types[given]} *x, __global {c_types[made]} *out,"
        " int rows, int cols, int level, float gain)"
    )
    start = "int i = get_global_id(0), row = get_global_id(1); if (i < cols) {\nint at = row * cols + i;\n"
    types = {"x": {"type": f"{given}*", **drawn}, "out": {"type": f"{made}*"}}
    return made_problem(f"{head} {{\n{start}{body}\n}} }}\n", "pixels", argument=types)


def _written(problem: Problem) -> str:
    kernel = lift_kernel(problem)
    assert isinstance(kernel, KernelModel), kernel.reason
    return render_draft(TemplateDraft(kernel, CPU), problem)


FORMS = {
    "a choice of bytes": _problem("out[at] = x[at] > level ? x[at] : 7;"),
    "a byte that is set again": _problem("out[at] = 255; if (x[at] > level || x[at] == 3) out[at] = 0;"),
    "a byte that overflows": _problem("uchar v = x[at] + 200; out[at] = v; out[at] += v;"),
    "bytes to floats": _problem("out[at] = convert_float(x[at]) * gain + level;", made="float32"),
    "floats to bytes": _problem("out[at] = convert_uchar_sat_rte(x[at] * gain + 99.5f);", "float32"),
    "a float cut off": _problem("out[at] = (int)(x[at] * 9.0f);", "float32", "int32"),
    "signs and shifts": _problem(
        "int v = x[at]; out[at] = (v << 2) - (v >> 3) ^ -v;", "int16", "int16", (-3000, 3000)
    ),
    "the least of integers": _problem("out[at] = max(min((int)x[at], level), 12);"),
    "a truth that is not": _problem("out[at] = !x[at] ? 1 : 2;", integers=(0, 2)),
    "a loop inside": _problem(
        "float most = -1000.0f; for (int c = 0; c < 3; ++c) most = max(most, x[c * rows * cols + at]);\n"
        "out[at] = most;", "float32", "float32"),
    "a loop inside, with a place of its own": _problem(
        "int s = x[at]; for (int c = 1; c < 3; ++c) { int there = at + c * rows * cols; s += x[there]; }\n"
        "out[at] = s;", made="int32"),
    "a branch that all take": _problem(
        "float v = x[at]; if (level > 50) { v *= 2.0f; v += 1.0f; } out[at] = v;", "float32", "float32"),
    "stores that only some elements make": _problem(
        "if (x[at] > level) { int v = x[at]; v += 3; out[at] = v; }"),
    "most of them": _problem("if (x[at] > 0) out[at] += x[at + rows * cols];", made="float32"),
    "none of them": _problem("if (x[at] > 255) out[at] = 3;"),
    "backwards": _problem("out[row * cols + cols - 1 - i] = x[at];"),
    "from both ends": _problem(
        "out[at] = x[at] + x[row * cols + cols - 1 - i];", "float32", "float32"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.few(6)
def test_there_is_a_vector_form(form: str) -> None:
    assert "STORE" in _written(FORMS[form])


@needs_opencl
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.few(1)
def test_it_gives_what_the_original_gives(form: str) -> None:
    problem = FORMS[form]
    template = read(_written(problem), problem)
    config = Config.of({**template.default.as_dict(), "VEC": 8, "ITEMS": 2, "LANES": 1, "TASKS": 1})
    wanted, _ = outputs(problem, original_variant(problem, _SIZES), _SIZES)
    found, _ = outputs(problem, template.render(problem, config, _SIZES), _SIZES)
    np.testing.assert_array_equal(found["out"], wanted["out"])


SCALAR = {
    "integers divided": _problem("out[at] = x[at] / 3;"),  # a lane may have a divisor of 0
    "a place that the data says": _problem("out[at] = x[x[at]];"),
    "neighbours that not every lane loads": _problem(
        "out[at] = x[at] > level && x[at + 1] > level ? 1 : 0;"),
    "unsigned arithmetic": _problem("out[at] = x[at] + (uint)level > 100u ? 1 : 0;"),
    "doubles": _problem("out[at] = x[at] * 0.5;", "float32", "float32"),
    "a loop as long as the data says": _problem(
        "float s = x[at]; for (int c = 0; c < (int)x[at]; ++c) s *= 2.0f; out[at] = s;",
        "float32", "float32"),
    "a branch that hands a value on": _problem(
        "float v = x[at]; float w = 0.0f; if (v > 0.0f) { w = v; w *= 2.0f; } out[at] = w;",
        "float32", "float32"),
    "a branch with a fast form": _problem(
        "if (x[at] > 0.0f) { float v = exp(x[at]); out[at] = v; }", "float32", "float32"),
    "a truth as a number": _problem("out[at] = (x[at] > level) + 1;"),
}  # fmt: skip


@pytest.mark.parametrize("form", SCALAR)
def test_the_loop_stays_scalar_and_has_no_idle_parameter(form: str) -> None:
    text = _written(SCALAR[form])
    assert "STORE" not in text
    assert not {"VEC", "ITEMS"} & {name for name, _ in declared_parameters(text)}
