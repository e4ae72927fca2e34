"""What `apply` shows: what changed in a repository, its tests and its benchmark before and after."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from tunesmith.cli import console
from tunesmith.errors import KernelWrong
from tunesmith.session.apply.measuring import spread_text

if TYPE_CHECKING:
    from tunesmith.session.apply.applying import Applied


def show(found: Applied, as_json: bool) -> None:
    console.say(as_json, found, list(_lines(found)))
    if found.ending == "rolled back":
        raise typer.Exit(KernelWrong.exit_code)


def _lines(found: Applied) -> Iterator[str]:
    if found.ending == "undone":
        yield f"undone           {', '.join(found.files)} in {found.repository}"
        return
    if found.ending == "dry run":
        yield found.diff.rstrip("\n")
    yield f"repository       {found.repository}"
    yield f"delivered        {found.delivered} of {found.winners} tuned kernels of {found.problem}"
    changed = "would change" if found.ending == "dry run" else "changed"
    yield f"{changed:<16} {', '.join(found.files)}"
    yield f"launches         {', '.join(found.launches)}; the original serves where they are not as verified"
    yield f"patch            {found.patch}"
    yield from (f"note             {note}" for note in found.notes)
    if found.tested:
        passed = "before and after" if len(found.tested) == 2 else "before"
        yield f"tests            passed {passed}, {' and '.join(f'{t:.1f} s' for t in found.tested)}"
    if (series := found.bench) is not None:
        before, after = (spread_text(side, series.unit) for side in (series.before, series.after))
        yield f"benchmark        before {before}, after {after}, {len(series.before)} runs each"
        low, high = series.spread
        yield f"end to end       {series.gain:.3f}× ({low:.3f} to {high:.3f})"
    if (told := found.foretold) is not None:
        yield (
            f"foretold         {told.gain:.3f}×: the kernel has {100 * told.share:.1f} % of {told.of}, "
            f"and is {told.speedup:.2f}× as fast"
        )
    again = shlex.quote(found.run)
    if found.ending == "applied":
        yield f"undo             tunesmith apply --undo {again}"
    elif found.ending == "rolled back":
        yield f"rolled back      {found.fault}"
        yield "repository       as it was"
