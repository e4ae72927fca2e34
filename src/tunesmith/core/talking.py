"""The steps of a run that need no device: asking models, deciding by their replies, keeping what they write.

So they can be taken on a machine without one, from the same state to the same events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tunesmith.core.budget import exhausted_budget
from tunesmith.core.candidates import Templates
from tunesmith.core.conversation import Conversation
from tunesmith.core.dialogue import Question
from tunesmith.core.drafting import Drafting
from tunesmith.core.errors import TunesmithError, bug_text
from tunesmith.core.events import Decided, Declined, Event, Extended, Requested
from tunesmith.core.ports import Author, ModelWriter, Planner, Tester
from tunesmith.core.problem import Problem
from tunesmith.core.spending import no_more_requests, no_more_rounds
from tunesmith.core.state import State
from tunesmith.core.template import Template


@dataclass(frozen=True)
class Talking:
    problem: Problem
    templates: Templates
    planner: Planner
    author: Author
    writer: ModelWriter | None = None  # where a model writes
    tester: Tester | None = None  # where a model adds cases
    conversation: Conversation = field(default_factory=Conversation)

    def next_event(self, state: State) -> Event | None:
        """None: nothing more can be done without looking at a kernel or running one."""
        if state.open_request is not None:
            return self.conversation.answer(state.open_request, state.dialogue)
        if state.under_way is None and (state.this_turn("planner") or state.this_turn("analyst")):
            return self.decided(state)
        if state.under_way is None or state.under_way.decision != "refactor":
            return None
        return None if state.in_flight or state.draft is not None else self._drafted(state, state.under_way)

    def decided(self, state: State) -> Decided | Requested:
        """The planner's word, or what it has to ask before it can give it."""
        if (why := self.used_up(state)) is not None:
            return Decided("finish", why)
        try:
            found = self.planner.decide(state)
        except TunesmithError:
            raise
        except Exception as error:  # what has been found so far is not lost by it
            return Decided("finish", f"the planner failed, which is a bug in Tunesmith: {bug_text(error)}")
        return _requested(state, found) if isinstance(found, Question) else found

    def cases(self, state: State) -> Extended | Requested:
        """What the tester adds, still to be tried on the original."""
        assert self.tester is not None, "nobody adds cases"
        found = self.tester.cases(state)
        if not isinstance(found, Question):
            return found
        if (why := no_more_requests(state)) is None:
            return _requested(state, found)
        is_again = any(e.request.role == "tester" for e in state.dialogue)
        return Extended((), note=f"the tester's reply cannot be used, and {why}" if is_again else why)

    def used_up(self, state: State) -> str | None:
        """Why nothing further is decided on; what is admitted is searched all the same."""
        spent = exhausted_budget(state) if state.decided else None
        if spent or any(c.status == "admitted" for c in state.candidates):
            return spent
        # Who only tests or analyses can be done without.
        asks_models = any(role not in ("tester", "analyst") for role in self.conversation.models)
        return no_more_rounds(state, asks_models)

    def fault_of(self, template: Template) -> str | None:
        """Why what a model wrote may not be built."""
        if self.writer is None:
            return "no model writes in this run"
        try:
            return self.writer.faults(template)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a text does to its readers, the run goes on without it
            return f"it cannot be judged, which is a bug in Tunesmith: {bug_text(error)}"

    def _drafted(self, state: State, decision: Decided) -> Event:
        found = Drafting(self.problem, self.templates, self.author, self.writer).draft(state, decision)
        if not isinstance(found, Question):
            return found
        spent = no_more_requests(state)
        return Declined(spent) if spent else _requested(state, found)


def _requested(state: State, question: Question) -> Requested:
    return Requested(question.request(len(state.dialogue) + 1))
