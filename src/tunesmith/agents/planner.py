"""A model as planner: what it is told, and its plan as a decision. Whatever it says, the lab decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tunesmith.agents import material, measured
from tunesmith.agents.analyst import ModelAnalyst, analysis_part
from tunesmith.agents.asking import again, of_role
from tunesmith.agents.parsing import ReplyFault, read_json
from tunesmith.agents.prompting import PromptPart
from tunesmith.agents.replies import PlanReply, plan_example
from tunesmith.core.budget import evals_left, share_of
from tunesmith.core.candidates import Templates
from tunesmith.core.counted import counted
from tunesmith.core.dialogue import Question
from tunesmith.core.events import Decided
from tunesmith.core.offers import Catalogue
from tunesmith.core.ports import Planner
from tunesmith.core.problem import Problem
from tunesmith.core.rounds import leader
from tunesmith.core.spending import rounds_begun
from tunesmith.core.state import Candidate, State


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
        said = state.this_turn("planner")
        if not said:
            example = plan_example(self.catalogue().available, self.writes)
            return of_role("planner", self.prompt, self._parts(state), "json", example)
        last = said[-1]
        if last.reply is None:
            return self._by_expert(state, f"the planner did not answer ({last.failed})")
        plan = read_json(last.reply, PlanReply)
        found = plan if isinstance(plan, ReplyFault) else self._decision(plan, state)
        if not isinstance(found, ReplyFault):
            return found
        if len(said) > state.settings.repairs:
            return self._by_expert(state, f"the planner's reply cannot be used ({found.reason})")
        return again(said[0].request, last.reply, found.reason)

    def _by_expert(self, state: State, why: str) -> Decided | Question:
        """A plan of the expert's is one of moves, which it can apply by itself."""
        found = self.expert.decide(state)
        if isinstance(found, Question):
            return found
        by_moves = found.decision == "refactor"
        return replace(found, reason=f"{why}; the expert plans: {found.reason}", by_moves=by_moves)

    def _decision(self, plan: PlanReply, state: State) -> Decided | ReplyFault:
        if plan.decision == "stop":
            return Decided("finish", plan.why)
        base = self._base(plan, state)
        if isinstance(base, ReplyFault):
            return base
        if plan.decision == "search":
            return _search(plan, base, state)
        if plan.moves:
            return self._moves(plan, base)
        if not self.writes:
            return ReplyFault("nobody here writes by words: name moves, out of those that are available")
        if not plan.what.strip():
            return ReplyFault("`what` is empty: say what the author is to change, or name moves")
        own = base.id if base else ""
        return Decided("refactor", plan.why, (), own, what=plan.what, expected=plan.expected_gain)

    def _base(self, plan: PlanReply, state: State) -> Candidate | ReplyFault | None:
        """None: the original. What was turned away is nobody's base."""
        if plan.base in ("", "best"):
            return leader(self.problem, state)
        if plan.base == "original":
            return None
        sound = {c.id: c for c in state.candidates if c.status in ("admitted", "searched")}
        if plan.base in sound:
            return sound[plan.base]
        known = ", ".join(["original", *sound])
        return ReplyFault(
            f"`base` is {plan.base!r}; what can be gone on from is: {known}, or empty for the best"
        )

    def _moves(self, plan: PlanReply, base: Candidate | None) -> Decided | ReplyFault:
        moves = self.catalogue()
        if unknown := [name for name in plan.moves if name not in moves.available]:
            why = dict(moves.refused).get(unknown[0])
            reason = f"does not apply here: {why}" if why else "is no move"
            return ReplyFault(
                f"{unknown[0]!r} {reason}; available are: {', '.join(moves.available) or 'none'}"
            )
        # Moves start from the original: a base has some of them, or is a model's, which has none.
        all_moves = tuple(dict.fromkeys((*(base.moves if base else ()), *plan.moves)))
        by_moves = base is None or bool(base.moves)
        own = base.id if base is not None and by_moves else ""
        return Decided(
            "refactor", plan.why, all_moves, own, what=plan.what, expected=plan.expected_gain, by_moves=True
        )

    def _parts(self, state: State) -> list[PromptPart]:
        best = leader(self.problem, state)
        who = (
            "An author is there for plans in words, a program for moves."
            if self.writes
            else "Only moves are possible: nobody writes by words."
        )
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.reading_part(self.catalogue()),
            material.device_part(state.device, state),
            measured.times_part(self.problem, state),
            measured.diagnosis_part(self.problem, state),
            *([analysis_part(self.analyst.words(state))] if self.analyst is not None else []),
            *([_text(self.templates, best)] if best is not None else []),
            measured.candidates_part(self.problem, state),
            *measured.history_parts(self.problem, state),
            material.moves_part(self.catalogue()),
            PromptPart("Your turn", f"{_left(state)}. {who} What comes next?"),
        ]


def _text(templates: Templates, best: Candidate) -> PromptPart:
    part = measured.base_part(templates, best)
    return PromptPart(
        f"Template {best.id}, the best so far", part.text, 1, "its text is left out: there is no room"
    )


def _left(state: State) -> str:
    """Of the budgets that a plan has to fit in."""
    most, evals = state.settings.rounds, evals_left(state)
    rounds = f"{counted(rounds_begun(state), 'round')} done"
    rounds += f", {most} at most" if most is not None else ""
    return rounds if evals is None else f"{rounds}; {counted(evals, 'evaluation')} left for searches"


def _search(plan: PlanReply, base: Candidate | None, state: State) -> Decided | ReplyFault:
    if base is None or base.searched is None:
        return ReplyFault("there is no template to search further: refactor or stop")
    if not base.searched.cut:
        return ReplyFault(
            f"the search of template {base.id} has ended: {base.searched.reason}; refactor or stop"
        )
    evals, seconds = share_of(state)
    return Decided("search", plan.why, base.moves, base.id, evals, seconds)
