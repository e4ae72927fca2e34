"""Commands that make runs and tell of them: tune, retune, resume, report, verify; `trust`, of folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Unpack

import typer

import tunesmith
from tunesmith.base import plugins
from tunesmith.base.errors import BadInput
from tunesmith.cli import console
from tunesmith.cli.console import AsJson, DeviceName, ProblemFile, ResumeOptions, SearchOptions, TuneOptions

VERDICTS = {"holds": 0, "does not hold": 7, "cannot tell": 8}  # exit codes of `verify`


@console.reads_problems
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
    with console.show_progress(as_json) as listener:
        run = tunesmith.tune(
            problem,
            template=template,
            listener=listener,
            prior_runs=prior_run or (),
            from_library=from_library,
            **console.with_budget(named),
        )
    console.show_result(run, as_json)


@console.reads_problems
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
    """Tune again from a template of a run or the library, with no model: another device, driver or sizes."""
    with console.show_progress(as_json) as listener:
        limited = console.with_budget(named)
        run = tunesmith.retune(target, problem=problem, workloads=workloads, listener=listener, **limited)
    console.show_result(run, as_json)


def resume(
    run: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="The runs; by default the newest.")
    ] = None,
    as_json: AsJson = False,
    **named: Unpack[ResumeOptions],
) -> None:
    """Go on with runs that were interrupted, exactly where they were."""
    from tunesmith.run.folder import FLEET

    if run is not None and len(run) == 1 and (run[0] / FLEET).is_file():
        if given := [f"--{name}" for name, value in named.items() if value is not None and name != "ray"]:
            fault = f"a fleet goes on as it was planned, so {given[0]} cannot be given"
            raise BadInput(fault, hint="leave it out")
        plugins.load_plugin("commands", "fleet")(run[0], ray=named["ray"], as_json=as_json)
        return
    if run is None or len(run) < 2:
        with console.show_progress(as_json) as listener:
            one = tunesmith.resume(run[0] if run else None, listener=listener, **named)
        console.show_result(one, as_json)
        return
    from tunesmith.api import resume_all

    with console.show_progress(as_json) as listener:
        ended = resume_all(run, listener=listener, **named)
    console.show_several(list(zip(run, ended, strict=True)), as_json)


def report(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, md, html or json.",
            autocompletion=lambda incomplete: [f for f in console.FORMS if f.startswith(incomplete)],
        ),
    ] = "text",
    full: Annotated[
        bool, typer.Option("--full", help="With rounds, diffs, failures and all else that was tried.")
    ] = False,
    as_html: Annotated[bool, typer.Option("--html", help="The same as --format html: one page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the report of a run, finished, at work or stopped: what was verified, on one screen."""
    form = "json" if as_json else "html" if as_html else console.checked_form(format_)
    console.show_report(tunesmith.load_run(run), form, full)


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
    with console.show_progress(as_json) as listener:
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


def trust(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="One with a tunesmith.toml, or a run's; none: list them."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no longer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a folder's tunesmith.toml, or a run of others, say what only you may, until it changes."""
    from tunesmith.run import trust as trusting
    from tunesmith.run.config import beyond_permission, folder_settings

    if folder is None:
        if remove:
            raise BadInput("--remove needs a folder", hint="see which are trusted: tunesmith trust")
        known = trusting.trusted_folders(os.environ)
        console.print_result(as_json, known, [one.folder for one in known] or ["no folder is trusted"])
        return
    if remove:
        was = trusting.forget_folder(folder, os.environ)
        words = "is not trusted any more" if was else "was not trusted"
        console.print_result(as_json, {"folder": str(folder), "removed": was}, [f"{folder} {words}"])
        return
    if files := trusting.beginning_of(folder):
        beyond = ["models, hosts and programs, as it was begun"]
    else:
        asked, files = folder_settings(folder)
        beyond = beyond_permission(asked, folder)
    trusting.trust_folder(folder, files, os.environ)
    console.print_result(
        as_json,
        {"folder": str(folder), "files": files, "settings": beyond},
        [
            f"trusted, as they are now: {', '.join(files)}",
            f"its settings that only you may give: {', '.join(beyond) or 'none'}",
        ],
    )
