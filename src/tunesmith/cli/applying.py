"""The command `apply`: what a run delivered, back in the repository that its kernel was taken from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.cli.console import AsJson
from tunesmith.errors import KernelWrong

if TYPE_CHECKING:
    from tunesmith.session.apply.applying import Applied


def apply(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    repo: Annotated[
        Path | None, typer.Option("--repo", metavar="DIR", help="Where the repository is, if it was moved.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="CMD", help="Your tests: if they fail afterwards, nothing stays.")
    ] = None,
    bench: Annotated[
        str | None, typer.Option(metavar="CMD", help="Your benchmark, run before and after in alternation.")
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="CMD", help="What builds it, run whenever files change.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Where the benchmark prints its number; else its wall time."),
    ] = None,
    higher: Annotated[bool, typer.Option("--higher", help="More of --metric is better.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often both sides are timed.")] = 3,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that each command may take.")] = 600.0,
    capture: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The capture that foretells; else the problem's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the patch, and change nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where files have changes that are not committed.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the run's patch back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Patch the repository that a kernel was taken from; test and time it before and after."""
    if undo:
        repository, files = tunesmith.undo_apply(run)
        words = [f"undone           {', '.join(files)} in {repository}"]
        console.say(as_json, {"repository": str(repository), "files": files}, words)
        return
    with console.progress(as_json) as listener:
        found = tunesmith.apply(
            run,
            repo=repo,
            test=test,
            bench=bench,
            build=build,
            metric=metric,
            higher=higher,
            rounds=rounds,
            timeout=timeout,
            capture=capture,
            dry_run=dry_run,
            force=force,
            listener=listener,
        )
    console.say(as_json, found, list(_lines(found)))
    if found.ending == "rolled back":
        raise typer.Exit(KernelWrong.exit_code)


def _lines(found: Applied) -> Iterator[str]:
    from tunesmith.session.apply.measuring import spread_text

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
