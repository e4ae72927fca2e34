"""What the folder of a finished run tells: seconds by phase, the device's share, scores and winners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.events import (
    Admitted,
    Asked,
    Baseline,
    Decided,
    Measured,
    Pruned,
    Recorded,
    Searched,
    Served,
    Stopped,
    Surveyed,
    Verified,
)
from tunesmith.run.folder import RunFolder
from tunesmith.run.outcome import Outcome, Result
from tunesmith.run.race import Winners, verified_choice
from tunesmith.run.scores import SpeedupScale, overall_score
from tunesmith.run.state import State, fold_records
from tunesmith.session.problems import reload_problem
from tunesmith.space.configset import Config

PHASES = ("original", "search", "finalists", "verification")


@dataclass(frozen=True)
class Run:
    folder: Path
    problem: Problem
    given: Template | None  # None: the run wrote its own
    records: tuple[Recorded, ...]
    state: State

    @property
    def template(self) -> Template:
        if self.given is None:
            raise SystemExit(f"{self.folder} is a run without a template that was given to it")
        return self.given

    @property
    def choice(self) -> Winners:
        return verified_choice(self.problem, self.state)


def read_run(path: Path) -> Run:
    folder = RunFolder.open(path)
    records = tuple(folder.journal().read())
    state = fold_records(records)
    problem, template = reload_problem(folder, state.started)
    return Run(path, problem, template, records, state)


def seconds_by_phase(records: Iterable[Recorded]) -> dict[str, float]:
    """The seconds before an event belong to the phase that the event is the work of.

    `original`: checked in full and timed. `search`: builds, smoke checks, short timings. `finalists`: full
    checks and long timings. `verification`: fresh processes, at other sizes too. What came before the first
    event, which is the start of the program and the choice of device and compiler, is in none of them.
    """
    spent = dict.fromkeys(PHASES, 0.0)
    last = 0.0
    for record in records:
        phase = _phase(record)
        if phase is not None:
            spent[phase] += record.at - last
        last = record.at
    return {name: round(seconds, 3) for name, seconds in spent.items()}


def _phase(record: Recorded) -> str | None:
    match record.event:
        case Baseline():
            return "original"
        case Asked(trials) if trials[0].purpose == "finalist":
            return "finalists"
        case Measured(outcome) if outcome.trial.purpose == "finalist":
            return "finalists"
        case Admitted() | Decided() | Asked() | Surveyed() | Pruned() | Measured() | Searched():
            return "search"
        case Verified() | Served() | Stopped():
            return "verification"
        case _:
            return None


def busy_share(run: Run) -> float:
    """Of the search's seconds, how much the device spent in chains that were timed and in checks."""
    searching = seconds_by_phase(run.records)["search"]
    busy = sum(o.busy for o in run.state.outcomes if o.trial.purpose != "finalist")
    return busy / searching if searching else 0.0


def tried(run: Run) -> int:
    return len(run.state.searched)


def timed_pairs(run: Run) -> int:
    """(configuration, workload) pairs that were built, checked and timed."""
    return sum(r.ok for o in run.state.searched for r in o.results)


def statuses(run: Run) -> dict[str, int]:
    return dict(Counter(str(o.status) for o in run.state.searched).most_common())


def search_speedups(runs: Iterable[Run]) -> dict[str, dict[Config, float]]:
    """By workload: the best short measurement of every configuration in any of the runs, as a speed-up."""
    found: dict[str, dict[Config, float]] = {}
    for run in runs:
        yardstick = SpeedupScale(run.state)
        for outcome in run.state.searched:
            for workload, speedup in yardstick.speedups(outcome).items():
                here = found.setdefault(workload, {})
                if outcome.trial.config is not None:
                    here[outcome.trial.config] = max(speedup, here.get(outcome.trial.config, 0.0))
    return found


def general_scores(runs: Iterable[Run]) -> dict[Config, float]:
    """The same over all workloads at once: the logarithm of the weighted geometric mean."""
    found: dict[Config, float] = {}
    for run in runs:
        yardstick = SpeedupScale(run.state)
        for outcome in run.state.searched:
            config, value = outcome.trial.config, overall_score(run.problem, yardstick.speedups(outcome))
            if config is not None and value is not None and all(r.ok for r in outcome.results):
                found[config] = max(value, found.get(config, value))
    return found


def verdicts(run: Run) -> dict[Config, Result]:
    """For every configuration its first failure, in the search or after it; else a result that is ok."""
    found = {s.config: s.refused[0] for s in run.state.unable if s.config is not None}
    for outcome in (*run.state.outcomes, *(v.outcome for v in run.state.verified)):
        config = outcome.trial.config
        if config is None or not outcome.results:
            continue
        known = found.get(config)
        if known is None or known.ok:
            found[config] = next(_failed(outcome), outcome.results[0])
    return found


def _failed(outcome: Outcome) -> Iterator[Result]:
    return (r for r in outcome.results if not r.ok)


def as_dict(config: Config | None) -> dict[str, int] | None:
    return config.as_dict() if config is not None else None


def winners(run: Run) -> dict[str, Any]:
    """The general configuration and what the dispatch serves at each workload; None is the original."""
    choice = run.choice
    return {
        "general": as_dict(choice.general),
        "workloads": {pick.workload: as_dict(pick.config) for pick in choice.picks},
    }


def summary(run: Run, wall: float) -> dict[str, Any]:
    """A run in figures; `wall` is what the whole command took, start and delivery included."""
    phases = seconds_by_phase(run.records)
    last = run.records[-1].at if run.records else 0.0
    device = run.state.device
    return {
        "device": device.name,
        "driver": device.driver,
        "compiler": run.state.compiler,
        "wall_s": round(wall, 3),
        "seconds": {"start": round(max(0.0, wall - last), 3), **phases},
        "busy_share": round(busy_share(run), 4),
        "tried": tried(run),
        "timed_pairs": timed_pairs(run),
        "statuses": statuses(run),
        "winners": winners(run),
    }
