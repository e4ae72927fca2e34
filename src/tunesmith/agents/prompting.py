"""The words each role is given: our prompts, or the user's in their place, and the material under headings.

Material is kept within a number of tokens by design: parts have a rank, and when all is too long the least
important are shortened to their summaries or left out. The kernel itself is never cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from tunesmith.core.dialogue import Message, tokens_of

MATERIAL = 24_000  # tokens that a request may spend on material


@dataclass(frozen=True)
class PromptPart:
    """One heading and what is under it. `summary` may stand for it where there is no room; None: nothing can.

    The higher the rank, the sooner it gives way; rank 0 never does.
    """

    heading: str
    text: str
    rank: int = 0
    summary: str | None = ""


def own_prompt(name: str) -> str:
    """By the name of its file: a role, or a role in another strategy."""
    return resources.files("tunesmith.agents").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


def messages(prompt: str, parts: Sequence[PromptPart], budget: int = MATERIAL) -> tuple[Message, ...]:
    return (Message("system", prompt), Message("user", material(parts, budget)))


def material(parts: Sequence[PromptPart], budget: int = MATERIAL) -> str:
    """All parts in their order, as many of them whole as there is room for."""
    kept = [part for part in parts if part.text.strip()]
    whole = list(range(len(kept)))
    # The least important first; of equals the earlier one, which is the older.
    for at in sorted(whole, key=lambda i: (-kept[i].rank, i)):
        if kept[at].rank == 0 or sum(tokens_of(_shown(part)) for part in kept) <= budget:
            break
        summary = kept[at].summary
        if summary is not None:
            kept[at] = PromptPart(kept[at].heading, summary, kept[at].rank, None)
    return "\n\n".join(_shown(part) for part in kept if part.text.strip())


def _shown(part: PromptPart) -> str:
    return f"## {part.heading}\n\n{part.text.strip()}"
