"""Problems and templates from the user's files, and from the copies that a run keeps."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tunesmith.base.errors import BadInput
from tunesmith.base.files import NotPlain, read_plain
from tunesmith.problem import device, problem_text
from tunesmith.problem.device import LAUNCH_WORDS, SourceLanguage, is_source_name
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.problem_file import parse_problem, with_workloads
from tunesmith.problem.template import FindHeader, HeaderFile, Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Recorded, Started
from tunesmith.run.folder import DAMAGED, JOURNAL, OBJECTS, FolderTexts, RunFolder, pause_gc
from tunesmith.run.journal import broken_rule, is_broken, template_mismatch
from tunesmith.run.state import TEMPLATE_HEADER as TEMPLATE_HEADER
from tunesmith.run.state import State, apply_record, author_of

PROBLEM_FILE, RECORDING = "problem.toml", "recording"
# How the names of stored files begin that are not named in the problem file itself.
HEADER, TEMPLATE = "header:", "template:"
WORKLOADS = "workloads:"  # in place of the problem's own
# Further templates, one of the library, the words for a role, and earlier measurements.
BESIDE, LIBRARY, PROMPT, MEASURED = "beside:", "library:", "prompt:", "measured:"
LESSONS = "lessons:"  # of earlier runs, as planners are told them
_OTHERS = (TEMPLATE, TEMPLATE_HEADER, BESIDE, LIBRARY, PROMPT, MEASURED, LESSONS)


@dataclass(eq=False)
class Files:
    """The files a problem names, read once; what was read is what the run keeps."""

    root: Path
    where: str = PROBLEM_FILE  # what messages call the problem
    texts: dict[str, str] = field(default_factory=dict)
    named: tuple[Path, ...] = ()  # folders where such files may lie too

    def read(self, name: str) -> str:
        if name not in self.texts:
            self.texts[name] = read_text(self.root / name, allowed=(self.root, *self.named))
        return self.texts[name]


class LoadedProblem(NamedTuple):
    """A problem, read and checked, and the texts it was read from: all that a run keeps of it.
    Users know it as `tunesmith.Problem`."""

    definition: Problem
    files: Files

    def __repr__(self) -> str:
        return f"<Problem {self.name!r} from {self.files.where}>"

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def toml(self) -> str:
        """The text of its problem file."""
        return self.files.texts[PROBLEM_FILE]

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, allow_folders: Iterable[str | os.PathLike[str]] = ()
    ) -> LoadedProblem:
        """From problem.toml, or the folder it lies in. The files that it names lie there too, or in
        `allow_folders`."""
        return load_problem(Path(path), tuple(map(Path, allow_folders)))

    @staticmethod
    def build(
        name: str,
        *,
        source: str | os.PathLike[str],
        entry: str,
        arguments: Sequence[problem_text.ArgumentTable],
        launch: problem_text.LaunchTable | Sequence[problem_text.LaunchTable],
        contract: Mapping[str, problem_text.SizeTable],
        workloads: Mapping[str, problem_text.WorkloadTable],
        reference: problem_text.Function | None = None,
        inputs: problem_text.Function | None = None,
        require: Sequence[str] = (),
        kernel: problem_text.KernelTable | None = None,
        accuracy: problem_text.AccuracyTable | None = None,
        traffic: problem_text.Expression | None = None,
        operations: Mapping[str, problem_text.Expression] | None = None,
    ) -> LoadedProblem:
        """From Python values, under the rules of a problem file.

        `source` is the kernel's text, or a `Path` to it. The source of `reference` and `inputs` is written
        into the run's folder, with what they use: a run can go on where this program is not.
        """
        kernel = kernel or {}
        files, file_name = _source_files(source, kernel.get("language"))
        names: dict[str, str | None] = {"reference": None, "inputs": None}
        for what, function in (("reference", reference), ("inputs", inputs)):
            if function is not None:
                files.texts[f"{what}.py"] = problem_text.function_file(function, what)
                names[what] = f"{what}.py:{function.__name__}"
        judged = {"reference": names["reference"], **(accuracy or {})}
        tables = {
            "name": name,
            "inputs": names["inputs"],
            "traffic": traffic,
            "kernel": {"source": file_name, "entry": entry, **kernel},
            "argument": list(arguments),
            "launch": launch if isinstance(launch, Mapping) else list(launch),
            "contract": {**contract, **({"require": list(require)} if require else {})},
            "workloads": workloads,
            "accuracy": judged if any(value is not None for value in judged.values()) else None,
            "operations": operations,
        }
        return _parse_problem_files(problem_text.toml_text(tables), files)


def _source_files(source: str | os.PathLike[str], language: str | None) -> tuple[Files, str]:
    if not isinstance(source, str):
        files = Files(Path(source).parent, "Problem.build")
        files.read(Path(source).name)
        return files, Path(source).name
    if "\n" not in source.strip() and "(" not in source:
        hint = f"for a file write: source=Path({source!r})"
        raise BadInput(f"source is the text of a kernel or a Path to its file, got {source!r}", hint=hint)
    if not device.has_language(language or ""):
        names = ", ".join(each.name for each in device.known_languages())
        fault = f"a kernel given as text needs its language, one of {names}; got {language!r}"
        raise BadInput(fault, hint="say it: kernel={'language': 'opencl'}")
    name = "kernel" + device.find_language(language or "").suffixes[0]
    return Files(Path(), "Problem.build", {name: source}), name


class HeaderFolders:
    """Finds headers: beside the file that includes them in quotes, then in the include folders."""

    def __init__(self, source_root: Path, folder_root: Path, named: tuple[Path, ...] = ()) -> None:
        self._source_root = source_root  # what the source's own name counts from
        self._folder_root = folder_root  # what the names of include folders count from
        self._allowed = (source_root, folder_root, *named)  # where they may lie
        self._texts: dict[str, str] = {}

    def find(self, spelling: str, includer: str | None, folders: Sequence[str]) -> HeaderFile | None:
        beside = [] if includer is None else [(self._source_root / includer).parent]
        for folder in (*beside, *(self._folder_root / name for name in folders)):
            path = os.path.normpath(folder / spelling)
            if os.path.isfile(path):
                if path not in self._texts:
                    self._texts[path] = read_text(Path(path), allowed=self._allowed)
                # Counted as the source's own name is: it comes back here as an includer.
                return HeaderFile(os.path.relpath(path, self._source_root), self._texts[path])
        return None


@dataclass(frozen=True)
class ReadableFolders:
    """Where files may lie that a problem names, beside its own folder. `only`: nothing else is read, whoever
    names it, who may act for somebody else."""

    named: tuple[Path, ...] = ()
    only: bool = False


_FOLDERS: ContextVar[ReadableFolders] = ContextVar("folders", default=ReadableFolders())  # noqa: B039


@contextmanager
def readable_folders(folders: Iterable[Path], only: bool = False) -> Iterator[None]:
    """Named by the user, or with `only` by a client."""
    token = _FOLDERS.set(ReadableFolders((*folders, *(() if only else _FOLDERS.get().named)), only))
    try:
        yield
    finally:
        _FOLDERS.reset(token)


def _place_of(path: Path, allowed: Sequence[Path]) -> Path:
    """Where its links lead. `allowed`: the folders of the problem that names it; none: the user does."""
    place, readable = Path(os.path.realpath(path)), _FOLDERS.get()
    folders = readable.named if readable.only else (*allowed, *readable.named)
    if (readable.only or allowed) and not any(place.is_relative_to(os.path.realpath(f)) for f in folders):
        if readable.only:
            named = ", ".join(map(str, folders)) or "none"
            fault = f"only files in the folders that the client names are read; it names {named}"
            hint = "move the file there, or have the client name its folder"
        else:
            fault = "files of a problem lie in its folder or in folders that you name"
            fault += f", and this leads to {place}" * (str(place) != os.path.abspath(path))
            hint = f"if it may be read, name its folder: --allow-folder {shlex.quote(str(place.parent))}"
        raise BadInput(fault, where=str(path), hint=hint)
    return place


def read_text(
    path: Path,
    missing: str = "correct the name; it counts from the problem file's folder",
    allowed: Sequence[Path] = (),
) -> str:
    """A file's text, or why there is none; `missing` says what to do then. `allowed`: the folders of the
    problem that names it."""
    try:
        path.name.encode()
        text = read_plain(_place_of(path, allowed)).decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
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
        hints = {NotPlain: "name a file", PermissionError: "make it readable"}
        hint = hints.get(type(error), missing)
        why = os.strerror(error.errno) if error.errno == errno.ELOOP else error.strerror
        raise BadInput(f"cannot be read: {why}", where=str(path), hint=hint) from error


def load_problem(path: Path, named: tuple[Path, ...] = ()) -> LoadedProblem:
    if path.is_dir():
        path = path / PROBLEM_FILE
    if path.suffix != Path(PROBLEM_FILE).suffix and is_source_name(path.name) and path.is_file():
        fault = f"a problem is named by its folder or its {PROBLEM_FILE}, this is a source"
        hint = f"name its problem's folder, or draft one with: tunesmith init {shlex.quote(str(path))}"
        raise BadInput(fault, where=str(path), hint=hint)
    text = read_text(path, "correct the name, or draft a problem with: tunesmith init KERNEL_FILE")
    return _parse_problem_files(text, Files(path.parent, str(path), named=named))


def _parse_problem_files(text: str, files: Files) -> LoadedProblem:
    """The one reader of problems, whoever wrote the text."""
    where, find_header = files.where, HeaderFolders(files.root, files.root, files.named).find
    problem = parse_problem(text, path=where, read=files.read, find_header=find_header)
    files.texts[PROBLEM_FILE] = text
    rules = device.find_language(problem.kernel.language)
    if rules.is_c_family:  # its text can be read as code
        from tunesmith.expert.drafts.signature import missing_entry, signature_faults

        if no_entry := missing_entry(problem):
            raise BadInput(no_entry, where=where, hint="name one of them as entry")
        if faults := signature_faults(problem):
            raise BadInput("\n".join(faults), where=where, hint="list the arguments as the kernel takes them")
    _refuse_launch_words(problem.launches, rules, where)
    if rules.self_contained and problem.kernel.include:
        fault = f"{rules.name} sources must be self-contained, this one has include folders"
        raise BadInput(fault, where=where, hint="put what the kernel includes into its source")
    for name in problem.kernel.include:
        if not (files.root / name).is_dir():
            fault = f"[kernel]: include lists folders, there is no folder {name!r}"
            raise BadInput(fault, where=where, hint="correct it; it counts from the problem file's folder")
    return LoadedProblem(problem, files)


def load_template(path: Path, problem: Problem, files: Files) -> Template:
    text = read_text(path, "correct the name; it counts from the current folder")
    find_header = HeaderFolders(path.parent, files.root, files.named).find
    template = parse_template(text, path=path.name, problem=problem, find_header=find_header)
    _refuse_launch_words(template.launches, device.find_language(problem.kernel.language), str(path))
    return template


def _refuse_launch_words(launches: tuple[Launch, ...], rules: SourceLanguage, where: str) -> None:
    for launch in launches:
        used = [word for word in LAUNCH_WORDS if getattr(launch, word) and word not in rules.launch_words]
        if used:
            hint = "for local memory use an argument of role 'local'" if "shared" in used else None
            raise BadInput(f"{rules.name} launches have no {', '.join(used)}", where=where, hint=hint)


# -- what a run keeps -----------------------------------------------------------------------------------


def store_texts(
    folder: RunFolder, problem: Problem, files: Files, template: Template | None
) -> dict[str, str]:
    """Store every text that was read; name -> digest."""
    return {name: folder.put(text.encode()) for name, text in all_texts(problem, files, template).items()}


def all_texts(problem: Problem, files: Files, template: Template | None = None) -> dict[str, str]:
    """All that a problem, and a template of it, need to be read again."""
    texts = files.texts | {HEADER + spelling: text for spelling, text in problem.kernel.headers}
    if template is not None:
        texts[TEMPLATE + template.path] = template.source
        texts |= {TEMPLATE_HEADER + spelling: text for spelling, text in template.headers}
    return texts


def reload_problem(folder: RunFolder, started: Started | None) -> tuple[Problem, Template | None]:
    """Problem and template, where one was given, as the run saved them, not as the user's files are now."""
    if started is None:
        raise BadInput("the run was killed before it began", where=str(folder.path), hint="start it again")
    texts = texts_of(folder, started)
    problem = problem_of(texts)
    if not started.template:
        return problem, None
    name = started.template.removeprefix(TEMPLATE)
    template = template_of(texts[started.template], name, problem, texts)
    return problem, replace(template, is_foreign=bool(author_of(started, "")))


def state_of(folder: RunFolder, records: Iterable[Recorded] | None = None) -> State:
    """As far as its journal goes, of which every event can be meant after those before it."""
    state = State()
    with pause_gc():
        for record in folder.journal().read() if records is None else records:
            if (fault := broken_rule(state, record)) is not None:
                raise _damaged_journal_error(folder, record, fault)
            state = apply_record(state, record)
    return state


def _damaged_journal_error(folder: RunFolder, record: Recorded, fault: str) -> BadInput:
    what = f"{type(record.event).__name__} cannot be meant: {fault}"
    where = f"{folder.path / JOURNAL}:{record.number + 1}"
    return BadInput(f"the journal is damaged: {what}", where=where, hint=DAMAGED)


def state_and_templates(
    folder: RunFolder, records: Sequence[Recorded] | None = None, templates: Templates | None = None
) -> tuple[State, Templates]:
    """`templates`: where those that are given have just been read."""
    records = list(folder.journal().read()) if records is None else records
    state = state_of(folder, records)
    templates = templates_of(folder, state) if templates is None else templates
    for record in records:
        if (fault := template_mismatch(templates, state, record.event)) is not None:
            raise _damaged_journal_error(folder, record, fault)
    return state, templates


def refuse_broken(state: State, path: Path) -> None:
    if is_broken(state.unproven):
        raise BadInput(state.unproven, where=str(path / JOURNAL), hint=DAMAGED)


def templates_of(folder: RunFolder, state: State) -> Templates:
    """The problem of a run and all its templates, given or drafted, on the device in force."""
    problem, given = reload_problem(folder, state.started)
    assert state.started is not None, "a run that can be read has begun"
    files = state.started.files
    beside = {name.removeprefix(BESIDE): digest for name, digest in files if name.startswith(BESIDE)}
    authors = {name: author for name in ("", *beside) if (author := author_of(state.started, name))}
    return Templates(problem, state.device, given, FolderTexts(folder), beside, authors)


def spec_of(folder: RunFolder, started: Started) -> str:
    """The backend of a run, as one names it; a recording is part of the run that was made from it."""
    recording = dict(started.files).get(RECORDING)
    return started.backend + (f":{(folder.path / OBJECTS / recording).resolve()}" if recording else "")


def texts_of(folder: RunFolder, started: Started) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, digest in started.files:
        if name != RECORDING:
            try:
                texts[name] = folder.get(digest).decode()
            except UnicodeDecodeError as error:
                fault = f"the file {name!r} of the run is no text"
                raise BadInput(fault, where=str(folder.path), hint=DAMAGED) from error
    return texts


def problem_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """What of a run's texts is the problem's own."""
    return {name: text for name, text in texts.items() if not name.startswith(_OTHERS)}


def problem_of(texts: Mapping[str, str]) -> Problem:
    def read(name: str) -> str:
        if name not in texts:
            raise BadInput(
                f"the file {name!r} is not among those that were stored", hint="name the problem's own"
            )
        return texts[name]

    problem = parse_problem(
        read(PROBLEM_FILE), path=PROBLEM_FILE, read=read, find_header=_stored_header_finder(texts, HEADER)
    )
    for name, text in texts.items():
        if name.startswith(WORKLOADS):
            problem = with_workloads(problem, text, path=name.removeprefix(WORKLOADS))
    return problem


def template_of(text: str, name: str, problem: Problem, texts: Mapping[str, str]) -> Template:
    """A template that was stored, with its own headers among the texts."""
    return parse_template(
        text, path=name, problem=problem, find_header=_stored_header_finder(texts, TEMPLATE_HEADER)
    )


def restore_problem(texts: Mapping[str, str]) -> LoadedProblem:
    """A problem as it was stored, with its files: as good as read from where the user has them. Its headers
    go with its kernel."""
    named = {name: text for name, text in problem_texts(texts).items() if not name.startswith(HEADER)}
    return LoadedProblem(problem_of(texts), Files(Path(), texts=named))


def change_workloads(loaded: LoadedProblem, path: Path) -> LoadedProblem:
    """Sizes from a file in place of those the problem has."""
    text = read_text(path, "correct the name; it counts from the current folder")
    changed = with_workloads(loaded.definition, text, path=str(path))
    stored = {n: old for n, old in loaded.files.texts.items() if not n.startswith(WORKLOADS)}
    return LoadedProblem(changed, replace(loaded.files, texts={**stored, WORKLOADS + path.name: text}))


def _stored_header_finder(texts: Mapping[str, str], prefix: str) -> FindHeader:
    def find(spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
        text = texts.get(prefix + spelling)
        return None if text is None else HeaderFile(spelling, text)

    return find
