"""Who wins and what is claimed of it: the race of the finalists, and the speed-ups that its sittings certify.

The winners are the general configuration and the best of each workload. Long, because who wins, where it
serves and what sittings agree on decide each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, permutations
from math import log

import numpy as np

from tunesmith.base.text import seed_of
from tunesmith.problem.default_rules import usual_name
from tunesmith.problem.device import Device
from tunesmith.problem.domain import Bools, Ints
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem, Workload
from tunesmith.run.events import Served, ServedSize
from tunesmith.run.outcome import (
    Interval,
    Outcome,
    Result,
    Timing,
    all_or_nothing,
    join_timings,
    median,
    median_interval,
    sittings_interval,
    speedup_interval,
)
from tunesmith.run.ports import Tried
from tunesmith.run.scores import SpeedupScale, measurement_noise, overall_score, score_configs
from tunesmith.run.state import State
from tunesmith.space.configset import Config
from tunesmith.space.expr import parse_expr, product_text, tidy_expression

# -- Where the general configuration serves: learnt from sizes at which it was timed against the original.
#
# The boundary is a box: bounds on sizes and on lengths of arrays, values of listed sizes, multiples; corners
# may be cut off it. It is cut until no size at which the original was faster lies in it, and it ends where
# nothing was timed.


SLOWER = 0.99  # a median ratio below this is slower
MARGINS = (1.0, 2.0, 4.0)  # the first time a boundary is learnt, and whenever that proved too wide
LEAST_SERVED = 1 / 4  # of the sizes timed: a boundary around fewer is not worth further rounds
MULTIPLES = (2, 4, 8, 16, 32, 64, 128)

Sizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class TimedSize:
    """How much faster than the original one size was; None: it could not run there."""

    sizes: Sizes
    ratio: float | None

    @property
    def is_good(self) -> bool:
        return self.ratio is not None and self.ratio >= SLOWER


@dataclass(frozen=True)
class ServingRegion:
    """Conditions that must all hold; empty: nothing that was timed is outside."""

    conditions: tuple[str, ...]
    inside: int  # sizes timed that lie in it
    least: float  # the smallest ratio in it
    slower: int = 0  # of the sizes outside
    unable: int = 0  # of them, those at which it could not run
    cut_off: int = 0  # of them, those at which it was not slower

    def holds(self, sizes: Sizes) -> bool:
        return all(parse_expr(text).holds(dict(sizes)) for text in self.conditions)

    def beside(self, tested: Iterable[str]) -> tuple[str, ...]:
        """With the bounds of the verification: nothing was timed where nothing was verified, so its own are
        never wider."""
        bounded = {text.rpartition(" ")[0] for text in self.conditions}
        return (*(text for text in tested if text.rpartition(" ")[0] not in bounded), *self.conditions)

    def with_more(self, timed: Iterable[TimedSize]) -> ServingRegion:
        """The same box, after more sizes of which none in it was slower."""
        fresh = list(timed)
        kept = [self.holds(p.sizes) for p in fresh]
        inside = [p.ratio for p, is_in in zip(fresh, kept, strict=True) if is_in and p.ratio is not None]
        slower, unable, cut_off = _count_outside(fresh, kept)
        return replace(
            self,
            inside=self.inside + len(inside),
            least=min([self.least, *inside]),
            slower=self.slower + slower,
            unable=self.unable + unable,
            cut_off=self.cut_off + cut_off,
        )

    @property
    def in_words(self) -> str:
        counts = ((self.slower, "slower at {}"), (self.unable, "unable to run at {}"))
        bad = " and ".join(words.format(count) for count, words in counts if count)
        others = f", and no slower at {self.cut_off} beside these" if self.cut_off and bad else ""
        if self.cut_off and not bad:
            others = f"no slower at {self.cut_off}"
        outside = f"; outside it was {bad}{others}" if bad or others else ""
        return f"timed at {self.inside} sizes inside, {self.least:.2f}× at the least{outside}"


@dataclass(frozen=True)
class _Feature:
    """A size, or the length of an array, with its value at every size that was timed."""

    text: str
    values: Ints
    listed: bool  # its values are few, and each may be left out
    low: int  # what the contract promises at least
    high: int  # and at most

    @property
    def is_size(self) -> bool:
        return self.text.isidentifier()

    def at_most(self, most: int) -> _Cut:
        return _Cut(f"{self.text} <= {most}", self.values <= most, (self.text, "most"))

    def at_least(self, least: int) -> _Cut:
        return _Cut(f"{self.text} >= {least}", self.values >= least, (self.text, "least"))

    def one_of(self, values: Sequence[int]) -> _Cut:
        text = f"{self.text} in ({', '.join(map(str, values))},)"
        return _Cut(text, np.isin(self.values, values), (self.text, "one of"))

    def multiple(self, step: int) -> _Cut:
        return _Cut(f"{self.text} % {step} == 0", self.values % step == 0, (self.text, "step"))


@dataclass(frozen=True)
class _Cut:
    text: str
    keeps: Bools  # of the sizes timed
    bound: tuple[str, str]  # which feature's, and which side: a later cut there replaces this one
    area: float = 0.0  # of a corner that is cut off, by the logarithms of its sides

    def __or__(self, other: _Cut) -> _Cut:
        text = f"({self.text} or {other.text})"
        return _Cut(text, self.keeps | other.keeps, (text, "corner"))


def learn_boundary(problem: Problem, timed: Sequence[TimedSize], margin: float = 1.0) -> ServingRegion | None:
    """None: there is no size at which it was shown to serve.

    A bound lies at least `margin` times as far out as a slower size, as far as there are others to end at.
    """
    features = _size_features(problem, [dict(point.sizes) for point in timed])
    is_good = np.array([point.is_good for point in timed], dtype=np.bool_)
    inside = np.ones(len(timed), dtype=np.bool_)
    cuts: dict[tuple[str, str], str] = {}
    while (inside & ~is_good).any():
        good, bad = inside & is_good, inside & ~is_good
        found: list[tuple[_Cut, int, int]] = []
        for apart in dict.fromkeys((margin, 1.0)):
            found = found or [
                (cut, lost, removed)
                for cut in _possible_cuts(features, good, bad, apart)
                for lost, removed in [_cut_gain(cut, good, bad)]
                if removed
            ]
        if not found:
            return None  # one size, both ways: it is not known to serve there
        cut = min(found, key=lambda one: (_cut_cost(*one), -one[0].area, one[1], one[0].text))[0]
        inside &= cut.keeps
        cuts[cut.bound] = cut.text
    if not inside.any():
        return None
    for feature in features:
        for end in _outer_cuts(feature, inside):
            inside &= end.keeps
            cuts[end.bound] = end.text
    ratios = [p.ratio for p, kept in zip(timed, inside, strict=True) if kept and p.ratio is not None]
    conditions = tuple(dict.fromkeys(cuts.values()))
    return ServingRegion(conditions, len(ratios), min(ratios), *_count_outside(timed, inside.tolist()))


def _count_outside(timed: Sequence[TimedSize], inside: Sequence[bool]) -> tuple[int, int, int]:
    """Of the sizes outside: those at which it was slower, could not run, was not slower."""
    others = [point for point, kept in zip(timed, inside, strict=True) if not kept]
    unable = sum(point.ratio is None for point in others)
    good = sum(point.is_good for point in others)
    return len(others) - unable - good, unable, good


def _size_features(problem: Problem, timed: Sequence[Mapping[str, int]]) -> tuple[_Feature, ...]:
    found, promised = [], {}
    for rule in problem.contract.sizes:
        low, high = rule.span
        promised[rule.name] = high
        values = np.array([sizes[rule.name] for sizes in timed], dtype=np.int64)
        found.append(_Feature(rule.name, values, bool(rule.one_of), low, high))
    shapes = dict.fromkeys(a.shape for a in problem.arguments if a.is_array and not a.alias)
    for shape in shapes:
        names = {name for e in shape for name in e.names}
        if len(names) > 1 and names <= promised.keys():  # of a workspace the device may decide
            text = product_text(e.text for e in shape)
            length = parse_expr(text)
            values = np.array([length.evaluate(sizes) for sizes in timed], dtype=np.int64)
            found.append(_Feature(text, values, False, 0, length.evaluate(promised)))
    return tuple(found)


def _possible_cuts(features: Sequence[_Feature], good: Bools, bad: Bools, margin: float) -> Iterator[_Cut]:
    """Every cut that leaves one bad size outside, as near to it as the margin and the good ones allow."""
    for feature in features:
        values, slower = np.unique(feature.values[good]), np.unique(feature.values[bad])
        for wrong in slower.tolist():
            below = values[(values < wrong) & (values * margin <= wrong)]
            above = values[(values > wrong) & (values >= wrong * margin)]
            if len(below) and not ((slower > below[-1]) & (slower < wrong)).any():
                yield feature.at_most(int(below[-1]))
            if len(above) and not ((slower < above[0]) & (slower > wrong)).any():
                yield feature.at_least(int(above[0]))
            if feature.listed and wrong not in values:
                yield feature.one_of(values.tolist())
            step = next((step for step in MULTIPLES if wrong % step), None)
            if feature.is_size and not feature.listed and step is not None:
                yield feature.multiple(step)
    for one, other in permutations([f for f in features if f.is_size], 2):
        for number in np.flatnonzero(bad):
            yield from _corner_cuts(one, other, good, int(number), margin)


def _corner_cuts(one: _Feature, other: _Feature, good: Bools, number: int, margin: float) -> Iterator[_Cut]:
    """The four corners with this size in them, as wide as may be with no good one inside but those within the
    margin: first where one is alike, then where the other is."""
    for up in (False, True):
        for right in (False, True):
            beyond = other.values >= other.values[number] if right else other.values <= other.values[number]
            nearest = _one_sided_cut(one, good & beyond, number, up, 1.0)
            first = _one_sided_cut(one, good & beyond, number, up, margin) if margin > 1.0 else nearest
            if nearest is None or first is None:
                continue
            second = _one_sided_cut(other, good & ~nearest.keeps, number, right, margin)
            if second is not None:
                yield replace(first | second, area=first.area * second.area)


def _one_sided_cut(feature: _Feature, good: Bools, number: int, up: bool, margin: float) -> _Cut | None:
    """Keeps everything up to the last of these that lies before the size, by the margin; None: there is none,
    or one of them lies beyond."""
    wrong, values = int(feature.values[number]), feature.values[good]
    if (values >= wrong if up else values <= wrong).any():
        return None
    values = values[values * margin <= wrong if up else values >= wrong * margin]
    if not len(values):
        return None
    nearest = int(values.max() if up else values.min())
    cut = feature.at_most(nearest) if up else feature.at_least(nearest)
    reach = (feature.high, nearest) if up else (nearest, feature.low)
    return replace(cut, area=log(max(reach[0], 1)) - log(max(reach[1], 1)))


def _cut_gain(cut: _Cut, good: Bools, bad: Bools) -> tuple[int, int]:
    """Good sizes lost by it, and bad ones left outside; a cut that loses every good one is none."""
    lost, removed = int((good & ~cut.keeps).sum()), int((bad & ~cut.keeps).sum())
    return lost, removed if lost < good.sum() else 0


def _cut_cost(cut: _Cut, lost: int, removed: int) -> float:
    """A corner is two conditions."""
    return (lost + (2 if cut.bound[1] == "corner" else 1)) / removed


def _outer_cuts(feature: _Feature, inside: Bools) -> Iterator[_Cut]:
    """Beyond the outermost sizes that were timed nothing was shown."""
    values = feature.values[inside]
    if values.max() < feature.high:
        yield feature.at_most(int(values.max()))
    if feature.is_size and values.min() > feature.low:
        yield feature.at_least(int(values.min()))


def most_rounds(device: Device) -> int:
    """Of calls until a boundary holds."""
    return 4 if device.is_host else 6


def rounds_of(state: State, general: Config) -> tuple[Served, ...]:
    return tuple(served for served in state.served if served.general == general)


def probes_of(problem: Problem, served: Served) -> tuple[TimedSize, ...]:
    """The sizes of no workload, and how the general configuration did there: cold or warm, at its worst."""
    return worst_by_size(problem, (call for call in served.calls if call.config == served.general))


def worst_by_size(problem: Problem, calls: Iterable[ServedSize]) -> tuple[TimedSize, ...]:
    """At the sizes of no workload; a call that could not run there is the worst."""
    named = {w.name for w in problem.workloads}
    ratios: dict[Sizes, list[float | None]] = {}
    for call in calls:
        if call.result.workload not in named:
            ratios.setdefault(call.sizes, []).append(ratio_of(call.result))
    return tuple(
        TimedSize(sizes, None if None in each else min(r for r in each if r is not None))
        for sizes, each in ratios.items()
    )


def timed_workloads(state: State, config: Config, workloads: Iterable[Workload]) -> list[TimedSize]:
    """The workloads at which it was verified."""
    results = ((w.sizes, timing_of(state, config, w.name)) for w in workloads)
    return [TimedSize(sizes, ratio_of(result)) for sizes, result in results if result is not None]


def bounds_below_contract(problem: Problem, furthest: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """How far sizes and arrays were verified, as conditions: of those of which the contract promises more."""
    promised = {rule.name: max(rule.one_of or (rule.max,)) for rule in problem.contract.sizes}
    return tuple(
        f"{tidy_expression(text)} <= {most}"
        for text, most in furthest
        if parse_expr(text).evaluate(promised) > most
    )


def boundary_over(
    problem: Problem, device: Device, rounds: Iterable[Sequence[TimedSize]], workloads: Sequence[TimedSize]
) -> ServingRegion | None:
    """Learnt from the workloads and the first round of sizes, and again whenever one inside it proves slower.
    Else it stays as it was: what was confirmed is what is delivered. None where even the last round found
    slower ones, or little is left."""
    timed, learnt = [*workloads], 0
    found: ServingRegion | None = None
    for number, fresh in enumerate(rounds, 1):
        timed += fresh
        inside = [p for p in fresh if found is not None and found.holds(p.sizes)]
        if number == 1 or any(not p.is_good for p in inside):
            margin = MARGINS[min(learnt, len(MARGINS) - 1)]
            found = learn_boundary(problem, timed, margin) if number < most_rounds(device) else None
            learnt += 1
            if found is not None and found.inside < LEAST_SERVED * len(timed):
                return None
        elif found is not None:
            found = found.with_more(fresh)
        if found is None:
            return None
    return found


def ratio_of(result: Result) -> float | None:
    return median(result.timing.ratios) if result.timing is not None and result.timing.ratios else None


# -- Sittings: the measurements of one kernel at one workload, each in a process of its own and apart in
# time; and what may be claimed by them together.


AGREE = 1.10  # figures of two sittings that agree are no further apart
NEEDED = 2  # quiet sittings that agree, for a certified claim


@dataclass(frozen=True)
class Settled:
    speedup: Interval
    doubt: str = ""  # why it is not certified, in a sentence; empty: it is


def later_sittings(state: State, config: Config, workload: str) -> tuple[Timing, ...]:
    """By what is delivered, called through its dispatch after it was verified: in another process."""
    calls = (call for served in state.served for call in served.calls if call.config == config)
    timings = (call.result.timing for call in calls if call.result.workload == workload)
    return tuple(timing for timing in timings if timing is not None and timing.ratios)[-1:]


def settle_figure(verified: Timing, others: Sequence[Timing], seed: int) -> Settled:
    """The largest group of quiet sittings that agree makes the figure, where there is a choice one with the
    verification. Where no two do, the worst of all is what can be said. Journals of earlier versions, whose
    timings do not name their draws, claim what the verification gave, as they did then."""
    if not verified.draws:
        return Settled(median_interval(verified.ratios, seed))
    sittings = [verified, *(timing for timing in others if timing.draws)]
    quiet = [timing for timing in sittings if timing.quiet]
    figures = {id(timing): speedup_interval(timing, seed) for timing in sittings}
    groups = (group for count in range(len(quiet), NEEDED - 1, -1) for group in combinations(quiet, count))
    for group in groups:
        vary = all(len(timing.draws) > 1 for timing in group)
        if _is_consistent_group([figures[id(timing)] for timing in group], vary):
            agreed, every = sittings_interval(group, seed), sittings_interval(quiet, seed)
            # One that disagrees shows how far the next may be: the figure leaves it out, the ends do not.
            return Settled(Interval(agreed.value, min(agreed.low, every.low), max(agreed.high, every.high)))
    worst = min(figures.values(), key=lambda interval: interval.low)
    highest = max(interval.high for interval in figures.values())
    return Settled(Interval(worst.low, worst.low, highest), _figure_doubt(sittings, list(figures.values())))


def _is_consistent_group(figures: Sequence[Interval], vary: bool) -> bool:
    """Sittings on inputs of their own, where time depends on them, may be as far apart as their draws are."""
    values = [figure.value for figure in figures]
    overlap = max(figure.low for figure in figures) <= min(figure.high for figure in figures)
    return max(values) <= AGREE * min(values) or (vary and overlap)


def _figure_doubt(sittings: Sequence[Timing], figures: Sequence[Interval]) -> str:
    if disturbed := [timing.disturbance for timing in sittings if not timing.quiet]:
        return f"the device was not left alone: {disturbed[0]}"
    if len(sittings) < NEEDED:
        return "it was timed in one sitting alone"
    return f"its sittings disagree: {', '.join(f'{figure.value:.2f}×' for figure in figures)}"


Finalists = dict[Config, dict[str, Result]]

NOT_TIMED = "it was not timed at other sizes than the workloads"
CLAIM = 1.01  # a speed-up is claimed only where its interval lies above this
SPECIAL = 1.01  # a workload gets its own configuration only for at least this much over the general one


@dataclass(frozen=True)
class Pick:
    """What serves one workload; `config` None: the original stays."""

    workload: str
    config: Config | None
    speedup: Interval
    doubt: str = ""  # why the speed-up is not certified, in a sentence; empty: it is


@dataclass(frozen=True)
class Winners:
    general: Config | None
    picks: tuple[Pick, ...]
    where: tuple[str, ...] = ()  # the general one serves other sizes only where all of these hold
    shown: str = ""  # what that rests on, in words
    timed: int = 0  # sizes at which it was timed there, and the least that it gained
    least: float | None = None

    def serves(self, sizes: Mapping[str, int]) -> bool:
        return all(parse_expr(text).holds(sizes) for text in self.where)

    def configs(self) -> tuple[Config, ...]:
        """Every configuration delivered, the general one first."""
        picked = [self.general, *(pick.config for pick in self.picks)]
        return tuple(dict.fromkeys(config for config in picked if config is not None))


def choose_winners(problem: Problem, state: State) -> Winners:
    """The winners by the alternating measurements, without those that failed verification, or are sure to."""
    barred = failed_verification(state) | doubted_finalists(state)
    field = {config: results for config, results in merge_measurements(state).items() if config not in barred}
    # The general one also serves sizes nobody timed: one that failed anywhere inside its domain is no such.
    sound = {
        config: found
        for config in general_entries(problem, state)
        if config in field
        and all(r.ok for r in field[config].values())
        and (found := median_ratios(field[config]))
    }
    ranked = {
        config: s for config, found in sound.items() if (s := overall_score(problem, found)) is not None
    }
    general = max(ranked, key=lambda config: ranked[config]) if ranked else None
    picks = [_pick_winner(state, w.name, field, general) for w in problem.workloads]
    gains = general is not None and any(_claimed_speedup(state, result) for result in field[general].values())
    return Winners(general if gains else None, tuple(picks))


def _pick_winner(state: State, workload: str, field: Finalists, general: Config | None) -> Pick:
    """The general configuration, unless another is clearly better here; else the original."""
    times = {config: median_ratios(results).get(workload, 0.0) for config, results in field.items()}
    best, to_beat = general, SPECIAL * (times[general] or 1.0 if general else 1.0)
    for config, here in times.items():
        if here > to_beat:
            best, to_beat = config, here
    speedup = _claimed_speedup(state, field[best].get(workload)) if best else None
    return Pick(workload, best, speedup) if best and speedup else _original_pick(workload)


def verified_choice(problem: Problem, state: State) -> Winners:
    """The same winners with the speed-ups of the verification; the original stays where they do not hold."""
    choice = choose_winners(problem, state)
    picks = []
    for pick in choice.picks:
        settled = settled_at(state, pick.config, pick.workload)
        holds = settled is not None and settled.speedup.low > CLAIM and not _slower_when_served(state, pick)
        if settled and holds:
            picks.append(replace(pick, speedup=settled.speedup, doubt=settled.doubt))
        else:
            picks.append(_original_pick(pick.workload))
    gains = any(_claimed_speedup(state, timing_of(state, choice.general, w.name)) for w in problem.workloads)
    if choice.general is None or not gains:
        return Winners(None, tuple(picks))
    tested = bounds_below_contract(problem, _verified_reach(state, choice.general))
    rounds = [probes_of(problem, served) for served in rounds_of(state, choice.general)]
    if not any(rounds):
        return Winners(choice.general, tuple(picks), tested, NOT_TIMED)
    timed = timed_workloads(state, choice.general, problem.workloads)
    boundary = boundary_over(problem, state.device, rounds, timed)
    if boundary is None:
        return Winners(None, tuple(picks))
    shown = (boundary.in_words, boundary.inside, boundary.least)
    return Winners(choice.general, tuple(picks), boundary.beside(tested), *shown)


def _slower_when_served(state: State, pick: Pick) -> bool:
    """Whether the delivered kernel, called through its dispatch, was slower at the workload after all."""
    served = later_sittings(state, pick.config, pick.workload) if pick.config is not None else ()
    return any(median(timing.ratios) < SLOWER for timing in served)


def verified_cases(state: State, choice: Winners) -> int:
    """On which what is delivered was right: cases of one that fell, or gained nothing, prove nothing."""
    return sum(v.cases for v in state.verified if v.outcome.trial.config in choice.configs())


def _verified_reach(state: State, config: Config) -> Iterable[tuple[str, int]]:
    """The largest sizes and arrays that were verified."""
    furthest: dict[str, int] = {}
    for text, most in (one for v in state.verified if v.outcome.trial.config == config for one in v.reach):
        furthest[text] = max(most, furthest.get(text, most))
    return furthest.items()


def unverified_winners(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """What still has to be verified: configurations with the workloads they are delivered for."""
    choice, raced = choose_winners(problem, state), merge_measurements(state)
    done = {(v.outcome.trial.config, name) for v in state.verified for name in v.outcome.trial.workloads}
    wanted: dict[Config, tuple[str, ...]] = {}
    for config in choice.configs():
        runs = [name for name, result in raced[config].items() if result.ok]
        picked = [p.workload for p in choice.picks if p.config == config]
        serves = runs if config == choice.general else picked
        if left := tuple(name for name in serves if (config, name) not in done):
            wanted[config] = left
    return tuple(wanted.items())


def timing_of(state: State, config: Config | None, workload: str) -> Result | None:
    """The verified result of a configuration at a workload."""
    outcomes = [v.outcome for v in state.verified if v.outcome.trial.config == config]
    found = [result for outcome in outcomes if (result := outcome.result(workload)) is not None]
    return found[-1] if found else None


def sittings_of(state: State, config: Config, workload: str) -> tuple[Timing, ...]:
    """The verification first, then the heats and the calls of what is delivered; none where it has none."""
    proven = timing_of(state, config, workload)
    if proven is None or proven.timing is None or not proven.timing.ratios:
        return ()
    heats = merge_measurements(state).get(config, {}).get(workload)
    raced = (heats.timing,) if heats is not None and heats.timing and heats.timing.ratios else ()
    return (proven.timing, *raced, *later_sittings(state, config, workload))


def settled_at(state: State, config: Config | None, workload: str) -> Settled | None:
    """What is claimed there by all sittings; None where nothing is."""
    if config is None or not (sittings := sittings_of(state, config, workload)):
        return None
    return settle_figure(sittings[0], sittings[1:], interval_seed(state, workload))


def _claimed_speedup(state: State, result: Result | None) -> Interval | None:
    """The speed-up by the paired measurements, where it may be claimed."""
    if result is None or result.timing is None or not result.timing.ratios:
        return None
    speedup = speedup_interval(result.timing, interval_seed(state, result.workload))
    return speedup if speedup.low > CLAIM else None


def interval_seed(state: State, workload: str) -> int:
    """Of the bootstrap behind a claim."""
    return seed_of(state.started.settings.seed if state.started else 0, "interval", workload)


def _original_pick(workload: str) -> Pick:
    return Pick(workload, None, Interval(1.0, 1.0, 1.0))


HEATS = 3
TIE = 0.005  # log speed-ups closer than this: it does not matter who wins
MARGIN = 0.05  # log: who is further behind by a short measurement, and its noise, does not enter
DEVIATIONS = 4  # of that noise
PER_WORKLOAD = 3  # contenders of each workload beside the general ones
DISBELIEVED = 4  # finalists of a template that are refused, and none that is not: no other is believed
PATIENCE = 20  # finalists that may fail before the rest are given up: by then the template is at fault


Sped = tuple[Outcome, dict[str, float]]  # with its speed-ups by workload
SOUND = (Status.OK, Status.INFEASIBLE)  # where a configuration may not run, nobody runs it


@dataclass
class Finalist:
    """A finalist, and the workloads it is timed at."""

    outcome: Outcome  # its short measurement
    workloads: set[str] = field(default_factory=set)
    is_general: bool = False


def merge_measurements(state: State) -> dict[Config, dict[str, Result]]:
    """All alternating measurements of each finalist taken together; a failure in any of them counts."""
    found: dict[Config, dict[str, Result]] = {}
    for outcome in state.finalists():
        assert outcome.trial.config is not None, "the original is not in the race"
        heats = found.setdefault(outcome.trial.config, {})
        for result in outcome.results:
            before = heats.get(result.workload)
            heats[result.workload] = result if before is None else _merge_results(before, result)
    believed = {config: all_or_nothing(tuple(heats.values())) for config, heats in found.items()}
    return {config: {r.workload: r for r in results} for config, results in believed.items()}


def _merge_results(first: Result, second: Result) -> Result:
    if first.timing is None or second.timing is None:
        return first if first.timing is None else second
    return replace(second, timing=join_timings(first.timing, second.timing))


def finalist_entries(problem: Problem, state: State, count: int) -> dict[Config, Finalist]:
    """The `count` best in general, then the best of each workload; none that nobody would bet on.

    One that fails its long look, there or anywhere, gives its place to the next in line that is not like it
    (`refusals`), as long as the patience lasts; then those that have raced are all there will be. One with
    sizes built in serves nobody else, so it contends in general only where all are such.
    """
    raced = merge_measurements(state)
    fell = {(config, name) for config, found in raced.items() for name, r in found.items() if not r.ok}
    failed = {config for config, found in raced.items() if not any(r.ok for r in found.values())}
    failed |= failed_verification(state)
    is_over = len(failed | {config for config, _ in fell}) > PATIENCE
    failed |= doubted_finalists(state)
    yardstick = SpeedupScale(state)
    field = [
        (o, yardstick.speedups(o))
        for o in state.searched
        if o.trial.config not in failed and (o.trial.config in raced or not is_over)
    ]
    margin = MARGIN + DEVIATIONS * measurement_noise(state)
    chosen: dict[Config, Finalist] = {}
    serving = _serving_outcomes(problem, state, field, fell)
    ranked = _best_outcomes(
        ((s, o) for o, found in serving if (s := overall_score(problem, found)) is not None), margin
    )
    for outcome in _distinct_outcomes(ranked, count):
        entry = _enter_finalist(chosen, outcome)
        entry.is_general = True
        entry.workloads.update(r.workload for r in outcome.results if r.ok)
    for workload in problem.workloads:
        name = workload.name
        standing = [(o, found) for o, found in field if (o.trial.config, name) not in fell]
        here = _best_outcomes(((math.log(found[name]), o) for o, found in standing if name in found), margin)
        for outcome in _distinct_outcomes(here, PER_WORKLOAD, name):
            _enter_finalist(chosen, outcome).workloads.add(name)
    return chosen


def _serving_outcomes(
    problem: Problem, state: State, field: Sequence[Sped], fell: Collection[tuple[Config, str]]
) -> Sequence[Sped]:
    """Of those that fell nowhere, the ones without sizes built in; all of them, where none of these ran."""
    everywhere = [
        (o, found)
        for o, found in field
        if all(r.status in SOUND and (o.trial.config, r.workload) not in fell for r in o.results)
    ]
    defines = {c.id: c.admitted.baking for c in state.candidates if c.admitted is not None}
    serving = [
        (o, found)
        for o, found in everywhere
        if (c := o.trial.config) is None or not _names_sizes(defines.get(c.candidate, ()), c)
    ]
    return serving if any(overall_score(problem, found) is not None for _, found in serving) else everywhere


@lru_cache(maxsize=4096)
def _names_sizes(defines: tuple[str, ...], config: Config) -> bool:
    return any(parse_expr(text).bind(config.as_dict()).names for text in defines)


def general_entries(problem: Problem, state: State) -> list[Config]:
    entered = finalist_entries(problem, state, state.settings.finalists)
    return [config for config, entry in entered.items() if entry.is_general]


def doubted_finalists(state: State) -> frozenset[Config]:
    """Those that have everything in common with finalists that were refused."""
    raced = merge_measurements(state)
    statuses = {config: {result.status for result in found.values()} for config, found in raced.items()}
    wrong = [c for c, seen in statuses.items() if Status.WRONG in seen and Status.OK not in seen]
    if not wrong and all(r.ok for v in state.verified for r in v.outcome.results):
        return frozenset()
    return doubted_configs(state, wrong)


def failed_verification(state: State) -> set[Config]:
    outcomes = [v.outcome for v in state.verified if any(not r.ok for r in v.outcome.results)]
    failed = {o.trial.config for o in outcomes if o.trial.config is not None}
    calls = (call for served in state.served for call in served.calls)
    cannot = (Status.INFEASIBLE, Status.OVER_LIMITS)  # at that size, where the original serves
    return failed | {
        call.config
        for call in calls
        if call.config is not None and not call.result.ok and call.result.status not in cannot
    }


def sound_scores(problem: Problem, state: State) -> tuple[Tried, ...]:
    """What was tried. What a longer look found wrong counts as failed: nothing wrong may count as fast."""
    raced, barred = merge_measurements(state), failed_verification(state)
    names, unbelieved = [w.name for w in problem.workloads], _distrusted_candidates(raced)
    checked: list[Tried] = []
    for tried in score_configs(problem, state):
        bad = _unsound_workloads(raced.get(tried.config, {}))
        if tried.config in barred or tried.config.candidate in unbelieved:
            bad.update(names)
        at = tuple(None if n in bad else log for n, log in zip(names, tried.at, strict=False))
        checked.append(Tried(tried.config, None if bad else tried.score, at))
    return tuple(checked)


def _unsound_workloads(results: Mapping[str, Result]) -> set[str]:
    return {name for name, result in results.items() if result.status not in SOUND}


def refused_finalists(state: State, raced: Finalists) -> tuple[set[Config], set[str]]:
    """Configurations that a longer look found wrong somewhere, and candidates of which it believes none."""
    refused = {config for config, results in raced.items() if _unsound_workloads(results)}
    return refused | failed_verification(state), _distrusted_candidates(raced)


def _distrusted_candidates(raced: Finalists) -> set[str]:
    """Candidates of which every finalist was refused, and enough of them: nor are the others right."""
    sound = {c.candidate for c, found in raced.items() if all(r.status in SOUND for r in found.values())}
    refused = Counter(config.candidate for config in raced if config.candidate not in sound)
    return {candidate for candidate, count in refused.items() if count >= DISBELIEVED}


def _enter_finalist(chosen: dict[Config, Finalist], outcome: Outcome) -> Finalist:
    assert outcome.trial.config is not None, "the original is not in the race"
    return chosen.setdefault(outcome.trial.config, Finalist(outcome))


def _best_outcomes(scored: Iterable[tuple[float, Outcome]], margin: float) -> list[Outcome]:
    ranked = sorted(scored, key=lambda pair: -pair[0])
    return [outcome for value, outcome in ranked if value >= ranked[0][0] - margin]


def _distinct_outcomes(outcomes: Sequence[Outcome], count: int, workload: str | None = None) -> list[Outcome]:
    """The first `count`: equal code, launched alike, is one contender under two names."""
    taken: dict[tuple[str, ...], Outcome] = {}
    for outcome in outcomes:
        results = [r for r in outcome.results if r.ok and workload in (None, r.workload)]
        if len(taken) < count:
            taken.setdefault(tuple(r.key for r in results), outcome)
    return list(taken.values())


def plan_heat(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """Who is timed next, and at which workloads; nobody when the race is over."""
    entered, known = finalist_entries(problem, state, state.settings.finalists), merge_measurements(state)
    wanted = {c: {w for w in e.workloads if w not in known.get(c, {})} for c, e in entered.items()}
    if not any(wanted.values()):
        wanted = _unsettled_finalists(problem, state, entered, known)
    names = [w.name for w in problem.workloads]
    return tuple((c, tuple(n for n in names if n in here)) for c, here in wanted.items() if here)


def _unsettled_finalists(
    problem: Problem, state: State, entered: dict[Config, Finalist], known: dict[Config, dict[str, Result]]
) -> dict[Config, set[str]]:
    """Those whose places are open, the leader with them."""
    seed = state.started.settings.seed if state.started else 0
    times = Counter((o.trial.config, r.workload) for o in state.finalists() for r in o.results)
    logs: dict[Config, dict[str, Interval]] = {
        config: {
            name: _log_interval(median_interval(r.timing.ratios, seed_of(seed, "heat", name)))
            for name, r in known.get(config, {}).items()
            if r.timing is not None and r.timing.ratios
        }
        for config in entered
    }
    wanted: dict[Config, set[str]] = {config: set() for config in entered}
    decisions: list[tuple[tuple[str, ...], dict[Config, Interval]]] = [
        ((w.name,), {c: found[w.name] for c, found in logs.items() if w.name in found})
        for w in problem.workloads
    ]
    general = [config for config, entry in entered.items() if entry.is_general and logs[config]]
    all_names = tuple(w.name for w in problem.workloads)
    decisions.append((all_names, {config: _general_interval(problem, logs[config]) for config in general}))
    for names, standings in decisions:
        undecided = _leader_and_rivals(standings)
        meeting = [c for c in undecided if any(times[c, name] < HEATS for name in names)]
        # One alone only where the leader has had its heats: each is timed against the original anyway.
        is_late = meeting != undecided[-1:]
        for config in meeting if is_late else ():
            wanted[config].update(n for n in names if n in logs[config] and times[config, n] < HEATS)
    return wanted


def _leader_and_rivals(standings: dict[Config, Interval]) -> list[Config]:
    """The leader and all who may yet pass it; nobody where the first place is settled."""
    if not standings:
        return []
    leader = max(standings.values(), key=lambda interval: interval.value)
    behind = [
        config
        for config, here in standings.items()
        if here is not leader
        and here.high >= leader.low
        and max(here.high - leader.low, leader.high - here.low) > TIE  # how far apart they may be
    ]
    return [*behind, *(c for c, here in standings.items() if here is leader)] if behind else []


def _general_interval(problem: Problem, logs: dict[str, Interval]) -> Interval:
    """The weighted mean over the workloads; one where it does not run counts as the original there."""
    total = sum(w.weight for w in problem.workloads)
    value = variance = 0.0
    for workload in problem.workloads:
        if workload.name in logs:
            gain, share = logs[workload.name], workload.weight / total
            value += share * gain.value
            variance += (share * (gain.high - gain.low) / 2) ** 2
    return Interval(value, value - math.sqrt(variance), value + math.sqrt(variance))


def _log_interval(ratio: Interval) -> Interval:
    low = math.log(ratio.low) if ratio.low > 0 else -math.inf
    return Interval(math.log(ratio.value), low, math.log(ratio.high))


def median_ratios(results: dict[str, Result]) -> dict[str, float]:
    return {name: median(r.timing.ratios) for name, r in results.items() if r.timing and r.timing.ratios}


# -- What refused finalists have in common: finalists that have all of it are not looked at either.
#
# A finalist may be as fast as one likes and be refused after all, because it adds in another order and the
# problem allows no more rounding. The next in line are mostly its neighbours. So the refused configurations
# of a template are held against the one with which the template does what the kernel did:
#
# 1. Parameters in which every one of them differs from it are under suspicion; one that a verified
#    configuration differs in as well is not. A finalist with other values in all of those is passed over: the
#    next one keeps at least one of them, so that each refusal says more.
# 2. Where that has not helped, only those are looked at that add in the kernel's own order, by the parameters
#    that say how a sum is shared out and what stands for divisions and functions.


LEARNED = 3  # refused finalists of a template from which on they are compared
DESPAIRED = 6  # from which on the kernel's own order is kept
ROUNDING = frozenset({"LANES", "VEC", "ITEMS", "KEEP", "SPLIT", "BESIDE", "FAST", "RECIP", "CONVERT"})


@dataclass(frozen=True)
class TemplateDoubts:
    """Of one template: how it was before anything was chosen, and what not to look at."""

    first: Mapping[str, int]
    suspects: frozenset[str] = frozenset()  # others than before in all of these: passed over
    kept: frozenset[str] = frozenset()  # other than before in one of these: passed over

    def doubts(self, config: Config) -> bool:
        changed = {name for name, value in config.as_dict().items() if value != self.first.get(name)}
        return bool(self.kept & changed) or (bool(self.suspects) and self.suspects <= changed)


def doubted_configs(state: State, raced_wrong: Collection[Config]) -> frozenset[Config]:
    """Configurations that were tried and are passed over; `raced_wrong`: finalists whose long look failed."""
    wrong, passed = set(raced_wrong), set[Config]()
    for verified in state.verified:
        config, results = verified.outcome.trial.config, verified.outcome.results
        if config is not None and any(r.status is Status.WRONG for r in results):
            wrong.add(config)
        elif config is not None and all(r.ok for r in results):
            passed.add(config)
    if len(wrong) < LEARNED:
        return frozenset()
    of = {
        candidate: found
        for candidate in {config.candidate for config in wrong}
        if (found := _of_template(state, candidate, wrong, passed)) is not None
    }
    tried = (o.trial.config for o in state.searched if o.trial.config is not None)
    return frozenset(c for c in tried if c.candidate in of and c not in passed and of[c.candidate].doubts(c))


def _of_template(
    state: State, candidate: str, wrong: Collection[Config], passed: Collection[Config]
) -> TemplateDoubts | None:
    refused = [config.as_dict() for config in wrong if config.candidate == candidate]
    before = [o.trial.config for o in (*state.gated(candidate), *state.searched)]
    first = next((c.as_dict() for c in before if c is not None and c.candidate == candidate), None)
    if len(refused) < LEARNED or first is None:
        return None
    held = [config.as_dict() for config in passed if config.candidate == candidate]
    suspects = {
        name
        for name, value in first.items()
        if all(other.get(name) != value for other in refused)
        and all(other.get(name) == value for other in held)
    }
    kept = {name for name in first if usual_name(name)[0] in ROUNDING}
    in_order = [all(other.get(name) == first[name] for name in kept) for other in refused]
    other_order = [any(other.get(name) != first[name] for name in kept) for other in held]
    # Where one of another order holds, or one that keeps the order is refused too, that is not it.
    despairs = len(refused) >= DESPAIRED and not any(in_order) and not any(other_order)
    return TemplateDoubts(first, frozenset(suspects), frozenset(kept if despairs else ()))
