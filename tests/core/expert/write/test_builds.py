"""Every configuration compiles: the default, each extreme, pairs; and packs become wide loads and stores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.building import DEVICE, build_all, built, configurations, read, variant
from tests.core.expert.write.models import BESIDE, MAP, ROWS, Model
from tests.cuda_here import needs_nvrtc
from tests.running import EXAMPLES
from tunesmith.backends.cuda.cubin import disassemble_cubin, unpack
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.read.model import Schedule, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.expert.write.given import words_in_texts
from tunesmith.profiles.facts import Instructions
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

CASES = {
    "silu_and_mul": (models.silu_and_mul, MAP.having(tasks=models.choice("TASKS", 1, 4))),
    "rmsnorm": (models.rmsnorm, ROWS),
    "group_quant": (models.group_quant, ROWS),
    "fused_add_rmsnorm": (models.fused_add_rmsnorm, ROWS),
    "merge_packs": (models.merge_packs, MAP.without("split")),
}
SIDE_BY_SIDE = {"rotary": (models.rotary, BESIDE), "split_parts": (models.split_parts, BESIDE)}


@needs_nvrtc
@pytest.mark.parametrize("name", [*CASES, *SIDE_BY_SIDE])
@pytest.mark.few(1)
@pytest.mark.long
def test_configurations_compile(name: str) -> None:
    model, schedule = {**CASES, **SIDE_BY_SIDE}[name]
    kernel, problem = model()
    template = read(render_draft(TemplateDraft(kernel, schedule), problem), problem)
    configs = configurations(template, problem, pairs=12)
    assert len(configs) > 8
    results = build_all([variant(template, problem, config) for config in configs])
    for config, result in zip(configs, results, strict=True):
        assert not isinstance(result, Exception), f"{config}: {result}"


@needs_nvrtc
def test_macros_of_the_problem_meet_no_name_of_ours() -> None:
    problem, _ = load_problem(EXAMPLES / "cuda" / "rmsnorm")
    macros = ("W", "N", "ALIGN", "from", "word", "k", "base", "task", "here", "tasks", "BYTES", "WIDTH")
    own = words_in_texts([problem.kernel.text])
    kernel = replace(problem.kernel, defines=tuple((name, "81") for name in macros if name not in own))
    problem = replace(problem, kernel=kernel)
    moves = Refactoring(("lanes", "tasks", "vector", "items", "keep", "hints"))
    written = ExpertAuthor().write(moves, problem, DEVICE)
    assert isinstance(written, Written)
    template = read(written.text, problem)
    results = build_all([variant(template, problem, one) for one in configurations(template, problem)[:6]])
    assert not [result for result in results if isinstance(result, Exception)]


def instructions(model: Model, schedule: Schedule, **values: int) -> Instructions:
    kernel, problem = model()
    template = read(render_draft(TemplateDraft(kernel, schedule), problem), problem)
    config = Config.of({**template.default.as_dict(), **values})
    symbols, cubin = unpack(built(variant(template, problem, config)).data)
    (symbol,) = symbols.values()
    found = read_sass(disassemble_cubin(cubin).kernels[symbol])
    assert found is not None
    return found


@needs_nvrtc
@pytest.mark.parametrize(("vec", "width"), [(1, 2), (2, 4), (4, 8), (8, 16)])
@pytest.mark.few(1)
def test_packs_are_loaded_and_stored_whole(vec: int, width: int) -> None:
    found = instructions(models.silu_and_mul, MAP, VEC=vec)
    assert {a.width for a in found.accesses if a.space == "global"} == {width}


@needs_nvrtc
@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.few(1)
def test_a_stored_row_is_read_once(keep: int) -> None:
    found = instructions(models.rmsnorm, ROWS, VEC=8, LANES=1024, KEEP=keep)
    loads = [a.count for a in found.accesses if (a.space, a.direction) == ("global", "load")]
    assert sum(loads) == 2 * keep  # of the row and of the weights


@needs_nvrtc
@pytest.mark.long
def test_what_is_in_registers_leaves_shared_memory() -> None:
    in_memory = instructions(models.fused_add_rmsnorm, ROWS, VEC=8)
    cached = instructions(models.fused_add_rmsnorm, ROWS, VEC=8, KEEP=4)
    widths = [{a.width for a in i.accesses if a.space == "shared"} for i in (in_memory, cached)]
    assert 16 in widths[0]
    assert widths[1] == {4}  # the warps' totals


@needs_nvrtc
@pytest.mark.long
def test_nothing_is_computed_in_double_precision() -> None:
    for model, schedule in CASES.values():
        assert instructions(model, schedule).all.fp64 == 0
