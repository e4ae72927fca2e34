"""Prints a local draft: a declaration, the parameters' defaults, and the original's text with its edits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tunesmith.core.problem import Problem
from tunesmith.core.template import PLACEHOLDER
from tunesmith.expert.moves.local.port import LaunchText, LocalDraft
from tunesmith.expert.moves.port import Context


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
