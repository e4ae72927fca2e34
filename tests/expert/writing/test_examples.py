"""CUDA examples, read by the expert's own reader: their templates are read back, and compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.expert.writing.building import build_all, configurations, read, variant
from tests.expert.writing.models import MAP, ROOT, ROWS, choice
from tunesmith.expert.model.kernel import KernelModel, NotReadable, Schedule, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.writing import write
from tunesmith.expert.writing.given import loops_in
from tunesmith.session.problems import load_problem

FOLDERS = [
    *sorted(path.parent for path in (ROOT / "examples/cuda").glob("*/problem.toml")),
    ROOT / "tests/fixtures/zoo/fp8_vectors_and_rest",  # elements that are aligned structures
]


def _schedule(kernel: KernelModel) -> Schedule:
    if kernel.staged or any(each.totals for each in loops_in(kernel.steps)):
        return ROWS
    if not kernel.tasks:
        return MAP.without("split")
    return MAP.having(tasks=choice("TASKS", 1, 4))


@needs_nvrtc
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.long  # each is built by test_author as well
def test_an_example_becomes_a_template_that_compiles(folder: Path) -> None:
    problem, _ = load_problem(folder)
    kernel = lift(problem)
    assert not isinstance(kernel, NotReadable), kernel.reason
    template = read(write(TemplateDraft(kernel, _schedule(kernel)), problem), problem)
    configs = configurations(template, problem, pairs=3)
    assert len(configs) > 4
    results = build_all([variant(template, problem, config) for config in configs])
    for config, result in zip(configs, results, strict=True):
        assert not isinstance(result, Exception), f"{config}: {result}"
