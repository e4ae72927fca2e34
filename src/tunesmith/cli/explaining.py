"""What `tunesmith explain` says of a file that has no problem yet, and of moves that do not apply."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tunesmith.text import counted

if TYPE_CHECKING:
    from tunesmith.session.sources import ExplainedBareKernel, ExplainedSource


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


def source_lines(source: ExplainedSource) -> Iterator[str]:
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
