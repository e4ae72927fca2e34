"""What `apply` shows: what changed in a repository, its tests and its benchmark before and after."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tunesmith.cli import console
from tunesmith.errors import BadInput, KernelWrong
from tunesmith.session.apply.measuring import spread_text
from tunesmith.text import counted, one_line

if TYPE_CHECKING:
    from tunesmith.session.apply.results import Applied


def check_words(program: list[str] | None, swap: bool, kernel: str | None, run: Path | None) -> None:
    """A program, and a kernel's name in it, are for --swap, which takes the first word for the run."""
    if swap and run is not None and not run.is_dir():
        fault = f"--swap needs the run before the program, and {shlex.quote(str(run))} is no run's folder"
        raise BadInput(fault, hint="tunesmith apply RUN --swap -- PROGRAM")
    if swap or not (program or kernel):
        return
    what = f"a program, {shlex.join(program)[:200]}," if program else "--kernel"
    raise BadInput(f"{what} is given without --swap", hint="tunesmith apply RUN --swap -- PROGRAM")


def show(found: Applied, as_json: bool) -> None:
    console.say(as_json, found, list(_lines(found)))
    if found.ending in ("rolled back", "swap failed"):
        raise typer.Exit(KernelWrong.exit_code)


def _lines(found: Applied) -> Iterator[str]:
    if found.ending == "undone":
        yield f"undone           {', '.join(found.files)} in {found.repository}"
        return
    if found.ending == "dry run":
        yield found.diff.rstrip("\n")
    yield from _swap_lines(found) if found.kernel else _patch_lines(found)
    yield from (f"note             {note}" for note in found.notes)
    if found.tested:
        both = "as it is and with swapped launches" if found.kernel else "before and after"
        passed = both if len(found.tested) == 2 else "before"
        yield f"tests            passed {passed}, {' and '.join(f'{t:.1f} s' for t in found.tested)}"
    if (series := found.bench) is not None:
        before, after = (spread_text(side, series.unit) for side in (series.before, series.after))
        names = ("program", "as it is", "swapped") if found.kernel else ("benchmark", "before", "after")
        runs = f"{len(series.before)} runs each"
        yield f"{names[0]:<16} {names[1]} {before}, {names[2]} {after}, {runs}"
        low, high = series.spread
        yield f"end to end       {series.gain:.3f}× ({low:.3f} to {high:.3f})"
    if (told := found.foretold) is not None:
        yield (
            f"foretold         {told.gain:.3f}×: the kernel has {100 * told.share:.1f} % of {told.of}, "
            f"and is {told.speedup:.2f}× as fast"
        )
        if told.busy is not None:
            yield f"if busy          {told.busy:.3f}×, where the device never waits while it is timed"
    again = shlex.quote(found.run)
    if found.ending == "applied":
        yield f"undo             tunesmith apply --undo {again} --repo {shlex.quote(found.repository)}"
    elif found.ending == "rolled back":
        yield f"rolled back      {found.fault}"
        left = ", ".join(found.still_patched)
        again = f"git apply -R {shlex.quote(found.patch)}"
        yield f"repository       {f'still patched: {left}; take it out by {again}' if left else 'as it was'}"
    elif found.ending == "swap failed":
        yield f"failed           {found.fault}"


def _patch_lines(found: Applied) -> Iterator[str]:
    yield f"repository       {found.repository}"
    yield f"delivered        {found.delivered} of {found.winners} tuned kernels of {found.problem}"
    changed = "would change" if found.ending == "dry run" else "changed"
    yield f"{changed:<16} {', '.join(found.files)}"
    yield f"launches         {', '.join(found.launches)}; the original serves where they are not as verified"
    yield f"patch            {found.patch}"


def _swap_lines(found: Applied) -> Iterator[str]:
    yield f"kernel           {one_line(found.kernel, 300)}"
    tuned = f"{found.delivered} of {found.winners} tuned kernels of {found.problem}"
    yield f"swapped in       {tuned}, for measuring"
    if (counts := found.counts) is not None:
        yield (
            f"launches         {counts.swapped} swapped, {counts.left} as they are; of all kernels "
            f"{counts.launches}, in {counted(counts.processes, 'process', 'processes')}"
        )
