"""The commands `extract` and `apply`: out of a repository and back, with its tests and benchmark before and
after."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.errors import BadInput, KernelWrong
from tunesmith.text import counted, one_line

if TYPE_CHECKING:
    from tunesmith.session.apply.results import Applied
    from tunesmith.session.extract.folder import ExtractedFolder


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
        from tunesmith.session.apply.measuring import spread_text

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


def extract(
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", help="The kernel, also space::name.")],
    repository: Annotated[
        Path, typer.Argument(metavar="[REPO]", help="The folder of the sources; by default this one.")
    ] = Path(),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the problem; by default the kernel's name.")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", help="Its file, where several define one.")] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="'k<float, 4>'", help="The instance of a template.")
    ] = None,
    define: console.Defines = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", "-I", metavar="DIR", help="Where headers lie, in REPO.")
    ] = None,
    flag: Annotated[
        list[str] | None, typer.Option("--flag", metavar="FLAG", help="A flag that it is built with.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", metavar="SIZES", help="Where it must be fast: 'rows=16, hidden=4096'."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FOLDER", help="What a program launched: a capture.")
    ] = None,
    symbol: Annotated[
        str | None,
        typer.Option("--symbol", metavar="SYMBOL", help="Its name in the capture, where that is another."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="CALL", help="What gives the same: 'torch.softmax(x, -1)'."),
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="All kernels that its host function launches, as one problem.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="SPEC", help="A model to fill in what is left, as `tune` takes it."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for a reply in a mailbox.")] = True,
    trim: Annotated[
        bool, typer.Option(help="Leave out overloads that the machine code does not need.")
    ] = True,
    as_json: console.AsJson = False,
) -> None:
    """Take a kernel out of a repository: a problem folder that stands alone."""
    with console.progress(as_json) as listener:
        found = tunesmith.extract(
            repository,
            kernel=kernel,
            out=out,
            file=file,
            entry=entry,
            defines=define or (),
            include=include or (),
            flags=flag or (),
            workloads=workload or (),
            capture=capture,
            symbol=symbol,
            reference=reference,
            call=call,
            model=model,
            wait=wait,
            trim=trim,
            listener=listener,
        )
    console.say(as_json, found, list(_extract_lines(found)))
    if not found.stands_alone:
        raise typer.Exit(2)


def apply(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] PROGRAM…", help="With --swap, what to run; RUN stands before it."),
    ] = None,
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
    swap: Annotated[
        bool,
        typer.Option(
            "--swap", help="Touch no file: run PROGRAM by turns as it is and with swapped launches."
        ),
    ] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --swap, the original's name in the program.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Patch the repository that a kernel was taken from; test and time it before and after."""
    check_words(program, swap, kernel, run)
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
            undo=undo,
            swap=tuple(program or ()) if swap else None,
            kernel=kernel,
            listener=listener,
        )
    show(found, as_json)


def _extract_lines(found: ExtractedFolder) -> Iterator[str]:
    yield f"kernel           {found.kernel}"
    yield from (f"note             {line}" for line in found.report)
    yield from (f"missing          {line}" for line in found.missing)
    yield from (f"problem file     {line}" for line in found.faults)
    yield from (f"proof            {line}" for line in found.proof)
    code = counted(found.lines, "line")
    yield f"wrote            {', '.join(found.files)} in {found.folder}, {code} of code"
    then = f"tunesmith check {shlex.quote(str(found.folder))}"
    if not found.stands_alone:
        yield "stands alone     no, it does not compile: see what is missing"
    elif found.fills:
        places = counted(found.fills, 'place says "FILL"', 'places say "FILL"')
        yield f"stands alone     yes, it compiles; {places}, and what was seen stands beside it. Then: {then}"
    else:
        yield f"stands alone     yes, it compiles. Next: {then}"
