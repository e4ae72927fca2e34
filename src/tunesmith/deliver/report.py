"""The report as the user keeps it: JSON for programs, Markdown for people."""

from __future__ import annotations

from tunesmith.core.codec import encode
from tunesmith.core.report import Report, config_text, interval_text
from tunesmith.core.survey import LABELS, SurveyReport
from tunesmith.core.untrusted import plain

_HARMLESS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"&#{ord(c)};" for c in "|`[]*_~$\\"}


def report_json(report: Report) -> bytes:
    return encode(report) + b"\n"


def report_markdown(report: Report, story: str = "") -> str:
    lines = [f"# {report.problem}", ""]
    built = f", built with {_cell(report.compiler)}" if report.compiler else ""
    if report.survey is not None:
        lines += [f"For {_cell(report.device)}, which is not here{built}.", "", *_survey(report.survey)]
        return "\n".join(lines + _appendix(report)) + "\n"
    lines += [f"{_cell(report.device)} ({_cell(report.driver)}){built}, {report.judged_by}.", ""]
    lines += ["| workload | sizes | before | after | speed-up | 95 % interval | configuration |"]
    lines += ["|---|---|---:|---:|---:|---|---|"]
    for w in report.workloads:
        sizes = " ".join(f"{k}={v}" for k, v in w.sizes.items())
        lines.append(
            f"| {w.name} | {sizes} | {w.baseline_us:.1f} µs | {w.tuned_us:.1f} µs | {w.speedup:.2f}× "
            f"| {interval_text(w)} | {config_text(w.config)} |"
        )
    lines.append("")
    if report.geometric_mean is not None:
        general = config_text(report.general)
        lines.append(f"Geometric mean {report.geometric_mean:.2f}×. General configuration: {general}.")
    counts = ", ".join(f"{n} {status}" for status, n in report.evaluations.items()) or "none"
    lines.append(
        f"{sum(report.evaluations.values())} evaluations ({counts}) "
        f"of {report.space.get('feasible', 0)} feasible configurations, "
        f"{report.space.get('combinations', 0)} combinations; {report.reason}. "
        f"Verified on {report.verified_cases} fresh cases. {report.seconds:.1f} s."
    )
    if report.busy is not None:
        lines.append(f"During the search the device was in kernels {report.busy:.0%} of the time.")
    if story:
        lines += ["", story]
    return "\n".join(lines + _appendix(report)) + "\n"


def _survey(survey: SurveyReport) -> list[str]:
    counts = ", ".join(f"{n} {'can run' if s == 'ok' else s}" for s, n in survey.statuses.items()) or "none"
    lines = [f"{sum(survey.statuses.values())} of {survey.planned} configurations built ({counts})."]
    if survey.spans:
        lines += ["", "| by the compiler | original | least | median | most |", "|---|---:|---:|---:|---:|"]
    for name, span in survey.spans.items():
        own = "" if span.original is None else span.original
        lines.append(f"| {LABELS[name]} | {own} | {span.least} | {span.median:g} | {span.most} |")
    if survey.spilling:
        lines += ["", "## What spills registers", "", "| configuration | bytes |", "|---|---:|"]
        lines += [f"| {config_text(s.config)} | {s.spills} |" for s in survey.spilling]
    return lines


def _appendix(report: Report) -> list[str]:
    lines: list[str] = []
    if report.failures:
        lines += ["", "## What did not work", "", "| configuration | status | why |", "|---|---|---|"]
        lines += [f"| {config_text(f.config)} | {f.status} | {_cell(f.detail)} |" for f in report.failures]
    lines += ["", "## Digests and versions", ""]
    lines += [f"- {name}: `{value}`" for name, value in (*report.digests.items(), *report.versions.items())]
    return lines


def _cell(text: str) -> str:
    """What compilers, kernels and drivers say is not ours: one line, nothing Markdown or HTML acts upon."""
    return "".join(_HARMLESS.get(letter, letter) for letter in " ".join(plain(text).split())[:300])
