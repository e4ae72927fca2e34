"""Trials and what came of them. A time can exist only where the status is ok: the type forbids the lie."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations, islice
from statistics import fmean, variance
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import digest_of, first_line, format_count
from tunesmith.problem.device import Clock, Device, Resources
from tunesmith.problem.plan import CannotRun, Status, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import ToBuild
from tunesmith.space.configset import Config

Effort = Literal["build", "short", "long"]
Purpose = Literal["search", "gate", "sentinel", "finalist"]
NOT_TIMED = "right here, not timed: resume where a GPU is"
MAX_SHOWN = 4  # conditions in one sentence
CONVICTS = (Status.WRONG, Status.UNSTABLE, Status.CRASHED, Status.TIMED_OUT)


@dataclass(frozen=True)
class Trial:
    """A configuration to try; `config` None is the original, timed as a sentinel."""

    id: int
    config: Config | None
    workloads: tuple[str, ...]
    effort: Effort
    purpose: Purpose = "search"
    template: str = ""  # digest; empty for the original
    followed: bool = False  # the searcher picked it by what earlier runs say


@dataclass(frozen=True)
class DataSides:
    """Conditions of a verified kernel on what its arrays hold, and those of which checks met one side."""

    watched: int = 0
    unmet: tuple[str, ...] = ()
    drawn: int = 0  # cases that were added for them
    why_not: str = ""  # they were not watched

    def joined(self, other: DataSides) -> DataSides:
        """Of several builds of one configuration."""
        unmet = tuple(dict.fromkeys((*self.unmet, *other.unmet)))
        watched, drawn = self.watched + other.watched, self.drawn + other.drawn
        return DataSides(watched, unmet, drawn, self.why_not or other.why_not)

    @property
    def sentence(self) -> str:
        """Empty where nothing is left open."""
        if self.why_not:
            return f"conditions on data were not watched: {self.why_not}"
        more = len(self.unmet) - MAX_SHOWN
        shown = "; ".join((*self.unmet[:MAX_SHOWN], *([f"and {more} more"] if more > 0 else [])))
        count = format_count(len(self.unmet), "condition")
        return f"{count} on data met on one side: {shown}" if shown else ""


NO_SIDES = DataSides()


@dataclass(frozen=True)
class TimingPolicy:
    """How long and how often; part of every cached result's key."""

    rounds: int
    min_rounds: int
    chain_seconds: float  # a sample is a serial chain of launches at least this long
    max_seconds: float
    rotation: float = 3.0  # cold workloads cycle through this many last-level caches
    give_up: float | None = None  # one sample is enough for a launch slower than this many seconds
    looks: int = 1  # chains at whose end a launch's outputs are looked at
    whole: bool = False  # all of an output, and a few inputs swapped before: for finalists


@dataclass(frozen=True)
class Timing:
    """Seconds per launch. With `paired`, samples of the original taken in alternation, pair by pair."""

    samples: tuple[float, ...]
    paired: tuple[float, ...] = ()
    cached: bool = False
    discarded: int = 0  # rounds taken again because the clock was held down
    clocks: tuple[Clock, ...] = ()  # after the last round of a race; empty: nobody says
    disturbed: int = 0  # rounds taken again because others used the device meanwhile
    disturbance: str = ""  # what was seen where quiet ones were not to be had, in a sentence; empty: quiet
    draws: tuple[int, ...] = ()  # how many pairs each draw of the inputs has; empty: an earlier version

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a time without samples")
        if self.paired and len(self.paired) != len(self.samples):
            raise ValueError(f"{len(self.paired)} samples cannot be paired with {len(self.samples)}")
        if self.draws and (min(self.draws) < 1 or sum(self.draws) != len(self.samples)):
            raise ValueError(f"draws of {self.draws} samples are not the {len(self.samples)} that there are")

    @property
    def seconds(self) -> float:
        return median(self.samples)

    @property
    def quiet(self) -> bool:
        return not self.disturbance

    @property
    def ratios(self) -> tuple[float, ...]:
        """Original ÷ candidate for each pair: above 1 is faster."""
        return tuple(p / s for p, s in zip(self.paired, self.samples, strict=True)) if self.paired else ()

    @property
    def parts(self) -> tuple[tuple[float, ...], ...]:
        """The ratios by draw of the inputs."""
        return _by_draw(self.ratios, self.draws or (len(self.samples),))


def _by_draw(values: Sequence[float], draws: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    left = iter(values)
    return tuple(tuple(islice(left, count)) for count in draws)


def join_timings(first: Timing, second: Timing) -> Timing:
    """Two measurements on the same draws as one, draw by draw."""
    alike = len(first.draws) == len(second.draws) > 0
    cuts = (first.draws, second.draws) if alike else ((len(first.samples),), (len(second.samples),))

    def mixed(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
        pairs = zip(_by_draw(one, cuts[0]), _by_draw(other, cuts[1]), strict=True)
        return tuple(chain.from_iterable(chain.from_iterable(pairs)))

    return replace(
        second,
        samples=mixed(first.samples, second.samples),
        paired=mixed(first.paired, second.paired),
        cached=False,
        disturbed=first.disturbed + second.disturbed,
        disturbance=second.disturbance or first.disturbance,
        draws=tuple(map(sum, zip(*cuts, strict=True))) if alike else (),
    )


@dataclass(frozen=True)
class Result:
    workload: str
    status: Status
    timing: Timing | None = None
    detail: str = ""  # why not ok, in words
    key: str = ""  # binary, launch, device, driver, workload and timing policy, as one digest

    def __post_init__(self) -> None:
        if (self.timing is not None) and self.status is not Status.OK:
            raise ValueError(f"a {self.status} result carries no time")

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


DISTRUSTED = (Status.WRONG, Status.UNSTABLE, Status.SUSPECT)


def all_or_nothing(results: Sequence[Result]) -> tuple[Result, ...]:
    """What lies or errs at one workload is believed at none."""
    liar = next((r for r in results if r.status in DISTRUSTED), None)
    if liar is None:
        return tuple(results)
    words = f"it is {liar.status} at {liar.workload}: {liar.detail}"
    return tuple(Result(r.workload, liar.status, detail=words) if r.ok else r for r in results)


@dataclass(frozen=True)
class Outcome:
    trial: Trial
    results: tuple[Result, ...]
    source_digest: str = ""
    code_digest: str = ""
    resources: Resources | None = None
    seconds: float = 0.0  # what the evaluation cost
    busy: float = 0.0  # of these, the device was in kernels, where it says
    device: str = ""  # worker, host and id, where it is not of the machine that the run is on
    waited: float = 0.0  # of the seconds, others had the device, or it was not quiet

    def result(self, workload: str) -> Result | None:
        return next((r for r in self.results if r.workload == workload), None)

    @property
    def status(self) -> Status:
        """One word for the whole trial: ok where any workload is, else the first failure."""
        if any(r.ok for r in self.results):
            return Status.OK
        return self.results[0].status if self.results else Status.INFEASIBLE


@dataclass(frozen=True)
class Enlisted:
    """From here on these devices measure, all of one kind; the first of them all that is timed against the
    original. A run without it has one."""

    devices: tuple[str, ...]  # as outcomes name them


@dataclass(frozen=True)
class AskedOf:
    """A trial that one device of several is to measure: the original."""

    trial: Trial
    device: str


@dataclass(frozen=True)
class LeftOut:
    """A device of several that measures no more. What it was asked, others are."""

    device: str
    reason: str
    lost: bool = False  # it no longer answers; else its own times tell


def keys_of_config(config: Config) -> tuple[Hashable, ...]:
    return config, ("of", config.candidate)


def keys_of_trial(trial: Trial) -> Iterator[Hashable]:
    kind = "build" if trial.effort == "build" else trial.purpose
    yield kind
    if trial.config is not None:
        yield "of", trial.config.candidate
        yield kind, trial.config.candidate


def keys_of_outcome(outcome: Outcome) -> tuple[Hashable, ...]:
    purpose, config, device = outcome.trial.purpose, outcome.trial.config, ("on", outcome.device)
    return (purpose, (purpose, config.candidate), device) if config is not None else (purpose, device)


def keys_of_sentinel(outcome: Outcome) -> Iterator[Hashable]:
    for result in outcome.results:
        if result.timing is not None:
            yield result.workload
            yield result.workload, outcome.device


def keys_of_tried(outcome: Outcome) -> tuple[Hashable, ...]:
    trial = outcome.trial
    return outcome.status, trial.purpose, *(keys_of_config(trial.config) if trial.config is not None else ())


EXACT = 200_000  # deals up to which all are looked at
DEALS = 20_000  # of more, so many are drawn
NORMAL = 1.959964  # 97.5 % of a normal distribution lie below so many deviations
# Log: sittings of one kernel on a quiet device differ by so much (standard deviation). Of the pairs in the
# runs kept from an H200 half differ by less than 0.2 %, 95 % by less than 1 %; samples of one say 0.05 %.
BETWEEN = 0.003
PRIOR = 2  # sittings that this is worth beside those that are seen


@dataclass(frozen=True)
class Interval:
    """A point with its 95 % interval."""

    value: float
    low: float
    high: float


def median(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("the median of nothing")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def geometric_mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    numbers = list(values)
    parts = list(weights) if weights is not None else [1.0] * len(numbers)
    total = sum(parts)
    if not numbers or total <= 0:
        raise ValueError("the mean of nothing")
    return math.exp(sum(w * math.log(v) for v, w in zip(numbers, parts, strict=True)) / total)


@lru_cache(maxsize=4096)  # a race asks for those of all that still run, whenever one of them has run again
def median_interval(samples: tuple[float, ...], seed: int, resamples: int = 2000) -> Interval:
    """Median with its bootstrap interval, the same for the same samples and seed."""
    point = median(samples)
    if len(samples) < 2:
        return Interval(point, -math.inf, math.inf)
    rng = np.random.default_rng(seed)
    data = np.asarray(samples, dtype=np.float64)
    draws = np.median(data[rng.integers(0, len(data), (resamples, len(data)))], axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(point, float(low), float(high))


def speedup_interval(timing: Timing, seed: int) -> Interval:
    """By the pairs of one sitting. Of a journal that does not say how many draws of the inputs there were,
    the interval of the samples alone, which earlier versions claimed."""
    return sittings_interval((timing,), seed) if timing.draws else median_interval(timing.ratios, seed)


def sittings_interval(timings: Sequence[Timing], seed: int) -> Interval:
    """By several sittings of one kernel at one workload."""
    return nested_interval(tuple(timing.parts for timing in timings), seed)


@lru_cache(maxsize=4096)
def nested_interval(sittings: tuple[tuple[tuple[float, ...], ...], ...], seed: int) -> Interval:
    """Of ratios by sitting and draw: the geometric mean over sittings of that over draws of the medians, and
    how far it may be off by all that varies: samples, draws, sittings. Two sittings tell little of how far
    apart they usually are, so what is known of quiet devices counts beside them (a moderated variance)."""
    means, variances, freedoms = list[float](), list[float](), list[int]()
    for draws in sittings:
        logs = [math.log(median(ratios)) for ratios in draws]
        means.append(fmean(logs))
        variances.append(variance(logs) / len(logs) if len(logs) > 1 else _sampling_variance(draws[0], seed))
        freedoms.append(max(len(logs) if len(logs) > 1 else len(draws[0]), 2) - 1)
    point, count, sampling = fmean(means), len(means), fmean(variances)
    if not math.isfinite(sampling):
        return Interval(math.exp(point), 0.0, math.inf)
    freedom = PRIOR + count - 1
    known, seen = PRIOR * sampling, variance(means) * (count - 1) if count > 1 else 0.0
    whole = PRIOR * BETWEEN**2 + known + seen
    # Welch and Satterthwaite: the part that samples and draws tell of, and the part that sittings do.
    total = sum(variances) or 1.0
    of_samples = sum((v / total) ** 2 / f for v, f in zip(variances, freedoms, strict=True))
    share = known / whole
    half = _student_quantile(max(2.0, 1 / (share**2 * of_samples + (1 - share) ** 2 / freedom)))
    half *= math.sqrt(whole / freedom / count)
    return Interval(math.exp(point), math.exp(point - half), math.exp(point + half))


def _sampling_variance(ratios: tuple[float, ...], seed: int) -> float:
    """The variance of the log of a median."""
    found = median_interval(ratios, seed)
    return (math.log(found.high / found.low) / 2 / NORMAL) ** 2 if found.low > 0 else math.inf


def mean_interval(groups: Sequence[Sequence[float]]) -> Interval | None:
    """Mean of the groups' means with its 95 % interval by Student's distribution, each group with a variance
    of its own (Welch and Satterthwaite); None where a group has fewer than two values, or no value of any
    group differs from the others: then nothing says how far the next one would be."""
    if not groups or any(len(group) < 2 for group in groups):
        return None
    means = [sum(group) / len(group) for group in groups]
    parts = [
        sum((value - mean) ** 2 for value in group) / (len(group) - 1) / len(group) / len(groups) ** 2
        for group, mean in zip(groups, means, strict=True)
    ]
    point, variance = sum(means) / len(means), sum(parts)
    if not variance:
        return None
    freedom = variance**2 / sum(p**2 / (len(g) - 1) for p, g in zip(parts, groups, strict=True))
    half = _student_quantile(freedom) * math.sqrt(variance)
    return Interval(point, point - half, point + half)


def chance_apart(groups: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int = 0) -> float:
    """How often two sides that are alike differ as much as these, either way: the values of each group are
    dealt anew to its sides, and the differences of their means added up over the groups."""
    seen = abs(sum(sum(one) / len(one) - sum(other) / len(other) for one, other in groups))
    if math.prod(math.comb(len(one) + len(other), len(one)) for one, other in groups) <= EXACT:
        found: NDArray[np.float64] = np.zeros(1)
        for one, other in groups:
            found = (found[:, None] + _permutation_differences(one, other)[None, :]).ravel()
        return float(np.mean(np.abs(found) >= seen - _sum_tolerance(groups)))
    rng = np.random.default_rng(seed)
    found = np.zeros(DEALS)
    for one, other in groups:
        values = rng.permuted(np.tile(np.asarray([*one, *other]), (DEALS, 1)), axis=1)
        found += values[:, : len(one)].mean(axis=1) - values[:, len(one) :].mean(axis=1)
    # What was seen is one of the deals.
    return float((np.sum(np.abs(found) >= seen - _sum_tolerance(groups)) + 1) / (DEALS + 1))


def _permutation_differences(one: Sequence[float], other: Sequence[float]) -> NDArray[np.float64]:
    """The difference of the means for every way to deal the values."""
    values = np.asarray([*one, *other], dtype=np.float64)
    hands = np.asarray(list(combinations(range(len(values)), len(one))))
    sums = values[hands].sum(axis=1)
    return np.asarray(sums / len(one) - (values.sum() - sums) / len(other))


def _sum_tolerance(groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Sums in another order differ in their last digits."""
    return 1e-9 * max(1.0, *(abs(value) for sides in groups for side in sides for value in side))


def _student_quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's distribution expanded in 1/freedom; good to 0.1 % from 4 on."""
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


@dataclass(frozen=True)
class Rehearsed:
    """What the host's processor says of the original, or of a configuration."""

    config: Config | None  # None: the original
    device: str
    status: Status
    cases: int = 0  # that it was tried on
    detail: str = ""
    watched: str = ""  # what looked for faults that results need not show
    seconds: float = 0.0  # that it took
    left: int = 0  # of a draft: configurations that its gate would try after this one

    @property
    def convicts(self) -> bool:
        """What cannot be built there, or not for want of memory, may be right elsewhere."""
        return self.status in CONVICTS

    @property
    def sentence(self) -> str:
        what = "the original" if self.config is None else (self.config.label or "the template")
        if self.status is Status.OK:
            watched = f", watched by {self.watched}" if self.watched else ""
            cases = format_count(self.cases, "case")
            return f"{what} is right on {cases} on {self.device}{watched}; not timed"
        verdict = f"is {self.status}" if self.convicts else "could not be checked"
        return f"{what} {verdict} on {self.device}: {first_line(self.detail)}"


@dataclass(frozen=True)
class BuildJudgement:
    """What cannot run on the device by its limits alone; of what can, the least occupancy, and a digest of
    the launches."""

    refused: tuple[Result, ...]
    occupancy: int | None
    launches: str


def judge_build(
    problem: Problem, built: ToBuild, device: Device, resources: Resources | None
) -> BuildJudgement:
    refused: list[Result] = []
    occupancies: list[int | None] = []
    launches: list[str] = []
    for workload in built.workloads:
        plan = plan_launch(problem, built.variant, workload.as_dict(), device, resources)
        if isinstance(plan, CannotRun):
            refused.append(Result(workload.name, plan.status, detail=plan.reason))
        else:
            occupancies += [launch.occupancy for launch in plan.launches]
            launches.append(repr((workload.name, plan.launches, plan.locals, plan.scalars)))
    known = [value for value in occupancies if value is not None]
    least = min(known) if known and len(known) == len(occupancies) else None
    return BuildJudgement(tuple(refused), least, digest_of(*launches))
