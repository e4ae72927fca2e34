"""Floors, planted faults, occupancy and steering: from figures to the pages that tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import steering_page
from benchmarks.cuda import floors, render
from benchmarks.cuda.render_profiles import faults, occupancy
from benchmarks.cuda.render_profiles import floors as rendered_floors
from tests.wording import says

MACHINE = {
    "device": "a GPU",
    "driver": "1.0",
    "compilers": ["nvrtc 13"],
    "packages": {},
    "python": "3",
    "cores": 2,
}
FACTS = {"commands": ["python -m it"], "date": "2026-01-02", "machine": MACHINE}


def view(kernel: str, seconds: float | None, distance: float | None, *kinds: str) -> dict[str, Any]:
    return {
        "profile": {"kernel": kernel, "seconds": seconds, "counters": None},
        "diagnosis": {
            "bound": "latency" if kinds else "bandwidth",
            "distance": distance,
            "ceiling": "memory bandwidth",
            "findings": [{"kind": kind} for kind in kinds],
        },
    }


def a_page(*workloads: dict[str, Any]) -> dict[str, Any]:
    return {"device": "NVIDIA X", "driver": "CUDA 13", "compiler": "nvrtc 13", "workloads": list(workloads)}


PAGE = a_page(
    {"name": "small", "views": [view("original", 4e-6, 2.0, "narrow_access"), view("B=1", 2e-6, 1.0)]},
    {"name": "large", "views": [view("original", 9e-5, 1.05)]},
)


def test_floors_are_shown_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "it.profile.json").write_text(json.dumps(PAGE))
    assert floors.main(["--pages", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    results = json.loads((tmp_path / "out" / "floors.json").read_text())
    text = "\n".join(rendered_floors({"floors": results}))
    assert "| it | small | 2.00× | narrow access | 1.00× | none |" in text
    assert "| it | large | 1.05× | none | the original stays |" in text
    says(text, "1 of 1 tuned kernels", "15 %")
    assert "NVIDIA X, driver CUDA 13; nvrtc 13" in text
    assert str(tmp_path) not in text


def test_runs_or_pages_and_not_both(tmp_path: Path) -> None:
    for words in ([], [str(tmp_path), "--pages", str(tmp_path)], ["--pages", str(tmp_path)]):
        with pytest.raises(SystemExit) as ended:
            floors.main([*words, "--out", str(tmp_path)])
        assert ended.value.code == 2


def looked(named: bool, *findings: str) -> dict[str, Any]:
    return {"named": named, "findings": list(findings), "distance": 3.0}


def test_planted_faults_are_counted_both_ways() -> None:
    bad = {
        f"k{i}": {
            "planted": ["tail"],
            "with": looked(i > 0, "tail" if i else "latency"),
            "without": looked(i > 3),
        }
        for i in range(10)
    }
    healthy = {"fine": {"planted": [], "with": looked(True), "without": looked(True)}}
    text = "\n".join(faults({"faults": {**FACTS, "kernels": {**bad, **healthy}}}))
    assert "| k0 | tail | **latency** | **none** | 3.00× |" in text
    says(text, "reached:", "planted fault", "9 of 10")
    says(text, "**fell short**:", "counters forbidden", "6 of 10")
    says(text, "1 of 1 healthy kernels", "no finding")


@pytest.mark.parametrize(
    ("cases", "different", "verdict"),
    [(1000, [], "reached"), (1000, [{}], "fell short"), (100, [], "fell short")],
)
def test_occupancy_agrees_or_does_not(cases: int, different: list[Any], verdict: str) -> None:
    results = {**FACTS, "cases": cases, "different": different, "registers": [16, 255]}
    text = "\n".join(occupancy({"occupancy": results}))
    assert verdict in text
    assert f"{cases - len(different)} of {cases} random cases" in text


def test_what_was_not_measured_says_so_on_the_page() -> None:
    names = ("examples", "copy_rate", "throughput", "kernel_tuner_arm", "truth", "hostile")
    text = render.page(dict.fromkeys((*names, "floors", "faults", "occupancy")), {"floors": "A remark."})
    assert "## Bounds and floors\n\nNot measured.\n\nA remark.\n" in text
    assert text.count("Not measured.") == len(render.SECTIONS)


# -- steering -------------------------------------------------------------------------------------------


def searches(without: list[int], steered: list[int], example: str = "it") -> list[dict[str, Any]]:
    rows = []
    for steer, counts in ((False, without), (True, steered)):
        for seed, count in enumerate(counts):
            moves = [{"focus": "VEC >= 4", "reason": "narrow"}] if steer else []
            row = {
                "example": example,
                "search": "default",
                "seed": seed,
                "steer": steer,
                "evaluations": count,
            }
            rows.append({**row, "reached": count < 100, "moves": moves})
    return rows


@pytest.mark.parametrize(
    ("steered", "verdict"),
    [
        ([5, 6, 7, 8], "pays"),
        ([25, 26, 27, 28], "costs"),
        ([5, 21, 16, 22], "level"),
    ],
)
def test_steering_is_judged_by_pairs(steered: list[int], verdict: str) -> None:
    text = steering_page.page(searches([15, 16, 17, 18], steered), "a GPU", "2026-01-02", ["python -m it"])
    line = next(line for line in text.splitlines() if line.startswith("| it |"))
    assert line.endswith(f"| {verdict} |")
    assert "| it | 4 | 16.5 |" in line
    assert "| it | `VEC >= 4` | 0 of 4 |" in text


def test_only_seeds_that_both_have_count() -> None:
    rows = searches([10, 20, 30], [8, 100])
    assert steering_page.pairs(rows, "default", "it") == [(10, 8), (20, 100)]
    assert "counted by their length: 1 with" in steering_page.page(rows, "a GPU", "2026-01-02", ["x"])


def test_where_the_default_is_close_enough_nothing_can_be_saved() -> None:
    rows = searches([1, 1], [1, 1], "easy") + searches([9, 1], [1, 1], "hard")
    text = steering_page.page(rows, "a GPU", "2026-01-02", ["x"])
    says(text, "close enough already for easy", "nothing can be saved")
