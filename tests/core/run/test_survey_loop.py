"""The survey where the device is absent: in what order, how far, and that being killed changes nothing."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from tests.core.run.test_loop import FakeLab, MemoryJournal, MemoryTexts, Run, Watcher
from tests.kernel_runs import a_run, change, kernel
from tests.samples import DEVICE, a_problem, a_template, log_of, started
from tunesmith.lab.lab import OfflineLab
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Admitted, Asked, Attached, Event, Recorded, Settings, Surveyed, SurveyedBuild
from tunesmith.run.loop import Loop
from tunesmith.run.outcome import Result
from tunesmith.run.report import survey_size
from tunesmith.run.stages import World
from tunesmith.run.state import State, fold_records
from tunesmith.run.talk import ModelDialogue
from tunesmith.search.simple import Random
from tunesmith.session.roles import GivenTemplate, Silent
from tunesmith.space.configset import Config

PROBLEM = a_problem()
TEMPLATE = a_template(PROBLEM)
CONFIGS = TEMPLATE.space.configs([w.as_dict() for w in PROBLEM.workloads], DEVICE.limits.names())
ABSENT = replace(DEVICE, absent=True)


def found(config: Config | None) -> Surveyed:
    build = SurveyedBuild(("small", "wide"), str(config), "code")
    bad = config is not None and config.as_dict().get("VEC") == 4
    refused = tuple(Result(name, Status.OVER_LIMITS, detail="too much") for name in build.workloads)
    return Surveyed(config, (build,), refused if bad else ())


@dataclass
class FakeSurveyor:
    dies_after: int | None = None
    queue: deque[Config | None] = field(default_factory=deque)
    waiting: list[int] = field(default_factory=list)
    answered: list[Config | None] = field(default_factory=list)
    template: Template | None = TEMPLATE  # None: any

    def submit(self, template: Template | None, config: Config | None) -> None:
        assert None in (self.template, template) or replace(template, built_for=None) == self.template
        self.queue.append(config)

    def collect(self) -> Surveyed:
        if len(self.answered) == self.dies_after:
            raise KeyboardInterrupt
        self.waiting.append(len(self.queue))
        self.answered.append(self.queue.popleft())
        return found(self.answered[-1])


def a_survey(surveyor: FakeSurveyor, journal: MemoryJournal) -> Loop:
    templates = Templates(PROBLEM, ABSENT, TEMPLATE, MemoryTexts())
    talk = ModelDialogue(PROBLEM, templates, GivenTemplate(), Silent("the template is given"))
    return Loop(survey_world(templates, surveyor, talk), log_of(journal, Watcher()))


def survey_world(templates: Templates, surveyor: FakeSurveyor, talk: ModelDialogue) -> World:
    lab = OfflineLab(surveyor, "it is not here")
    return World(PROBLEM, templates, lab, Random(), talk)


def go(
    settings: Settings, records: list[Recorded] | None = None, surveyor: FakeSurveyor | None = None
) -> tuple[State, MemoryJournal, FakeSurveyor]:
    begun = replace(started(settings), device=ABSENT)
    journal = MemoryJournal(records or [Recorded(0, 0.0, begun)])
    surveyor = surveyor or FakeSurveyor()
    state = a_survey(surveyor, journal).run()
    return state, journal, surveyor


def test_the_original_then_the_default_then_the_rest_once_each() -> None:
    state, journal, surveyor = go(Settings(ahead=3))
    assert surveyor.answered[:2] == [None, TEMPLATE.default]
    assert len(surveyor.answered) == len(set(surveyor.answered)) == 1 + len(CONFIGS) == 13
    assert max(surveyor.waiting) == 3, "builders have something to do meanwhile"
    assert [type(r.event) for r in journal.records[1:]] == [Admitted, *[Surveyed] * 13]
    assert state == fold_records(journal.records)


def test_as_far_as_the_budget_goes() -> None:
    state, *_ = go(Settings(evals=4, ahead=8))
    assert [s.config for s in state.surveyed][:2] == [None, TEMPLATE.default]
    assert len(state.surveyed) == 5
    # On the journal's clock every event takes a second: the original and as many as were begun in time.
    state, *_ = go(Settings(seconds=3.0, ahead=1))
    assert len(state.surveyed) == 3
    state, *_ = go(Settings(seconds=0.0, ahead=1))
    assert [s.config for s in state.surveyed] == [None]


def test_a_survey_killed_anywhere_goes_on_as_if_it_had_not_been() -> None:
    settings = Settings(evals=9, ahead=3, seed=5)
    _, whole, _ = go(settings)
    for dies_after in range(11):  # the last of them not before all is done
        journal = MemoryJournal([Recorded(0, 0.0, replace(started(settings), device=ABSENT))])
        surveyor, again = FakeSurveyor(dies_after), FakeSurveyor()
        with suppress(KeyboardInterrupt):
            a_survey(surveyor, journal).run()
        _, resumed, _ = go(settings, journal.records, again)
        assert [r.event for r in resumed.records] == [r.event for r in whole.records]
        assert not {*surveyor.answered} & {*again.answered}, "nothing is built twice"


@pytest.mark.parametrize("code", ["", "int main() { return 0; }"], ids=["device code", "host code"])
def test_what_a_model_wrote_is_built_if_it_may_be(code: str) -> None:
    settings = Settings(ahead=3, strategy="rewrite")
    run = a_run({1: [change()], 2: [kernel(1).replace(";", f"; {code}")]}, {}, settings)
    journal = MemoryJournal([Recorded(0, 0.0, replace(started(settings), device=ABSENT))])
    templates, surveyor = Templates(PROBLEM, ABSENT, None, MemoryTexts()), FakeSurveyor(template=None)
    talk = run.talk(templates)
    state = Loop(survey_world(templates, surveyor, talk), log_of(journal, Watcher())).run()
    assert surveyor.answered == ([None] if code else [None, Config((), "1")])
    assert survey_size(state) == 1


class TestTheRunAfterwards:
    """What the loop does with a survey, on the loop's own fake lab."""

    def records(self, settings: Settings, *configs: Config) -> list[Recorded]:
        events: list[Event] = [
            replace(started(settings), device=ABSENT),
            Admitted("t", 80, 80),
            *(Surveyed(c, (SurveyedBuild(("small", "wide"), "s"),), self.failed()) for c in configs),
            Attached(DEVICE, "", settings.ahead, configs),
        ]
        return [Recorded(i, float(i), event) for i, event in enumerate(events)]

    def failed(self) -> tuple[Result, ...]:
        return tuple(Result(name, Status.BUILD_FAILED, detail="error: no") for name in ("small", "wide"))

    @pytest.mark.parametrize("ahead", [0, 12])
    @pytest.mark.parametrize(("evals", "tried"), [(None, 77), (10, 10)])
    def test_does_not_try_what_cannot_run_and_counts_it(
        self, evals: int | None, tried: int, ahead: int
    ) -> None:
        """In the report, that is: the budget is one of measurements."""
        known = [Config.of({"BLOCK": b, "VEC": 8, "UNROLL": 1}) for b in (32, 64, 128)]
        settings = Settings(evals=evals, ahead=ahead, prune=False)
        run = Run(settings, lab=FakeLab(), records=self.records(settings, *known))
        state = run.go()
        assert state.stopped is not None
        asked = [t for r in run.journal.records if isinstance(r.event, Asked) for t in r.event.trials]
        searched = [t.config for t in asked if t.purpose == "search"]
        assert len([t for t in asked if t.purpose == "search" and t.effort == "short"]) == tried
        assert not {*searched} & {*known}, "neither measured nor built again"
        assert state.statuses()["build_failed"] == 3
        assert state.statuses().total() == tried + 3

    def test_has_its_seconds_to_itself(self) -> None:
        settings = Settings(evals=None, seconds=20.0)
        run = Run(settings, records=self.records(settings, *CONFIGS))
        assert len(run.go().searched) > 5, "a survey of 12 seconds is not part of the budget"
