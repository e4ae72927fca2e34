"""Where a run stands, for whoever looks on: what it is doing, how far it is, and what is still to come."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tunesmith.base.text import first_line, format_count
from tunesmith.run import budget
from tunesmith.run.figures import best_so_far
from tunesmith.run.outcome import Trial
from tunesmith.run.scores import BestTried
from tunesmith.run.state import State
from tunesmith.run.talk import is_stopping

LEAST = 4  # evaluations from which on their rate says something
MAX_QUEUED = 6  # that are named


@dataclass(frozen=True)
class FloorDistance:
    """How many times its floor the best so far takes at a workload, by short measurements."""

    workload: str
    microseconds: float
    floor: float | None = None  # microseconds; None: not known

    @property
    def times(self) -> float | None:
        return self.microseconds / self.floor if self.floor else None


@dataclass(frozen=True)
class RunProgress:
    phase: str  # in a few words
    doing: str = ""  # what is at the device now
    done: int = 0
    of: int | None = None  # None: nobody knows
    beside: int = 0  # evaluations by the gate before, while others are counted; no budget has them
    failed: int = 0
    best: float | None = None  # speed-up, by short measurements
    best_config: str = ""
    queue: tuple[str, ...] = ()  # what comes after it, the first of it
    queued: int = 0
    building: int = 0
    floors: tuple[FloorDistance, ...] = ()
    budgets: tuple[budget.BudgetUse, ...] = ()
    seconds: float = 0.0  # that the run has been active
    left: float | None = None  # seconds of searching still to come, about; None: nobody knows
    ended: bool = False
    stopping: bool = False
    devices: int = 0  # that measure, where there are several,
    left_out: int = 0  # and that were to, and do not


def current_standing(state: State, since: float = 0.0) -> RunProgress:
    """`since`: seconds since its last event."""
    if state.started is None:
        return RunProgress("starting")
    best, statuses = best_so_far(state), state.statuses()
    done, of = _phase_progress(state)
    trials = [_trial_label(trial) for trial in state.in_flight]
    return RunProgress(
        phase=_phase_words(state),
        doing=trials[0] if trials else "",
        done=done,
        of=of,
        beside=0 if state.draft is not None or budget.is_finishing(state) else budget.beside_budget(state),
        failed=statuses.total() - statuses["ok"],
        best=best.speedup if best else None,
        best_config=best.config.label if best else "",
        queue=tuple(trials[1 : MAX_QUEUED + 1]),
        queued=max(0, len(trials) - 1),
        building=len(state.building) if state.searching else 0,
        floors=_floor_distances(state, best),
        budgets=budget.budget_uses(state),
        seconds=state.elapsed + since,
        left=_remaining_seconds(state, since),
        ended=state.stopped is not None,
        stopping=bool(state.instructed) and is_stopping(state),
        devices=len(state.devices),
        left_out=len(state.enlisted.devices) - len(state.devices) if state.enlisted else 0,
    )


def _trial_label(trial: Trial) -> str:
    name = "the original, to see whether the device is steady" if trial.config is None else trial.config.label
    words = {"gate": "gate: ", "finalist": "finalist: "}
    return f"{words.get(trial.purpose, '')}{name}"


def _phase_words(state: State) -> str:
    word = budget.candidate_noun(state.settings)
    decision = state.under_way.decision if state.under_way is not None else None
    if state.stopped is not None:
        return f"ended: {first_line(state.stopped.reason)}"
    if (open_ := state.open_request) is not None:
        return f"waiting for the {open_.request.role}'s reply to request {open_.request.number}"
    if state.baseline is None and state.device.absent:
        return "building, without the device"
    if state.baseline is None:
        return "checking and timing the original"
    if decision is None:
        return "checking the best so far" if state.in_flight else "deciding what comes next"
    if decision == "refactor":
        return f"gate: checking {word} {state.draft.id}" if state.draft else f"writing a {word}"
    if decision == "finish":
        if state.in_flight or not state.asked.count("finalist"):
            return "racing finalists"
        return "calling what is delivered" if state.served else "verifying the winners in fresh processes"
    candidate = state.under_way.candidate if state.under_way is not None else ""
    if budget.is_concrete(state):
        return f"timing {word} {candidate}"
    return f"searching template {candidate}" if candidate else "searching"


def _phase_progress(state: State) -> tuple[int, int | None]:
    """Of the phase: what is done, and of how many."""
    if state.draft is not None:  # what the gate asks next follows from what it has found
        return len(state.gated(state.draft.id)), None
    if budget.is_finishing(state):
        return len(state.finalists()), state.asked.count("finalist") or None
    done = state.statuses().total() - budget.beside_budget(state)
    limit = state.settings.evals
    given = bool(state.candidates) and state.candidates[-1].drafted is None
    feasible = state.admitted.feasible if state.admitted and given else None
    return done, min((n for n in (limit, feasible) if n is not None), default=None)


def _floor_distances(state: State, best: BestTried | None) -> tuple[FloorDistance, ...]:
    if state.baseline is None:
        return ()
    known = {p.workload: p.diagnosis.floor for p in state.profiled if p.config is None and p.diagnosis}
    found = []
    for result in state.baseline.outcome.results:
        if result.timing is not None:
            gain = best.at.get(result.workload, 1.0) if best and best.speedup > 1 else 1.0
            floor = known.get(result.workload)
            times = (result.timing.seconds * 1e6 / gain, floor * 1e6 if floor else None)
            found.append(FloorDistance(result.workload, *times))
    return tuple(found)


def _remaining_seconds(state: State, since: float) -> float | None:
    """By every budget that has a limit, at the rate so far; the first that is used up counts."""
    if not state.searching or state.baseline is None:
        return None
    limits, active = state.settings, max(1e-9, state.worked + since - state.attached_at)
    measured = len(state.searched) - budget.beside_budget(state)
    answered = budget.count_evaluations(state) - len(state.in_flight)
    found = []
    if limits.seconds is not None:
        found.append(limits.seconds - active)
    if measured >= LEAST:
        is_given = bool(state.candidates) and state.candidates[-1].drafted is None
        feasible = state.admitted.feasible if state.admitted is not None and is_given else None
        rate = measured / active
        found += [(count - answered) / rate for count in (limits.evals, feasible) if count is not None]
        if limits.device_seconds is not None and state.device_seconds > 0:
            found.append((limits.device_seconds - state.device_seconds) * active / state.device_seconds)
    return max(0.0, min(found)) if found else None


def clock_text(seconds: float) -> str:
    """`1:05`, `2:10:00`."""
    whole = max(0, math.floor(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def left_text(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def done_text(now: RunProgress) -> str:
    of = f" of {now.of}" if now.of is not None else ""
    beside = f", and {format_count(now.beside, 'evaluation')} by the gate" if now.beside else ""
    return f"{now.done}{of}{beside}{f', {now.failed} failed' if now.failed else ''}"


def budget_text(use: budget.BudgetUse) -> str:
    """`evaluations 12 of 40`."""
    name = use.what.replace("_", " ")
    number = use.used if use.used is None or "seconds" not in use.what else round(use.used, 1)
    used = "unknown" if number is None else f"{'about ' if use.by_length else ''}{number:g}"
    return f"{name} {used}{f' of {use.limit:g}' if use.limit is not None else ''}"


def floor_text(one: FloorDistance) -> str:
    if one.times is None:
        return f"{one.workload} {one.microseconds:.1f} µs, floor not known"
    return f"{one.workload} {one.microseconds:.1f} µs, {one.times:.2f} × its floor of {one.floor:.1f} µs"
