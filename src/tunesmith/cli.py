"""The command line: thin, on top of `runs`. stdout carries the result, stderr everything else."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from tunesmith import __version__
from tunesmith.cli_compare import compare
from tunesmith.cli_library import library_app
from tunesmith.cli_options import Backend, DeviceName, OneTemplate, ProblemFile, Seed
from tunesmith.cli_runs import report, resume, retune, tune
from tunesmith.console import (
    AsJson,
    fail,
    handled,
    print_json,
    print_line,
    print_table,
    progress,
    resolved,
    say,
    show_lines,
    write,
)
from tunesmith.core.counted import counted
from tunesmith.core.errors import DeviceMissing
from tunesmith.core.untrusted import plain

PATIENCE = 3.0  # seconds a clean-up may take before another Ctrl-C interrupts that too

app = typer.Typer(
    name="tunesmith",
    help="Takes a kernel that works and gives back a faster one that is still right, with the evidence.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def init(
    kernel_file: Annotated[Path, typer.Argument(metavar="KERNEL_FILE", help="The source of your kernel.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--out", "--output", help="Folder for the draft.")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="Which kernel, when the file has several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draft a problem folder from a kernel source; "FILL" stands where only you know."""
    with handled(as_json):
        from tunesmith import problems

        draft = problems.draft(kernel_file, output, entry)
        then = f"tunesmith check {shlex.quote(str(draft.folder))}"
        places = counted(draft.fills, 'place says "FILL"', 'places say "FILL"')
        say(
            as_json,
            {"folder": plain(str(draft.folder)), "files": draft.files, "fill": draft.fills},
            [
                f"wrote {', '.join(draft.files)} in {draft.folder}",
                f"{places}: only you know what belongs there. Then: {then}",
            ],
        )


@app.command()
def check(
    problem: ProblemFile,
    template: OneTemplate = None,
    backend: Backend = None,
    device: DeviceName = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Validate a problem, build its kernel and prove it right over the contract's edges."""
    with handled(as_json):
        from tunesmith import runs

        config = resolved(backend=backend, device=device, seed=seed)
        with progress(as_json) as listener:
            done = runs.check(problem, template, config, listener)
        known = {
            "problem": done.problem.name,
            "device": done.device.name,
            "feasible": done.feasible,
            "notes": done.notes,
        }
        notes = [f"note: {note}" for note in done.notes]
        count = f"the template has {counted(done.feasible or 0, 'configuration')} for it there"
        if done.missing:
            if not as_json:
                show_lines([*([count] if done.feasible is not None else []), *notes])
            fail(as_json, done.missing.exit_code, str(done.missing), done.missing.hint, **known)
        by = "the reference" if done.problem.accuracy.reference else "itself, run twice (no reference given)"
        cases = counted(done.cases, "case")
        lines = [f"{done.problem.name} is right on {cases} on {done.device.name}, judged by {by}"]
        if done.feasible is not None:
            lines.append(count)
        say(as_json, {**known, "cases": done.cases, "right": True}, [*lines, *notes])


@app.command()
def template(
    problem: ProblemFile,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file to write; by default stdout.")
    ] = None,
    moves: Annotated[str | None, typer.Option(help="Only these, separated by commas; see `explain`.")] = None,
    backend: Backend = None,
    device: DeviceName = None,
    as_json: AsJson = False,
) -> None:
    """Only write the expert's template of a kernel; nothing is built or run."""
    with handled(as_json):
        from tunesmith import authoring
        from tunesmith.core.codec import encode

        wanted = (
            tuple(name.strip() for name in moves.split(",") if name.strip()) if moves is not None else None
        )
        made = authoring.make_template(problem, resolved(backend=backend, device=device), wanted, out)
        if as_json:
            print_json(encode(made))
            return
        for note in made.notes:
            print_line(note, stderr=True)
        for line in _refusals(made.refused):
            print_line(line, stderr=True)
        if made.template is None:
            print_line(f"there is no template: {made.declined}", stderr=True)
            return
        count = counted(made.feasible or 0, "configuration")
        how = f"{', '.join(made.moves) or 'no moves'}; {count} on {made.device}"
        print_line(f"{made.problem}: {how}", stderr=True)
        if out is None:
            write(made.template.rstrip())
        else:
            go_on = f"tunesmith tune {shlex.quote(str(problem))} --template {shlex.quote(str(out))}"
            print_line(f"wrote {out}; search it with: {go_on}")


def _refusals(refused: Iterable[tuple[str, str]]) -> list[str]:
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


@app.command()
def explain(
    problem: ProblemFile, backend: Backend = None, device: DeviceName = None, as_json: AsJson = False
) -> None:
    """Show what the expert reads in a kernel, and which moves apply to it."""
    with handled(as_json):
        from tunesmith import authoring
        from tunesmith.core.codec import encode

        reading = authoring.explain(problem, resolved(backend=backend, device=device))
        if as_json:
            print_json(encode(reading))
            return
        show_lines([*reading.lines, *(f"note: {note}" for note in reading.notes)])
        print_line("")
        print_line(f"moves that apply on {reading.device}: {', '.join(reading.moves) or 'none'}")
        for line in _refusals(reading.refused):
            print_line(f"  {line}")


for _command in (tune, retune, resume, report, compare):
    app.command()(_command)
app.add_typer(library_app, name="library")


@app.command()
def profile(
    target: Annotated[Path, typer.Argument(metavar="PROBLEM|RUN", help="A problem, or the folder of a run.")],
    template: OneTemplate = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--config", help='Of the template, or the winner\'s: "BLOCK=128 VEC=4"; the rest by default.'
        ),
    ] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only this one; several may be named.")] = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="Ask the hardware's counters, where permitted.")
    ] = True,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Measure the device's ceilings again, whatever is kept.")
    ] = False,
    backend: Backend = None,
    device: DeviceName = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the plot; by default the run's, or this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how far a kernel is from what its device can do, why, and what to do about it."""
    with handled(as_json):
        from tunesmith import profiling

        with progress(as_json) as listener:
            page = profiling.profile(
                target,
                resolved(backend=backend, device=device),
                listener,
                template=template,
                values=values,
                workloads=workload or (),
                counters=counters,
                remeasure=remeasure,
                out=out,
                chosen_by_flag=[
                    f for f, given in (("--backend", backend), ("--device", device)) if given is not None
                ],
            )
        if page.missing:
            if not as_json:
                show_lines(profiling.rendered_lines(page))
            hint = "run the same command where it is, or see what is missing with: tunesmith doctor"
            fail(as_json, DeviceMissing.exit_code, page.missing, hint, profile=page)
        if as_json:
            print_json(profiling.rendered_json(page))
        else:
            show_lines(profiling.rendered_lines(page))


@app.command()
def devices(backend: Backend = None, as_json: AsJson = False) -> None:
    """List the devices that kernels can run on."""
    with handled(as_json):
        from tunesmith import runs
        from tunesmith.core.codec import encode
        from tunesmith.tables import devices_table

        found, troubles = runs.devices(backend)
        if as_json:
            print_json(encode(found))
        elif found:
            print_table(devices_table(found))
        for trouble in troubles:
            print_line(trouble, stderr=True)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what is usable here, and the one command that enables what is not."""
    with handled(as_json):
        from tunesmith.core.codec import encode
        from tunesmith.doctor import examine

        findings = examine()
        if as_json:
            print_json(encode(findings))
            return
        for f in findings:
            print_line(f"{'ok     ' if f.usable else 'missing'}  {f.what}: {f.detail}")
            if f.fix:
                print_line(f"         enable it with: {f.fix}")


def _version(value: bool) -> None:
    if value:
        print_line(f"tunesmith {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    del version


def main() -> None:
    for descriptor in range(3):  # where the shell closed one, the journal must not take its number
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can write µ
    end_when_asked()
    app(prog_name="tunesmith")


def end_when_asked() -> None:
    """Whoever asks, however often, gets the same clean-up and the same message as for one Ctrl-C."""
    asked = -PATIENCE

    def ask(_number: int, _frame: object) -> None:
        nonlocal asked
        now = time.monotonic()
        if now - asked >= PATIENCE:
            asked = now
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup says so
            signal.signal(number, ask)


if __name__ == "__main__":
    main()
