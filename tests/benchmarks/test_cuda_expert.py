"""The benchmark of the built-in expert, as far as it needs no GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cuda import evidence, expert, render
from benchmarks.cuda.render_expert import others_page
from tests.running import FIXTURES
from tests.running import tunesmith as started
from tests.wording import says

MACHINE = {"device": "NVIDIA X", "driver": "1.2", "compilers": [], "cores": 2, "python": "3", "packages": {}}
FACTS: dict[str, Any] = {"commands": ["python -m benchmarks.cuda.expert"], "date": "2026-01-02"}
FACTS |= {"machine": MACHINE}


def found(speedup: float, distance: float | None = 3.0, seconds: float = 60.0) -> dict[str, Any]:
    row = {"name": "big", "weight": 1.0, "baseline_us": 10.0, "tuned_us": 10.0 / speedup, "bytes": 4000}
    row |= {"speedup": speedup, "distance": distance, "tuned_distance": None, "ceiling": "memory bandwidth"}
    row |= {"bound": "latency", "tuned_bound": "bandwidth", "config": {"LANES": 32} if speedup > 1 else None}
    retained = {"moves": ["lanes", "vector"], "kept": True}
    dropped = {"moves": ["lanes", "flags"], "kept": False}
    return {
        "seconds": seconds,
        "geometric_mean": speedup,
        "evaluations": 99,
        "reason": "every move that applies has been tried",
        "rounds": [retained, dropped] if speedup > 1 else [dropped],
        "workloads": [row],
    }


def page(examples: dict[str, Any], others: dict[str, Any] | None = None, hand: float = 2.0) -> str:
    results: dict[str, Any] = dict.fromkeys(
        ("copy_rate", "throughput", "kernel_tuner_arm", "truth", "hostile")
    )
    results["examples"] = None
    results["expert"] = {**FACTS, "expert": {"examples": examples, **({"others": others} if others else {})}}
    whole = render.page(results, {})
    assert "Not measured." in whole
    results["examples"] = {"examples": {name: {"geometric_mean": hand} for name in examples}}
    results["copy_rate"] = {"copies": {"4000": {"seconds": 4e-6}}}
    return "\n".join(render.expert(results))


def test_what_was_reached_is_computed() -> None:
    text = page({"rotary_embedding": found(2.1)})
    assert "| rotary_embedding | 2.10× | ≥ 2.00× |" in text
    says(text, "- reached:", "105.0 %", "hand-written")
    says(text, "- **fell short**:", "84 %", "copy's rate")
    assert "| lanes, vector |" in text
    assert "| rotary_embedding | big 2.10× (3.00× → ?) |" in text


def test_what_fell_short_comes_with_its_bound() -> None:
    text = page({"rotary_embedding": found(1.9, distance=2.05, seconds=200.0)})
    assert "| rotary_embedding | 1.90× | ≥ 2.00×, **fell short** | 2.05× |" in text
    says(text, "- **fell short**:", "95.0 %", "hand-written")
    says(text, "- **fell short**:", "200 s at most")


def test_failures_and_kernels_that_stay_are_listed() -> None:
    others = {"a": found(1.5), "b": {"failed": "error: it | broke", "wall_s": 1.0}, "c": found(1.0, None)}
    text = page({"rmsnorm": {"failed": "not finished", "wall_s": 9.0}}, others)
    assert "| rmsnorm | not finished |" in text
    assert "it \\| broke" in text
    says(text, "1 of 3 are faster", "1 failed", "others stay")
    alone = "\n".join(others_page({**FACTS, "expert": {"others": others}}))
    says(alone, "geometric mean 1.22×", "least 1.00×", "most 1.50×", "floors 3.00×", "120 s of runs")
    assert f"| c | 1.00× | 1.00× | 1.00× |  | 60 s | {others['c']['reason']} |" in text


@pytest.mark.long
def test_finished_runs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = FIXTURES / "scale"
    runs = tmp_path / "runs"
    words = ["tune", problem, "--backend", "fake", "--evals", "4", "--out", runs / "scale"]
    ended = started(tmp_path, *words)
    assert ended.code == 0, ended.err
    monkeypatch.setattr(expert, "names", lambda _: ["absent", "scale"])
    monkeypatch.setattr(evidence, "machine", lambda: MACHINE)
    arguments = ["expert", "--out", tmp_path, "--runs", runs, "--problems", problem.parent]
    monkeypatch.setattr(sys, "argv", list(map(str, arguments)))
    assert expert.main() == 0
    stored = json.loads((tmp_path / "expert.json").read_text())["expert"]["others"]
    assert list(stored) == ["scale"]
    assert all(row["bytes"] > 0 for row in stored["scale"]["workloads"])
