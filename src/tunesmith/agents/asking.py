"""Questions to a model: the first of a turn, and another with what was wrong with its last reply."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.agents.material import fenced, shortened
from tunesmith.agents.prompting import PromptPart, messages
from tunesmith.core.dialogue import Expects, Message, Question, Reply, Request, Role

QUOTED = 60_000  # characters of its own reply that a model is shown again
WANTED = {"json": "Send one JSON object.", "file": "Send the whole file again, mended, in one fenced block."}
WANTED["turn"] = WANTED["file"]


def of_role(
    role: Role, prompt: str, parts: Sequence[PromptPart], expects: Expects, example: str = ""
) -> Question:
    """The example stands in the material: not every model is shown anything else."""
    shown = [shape_part(example)] if example else []
    return Question(role, messages(prompt, [*parts, *shown]), expects, example)


def shape_part(example: str) -> PromptPart:
    return PromptPart("A reply of the right shape", fenced(example))


def again(first: Request, reply: Reply, words: str) -> Question:
    """The material of the turn's first request, the last reply, and what was said about it."""
    told = (
        *first.messages[:2],
        Message("assistant", shortened(reply.text, QUOTED) or "(nothing)"),
        Message(
            "user",
            f"That cannot be used. In the words of whoever found out:\n\n{words}\n\n{WANTED[first.expects]}",
        ),
    )
    return Question(first.role, told, first.expects, first.example)
