"""The benchmark of kept templates at new sizes, as far as it needs no GPU."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.cuda import evidence, render, retune
from benchmarks.cuda.examples import names
from tests.end_to_end import kept
from tests.running import tunesmith
from tests.wording import says
from tunesmith.problem.problem_file import with_workloads
from tunesmith.session.problems import load_problem, load_template

pytestmark = pytest.mark.long

NEW = {"tall": {"n": 128}, "flat": {"n": 16}}


@pytest.mark.parametrize("name", names())
def test_every_example_has_new_sizes_that_its_contract_and_its_template_allow(name, tmp_path):
    problem, files = load_problem(evidence.EXAMPLES / name)
    path = retune.workloads_file(name, tmp_path)
    changed = with_workloads(problem, path.read_text(), path=str(path))
    assert 2 <= len(changed.workloads) <= 3
    assert not {w.sizes for w in changed.workloads} & {w.sizes for w in problem.workloads}
    load_template(evidence.EXAMPLES / name / "template.cu", changed, files)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("retuned")
    kept.problem(folder / "problem")
    words = ("--template", "problem/template.fake", "--no-prior", "--out", "run")
    ended = tunesmith(folder, "tune", "problem", *words)
    assert ended.code == 0, ended.err
    return retune.compare(folder / "run", folder / "out", [1], 1, NEW)


def test_a_retuned_template_is_as_good_as_the_exhaustive_best(found: dict[str, Any]) -> None:
    assert found["from"] == "run"
    assert found["feasible"] == 12
    assert set(found["arms"]) == {"seed 1", "nothing known", retune.UNCHANGED}
    ours = found["arms"]["seed 1"]
    assert ours["share"] == pytest.approx(1.0, abs=0.01)
    assert ours["wall_s"] > 0
    assert found["arms"][retune.UNCHANGED]["share"] <= 1.001
    assert set(ours["shares"]) == {"tall", "flat"}
    json.dumps(found)


def test_the_page_tells_it_and_what_fell_short(found: dict[str, Any]) -> None:
    machine = {
        "device": "a device",
        "driver": "1",
        "compilers": [],
        "cores": 2,
        "python": "3",
        "packages": {},
    }
    facts = {"commands": ["python -m benchmarks.cuda.retune"], "date": "2026-11-15", "machine": machine}
    parts = dict.fromkeys((*render.SECTIONS, "copy_rate", "kernel_tuner_arm"))
    text = render.page({**parts, "retune": {**facts, "problems": {"tiny": found}}}, {"retune": "A note."})
    assert "## Retuned at new sizes" in text
    assert "| tiny | seed 1 |" in text
    says(text, "- reached:", "100.0 %", "exhaustive best", "tiny, seed 1")
    assert "A note." in text
    worse = {**found, "arms": {"seed 1": {**found["arms"]["seed 1"], "share": 0.5}}}
    text = render.page({**parts, "retune": {**facts, "problems": {"tiny": worse}}}, {})
    assert "**fell short**: at least 50.0 %" in text
    assert "Not measured." in render.page(parts, {})
