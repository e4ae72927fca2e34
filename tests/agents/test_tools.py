"""Questions of models to the lab: how they are read, and how its answers are told."""

from __future__ import annotations

import pytest

from tests.run.test_loop import PROBLEM
from tests.samples import records, started
from tunesmith.agents import tools
from tunesmith.agents.prompting import Unusable
from tunesmith.run.dialogue import Exchange, Message, Reply, Request, ToolUsed
from tunesmith.run.events import Settings
from tunesmith.run.state import State, fold
from tunesmith.run.tools import ToolCall

FILE = "```c\n// /// tunesmith\n// ///\nint f() { return {1}; }\n```\n"
BODY = "// /// tunesmith\n// ///\nint f() { return {1}; }\n"


def with_tools(count: int) -> State:
    return fold(records([started(Settings(tools=count))]))


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"tool": "compile", "listing": [3, 9]}\n' + FILE, ToolCall("compile", BODY, listing=(3, 9))),
        ('```json\n{"tool": "time", "workload": "w"}\n```\n' + FILE, ToolCall("time", BODY, workload="w")),
        (
            'First this:\n{"tool": "time", "base": "2", "config": {"VEC": 4}}',
            ToolCall("time", "", "2", (("VEC", 4),)),
        ),
        (
            '{"tool": "reference", "sizes": {"n": 8}, "values": "ones"}',
            ToolCall("reference", sizes=(("n", 8),), values="ones"),
        ),
        ('{"tool": "profile", "base": "original"}', ToolCall("profile")),
    ],
)
def test_what_is_a_question(text: str, call: ToolCall) -> None:
    assert tools.read_call(Reply(text)) == call


@pytest.mark.parametrize(
    "text",
    ['{"decision": "stop", "why": "the tool says so"}', "words {alone}", FILE, "", "[" * 100_000, '{"a": 1'],
)
def test_what_is_no_question(text: str) -> None:
    assert tools.read_call(Reply(text)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"tool": "shell", "base": "original"}', "known are compile, profile, reference, time"),
        ('{"tool": "compile"}', "needs `base`"),
        ('{"tool": "compile"}\n' + FILE + FILE, "there are 2 fences"),
        ('{"tool": "compile", "path": "/etc/passwd"}\n' + FILE, "unknown field `path`"),
        ('{"tool": "compile", "listing": [9, 3]}\n' + FILE, "the first and the last line"),
        ('{"tool": "compile", "listing": [0, 3]}\n' + FILE, ">= 1"),
    ],
)
def test_a_question_that_cannot_be_used_goes_back_in_words(text: str, words: str) -> None:
    found = tools.read_call(Reply(text))
    assert isinstance(found, Unusable)
    assert words in found.reason


def test_models_are_told_only_where_they_may_ask_and_in_a_few_lines() -> None:
    assert tools.tool_parts(with_tools(0), PROBLEM) == []
    (part,) = tools.tool_parts(with_tools(3), PROBLEM)
    assert len(part.text.splitlines()) <= 12
    assert "3 times at most" in part.text
    for line in part.text.splitlines()[1:5]:
        example = line.split("`")[1]
        read = tools.read_call(Reply(f"{example}\n{FILE}"))
        assert isinstance(read, ToolCall), "each example is one that is understood"


def asked(number: int, reply: str, *answers: str) -> Exchange:
    """The last of several, in a turn of one role."""
    said = (Message("system", "Plan."), Message("user", "The kernel."))
    tool = ToolUsed(number, "compile", answers[0]) if answers else None
    return Exchange(Request(number, "planner", said, "json"), 0, 0, Reply(reply), tool=tool)


def test_the_next_request_has_the_material_the_answer_and_how_many_are_left() -> None:
    assert tools.further([], 2) is None
    assert tools.further([asked(1, "a plan")], 2) is None
    long = "begins " + "x" * 100_000 + " ends"
    found = tools.further([asked(1, '{"tool": ...}', long)], 2)
    assert found is not None
    assert [m.speaker for m in found.messages] == ["system", "user", "assistant", "user"]
    told = found.messages[-1].text
    assert "begins" in told
    assert "ends" in told
    assert "1 question left." in told
    assert len(told) < tools.ANSWER + 200
    # Of the answers before the last one less is told.
    first = found.request(2)
    later = Exchange(first, 0, 0, Reply('{"tool": ...}'), tool=ToolUsed(2, "time", "3 µs"))
    then = tools.further([asked(1, '{"tool": ...}', long), later], 2)
    assert then is not None
    assert len(then.messages[3].text) < tools.OLD_ANSWER + 200
    assert then.messages[-1].text.endswith("No question is left: send your answer.")


def test_what_has_to_be_mended_is_asked_for_with_the_answers_of_the_turn() -> None:
    turn = [asked(1, '{"tool": ...}', "40 registers"), asked(2, "no plan")]
    found = tools.again(turn, "it has no decision")
    assert [m.speaker for m in found.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "40 registers" in found.messages[3].text
    assert "it has no decision" in found.messages[-1].text


def test_one_question_too_many_is_no_answer() -> None:
    read = tools.no_call(with_tools(1), lambda reply: reply.text)
    found = read(Reply('{"tool": "profile", "base": "original"}'))
    assert found == Unusable("this turn has no question left, of 1: send your answer")
    assert read(Reply("words")) == "words"
    assert tools.no_call(with_tools(0), lambda reply: reply.text)(Reply('{"tool": "x"}')) == '{"tool": "x"}'
