"""Two runs held against each other, and the exit code that a CI reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import tunesmith
from tests.core.deliver.reports import TINY, every
from tests.core.deliver.test_page import HOSTILE, harmless, images
from tests.end_to_end.asking import quickly as command
from tests.markdown_reader import acting
from tests.wording import says
from tunesmith.plugins.studies.difference import (
    compare_report_pair,
    compare_reports,
    difference_markdown,
    difference_page,
)
from tunesmith.run.report import RESULT_VERSION, Report, WorkloadReport


def workload(name: str, tuned: float, weight: float = 1.0, n: int = 8) -> WorkloadReport:
    speedup = 100.0 / tuned
    return WorkloadReport(
        name, {"n": n}, weight, 100.0, tuned, speedup, (speedup - 0.05, speedup + 0.05), {"BLOCK": 64}
    )


def a_report(*workloads: WorkloadReport, **changed: object) -> Report:
    return replace(TINY, finished=True, workloads=workloads, **changed)  # type: ignore[arg-type]


BEFORE = a_report(workload("small", 50.0), workload("large", 20.0, weight=3.0))


class TestDifference:
    def test_workloads_are_paired_by_name(self) -> None:
        after = a_report(workload("large", 25.0, weight=3.0), workload("small", 40.0))
        found = compare_report_pair(BEFORE, after, "a", "b")
        assert [(w.name, round(w.ratio, 9)) for w in found.workloads] == [("small", 1.25), ("large", 0.8)]
        assert found.ratio == pytest.approx((1.25 * 0.8**3) ** 0.25)
        assert found.worst.name == "large"
        assert [w.name for w in found.below(0.98)] == ["large"]
        assert found.below(0.8) == ()
        assert all(w.is_clear for w in found.workloads)
        assert found.judged_by == "speed-up"

    def test_times_of_another_day_say_nothing(self) -> None:
        """The original took 101 µs once and 488 another time, and what is delivered went along."""
        old = replace(workload("small", 50.0), baseline_us=101.0, speedup=2.02, interval=(2.0, 2.04))
        slow = replace(old, baseline_us=488.0, tuned_us=243.0, speedup=2.01, interval=(1.99, 2.03))
        found = compare_report_pair(a_report(old), a_report(slow), "a", "b")
        assert found.below(0.99) == found.unclear(0.98) == ()
        says(found.workloads[0].moved, "the original was slower, from 101.0 to 488.0 µs", "ratio is the same")
        lost = replace(slow, tuned_us=300.0, speedup=1.6, interval=(1.55, 1.65))
        found = compare_report_pair(a_report(old), a_report(lost), "a", "b")
        assert [w.name for w in found.below(0.98)] == ["small"]
        says(found.workloads[0].moved, "the tuned kernel moved, from 50.0 to 300.0 µs")

    @pytest.mark.parametrize(
        ("interval", "doubt", "below", "unclear"),
        [
            ((1.75, 1.85), "", ["small"], []),
            ((1.4, 2.3), "", [], ["small"]),  # too wide to tell
            ((1.75, 1.85), "the device was not left alone", [], ["small"]),  # not certified: no alarm
        ],
    )
    def test_an_alarm_takes_an_interval_that_excludes(self, interval, doubt, below, unclear):
        old = replace(workload("small", 50.0), interval=(1.97, 2.03))
        after = replace(workload("small", 50.0), speedup=1.8, interval=interval, doubt=doubt)
        found = compare_report_pair(a_report(old), a_report(after), "a", "b")
        assert [w.name for w in found.below(0.98)] == below
        assert [w.name for w in found.unclear(0.98)] == unclear
        assert [note for note in found.notes if "not certified" in note] == (
            [f"small is not certified in both runs: {doubt}"] if doubt else []
        )

    def test_another_original_leaves_times_alone_and_allows_for_drift(self) -> None:
        after = a_report(workload("small", 54.0), digests={"original source": "another"})
        found = compare_report_pair(BEFORE, after, "a", "b")
        assert (found.judged_by, found.below(0.99)) == ("time", ())
        assert any("the original kernel is not the same in both" in note for note in found.notes)
        after = replace(after, workloads=(workload("small", 80.0),))
        assert [w.name for w in compare_report_pair(BEFORE, after, "a", "b").below(0.9)] == ["small"]

    def test_other_devices_are_compared_by_speed_ups(self) -> None:
        after = a_report(replace(workload("small", 10.0), speedup=2.0), device="another")
        found = compare_report_pair(BEFORE, after, "a", "b")
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
            compare_report_pair(BEFORE, after, "a", "b")


def written(path: Path, value: Report) -> Path:
    path.write_bytes(msgspec.json.encode(value))
    return path


def test_command(tmp_path: Path) -> None:
    written(tmp_path / "old.json", BEFORE)
    written(tmp_path / "new.json", a_report(workload("small", 60.0), workload("large", 20.0, weight=3.0)))
    written(tmp_path / "other.json", replace(BEFORE, problem="other"))
    ended = command(tmp_path, "diff", "old.json", "new.json", "--fail-below", 0.99, "--json")
    assert ended.code == 6
    assert ended.json["below"] == ["small"]
    assert ended.json["difference"]["version"] == 1
    ended = command(tmp_path, "diff", "old.json", "new.json", "--fail-below", 0.86)
    assert ended.code == 0
    assert "small" in ended.out
    says(ended.err, "cannot tell whether below 0.86×", "small 0.833×")
    ended = command(tmp_path, "diff", "old.json", "other.json")
    assert ended.code == 2
    assert "other" in ended.err


def test_several_runs_are_held_against_the_first(tmp_path: Path) -> None:
    written(tmp_path / "old.json", BEFORE)
    other = a_report(workload("small", 25.0), device="another", driver="9")
    written(tmp_path / "other.json", other)
    written(tmp_path / "slow.json", a_report(workload("small", 50.0), workload("large", 40.0, weight=3.0)))
    found = tunesmith.diff(*(tmp_path / f"{name}.json" for name in ("old", "other", "slow")))
    assert [(pair.judged_by, pair.after.split("/")[-1]) for pair in found.pairs] == [
        ("speed-up", "other.json"),
        ("speed-up", "slow.json"),
    ]
    assert [r.driver for r in found.runs] == [BEFORE.driver, "9", BEFORE.driver]
    ended = command(tmp_path, "diff", "old.json", "other.json", "slow.json", "--fail-below", 0.9)
    assert ended.code == 6
    says(ended.err, "large 0.500×", "in slow.json")
    assert "another" in ended.out
    rows = [" ".join(line.replace("│", " ").split()) for line in ended.out.splitlines()]
    places = [next(n for n, row in enumerate(rows) if row.startswith(start)) for start in (
        "small old.json 50.0 µs 1.000×",
        "small other.json 25.0 µs 2.000×",
        "small slow.json 50.0 µs 1.000×",
        "large old.json 20.0 µs 1.000×",
        "large other.json",
        "large slow.json 40.0 µs 0.500×",
    )]  # fmt: skip
    assert places == sorted(places), "workload by workload, the first run first"
    ended = command(tmp_path, "diff", "old.json", "other.json", "slow.json", "--fail-below", 0.4, "--json")
    assert ended.code == 0
    assert [one["after"] for one in ended.json["difference"]["others"]] == ["slow.json"]


def test_forms_for_ci_and_for_browsers(tmp_path: Path) -> None:
    written(tmp_path / "old.json", BEFORE)
    written(tmp_path / "new.json", a_report(workload("small", 100.0), workload("large", 20.0, weight=3.0)))
    summary = command(tmp_path, "diff", "old.json", "new.json", "--format", "md", "--fail-below", 0.9)
    assert summary.code == 6
    assert "Below 0.9×: small 0.500×" in summary.out
    assert ["small", "50.0 µs", "100.0 µs", "0.500×"] in [row[:4] for row in table_rows(summary.out)]
    page = command(tmp_path, "diff", "old.json", "new.json", "--html", "--fail-below", 0.4)
    assert page.code == 0
    assert page.out.startswith("<!DOCTYPE html>")
    assert "No workload is below 0.4×" in page.out
    assert "Verified speed-ups" in images(page.out)[0]
    bad = command(tmp_path, "diff", "old.json", "new.json", "--format", "xml")
    assert bad.code == 2


@pytest.mark.parametrize("count", [1, 2, 12])
def test_foreign_text_does_nothing_on_the_page(count: int) -> None:
    hostile = replace(every(BEFORE, HOSTILE), unproven="")
    found = compare_reports([(hostile, f"run{HOSTILE}{n}") for n in range(count + 1)])
    tame = replace(every(BEFORE, "x" * len(HOSTILE)), unproven="")
    same = compare_reports([(tame, f"run{'x' * len(HOSTILE)}{n}") for n in range(count + 1)])
    changed = replace(found, notes=(HOSTILE,)), replace(same, notes=("x",))
    assert harmless(difference_page(changed[0], 0.9)).without_images == (
        harmless(difference_page(changed[1], 0.9)).without_images
    )
    allowed = {"heading_open", "table_open"}
    assert {kind for kind, _ in acting(difference_markdown(changed[0], 0.9))} <= allowed


def table_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]


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
