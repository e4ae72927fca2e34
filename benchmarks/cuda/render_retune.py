"""The part of the results page on kept templates at new sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.cuda import markdown as md
from benchmarks.cuda.retune import SECONDS, SHARE

HOW = (
    "Templates that won at an example's own sizes, searched again at new sizes, with no model. *Exhaustive*: "
    "every configuration. *Share*: the time of the exhaustive winner over the time of what is delivered, "
    "timed again in alternation. *Nothing known*: the same budget without the old run's outcomes. *Not "
    "retuned*: the old general configuration."
)

Told = Mapping[str, Any]


def retune(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("retune")
    if told is None:
        return ["Not measured.", ""]
    lines, rows, shares, walls = [HOW, ""], [], [], []
    for name, found in told["problems"].items():
        whole = found["exhaustive"]
        rows.append(_row(name, "exhaustive", whole | {"share": 1.0, "shares": {}}))
        for key, arm in found["arms"].items():
            rows.append(_row(name, key, arm))
            if key.startswith("seed "):
                shares.append((f"{name}, {key}", arm["share"]))
                walls.append(arm["wall_s"])
    head = ["example", "arm", "speed-up", "share", "worst size", "tried", "wall", "search"]
    lines += md.table(head, rows, left=2)
    worst = min(shares, key=lambda pair: pair[1])
    lines += [
        md.claim(
            worst[1] >= SHARE,
            f"at least {md.percent(worst[1], 1)} of the exhaustive best ({worst[0]}; ≥ {SHARE:.0%})",
        ),
        md.claim(max(walls) <= SECONDS, f"each in {max(walls):.1f} s at most (≤ {SECONDS:.0f} s)"),
        "",
    ]
    return [*lines, *md.source_without_software(told)]


def _row(name: str, arm: str, found: Told) -> list[str]:
    least = min(found["shares"].values(), default=None)
    cells = [name, arm, md.times(found.get("geometric_mean")), md.percent(found["share"], 1)]
    cells += [md.percent(least, 1), str(found.get("tried", ""))]
    if "wall_s" not in found:
        return [*cells, "", ""]
    return [*cells, f"{found['wall_s']:.1f} s", f"{found['seconds']['search']:.1f} s"]
