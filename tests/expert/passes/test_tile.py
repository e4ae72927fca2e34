"""The move that stages what is loaded along one index and stored along another."""

from __future__ import annotations

from tests.expert.model.kernels import lifted, row_problem
from tests.expert.passes.kernels import CPU, GPU
from tests.expert.writing.test_emulated import of_the_zoo
from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.passes import MOVES, Context
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem


def drafted(name: str, device: Device = GPU, *moves: str) -> TemplateDraft | str:
    kernel, problem = of_the_zoo(name)()
    return applied(TemplateDraft(kernel), problem, device, moves)


def applied(
    draft: TemplateDraft, problem: Problem, device: Device, moves: tuple[str, ...] = ()
) -> TemplateDraft | str:
    """What the move says after those that share the work."""
    result: TemplateDraft | str = draft
    for move in MOVES:
        if move.name in ("lanes", "tasks", "vector", *moves, "tile"):
            result = move.apply(draft, Context(problem, device))
            draft = draft if isinstance(result, str) else result
        if move.name == "tile":
            return result
    raise AssertionError


def test_sides_threads_and_padding_are_choices() -> None:
    draft = drafted("nchw_to_nhwc")
    assert isinstance(draft, TemplateDraft)
    values = {choice.name: choice.values for choice in draft.schedule.choices}
    assert values["TILE"] == values["ACROSS"] == (16, 32, 64)
    assert values["PAD"] == (0, 1, 2)
    assert values["LANES"] == (64, 128, 256, 512, 1024)
    assert values["TASKS"] == (1,)
    assert max(values["VEC"]) == 8
    assert "no_idle_lanes" not in dict(draft.prefer)  # said of rows
    assert dict(draft.answers)["stage_in_shared"] == "TILE > 0"


def test_few_elements_along_the_loads_have_narrow_tiles() -> None:
    body = "const int i = blockIdx.x * 256 + threadIdx.x, c = blockIdx.y;\n"
    body += "if (i < rows && c < d) out[c * rows + i] = x[i * d + c];"
    problem = row_problem(body, grid=("ceildiv(rows, 256)", "d"), d="{ min = 1, max = 64 }", many=(512, 6))
    draft = applied(TemplateDraft(lifted(problem)), problem, GPU)
    assert isinstance(draft, TemplateDraft)
    across, lanes = draft.schedule["across"], draft.schedule["lanes"]
    assert (across.values, across.default) == ((4, 8, 16, 32, 64), 8)
    assert 32 * across.default % lanes.default == 0


def test_where_it_does_not_apply() -> None:
    assert drafted("heat_tile") == "no map loads along one axis and stores along another"
    assert drafted("bias_relu_2d") == "no map loads along one axis and stores along another"
    assert drafted("softmax") == "no map loads along one axis and stores along another"
    assert drafted("transpose_tiled", CPU) == "a CPU's caches hold the lines that a tile would"
