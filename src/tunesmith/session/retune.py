"""What earlier runs found: where the next search begins, and stored templates searched again with no model.

Another device, other sizes, an earlier version of the template: the order of configurations often carries
over, and the searcher finds out soon whether it does. A template that is searched again begins with the
configurations that were best where it was tuned, in general and at each workload.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends
from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import rows_for
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Primed
from tunesmith.run.folder import JOURNAL, PLAN, RunFolder
from tunesmith.run.library import (
    LibraryEntry,
    best_of,
    kernel_digest,
    rows_of,
    run_id,
    signature_of,
    thin_rows,
)
from tunesmith.run.ports import Listener
from tunesmith.run.race import sound_scores, verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.run.rounds import best_scores
from tunesmith.run.state import State, author_of
from tunesmith.session import problems
from tunesmith.session.library import consult_library, matching_entries, open_library, stored_priors
from tunesmith.session.problems import LoadedProblem
from tunesmith.session.result import Run
from tunesmith.session.roles import signature_fault
from tunesmith.session.runs import Priors, RunInput, begin_run, no_priors

LOOKED_AT = 40  # of the runs here, the newest
USED = 3
NOTHING = "it has measured no configuration that this template has"
EVALS = 64  # unless the user says otherwise: a start from what is known needs fewer than one from nothing
Stored = Callable[[Collection[str]], list[tuple[bool, Primed]]]
NAME_ONE = "name the folder of a run, a template file, or one of: tunesmith library"


# -- what earlier runs found ---------------------------------------------------------------------------


def priors_of(
    root: Path,
    named: Sequence[Path],
    problem: Problem,
    template: Template | None,
    device: Device,
    note: Callable[[str], None] = lambda _text: None,
    first: bool = False,
    measured: Mapping[Path, str] | None = None,
    stored: Stored = lambda _here: [],
) -> tuple[Primed, ...]:
    """What the runs `named` have found, or with none the newest ones below `root` that fit; of the same
    device first. Runs nobody named that cannot be read are passed over with a note. Where templates are still
    to be written, every run of the problem fits: which of them tells something, the loop will see.
    `measured` has the texts of those named that are no runs but T4 files; `stored` tells what a library has
    beside the runs that are here.
    `first`: what they found best is tried before anything else."""
    if named:
        texts = measured or {}
        return tuple(
            _prime_from_measurements(path, texts[path], problem, template)
            if path in texts
            else _prime_from_named_run(path, problem, template, first)
            for path in named
        )
    found: list[tuple[bool, Primed]] = []
    here: set[str] = set()
    for path in _newest_run_folders(root):
        try:
            state, other = read_run(path)
            here.add(run_id(state))
            primed = _prime_from_state(path.name, state, other, problem, template, first)
        except TunesmithError as error:
            note(f"the earlier run {path.name} is passed over: {error}")
            continue
        if isinstance(primed, Primed):
            found.append((state.device.name != device.name, primed))
    found += stored(here)
    found.sort(key=lambda pair: pair[0])
    return tuple(primed for _, primed in found[:USED])


def measured_files(named: Sequence[Path]) -> dict[Path, str]:
    """The texts of those that are files, T4 results by the look of it, and not folders of runs."""
    missing = "name the folder of a run, or a T4 results file"
    return {path: problems.read_text(path, missing) for path in named if path.is_file()}


def names_of(measured: Mapping[Path, str]) -> dict[str, str]:
    """The same as a run keeps them: by name, and by number where two have the same."""
    found: dict[str, str] = {}
    for number, (path, text) in enumerate(measured.items(), 1):
        found[path.name if path.name not in found else f"{number}-{path.name}"] = text
    return found


def _prime_from_measurements(path: Path, text: str, problem: Problem, template: Template | None) -> Primed:
    """Its name says what of the file is used: it is told when the run begins, and stays in the journal."""
    from tunesmith.run.t4 import rows_of_t4

    known = rows_of_t4(text, template, str(path))
    if not any(score is not None for _, score in known.rows):
        about = template.path if template is not None else problem.name
        hint = "name measurements of a template with the same parameters, or leave --prior-run out"
        raise BadInput(f"these measurements say nothing about {about}: {known}", where=str(path), hint=hint)
    return Primed(f"measurements in {path.name} ({known})", tuple(thin_rows(known.rows)))


def _newest_run_folders(root: Path) -> list[Path]:
    journals: list[tuple[int, Path]] = []
    for path in root.glob(f"*/{JOURNAL}"):
        with suppress(OSError):  # taken away while we look
            journals.append((path.stat().st_mtime_ns, path.parent))
    return [folder for _, folder in sorted(journals, reverse=True)[:LOOKED_AT]]


def _prime_from_named_run(path: Path, problem: Problem, template: Template | None, first: bool) -> Primed:
    state, other = read_run(path)
    primed = _prime_from_state(path.resolve().name, state, other, problem, template, first)
    if isinstance(primed, str):
        about = template.path if template is not None else problem.name
        hint = "name a run of a template with the same parameters, or leave --prior-run out"
        raise BadInput(f"this run says nothing about {about}: {primed}", where=str(path), hint=hint)
    return primed


def read_run(path: Path) -> tuple[State, Problem]:
    """Whatever is wrong with a run that someone else wrote is bad input, and no fault of ours."""
    folder = RunFolder.open(path)
    try:
        state = problems.state_of(folder)
        problem, _ = problems.reload_problem(folder, state.started)
        sound_scores(problem, state)
    except TunesmithError:
        raise
    except Exception as error:
        raise BadInput(f"this run cannot be read: {error!r}", where=str(path)) from error
    return state, problem


def _prime_from_state(
    name: str, state: State, other: Problem, problem: Problem, template: Template | None, first: bool
) -> Primed | str:
    """The run's scores for this template, or for the best of its own; or why there are none."""
    if other.name != problem.name:
        return f"its problem is {other.name}, not {problem.name}"
    tried = sound_scores(other, state)
    names = [p.name for p in template.space.params] if template is not None else []
    searched = [t for t in tried if t.config.items]  # a kernel without parameters tells a search nothing
    fitting = [t for t in searched if template is None or set(t.config.as_dict()) == set(names)]
    if tried and not fitting and template is not None:
        listed = ", ".join(tried[0].config.as_dict()) or "none"
        return f"its parameters are {listed}, not {', '.join(names)}"
    known = best_scores(tuple(fitting))
    if not known:
        return NOTHING
    best = max(known, key=lambda name: known[name])  # of several one: their scores have little in common
    return primed_by(name, state, other, best, template, first) or NOTHING


def primed_by(
    name: str, state: State, problem: Problem, candidate: str, template: Template | None, first: bool
) -> Primed | None:
    """What a run found of one of its templates, as far as `template` has its parameters and values."""
    rows = rows_of(problem, state, candidate)
    if template is not None:
        rows = rows_for(template, rows)
    if not any(score is not None for _, score in rows):
        return None
    best = best_of(problem, state, candidate) if first else ()
    return Primed(f"{name} on {state.device.name}", tuple(thin_rows(rows)), best)


# -- a template once more -------------------------------------------------------------------------------


@dataclass(frozen=True)
class RetuneSource:
    """What is searched again, and what is known of it."""

    given: RunInput
    priors: Priors
    backend: str | None = None  # where the run had one that is not the language's own


def retune(
    target: str,
    config: RunConfig,
    listener: Listener,
    *,
    problem: LoadedProblem | None = None,
    workloads: Path | None = None,
    out: Path | None = None,
) -> Run:
    """`target` is the folder of a run, a template file, or a name in the library."""
    path = Path(target)
    wanted = _Wanted(config, listener, problem, workloads)
    if path.is_dir():
        source = _of_run(path, wanted)
    elif path.exists():
        source = _of_file(path, wanted)
    else:
        with open_library(config) as library:
            if target not in library:
                fault = f"{target!r} is neither a run's folder nor a template file, nor in the library"
                raise BadInput(fault, hint=NAME_ONE)
            source = _of_entry(library.get(target), wanted, library.is_shared)
    if config.limits.leaves_search_open and config.search != "exhaustive":
        config = replace(config, evals=EVALS)
    config = replace(config, backend=config.backend or source.backend)
    config = replace(config, model="", strategy="template", linear=False)  # whatever the user's settings are
    priors = source.priors if config.prior else no_priors
    return begin_run(source.given, config, out, listener, priors)


def format_library_offers(
    problem: Problem, path: str, config: RunConfig, say: Callable[[str], None] = lambda _text: None
) -> list[str]:
    """What the library has for a kernel, as a user is told of it; nothing where it is switched off, or no
    template is wanted."""
    if config.strategy != "template":
        return []
    nothing: list[LibraryEntry] = []
    found = consult_library(config, say, lambda library: matching_entries(library, problem, say), nothing)
    if not found:
        return []
    best, others = found[0], len(found) - 1
    more = f", and {others} more" if others else ""
    command = f"tunesmith retune {best.name} --problem {shlex.quote(path)}"
    return [
        f"the library has a template of this kernel: {best.name} ({best.about}){more}",
        f"search it again, with nothing to write, with: {command}; or begin from it: --from-library",
    ]


@dataclass(frozen=True)
class _Wanted:
    """What the user asks of any of the three."""

    config: RunConfig
    listener: Listener
    problem: LoadedProblem | None
    workloads: Path | None

    def problem_for(
        self, texts: Mapping[str, str], signature: str, kernel: str, what: str
    ) -> tuple[LoadedProblem, str]:
        """The user's where one is named, which must be called alike; else as it was stored. And what is to be
        said of it."""
        if self.problem is None:
            return self.resized(problems.restore_problem(texts)), ""
        problem = self.problem.definition
        if signature_of(problem) != signature:
            fault = f"{what} is of another kernel: {signature}, the problem has {signature_of(problem)}"
            hint = "name the problem it was made for, or tune this one: tunesmith tune PROBLEM"
            raise BadInput(fault, where=self.problem.files.where, hint=hint)
        changed = "; the kernel's text has changed since" if kernel_digest(problem) != kernel else ""
        return self.resized(self.problem), changed

    def resized(self, problem: LoadedProblem) -> LoadedProblem:
        return problem if self.workloads is None else problems.change_workloads(problem, self.workloads)


# -- a run ----------------------------------------------------------------------------------------------


def _of_run(path: Path, wanted: _Wanted) -> RetuneSource:
    if not (path / JOURNAL).is_file() and not (path / PLAN).is_file():
        fault = "this folder holds no run: it has no journal.jsonl"
        raise BadInput(fault, where=str(path), hint=NAME_ONE)
    folder = RunFolder.open(path, wanted.config.wait)
    state, tuned = read_run(path)
    started = state.started
    assert started is not None, "a run that can be read has begun"
    winners = _winning_candidates(folder, state, tuned)
    texts, name = problems.texts_of(folder, started), name_of(path)
    loaded, changed = wanted.problem_for(texts, signature_of(tuned), kernel_digest(tuned), name)
    problem = loaded.definition
    # One that was given may have headers of its own, and those are looked for beside the first alone.
    has_headers = any(key.startswith(problems.TEMPLATE_HEADER) for key in texts)
    first = "" if "" in winners and has_headers else next(iter(winners))
    template = problems.template_of(
        _read_run_template(folder, state, first, texts), winners[first], problem, texts
    )
    beside: dict[str, Template] = {}
    names = [(candidate, candidate or "given") for candidate in winners if candidate != first]
    for other, called in names:
        try:
            text = _read_run_template(folder, state, other, texts)
            beside[called] = problems.template_of(text, winners[other], problem, {})
        except BadInput as error:
            wanted.listener.note(f"template {called} of {name} is left out: {error}")
    found = [(first, template), *((called if called != "given" else "", t) for called, t in beside.items())]
    primed = [primed_by(name, state, tuned, candidate, t, first=True) for candidate, t in found]
    known = tuple(one for one in primed if one is not None)
    origin = f"run {name} on {state.device.name}{changed}"
    backend = (
        problems.spec_of(folder, started) if backends.find_backend_kind(started.backend).from_file else None
    )
    # By the names they have here: the first has none.
    ours = [(first, ""), *(pair for pair in names if pair[1] in beside)]
    authors = {called: author for c, called in ours if (author := _candidate_author(state, c))}
    given = RunInput(loaded, template, beside, origin, authors=authors)
    return RetuneSource(given, lambda _device: known, backend)


def _candidate_author(state: State, candidate: str) -> str:
    """The model that wrote what has won, in that run or in one before it."""
    assert state.started is not None
    drafted = state.candidate(candidate).drafted
    return drafted.author if drafted is not None else author_of(state.started, candidate)


def name_of(path: Path) -> str:
    """A run by its folder; one of a comparison, where many have the same name, with its problem."""
    folder = path.resolve()
    is_compared = len(folder.parents) > 2 and (folder.parents[2] / PLAN).is_file()
    return f"{folder.parent.name}/{folder.name}" if is_compared else folder.name


def _winning_candidates(folder: RunFolder, state: State, problem: Problem) -> dict[str, str]:
    """The candidates whose templates are delivered, the general winner's first, and their files' names."""
    if state.stopped is None:
        fault = "this run has not finished, so nothing has won in it yet"
        hint = f"go on with it: {folder.go_on}; or name a template file, with --problem"
        raise BadInput(fault, where=str(folder.path), hint=hint)
    winners = delivered_templates(problem, state, verified_choice(problem, state))
    if not winners:
        fault = "this run has no template: none that was written passed the gate"
        hint = "write one, and name it: tunesmith retune TEMPLATE --problem PROBLEM"
        raise BadInput(fault, where=str(folder.path), hint=hint)
    return winners


def _read_run_template(folder: RunFolder, state: State, candidate: str, texts: Mapping[str, str]) -> str:
    assert state.started is not None
    if not candidate:
        return texts[state.started.template]
    return folder.get(state.candidate(candidate).template).decode()


# -- a template file, an entry of the library -----------------------------------------------------------


def _of_file(path: Path, wanted: _Wanted) -> RetuneSource:
    if wanted.problem is None:
        raise BadInput(
            "a template alone does not say what its kernel must do",
            where=str(path),
            hint=f"name its problem: tunesmith retune {shlex.quote(str(path))} --problem PROBLEM",
        )
    loaded = wanted.resized(wanted.problem)
    problem, files = loaded
    template = problems.load_template(path, problem, files)
    if (fault := signature_fault(problem, template)) is not None:
        hint = "name the problem that the template was made for"
        raise BadInput(f"this is a template of another kernel: {fault}", where=str(path), hint=hint)
    root, note = Path(wanted.config.runs), wanted.listener.note

    def priors(device: Device) -> tuple[Primed, ...]:
        stored = stored_priors(problem, template, device, wanted.config, wanted.listener.say)
        return priors_of(root, (), problem, template, device, note, first=True, stored=stored)

    return RetuneSource(RunInput(loaded, template, origin=f"template {path.name}"), priors)


def _of_entry(entry: LibraryEntry, wanted: _Wanted, is_shared: bool) -> RetuneSource:
    """Of a library that is shared only the template is taken, and that as a stranger's: what is right, the
    user's own problem says."""
    texts = dict(entry.files)
    if is_shared and wanted.problem is None:
        fault = f"{entry.name} is in a library that others write to, so its own problem is not taken for true"
        raise BadInput(fault, hint=f"name yours: tunesmith retune {entry.name} --problem PROBLEM")
    if is_shared and entry.headers:
        fault = f"{entry.name} has headers of its own, and others write to the library: they are not vetted"
        hint = f"look at them, then give it yourself: tunesmith library export {entry.name} --out FILE"
        raise BadInput(fault, hint=hint)
    if wanted.problem is None and problems.PROBLEM_FILE not in texts:
        hint = f"name it: tunesmith retune {entry.name} --problem PROBLEM"
        raise BadInput(f"{entry.name} of the library was stored without its problem", hint=hint)
    called = f"{entry.name} of the library"
    loaded, changed = wanted.problem_for(texts, entry.signature, entry.kernel, called)
    headers = {problems.TEMPLATE_HEADER + spelling: text for spelling, text in entry.headers}
    template = problems.template_of(entry.template, entry.path, loaded.definition, headers)
    rows = tuple(rows_for(template, entry.rows))
    known: tuple[Primed, ...] = ()
    if any(score is not None for _, score in rows):
        known = (Primed(f"{called}, on {entry.device}", rows, entry.best),)
    origin = f"{called}, on {entry.device}{changed}"
    authors = {"": entry.author} if entry.author else {}
    return RetuneSource(RunInput(loaded, template, origin=origin, authors=authors), lambda _device: known)
