"""What a run leaves: its results as files of its folder, and a run as it stands, both from its journal."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.deliver.page import report_page
from tunesmith.deliver.page_texts import PageTexts, page_texts
from tunesmith.deliver.report import PLOTS, plot_files, report_json, report_markdown
from tunesmith.deliver.tuned import delivered, tuned_files
from tunesmith.errors import DeviceMissing, WaitingForModel
from tunesmith.run.candidates import Templates, draft_name
from tunesmith.run.chain import is_broken
from tunesmith.run.config import RunConfig
from tunesmith.run.report import Report, build_report, unfinished_name
from tunesmith.run.state import State
from tunesmith.run.store import OBJECTS, RunFolder
from tunesmith.session import certificates, library, problems, signing
from tunesmith.session.run_result import Run


def deliver(folder: RunFolder, templates: Templates, state: State, config: RunConfig) -> Run:
    """Derived from the journal alone, so writing it twice changes nothing."""
    tuned, report, beside = _results(folder, templates, state)
    folders = {"tuned": tuned, PLOTS: plot_files(report)}
    texts = {n: templates.of(state.candidate(own)).source for n, own in report.templates.items()}
    files = {name: text.encode() for name, text in texts.items()}
    files |= {"report.md": report_markdown(report).encode(), "report.json": report_json(report)}
    files["report.html"] = report_page(report, beside).encode()
    for name, inside in folders.items():
        folder.replace_folder(name, inside)
    for name, data in files.items():
        folder.write(name, data)
    files |= {f"{name}/{file}": data for name, inside in folders.items() for file, data in inside.items()}
    certificates.write(folder, templates, state, files, signing.signing_key(config.sign))
    stored = library.keep_winners(config, folder, templates.problem, templates, state)
    return Run(report, folder.path, folder.go_on, library=tuple(stored), texts=beside)


def as_it_stands(folder: RunFolder, missing: DeviceMissing | WaitingForModel | None = None) -> Run:
    """A run, finished or not, from its journal. `missing` is why it goes no further here, and may stay so:
    then the best template becomes a file of its own; else nothing is written."""
    state, templates = problems.state_and_templates(folder)
    _, report, texts = _results(folder, templates, state)
    if (found := report.so_far) is not None:  # its template is in its file, or still among the objects alone
        # The name that a finished run delivers; of a draft, which no gate has seen, its own.
        own, drafted = templates.problem, found.status == "drafted"
        name = draft_name(own, found.template) if drafted else unfinished_name(own)
        if missing is not None:
            folder.write(name, folder.get(found.digest))
        file = name if folder.holds(name, found.digest) else f"{OBJECTS}/{found.digest}"
        report = replace(report, so_far=replace(found, file=file))
    if missing is None and not report.finished and (since := folder.held_for()) is not None:
        report = replace(report, live=True, reason="running", seconds=report.seconds + since)
    return Run(report, folder.path, folder.go_on, missing, texts=texts)


def _results(
    folder: RunFolder, templates: Templates, state: State
) -> tuple[dict[str, bytes], Report, PageTexts]:
    """The tuned kernels, of a run that has ended, the report, and what its page shows beside it."""
    problem, tuned, dispatch = templates.problem, dict[str, bytes](), None
    if state.stopped is not None and not is_broken(state.unproven):
        made = delivered(problem, state, templates.lookup(state))
        tuned, dispatch = tuned_files(problem, state.device, made, folder.get), made.dispatch
    names = tuple(f"tuned/{name}" for name in tuned)
    report = build_report(problem, state, names, templates=templates, dispatch=dispatch)
    return tuned, report, page_texts(templates, state, dispatch, tuned)
