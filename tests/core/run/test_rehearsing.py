"""The gate on the host's processor: what is tried, for how long, and what goes back to whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from tests.core.run.test_loop import MemoryJournal, MemoryTexts, Watcher
from tests.core.run.test_survey_loop import ABSENT, FakeSurveyor, survey_world
from tests.drafts import a_draft
from tests.kernel_runs import a_run, change, kernel
from tests.samples import DEVICE, a_problem, a_template, log_of, started
from tests.wording import says
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, configs_of
from tunesmith.run.candidates import (
    Faulty,
    HostGate,
    NextRehearsal,
    Passed,
    Templates,
    gate_plan,
    gate_sentence,
)
from tunesmith.run.events import Admitted, Decided, Recorded, Rejected, Settings
from tunesmith.run.loop import Loop
from tunesmith.run.outcome import Rehearsed
from tunesmith.run.ports import Refactoring, Written
from tunesmith.run.report import survey_report
from tunesmith.run.state import State
from tunesmith.run.talk import ModelDialogue

PROBLEM = a_problem()
PARAMS = {"A": [1, 2, 4, 8], "B": [0, 1], "C": [3, 1, 2], "D": [0, 1, 2, 3, 4]}
CPU = "cpu (g++)"
Judge = Callable[[dict[str, int]], Status]


def right(_values: dict[str, int]) -> Status:
    return Status.OK


def a_gate(params: dict[str, list[int]] | None = None, seconds: float = 300.0) -> HostGate:
    own = a_template(PROBLEM, a_draft(params or PARAMS, ""))
    return HostGate.of(own, configs_of(PROBLEM, own, DEVICE), seconds)


def go(
    gate: HostGate, judge: Judge = right, may_mend: bool = True, is_model: bool = True, each: float = 1.0
) -> tuple[Faulty | Passed, list[Rehearsed]]:
    done: list[Rehearsed] = []
    while isinstance(step := gate.step(done, may_mend, is_model), NextRehearsal):
        assert all(one.config != step.config for one in done), "or it would go on for ever"
        assert step.whole == (not done), "the first on all cases"
        status = judge(step.config.as_dict())
        words = "" if status is Status.OK else "at n=1: so it is"
        done.append(Rehearsed(step.config, CPU, status, 6, words, "", each, step.left))
    return step, done


def test_all_that_the_gate_of_a_device_tries_and_every_value() -> None:
    gate = a_gate()
    step, done = go(gate)
    assert step == Passed()
    assert [one.config for one in done] == list(gate.plan)
    assert done[-1].left == 0
    for name, values in PARAMS.items():
        assert {one.config[name] for one in done if one.config} == {*values}


def test_values_that_the_cover_has_no_room_for_are_tried_too() -> None:
    many = {"A": [*range(1, 41)], "B": [*range(40)]}
    own = a_template(PROBLEM, a_draft(many, ""))
    plan = gate_plan(own.space.params, own.default, configs_of(PROBLEM, own, DEVICE))
    assert len(plan) == len({*plan})
    for name, values in many.items():
        assert {config[name] for config in plan} == {*values}


@pytest.mark.parametrize("may_mend", [False, True])
def test_a_value_that_is_wrong_by_itself_goes_back_or_stays_to_be_forbidden(may_mend: bool) -> None:
    step, _ = go(a_gate(), lambda values: Status.WRONG if values["D"] == 3 else Status.OK, may_mend)
    if may_mend:
        assert (step.without, step.trials) == ((("D", 3),), ())
        says(step.reason, "D=3 is wrong: at n=1: so it is", "(on cpu (g++))")
    else:
        assert step == Passed(((("D", 3),),))


def test_the_default_alone_convicts() -> None:
    step, done = go(a_gate(), lambda _: Status.CRASHED)
    says(step.reason, "its default", "crashed")
    assert len(done) == 1


@pytest.mark.parametrize("status", [Status.BUILD_FAILED, Status.INFEASIBLE])
def test_what_cannot_be_checked_here_is_nobodys_fault(status: Status) -> None:
    assert go(a_gate(), lambda _: status) == (Passed(), [*go(a_gate(), lambda _: status)[1][:1]])
    step, done = go(a_gate(), lambda values: status if values["B"] else Status.OK)
    assert step == Passed()
    says(gate_sentence(done), "not checked", "again on a GPU")


def test_the_time_is_limited_and_what_was_left_is_said() -> None:
    gate = a_gate(seconds=10.0)
    step, done = go(gate, each=2.5)
    assert step == Passed()
    assert len(done) == 4
    says(
        gate_sentence(done), "4 of 4 configurations right", f"after 10 s, {len(gate.plan) - 4} were not tried"
    )
    first = go(a_gate(seconds=0.0))[1]
    assert len(first) == 1, "the first is tried whatever it takes"
    says(gate_sentence(first), "1 of 1 configuration right", f"{len(gate.plan) - 1} were not tried")
    for alone in (replace(first[0], left=0), replace(first[0], status=Status.WRONG)):
        assert gate_sentence([alone]) == "", "its own sentence says all"


def test_at_the_end_of_its_time_a_model_is_told_and_a_program_goes_on() -> None:
    judge = lambda values: Status.WRONG if values["A"] == 8 else Status.OK  # noqa: E731
    told, _ = go(a_gate(seconds=3.0), judge)
    says(told.reason, "A=8", "so it is")
    assert go(a_gate(seconds=3.0), judge, is_model=False)[0] == Passed()
    assert go(a_gate(seconds=3.0), judge, may_mend=False)[0] == Passed()


class TestInARun:
    """A model writes two kernels: the first is wrong on the host."""

    SETTINGS = Settings(ahead=3, strategy="rewrite")

    def survey(
        self,
        journal: MemoryJournal,
        rehearse: Callable[..., Rehearsed | None],
        texts: MemoryTexts | None = None,
    ) -> Loop:
        run = a_run({1: [change()], 2: [kernel(1)], 3: [kernel(2)]}, {}, self.SETTINGS)
        templates = Templates(PROBLEM, ABSENT, None, texts or MemoryTexts())
        world = survey_world(templates, FakeSurveyor(template=None), run.talk(templates))
        world.rehearse = rehearse
        return Loop(world, log_of(journal, Watcher()))

    def journal(self) -> MemoryJournal:
        return MemoryJournal([Recorded(0, 0.0, replace(started(self.SETTINGS), device=ABSENT))])

    def test_is_turned_away_mended_and_not_believed_by_a_device(self) -> None:
        asked: list[NextRehearsal | None] = []

        def rehearse(_template: Template | None, wanted: NextRehearsal | None) -> Rehearsed:
            asked.append(wanted)
            wrong = wanted is not None and len(asked) == 2
            status, config = Status.WRONG if wrong else Status.OK, wanted.config if wanted else None
            return Rehearsed(config, CPU, status, 6, "off by one" if wrong else "")

        journal = self.journal()
        state = self.survey(journal, rehearse).run()
        rejected = [r.event for r in journal.records if isinstance(r.event, Rejected)]
        assert [(one.candidate, one.again) for one in rejected] == [("1", True)]
        says(rejected[0].reason, "off by one", CPU)
        assert [one.config.candidate for one in state.rehearsed if one.config] == ["1", "2"]
        assert not [r for r in journal.records if isinstance(r.event, Admitted)], "only a device admits"
        assert state.draft.id == "2"
        assert not state.gated("2"), "its gate on the device begins from nothing"
        words = survey_report(state).rehearsed
        assert len(words) == 3
        says(words[1], "off by one")

    def test_goes_on_where_it_was_killed(self) -> None:
        calls: list[NextRehearsal | None] = []

        def dies(_template: Template | None, wanted: NextRehearsal | None) -> Rehearsed:
            calls.append(wanted)
            if wanted is not None:
                raise KeyboardInterrupt
            return Rehearsed(None, CPU, Status.OK, 6)

        journal, texts = self.journal(), MemoryTexts()
        with pytest.raises(KeyboardInterrupt):
            self.survey(journal, dies, texts).run()
        again: list[NextRehearsal | None] = []
        self.survey(journal, lambda _t, w: again.append(w), texts).run()
        assert calls[0] is None
        assert [one is None for one in again] == [False], "the original is not tried twice"


@dataclass
class OneDraft:
    """Plans one template and writes it, without values that were wrong."""

    tasks: list[Refactoring] = field(default_factory=list)

    def decide(self, _state: State) -> Decided:
        return Decided("refactor", "once", ("wide",))

    def write(self, task: Refactoring, _problem: Problem, _device: Device) -> Written:
        self.tasks.append(task)
        left = {n: [v for v in values if (n, v) not in task.without] for n, values in PARAMS.items()}
        return Written(a_draft(left, ""), task.moves)


class TestTheExpertsDraft:
    def survey(
        self, judge: Judge, settings: Settings, each: float
    ) -> tuple[State, list[NextRehearsal], OneDraft]:
        tried: list[NextRehearsal] = []

        def rehearse(_template: Template | None, wanted: NextRehearsal | None) -> Rehearsed:
            if wanted is None:
                return Rehearsed(None, CPU, Status.OK, 6, seconds=each)
            tried.append(wanted)
            status = judge(wanted.config.as_dict())
            words = "" if status is Status.OK else "so it is"
            return Rehearsed(wanted.config, CPU, status, 6, words, seconds=each, left=wanted.left)

        journal = MemoryJournal([Recorded(0, 0.0, replace(started(settings), device=ABSENT))])
        templates, own = Templates(PROBLEM, ABSENT, None, MemoryTexts()), OneDraft()
        talk = ModelDialogue(PROBLEM, templates, own, own)
        world = survey_world(templates, FakeSurveyor(template=None), talk)
        world.rehearse = rehearse
        return Loop(world, log_of(journal, Watcher())).run(), tried, own

    def test_a_budget_in_seconds_limits_its_gate_and_not_the_builds(self) -> None:
        state, tried, _ = self.survey(right, Settings(ahead=1, seconds=40.0, evals=2), 15.0)
        assert len(tried) == 3, "15 s each, and 40 s in all"
        assert len(state.surveyed) == 3, "the original and two builds"
        says(survey_report(state).rehearsed[-1], "its time was up after 45 s")

    def test_is_written_again_without_a_value_that_is_wrong(self) -> None:
        judge = lambda values: Status.WRONG if values["D"] == 4 else Status.OK  # noqa: E731
        state, _, own = self.survey(judge, Settings(ahead=1, evals=1), 1.0)
        assert [c.status for c in state.candidates] == ["rejected", "drafted"]
        assert own.tasks[-1].without == (("D", 4),)
        assert state.draft is not None
