"""Where a kernel is tested: sizes, distributions and seeds, all inside the contract and the variant's domain.

Every size gets edge values: its ends, the workloads' values, small ones, and the neighbours of powers of two
as near as the contract and the domain allow. Of all legal combinations few are run, picked greedily so that
each next case shows the most that none before it has shown, and among equals the one with the fewest bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.device import Device
from tunesmith.problem.domain import FULL_BYTES, Bools, Domain, Ints, Sizes, array_lengths, domain_of
from tunesmith.problem.draws import CONSTANT, DISTRIBUTIONS, MIXED, ODD
from tunesmith.problem.fresh_sizes import fresh_sizes, sizes_with_rows
from tunesmith.problem.plan import show_sizes
from tunesmith.problem.planted import PLANTED
from tunesmith.problem.problem import Problem
from tunesmith.problem.slots import SlotPlace
from tunesmith.problem.template import Variant
from tunesmith.problem.thresholds import broad_sizes, common_constants, constants, threshold_sizes
from tunesmith.space.expr import parse
from tunesmith.space.grammar import product_text
from tunesmith.text import seed_of


@dataclass(frozen=True)
class ExtraCase:
    """A case that somebody adds to those that are tested anyway."""

    sizes: tuple[tuple[str, int], ...]  # in the contract's order
    distribution: str
    why: str = ""


Level = Literal["smoke", "full", "verify"]

SMOKE_BYTES = 2 << 20
SMOKE_CASES = 5
WATCHED_CASES = 3
EDGE_CASES = 17
THRESHOLD_CASES = {"full": 6, "verify": 10}
AROUND = 4  # cases for each constant: at it, below and above, and an array of such a length
ODD_BYTES = 4 << 20
ODD_BYTES_AT_MOST = 16 << 20  # with these values the reference is asked for every row
MIXED_CASES = 3  # with room for most structures each
HALVES_CASES = 2  # of the same sizes
LARGE_BYTES = 48 << 20  # of one case at verification on a CPU, beyond those that are tested anyway
HUGE = 1 << 31  # elements or bytes of one array: on a GPU one case goes beyond
HUGE_SHARE = 0.15  # of a device's memory: inputs, outputs and what they are compared with lie there together
MAX_VALUES = 60  # of one size
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
    def is_odd(self) -> bool:
        """Whether a candidate is held to the original's behaviour as well as to the reference."""
        return self.distribution in ODD or self.distribution.startswith(PLANTED)

    def again(self, attempt: int) -> Case:
        """The same with other values."""
        return replace(self, seed=seed_of(self.seed, "again", attempt))

    @property
    def where(self) -> str:
        return f"at {show_sizes(dict(self.sizes))} (inputs: {self.distribution})"


def smoke_cases(problem: Problem, variant: Variant, device: Device, seed: int) -> tuple[Case, ...]:
    """A few small cases before any timing; empty when no legal size was found. One is of special numbers:
    what does not treat them as the original does wins nowhere, and need not be searched."""
    domain = domain_of(problem, variant, device)
    small = _smoke_sizes(domain)
    pairs = [(sizes, "normal") for sizes in small]
    pairs += [(sizes, name) for sizes in (small[1:2] or small) for name in _odd(problem)[:1]]
    return _cases(domain, pairs, seed, "smoke")


def watched_cases(
    problem: Problem, variant: Variant, device: Device, seed: int, nbytes: int
) -> tuple[Case, ...]:
    """For tools that make a launch a thousand times slower: the smallest, and others that show the most."""
    domain = domain_of(problem, variant, device)
    points = _edges(domain).within(nbytes)
    if not len(points):
        return ()
    sizes = domain.named(points[_cover(_sights(points), [0], WATCHED_CASES)])
    return tuple(Case(one, "normal", seed_of(seed, "watched", one), "smoke") for one in sizes)


def full_cases(problem: Problem, variant: Variant, device: Device, seed: int) -> tuple[Case, ...]:
    """All edges, workload sizes and distributions, and the constants that a size may be compared with."""
    domain = domain_of(problem, variant, device)
    small = _smoke_sizes(domain)
    telling = small[1:3] or small  # the first is the smallest there is, which shows little
    distributions = _distributions(problem)
    at_workloads = [name for name in ("normal", "wide") if name in distributions]
    odd = _odd(problem) if telling else ()
    pairs = [
        *((sizes, "normal") for sizes in _edge_sizes(domain)),
        *((sizes, name) for name in distributions for sizes in telling),
        *((telling[i % len(telling)], name) for i, name in enumerate(odd)),
        *((sizes, name) for name in at_workloads for sizes in domain.workloads()),
        *((sizes, "normal") for sizes in _thresholds(domain, variant, seed, "full", 4 * SMOKE_BYTES)),
    ]
    return (*_cases(domain, pairs, seed, "full"), *_recorded(domain, "full"))


def verify_cases(
    problem: Problem, variant: Variant, device: Device, seed: int, used: Collection[Sizes]
) -> tuple[Case, ...]:
    """Fresh seeds at sizes over the whole contract, and at the workloads.

    Sizes not among `used`, as far as the domain has any: at random, at the constants that one may be compared
    with, with each size at its largest, and one large case.
    """
    domain = domain_of(problem, variant, device)
    rng = np.random.default_rng(seed_of(seed, "verify"))
    limit = _edges(domain).limit(domain.byte_limit())
    places = fresh_sizes(domain, _edges(domain).points, rng, limit, used)
    reaching = [*_corners(domain, rng, limit), *_large(domain, rng, device, limit)]
    names, odd = _rolled(_distributions(problem), rng), _rolled(_odd(problem), rng)
    # Values that show a wrong size as well as any go with those; the others hide too much.
    plain = ["normal", *(name for name in odd if name == MIXED)]
    varied = [name for name in names if name not in CONSTANT]  # constants show little at full size
    small = [sizes for sizes in _smoke_sizes(domain)[1:] if sizes not in places] or places[:1]
    little = [sizes for sizes in places if domain.bytes(_point(sizes))[0] <= ODD_BYTES] or small
    mixed_sizes = sizes_with_rows(domain, rng, min(limit, ODD_BYTES), MIXED_CASES) or little[:1]
    little.sort(key=lambda sizes: -min(value for _, value in sizes))  # a few elements show little
    around = _thresholds(domain, variant, seed, "verify", _most(domain, device))
    roomy = [domain.bytes(_point(sizes))[0] > ODD_BYTES_AT_MOST for sizes in around]
    there = ["normal" if large else plain[i % len(plain)] for i, large in enumerate(roomy)]
    alone = [name for name in odd if name not in (MIXED, "halves")]
    pairs = [
        *((sizes, names[i % len(names)]) for i, sizes in enumerate(places)),
        *((sizes, MIXED) for sizes in mixed_sizes if MIXED in odd),
        *((sizes, "halves") for sizes in mixed_sizes[:HALVES_CASES] if "halves" in odd),
        *((little[i % min(3, len(little))], name) for i, name in enumerate(alone) if little),
        *zip(around, there, strict=True),
        *((sizes, varied[i % len(varied)]) for i, sizes in enumerate((*reaching, *domain.workloads()))),
    ]
    return (*_cases(domain, pairs, seed, "verify"), *_recorded(domain, "verify"))


def _recorded(domain: Domain, level: Level) -> tuple[Case, ...]:
    """A program's own launches, whose results the original gave: no error is compared with none."""
    legal = [one for one in domain.problem.recorded if len(domain.allowed(_point(one.sizes)))]
    return tuple(Case(one.sizes, one.distribution, 0, level, compares_errors=False) for one in legal)


def _corners(domain: Domain, rng: np.random.Generator, limit: float) -> list[Sizes]:
    """Each size as large as it gets, the others so small that this is affordable."""
    points = np.concatenate([_edges(domain).points, domain.sample(rng)])
    points = points[domain.bytes(points) <= max(limit, LARGE_BYTES / 4)]
    if not len(points):
        return []
    corner = domain.allowed(points.max(axis=0, keepdims=True))
    corner = corner[domain.bytes(corner) <= limit]  # all of them, where that is no more than usual
    ends = points[[int(column.argmax()) for column in points.T]] if not len(corner) else corner
    return list(dict.fromkeys(domain.named(ends)))


def _most(domain: Domain, device: Device) -> float:
    most = min(4 * LARGE_BYTES if device.inspects else LARGE_BYTES, device.limits.max_allocation)
    return max(domain.byte_limit(), most)


def _large(domain: Domain, rng: np.random.Generator, device: Device, limit: float) -> list[Sizes]:
    """One case larger than all others, where it takes no longer than its bytes say; on a GPU one with an
    array beyond 2**31 elements, or else bytes."""
    points = np.concatenate([domain.sample(rng), domain.sample(rng)])
    taken, volume = domain.bytes(points), np.prod(points.astype(np.float64), axis=1)
    usual = np.prod(domain.workload_points().astype(np.float64), axis=1).max(initial=0.0)
    quick = volume <= np.maximum(taken, 4 * usual)
    points, taken = points[quick], taken[quick]
    most = _most(domain, device)
    found = [points[(taken > max(limit, most / 2)) & (taken <= most)]]
    arrays = [a for a in domain.problem.arguments if a.is_array]
    # What the host would have to lay out takes minutes at such sizes.
    if device.inspects and domain.problem.inputs is None and not any(a.is_laid_out for a in arrays):
        lengths = np.max([*array_lengths(domain, points), np.zeros(len(points))], axis=0)
        widest = max((a.element.bytes for a in arrays), default=1)
        fits = taken <= min(HUGE_SHARE * device.limits.memory, device.limits.max_allocation)
        beyond = points[fits & (lengths > HUGE)]
        beyond = beyond if len(beyond) else points[fits & (lengths * widest > HUGE)]
        found.append(beyond[np.argsort(domain.bytes(beyond))])
    return [sizes for some in found for sizes in domain.named(some[:1])]


def _thresholds(domain: Domain, variant: Variant, seed: int, level: Level, limit: float) -> tuple[Sizes, ...]:
    limit = min(limit, domain.most_bytes or limit)
    rng = np.random.default_rng(seed_of(seed, "thresholds", level))
    if level != "verify":
        known = common_constants(variant).values
        return threshold_sizes(domain, known, rng, limit, THRESHOLD_CASES[level])
    all_of = constants(variant, rng)
    most = max(THRESHOLD_CASES[level], AROUND * all_of.telling)
    found = threshold_sizes(domain, all_of.values, rng, limit, most)
    broad = broad_sizes(domain, all_of.values, rng, domain.byte_limit())
    return tuple(dict.fromkeys([*found, *broad]))


def _rolled(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [str(name) for name in rng.permutation(names)] if names else []


def _point(sizes: Sizes) -> Ints:
    return np.array([[value for _, value in sizes]], dtype=np.int64)


def reach(problem: Problem, cases: Iterable[Case]) -> tuple[tuple[str, int], ...]:
    """How far cases go: the largest of each size, and of the elements of each array with several sizes."""
    seen = [dict(case.sizes) for case in cases]
    found = {name: max(sizes[name] for sizes in seen) for name in problem.size_names if seen}
    for argument in problem.arguments:
        several = {name for e in argument.shape for name in e.names}
        if argument.is_array and len(several) > 1 and several <= {*problem.size_names} and seen:
            text = product_text(e.text for e in argument.shape)
            found[text] = max(parse(text).evaluate(sizes) for sizes in seen)
    return tuple(found.items())


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
        poor = [s for s, name in wanted if name not in ODD and dict(s)[item or ""] < COMPARABLE_ITEMS]
        richer = [tuple((name, more if name == item else value) for name, value in sizes) for sizes in poor]
        points = np.array([[value for _, value in sizes] for sizes in richer], dtype=np.int64)
        legal = set(domain.named(domain.allowed(points.reshape(-1, len(domain.names)))))
        twins = {sizes: twin for sizes, twin in zip(poor, richer, strict=True) if twin in legal}
    added = [(twins[sizes], name) for sizes, name in wanted if sizes in twins and name not in ODD]
    # The seed depends on nothing else, so that a smoke or full case means the same arrays for every variant
    # and the reference is computed once; for verification it is another.
    stream = "verify" if level == "verify" else "search"
    found: list[Case] = []
    for sizes, name in dict.fromkeys([*wanted, *added]):
        compares_errors = sizes not in twins and name not in (*CONSTANT, *ODD)
        found.append(Case(sizes, name, seed_of(seed, stream, sizes, name), level, compares_errors))
    return tuple(found)


def _distributions(problem: Problem) -> tuple[str, ...]:
    """All of them, or one where the user has said how every array is filled."""
    free = (a for a in problem.arguments if a.is_drawn and a.values is None and a.range is None)
    return DISTRIBUTIONS if problem.inputs is not None or any(free) else DISTRIBUTIONS[:1]


# What rounds to fewer bits, in a kernel's text: there ties are drawn on purpose.
_CONVERTS = re.compile(
    r"rint|round|convert_|__(float|double|half)\w*2|_r[nzud]\b|\bcvt|fp8|e4m3|e5m2|\bchar\b"
)


def _odd(problem: Problem) -> tuple[str, ...]:
    """Those that some array is drawn from, what the user promises of it notwithstanding."""
    inputs = [a for a in problem.arguments if a.is_drawn and a.values is None]
    if problem.inputs is not None or not inputs:
        return (MIXED,) if inputs else ()
    written = [a.element for a in problem.arguments if a.is_written and not a.alias]
    rounds = any(e.kind != "float" or e.bytes == 1 for e in written) or _CONVERTS.search(problem.kernel.text)
    known = ODD if any(a.range is None for a in inputs) else (ODD[0], MIXED)
    return tuple(name for name in known if name != "halves" or rounds)


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
    most = min(FULL_BYTES, domain.byte_limit())
    largest.append(len(_edges(domain).within(most)) - 1)  # all of them large; points are sorted
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
    # How large a workspace is, a device may decide.
    known = [a for a in problem.arguments if all(e.names <= sizes.keys() for e in (*a.shape, *a.strides))]
    domain = Domain(replace(problem, arguments=tuple(known)), ())
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
