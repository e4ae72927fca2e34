"""What only steers the compiler: on the model or on the text, such settings are tried one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import with_wide
from tunesmith.expert.passes.local_draft import LocalDraft, add
from tunesmith.expert.passes.port import Context, extend
from tunesmith.problem.template import Remedy

FlagChoice = tuple[ParameterChoice, str, tuple[Remedy, str]]  # with its flag, and what it answers


def alone(name: str, default: int, others: Iterable[ParameterChoice | None]) -> list[tuple[str, str]]:
    """Together such settings work against each other."""
    return [
        (f"{name.lower()}_or_{c.name.lower()}", f"{name} == {default} or {c.name} == {c.default}")
        for c in others
        if c is not None
    ]


def one_at_a_time(draft: TemplateDraft, context: Context, name: str, default: int) -> list[tuple[str, str]]:
    settings = map(draft.schedule.get, ("unroll", "bounds", "registers", "flags"))
    return with_wide(draft, context, name, default) + alone(name, default, settings)


def one_at_a_time_in_text(draft: LocalDraft, name: str, default: int) -> list[tuple[str, str]]:
    return alone(name, default, map(draft.choice, ("UNROLL", "BOUNDS", "REGS", "LEVEL")))


def with_flag(
    draft: TemplateDraft, context: Context, move: str, found: FlagChoice | str, *, in_waves: bool = False
) -> TemplateDraft | str:
    """A choice that a build flag inserts; `in_waves`: of no use to a grid that goes on."""
    if isinstance(found, str):
        return found
    choice, flag, answer = found
    prefer = one_at_a_time(draft, context, choice.name, choice.default)
    if in_waves and (persistent := draft.schedule.get("persistent")) is not None:
        prefer.append(("regs_persist", f"{choice.name} == {choice.default} or {persistent.name} == 0"))
    changed = replace(draft, build_flags=(*draft.build_flags, flag))
    return extend(changed, move, choice, prefer, [answer])


def text_with_flag(draft: LocalDraft, move: str, found: FlagChoice | str) -> LocalDraft | str:
    if isinstance(found, str):
        return found
    choice, flag, answer = found
    prefer = one_at_a_time_in_text(draft, choice.name, choice.default)
    return add(draft, move, choice, flags=(flag,), prefer=prefer, answers=[answer])


def switched(switch: str, word: str, meaning: str) -> tuple[str, ...]:
    """A macro that is empty unless switched on."""
    return f"#if {switch}", f"#define {word} {meaning}", "#else", f"#define {word}", "#endif"
