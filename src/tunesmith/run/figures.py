"""The figure of a run: its speed-up with the interval, and the words for it. All who tell of one ask here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.problem.problem import Problem
from tunesmith.run import race
from tunesmith.run.outcome import Interval, geometric_mean, median
from tunesmith.run.race import CLAIM
from tunesmith.run.rounds import best_scores, speedup_from_log
from tunesmith.run.scores import BestTried, ranked_tried, weighted_mean
from tunesmith.run.state import State

WIDE = 1.5  # from this ratio of its ends on an interval says so little that its lower end is the figure
APART = 1.02  # intervals that exclude each other by more than this do so beyond what two machines' clocks do
IN_COMMON = 0.5  # share of what workloads of a sitting err by together: a busy device's, of a quiet one none

Verdict = Literal["holds", "does not hold", "cannot tell"]


@dataclass(frozen=True)
class Figure:
    """A verified speed-up with its 95 % interval."""

    value: float
    low: float
    high: float
    doubt: str = ""  # why it is not certified; empty: it is

    @classmethod
    def of(cls, found: Interval, doubt: str = "") -> Figure:
        return cls(found.value, found.low, found.high, doubt)

    @property
    def is_wide(self) -> bool:
        return self.low <= 0 or self.high / self.low > WIDE

    @property
    def shown(self) -> float:
        return self.low if self.is_wide else self.value

    @property
    def words(self) -> str:
        """`3.53×`, or where little is known `at least 2.41×`, which is never more than was measured."""
        text = f"at least {math.floor(self.low * 100) / 100:.2f}×" if self.is_wide else f"{self.value:.2f}×"
        return f"{text}, not certified" if self.doubt else text

    @property
    def span(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True)
class WorkloadReport:
    name: str
    sizes: dict[str, int]
    weight: float
    baseline_us: float
    tuned_us: float
    speedup: float
    interval: tuple[float, float]
    config: dict[str, int] | None  # None: the original stays
    template: str = ""  # whose configuration it is, where the run has several
    doubt: str = ""  # why the speed-up is not certified; empty: it is

    @property
    def figure(self) -> Figure:
        return Figure(self.speedup, *self.interval, self.doubt)


RULE = (
    "a claim does not hold where all of the new interval lies below the certified one by more than "
    f"{APART - 1:.0%}, or below {CLAIM}; where others used the device, where the interval is wider than a "
    f"factor of {WIDE}, or where it reaches down to {CLAIM}, nobody can tell: run it again when the machine "
    "is quiet; else it holds"
)


def judged_again(claimed: Figure, again: Figure) -> tuple[Verdict, str]:
    """By `RULE`, with the reason. What was not certified promised only not to be slower."""
    if again.doubt:
        return "cannot tell", again.doubt
    if claimed.doubt:
        return ("does not hold", "it is slower") if again.high < 1 else ("holds", "no figure was certified")
    if again.high <= CLAIM:
        return "does not hold", f"all of the interval lies below {CLAIM}"
    if again.high * APART < claimed.low:
        return "does not hold", "all of the interval lies below the certified one"
    if again.is_wide:
        wide = f"the interval is wider than a factor of {WIDE}: run it again on a quiet machine"
        return "cannot tell", wide
    if again.low <= CLAIM:
        return "cannot tell", f"the interval reaches down to {CLAIM} or less"
    return "holds", "faster than claimed" if again.low > claimed.high else ""


def mean_figure(figures: Sequence[Figure], weights: Sequence[float]) -> Figure:
    """The geometric mean by the weights. What the workloads err by is in part their own, which evens out, and
    in part the sitting's, which does not."""
    value, total = geometric_mean([f.value for f in figures], weights), sum(weights)
    doubt = next((f.doubt for f in figures if f.doubt), "")
    ends: list[float] = []
    for side in ("low", "high"):
        if not all(0 < getattr(f, side) < math.inf for f in figures):
            return Figure(value, 0.0, math.inf, doubt)
        logs = [
            weight / total * abs(math.log(getattr(f, side) / f.value))
            for f, weight in zip(figures, weights, strict=True)
        ]
        ends.append(math.sqrt(IN_COMMON * sum(logs) ** 2 + (1 - IN_COMMON) * sum(log**2 for log in logs)))
    return Figure(value, value * math.exp(-ends[0]), value * math.exp(ends[1]), doubt)


def run_figure(problem: Problem, choice: race.Winners, candidate: str | None = None) -> Figure | None:
    """Of what is delivered, the original counting as 1 where it stays; with a candidate of what is delivered
    of its template. None: nothing is chosen yet."""
    known = [
        Figure.of(pick.speedup, pick.doubt)
        if candidate is None or (pick.config is not None and pick.config.candidate == candidate)
        else Figure(1.0, 1.0, 1.0)
        for pick in choice.picks
    ]
    return mean_figure(known, [w.weight for w in problem.workloads]) if known else None


def as_shown(state: State, choice: race.Winners) -> race.Winners:
    """With the one number of each workload that stands beside a delivered kernel. Journals of earlier
    versions, whose files have digests by now, keep what they said."""
    picks = list[race.Pick]()
    for pick in choice.picks:
        found = race.timing_of(state, pick.config, pick.workload) if pick.config is not None else None
        is_new = found is not None and found.timing is not None and bool(found.timing.draws)
        shown = Figure.of(pick.speedup).shown if is_new else pick.speedup.value
        picks.append(replace(pick, speedup=replace(pick.speedup, value=shown)))
    return replace(choice, picks=tuple(picks))


def best_so_far(state: State) -> BestTried | None:
    """The best of what was tried and nobody found wrong since, by short measurements; where it was timed in
    alternation by that, which tells more. Nothing is verified."""
    raced = race.merge_measurements(state)
    refused, templates = race.refused_finalists(state, raced)
    sound = (
        t for t in ranked_tried(state) if t.config not in refused and t.config.candidate not in templates
    )
    best = max(sound, key=lambda one: one.speedup, default=None)
    if best is None or not best.speedup:
        return None
    longer = {
        name: median(result.timing.ratios)
        for name, result in raced.get(best.config, {}).items()
        if result.timing is not None and result.timing.ratios
    }
    at = {**best.at, **longer}
    return BestTried(weighted_mean(state, at), best.config, at)


def candidate_speedups(problem: Problem, state: State) -> dict[str, float]:
    """The best of each candidate that is right anywhere, as it is told while the run goes on."""
    scored = best_scores(race.sound_scores(problem, state))
    found = {candidate: speedup_from_log(log) for candidate, log in scored.items()}
    if (best := best_so_far(state)) is not None:
        found[best.config.candidate] = float(f"{best.speedup:.6g}")
    return found
