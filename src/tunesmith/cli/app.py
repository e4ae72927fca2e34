"""The command line: options in, `api` asked, the result on stdout, everything else on stderr."""

from __future__ import annotations

import faulthandler
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

import tunesmith
from tunesmith.cli import console, exports
from tunesmith.cli.bench import bench, capture, mcp, skill
from tunesmith.cli.console import AsJson, Backend, OneTemplate, PlaceOptions, ProblemFile, SandboxMode, Seed
from tunesmith.cli.explaining import Defines, Entry, explain, refusals
from tunesmith.cli.runs import compare, diff, fleet, report, resume, retune, tune, verify, watch
from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.session.interrupts import end_when_asked
from tunesmith.text import counted, named_values, plain

if TYPE_CHECKING:
    from tunesmith.backends.port import DoctorFinding
    from tunesmith.deliver.display import TableContent
    from tunesmith.problem.device import Device
    from tunesmith.session.library import Library

SHOWN = 4  # workloads, on a line

app = typer.Typer(
    name="tunesmith",
    help="Takes a kernel that works and gives back a faster one that is still right, with the evidence.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def init(
    kernel_file: Annotated[Path, typer.Argument(metavar="KERNEL_FILE", help="The source of your kernel.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--out", "--output", help="Folder for the draft.")
    ] = None,
    entry: Entry = None,
    define: Defines = None,
    as_json: AsJson = False,
) -> None:
    """Draft a problem folder from a kernel source; "FILL" stands where only you know."""
    from tunesmith.session import sources

    draft = sources.draft(kernel_file, output, entry, sources.given_defines(define or ()))
    then = f"tunesmith check {shlex.quote(str(draft.folder))}"
    places = counted(draft.fills, 'place says "FILL"', 'places say "FILL"')
    console.say(
        as_json,
        {"folder": plain(str(draft.folder)), "files": draft.files, "fill": draft.fills},
        [
            f"wrote {', '.join(draft.files)} in {draft.folder}",
            f"{places}: only you know what belongs there. Then: {then}",
        ],
    )


def check(
    problem: ProblemFile,
    template: OneTemplate = None,
    seed: Seed = None,
    sandbox: SandboxMode = None,
    workers: console.Workers = None,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Also look for faults that results need not show.")
    ] = False,
    as_json: AsJson = False,
    **place: Unpack[PlaceOptions],
) -> None:
    """Validate a problem, build its kernel and prove it right over the contract's edges."""
    with console.progress(as_json) as listener:
        own: dict[str, Any] = {"template": template, "seed": seed, "sandbox": sandbox, "workers": workers}
        done = tunesmith.check(problem, listener=listener, sanitize=sanitize, **own, **place)
    known: dict[str, Any] = {"problem": done.problem, "device": done.device}
    known |= {"feasible": done.feasible, "notes": done.notes}
    notes = [f"note: {note}" for note in done.notes]
    count = f"the template has {counted(done.feasible or 0, 'configuration')} for it there"
    counts = [count] if done.feasible is not None else []
    if done.missing:
        if not as_json:
            console.show_lines([*counts, *notes])
        console.fail(as_json, done.missing.exit_code, str(done.missing), done.missing.hint, **known)
    by = "the reference" if done.judged_by_reference else "itself, run twice (no reference given)"
    by += f"; {done.own_rules}" if done.own_rules else ""
    right = f"{done.problem} is right on {counted(done.cases, 'case')} on {done.device}, judged by {by}"
    watched = [one.sentence for one in done.sanitized]
    known |= {"sanitized": watched} if watched else {}
    lines = [right, *counts, *(f"sanitized: {words}" for words in watched), *notes]
    console.say(as_json, {**known, "cases": done.cases, "right": True}, lines)


def template(
    target: Annotated[
        Path, typer.Argument(metavar="PROBLEM|RUN", help="A problem, or the folder of a run that has ended.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file to write; by default stdout.")
    ] = None,
    moves: Annotated[str | None, typer.Option(help="Only these, separated by commas; see `explain`.")] = None,
    winner: Annotated[
        bool, typer.Option("--winner", help="Of a run: reduced to what won; what lost is gone.")
    ] = False,
    still_open: Annotated[
        str | None, typer.Option("--open", help="With --winner: choices to leave open, separated by commas.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="In another language: cuda, hip or opencl.")] = None,
    template: Annotated[
        Path | None, typer.Option(help="With --to: one that you have, whose names are translated.")
    ] = None,
    as_json: AsJson = False,
    **place: Unpack[PlaceOptions],
) -> None:
    """Write a template: the expert's of a kernel, or the one that won in a run; nothing is built or run."""
    from tunesmith.run.store import JOURNAL

    if (target / JOURNAL).is_file():
        own = {"moves": moves, "to": to, "template": template, **place}
        needless = [f"--{name}" for name, value in own.items() if value is not None]
        _kept(target, out, winner, _listed(still_open), needless, as_json)
        return
    if winner or still_open is not None:
        fault = "only a run has winners, and this is none"
        hint = "name the folder of a run, or leave out --winner and --open"
        raise BadInput(fault, where=str(target), hint=hint)
    if (template is not None and to is None) or (moves is not None and to is not None):
        fault = "--template goes with --to, and --moves does not"
        raise BadInput(fault, where=str(target), hint="name the language with --to, or leave the other out")
    made = tunesmith.write_template(target, moves=_listed(moves), out=out, to=to, template=template, **place)
    if as_json:
        console.print_encoded(made)
        return
    for line in (*made.notes, *refusals(made.refused)):
        console.print_note(line)
    if made.template is None:
        console.print_line(f"there is no template: {made.declined}", stderr=True)
        return
    count = counted(made.feasible or 0, "configuration")
    how = f"{', '.join(made.moves) or 'no moves'}; {count} on {made.device}"
    console.print_note(f"{made.problem}: {how}")
    if out is None:
        console.write(made.template.rstrip())
    elif to is not None:
        console.print_line(f"wrote {out}: it goes with a problem whose kernel is {to}")
    else:
        go_on = f"tunesmith tune {shlex.quote(str(target))} --template {shlex.quote(str(out))}"
        console.print_line(f"wrote {out}; search it with: {go_on}")


def _kept(
    run: Path,
    out: Path | None,
    winner: bool,
    still_open: list[str] | None,
    needless: list[str],
    as_json: bool,
) -> None:
    from tunesmith.session.kept import write_kept

    if needless:
        fault = f"a run has its own templates and device: {' and '.join(needless)} goes with a problem"
        raise BadInput(fault, where=str(run), hint="leave it out, or name the problem instead of the run")
    kept = write_kept(run, winner, still_open or (), out)
    if as_json:
        console.print_encoded(kept)
    elif kept.files:
        console.print_line(f"wrote {', '.join(kept.files)}")
    elif len(kept.texts) > 1:
        fault = f"{len(kept.texts)} templates won: {', '.join(kept.texts)}"
        raise BadInput(fault, where=str(run), hint="each becomes a file of its own with --out FILE")
    else:
        console.write(next(iter(kept.texts.values())).rstrip())


def _listed(names: str | None) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] if names is not None else None


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
        bool, typer.Option("--remeasure", help="Measure the device's ceilings again, whatever is stored.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the plot; by default the run's, or this one.")
    ] = None,
    as_json: AsJson = False,
    **place: Unpack[PlaceOptions],
) -> None:
    """Show how far a kernel is from what its device can do, why, and what to do about it."""
    from tunesmith.deliver.profile_page import page_lines

    with console.progress(as_json) as listener:
        page = tunesmith.profile(
            target,
            template=template,
            config=values,
            workloads=workload or (),
            counters=counters,
            remeasure=remeasure,
            listener=listener,
            out=out,
            **place,
        )
    if not as_json:
        console.show_lines(page_lines(page))
    if page.missing:
        hint = "run the same command where it is, or see what is missing with: tunesmith doctor"
        console.fail(as_json, DeviceMissing.exit_code, page.missing, hint, profile=page)
    if as_json:
        console.print_encoded(page)


def devices(backend: Backend = None, as_json: AsJson = False) -> None:
    """List the devices that kernels can run on."""
    found = tunesmith.devices(backend)
    if as_json:
        console.print_encoded(found.devices)
    elif found.devices:
        console.print_table(*devices_table(found.devices))
    for trouble in found.troubles:
        console.print_note(trouble)


def devices_table(devices: Sequence[Device]) -> TableContent:
    rows = []
    for d in devices:
        sizes = (str(d.limits.sms), size_text(d.limits.memory), size_text(d.limits.llc))
        rows.append((d.backend, d.id, d.name, d.platform, d.driver, d.kind, *sizes))
    return "backend | id | device | platform | driver | kind | units | memory | cache", rows


def size_text(nbytes: int) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift:
            return f"{nbytes / (1 << shift):.3g} {unit}"
    return f"{nbytes} B"


def doctor(
    model: Annotated[
        str | None, typer.Option(help="Try this model instead, as `tune` takes it: one tiny request.")
    ] = None,
    effort: console.Effort = None,
    as_json: AsJson = False,
) -> None:
    """Say what is usable here, and the one command that enables what is not."""
    findings, lines = _tried(model, effort, as_json) if model is not None else _examined(), []
    for f in findings:
        lines.append(f"{'ok     ' if f.usable else 'missing'}  {f.what}: {f.detail}")
        lines += [f"         enable it with: {f.fix}"] if f.fix else []
    console.say(as_json, findings, lines)


def _examined() -> list[DoctorFinding]:
    from tunesmith.session.authoring import examine

    return examine()


def _tried(model: str, effort: str | None, as_json: bool) -> list[DoctorFinding]:
    from tunesmith.session.endpoints import try_out
    from tunesmith.session.given import settings

    config = settings(model=model, effort=effort)
    with console.progress(as_json) as listener:
        return try_out(config.model, config, listener.note)


# -- the library ----------------------------------------------------------------------------------------

library_app = typer.Typer(
    help="Templates that won, stored for the next device and the next size.",
    rich_markup_mode=None,
    invoke_without_command=True,
)


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="As `tunesmith library` lists it.",
        autocompletion=lambda incomplete: [p.stem for p in _library().folder.glob(f"{incomplete}*.json")],
    ),
]


@library_app.callback()
def library(context: typer.Context, as_json: AsJson = False) -> None:
    """List the templates in your library."""
    if context.invoked_subcommand is not None:
        return
    with console.handled(as_json):
        from tunesmith.run.library import summary

        own = _library()
        entries = own.entries(console.print_note)
        if as_json:
            console.print_encoded([summary(entry) for entry in entries])
        elif entries:
            rows = []
            for e in entries:
                sizes = ", ".join(served.workload for served in e.served[:SHOWN])
                sizes += f", {len(e.served) - SHOWN} more" if len(e.served) > SHOWN else ""
                origin = PurePath(e.origin).name
                rows.append((e.name, e.language, e.device, f"{e.speedup:.2f}×", sizes, e.date[:10], origin))
            console.print_table("name | language | device | speed-up: | workloads | date | from", rows)
        else:
            console.print_line(
                f"{own.folder} has no template yet: runs that find something better put theirs there"
            )


def show(name: Name, as_json: AsJson = False) -> None:
    """Show one of them: what it is of, what it gave and where, and how to use it again."""
    entry = _library().get(name)
    compiled = f", built with {entry.compiler}" if entry.compiler else ""
    by = f"by {entry.author}" if entry.author else ", ".join(entry.moves) or "given to the run"
    lines = [
        f"{entry.name}: {entry.problem}, {entry.speedup:.2f}× in the geometric mean, verified",
        f"kernel           {entry.signature}",
        f"                 text {entry.kernel[:12]}",
        f"device           {entry.device} ({entry.driver}){compiled}",
        f"template         {entry.path}, {counted(len(entry.template.splitlines()), 'line')}, {by}",
    ]
    for s in entry.served:
        sizes = named_values(s.sizes)
        span = f"{s.interval[0]:.2f} to {s.interval[1]:.2f}"
        lines.append(f"{s.workload:<16} {s.speedup:.2f}× ({span}) at {sizes}: {s.config}")
    lines.append(
        f"known            {counted(len(entry.rows), 'configuration')}, {len(entry.best)} of them tried first"
    )
    lines.append(f"from             {entry.origin}, {entry.date}")
    lines.append(f"again with       tunesmith retune {entry.name} [--device D] [--workloads FILE]")
    console.say(as_json, entry, lines)


def export(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write its template to a file of its own."""
    from tunesmith.session import library as stored

    entry = _library().get(name)
    if out is None:
        text = entry.template
        console.say(as_json, {"name": name, "template": text}, [text.rstrip()])
        return
    written = [str(path) for path in stored.export(entry, out)]
    console.say(as_json, {"name": name, "files": written}, [f"wrote {', '.join(written)}"])


def remove(name: Name, as_json: AsJson = False) -> None:
    """Take it out of the library; runs are left alone."""
    _library().remove(name)
    console.say(as_json, {"removed": name}, [f"{name} is no longer in the library"])


def _library() -> Library:
    from tunesmith.run.config import resolve
    from tunesmith.session.library import Library

    config = resolve({})
    for note in config.notes:
        console.print_note(f"note: {note}")
    return Library(Path(config.library_dir))


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(init, check, template, explain, tune, retune, resume),
    *(report, watch, verify, exports.export, bench, diff, compare, fleet, profile),
    *(capture, exports.extract, exports.apply, devices, doctor, mcp, skill),
)
for _command in _COMMANDS:
    console.add_command(app, _command)
app.command(hidden=True)(exports.worker)
for _command in (show, export, remove):
    console.add_command(library_app, _command)
app.add_typer(library_app, name="library")


def _version(value: bool) -> None:
    if value:
        console.print_line(f"tunesmith {tunesmith.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
    quiet: console.Quiet = False,
    verbose: console.Verbose = False,
) -> None:
    del version
    console.verbosity.quiet, console.verbosity.verbose = quiet, verbose


def main() -> None:
    for descriptor in range(3):  # where the shell closed one, the journal must not take its number
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can write µ
    faulthandler.enable(2)  # should a library crash the process, it is known which
    end_when_asked()
    app(prog_name="tunesmith")


if __name__ == "__main__":
    main()
