"""Local moves: edits of the original's own text, for kernels that could not be read as tasks and steps.

Nothing is known of what such a kernel computes, so only what is right for any kernel is done: qualifiers,
pragmas and compiler settings, and the size of the block where the kernel provably does not look at it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from tunesmith.core.problem import Launch, Problem
from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.site import Site
from tunesmith.expert.moves.port import Context, Pairs, Refused, distinct, either


@dataclass(frozen=True)
class Edit:
    """Text to be inserted before a place of the original; edits of one place follow each other."""

    offset: int
    text: str


@dataclass(frozen=True)
class LaunchText:
    """A launch of the template: the original's own, with another grid and block where a move has set them."""

    launch: Launch
    grid: tuple[str, ...]
    block: tuple[str, ...]


@dataclass(frozen=True)
class LocalDraft:
    """A template to be: the original's text, edited."""

    site: Site
    launches: tuple[LaunchText, ...]
    edits: tuple[Edit, ...] = ()
    preamble: tuple[str, ...] = ()  # lines that stand before the original's first
    after_includes: tuple[str, ...] = ()  # lines that stand behind the original's last #include
    choices: tuple[Choice, ...] = ()
    flags: tuple[str, ...] = ()
    require: tuple[tuple[str, str], ...] = ()
    prefer: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    moves: tuple[str, ...] = ()

    def choice(self, name: str) -> Choice | None:
        return next((c for c in self.choices if c.name.rstrip("_") == name), None)


class LocalMove(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def remedies(self) -> tuple[Remedy, ...]: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused: ...


def start(site: Site, problem: Problem) -> LocalDraft:
    launches = tuple(
        LaunchText(launch, tuple(e.text for e in launch.grid), tuple(e.text for e in launch.block))
        for launch in problem.launches
    )
    return LocalDraft(site, launches)


def add(
    draft: LocalDraft,
    move: LocalMove,
    choice: Choice,
    *,
    edits: tuple[Edit, ...] = (),
    preamble: tuple[str, ...] = (),
    after_includes: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    prefer: Pairs = (),
    answers: Pairs = (),
) -> LocalDraft:
    return replace(
        draft,
        edits=(*draft.edits, *edits),
        preamble=(*draft.preamble, *preamble),
        after_includes=(*draft.after_includes, *after_includes),
        choices=(*draft.choices, choice),
        flags=(*draft.flags, *flags),
        prefer=distinct(draft.prefer, prefer),
        answers=either(draft.answers, answers),
        moves=(*draft.moves, move.name),
    )


SETTINGS = ("UNROLL", "BOUNDS", "REGS", "LEVEL")


def one_at_a_time(draft: LocalDraft, name: str, default: int) -> list[tuple[str, str]]:
    """What only guides the compiler is tried one by one: together such settings work against each other."""
    others = [choice for setting in SETTINGS if (choice := draft.choice(setting)) is not None]
    return [
        (f"{name.lower()}_or_{c.name.lower()}", f"{name} == {default} or {c.name} == {c.default}")
        for c in others
    ]
