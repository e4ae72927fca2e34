"""A model as planner, of templates or of concrete kernels: what it is told, and its plan as a decision.
Whatever it says, the lab decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tunesmith.agents import material, measured
from tunesmith.agents.advisers import ModelAnalyst, analysis_part
from tunesmith.agents.author import goes_on
from tunesmith.agents.prompting import NoAnswer, PromptPart, of_role, settled
from tunesmith.agents.replies import REWRITE, PlanReply, RewriteReply, Unusable, plan_example, read_json
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import share_of
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Question, Reply
from tunesmith.run.events import Decided
from tunesmith.run.ports import Catalogue, Planner
from tunesmith.run.rounds import leader
from tunesmith.run.state import Candidate, State

OWN_CHOICE = "There is no plan for this round: choose yourself what pays most, by the numbers."
NO_ROOM = "its text is left out: there is no room"


@dataclass(frozen=True)
class ModelPlanner:
    """`expert` searches what is admitted, and plans a round for which the model has no plan."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]
    expert: Planner
    prompt: str
    writes: bool  # whether a model writes templates, too: else there is nothing but moves
    analyst: ModelAnalyst | None = None  # whose words it is told; `Analysed` asks for them

    def decide(self, state: State) -> Decided | Question:
        if any(c.status == "admitted" for c in state.candidates):
            return self.expert.decide(state)

        def first() -> Question:
            example = plan_example(self.catalogue().available, self.writes)
            return of_role("planner", self.prompt, self._parts(state), "json", example)

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, PlanReply)
            return plan if isinstance(plan, Unusable) else self._decision(plan, state)

        found = settled("planner", state.this_turn("planner"), state.settings.repairs, read, first)
        return self._by_expert(state, found) if isinstance(found, NoAnswer) else found

    def _by_expert(self, state: State, why: NoAnswer) -> Decided | Question:
        """A plan of the expert's is one of moves, which it can apply by itself."""
        found = self.expert.decide(state)
        if isinstance(found, Question):
            return found
        reason = f"{why.what} ({why.why}); the expert plans: {found.reason}"
        return replace(found, reason=reason, by_moves=found.decision == "refactor")

    def _decision(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.decision == "stop":
            return Decided("finish", plan.why)
        base = self._base(plan, state)
        if isinstance(base, Unusable):
            return base
        if plan.decision == "search":
            return _search(plan, base, state)
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

    def _parts(self, state: State) -> list[PromptPart]:
        best = leader(self.problem, state)
        who = (
            "An author is there for plans in words, a program for moves."
            if self.writes
            else "Only moves are possible: nobody writes by words."
        )
        turn = f"{measured.left_words(state)}. {who} What comes next?"
        return [
            *measured.task_parts(self.problem, state, self.catalogue()),
            *_advice(self.analyst, state),
            *_text(self.problem, state, self.templates, best, ", the best so far"),
            measured.candidates_part(self.problem, state),
            *measured.round_parts(self.problem, state),
            material.moves_part(self.catalogue()),
            PromptPart("Your turn", turn),
        ]


@dataclass(frozen=True)
class RewritePlanner:
    """Of concrete kernels, which nobody searches. Rounds go on from the best kernel that is right or, linear,
    from the last that was written. A round for which the model has no plan is the author's own; if that is
    silent too, the run ends."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]  # for what the expert reads in the kernel
    prompt: str
    analyst: ModelAnalyst | None = None  # whose words it is told; `Analysed` asks for them

    def decide(self, state: State) -> Decided | Question:
        if (measure := to_measure(state)) is not None:
            return measure
        base = measured.base_of(self.problem, state)
        own = base.id if base else ""

        def first() -> Question:
            return of_role("planner", self.prompt, self._parts(state, base), "json", REWRITE)

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, RewriteReply)
            if isinstance(plan, Unusable):
                return plan
            if plan.decision == "stop":
                return Decided("finish", plan.why)
            if not plan.what.strip():
                return Unusable("`what` is empty: say what the author is to change")
            return Decided("refactor", plan.why, (), own, what=plan.what, expected=plan.expected_gain)

        found = settled("planner", state.this_turn("planner"), state.settings.repairs, read, first)
        if not isinstance(found, NoAnswer):
            return found
        last = next((e for e in reversed(state.dialogue) if e.request.role == "author"), None)
        if found.is_silent and last is not None and last.reply is None:
            return Decided("finish", f"neither planner nor author answers: {found.why}")
        reason = f"{found.what} ({found.why}); the author chooses"
        return Decided("refactor", reason, (), own, what=OWN_CHOICE)

    def _parts(self, state: State, base: Candidate | None) -> list[PromptPart]:
        return [
            *measured.task_parts(self.problem, state, self.catalogue()),
            *_advice(self.analyst, state),
            *_text(self.problem, state, self.templates, base),
            *([measured.candidates_part(self.problem, state)] if state.candidates else []),
            *measured.round_parts(self.problem, state),
            PromptPart("Your turn", f"{measured.left_words(state)}. {goes_on(base)} What comes next?"),
        ]


def to_measure(state: State) -> Decided | None:
    """A kernel that the gate let in is measured before anything else is decided."""
    waiting = [c for c in state.candidates if c.status == "admitted"]
    return Decided("search", f"kernel {waiting[-1].id} is right", (), waiting[-1].id) if waiting else None


def _advice(analyst: ModelAnalyst | None, state: State) -> list[PromptPart]:
    return [analysis_part(analyst.words(state))] if analyst is not None else []


def _text(
    problem: Problem, state: State, templates: Templates, base: Candidate | None, called: str = ""
) -> list[PromptPart]:
    """What is gone on from, as far as there is room; `called` says what else it is."""
    if base is None:
        return []
    part = measured.base_part(problem, state, templates, base)
    heading = f"{part.heading.split(',')[0]}{called}" if called else part.heading
    return [PromptPart(heading, part.text, 1, NO_ROOM)]


def _search(plan: PlanReply, base: Candidate | None, state: State) -> Decided | Unusable:
    if base is None or base.searched is None:
        return Unusable("there is no template to search further: refactor or stop")
    if not base.searched.cut:
        why = f"the search of template {base.id} has ended: {base.searched.reason}"
        return Unusable(f"{why}; refactor or stop")
    evals, seconds = share_of(state)
    return Decided("search", plan.why, base.moves, base.id, evals, seconds)
