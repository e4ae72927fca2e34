"""What a user can ask for: draft and check a problem, start a run, resume it, report on it."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tunesmith import __version__, registry
from tunesmith.config import RunConfig
from tunesmith.core.choose import verified_choice
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, DeviceMissing, Interrupted
from tunesmith.core.events import Settings, Started
from tunesmith.core.files.problem_file import parse_problem
from tunesmith.core.files.template_file import parse_template
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Launch, Problem
from tunesmith.core.report import Report, build_report
from tunesmith.core.state import State, fold
from tunesmith.core.template import Template
from tunesmith.deliver.report import report_json, report_markdown
from tunesmith.deliver.tuned import tuned_files
from tunesmith.expert.reading.signature import missing_entry, signature_faults
from tunesmith.store import RunFolder, SqliteCache, explained, newest_run, resume_command

PROBLEM_FILE, RECORDING = "problem.toml", "recording"
UNLIMITED = 256  # spaces up to this size are searched whole unless the user sets a budget
DEFAULT_EVALS = 200


@dataclass(frozen=True)
class Finished:
    report: Report
    folder: Path


@dataclass(frozen=True)
class Checked:
    problem: Problem
    device: Device
    cases: int
    feasible: int | None  # configurations of the template, where one was given


@dataclass(frozen=True)
class Drafted:
    folder: Path
    files: tuple[str, ...]
    fills: int  # places that only the user can fill in


class Files:
    """The files a problem names, read once; what was read is what the run keeps."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.texts: dict[str, str] = {}

    def read(self, name: str) -> str:
        if name not in self.texts:
            self.texts[name] = read_text(self._root / name)
        return self.texts[name]


def read_text(path: Path, missing: str = "correct the name; it counts from the problem file's folder") -> str:
    """A file's text, or why there is none; `missing` says what to do about a file that is not there."""
    try:
        path.name.encode()
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise BadInput("there is no such file", where=str(path), hint=missing) from error
    except UnicodeEncodeError as error:
        raise BadInput("the file's name is not UTF-8 text", where=str(path), hint="rename it") from error
    except UnicodeDecodeError as error:
        raise BadInput(
            f"not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}",
            where=str(path),
            hint="save it as UTF-8",
        ) from error
    except OSError as error:
        hints = {IsADirectoryError: "name a file", PermissionError: "make it readable"}
        hint = hints.get(type(error), missing)
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error


def load_problem(path: Path) -> tuple[Problem, Files]:
    if path.is_dir():
        path = path / PROBLEM_FILE
    files = Files(path.parent)
    text = read_text(path, "correct the name, or draft a problem with: tunesmith init KERNEL_FILE")
    problem = parse_problem(text, path=str(path), read=files.read)
    files.texts[PROBLEM_FILE] = text
    if no_entry := missing_entry(problem):
        raise BadInput(no_entry, where=str(path), hint="name one of them as entry")
    faults = signature_faults(problem)
    if faults:
        raise BadInput("\n".join(faults), where=str(path), hint="list the arguments as the kernel takes them")
    if problem.kernel.language in ("opencl", "fake"):
        _refuse_cuda_words(problem.launches, problem.kernel.language, str(path))
        if problem.kernel.include:
            raise BadInput(
                f"{problem.kernel.language} sources must be self-contained, this one has include folders",
                where=str(path),
                hint="put what the kernel includes into its source",
            )
    return problem, files


def load_template(path: Path, problem: Problem) -> Template:
    text = read_text(path, "correct the name; it counts from the current folder")
    template = parse_template(text, path=path.name, problem=problem)
    if problem.kernel.language in ("opencl", "fake"):
        _refuse_cuda_words(template.launches, problem.kernel.language, str(path))
    return template


def _refuse_cuda_words(launches: tuple[Launch, ...], language: str, where: str) -> None:
    for launch in launches:
        used = [word for word in ("shared", "cluster", "cooperative", "pdl") if getattr(launch, word)]
        if used:
            hint = "for local memory use an argument of role 'local'" if "shared" in used else None
            raise BadInput(f"{language} launches have no {', '.join(used)}", where=where, hint=hint)


def start(
    problem_path: Path, template_path: Path | None, config: RunConfig, out: Path | None, listener: Listener
) -> Finished:
    problem, files = load_problem(problem_path)
    if template_path is None:
        raise BadInput(
            "there is no template and, in this version, no author who could write one",
            hint="write one (docs/tutorial.md shows how) and name it: --template FILE",
        )
    template = load_template(template_path, problem)
    spec = registry.backend_for(problem.kernel.language, config.backend)
    registry.searcher(config.search)
    with temporary_scratch() as scratch:
        found = registry.list_devices(spec, scratch)
    device = registry.pick_device(found, config.device, spec)
    feasible = len(registry.configs_of(problem, template, device))
    folder = RunFolder.create(out) if out else RunFolder.create_next(Path(config.runs), problem.name)
    try:
        stored = {name: folder.put(text.encode()) for name, text in files.texts.items()}
        stored[f"template:{template_path.name}"] = folder.put(template.source.encode())
        if spec.startswith("replay:"):
            stored[RECORDING] = folder.put(Path(spec.partition(":")[2]).read_bytes())
        evals = config.evals
        if evals is None and config.time is None and feasible > UNLIMITED:
            evals = DEFAULT_EVALS
        started = Started(
            problem=problem.name,
            files=tuple(stored.items()),
            template=f"template:{template_path.name}",
            backend=spec.partition(":")[0],
            device=device,
            settings=Settings(config.search, evals, config.time, config.seed, use_cache=config.cache),
            versions=versions(),
        )
        journal = folder.journal()
        journal.append(started)
        journal.close()
    except BaseException:
        folder.discard()
        folder.unlock()
        raise
    return _execute(folder, config, listener, found)


def resume(run: Path | None, config: RunConfig, listener: Listener) -> Finished:
    folder = RunFolder.open(run or newest_run(Path(config.runs)))
    folder.lock()
    return _execute(folder, config, listener)


def report(run: Path | None, config: RunConfig) -> Finished:
    """The report of a run as it stands, finished or not; nothing is changed."""
    folder = RunFolder.open(run or newest_run(Path(config.runs)))
    state = fold(folder.journal().read())
    problem, template = reload(folder, state.started)
    return Finished(build_report(problem, state, _file_names(problem, template, state)), folder.path)


def check(problem_path: Path, template_path: Path | None, config: RunConfig, listener: Listener) -> Checked:
    problem, _ = load_problem(problem_path)
    template = load_template(template_path, problem) if template_path is not None else None
    spec = registry.backend_for(problem.kernel.language, config.backend)
    with temporary_scratch() as scratch:
        device = registry.pick_device(registry.list_devices(spec, scratch), config.device, spec)
        feasible = len(registry.configs_of(problem, template, device)) if template is not None else None
        lab = registry.lab(
            problem, device, spec, scratch, seed=config.seed, builders=1, progress=listener.note
        )
        try:
            return Checked(problem, device, lab.check(), feasible)
        finally:
            lab.close()


def init(kernel_file: Path, output: Path | None, entry: str | None) -> Drafted:
    """Write a drafted problem folder; never over anything that is there."""
    from tunesmith.expert.drafting.draft import draft_problem
    from tunesmith.expert.reading.source import language_of

    text = read_text(kernel_file, "correct the name; it counts from the current folder")
    draft = draft_problem(text, kernel_file.name, language_of(kernel_file.name), entry)
    folder = output or Path(kernel_file.stem)
    files = {kernel_file.name: text, **draft.files}
    if folder.resolve() == kernel_file.parent.resolve():
        del files[kernel_file.name]  # the source lies there already
    there = [name for name in files if os.path.lexists(folder / name)]
    if there:
        raise BadInput(
            f"{', '.join(there)} would be overwritten",
            where=str(folder),
            hint="choose another folder with -o DIR",
        )
    with explained("write the draft", folder, instead="another folder with -o DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in files.items():
                (folder / name).write_text(content, encoding="utf-8")
        except OSError:
            for name in files:
                (folder / name).unlink(missing_ok=True)
            raise
    return Drafted(folder, tuple(files), draft.fills)


def devices(wanted: str | None) -> tuple[list[Device], list[str]]:
    """Every device of the backends usable here, and why the others are not."""
    found: list[Device] = []
    troubles: list[str] = []
    with temporary_scratch() as scratch:
        for spec in [wanted] if wanted else ["opencl", "fake"]:
            registry.backend_name(spec)
            try:
                found += registry.list_devices(spec, scratch)
            except DeviceMissing as error:
                troubles.append(str(error))
    if wanted and not found:
        raise DeviceMissing(
            "; ".join(troubles) or f"backend {wanted} sees no device", hint="tunesmith doctor"
        )
    return found, troubles


def rendered(finished: Finished, form: str) -> bytes:
    return report_json(finished.report) if form == "json" else report_markdown(finished.report).encode()


def _execute(
    folder: RunFolder, config: RunConfig, listener: Listener, found: tuple[Device, ...] = ()
) -> Finished:
    """Do what is left of a run whose folder we hold, and let go of it."""
    try:
        return _go_on(folder, config, listener, found)
    except KeyboardInterrupt as error:
        go_on = f"go on with: {resume_command(folder.path)}"
        raise Interrupted("interrupted; nothing is lost", where=str(folder.path), hint=go_on) from error
    finally:
        folder.unlock()


def _go_on(folder: RunFolder, config: RunConfig, listener: Listener, found: tuple[Device, ...]) -> Finished:
    journal = folder.journal()
    state = fold(journal.read())
    problem, template = reload(folder, state.started)
    started = state.started
    assert started is not None
    if state.stopped is None:
        scratch = folder.fresh_scratch()
        cache = (
            SqliteCache(config.cache_file, listener.note)
            if started.settings.use_cache and config.cache
            else None
        )
        try:
            spec = _spec(folder, started)
            device = _same_device(started.device, found or registry.list_devices(spec, scratch))
            lab = registry.lab(
                problem,
                device,
                spec,
                scratch,
                seed=started.settings.seed,
                builders=config.builders,
                cache=cache,
                known=[*([state.baseline.outcome] if state.baseline else []), *state.outcomes],
                progress=listener.note,
            )
            try:
                state = registry.loop(problem, template, started, lab, journal, listener).run()
            finally:
                lab.close()
        finally:
            journal.close()
            if cache is not None:
                cache.close()
            folder.remove_scratch()
    return _deliver(folder, problem, template, state)


def _deliver(folder: RunFolder, problem: Problem, template: Template, state: State) -> Finished:
    """Derived from the journal alone, so writing it twice changes nothing."""
    assert state.started is not None
    names = _file_names(problem, template, state)
    report_ = build_report(problem, state, names)
    choice = verified_choice(problem, state)
    folder.replace_folder("tuned", tuned_files(problem, template, state.started.device, choice))
    folder.write("template" + Path(template.path).suffix, template.source.encode())
    folder.write("report.md", report_markdown(report_).encode())
    folder.write("report.json", report_json(report_))
    return Finished(report_, folder.path)


def _file_names(problem: Problem, template: Template, state: State) -> tuple[str, ...]:
    if state.started is None or state.stopped is None:
        return ()
    choice = verified_choice(problem, state)
    return tuple(f"tuned/{name}" for name in tuned_files(problem, template, state.started.device, choice))


def reload(folder: RunFolder, started: Started | None) -> tuple[Problem, Template]:
    """Problem and template as the run keeps them, whatever has become of the user's files since."""
    if started is None:
        raise BadInput("the run was killed before it began", where=str(folder.path), hint="start it again")
    texts = {name: folder.get(digest).decode() for name, digest in started.files if name != RECORDING}
    problem = parse_problem(texts[PROBLEM_FILE], path=PROBLEM_FILE, read=lambda name: texts[name])
    name = started.template.partition(":")[2]
    return problem, parse_template(texts[started.template], path=name, problem=problem)


def _spec(folder: RunFolder, started: Started) -> str:
    recording = dict(started.files).get(RECORDING)
    return (
        f"{started.backend}:{(folder.path / 'objects' / recording).resolve()}"
        if recording
        else started.backend
    )


def _same_device(wanted: Device, found: tuple[Device, ...]) -> Device:
    if wanted.backend == "replay":
        return wanted
    same = [d for d in found if d.key == wanted.key]
    if not same:
        here = "; ".join(f"{d.name} with {d.limits.sms} units ({d.driver})" for d in found) or "none"
        own = f"{wanted.name} with {wanted.limits.sms} units ({wanted.driver})"
        raise DeviceMissing(
            f"this run belongs to {own}; here there is: {here}",
            hint="resume it where that device is, or start a new run here",
        )
    return next((d for d in same if d.id == wanted.id), same[0])


def versions() -> tuple[tuple[str, str], ...]:
    found = [
        ("tunesmith", __version__),
        ("python", platform.python_version()),
        ("system", platform.platform()),
    ]
    for package in ("numpy", "pyopencl", "pocl-binary-distribution"):
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


@contextmanager
def temporary_scratch() -> Iterator[Path]:
    with explained("make a temporary folder", Path("$TMPDIR"), instead="another place with TMPDIR=DIR"):
        temporary = tempfile.TemporaryDirectory(prefix="tunesmith-", ignore_cleanup_errors=True)
    with temporary as name:
        yield Path(name)
