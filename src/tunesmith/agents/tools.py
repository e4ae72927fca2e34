"""What models may ask of the lab before they answer: how they are told of it, how a question is read, and how
its answer is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from tunesmith.agents import prompting
from tunesmith.agents.prompting import Distribution, PromptPart, Unusable, Word, shortened
from tunesmith.problem.cases import smoke_cases
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original
from tunesmith.run.dialogue import Exchange, Message, Question, Reply
from tunesmith.run.inquiries import used
from tunesmith.run.state import State
from tunesmith.run.tools import ORIGINAL, ToolCall, ToolName
from tunesmith.text import counted

ANSWER = 6000  # characters of the last answer,
OLD_ANSWER = 1500  # of those before it
Line = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
T = TypeVar("T")


class ToolReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to the lab. A text that it is about stands in a fence beside it."""

    tool: ToolName
    base: Annotated[str, msgspec.Meta(max_length=20)] = ""
    config: dict[Word, int] = {}
    workload: Annotated[str, msgspec.Meta(max_length=200)] = ""
    listing: tuple[Line, Line] | None = None
    sizes: dict[Word, Size] = {}
    values: Distribution = "normal"


def read_call(reply: Reply) -> ToolCall | Unusable | None:
    """What a reply asks of the lab; None: it asks nothing."""
    text, files = prompting.parted(reply)
    if text is None or not _is_call(text):
        return None
    found = prompting.decoded(text, ToolReply)
    if isinstance(found, Unusable):
        return found
    needs = found.tool != "reference" and not found.base
    if needs and len(files) != 1:
        words = f"the file, whole, in one fence beside the object; there are {len(files)} fences"
        return Unusable(f'`{found.tool}` needs `base` ("{ORIGINAL}", or a number), or {words}')
    low, high = found.listing or (1, 1)
    if low > high:
        return Unusable(f"`listing` is the first and the last line, got {low} and {high}")
    return ToolCall(
        found.tool,
        files[0] if needs else "",
        found.base or ORIGINAL,
        tuple(found.config.items()),
        found.workload,
        found.listing,
        tuple(found.sizes.items()),
        found.values,
    )


def _is_call(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "tool" in found


def asked(exchange: Exchange) -> ToolCall | None:
    """As the loop reads replies: what cannot be used goes back to its model."""
    found = read_call(exchange.reply) if exchange.reply is not None else None
    return found if isinstance(found, ToolCall) else None


def no_call(state: State, read: Callable[[Reply], T | Unusable]) -> Callable[[Reply], T | Unusable]:
    """The same where questions are allowed: one that cannot be done, or is one too many, is no answer."""
    most = state.settings.tools
    if not most:
        return read

    def found(reply: Reply) -> T | Unusable:
        call = read_call(reply)
        if isinstance(call, Unusable):
            return call
        return (
            Unusable(f"this turn has no question left, of {most}: send your answer") if call else read(reply)
        )

    return found


def tool_parts(state: State, problem: Problem) -> list[PromptPart]:
    """What a model is told where it may ask; nothing where it may not."""
    most = state.settings.tools
    if not most:
        return []
    cases = smoke_cases(problem, original(problem), state.device, 0)
    small = json.dumps(dict(cases[0].sizes) if cases else problem.workloads[0].as_dict())
    name = json.dumps(problem.workloads[0].name)
    lines = [
        f"Before you answer you may ask the laboratory, {counted(most, 'time')} at most: instead of your "
        "answer send one JSON object, and your next request has what it says. Nothing of it is scored.",
        '- `{"tool": "compile", "listing": [20, 31]}` and the whole file in one fence: registers, spills, '
        "shared memory, occupancy, instructions; with `listing` the machine code of these lines.",
        f'- `{{"tool": "time", "workload": {name}}}` and the whole file in one fence: its time, if the smoke '
        "check finds it right; one evaluation.",
        f'- `{{"tool": "profile", "workload": {name}}}` and the whole file in one fence: its time, and what '
        "bounds it; one evaluation.",
        f'- `{{"tool": "reference", "sizes": {small}, "values": "normal"}}`: a few values of inputs and of '
        f"what is expected, at sizes with {1 << 16} elements of an array at most.",
        f'In place of a file: `"base": "{ORIGINAL}"`, or the number of one that is right; `"config"` has '
        "values of its parameters, else its default is taken.",
    ]
    return [PromptPart("Questions to the laboratory", "\n".join(lines))]


def further(turn: Sequence[Exchange], most: int) -> Question | None:
    """What a model is asked whose last question the lab has answered: the material of its request again, that
    answer, and how many questions are left. None: it has not asked."""
    if not turn or turn[-1].tool is None:
        return None
    last = turn[-1].request
    said = [Message(m.speaker, _older(m)) for m in last.messages[2:]]
    told = (*last.messages[:2], *said, *_told(turn[-1], answer_words(turn, most)))
    return Question(last.role, told, last.expects, last.example)


def answers_in(turn: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """Without questions to the lab."""
    return tuple(e for e in turn if e.tool is None)


def again(turn: Sequence[Exchange], why: str) -> Question:
    """As `prompting.again`, with what the lab has answered in this turn."""
    last = answers_in(turn)[-1]
    assert last.reply is not None, "what is wrong was said"
    asked = [e for e in turn if e.tool is not None]
    between = [m for e in asked for m in _told(e, _answer(e, OLD_ANSWER))]
    return prompting.again(turn[0].request, last.reply, why, between)


def answer_words(turn: Sequence[Exchange], most: int) -> str:
    left = most - used(tuple(turn))
    more = f"{counted(left, 'question')} left." if left > 0 else "No question is left: send your answer."
    return f"{_answer(turn[-1], ANSWER)}\n\n{more}"


_ANSWERS = "The laboratory"


def _answer(exchange: Exchange, most: int) -> str:
    assert exchange.tool is not None, "the lab has answered"
    return f"{_ANSWERS} ({exchange.tool.tool}):\n\n{shortened(exchange.tool.answer, most)}"


def _told(exchange: Exchange, words: str) -> tuple[Message, ...]:
    """A question of a model, and what it is told."""
    assert exchange.reply is not None, "it asked"
    return Message("assistant", shortened(exchange.reply.text, prompting.QUOTED)), Message("user", words)


def _older(message: Message) -> str:
    is_answer = message.speaker == "user" and message.text.startswith(_ANSWERS)
    return shortened(message.text, OLD_ANSWER) if is_answer else message.text
