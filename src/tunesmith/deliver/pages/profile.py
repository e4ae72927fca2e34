"""A profile as lines of text: what bounds each workload, the evidence, and what can be done. What is known of
kernels at one workload stands side by side, a row for each kind of fact and a cell for each kernel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from tunesmith.base.text import format_count, named_values, seconds_text, strip_controls
from tunesmith.deliver.pages.plots import format_ratio
from tunesmith.profiles.costs import format_percent
from tunesmith.profiles.facts import (
    Ceilings,
    Counters,
    Direction,
    Finding,
    Instructions,
    Profile,
    ProfilePage,
    View,
    WorkloadPage,
    WorkNeeded,
)
from tunesmith.profiles.roofline import OF_OPERATIONS, compute_roofline

WIDTH = 110
LABEL = 18  # columns of what stands at the left
MAX_FINDINGS = 5
MAX_REMEDIES = 3
MAX_STALLS = 3
LEAST_STALL = 0.1  # share of waiting that is worth a word
# How sure a finding is, from this confidence on.
SURE = ((0.8, "sure"), (0.5, "likely"), (0.0, "a guess"))
SOURCES = {
    "counters": "hardware counters", "static": "the code", "experiment": "an experiment", "timing": "the time"
}  # fmt: skip


def page_lines(page: ProfilePage) -> list[str]:
    built = f", built with {page.compiler}" if page.compiler else ""
    driver = " ".join(page.driver.split())
    lines = [f"{page.problem} on {page.device}{f' ({driver})' if driver else ''}{built}"]
    everywhere = _told_everywhere(page)
    if page.missing:
        lines += _labelled_lines("not measured", f"{page.missing}. What follows is what builds alone tell")
    else:
        lines += _labelled_lines("ceilings", ceilings_text(page.ceilings))
    for workload in page.workloads:
        lines += ["", *_workload_page_lines(workload, everywhere)]
    lines.append("")
    seen = "" if page.missing else " and experiments"
    for reason in page.no_counters:
        lines += _labelled_lines("no counters", f"{reason}; the code{seen} told what there is")
    for note in (*everywhere, *page.notes):
        lines += _labelled_lines("note", note)
    if page.plot:
        lines += _labelled_lines("plot", page.plot)
    return [strip_controls(line).rstrip() for line in lines]


def _told_everywhere(page: ProfilePage) -> tuple[str, ...]:
    """Notes that every kernel has at every workload: once is enough."""
    every = [_view_notes(view) for workload in page.workloads for view in workload.views]
    return tuple(note for note in every[0] if all(note in notes for notes in every)) if every else ()


def _view_notes(view: View) -> tuple[str, ...]:
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
            parts.append(f"{kind} {format_scaled(rate)}flop/s")
    if ceilings.cache_bytes:
        fast = f" at {rate_text(ceilings.cache_bandwidth)}" if ceilings.cache_bandwidth else ""
        parts.append(f"last-level cache {bytes_text(ceilings.cache_bytes)}{fast}")
    if not parts:
        return "none were measured"
    day = f" (measured {ceilings.measured_on})" if ceilings.measured_on else ""
    return "; ".join(parts) + day


def _workload_page_lines(page: WorkloadPage, everywhere: Sequence[str]) -> list[str]:
    sizes = named_values(page.sizes)
    work = page.views[0].profile.work
    moved = f": {work_text(work)}" if work else ""
    head = f"{page.name}, {sizes}{', warm' if page.warm else ''}{moved}"
    lines = [*textwrap.wrap(head, WIDTH, subsequent_indent="  "), *_column_lines(rows_of(page.views))]
    for view in page.views:
        lines += _view_finding_lines(view, everywhere)
    return lines


def work_text(work: WorkNeeded) -> str:
    ways = f"{bytes_text(work.read)} read, {bytes_text(work.written)} written"
    text = f"{bytes_text(work.bytes)} must move ({ways})"
    kinds = [(kind, getattr(work.operations, kind)) for kind in OF_OPERATIONS]
    operations = ", ".join(f"{format_scaled(count)}flop in {kind}" for kind, count in kinds if count)
    return f"{text}, {operations}" if operations else text


def _column_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Side by side, each wrapped within its share of the width."""
    if not rows:
        return []
    count = len(rows[0]) - 1
    width = (WIDTH - 2 - LABEL - 2 * (count - 1)) // count
    lines = []
    for label, *cells in rows:
        wrapped = [textwrap.wrap(strip_controls(cell), width) or [""] for cell in cells]
        for number in range(max(map(len, wrapped))):
            parts = [(cell[number] if number < len(cell) else "").ljust(width) for cell in wrapped]
            lines.append(f"  {label if number == 0 else '':<{LABEL}}{'  '.join(parts)}".rstrip())
    return lines


def _view_finding_lines(view: View, everywhere: Sequence[str]) -> list[str]:
    diagnosis = view.diagnosis
    lines = [f"  {view.profile.kernel}:"]
    if not diagnosis.findings:  # else the first of them says the same
        lines += _wrap_text(diagnosis.summary, "    ")
    for number, finding in enumerate(diagnosis.findings[:MAX_FINDINGS], start=1):
        lines += _format_finding(number, finding)
    if len(diagnosis.findings) > MAX_FINDINGS:
        lines.append(f"    and {len(diagnosis.findings) - MAX_FINDINGS} more; all are in --json")
    for note in _view_notes(view):
        if note not in everywhere:
            lines += _wrap_text(f"note: {note}", "    ")
    return lines


def _format_finding(number: int, finding: Finding) -> list[str]:
    kind = finding.kind.replace("_", " ")
    sure = next(word for least, word in SURE if finding.confidence >= least)
    stake = f"{sure}, about {100 * finding.gain:.0f} % of the time, by {SOURCES[finding.source]}"
    lines = _wrap_text(f"{number}. {kind} ({stake}): {'; '.join(finding.evidence)}", "    ")
    for remedy in finding.remedies[:MAX_REMEDIES]:
        lines += _wrap_text(f"→ {remedy}: {remedy.meaning}", "       ")
    return lines


def _wrap_text(text: str, indent: str) -> list[str]:
    return textwrap.wrap(strip_controls(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "   ")


def _labelled_lines(label: str, text: str) -> list[str]:
    first, others = f"{label:<14}", " " * 14
    whole = textwrap.TextWrapper(WIDTH, first, others, break_long_words=False, break_on_hyphens=False)
    return whole.wrap(strip_controls(text))


def rows_of(views: Sequence[View]) -> list[list[str]]:
    """The first cell is what the row is about; rows without a fact are left out."""
    profiles, found = [v.profile for v in views], [v.diagnosis for v in views]
    rows = [
        ["", *(p.kernel for p in profiles)],
        ["time", *(seconds_text(p.seconds) if p.seconds else "" for p in profiles)],
        ["floor", *map(_floor_text, profiles)],
        ["distance", *(f"{format_ratio(d.distance)} its floor" if d.distance else "" for d in found)],
        ["bandwidth", *(_bandwidth_text(p) for p in profiles)],
        ["bound by", *(d.bound for d in found)],
        ["launch", *(_launch_text(p) for p in profiles)],
        ["occupancy", *(_occupancy_text(p) for p in profiles)],
        ["build", *(_resource_text(p) for p in profiles)],
        ["code", *(_code_text(p.static.instructions) for p in profiles)],
        ["other launches", *(_other_launches(p) for p in profiles)],
        ["experiments", *(_experiment_text(p) for p in profiles)],
        ["counters", *(_counter_text(p.counters) for p in profiles)],
    ]
    return [row for row in rows if any(row[1:])]


def _other_launches(profile: Profile) -> str:
    """Of several launches those that the rows above do not tell of."""
    shown = []
    for part in profile.parts:
        if part is not profile.main:
            own = replace(profile, static=part.static, launch=part.launch)
            taken = f" ({format_percent(part.share)} of the time)" if part.share is not None else ""
            facts = (_launch_text(own), _occupancy_text(own), _resource_text(own))
            shown.append(f"{part.entry}{taken}: {'; '.join(fact for fact in facts if fact)}")
    return " | ".join(shown)


def _floor_text(profile: Profile) -> str:
    floor = compute_roofline(profile).floor
    if floor is None:
        return ""
    return f"{seconds_text(floor.seconds)} by {floor.ceiling}{'' if floor.measured else ' (data sheet)'}"


def _bandwidth_text(profile: Profile) -> str:
    if not profile.seconds or profile.work is None or not profile.work.bytes:
        return ""
    return f"{rate_text(profile.work.bytes / profile.seconds)} of what must move"


def _launch_text(profile: Profile) -> str:
    launch = profile.launch
    if launch is None:
        return ""
    blocks, threads = format_count(launch.blocks, "block"), format_count(launch.threads, "thread")
    parts = [f"{blocks} of {threads} on {format_count(launch.sms, 'unit')}"]
    if launch.waves is not None:
        parts.append(f"{launch.waves:.2f} waves")
    if launch.last_wave is not None and launch.waves is not None and launch.waves > 1:
        parts.append(f"the last {format_percent(launch.last_wave)} full")
    if launch.idle_lanes > 0:
        parts.append(f"{format_percent(launch.idle_lanes)} of the lanes without a thread")
    if launch.idle_threads:
        parts.append(f"{format_percent(launch.idle_threads)} of the threads without an element")
    return ", ".join(parts)


def _occupancy_text(profile: Profile) -> str:
    launch = profile.launch
    if launch is None or launch.occupancy is None:
        return ""
    by = f", limited by {' and '.join(launch.limited_by)}" if launch.limited_by else ""
    return f"{launch.occupancy} %{by}"


def _resource_text(profile: Profile) -> str:
    own = profile.static.resources
    values = own.registers, own.shared, own.spills, own.private
    named = zip(values, ("registers", "bytes shared", "bytes spilled", "bytes of stack"), strict=True)
    return ", ".join(f"{value} {what}" for value, what in named if value is not None)


def _code_text(code: Instructions | None) -> str:
    """What the machine code has, as often as it stands there."""
    if code is None:
        return ""
    mix = code.all
    parts = [text for text in (_access_widths(code, "load"), _access_widths(code, "store")) if text]
    named = (
        (mix.local_load + mix.local_store, "local access", "local accesses"),
        (mix.fp64, "in fp64", "in fp64"),
        (mix.division, "integer division", "integer divisions"),
        (mix.slow_conversion, "slow conversion", "slow conversions"),
        (mix.tensor, "tensor instruction", "tensor instructions"),
    )
    parts += [f"{count} {one if count == 1 else many}" for count, one, many in named if count]
    return ", ".join([format_count(mix.total, "instruction"), *parts])


def _access_widths(code: Instructions, direction: Direction) -> str:
    """`global loads 16 B ×4, 2 B ×1`, the widest first."""
    widths: dict[int, int] = {}
    for access in code.accesses:
        if access.space == "global" and access.direction == direction:
            widths[access.width] = widths.get(access.width, 0) + access.count
    each = [f"{width} B ×{widths[width]}" for width in sorted(widths, reverse=True)]
    return f"global {direction}s {', '.join(each)}" if each else ""


def _experiment_text(profile: Profile) -> str:
    """The same code under other conditions; it is not edited, and its results are thrown away."""
    tried, parts = profile.experiments, []
    if tried.warm and tried.cold:
        parts.append(f"warm {seconds_text(tried.warm)}, cold {seconds_text(tried.cold)}")
    if tried.half_grid and tried.whole_grid:
        half, whole = seconds_text(tried.half_grid), seconds_text(tried.whole_grid)
        share = format_percent(tried.half_grid / tried.whole_grid)
        parts.append(f"half the grid {half} of {whole} ({share})")
    if tried.blocks:
        blocks = ", ".join(f"{b.threads}: {seconds_text(b.seconds)}" for b in tried.blocks)
        parts.append(f"threads in a block {blocks}")
    return "; ".join(parts)


def _counter_text(own: Counters | None) -> str:
    if own is None:
        return ""
    shares = {"DRAM": own.dram, "L2": own.l2, "L1": own.l1, "issue": own.issue, "occupancy": own.occupancy}
    parts = [f"{name} {format_percent(value)}" for name, value in shares.items() if value is not None]
    if own.eligible_warps is not None:
        parts.append(f"{own.eligible_warps:.2f} warps ready a cycle")
    for asked, what in ((own.load_sectors, "load"), (own.store_sectors, "store")):
        if asked is not None:
            parts.append(f"{asked:.1f} sectors a {what}")
    if own.shared_wavefronts and own.shared_conflicts is not None:
        lost = format_percent(own.shared_conflicts / own.shared_wavefronts)
        parts.append(f"bank conflicts {lost} of shared memory's cycles")
    waits = [(reason, share) for reason, share in own.stalls[:MAX_STALLS] if share >= LEAST_STALL]
    if waits:
        reasons = (f"{reason} {format_percent(share)}" for reason, share in waits)
        parts.append(f"waiting for {', '.join(reasons)}")
    return ", ".join(parts)


def bytes_text(count: float) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count:.0f} bytes"


def rate_text(rate: float) -> str:
    return f"{format_scaled(rate)}B/s"


def format_scaled(value: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "
