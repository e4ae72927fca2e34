"""A model as tester: it adds cases inside the contract, and can neither remove nor loosen any."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.agents import prompting, task
from tunesmith.agents.prompting import REPAIRS, NoAnswer, of_role, read_json, settled
from tunesmith.problem.cases import ExtraCase, misfit
from tunesmith.problem.problem import Problem
from tunesmith.run.dialogue import Question
from tunesmith.run.events import Extended
from tunesmith.run.state import State


@dataclass(frozen=True)
class ModelTester:
    problem: Problem
    prompt: str

    def cases(self, state: State) -> Extended | Question:
        """What is to be tried on the original; what cannot be a case is set aside with the reason."""
        said = [e for e in state.dialogue if e.request.role == "tester"]
        found = settled(
            "tester",
            said,
            REPAIRS,
            lambda reply: read_json(reply, prompting.Cases),
            lambda: self._first(state),
        )
        if isinstance(found, Question):
            return found
        if isinstance(found, NoAnswer):
            return Extended((), note=str(found))
        cases, left_out = [], []
        for case in found.cases:
            ordered = {name: case.sizes[name] for name in self.problem.size_names if name in case.sizes}
            sizes = tuple((ordered if len(ordered) == len(case.sizes) else case.sizes).items())
            one = ExtraCase(sizes, case.values, case.why)
            if (why := misfit(self.problem, one)) is None:
                cases.append(one)
            else:
                left_out.append((one, why))
        return Extended(tuple(cases), tuple(left_out))

    def _first(self, state: State) -> Question:
        parts = [
            *task.kernel_parts(self.problem),
            task.problem_part(self.problem, state),
            task.device_part(state.device),
            task.tested_part(self.problem, state),
        ]
        return of_role(
            "tester", self.prompt, parts, "json", prompting.cases_example(self.problem.workloads[0].as_dict())
        )
