"""Template arguments that follow a size: a constant of the build, and a size like any other to the moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cuda_here import needs_nvrtc
from tests.expert.random_kernels.program import Operand, Program
from tests.expert.writing.building import DEVICE, build_all, configurations, read, variant
from tests.expert.writing.models import choice
from tests.running import FIXTURES
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.author import read as reading
from tunesmith.expert.model.kernel import Schedule
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem

ROWS = Schedule.of(lanes=choice("LANES", 4, 64), tasks=choice("TASKS", 1, 4), vector=choice("VEC", 1, 8))
KEPT = ROWS.having(keep=choice("KEEP", 0, 4))


def head_norm(entry: str = "head_norm<{head_dim}>", text: tuple[str, str] = ("", "")) -> Problem:
    problem = load_problem(FIXTURES / "zoo" / "head_norm")[0]
    kernel = replace(problem.kernel, entry=entry, text=problem.kernel.text.replace(*text))
    return replace(problem, kernel=kernel, launches=(replace(problem.launches[0], entry=entry),))


def test_no_launch_passes_it_and_each_value_is_a_build_of_its_own() -> None:
    problem = head_norm()
    written = ExpertAuthor().write(Refactoring(("lanes", "tasks", "vector", "keep", "bake")), problem, DEVICE)
    assert isinstance(written, Written)
    assert dict(written.refused)["bake"].startswith("no length or stride of a row is an argument")
    template = read(written.text, problem)
    assert [(name, e.text) for name, e in template.defines] == [("HEAD_DIM_CONST", "head_dim")]
    assert template.launches[0].args == ("q", "weight", "heads", "eps")
    assert "int heads, float eps)" in written.text
    made = template.render(problem, template.default, {"heads": 8, "head_dim": 96})
    assert "#define HEAD_DIM_CONST 96" in made.source
    assert not made.allows({"heads": 8, "head_dim": 64})
    assert "#define HEAD_DIM_CONST 128" in written.text  # of the first workload, for whoever reads it


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.long
def test_it_compiles() -> None:
    problem = head_norm()
    written = ExpertAuthor().write(
        Refactoring(("lanes", "tasks", "vector", "items", "keep")), problem, DEVICE
    )
    assert isinstance(written, Written)
    template = read(written.text, problem)
    made = [variant(template, problem, config) for config in configurations(template, problem)[:4]]
    assert [one for one in build_all(made) if isinstance(one, Exception)] == []


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (head_norm("head_norm<{head_dim} / 2>"), "computes with a size"),
        (head_norm(text=("<int HEAD_DIM>", "<typename HEAD_DIM>")), "computes with a size"),
        (head_norm(text=("<int HEAD_DIM>", "<int HEAD_DIM, int HALF = HEAD_DIM / 2>")), "HEAD_DIM / 2"),
    ],
)
def test_what_no_constant_could_stand_for_is_left_as_it_is(problem: Problem, why: str) -> None:
    found = reading(problem)
    assert isinstance(found, str)
    assert why in found


VEC = """
template <typename T, int N> struct vec {
    T e[N];
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) e[i] = p[i]; }
    __device__ float squares() const { float s = 0; for (int i = 0; i < N; ++i) s += e[i] * e[i]; return s; }
};
template <int D> __global__ void norms(const float *x, float *out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    vec<float, D> v;
    v.load(x + row * D);
    out[row] = v.squares();
}
"""


def test_a_size_with_one_value_is_a_number_that_types_may_depend_on() -> None:
    sizes = {"rows": "{ min = 1, max = 4096 }", "d": "{ one_of = [8] }"}
    problem = program(VEC, sizes)
    model = reading(problem)
    assert not isinstance(model, str), model
    written = ExpertAuthor().write(Refactoring(("lanes", "tasks", "vector")), problem, DEVICE)
    assert isinstance(written, Written)
    template = read(written.text, problem)
    assert template.entry_sizes == ()
    assert "{d}" not in template.launches[0].entry


def test_types_may_depend_on_the_value_that_all_workloads_have() -> None:
    problem = program(VEC, {"rows": "{ min = 1, max = 4096 }", "d": "{ one_of = [8, 16] }"})
    model = reading(problem)
    assert not isinstance(model, str), model
    assert model.pinned == (("d", 8),)
    written = ExpertAuthor().write(Refactoring(("lanes", "tasks", "vector")), problem, DEVICE)
    assert isinstance(written, Written)
    assert any("read for d = 8 alone" in note for note in written.notes)
    template = read(written.text, problem)
    for config in configurations(template, problem)[:4]:
        made = template.render(problem, config, {"rows": 64, "d": 8})
        assert made.allows({"rows": 64, "d": 8})
        assert not made.allows({"rows": 64, "d": 16})


def test_types_may_not_depend_on_a_size_with_several_values() -> None:
    sizes = {"rows": "{ min = 1, max = 4096 }", "d": "{ one_of = [8, 16] }"}
    found = reading(program(VEC, sizes, ({"rows": 64, "d": 8}, {"rows": 64, "d": 16})))
    assert isinstance(found, str)
    assert "the template argument D for N is no integer that is known here" in found


def program(
    source: str, sizes: dict[str, str], at: tuple[dict[str, int], ...] = ({"rows": 64, "d": 8},)
) -> Problem:
    operands = (
        Operand("x", "float32", ("rows", "d"), align=16),
        Operand("out", "float32", ("rows",), "output", align=16),
        Operand("rows", "int32", value="rows"),
    )
    made = Program("norms", source, operands, ("ceildiv(rows, 128)",), ("128",), sizes, at).problem()
    launch = replace(made.launches[0], entry="norms<{d}>")
    return replace(made, kernel=replace(made.kernel, entry="norms<{d}>"), launches=(launch,))
