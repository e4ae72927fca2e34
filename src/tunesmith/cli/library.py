"""`tunesmith library`: what is stored, of which kernels and from which runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.base.text import format_count, named_values
from tunesmith.cli import console
from tunesmith.cli.console import AsJson

if TYPE_CHECKING:
    from tunesmith.run.config import RunConfig
    from tunesmith.run.library import Library, LibraryQuery, RunRecord

SHOWN = 4  # workloads, on a line
DIGEST = 12  # characters that are shown of one

library_app = typer.Typer(
    add_completion=False,
    help="Templates that won and what runs measured, stored for the next device and the next size.",
    rich_markup_mode=None,
    invoke_without_command=True,
)


def _complete_entry_names(incomplete: str) -> list[str]:
    """For the shell: where the library cannot be read there are none."""
    with suppress(TunesmithError), _open_library() as library:
        return [e.name for e in library.entries(_ignore_note, _make_query()) if e.name.startswith(incomplete)]
    return []


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="As `tunesmith library` lists it.", autocompletion=_complete_entry_names
    ),
]
Operator = Annotated[str | None, typer.Option(help="Only of the operator with this name: the problem's.")]
Code = Annotated[
    str | None, typer.Option(help="Only of the kernel with this digest, or the problem PROBLEM.")
]
OnDevice = Annotated[str | None, typer.Option("--device", help="Only from the device with this name.")]


@library_app.callback()
def library(
    context: typer.Context,
    operator: Operator = None,
    code: Code = None,
    device: OnDevice = None,
    as_json: AsJson = False,
) -> None:
    """List the templates in your library."""
    if context.invoked_subcommand is not None:
        return
    with console.handle_errors(as_json), _open_library() as library:
        from tunesmith.run.library import entry_summary

        entries = library.entries(console.print_note, _make_query(operator, code, device))
        if as_json:
            console.print_encoded([entry_summary(entry) for entry in entries])
        elif entries:
            rows = []
            for e in entries:
                sizes = ", ".join(served.workload for served in e.served[:SHOWN])
                sizes += f", {len(e.served) - SHOWN} more" if len(e.served) > SHOWN else ""
                origin = PurePath(e.origin).name
                rows.append((e.name, e.language, e.device, e.figure.words, sizes, e.date[:10], origin))
            console.print_table("name | language | device | speed-up: | workloads | date | from", rows)
        else:
            such = " such" if operator or code or device else ""
            console.print_line(
                f"{library.where} has no{such} template yet: runs that find something better put theirs there"
            )


def show(name: Name, as_json: AsJson = False) -> None:
    """Show one of them: what it is of, what it gave and where, and how to use it again."""
    from tunesmith.run.figures import Figure

    with _open_library() as library:
        entry, named = library.get(name), " --problem PROBLEM" if library.is_shared else ""
    compiled = f", built with {entry.compiler}" if entry.compiler else ""
    by = f"by {entry.author}" if entry.author else ", ".join(entry.moves) or "given to the run"
    there = " there; nothing of it is taken for true here" if named else ""
    lines = [
        f"{entry.name}: {entry.problem}, {entry.figure.words} in the geometric mean, verified{there}",
        f"kernel           {entry.signature}",
        f"                 text {entry.kernel[:DIGEST]}",
        f"device           {entry.device} ({entry.driver}){compiled}",
        f"template         {entry.path}, {format_count(len(entry.template.splitlines()), 'line')}, {by}",
    ]
    for s in entry.served:
        sizes = named_values(s.sizes)
        figure = Figure(s.speedup, *s.interval)
        lines.append(f"{s.workload:<16} {figure.words} ({figure.span}) at {sizes}: {s.config}")
    lines.append(
        f"known            {format_count(len(entry.rows), 'configuration')}, {len(entry.best)} "
        "of them tried first"
    )
    lines.append(f"from             {entry.origin}, {entry.date}")
    if entry.certificate:
        lines.append(f"certificate      {entry.certificate}")
    lines.append(f"again with       tunesmith retune {entry.name}{named} [--device D] [--workloads FILE]")
    console.print_result(as_json, entry, lines)


def export(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write its template to a file of its own."""
    from tunesmith.session import library as stored

    with _open_library() as library:
        entry = library.get(name)
    if out is None:
        text = entry.template
        console.print_result(as_json, {"name": name, "template": text}, [text.rstrip()])
        return
    written = [str(path) for path in stored.export_template(entry, out)]
    console.print_result(as_json, {"name": name, "files": written}, [f"wrote {', '.join(written)}"])


def remove(name: Name, as_json: AsJson = False) -> None:
    """Take it out of the library; runs are left alone."""
    with _open_library() as library:
        library.remove(name)
    console.print_result(as_json, {"removed": name}, [f"{name} is no longer in the library"])


def runs(
    operator: Operator = None, code: Code = None, device: OnDevice = None, as_json: AsJson = False
) -> None:
    """List the runs whose timings are stored, the newest first: of what, where, by whom."""
    with _open_library() as library:
        counts = library.timing_counts()
        listed = library.runs(console.print_note, _make_query(operator, code, device))
    found = [(run, counts.get(run.id, 0)) for run in listed]
    if as_json:
        console.print_encoded([{"run": run, "timings": count} for run, count in found])
    elif found:
        head = "operator | code | device | timings: | date | from"
        console.print_table(head, [_timing_row(run, count) for run, count in found])
    else:
        console.print_line(f"{library.where} has no timings of such runs yet")


def _timing_row(run: RunRecord, count: int) -> tuple[str, ...]:
    day = run.provenance.date[:10]
    return run.problem, run.kernel[:DIGEST], run.device, str(count), day, run.about


def add(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, ended or not.")],
    as_json: AsJson = False,
) -> None:
    """Put runs in that are not there yet, or only in part: made elsewhere, or while the library was gone."""
    from tunesmith.session import library as stored

    done = []
    with _open_library() as library:
        for folder in folders:
            console.print_note(f"{folder} …")
            done.append(stored.add_run(library, folder))
    lines = [line for one in done for line in one.lines(library.where)]
    console.print_result(
        as_json, [{"folder": str(f), "stored": d} for f, d in zip(folders, done, strict=True)], lines
    )


def prune(
    older_than: Annotated[int, typer.Option(metavar="DAYS", min=1, help="Only runs that are older.")],
    as_json: AsJson = False,
) -> None:
    """Take timings of old runs out. Templates that won stay: remove takes one of those."""
    from datetime import UTC, datetime, timedelta

    try:
        before = (datetime.now(UTC) - timedelta(days=older_than)).isoformat(timespec="seconds")
    except OverflowError as error:
        fault = f"--older-than {older_than} is before any calendar"
        raise BadInput(fault, hint="give days, e.g. --older-than 365") from error
    with _open_library() as library:
        gone = library.prune(before)
    lines = [f"took the timings of {format_count(gone, 'run')} out of {library.where}"]
    console.print_result(as_json, {"before": before, "runs": gone}, lines)


for _command in (show, export, remove, runs, add, prune):
    console.add_command(library_app, _command)


@contextmanager
def _open_library() -> Iterator[Library]:
    from tunesmith.session.library import open_library

    with open_library(_resolve_config()) as found:
        yield found


def _resolve_config() -> RunConfig:
    from tunesmith.run.config import resolve_config

    config = resolve_config({})
    for note in config.notes:
        console.print_note(f"note: {note}")
    return config


def _make_query(
    operator: str | None = None, code: str | None = None, device: str | None = None
) -> LibraryQuery:
    """What is no digest names a problem."""
    from tunesmith.run.library import LibraryQuery, kernel_digest

    is_digest = code is not None and len(code) == 64 and set(code) <= set("0123456789abcdef")
    if code is not None and not is_digest:
        from tunesmith.session.problems import load_problem

        code = kernel_digest(load_problem(Path(code)).definition)
    return LibraryQuery(operator or "", code or "", device or "")


def _ignore_note(_text: str) -> None:
    """Whoever completes a name is told nothing else."""
