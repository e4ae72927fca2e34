"""A model as author: what it is told, and the template or kernel it sends as a draft. The gate judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.agents import material, measured
from tunesmith.agents.advisers import analysis_part
from tunesmith.agents.prompting import NoAnswer, PromptPart, again, example_file, of_role, settled, shortened
from tunesmith.agents.replies import read_file, read_kernel
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_source import vet, vet_flags
from tunesmith.run.budget import noun, share_of
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Question
from tunesmith.run.events import Decided
from tunesmith.run.ports import Catalogue, Declined, Written
from tunesmith.run.rounds import leader
from tunesmith.run.state import Candidate, State
from tunesmith.run.talking import of_this_round
from tunesmith.text import counted

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

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        found = settled(
            "author",
            state.this_turn("author"),
            state.settings.repairs,
            read_kernel if self.concrete else read_file,
            lambda: self._first(state, decision),
            state.drafts,
        )
        if isinstance(found, NoAnswer):
            return Declined(str(found))
        return Written(found, decision.moves, author=self.name) if isinstance(found, str) else found

    def faults(self, template: Template) -> str | None:
        return faults_of(self.problem, template, self.signature, self.concrete)

    def _first(self, state: State, decision: Decided) -> Question:
        """The plan; where drafts of it were turned away, the last of them and the exact words about it."""
        turn, before = state.this_turn("author"), of_this_round(state)
        rejected = before[-1].rejected if before else None
        if turn and rejected is not None and turn[-1].reply is not None:
            return again(turn[0].request, turn[-1].reply, shortened(rejected.reason, 6000))
        example = example_file(self.problem.kernel.language, self.concrete)
        return of_role("author", self.prompt, self._parts(state, decision), "file", example)

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        base = next((c for c in state.candidates if c.id == decision.candidate and c.drafted), None)
        best = leader(self.problem, state)
        other = best is not None and best is not base
        plan = [
            self._plan(decision),
            goes_on(base) if self.concrete else "",
            f"The best that is right so far is {noun(state.settings)} {best.id}." if best and other else "",
            "" if self.concrete else _room(state),
        ]
        return [
            *measured.task_parts(self.problem, state, self.catalogue()),
            analysis_part(decision.analysis),
            material.tested_part(self.problem, state),
            *([measured.base_part(self.problem, state, self.templates, base)] if base is not None else []),
            *measured.round_parts(self.problem, state),
            PromptPart("The plan", "\n".join(filter(None, plan))),
        ]

    def _plan(self, decision: Decided) -> str:
        lines = [f"Why: {decision.reason}"]
        if decision.what:
            lines.append(f"What to change: {decision.what}")
        if decision.moves:
            lines.append("With these choices; names, values and places are a program's proposal:")
            lines += [material.offer_line(self.catalogue().offer(name)) for name in decision.moves]
        return "\n".join(lines)


def faults_of(problem: Problem, template: Template, signature: SignatureFaults, concrete: bool) -> str | None:
    """Why what a model wrote may not be built, or callers could not call it."""
    if template.is_concrete and not concrete:
        return NO_PARAMETERS
    if concrete and not template.is_concrete:
        names = ", ".join(param.name for param in template.space.params)
        return (
            f"it has parameters ({names}), and nobody searches here: choose one value of each, write them "
            "into the code, and leave out [params] and [default]"
        )
    kernel = problem.kernel
    found = vet(template.source, kernel.text, kernel.language)
    return found or vet_flags(template.flags, kernel.language) or signature(template)


def goes_on(base: Candidate | None) -> str:
    if base is None:
        return "Go on from the kernel as it is."
    return f"Go on from kernel {base.id}" + (", which is broken." if base.rejected else ".")


def _room(state: State) -> str:
    evals, _ = share_of(state)
    return "" if evals is None else f"The search of your template has {counted(evals, 'evaluation')}."
