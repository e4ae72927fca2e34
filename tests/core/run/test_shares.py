"""Budgets that mean the same whoever writes: seconds in which trials have the device; and offers of moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from tests.core.run.test_loop import FakeLab, events, kinds_of
from tests.core.run.test_rounds import WIDE, cost, survey
from tests.core.run.test_talking import a_run, said
from tests.drafts import a_draft
from tests.kernel_runs import KernelLab, change, kernel, stop
from tests.kernel_runs import a_run as kernels
from tests.talkers import Said, file, plan
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.run.budget import BudgetShare
from tunesmith.run.config import RunConfig, resolve_config
from tunesmith.run.events import Baseline, Decided, NoReply, Settings, Verified
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.session import roles as wishes

MANY = {"VEC": [1, 2, 4], "UNROLL": list(range(1, 60))}


@dataclass
class Costly(FakeLab):
    """Each trial has the device for two seconds."""

    def _outcome(self, trial: Trial, how: object) -> Outcome:
        return replace(super()._outcome(trial, how), seconds=2.0)


@dataclass
class CostlyKernels(KernelLab):
    def _outcome(self, trial: Trial, how: object) -> Outcome:
        return replace(super()._outcome(trial, how), seconds=2.0)


def test_parts_of_a_share() -> None:
    assert BudgetShare(100, None, 30.0).parted(3) == BudgetShare(33, None, 10.0)
    assert BudgetShare(2).parted(3) == BudgetShare(1)


def test_the_seconds_on_the_device_end_a_search_and_are_shared_by_rounds() -> None:
    script: dict[int, Sequence[Said]] = {1: [plan()], 2: [file(a_draft(MANY))], 3: [plan()]}
    script |= {4: [file(a_draft({**MANY, "KEEP": [0, 1]}))]}
    limit = Settings(evals=None, device_seconds=300.0, rounds=2)
    run = a_run(script, settings=limit, lab=Costly(cost, cost, survey))
    state = run.go()
    searches = [e for e in events(run, Decided) if e.decision == "search"]
    gated = 2.0 * state.asked.count(("gate", "1"))
    first = next(e for e in events(run, Baseline))
    before = gated + first.outcome.seconds
    assert searches[0].device_seconds == pytest.approx((300.0 - before) / 2)
    says(state.candidates[0].searched, "its share of", "seconds on the device is used up")
    says(state.stopped, "the budget of 300 seconds on the device is used up")
    assert 300 <= state.device_seconds <= 300 + 2 * 8, "what is in flight is waited for"
    assert "Verified" in kinds_of(run), "the race and the proof come after it"
    measured = sum(o.seconds for o in state.outcomes if o.trial.purpose != "finalist")
    assert state.device_seconds == pytest.approx(measured + first.outcome.seconds)
    assert any(e.outcome.seconds for e in events(run, Verified))


def test_concrete_kernels_have_the_same_measure() -> None:
    script: dict[int, Sequence[Said]] = {}
    for number in range(1, 20):
        script |= {2 * number - 1: [change()], 2 * number: [kernel(number)]}
    speeds = {str(number): 1.0 + number / 10 for number in range(1, 20)}
    limit = Settings(strategy="rewrite", rounds=19, device_seconds=9.0)
    state = kernels(script, speeds, limit, lab=CostlyKernels(speeds=speeds)).go()
    says(state.stopped, "the budget of 9 seconds on the device is used up")
    assert len(state.candidates) == 3, "a kernel is one trial, and the original is timed after it"


def test_with_none_no_planner_is_told_of_moves_and_the_expert_plans_nothing() -> None:
    gone = NoReply("gone", lasts=True)
    script: dict[int, Sequence[Said]] = {1: [gone], 2: [file(a_draft(WIDE))], 3: [plan("stop")]}
    run = a_run(script, settings=Settings(evals=60, rounds=4, moves="none"))
    run.go()
    says(said(run, 1), "plans in words; no moves are offered")
    (first,) = [e for e in events(run, Decided) if e.decision == "refactor"]
    assert not first.by_moves
    says(first.reason, "the planner did not answer (gone); the author chooses")


@pytest.mark.parametrize("strategy", ["rewrite", "single"])
def test_with_all_those_who_write_kernels_are_told_too(strategy: str) -> None:
    heading = "Choices that a program knows for this kernel"
    for moves in ("usual", "all", "none"):
        settings = Settings(strategy=strategy, moves=moves, rounds=2)
        roles = ("single",) if strategy == "single" else ("planner", "author")
        run = kernels({1: [stop()], 2: [stop()]}, {}, settings, roles=roles)
        talk = run.talk
        from tests.core.run.test_talking import MOVES

        def offering(templates, talk=talk):
            made = talk(templates)
            object.__setattr__(made.planner, "catalogue", lambda: MOVES)
            object.__setattr__(made.writer, "catalogue", lambda: MOVES)
            return made

        run.talk = offering
        run.go()
        assert (heading in run.said(1)) == (moves == "all")


def test_moves_that_somebody_needs_cannot_be_left_out() -> None:
    with pytest.raises(BadInput, match="the author would"):
        wishes.check_strategy_config(RunConfig(model="planner=mailbox", moves="none"), template_given=False)
    wishes.check_strategy_config(RunConfig(model="mailbox", moves="none"), template_given=False)
    wishes.check_strategy_config(RunConfig(moves="none"), template_given=False)
    with pytest.raises(BadInput, match="moves must be usual, all or none, got 'some'"):
        resolve_config({"moves": "some"}, {"HOME": "/"})
