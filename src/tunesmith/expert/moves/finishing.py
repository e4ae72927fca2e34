"""When finishing touches are worth a try: with the widest vectors there are, and settings one at a time."""

from __future__ import annotations

from tunesmith.expert.model.kernel import Draft
from tunesmith.expert.moves.packing import is_widest
from tunesmith.expert.moves.port import Context


def with_wide(draft: Draft, context: Context, name: str, default: int = 0) -> list[tuple[str, str]]:
    """On narrow vectors other things cost more."""
    widest = is_widest(draft, context)
    return [(f"{name.lower()}_if_wide", f"{name} == {default} or {widest}")] if widest else []


def one_at_a_time(draft: Draft, context: Context, name: str, default: int) -> list[tuple[str, str]]:
    """What only guides the compiler is tried one by one: together such settings work against each other."""
    schedule = draft.schedule
    others = [
        c for c in (schedule.unroll, schedule.bounds, schedule.registers, schedule.flags) if c is not None
    ]
    alone = [
        (f"{name.lower()}_or_{c.name.lower()}", f"{name} == {default} or {c.name} == {c.default}")
        for c in others
    ]
    return with_wide(draft, context, name, default) + alone
