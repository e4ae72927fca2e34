"""What one cell, or who goes on with its run by hand, can do to a fleet."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.fleets import ended, planned
from tests.session.fleet.test_planning import write
from tunesmith.errors import BadInput
from tunesmith.run.store import LOCK
from tunesmith.session.fleet import fleets, processes
from tunesmith.session.fleet.cell import run_path
from tunesmith.session.fleet.processes import CellProcesses
from tunesmith.session.fleet.record import CellBegan, FleetJournal

CELL = "one@d+expert"


class Quiet:
    def event(self, record: object, state: object) -> None: ...
    def note(self, text: str) -> None: ...
    def say(self, text: str) -> None: ...


def test_a_damaged_run_fails_alone_and_keeps_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_path: Path) -> None:
        raise BadInput("the journal is damaged")

    monkeypatch.setattr(processes, "standing_of", damaged)
    journal = FleetJournal(tmp_path)
    journal.append(ended("a", "paused", 7.0))
    journal.close()
    found = CellProcesses(tmp_path).left(CellBegan("a", "s", 9.0, "stop"))
    assert found is not None
    assert (found.how, found.standing.device_seconds, found.code) == ("failed", 7.0, 2)
    assert "damaged" in found.reason


def test_a_budget_is_not_dealt_again_while_others_are_at_work(tmp_path: Path) -> None:
    fleet = planned(write(tmp_path), tmp_path / "fleet")
    own = run_path(fleet, CELL)
    own.mkdir(parents=True)
    held = os.open(own / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match=f"1 run held, the first {CELL}".replace("+", "[+]")) as caught:
            fleets.run_fleet(fleet, None, Quiet())
        assert "--stop" in (caught.value.hint or "")
    finally:
        os.close(held)
    assert list(FleetJournal(fleet).read()) == []
