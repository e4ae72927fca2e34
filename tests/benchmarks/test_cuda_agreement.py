"""Rows that compare the cpu device with a GPU: what differs or fails is never called agreement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from benchmarks.cuda import agreement, apart, hip_examples, sanitizers
from tunesmith.session.problems import load_problem

ROW: apart.Row = {
    "name": "hip/softmax",
    "cpu": "a cpu",
    "gpu": "a GPU",
    "cases": 9,
    "skipped": 1,
    "integers": 8,
    "integers_alike": 8,
    "floats": 100,
    "floats_alike": 90,
    "apart": 0,
    "faults": [],
}
MACHINE: dict[str, Any] = {
    "device": "a GPU", "driver": "1", "compilers": [], "python": "3", "packages": {}, "cores": 2
}  # fmt: skip
ORIGIN = {"commands": ["python"], "date": "2026-11-18", "machine": MACHINE}


def test_each_problem_is_a_row_whatever_becomes_of_it() -> None:
    tells = "from benchmarks.cuda import apart; apart.tell({'cases': 3})"
    commands = {"tells": ["-c", tells], "fails": ["-c", "raise SystemExit('no such thing')"]}
    shown: list[apart.Row] = []
    rows = apart.rows(commands, seconds=60.0, within=60.0, jobs=2, show=shown.append)
    assert [row["name"] for row in rows] == ["tells", "fails"]
    assert rows[0]["cases"] == 3
    assert rows[1]["fault"] == "ended with 1: no such thing"
    assert len(shown) == 2


def test_what_hangs_is_ended() -> None:
    hangs = {"hangs": ["-c", "import time; time.sleep(60)"]}
    (row,) = apart.rows(hangs, seconds=1.0, within=20.0, jobs=1, show=lambda _row: None)
    assert row["fault"] == "not through within 1 s"


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_bits_are_compared_and_not_values(kind: Any) -> None:
    ours = np.array([0.0, 1.0, np.nan, 2.0], dtype=kind)
    theirs = np.array([-0.0, 1.0, -np.nan, 3.0], dtype=kind)
    assert agreement.same_bits(ours, theirs).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "agree"),
        ({"integers_alike": 7}, "**differ**"),
        ({"apart": 1}, "**differ**"),
        ({"faults": ["cpu at n=1: crashed"]}, "in part"),
        ({"skipped": 9}, "not compared"),
    ],
)
def test_agreement_is_all_or_nothing(changed: apart.Row, words: str) -> None:
    assert agreement.verdict({**ROW, **changed}) == words


def test_the_page_says_device_date_command_and_every_row() -> None:
    doubtful = {**ROW, "name": "zoo/argmax", "apart": 1}
    failed = {"name": "cuda/rmsnorm", "fault": "it | died"}
    page = agreement.page({**ORIGIN, "problems": [ROW, doubtful, failed]})
    assert "2026-11-18, a GPU" in page
    assert "- a cpu and a GPU" in page
    assert "Agree: 1 problems, 8 cases.\n" in page
    assert "| zoo/argmax | **differ** | 8 (1 not) | 8 of 8 | 90 of 100 |  |" in page
    assert "| cuda/rmsnorm | not compared |  |  |  | it \\| died |" in page
    assert "- 1 agree, 1 differ, 1 not compared" in page


def half(*lines: int | None, doubted: bool = False) -> dict[str, Any]:
    findings = [{"tool": "a tool", "kind": "a fault", "line": n, "doubted": doubted} for n in lines]
    return {"by": "a tool 1", "tools": ["a tool"], "missing": "", "findings": findings}


NOBODY = {"why_not": "it is not here"}


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "words"),
    [
        ("beyond an array", half(5), half(5), "both, same line"),
        ("beyond an array", half(5), half(None), "both"),
        ("beyond an array", half(5), half(), "**disagree**"),
        ("beyond an array", half(), half(5), "**disagree**"),
        ("beyond an array", half(4), half(5), "**another line**"),
        ("beyond an array", half(), half(), "**missed**"),
        ("beyond an array", half(5), NOBODY, "by one alone"),
        ("an index that overflows", half(4), half(), "the watch, as it should"),
        ("atomics", half(), half(), "both clean"),
        ("atomics", half(), half(7, doubted=True), "both clean"),
        ("atomics", half(), half(7), "**accused**"),
        ("hip/softmax", half(), NOBODY, "clean, by one alone"),
        ("hip/softmax", NOBODY, NOBODY, "not compared"),
    ],
)
def test_who_finds_what(name: str, ours: dict[str, Any], theirs: dict[str, Any], words: str) -> None:
    row = {"name": name, "ours": ours, "theirs": theirs}
    assert sanitizers.verdict(row) == words
    assert words in sanitizers.page({**ORIGIN, "kernels": [row]})


def test_planted_kernels_are_problems(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(sanitizers.PROBLEM)
    (tmp_path / "kernel.cu").write_text(sanitizers.planted()["beyond an array"])
    assert load_problem(tmp_path)[0].name == "planted"
    assert sanitizers.NOT_LOOKED_FOR.keys() < sanitizers.FAULTS.keys()


def test_tuned_hip_examples_have_no_figure_without_a_verification() -> None:
    row = {"name": "64x4096", "speedup": 4.0, "interval": [3.9, 4.1], "baseline_us": 1.0}
    report = {"geometric_mean": 4.0, "verified_cases": 210, "workloads": [row]}
    found = hip_examples.figures(report, 60.0)
    assert hip_examples.figures({**report, "verified_cases": 0}, 60.0) == {"fault": "nothing was verified"}
    page = hip_examples.page(
        {**ORIGIN, "examples": {"softmax": found, "layernorm": {"fault": "not in time"}}}
    )
    assert "| softmax | 64x4096 4.00× | 4.00× | 210 | 60 s |" in page
    assert "| layernorm | not in time |  |  |  |" in page
