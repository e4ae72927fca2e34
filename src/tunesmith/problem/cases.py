"""Where a kernel is tested: sizes, distributions and seeds, all inside the contract and the variant's domain.

Every size gets edge values: its ends, the workloads' values, small ones, and the neighbours of powers of two
as near as the contract and the domain allow. Of all legal combinations few are run, picked greedily so that
each next case shows the most that none before it has shown, and among equals the one with the fewest bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.device import Device
from tunesmith.problem.draws import DISTRIBUTIONS
from tunesmith.problem.plan import show_sizes
from tunesmith.problem.problem import Problem, SizeRule
from tunesmith.problem.slots import SlotPlace
from tunesmith.problem.template import Variant
from tunesmith.space.expr import Expr, parse
from tunesmith.space.vector import evaluate, holds
from tunesmith.text import seed_of

Sizes = tuple[tuple[str, int], ...]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FULL_BYTES = 16 << 20  # or what the largest workload needs
MAX_POINTS = 10_000

# The places tried around an anchor for values that the domain allows, in steps of the contract.
_NEARBY = np.arange(257, dtype=np.int64)
_OFFSETS = np.unique(np.concatenate([_NEARBY, -_NEARBY, 256 * _NEARBY[:17], -256 * _NEARBY[:17]]))


@dataclass(frozen=True)
class Domain:
    """The sizes a variant must be right at: contract ∧ the variant's own conditions, for one device."""

    problem: Problem
    conditions: tuple[Expr, ...]  # over sizes alone

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.size_names

    def columns(self, points: Ints) -> dict[str, Ints]:
        return {name: points[:, index] for index, name in enumerate(self.names)}

    def named(self, points: Ints) -> Iterator[Sizes]:
        return (tuple(zip(self.names, row, strict=True)) for row in points.tolist())

    def allowed(self, points: Ints) -> Ints:
        """The points (one row each) inside the domain."""
        keep = np.ones(len(points), dtype=np.bool_)
        for index, rule in enumerate(self.problem.contract.sizes):
            keep &= _within(rule, points[:, index])
        points = points[keep]
        for condition in self.conditions:
            points = points[holds(condition, self.columns(points))]
        return points

    def bytes(self, points: Ints) -> NDArray[np.float64]:
        """Bytes of all array arguments at each point; infinite where a shape has no value."""
        columns = self.columns(points)
        total = np.zeros(len(points))
        with np.errstate(invalid="ignore"):  # nothing times infinity
            for argument in self.problem.arguments:
                if argument.is_array and not argument.alias:
                    element = argument.element
                    extents = _extents(argument.shape, argument.strides, columns)
                    total += np.ceil(extents / element.packed) * element.bytes
        return np.where(np.isnan(total), np.inf, total)

    def byte_limit(self) -> float:
        return float(self.bytes(self.workload_points()).max(initial=FULL_BYTES))

    def workload_points(self) -> Ints:
        rows = [[dict(w.sizes)[name] for name in self.names] for w in self.problem.workloads]
        return self.allowed(np.array(rows, dtype=np.int64).reshape(-1, len(self.names)))

    def workloads(self) -> tuple[Sizes, ...]:
        return tuple(dict.fromkeys(self.named(self.workload_points())))

    def edges(self) -> Ints:
        """The legal combinations of edge values; if there are none, random points or else the workloads."""
        lists = [list(self.edge_values(rule)) for rule in self.problem.contract.sizes]
        while prod(map(len, lists)) > MAX_POINTS:
            max(lists, key=len).pop()
        mesh = np.meshgrid(*(np.array(values, dtype=np.int64) for values in lists), indexing="ij")
        points = self.allowed(np.stack([axis.ravel() for axis in mesh], axis=1))
        points = points if len(points) else self.sample(np.random.default_rng(0))
        return points if len(points) else self.workload_points()

    def edge_values(self, rule: SizeRule) -> tuple[int, ...]:
        """Legal values of one size as far as it alone decides, the most telling first."""
        given = {value for w in self.problem.workloads for name, value in w.sizes if name == rule.name}
        powers = [1 << k for k in range(4, rule.max.bit_length())]
        anchors = np.array([rule.min, rule.max, *given, *powers], dtype=np.int64)
        legal = self.legal_values(rule, (anchors[:, np.newaxis] + _OFFSETS * rule.multiple_of).ravel())
        if not len(legal):
            return ()

        def near() -> Iterator[int]:
            yield int(legal[0])
            for target in (33, 1025, rule.max, 7, 257, 5, 129):
                yield _at_least(legal, target)
            yield from (_at_least(legal, value) for value in sorted(given))
            for power in (1024, 32, 256, 64, 128, 2048, 4096, 512, 16, 8192, *powers):
                yield _at_least(legal, power + 1)
                below = int(np.searchsorted(legal, power - 1, side="right")) - 1
                yield int(legal[max(below, 0)])
                yield _at_least(legal, power)
            yield from (_at_least(legal, small) for small in (2, 3))

        return tuple(dict.fromkeys(near()))

    def legal_values(self, rule: SizeRule, candidates: Ints) -> Ints:
        """The candidates, rounded to the contract's step, that no rule about this size alone forbids."""
        step = rule.multiple_of
        listed = np.array(rule.one_of, dtype=np.int64) if rule.one_of else candidates // step * step
        values = np.unique(listed)
        values = values[_within(rule, values)]
        for condition in self.conditions:
            if condition.names == {rule.name}:
                values = values[holds(condition, {rule.name: values})]
        return values

    def sample(self, rng: np.random.Generator) -> Ints:
        """Random points, each size log-uniform over its values; most are legal, where that is not rare."""
        pools = []
        for rule in self.problem.contract.sizes:
            ends = np.log(max(rule.min, 1)), np.log(rule.max + 1)
            targets = np.exp(rng.uniform(*ends, 64)).astype(np.int64)
            legal = self.legal_values(rule, (targets[:, np.newaxis] + _NEARBY * rule.multiple_of).ravel())
            near = legal[np.searchsorted(legal, targets[targets <= legal[-1]])] if len(legal) else legal
            if (rule.max - rule.min) // rule.multiple_of < len(_NEARBY):  # few enough to miss none
                near = np.append(near, self.legal_values(rule, rule.max - _NEARBY * rule.multiple_of))
            pools.append(near if len(near) else np.array(self.edge_values(rule), dtype=np.int64))
        count = 4096 if all(map(len, pools)) else 0
        points = np.stack([rng.choice(pool, count) if count else pool[:0] for pool in pools], axis=1)
        return rng.permutation(np.unique(self.allowed(points), axis=0))


def domain_of(problem: Problem, variant: Variant, device: Device) -> Domain:
    limits = device.limits.names()
    known = {*problem.size_names, *limits}
    # What a build must tell first is left out, as when a launch is planned before one.
    own = [c.bind(limits) for c in variant.domain if c.names <= known]
    if any(rule.allows(0) for rule in problem.contract.sizes):  # a launch of no blocks has nothing to test
        grids = [expr.bind(limits) for launch in problem.launches for expr in launch.grid]
        own += [parse(f"({expr.text}) > 0") for expr in grids]
    if variant.config is not None:
        # Where a candidate's grid is more than the device launches, the dispatch serves the original.
        for launch in variant.launches:
            for expr, most in zip(launch.grid, device.limits.max_grid, strict=False):
                bound = expr.bind(limits)
                if bound.names and bound.names <= known:
                    own.append(parse(f"({bound.text}) <= {most}"))
    return Domain(problem, (*(c.expr for c in problem.contract.require), *own))


def _within(rule: SizeRule, values: Ints) -> Bools:
    if rule.one_of:
        return np.isin(values, np.array(rule.one_of, dtype=np.int64))
    within: Bools = (values >= rule.min) & (values <= rule.max) & (values % rule.multiple_of == 0)
    return within


def _extents(shape: Sequence[Expr], strides: Sequence[Expr], columns: dict[str, Ints]) -> NDArray[np.float64]:
    """Elements from the first to the last one touched at each point, as a plan counts them."""

    def numbers(expr: Expr) -> NDArray[np.float64]:
        values, undefined = evaluate(expr, columns)
        return np.where(undefined, np.inf, values)

    lengths = [np.maximum(numbers(expr), 0) for expr in shape]
    full = np.prod(lengths, axis=0)
    if not strides:
        return np.asarray(full, dtype=np.float64)
    reach = sum((n - 1) * numbers(stride) for n, stride in zip(lengths, strides, strict=True))
    return np.where(full == 0, 0.0, 1.0 + reach)


def _at_least(legal: Ints, target: int) -> int:
    return int(legal[min(int(np.searchsorted(legal, target)), len(legal) - 1)])


@dataclass(frozen=True)
class ExtraCase:
    """A case that somebody adds to those that are tested anyway."""

    sizes: tuple[tuple[str, int], ...]  # in the contract's order
    distribution: str
    why: str = ""


Level = Literal["smoke", "full", "verify"]

SMOKE_BYTES = 2 << 20
SMOKE_CASES = 5
EDGE_CASES = 17
FRESH_CASES = 8
MAX_VALUES = 60  # of one size
CONSTANT = ("zeros", "ones")
COMPARABLE_ITEMS = 16  # the error of fewer independent items is luck, the original's as well as a candidate's


@dataclass(frozen=True)
class Case:
    """One test: sizes in the contract's order, and how the inputs are drawn.

    `compares_errors`: whether a candidate's error is compared with the original's. Within one item (a row of
    a norm) all errors share a factor, and from constant inputs an operator makes the same few numbers over
    and over: there a lucky original would reject a better candidate. Such a case is held to everything
    else, and another to this as well: its twin with more items, or the same sizes with other inputs.
    """

    sizes: Sizes
    distribution: str
    seed: int
    level: Level
    compares_errors: bool = True
    place: SlotPlace | None = None  # where it is what a timed launch found

    @property
    def where(self) -> str:
        return f"at {show_sizes(dict(self.sizes))} (inputs: {self.distribution})"


def smoke_cases(problem: Problem, variant: Variant, device: Device, seed: int) -> tuple[Case, ...]:
    """A few small cases before any timing; empty when no legal size was found."""
    domain = domain_of(problem, variant, device)
    return _cases(domain, [(sizes, "normal") for sizes in _smoke_sizes(domain)], seed, "smoke")


def full_cases(problem: Problem, variant: Variant, device: Device, seed: int) -> tuple[Case, ...]:
    """All edges, all workload sizes, all distributions."""
    domain = domain_of(problem, variant, device)
    small = _smoke_sizes(domain)
    telling = small[1:3] or small  # the first is the smallest there is, which shows little
    distributions = _distributions(problem)
    at_workloads = [name for name in ("normal", "wide") if name in distributions]
    pairs = [
        *((sizes, "normal") for sizes in _edge_sizes(domain)),
        *((sizes, name) for name in distributions for sizes in telling),
        *((sizes, name) for name in at_workloads for sizes in domain.workloads()),
    ]
    return _cases(domain, pairs, seed, "full")


def verify_cases(
    problem: Problem, variant: Variant, device: Device, seed: int, used: Collection[Sizes]
) -> tuple[Case, ...]:
    """Fresh seeds at sizes not among `used`, as far as the domain has any, and at the workloads."""
    domain = domain_of(problem, variant, device)
    rng = np.random.default_rng(seed_of(seed, "verify"))
    edges = _edges(domain)
    points = np.concatenate([domain.sample(rng), rng.permutation(edges.points)])
    points = points[domain.bytes(points) <= edges.limit(domain.byte_limit())]
    known = {frozenset(sizes) for sizes in used}
    unused = (sizes for sizes in domain.named(points) if frozenset(sizes) not in known)
    # Where the domain is nearly used up: old sizes, new values.
    places = list(dict.fromkeys([*unused, *domain.named(points)]))[:FRESH_CASES]
    names = _distributions(problem)
    varied = [name for name in names if name not in CONSTANT]  # constants show little at full size
    pairs = [
        *((sizes, names[i % len(names)]) for i, sizes in enumerate(places)),
        *((sizes, varied[i % len(varied)]) for i, sizes in enumerate(domain.workloads())),
    ]
    return _cases(domain, pairs, seed, "verify")


def _more_items(problem: Problem, item: str) -> int | None:
    """The smallest number of items that is enough, None where the contract has none."""
    rule = next(rule for rule in problem.contract.sizes if rule.name == item)
    enough = -(-COMPARABLE_ITEMS // rule.multiple_of) * rule.multiple_of
    values = sorted(rule.one_of) if rule.one_of else [max(enough, rule.min)]
    return next((value for value in values if value >= COMPARABLE_ITEMS and rule.allows(value)), None)


def _cases(domain: Domain, pairs: Iterable[tuple[Sizes, str]], seed: int, level: Level) -> tuple[Case, ...]:
    """A case for each pair, and beside each with too few independent items one with more, where legal."""
    wanted = list(dict.fromkeys(pairs))
    item = domain.problem.accuracy.independent
    more = _more_items(domain.problem, item) if item is not None else None
    twins: dict[Sizes, Sizes] = {}
    if more is not None:
        poor = [sizes for sizes, _ in wanted if dict(sizes)[item or ""] < COMPARABLE_ITEMS]
        richer = [tuple((name, more if name == item else value) for name, value in sizes) for sizes in poor]
        points = np.array([[value for _, value in sizes] for sizes in richer], dtype=np.int64)
        legal = set(domain.named(domain.allowed(points.reshape(-1, len(domain.names)))))
        twins = {sizes: twin for sizes, twin in zip(poor, richer, strict=True) if twin in legal}
    added = [(twins[sizes], name) for sizes, name in wanted if sizes in twins]
    # The seed depends on nothing else, so that a smoke or full case means the same arrays for every variant
    # and the reference is computed once; for verification it is another.
    stream = "verify" if level == "verify" else "search"
    found: list[Case] = []
    for sizes, name in dict.fromkeys([*wanted, *added]):
        compares_errors = sizes not in twins and name not in CONSTANT
        found.append(Case(sizes, name, seed_of(seed, stream, sizes, name), level, compares_errors))
    return tuple(found)


def _distributions(problem: Problem) -> tuple[str, ...]:
    """All of them, or one where the user has said how every array is filled."""
    free = (
        a for a in problem.arguments if a.role in ("input", "inout") and a.values is None and a.range is None
    )
    return DISTRIBUTIONS if problem.inputs is not None or any(free) else DISTRIBUTIONS[:1]


@dataclass(frozen=True)
class _Edges:
    """The candidates among which cases are chosen, by the bytes they take; equals by size."""

    points: Ints
    bytes: NDArray[np.float64]

    def limit(self, wanted: float) -> float:
        """The bytes a case may take: where hardly anything is so small, what the smallest few take."""
        return float(self.bytes[:3].max(initial=wanted))

    def within(self, wanted: float) -> Ints:
        return self.points[self.bytes <= self.limit(wanted)]


@lru_cache(maxsize=8)
def _edges(domain: Domain) -> _Edges:
    points = np.unique(domain.edges(), axis=0)
    taken = domain.bytes(points)
    order = np.argsort(taken, kind="stable")
    return _Edges(points[order], taken[order])


@lru_cache(maxsize=512)
def _smoke_sizes(domain: Domain) -> tuple[Sizes, ...]:
    points = _edges(domain).within(SMOKE_BYTES)
    if not len(points):
        return ()
    chosen = _cover(_sights(points), [0], SMOKE_CASES)
    others = (index for index in range(len(points) // 2, len(points)) if index not in chosen)
    chosen += islice(others, max(0, 3 - len(chosen)))  # two may show all there is to see; a third is cheap
    return tuple(domain.named(points[chosen]))


@lru_cache(maxsize=512)
def _edge_sizes(domain: Domain) -> tuple[Sizes, ...]:
    points = _edges(domain).within(domain.byte_limit())
    if not len(points):
        return ()
    sights = [(100 * weight, shown) for weight, shown in _sights(points)]
    for rule, column in zip(domain.problem.contract.sizes, points.T, strict=True):
        telling = domain.edge_values(rule)[:MAX_VALUES]
        sights += [(MAX_VALUES - place, column == value) for place, value in enumerate(telling)]
    small = [int((points == [v for _, v in sizes]).all(axis=1).argmax()) for sizes in _smoke_sizes(domain)]
    largest = [int((column == column.max()).argmax()) for column in points.T]
    largest.append(len(_edges(domain).within(FULL_BYTES)) - 1)  # all of them large; points are sorted
    return tuple(domain.named(points[_cover(sights, [*small, *largest], EDGE_CASES)]))


def _sights(points: Ints) -> list[tuple[int, Bools]]:
    """What a case can show about the ways kernels usually go wrong: (weight, which points show it).

    A tail is an odd multiple of the step between legal values: no block or vector divides it evenly.
    """
    tails: list[Bools] = []
    several: list[Bools] = []
    many: list[Bools] = []
    sights: list[tuple[int, Bools]] = []
    # Blocks of a flat kernel hold more of its one size than blocks of others hold of each of theirs.
    spans = (33, 1025, 16385 if points.shape[1] > 1 else 131073)
    for column in points.T:
        tail = column // max(int(np.gcd.reduce(column)), 1) % 2 == 1
        longest = int(column[tail].max(initial=0))
        reach = [tail & (column >= min(span, longest)) for span in spans]
        tails.append(tail)
        several.append(column >= min(spans[0], int(column.max())))
        many.append(reach[1])
        sights += [(2, shown) for shown in reach]
        sights.append((2, column >= min(spans[2], int(column.max()))))  # more than there is room for
        sights.append((1, column == column.min()))
        sights.append((1, tail & (column < 64) & (column > column.min())))  # less than a block
        sights.append((1, tail & (column > 256) & (column < 2048)))  # less than a large one
        sights.append((1, (column % 256 == 0) & (column > 0)))  # nothing left over
    sights.append((4, np.all([*several, *tails], axis=0)))
    for one, other in combinations(range(len(many)), 2):
        sights += [(3, many[one] & several[other]), (3, many[other] & several[one])]
        a, b = points[:, one], points[:, other]
        sights.append((3, (a != b) & (a > a.min()) & (b > b.min())))  # the two swapped
    return sights


def _cover(sights: Sequence[tuple[int, Bools]], first: Sequence[int], count: int) -> list[int]:
    """Indices of points: `first`, then whichever shows the most that is new, the earliest among equals."""
    weights = np.array([weight for weight, _ in sights], dtype=np.float32)  # whole numbers, kept exact
    shown = np.stack([mask for _, mask in sights], axis=1).astype(np.float32)
    gain = shown @ weights
    wanted = list(dict.fromkeys(first))
    chosen: list[int] = []
    while len(chosen) < count and (wanted or gain.any()):
        best = wanted.pop(0) if wanted else int(gain.argmax())
        chosen.append(best)
        seen = np.flatnonzero(shown[best] * weights)
        gain -= shown[:, seen] @ weights[seen]
        weights[seen] = 0
    return chosen


def misfit(problem: Problem, case: ExtraCase) -> str | None:
    """Why a case cannot be one of this problem; None where it can."""
    sizes = dict(case.sizes)
    if tuple(sizes) != problem.size_names:
        return f"it must give every size, {', '.join(problem.size_names)}, and no other"
    if broken := problem.contract.violations(sizes):
        return broken[0]
    domain = Domain(problem, ())
    points = np.array([list(sizes.values())], dtype=np.int64)
    if domain.bytes(points)[0] > domain.byte_limit():
        return "its arrays are larger than those of any workload"
    return None


def extra_cases(
    problem: Problem,
    variant: Variant,
    device: Device,
    seed: int,
    wanted: Sequence[ExtraCase],
    level: Level = "full",
) -> tuple[Case, ...]:
    """Those at which a variant must be right; for verification with values of their own."""
    if not wanted:
        return ()
    domain = domain_of(problem, variant, device)
    points = np.array([[value for _, value in case.sizes] for case in wanted], dtype=np.int64)
    legal = set(domain.named(domain.allowed(points)))
    return _cases(domain, [(c.sizes, c.distribution) for c in wanted if c.sizes in legal], seed, level)
