"""A kernel whose own body has assembly that only computes is read, written, and builds."""

from __future__ import annotations

from tests.cuda_here import needs_nvrtc
from tests.expert.model.kernels import row_problem
from tests.expert.writing.building import build_all, variant
from tests.samples import a_device
from tunesmith.expert.author import ExpertAuthor
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Refactoring, Written

EX2 = 'asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x[i]));'


def problem(statement: str) -> Problem:
    body = (
        f"int i = blockIdx.x * 256 + threadIdx.x;\nif (i < rows * d) {{ float y; {statement} out[i] = y; }}"
    )
    return row_problem(body, grid=("ceildiv(rows * d, 256)",))


@needs_nvrtc
def test_the_template_builds() -> None:
    own = problem(EX2)
    made = ExpertAuthor().write(Refactoring(("lanes", "items")), own, a_device(capability=90))
    assert isinstance(made, Written)
    assert "ex2_approx_ftz_f32(" in made.text
    template = parse_template(made.text, path="template.cu", problem=own)
    (built,) = build_all([variant(template, own, template.default)])
    assert not isinstance(built, Exception), built
