"""Searching a kept template again, with no model: on another device, with another driver, at other sizes.

What is known comes first: configurations that were best where the template was tuned, in general and at each
workload; then the search, which begins from all that was measured there.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends, earlier
from tunesmith.config import RunConfig
from tunesmith.core.candidates import rows_for
from tunesmith.core.choose import verified_choice
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput
from tunesmith.core.events import Primed
from tunesmith.core.library import LibraryEntry, kernel_digest, signature_of
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Problem
from tunesmith.core.reporting import delivered_templates
from tunesmith.core.state import State
from tunesmith.core.template import Template
from tunesmith.going_on import Finished
from tunesmith.library import Library
from tunesmith.problems import (
    PROBLEM_FILE,
    TEMPLATE_HEADER,
    Files,
    change_workloads,
    files_of,
    load_problem,
    load_template,
    problem_of,
    spec_of,
    template_of,
    texts_of,
)
from tunesmith.roles import signature_fault
from tunesmith.starting import Priors, Subject, begin, nothing_known
from tunesmith.store import JOURNAL, PLAN, RunFolder

EVALS = 64  # unless the user says otherwise: a start from what is known needs fewer than one from nothing
NAME_ONE = "name the folder of a run, a template file, or one of: tunesmith library"


@dataclass(frozen=True)
class Again:
    """What is searched again, and what is known of it."""

    subject: Subject
    priors: Priors
    backend: str | None = None  # where the run had one that is not the language's own


def retune(
    target: str,
    config: RunConfig,
    listener: Listener,
    *,
    problem: Path | None = None,
    workloads: Path | None = None,
    out: Path | None = None,
) -> Finished:
    """`target` is the folder of a run, a template file, or a name in the library."""
    path = Path(target)
    wanted = _Wanted(config, listener, problem, workloads)
    if path.is_dir():
        again = _of_run(path, wanted)
    elif path.exists():
        again = _of_file(path, wanted)
    elif target in (library := Library(Path(config.library_dir))):
        again = _of_entry(library.get(target), wanted)
    else:
        fault = f"{target!r} is neither a run's folder nor a template file, nor in the library"
        raise BadInput(fault, hint=NAME_ONE)
    if config.evals is None and config.time is None and config.search != "exhaustive":
        config = replace(config, evals=EVALS)
    config = replace(config, backend=config.backend or again.backend)
    config = replace(config, model="", strategy="template", linear=False)  # whatever the user's settings are
    priors = again.priors if config.prior else nothing_known
    return begin(again.subject, config, out, listener, priors)


def offers(problem: Problem, path: Path, config: RunConfig) -> list[str]:
    """What the library has for a kernel, as a user is told of it; nothing where it is switched off, or no
    template is wanted."""
    if not config.library or not config.library_dir or config.strategy != "template":
        return []
    found = Library(Path(config.library_dir)).matching(problem)
    if not found:
        return []
    best, others = found[0], len(found) - 1
    more = f", and {others} more" if others else ""
    command = f"tunesmith retune {best.name} --problem {shlex.quote(str(path))}"
    return [
        f"the library has a template of this kernel: {best.name} ({best.about}){more}",
        f"search it again, with nothing to write, with: {command}; or begin from it: --from-library",
    ]


@dataclass(frozen=True)
class _Wanted:
    """What the user asks of any of the three."""

    config: RunConfig
    listener: Listener
    problem: Path | None
    workloads: Path | None

    def problem_for(
        self, texts: Mapping[str, str], signature: str, kernel: str, what: str
    ) -> tuple[Problem, Files, str]:
        """The user's where one is named, which must be called alike; else as it was kept. And what is to be
        said of it."""
        changed = ""
        if self.problem is None:
            problem, files = problem_of(texts), files_of(texts)
        else:
            problem, files = load_problem(self.problem)
            if signature_of(problem) != signature:
                raise BadInput(
                    f"{what} is of another kernel: {signature}, the problem has {signature_of(problem)}",
                    where=str(self.problem),
                    hint="name the problem it was made for, or tune this one: tunesmith tune PROBLEM",
                )
            if kernel_digest(problem) != kernel:
                changed = "; the kernel's text has changed since"
        return self.resized(problem, files), files, changed

    def resized(self, problem: Problem, files: Files) -> Problem:
        return problem if self.workloads is None else change_workloads(problem, files, self.workloads)


# -- a run ----------------------------------------------------------------------------------------------


def _of_run(path: Path, wanted: _Wanted) -> Again:
    if not (path / JOURNAL).is_file() and not (path / PLAN).is_file():
        fault = "this folder holds no run: it has no journal.jsonl"
        raise BadInput(fault, where=str(path), hint=NAME_ONE)
    folder = RunFolder.open(path, wanted.config.wait)
    state, own = earlier.read_run(path)
    started = state.started
    assert started is not None, "a run that can be read has begun"
    winners = _winners(folder, state, own)
    texts, name = texts_of(folder, started), name_of(path)
    problem, files, changed = wanted.problem_for(texts, signature_of(own), kernel_digest(own), name)
    # One that was given may have headers of its own, and those are looked for beside the first alone.
    has_headers = any(key.startswith(TEMPLATE_HEADER) for key in texts)
    first = "" if "" in winners and has_headers else next(iter(winners))
    template = template_of(_text(folder, state, first, texts), winners[first], problem, texts)
    beside: dict[str, Template] = {}
    for other in (candidate for candidate in winners if candidate != first):
        called = other or "given"
        try:
            text = _text(folder, state, other, texts)
            beside[called] = template_of(text, winners[other], problem, {})
        except BadInput as error:
            wanted.listener.note(f"template {called} of {name} is left out: {error}")
    told = [(first, template), *((called if called != "given" else "", t) for called, t in beside.items())]
    primed = [earlier.primed_by(name, state, own, candidate, t, first=True) for candidate, t in told]
    known = tuple(one for one in primed if one is not None)
    origin = f"run {name} on {state.device.name}{changed}"
    backend = spec_of(folder, started) if backends.kind(started.backend).from_file else None
    return Again(Subject(problem, files, template, beside, origin), lambda _device: known, backend)


def name_of(path: Path) -> str:
    """A run by its folder; one of a comparison, where many have the same name, with its problem."""
    own = path.resolve()
    is_compared = len(own.parents) > 2 and (own.parents[2] / PLAN).is_file()
    return f"{own.parent.name}/{own.name}" if is_compared else own.name


def _winners(folder: RunFolder, state: State, problem: Problem) -> dict[str, str]:
    """The candidates whose templates are delivered, the general winner's first, and their files' names."""
    if state.stopped is None:
        raise BadInput(
            "this run has not finished, so nothing has won in it yet",
            where=str(folder.path),
            hint=f"go on with it: {folder.go_on}; or name a template file, with --problem",
        )
    winners = delivered_templates(problem, state, verified_choice(problem, state))
    if not winners:
        raise BadInput(
            "this run has no template: none that was written passed the gate",
            where=str(folder.path),
            hint="write one, and name it: tunesmith retune TEMPLATE --problem PROBLEM",
        )
    return winners


def _text(folder: RunFolder, state: State, candidate: str, texts: Mapping[str, str]) -> str:
    assert state.started is not None
    return (
        folder.get(state.candidate(candidate).template).decode()
        if candidate
        else texts[state.started.template]
    )


# -- a template file, an entry of the library -----------------------------------------------------------


def _of_file(path: Path, wanted: _Wanted) -> Again:
    if wanted.problem is None:
        raise BadInput(
            "a template alone does not say what its kernel must do",
            where=str(path),
            hint=f"name its problem: tunesmith retune {shlex.quote(str(path))} --problem PROBLEM",
        )
    problem, files = load_problem(wanted.problem)
    problem = wanted.resized(problem, files)
    template = load_template(path, problem, files)
    if (fault := signature_fault(problem, template)) is not None:
        hint = "name the problem that the template was made for"
        raise BadInput(f"this is a template of another kernel: {fault}", where=str(path), hint=hint)
    root, note = Path(wanted.config.runs), wanted.listener.note

    def priors(device: Device) -> tuple[Primed, ...]:
        return earlier.priors(root, (), problem, template, device, note, first=True)

    return Again(Subject(problem, files, template, origin=f"template {path.name}"), priors)


def _of_entry(entry: LibraryEntry, wanted: _Wanted) -> Again:
    texts = dict(entry.files)
    if wanted.problem is None and PROBLEM_FILE not in texts:
        hint = f"name it: tunesmith retune {entry.name} --problem PROBLEM"
        raise BadInput(f"{entry.name} of the library was kept without its problem", hint=hint)
    called = f"{entry.name} of the library"
    problem, files, changed = wanted.problem_for(texts, entry.signature, entry.kernel, called)
    own = {TEMPLATE_HEADER + spelling: text for spelling, text in entry.headers}
    template = template_of(entry.template, entry.path, problem, own)
    rows = tuple(rows_for(template, entry.rows))
    known: tuple[Primed, ...] = ()
    if any(score is not None for _, score in rows):
        known = (Primed(f"{called}, on {entry.device}", rows, entry.best),)
    origin = f"{called}, on {entry.device}{changed}"
    return Again(Subject(problem, files, template, origin=origin), lambda _device: known)
