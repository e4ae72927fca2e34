"""The runs of a fleet are listed, and can be watched alone."""

from __future__ import annotations

from pathlib import Path

from tunesmith.plugins.watch.server import resolve_served
from tunesmith.run.folder import FLEET, JOURNAL


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
