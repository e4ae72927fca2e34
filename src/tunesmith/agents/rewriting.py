"""Direct rewriting by models: a planner that says what to change next, an author that writes the kernel.

Nobody searches. Rounds go on from the best kernel that is right, or, linear, from the last that was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from tunesmith.agents import kernels, material, measured
from tunesmith.agents.analyst import ModelAnalyst, analysis_part
from tunesmith.agents.asking import again, of_role
from tunesmith.agents.author import ModelAuthor
from tunesmith.agents.examples import example_kernel
from tunesmith.agents.parsing import ReplyFault, read_json
from tunesmith.agents.prompting import PromptPart
from tunesmith.agents.replies import Sentence
from tunesmith.core.candidates import Templates
from tunesmith.core.dialogue import Question, Reply
from tunesmith.core.events import Decided
from tunesmith.core.offers import Catalogue
from tunesmith.core.problem import Problem
from tunesmith.core.rounds import leader
from tunesmith.core.state import Candidate, State
from tunesmith.core.template import Template

EXAMPLE = (
    '{"decision": "rewrite", "why": "loads of 2 bytes keep memory at 21 % of its rate", "what": "Read and '
    'write eight halves at once, 128 threads per block; keep the sum in registers.", "expected_gain": 1.8}'
)
OWN_CHOICE = "There is no plan for this round: choose yourself what pays most, by the numbers."


class RewriteReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change next, in words."""

    decision: Literal["rewrite", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


def to_measure(state: State) -> Decided | None:
    """A kernel that the gate let in is measured before anything else is decided."""
    waiting = [c for c in state.candidates if c.status == "admitted"]
    return Decided("search", f"kernel {waiting[-1].id} is right", (), waiting[-1].id) if waiting else None


@dataclass(frozen=True)
class KernelAnalyst(ModelAnalyst):
    """Reads the numbers of concrete kernels."""

    def _parts(self, state: State) -> list[PromptPart]:
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.device_part(state.device, state),
            measured.times_part(self.problem, state),
            kernels.diagnosis_part(self.problem, state),
            *kernels.round_parts(self.problem, state),
        ]


@dataclass(frozen=True)
class RewritePlanner:
    """A round for which the model has no plan is the author's own; if that is silent too, the run ends."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], Catalogue]  # for what the expert reads in the kernel
    prompt: str
    analyst: ModelAnalyst | None = None  # whose words it is told; `Analysed` asks for them

    def decide(self, state: State) -> Decided | Question:
        if (found := to_measure(state)) is not None:
            return found
        said = state.this_turn("planner")
        if not said:
            return of_role("planner", self.prompt, self._parts(state), "json", EXAMPLE)
        last = said[-1]
        if last.reply is None:
            return self._without_plan(state, f"the planner did not answer ({last.failed})", last.failed)
        plan = read_json(last.reply, RewriteReply)
        if isinstance(plan, RewriteReply) and plan.decision == "rewrite" and not plan.what.strip():
            plan = ReplyFault("`what` is empty: say what the author is to change")
        if isinstance(plan, RewriteReply):
            return self._decided(plan, state)
        if len(said) > state.settings.repairs:
            return self._without_plan(state, f"the planner's reply cannot be used ({plan.reason})")
        return again(said[0].request, last.reply, plan.reason)

    def _decided(self, plan: RewriteReply, state: State) -> Decided:
        if plan.decision == "stop":
            return Decided("finish", plan.why)
        base = kernels.base_of(self.problem, state)
        own = base.id if base else ""
        return Decided("refactor", plan.why, (), own, what=plan.what, expected=plan.expected_gain)

    def _without_plan(self, state: State, why: str, silent: str = "") -> Decided:
        last = next((e for e in reversed(state.dialogue) if e.request.role == "author"), None)
        if silent and last is not None and last.reply is None:
            return Decided("finish", f"neither planner nor author answers: {silent}")
        base = kernels.base_of(self.problem, state)
        return Decided("refactor", f"{why}; the author chooses", (), base.id if base else "", what=OWN_CHOICE)

    def _parts(self, state: State) -> list[PromptPart]:
        base = kernels.base_of(self.problem, state)
        return [
            *kernels.told_parts(self.problem, state, self.catalogue()),
            *([analysis_part(self.analyst.words(state))] if self.analyst is not None else []),
            *([self._base(state, base)] if base is not None else []),
            *([kernels.kernels_part(self.problem, state)] if state.candidates else []),
            *kernels.round_parts(self.problem, state),
            PromptPart("Your turn", f"{kernels.left_words(state)}. {_goes_on(base)} What comes next?"),
        ]

    def _base(self, state: State, base: Candidate) -> PromptPart:
        part = kernels.base_part(self.problem, state, self.templates, base)
        return PromptPart(part.heading, part.text, 1, "its text is left out: there is no room")


@dataclass(frozen=True)
class KernelAuthor(ModelAuthor):
    """Writes one concrete kernel; asked and mended as the author of templates is."""

    def faults(self, template: Template) -> str | None:
        return kernels.has_parameters(template) or self._unsafe(template)

    def _read(self, reply: Reply) -> str | ReplyFault:
        return kernels.read_kernel(reply)

    def _example(self) -> str:
        return example_kernel(self.problem.kernel.language)

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        base = next((c for c in state.candidates if c.id == decision.candidate and c.drafted), None)
        best = leader(self.problem, state)
        other = "" if best is None or best is base else f"The best that is right so far is kernel {best.id}."
        return [
            *kernels.told_parts(self.problem, state, self.catalogue()),
            analysis_part(decision.analysis),
            kernels.tested_part(self.problem, state),
            *([kernels.base_part(self.problem, state, self.templates, base)] if base is not None else []),
            *kernels.round_parts(self.problem, state),
            PromptPart("The plan", "\n".join(filter(None, [self._plan(decision), _goes_on(base), other]))),
        ]


def _goes_on(base: Candidate | None) -> str:
    if base is None:
        return "The kernel as it is, is gone on from."
    return f"Kernel {base.id} is gone on from" + (", which is broken." if base.rejected else ".")
