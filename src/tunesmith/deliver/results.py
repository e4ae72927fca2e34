"""All that a run leaves in its folder, from its journal alone: making it twice gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.deliver.pages.page import (
    PLOTS,
    PageTexts,
    page_texts,
    plot_files,
    report_json,
    report_markdown,
    report_page,
)
from tunesmith.deliver.tuned import build_delivery, tuned_files
from tunesmith.run.candidates import Templates
from tunesmith.run.journal import is_broken
from tunesmith.run.report import Report, build_report
from tunesmith.run.state import State

TUNED = "tuned"


@dataclass(frozen=True)
class Results:
    tuned: dict[str, bytes]  # by name; of a run that has ended
    report: Report
    texts: PageTexts  # what its page shows beside the report

    def files(self, templates: Templates, state: State) -> dict[str, bytes]:
        """By their path in the run's folder."""
        won = {name: templates.of(state.candidate(own)) for name, own in self.report.templates.items()}
        return {
            **{name: one.as_delivered(templates.problem).encode() for name, one in won.items()},
            "report.md": report_markdown(self.report).encode(),
            "report.json": report_json(self.report),
            "report.html": report_page(self.report, self.texts).encode(),
            **{f"{TUNED}/{name}": data for name, data in self.tuned.items()},
            **{f"{PLOTS}/{name}": data for name, data in plot_files(self.report).items()},
        }


def build_results(templates: Templates, state: State, stored: Callable[[str], bytes]) -> Results:
    """`stored` gives what lies beside the journal, by its digest."""
    problem, tuned, dispatch = templates.problem, dict[str, bytes](), None
    if state.stopped is not None and not is_broken(state.unproven):
        made = build_delivery(problem, state, templates.lookup(state))
        tuned, dispatch = tuned_files(problem, state.device, made, stored), made.dispatch
    names = tuple(f"{TUNED}/{name}" for name in tuned)
    report = build_report(problem, state, names, templates=templates, dispatch=dispatch)
    return Results(tuned, report, page_texts(templates, state, dispatch, tuned))
