"""A model as tester: further cases inside the contract. It can add, never remove or loosen."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.agents import material
from tunesmith.agents.asking import again, of_role
from tunesmith.agents.parsing import ReplyFault, read_json
from tunesmith.agents.replies import Cases, cases_example
from tunesmith.core.checks.extra import misfit
from tunesmith.core.dialogue import Question
from tunesmith.core.events import Extended, ExtraCase
from tunesmith.core.problem import Problem
from tunesmith.core.state import State

REPAIRS = 1  # times a reply that cannot be read goes back


@dataclass(frozen=True)
class ModelTester:
    problem: Problem
    prompt: str

    def cases(self, state: State) -> Extended | Question:
        """What is to be tried on the original; what cannot be a case is set aside with the reason."""
        said = [e for e in state.dialogue if e.request.role == "tester"]
        if not said:
            parts = [
                *material.kernel_parts(self.problem),
                material.problem_part(self.problem, state.device),
                material.device_part(state.device, state),
                material.tested_part(self.problem, state),
            ]
            example = cases_example(self.problem.workloads[0].as_dict())
            return of_role("tester", self.prompt, parts, "json", example)
        last = said[-1]
        if last.reply is None:
            return Extended((), note=f"the tester did not answer: {last.failed}")
        found = read_json(last.reply, Cases)
        if isinstance(found, ReplyFault) and len(said) <= REPAIRS:
            return again(said[0].request, last.reply, found.reason)
        if isinstance(found, ReplyFault):
            return Extended((), note=f"the tester's reply cannot be used: {found.reason}")
        kept, aside = [], []
        for case in found.cases:
            ordered = {name: case.sizes[name] for name in self.problem.size_names if name in case.sizes}
            sizes = tuple((ordered if len(ordered) == len(case.sizes) else case.sizes).items())
            one = ExtraCase(sizes, case.values, case.why)
            why = misfit(self.problem, one)
            if why is None:
                kept.append(one)
            else:
                aside.append((one, why))
        return Extended(tuple(kept), tuple(aside))
