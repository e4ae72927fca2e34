"""Asking an author: what it is told, and the draft that comes of it, kept before it is named."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.candidates import Templates
from tunesmith.core.errors import TunesmithError, bug_text
from tunesmith.core.events import Decided, Declined, Drafted
from tunesmith.core.ports import Author, Refactoring, Written
from tunesmith.core.problem import Problem
from tunesmith.core.state import Candidate, State


@dataclass(frozen=True)
class Drafting:
    problem: Problem
    templates: Templates
    author: Author

    def draft(self, state: State, decision: Decided) -> Drafted | Declined:
        """The template that was decided on; where drafts of it were turned away, another with what they
        taught."""
        before = of_this_round(state)
        last = before[-1].rejected if before else None
        task = Refactoring(
            decision.moves,
            tuple(dict.fromkeys(v for c in before if c.rejected for v in c.rejected.without)),
            last.reason if last else "",
        )
        answer = self._written(task, state)
        if isinstance(answer, Declined):
            return answer
        number = 1 + sum(c.drafted is not None for c in state.candidates)
        parent = before[-1].id if before else decision.candidate
        kept = self.templates.keep(answer.text)
        return Drafted(str(number), parent, kept, answer.moves, answer.refused, answer.notes)

    def _written(self, task: Refactoring, state: State) -> Written | Declined:
        try:
            return self.author.write(task, self.problem, state.device)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a kernel does to an author, the run goes on without it
            return Declined(f"the author failed, which is a bug in Tunesmith: {bug_text(error)}")


def of_this_round(state: State) -> list[Candidate]:
    """Drafts of what is under way."""
    last = len(state.decided) - 1
    return [c for c in state.candidates if c.drafted is not None and c.round == last]
