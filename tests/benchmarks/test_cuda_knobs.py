"""The benchmark of knobs alone, as far as it needs no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cuda import knobs
from tests.opencl_here import needs_opencl
from tests.wording import says
from tunesmith.problem.plan import Status
from tunesmith.run.events import Admitted, Measured, Rejected
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.space.configset import Config

FACTS: dict[str, Any] = {
    "commands": ["python -m benchmarks.cuda.knobs"],
    "date": "2026-01-02",
    "machine": {"device": "X", "driver": "1", "compilers": [], "cores": 2, "python": "3", "packages": {}},
}


def measured(number: int, tile: int, status: Status, detail: str = "") -> Measured:
    trial = Trial(number, Config.of({"KNOB_TILE": tile}), ("one",), "short")
    return Measured(
        Outcome(trial, (Result("one", status, Timing((1e-6,)) if status is Status.OK else None, detail),))
    )


def test_what_was_refused_is_counted_with_its_first_reason() -> None:
    found = knobs.figures(
        [
            measured(1, 32, Status.OK),
            measured(2, 64, Status.WRONG, "off by 3"),
            measured(3, 128, Status.WRONG, "off by 4"),
            measured(4, 8, Status.OVER_LIMITS),
            Rejected("1", "KNOB_TILE=64 is wrong"),
            Admitted("digest", 7, 9, "2", ((("KNOB_TILE", 64),),)),
        ]
    )
    assert (found["tried"], found["refused"], found["feasible"], found["rules_of_the_gate"]) == (4, 2, 7, 1)
    assert found["why"] == {"wrong": "KNOB_TILE=64: off by 3"}
    assert found["drafts_turned_away"] == ["KNOB_TILE=64 is wrong"]


def test_the_page_has_winners_and_failures() -> None:
    row = {"name": "one", "speedup": 1.5, "config": {"KNOB_TILE": 64}}
    counts = knobs.figures([measured(1, 64, Status.WRONG, "off"), measured(2, 32, Status.OK)])
    good = {"geometric_mean": 1.5, "workloads": [row], "wall_s": 20.0, **counts}
    bad = {"failed": "not finished after 60 s", "wall_s": 60.0, **knobs.figures([])}
    text = "\n".join(knobs.page({**FACTS, "knobs": {"fast": good, "slow": bad}}))
    says(text, "| fast |  | TILE=64 | wrong (1) | 1.50× |")
    says(text, "| slow |  | not finished after 60 s |")
    says(text, "1 of 2 are faster; 1 of 2 configurations refused (50.0 %)")


@needs_opencl
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_run_with_knobs_alone(tmp_path: Path) -> None:
    """From the kernel's text to a verified winner: a work-item to an element pays on no CPU."""
    found = knobs.tuned(knobs.PROBLEMS / "cl_matmul_tile", tmp_path / "run", ["--evals", "6"], 600)
    assert "failed" not in found, found
    assert found["refused"] == 0
    assert found["geometric_mean"] > 1.0
    assert any(row["config"] and row["config"]["KNOB_TILE"] != 8 for row in found["workloads"])
