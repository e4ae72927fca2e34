"""A model as author: what it is told, and the file it sends as a draft. The gate does the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.agents import material, measured
from tunesmith.agents.analyst import analysis_part
from tunesmith.agents.asking import again, of_role
from tunesmith.agents.examples import example_file
from tunesmith.agents.parsing import ReplyFault, read_file
from tunesmith.agents.prompting import PromptPart
from tunesmith.core.budget import share_of
from tunesmith.core.candidates import Templates
from tunesmith.core.counted import counted
from tunesmith.core.dialogue import Question, Reply
from tunesmith.core.drafting import of_this_round
from tunesmith.core.events import Decided
from tunesmith.core.offers import Catalogue
from tunesmith.core.ports import Declined, Written
from tunesmith.core.problem import Problem
from tunesmith.core.rounds import leader
from tunesmith.core.state import State
from tunesmith.core.template import Template
from tunesmith.core.vetting import vet, vet_flags

SignatureFaults = Callable[[Template], str | None]


@dataclass(frozen=True)
class ModelAuthor:
    """`signature` tells whether callers can call a template as they call the original."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]
    prompt: str
    name: str  # of the model
    signature: SignatureFaults

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        turn = state.this_turn("author")
        said = [e for e in turn if e.drafts == state.drafts]
        if not said:
            return self._first(state, decision)
        last = said[-1]
        if last.reply is None:
            return Declined(f"the author did not answer: {last.failed}")
        text = self._read(last.reply)
        if isinstance(text, str):
            return Written(text, decision.moves, author=self.name)
        if sum(e.reply is not None for e in turn) > state.settings.repairs:
            return Declined(f"the author's reply cannot be used: {text.reason}")
        return again(turn[0].request, last.reply, text.reason)

    def faults(self, template: Template) -> str | None:
        if template.is_concrete:
            return "it has no parameters, so nothing could be searched: declare at least one under [params]"
        return self._unsafe(template)

    def _unsafe(self, template: Template) -> str | None:
        """Why it may not be built, or callers could not call it."""
        kernel = self.problem.kernel
        found = vet(template.source, kernel.text, kernel.language)
        return found or vet_flags(template.flags, kernel.language) or self.signature(template)

    def _first(self, state: State, decision: Decided) -> Question:
        """The plan; where drafts of it were turned away, the last of them and the exact words about it."""
        turn, before = state.this_turn("author"), of_this_round(state)
        rejected = before[-1].rejected if before else None
        if turn and rejected is not None and turn[-1].reply is not None:
            return again(turn[0].request, turn[-1].reply, material.shortened(rejected.reason, 6000))
        return of_role(
            "author",
            self.prompt,
            self._parts(state, decision),
            "file",
            self._example(),
        )

    def _read(self, reply: Reply) -> str | ReplyFault:
        return read_file(reply)

    def _example(self) -> str:
        return example_file(self.problem.kernel.language)

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        base = next((c for c in state.candidates if c.id == decision.candidate and c.drafted), None)
        best = leader(self.problem, state)
        from_best = f"The best so far is template {best.id}." if best and base is not best else ""
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.reading_part(self.catalogue()),
            material.device_part(state.device, state),
            material.tested_part(self.problem, state),
            measured.times_part(self.problem, state),
            measured.diagnosis_part(self.problem, state),
            analysis_part(decision.analysis),
            *([measured.base_part(self.templates, base)] if base is not None else []),
            *measured.history_parts(self.problem, state)[:-1],
            PromptPart("The plan", "\n".join(filter(None, [self._plan(decision), from_best, _room(state)]))),
        ]

    def _plan(self, decision: Decided) -> str:
        lines = [f"Why: {decision.reason}"]
        if decision.what:
            lines.append(f"What to change: {decision.what}")
        if decision.moves:
            lines.append("With these choices; names, values and places are a program's proposal:")
            lines += [material.offer_line(self.catalogue().offer(name)) for name in decision.moves]
        return "\n".join(lines)


def _room(state: State) -> str:
    evals, _ = share_of(state)
    return "" if evals is None else f"The search of your template has {counted(evals, 'evaluation')}."
