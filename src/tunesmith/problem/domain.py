"""The sizes at which a variant must be right, and what its arrays take there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.device import Device
from tunesmith.problem.problem import Contract, Problem, SizeRule
from tunesmith.problem.template import Variant
from tunesmith.space.expr import (
    LIMIT,
    Arithmetic,
    Compare,
    Expr,
    FunctionCall,
    Node,
    Num,
    Variable,
    parse_expr,
)
from tunesmith.space.expr_arrays import evaluate_columns, evaluate_truth

Sizes = tuple[tuple[str, int], ...]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FULL_BYTES = 16 << 20  # or what the largest workload needs
HOST_BYTES = 2 << 20  # of a case where the host runs a GPU's threads one by one
HOST_THREADS = (1 << 16, 1 << 20, 1 << 24)  # of a launch there; more where the contract has nothing so small
MAX_POINTS = 10_000
DRAWN = 64  # values of each size among which points are combined

# The places tried around an anchor for values that the domain allows, in steps of the contract.
_NEARBY = np.arange(257, dtype=np.int64)
_OFFSETS = np.unique(np.concatenate([_NEARBY, -_NEARBY, 256 * _NEARBY[:17], -256 * _NEARBY[:17]]))


@dataclass(frozen=True)
class Domain:
    """The sizes a variant must be right at: contract ∧ the variant's own conditions, for one device."""

    problem: Problem
    conditions: tuple[Expr, ...]  # over sizes alone
    most_bytes: float | None = None  # of a case; None: what a workload needs

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
            keep &= _size_rule_mask(rule, points[:, index])
        points = points[keep]
        for condition in self.conditions:
            points = points[evaluate_truth(condition, self.columns(points))]
        return points

    def bytes(self, points: Ints) -> NDArray[np.float64]:
        """Bytes of all array arguments at each point; infinite where a shape has no value."""
        columns = self.columns(points)
        total = np.zeros(len(points))
        with np.errstate(invalid="ignore"):  # nothing times infinity
            for argument in self.problem.arguments:
                if argument.is_array and not argument.alias:
                    element = argument.element
                    extents = _memory_extents(argument.shape, argument.strides, columns)
                    total += np.ceil(extents / element.packed) * element.bytes
        return np.where(np.isnan(total), np.inf, total)

    def byte_limit(self) -> float:
        if self.most_bytes is not None:
            return self.most_bytes
        return float(self.bytes(self.workload_points()).max(initial=FULL_BYTES))

    def workload_points(self) -> Ints:
        return self.allowed(_points_of_sizes(self, [w.sizes for w in self.problem.workloads]))

    def workloads(self) -> tuple[Sizes, ...]:
        points = self.workload_points()
        if self.most_bytes is not None:
            points = points[self.bytes(points) <= self.most_bytes]
        return tuple(dict.fromkeys(self.named(points)))

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
        values = values[_size_rule_mask(rule, values)]
        for condition in self.conditions:
            if condition.names == {rule.name}:
                values = values[evaluate_truth(condition, {rule.name: values})]
        return values

    def sample(self, rng: np.random.Generator, uniform: int | None = None, near: float = 0.0) -> Ints:
        """Random points, each size log-uniform over its values, that of number `uniform` uniform, and of the
        others this share within a factor of two of a workload's. Most are legal, where that is not rare."""
        pools, workloads = [], self.workload_points()
        for number, rule in enumerate(self.problem.contract.sizes):
            within = (np.arange(DRAWN) + rng.random(DRAWN)) / DRAWN
            low, high = np.log(max(rule.min, 1)), np.log(rule.max + 1)
            targets = np.exp(low + within * (high - low)).astype(np.int64)
            if number == uniform:
                targets = rule.min + (within * (rule.max + 1 - rule.min)).astype(np.int64)
            elif near and len(workloads):
                places = rng.permutation(DRAWN)[: int(near * DRAWN)]
                usual = rng.choice(workloads[:, number], len(places))
                usual = (usual * np.exp2(rng.uniform(-1, 1, len(places)))).astype(np.int64)
                targets[places] = np.clip(usual, rule.min, rule.max)
            legal = self.legal_values(rule, (targets[:, np.newaxis] + _NEARBY * rule.multiple_of).ravel())
            found = legal[np.searchsorted(legal, targets[targets <= legal[-1]])] if len(legal) else legal
            if (rule.max - rule.min) // rule.multiple_of < len(_NEARBY):  # few enough to miss none
                found = np.append(found, self.legal_values(rule, rule.max - _NEARBY * rule.multiple_of))
            pools.append(found if len(found) else np.array(self.edge_values(rule), dtype=np.int64))
        count = 4096 if all(map(len, pools)) else 0
        points = np.stack([rng.choice(pool, count) if count else pool[:0] for pool in pools], axis=1)
        return rng.permutation(_unique_points(self.allowed(points)))


def domain_of(problem: Problem, variant: Variant, device: Device) -> Domain:
    limits = device.limits.names()
    known = {*problem.size_names, *limits}
    # What a build must tell first is left out, as when a launch is planned before one.
    served = [c.bind(limits) for c in variant.domain if c.names <= known]
    if any(rule.allows(0) for rule in problem.contract.sizes):  # a launch of no blocks has nothing to test
        grids = [expr.bind(limits) for launch in problem.launches for expr in launch.grid]
        served += [parse_expr(f"({expr.text}) > 0") for expr in grids]
    if variant.config is not None:
        # Where a candidate's grid is more than the device launches, the dispatch serves the original.
        for launch in variant.launches:
            for expr, most in zip(launch.grid, device.limits.max_grid, strict=False):
                bound = expr.bind(limits)
                if bound.names and bound.names <= known:
                    served.append(parse_expr(f"({bound.text}) <= {most}"))
    here = problem.on(limits)
    whole = Domain(here, (*(c.expr for c in here.contract.require), *served))
    return _on_host(whole, variant, limits) if device.untimed else whole


def _on_host(whole: Domain, variant: Variant, limits: Mapping[str, int]) -> Domain:
    """Where every thread of a launch takes its turn: with fewer of them, as long as anything is left."""
    counted: list[str] = []
    for launch in (*whole.problem.launches, *variant.launches):
        sides = [expr.bind(limits) for expr in (*launch.grid, *launch.block)]
        if all(side.names <= {*whole.names} for side in sides):
            counted.append(" * ".join(f"({side.text})" for side in sides))
    for most in HOST_THREADS:
        few = tuple(parse_expr(f"{product} <= {most}") for product in dict.fromkeys(counted))
        found = Domain(whole.problem, (*whole.conditions, *few), HOST_BYTES)
        if len(found.edges()):
            return found
    return replace(whole, most_bytes=HOST_BYTES)


def array_lengths(domain: Domain, points: Ints) -> list[NDArray[np.float64]]:
    """Elements at each point, of each kind of array."""
    shapes = {a.shape: a for a in domain.problem.arguments if a.is_array and not a.alias}
    columns = domain.columns(points)
    found = [_memory_extents(a.shape, a.strides, columns) for a in shapes.values()]
    return [np.nan_to_num(each, posinf=0.0) for each in found]


def _unique_points(points: Ints) -> Ints:
    """Each once, in order: what `np.unique(points, axis=0)` gives, which compares them field by field."""
    points = points[np.lexsort(points.T[::-1])]
    return points[np.append(True, (points[1:] != points[:-1]).any(axis=1))] if len(points) else points


def _size_rule_mask(rule: SizeRule, values: Ints) -> Bools:
    if rule.one_of:
        return np.isin(values, np.array(rule.one_of, dtype=np.int64))
    within: Bools = (values >= rule.min) & (values <= rule.max) & (values % rule.multiple_of == 0)
    return within


def _memory_extents(
    shape: Sequence[Expr], strides: Sequence[Expr], columns: dict[str, Ints]
) -> NDArray[np.float64]:
    """Elements from the first to the last one touched at each point, as a plan counts them."""

    def numbers(expr: Expr) -> NDArray[np.float64]:
        values, undefined = evaluate_columns(expr, columns)
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
class SizeFact:
    """What a contract says of an expression over its sizes that is never negative and always there."""

    most: int
    divisor: int  # it is a multiple of that at all sizes; 0: it is 0


def size_fact(node: Node, contract: Contract) -> SizeFact | None:
    """None: nothing is certain; it may even have no value."""
    found = _derive_fact(node, contract)
    return found if found is not None and found.most <= LIMIT else None


def always_holds(node: Node, contract: Contract) -> bool:
    """Whether a condition is true at every size of the contract; of most forms that is not asked."""
    match node:
        case Compare(Arithmetic("%", left, Num(step)), (("==", Num(0)),)) if step > 0:
            fact = size_fact(left, contract)
            return fact is not None and fact.divisor % step == 0
        case Compare(left, (("<=", Num(limit)),)):
            fact = size_fact(left, contract)
            return fact is not None and fact.most <= limit
    return False


def _derive_fact(node: Node, contract: Contract) -> SizeFact | None:
    match node:
        case Num(value) if value >= 0:
            return SizeFact(value, value)
        case Variable(name):
            rule = next((rule for rule in contract.sizes if rule.name == name), None)
            if rule is None or rule.span[0] < 0:
                return None
            return SizeFact(rule.span[1], gcd(*(rule.one_of or (rule.multiple_of,))))
        case Arithmetic("+" | "*" as op, left, right) | FunctionCall("min" | "max" as op, (left, right)):
            one, other = size_fact(left, contract), size_fact(right, contract)
            if one is None or other is None:
                return None
            if op == "*":
                return SizeFact(one.most * other.most, one.divisor * other.divisor)
            joined = sum if op == "+" else min if op == "min" else max
            return SizeFact(joined((one.most, other.most)), gcd(one.divisor, other.divisor))
        case Arithmetic("//", left, Num(by)) | FunctionCall("ceildiv", (left, Num(by))) if by > 0:
            whole = size_fact(left, contract)
            if whole is None:
                return None
            up = 0 if isinstance(node, Arithmetic) else by - 1
            return SizeFact((whole.most + up) // by, whole.divisor // by if whole.divisor % by == 0 else 1)
    return None


def handed_arrays(variant: Variant) -> frozenset[tuple[str, int, bool]]:
    """By the bare name of the entry and the position there, and whether no launch may write it."""
    arrays = [one for one in variant.arguments if one.is_array]
    inputs = {one.name: one.role == "input" and one.alias is None for one in arrays}
    handed = [
        (launch.entry.partition("<")[0].rpartition("::")[2], at, inputs.get(name))
        for launch in variant.launches
        for at, name in enumerate(launch.args)
    ]
    written = {(entry, at) for entry, at, is_input in handed if not is_input}
    known = [(entry, at) for entry, at, is_input in handed if is_input is not None]
    return frozenset((*place, place not in written) for place in known)


LEAST_BYTES = 4096  # of all arrays: with less, a call is a launch and nothing else
MAX_ENDS = 3  # sizes whose ends are combined
ENOUGH, DRAWS = 2000, 12  # points to choose from, and how often they are drawn at most


def probe_sizes(
    domain: Domain,
    seed: int,
    count: int,
    most_bytes: float,
    inside: Sequence[Expr] = (),
    known: Collection[Sizes] = (),
    served: Sequence[Sizes] = (),
    weak: Sequence[Sizes] = (),
) -> tuple[Sizes, ...]:
    """Fresh sizes to time a configuration at, where all conditions hold and arrays take no more than that. Up
    to half of them are the corners of what is `served`, up to a third lie nearest to the `weak` ones, the
    rest is drawn at random."""
    region = _ProbedRegion(domain, most_bytes, inside)
    points = region.points(seed)
    if not len(points):
        return ()
    chosen: dict[Sizes, None] = {}

    def choose(some: Ints, most: int) -> None:
        fresh = (sizes for sizes in domain.named(some) if sizes not in known and sizes not in chosen)
        chosen.update(dict.fromkeys(islice(dict.fromkeys(fresh), most)))

    choose(_probe_corners(region, points, _points_of_sizes(domain, served)), count // 2)
    choose(_nearest_points(points, _points_of_sizes(domain, weak)), count // 3)
    choose(points, count - len(chosen))
    return tuple(chosen)


def _points_of_sizes(domain: Domain, some: Sequence[Sizes]) -> Ints:
    rows = [[dict(sizes)[name] for name in domain.names] for sizes in some]
    return np.array(rows, dtype=np.int64).reshape(-1, len(domain.names))


@dataclass(frozen=True)
class _ProbedRegion:
    domain: Domain
    most_bytes: float
    inside: Sequence[Expr]

    def points(self, seed: int) -> Ints:
        rng = np.random.default_rng(seed)
        found = np.empty((0, len(self.domain.names)), dtype=np.int64)
        for _ in range(DRAWS):
            found = np.concatenate([found, self.held(self.domain.sample(rng))])
            if len(found) >= ENOUGH:
                break
        return found

    def held(self, points: Ints) -> Ints:
        nbytes = self.domain.bytes(points)
        points = points[(nbytes >= LEAST_BYTES) & (nbytes <= self.most_bytes)]
        for condition in self.inside:
            points = points[evaluate_truth(condition, self.domain.columns(points))]
        return points


def _probe_corners(region: _ProbedRegion, points: Ints, served: Ints) -> Ints:
    """Every size at one of its ends; for each two sizes where one is largest beside the other; the most and
    the least bytes; the largest and the smallest of each size; places on the edges."""
    domain = region.domain
    known = np.concatenate([points, served])
    corners, edges = _box_frame(known.min(axis=0), known.max(axis=0), between=points[0])
    nbytes = domain.bytes(points)
    scale = np.log(np.maximum(points, 1))
    pairs = permutations(range(len(domain.names)), 2)
    rows = [int((scale[:, one] - scale[:, other]).argmax()) for one, other in pairs]
    rows += [int(nbytes.argmax()), int(nbytes.argmin())]
    for column in points.T:
        rows += [int(column.argmax()), int(column.argmin())]
    held = [region.held(domain.allowed(some)) for some in (corners, edges)]
    return np.concatenate([held[0], points[rows], held[1]])


def _box_frame(low: Ints, high: Ints, between: Ints) -> tuple[Ints, Ints]:
    """The corners of a box, and a place on each of its edges."""
    free = min(MAX_ENDS, len(low))
    corners, edges = [], []
    for at_end in product((False, True), repeat=free):
        corner = between.copy()
        corner[:free] = np.where(at_end, high[:free], low[:free])
        corners.append(corner)
        for size in range(free):
            edges.append(corner.copy())
            edges[-1][size] = between[size]
    return np.array(corners), np.array(edges)


def _nearest_points(points: Ints, weak: Ints) -> Ints:
    """The points nearest to the weak ones by ratio: the nearest of each, then the next of each."""
    scale, places = np.log(np.maximum(points, 1)), np.log(np.maximum(weak, 1))
    order = np.empty((len(points), len(weak)), dtype=np.int64)
    for number, place in enumerate(places):
        order[:, number] = ((scale - place) ** 2).sum(axis=1).argsort(kind="stable")
    near: Ints = points[order.ravel()]
    return near


# Sizes at which a winner is verified are spread over the contract, stratum by stratum. Of k points each size
# has one in each k-th of its range: a band that covers a k-th of it and more is met more often than by
# independent draws, one twice as wide always.

LOG_CASES = 8  # every size log-uniform
LINEAR_CASES = 2  # in all or one for each size, uniform in it and the others log-uniform or near a workload's

ROWS = 32  # of each size, where it is rows that are looked at


def fresh_sizes(
    domain: Domain, edges: Ints, rng: np.random.Generator, limit: float, used: Collection[Sizes]
) -> list[Sizes]:
    """Sizes not among `used`, as far as there are any, none with more than `limit` bytes."""
    known = {frozenset(one) for one in used}
    every, points = range(len(domain.names)), domain.sample(rng)
    small = points[domain.bytes(points) <= limit]
    if sum(frozenset(one) not in known for one in domain.named(small)) < LOG_CASES:
        points = np.unique(np.concatenate([points, edges]), axis=0)
    found = _pick_stratified(domain, rng.permutation(points), LOG_CASES, (limit, limit), every, known, rng)
    for size, rule in enumerate(domain.problem.contract.sizes):
        count = 1 if rule.one_of else -(-LINEAR_CASES // len(domain.names))
        points = domain.sample(rng, uniform=size, near=0.5)
        found += _pick_stratified(domain, points, count, (limit, limit / 2), [size], known, rng)
    return list(dict.fromkeys(found))


def sizes_with_rows(domain: Domain, rng: np.random.Generator, limit: float, count: int) -> list[Sizes]:
    """Small cases with several rows of some length, most sizes near those of the workloads."""
    points = domain.sample(rng, near=0.75)
    points = points[domain.bytes(points) <= limit]
    least = np.minimum(points.max(axis=0, initial=0), ROWS)
    points = points[(points >= least).all(axis=1)]
    every = range(len(domain.names))
    return _pick_stratified(domain, points, count, (limit, count * limit), every, set(), rng)


def _pick_stratified(
    domain: Domain,
    points: Ints,
    count: int,
    most_bytes: tuple[float, float],
    sizes: Collection[int],
    known: Collection[frozenset[tuple[str, int]]],
    rng: np.random.Generator,
) -> list[Sizes]:
    """Of these points as many, one in each stratum of these sizes; `most_bytes`: of one, and of all."""
    limit, room = most_bytes
    taken = domain.bytes(points)
    points, taken = points[taken <= limit], taken[taken <= limit]
    named = list(domain.named(points))
    # Where the domain is nearly used up: old sizes, new values.
    is_used = np.array([frozenset(one) in known for one in named], dtype=np.bool_)
    ranks = _relative_ranks(points[:, list(sizes)])
    chosen: list[int] = []
    for target in _sample_strata(rng, count, len(sizes)) if named else ():
        away = np.abs(ranks - target).max(axis=1, initial=0.0) + 2.0 * is_used
        # Where there is no room for all: the smallest.
        away = np.where(taken <= room - taken[chosen].sum(), away, 4.0 + taken)
        away[chosen] = np.inf
        if np.isfinite(away.min()):
            chosen.append(int(away.argmin()))
    return [named[i] for i in chosen]


def _relative_ranks(points: Ints) -> NDArray[np.float64]:
    """Of each size among its values as they were drawn, from 0 to 1; of equal ones the middle."""
    ranks = []
    for column in points.T:
        ordered = np.sort(column)
        low, high = np.searchsorted(ordered, column), np.searchsorted(ordered, column, side="right")
        ranks.append((low + high) / 2 / max(len(points), 1))
    return np.stack(ranks, axis=1)


def _sample_strata(rng: np.random.Generator, count: int, sizes: int) -> NDArray[np.float64]:
    """Points of a unit cube, one in each stratum of each axis."""
    columns = [(rng.permutation(count) + rng.random(count)) / count for _ in range(sizes)]
    return np.stack(columns, axis=1) if columns else np.empty((count, 0))
