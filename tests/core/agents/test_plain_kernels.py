"""Plain kernels and the expert itself: the example is one, and what is none is told with its lines."""

from __future__ import annotations

import pytest

from tests.core.run.test_loop import PROBLEM
from tests.samples import DEVICE, a_template
from tests.wording import says
from tunesmith.agents import roles
from tunesmith.agents.prompting import example_file, read_file
from tunesmith.expert.author import build_catalogue
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import without_block
from tunesmith.problem.template_file import parse_template
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Reply
from tunesmith.run.rounds import plain_problem
from tunesmith.session import check

ROWS = """\
name = "centre"
[kernel]
source = "kernel.cl"
entry = "centre"
language = "LANGUAGE"
[[argument]]
name = "out"
type = "float32*"
role = "output"
shape = ["rows", "d"]
[[argument]]
name = "x"
type = "float32*"
role = "input"
shape = ["rows", "d"]
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int32"
value = "d"
[launch]
grid = ["ceildiv(rows, 64)"]
block = ["64"]
[contract]
rows = { min = 1, max = 4096 }
d = { min = 1, max = 4096 }
[workloads]
small = { rows = 16, d = 256 }
"""
# Each of these keeps the expert from reading it, and is nothing that a plain kernel has.
BEYOND = """\
__kernel void centre(__global float* out, __global const float* x, int rows, int d) {
    __local float last[1];
    int row = get_global_id(0), i = 0;
    float sum = 0.0f;
again:
    if (row < rows && i < d) { sum += x[(size_t)row * d + i]; ++i; goto again; }
    for (int k = 0; row < rows && k < d; ++k) out[(size_t)row * d + k] = x[(size_t)row * d + k] - sum / d;
}
"""


def a_kernel(text: str, language: str = "opencl") -> Problem:
    return parse_problem(ROWS.replace("LANGUAGE", language), path="problem.toml", read=lambda _name: text)


@pytest.mark.parametrize("language", ["opencl", "cuda"])
def test_the_example_is_a_plain_kernel_that_the_expert_reads(language: str) -> None:
    problem = a_kernel(BEYOND, language)
    reply = read_file(Reply(example_file(language, concrete=True, plain=True)))
    assert isinstance(reply, str)
    template = parse_template(reply, path="t.cl", problem=problem)
    kernels = roles.PlainKernels(problem, None, lambda one: build_catalogue(one, DEVICE))  # type: ignore[arg-type]
    assert kernels.of_original.beyond
    assert kernels.fault(template) is None
    found = kernels.of_problem(plain_problem(problem, template))
    assert {"lanes"} <= set(found.available) - set(kernels.of_original.available)
    same = parse_template(reply.partition("// ///\n")[0] + "// ///\n" + BEYOND, path="t.cl", problem=problem)
    says((kernels.fault(same) or "").splitlines()[0], "the program still cannot read it")
    if language == "opencl":
        says(kernels.fault(same) or "", "line 10")


def test_lines_of_a_plain_kernel_keep_their_numbers() -> None:
    template = a_template(PROBLEM)
    found = plain_problem(PROBLEM, template).kernel.text
    assert len(found.split("\n")) == len(template.source.split("\n"))
    assert "tunesmith" not in found
    assert found.strip() == template.source.partition("// ///\n")[2].strip()


def test_explain_says_what_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the expert cannot read a kernel."""
    monkeypatch.setattr(check, "device_for", lambda *_: DEVICE)
    example = without_block(example_file("opencl", concrete=True, plain=True).strip("`\n"))
    assert check.PLAINLY in check.explain_kernel(a_kernel(BEYOND), RunConfig()).notes
    assert check.PLAINLY not in check.explain_kernel(a_kernel(example), RunConfig()).notes
