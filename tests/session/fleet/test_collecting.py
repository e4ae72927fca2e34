"""What runs say that no head of the fleet looked after: tasks of Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleets import plan, standing
from tunesmith.run.store import RunFolder
from tunesmith.session.fleet import head
from tunesmith.session.fleet.dealing import all_shares
from tunesmith.session.fleet.plans import cells_of
from tunesmith.session.fleet.record import CellStanding, FleetJournal, FleetState, HeadBegan, SharesGiven


def collected(folder: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, CellStanding]) -> FleetState:
    """With runs of this standing, whose tasks were killed before they could say how they end."""
    monkeypatch.setattr(head, "begun", lambda path: path.name in runs)
    monkeypatch.setattr(head, "standing_of", lambda path: runs[path.name])
    cells = {cell.name: cell for cell in cells_of(plan())}
    journal = FleetJournal(folder)
    try:
        return head.collect(RunFolder(folder), cells, journal)
    finally:
        journal.close()


def test_a_cell_that_searched_under_slurm_has_had_its_first_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = cells_of(plan())
    first, second = (cell.name for cell in cells)
    journal = FleetJournal(tmp_path)
    journal.append(HeadBegan(1.0))
    journal.append(SharesGiven(((first, 900.0), (second, 900.0))))
    journal.close()
    runs = {first: standing(600.0, best=1.2), second: standing(500.0, evaluations=0)}
    state = collected(tmp_path, monkeypatch, runs)
    assert [state.of(name).sessions for name in (first, second)] == [1, 0], "the second was still at its gate"
    assert state.of(first).gained > 0
    given = {name: share - runs[name].device_seconds for name, share in all_shares(state, cells).items()}
    assert given[first] < given[second], "a first share is given once"
    assert collected(tmp_path, monkeypatch, runs) == state, "to look twice changes nothing"
    runs[second] = standing(950.0, evaluations=0)
    assert collected(tmp_path, monkeypatch, runs).of(second).sessions == 1, (
        "it has used all that it was given"
    )
