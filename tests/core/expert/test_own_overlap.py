"""Kernels whose own launch overlaps, or that have assembly of their own: what is written of them."""

from __future__ import annotations

from dataclasses import replace

from tests.core.expert.read.kernels import row_problem
from tests.core.expert.write.building import build_all, read, variant
from tests.cuda_here import needs_nvrtc
from tests.samples import a_device
from tunesmith.expert.author import ExpertAuthor
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Refactoring, Written

BODY = """#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * 2.0f;
asm volatile("griddepcontrol.launch_dependents;");"""
MOVES = ("lanes", "vector", "hints")


def problem(pdl: bool, more: str = "") -> Problem:
    found = row_problem(BODY + more, grid=("ceildiv(rows * d, 256)",))
    arguments = tuple(replace(a, align=16) if a.is_array else a for a in found.arguments)
    return replace(found, arguments=arguments, launches=(replace(found.launches[0], pdl=pdl),))


def template(pdl: bool) -> str:
    made = ExpertAuthor().write(Refactoring(MOVES), problem(pdl), a_device(capability=90))
    assert isinstance(made, Written)
    return made.text


def test_its_arrays_take_no_path_on_which_a_load_may_go_ahead_of_the_wait() -> None:
    text = template(pdl=True)
    assert "k(const float *x, float *out, int rows, int d)" in text
    assert not [word for word in ("__ldg", "global.nc", "__restrict__") if word in text]


def test_elsewhere_they_may() -> None:
    text = template(pdl=False)
    assert "__restrict__ x" in text
    assert "__ldg" in text
    assert "griddepcontrol" not in text


def test_the_wait_has_a_condition_that_other_devices_can_read() -> None:
    assert "#if __CUDA_ARCH__ >= 900  // the launch ahead has ended\n" in template(pdl=True)


def test_its_own_text_gets_no_restrict_either() -> None:
    task, more = Refactoring(("block", "bounds", "restrict")), "\nout[0] = __nvvm_unknown(x);"
    kept, freely = (
        ExpertAuthor().write(task, problem(pdl, more), a_device(capability=90)) for pdl in (True, False)
    )
    assert isinstance(kept, Written)
    assert isinstance(freely, Written)
    assert "(pdl)" in dict(kept.refused)["restrict"]
    assert "restrict" in freely.moves


@needs_nvrtc
def test_assembly_that_only_computes_becomes_a_helper_that_builds() -> None:
    statement = 'float y; asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x[i]));'
    body = f"int i = blockIdx.x * 256 + threadIdx.x;\nif (i < rows * d) {{ {statement} out[i] = y; }}"
    given = row_problem(body, grid=("ceildiv(rows * d, 256)",))
    made = ExpertAuthor().write(Refactoring(("lanes", "items")), given, a_device(capability=90))
    assert isinstance(made, Written)
    assert "ex2_approx_ftz_f32(" in made.text
    template = read(made.text, given)
    (built,) = build_all([variant(template, given, template.default)])
    assert not isinstance(built, Exception), built
