"""The head of a fleet: starts cells as the budget is dealt, writes down what happens, stops all as one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.deliver import fleet_page
from tunesmith.deliver.fleet import FleetResult, FleetRow
from tunesmith.problem.codec import encode
from tunesmith.run.ports import Listener
from tunesmith.run.store import RunFolder
from tunesmith.session.fleet.cell import RUNS, CellNews, CellOutcome
from tunesmith.session.fleet.dealing import funded, next_start
from tunesmith.session.fleet.plans import HOUR, FleetCell, FleetPlan, FleetSlot, slots_of
from tunesmith.session.fleet.processes import CellRunner
from tunesmith.session.fleet.record import (
    CellBegan,
    CellEnded,
    FleetEvent,
    FleetJournal,
    FleetState,
    HeadBegan,
    apply,
)
from tunesmith.session.interrupts import counted_requests
from tunesmith.text import counted, cut, ratio_text

STOP = "stop"  # a file in the fleet's folder: whoever wants it to end after the batches under way
LOOK = 0.5  # seconds between two looks for it
WRITE_EVERY = 30.0  # seconds between two versions of the page


@dataclass
class FleetHead:
    """For one process. The journal is read by then, and its folder is ours."""

    folder: RunFolder
    plan: FleetPlan
    cells: Mapping[str, FleetCell]
    runner: CellRunner
    journal: FleetJournal
    state: FleetState
    listener: Listener
    clock: Callable[[], float] = time.time
    write_every: float = WRITE_EVERY
    _stopping: bool = False
    _at_once: bool = False
    _noted: str = ""
    _written: float = 0.0
    _changed: bool = True
    _notes: list[str] = field(default_factory=list)

    def run(self) -> FleetResult:
        """Until nothing is left that can be done here, or it is asked to stop."""
        earlier = {name for name, cell in self.state.cells.items() if cell.began is not None}
        self._append(HeadBegan(self.plan.hours))
        (self.folder.path / STOP).unlink(missing_ok=True)
        with counted_requests() as asked:
            while self._step(earlier):
                if asked():
                    self._stop("asked to stop", "again ")
                if asked() > 1 and not self._at_once:
                    self._at_once = True
                    self.listener.say("ending at once; what is under way is measured again when it goes on")
                    self.runner.close()
        return self._write()

    def _step(self, earlier: set[str]) -> bool:
        """Whether anything is left to wait for."""
        for cell, outcome in self.runner.ended(LOOK if self._at_work() else 0.0):
            self._end(cell, outcome)
        for cell in sorted(earlier):
            began = self.state.of(cell).began
            left = self.runner.left(began) if began is not None else None
            if left is not None:
                earlier.discard(cell)
                self._end(cell, left)
        if (self.folder.path / STOP).exists():
            self._stop("asked to stop by the file of that name in its folder", "twice ")
        while not self._stopping and (start := self._next(self.clock())) is not None:
            self._begin(*start)
        self._note(progress_line(self.plan, self.state, self.runner.news()))
        if self._changed and self.clock() - self._written >= self.write_every:
            self._write()
        return self._at_work() or self._waits()

    def _next(self, now: float) -> tuple[FleetSlot, CellBegan] | None:
        every = [slot for slot in slots_of(self.plan) if not self.state.is_resting(slot.name, now)]
        taken = {cell.began.slot for cell in self.state.cells.values() if cell.began is not None}
        free = [slot for slot in every if slot.name not in taken]
        return next_start(self.state, self._cells, free, every)

    def _waits(self) -> bool:
        """Whether something could begin once a slot has rested. Whoever waits is told for what."""
        rests = [until for slot in slots_of(self.plan) if (until := self._rest(slot)) < math.inf]
        if self._stopping or not rests or self._next(max(rests)) is None:
            return False
        self._note(f"waiting for a device that was lost, {counted(len(rests), 'slot')} in all")
        self.runner.ended(LOOK)
        return True

    def _note(self, text: str) -> None:
        """What nobody has said just now."""
        if text != self._noted:
            self._noted = text
            self.listener.note(text)

    def _rest(self, slot: FleetSlot) -> float:
        return self.state.rests_until(slot.name) or math.inf

    @property
    def _cells(self) -> list[FleetCell]:
        return list(self.cells.values())

    def _at_work(self) -> bool:
        return any(cell.began is not None for cell in self.state.cells.values())

    def _begin(self, slot: FleetSlot, began: CellBegan) -> None:
        own = self.state.of(began.cell).standing
        self._append(began)
        share = began.until - own.device_seconds
        what = f"{share:.1f} device-seconds" if began.then == "stop" else "race and verification"
        self.listener.say(f"{began.cell}: {what}, on {slot.name}")
        self.runner.start(slot, began)

    def _end(self, cell: str, outcome: CellOutcome) -> None:
        before = self.state.of(cell)
        slot = before.began.slot if before.began is not None else ""
        own = (outcome.how, outcome.standing, outcome.reason, outcome.code, self._stopping, self.clock())
        rested = self.state.rests_until(slot)
        self._append(CellEnded(cell, slot, *own))
        self.listener.say(ended_line(cell, self.state, outcome))
        if (until := self.state.rests_until(slot)) > rested:
            lost = counted(self.state.slots[slot].count, "loss", "losses")
            rest = "is left out" if until == math.inf else f"rests for {until - self.clock():.0f} s"
            words = f"{slot} {rest}: {lost} in a row"
            self._notes.append(words)
            self.listener.say(words)

    def _stop(self, why: str, more: str = "") -> None:
        """`more` is what a signal then is: the first may have been one."""
        if not self._stopping:
            self._stopping = True
            self._notes.append(why)
            if self._at_work():
                self.listener.say(f"{why}: waiting for the batches under way; Ctrl-C {more}ends at once")
            self.runner.stop()

    def _append(self, event: FleetEvent) -> None:
        self.journal.append(event)
        self.state = apply(self.state, event)
        self._changed = True

    def _write(self) -> FleetResult:
        self._written, self._changed = self.clock(), False
        found = result_of(self.folder.path, self.plan, self.cells, self.state, tuple(self._notes))
        write_result(self.folder, found)
        return found

    @property
    def is_stopped(self) -> bool:
        return self._stopping


def progress_line(plan: FleetPlan, state: FleetState, news: Mapping[str, CellNews]) -> str:
    """Of what is at work by what it said last."""
    finished = sum(cell.status == "finished" for cell in state.cells.values())
    known = (state.of(name).standing.device_seconds for name in news)
    ahead = sum(max(0.0, n.device_seconds - had) for n, had in zip(news.values(), known, strict=True))
    count = len(plan.problems) * len(plan.devices) * len(plan.authors)
    hours = f"{(state.spent + ahead) / HOUR:.3g} of {state.hours:g} device hours"
    return f"{finished} of {count} finished, {len(news)} at work, {hours}"


def ended_line(cell: str, state: FleetState, outcome: CellOutcome) -> str:
    known = outcome.standing
    if outcome.how == "finished" and known.verified is not None:
        figure = known.verified.figure
        return f"{cell}: finished, {figure.words} verified ({figure.span})"
    if outcome.how == "paused":
        tried = counted(known.evaluations, "evaluation")
        return f"{cell}: paused at {ratio_text(known.best)} by the search, {tried}"
    again = "; it goes on later" if state.of(cell).is_ready else ""
    return f"{cell}: {outcome.how}: {cut(outcome.reason, 300)}{again}"


# -- what it has come to ------------------------------------------------------------------------------------


def result_of(
    path: Path,
    plan: FleetPlan,
    cells: Mapping[str, FleetCell],
    state: FleetState,
    notes: tuple[str, ...] = (),
) -> FleetResult:
    rows, paid = [], {share.cell.name for share in funded(state, list(cells.values()))}
    for name, cell in cells.items():
        own = state.of(name)
        known, reason = own.standing, own.reason
        if own.status == "not begun" and state.heads and name not in paid:
            reason = "the budget does not reach it"
        figures = (known.device_seconds, known.seconds, known.evaluations, known.best)
        about = (cell.problem.folder, cell.device.name, cell.author.name, own.status, cell.weight)
        rows.append(FleetRow(*about, *figures, f"{RUNS}/{name}", known.verified, reason, own.code))
    return FleetResult(path.resolve().name, state.hours or plan.hours, tuple(rows), notes)


def write_result(folder: RunFolder, found: FleetResult) -> None:
    folder.write(fleet_page.HTML, fleet_page.fleet_html(found).encode())
    folder.write(fleet_page.MARKDOWN, fleet_page.fleet_markdown(found).encode())
    folder.write(fleet_page.DATA, encode(found) + b"\n")
