"""How often `diff` gives the alarm: of a kernel measured twice, and of one that is slower the second time.

    python -m benchmarks.differences --kept ARCHIVE.tar.xz [--times N] [--slower S] [--below B]
    python -m benchmarks.differences --measure PROBLEM TEMPLATE --out FOLDER [--times N] …

With --kept pairs of runs are made of journals that are kept: each sitting of a run is a measured one of the
same kernel at the same workload, its pairs drawn anew, moved by what another sitting of the archive was off
by. Only claims that those runs certify count. With --measure the template's default is tuned N + 1 times into
FOLDER, a finished run each; put load on the device meanwhile to see what it does. The slowdown is planted in
the figures.
"""

from __future__ import annotations

import argparse
import json
import math
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tunesmith
from tunesmith.plugins.studies.difference import WorkloadDifference, compared_workload
from tunesmith.run.figures import Figure
from tunesmith.run.folder import JOURNAL
from tunesmith.run.outcome import Timing, median
from tunesmith.run.race import CLAIM, settle_figure
from tunesmith.run.report import WorkloadReport

Ratios = tuple[float, ...]
SITTINGS = 3


@dataclass(frozen=True)
class KeptClaim:
    """The sittings of one winner at one workload."""

    sittings: tuple[Ratios, ...]

    @property
    def off(self) -> list[float]:
        """By how much each was off the others' mean, as one of many would be."""
        logs = [math.log(median(ratios)) for ratios in self.sittings]
        middle, count = sum(logs) / len(logs), len(logs)
        return [(log - middle) * math.sqrt(count / (count - 1)) for log in logs]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.differences", description=__doc__)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--measure", type=Path, nargs=2, metavar=("PROBLEM", "TEMPLATE"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--slower", type=float, default=1.1)
    parser.add_argument("--below", type=float, default=0.98)
    given = parser.parse_args(arguments)
    if given.kept is not None:
        pairs = list(simulated(kept_claims(given.kept), given.times))
    else:
        problem, template = given.measure
        pairs = measured(problem, template, given.out, given.times)
    print(json.dumps(told(pairs, given.slower, given.below), indent=1))


def told(
    pairs: Sequence[tuple[WorkloadReport, WorkloadReport]], slower: float, below: float
) -> dict[str, Any]:
    """Of both kinds: how many alarms, how many where nobody could tell, and how far drift alone would go."""
    found: dict[str, Any] = {"pairs": len(pairs), "below": below, "planted": slower}
    for name, factor in (("same", 1.0), ("slower", slower)):
        seen = [compared_workload(one, planted(other, factor)) for one, other in pairs]
        found[name] = dict(Counter(verdict(one, below) for one in seen))
    drifts = sorted(abs(math.log(b.baseline_us / a.baseline_us)) for a, b in pairs)
    found["largest drift of the original"] = round(math.exp(drifts[-1]), 3) if drifts else None
    return found


def verdict(one: WorkloadDifference, below: float) -> str:
    if not one.certified:
        return "not certified"
    if one.interval[1] < below:
        return "alarm"
    return "cannot tell" if one.ratio < below else "no alarm"


def planted(row: WorkloadReport, factor: float) -> WorkloadReport:
    low, high = row.interval
    span = (low / factor, high / factor)
    return replace(row, tuned_us=row.tuned_us * factor, speedup=row.speedup / factor, interval=span)


# -- of journals that are kept ------------------------------------------------------------------------------


def kept_claims(archive: Path) -> list[KeptClaim]:
    """Of every winner that was verified, the sittings there are: heats, verification, calls."""
    found: list[KeptClaim] = []
    with tarfile.open(archive, "r:xz") as opened:
        for member in opened:
            source = opened.extractfile(member) if member.name.endswith(JOURNAL) else None
            if source is not None:
                found += _claims(line for line in source.read().splitlines() if b'"paired":[' in line)
    return found


def _claims(lines: Iterator[bytes]) -> Iterator[KeptClaim]:
    sittings: dict[tuple[str, str], list[Ratios]] = {}
    verified: set[tuple[str, str]] = set()
    for line in lines:
        whole = json.loads(line)
        event, kind = whole["event"], whole["type"]
        calls = event.get("calls") or [{"config": None, "result": r} for r in event["outcome"]["results"]]
        for call in calls:
            config, timing = call["config"] or event["outcome"]["trial"]["config"], call["result"]["timing"]
            if timing and timing["paired"]:
                key = (json.dumps(config), call["result"]["workload"])
                ratios = tuple(a / b for a, b in zip(timing["paired"], timing["samples"], strict=True))
                sittings.setdefault(key, []).append(ratios)
                verified |= {key} if kind == "Verified" else set()
    yield from (KeptClaim(tuple(sittings[key])) for key in sorted(verified) if len(sittings[key]) > 1)


def simulated(
    claims: Sequence[KeptClaim], times: int, seed: int = 1
) -> Iterator[tuple[WorkloadReport, WorkloadReport]]:
    """Claims in turn, each as two runs would have measured it; those that are not certified do not count."""
    rng = np.random.default_rng(seed)
    offs = [off for claim in claims for off in claim.off]
    made = tried = 0
    while made < times and tried < 20 * times:
        claim, tried = claims[tried % len(claims)], tried + 1
        one, other = (_row(claim, offs, rng) for _ in range(2))
        if not one.doubt and not other.doubt and min(one.interval[0], other.interval[0]) > CLAIM:
            made += 1
            yield one, other


def _row(claim: KeptClaim, offs: Sequence[float], rng: np.random.Generator) -> WorkloadReport:
    timings = []
    for _ in range(SITTINGS):
        own = claim.sittings[int(rng.integers(len(claim.sittings)))]
        middle, drawn = math.log(median(own)), np.asarray(own)[rng.integers(0, len(own), len(own))]
        true = sum(math.log(median(ratios)) for ratios in claim.sittings) / len(claim.sittings)
        paired = tuple((drawn * math.exp(true - middle + offs[int(rng.integers(len(offs)))])).tolist())
        timings.append(Timing((1.0,) * len(paired), paired, draws=(len(paired),)))
    settled = settle_figure(timings[0], timings[1:], int(rng.integers(1 << 30)))
    figure = Figure.of(settled.speedup, settled.doubt)
    drift = math.exp(rng.normal(0, 0.5))  # of the machine, from one day to the other
    times = (100 * drift, 100 * drift / figure.value)
    return WorkloadReport(
        "one", {}, 1.0, *times, figure.value, (figure.low, figure.high), {}, "", figure.doubt
    )


# -- measured here ------------------------------------------------------------------------------------------


def measured(
    problem: Path, template: Path, out: Path, times: int
) -> list[tuple[WorkloadReport, WorkloadReport]]:
    """Runs one after the other, each compared with the next."""
    settings: dict[str, Any] = {"budget": 1, "prior": False, "cache": False, "library": False}
    runs = [
        tunesmith.load_run(out / str(number))
        if (out / str(number) / "report.json").is_file()
        else tunesmith.tune(problem, template=template, out=out / str(number), **settings)
        for number in range(times + 1)
    ]
    rows = [{w.name: w for w in run.result.workloads} for run in runs]
    return [(one[name], other[name]) for one, other in pairwise(rows) for name in one if name in other]


if __name__ == "__main__":
    main()
