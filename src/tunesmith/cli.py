"""The command line: thin, on top of `runs`. stdout carries the result, stderr everything else."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tunesmith import __version__
from tunesmith.core.errors import BadInput, TunesmithError

app = typer.Typer(
    name="tunesmith",
    help="Takes a kernel that works and gives back a faster one that is still right, with the evidence.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Backend = Annotated[
    str | None, typer.Option(help="opencl, fake or replay:FILE; by default the language's own.")
]
DeviceName = Annotated[str | None, typer.Option("--device", help="Id or part of the name; see `devices`.")]
TemplateFile = Annotated[Path | None, typer.Option("--template", help="The template to search.")]
ProblemFile = Annotated[
    Path, typer.Argument(metavar="PROBLEM", help="problem.toml, or the folder it lies in.")
]
RunFolder = Annotated[Path | None, typer.Argument(metavar="[RUN]", help="The run; by default the newest.")]


@app.command()
def init(
    kernel_file: Annotated[Path, typer.Argument(metavar="KERNEL_FILE", help="The source of your kernel.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the draft.")] = None,
    entry: Annotated[str | None, typer.Option(help="Which kernel, when the file has several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draft a problem folder from a kernel source; "FILL" stands where only you know."""
    with handled(as_json):
        from tunesmith import runs

        folder, written, fills = runs.init(kernel_file, output, entry)
        say(
            as_json,
            {"folder": str(folder), "files": written, "fill": fills},
            [
                f"wrote {', '.join(written)} in {folder}",
                f'{fills} places say "FILL": only you know those. Then: tunesmith check {folder}',
            ],
        )


@app.command()
def check(
    problem: ProblemFile,
    template: TemplateFile = None,
    backend: Backend = None,
    device: DeviceName = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Validate a problem, build its kernel and prove it right over the contract's edges."""
    with handled(as_json):
        from tunesmith import runs

        config = resolved(backend=backend, device=device, seed=seed)
        with progress(as_json) as listener:
            done = runs.check(problem, template, config, listener)
        by = "the reference" if done.problem.accuracy.reference else "itself, run twice (no reference given)"
        say(
            as_json,
            {"problem": done.problem.name, "device": done.device.name, "cases": done.cases, "right": True},
            [f"{done.problem.name} is right on {done.cases} cases on {done.device.name}, judged by {by}"],
        )


@app.command()
def tune(
    problem: ProblemFile,
    template: TemplateFile = None,
    backend: Backend = None,
    device: DeviceName = None,
    search: Annotated[str | None, typer.Option(help="default, exhaustive, random or refine.")] = None,
    evals: Annotated[int | None, typer.Option(min=1, help="Configurations to try at most.")] = None,
    time: Annotated[float | None, typer.Option(min=0, help="Seconds to search at most.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="All randomness derives from it.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    cache: Annotated[
        bool | None, typer.Option("--cache/--no-cache", help="Use timings of earlier runs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search a template's parameters on the device and deliver the verified winners."""
    with handled(as_json):
        from tunesmith import runs

        config = resolved(
            backend=backend, device=device, search=search, evals=evals, time=time, seed=seed, cache=cache
        )
        with progress(as_json) as listener:
            finished = runs.start(problem, template, config, out, listener)
        show_report(finished, "json" if as_json else "text")


@app.command()
def resume(run: RunFolder = None, as_json: AsJson = False) -> None:
    """Go on with a run that was interrupted, exactly where it was."""
    with handled(as_json):
        from tunesmith import runs

        with progress(as_json) as listener:
            finished = runs.resume(run, resolved(), listener)
        show_report(finished, "json" if as_json else "text")


@app.command()
def report(
    run: RunFolder = None,
    format_: Annotated[str, typer.Option("--format", help="text, md or json.")] = "text",
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, finished or not."""
    with handled(as_json):
        from tunesmith import runs

        if format_ not in ("text", "md", "json"):
            raise BadInput(f"unknown format {format_!r}; known are text, md, json")
        show_report(runs.report(run, resolved()), "json" if as_json else format_)


@app.command()
def devices(backend: Backend = None, as_json: AsJson = False) -> None:
    """List the devices that kernels can run on."""
    with handled(as_json):
        from tunesmith import runs
        from tunesmith.core.codec import encode
        from tunesmith.display import devices_table

        found, troubles = runs.devices(backend)
        if as_json:
            print_bytes(encode(found))
        elif found:
            console(stderr=False).print(devices_table(found))
        for trouble in troubles:
            note(trouble)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what is usable here, and the one command that enables what is not."""
    with handled(as_json):
        from tunesmith.core.codec import encode
        from tunesmith.doctor import examine

        findings = examine()
        if as_json:
            print_bytes(encode(findings))
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
    # kill is a polite Ctrl-C: the same clean-up, nothing lost.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


# -- what every command shares ------------------------------------------------------------------------


def resolved(**flags: Any) -> Any:
    from tunesmith.config import resolve

    return resolve(flags)


@contextmanager
def handled(as_json: bool) -> Iterator[None]:
    """Errors as messages and exit codes; a traceback is for nobody."""
    try:
        yield
    except TunesmithError as error:
        fail(as_json, error.exit_code, str(error), error.hint)
    except KeyboardInterrupt:
        fail(as_json, 130, "interrupted; nothing is lost", "go on with: tunesmith resume")
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except MemoryError:
        fail(as_json, 1, "this machine ran out of memory", "choose smaller sizes")
    except OSError as error:
        fail(as_json, 2, f"{error.filename or 'the system'}: {error.strerror or error}", None)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "unknown place"
        if os.environ.get("TUNESMITH_DEBUG"):
            raise
        fail(
            as_json,
            1,
            f"a bug in Tunesmith: {type(error).__name__}: {error} ({place})",
            "set TUNESMITH_DEBUG=1 to see the traceback, and please report it",
        )


def fail(as_json: bool, code: int, message: str, hint: str | None) -> NoReturn:
    if as_json:
        from tunesmith.core.codec import encode

        print_bytes(encode({"error": message, "hint": hint, "exit": code}))
    print_line(f"error: {message}", stderr=True)
    if hint:
        print_line(f"hint: {hint}", stderr=True)
    raise typer.Exit(code)


def console(stderr: bool) -> Any:
    from rich.console import Console

    # Off a terminal a table may be as wide as it needs: what reads it there does not wrap.
    stream_is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, width=None if stream_is_terminal else 160)


@contextmanager
def progress(as_json: bool) -> Iterator[Any]:
    from tunesmith.display import Progress

    with Progress(console(stderr=True), quiet=as_json).live() as listener:
        yield listener


def show_report(finished: Any, form: str) -> None:
    from tunesmith import runs
    from tunesmith.display import report_summary, report_table

    if form == "text":
        console(stderr=False).print(report_table(finished.report))
        for line in report_summary(finished.report, str(finished.folder)):
            print_line(line)
    else:
        print_bytes(runs.rendered(finished, form))


def say(as_json: bool, value: dict[str, Any], lines: list[str]) -> None:
    from tunesmith.core.codec import encode

    if as_json:
        print_bytes(encode(value))
        return
    for line in lines:
        print_line(line)


def note(text: str) -> None:
    print_line(text, stderr=True)


def print_line(text: str, stderr: bool = False) -> None:
    typer.echo(text, err=stderr)


def print_bytes(data: bytes) -> None:
    typer.echo(data.decode())


Command = Callable[..., None]

if __name__ == "__main__":
    main()
