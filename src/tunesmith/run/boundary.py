"""Where the general configuration serves: learnt from sizes at which it was timed against the original.

The boundary is a box: bounds on sizes and on lengths of arrays, values of listed sizes, multiples; corners
may be cut off it. It is cut until no size at which the original was faster lies in it, and it ends where
nothing was timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import log

import numpy as np

from tunesmith.problem.device import Device
from tunesmith.problem.domain import Bools, Ints
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Served
from tunesmith.run.outcome import Result, median
from tunesmith.run.state import State
from tunesmith.space.expr import parse
from tunesmith.space.grammar import product_text
from tunesmith.space.params import Config

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
class Boundary:
    """Conditions that must all hold; empty: nothing that was timed is outside."""

    conditions: tuple[str, ...]
    inside: int  # sizes timed that lie in it
    least: float  # the smallest ratio in it
    slower: int = 0  # of the sizes outside
    unable: int = 0  # of them, those at which it could not run
    cut_off: int = 0  # of them, those at which it was not slower

    def holds(self, sizes: Sizes) -> bool:
        return all(parse(text).holds(dict(sizes)) for text in self.conditions)

    def with_more(self, timed: Iterable[TimedSize]) -> Boundary:
        """The same box, after more sizes of which none in it was slower."""
        fresh = list(timed)
        own = [self.holds(p.sizes) for p in fresh]
        inside = [p.ratio for p, kept in zip(fresh, own, strict=True) if kept and p.ratio is not None]
        slower, unable, cut_off = _outside(fresh, own)
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


def learn(problem: Problem, timed: Sequence[TimedSize], margin: float = 1.0) -> Boundary | None:
    """None: there is no size at which it was shown to serve.

    A bound lies at least `margin` times as far out as a slower size, as far as there are others to end at.
    """
    features = _features(problem, [dict(point.sizes) for point in timed])
    is_good = np.array([point.is_good for point in timed], dtype=np.bool_)
    inside = np.ones(len(timed), dtype=np.bool_)
    cuts: dict[tuple[str, str], str] = {}
    while (inside & ~is_good).any():
        good, bad = inside & is_good, inside & ~is_good
        found: list[tuple[_Cut, int, int]] = []
        for apart in dict.fromkeys((margin, 1.0)):
            found = found or [
                (cut, lost, removed)
                for cut in _cuts(features, good, bad, apart)
                for lost, removed in [_gain(cut, good, bad)]
                if removed
            ]
        if not found:
            return None  # one size, both ways: it is not known to serve there
        cut = min(found, key=lambda one: (_cost(*one), -one[0].area, one[1], one[0].text))[0]
        inside &= cut.keeps
        cuts[cut.bound] = cut.text
    if not inside.any():
        return None
    for feature in features:
        for end in _ends(feature, inside):
            inside &= end.keeps
            cuts[end.bound] = end.text
    ratios = [p.ratio for p, kept in zip(timed, inside, strict=True) if kept and p.ratio is not None]
    conditions = tuple(dict.fromkeys(cuts.values()))
    return Boundary(conditions, len(ratios), min(ratios), *_outside(timed, inside.tolist()))


def _outside(timed: Sequence[TimedSize], inside: Sequence[bool]) -> tuple[int, int, int]:
    """Of the sizes outside: those at which it was slower, could not run, was not slower."""
    others = [point for point, kept in zip(timed, inside, strict=True) if not kept]
    unable = sum(point.ratio is None for point in others)
    good = sum(point.is_good for point in others)
    return len(others) - unable - good, unable, good


def _features(problem: Problem, timed: Sequence[Mapping[str, int]]) -> tuple[_Feature, ...]:
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
            length = parse(text)
            values = np.array([length.evaluate(sizes) for sizes in timed], dtype=np.int64)
            found.append(_Feature(text, values, False, 0, length.evaluate(promised)))
    return tuple(found)


def _cuts(features: Sequence[_Feature], good: Bools, bad: Bools, margin: float) -> Iterator[_Cut]:
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
            yield from _corners(one, other, good, int(number), margin)


def _corners(one: _Feature, other: _Feature, good: Bools, number: int, margin: float) -> Iterator[_Cut]:
    """The four corners with this size in them, as wide as may be with no good one inside but those within the
    margin: first where one is alike, then where the other is."""
    for up in (False, True):
        for right in (False, True):
            beyond = other.values >= other.values[number] if right else other.values <= other.values[number]
            nearest = _side(one, good & beyond, number, up, 1.0)
            first = _side(one, good & beyond, number, up, margin) if margin > 1.0 else nearest
            if nearest is None or first is None:
                continue
            second = _side(other, good & ~nearest.keeps, number, right, margin)
            if second is not None:
                yield replace(first | second, area=first.area * second.area)


def _side(feature: _Feature, good: Bools, number: int, up: bool, margin: float) -> _Cut | None:
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


def _gain(cut: _Cut, good: Bools, bad: Bools) -> tuple[int, int]:
    """Good sizes lost by it, and bad ones left outside; a cut that loses every good one is none."""
    lost, removed = int((good & ~cut.keeps).sum()), int((bad & ~cut.keeps).sum())
    return lost, removed if lost < good.sum() else 0


def _cost(cut: _Cut, lost: int, removed: int) -> float:
    """A corner is two conditions."""
    return (lost + (2 if cut.bound[1] == "corner" else 1)) / removed


def _ends(feature: _Feature, inside: Bools) -> Iterator[_Cut]:
    """Beyond the outermost sizes that were timed nothing was shown."""
    values = feature.values[inside]
    if values.max() < feature.high:
        yield feature.at_most(int(values.max()))
    if feature.is_size and values.min() > feature.low:
        yield feature.at_least(int(values.min()))


# -- of a run: sizes timed round by round, until none that is served is slower


def most_rounds(device: Device) -> int:
    """Of calls until a boundary holds."""
    return 4 if device.is_host else 6


def rounds_of(state: State, general: Config) -> tuple[Served, ...]:
    return tuple(served for served in state.served if served.general == general)


def probes_of(problem: Problem, served: Served) -> tuple[TimedSize, ...]:
    """The sizes of no workload, and how the general configuration did there: cold or warm, at its worst."""
    named = {w.name for w in problem.workloads}
    found: dict[tuple[tuple[str, int], ...], list[float | None]] = {}
    for call in served.calls:
        if call.config == served.general and call.result.workload not in named:
            found.setdefault(call.sizes, []).append(ratio_of(call.result))
    return tuple(TimedSize(sizes, worst(ratios)) for sizes, ratios in found.items())


def boundary_of(
    problem: Problem, state: State, general: Config, workloads: Sequence[TimedSize]
) -> Boundary | None:
    """Learnt from the workloads and the first sizes, and again whenever one inside it proves slower. Else it
    stays as it was: what was confirmed is what is delivered. None where even the last round found slower
    ones, or little is left."""
    rounds = [probes_of(problem, served) for served in rounds_of(state, general)]
    return boundary_over(problem, state.device, rounds, workloads)


def boundary_over(
    problem: Problem, device: Device, rounds: Iterable[Sequence[TimedSize]], workloads: Sequence[TimedSize]
) -> Boundary | None:
    """The same over what was timed, round by round."""
    timed, learnt = [*workloads], 0
    found: Boundary | None = None
    for number, fresh in enumerate(rounds, 1):
        timed += fresh
        inside = [p for p in fresh if found is not None and found.holds(p.sizes)]
        if number == 1 or any(not p.is_good for p in inside):
            margin = MARGINS[min(learnt, len(MARGINS) - 1)]
            found = learn(problem, timed, margin) if number < most_rounds(device) else None
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


def worst(ratios: Sequence[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return min(known) if len(known) == len(ratios) else None
