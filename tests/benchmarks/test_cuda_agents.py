"""The benchmark that reads what a language model reached, on a comparison that was kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cuda import agents, evidence, render
from tests.end_to_end.replaying import unpacked
from tests.wording import says

EXPERT = {"geometric_mean": 2.0, "workloads": [{"distance": 3.0, "weight": 1.0}]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("opencl", tmp_path_factory.mktemp("recorded")) / "compared"


@pytest.fixture(scope="module")
def results(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("out")
    words = ["--out", str(out), "--comparison", str(recorded), "--plots", str(out / "plots")]
    words += ["--expert", str(recorded)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["agents", *words, str(recorded / "runs" / "softmax" / "template-1")])
        assert agents.main() == 0
    plots = {path.name for path in (out / "plots").iterdir()}
    assert plots == {"strategies-speed-ups.svg", "strategies-gain-per-round.svg"}
    found = evidence.read(out, "agents")
    assert found is not None
    return found


def test_the_tables_have_what_the_runs_say(results: dict[str, Any]) -> None:
    runs = {(r["planned"]["problem"], r["planned"]["arm"]): r["facts"] for r in results["comparison"]["runs"]}
    softmax = runs["softmax", "template"]
    text = "\n".join(
        render.agents({"agents": results, "expert": {"expert": {"examples": {"softmax": EXPERT}}}})
    )
    row = next(line for line in text.splitlines() if line.startswith("| softmax | repeat 1 |"))
    assert f"| {softmax['speedup']:.2f}× |" in row
    expert = runs["softmax", "expert"]["speedup"]
    counts = [str(softmax[name]) for name in ("evaluations", "requests")]
    assert f"| {' | '.join(counts)} | {expert:.2f}× | 2.00× |" in row
    alone = next(line for line in text.splitlines() if line.startswith("| softmax | alone |"))
    assert f"| model, moves | {softmax['speedup']:.2f}× |" in alone
    says(text, "against the expert:", "2 of 2 runs", "0 behind", "0 level")
    assert "--strategies template,rewrite,single,expert --repeats 1 --rounds 2" in text


def test_the_page_has_the_comparison_and_its_limits(results: dict[str, Any]) -> None:
    text = "\n".join(render.strategies({"agents": results}))
    assert "| softmax | template | 1 |" in text
    says(text, "every run with", "rounds", "evaluations")
    says(text, "The figures are about 2 problems", "softmax")
    says(text, "Each arm ran once")
    assert "](benchmarks/strategies-speed-ups.svg)" in text
    assert "report.md" not in text


def test_an_expert_with_another_budget_is_not_set_beside(recorded: Path) -> None:
    ours = agents.compared(recorded)
    budget = replace(ours.plan.budget, evals=7)
    assert ours.plan.budget.evals != 7
    with pytest.raises(SystemExit, match="has other budget"):
        agents.beside(ours, replace(ours, plan=replace(ours.plan, budget=budget)))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.03, "1 of 1 runs are ahead, 0 behind, 0 level"),
        (1.019, "0 of 1 runs are ahead, 0 behind, 1 level"),
        (0.97, "0 of 1 runs are ahead, 1 behind, 0 level"),
    ],
)
def test_what_differs_by_less_than_runs_do_is_level(results, ratio, words):
    run = results["runs"][0]
    expert = EXPERT | {"geometric_mean": run["facts"]["speedup"] / ratio}
    one = {**results, "comparison": {**results["comparison"], "runs": []}}
    text = "\n".join(render.agents({"agents": one, "expert": {"expert": {"examples": {"softmax": expert}}}}))
    assert words in text
