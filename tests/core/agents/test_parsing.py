"""What is taken from a model's reply, and what is said about the rest."""

from __future__ import annotations

import pytest

from tunesmith.agents.prompting import (
    ANALYSIS,
    Analysis,
    Cases,
    PlanReply,
    RewriteReply,
    Unusable,
    cases_example,
    plan_example,
    read_file,
    read_json,
)
from tunesmith.run.events import LONGEST, Reply

TEMPLATE = "// /// tunesmith\n// [params]\n// A = [1]\n// ///\n__global__ void k() {}\n"


def fenced(text: str, fence: str = "```", info: str = "cuda") -> str:
    return f"{fence}{info}\n{text}{fence}\n"


@pytest.mark.parametrize(
    "text",
    [
        fenced(TEMPLATE),
        "Here it is:\n\n" + fenced(TEMPLATE) + "\nGood luck.",
        fenced(TEMPLATE, "~~~~", ""),
        fenced("int unrelated;\n") + "and\n" + fenced(TEMPLATE),
        fenced(TEMPLATE, "````", "c++"),
    ],
)
def test_one_file_is_found(text: str) -> None:
    assert read_file(Reply(text)) == TEMPLATE


def test_a_fence_inside_a_longer_fence_is_text() -> None:
    inner = TEMPLATE + "// ```\n// not the end\n"
    assert read_file(Reply(fenced(inner + "```\n", "````"))) == inner + "```\n"


def test_a_single_block_without_a_header_is_left_to_the_template_reader() -> None:
    assert read_file(Reply(fenced("__global__ void k() {}\n"))) == "__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("I would unroll the loop."), "no fenced block"),
        (Reply("```cuda\n" + TEMPLATE), "cut off"),
        (Reply("```cuda\n" + TEMPLATE, is_cut=True), "cut off"),
        (Reply(fenced(TEMPLATE) * 2), "has 2 templates"),
        (Reply(fenced("a\n") + fenced("b\n")), "none of the 2 fenced blocks"),
        (Reply("x" * (LONGEST + 1)), "is longer than"),
        (Reply(" ", is_cut=True), "ran into its limit before it had begun"),
    ],
)
def test_what_is_no_file_is_said(reply: Reply, said: str) -> None:
    found = read_file(reply)
    assert isinstance(found, Unusable)
    assert said in found.reason


@pytest.mark.parametrize("around", ["{}", "Sure:\n{}\nDone.", "```json\n{}\n```", "~~~\n{}\n~~~"])
def test_an_object_is_found(around: str) -> None:
    found = read_json(Reply(around.replace("{}", plan_example(["vector", "lanes"], writes=False))), PlanReply)
    assert isinstance(found, PlanReply)
    assert found.decision == "refactor"
    assert found.moves == ("vector", "lanes")


def test_our_own_examples_are_understood() -> None:
    cases = read_json(Reply(cases_example({"rows": 3, "d": 40})), Cases)
    assert isinstance(cases, Cases)
    assert cases.cases[0].sizes == {"rows": 3, "d": 40}
    assert isinstance(read_json(Reply(ANALYSIS), Analysis), Analysis)
    plan = read_json(Reply(plan_example(["vector"], writes=True)), PlanReply)
    assert isinstance(plan, PlanReply)
    assert (plan.moves, bool(plan.what)) == ((), True), "an author reads words, and nobody reads both"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Let us stop.", "no JSON object"),
        ("{ not json }", "no JSON"),
        ('{"decision": "stop"}', "missing required field `why`"),
        ('{"decision": "delete", "why": "x"}', "decision"),
        ('{"decision": "stop", "why": ""}', "why"),
        ('{"decision": "stop", "why": "x", "shell": "rm"}', "unknown field `shell`"),
        ('{"decision": "stop", "why": "' + "y" * 5000 + '"}', "length <= 4000"),
        ("[" * 100_000 + "{}", "missing required field"),
        ('{"decision": {"decision":' * 9_000 + "}", "decision"),
        ('{"why": ' + "[" * 100_000 + "}", "why"),
    ],
)
def test_what_is_no_plan_is_said(text: str, said: str) -> None:
    found = read_json(Reply(text), PlanReply)
    assert isinstance(found, Unusable)
    assert said in found.reason


@pytest.mark.parametrize(
    ("text", "kind", "known"),
    [
        ('{"decision": "refactr", "why": "x"}', PlanReply, "refactor, search, stop"),
        ('{"decision": "a` - at `$.why`", "why": "x"}', PlanReply, "refactor, search, stop"),
        ('{"decision": "refactor", "why": "x"}', RewriteReply, "rewrite, stop"),
        (
            '{"cases": [{"sizes": {}, "why": "x"}, {"sizes": {}, "why": "x", "values": "gauss"}]}',
            Cases,
            "integers, normal, ones, positive, spikes, uniform, wide, zeros",
        ),
    ],
)
def test_words_that_are_known_are_listed(text: str, kind: type, known: str) -> None:
    found = read_json(Reply(text), kind)
    assert isinstance(found, Unusable)
    assert found.reason.endswith(f"`; known are {known}")


def test_sizes_are_numbers() -> None:
    found = read_json(Reply('{"cases": [{"sizes": {"d": "all"}, "why": "x"}]}'), Cases)
    assert isinstance(found, Unusable)
    assert "$.cases[0].sizes" in found.reason
