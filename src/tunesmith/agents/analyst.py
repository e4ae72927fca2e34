"""A model as analyst: what bounds the kernel, in words that cite numbers it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.agents import material, measured
from tunesmith.agents.asking import again, of_role
from tunesmith.agents.parsing import ReplyFault, read_json
from tunesmith.agents.prompting import PromptPart
from tunesmith.agents.replies import ANALYSIS, Analysis
from tunesmith.core.dialogue import Exchange, Question, Request
from tunesmith.core.events import Decided
from tunesmith.core.ports import Planner
from tunesmith.core.problem import Problem
from tunesmith.core.spending import no_more_requests
from tunesmith.core.state import State

MOST_EVIDENCE, MOST_ADVICE = 12, 8  # of its lines that are passed on: the first
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
        said = state.this_turn("analyst")
        if not said:
            return of_role("analyst", self.prompt, self._parts(state), "json", ANALYSIS)
        last = said[-1].reply
        found = read_json(last, Analysis) if last is not None and len(said) <= REPAIRS else None
        if last is None or not isinstance(found, ReplyFault):
            return None
        return again(said[0].request, last, found.reason)

    def _parts(self, state: State) -> list[PromptPart]:
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state.device),
            material.device_part(state.device, state),
            measured.times_part(self.problem, state),
            measured.diagnosis_part(self.problem, state),
            *measured.history_parts(self.problem, state),
        ]

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
    if isinstance(found, ReplyFault):
        return f"the analyst's reply cannot be used: {found.reason}"
    given = set(_NUMBER.findall(_measured(exchange.request)))
    shown = [line for line in found.evidence if set(_NUMBER.findall(line)) <= given]
    made_up = len(found.evidence) - len(shown)
    lines = [f"Bound: {found.bound}", *(f"- {line}" for line in shown[:MOST_EVIDENCE])]
    lines += [f"- ({made_up} more left out: they cite numbers that were not measured)"] if made_up else []
    lines += [f"Advice: {line}" for line in found.advice[:MOST_ADVICE]]
    # On a line each, so that none can pass for a heading of what it is shown in.
    return material.shortened("\n".join(" ".join(line.split()) for line in lines), LONGEST)


def _measured(request: Request) -> str:
    """What it was told of the kernel; the instructions' and the example's numbers are nobody's."""
    told = "\n".join(m.text for m in request.messages if m.speaker == "user")
    return told.replace(request.example, "") if request.example else told
