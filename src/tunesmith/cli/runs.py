"""Commands that make runs and tell of them: tune, resume, report, watch, verify, compare, fleet, diff."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.cli.console import (
    AsJson,
    DeviceName,
    PlanOptions,
    ProblemFile,
    Record,
    SandboxMode,
    SearchOptions,
    TuneOptions,
    Wait,
    Workers,
)
from tunesmith.errors import BadInput

if TYPE_CHECKING:
    from tunesmith.deliver.difference import RunDifference

FORMS = ("text", "md", "html", "json")
SLOWER = 6  # exit code of `diff --fail-below`
VERDICTS = {"holds": 0, "does not hold": 7, "cannot tell": 8}  # exit codes of `verify`


def tune(
    problem: ProblemFile,
    template: Annotated[
        Path | None, typer.Option(help="The template to search; by default the expert writes one.")
    ] = None,
    prior_run: Annotated[
        list[Path] | None,
        typer.Option(help="Begin from this run, or this T4 results file; several may be named."),
    ] = None,
    from_library: Annotated[
        bool, typer.Option("--from-library", help="Begin from the template your library has of this kernel.")
    ] = False,
    as_json: AsJson = False,
    **named: Unpack[TuneOptions],
) -> None:
    """Make templates of the kernel, search them on the device and deliver the verified winners."""
    with console.progress(as_json) as listener:
        run = tunesmith.tune(
            problem,
            template=template,
            listener=listener,
            prior_runs=prior_run or (),
            from_library=from_library,
            **_with_budget(named),
        )
    console.show_result(run, as_json)


def retune(
    target: Annotated[
        str,
        typer.Argument(metavar="RUN|TEMPLATE", help="A run's folder, a template file, or a library's name."),
    ],
    problem: Annotated[
        Path | None,
        typer.Option(help="The template's problem; by default as the run or the library keeps it."),
    ] = None,
    workloads: Annotated[
        Path | None, typer.Option(help="TOML with [workloads.NAME] tables, in place of the problem's.")
    ] = None,
    as_json: AsJson = False,
    **named: Unpack[SearchOptions],
) -> None:
    """Search a stored template again, with no model: another device, another driver, other sizes."""
    with console.progress(as_json) as listener:
        own = _with_budget(named)
        run = tunesmith.retune(target, problem=problem, workloads=workloads, listener=listener, **own)
    console.show_result(run, as_json)


def _with_budget(named: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `api` takes them."""
    limits = ("evals", "time", "rounds", "tokens", "money", "device_seconds")
    others = {name: value for name, value in named.items() if name not in limits}
    return {**others, "budget": tunesmith.Budget(*(named.get(name) for name in limits))}


def resume(
    run: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="The runs; by default the newest.")
    ] = None,
    wait: Wait = None,
    record: Record = None,
    sandbox: SandboxMode = None,
    workers: Workers = None,
    ray: console.Ray = None,
    model: console.RunsOwnModel = None,
    as_json: AsJson = False,
) -> None:
    """Go on with runs that were interrupted, exactly where they were."""
    own: dict[str, Any] = {"wait": wait, "record": record, "sandbox": sandbox}
    own |= {"workers": workers, "ray": ray, "model": model}
    from tunesmith.run.store import FLEET

    if run is not None and len(run) == 1 and (run[0] / FLEET).is_file():
        if given := [f"--{name}" for name, value in own.items() if value is not None and name != "ray"]:
            fault = f"a fleet goes on as it was planned, so {given[0]} cannot be given"
            raise BadInput(fault, hint="leave it out")
        from tunesmith.cli import fleets

        fleets.run_fleet(run[0], None, ray, as_json)
        return
    if run is None or len(run) < 2:
        with console.progress(as_json) as listener:
            one = tunesmith.resume(run[0] if run else None, listener=listener, **own)
        console.show_result(one, as_json)
        return
    from tunesmith.api import resume_all

    with console.progress(as_json) as listener:
        ended = resume_all(run, listener=listener, **own)
    console.show_several(list(zip(run, ended, strict=True)), as_json)


def report(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, md, html or json.",
            autocompletion=lambda incomplete: [f for f in FORMS if f.startswith(incomplete)],
        ),
    ] = "text",
    full: Annotated[
        bool, typer.Option("--full", help="With rounds, diffs, failures and all else that was tried.")
    ] = False,
    as_html: Annotated[bool, typer.Option("--html", help="The same as --format html: one page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, finished, at work or stopped: what was verified, on one screen."""
    form = "json" if as_json else "html" if as_html else _form(format_)
    console.show_report(tunesmith.load_run(run), form, full)


def _form(named: str) -> str:
    if named not in FORMS:
        raise BadInput(f"unknown format {named!r}; known are {', '.join(FORMS)}", hint="try --format text")
    return named


def watch(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run or a comparison; by default all runs here.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of this machine; 0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the address in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow runs in a browser, live: what the device does, and buttons to stop, finish or give a hint."""
    from tunesmith.run.config import resolve
    from tunesmith.session.watching import starting

    def told(address: str) -> None:
        console.say(as_json, {"address": address}, [address])
        console.print_note("who has this address may stop the runs: keep it to yourself. Ctrl-C ends it")
        if browser:
            starting.open_browser(address)

    starting.watch(Path(resolve({}).runs), run, port, told)


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="certificate.json, or the run's folder.")
    ],
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Judge what it certifies again on this machine, with new seeds.")
    ] = False,
    device: DeviceName = None,
    as_json: AsJson = False,
) -> None:
    """Check what a run's certificate claims: by its files anywhere, or by measuring it again."""
    with console.progress(as_json) as listener:
        found = tunesmith.verify(certificate, rerun=rerun, device=device, listener=listener)
    if as_json:
        console.print_encoded(found)
    else:
        rows = [(w.workload, w.verdict, w.reason) for w in found.workloads]
        console.print_table("workload | verdict | why", rows)
        lines = [f"fault            {fault}" for fault in found.faults]
        lines += [f"note             {note}" for note in found.notes]
        lines += [f"rule             {found.rule}"] if found.rule else []
        console.show_lines([*lines, f"certificate      {found.verdict}"])
    if not found.holds:
        raise typer.Exit(VERDICTS[found.verdict])


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
    as_json: AsJson = False,
) -> None:
    """Compare what runs of a problem deliver, workload by workload, each with the first; for CI."""
    from tunesmith.deliver.difference_page import slower_text, unclear_text

    form = "json" if as_json else "html" if as_html else _form(format_)
    found = tunesmith.diff(before, *after)
    _show_difference(found, form, fail_below)
    if fail_below is not None and (unclear := unclear_text(found, fail_below)):
        quiet = "run both again on a quiet machine"
        console.print_line(f"cannot tell whether below {fail_below}×: {unclear}; {quiet}", stderr=True)
    if fail_below is not None and (slower := slower_text(found, fail_below)):
        console.print_line(f"error: below {fail_below}×: {slower}", stderr=True)
        raise typer.Exit(SLOWER)


def _show_difference(found: RunDifference, form: str, fail_below: float | None) -> None:
    from tunesmith.deliver import difference_page as shown

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


def compare(
    problem: Annotated[
        list[Path] | None, typer.Argument(metavar="PROBLEM...", help="Problem files, or their folders.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the comparison in this folder.")] = None,
    wait: Wait = None,
    record: Record = None,
    as_json: AsJson = False,
    **plan: Unpack[PlanOptions],
) -> None:
    """Compare strategies on the same problems with the same budget, repeatedly."""
    from tunesmith.run.config import resolve
    from tunesmith.run.store import resume_command

    waits = resolve({"wait": wait}).wait
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
    with console.progress(as_json) as listener:
        if resume is not None:
            found = tunesmith.resume_comparison(
                resume, listener=listener, wait=wait, record=record, model=plan["model"]
            )
        else:
            own = {**_with_budget(plan), "repeats": plan["repeats"] or 3}
            found = tunesmith.compare(problem or [], listener=listener, wait=wait, record=record, **own)
    console.show_comparison(found, as_json)


def fleet(
    target: Annotated[
        Path, typer.Argument(metavar="PLAN|DIR", help="The plan, a TOML file; or the folder of a fleet.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The fleet's folder; by default named by its plan.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Ask the fleet in DIR to stop after the batches under way.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Run on a Ray cluster: HOST:PORT, auto or local."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tune many problems on many devices under one budget of device hours; the same command goes on."""
    from tunesmith.cli import fleets

    (fleets.stop_fleet if stop else fleets.run_fleet)(target, out, ray, as_json)
