"""Requests to a model: our prompts, or the user's in their place; the material under headings; what is asked
again where a reply cannot be used.

Material stays within a number of tokens: parts have a rank, and when all is too long the least important are
shortened to their summaries or left out. The kernel itself is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TypeVar

from tunesmith.agents.replies import Unusable
from tunesmith.run.dialogue import Exchange, Expects, Message, Question, Reply, Request, Role, tokens_of

T = TypeVar("T")

MATERIAL = 24_000  # tokens that a request may spend on material
QUOTED = 60_000  # characters of its own reply that a model is shown again
LONGEST_WHY = 1500  # characters of a compiler's or oracle's words
_WANTED = {"json": "Send one JSON object."}
_WHOLE_FILE = "Send the whole file again, corrected, in one fenced block."


@dataclass(frozen=True)
class PromptPart:
    """One heading and what is under it. `summary` may stand for it where there is no room; None: nothing can.

    The higher the rank, the sooner it gives way; rank 0 never does.
    """

    heading: str
    text: str
    rank: int = 0
    summary: str | None = ""


@dataclass(frozen=True)
class NoAnswer:
    """What a role has of its model in the end: nothing."""

    what: str
    why: str
    is_silent: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def own_prompt(name: str) -> str:
    """By the name of its file: a role, or a role in another strategy."""
    return _resource(f"prompts/{name}.md")


def example_file(language: str, concrete: bool) -> str:
    """A small template, or a kernel without parameters, of the kernel's own language, as a reply."""
    kind, suffix = "kernel" if concrete else "template", "cl" if language == "opencl" else "cu"
    return f"```\n{_resource(f'examples/{kind}.{suffix}')}```\n"


def _resource(name: str) -> str:
    return resources.files("tunesmith.agents").joinpath(name).read_text(encoding="utf-8")


def of_role(
    role: Role, prompt: str, parts: Sequence[PromptPart], expects: Expects, example: str = ""
) -> Question:
    """The example stands in the material: not every model is shown anything else."""
    shown = [shape_part(example)] if example else []
    return Question(role, messages(prompt, [*parts, *shown]), expects, example)


def shape_part(example: str) -> PromptPart:
    return PromptPart("A reply of the right shape", fenced(example))


def settled(
    who: str,
    turn: Sequence[Exchange],
    repairs: int,
    read: Callable[[Reply], T | Unusable],
    first: Callable[[], Question],
    drafts: int | None = None,
    redo: Callable[[str], Question] | None = None,
) -> T | Question | NoAnswer:
    """What a role's model has said in this turn, in the words of `read`; else what it is asked: `first`, and
    where its reply cannot be used, as many times as `repairs` says, with what is wrong (`redo`, or `again`).
    With `drafts` only what was said since so many drafts counts as a reply."""
    said = [e for e in turn if drafts in (None, e.drafts)]
    if not said:
        return first()
    last = said[-1].reply
    if last is None:
        return NoAnswer(f"the {who} did not answer", said[-1].failed, True)
    found = read(last)
    if not isinstance(found, Unusable):
        return found
    if sum(e.reply is not None for e in turn) > repairs:
        return NoAnswer(f"the {who}'s reply cannot be used", found.reason)
    return redo(found.reason) if redo else again(turn[0].request, last, found.reason)


def again(first: Request, reply: Reply, why: str) -> Question:
    """The material of the turn's first request, the last reply, and what is wrong with it."""
    quoted = Message("assistant", shortened(reply.text, QUOTED) or "(nothing)")
    said = (*first.messages[:2], quoted, Message("user", refusal(why, first.expects)))
    return Question(first.role, said, first.expects, first.example)


def refusal(why: str, expects: Expects) -> str:
    return f"That cannot be used:\n\n{why}\n\n{_WANTED.get(expects, _WHOLE_FILE)}"


def messages(prompt: str, parts: Sequence[PromptPart], budget: int = MATERIAL) -> tuple[Message, ...]:
    return (Message("system", prompt), Message("user", material(parts, budget)))


def material(parts: Sequence[PromptPart], budget: int = MATERIAL) -> str:
    """All parts in their order, as many of them whole as there is room for."""
    kept = [part for part in parts if part.text.strip()]
    # The least important first; of equals the earlier one, which is the older.
    for at in sorted(range(len(kept)), key=lambda i: (-kept[i].rank, i)):
        if kept[at].rank == 0 or sum(tokens_of(_shown(part)) for part in kept) <= budget:
            break
        summary = kept[at].summary
        if summary is not None:
            kept[at] = PromptPart(kept[at].heading, summary, kept[at].rank, None)
    return "\n\n".join(_shown(part) for part in kept if part.text.strip())


def _shown(part: PromptPart) -> str:
    return f"## {part.heading}\n\n{part.text.strip()}"


def fenced(text: str) -> str:
    bare = [line.lstrip() for line in text.splitlines()]
    longest = max((len(line) - len(line.lstrip("`")) for line in bare), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def shortened(text: str, most: int = LONGEST_WHY) -> str:
    """Beginning and end, where the words of a compiler say most."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… ({len(text) - most} characters left out)\n{text[-(most // 2) :]}"
