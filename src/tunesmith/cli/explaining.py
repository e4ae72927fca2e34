"""`tunesmith explain`: what the expert reads in a problem's kernel, or in a file before any problem."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.cli.console import AsJson, PlaceOptions
from tunesmith.errors import BadInput
from tunesmith.text import counted

if TYPE_CHECKING:
    from tunesmith.session.sources import ExplainedBareKernel, ExplainedSource

Entry = Annotated[str | None, typer.Option(help="Which kernel, when the file has several.")]
Defines = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", metavar="NAME=VALUE", help="A macro that the build gives the source."),
]


def explain(
    target: Annotated[
        Path, typer.Argument(metavar="PROBLEM|KERNEL_FILE", help="A problem, or a source before that.")
    ],
    entry: Entry = None,
    define: Defines = None,
    as_json: AsJson = False,
    **place: Unpack[PlaceOptions],
) -> None:
    """Show what the expert reads in a kernel, what stands in the way, and which moves apply to it."""
    if target.is_file() and target.suffix not in ("", ".toml"):
        from tunesmith.session.sources import given_defines

        found = tunesmith.explain_file(
            target, entry=entry, defines=dict(given_defines(define or ())), **place
        )
        console.say(as_json, found, list(_source_lines(found)))
        return
    if entry is not None or define:
        fault = "a problem says itself which kernel it is about: --entry and --define go with a kernel file"
        raise BadInput(fault, where=str(target), hint="leave them out, or name the kernel file")
    reading = tunesmith.explain(target, **place)
    notes = (f"note: {note}" for note in reading.notes)
    moves = f"moves that apply on {reading.device}: {', '.join(reading.moves) or 'none'}"
    about = (f"  {name}: {words}" for name, words in reading.about)
    skipped = (f"  {name} leaves out {why}" for name, why in reading.skipped)
    refused = (f"  {line}" for line in refusals(reading.refused))
    console.say(as_json, reading, [*reading.lines, *notes, "", moves, *about, *skipped, *refused])


def refusals(refused: Iterable[tuple[str, str]]) -> list[str]:
    """Moves that do not apply; many with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in refused:
        by_reason.setdefault(why, []).append(name)
    lines: list[str] = []
    for why, names in by_reason.items():
        if len(names) > 3:
            lines.append(f"{', '.join(names)} do not apply: {why}")
        else:
            lines += [f"{name} does not apply: {why}" for name in names]
    return lines


def _source_lines(source: ExplainedSource) -> Iterator[str]:
    if len(source.kernels) > 1:
        names = ", ".join(f"{kernel.entry} (line {kernel.line})" for kernel in source.kernels)
        yield f"{source.file} defines {counted(len(source.kernels), 'kernel')}: {names}"
        read = sum(kernel.read for kernel in source.kernels)
        yield f"read: {read} of {len(source.kernels)}"
    for kernel in source.kernels:
        if len(source.kernels) > 1:
            yield ""
        yield from _kernel_lines(kernel, source)


def _kernel_lines(kernel: ExplainedBareKernel, source: ExplainedSource) -> Iterator[str]:
    verdict = "read as tasks and steps" if kernel.read else "beyond the expert"
    yield f"{kernel.entry}, {source.language}, line {kernel.line}: {verdict}"
    yield from (f"  {line}" for line in kernel.lines)
    if kernel.obstacles:
        yield f"{counted(len(kernel.obstacles), 'obstacle')}:"
        yield from (f"  {obstacle}" for obstacle in kernel.obstacles)
    if source.device and (kernel.moves or kernel.refused):
        yield f"moves that would apply on {source.device}: {', '.join(kernel.moves) or 'none'}"
        yield from (f"  {name}: {words}" for name, words in kernel.about)
        yield from (f"  {line}" for line in refusals(kernel.refused))
    elif source.device:
        yield "moves cannot be told before that"
    else:
        yield f"moves cannot be told: {source.missing}"
    if kernel.filled:
        entry = kernel.entry.removesuffix("<FILL>")
        command = f"tunesmith init {shlex.quote(source.file)} --entry {shlex.quote(entry)}"
        yield f"{command} would fill in:"
        yield from (f"  {line}" for line in kernel.filled)
    yield "left to say:"
    yield from (f"  {line}" for line in kernel.left)
