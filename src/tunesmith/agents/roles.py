"""Models in their roles: what each is told, and what its reply becomes. An analyst says what bounds the
kernel, in words that cite numbers it was given; an author sends a draft; a planner, of templates or of
concrete kernels, decides. (A tester: `tester`.) Whatever they say, the lab has the last word."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tunesmith.agents import handing, material, prompting, task
from tunesmith.agents.prompting import (
    REPAIRS,
    NoAnswer,
    PlanReply,
    PromptPart,
    Unusable,
    of_role,
    read_json,
    settled,
    shortened,
)
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.vetting import foreign_fault
from tunesmith.run.budget import last_written, no_more_requests, noun, share_of
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Exchange, Question, Reply
from tunesmith.run.events import Decided
from tunesmith.run.ports import Author, Catalogue, Declined, Planner, Written
from tunesmith.run.rounds import leader
from tunesmith.run.state import Candidate, State
from tunesmith.text import counted

MOST_EVIDENCE, MOST_ADVICE = 12, 8  # of an analyst's lines that are passed on: the first
LONGEST = 6000  # characters of all of them
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class ModelAnalyst:
    problem: Problem
    prompt: str

    def question(self, state: State) -> Question | None:
        """Once in a turn, before anything is decided; once more where its reply cannot be read. None also
        where the budget has nothing left for it."""
        if state.baseline is None or no_more_requests(state) is not None:
            return None

        def first() -> Question:
            parts, now = (
                material.task_parts(self.problem, state),
                material.standing_parts(self.problem, state),
            )
            rounds = material.round_parts(self.problem, state)
            return of_role("analyst", self.prompt, parts, "json", prompting.ANALYSIS, [*rounds, *now])

        said = state.this_turn("analyst")
        found = settled("analyst", said, REPAIRS, lambda reply: read_json(reply, prompting.Analysis), first)
        return found if isinstance(found, Question) else None

    def words(self, state: State) -> str:
        """What it said in this turn; where that cannot be used, why."""
        said = state.this_turn("analyst")
        return analysis_text(said[-1]) if said else ""


@dataclass(frozen=True)
class Analysed:
    """A planner, and an analyst that is asked before a round is planned. What it said goes with the decision,
    to whoever writes and into the report; a planner that is a model reads it in its own request."""

    analyst: ModelAnalyst
    planner: Planner

    def decide(self, state: State) -> Decided | Question:
        found = self.planner.decide(state)
        if isinstance(found, Decided) and found.decision != "refactor":
            return found
        if (question := self.analyst.question(state)) is not None:
            return question
        return replace(found, analysis=self.analyst.words(state)) if isinstance(found, Decided) else found


def analysis_part(text: str) -> PromptPart:
    """Beside the diagnosis, and not to be taken for it."""
    return PromptPart("What an analyst reads in these numbers: a model's words, nothing measured", text, 1)


def analysis_text(exchange: Exchange) -> str:
    """Evidence with a number that nobody gave to the analyst is left out."""
    if exchange.reply is None:
        return f"the analyst did not answer: {exchange.failed}"
    found = read_json(exchange.reply, prompting.Analysis)
    if isinstance(found, Unusable):
        return f"the analyst's reply cannot be used: {found.reason}"
    text = "\n".join(m.text for m in exchange.request.messages if m.speaker == "user")
    own = exchange.request.example  # whose numbers, as those of the instructions, are nobody's
    given = set(_NUMBER.findall(text.replace(own, "") if own else text))
    shown = [line for line in found.evidence if set(_NUMBER.findall(line)) <= given]
    made_up = len(found.evidence) - len(shown)
    lines = [f"Bound: {found.bound}", *(f"- {line}" for line in shown[:MOST_EVIDENCE])]
    lines += [f"- ({made_up} more left out: they cite numbers that were not measured)"] if made_up else []
    lines += [f"Advice: {line}" for line in found.advice[:MOST_ADVICE]]
    # On a line each, so that none can pass for a heading of what it is shown in.
    return shortened("\n".join(" ".join(line.split()) for line in lines), LONGEST)


SignatureFaults = Callable[[Template], str | None]
NO_PARAMETERS = "it has no parameters, so nothing could be searched: declare at least one under [params]"


@dataclass(frozen=True)
class ModelAuthor:
    """`signature` tells whether callers can call a template as they call the original."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]
    prompt: str
    name: str  # of the model
    signature: SignatureFaults
    concrete: bool = False  # whether it writes kernels without parameters
    expert: Author | None = None  # who applies moves, where there is such a one

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        found = settled(
            "author",
            state.this_turn("author"),
            state.settings.repairs,
            prompting.read_kernel if self.concrete else prompting.read_file,
            lambda: self._first(state, decision),
            state.drafts(),
        )
        if isinstance(found, NoAnswer):
            return Declined(str(found))
        return Written(found, decision.moves, author=self.name) if isinstance(found, str) else found

    def faults(self, template: Template) -> str | None:
        """Why what a model wrote may not be built, or callers could not call it."""
        if template.is_concrete and not self.concrete:
            return NO_PARAMETERS
        if self.concrete and not template.is_concrete:
            names = ", ".join(param.name for param in template.space.params)
            return (
                f"it has parameters ({names}), and nobody searches here: choose one value of each, write "
                "them into the code, and leave out [params]"
            )
        return foreign_fault(self.problem, template) or self.signature(template)

    def _first(self, state: State, decision: Decided) -> Question:
        """The plan; where drafts of it were turned away, the last of them and the exact words about it."""
        turn, before = state.this_turn("author"), state.written
        rejected = before[-1].rejected if before else None
        if turn and rejected is not None and (reply := turn[-1].reply) is not None:
            return prompting.again(turn[0].request, reply, shortened(rejected.reason, 6000))
        parts, now = self._stable(state), self._parts(state, decision)
        return of_role("author", self.prompt, parts, "file", self._example(), now)

    def _example(self) -> str:
        return prompting.example_file(self.problem.kernel.language, self.concrete)

    def _stable(self, state: State) -> list[PromptPart]:
        """The same in every round."""
        return [
            *material.task_parts(self.problem, state, self.catalogue()),
            task.build_part(self.problem, state),
            task.tested_part(self.problem, state),
        ]

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        base = next((c for c in state.candidates if c.id == decision.candidate and c.drafted), None)
        best = leader(self.problem, state)
        evals = None if self.concrete else share_of(state).evals
        plan = [
            *handing.plan_lines(decision, self.catalogue()),
            goes_on(base) if self.concrete else "",
            f"The best that is right so far is {noun(state.settings)} {best.id}."
            if best and best is not base
            else "",
            "" if evals is None else f"The search of your template has {counted(evals, 'evaluation')}.",
        ]
        return [
            *material.round_parts(self.problem, state),
            *([material.base_part(self.problem, state, self.templates, base)] if base is not None else []),
            *handing.handed_parts(decision, self.expert, self.problem, state.device),
            *material.standing_parts(self.problem, state),
            analysis_part(decision.analysis),
            PromptPart("The plan", "\n".join(filter(None, plan))),
        ]


def goes_on(base: Candidate | None) -> str:
    if base is None:
        return "Go on from the kernel as it is."
    return f"Go on from kernel {base.id}" + (", which is broken." if base.rejected else ".")


OWN_CHOICE = "There is no plan for this round: choose yourself what pays most, by the numbers."
NO_ROOM = "its text is left out: there is no room"


@dataclass(frozen=True)
class PlanningModel:
    """What planners have in common: what they are told, and where their plan is read."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]
    prompt: str
    analyst: ModelAnalyst | None  # whose words it is told; `Analysed` asks for them
    lessons: str = field(default="", kw_only=True)  # of earlier runs

    def _plan(
        self,
        state: State,
        read: Callable[[Reply], Decided | Unusable],
        example: Callable[[], str],
        offered: Callable[[], list[PromptPart]],
        written: Callable[[], list[PromptPart]],
        turn: str,
    ) -> Decided | Question | NoAnswer:
        """`offered` stays the same in a run; `written` does not; `turn` stands at the end."""

        def first() -> Question:
            values = task.values_tested(self.problem, state)
            parts = [
                *material.task_parts(self.problem, state, self.catalogue()),
                PromptPart("Tested anyway", f"All edges of the contract, with values: {values}.", 1),
                task.lessons_part(self.lessons),
                *offered(),
            ]
            now = [
                *material.round_parts(self.problem, state),
                *written(),
                *material.standing_parts(self.problem, state),
                *([analysis_part(self.analyst.words(state))] if self.analyst is not None else []),
                PromptPart("Your turn", f"{material.left_words(state)}. {turn} What comes next?"),
            ]
            return of_role("planner", self.prompt, parts, "json", example(), now)

        return settled("planner", state.this_turn("planner"), state.settings.repairs, read, first)

    def _text(self, state: State, base: Candidate | None, called: str = "") -> list[PromptPart]:
        """What is gone on from, as far as there is room; `called` says what else it is."""
        if base is None:
            return []
        part = material.base_part(self.problem, state, self.templates, base)
        heading = f"{part.heading.split(',')[0]}{called}" if called else part.heading
        return [PromptPart(heading, part.text, 1, NO_ROOM)]


@dataclass(frozen=True)
class ModelPlanner(PlanningModel):
    """`expert` searches what is admitted, and plans a round for which the model has no plan."""

    expert: Planner
    writes: bool  # whether a model writes templates, too: else there is nothing but moves

    def decide(self, state: State) -> Decided | Question:
        if any(c.status == "admitted" for c in state.candidates):
            return self.expert.decide(state)

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, PlanReply)
            return plan if isinstance(plan, Unusable) else self._decision(plan, state)

        def example() -> str:
            return prompting.plan_example(self.catalogue().available, self.writes)

        who = "An author is there for plans in words, a program for moves."
        who = who if self.writes else "Only moves are possible: nobody writes by words."
        is_without = state.settings.moves == "none" and self.writes
        who = "An author is there for plans in words; no moves are offered." if is_without else who
        who = " ".join(filter(None, [who, self._colleague_words(state)]))

        found = self._plan(
            state,
            read,
            example,
            lambda: [task.moves_part(self.catalogue())],
            lambda: [
                *self._text(state, leader(self.problem, state), ", the best so far"),
                material.candidates_part(self.problem, state),
            ],
            who,
        )
        if not isinstance(found, NoAnswer):
            return found
        if is_without:
            best = leader(self.problem, state)
            reason = f"{found.what} ({found.why}); the author chooses"
            return Decided("refactor", reason, (), best.id if best else "", what=OWN_CHOICE)
        plan = self.expert.decide(state)  # one of moves, which it can apply by itself
        if isinstance(plan, Question):
            return plan
        reason = f"{found.what} ({found.why}); the expert plans: {plan.reason}"
        return replace(plan, reason=reason, by_moves=plan.decision == "refactor")

    def _colleague_words(self, state: State) -> str:
        """How author and program may work together."""
        return handing.expert_words(self.catalogue(), self.writes)

    def _decision(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.decision == "stop":
            return Decided("finish", plan.why)
        if plan.decision == "search":
            base = self._base(plan, state)
            return base if isinstance(base, Unusable) else _further_search(plan, base, state)
        return self._refactoring(plan, state)

    def _refactoring(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.base == handing.EXPERT:
            return handing.handed(plan, self.catalogue(), self.writes)
        base = self._base(plan, state)
        if isinstance(base, Unusable):
            return base
        if plan.moves:
            return self._moves(plan, base)
        if not self.writes:
            return Unusable("nobody here writes by words: name moves, out of those that are available")
        if not plan.what.strip():
            return Unusable("`what` is empty: say what the author is to change, or name moves")
        own = base.id if base else ""
        return Decided("refactor", plan.why, (), own, what=plan.what, expected=plan.expected_gain)

    def _base(self, plan: PlanReply, state: State) -> Candidate | Unusable | None:
        """None: the original. What was turned away is nobody's base."""
        if plan.base in ("", "best"):
            return leader(self.problem, state)
        if plan.base == "original":
            return None
        sound = {c.id: c for c in state.candidates if c.status in ("admitted", "searched")}
        if plan.base in sound:
            return sound[plan.base]
        known = ", ".join(["original", *sound])
        return Unusable(f"`base` is {plan.base!r}; it can be: {known}, or empty for the best")

    def _moves(self, plan: PlanReply, base: Candidate | None) -> Decided | Unusable:
        moves = self.catalogue()
        if unknown := [name for name in plan.moves if name not in moves.available]:
            why = dict(moves.refused).get(unknown[0])
            reason = f"does not apply here: {why}" if why else "is no move"
            known = ", ".join(moves.available) or "none"
            return Unusable(f"{unknown[0]!r} {reason}; available are: {known}")
        # Moves start from the original: a base has some of them, or is a model's, which has none.
        chosen = tuple(dict.fromkeys((*(base.moves if base else ()), *plan.moves)))
        own = base.id if base is not None and base.moves else ""
        gain = plan.expected_gain
        return Decided("refactor", plan.why, chosen, own, what=plan.what, expected=gain, by_moves=True)


def _further_search(plan: PlanReply, base: Candidate | None, state: State) -> Decided | Unusable:
    if base is None or base.searched is None:
        return Unusable("there is no template to search further: refactor or stop")
    if not base.searched.cut:
        why = f"the search of template {base.id} has ended: {base.searched.reason}"
        return Unusable(f"{why}; refactor or stop")
    return share_of(state).search(plan.why, base.moves, base.id)


@dataclass(frozen=True)
class RewritePlanner(PlanningModel):
    """Of concrete kernels, which nobody searches. Rounds go on from the best kernel that is right or, linear,
    from the last that was written. A round for which the model has no plan is the author's own; if that is
    silent too, the run ends."""

    def decide(self, state: State) -> Decided | Question:
        if (measure := to_measure(state)) is not None:
            return measure
        base = last_written(state) if state.settings.linear else leader(self.problem, state)
        own = base.id if base else ""

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, prompting.RewriteReply)
            if isinstance(plan, Unusable):
                return plan
            if plan.decision == "stop":
                return Decided("finish", plan.why)
            if not plan.what.strip():
                return Unusable("`what` is empty: say what the author is to change")
            return Decided("refactor", plan.why, (), own, what=plan.what, expected=plan.expected_gain)

        def written() -> list[PromptPart]:
            every = [material.candidates_part(self.problem, state)] if state.candidates else []
            return [*self._text(state, base), *every]

        ideas = task.ideas_parts(state, self.catalogue)
        found = self._plan(state, read, lambda: prompting.REWRITE, lambda: ideas, written, goes_on(base))
        if not isinstance(found, NoAnswer):
            return found
        last = next((e for e in reversed(state.dialogue) if e.request.role == "author"), None)
        if found.is_silent and last is not None and last.reply is None:
            return Decided("finish", f"neither planner nor author answers: {found.why}")
        reason = f"{found.what} ({found.why}); the author chooses"
        return Decided("refactor", reason, (), own, what=OWN_CHOICE)


def to_measure(state: State) -> Decided | None:
    """A kernel that the gate let in is measured before anything else is decided."""
    waiting = [c for c in state.candidates if c.status == "admitted"]
    return Decided("search", f"kernel {waiting[-1].id} is right", (), waiting[-1].id) if waiting else None
