"""The benchmark of `diff`: alarms of kept sittings, and of runs that are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.differences import kept_claims, measured, simulated, told
from tests.end_to_end import tiny

KEPT = Path(__file__).parents[1] / "fixtures" / "comparisons"


@pytest.mark.slow
@pytest.mark.parametrize(("archive", "finds"), [("h200", 95), ("opencl", 0)])
def test_kept_sittings(archive: str, finds: int) -> None:
    """On the H200 one run at a time; on the processor beside others, where little can be told."""
    pairs = list(simulated(kept_claims(KEPT / f"{archive}.tar.xz"), 100))
    found = told(pairs, 1.1, 0.98)
    assert (found["pairs"], found["same"].get("alarm", 0) <= 1) == (100, True)
    assert found["slower"].get("alarm", 0) >= finds
    assert found["largest drift of the original"] > 2


@pytest.mark.slow
def test_measured(tmp_path: Path) -> None:
    problem = tiny.fake(tmp_path / "problem")
    for _ in range(2):  # what is there already is not measured again
        pairs = measured(problem, problem / "template.fake", tmp_path / "runs", 2)
    found = told(pairs, 1.1, 0.98)
    assert (found["pairs"], found["same"], found["slower"]) == (2, {"no alarm": 2}, {"alarm": 2})
