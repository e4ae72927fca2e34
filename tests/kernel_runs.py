"""Runs that write concrete kernels, in memory: what each kernel does stands in a table, by its number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.core.run.test_loop import ORIGINAL, PROBLEM, FakeLab, MemoryTexts, Run
from tests.samples import started
from tests.talkers import Said, Scripted, file
from tunesmith.problem.plan import Status
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Recorded, Replied, Request, Settings, Unanswered
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.ports import MoveCatalogue
from tunesmith.run.talk import Conversation, ModelDialogue
from tunesmith.session.roles import RoleFactory
from tunesmith.space.configset import Config

ALL = {"planner": "Plan.", "author": "Write.", "tester": "Test.", "analyst": "Analyse.", "single": "Do all."}


def text(number: int, more: str = "") -> str:
    header = '// [launch]\n// grid = ["rows"]\n// block = ["64"]\n'
    return f"// /// tunesmith\n{header}{more}// ///\n__constant int this_is_kernel_{number} = 1;\n"


def kernel(number: int, more: str = "") -> str:
    """As a reply."""
    return file(text(number, more))


def change(**more: object) -> str:
    return json.dumps({"decision": "rewrite", "why": "narrow loads", "what": "Read four at once.", **more})


def stop(why: str = "done") -> str:
    return json.dumps({"decision": "stop", "why": why})


@dataclass
class KernelLab(FakeLab):
    """`speeds`: of each candidate, or what is wrong with it."""

    speeds: Mapping[str, float | Status] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cost = self.verdict = self._time

    def _time(self, chosen: Config, workload: str) -> float | Status:
        speed = self.speeds[chosen.candidate]
        return speed if isinstance(speed, Status) else ORIGINAL[workload] / speed

    def _outcome(self, trial: Trial, cost: object) -> Outcome:
        """Kernels differ, whatever their parameters."""
        code = trial.config.label if trial.config else "the original"
        return replace(super()._outcome(trial, cost), source_digest=code, code_digest=code)


@dataclass
class KernelRun(Run):
    models: Mapping[str, Scripted] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)

    def talk(self, templates: Templates) -> ModelDialogue:
        conversation = Conversation(self.models, self.pauses.append)
        strategy = self.settings.strategy
        parts = (PROBLEM, templates, conversation, ALL, lambda _kernel: MoveCatalogue(), strategy)
        made = RoleFactory(*parts).talking()
        if made.writer is not None:
            object.__setattr__(made.writer, "signature", lambda _template: None)
        return made

    @property
    def model(self) -> Scripted:
        return next(iter(self.models.values()))

    def said(self, number: int) -> str:
        return shown(self.model.asked[number - 1])


def shown(request: Request) -> str:
    return "\n".join(m.text for m in request.messages)


def goes_on_after_any_event(
    script: Mapping[int, Sequence[Said]],
    speeds: Mapping[str, float | Status],
    settings: Settings,
    must_have: frozenset[str],
) -> None:
    """Killed after each event in turn, a run ends as the one that went through, and asks nothing twice."""
    whole = a_run(script, speeds, settings)
    state, records = whole.go(), whole.journal.records
    kinds = {type(record.event).__name__ for record in records}
    assert must_have | {"Requested", "Replied", "Unanswered", "Rejected"} <= kinds
    for cut in range(1, len(records) + 1):
        again = a_run(script, speeds, settings, list(records[:cut]), whole.texts)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
        answered = sum(isinstance(r.event, (Replied, Unanswered)) for r in records[:cut])
        assert len(again.model.asked) == len(whole.model.asked) - answered, "never asked twice"


def a_run(
    script: Mapping[int, Sequence[Said]],
    speeds: Mapping[str, float | Status],
    settings: Settings,
    records: list[Recorded] | None = None,
    kept: MemoryTexts | None = None,
    roles: Sequence[str] = ("planner", "author"),
    lab: KernelLab | None = None,
) -> KernelRun:
    model = Scripted(script).after(records or ())
    return KernelRun(
        settings,
        lab=lab or KernelLab(speeds=speeds),
        template=None,
        records=records or [Recorded(0, 0.0, started(settings))],
        texts=kept or MemoryTexts(),
        heeds_words=False,
        models=dict.fromkeys(["single"] if settings.strategy == "single" else roles, model),
    )
