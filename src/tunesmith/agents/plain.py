"""A kernel that is beyond the expert: a model is asked only to rewrite it plainly. What comes back passes the
gate as every draft does, and only if the expert reads it and can do more with it than with the original; from
then on moves are made on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tunesmith.agents import prompting, task
from tunesmith.agents.prompting import PlanReply, PromptPart, Unusable
from tunesmith.agents.roles import ModelAuthor, ModelPlanner
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Question
from tunesmith.run.events import Decided
from tunesmith.run.plain import plain_problem, problem_of
from tunesmith.run.ports import Author, Catalogue, Declined, Planner, Refactoring, Written
from tunesmith.run.state import State

PLAIN = "plain"  # as the base of a plan, and the name of its words
FEW = 3  # moves: with no more of them a plain kernel is worth a thought
ASKED_FOR = "the kernel is rewritten plainly first, as --plain asks, so that the expert can read it"
_SHOWN = 12  # obstacles that are told at a time


@dataclass(frozen=True)
class PlainKernels:
    """What moves there are, on the original or on the plain kernel that has taken its place."""

    problem: Problem
    templates: Templates
    of_problem: Callable[[Problem], Catalogue]

    @property
    def of_original(self) -> Catalogue:
        return self.of_problem(self.problem)

    def catalogue(self, state: State) -> Catalogue:
        kernel = state.plain_kernel
        if kernel is None:
            return self.of_original
        own = problem_of(self.problem, self.templates, kernel)
        called = f"template {kernel.id}, the kernel written plainly"
        return replace(self.of_problem(own), of=called, text=self.templates.text(kernel))

    def words(self, state: State) -> str:
        """What planners are told of it; empty where there is no use for it, or nobody to do it."""
        moves = self.of_original
        if state.plain_kernel is not None or state.settings.moves == "none":
            return ""
        if not moves.beyond and len(moves.offers) > FEW:
            return ""
        stops = "cannot read the kernel" if moves.beyond else f"has {len(moves.offers)} moves for the kernel"
        return (
            f"The program {stops} as it is; why stands with how it reads it and with the moves. With "
            f'`"base": "{PLAIN}"` and no `moves` the author only rewrites it plainly; once that is right and '
            "the program reads it, moves are made on it, and need no author."
        )

    def decision(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.moves:
            return Unusable(
                f"with `base` {PLAIN!r} the kernel is only rewritten: `moves` come in a later round"
            )
        if (kernel := state.plain_kernel) is not None:
            return Unusable(f"template {kernel.id} is the plain kernel already: name `moves` to make on it")
        if state.settings.moves == "none":
            return Unusable(f"`base` is {PLAIN!r}, and no moves are offered here that it could be for")
        return Decided("refactor", plan.why, what=plan.what, expected=plan.expected_gain, plain=True)

    def fault(self, template: Template) -> str | None:
        """Why a plain rewrite would not help, in the expert's words."""
        if (form := _form_fault(self.problem, template)) is not None:
            return form
        found, before = self.of_problem(plain_problem(self.problem, template)), self.of_original
        if found.beyond:
            lines = [f"- {line}" for line in found.beyond[:_SHOWN]]
            return "\n".join(["the program still cannot read it:", *lines])
        if not set(found.available) - set(before.available):
            known = ", ".join(found.available) or "none"
            fault = f"the program reads it, and has no move for it that it did not have before ({known})"
            return "\n".join([f"{fault}:", *task.refused_lines(found)[:_SHOWN]])
        return None


def _form_fault(problem: Problem, template: Template) -> str | None:
    """Nothing but a launch, with the kernels and the arguments of the original."""
    more = {
        "[defines]": template.defines,
        "[require]": template.space.constraints,
        "[workspace]": template.workspace,
        "[build]": template.flags,
    }
    if there := [title for title, own in more.items() if own]:
        return f"a plain kernel declares its launch and nothing else: leave out {', '.join(there)}"
    wanted, got = ([(one.entry, one.args) for one in whose.launches] for whose in (problem, template))
    if wanted != got:
        shown = ", then ".join(f"{entry} ({', '.join(args)})" for entry, args in wanted)
        return f"a plain kernel is called as the original is: {shown}"
    return None


@dataclass(frozen=True)
class PlainingAuthor(ModelAuthor):
    """Writes the kernel plainly."""

    def _example(self) -> str:
        return prompting.example_file(self.problem.kernel.language, concrete=True, plain=True)

    def _stable(self, state: State) -> list[PromptPart]:
        moves = self.catalogue()
        stops = [f"- {line}" for line in moves.beyond] or task.refused_lines(moves)
        return [
            *task.kernel_parts(self.problem),
            task.problem_part(self.problem, state),
            PromptPart("What keeps the program from reading it, or from its moves", "\n".join(stops)),
            task.device_part(state.device),
            task.plain_build_part(self.problem, state),
            task.tested_part(self.problem, state),
        ]

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        plan = [f"Why: {decision.reason}", *([f"Mind: {decision.what}"] if decision.what else [])]
        return [PromptPart("The plan", "\n".join(plan))]


@dataclass(frozen=True)
class OnPlain:
    """An author by moves, for the plain kernel whatever it is asked about."""

    author: Author
    own: Problem

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del problem
        return self.author.write(task, self.own, device)


@dataclass(frozen=True)
class PlainAuthor(ModelAuthor):
    """A model that writes templates, and the kernel plainly where that is what was decided."""

    kernels: PlainKernels = field(kw_only=True)

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        if decision.plain:
            return self._plaining.write(state, decision)
        kernel, expert = state.plain_kernel, self.expert
        if kernel is not None and expert is not None:
            expert = OnPlain(expert, problem_of(self.problem, self.templates, kernel))
        now = replace(self, catalogue=lambda: self.kernels.catalogue(state), expert=expert)
        return ModelAuthor.write(now, state, decision)

    def plain_fault(self, template: Template) -> str | None:
        return self._plaining.faults(template) or self.kernels.fault(template)

    @property
    def _plaining(self) -> PlainingAuthor:
        return PlainingAuthor(
            self.problem,
            self.templates,
            lambda: self.kernels.of_original,
            prompting.own_prompt(PLAIN),
            self.name,
            self.signature,
            concrete=True,
        )


@dataclass(frozen=True)
class PlainPlanner(ModelPlanner):
    """A planner who may have the kernel rewritten plainly."""

    kernels: PlainKernels = field(kw_only=True)

    def decide(self, state: State) -> Decided | Question:
        now = replace(self, catalogue=lambda: self.kernels.catalogue(state))
        return ModelPlanner.decide(now, state)

    def _colleague_words(self, state: State) -> str:
        return " ".join(filter(None, [super()._colleague_words(state), self.kernels.words(state)]))

    def _refactoring(self, plan: PlanReply, state: State) -> Decided | Unusable:
        return self.kernels.decision(plan, state) if plan.base == PLAIN else super()._refactoring(plan, state)


@dataclass(frozen=True)
class PlainFirst:
    """A plain rewrite before anything else; then as the other planner says, `by_moves` of the expert where no
    model plans."""

    then: Planner
    by_moves: bool

    def decide(self, state: State) -> Decided | Question:
        is_waiting = any(c.status == "admitted" for c in state.candidates)
        if not is_waiting and not any(decided.plain for decided in state.decided):
            return Decided("refactor", ASKED_FOR, plain=True)
        found = self.then.decide(state)
        if isinstance(found, Question) or found.decision != "refactor":
            return found
        return replace(found, by_moves=True) if self.by_moves else found
