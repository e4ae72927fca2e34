"""The expert as an author, end to end: from the examples' plain kernels to templates that parse and build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.expert.moves.kernels import CPU
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import ExpertAuthor, build_catalogue
from tunesmith.expert.moves import PARAMETERS
from tunesmith.expert.planning import SHARING, next_round
from tunesmith.lab.build import unit_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Declined, Refactoring, Written
from tunesmith.session.problems import load_problem

EXAMPLES = Path(__file__).parents[3] / "examples"
ZOO = Path(__file__).parents[2] / "fixtures" / "zoo"
GPU = absent_device(None)
EVERY = tuple(PARAMETERS)
CUDA = sorted(path.name for path in (EXAMPLES / "cuda").iterdir() if (path / "problem.toml").exists())
OPENCL = sorted(path.name for path in (EXAMPLES / "opencl").iterdir() if (path / "problem.toml").exists())
NAMES = (*(f"cuda/{name}" for name in CUDA), *(f"opencl/{name}" for name in OPENCL))


def problem_of(name: str) -> Problem:
    return load_problem((ZOO if "/" not in name else EXAMPLES) / name / "problem.toml")[0]


def device_of(problem: Problem) -> Device:
    return CPU if problem.kernel.language == "opencl" else GPU


def written(problem: Problem, *moves: str, without: tuple[tuple[str, int], ...] = ()) -> Written:
    found = ExpertAuthor().write(Refactoring(moves, without), problem, device_of(problem))
    assert isinstance(found, Written), found
    return found


def template_of(problem: Problem, found: Written) -> Template:
    return parse_template(found.text, path="template.cu", problem=problem)


def feasible(problem: Problem, template: Template) -> int:
    sizes = [workload.as_dict() for workload in problem.workloads]
    return len(template.space.configs(sizes, device_of(problem).limits.names()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(1)
def test_the_first_round_of_each_example_is_a_space_that_can_be_searched(name: str) -> None:
    problem = problem_of(name)
    available, _ = ExpertAuthor().available(problem, device_of(problem))
    moves = next_round((), (), available)
    assert isinstance(moves, tuple)
    found = written(problem, *moves)
    assert found.moves == moves
    assert 10 <= feasible(problem, template_of(problem, found)) <= 5000


@needs_nvrtc
@pytest.mark.parametrize("name", CUDA)
@pytest.mark.few(1)
@pytest.mark.long
def test_each_cuda_example_builds_at_its_default_and_at_every_parameter_s_ends(name: str) -> None:
    problem = problem_of(f"cuda/{name}")
    template = template_of(problem, written(problem, *SHARING, "convert", "reciprocal", "fast", "hints"))
    sizes = problem.workloads[0].as_dict()
    ends = [
        template.default.replace(p.name, v)
        for p in template.space.params
        for v in (p.values[0], p.values[-1])
    ]
    for config in dict.fromkeys((template.default, *ends)):
        assert build_cubin(unit_of(template.render(problem, config, sizes)), GPU).data, config


@pytest.mark.parametrize("name", ["cuda/rmsnorm", "opencl/softmax", "argmax"])
@pytest.mark.few(1)
def test_the_same_task_gives_the_same_text(name: str) -> None:
    problem = problem_of(name)
    assert written(problem, *EVERY) == written(problem, *reversed(EVERY))


def test_values_that_proved_wrong_are_left_out() -> None:
    problem = problem_of("cuda/rmsnorm")
    template = template_of(
        problem, written(problem, "lanes", "vector", without=(("VEC", 8), ("LANES", 1024)))
    )
    domains = {param.name: param.values for param in template.space.params}
    assert domains["VEC"] == (1, 2, 4)
    assert 1024 not in domains["LANES"]
    assert template.default["LANES"] in domains["LANES"]


def test_a_move_that_is_left_out_stays_at_its_default() -> None:
    problem = problem_of("cuda/per_token_group_quant_fp8")
    found = written(problem, "vector")
    assert found.moves == ("vector",)
    assert [param.name for param in template_of(problem, found).space.params] == ["VEC"]
    assert "#define LANES 16\n#define TASKS 16\n" in found.text  # no choice, and no parameter


def test_a_kernel_beyond_the_expert_keeps_its_text_and_says_why_and_where() -> None:
    problem = problem_of("argmax")
    found = written(problem, *EVERY)
    (note,) = found.notes
    assert "beyond the expert" in note
    assert "local moves only" in note
    assert "threadIdx" in found.text
    assert dict(found.refused)["lanes"].startswith("the kernel keeps its own text: ")
    assert "line" in note


@pytest.mark.parametrize(
    "name", [*NAMES, *sorted(path.name for path in ZOO.iterdir() if (path / "problem.toml").exists())]
)
@pytest.mark.few(2)
def test_every_kernel_gets_a_template_that_a_person_can_keep(name: str) -> None:
    problem = problem_of(name)
    found = written(problem, *EVERY)
    assert set(found.moves).isdisjoint(name for name, _ in found.refused)
    assert {*found.moves, *(name for name, _ in found.refused)} == set(EVERY)
    assert all(reason for _, reason in found.refused)
    template = template_of(problem, found)
    assert template.space.params
    header = found.text[: found.text.index("// ///\n")].splitlines()
    assert len(header) + 1 <= 40 * len(template.launches)
    assert max(map(len, header)) <= 120
    assert all(len(param.values) > 1 for param in template.space.params)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "not a kernel at all",
        "__global__ void rmsnorm(",
        "__global__ void other(float *x) { x[0] = 1; }",
        'extern "C" __global__ void rmsnorm(float *a) { asm("trap;"); goto end; end:; }',
        'extern "C" __global__ void rmsnorm(float *a) { a[0] = ' + "(" * 500 + "1" + ")" * 500 + "; }",
        'extern "C" __global__ void rmsnorm(float *a) ' + "{" * 400 + "}" * 400,
        "#define A B\n#define B A\n" + 'extern "C" __global__ void rmsnorm(float *a) { a[A] = B; }',
        'extern "C" __global__ void rmsnorm(float *a) { rmsnorm(a); while (true) for (;;) a++; }',
    ],
)
def test_whatever_stands_in_a_source_is_answered_in_words(source: str) -> None:
    problem = problem_of("cuda/rmsnorm")
    odd = replace(problem, kernel=replace(problem.kernel, text=source))
    found = ExpertAuthor().write(Refactoring(EVERY), odd, GPU)
    if isinstance(found, Declined):
        assert "beyond the expert" in found.reason
    else:
        assert any("beyond the expert" in note for note in found.notes)


def test_a_launch_made_twice_is_one_kernel() -> None:
    problem = problem_of("cuda/rmsnorm")
    twice = replace(problem, launches=problem.launches * 2)
    template = template_of(twice, written(twice, "lanes", "registers"))
    assert [launch.entry for launch in template.launches] == ["rmsnorm", "rmsnorm"]
    assert [param.name for param in template.space.params] == ["LANES", "REGS"]


def test_foreign_languages_are_declined() -> None:
    problem = problem_of("cuda/rmsnorm")
    foreign = replace(problem, kernel=replace(problem.kernel, language="metal"))
    found = ExpertAuthor().write(Refactoring(EVERY), foreign, GPU)
    assert isinstance(found, Declined)
    assert "not metal" in found.reason


@pytest.mark.long
def test_numbers_of_the_text_that_stay_in_the_template_are_offered_by_themselves() -> None:
    problem = problem_of("int8_dynamic_quant")
    available, _ = ExpertAuthor().available(problem, GPU)
    assert {"lanes", "knobs"} <= set(available)
    (offer,) = [one for one in build_catalogue(problem, GPU).offers if one.name == "knobs"]
    assert "Only by itself" in offer.about
    assert offer.parameters[0].startswith("KNOB_kThreads = ")
    for name, reason in (
        ("softmax", "other moves set it"),
        ("cuda/rmsnorm", "other moves set it"),
        ("rope_interleaved", "no number of the text"),
    ):
        available, refused = ExpertAuthor().available(problem_of(name), GPU)
        assert "knobs" not in available
        assert reason in dict(refused)["knobs"]
        assert reason in dict(build_catalogue(problem_of(name), GPU).refused)["knobs"]
