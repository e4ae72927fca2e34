"""What a run leaves in its folder: the results, or where it stopped unfinished, what stands so far."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.candidates import Templates, draft_name
from tunesmith.core.choose import verified_choice
from tunesmith.core.problem import Problem
from tunesmith.core.report import Report, UnfinishedBest
from tunesmith.core.reporting import best_unfinished, build_report, delivered_templates, unfinished_name
from tunesmith.core.state import State, fold
from tunesmith.deliver.report import PLOTS, plot_files, report_json, report_markdown
from tunesmith.deliver.tuned import tuned_files
from tunesmith.problems import templates_of
from tunesmith.store import OBJECTS, RunFolder


def deliver(folder: RunFolder, problem: Problem, templates: Templates, state: State) -> Report:
    """Derived from the journal alone, so writing it twice changes nothing."""
    names = file_names(problem, templates, state)
    template_of = templates.lookup(state)
    report_ = build_report(problem, state, names, templates=templates)
    choice = verified_choice(problem, state)
    folder.replace_folder("tuned", tuned_files(problem, template_of, state.device, choice))
    for candidate, name in delivered_templates(problem, state, choice).items():
        folder.write(name, templates.of(state.candidate(candidate)).source.encode())
    folder.replace_folder(PLOTS, plot_files(report_))
    folder.write("report.md", report_markdown(report_).encode())
    folder.write("report.json", report_json(report_))
    return report_


def as_it_stands(folder: RunFolder) -> Report:
    """The report of a run, finished or not, from its journal; nothing is written."""
    state = fold(folder.journal().read())
    templates = templates_of(folder, state)
    problem = templates.problem
    built = build_report(problem, state, file_names(problem, templates, state), templates=templates)
    return with_place(folder, problem, built)


def file_names(problem: Problem, templates: Templates, state: State) -> tuple[str, ...]:
    if state.started is None or state.stopped is None:
        return ()
    choice = verified_choice(problem, state)
    return tuple(
        f"tuned/{name}" for name in tuned_files(problem, templates.lookup(state), state.device, choice)
    )


def with_place(folder: RunFolder, problem: Problem, built: Report) -> Report:
    """Where the template of an unfinished run is: in its file, or still among the objects alone."""
    found = built.so_far
    if found is None:
        return built
    name = _unfinished_name(problem, found)
    file = name if folder.holds(name, found.digest) else f"{OBJECTS}/{found.digest}"
    return replace(built, so_far=replace(found, file=file))


def keep_unfinished(folder: RunFolder, problem: Problem, state: State) -> None:
    """The best template, as a file of its own: a run that stops may stay so."""
    if (found := best_unfinished(problem, state)) is not None:
        folder.write(_unfinished_name(problem, found), folder.get(found.digest))


def _unfinished_name(problem: Problem, found: UnfinishedBest) -> str:
    """That of the file which a finished run delivers; of a draft, which no gate has seen, its own."""
    return draft_name(problem, found.template) if found.status == "drafted" else unfinished_name(problem)
