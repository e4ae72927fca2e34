"""The runs of a folder: what is there is listed, and nothing else can be named."""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.samples import started
from tunesmith.plugins.studies.plan import Planned
from tunesmith.plugins.watch.following import FoundRun, RunFilter, RunsBelow
from tunesmith.plugins.watch.server import resolve_served
from tunesmith.run.events import Recorded
from tunesmith.run.folder import FLEET, JOURNAL
from tunesmith.run.journal import encode_record

REPORT = '{"finished": true, "headline": "2.50×", "version": 9}'


def a_run(path: Path, problem: str = "scale", report: str = "", changed: float = 1000.0) -> Path:
    path.mkdir(parents=True)
    line = encode_record(Recorded(0, 0.0, replace(started(), problem=problem)))
    (path / "journal.jsonl").write_bytes(line + b"\n")
    if report:
        (path / "report.json").write_text(report)
    os.utime(path / "journal.jsonl", (changed, changed))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    a_run(root / "old", report=REPORT, changed=1000)
    a_run(root / "new", problem="norm", changed=2000)
    (root / "not a run").mkdir()
    (root / "cmp").mkdir()
    (root / "cmp" / "compare.json").write_text("{}")
    (root / "cmp" / "compare.md").write_text("# what they say\n")
    a_run(root / "cmp" / "runs" / Planned("scale", "template", 1).place, changed=500)
    elsewhere = a_run(tmp_path / "elsewhere" / "secret")
    (root / "link").symlink_to(elsewhere)
    (root / "cmp" / "runs" / "linked").symlink_to(elsewhere.parent)
    (root / "cmp" / "runs" / "scale" / "linked").symlink_to(elsewhere)
    (root / "cmp2").mkdir()
    (root / "cmp2" / "compare.json").write_text("{}")
    (root / "cmp2" / "runs").symlink_to(tmp_path)
    os.utime(root / "cmp2" / "compare.json", (500, 500))
    return root


def test_runs_and_comparisons_the_newest_first(root: Path) -> None:
    below = RunsBelow(root)
    found = below.runs()
    assert [(r.name, r.status, r.problem, r.speedup) for r in found] == [
        ("new", "stopped", "norm", ""),
        ("old", "finished", "scale", "2.50×"),
        ("cmp/runs/scale/template-1", "stopped", "scale", ""),
    ]
    assert found[2].comparison == "cmp"
    assert [one.name for one in below.comparisons()] == ["cmp", "cmp2"]
    assert below.comparison_text("cmp") == "# what they say\n"
    assert below.runs() == found


def test_a_run_that_a_process_holds_is_live(root: Path) -> None:
    below = RunsBelow(root)
    assert below.runs()[1].status == "finished"
    with (root / "old" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert below.runs()[1].status == "live"
    assert below.runs()[1].status == "finished"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../elsewhere/secret", "link", "old/../old", "/old", "cmp", "cmp/runs", "not a run",
     "cmp/runs/scale", "cmp/runs/linked/secret", "cmp/runs/scale/linked", "cmp2/runs/elsewhere/secret",
     "old/", "old/objects", "cmp/runs/../../old", "old\x00"],
)  # fmt: skip
def test_what_is_not_listed_cannot_be_named(root: Path, name: str) -> None:
    assert RunsBelow(root).run(name) is None
    assert RunsBelow(root).comparison_text(name if name != "cmp" else "nocmp") is None


def test_what_is_listed_can_be_named(root: Path) -> None:
    assert RunsBelow(root).run("old") == root / "old"
    assert RunsBelow(root).run("cmp/runs/scale/template-1") == root / "cmp" / "runs" / "scale" / "template-1"


def test_runs_of_a_fleet_are_found_by_its_folder_and_by_their_own(tmp_path: Path) -> None:
    run = tmp_path / "elsewhere" / "night" / "runs" / "op@gpu+expert"
    run.mkdir(parents=True)
    (run / JOURNAL).write_bytes(b"")
    fleet = run.parents[1]
    (fleet / FLEET).write_bytes(b"{}")
    for named, first in ((fleet, ""), (run, "night/runs/op@gpu+expert")):
        runs, opened = resolve_served(tmp_path / "tunesmith-runs", named)
        assert opened == first
        assert [found.name for found in runs.runs()] == ["night/runs/op@gpu+expert"]
        assert [found.comparison for found in runs.runs()] == ["night"]


def test_one_run_alone(root: Path) -> None:
    assert [run.name for run in RunsBelow(root, "old").runs()] == ["old"]
    assert [run.name for run in RunsBelow(root, "cmp").runs()] == ["cmp/runs/scale/template-1"]
    assert [run.name for run in RunsBelow(root, "cmp/runs/scale/template-1").runs()] == [
        "cmp/runs/scale/template-1"
    ]
    assert RunsBelow(root, "old").comparisons() == ()
    assert RunsBelow(root, "old").run("new") is None


def test_what_cannot_be_read_is_said_to_be_so(root: Path) -> None:
    (root / "old" / "journal.jsonl").write_bytes(b"\xff\n")
    (root / "new" / "report.json").write_text("[]")
    found = {run.name: run.status for run in RunsBelow(root).runs()}
    assert (found["old"], found["new"]) == ("unreadable", "stopped")
    shutil.rmtree(root)
    assert RunsBelow(root).runs() == ()


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (RunFilter(), True),
        (RunFilter(words="SCALE h200"), True),
        (RunFilter(words="scale opencl"), False),
        (RunFilter(status="finished"), True),
        (RunFilter(status="live"), False),
        (RunFilter(problem="scal"), False),
        (RunFilter(device="H200"), True),
        (RunFilter(within="cmp"), False),
    ],
)
def test_filters(wanted: RunFilter, shown: bool) -> None:
    assert wanted.shows(FoundRun("scale-1", "finished", 0.0, "scale", "H200", "template")) is shown
