"""One cell of a fleet, in a process of its own: its run, begun or taken up, as far as its share goes.

The process is told what to do on its first line, says how it gets on in lines of JSON, and ends after the
batch under way when its input ends: whoever started it asks so, or is gone.
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

from tunesmith.deliver.fleet import VerifiedCell
from tunesmith.errors import BadInput, DeviceMissing, Interrupted, TunesmithError, WaitingForModel, bug_text
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.budget import evaluations
from tunesmith.run.config import RunConfig, debugging, resolve
from tunesmith.run.events import Recorded
from tunesmith.run.files import is_locked, read_plain, write_whole
from tunesmith.run.inbox import FolderInbox
from tunesmith.run.standing import standing
from tunesmith.run.state import State
from tunesmith.run.store import CERTIFICATE, LOCK, RunFolder, begun
from tunesmith.session import runs
from tunesmith.session.fleet.plans import FleetCell, FleetPlan
from tunesmith.session.fleet.record import CellStanding, FleetJournal, How, Then, fold
from tunesmith.session.interrupts import end_when_asked
from tunesmith.session.problems import TEMPLATE, refuse_broken, restore, state_and_templates, template_of
from tunesmith.session.run_result import Run, as_it_stands
from tunesmith.text import cut, flat

OUTCOMES, HOSTS, RUNS = "outcomes", "hosts", "runs"  # folders of a fleet
NEWS_EVERY = 0.5  # seconds between two lines
LONGEST_REASON = 2000
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


@dataclass(frozen=True)
class CellNews:
    """One line of what the process of a cell says."""

    device_seconds: float = 0.0
    evaluations: int = 0
    best: float | None = None


@dataclass(frozen=True)
class CellOutcome:
    """How a session of a cell ended: a file in the fleet's folder."""

    how: How
    standing: CellStanding
    reason: str = ""
    code: int = 0
    until: float = 0.0  # by its order


def run_path(folder: Path, cell: str) -> Path:
    return folder / RUNS / cell


def outcome_path(folder: Path, cell: str) -> Path:
    return folder / OUTCOMES / f"{cell}.json"


def read_outcome(folder: Path, cell: str) -> CellOutcome | None:
    """None: its process was killed before it could say anything."""
    try:
        return decode(read_plain(outcome_path(folder, cell)), CellOutcome)
    except (OSError, Malformed):
        return None


def last_standing(folder: Path, cell: str) -> CellStanding:
    """As the fleet's journal has it, where the run's own cannot be read."""
    return fold(FleetJournal(folder).read()).of(cell).standing


def standing_of(path: Path) -> CellStanding:
    """By the journal of its run alone."""
    if not begun(path):
        return CellStanding()
    folder = RunFolder.open(path)
    state, _ = state_and_templates(folder)
    refuse_broken(state, path)
    now = standing(state)
    floors = [floor.times for floor in now.floors]
    known = [math.log(times) for times in floors if times is not None and times > 0]
    told = state.stopped is not None and (path / CERTIFICATE).exists()
    return CellStanding(
        device_seconds=round(state.device_seconds, 6),
        seconds=state.elapsed,
        evaluations=evaluations(state),
        best=max(1.0, now.best or 1.0),
        expected=next((gain for gain in reversed(state.gains) if gain is not None), None),
        headroom=sum(known) / len(known) if known and len(known) == len(floors) else None,
        verified=VerifiedCell.of(as_it_stands(folder).result) if told else None,
    )


def config_of(plan: FleetPlan, cell: FleetCell, folder: Path, place: str) -> RunConfig:
    """As `tune` would have it, for one place of the cell's device."""
    flags: dict[str, object] = {**dict(plan.settings), **dict(cell.author.settings), "wait": False}
    if model := flags.get("model"):
        from tunesmith.models import placed

        flags["model"] = placed(str(model), cell.name)
    own = {"backend": cell.device.backend, "device": cell.device.device}
    flags |= {name: value for name, value in own.items() if value}
    if cell.device.hosts:
        if not RunFolder(folder).holds(f"{HOSTS}/{place}", dict(cell.device.hosts).get(place, "")):
            fault = "a fleet's copy of a hosts file is not what was planned"
            raise BadInput(fault, where=str(folder / HOSTS / place), hint="name the fleet's plan again")
        flags["workers"] = str(folder / HOSTS / place)
    return resolve(flags)


@dataclass
class CellListener:
    """Ends the run when its share is used up, or when it is asked to."""

    path: Path
    order: CellOrder
    tell: Callable[[CellNews], None]
    is_asked: Callable[[], bool]
    _given: set[str] = field(default_factory=set)
    _told: float = -math.inf

    def event(self, record: Recorded, state: State) -> None:
        del record
        finishing = bool(state.decided) and state.decided[-1].decision == "finish"
        if state.device_seconds >= self.order.until and not finishing:
            self.instruct(self.order.then)
        if self.is_asked():
            self.instruct("stop")
        if time.monotonic() - self._told >= NEWS_EVERY:
            self._told = time.monotonic()
            self.tell(CellNews(state.device_seconds, evaluations(state), standing(state).best))

    def note(self, text: str) -> None:
        """Nobody looks at what is true only for now."""

    def say(self, text: str) -> None:
        sys.stderr.write(f"{flat(text)}\n")  # which is the cell's log
        sys.stderr.flush()

    def instruct(self, what: Then) -> None:
        if what not in self._given:
            self._given.add(what)
            FolderInbox(self.path).put(what)


def run_cell(
    plan: FleetPlan,
    cell: FleetCell,
    order: CellOrder,
    tell: Callable[[CellNews], None] = lambda _news: None,
    is_asked: Callable[[], bool] = lambda: False,
) -> CellOutcome:
    """As far as its share goes; how that ended is on disk when it returns."""
    folder = Path(order.fleet)
    path = run_path(folder, cell.name)
    how: How
    how, reason, code = "paused", "", 0
    if not is_asked():
        how, reason, code = _session(plan, cell, order, CellListener(path, order, tell, is_asked))
    try:
        known = standing_of(path)
    except TunesmithError as error:
        how, reason, code, known = "failed", str(error), error.exit_code, last_standing(folder, cell.name)
    if how == "finished" and known.verified is None:
        how, reason, code = "failed", reason or "its journal does not carry what it found", 2
    outcome = CellOutcome(how, known, cut(flat(reason), LONGEST_REASON), code, order.until)
    write_whole(outcome_path(folder, cell.name), encode(outcome))
    return outcome


def _session(
    plan: FleetPlan, cell: FleetCell, order: CellOrder, listener: CellListener
) -> tuple[How, str, int]:
    how: How
    if is_locked(listener.path / LOCK):
        return "lost", "another process is at work in its run", 1
    try:
        run = _run(plan, cell, order, listener)
    except KeyboardInterrupt:  # also the run's own: it was asked to stop, and nothing is lost
        return "paused", "", 0
    except TunesmithError as error:
        # What is nobody's fault that we know of may be the machine's: that is tried again, elsewhere.
        how = next((how for kind, how in _HOWS if isinstance(error, kind)), "lost")
        return "failed" if error.exit_code == 3 else how, _told(error), error.exit_code
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return "failed", f"{name}{error.strerror or error}", 2
    except Exception as error:
        if debugging():
            raise
        return "failed", f"a bug in Tunesmith: {bug_text(error)}", 1
    if run.missing is not None:
        how = next(how for kind, how in _HOWS if isinstance(run.missing, kind))
        return how, _told(run.missing), run.missing.exit_code
    return "finished", run.result.reason, 0


def _told(error: TunesmithError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)


def _run(plan: FleetPlan, cell: FleetCell, order: CellOrder, listener: CellListener) -> Run:
    folder, path = Path(order.fleet), listener.path
    config = config_of(plan, cell, folder, order.place)
    if begun(path):
        if order.then == "finish" and standing_of(path).device_seconds >= order.until:
            listener.instruct("finish")
        return runs.resume(path, config, listener)
    stored = RunFolder(folder)
    texts = {name: stored.get(digest).decode() for name, digest in cell.problem.files}
    loaded, template = restore(texts), None
    if own := cell.problem.template:
        template = template_of(texts[own], own.removeprefix(TEMPLATE), loaded.definition, texts)
    return runs.begin(runs.RunInput(loaded, template), config, path, listener)


# -- the process ----------------------------------------------------------------------------------------


def _told_to_stop(source: BinaryIO) -> Callable[[], bool]:
    """Whether the input has ended."""
    ended = threading.Event()

    def watch() -> None:
        while source.read(1024):
            pass
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    return ended.is_set


def main() -> None:
    from tunesmith.session.fleet.planning import stored_plan

    # What anybody else prints in this process goes where errors go.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    end_when_asked()
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    first = b""
    while not first.endswith(b"\n"):
        if not (piece := source.read(1)):
            return
        first += piece
    order = decode(first, CellOrder)
    is_asked = _told_to_stop(source)

    def tell(news: CellNews) -> None:
        try:
            out.write(encode(news) + b"\n")
            out.flush()
        except OSError:  # whoever listened is gone, and so is our input
            return

    try:
        plan, cells = stored_plan(Path(order.fleet))
        run_cell(plan, cells[order.cell], order, tell, is_asked)
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)


if __name__ == "__main__":
    main()
