"""The command line: options in, `api` asked, the result on stdout, everything else on stderr."""

from __future__ import annotations

import faulthandler
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from typer.core import TyperCommand, TyperGroup

import tunesmith
from tunesmith.base import plugins
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.interrupts import end_when_asked
from tunesmith.base.text import format_count, strip_controls
from tunesmith.cli import console
from tunesmith.cli.console import (
    AsJson,
    Backend,
    CheckOptions,
    Defines,
    Entry,
    OneTemplate,
    PlaceOptions,
    ProblemFile,
)
from tunesmith.run.config import FolderNotTrusted, forget_current_folder

if TYPE_CHECKING:
    from tunesmith.backends.port import DoctorFinding
    from tunesmith.deliver.pages.terminal import TableContent
    from tunesmith.problem.device import Device
    from tunesmith.session.check import ExplainedBareKernel, ExplainedSource, TemplateMade


class CommandTable(Mapping[str, "TyperCommand | TyperGroup"]):
    """The commands by name; each is loaded when it is called."""

    def __init__(self) -> None:
        self._made: dict[str, TyperCommand | TyperGroup] = {}

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        if name not in self._made:
            if not plugins.is_known("commands", name):
                raise KeyError(name)
            words = plugins.first_sentence(name)
            self._made[name] = LazyCommand(name, help=words) if words else load_command(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return plugins.plugin_names("commands")

    def __len__(self) -> int:
        return sum(1 for _ in self)


# What `--help` explains. Of ours the others are named below it; those of other packages have a group.
SHOWN: Mapping[str, Sequence[str]] = {
    "Begin": ("init", "extract", "capture"),
    "A kernel": ("check", "explain", "template", "profile"),
    "Searches": ("tune", "retune", "resume", "library"),
    "Results": ("report", "watch", "verify", "compare", "export", "apply"),
    "This machine": ("doctor",),
}


class CommandGroup(TyperGroup):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands = CommandTable()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        ours, every = plugins.our_names("commands"), list(self.commands)
        groups = {**SHOWN, "Of other packages": [name for name in every if name not in ours]}
        listed = {title: [name for name in names if name in every] for title, names in groups.items()}
        width = max(len(name) for names in listed.values() for name in names)
        for title, names in listed.items():
            if names:
                with formatter.section(title):
                    limit = formatter.width - 6 - width
                    rows = [(f"{n:<{width}}", self.commands[n].get_short_help_str(limit)) for n in names]
                    formatter.write_dl(rows)
        shown = {name for names in listed.values() for name in names}
        more = [name for name in every if name not in shown and not self.commands[name].hidden]
        with formatter.section("More"):
            formatter.write_text(f"{', '.join(more)}: tunesmith COMMAND --help")


class LazyCommand(TyperCommand):
    """One of ours as `--help` lists it; all but its first sentence is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load_command(self.name or "").make_context(info_name, args, parent=parent, **extra)


def load_command(name: str) -> Any:
    with console.handle_errors(as_json=False):
        found: typer.Typer | Callable[..., None] = plugins.load_plugin("commands", name)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, rich_markup_mode=None)
        console.add_command(found, function)
    made: Any = typer.main.get_command(found)
    made.name = name
    return made


app = typer.Typer(
    cls=CommandGroup,
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
    from tunesmith.session import check as sources

    draft = sources.write_problem_draft(kernel_file, output, entry, sources.given_defines(define or ()))
    there = shlex.quote(str(kernel_file.parent))
    then = f"tunesmith check {shlex.quote(str(draft.folder))}" + f" --allow-folder {there}" * draft.is_apart
    places = format_count(draft.fills, 'place says "FILL"', 'places say "FILL"')
    console.print_result(
        as_json,
        {"folder": strip_controls(str(draft.folder)), "files": draft.files, "fill": draft.fills},
        [
            f"wrote {', '.join(draft.files)} in {draft.folder}",
            f"{places}: only you know what belongs there. Then: {then}",
        ],
    )


@console.reads_problems
def explain(
    target: Annotated[
        Path, typer.Argument(metavar="PROBLEM|KERNEL_FILE", help="A problem, or a source before that.")
    ],
    entry: Entry = None,
    define: Defines = None,
    as_json: AsJson = False,
    **place: Unpack[PlaceOptions],
) -> None:
    """Show what the expert reads in a kernel, what stands in the way, and which moves apply to it."""
    if target.is_file() and target.suffix not in ("", ".toml"):
        from tunesmith.session.check import given_defines

        found = tunesmith.explain_file(
            target, entry=entry, defines=dict(given_defines(define or ())), **place
        )
        console.print_result(as_json, found, list(source_lines(found)))
        return
    if entry is not None or define:
        fault = "a problem says itself which kernel it is about: --entry and --define go with a kernel file"
        raise BadInput(fault, where=str(target), hint="leave them out, or name the kernel file")
    reading = tunesmith.explain(target, **place)
    notes = (f"note: {note}" for note in reading.notes)
    moves = f"moves that apply on {reading.device}: {', '.join(reading.moves) or 'none'}"
    about = (f"  {name}: {words}" for name, words in reading.about)
    skipped = (f"  {name} leaves out {why}" for name, why in reading.skipped)
    refused = (f"  {line}" for line in refusal_lines(reading.refused))
    console.print_result(as_json, reading, [*reading.lines, *notes, "", moves, *about, *skipped, *refused])


@console.reads_problems
def check(
    problem: ProblemFile,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Also look for faults that results need not show.")
    ] = False,
    as_json: AsJson = False,
    **named: Unpack[CheckOptions],
) -> None:
    """Validate a problem, build its kernel and prove it right over the contract's edges."""
    with console.show_progress(as_json) as listener:
        done = tunesmith.check(problem, listener=listener, sanitize=sanitize, **named)
    known: dict[str, object] = {"problem": done.problem, "device": done.device}
    known |= {"feasible": done.feasible, "notes": done.notes}
    notes = [f"note: {note}" for note in done.notes]
    count = f"the template has {format_count(done.feasible or 0, 'configuration')} for it there"
    counts = [count] if done.feasible is not None else []
    if done.missing:
        if not as_json:
            console.show_lines([*counts, *notes])
        console.exit_with_error(
            as_json, done.missing.exit_code, str(done.missing), done.missing.hint, **known
        )
    by = "the reference" if done.judged_by_reference else "itself, run twice (no reference given)"
    by += f"; {done.own_rules}" if done.own_rules else ""
    right = f"{done.problem} is right on {format_count(done.cases, 'case')} on {done.device}, judged by {by}"
    watched = [one.sentence for one in done.sanitized]
    known |= {"sanitized": watched} if watched else {}
    lines = [right, *counts, *(f"sanitized: {words}" for words in watched), *notes]
    console.print_result(as_json, {**known, "cases": done.cases, "right": True}, lines)


@console.reads_problems
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
    from tunesmith.run.folder import JOURNAL

    if (target / JOURNAL).is_file():
        given = {"moves": moves, "to": to, "template": template, **place}
        needless = [f"--{name}" for name, value in given.items() if value is not None]
        _write_kept_template(target, out, winner, _split_names(still_open), needless, as_json)
        return
    if winner or still_open is not None:
        fault = "only a run has winners, and this is none"
        hint = "name the folder of a run, or leave out --winner and --open"
        raise BadInput(fault, where=str(target), hint=hint)
    if (template is not None and to is None) or (moves is not None and to is not None):
        fault = "--template goes with --to, and --moves does not"
        raise BadInput(fault, where=str(target), hint="name the language with --to, or leave the other out")
    made = tunesmith.write_template(
        target, moves=_split_names(moves), out=out, to=to, template=template, **place
    )
    if as_json:
        console.print_encoded(made)
        return
    go_on = f"tunesmith tune {shlex.quote(str(target))} --template {shlex.quote(str(out))}"
    then = f"; search it with: {go_on}" if to is None else f": it goes with a problem whose kernel is {to}"
    _show_written_template(made, f"wrote {out}{then}" if out is not None else "")


def _show_written_template(made: TemplateMade, wrote: str) -> None:
    """`wrote`: where it lies now; empty: it goes to stdout."""
    for line in (*made.notes, *refusal_lines(made.refused)):
        console.print_note(line)
    if made.template is None:
        console.print_line(f"there is no template: {made.declined}", stderr=True)
        return
    count = format_count(made.feasible or 0, "configuration")
    console.print_note(f"{made.problem}: {', '.join(made.moves) or 'no moves'}; {count} on {made.device}")
    if wrote:
        console.print_line(wrote)
    else:
        console.write_text(made.template.rstrip())


def _write_kept_template(
    run: Path,
    out: Path | None,
    winner: bool,
    still_open: list[str] | None,
    needless: list[str],
    as_json: bool,
) -> None:
    from tunesmith.session.check import write_kept

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
        console.write_text(next(iter(kept.texts.values())).rstrip())


def _split_names(names: str | None) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] if names is not None else None


@console.reads_problems
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
    from tunesmith.deliver.pages.profile import page_lines

    with console.show_progress(as_json) as listener:
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
        console.exit_with_error(as_json, DeviceMissing.exit_code, page.missing, hint, profile=page)
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
    from tunesmith.session.check import doctor_findings

    findings, lines = _try_model(model, effort, as_json) if model is not None else doctor_findings(), []
    for f in findings:
        lines.append(f"{'ok     ' if f.usable else 'missing'}  {f.what}: {f.detail}")
        lines += [f"         enable it with: {f.fix}"] if f.fix else []
    console.print_result(as_json, findings, lines)


def _try_model(model: str, effort: str | None, as_json: bool) -> list[DoctorFinding]:
    from tunesmith.api import settings
    from tunesmith.session.check import try_out

    config = settings(model=model, effort=effort)
    with console.show_progress(as_json) as listener:
        return try_out(config.model, config, listener.note)


def _print_version(value: bool) -> None:
    if value:
        console.print_line(f"tunesmith {tunesmith.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
    quiet: console.Quiet = False,
    verbose: console.Verbose = False,
) -> None:
    del version
    console.verbosity.quiet, console.verbosity.verbose = quiet, verbose


def _note_warning(message: Warning | str, category: type[Warning], *where: Any) -> None:
    if issubclass(category, FolderNotTrusted):
        console.print_note(f"note: {message}")
    else:
        _usual_warning(message, category, *where)


_usual_warning = warnings.showwarning


def main() -> None:
    for descriptor in range(3):  # where the shell closed one, the journal must not take its number
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can write µ
    forget_current_folder()
    warnings.showwarning = _note_warning  # type: ignore[assignment]
    faulthandler.enable(2)  # should a library crash the process, it is known which
    end_when_asked()
    app(prog_name="tunesmith")


if __name__ == "__main__":
    main()


def refusal_lines(refused: Iterable[tuple[str, str]]) -> list[str]:
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


def source_lines(source: ExplainedSource) -> Iterator[str]:
    if len(source.kernels) > 1:
        names = ", ".join(f"{kernel.entry} (line {kernel.line})" for kernel in source.kernels)
        yield f"{source.file} defines {format_count(len(source.kernels), 'kernel')}: {names}"
        read = sum(kernel.read for kernel in source.kernels)
        yield f"read: {read} of {len(source.kernels)}"
    for kernel in source.kernels:
        if len(source.kernels) > 1:
            yield ""
        yield from _kernel_lines(kernel, source)


def _kernel_lines(kernel: ExplainedBareKernel, source: ExplainedSource) -> Iterator[str]:
    verdict = "read as tasks and steps" if kernel.read else "beyond the expert"
    yield f"{kernel.entry}, {source.language}, line {kernel.line}: {verdict}"
    yield from (f"  {line}" for line in kernel.lines)
    if kernel.obstacles:
        yield f"{format_count(len(kernel.obstacles), 'obstacle')}:"
        yield from (f"  {obstacle}" for obstacle in kernel.obstacles)
    if source.device and (kernel.moves or kernel.refused):
        yield f"moves that would apply on {source.device}: {', '.join(kernel.moves) or 'none'}"
        yield from (f"  {name}: {words}" for name, words in kernel.about)
        yield from (f"  {line}" for line in refusal_lines(kernel.refused))
    elif source.device:
        yield "moves cannot be told before that"
    else:
        yield f"moves cannot be told: {source.missing}"
    if kernel.filled:
        entry = kernel.entry.removesuffix("<FILL>")
        command = f"tunesmith init {shlex.quote(source.file)} --entry {shlex.quote(entry)}"
        yield f"{command} would fill in:"
        yield from (f"  {line}" for line in kernel.filled)
    yield "left to say:"
    yield from (f"  {line}" for line in kernel.left)
