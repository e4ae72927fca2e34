"""A patch with kernels that the built-in expert wrote: winners of one template share all their helpers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.expert.moves.kernels import CPU
from tests.opencl_here import needs_opencl, show_unpacked_pocl
from tests.plugins.exports.test_patch import applied, needs_patch
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.moves import PARAMETERS
from tunesmith.plugins.exports.patch import TARGET, patched_file
from tunesmith.problem.template_file import parse_template
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.outcome import Interval
from tunesmith.run.ports import Refactoring, Written
from tunesmith.run.race import Pick, Winners
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config
from tunesmith.space.expr import parse_expr

FOLDER = Path(__file__).parents[3] / "examples" / "opencl" / "silu_and_mul"
# Both have the expert's own exp, for vectors of another width.
WANTED = {
    "decode": {"LANES": 1, "TASKS": 1, "VEC": 4, "ITEMS": 1, "SPLIT": 0, "FAST": 1, "BAKE": 0},
    "prefill": {"LANES": 8, "TASKS": 1, "VEC": 2, "ITEMS": 1, "SPLIT": 1, "FAST": 1, "BAKE": 0},
}


def a_run() -> DeviceResult:
    """What a run delivers whose workloads these configurations won."""
    problem = load_problem(FOLDER / "problem.toml")[0]
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, CPU)
    assert isinstance(written, Written)
    template = parse_template(written.text, path="template.cl", problem=problem)
    gain = Interval(1.5, 1.4, 1.6)
    picks = tuple(Pick(name, Config(tuple(wanted.items())), gain) for name, wanted in WANTED.items())
    made = assemble_delivery(problem, lambda config: template, CPU, Winners(None, picks))
    kernel = problem.kernel
    return DeviceResult("run", made.dispatch, made.files, kernel.path, kernel.text)


def test_a_file_that_was_patched_before_gets_other_names() -> None:
    result = a_run()
    once = patched_file(Artefact((result,)), result.kernel_text)
    twice = patched_file(Artefact((result,)), once.text)
    assert (once.delivered, twice.delivered) == (2, 2)
    added = twice.text.removeprefix(once.text)
    assert set(re.findall(r"\w+_tuned_[23]\b", added)) >= {"silu_and_mul_tuned_2", "fast_exp_tuned_3"}
    assert not re.search(r"_tuned_[01]\b", added)


@needs_patch
@needs_opencl
@pytest.mark.slow
def test_winners_of_the_experts_template_stand_in_one_file(tmp_path: Path) -> None:
    result = a_run()
    files = TARGET.export(Artefact((result,))).files
    text = files["silu_and_mul.patch"].decode()
    after = applied(tmp_path, text, result.kernel_path, result.kernel_text)
    assert after.startswith(result.kernel_text)
    show_unpacked_pocl()
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, after).build()
    tokens, d = 5, 101
    x = np.random.default_rng(7).normal(0, 3, (tokens, 2 * d)).astype(np.float32)
    one, gate = x[:, :d].astype(np.float64), x[:, d:]
    right = one / (1 + np.exp(-one)) * gate
    given = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)

    def came(kernel: Any, groups: tuple[int, ...], items: tuple[int, ...]) -> np.ndarray[Any, Any]:
        got = np.full((tokens, d), -1, np.float32)
        out = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=got)
        whole = tuple(a * b for a, b in zip(groups, items, strict=True))
        kernel(queue, whole, items, out, given, np.int32(tokens), np.int32(d))
        cl.enqueue_copy(queue, got, out, is_blocking=True)
        return got

    assert np.allclose(came(program.silu_and_mul, (2,), (256,)), right, rtol=1e-5, atol=1e-6)
    for number, entry in enumerate(result.dispatch.tuned):
        (launch,) = entry.launches
        groups = tuple(parse_expr(text).evaluate({"tokens": tokens, "d": d}) for text in launch.grid)
        items = tuple(parse_expr(text).evaluate({}) for text in launch.block)
        kernel = getattr(program, f"silu_and_mul_tuned_{number}")
        assert np.allclose(came(kernel, groups, items), right, rtol=1e-5, atol=1e-6), entry.file
        assert re.search(rf"^//   silu_and_mul_tuned_{number}: ", after, re.MULTILINE)
