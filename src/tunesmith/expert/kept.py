"""A run that begins from a template of the library: that one is its first round, the rest is planned."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.device import Device
from tunesmith.core.dialogue import Question
from tunesmith.core.events import Decided, Declined
from tunesmith.core.library import LibraryTemplate
from tunesmith.core.ports import Author, Planner, Refactoring, Written
from tunesmith.core.problem import Problem
from tunesmith.core.state import State


@dataclass(frozen=True)
class KeptFirst:
    kept: LibraryTemplate
    then: Planner

    def decide(self, state: State) -> Decided | Question:
        if any(d.decision == "refactor" for d in state.decided):
            return self.then.decide(state)
        reason = f"the library has a template of this kernel: {self.kept.name}, {self.kept.about}"
        return Decided("refactor", reason, (self.kept.mark, *self.kept.moves), by_moves=True)


@dataclass(frozen=True)
class KeptAuthor:
    """Hands out the kept text; values that the gate finds wrong here are forbidden in it."""

    kept: LibraryTemplate
    then: Author

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        if self.kept.mark not in task.moves:
            return self.then.write(task, problem, device)
        notes = (f"{self.kept.name} of the library, {self.kept.about}",)
        return Written(self.kept.without(task.without), self.kept.moves, notes=notes)
