"""docs/benchmarks/steering.md from the searches that were counted. Every verdict is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.cuda import markdown as md
from tunesmith.run.outcome import Interval

Row = Mapping[str, Any]
HEAD = ["example", "seeds", "without", "with", "difference", "95 % interval", "steering"]
NO_DIFFERENCE = ["+0.0", "+0.0 to +0.0"]


def pairs(rows: Sequence[Row], search: str, example: str) -> list[tuple[int, int]]:
    """Evaluations (without, with) for each seed that both arms have."""
    found: dict[int, dict[bool, int]] = {}
    for row in rows:
        if (row["search"], row["example"]) == (search, example):
            found.setdefault(row["seed"], {})[row["steer"]] = row["evaluations"]
    return [(each[False], each[True]) for _, each in sorted(found.items()) if len(each) == 2]


def mean_interval(values: Sequence[int]) -> Interval:
    """The mean with its 95 % bootstrap interval."""
    data = np.asarray(values, dtype=np.float64)
    draws = data[np.random.default_rng(0).integers(0, len(data), (5000, len(data)))].mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(data.mean()), float(low), float(high))


def verdict(low: float, high: float) -> str:
    if high < 0:
        return "pays"
    return "costs" if low > 0 else "level"


def _table(rows: Sequence[Row], search: str) -> list[str]:
    lines, everything = [], []
    for example in sorted({row["example"] for row in rows if row["search"] == search}):
        both = pairs(rows, search, example)
        everything += both
        line = _line(example, both)
        if line[4:6] != NO_DIFFERENCE:
            lines.append(line)
    lines.append(_line("all", everything))
    return md.table(HEAD, lines, left=1)


def _totals(rows: Sequence[Row], searches: Sequence[str]) -> list[str]:
    lines = []
    for search in searches:
        examples = sorted({row["example"] for row in rows if row["search"] == search})
        lines.append(_line(search, [pair for example in examples for pair in pairs(rows, search, example)]))
    return md.table(["search", *HEAD[1:]], lines, left=1)


def _line(name: str, both: Sequence[tuple[int, int]]) -> list[str]:
    without, steered = [a for a, _ in both], [b for _, b in both]
    apart = mean_interval([b - a for a, b in both])
    cells = [name, str(len(both)), f"{mean(without):.1f}", f"{mean(steered):.1f}", f"{apart.value:+.1f}"]
    return [*cells, f"{apart.low:+.1f} to {apart.high:+.1f}", verdict(apart.low, apart.high)]


def _moves(rows: Sequence[Row]) -> list[str]:
    """The focus that the original's diagnosis gives, for each example; it is the same for every seed."""
    lines = []
    rows = [row for row in rows if "," not in row["search"]]  # as the templates have it
    for example in sorted({row["example"] for row in rows}):
        steered = [row for row in rows if row["example"] == example and row["steer"] and row["moves"]]
        if not steered:
            continue
        first = steered[0]["moves"][0]
        undone = sum(any(m["focus"] != first["focus"] for m in row["moves"]) for row in steered)
        focus = f"`{first['focus']}`" if first["focus"] else "none"
        lines.append([example, focus, f"{undone} of {len(steered)}"])
    return md.table(["example", "focus from the diagnosis", "changed later"], lines, left=2)


def _nothing_to_save(rows: Sequence[Row]) -> list[str]:
    """Examples whose first evaluation is close enough already, whatever the seed."""
    most: dict[str, int] = {}
    for row in rows:
        if not row["steer"]:
            most[row["example"]] = max(most.get(row["example"], 0), row["evaluations"])
    names = [name for name, evaluations in sorted(most.items()) if evaluations == 1]
    said = f"The template's default is close enough already for {', '.join(names)}: nothing can be saved."
    return [said, ""] if names else []


def page(rows: Sequence[Row], device: str, date: str, commands: Sequence[str]) -> str:
    searches = list(dict.fromkeys(row["search"] for row in rows))
    stopped = Counter(row["steer"] for row in rows if not row["reached"])
    lines = [
        "# Steering",
        "",
        "Evaluations until a search has tried a configuration within 3 % of the best geometric mean, with",
        "[steering](../searching.md#steering) and without. Every configuration was measured beforehand on",
        f"one {device}; times are looked up, and diagnoses use no counters. Differences are paired by seed;",
        "negative is a gain. *Level*: the interval includes 0. Examples without any difference are left out.",
        "",
    ]
    lines += [f"Search `{searches[0]}`:", "", *_table(rows, searches[0])]
    if len(searches) > 1:
        lines += ["All examples together, other searches:", "", *_totals(rows, searches[1:])]
    lines += _nothing_to_save(rows)
    lines += ["## Focus", "", *_moves(rows)]
    if stopped:
        said = ", ".join(f"{count} {'with' if steer else 'without'}" for steer, count in stopped.items())
        lines += [f"Searches that ended before they came so close, counted by their length: {said}.", ""]
    lines += [
        f"{date}; the times were recorded on the device by exhaustive runs:",
        "",
        "```",
        *commands,
        "```",
    ]
    return "\n".join(lines) + "\n"
