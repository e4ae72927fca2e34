"""What is passed on of an analyst's reply."""

from __future__ import annotations

import json

from tests.wording import says
from tunesmith.agents.prompting import ANALYSIS, PromptPart, of_role, own_prompt
from tunesmith.agents.roles import MAX_ADVICE, MAX_EVIDENCE, analysis_text
from tunesmith.run.events import Exchange, Message, Reply, Request

REQUEST = Request(1, "analyst", (Message("user", "the original takes 12.5 µs"),), "json")


def shown(evidence: list[str], advice: list[str]) -> list[str]:
    reply = Reply(json.dumps({"bound": "latency", "evidence": evidence, "advice": advice}))
    return analysis_text(Exchange(REQUEST, 1, 0, reply)).splitlines()


def test_numbers_that_nobody_gave_are_left_out() -> None:
    bound, first, left_out = shown(["it takes 12.5 µs", "occupancy is 0.3"], [])
    assert (bound, first) == ("Bound: latency", "- it takes 12.5 µs")
    says(left_out, "1 more left out", "numbers", "not measured")


def test_numbers_of_the_prompt_and_of_the_example_are_nobodys_measurement() -> None:
    """A model that repeats the example has measured nothing."""
    asked = of_role("analyst", own_prompt("analyst"), [PromptPart("Measured", "12.5 µs")], "json", ANALYSIS)
    text = analysis_text(Exchange(asked.request(1), 1, 0, Reply(ANALYSIS)))
    echoed = json.loads(ANALYSIS)["evidence"]
    assert not any(line in text for line in echoed)
    assert f"({len(echoed)} more left out" in text


def test_of_long_lists_the_first_lines_are_shown() -> None:
    lines = shown(["it takes 12.5 µs"] * 20, [f"change {'again ' * i}" for i in range(20)])
    assert lines.count("- it takes 12.5 µs") == MAX_EVIDENCE
    assert sum(line.startswith("Advice: ") for line in lines) == MAX_ADVICE
    assert lines[-1] == "Advice: change " + " ".join(["again"] * (MAX_ADVICE - 1))
