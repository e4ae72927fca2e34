"""What a budget in seconds is for: the search, and not what is measured of the device once and for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import Watcher
from tests.core.run.test_store import Clock
from tests.samples import a_device, a_problem, baseline, config, outcome, started
from tunesmith.run.budget import budget_uses, exhausted_budget
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Asked, Measured, Recorded, Settings, Stopped
from tunesmith.run.folder import FolderTexts, RunFolder
from tunesmith.run.ports import RunLog
from tunesmith.run.report import build_report
from tunesmith.run.state import State, apply_record, fold_records
from tunesmith.session import place as machine
from tunesmith.session import roles, runs
from tunesmith.session.place import WorkerSite


@dataclass
class SlowToPrepare:
    """Ceilings take a minute and a half."""

    clock: Clock
    prepared: int = 0

    def prepare_profiles(self) -> None:
        self.clock.now += 90
        self.prepared += 1

    def close(self) -> None:
        self.clock.now += 1


@dataclass
class OneStep:
    """Five seconds pass."""

    log: RunLog
    clock: Clock

    def run(self) -> State:
        self.clock.now += 5
        self.log.write(Stopped("done"))
        return self.log.state


@pytest.mark.parametrize(("steer", "prepared"), [(True, 1), (False, 0)])
def test_ceilings_are_measured_before_the_clock_of_a_run_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steer: bool, prepared: int
) -> None:
    problem, device, clock = a_problem(), a_device(), Clock()
    folder = RunFolder.create(tmp_path / "run")
    journal = folder.journal(clock)
    clock.now += 2
    state = apply_record(State(), journal.append(started(Settings(seconds=60.0, steer=steer))))
    lab = SlowToPrepare(clock)
    monkeypatch.setattr(machine, "make_lab", lambda *_given, **_named: lab)
    monkeypatch.setattr(runs, "Loop", lambda *given, **_named: OneStep(given[1], clock))
    templates = Templates(problem, device, None, FolderTexts(folder))
    config = RunConfig(cache=False)
    talk = roles.create_talking(problem, templates, state, roles.RoleContext("", {}, folder.path))
    run = runs.OpenRun(journal, state, Watcher(), folder, templates)
    place = machine.Place(WorkerSite("fake", tmp_path), machine.LocalDevices("fake", (device,)), device)
    runs.run_loop(run, place, config, talk)
    journal.close()
    folder.unlock()
    assert lab.prepared == prepared
    assert run.state.elapsed == pytest.approx(2 + 5)


@pytest.mark.parametrize(("waited", "used", "is_over"), [(0.0, 70.0, True), (50.0, 20.0, False)])
def test_what_it_waits_for_the_device_is_not_counted(waited: float, used: float, is_over: bool) -> None:
    """By a budget in seconds as by one of the device's; the report says it."""
    settings = Settings(seconds=60.0, device_seconds=60.0)
    first = replace(
        baseline({"small": 1.0, "wide": 1.0}), outcome=outcome(-1, None, {"small": 1.0, "wide": 1.0})
    )
    tried = replace(outcome(0, config(32), {"small": 1.0, "wide": 1.0}), seconds=65.0, waited=waited)
    events = [(started(settings), 0.0), (first, 1.0), (Asked((tried.trial,)), 5.0), (Measured(tried), 70.0)]
    state = fold_records([Recorded(number, at, event) for number, (event, at) in enumerate(events)])
    assert (exhausted_budget(state) is not None) is is_over
    uses = {use.what: use.used for use in budget_uses(state)}
    assert uses["seconds"] == used
    assert uses["device_seconds"] == pytest.approx(first.outcome.seconds + 65.0 - waited)
    said = any("the run waited 50.0 s of 70.0 s" in note for note in build_report(a_problem(), state).notes)
    assert said is not is_over
