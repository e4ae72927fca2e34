"""One cell of a fleet, in a process of its own: its run, begun or taken up, as far as its share goes.

The process is told what to do on its first line and ends after the batch under way when it is asked to by a
file in the fleet's folder, or when its input ends: whoever started it is gone.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import (
    BadInput,
    DeviceMissing,
    Interrupted,
    TunesmithError,
    WaitingForModel,
    bug_text,
)
from tunesmith.base.files import is_locked, read_plain, write_whole
from tunesmith.base.interrupts import end_when_asked
from tunesmith.base.text import flatten_text, truncate_text
from tunesmith.plugins.fleet.plan import HOSTS, OUTCOMES, FleetCell, FleetPlan, run_path, stored_plan
from tunesmith.plugins.fleet.record import (
    CellBegan,
    CellStanding,
    FleetJournal,
    How,
    Then,
    VerifiedCell,
    fold_fleet_events,
)
from tunesmith.run.budget import count_evaluations
from tunesmith.run.config import RunConfig, is_debugging, resolve_config
from tunesmith.run.events import Recorded
from tunesmith.run.folder import CERTIFICATE, LOCK, FolderInbox, RunFolder, has_begun
from tunesmith.run.progress import current_standing
from tunesmith.run.state import State
from tunesmith.session import runs
from tunesmith.session.problems import (
    TEMPLATE,
    refuse_broken,
    restore_problem,
    state_and_templates,
    template_of,
)
from tunesmith.session.result import Run, as_it_stands

STOP = "stop"  # a file in the fleet's folder: whoever wants it to end after the batches under way
MAX_REASON = 2000
LOCK_SECONDS = 120.0  # that a process of the same cell may still need: its head or its node was lost
_HOWS: tuple[tuple[type[TunesmithError], How], ...] = (
    *((WaitingForModel, "waiting"), (DeviceMissing, "no device"), (BadInput, "failed")),
)


@dataclass(frozen=True)
class CellOrder:
    fleet: str  # its folder
    cell: str
    place: str
    until: float  # device-seconds of its run, all together
    then: Then
    on_ray: bool = False


@dataclass(frozen=True)
class CellOutcome:
    """How a session of a cell ended: a file in the fleet's folder."""

    how: How
    standing: CellStanding
    reason: str = ""
    code: int = 0
    until: float = 0.0  # by its order


def outcome_path(folder: Path, cell: str) -> Path:
    return folder / OUTCOMES / f"{cell}.json"


def read_outcome(folder: Path, began: CellBegan, reason: str, how: How = "lost") -> CellOutcome:
    """Of a session that has ended; `reason` and `how`: where its process could not say anything."""
    outcome: CellOutcome | None
    try:
        outcome = decode_json(read_plain(outcome_path(folder, began.cell)), CellOutcome)
    except (OSError, Malformed):
        outcome = None  # it was killed
    if outcome is not None and outcome.until == began.until:  # else it is an earlier session's
        return outcome
    try:
        now = standing_of(run_path(folder, began.cell))
        return CellOutcome(how, now, truncate_text(reason, MAX_REASON), 1 if how == "lost" else 0)
    except TunesmithError as error:  # of this cell alone: others go on
        return CellOutcome("failed", _last_standing(folder, began.cell), str(error), error.exit_code)


def _last_standing(folder: Path, cell: str) -> CellStanding:
    """As the fleet's journal has it, where the run's own cannot be read."""
    return fold_fleet_events(FleetJournal(folder).read()).of(cell).standing


def standing_of(path: Path) -> CellStanding:
    """By the journal of its run alone."""
    if not has_begun(path):
        return CellStanding()
    folder = RunFolder.open(path)
    state, _ = state_and_templates(folder)
    refuse_broken(state, path)
    now = current_standing(state)
    times = [floor.times for floor in now.floors]
    known = [math.log(one) for one in times if one is not None and one > 0]
    has_ended = state.stopped is not None and (path / CERTIFICATE).exists()
    return CellStanding(
        device_seconds=round(state.device_seconds, 6),
        seconds=state.elapsed,
        evaluations=count_evaluations(state),
        best=max(1.0, now.best or 1.0),
        expected=next((gain for gain in reversed(state.gains) if gain is not None), None),
        headroom=sum(known) / len(known) if known and len(known) == len(times) else None,
        verified=VerifiedCell.of(as_it_stands(folder).result) if has_ended else None,
    )


@dataclass
class CellListener:
    """Ends the run when its share is used up, or when it is asked to."""

    path: Path
    order: CellOrder
    is_asked: Callable[[], bool]
    _instructed: set[str] = field(default_factory=set)

    def event(self, record: Recorded, state: State) -> None:
        del record
        is_finishing = bool(state.decided) and state.decided[-1].decision == "finish"
        if state.device_seconds >= self.order.until and not is_finishing:
            self.instruct(self.order.then)
        if self.is_asked():
            self.instruct("stop")

    def note(self, text: str) -> None:
        """Nobody looks at what is true only for now."""

    def say(self, text: str) -> None:
        sys.stderr.write(f"{flatten_text(text)}\n")  # which is the cell's log
        sys.stderr.flush()

    def instruct(self, what: Then) -> None:
        if what not in self._instructed:
            self._instructed.add(what)
            FolderInbox(self.path).put(what)


def run_cell(
    plan: FleetPlan, cell: FleetCell, order: CellOrder, is_asked: Callable[[], bool] = lambda: False
) -> CellOutcome:
    """As far as its share goes; how that ended is on disk when it returns."""
    folder = Path(order.fleet)
    path = run_path(folder, cell.name)
    how, reason, code = _run_session(plan, cell, order, CellListener(path, order, is_asked))
    try:
        now = standing_of(path)
    except TunesmithError as error:
        how, reason, code, now = "failed", str(error), error.exit_code, _last_standing(folder, cell.name)
    if how == "finished" and now.verified is None:
        how, reason, code = "failed", reason or "its journal does not carry what it found", 2
    outcome = CellOutcome(how, now, truncate_text(flatten_text(reason), MAX_REASON), code, order.until)
    write_whole(outcome_path(folder, cell.name), encode_json(outcome))
    return outcome


def _run_session(
    plan: FleetPlan, cell: FleetCell, order: CellOrder, listener: CellListener
) -> tuple[How, str, int]:
    since = time.monotonic()
    while is_locked(listener.path / LOCK) and not listener.is_asked():
        if time.monotonic() - since > LOCK_SECONDS:
            return "lost", "another process is at work in its run", 1
        time.sleep(0.5)
    if listener.is_asked():
        return "paused", "", 0
    try:
        run = _begin_or_resume(plan, cell, order, listener)
    except KeyboardInterrupt:  # also the run's own: it was asked to stop, and nothing is lost
        return "paused", "", 0
    except TunesmithError as error:
        return _classify_error(error)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return "failed", f"{name}{error.strerror or error}", 2
    except Exception as error:
        if is_debugging():
            raise
        return "failed", f"a bug in Tunesmith: {bug_text(error)}", 1
    return _classify_error(run.missing) if run.missing is not None else ("finished", run.result.reason, 0)


def _classify_error(error: TunesmithError) -> tuple[How, str, int]:
    """What is nobody's fault that we know of may be the machine's: that is tried again, elsewhere."""
    how: How = next((how for kind, how in _HOWS if isinstance(error, kind)), "lost")
    words = f"{error} ({error.hint})" if error.hint else str(error)
    return "failed" if error.exit_code == 3 else how, words, error.exit_code


def _begin_or_resume(plan: FleetPlan, cell: FleetCell, order: CellOrder, listener: CellListener) -> Run:
    folder, path = Path(order.fleet), listener.path
    config = cell_config(plan, cell, order)
    if has_begun(path):
        if order.then == "finish" and standing_of(path).device_seconds >= order.until:
            listener.instruct("finish")
        return runs.resume(path, config, listener)
    stored = RunFolder(folder)
    texts = {name: stored.get(digest).decode() for name, digest in cell.problem.files}
    loaded, template = restore_problem(texts), None
    if name := cell.problem.template:
        template = template_of(texts[name], name.removeprefix(TEMPLATE), loaded.definition, texts)
    return runs.begin_run(runs.RunInput(loaded, template), config, path, listener)


def cell_config(plan: FleetPlan, cell: FleetCell, order: CellOrder) -> RunConfig:
    """As `tune` would have it, for one place of the cell's device."""
    flags: dict[str, object] = {**dict(plan.settings), **dict(cell.author.settings), "wait": False}
    if model := flags.get("model"):
        from tunesmith.agents.models import move_model_folders

        flags["model"] = move_model_folders(str(model), cell.name)
    flags |= {"backend": cell.device.backend or None, "device": cell.device.device or None}
    if order.on_ray:
        flags |= {"ray": "", "workers": ""}  # it is where it is to work
    if cell.device.hosts:
        path = Path(order.fleet) / HOSTS / order.place
        digest = dict(cell.device.hosts).get(order.place, "")
        if not RunFolder(Path(order.fleet)).holds(f"{HOSTS}/{order.place}", digest):
            fault = "a fleet's copy of a hosts file is not what was planned"
            raise BadInput(fault, where=str(path), hint="name the fleet's plan again")
        flags["workers"] = str(path)
    return resolve_config(flags)


# -- the process ----------------------------------------------------------------------------------------


def _stop_watch(fleet: Path, source: BinaryIO) -> Callable[[], bool]:
    """Whether it is asked to stop, or its input has ended."""
    has_ended = threading.Event()

    def watch() -> None:
        while source.read(1024):
            pass
        has_ended.set()

    threading.Thread(target=watch, daemon=True).start()
    return lambda: has_ended.is_set() or (fleet / STOP).exists()


def run_cell_process() -> None:
    end_when_asked()
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    if not (first := source.readline()).endswith(b"\n"):
        return
    order = decode_json(first, CellOrder)
    try:
        plan, cells = stored_plan(Path(order.fleet))
        run_cell(plan, cells[order.cell], order, _stop_watch(Path(order.fleet), source))
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)


if __name__ == "__main__":
    run_cell_process()
