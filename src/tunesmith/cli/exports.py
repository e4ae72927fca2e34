"""The commands `extract`, `export` and `apply`: out of a repository, into a program, and back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.cli.console import AsJson, Defines
from tunesmith.text import counted

if TYPE_CHECKING:
    from tunesmith.session.extract.folder import ExtractedFolder

TARGETS = "torch, cpp, cubin, cupy, cuda.core, opencl, sglang, vllm, patch, kernel-tuner"


def export(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="The run; by default the newest. Several: one for each device."),
    ] = None,
    to: Annotated[str, typer.Option("--to", help=f"One of {TARGETS}.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder that is empty or new.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write what a run delivered in the form that a program takes."""
    found = tunesmith.export(runs or None, to=to, out=out)
    if as_json:
        console.print_encoded(found)
        return
    lines = [f"exported         {found.problem} for {found.target}, tuned on {', '.join(found.devices)}"]
    lines += [found.delivered.replace(": ", "        ", 1)]
    lines += [f"not delivered    {why}" for why in found.left_out]
    lines += [f"note             {note}" for note in found.notes]
    lines += [f"folder           {found.folder}, {len(found.files)} files"]
    start = next((name for name in ("README.md", "python/README.md", "tune.py") if name in found.files), "")
    lines += [f"start with       {found.folder}/{start}"] if start else []
    console.show_lines(lines)


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
    define: Defines = None,
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
    as_json: AsJson = False,
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
    console.say(as_json, found, list(_lines(found)))
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
    as_json: AsJson = False,
) -> None:
    """Patch the repository that a kernel was taken from; test and time it before and after."""
    from tunesmith.cli import applying

    applying.check_words(program, swap, kernel, run)
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
    applying.show(found, as_json)


def _lines(found: ExtractedFolder) -> Iterator[str]:
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


def worker() -> None:
    """The other end of a command of `--workers`: speaks on its standard streams with a lab elsewhere."""
    from tunesmith.session import worker_host

    console.print_note(f"tunesmith worker: {worker_host.serve()}")
