"""The commands `bench`, `diff` and `compare`: of kernels where programs call them, of runs, of strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

import tunesmith
from tunesmith.base.errors import BadInput
from tunesmith.cli import console

if TYPE_CHECKING:
    from tunesmith.deliver.pages.terminal import TableContent
    from tunesmith.plugins.studies.difference import RunDifference
    from tunesmith.plugins.studies.result import ComparisonResult
    from tunesmith.plugins.studies.run import Compared


def bench(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long it may take at most.")] = 600.0,
    as_json: console.AsJson = False,
) -> None:
    """Time original and tuned where they are called: eager, compiled, captured; the host's cost apart."""
    with console.show_progress(as_json) as listener:
        found = tunesmith.bench(run, seconds=seconds, listener=listener)
    if as_json:
        console.print_encoded(found)
        return
    rows = []
    for workload in found.workloads:
        kernel = f"{workload.verified:.2f}×" if workload.verified is not None else "original"
        for way in workload.ways:
            low, high = way.interval
            times = (way.original_us, way.tuned_us, way.original_host_us, way.tuned_host_us)
            figures = [f"{time:.1f} µs" for time in times]
            gain = (f"{way.ratio:.2f}×", f"{low:.2f} to {high:.2f}")
            rows.append((workload.name, kernel, way.way, *figures[:2], *gain, *figures[2:]))
        rows += [(workload.name, kernel, failed.way, *["–"] * 6) for failed in workload.failed if failed.way]
    head = "workload | verified: | called by | original: | tuned: | measured: | interval"
    if rows:
        console.print_table(f"{head} | host, original: | host, tuned:", rows)
    lines = [
        f"device           {found.device}",
        "verified         the speed-up of the kernel alone, by the run",
        "measured         the speed-up of the whole call, now; host: until a call returns",
    ]
    for workload in found.workloads:
        for failed in workload.failed:
            name = f"{workload.name}, {failed.way}" if failed.way else workload.name
            lines.append(f"not timed        {name}: {failed.why}")
    notes = [*found.notes, *(note for workload in found.workloads for note in workload.notes)]
    console.show_lines([*lines, *(f"note             {note}" for note in notes)])


SLOWER = 6  # exit code of `diff --fail-below`


def _complete_arms(incomplete: str) -> list[str]:
    """Of a list with commas the last one."""
    from tunesmith.plugins.studies.plan import ARMS

    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{arm}" for arm in ARMS if arm.startswith(last)]


_ARMS = "Arms, separated by commas: template, rewrite, rewrite-linear, single, expert."


class PlanOptions(TypedDict):
    """What a comparison is planned by: none of them can be given when one goes on."""

    strategies: Annotated[str | None, typer.Option(help=_ARMS, autocompletion=_complete_arms)]
    repeats: Annotated[int | None, typer.Option(min=1, help="Of each arm; 3 by default.")]
    out: Annotated[Path | None, typer.Option(help="The comparison's folder.")]
    model: Annotated[str | None, typer.Option(help="As for `tune`; a folder has one below it for each run.")]
    effort: console.Effort
    evals: Annotated[int | None, typer.Option(help="Of each run; 400 by default.")]
    time: Annotated[float | None, typer.Option(help="Seconds of search, of each run.")]
    device_seconds: Annotated[float | None, typer.Option(help="That trials have the device, of each run.")]
    moves: Annotated[str | None, typer.Option(help=console.MOVES_HELP, autocompletion=console.MOVE_SETS)]
    rounds: Annotated[int | None, typer.Option(help="Of each run; 5 by default.")]
    tokens: Annotated[int | None, typer.Option(help="Of each run.")]
    money: Annotated[float | None, typer.Option(help="Dollars, of each run.")]
    seed: Annotated[int | None, typer.Option(help="Of the first repeat; 0 by default.")]
    prompts: console.Prompts
    backend: console.Backend
    device: console.DeviceName


def diff(
    before: Annotated[Path, typer.Argument(metavar="RUN", help="The run to hold the others against.")],
    after: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The newer run, or several; also a report.json.")
    ],
    fail_below: Annotated[
        float | None,
        typer.Option(min=0, help="Exit 6 where all of a ratio's interval is below this, e.g. 0.98."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="text, md for a summary in CI, html for a page, or json.")
    ] = "text",
    as_html: Annotated[bool, typer.Option("--html", help="The same as --format html: one page.")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Show how runs of a problem differ in what they deliver, workload by workload; for CI."""
    from tunesmith.plugins.studies.difference import slower_text, unclear_text

    form = "json" if as_json else "html" if as_html else console.checked_form(format_)
    found = tunesmith.diff(before, *after)
    _show_difference(found, form, fail_below)
    if fail_below is not None and (unclear := unclear_text(found, fail_below)):
        quiet = "run both again on a quiet machine"
        console.print_line(f"cannot tell whether below {fail_below}×: {unclear}; {quiet}", stderr=True)
    if fail_below is not None and (slower := slower_text(found, fail_below)):
        console.print_line(f"error: below {fail_below}×: {slower}", stderr=True)
        raise typer.Exit(SLOWER)


def _show_difference(found: RunDifference, form: str, fail_below: float | None) -> None:
    from tunesmith.plugins.studies import difference as shown

    if form == "json":
        below = [w.name for pair in found.pairs for w in (pair.below(fail_below) if fail_below else ())]
        console.print_encoded({"difference": found, "below": below, "fail_below": fail_below})
        return
    if form != "text":
        made = shown.difference_markdown if form == "md" else shown.difference_page
        console.print_line(made(found, fail_below).rstrip())
        return
    grids = [shown.workload_grid(found), *([shown.runs_grid(found)] if found.others else [])]
    for grid in grids:
        console.print_table(grid.head, [[str(value) for value in row] for row in grid.rows])
    told = [*shown.mean_lines(found), *shown.config_lines(found), *shown.note_lines(found)]
    console.show_lines([f"{name:<16} {text}" for name, text in told])


@console.reads_problems
def compare(
    problem: Annotated[
        list[Path] | None, typer.Argument(metavar="PROBLEM...", help="Problem files, or their folders.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the comparison in this folder.")] = None,
    wait: console.Wait = None,
    record: console.Record = None,
    as_json: console.AsJson = False,
    **plan: Unpack[PlanOptions],
) -> None:
    """Compare strategies: each tunes the same problems with the same budget, repeatedly."""
    from tunesmith.run.config import resolve_config
    from tunesmith.run.folder import resume_command

    waits = resolve_config({"wait": wait}).wait
    planned = {
        "PROBLEM": problem or None,
        **{f"--{name.replace('_', '-')}": value for name, value in plan.items()},
    }
    given = [name for name, value in planned.items() if value is not None and name != "--model"]
    if resume is not None and given:
        fault = f"--resume goes on with a comparison as it was planned, so {given[0]} cannot be given"
        raise BadInput(fault, hint=resume_command(resume, waits, compared=True))
    if resume is None and not problem:
        hint = f"tunesmith compare PROBLEM..., or {resume_command(Path('DIR'), waits, compared=True)}"
        raise BadInput("no PROBLEM is named", hint=hint)
    with console.show_progress(as_json) as listener:
        if resume is not None:
            found = tunesmith.resume_comparison(
                resume, listener=listener, wait=wait, record=record, model=plan["model"]
            )
        else:
            options = {**console.with_budget(plan), "repeats": plan["repeats"] or 3}
            found = tunesmith.compare(problem or [], listener=listener, wait=wait, record=record, **options)
    show_comparison(found, as_json)


def show_comparison(found: Compared, as_json: bool) -> None:
    """What all runs say together; the exit code is that of the most urgent trouble."""
    from tunesmith.plugins.studies import run as comparison

    if as_json:
        console.print_json(comparison.rendered_json(found))
    else:
        console.print_table(*comparison_table(found.comparison))
        counted = sum(run.counts for run in found.comparison.runs)
        console.print_line(f"runs that count  {counted} of {len(found.comparison.runs)}")
        console.print_line(f"report           {found.folder / 'compare.md'}")
    for folder, trouble in found.troubles:
        # The others go on with the comparison, see below.
        console.print_error(f"{folder}: {trouble}", trouble.hint if isinstance(trouble, BadInput) else None)
    if code := console.most_urgent(found.troubles):
        console.print_line(f"hint: go on with: {found.go_on}", stderr=True)
        raise typer.Exit(code)


def comparison_table(found: ComparisonResult) -> TableContent:
    from tunesmith.plugins.studies.result import interval_text, spread_text

    overall = found.overall if len(found.common) > 1 else ()
    rows = []
    for cell in (*found.cells, *overall):
        mean, worst = ("" if v is None else f"{v:.2f}×" for v in (cell.mean, cell.least))
        tried = f"{cell.costs.evaluations:.0f}" if cell.costs else ""
        name = cell.problem or f"all {len(found.common)}"
        runs, success = f"{cell.counted} of {cell.planned}", f"{cell.successes} of {cell.counted}"
        words = (name, cell.arm, spread_text(cell), interval_text(cell))
        rows.append((*words, runs, mean, worst, success, tried))
    figures = "runs: | mean: | worst: | success: | evaluations:"
    return f"problem | arm | spread | interval of the mean | {figures}", rows
