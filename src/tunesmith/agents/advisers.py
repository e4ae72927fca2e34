"""Models that advise: an analyst says what bounds the kernel, in words that cite numbers it was given; a
tester adds cases inside the contract, and can neither remove nor loosen any."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.agents import material, measured
from tunesmith.agents.prompting import NoAnswer, PromptPart, of_role, settled, shortened
from tunesmith.agents.replies import ANALYSIS, Analysis, Cases, Unusable, cases_example, read_json
from tunesmith.problem.cases import ExtraCase, misfit
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import no_more_requests
from tunesmith.run.dialogue import Exchange, Question, Request
from tunesmith.run.events import Decided, Extended
from tunesmith.run.ports import Planner
from tunesmith.run.state import State

MOST_EVIDENCE, MOST_ADVICE = 12, 8  # of an analyst's lines that are passed on: the first
LONGEST = 6000  # characters of all of them
REPAIRS = 1  # times a reply that cannot be read goes back
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
            parts = [*measured.task_parts(self.problem, state), *measured.round_parts(self.problem, state)]
            return of_role("analyst", self.prompt, parts, "json", ANALYSIS)

        said = state.this_turn("analyst")
        found = settled("analyst", said, REPAIRS, lambda reply: read_json(reply, Analysis), first)
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
    found = read_json(exchange.reply, Analysis)
    if isinstance(found, Unusable):
        return f"the analyst's reply cannot be used: {found.reason}"
    given = set(_NUMBER.findall(_material_of(exchange.request)))
    shown = [line for line in found.evidence if set(_NUMBER.findall(line)) <= given]
    made_up = len(found.evidence) - len(shown)
    lines = [f"Bound: {found.bound}", *(f"- {line}" for line in shown[:MOST_EVIDENCE])]
    lines += [f"- ({made_up} more left out: they cite numbers that were not measured)"] if made_up else []
    lines += [f"Advice: {line}" for line in found.advice[:MOST_ADVICE]]
    # On a line each, so that none can pass for a heading of what it is shown in.
    return shortened("\n".join(" ".join(line.split()) for line in lines), LONGEST)


def _material_of(request: Request) -> str:
    """What it was told of the kernel; the instructions' and the example's numbers are nobody's."""
    text = "\n".join(m.text for m in request.messages if m.speaker == "user")
    return text.replace(request.example, "") if request.example else text


@dataclass(frozen=True)
class ModelTester:
    problem: Problem
    prompt: str

    def cases(self, state: State) -> Extended | Question:
        """What is to be tried on the original; what cannot be a case is set aside with the reason."""
        said = [e for e in state.dialogue if e.request.role == "tester"]
        found = settled(
            "tester", said, REPAIRS, lambda reply: read_json(reply, Cases), lambda: self._first(state)
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
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.device_part(state.device, state),
            material.tested_part(self.problem, state),
        ]
        return of_role(
            "tester", self.prompt, parts, "json", cases_example(self.problem.workloads[0].as_dict())
        )
