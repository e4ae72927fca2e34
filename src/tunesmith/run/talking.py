"""The steps of a run that need no device: asking models, deciding by their replies, keeping what they write.

So they can be taken on a machine without one, from the same state to the same events. Requests are sent one
attempt at a time, with pauses that grow; each attempt is a fact of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.errors import BadInput, TunesmithError, WaitingForModel, bug_text
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.budget import exhausted_budget, no_more_requests, no_more_rounds
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import SINGLE, Exchange, LanguageModel, NoReply, Pending, Question, Reply, Role
from tunesmith.run.events import Decided, Declined, Drafted, Event, Extended, Replied, Requested, Unanswered
from tunesmith.run.ports import Author, ModelWriter, Planner, Refactoring, Tester, Written
from tunesmith.run.state import Candidate, State

ATTEMPTS = 5
FEW = 2  # attempts with a model that was given up last time
FIRST_PAUSE = 2.0  # seconds before the second attempt; doubled with each
LONGEST_PAUSE = 120.0  # whatever the other side asks for


@dataclass
class Conversation:
    """The models of a run, by role. Remembers nothing that matters: after a restart a pause is left out."""

    models: Mapping[Role, LanguageModel] = field(default_factory=dict)
    pause: Callable[[float], None] = lambda _seconds: None
    note: Callable[[str], None] = lambda _text: None
    _wait: float = field(default=0.0, init=False)

    def answer(self, exchange: Exchange, dialogue: Sequence[Exchange] = ()) -> Replied | Unanswered:
        """What comes of one attempt; WaitingForModel where a reply is missing and not to be waited for.
        `dialogue` is all that was asked in the run."""
        request = exchange.request
        model = self.models.get(request.role)
        if model is None:
            why = f"no model plays the {request.role} here"
            return Unanswered(request.number, why, lasts=True, attempt=exchange.attempts + 1, final=True)
        if self._wait:
            self.note(f"asking {model.name} again in {self._wait:.0f} s")
            self.pause(self._wait)
            self._wait = 0.0
        self.note(f"asking {model.name} as {request.role}, request {request.number}")
        try:
            found = model.reply(request)
        except BadInput as error:  # a key or a package that another machine may have
            why = f"request {request.number} cannot be sent from here: {error}"
            raise WaitingForModel(why, hint=error.hint) from error
        if isinstance(found, Pending):
            seen = f"; {found.found}" if found.found else ""
            why = f"the reply to request {request.number} is missing"
            why += f": it is to be written to {found.where}{seen}"
            raise WaitingForModel(why, awaits=found.where)
        if isinstance(found, Reply):
            # Without halves of characters, which a journal cannot hold.
            whole = found.text.encode("utf-8", "replace").decode()
            return Replied(request.number, replace(found, text=whole))
        return self._unanswered(exchange, found, self._most(model, dialogue))

    def _most(self, model: LanguageModel, dialogue: Sequence[Exchange]) -> int:
        """A model that nobody reached a moment ago is not waited for as long again."""
        own = [e for e in dialogue if self.models.get(e.request.role) is model and not e.is_open]
        return FEW if own and own[-1].failed else ATTEMPTS

    def _unanswered(self, exchange: Exchange, found: NoReply, most: int) -> Unanswered:
        attempt = exchange.attempts + 1
        final = found.lasts or attempt >= most
        if not final:
            self._wait = min(max(found.wait or 0.0, FIRST_PAUSE * 2 ** (attempt - 1)), LONGEST_PAUSE)
        return Unanswered(exchange.request.number, found.reason, found.lasts, attempt, final)


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

    def fault_of(self, template: Template, is_stored: bool = False) -> str | None:
        """Why what a model wrote, here or for the library, may not be built."""
        if self.writer is None and not is_stored:
            return "no model writes in this run"
        try:
            if self.writer is None or is_stored:
                from tunesmith.problem.vetting import foreign_fault

                return foreign_fault(self.problem, template)
            return self.writer.faults(template)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a text does to its readers, the run goes on without it
            return f"it cannot be judged, which is a bug in Tunesmith: {bug_text(error)}"

    def _drafted(self, state: State, decision: Decided) -> Event:
        """The template that was decided on; where drafts of it were turned away, another with what they
        taught. Its text is stored before it is named."""
        answer = self._answer(state, decision)
        if isinstance(answer, Question):
            spent = no_more_requests(state)
            return Declined(spent) if spent else _requested(state, answer)
        if isinstance(answer, Declined):
            return answer
        before = of_this_round(state)
        parent = before[-1].id if before else decision.candidate
        digest, number = self.templates.keep(answer.text), str(1 + state.drafts)
        return Drafted(number, parent, digest, answer.moves, answer.refused, answer.notes, answer.author)

    def _answer(self, state: State, decision: Decided) -> Written | Declined | Question:
        """What is to be done by moves is the author's, also where a model writes."""
        try:
            if self.writer is not None and not decision.by_moves:
                return self.writer.write(state, decision)
            return self.author.write(_task(state, decision), self.problem, state.device)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a kernel does to an author, the run goes on without it
            return Declined(f"the author failed, which is a bug in Tunesmith: {bug_text(error)}")


def hands_out_stored(state: State) -> bool:
    """Whether what is under way is a template of the library."""
    return state.under_way is not None and state.under_way.is_stored


def _requested(state: State, question: Question) -> Requested:
    return Requested(question.request(len(state.dialogue) + 1))


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
