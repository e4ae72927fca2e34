"""Launches that overlap: where a kernel waits for the one ahead of it, and where it lets the next one start.

Letting the next one start is a hint: without it that happens when the kernel ends. Waiting is kept, first of
all, where the launch says that it overlaps (`pdl`); elsewhere there is nothing to wait for. What is left out
is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, effects_of

WAIT = "cudaGridDependencySynchronize"
START = "cudaTriggerProgrammaticLaunchCompletion"
_ENDS = "that the launch behind may start is not kept: it starts when this one ends"
_NO_WAIT = (
    "the wait is not kept: the launch does not say `pdl`, so that it starts when the one ahead has ended"
)


@dataclass(frozen=True)
class LaunchOrder:
    """How a kernel that is written keeps the order of a call whose launches may overlap."""

    waits_if: str = ""  # a macro: with it the launch may start before the one ahead of it has ended
    starts_if: str = ""  # a condition on macros: the launch behind it may start early
    handed: frozenset[str] = frozenset()  # arrays it may not touch before launches ahead of it have ended


IN_TURN = LaunchOrder()  # no launch starts before the one ahead of it has ended


def handed_to(function: c.Function, overlaps: bool) -> LaunchOrder:
    """Of a kernel whose own launch overlaps: a launch ahead that nobody here knows may still be under way."""
    if not overlaps:
        return IN_TURN
    return LaunchOrder(handed=frozenset(p.name for p in function.parameters if p.type.is_pointer))


def without_waits(function: c.Function, overlaps: bool) -> tuple[c.Function, bool, tuple[str, ...]]:
    """The kernel without either, whether it has to wait before all else, and what is left out, in words.
    Raises Unreadable."""
    waits = False
    touched = False
    for stmt in function.body:
        if _is_call(stmt, WAIT):
            if overlaps and touched:
                raise c.Unreadable("memory is touched before the launch ahead has ended", stmt.line)
            waits = True
        elif overlaps and any(_is_call(part, WAIT) for part in walk.statements_in((stmt,))):
            raise c.Unreadable("it waits for the launch ahead in a branch or a loop", stmt.line)
        touched = touched or bool(effects_of(stmt) & (Effects.READS | Effects.WRITES | Effects.UNKNOWN))
    body = walk.map_statements(
        function.body, on_stmt=lambda s: () if _is_call(s, WAIT) or _is_call(s, START) else s
    )
    notes = [
        f"line {stmt.line}: {_ENDS if _is_call(stmt, START) else _NO_WAIT}"
        for stmt in walk.statements_in(function.body)
        if _is_call(stmt, START) or (_is_call(stmt, WAIT) and not overlaps)
    ]
    return replace(function, body=body), waits and overlaps, tuple(dict.fromkeys(notes))


def _is_call(stmt: c.Stmt, name: str) -> bool:
    return isinstance(stmt, c.Evaluate) and stmt.expr == c.Call(name)
