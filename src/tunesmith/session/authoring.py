"""What is usable on this machine, and the one command that enables what is not."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tunesmith import backends
from tunesmith.backends.port import DoctorFinding, module_finding
from tunesmith.base import plugins
from tunesmith.errors import BadInput, DeviceMissing, KernelWrong, TunesmithError
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.problem import languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import configs_of
from tunesmith.problem.template_file import parse_template
from tunesmith.run.config import RunConfig, resolve
from tunesmith.run.files import explained, write_new
from tunesmith.run.ports import Declined, Listener, Refactoring
from tunesmith.run.sanitized import Sanitized, together
from tunesmith.session import machine
from tunesmith.session.problems import LoadedProblem, load_template, read_text
from tunesmith.session.stand_in import stand_in
from tunesmith.session.strategies import casting
from tunesmith.session.workplace import WorkerSource, Workplace


def examine() -> list[DoctorFinding]:
    """Each backend speaks for itself; then the languages that none of them runs."""
    findings = [
        DoctorFinding("Python", True, platform.python_version()),
        module_finding("tree_sitter", "reading kernel sources (init)", "pip install tree-sitter"),
        module_finding("mcp", "serving agents (mcp)", "pip install 'tunesmith[mcp]'"),
    ]
    findings += _protection()
    findings.append(_library())
    for kind in backends.kinds():
        findings += kind.check(partial(_devices, kind.name))
    findings += [plugins.load("checks", name)() for name in plugins.names("checks")]
    for one in languages.known():
        own = backends.kind_for(one.name)
        checked = ": the cpu device checks its kernels" if own is not None else ""
        if own is None or own.untimed:
            findings.append(DoctorFinding(one.title, False, f"no backend in this version{checked}"))
    return findings


def _library() -> DoctorFinding:
    """Which one it is, and whether it can be used."""
    from tunesmith.session.library import finding

    return DoctorFinding("library", *finding(resolve({})))


def _protection() -> list[DoctorFinding]:
    with machine.temporary_scratch() as scratch:
        try:
            held = machine.protection(Workplace("fake", scratch))
        except DeviceMissing as error:
            return [DoctorFinding("sandbox", False, str(error))]
    return [DoctorFinding(f"sandbox: {one.name}", one.in_force, one.detail) for one in held.layers]


def _devices(backend: str) -> tuple[Device, ...]:
    with machine.temporary_scratch() as scratch:
        return machine.list_devices(Workplace(backend, scratch))


@dataclass(frozen=True)
class CheckedProblem:
    problem: str
    device: str
    judged_by_reference: bool
    cases: int  # on which the kernel is right; 0: it was built and not run
    feasible: int | None  # configurations of the template, where one was given
    missing: DeviceMissing | None = None  # why the kernel was built and not run
    notes: tuple[str, ...] = ()  # on the launch
    about: tuple[tuple[str, str], ...] = ()  # moves that apply: what each does, and where
    own_rules: str = ""  # how outputs are compared, where not element by element
    sanitized: tuple[Sanitized, ...] = ()  # what sanitizers were in force, where they were asked for


@dataclass(frozen=True)
class TemplateMade:
    problem: str
    device: str  # whose limits its choices were made for
    template: str | None  # the text; None: there is none
    declined: str = ""  # why
    moves: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    feasible: int | None = None
    file: str | None = None  # where it was written


@dataclass(frozen=True)
class ExplainedKernel:
    problem: str
    device: str
    lines: tuple[str, ...]  # what the kernel does, in words
    moves: tuple[str, ...]  # that apply
    refused: tuple[tuple[str, str], ...]  # those that do not, and why
    notes: tuple[str, ...] = ()  # on the launch
    about: tuple[tuple[str, str], ...] = ()  # moves that apply: what each does, and where
    skipped: tuple[tuple[str, str], ...] = ()  # moves that leave a kernel of the call alone: which, and why


@dataclass(frozen=True)
class FoundDevices:
    devices: tuple[Device, ...]
    troubles: tuple[str, ...]  # why a backend has none


def check(
    loaded: LoadedProblem,
    template_path: Path | None,
    config: RunConfig,
    listener: Listener,
    sanitize: bool = False,
) -> CheckedProblem:
    problem, files = loaded
    template = load_template(template_path, problem, files) if template_path is not None else None
    language = problem.kernel.language
    standing_in = stand_in()
    spec = standing_in.backend_of(language, config)
    with machine.workers_of(config, listener.say) as sources, machine.temporary_scratch() as scratch:
        source = sources[0]
        place = Workplace(spec, scratch, config.sandbox, source)
        here = machine.look(place)
        wanted = machine.first_device(config.device or source.device, spec)
        device = standing_in.choose_device(language, here, wanted)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        notes = casting.launch_notes(problem, device)
        try:
            compiler = machine.choose_compiler(problem, template, device, place, listener.note)
            built = f"{problem.name} builds with {compiler}" if compiler else f"{problem.name} builds"
        except DeviceMissing as error:
            compiler, built = "", f"{problem.name} was not built ({error.message})"
            if config.device is not None or not device.absent:
                raise
        if not device.absent and (config.workers or config.ray or config.device):
            notes += _seen_several(config, sources, place, compiler, listener)
        missing: DeviceMissing | None = None
        if device.absent:
            missing = DeviceMissing(
                f"{built} for {device.name}, which is not here to check it on: {here.trouble}",
                hint="check it without one with --device cpu, or see what is missing with: tunesmith doctor",
            )
            other = None
            if config.device is None:  # nobody asks for that one: what is here will do
                other = standing_in.in_place_of(device, scratch, config.sandbox)
            if other is None:
                known = (problem.name, device.name, problem.accuracy.reference is not None)
                return CheckedProblem(*known, 0, feasible, missing, notes)
            notes += (f"{built} for {device.name}, which is not here: {here.trouble}",)
            (device, place), compiler = other, ""
        if device.untimed:
            notes += (standing_in.times_none,)
        known = (problem.name, device.name, problem.accuracy.reference is not None)
        own = LabSettings(config.seed, 1, compiler.partition(" ")[0])
        lab = machine.make_lab(problem, device, place, settings=own, progress=listener.note)
        try:
            cases = lab.check()
            watched = [lab.sanitize()] if sanitize else []
        except KernelWrong as error:
            raise (_with_lines(error, lab) if sanitize else error) from None
        except BadInput as error:
            unknown = standing_in.unknown_in(error.message)
            if not unknown:
                raise
            if missing is None:
                raise BadInput(unknown, hint=standing_in.build_alone) from None
            return CheckedProblem(*known, 0, feasible, missing, (*notes, unknown))
        finally:
            lab.close()
        if sanitize and not device.untimed:
            host = standing_in.watch_for(problem, device, scratch, config.sandbox)
            if host is not None:
                with closing(host):
                    watched = [together(watched[0], host.of_original(config.seed))]
        for found in watched:
            if found.own:
                said = (*(one.sentence for one in found.own), found.disagreement)
                fault = "; ".join(words for words in said if words)
                hint = "mend the kernel: results need not show such a fault here, and do elsewhere"
                raise KernelWrong(fault, where=problem.kernel.path, hint=hint)
        return CheckedProblem(
            *known, cases, feasible, notes=notes, own_rules=problem.own_rules, sanitized=tuple(watched)
        )


def _seen_several(
    config: RunConfig, sources: Sequence[WorkerSource], place: Workplace, compiler: str, listener: Listener
) -> tuple[str, ...]:
    """Whether a run could have all devices that are meant; nothing where one is."""
    from tunesmith.session import several  # which few checks need

    posts = several.posts_for(config, sources, place, compiler)
    if not posts:
        return ()
    several.builder_devices(sources, posts, compiler, listener.say)
    return (f"a run measures on {', '.join(post.name for post in posts)}; checked on the first",)


def _with_lines(error: KernelWrong, lab: LocalLab) -> KernelWrong:
    """Beside what its results show, what a sanitizer sees: that has a line."""
    try:
        seen = lab.sanitize().own
    except TunesmithError:  # it is wrong either way
        return error
    words = "; ".join((error.message, *(finding.sentence for finding in seen)))
    return KernelWrong(words, hint=error.hint, where=error.where)


PLAINLY = "a model can rewrite it plainly, for the expert to read: tune it with --model author=SPEC --plain"


def explain(problem: Problem, config: RunConfig) -> ExplainedKernel:
    device = device_for(problem.kernel.language, config)
    moves = casting.catalogue_of(problem, device)
    lines, notes = casting.reading_of(problem, device), casting.launch_notes(problem, device)
    if moves.beyond and casting.is_for_expert(problem):
        notes += (PLAINLY,)
    if unknown := stand_in().unknown_of(problem):
        notes += (unknown,)
    about = tuple((offer.name, offer.words) for offer in moves.offers if offer.words)
    said = (moves.available, moves.refused, notes, about, moves.skipped)
    return ExplainedKernel(problem.name, device.name, lines, *said)


def make_template(
    problem: Problem, config: RunConfig, moves: tuple[str, ...] | None, out: Path | None
) -> TemplateMade:
    """With all moves that apply, or those named. Nothing is built or run."""
    device = device_for(problem.kernel.language, config)
    author = casting.move_author(problem)
    available, refused = author.available(problem, device)
    if moves is not None:
        known = [*available, *(name for name, _ in refused)]
        if unknown := [name for name in moves if name not in known]:
            fault = f"--moves: there is no move {unknown[0]!r}; there are {', '.join(known) or 'none'}"
            raise BadInput(fault, hint="name some of these, separated by commas, or leave --moves out")
    if out is not None and os.path.lexists(out):
        raise BadInput("the file exists already", where=str(out), hint="choose another name with --out")
    written = author.write(Refactoring(moves if moves is not None else available), problem, device)
    if isinstance(written, Declined):
        return TemplateMade(problem.name, device.name, None, written.reason, (), refused)
    template = parse_template(written.text, path=str(out or "template"), problem=problem)
    feasible = len(configs_of(problem, template, device))
    if out is not None:
        with explained("write the template", out, instead="another name with --out"):
            write_new(out, written.text.encode())
    said = written.refused if moves is not None else refused
    return TemplateMade(
        problem.name,
        device.name,
        written.text,
        moves=written.moves,
        refused=said,
        notes=written.notes,
        feasible=feasible,
        file=str(out) if out is not None else None,
    )


def template_in(
    problem: Problem, config: RunConfig, language: str, given: Path | None, out: Path | None
) -> TemplateMade:
    """The expert's template for another language, or a given one in that language's names."""
    from tunesmith.backends.as_compiled import as_compiled
    from tunesmith.expert import dialects
    from tunesmith.expert.author import read
    from tunesmith.expert.passes import PARAMETERS

    if language not in dialects.DIALECTS:
        fault = f"--to: templates are written in {', '.join(dialects.DIALECTS)}; got {language!r}"
        raise BadInput(fault, hint="name one of these")
    if out is not None and os.path.lexists(out):
        raise BadInput("the file exists already", where=str(out), hint="choose another name with --out")
    there = dialects.problem_in(problem, language)
    device = device_for(language, config)
    if given is not None:
        text = read_text(given, "correct the name; it counts from the current folder")
        made = dialects.translated(text, problem.kernel.language, language)
    else:
        own = as_compiled(problem, device_for(problem.kernel.language, RunConfig()))
        kernel = read(own)
        task = Refactoring(tuple(PARAMETERS))
        made = (
            Declined(f"{kernel}. Of a template that you have names can be translated: --template FILE")
            if isinstance(kernel, str)
            else dialects.write_in(task, own, device, kernel, language)
        )
    if isinstance(made, Declined):
        return TemplateMade(problem.name, device.name, None, made.reason, (), ())
    template = parse_template(made.text, path=str(out or "template"), problem=there)
    if out is not None:
        with explained("write the template", out, instead="another name with --out"):
            write_new(out, made.text.encode())
    return TemplateMade(
        problem.name,
        device.name,
        made.text,
        moves=made.moves,
        refused=made.refused,
        notes=made.notes,
        feasible=len(configs_of(there, template, device)),
        file=str(out) if out is not None else None,
    )


def devices(wanted: str | None) -> FoundDevices:
    """Every device of the backends usable here, and why the others are not."""
    with machine.temporary_scratch() as scratch:
        specs = [wanted] if wanted else [kind.name for kind in backends.kinds() if not kind.from_file]
        looks = [machine.look(Workplace(spec, scratch)) for spec in specs]
    found = tuple(device for here in looks for device in here.devices)
    troubles = tuple(here.trouble for here in looks if here.trouble)
    if wanted and not found:
        raise DeviceMissing("; ".join(troubles), hint=machine.DOCTOR)
    return FoundDevices(found, troubles)


def device_for(language: str, config: RunConfig) -> Device:
    """Moves depend on limits: those of the device here, or of the one that is named or assumed."""
    assumed = languages.named(language).assumed
    wants_cpu = stand_in().is_wanted(language, config)
    if assumed is not None and (config.backend is None or wants_cpu):
        return assumed
    own = backends.kind_for(language)
    absent = backends.absent_device(own.name, None) if own is not None and wants_cpu else None
    if absent is not None:
        return absent
    spec = backends.backend_for(language, config.backend)
    with machine.temporary_scratch() as scratch:
        return machine.choose_device(machine.look(Workplace(spec, scratch)), config.device)
