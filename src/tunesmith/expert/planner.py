"""Planners and authors that need no model: for the library's templates, and for the expert's moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import share_of
from tunesmith.run.dialogue import Question
from tunesmith.run.events import Decided, Declined
from tunesmith.run.library import LibraryTemplate
from tunesmith.run.ports import Author, Planner, Refactoring, Written
from tunesmith.run.rounds import RoundOutcome, leader, rounds
from tunesmith.run.state import Candidate, State


@dataclass(frozen=True)
class Next:
    """What the next round tries: all moves of the template, those of its base included."""

    moves: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class InOrder:
    """One move after the other, each on top of those that paid."""

    moves: tuple[str, ...]

    def __call__(self, done: Sequence[RoundOutcome], base: Candidate | None, state: State) -> Next | str:
        if len(done) >= len(self.moves):
            return "every move has been tried"
        move = self.moves[len(done)]
        return Next((*(base.moves if base else ()), move), f"{move} is next")


class Rounds(Protocol):
    """Which moves come next, and why; a sentence where nothing is left to try."""

    def __call__(self, done: Sequence[RoundOutcome], base: Candidate | None, state: State) -> Next | str: ...


@dataclass(frozen=True)
class ExpertPlanner:
    """Every round goes on from the best correct template so far; what does not pay is left behind."""

    problem: Problem
    next_round: Rounds

    def decide(self, state: State) -> Decided:
        waiting = [c for c in state.candidates if c.status == "admitted"]
        done, base = rounds(self.problem, state), leader(self.problem, state)
        if waiting:
            return self._search(waiting[-1], done, state)
        chosen = self.next_round(done, base, state)
        if isinstance(chosen, str):
            if base is not None and base.searched is not None and base.searched.cut:
                return Decided("search", f"{chosen}: the rest is for the best", base.moves, base.id)
            return Decided("finish", chosen)
        return Decided("refactor", chosen.reason, chosen.moves, base.id if base else "")

    def _search(self, candidate: Candidate, done: Sequence[RoundOutcome], state: State) -> Decided:
        evals, seconds = share_of(state)
        moves = ", ".join(candidate.moves) or f"template {candidate.id}"
        return Decided("search", f"round {len(done)}: {moves}", candidate.moves, candidate.id, evals, seconds)


# -- A run that begins from a template of the library: that one is its first round, the rest is planned


@dataclass(frozen=True)
class LibraryFirst:
    kept: LibraryTemplate
    then: Planner

    def decide(self, state: State) -> Decided | Question:
        if any(d.decision == "refactor" for d in state.decided):
            return self.then.decide(state)
        reason = f"the library has a template of this kernel: {self.kept.name}, {self.kept.about}"
        return Decided("refactor", reason, (self.kept.mark, *self.kept.moves), by_moves=True)


@dataclass(frozen=True)
class LibraryAuthor:
    """Hands out the kept text; values that the gate finds wrong here are forbidden in it."""

    kept: LibraryTemplate
    then: Author

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        if self.kept.mark not in task.moves:
            return self.then.write(task, problem, device)
        notes = (f"{self.kept.name} of the library, {self.kept.about}",)
        return Written(self.kept.without(task.without), self.kept.moves, notes=notes)
