"""What cells that are lost, whoever holds a run, and a cluster that is not there can do to a fleet."""

from __future__ import annotations

import fcntl
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fleets import ended, plan, planned, standing, verified
from tests.plugins.fleet.test_plan import more, write
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.plugins.fleet import cell, fleets
from tunesmith.plugins.fleet.cell import STOP, CellOrder, CellOutcome, outcome_path, read_outcome, run_cell
from tunesmith.plugins.fleet.head import CellRunner, FleetHead, LocalRunner
from tunesmith.plugins.fleet.plan import FleetDevice, FleetPlan, FleetSlot, run_path, stored_plan
from tunesmith.plugins.fleet.record import (
    CellBegan,
    FleetEvent,
    FleetJournal,
    FleetResult,
    How,
    fold_fleet_events,
)
from tunesmith.run.folder import FLEET, LOCK, RunFolder
from tunesmith.session.progress import listener_of

CELL = "one@d+expert"


class Played(CellRunner):
    """Every cell finishes, but in slots where something else is said to happen."""

    def __init__(self, folder: Path, plan: FleetPlan, slots: Mapping[str, How]) -> None:
        super().__init__(folder, plan)
        self.happens, self.begun, self.asked_of = slots, list[CellBegan](), list[str]()

    def start(self, slot: FleetSlot, began: CellBegan) -> str:
        self.begun.append(began)
        return ""

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        over, self.begun = self.begun, []
        return [(began.cell, self.end_of(self.happens.get(began.slot, "finished"))) for began in over]

    def left(self, began: CellBegan) -> CellOutcome | None:
        """It is still at work when it is asked of for the first time."""
        self.asked_of.append(began.cell)
        return self.end_of("finished") if len(self.asked_of) > 1 else None

    def end_of(self, how: How) -> CellOutcome:
        if how == "finished":
            return CellOutcome(how, standing(5.0, 2.0, verified=verified()))
        return CellOutcome(how, standing(), "it is gone", 5)


def run_played(
    folder: Path, fleet: FleetPlan, slots: Mapping[str, How], *before: FleetEvent
) -> tuple[FleetResult, Played]:
    folder.mkdir(exist_ok=True)
    (folder / FLEET).write_bytes(encode_json(fleet))
    journal = FleetJournal(folder)
    for event in before:
        journal.append(event)
    stored, cells = stored_plan(folder)
    runner = Played(folder, stored, slots)
    head = FleetHead(
        RunFolder(folder), stored, cells, runner, journal, fold_fleet_events(before), listener_of(None)
    )
    return head.run(), runner


@pytest.mark.parametrize("how", ["no device", "lost"])
def test_a_slot_that_loses_several_is_left_out_and_the_others_go_on(tmp_path: Path, how: How) -> None:
    fleet = plan((1.0,) * 8, [FleetDevice("gpu", slots=2)])
    result, _ = run_played(tmp_path / "fleet", fleet, {"gpu/here/0": how})
    assert result.counts == {"finished": 8}
    assert result.notes == ("gpu/here/0 is left out: 3 losses in a row",)


def test_where_no_device_is_there_the_fleet_ends_and_says_so(tmp_path: Path) -> None:
    result, _ = run_played(tmp_path / "fleet", plan((1.0, 1.0)), {"gpu/here/0": "no device"})
    assert {row.status for row in result.rows} <= {"no device", "not begun"}
    assert fleets.FleetRun(result, tmp_path, "").exit_code == 5
    again, _ = run_played(tmp_path / "again", plan((1.0, 1.0)), {}, ended("p0@gpu+expert", "no device"))
    assert again.counts == {"finished": 2}, "another head tries it again"


def test_what_an_earlier_head_began_is_waited_for_and_not_begun_again(tmp_path: Path) -> None:
    began = CellBegan("p0@gpu+expert", "gpu/here/0", 900.0, "stop")
    result, runner = run_played(tmp_path / "fleet", plan((2.0, 1.0)), {}, began)
    assert runner.asked_of == [began.cell] * 2
    assert result.counts == {"finished": 2}
    events = list(FleetJournal(tmp_path / "fleet").read())
    assert [e.cell for e in events if isinstance(e, CellBegan)] == [began.cell, "p1@gpu+expert"]


def test_a_damaged_run_fails_alone_and_keeps_what_is_known(tmp_path, monkeypatch):
    def refuse(_path: Path) -> None:
        raise BadInput("the journal is damaged")

    monkeypatch.setattr(cell, "standing_of", refuse)
    journal = FleetJournal(tmp_path)
    journal.append(ended("a", "paused", 7.0))
    journal.close()
    outcome = LocalRunner(tmp_path, plan()).left(CellBegan("a", "s", 9.0, "stop"))
    assert (outcome.how, outcome.standing.device_seconds, outcome.code) == ("failed", 7.0, 2)
    assert "damaged" in outcome.reason


def test_the_outcome_of_an_earlier_session_is_not_taken_for_this_one(tmp_path: Path) -> None:
    (tmp_path / "outcomes").mkdir()
    earlier = CellOutcome("paused", standing(3.0), until=3.0)
    outcome_path(tmp_path, "a").write_bytes(encode_json(earlier))
    assert read_outcome(tmp_path, CellBegan("a", "s", 3.0, "stop"), "") == earlier
    assert read_outcome(tmp_path, CellBegan("a", "s", 9.0, "stop"), "it was killed").how == "lost"


def test_a_cell_that_is_asked_to_stop_before_it_begins_does_not_begin(tmp_path: Path) -> None:
    fleet = planned(write(tmp_path), tmp_path / "fleet")
    found, cells = stored_plan(fleet)
    (fleet / STOP).touch()
    order = CellOrder(str(fleet), CELL, "here", 9.0, "stop")
    outcome = run_cell(found, cells[CELL], order, lambda: (fleet / STOP).exists())
    assert outcome.how == "paused"
    assert not run_path(fleet, CELL).exists()


def test_a_budget_is_not_dealt_again_while_others_are_at_work(tmp_path: Path) -> None:
    fleet = planned(write(tmp_path), tmp_path / "fleet")
    run_path(fleet, CELL).mkdir(parents=True)
    held = os.open(run_path(fleet, CELL) / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match=f"1 run held, the first {CELL}".replace("+", "[+]")) as caught:
            fleets.run_fleet(fleet, None, listener_of(None))
        assert "--stop" in (caught.value.hint or "")
    finally:
        os.close(held)
    assert list(FleetJournal(fleet).read()) == []


@pytest.mark.parametrize("placed", ["gpus = [0]", 'workers = "host.toml"'])
def test_on_a_cluster_ray_places_runs(tmp_path: Path, placed: str) -> None:
    fleet = planned(more(write(tmp_path), f"{placed}\n"), tmp_path / "fleet")
    with pytest.raises(BadInput, match="Ray places the runs on 'd'") as caught:
        fleets.run_fleet(fleet, None, listener_of(None), ray="auto")
    assert "num_gpus" in (caught.value.hint or "")


def test_without_ray_nobody_waits_for_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DeviceMissing, match="not installed") as caught:
        fleets.run_fleet(planned(write(tmp_path), tmp_path / "fleet"), None, listener_of(None), ray="auto")
    assert "tunesmith[ray]" in (caught.value.hint or "")
