"""Two runs held against each other, and the exit code that a CI reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import tunesmith
from tests.deliver.test_display import report
from tests.running import tunesmith as command
from tunesmith.deliver.difference import difference
from tunesmith.run.report import RESULT_VERSION, Report, WorkloadReport


def workload(name: str, tuned: float, weight: float = 1.0, n: int = 8) -> WorkloadReport:
    speedup = 100.0 / tuned
    return WorkloadReport(
        name, {"n": n}, weight, 100.0, tuned, speedup, (speedup - 0.05, speedup + 0.05), {"BLOCK": 64}
    )


def a_report(*workloads: WorkloadReport, **changed: object) -> Report:
    return replace(report(), finished=True, workloads=workloads, **changed)  # type: ignore[arg-type]


BEFORE = a_report(workload("small", 50.0), workload("large", 20.0, weight=3.0))


class TestDifference:
    def test_workloads_are_paired_by_name(self) -> None:
        after = a_report(workload("large", 25.0, weight=3.0), workload("small", 40.0))
        found = difference(BEFORE, after, "a", "b")
        assert [(w.name, w.ratio) for w in found.workloads] == [("small", 1.25), ("large", 0.8)]
        assert found.ratio == pytest.approx((1.25 * 0.8**3) ** 0.25)
        assert found.worst.name == "large"
        assert [w.name for w in found.below(0.98)] == ["large"]
        assert found.below(0.8) == ()
        assert all(w.is_clear for w in found.workloads)
        assert found.judged_by == "time"

    def test_other_devices_are_compared_by_speed_ups(self) -> None:
        after = a_report(replace(workload("small", 10.0), speedup=2.0), device="another")
        found = difference(BEFORE, after, "a", "b")
        assert (found.judged_by, found.workloads[0].ratio) == ("speed-up", 1.0)
        assert any("another" in note for note in found.notes)
        assert any("large" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("after", "why"),
        [
            (replace(BEFORE, problem="other"), "other"),
            (replace(BEFORE, finished=False), "not finished"),
            (a_report(workload("small", 50.0, n=9)), "n=9"),
            (a_report(workload("else", 50.0)), "no workload in common"),
        ],
    )
    def test_what_cannot_be_compared_says_why(self, after: Report, why: str) -> None:
        with pytest.raises(tunesmith.BadInput, match=why):
            difference(BEFORE, after, "a", "b")


def written(path: Path, value: Report) -> Path:
    path.write_bytes(msgspec.json.encode(value))
    return path


def test_command(tmp_path: Path) -> None:
    written(tmp_path / "old.json", BEFORE)
    written(tmp_path / "new.json", a_report(workload("small", 51.0), workload("large", 20.0, weight=3.0)))
    written(tmp_path / "other.json", replace(BEFORE, problem="other"))
    ended = command(tmp_path, "diff", "old.json", "new.json", "--fail-below", 0.99, "--json")
    assert ended.code == 6
    assert ended.json["below"] == ["small"]
    assert ended.json["difference"]["version"] == 1
    ended = command(tmp_path, "diff", "old.json", "new.json", "--fail-below", 0.97)
    assert ended.code == 0
    assert "small" in ended.out
    ended = command(tmp_path, "diff", "old.json", "other.json")
    assert ended.code == 2
    assert "other" in ended.err


def test_reports_of_other_versions(tmp_path: Path) -> None:
    old = json.loads(msgspec.json.encode(BEFORE))
    del old["version"]  # as reports had none
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert tunesmith.diff(tmp_path / "old.json", BEFORE).ratio == 1.0
    newer = written(tmp_path / "new.json", replace(BEFORE, version=RESULT_VERSION + 1))
    with pytest.raises(tunesmith.BadInput, match="version"):
        tunesmith.diff(BEFORE, newer)
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(tunesmith.BadInput, match="report"):
        tunesmith.diff(BEFORE, tmp_path / "broken.json")
