"""What users ask for beside runs: what is usable here, whether a problem is right, how a kernel is read, and
templates, written or kept."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith import backends
from tunesmith.backends.port import DoctorFinding, module_finding
from tunesmith.base import plugins
from tunesmith.base.errors import (
    BadInput,
    DeviceMissing,
    KernelWrong,
    TunesmithError,
    WaitingForModel,
    bug_text,
)
from tunesmith.base.files import explain_disk_errors, write_new
from tunesmith.base.text import format_count, one_line
from tunesmith.expert.author import build_catalogue
from tunesmith.expert.drafts.draft import ExplainedText, bare_kernels, draft_problem, explain_text
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.problem import device as languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.reduced import reduce_template
from tunesmith.problem.template import configs_of, user_headers
from tunesmith.problem.template_file import parse_template
from tunesmith.run.config import RunConfig, resolve_config
from tunesmith.run.events import Message, NoReply, Reply, Request, Sanitized, Usage, combine_device_and_host
from tunesmith.run.folder import RunFolder
from tunesmith.run.ports import Declined, Listener, MoveCatalogue, Refactoring, Written
from tunesmith.run.race import verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.session import place as machine
from tunesmith.session import roles
from tunesmith.session.library import library_status
from tunesmith.session.place import WorkerSite, WorkerSource, stand_in
from tunesmith.session.problems import (
    HeaderFolders,
    LoadedProblem,
    load_template,
    read_text,
    state_and_templates,
)

if TYPE_CHECKING:
    from tunesmith.agents.hosted import Arrival, Hosted


def doctor_findings() -> list[DoctorFinding]:
    """Each backend speaks for itself; then the languages that none of them runs."""
    findings = [
        DoctorFinding("Python", True, platform.python_version()),
        module_finding("tree_sitter", "reading kernel sources (init)", "pip install tree-sitter"),
        module_finding("mcp", "serving agents (mcp)", "pip install 'tunesmith[mcp]'"),
    ]
    findings += _sandbox_findings()
    findings.append(DoctorFinding("library", *library_status(resolve_config({}))))
    for kind in backends.backend_kinds():
        findings += kind.check(partial(_list_backend_devices, kind.name))
    for name, fault in backends.unusable_backends():
        findings.append(DoctorFinding(name, False, fault.message, fault.hint or ""))
    findings += [plugins.load_plugin("checks", name)() for name in plugins.plugin_names("checks")]
    for one in languages.known_languages():
        runs_it = backends.kind_for(one.name)
        checked = ": the cpu device checks its kernels" if runs_it is not None else ""
        if runs_it is None or runs_it.untimed:
            findings.append(DoctorFinding(one.title, False, f"no backend in this version{checked}"))
    return findings


def _sandbox_findings() -> list[DoctorFinding]:
    with machine.temporary_scratch() as scratch:
        try:
            held = machine.worker_protection(WorkerSite("fake", scratch))
        except DeviceMissing as error:
            return [DoctorFinding("sandbox", False, str(error))]
    return [DoctorFinding(f"sandbox: {one.name}", one.in_force, one.detail) for one in held.layers]


def _list_backend_devices(backend: str) -> tuple[Device, ...]:
    with machine.temporary_scratch() as scratch:
        return machine.list_devices(WorkerSite(backend, scratch))


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


def check_problem(
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
        place = WorkerSite(spec, scratch, config.sandbox, source)
        here = machine.find_local_devices(place)
        wanted = machine.first_device(config.device or source.device, spec)
        device = standing_in.choose_device(language, here, wanted)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        notes = roles.launch_notes(problem, device)
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
        settings = LabSettings(config.seed, 1, compiler.partition(" ")[0])
        lab = machine.make_lab(problem, device, place, settings=settings, progress=listener.note)
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
        is_watched = sanitize and not device.untimed
        host = standing_in.watch_for(problem, device, scratch, config.sandbox) if is_watched else None
        if host is not None:
            with closing(host):
                watched = [combine_device_and_host(watched[0], host.of_original(config.seed))]
        _refuse_faults(watched, problem)
        return CheckedProblem(
            *known, cases, feasible, notes=notes, own_rules=problem.own_rules, sanitized=tuple(watched)
        )


def _refuse_faults(watched: Sequence[Sanitized], problem: Problem) -> None:
    for found in watched:
        if found.own:
            said = (*(one.sentence for one in found.own), found.disagreement)
            fault = "; ".join(words for words in said if words)
            hint = "mend the kernel: results need not show such a fault here, and do elsewhere"
            raise KernelWrong(fault, where=problem.kernel.path, hint=hint)


def _seen_several(
    config: RunConfig, sources: Sequence[WorkerSource], place: WorkerSite, compiler: str, listener: Listener
) -> tuple[str, ...]:
    """Whether a run could have all devices that are meant; nothing where one is."""
    from tunesmith.session import multi_device  # which few checks need

    posts = multi_device.posts_for(config, sources, place, compiler)
    if not posts:
        return ()
    multi_device.builder_devices(sources, posts, compiler, listener.say)
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


def explain_kernel(problem: Problem, config: RunConfig) -> ExplainedKernel:
    device = device_for(problem.kernel.language, config)
    moves = roles.catalogue_of(problem, device)
    lines, notes = roles.reading_of(problem, device), roles.launch_notes(problem, device)
    if moves.beyond and roles.is_for_expert(problem):
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
    author = roles.move_author(problem)
    available, refused = author.available(problem, device)
    if moves is not None:
        known = [*available, *(name for name, _ in refused)]
        if unknown := [name for name in moves if name not in known]:
            fault = f"--moves: there is no move {unknown[0]!r}; there are {', '.join(known) or 'none'}"
            raise BadInput(fault, hint="name some of these, separated by commas, or leave --moves out")
    _refuse_existing(out)
    written = author.write(Refactoring(moves if moves is not None else available), problem, device)
    said = written.refused if moves is not None and not isinstance(written, Declined) else refused
    return _template_made(written, problem, device, said, out)


def _template_made(
    made: Written | Declined,
    problem: Problem,
    device: Device,
    refused: tuple[tuple[str, str], ...],
    out: Path | None,
) -> TemplateMade:
    if isinstance(made, Declined):
        return TemplateMade(problem.name, device.name, None, made.reason, (), refused)
    template = parse_template(made.text, path=str(out or "template"), problem=problem)
    feasible = len(configs_of(problem, template, device))
    if out is not None:
        _save_template(out, made.text)
    file = str(out) if out is not None else None
    return TemplateMade(
        problem.name, device.name, made.text, "", made.moves, refused, made.notes, feasible, file
    )


def _refuse_existing(file: Path | None) -> None:
    if file is not None and os.path.lexists(file):
        raise BadInput("the file exists already", where=str(file), hint="choose another name with --out")


def _save_template(file: Path, text: str) -> None:
    with explain_disk_errors("write the template", file, instead="another name with --out"):
        write_new(file, text.encode())


def template_in(
    problem: Problem, config: RunConfig, language: str, given: Path | None, out: Path | None
) -> TemplateMade:
    """The expert's template for another language, or a given one in that language's names."""
    from tunesmith.backends.binaries import as_compiled
    from tunesmith.expert import dialects
    from tunesmith.expert.author import try_read_kernel
    from tunesmith.expert.moves import PARAMETERS

    if language not in dialects.DIALECTS:
        fault = f"--to: templates are written in {', '.join(dialects.DIALECTS)}; got {language!r}"
        raise BadInput(fault, hint="name one of these")
    _refuse_existing(out)
    there = dialects.problem_in(problem, language)
    device = device_for(language, config)
    if given is not None:
        text = read_text(given, "correct the name; it counts from the current folder")
        made = dialects.translate_names(text, problem.kernel.language, language)
    else:
        compiled = as_compiled(problem, device_for(problem.kernel.language, RunConfig()))
        kernel = try_read_kernel(compiled)
        task = Refactoring(tuple(PARAMETERS))
        made = (
            Declined(f"{kernel}. Of a template that you have names can be translated: --template FILE")
            if isinstance(kernel, str)
            else dialects.write_in(task, compiled, device, kernel, language)
        )
    return _template_made(made, there, device, () if isinstance(made, Declined) else made.refused, out)


def find_devices(wanted: str | None) -> FoundDevices:
    """Every device of the backends usable here, and why the others are not."""
    with machine.temporary_scratch() as scratch:
        specs = [wanted] if wanted else [kind.name for kind in backends.backend_kinds() if not kind.from_file]
        looks = [machine.find_local_devices(WorkerSite(spec, scratch)) for spec in specs]
    found = tuple(device for here in looks for device in here.devices)
    troubles = tuple(here.trouble for here in looks if here.trouble)
    if not wanted:
        troubles += tuple(fault.message for _, fault in backends.unusable_backends())
    if wanted and not found:
        raise DeviceMissing("; ".join(troubles), hint=machine.DOCTOR)
    return FoundDevices(found, troubles)


def device_for(language: str, config: RunConfig) -> Device:
    """Moves depend on limits: those of the device here, or of the one that is named or assumed."""
    assumed = languages.find_language(language).assumed
    wants_cpu = stand_in().is_wanted(language, config)
    if assumed is not None and (config.backend is None or wants_cpu):
        return assumed
    kind = backends.kind_for(language)
    absent = backends.absent_device(kind.name, None) if kind is not None and wants_cpu else None
    if absent is not None:
        return absent
    spec = backends.backend_for(language, config.backend)
    with machine.temporary_scratch() as scratch:
        return machine.choose_device(machine.find_local_devices(WorkerSite(spec, scratch)), config.device)


@dataclass(frozen=True)
class KeptTemplates:
    texts: dict[str, str]  # by the name that the run's folder has for it, that of the general winner first
    files: tuple[str, ...]  # where they were written


def kept_templates(path: Path, winner: bool = False, still_open: Sequence[str] = ()) -> dict[str, str]:
    """File name -> text of every template that won, that of the general winner first."""
    if still_open and not winner:
        fault = "what is to stay open can be said of a template that is reduced to what won"
        raise BadInput(fault, where=str(path), hint="add --winner, or leave --open out: all is open as it is")
    folder = RunFolder.open(path)
    state, templates = state_and_templates(folder)
    problem = templates.problem
    if state.stopped is None:
        fault = "this run is not finished, so it is not known what won"
        raise BadInput(fault, where=str(path), hint=f"go on with: {folder.go_on}")
    choice = verified_choice(problem, state)
    configs = choice.configs()
    if not configs:
        fault = "this run found nothing better than the original, so no template won"
        hint = "what was searched is in the folder of the run, or write one with: tunesmith template PROBLEM"
        raise BadInput(fault, where=str(path), hint=hint)
    known = {name: None for config in configs for name, _ in config.items}
    if unknown := [name for name in still_open if name not in known]:
        fault = f"there is no parameter {unknown[0]!r}; there are {', '.join(known) or 'none'}"
        raise BadInput(fault, where=str(path), hint="name some of these, separated by commas")
    found: dict[str, str] = {}
    for candidate, name in delivered_templates(problem, state, choice).items():
        chosen = [config for config in configs if config.candidate == candidate]
        template = templates.of(state.candidate(candidate))
        if winner and not template.is_concrete:
            left_open = [name for name in still_open if name in dict(chosen[0].items)]
            template = reduce_template(template, problem, chosen, left_open)
        found[name] = template.as_delivered(problem)
    return found


def write_kept(path: Path, winner: bool, still_open: Sequence[str], out: Path | None) -> KeptTemplates:
    """To the file `out`; where several templates won, each after the first into one of its own beside it."""
    texts = kept_templates(path, winner, still_open)
    if out is None:
        return KeptTemplates(texts, ())
    targets = [
        out.with_name(f"{out.stem}{f'-{n}' if n > 1 else ''}{out.suffix}") for n in range(1, len(texts) + 1)
    ]
    for target in targets:
        _refuse_existing(target)
    for target, text in zip(targets, texts.values(), strict=True):
        _save_template(target, text)
    return KeptTemplates(texts, tuple(map(str, targets)))


ASKED = (
    Message("system", "You test a connection. Answer in one line."),
    Message("user", "Count from 1 to 20, with a space between two numbers."),
)
MAX_TOKENS = 2048  # some models think before they count


def try_out(spec: str, config: RunConfig, note: Callable[[str], None]) -> list[DoctorFinding]:
    """WaitingForModel where one does not answer, with what to do next."""
    findings: list[DoctorFinding] = []
    for model in roles.create_hosted_models(spec, config.reply_seconds, note):
        found, arrival = model.ask(Request(1, "planner", ASKED, "turn", most_tokens=MAX_TOKENS))
        if isinstance(found, NoReply):
            raise WaitingForModel(found.reason, hint=_next_step(model, arrival))
        findings += _model_findings(model, found, arrival)
    return findings


def _model_findings(model: Hosted, reply: Reply, arrival: Arrival) -> list[DoctorFinding]:
    said = f'it says "{one_line(reply.text, 60)}"' if reply.text.strip() else "it thought until its limit"
    came = f"{said} after {arrival.seconds:.1f} s" + (f"; {reply.note}" if reply.note else "")
    first = f"the first character after {arrival.first or 0.0:.1f} s, {format_count(arrival.pieces, 'piece')}"
    usage, dollars = reply.usage, reply.usage.dollars
    price = f"${dollars:.6f} for this request" if dollars is not None else ""
    return [
        DoctorFinding(model.name, True, came),
        DoctorFinding("streaming", arrival.pieces > 1, first),
        DoctorFinding("usage", usage.sent is not None, _usage_words(usage)),
        DoctorFinding("price", bool(price), price or "neither reported nor known: --money cannot be kept"),
    ]


def _usage_words(usage: Usage) -> str:
    parts = (
        (usage.sent, "tokens sent"),
        (usage.cached, "of them from its cache"),
        (usage.received, "received"),
        (usage.reasoning, "of them thought"),
    )
    known = [f"{count} {what}" for count, what in parts if count is not None]
    return ", ".join(known) or "not reported: --tokens goes by the length of texts"


def _next_step(model: Hosted, arrival: Arrival) -> str:
    from tunesmith.agents.hosted import KEYS

    place = model.url or f"the address of {model.provider}"
    status = getattr(arrival.error, "status_code", None)
    if arrival.elsewhere:
        return f"name the address that answers: {model.provider}:{model.model}@URL"
    if status in (401, 403):
        return f"set {KEYS[model.provider]} to a key that {place} takes"
    if status == 404:
        return f"check the name {model.model!r}, and the address, which usually ends in /v1"
    if status is not None and 400 <= status < 429:
        return "change what it complains of: the name, or the effort after #"
    if status is not None:
        return "try again later: this passes"
    if arrival.length or arrival.kind:
        return f"check that {place} speaks {model.provider}'s protocol, and streams"
    return f"check that something answers at {place}; a proxy is named with HTTPS_PROXY"


_MISSING = "correct the name; it counts from the current folder"
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class DraftedProblem:
    folder: Path
    files: tuple[str, ...]
    fills: int  # places that only the user can fill in
    is_apart: bool  # from headers beside its source


@dataclass(frozen=True)
class ExplainedBareKernel:
    """One kernel of a file: all that can be said of it before there is a problem."""

    entry: str
    line: int
    read: bool
    lines: tuple[str, ...]  # what it computes, in words
    obstacles: tuple[str, ...]  # all that stands in the way, each with what would have to change
    moves: tuple[str, ...]  # that would apply
    about: tuple[tuple[str, str], ...]  # what each of them does, and where
    refused: tuple[tuple[str, str], ...]  # those that would not, and why
    filled: tuple[str, ...]  # what `init` would fill in
    left: tuple[str, ...]  # and what it would leave to say


@dataclass(frozen=True)
class ExplainedSource:
    file: str
    language: str
    device: str  # that moves were chosen for; "" where there is none
    missing: str  # why there is none
    kernels: tuple[ExplainedBareKernel, ...]


def explain_source(
    path: Path, entry: str | None, defines: tuple[tuple[str, str], ...], config: RunConfig
) -> ExplainedSource:
    """Every kernel of the file, or the one that `entry` names. Nothing is built or run."""
    text = read_text(path, _MISSING)
    language = languages.language_of(path.name, text)
    given = (path.name, language, entry, defines, _own_headers(path, text, language) or ())
    bare = bare_kernels(text, *given)  # type: ignore[arg-type]
    device, missing = _device_or_reason(language, config)
    found = tuple(_explain_bare_kernel(explain_text(one), device) for one in bare)
    return ExplainedSource(str(path), language, device.name if device else "", missing, found)


def write_problem_draft(
    kernel_file: Path, output: Path | None, entry: str | None, defines: tuple[tuple[str, str], ...] = ()
) -> DraftedProblem:
    """Write a drafted problem folder; never over anything that is there."""
    text = read_text(kernel_file, _MISSING)
    language = languages.language_of(kernel_file.name, text)
    folder = output or Path(kernel_file.stem)
    headers = _own_headers(kernel_file, text, language)
    include = _left_behind(kernel_file, folder, headers)
    given = (kernel_file.name, language, entry, include, defines, headers or ())
    drafted = draft_problem(text, *given)  # type: ignore[arg-type]
    files = {kernel_file.name: text, **drafted.files}
    if folder.resolve() == kernel_file.parent.resolve():
        del files[kernel_file.name]  # the source lies there already
    there = [name for name in files if os.path.lexists(folder / name)]
    if there:
        hint = "choose another folder with -o DIR"
        raise BadInput(f"{', '.join(there)} would be overwritten", where=str(folder), hint=hint)
    with explain_disk_errors("write the draft", folder, instead="another folder with -o DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        try:
            for name, content in files.items():
                write_new(folder / name, content.encode())
                written.append(folder / name)
        except OSError:
            for path in written:
                path.unlink(missing_ok=True)
            raise
    return DraftedProblem(folder, tuple(files), drafted.fills, bool(include))


def _left_behind(kernel_file: Path, folder: Path, headers: tuple[tuple[str, str], ...] | None) -> list[str]:
    """The source's own folder, where headers lie beside it that a copy elsewhere would miss."""
    here = folder.resolve() == kernel_file.parent.resolve()
    return [] if here or headers == () else [os.path.relpath(kernel_file.parent, folder)]


def _own_headers(path: Path, text: str, language: str) -> tuple[tuple[str, str], ...] | None:
    """The user's own headers beside a source, as included -> text; None: something is wrong with them, which
    is told when a problem is read."""
    if not languages.find_language(language).reads_headers:
        return ()
    try:
        return user_headers(text, path.name, HeaderFolders(path.parent, path.parent).find, ())
    except BadInput:
        return None


def given_defines(options: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`--define T=float`; a name alone is 1, as for compilers."""
    found = []
    for option in options:
        name, _, value = option.partition("=")
        if not _IDENTIFIER.fullmatch(name):
            fault = f"--define is NAME=VALUE with a C identifier; got {option!r}"
            raise BadInput(fault, hint="for example: --define T=float")
        found.append((name, value if "=" in option else "1"))
    return tuple(found)


def _device_or_reason(language: str, config: RunConfig) -> tuple[Device | None, str]:
    try:
        return device_for(language, config), ""
    except DeviceMissing as error:
        return None, str(error)


def _explain_bare_kernel(text: ExplainedText, device: Device | None) -> ExplainedBareKernel:
    moves = (
        MoveCatalogue() if device is None or text.problem is None else _available_moves(text.problem, device)
    )
    about = tuple((offer.name, offer.words) for offer in moves.offers if offer.words)
    said = (text.entry, text.line, text.is_read, text.lines, text.obstacles)
    return ExplainedBareKernel(*said, moves.available, about, moves.refused, text.filled, text.left)


def _available_moves(problem: Problem, device: Device) -> MoveCatalogue:
    try:
        return build_catalogue(problem, device)
    except Exception as error:  # whatever a text does to the writer, the rest has been said
        why = f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}"
        return MoveCatalogue(refused=(("any move", why),))
