"""The steps of a run that need no device: asking models, deciding by their replies, keeping what they write.

So they can be taken on a machine without one, from the same state to the same events. Requests are sent one
attempt at a time, with pauses that grow; each attempt is a fact of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue

from tunesmith.base.errors import BadInput, TunesmithError, WaitingForModel, bug_text
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run import budget
from tunesmith.run import events as ev
from tunesmith.run.candidates import Templates, parse_config
from tunesmith.run.ports import Author, Inbox, ModelWriter, Planner, Refactoring, RunLog, Tester, Written
from tunesmith.run.scores import OneSearch
from tunesmith.run.state import Candidate, State
from tunesmith.space.configset import Config

ATTEMPTS = 5
FEW = 2  # attempts with a model that was given up last time
FIRST_PAUSE = 2.0  # seconds before the second attempt; doubled with each
LONGEST_PAUSE = 120.0  # whatever the other side asks for
LOOK = 0.5  # seconds between two looks at what whoever watches asks, while a reply is waited for
STOPPED = "stopped by whoever watches"
REPAIRS = 2  # times a program may write a draft again


@dataclass
class Conversation:
    """The models of a run, by role. Remembers nothing that matters: after a restart a pause is left out, and
    what was on its way is asked again."""

    models: Mapping[ev.Role, ev.LanguageModel] = field(default_factory=dict)
    pause: Callable[[float], None] = lambda _seconds: None
    note: Callable[[str], None] = lambda _text: None
    start: Callable[[Callable[[], None]], None] = lambda ask: ask()  # one attempt, beside the inbox
    inbox: Inbox | None = None  # what whoever watches asks meanwhile
    _waits: dict[int, float] = field(default_factory=dict, init=False)  # seconds before the next attempt
    _asked: int = field(default=0, init=False)  # the number of a request that is on its way; 0: none is
    _arrived: SimpleQueue[tuple[int, Found]] = field(default_factory=SimpleQueue, init=False)

    def model_for(self, request: ev.Request) -> ev.LanguageModel | None:
        return self.models.get(request.role)

    def answer(
        self,
        open_: ev.Exchange,
        dialogue: Sequence[ev.Exchange] = (),
        told: Callable[[], ev.Instructed | None] = lambda: None,
    ) -> ev.Replied | ev.Unanswered | ev.Instructed:
        """What comes of one attempt; WaitingForModel where the reply is missing and not to be waited for.
        `dialogue` is all that was asked in the run. `told`: what cannot wait until then; the attempt goes on
        beside it."""
        request = open_.request
        model = self.model_for(request)
        if model is None:
            why = f"no model plays the {request.role} here"
            return ev.Unanswered(request.number, why, True, open_.attempts + 1, final=True)
        if self.inbox is None or is_at_once(model):
            return self._reply_event(
                open_, self._attempt(request, model, self._announce(request, model)), dialogue
            )
        if self._asked != request.number:
            self._begin(request, model)
        while True:
            try:
                number, came = self._arrived.get(timeout=LOOK)
            except Empty:
                if (said := told()) is not None:
                    return said
                continue
            if number != request.number:
                continue  # that one was given up
            self._asked = 0
            if isinstance(came, Exception) and not isinstance(came, BadInput):
                raise came
            return self._reply_event(open_, came, dialogue)

    def _begin(self, request: ev.Request, model: ev.LanguageModel) -> None:
        """One attempt, beside the inbox. A run that is stopped does not wait for it."""
        wait = self._announce(request, model)

        def ask() -> None:
            try:
                self._arrived.put((request.number, self._attempt(request, model, wait)))
            except Exception as error:  # raised where the run is
                self._arrived.put((request.number, error))

        self._asked = request.number
        self.start(ask)

    def _announce(self, request: ev.Request, model: ev.LanguageModel) -> float:
        """The seconds to wait before it is asked."""
        if wait := self._waits.pop(request.number, 0.0):
            self.note(f"asking {model.name} again in {wait:.0f} s")
        self.note(f"asking {model.name} as {request.role}, request {request.number}")
        return wait

    def _attempt(self, request: ev.Request, model: ev.LanguageModel, wait: float) -> Said:
        """What one attempt brings; BadInput: a key or a package that another machine may have."""
        if wait:
            self.pause(wait)
        try:
            return model.reply(request)
        except BadInput as error:
            return error

    def _reply_event(
        self, exchange: ev.Exchange, found: Said, dialogue: Sequence[ev.Exchange]
    ) -> ev.Replied | ev.Unanswered:
        if isinstance(found, ev.Pending | BadInput):
            raise _waiting_error(exchange.request, found)
        if isinstance(found, ev.Reply):
            # Without halves of characters, which a journal cannot hold.
            whole = found.text.encode("utf-8", "replace").decode()
            return ev.Replied(exchange.request.number, replace(found, text=whole))
        return self._unanswered_event(exchange, found, self._most_attempts(exchange.request, dialogue))

    def _most_attempts(self, request: ev.Request, dialogue: Sequence[ev.Exchange]) -> int:
        """A model that nobody reached a moment ago is not waited for as long again."""
        model = self.model_for(request)
        ended = [e for e in dialogue if self.model_for(e.request) is model and not e.is_open]
        return FEW if ended and ended[-1].failed else ATTEMPTS

    def _unanswered_event(self, exchange: ev.Exchange, found: ev.NoReply, most: int) -> ev.Unanswered:
        attempt, number = exchange.attempts + 1, exchange.request.number
        final = found.lasts or attempt >= most
        if not final:
            pause = max(found.wait or 0.0, FIRST_PAUSE * 2 ** (attempt - 1))
            self._waits[number] = min(pause, LONGEST_PAUSE)
        return ev.Unanswered(number, found.reason, found.lasts, attempt, final, found.usage, found.came)


Said = ev.Reply | ev.NoReply | ev.Pending | BadInput
Found = Said | Exception


def is_at_once(model: ev.LanguageModel) -> bool:
    """Whether it has its answer without being waited for: then it is asked in order, in no thread."""
    return bool(getattr(model, "at_once", False))


def _waiting_error(request: ev.Request, found: ev.Pending | BadInput) -> WaitingForModel:
    if isinstance(found, BadInput):
        return WaitingForModel(f"request {request.number} cannot be sent from here: {found}", hint=found.hint)
    seen = f"; {found.found}" if found.found else ""
    words = f"the reply to request {request.number} is missing: it is to be written to {found.where}{seen}"
    return WaitingForModel(words, awaits=found.where)


@dataclass(frozen=True)
class ModelDialogue:
    problem: Problem
    templates: Templates
    planner: Planner
    author: Author
    writer: ModelWriter | None = None  # where a model writes
    tester: Tester | None = None  # where a model adds cases
    conversation: Conversation = field(default_factory=Conversation)
    # Why a plain rewrite may not be built, or does not help the expert; None: nobody is asked for one.
    plain_fault: Callable[[Template], str | None] | None = None

    def next_event(self, state: State) -> ev.Event | None:
        """None: nothing more can be done without looking at a kernel or running one."""
        if (open_ := state.open_request) is not None:
            return self._answered(state, open_)
        if state.under_way is None and (state.this_turn("planner") or state.this_turn("analyst")):
            return self.decided(state)
        if state.under_way is None or state.in_flight or not state.is_to_write:
            return None
        return self._draft_event(state, state.under_way)

    def _answered(self, state: State, open_: ev.Exchange) -> ev.Event:
        """Who asks the run to finish does not wait for what is open: it is given up."""
        if (told := self.urgent_instruction(state)) is not None:
            return told
        if (asked := budget.asked_to_finish(state)) is not None:
            return ev.Unanswered(open_.request.number, asked, True, open_.attempts + 1, final=True)
        return self.conversation.answer(open_, state.dialogue, partial(self.urgent_instruction, state))

    def urgent_instruction(self, state: State) -> ev.Instructed | None:
        """What whoever watches asks that cannot wait; a hint can. KeyboardInterrupt where that was to stop,
        and it is in the journal."""
        inbox = self.conversation.inbox
        waiting = inbox.waiting() if inbox is not None else ()
        if not (waiting or state.instructed):
            return None

        urgent = [i for i in not_taken(waiting, state, inbox) if i.what != "hint"]
        if is_stopping(state):
            raise KeyboardInterrupt(STOPPED)
        return taken_up(urgent[0], state, None) if urgent else None

    def decided(self, state: State) -> ev.Decided | ev.Requested:
        """The planner's word, or what it has to ask before it can give it."""
        if (why := self.used_up(state)) is not None:
            return ev.Decided("finish", why)
        try:
            found = self.planner.decide(state)
        except TunesmithError:
            raise
        except Exception as error:  # what has been found so far is not lost by it
            return ev.Decided("finish", f"the planner failed, which is a bug in Tunesmith: {bug_text(error)}")
        if isinstance(found, ev.Question):
            return _request_event(state, found)
        if state.plain_kernel is not None:
            from tunesmith.run.rounds import on_plain  # which few runs need

            found = on_plain(found, state)
        return found

    def cases(self, state: State) -> ev.Extended | ev.Requested:
        """What the tester adds, still to be tried on the original."""
        assert self.tester is not None, "nobody adds cases"
        found = self.tester.cases(state)
        if not isinstance(found, ev.Question):
            return found
        if (why := budget.no_more_requests(state)) is None:
            return _request_event(state, found)
        is_again = any(e.request.role == "tester" for e in state.dialogue)
        return ev.Extended((), note=f"the tester's reply cannot be used, and {why}" if is_again else why)

    def used_up(self, state: State) -> str | None:
        """Why nothing further is decided on; what is admitted is searched all the same."""
        spent = budget.exhausted_budget(state) if state.decided else budget.asked_to_finish(state)
        if spent or has_unsearched(state):
            return spent
        # Who only tests or analyses can be done without.
        needed = {role for role in self.conversation.models if role not in ("tester", "analyst")}
        if state.settings.plain and "planner" not in needed and any(d.plain for d in state.decided):
            needed.discard("author")  # it was asked for the plain kernel, and for nothing else
        return budget.no_more_rounds(state, bool(needed))

    def draft_fault(self, state: State, draft: Candidate, template: Template) -> str | None:
        """Why a draft that is a model's, or made on what one wrote, may not be built."""
        is_stored = state.under_way is not None and state.under_way.is_stored
        return self.fault_of(template, is_stored, state.is_plain(draft))

    def fault_of(self, template: Template, is_stored: bool = False, is_plain: bool = False) -> str | None:
        """Why what a model wrote, here or for the library, may not be built."""
        if (self.writer is None and not is_stored) or (is_plain and self.plain_fault is None):
            return "no model writes in this run"
        try:
            if is_plain and self.plain_fault is not None:
                return self.plain_fault(template)
            if self.writer is None or is_stored:
                from tunesmith.problem.vet import foreign_fault

                return foreign_fault(self.problem, template)
            return self.writer.faults(template)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a text does to its readers, the run goes on without it
            return f"it cannot be judged, which is a bug in Tunesmith: {bug_text(error)}"

    def _draft_event(self, state: State, decision: ev.Decided) -> ev.Event:
        """The template that was decided on; where drafts of it were turned away, another with what they
        taught. Its text is stored before it is named."""
        if (asked := budget.asked_to_finish(state)) is not None:
            return ev.Declined(asked)
        answer = self._write_draft(state, decision)
        if isinstance(answer, ev.Question):
            spent = budget.no_more_requests(state)
            return ev.Declined(spent) if spent else _request_event(state, answer)
        if isinstance(answer, ev.Declined):
            return ev.Declined(answer.reason)
        before = state.written
        parent = before[-1].id if before else decision.candidate
        digest, number = self.templates.keep(answer.text), str(1 + state.drafts())
        return ev.Drafted(number, parent, digest, answer.moves, answer.refused, answer.notes, answer.author)

    def _write_draft(self, state: State, decision: ev.Decided) -> Written | ev.Declined | ev.Question:
        """What is to be done by moves is the author's, also where a model writes."""
        try:
            if self.writer is not None and not decision.by_moves:
                return self.writer.write(state, decision)
            task = _refactoring_task(state, decision)
            if state.plain_kernel is not None and not decision.is_stored:
                return self._on_plain(state, decision, task)
            return self.author.write(task, self.problem, state.device)
        except TunesmithError:
            raise
        except Exception as error:  # whatever a kernel does to an author, the run goes on without it
            return ev.Declined(f"the author failed, which is a bug in Tunesmith: {bug_text(error)}")

    def _on_plain(self, state: State, decision: ev.Decided, task: Refactoring) -> Written | ev.Declined:
        """By moves, on the plain kernel if that is what the decision goes on from. What comes of a model's
        text is a model's, whoever changed it."""
        from tunesmith.run.rounds import made_on, problem_of

        kernel = made_on(state, decision.candidate)
        problem = problem_of(self.problem, self.templates, kernel)
        written = self.author.write(task, problem, state.device)
        if kernel is None or isinstance(written, ev.Declined):
            return written
        return replace(written, author=self.templates.author_of(kernel))


def has_unsearched(state: State) -> bool:
    return any(c.status == "admitted" for c in state.candidates)


def is_by_program(state: State, draft: Candidate) -> bool:
    """Whether no model is asked to mend a draft at the gate: it is stored, or made by moves."""
    if draft.drafted is None or not draft.drafted.author or state.under_way is None:
        return True
    return state.under_way.is_stored or state.under_way.by_moves


def may_mend_draft(state: State, draft: Candidate) -> bool:
    """Whether its author can be asked for another. Replies that were no template count too."""
    if is_by_program(state, draft):
        return len(state.written) <= REPAIRS
    replies = [e for e in state.this_turn("author", ev.SINGLE) if e.reply]
    return len(replies) <= state.settings.repairs


def _request_event(state: State, question: ev.Question) -> ev.Requested:
    return ev.Requested(question.request(len(state.dialogue) + 1))


def _refactoring_task(state: State, decision: ev.Decided) -> Refactoring:
    before = state.written
    last = before[-1].rejected if before else None
    without = dict.fromkeys(value for c in before if c.rejected for value in c.rejected.without)
    return Refactoring(decision.moves, tuple(without), last.reason if last else "")


def is_stopping(state: State) -> bool:
    """Whether nothing more is asked for until the run is resumed."""
    said = [i.what for i in state.instructed if i.what in ("stop", "resume") and not i.refused]
    return bool(said) and said[-1] == "stop"


def pending_hints(state: State) -> list[Config]:
    """Configurations of the template that is searched which somebody wants tried and which are not yet."""
    searched = state.under_way.candidate if state.under_way is not None and state.searching else None
    on_the_way = {trial.config for trial in state.in_flight}
    named = dict.fromkeys(i.config for i in state.instructed if i.config is not None)
    return [
        c for c in named if c.candidate == searched and c not in on_the_way and not state.searched.count(c)
    ]


def not_taken(
    waiting: Sequence[ev.RunInstruction], state: State, inbox: Inbox | None = None
) -> list[ev.RunInstruction]:
    """Without what is in the journal, which is taken out of the inbox too, where that is given."""
    known = {taken.id for taken in state.instructed}
    if inbox is not None:
        for id in known.intersection(given.id for given in waiting):
            inbox.drop(id)
    return [given for given in waiting if given.id not in known]


def refuse_old_stops(log: RunLog, inbox: Inbox) -> None:
    """Who resumes a run does not want what was asked of it before to stop it again."""
    for given in not_taken(inbox.waiting(), log.state):
        if given.what == "stop":
            log.write(ev.Instructed(given.id, "stop", refused="the run had ended before it was taken up"))
            inbox.drop(given.id)
    if is_stopping(log.state):
        log.write(ev.Instructed("", "resume"))


def taken_up(given: ev.RunInstruction, state: State, search: OneSearch | None) -> ev.Instructed | None:
    """None: it is too early. `search`: what is under way, where that is a search."""
    if given.what == "finish" and state.device.absent:
        why = "nothing can be raced or verified without the device; stop the run, and go on where it is"
        return ev.Instructed(given.id, "finish", refused=why)
    if given.what == "stop" or (given.what == "finish" and not _is_to_finish(state)):
        return ev.Instructed(given.id, given.what)
    if given.what == "finish":
        return ev.Instructed(given.id, "finish", refused="the run is finishing already")
    if search is None and not _is_to_finish(state):
        return None
    config, refused = _parse_hint(given.text, state, search)
    return ev.Instructed(given.id, "hint", given.text, config, refused)


def _is_to_finish(state: State) -> bool:
    return budget.is_finishing(state) or budget.asked_to_finish(state) is not None


def _parse_hint(text: str, state: State, search: OneSearch | None) -> tuple[Config | None, str]:
    if search is None:
        return None, "nothing is searched any more"
    if (spent := budget.exhausted_budget(state) or budget.exhausted_share(state)) is not None:
        return None, spent
    if search.template.is_concrete:
        return None, "what is searched has no parameters"
    try:
        config = parse_config(search.template, text)
    except BadInput as error:
        return None, f"{error.message} ({error.hint})" if error.hint else error.message
    if config not in search.configs:
        return None, f"{config} is forbidden by the template's constraints, or runs at no workload here"
    pruned = {verdict.config: verdict.reason for verdict in state.pruned.of(("of", config.candidate))}
    if config in pruned:
        return None, f"{config} was built and left out: {pruned[config]}"
    if state.searched.count(config) or config in {trial.config for trial in state.in_flight}:
        return None, f"{config} has been tried, or is about to be"
    return config, ""
