"""What a run delivers: the kernels, the report and its plots, and the run as a user holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TextIO

from tunesmith.deliver.report import PLOTS, plot_files, report_html, report_json, report_markdown
from tunesmith.deliver.tuned import ReadyKernel, kernel_for, tuned_files
from tunesmith.errors import DeviceMissing, WaitingForModel
from tunesmith.problem.problem import Problem
from tunesmith.run.candidates import Templates, draft_name
from tunesmith.run.config import RunConfig
from tunesmith.run.racing import verified_choice
from tunesmith.run.report import (
    Report,
    UnfinishedBest,
    WorkloadReport,
    best_unfinished,
    build_report,
    delivered_templates,
    unfinished_name,
)
from tunesmith.run.state import State
from tunesmith.run.store import OBJECTS, RunFolder
from tunesmith.session import library
from tunesmith.session.problems import state_and_templates


@dataclass(frozen=True)
class BestKernel:
    """What a run delivers: `speedup` is the geometric mean over the workloads, verified."""

    speedup: float
    config: dict[str, int] | None  # the general one; None: the original serves sizes that no workload has
    workloads: tuple[WorkloadReport, ...]
    folder: Path  # the kernels, and dispatch.json, which says which of them serves which sizes
    files: tuple[str, ...]  # in the run's folder

    def kernel_for(self, sizes: Mapping[str, int]) -> ReadyKernel:
        """Which of the kernels serves a call with these sizes, and how it is launched."""
        return kernel_for((self.folder / "dispatch.json").read_bytes(), sizes)


@dataclass(frozen=True)
class Run:
    """A run as it stands: finished, or as far as it went."""

    result: Report
    folder: Path
    resume_command: str  # what to type in a shell, where it is not finished
    missing: DeviceMissing | WaitingForModel | None = None  # why it goes no further here
    library: tuple[str, ...] = ()  # what has become of its templates in the library

    @property
    def best(self) -> BestKernel | None:
        """The kernels delivered; None: the run is not finished, or found nothing better than the original."""
        found = self.result
        if not found.finished or found.geometric_mean is None or not found.tuned:
            return None
        own = self.folder / "tuned"
        return BestKernel(found.geometric_mean, found.general, found.workloads, own, found.tuned)

    def report(self, form: Literal["text", "md", "json"] = "text", stream: TextIO | None = None) -> str:
        """As `tunesmith report` prints it; a table as wide as suits the stream it is for."""
        if form == "json":
            return report_json(self.result).decode()
        if form == "md":
            return report_markdown(self.result)
        from tunesmith.deliver.display import report_text

        folder = str(self.folder)
        return report_text(self.result, folder, self.resume_command, self.library, stream)

    def _repr_html_(self) -> str:
        """What a notebook shows: the table and the plot."""
        return report_html(self.result, str(self.folder))


def deliver(folder: RunFolder, templates: Templates, state: State, config: RunConfig) -> Run:
    """Derived from the journal alone, so writing it twice changes nothing."""
    problem = templates.problem
    choice = verified_choice(problem, state)
    tuned = tuned_files(problem, templates.lookup(state), state.device, choice)
    report = build_report(problem, state, tuple(f"tuned/{name}" for name in tuned), templates=templates)
    folder.replace_folder("tuned", tuned)
    for candidate, name in delivered_templates(problem, state, choice).items():
        folder.write(name, templates.of(state.candidate(candidate)).source.encode())
    folder.replace_folder(PLOTS, plot_files(report))
    folder.write("report.md", report_markdown(report).encode())
    folder.write("report.json", report_json(report))
    kept = library.keep_winners(config, folder, problem, templates, state)
    return Run(report, folder.path, folder.go_on, library=tuple(kept))


def as_it_stands(folder: RunFolder) -> Run:
    """A run, finished or not, from its journal; nothing is written."""
    state, templates = state_and_templates(folder)
    problem, tuned = templates.problem, tuple[str, ...]()
    if state.started is not None and state.stopped is not None:
        choice = verified_choice(problem, state)
        files = tuned_files(problem, templates.lookup(state), state.device, choice)
        tuned = tuple(f"tuned/{name}" for name in files)
    report = build_report(problem, state, tuned, templates=templates)
    return Run(with_place(folder, problem, report), folder.path, folder.go_on)


def with_place(folder: RunFolder, problem: Problem, built: Report) -> Report:
    """Where the template of an unfinished run is: in its file, or still among the objects alone."""
    found = built.so_far
    if found is None:
        return built
    name = _best_template_name(problem, found)
    file = name if folder.holds(name, found.digest) else f"{OBJECTS}/{found.digest}"
    return replace(built, so_far=replace(found, file=file))


def write_best_template(folder: RunFolder, problem: Problem, state: State) -> None:
    """As a file of its own: a run that stops may stay so."""
    if (found := best_unfinished(problem, state)) is not None:
        folder.write(_best_template_name(problem, found), folder.get(found.digest))


def _best_template_name(problem: Problem, found: UnfinishedBest) -> str:
    """That of the file which a finished run delivers; of a draft, which no gate has seen, its own."""
    return draft_name(problem, found.template) if found.status == "drafted" else unfinished_name(problem)
