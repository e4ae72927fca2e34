"""A profile as lines of text: what bounds each workload, the evidence, and what can be done."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tunesmith.core.named_values import named_values
from tunesmith.core.profile.diagnose import ProfilePage, View, WorkloadPage
from tunesmith.core.profile.facts import Ceilings, WorkNeeded
from tunesmith.core.profile.findings import Finding
from tunesmith.core.profile.remedies import MEANINGS
from tunesmith.core.profile.roofline import OF_OPERATIONS
from tunesmith.core.untrusted import plain
from tunesmith.deliver.profile_rows import rows_of
from tunesmith.deliver.quantities import bytes_text, rate_text, scaled, seconds_text

WIDTH = 110
LABEL = 18  # columns of what stands at the left
MOST_FINDINGS = 5
MOST_REMEDIES = 3
# How sure a finding is, from this confidence on.
SURE = ((0.8, "sure"), (0.5, "likely"), (0.0, "a guess"))
SOURCES = {
    "counters": "hardware counters",
    "static": "the code",
    "experiment": "an experiment",
    "timing": "the time",
}


def page_lines(page: ProfilePage) -> list[str]:
    built = f", built with {page.compiler}" if page.compiler else ""
    driver = " ".join(page.driver.split())
    lines = [f"{page.problem} on {page.device}{f' ({driver})' if driver else ''}{built}"]
    everywhere = _told_everywhere(page)
    if page.missing:
        lines += _entry("not measured", f"{page.missing}. What follows is what builds alone tell")
    else:
        lines += _entry("ceilings", ceilings_text(page.ceilings))
    for workload in page.workloads:
        lines += ["", *_workload(workload, everywhere)]
    lines.append("")
    seen = "" if page.missing else " and experiments"
    for reason in page.no_counters:
        lines += _entry("no counters", f"{reason}; the code{seen} told what there is")
    for note in (*everywhere, *page.notes):
        lines += _entry("note", note)
    if page.plot:
        lines += _entry("plot", page.plot)
    return [plain(line).rstrip() for line in lines]


def _told_everywhere(page: ProfilePage) -> tuple[str, ...]:
    """Notes that every kernel has at every workload: once is enough."""
    told = [_notes(view) for workload in page.workloads for view in workload.views]
    return tuple(note for note in told[0] if all(note in notes for notes in told)) if told else ()


def _notes(view: View) -> tuple[str, ...]:
    own = (*view.notes, *view.diagnosis.notes)
    return tuple(note for note in own if not note.startswith("no hardware counters"))  # told at the end


def ceilings_text(ceilings: Ceilings) -> str:
    parts = []
    for what, points in (("copy", ceilings.copy), ("read", ceilings.read)):
        known = [p for p in points if p.seconds > 0]
        if known:
            best = max(known, key=lambda p: p.bytes / p.seconds)
            parts.append(f"{what} {rate_text(best.bytes / best.seconds)} at {bytes_text(best.bytes)}")
    if ceilings.launch is not None:
        inside = f", {seconds_text(ceilings.graph_launch)} in a graph" if ceilings.graph_launch else ""
        parts.append(f"launch {seconds_text(ceilings.launch)}{inside}")
    for kind in OF_OPERATIONS:
        rate = getattr(ceilings, kind)
        if rate:
            parts.append(f"{kind} {scaled(rate)}flop/s")
    if ceilings.cache_bytes:
        fast = f" at {rate_text(ceilings.cache_bandwidth)}" if ceilings.cache_bandwidth else ""
        parts.append(f"last-level cache {bytes_text(ceilings.cache_bytes)}{fast}")
    if not parts:
        return "none were measured"
    day = f" (measured {ceilings.measured_on})" if ceilings.measured_on else ""
    return "; ".join(parts) + day


# -- one workload -----------------------------------------------------------------------------------------


def _workload(page: WorkloadPage, everywhere: Sequence[str]) -> list[str]:
    sizes = named_values(page.sizes)
    work = page.views[0].profile.work
    moved = f": {work_text(work)}" if work else ""
    head = f"{page.name}, {sizes}{', warm' if page.warm else ''}{moved}"
    lines = [*textwrap.wrap(head, WIDTH, subsequent_indent="  "), *_columns(rows_of(page.views))]
    for view in page.views:
        lines += _findings(view, everywhere)
    return lines


def work_text(work: WorkNeeded) -> str:
    ways = f"{bytes_text(work.read)} read, {bytes_text(work.written)} written"
    text = f"{bytes_text(work.bytes)} must move ({ways})"
    kinds = [(kind, getattr(work.operations, kind)) for kind in OF_OPERATIONS]
    counted = ", ".join(f"{scaled(count)}flop in {kind}" for kind, count in kinds if count)
    return f"{text}, {counted}" if counted else text


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Side by side, each wrapped within its share of the width."""
    if not rows:
        return []
    count = len(rows[0]) - 1
    width = (WIDTH - 2 - LABEL - 2 * (count - 1)) // count
    lines = []
    for label, *cells in rows:
        wrapped = [textwrap.wrap(plain(cell), width) or [""] for cell in cells]
        for number in range(max(map(len, wrapped))):
            parts = [(cell[number] if number < len(cell) else "").ljust(width) for cell in wrapped]
            lines.append(f"  {label if number == 0 else '':<{LABEL}}{'  '.join(parts)}".rstrip())
    return lines


# -- findings ---------------------------------------------------------------------------------------------


def _findings(view: View, everywhere: Sequence[str]) -> list[str]:
    diagnosis = view.diagnosis
    lines = [f"  {view.profile.kernel}:"]
    if not diagnosis.findings:  # else the first of them says the same
        lines += _wrapped(diagnosis.summary, "    ")
    for number, finding in enumerate(diagnosis.findings[:MOST_FINDINGS], start=1):
        lines += _finding(number, finding)
    if len(diagnosis.findings) > MOST_FINDINGS:
        lines.append(f"    and {len(diagnosis.findings) - MOST_FINDINGS} more; all are in --json")
    for note in _notes(view):
        if note not in everywhere:
            lines += _wrapped(f"note: {note}", "    ")
    return lines


def _finding(number: int, finding: Finding) -> list[str]:
    kind = finding.kind.replace("_", " ")
    sure = next(word for least, word in SURE if finding.confidence >= least)
    stake = f"{sure}, about {100 * finding.gain:.0f} % of the time, by {SOURCES[finding.source]}"
    lines = _wrapped(f"{number}. {kind} ({stake}): {'; '.join(finding.evidence)}", "    ")
    for remedy in finding.remedies[:MOST_REMEDIES]:
        lines += _wrapped(f"→ {remedy}: {MEANINGS[remedy]}", "       ")
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "   ")


def _entry(label: str, text: str) -> list[str]:
    width = 14
    return textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=f"{label:<{width}}",
        subsequent_indent=" " * width,
        break_long_words=False,
        break_on_hyphens=False,
    )
