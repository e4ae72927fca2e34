"""What only steers the compiler, on the model or on the text: flags that insert a parameter, switches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import LocalDraft, add
from tunesmith.expert.passes.port import Move, extend

EitherDraft = TemplateDraft | LocalDraft


def with_flag(draft: EitherDraft, move: str, choice: ParameterChoice, flag: str) -> EitherDraft:
    """A choice that a build flag inserts where it has braces."""
    inserting = flag.format(f"{{{choice.name}}}")
    if isinstance(draft, LocalDraft):
        return add(draft, move, choice, flags=(inserting,))
    return extend(replace(draft, build_flags=(*draft.build_flags, inserting)), move, choice)


def on_text(move: Move[Any], needs: str) -> Move[Any]:
    """The same move for a kernel's text; `needs`: where it is refused there."""
    return replace(move, needs=needs)


def switched(switch: str, word: str, meaning: str) -> tuple[str, ...]:
    """A macro that is empty unless switched on."""
    return f"#if {switch}", f"#define {word} {meaning}", "#else", f"#define {word}", "#endif"
