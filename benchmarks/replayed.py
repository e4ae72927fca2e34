"""A search over what an exhaustive run has recorded: loop and searcher are real, times are looked up.

Profiles are made here: kernels are built for the recorded device, which need not be here.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith.base.codec import decode_json
from tunesmith.lab.profile import Profiler, ProfileSubject
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Ceilings
from tunesmith.run.events import (
    Baseline,
    Event,
    Extended,
    Profiled,
    Recorded,
    Served,
    Settings,
    Surveyed,
    Verified,
)
from tunesmith.run.journal import decode_record
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.ports import Delivery, Power, SizedCall, Tried
from tunesmith.run.scores import score_configs
from tunesmith.run.state import State, fold_records
from tunesmith.session.problems import load_problem, load_template
from tunesmith.space.configset import Config

EXAMPLES = Path(__file__).parents[1] / "examples" / "cuda"
Profiles = dict[tuple[Config | None, str], Profiled]


class Reached(Exception):
    """The search has found what it is timed by."""


@dataclass(frozen=True)
class Run:
    """An exhaustive run, as its journal tells it; template and problem as they are today."""

    name: str
    problem: Problem
    template: Template
    state: State
    ceilings: Ceilings
    tried: dict[Config, Tried]

    @property
    def device(self) -> Device:
        return self.state.device

    @property
    def best(self) -> float:
        return max(t.score for t in self.tried.values() if t.score is not None)

    def close(self, config: Config, within: float) -> bool:
        score = self.tried[config].score
        return score is not None and score >= self.best - within


def read_run(folder: Path, examples: Path = EXAMPLES) -> Run:
    """FOLDER/journal.jsonl, and the ceilings from FOLDER.profile.json, as `tunesmith profile --json` says."""
    problem, files = load_problem(examples / folder.name)
    template = load_template(examples / folder.name / "template.cu", problem, files)
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    state = fold_records(decode_record(line) for line in lines)
    page = json.loads(folder.with_name(f"{folder.name}.profile.json").read_text("utf-8"))
    ceilings = decode_json(json.dumps(page["ceilings"]).encode(), Ceilings)
    tried = {t.config: t for t in score_configs(problem, state)}
    return Run(folder.name, problem, template, state, ceilings, tried)


def profiled(run: Run, profiler: Profiler, known: Profiles, config: Config | None, workload: str) -> Profiled:
    """As the lab does it for a search: by build, launch, ceilings and the recorded time."""
    if (config, workload) not in known:
        outcomes = [o for o in run.state.searched if o.trial.config == config]
        assert run.state.baseline is not None
        result = (outcomes[0] if outcomes else run.state.baseline.outcome).result(workload)
        assert result is not None
        assert result.timing is not None
        subject = ProfileSubject(run.template if config is not None else None, config)
        looked = profiler.known(subject, run.problem.workload(workload), result.timing.seconds)
        known[config, workload] = Profiled(config, workload, diagnose_profile(looked.profile), looked.notes)
    return known[config, workload]


@dataclass
class RecordedLab:
    """Everything was measured once: builds and outcomes are the recorded ones, in the order asked for."""

    run: Run
    profiler: Profiler
    known: Profiles
    within: float
    asked: list[Config] = field(default_factory=list)
    _queue: deque[Trial] = field(default_factory=deque)
    _building: deque[Trial] = field(default_factory=deque)
    _sentinels: int = 0

    def __post_init__(self) -> None:
        self._outcomes = {o.trial.config: o for o in self.run.state.searched}
        self._surveyed = {s.config: s for s in self.run.state.surveyed}

    def baseline(self) -> Baseline:
        assert self.run.state.baseline is not None
        return self.run.state.baseline

    def extend(self, wanted: Extended) -> Extended:
        raise AssertionError("no tester was there")

    def admit(self, template: Template) -> None: ...

    def build(self, trial: Trial) -> None:
        self._building.append(trial)

    def built(self) -> Surveyed:
        return self._surveyed[self._building.popleft().config]

    def drop_builds(self) -> None:
        self._building.clear()

    def changed(self) -> None: ...

    def leave_out(self, _device: str) -> None: ...

    def submit(self, trial: Trial, device: str = "") -> None:
        self._queue.append(trial)

    def collect(self) -> Outcome:
        trial = self._queue.popleft()
        if trial.purpose == "finalist":
            raise Reached("the search ended by itself")
        if trial.config is None:
            own = [o for o in self.run.state.outcomes if o.trial.purpose == "sentinel"]
            self._sentinels += 1
            return replace(own[self._sentinels % len(own)], trial=trial)
        self.asked.append(trial.config)
        if self.run.close(trial.config, self.within):
            raise Reached
        return replace(self._outcomes[trial.config], trial=trial)

    def profile(self, config: Config | None, workload: str, seconds: float) -> Profiled:
        return profiled(self.run, self.profiler, self.known, config, workload)

    def verify(self, trial: Trial, _later: Sequence[Trial] = ()) -> Verified:
        raise Reached("the search ended by itself")

    @property
    def lacks(self) -> dict[Power, str]:
        return {"serve": "recorded times are of workloads alone"}

    def serve(self, _delivery: Delivery, _calls: Sequence[SizedCall]) -> Served:
        raise Reached("the search ended by itself")

    def close(self) -> None: ...


class MemoryJournal:
    def __init__(self, run: Run, settings: Settings) -> None:
        assert run.state.started is not None
        self.records = [Recorded(0, 0.0, replace(run.state.started, settings=settings))]

    def read(self) -> Iterator[Recorded]:
        return iter(list(self.records))

    def append(self, event: Event) -> Recorded:
        self.records.append(Recorded(len(self.records), 0.0, event))
        return self.records[-1]


class NoTexts:
    """Nobody writes templates here."""

    def put(self, text: str) -> str:
        raise AssertionError("no template is written")

    def get(self, digest: str) -> str:
        raise AssertionError("no template is written")


class Silence:
    def event(self, record: Recorded, state: State) -> None: ...
    def note(self, text: str) -> None: ...
    def say(self, text: str) -> None: ...
