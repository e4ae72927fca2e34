"""What is known of kernels at one workload, a row for each kind of fact and a cell for each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.core.counted import counted
from tunesmith.core.profile.case import percent
from tunesmith.core.profile.diagnose import View
from tunesmith.core.profile.facts import Counters, Direction, Instructions, Profile
from tunesmith.core.profile.roofline import roofline
from tunesmith.deliver.quantities import rate_text, seconds_text
from tunesmith.deliver.svg import times

MOST_STALLS = 3
LEAST_STALL = 0.1  # share of waiting that is worth a word


def rows_of(views: Sequence[View]) -> list[list[str]]:
    """The first cell is what the row is about; rows without a fact are left out."""
    profiles, found = [v.profile for v in views], [v.diagnosis for v in views]
    rows = [
        ["", *(p.kernel for p in profiles)],
        ["time", *(seconds_text(p.seconds) if p.seconds else "" for p in profiles)],
        ["floor", *map(_floor, profiles)],
        ["distance", *(f"{times(d.distance)} its floor" if d.distance else "" for d in found)],
        ["bandwidth", *(_bandwidth(p) for p in profiles)],
        ["bound by", *(d.bound for d in found)],
        ["launch", *(_launch(p) for p in profiles)],
        ["occupancy", *(_occupancy(p) for p in profiles)],
        ["build", *(_build(p) for p in profiles)],
        ["code", *(_code(p.static.instructions) for p in profiles)],
        ["other launches", *(_others(p) for p in profiles)],
        ["experiments", *(_experiments(p) for p in profiles)],
        ["counters", *(_counters(p.counters) for p in profiles)],
    ]
    return [row for row in rows if any(row[1:])]


def _others(profile: Profile) -> str:
    """Of several launches those that the rows above do not tell of."""
    told = []
    for part in profile.parts:
        if part is not profile.main:
            own = replace(profile, static=part.static, launch=part.launch)
            taken = f" ({percent(part.share)} of the time)" if part.share is not None else ""
            facts = (_launch(own), _occupancy(own), _build(own))
            told.append(f"{part.entry}{taken}: {'; '.join(fact for fact in facts if fact)}")
    return " | ".join(told)


def _floor(profile: Profile) -> str:
    floor = roofline(profile).floor
    if floor is None:
        return ""
    return f"{seconds_text(floor.seconds)} by {floor.ceiling}{'' if floor.measured else ' (data sheet)'}"


def _bandwidth(profile: Profile) -> str:
    if not profile.seconds or profile.work is None or not profile.work.bytes:
        return ""
    return f"{rate_text(profile.work.bytes / profile.seconds)} of what must move"


def _launch(profile: Profile) -> str:
    launch = profile.launch
    if launch is None:
        return ""
    blocks, threads = counted(launch.blocks, "block"), counted(launch.threads, "thread")
    parts = [f"{blocks} of {threads} on {counted(launch.sms, 'unit')}"]
    if launch.waves is not None:
        parts.append(f"{launch.waves:.2f} waves")
    if launch.last_wave is not None and launch.waves is not None and launch.waves > 1:
        parts.append(f"the last {percent(launch.last_wave)} full")
    if launch.idle_lanes > 0:
        parts.append(f"{percent(launch.idle_lanes)} of the lanes without a thread")
    if launch.surplus:
        parts.append(f"{percent(launch.surplus)} of the threads without an element")
    return ", ".join(parts)


def _occupancy(profile: Profile) -> str:
    launch = profile.launch
    if launch is None or launch.occupancy is None:
        return ""
    by = f", limited by {' and '.join(launch.limited_by)}" if launch.limited_by else ""
    return f"{launch.occupancy} %{by}"


def _build(profile: Profile) -> str:
    own = profile.static.resources
    named = (
        (own.registers, "registers"),
        (own.shared, "bytes shared"),
        (own.spills, "bytes spilled"),
        (own.private, "bytes of stack"),
    )
    return ", ".join(f"{value} {what}" for value, what in named if value is not None)


def _code(code: Instructions | None) -> str:
    """What the machine code has, as often as it stands there."""
    if code is None:
        return ""
    mix = code.all
    parts = [text for text in (_widths(code, "load"), _widths(code, "store")) if text]
    named = (
        (mix.local_load + mix.local_store, "local access", "local accesses"),
        (mix.fp64, "in fp64", "in fp64"),
        (mix.division, "integer division", "integer divisions"),
        (mix.slow_conversion, "slow conversion", "slow conversions"),
        (mix.tensor, "tensor instruction", "tensor instructions"),
    )
    parts += [f"{count} {one if count == 1 else many}" for count, one, many in named if count]
    return ", ".join([counted(mix.total, "instruction"), *parts])


def _widths(code: Instructions, direction: Direction) -> str:
    """`global loads 16 B ×4, 2 B ×1`, the widest first."""
    widths: dict[int, int] = {}
    for access in code.accesses:
        if access.space == "global" and access.direction == direction:
            widths[access.width] = widths.get(access.width, 0) + access.count
    each = [f"{width} B ×{widths[width]}" for width in sorted(widths, reverse=True)]
    return f"global {direction}s {', '.join(each)}" if each else ""


def _experiments(profile: Profile) -> str:
    """The same code under other conditions; it is not edited, and its results are thrown away."""
    tried, parts = profile.experiments, []
    if tried.warm and tried.cold:
        parts.append(f"warm {seconds_text(tried.warm)}, cold {seconds_text(tried.cold)}")
    if tried.half_grid and tried.whole_grid:
        half, whole = seconds_text(tried.half_grid), seconds_text(tried.whole_grid)
        parts.append(f"half the grid {half} of {whole} ({percent(tried.half_grid / tried.whole_grid)})")
    if tried.blocks:
        blocks = ", ".join(f"{b.threads}: {seconds_text(b.seconds)}" for b in tried.blocks)
        parts.append(f"threads in a block {blocks}")
    return "; ".join(parts)


def _counters(own: Counters | None) -> str:
    if own is None:
        return ""
    shares = (
        ("DRAM", own.dram),
        ("L2", own.l2),
        ("L1", own.l1),
        ("issue", own.issue),
        ("occupancy", own.occupancy),
    )
    parts = [f"{name} {percent(value)}" for name, value in shares if value is not None]
    if own.eligible_warps is not None:
        parts.append(f"{own.eligible_warps:.2f} warps ready a cycle")
    for asked, what in ((own.load_sectors, "load"), (own.store_sectors, "store")):
        if asked is not None:
            parts.append(f"{asked:.1f} sectors a {what}")
    if own.shared_wavefronts and own.shared_conflicts is not None:
        lost = percent(own.shared_conflicts / own.shared_wavefronts)
        parts.append(f"bank conflicts {lost} of shared memory's cycles")
    waits = [(reason, share) for reason, share in own.stalls[:MOST_STALLS] if share >= LEAST_STALL]
    if waits:
        parts.append(f"waiting for {', '.join(f'{reason} {percent(share)}' for reason, share in waits)}")
    return ", ".join(parts)
