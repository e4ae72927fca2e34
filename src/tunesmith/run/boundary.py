"""Where the general configuration serves: learnt from sizes at which it was timed against the original.

The boundary is a box: bounds on sizes and on lengths of arrays, values of listed sizes, multiples. It is cut
until no size at which the original was faster lies in it, and it ends where nothing was timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.problem.problem import Problem
from tunesmith.space.expr import parse

SLOWER = 0.99  # a median ratio below this is slower
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
    outside: int
    least: float  # the smallest ratio in it

    def holds(self, sizes: Sizes) -> bool:
        return all(parse(text).holds(dict(sizes)) for text in self.conditions)

    def with_more(self, timed: Iterable[TimedSize]) -> Boundary:
        """The same box, after more sizes of which none in it was slower."""
        inside = [p.ratio for p in timed if p.ratio is not None and self.holds(p.sizes)]
        return replace(self, inside=self.inside + len(inside), least=min([self.least, *inside]))


@dataclass(frozen=True)
class _Feature:
    text: str
    of: Callable[[Mapping[str, int]], int]
    listed: bool = False  # its values are few, and each may be left out
    low: int = 0  # what the contract promises at least
    high: int = 0  # and at most


@dataclass(frozen=True)
class _Cut:
    text: str
    keeps: Callable[[Mapping[str, int]], bool]
    bound: tuple[str, str]  # which feature's, and which side: a later cut there replaces this one


def learn(problem: Problem, timed: Sequence[TimedSize]) -> Boundary | None:
    """None: there is no size at which it was shown to serve."""
    features = tuple(_features(problem))
    good = [dict(point.sizes) for point in timed if point.is_good]
    bad = [dict(point.sizes) for point in timed if not point.is_good]
    cuts: dict[tuple[str, str], str] = {}
    while bad and good:
        found = [(cut, *_gain(cut, good, bad)) for cut in _cuts(features, good, bad)]
        found = [(cut, lost, removed) for cut, lost, removed in found if removed]
        if not found:
            return None  # one size, both ways: it is not known to serve there
        cut, _, _ = min(found, key=lambda one: ((one[1] + 1) / one[2], one[1], one[0].text))
        good, bad = ([sizes for sizes in some if cut.keeps(sizes)] for some in (good, bad))
        cuts[cut.bound] = cut.text
    if not good:
        return None
    for feature in features:
        cuts.update(_ends(feature, good))
    conditions = tuple(dict.fromkeys(cuts.values()))
    inside = [p for p in timed if p.is_good and all(parse(c).holds(dict(p.sizes)) for c in conditions)]
    least = min(p.ratio for p in inside if p.ratio is not None)
    return Boundary(conditions, len(inside), len(timed) - len(inside), least)


def _features(problem: Problem) -> Iterator[_Feature]:
    promised = {}
    for rule in problem.contract.sizes:
        low, high = (min(rule.one_of), max(rule.one_of)) if rule.one_of else (rule.min, rule.max)
        promised[rule.name] = high
        name = rule.name
        yield _Feature(name, lambda sizes, name=name: sizes[name], bool(rule.one_of), low, high)  # type: ignore[misc]
    shapes = dict.fromkeys(a.shape for a in problem.arguments if a.is_array and not a.alias)
    for shape in shapes:
        if len({name for e in shape for name in e.names}) > 1:
            text = " * ".join(f"({e.text})" for e in shape)
            length = parse(text)
            yield _Feature(f"({text})", length.evaluate, False, 0, length.evaluate(promised))


def _cuts(
    features: Iterable[_Feature], good: Sequence[Mapping[str, int]], bad: Sequence[Mapping[str, int]]
) -> Iterator[_Cut]:
    """Every cut that leaves one bad size outside, as near to the good ones as these are."""
    for feature in features:
        values = sorted({feature.of(sizes) for sizes in good})
        for wrong in sorted({feature.of(sizes) for sizes in bad}):
            below, above = [v for v in values if v < wrong], [v for v in values if v > wrong]
            if below:
                yield _at_most(feature, below[-1])
            if above:
                yield _at_least(feature, above[0])
            if feature.listed and wrong not in values:
                yield _one_of(feature, values)
            if feature.text.isidentifier() and not feature.listed:
                for step in MULTIPLES:
                    if wrong % step:
                        yield _multiple(feature, step)
                        break


def _at_most(feature: _Feature, most: int) -> _Cut:
    return _Cut(f"{feature.text} <= {most}", lambda s: feature.of(s) <= most, (feature.text, "most"))


def _at_least(feature: _Feature, least: int) -> _Cut:
    return _Cut(f"{feature.text} >= {least}", lambda s: feature.of(s) >= least, (feature.text, "least"))


def _one_of(feature: _Feature, values: Sequence[int]) -> _Cut:
    text = f"{feature.text} in ({', '.join(map(str, values))},)"
    return _Cut(text, lambda s: feature.of(s) in values, (feature.text, "one of"))


def _multiple(feature: _Feature, step: int) -> _Cut:
    return _Cut(f"{feature.text} % {step} == 0", lambda s: feature.of(s) % step == 0, (feature.text, "step"))


def _gain(cut: _Cut, good: Sequence[Mapping[str, int]], bad: Sequence[Mapping[str, int]]) -> tuple[int, int]:
    """Good sizes lost by it, and bad ones left outside; a cut that loses every good one is none."""
    lost = sum(not cut.keeps(sizes) for sizes in good)
    removed = sum(not cut.keeps(sizes) for sizes in bad)
    return lost, removed if lost < len(good) else 0


def _ends(feature: _Feature, good: Sequence[Mapping[str, int]]) -> dict[tuple[str, str], str]:
    """Beyond the outermost sizes that were timed nothing was shown."""
    values = [feature.of(sizes) for sizes in good]
    found: dict[tuple[str, str], str] = {}
    if max(values) < feature.high:
        found[feature.text, "most"] = _at_most(feature, max(values)).text
    if feature.text.isidentifier() and min(values) > feature.low:
        found[feature.text, "least"] = _at_least(feature, min(values)).text
    return found
