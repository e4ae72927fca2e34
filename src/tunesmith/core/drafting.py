"""Asking an author: what it is told, and the draft that comes of it, kept before it is named."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.candidates import Templates
from tunesmith.core.dialogue import SINGLE, Exchange, Question
from tunesmith.core.errors import TunesmithError, bug_text
from tunesmith.core.events import Decided, Declined, Drafted
from tunesmith.core.ports import Author, ModelWriter, Refactoring, Written
from tunesmith.core.problem import Problem
from tunesmith.core.state import Candidate, State


@dataclass(frozen=True)
class Drafting:
    """`writer` asks a model; what is to be done by moves is the author's all the same."""

    problem: Problem
    templates: Templates
    author: Author
    writer: ModelWriter | None = None

    def draft(self, state: State, decision: Decided) -> Drafted | Declined | Question:
        """The template that was decided on; where drafts of it were turned away, another with what they
        taught."""
        answer = self._answer(state, decision)
        if isinstance(answer, (Declined, Question)):
            return answer
        before = of_this_round(state)
        parent = before[-1].id if before else decision.candidate
        kept = self.templates.keep(answer.text)
        number = str(1 + state.drafts)
        return Drafted(number, parent, kept, answer.moves, answer.refused, answer.notes, answer.author)

    def _answer(self, state: State, decision: Decided) -> Written | Declined | Question:
        try:
            if self.writer is not None and not decision.by_moves:
                return self.writer.write(state, decision)
            return self.author.write(_task(state, decision), self.problem, state.device)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a kernel does to an author, the run goes on without it
            return Declined(f"the author failed, which is a bug in Tunesmith: {bug_text(error)}")


def _task(state: State, decision: Decided) -> Refactoring:
    before = of_this_round(state)
    last = before[-1].rejected if before else None
    return Refactoring(
        decision.moves,
        tuple(dict.fromkeys(v for c in before if c.rejected for v in c.rejected.without)),
        last.reason if last else "",
    )


def asked_to_write(state: State) -> tuple[Exchange, ...]:
    """What has been said with the model that writes what is under way, whichever role that is."""
    return state.this_turn("author") + state.this_turn(SINGLE)


def of_this_round(state: State) -> list[Candidate]:
    """Drafts of what is under way."""
    last = len(state.decided) - 1
    return [c for c in state.candidates if c.drafted is not None and c.round == last]
