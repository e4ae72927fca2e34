"""Reports of one problem, workload by workload: is what a later run delivers as fast as the first?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.base.errors import BadInput
from tunesmith.base.text import (
    Markup,
    escape_markdown,
    format_count,
    html_element,
    markdown_table,
    named_values,
    truncate_text,
)
from tunesmith.deliver.pages import page, plots
from tunesmith.deliver.pages.parts import Grid, config_text
from tunesmith.deliver.pages.plots import MAX_ROWS, ROWS_RIGHT, ratio_scale
from tunesmith.run.figures import Figure, mean_figure
from tunesmith.run.folder import DAMAGED
from tunesmith.run.journal import is_broken
from tunesmith.run.report import Report, WorkloadReport

DRIFTED = 1.05  # an original whose times differ by more is told of
DRIFT = 1.1  # allowed for where nothing but times of two runs can be compared


@dataclass(frozen=True)
class WorkloadDifference:
    """`ratio` is the speed-up after over the one before, each over the original in the same sittings: below 1
    what is delivered got slower. Times of two runs say nothing: a machine drifts, and takes both sides along.
    Where the originals are not the same there is nothing else, so they are compared, drift allowed for."""

    name: str
    sizes: dict[str, int]
    weight: float
    ratio: float
    before_us: float
    after_us: float
    before_speedup: float
    after_speedup: float
    before_interval: tuple[float, float]  # of the speed-up
    after_interval: tuple[float, float]
    before_config: dict[str, int] | None  # None: the original stays
    after_config: dict[str, int] | None
    interval: tuple[float, float] = (0.0, math.inf)  # of the ratio: below 1 if those of the speed-ups exclude
    before_original_us: float = 0.0  # what the original took in the same sittings
    after_original_us: float = 0.0
    certified: bool = True  # on both sides

    @property
    def is_clear(self) -> bool:
        """Whether the intervals of the two speed-ups exclude each other."""
        return self.certified and not self.interval[0] <= 1 <= self.interval[1]

    @property
    def moved(self) -> str:
        """Which side is not as it was, in words; empty: none is, or nobody knows."""
        if not self.before_original_us or not self.after_original_us:
            return ""
        tuned, other = self.after_us / self.before_us, self.after_original_us / self.before_original_us
        was = f"from {self.before_original_us:.1f} to {self.after_original_us:.1f} µs"
        if not self.is_clear and abs(math.log(other)) > math.log(DRIFTED):
            side = "slower" if other > 1 else "faster"
            return f"the original was {side}, {was}, and the tuned kernel with it: the ratio is the same"
        if not self.is_clear:
            return ""
        if abs(math.log(tuned)) >= abs(math.log(other)):
            return f"the tuned kernel moved, from {self.before_us:.1f} to {self.after_us:.1f} µs"
        return f"the original moved, {was}, and the tuned kernel did not move with it"


@dataclass(frozen=True)
class ComparedRun:
    """What a run was made with, and what it came to."""

    name: str
    device: str
    driver: str
    compiler: str
    tunesmith: str  # its version
    strategy: str
    authors: str  # models, or the expert
    search: str
    seed: int
    evaluations: int
    seconds: float
    geometric_mean: float | None  # of its verified speed-ups
    headline: str = ""  # that in words

    @classmethod
    def of(cls, report: Report, name: str) -> ComparedRun:
        return cls(
            name,
            report.device,
            report.driver,
            report.compiler,
            report.versions.get("tunesmith", ""),
            report.strategy,
            report.models or ("the expert" if report.rounds else "given"),
            report.search,
            report.seed,
            sum(report.evaluations.values()),
            report.seconds,
            report.geometric_mean,
            report.figure.words if report.figure is not None else "",
        )


@dataclass(frozen=True)
class RunDifference:
    """The first run against the second; `others` has the first against each further one."""

    problem: str
    before: str  # what the runs are called
    after: str
    judged_by: str  # time or speed-up
    ratio: float  # the weighted geometric mean
    workloads: tuple[WorkloadDifference, ...]
    notes: tuple[str, ...] = ()
    version: int = 1
    runs: tuple[ComparedRun, ...] = ()  # all of them, the first first
    others: tuple[RunDifference, ...] = ()
    interval: tuple[float, float] = (0.0, math.inf)  # of the mean

    @property
    def pairs(self) -> tuple[RunDifference, ...]:
        """Each run against the first."""
        return (replace(self, others=()), *self.others)

    @property
    def worst(self) -> WorkloadDifference:
        return min(self.workloads, key=lambda w: w.ratio)

    def below(self, threshold: float) -> tuple[WorkloadDifference, ...]:
        """The workloads whose ratio is less than this, with all of its interval."""
        return tuple(w for w in self.workloads if w.certified and w.interval[1] < threshold)

    def unclear(self, threshold: float) -> tuple[WorkloadDifference, ...]:
        """Those of which nobody can tell: the ratio is less, not all of its interval is."""
        below = self.below(threshold)
        return tuple(w for w in self.workloads if w.ratio < threshold and w not in below)


def compare_reports(reports: Sequence[tuple[Report, str]]) -> RunDifference:
    """Two or more, each with its name; BadInput where one cannot be compared with the first."""
    (first, name), *rest = reports
    pairs = [compare_report_pair(first, other, name, called) for other, called in rest]
    runs = tuple(ComparedRun.of(report, called) for report, called in reports)
    return replace(pairs[0], runs=runs, others=tuple(pairs[1:]))


def compare_report_pair(before: Report, after: Report, before_name: str, after_name: str) -> RunDifference:
    """BadInput where the two cannot be compared."""
    for report, name in ((before, before_name), (after, after_name)):
        if is_broken(report.unproven):
            raise BadInput(f"this run is not verified: {report.unproven}", where=name, hint=DAMAGED)
        if not report.finished or not report.workloads:
            hint = f"finish it first: tunesmith resume {name}"
            raise BadInput("this run is not finished, so it has no winners", where=name, hint=hint)
    hint = "name two runs of the same problem"
    if before.problem != after.problem:
        fault = f"two problems cannot be compared: {before.problem} in {before_name}, {after.problem} here"
        raise BadInput(fault, where=after_name, hint=hint)
    old = {w.name: w for w in before.workloads}
    new = {w.name: w for w in after.workloads}
    changed = [n for n in old if n in new and (old[n].sizes, old[n].weight) != (new[n].sizes, new[n].weight)]
    if resized := [name for name in changed if old[name].sizes != new[name].sizes]:
        was, now = (named_values(side[resized[0]].sizes) for side in (old, new))
        fault = f"the workload {resized[0]} is not the same in both: {was} in {before_name}, {now} here"
        raise BadInput(fault, where=after_name, hint=hint)
    shared = [name for name in old if name in new]
    if not shared:
        both = f"{', '.join(old)} in {before_name}, {', '.join(new)} here"
        raise BadInput(f"the two have no workload in common: {both}", where=after_name, hint=hint)
    same_device = (before.backend, before.device) == (after.backend, after.device)
    by_time = same_device and not _same_original(before, after)
    rows = tuple(compared_workload(old[name], new[name], by_time) for name in shared)
    mean = mean_figure([Figure(row.ratio, *row.interval) for row in rows], [row.weight for row in rows])
    notes = _difference_notes(before, after, old, new, same_device)
    notes += [f"the weight of {name} is not the same in both; the second run's counts" for name in changed]
    judged_by = "time" if by_time else "speed-up"
    interval = mean.low, mean.high
    parts = (judged_by, mean.value, rows, tuple(notes))
    return RunDifference(before.problem, before_name, after_name, *parts, interval=interval)


def _same_original(before: Report, after: Report) -> bool:
    return before.digests.get("original source") == after.digests.get("original source")


def compared_workload(old: WorkloadReport, new: WorkloadReport, by_time: bool = False) -> WorkloadDifference:
    ratio = new.speedup / old.speedup
    low = _ratio_or_inf(new.interval[0], old.interval[1])
    high = _ratio_or_inf(new.interval[1], old.interval[0])
    if by_time:
        shift = old.tuned_us / new.tuned_us / ratio
        ratio, low, high = ratio * shift, low * shift / DRIFT, high * shift * DRIFT
    return WorkloadDifference(
        name=new.name,
        sizes=new.sizes,
        weight=new.weight,
        ratio=ratio,
        before_us=old.tuned_us,
        after_us=new.tuned_us,
        before_speedup=old.speedup,
        after_speedup=new.speedup,
        before_interval=old.interval,
        after_interval=new.interval,
        before_config=old.config,
        after_config=new.config,
        interval=(low, high),
        before_original_us=0.0 if by_time else old.baseline_us,
        after_original_us=new.baseline_us,
        certified=not old.doubt and not new.doubt,
    )


def _ratio_or_inf(one: float, other: float) -> float:
    return one / other if other > 0 else math.inf


def _difference_notes(
    before: Report,
    after: Report,
    old: Mapping[str, WorkloadReport],
    new: Mapping[str, WorkloadReport],
    same_device: bool,
) -> list[str]:
    notes = []
    if not same_device:
        notes.append(f"the devices are {before.device} and {after.device}")
    elif before.driver != after.driver:
        notes.append(f"the driver changed from {before.driver} to {after.driver}")
    if before.compiler != after.compiler:
        notes.append(f"the compiler changed from {before.compiler or 'none'} to {after.compiler or 'none'}")
    if not _same_original(before, after):
        what = f"times are compared, and {DRIFT - 1:.0%} either way may be the machine's drift"
        notes.append(
            f"the original kernel is not the same in both: {what if same_device else 'speed-ups say little'}"
        )
    doubts = {w.name: w.doubt for w in (*old.values(), *new.values()) if w.doubt}
    notes += [f"{name} is not certified in both runs: {doubt}" for name, doubt in doubts.items()]
    notes += [f"the first run was {before.unproven}"] if before.unproven else []
    notes += [f"the second run was {after.unproven}"] if after.unproven else []
    alone = [*(n for n in old if n not in new), *(n for n in new if n not in old)]
    if alone:
        notes.append(f"{format_count(len(alone), 'workload')} of one run alone: {', '.join(alone)}")
    return notes


# -- Runs of one problem side by side: as parts that a terminal shows, as Markdown, and as a page.


LONGEST_NAME = 80
MAX_RUNS = 8  # in a picture


def workload_grid(found: RunDifference) -> Grid:
    """Of two runs a row for each workload, else one for each workload and run, the first run's first."""
    if not found.others:
        figures = "before: | after: | ratio: | speed-up before: | speed-up after:"
        head = f"workload | {figures} | intervals of the speed-ups"
        return Grid(head, list(map(_pair_row, found.workloads)))
    head = "workload | run | time: | ratio: | speed-up: | 95 % interval | against the first"
    return Grid(head, [row for name in _workload_names(found) for row in _rows_of(found, name)])


def _pair_row(w: WorkloadDifference) -> tuple[str, ...]:
    spans = (
        f"{_interval_span(w.before_interval)}, {_interval_span(w.after_interval)}: "
        f"{_overlap_word(w)}, ratio {_ratio_span(w)}"
    )
    times = (f"{t:.1f} µs" for t in (w.before_us, w.after_us))
    return w.name, *times, f"{w.ratio:.3f}×", f"{w.before_speedup:.2f}×", f"{w.after_speedup:.2f}×", spans


def _workload_names(found: RunDifference) -> list[str]:
    return list(dict.fromkeys(w.name for pair in found.pairs for w in pair.workloads))


def _rows_of(found: RunDifference, name: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for pair in found.pairs:
        w = next((one for one in pair.workloads if one.name == name), None)
        if w is None:
            rows.append((name, pair.after, "", "", "", "", "it has no such workload"))
            continue
        if not any(row[1] == pair.before for row in rows):
            gain = (f"{w.before_speedup:.2f}×", _interval_span(w.before_interval))
            rows.insert(0, (name, pair.before, f"{w.before_us:.1f} µs", "1.000×", *gain, ""))
        gain = (f"{w.after_speedup:.2f}×", _interval_span(w.after_interval))
        words = f"by {pair.judged_by}, intervals {_overlap_word(w)}, ratio {_ratio_span(w)}"
        rows.append((name, pair.after, f"{w.after_us:.1f} µs", f"{w.ratio:.3f}×", *gain, words))
    return rows


def runs_grid(found: RunDifference) -> Grid:
    rows = [
        (
            r.name, r.device, r.driver, r.compiler or "not told", f"Tunesmith {r.tunesmith}".strip(),
            f"{r.strategy}, {r.authors}", f"{r.search}, seed {r.seed}", r.evaluations, r.headline,
        )
        for r in found.runs
    ]  # fmt: skip
    head = "run | device | driver | compiler | version | strategy | search | tried: | mean speed-up:"
    return Grid(head, rows)


def mean_lines(found: RunDifference) -> list[tuple[str, str]]:
    """What each run comes to against the first, with its name where there are several."""
    if not found.others:
        return [("geometric mean", _mean_text(found))]
    return [("geometric mean", f"{_mean_text(pair)}, {pair.after}") for pair in found.pairs]


def _mean_text(pair: RunDifference) -> str:
    return f"{pair.ratio:.3f}× ({pair.interval[0]:.3f} to {pair.interval[1]:.3f}) by {pair.judged_by}"


def config_lines(found: RunDifference) -> list[tuple[str, str]]:
    """Where the winners are not the same."""
    lines = []
    for pair in found.pairs:
        whose = f" in {pair.after}" if found.others else ""
        for w in pair.workloads:
            if w.before_config != w.after_config:
                was, now = config_text(w.before_config), config_text(w.after_config)
                lines.append((w.name, f"{was} before, {now} after{whose}"))
    return lines


def note_lines(found: RunDifference) -> list[tuple[str, str]]:
    several = bool(found.others)
    return [
        ("note", f"{pair.after}: {note}" if several else note)
        for pair in found.pairs
        for note in (*(f"{w.name}: {w.moved}" for w in pair.workloads if w.moved), *pair.notes)
    ]


def slower_text(found: RunDifference, threshold: float) -> str:
    """The workloads below the threshold, with their runs where there are several; empty: there is none."""
    return _list_workloads(found, [pair.below(threshold) for pair in found.pairs])


def unclear_text(found: RunDifference, threshold: float) -> str:
    """Those of which it cannot be told."""
    return _list_workloads(found, [pair.unclear(threshold) for pair in found.pairs])


def _list_workloads(found: RunDifference, chosen: Sequence[Sequence[WorkloadDifference]]) -> str:
    several = bool(found.others)
    return ", ".join(
        f"{w.name} {w.ratio:.3f}× ({_ratio_span(w)}){f' in {pair.after}' if several else ''}"
        for pair, workloads in zip(found.pairs, chosen, strict=True)
        for w in workloads
    )


def _interval_span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def _ratio_span(w: WorkloadDifference) -> str:
    return f"{w.interval[0]:.3f} to {w.interval[1]:.3f}"


def _overlap_word(w: WorkloadDifference) -> str:
    return "apart" if w.is_clear else "overlap"


# -- as a whole ---------------------------------------------------------------------------------------------


def difference_markdown(found: RunDifference, threshold: float | None = None) -> str:
    """For the summary of a job in CI."""
    lines = [f"# {escape_markdown(found.problem)}: {len(found.pairs) + 1} runs", ""]
    if threshold is not None:
        lines += [escape_markdown(_verdict_text(found, threshold)), ""]
    for grid in (workload_grid(found), runs_grid(found)):
        lines += [
            *markdown_table(grid.head, ([escape_markdown(str(v)) for v in row] for row in grid.rows)),
            "",
        ]
    told = [*mean_lines(found), *config_lines(found), *note_lines(found)]
    return "\n".join([*lines, *(f"- {escape_markdown(f'{name}: {text}')}" for name, text in told)]) + "\n"


def difference_page(found: RunDifference, threshold: float | None = None) -> str:
    """In the form of a run's own page."""
    name = (
        f"{truncate_text(found.problem, LONGEST_NAME)}: {format_count(len(found.pairs) + 1, 'run')} compared"
    )
    inside: list[Markup] = [html_element("h2", "What each delivers, verified")]
    figures = []
    for pair in found.pairs[:MAX_RUNS]:
        words = f"{truncate_text(pair.after, 200)}, by {pair.judged_by}, geometric mean"
        figures.append((f"{pair.ratio:.3f}×", words, pair.ratio > 1))
    inside.append(page.figures_markup(figures))
    if threshold is not None:
        inside.append(html_element("p", _verdict_text(found, threshold)))
    inside.append(page.table_markup(workload_grid(found), "Ratios to the first run; below 1 it is slower"))
    words = "Verified speed-ups of each run with their intervals, as in the table above"
    inside.append(page.picture_markup(words, runs_svg(found)))
    runs = page.table_markup(runs_grid(found), "Made with")
    parts = [html_element("section", *inside, id="verified")]
    parts.append(html_element("section", html_element("h2", "The runs"), runs))
    told = [*config_lines(found), *note_lines(found)]
    if told:
        rows = [
            part
            for name, text in told
            for part in (html_element("dt", name), html_element("dd", truncate_text(text, 1200)))
        ]
        parts.append(
            html_element("section", html_element("h2", "What else differs"), html_element("dl", *rows))
        )
    about = f"Each against {truncate_text(found.before, 200)}."
    below = "Written by Tunesmith. All speed-ups are those of the verifications."
    return page.whole_page(name, about, parts, below)


def _verdict_text(found: RunDifference, threshold: float) -> str:
    slower, unclear = slower_text(found, threshold), unclear_text(found, threshold)
    below = f"Below {threshold}×: {slower}." if slower else f"No workload is below {threshold}×."
    return f"{below} Cannot tell: {unclear}." if unclear else below


LEFT, TOP, HIGH, BETWEEN = 240.0, 66.0, 22.0, 12.0


def runs_svg(found: RunDifference) -> bytes:
    """A block of rows for each workload: every run's verified speed-up with its interval."""
    blocks = [(name, _speedup_marks(found, name)) for name in _workload_names(found)[:MAX_ROWS]]
    bottom = TOP + sum(HIGH * len(marks) + BETWEEN for _, marks in blocks)
    drawing = plots.Drawing(
        820, bottom + 48, f"Verified speed-ups: {found.problem}", "dot: median; line: 95 % interval"
    )
    ends = [e for _, marks in blocks for _, _, at, span in marks for e in (at, *span) if 0 < e < float("inf")]
    x = ratio_scale([1.0, *ends])
    plots.x_axis(drawing, x, plots.Linear(0, 1, bottom, TOP), "speed-up over the original", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, plots.MUTED, 1, "5 4")
    y = TOP + BETWEEN / 2
    for name, marks in blocks:
        drawing.text(12, y + HIGH / 2 + 4, plots.fit_label(name, 90, 12), 12, bold=True)
        for place, (number, run, at, span) in enumerate(marks):
            middle, colour = y + HIGH * (place + 0.5), plots.PALETTE[number % len(plots.PALETTE)]
            drawing.text(LEFT - 34, middle + 4, plots.fit_label(run, 110, 11), 11, colour, "end")
            low, high = (x.at(min(max(end, x.low), x.high)) for end in span)
            drawing.line(low, middle, high, middle, colour, 2)
            drawing.circle(x.at(at), middle, 4.5, colour)
            drawing.text(ROWS_RIGHT + 14, middle + 4, plots.format_ratio(at), 12, plots.INK)
        y += HIGH * len(marks) + BETWEEN
    return drawing.render()


def _speedup_marks(found: RunDifference, name: str) -> list[tuple[int, str, float, tuple[float, float]]]:
    """Of each run that has the workload: its number, its name's end, its speed-up and the interval."""
    marks: list[tuple[int, str, float, tuple[float, float]]] = []
    for number, pair in enumerate(found.pairs[: MAX_RUNS - 1], 1):
        for w in (one for one in pair.workloads if one.name == name):
            if not marks:
                marks.append((0, _short_run_name(pair.before), w.before_speedup, w.before_interval))
            marks.append((number, _short_run_name(pair.after), w.after_speedup, w.after_interval))
    return marks


def _short_run_name(name: str) -> str:
    """The part of a path that tells runs apart."""
    parts: Sequence[str] = [part for part in name.split("/") if part and part != "report.json"]
    return parts[-1] if parts else name
