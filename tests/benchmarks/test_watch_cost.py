"""What watching costs: figures of pairs, and the script itself on a run that is short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import watch_cost
from benchmarks.watch_cost import TimedRun, WatchCost
from tests.frameworks import need


def test_figures_are_of_pairs() -> None:
    alone = (TimedRun(10.0, 8.0), TimedRun(20.0, 10.0), TimedRun(10.0, 8.0))
    found = WatchCost(alone, tuple(TimedRun(r.seconds * 1.1, r.processor * 1.01, 0.11) for r in alone))
    assert found.shares == pytest.approx([0.01, 0.005, 0.01])
    server, _, _, *own = found.lines()[1:]
    assert [line.split()[-4:] for line in (server, *own)] == [
        ["1.00%", "(0.50%", "to", "1.00%)"],
        ["1.010", "(1.010", "to", "1.010)"],
        ["1.100", "(1.100", "to", "1.100)"],
    ]


@pytest.mark.long
def test_it_runs_alone_and_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("uvicorn")
    watch_cost.main(["--pairs", "1", "--evals", "12", "--json", str(tmp_path / "figures.json")])
    assert len(capsys.readouterr().out.splitlines()) == 6
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["watched"][0]["start"] > 0
    assert figures["watched"][0]["pages"] > 0
