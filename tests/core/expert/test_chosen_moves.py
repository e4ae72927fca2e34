"""The expert's rounds in a run: what planning is told of it, and what the loop hears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.core.run.test_loop import PROBLEM, FakeLab, MemoryTexts, Run
from tests.core.run.test_rounds import WIDE, cost, survey
from tests.drafts import Scripted
from tests.samples import DEVICE
from tunesmith.expert import planning
from tunesmith.expert.planning import ByDiagnosis, ExpertPlanner
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Declined, Settings
from tunesmith.run.rounds import round_outcomes

DEEP = {**WIDE, "KEEP": [0, 1]}


@dataclass
class Asked:
    """In place of `planning.next_round`: remembers what it is told, answers from a list."""

    answers: list[tuple[str, ...] | str]
    told: list[tuple[planning.RoundResult, ...]] = field(default_factory=list)

    def __call__(
        self, history: Sequence[planning.RoundResult], found: Sequence[Diagnosis], names: Sequence[str]
    ) -> tuple[str, ...] | str:
        self.told.append(tuple(history))
        return self.answers[len(self.told) - 1]


def available(problem: Problem, device: Device) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    return ("vector", "keep", "split"), (("fast", "there is nothing slow"),)


def test_rounds_are_passed_on_with_their_scores_and_what_was_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([("vector",), ("vector", "split"), ("vector", "keep"), "the floor is near"])
    monkeypatch.setattr(planning, "next_round", asked)
    texts = {"vector": WIDE, "split": Declined("a row is short"), "keep": DEEP}
    store = MemoryTexts()
    run = Run(
        Settings(evals=100),
        lab=FakeLab(cost, cost, survey),
        planner=ExpertPlanner(
            PROBLEM, ByDiagnosis(PROBLEM, Templates(PROBLEM, DEVICE, None, store), available)
        ),
        author=Scripted(texts),
        template=None,
        texts=store,
    )
    state = run.go()
    assert state.stopped is not None
    assert state.stopped.reason == "the floor is near"
    first, second, third = asked.told[-1]
    done = round_outcomes(PROBLEM, state)
    assert (first.moves, first.score) == (("vector",), done[0].best)
    assert (second.moves, second.score) == (("vector", "split"), None)
    assert third.score is not None
    assert third.score > (first.score or 0.0)
    assert third.distance is None, "nothing was profiled"
    reasons = [d.reason for d in state.decided if d.decision == "refactor"]
    assert reasons[0] == "from the original; tried next: vector (wide loads and stores)"
    assert reasons[2] == "from template 1; tried next: keep (a row kept in registers between passes)"
    assert [d.candidate for d in state.decided if d.decision == "refactor"] == ["", "1", "1"]
