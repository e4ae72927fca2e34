"""What every command shares: progress, errors as messages and exit codes, results on stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tunesmith.config import RunConfig, debugging, resolve
from tunesmith.core.errors import BadInput, TunesmithError, bug_text
from tunesmith.core.untrusted import escaped_json, plain

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
URGENCY = (1, 2, 3, 4, 5)  # of several runs: a fault first, then a reply that is missing, then a device


def resolved(**flags: Any) -> RunConfig:
    return resolve(flags)


@contextmanager
def handled(as_json: bool) -> Iterator[None]:
    """Errors as messages and exit codes; a traceback is for nobody."""
    try:
        yield
    except typer.Exit:
        raise
    except TunesmithError as error:
        mend = "mend it and run the same command again" if isinstance(error, BadInput) else None
        fail(as_json, error.exit_code, str(error), error.hint or mend)
    except KeyboardInterrupt:
        fail(as_json, 130, "interrupted", "run the same command again")
    except MemoryError:
        fail(as_json, 1, "this machine ran out of memory", "choose smaller sizes")
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        fail(as_json, 2, f"{name}{error.strerror or error}", None)
    except Exception as error:
        if debugging():
            raise
        hint = "set TUNESMITH_DEBUG=1 to see the traceback, and please report it"
        fail(as_json, 1, f"a bug in Tunesmith: {bug_text(error)}", hint)


def fail(as_json: bool, code: int, message: str, hint: str | None, **more: Any) -> NoReturn:
    print_line(f"error: {message}", stderr=True)
    if hint:
        print_line(f"hint: {hint}", stderr=True)
    if as_json:
        from tunesmith.core.codec import encode

        told = {"error": plain(message), "hint": plain(hint) if hint else None, "exit": code}
        print_json(encode({**told, **more}))
    raise typer.Exit(code)


@contextmanager
def progress(as_json: bool) -> Iterator[Any]:
    from tunesmith.display import Progress

    with Progress(sys.stderr, quiet=as_json).live() as listener:
        yield listener


def show_result(finished: Any, as_json: bool) -> None:
    """The report; where the device is missing also that, as the error it is."""
    missing = finished.missing
    if not (missing and as_json):
        show_report(finished, "json" if as_json else "text")
    if missing:
        fail(as_json, missing.exit_code, str(missing), missing.hint, report=finished.report)


def show_several(ended: list[tuple[Path, Any]], as_json: bool) -> None:
    """Each run as far as it got; the exit code is the most urgent of all."""
    troubles = []
    for folder, found in ended:
        trouble = found if isinstance(found, TunesmithError) else found.missing
        if not as_json:
            print_line(f"== {folder}")
            if not isinstance(found, TunesmithError):
                show_report(found, "text")
        if trouble is not None:
            troubles.append((folder, trouble))
    code = most_urgent(trouble.exit_code for _, trouble in troubles)
    if as_json:
        from tunesmith.core.codec import encode

        print_json(encode([_ended(folder, found) for folder, found in ended]))
    for folder, trouble in troubles:
        print_line(f"error: {folder}: {trouble}", stderr=True)
        if trouble.hint:
            print_line(f"hint: {trouble.hint}", stderr=True)
    if code:
        raise typer.Exit(code)


def show_comparison(found: Any, as_json: bool) -> None:
    """What all runs say together; the exit code is that of the most urgent trouble."""
    from tunesmith import comparison
    from tunesmith.tables import comparison_table

    if as_json:
        print_json(comparison.rendered_json(found))
    else:
        print_table(comparison_table(found.comparison))
        counted = sum(run.counts for run in found.comparison.runs)
        print_line(f"runs that count  {counted} of {len(found.comparison.runs)}")
        print_line(f"report           {found.folder / 'compare.md'}")
    for folder, trouble in found.troubles:
        print_line(f"error: {folder}: {trouble}", stderr=True)
        if trouble.hint and isinstance(trouble, BadInput):  # the others go on with the comparison, see below
            print_line(f"hint: {trouble.hint}", stderr=True)
    code = most_urgent(trouble.exit_code for _, trouble in found.troubles)
    if code:
        print_line(f"hint: go on with: {found.go_on}", stderr=True)
        raise typer.Exit(code)


def most_urgent(codes: Iterable[int]) -> int:
    found = set(codes)
    return next((code for code in URGENCY if code in found), 0)


def _ended(folder: Path, found: Any) -> dict[str, Any]:
    trouble = found if isinstance(found, TunesmithError) else found.missing
    report = None if isinstance(found, TunesmithError) else found.report
    error = plain(str(trouble)) if trouble else None
    return {"run": str(folder), "exit": trouble.exit_code if trouble else 0, "error": error, "report": report}


def show_report(finished: Any, form: str) -> None:
    from tunesmith import runs
    from tunesmith.display import report_summary, report_table, report_title

    if form == "text":
        print_line(report_title(finished.report))
        table = report_table(finished.report)
        if table.row_count:
            print_table(table)
        for line in report_summary(finished.report, str(finished.folder), finished.go_on):
            print_line(line)
        for line in finished.library:
            print_line(f"library          {line}")
    elif form == "json":
        print_json(runs.rendered(finished, form))
    else:
        print_line(runs.rendered(finished, form).decode().rstrip())


def show_lines(lines: list[str]) -> None:
    for line in lines:
        print_line(line)


def say(as_json: bool, value: dict[str, Any], lines: list[str]) -> None:
    from tunesmith.core.codec import encode

    if as_json:
        print_json(encode(value))
        return
    show_lines(lines)


def print_line(text: str, stderr: bool = False) -> None:
    write(plain(text), stderr)


def print_json(data: bytes) -> None:
    write(escaped_json(data.decode()).rstrip())


def print_table(table: Any) -> None:
    from tunesmith.display import table_text

    write(table_text(table, sys.stdout))


def write(text: str, stderr: bool = False) -> None:
    """The only way out. Who stops reading has seen enough; a result that cannot be written is an error."""
    try:
        typer.echo(text, err=stderr)
    except OSError as error:
        if stderr:
            return  # there is nobody left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(0) from None
        print_line(f"error: cannot write the result to stdout: {error.strerror}", stderr=True)
        print_line("hint: runs are kept; show the newest again with: tunesmith report", stderr=True)
        raise typer.Exit(2) from None
