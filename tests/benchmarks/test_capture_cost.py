"""What capturing costs, measured on a played GPU: the script runs, and compares run with run."""

from __future__ import annotations

import json

import pytest

from benchmarks import capture_cost
from benchmarks.capture_cost import KINDS, LaunchCost
from tests.plugins.repo.capture.played import needs_compiler, with_played_gpu


def test_ratios_are_of_pairs() -> None:
    cost = LaunchCost("same", (1e-6, 2e-6, 4e-6), (2e-6, 3e-6, 4e-6))
    assert cost.ratios == pytest.approx([2.0, 1.5, 1.0])
    assert "1.50x (1.00 to 2.00 in 3 rounds), +1.00 µs a launch" in cost.line()


@needs_compiler
@pytest.mark.long
def test_it_runs_alone_and_captured(tmp_path, monkeypatch, capsys):
    with_played_gpu(monkeypatch)
    capture_cost.main(["--rounds", "2", "--launches", "600", "--json", str(tmp_path / "figures.json")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(KINDS)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert all(len(one["alone"]) == len(one["captured"]) == 2 for one in figures)
    assert all(time > 0 for one in figures for time in (*one["alone"], *one["captured"]))
