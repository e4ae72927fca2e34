"""A model as analyst: what bounds the kernel, in words that cite numbers it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunesmith.agents import material, measured
from tunesmith.agents.asking import of_role
from tunesmith.agents.parsing import Fault, read_json
from tunesmith.agents.prompting import Part
from tunesmith.agents.replies import ANALYSIS, Analysis
from tunesmith.core.dialogue import Exchange, Question, Request
from tunesmith.core.problem import Problem
from tunesmith.core.state import State

MOST_EVIDENCE, MOST_ADVICE = 12, 8  # of its lines a planner is shown: the first
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class ModelAnalyst:
    problem: Problem
    prompt: str

    def question(self, state: State) -> Question | None:
        """Once in a turn, before the planner is asked."""
        if state.this_turn("analyst") or state.baseline is None:
            return None
        return of_role("analyst", self.prompt, self._parts(state), "json", ANALYSIS)

    def _parts(self, state: State) -> list[Part]:
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.device_part(state.device, state),
            measured.times_part(self.problem, state),
            measured.diagnosis_part(self.problem, state),
            *measured.history_parts(self.problem, state),
        ]

    def part(self, state: State) -> Part:
        """What the planner is told of it; where it cannot be used, why."""
        said = state.this_turn("analyst")
        text = analysis_text(said[-1]) if said else ""
        return Part("What the analyst reads in these numbers", text, 1)


def analysis_text(exchange: Exchange) -> str:
    """Evidence with a number that nobody gave to the analyst is left out."""
    if exchange.reply is None:
        return f"the analyst did not answer: {exchange.failed}"
    found = read_json(exchange.reply, Analysis)
    if isinstance(found, Fault):
        return f"the analyst's reply cannot be used: {found.reason}"
    given = set(_NUMBER.findall(_measured(exchange.request)))
    shown = [line for line in found.evidence if set(_NUMBER.findall(line)) <= given]
    made_up = len(found.evidence) - len(shown)
    lines = [f"Bound: {found.bound}", *(f"- {line}" for line in shown[:MOST_EVIDENCE])]
    lines += [f"- ({made_up} more left out: they cite numbers that were not measured)"] if made_up else []
    return "\n".join([*lines, *(f"Advice: {line}" for line in found.advice[:MOST_ADVICE])])


def _measured(request: Request) -> str:
    """What it was told of the kernel; the instructions' and the example's numbers are nobody's."""
    told = "\n".join(m.text for m in request.messages if m.speaker == "user")
    return told.replace(request.example, "") if request.example else told
