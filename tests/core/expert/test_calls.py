"""Calls of several launches: every kernel is read by itself, and all are written into one template."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.core.expert.moves.kernels import CPU
from tests.core.expert.write.building import build_all, configurations, legal_sizes, variant
from tests.core.expert.write.comparing import alike, planned
from tests.core.expert.write.emulator import needs_emulator
from tests.cuda_here import needs_nvrtc
from tests.running import FIXTURES
from tests.samples import a_device
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.port import KernelBinary
from tunesmith.expert.author import ExpertAuthor, build_catalogue, read_call
from tunesmith.expert.moves import PARAMETERS
from tunesmith.expert.read.call import parts_of
from tunesmith.problem.problem import Argument, Launch, Problem
from tunesmith.problem.reduced import as_reduced, reduce_template
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config
from tunesmith.space.expr import parse_expr

ZOO = FIXTURES / "zoo"
GPU = absent_device(None)
EVERY = tuple(name for name in PARAMETERS if name != "overlap")  # which has launches twice
TWO_PASS, SQUARES, BINS, HEADS = (
    *("rows_int8_two_pass", "sum_of_squares_two_pass"),
    *("scatter_add_filled", "norm_q_then_k"),
)


def problem_of(name: str) -> Problem:
    return load_problem(ZOO / name)[0]


def written(problem: Problem, *moves: str) -> Written:
    device = CPU if problem.kernel.language == "opencl" else GPU
    found = ExpertAuthor().write(Refactoring(moves or EVERY), problem, device)
    assert isinstance(found, Written), found
    return found


@cache  # of problems as they are in the zoo
def with_every_move(name: str) -> Written:
    return written(problem_of(name))


def whole(name: str) -> Template:
    problem = problem_of(name)
    return parse_template(with_every_move(name).text, path="template.cu", problem=problem)


def template_of(problem: Problem, *moves: str) -> Template:
    return parse_template(written(problem, *moves).text, path="template.cu", problem=problem)


def with_text(problem: Problem, before: str, after: str) -> Problem:
    text = problem.kernel.text.replace(before, after)
    assert text != problem.kernel.text
    return replace(problem, kernel=replace(problem.kernel, text=text))


def test_a_move_that_leaves_a_kernel_alone_says_which_and_why() -> None:
    found = with_every_move(TWO_PASS)
    skipped = dict(found.skipped)
    assert {"split", "reciprocal"} <= set(skipped) <= set(found.moves)
    assert skipped["split"].startswith("absmax_of_rows: a task has to stay in one block")


@pytest.mark.long
def test_explain_and_a_template_leave_out_the_same() -> None:
    assert (
        build_catalogue(problem_of(TWO_PASS), GPU).skipped
        == written(problem_of(TWO_PASS), *PARAMETERS).skipped
    )


@pytest.mark.long
def test_what_a_launch_only_reads_may_be_copied_ahead_whoever_wrote_it() -> None:
    """`parts` is written by the first launch, and only read by the second."""
    problem = problem_of(SQUARES)
    moves = ("lanes", "items", "hints", "ring")
    assert "::copy(ring, s * ITEMS_2 + k, &parts[here], " in written(problem, *moves).text
    both = with_text(
        problem, "            total[0] = sum;", "            { total[0] = sum; parts[count] = sum; }"
    )
    both = with_text(both, "float *total, const float *parts", "float *total, float *parts")
    text = written(both, *moves).text
    assert "&parts[here], " not in text
    assert "STAGES_2" not in text
    assert "load_once" not in text


@pytest.mark.long
def test_one_kernel_with_other_arguments_is_two_unless_all_that_counts_is_the_same() -> None:
    problem = problem_of(HEADS)
    assert [part.places for part in parts_of(problem)] == [(0,), (1,)]
    template = template_of(problem, "lanes", "vector")
    assert [launch.entry for launch in template.launches] == ["norm_heads_1", "norm_heads_2"]
    first = problem.launches[0]
    again = replace(
        first, args=tuple(name.replace("q_", "k_") if "out" in name else name for name in first.args)
    )
    shapes = {a.name: a for a in problem.arguments}
    alike_now = tuple(
        replace(a, shape=shapes["q_out"].shape) if a.name == "k_out" else a for a in problem.arguments
    )
    same = replace(problem, arguments=alike_now, launches=(first, again))
    assert [part.places for part in parts_of(same)] == [(0, 1)]
    template = template_of(same, "lanes", "vector")
    assert [launch.entry for launch in template.launches] == ["norm_heads", "norm_heads"]
    assert [launch.args[0] for launch in template.launches] == ["q_out", "k_out"]
    assert "LANES" in {param.name for param in template.space.params}


UNREAD = ("        const float q = rintf", "        if (clock() == 7) return;\n        const float q = rintf")


def test_a_kernel_may_be_called_like_a_function_of_a_library() -> None:
    problem = with_text(problem_of(HEADS), "norm_heads", "norm")
    problem = replace(problem, launches=tuple(replace(one, entry="norm") for one in problem.launches))
    template = template_of(problem, "lanes", "vector")
    assert [launch.entry for launch in template.launches] == ["norm_1", "norm_2"]


def test_an_array_passed_twice_is_beyond() -> None:
    problem = problem_of(TWO_PASS)
    first, second = problem.launches
    twice = replace(problem, launches=(first, replace(second, args=("codes", "x", "x", "d"))))
    found = {part.entry: kernel for part, kernel in read_call(twice)}
    assert "passes 'x' twice" in str(found["codes_of_rows"])


def kernel_text(text: str, entry: str) -> str:
    return text[text.index(f"\n{entry}(") :].partition("\n}\n")[0]


def test_a_kernel_that_may_overlap_waits_before_all_else() -> None:
    problem = problem_of(TWO_PASS)
    found = written(problem, "lanes", "vector", "hints", "overlap")
    assert "overlap" in found.moves
    template = parse_template(found.text, path="template.cu", problem=problem)
    assert [(one.entry, one.pdl, one.when and one.when.text) for one in template.launches] == [
        ("absmax_of_rows", False, None),
        ("codes_of_rows", False, "PDL_2 == 0"),
        ("codes_of_rows", True, "PDL_2 > 0"),
    ]
    second = kernel_text(found.text, "codes_of_rows")
    body = [line for line in second.partition("\n{\n")[2].splitlines() if not line.startswith("#")]
    assert body[0].strip() == 'asm volatile("griddepcontrol.wait;" ::: "memory");'
    # What the launch ahead writes takes no path on which a load may go ahead of the wait.
    assert "const float *scale" in second
    assert "const float *__restrict__ x" in second
    rules = {c.name: c.expr for c in template.space.constraints if c.kind == "require"}
    assert not rules["overlap_PDL_2"].holds({"PDL_2": 1, "device.capability": 80})
    for value, launches in ((0, [False, False]), (1, [False, True]), (2, [False, True])):
        config = Config.of({**template.default.as_dict(), "PDL_2": value})
        made = template.render(problem, config, {"rows": 4, "d": 64})
        plan = planned(problem, made, {"rows": 4, "d": 64})
        assert [launch.pdl for launch in plan.launches] == launches


def test_launches_do_not_overlap_where_the_one_ahead_is_not_always_made() -> None:
    problem = problem_of(TWO_PASS)
    first, second = problem.launches
    for ahead, reason in (
        (replace(first, when=parse_expr("d > 7")), "(when)"),
        (replace(first, pdl=True), "overlaps already"),
    ):
        refused = dict(written(replace(problem, launches=(ahead, second)), "lanes", "overlap").refused)
        assert reason in refused["overlap"]
    older = ExpertAuthor().write(Refactoring(("lanes", "overlap")), problem, a_device(capability=80))
    assert isinstance(older, Written)
    assert "sm_90" in dict(older.refused)["overlap"]


@needs_nvrtc
def test_kernels_that_overlap_build() -> None:
    problem = problem_of(TWO_PASS)
    template = template_of(problem, "lanes", "vector", "hints", "overlap")
    config = Config.of({**template.default.as_dict(), "PDL_2": 2, "VEC_2": 4, "LOAD_2": 1})
    (built,) = build_all([variant(template, problem, config)])
    assert not isinstance(built, Exception), built


@needs_nvrtc
@pytest.mark.parametrize("name", [TWO_PASS, SQUARES, BINS, HEADS])
@pytest.mark.long
def test_templates_build(name: str) -> None:
    problem, template = problem_of(name), whole(name)
    found = configurations(template, problem)
    made = [variant(template, problem, config) for config in found[:: max(1, len(found) // 6)]]
    for one, config in zip(build_all(made), found[:: max(1, len(found) // 6)], strict=True):
        assert not isinstance(one, Exception), f"{config}: {one}"


@needs_nvrtc
@pytest.mark.long
def test_what_won_of_several_kernels_is_the_same_machine_code_by_itself() -> None:
    problem, every = problem_of(TWO_PASS), whole(TWO_PASS)
    default = every.default.as_dict()
    winners = [
        Config.of({**default, "LANES_1": 512, "VEC_2": 4, "STORE_2": 1, "LANES_2": n}) for n in (64, 128)
    ]
    small = reduce_template(every, problem, winners)
    assert [param.name for param in small.space.params] == ["LANES_2"]
    assert small.shape is not None
    assert [number for number, _ in small.shape.parts] == ["1", "2"]
    made = [variant(every, problem, winners[0]), variant(small, problem, as_reduced(winners[0], small))]
    first, second = build_all(made)
    assert isinstance(first, KernelBinary), first
    assert isinstance(second, KernelBinary), second
    assert first.data == second.data


SIZES = {
    TWO_PASS: {"rows": 5, "d": 328},
    SQUARES: {"n": 5003},
    BINS: {"n": 1000, "bins": 40},
    HEADS: {"tokens": 3, "q_heads": 5, "k_heads": 2, "d": 64},
}


def some(template: Template, problem: Problem, sizes: dict[str, int], count: int) -> list[Config]:
    """Configurations that are legal at these sizes, the default first."""
    at = replace(problem, workloads=(replace(problem.workloads[0], sizes=tuple(sizes.items())),))
    found = configurations(template, at, pairs=40, seed=3)
    legal = [config for config in found if any(True for _ in legal_sizes(template, at, config))]
    assert len(legal) > count
    return [legal[0], *legal[1 :: max(1, (len(legal) - 1) // count)][:count]]


@needs_emulator
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.few(1)
def test_all_kernels_of_a_call_give_what_the_originals_give(name: str, number: int, emulated: Path) -> None:
    problem, sizes, template = problem_of(name), SIZES[name], whole(name)
    config = some(template, problem, sizes, 3)[number]
    alike(problem, template.render(problem, config, sizes), sizes, emulated)


@needs_emulator
@pytest.mark.long
def test_kernels_beside_one_that_keeps_its_text_are_right(emulated: Path) -> None:
    problem, sizes = with_text(problem_of(TWO_PASS), *UNREAD), SIZES[TWO_PASS]
    problem = with_text(problem, "clock() == 7", "__activemask() == 0u")
    template = template_of(problem)
    for config in some(template, problem, sizes, 1):
        alike(problem, template.render(problem, config, sizes), sizes, emulated)


FILLED = "residual_fill_then_add"


def without_a_launch(problem: Problem) -> Template:
    found = written(problem, "lanes", "vector", "items", "fills")
    assert "fills" in found.moves, dict(found.refused)
    assert any("is left out" in note for note in found.notes)
    template = parse_template(found.text, path="template.cu", problem=problem)
    assert len(template.launches) == len(problem.launches) - 1
    return template


@needs_emulator
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("out[i] += ", "out[i] += "),
        ("out[i] += a[i] + weight * b[i]", "out[i] = a[i] - weight * out[i] * b[i]"),
        ("out[i] += ", "out[i] = "),
    ],
)
@pytest.mark.few(1)
def test_what_a_launch_fills_is_taken_up_as_a_value(before: str, after: str, emulated: Path) -> None:
    problem = problem_of(FILLED)
    problem = problem if before == after else with_text(problem, before, after)
    template, sizes = without_a_launch(problem), {"n": 1003}
    for config in some(template, problem, sizes, 1):
        alike(problem, template.render(problem, config, sizes), sizes, emulated)


def test_a_launch_that_fills_stays_where_its_array_has_another_name() -> None:
    problem = problem_of(FILLED)
    shared = tuple(replace(a, alias="out") if a.name == "b" else a for a in problem.arguments)
    assert "alias" in dict(written(replace(problem, arguments=shared), "lanes", "fills").refused)["fills"]


FILL = """
extern "C" __global__ void fill_floats(float *to, float value, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        to[i] = value;
}
extern "C" __global__ void fill_bytes(signed char *to, int count)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count)
        to[i] = 7;
}
"""


def filled_first(count: str = "rows", elements: str = "rows * d") -> Problem:
    """Scales and codes are filled, then computed by rows."""
    problem = problem_of(TWO_PASS)
    more = (
        Argument("zero", "float32", "scalar", value=0.0),
        Argument("count", "int32", "scalar", value=parse_expr(count)),
        Argument("elements", "int32", "scalar", value=parse_expr(elements)),
    )
    ahead = (
        Launch("fill_floats", (parse_expr("8"),), (parse_expr("64"),), ("scale", "zero", "count")),
        Launch(
            "fill_bytes",
            (parse_expr(f"ceildiv({elements}, 128)"),),
            (parse_expr("128"),),
            ("codes", "elements"),
        ),
    )
    text = replace(problem.kernel, text=problem.kernel.text + FILL)
    arguments = (*problem.arguments, *more)
    return replace(problem, kernel=text, arguments=arguments, launches=(*ahead, *problem.launches))


def test_arrays_that_rows_store_anew_need_not_be_filled() -> None:
    """One value to a row, and every element of a row."""
    problem = filled_first()
    found = written(problem, "lanes", "vector", "fills")
    assert [note.split(":")[0] for note in found.notes] == [
        "fill_floats is left out",
        "fill_bytes is left out",
    ]
    assert [launch.entry for launch in template_of(problem, "lanes", "fills").launches] == [
        "absmax_of_rows",
        "codes_of_rows",
    ]


@pytest.mark.long
def test_what_lies_behind_the_rows_stays_filled() -> None:
    problem = filled_first(count="rows + 1", elements="rows * d + 4")
    why = dict(written(problem, "lanes", "fills").refused)["fills"]
    assert "not proved that absmax_of_rows stores every element of it" in why
    assert "not proved that codes_of_rows stores every element of it" in why
    half = filled_first(elements="rows * (d // 2)")  # less is filled than is stored, which is not looked at
    assert len(template_of(half, "lanes", "fills").launches) == 3
