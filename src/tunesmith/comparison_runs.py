"""The runs of a comparison: each goes as far as it can, and what stops one does not stop the others."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith import casting, runs
from tunesmith.config import RunConfig, debugging
from tunesmith.core import comparing
from tunesmith.core.compared import ComparisonResult, compare
from tunesmith.core.comparing import ARMS, ComparisonPlan, Planned, RunFacts, RunResult
from tunesmith.core.counted import counted
from tunesmith.core.errors import (
    BadInput,
    DeviceMissing,
    Interrupted,
    TunesmithError,
    WaitingForModel,
    bug_text,
)
from tunesmith.core.ports import Listener
from tunesmith.core.state import State, fold
from tunesmith.deliver.comparison import (
    DATA,
    MARKDOWN,
    PLOTS,
    RUNS,
    comparison_json,
    comparison_markdown,
    comparison_plots,
)
from tunesmith.models.mailbox import near_miss
from tunesmith.models.names import alone, placed
from tunesmith.problems import restore, templates_of
from tunesmith.starting import Subject, begin
from tunesmith.store import RunFolder, begun

PROMPTS = "prompts"
POLL = 0.5  # seconds between two looks for replies
REMIND = 60.0  # seconds after which it is said again what is waited for
Troubles = tuple[tuple[Path, TunesmithError], ...]


def model_of(arm: str, model: str) -> str:
    """One conversation has one model, whatever roles that plays in the other arms."""
    return alone(model) if ARMS[arm].strategy == "single" else model


@dataclass
class Work:
    folder: RunFolder
    plan: ComparisonPlan
    config: RunConfig
    listener: Listener
    results: dict[Planned, RunResult] = field(default_factory=dict)
    errors: dict[Planned, TunesmithError] = field(default_factory=dict)

    def run(self) -> tuple[ComparisonResult, Troubles]:
        """Every run as far as it goes; where replies come by files and are waited for, again and again."""
        every = comparing.schedule(self.plan)
        self.listener.note(f"looking at {counted(len(every), 'run')}")
        self.results = {item: self._seen(item) for item in every}
        todo = [item for item in every if self.results[item].status != "finished"]
        while todo:
            for item in todo:
                place = f"run {every.index(item) + 1} of {len(every)}"
                self.listener.say(f"{place}: {item.problem}, {item.arm}, repeat {item.repeat}")
                try:
                    self.results[item] = self._one(item)
                except (KeyboardInterrupt, Interrupted):
                    self.results[item] = self._seen(item)
                    self._tell()
                    raise
                self._tell()
            todo = self._answered() if self.config.wait else []
        troubles = ((self._path(item), self.errors[item]) for item in every if item in self.errors)
        return self._tell(), tuple(troubles)

    def _path(self, item: Planned) -> Path:
        return self.folder.path / RUNS / item.place

    def _seen(self, item: Planned) -> RunResult:
        """What an earlier call has left of it."""
        path = self._path(item)
        if not begun(path):
            return RunResult(item, "not begun")
        try:
            state, facts = journal_facts(path)
        except TunesmithError as error:  # told again, with its exit code, when the run is resumed
            return RunResult(item, "stopped", str(error))
        done = state.stopped is not None and (path / "report.json").exists()
        if done and (own := self._recording(item)):
            casting.record(Path(own), state)
        if done:
            return RunResult(item, "finished", facts=facts)
        if state.open_request is not None:
            return RunResult(
                item, "waiting", f"request {state.open_request.request.number} has no reply yet", facts
            )
        return RunResult(item, "stopped", "not finished", facts)

    def _one(self, item: Planned) -> RunResult:
        path = self._path(item)
        self.errors.pop(item, None)
        error = self._trouble(item, path)
        if error is None:
            return RunResult(item, "finished", facts=journal_facts(path)[1])
        self.errors[item] = error
        known = None
        if begun(path):
            try:
                known = journal_facts(path)[1]
            except TunesmithError:
                known = None  # the trouble is that there is nothing to be read
        if isinstance(error, WaitingForModel):
            return RunResult(item, "waiting", str(error), known)
        if isinstance(error, DeviceMissing):
            return RunResult(item, "no device", str(error), known)
        # What the user can mend is not the arm's fault.
        return RunResult(item, "stopped" if isinstance(error, BadInput) else "failed", str(error), known)

    def _trouble(self, item: Planned, path: Path) -> TunesmithError | None:
        """Go on with one run; what stops it does not stop the others."""
        config = self._config(item)
        try:
            if begun(path):
                return runs.resume(path, config, self.listener).missing
            problem = next(p for p in self.plan.problems if p.folder == item.problem)
            subject = Subject(*restore(self.folder, problem.files))
            return begin(subject, config, path, self.listener).missing
        except Interrupted:
            raise
        except TunesmithError as error:
            return error
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            return BadInput(f"{name}{error.strerror or error}")
        except Exception as error:
            if debugging():
                raise
            return TunesmithError(f"a bug in Tunesmith: {bug_text(error)}")

    def _config(self, item: Planned) -> RunConfig:
        """The same for every arm but for its strategy; no run knows of another."""
        plan, arm, budget = self.plan, ARMS[item.arm], self.plan.budget
        return replace(
            self.config,
            backend=plan.backend or None,
            device=plan.device or None,
            search=plan.search,
            prune=plan.prune,
            steer=plan.steer,
            counters=plan.counters,
            seed=plan.seed + item.repeat - 1,
            strategy=arm.strategy,
            linear=arm.linear,
            model=placed(model_of(item.arm, plan.model), item.place) if arm.talks else "",
            prompts=str(self.folder.path / PROMPTS) if plan.prompts else "",
            record=self._recording(item),
            evals=budget.evals,
            time=budget.seconds,
            rounds=budget.rounds,
            tokens=budget.tokens,
            money=budget.dollars,
            cache=False,
            ceilings=self.config.cache,  # they are the device's, whoever asks
            prior=False,
            library=False,
            wait=False,
        )

    def _recording(self, item: Planned) -> str:
        """Where what its models say is kept; empty: nowhere."""
        asked = self.config.record and ARMS[item.arm].talks
        return str(Path(self.config.record) / item.place) if asked else ""

    def _answered(self) -> list[Planned]:
        """Wait until replies are there; the runs that can go on. None: nobody waits for a file."""
        awaited = {
            item: Path(error.awaits)
            for item, error in self.errors.items()
            if isinstance(error, WaitingForModel) and error.awaits
        }
        told = -REMIND
        while awaited:
            if found := [item for item, file in awaited.items() if file.exists() and file.stat().st_size]:
                return found
            if time.monotonic() - told >= REMIND:
                told = time.monotonic()
                first, count = next(iter(awaited.values())), counted(len(awaited), "reply", "replies")
                self.listener.say(f"waiting for {count}, the first is {first}")
                for file in awaited.values():
                    if seen := near_miss(file):
                        self.listener.say(f"{file}: {seen}")
            time.sleep(POLL)
        return []

    def _tell(self) -> ComparisonResult:
        found = compare(self.plan, tuple(self.results.values()))
        self.folder.replace_folder(PLOTS, comparison_plots(found))
        self.folder.write(MARKDOWN, comparison_markdown(found).encode())
        self.folder.write(DATA, comparison_json(found))
        return found


def journal_facts(path: Path) -> tuple[State, RunFacts]:
    folder = RunFolder.open(path)
    state = fold(folder.journal().read())
    templates = templates_of(folder, state)
    return state, comparing.facts_of(templates.problem, state, templates)
