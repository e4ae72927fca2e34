"""Local moves: edits of the original's own text, for kernels that could not be read as tasks and steps.

Local moves: edits of the original's own text, for kernels that could not be read as tasks and steps.

Nothing is known of what such a kernel computes, so only what is right for any kernel is done: qualifiers,
pragmas and compiler settings, and the size of the block where the kernel provably does not look at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from tunesmith.core.problem import Launch, Problem
from tunesmith.core.profile.remedies import Remedy
from tunesmith.core.template import PLACEHOLDER
from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.moves.local.site import EditSite
from tunesmith.expert.moves.port import Context, NotApplicable, Pairs, distinct, either


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

    site: EditSite
    launches: tuple[LaunchText, ...]
    edits: tuple[Edit, ...] = ()
    preamble: tuple[str, ...] = ()  # lines that stand before the original's first
    after_includes: tuple[str, ...] = ()  # lines that stand behind the original's last #include
    choices: tuple[ParameterChoice, ...] = ()
    flags: tuple[str, ...] = ()
    require: tuple[tuple[str, str], ...] = ()
    prefer: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    moves: tuple[str, ...] = ()

    def choice(self, name: str) -> ParameterChoice | None:
        return next((c for c in self.choices if c.name.rstrip("_") == name), None)


class LocalMove(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def remedies(self) -> tuple[Remedy, ...]: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | NotApplicable: ...


def start(site: EditSite, problem: Problem) -> LocalDraft:
    launches = tuple(
        LaunchText(launch, tuple(e.text for e in launch.grid), tuple(e.text for e in launch.block))
        for launch in problem.launches
    )
    return LocalDraft(site, launches)


def add(
    draft: LocalDraft,
    move: LocalMove,
    choice: ParameterChoice,
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
    """What only steers the compiler is tried one by one: together such settings work against each other."""
    others = [choice for setting in SETTINGS if (choice := draft.choice(setting)) is not None]
    return [
        (f"{name.lower()}_or_{c.name.lower()}", f"{name} == {default} or {c.name} == {c.default}")
        for c in others
    ]


# -- prints a local draft: a declaration, the parameters' defaults, and the original's text with its edits


def template_text(draft: LocalDraft, context: Context) -> str:
    header = [f"// {line}".rstrip() for line in _declaration(draft, context)]
    defaults = [
        line
        for choice in draft.choices
        for line in (f"#ifndef {choice.name}", f"#define {choice.name} {choice.default}", "#endif")
    ]
    about = f"// The original, {context.problem.kernel.path}, with its own text and a few choices left open."
    head = [*header, "//", about, *defaults, *draft.preamble]
    return "\n".join(head) + "\n" + _edited(draft)


def _edited(draft: LocalDraft) -> str:
    text, site = draft.site.text, draft.site
    inserted = [(edit.offset, place, edit.text) for place, edit in enumerate(draft.edits)]
    if draft.after_includes:
        inserted.append((site.after_includes, -1, "\n".join(draft.after_includes) + "\n"))
    for offset, _, addition in sorted(inserted, reverse=True):
        text = text[:offset] + addition + text[offset:]
    return text


def _declaration(draft: LocalDraft, context: Context) -> Iterator[str]:
    problem = context.problem
    yield "/// tunesmith"
    yield "[params]"
    for choice in draft.choices:
        values = json.dumps(list(choice.values))
        domain = f"{{ values = {values}, categorical = true }}" if choice.categorical else values
        yield f"{choice.name} = {domain}  # {choice.note}"
    yield "[default]"
    for choice in draft.choices:
        yield f"{choice.name} = {choice.default}"
    for title, pairs in (("require", draft.require), ("prefer", draft.prefer), ("answers", draft.answers)):
        if pairs:
            yield f"[{title}]"
            yield from (f"{name} = {json.dumps(text)}" for name, text in pairs)
    sizes, launches = _with_sizes(draft.launches, problem, context)
    if sizes:
        yield "[defines]"
        yield from (f"{macro} = {json.dumps(size)}" for size, macro in sizes.items())
    if draft.flags:
        yield "[build]"
        yield f"flags = {json.dumps(list(draft.flags))}"
    several = len(launches) > 1
    for launch in launches:
        yield "[[launch]]" if several else "[launch]"
        yield from _launch(launch)
    yield "///"


def _with_sizes(
    launches: tuple[LaunchText, ...], problem: Problem, context: Context
) -> tuple[dict[str, str], tuple[LaunchText, ...]]:
    """A size that an entry inserts, `kernel<{d}>`, reaches a template as a define."""
    sizes: dict[str, str] = {}

    def named(entry: str) -> str:
        for size in PLACEHOLDER.findall(entry):
            if size in problem.size_names:
                sizes[size] = context.macro(f"ENTRY_{size.upper()}")
        return PLACEHOLDER.sub(lambda m: f"{{{sizes.get(m.group(1), m.group(1))}}}", entry)

    changed = tuple(
        replace(item, launch=replace(item.launch, entry=named(item.launch.entry))) for item in launches
    )
    return sizes, changed


def _launch(item: LaunchText) -> Iterator[str]:
    launch = item.launch
    yield f"entry = {json.dumps(launch.entry)}"
    yield f"grid = {json.dumps(list(item.grid))}"
    yield f"block = {json.dumps(list(item.block))}"
    if launch.shared is not None:
        yield f"shared = {json.dumps(launch.shared.text)}"
    if launch.cluster:
        yield f"cluster = {json.dumps([e.text for e in launch.cluster])}"
    if launch.cooperative:
        yield "cooperative = true"
    if launch.pdl:
        yield "pdl = true"
    yield f"args = {json.dumps(list(launch.args))}"
