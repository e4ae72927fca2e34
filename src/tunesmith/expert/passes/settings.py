"""What only steers the compiler, on the model or on the text: flags that insert a parameter, switches."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import LocalDraft, add
from tunesmith.expert.passes.port import extend

FlagChoice = tuple[ParameterChoice, str]  # with its flag


def with_flag(draft: TemplateDraft, move: str, found: FlagChoice | str) -> TemplateDraft | str:
    """A choice that a build flag inserts."""
    if isinstance(found, str):
        return found
    choice, flag = found
    return extend(replace(draft, build_flags=(*draft.build_flags, flag)), move, choice)


def text_with_flag(draft: LocalDraft, move: str, found: FlagChoice | str) -> LocalDraft | str:
    if isinstance(found, str):
        return found
    choice, flag = found
    return add(draft, move, choice, flags=(flag,))


def switched(switch: str, word: str, meaning: str) -> tuple[str, ...]:
    """A macro that is empty unless switched on."""
    return f"#if {switch}", f"#define {word} {meaning}", "#else", f"#define {word}", "#endif"
