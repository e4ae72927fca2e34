"""Where a kernel is tested: sizes, distributions and seeds, all inside the contract and the variant's domain.

Every size gets edge values: its ends, the workloads' values, small ones, and the neighbours of powers of two
as near as the contract and the domain allow. Of all legal combinations few are run, picked greedily so that
each next case shows the most that none before it has shown, and among equals the one with the fewest bytes.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice, zip_longest
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import seed_of
from tunesmith.problem.device import Device
from tunesmith.problem.domain import (
    FULL_BYTES,
    Bools,
    Domain,
    Ints,
    Sizes,
    array_lengths,
    domain_of,
    fresh_sizes,
    sizes_with_rows,
)
from tunesmith.problem.inputs import CONSTANT, DISTRIBUTIONS, MIXED, ODD, SlotPlace
from tunesmith.problem.plan import ExtraCase, show_sizes
from tunesmith.problem.problem import Problem, SizeRule
from tunesmith.problem.structures import PLANTED
from tunesmith.problem.template import Variant
from tunesmith.source.tree import read_number
from tunesmith.space.expr import Compare, Node, Num, OneOf, iterate_nodes, parse_expr, product_text

# The constants that a kernel may compare a size with. A path for 528 and more is reached by no small case and
# by few random ones. Whatever number stands in a variant's conditions, its launches or its text may be such a
# bound: those in comparisons come first, and those that are no power of two, around which every kernel is
# tested anyway.

MAX = 1 << 40  # beyond it no size goes
SMALL = 16  # edge cases have all around these
MAX_CONSTANTS = 64
MAX_PASSES = 64
MAX_REMAINDERS = 8
OTHERS = 64  # of a size that is not the one looked at, where its range allows

Word = int | str
_INTEGER_TYPES = frozenset(("int", "unsigned", "long", "short", "char", "size_t", "uint", "ulong"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_PRECEDENCE = {"*": 3, "/": 3, "%": 3, "+": 2, "-": 2, "<<": 1, ">>": 1}
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "*": operator.mul, "/": operator.floordiv, "%": operator.mod, "+": operator.add, "-": operator.sub,
    "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
# `n op k` compared with c: where n is then.
_UNDONE: dict[str, Callable[[int, int], int]] = {
    "*": lambda c, k: -(-c // k), "/": operator.mul, "%": operator.add, "&": lambda c, k: c + k + 1,
    "+": operator.sub, "-": operator.add, "<<": operator.rshift, ">>": operator.lshift,
}  # fmt: skip


@dataclass(frozen=True)
class Constants:
    """The most telling first; so many of them stand in comparisons and are tried by no other case."""

    values: tuple[int, ...]
    telling: int


def collect_constants(variant: Variant, rng: np.random.Generator | None = None) -> Constants:
    """With `rng` nobody can foresee the order of equals, nor which are left out where there are too many."""
    exprs = [*variant.domain, *(e for launch in variant.launches for e in (*launch.grid, *launch.block))]
    compared, mentioned = Counter[int](), Counter[int]()
    for expr in exprs:
        for node in iterate_nodes(expr.tree):
            compared.update(_compared_numbers(node))
            mentioned.update([node.value] if isinstance(node, Num) else ())
    in_text = _in_text("\n".join([*(text for _, text in variant.headers), variant.source]), variant.language)
    compared.update(in_text[0])
    mentioned.update(in_text[1])

    found = sorted({value for value in (*compared, *mentioned) if 2 < value <= MAX})
    order = dict(zip(found, rng.permutation(len(found)), strict=True)) if rng is not None else {}

    def kind(value: int) -> int:
        plain = value <= SMALL or value & (value - 1) == 0 or value & (value + 1) == 0
        return (2 if plain else 0) + (0 if value in compared else 1)

    def rank(value: int) -> tuple[bool, int, int, int]:
        often = 0 if order else compared[value] + mentioned[value]
        return value <= SMALL, kind(value), often, int(order.get(value, value))

    best = tuple(sorted(found, key=rank)[:MAX_CONSTANTS])
    return Constants(best, sum(kind(value) == 0 for value in best))


def common_constants(variant: Variant) -> Constants:
    """Those of all configurations of a template: by what stands in its own text, before any value of a
    parameter is put in. They share what the reference says of such cases."""
    _, marker, text = variant.source.partition("\n#line 1 ")
    source = text.partition("\n")[2] if marker and variant.config else variant.source
    return collect_constants(replace(variant, source=source, domain=(), launches=()))


def _compared_numbers(node: Node) -> tuple[int, ...]:
    match node:
        case Compare(left, links):
            sides = (left, *(right for _, right in links))
            return tuple(side.value for side in sides if isinstance(side, Num))
        case OneOf(_, options):
            return options
    return ()


def _expanded_words(text: str, language: str) -> Iterator[Word]:
    """With macros expanded, where that can be read."""
    from tunesmith.source.preprocess import expand_where_readable

    for token in expand_where_readable(text, language):
        value = read_number(token.text) if token.kind == "number" else None
        if token.kind not in ("directive", "string"):
            yield value if isinstance(value, int) else token.text


@lru_cache(maxsize=64)
def _in_text(text: str, language: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers that something is compared with, and all others."""
    words = fold_constants(list(_expanded_words(text, language)))
    compared: list[int] = []
    mentioned: list[int] = []
    remainders: set[tuple[int, int]] = set()  # `n % 97 == 5`: 97 and 5
    for at, word in enumerate(words):
        if not isinstance(word, int):
            continue
        for step in (-1, 1):  # the comparison stands before it, or behind it
            if _word_at(words, at + step) in _COMPARISONS:
                compared.append(word)
                factors = list(_find_factor(words, at + step, step))
                compared += _invert_factors(factors, word)
                remainders |= {(factor, word) for factor, sign in factors if sign == "%"}
        if _word_at(words, at - 1) == ">>" and 0 <= word < 40:
            mentioned.append(1 << word)
        mentioned.append(word)
    compared += _of_roots(words, compared)
    # Where both hold, `n % 97 == 5 && n > 200`: the first such number beyond the other.
    both = [
        (bound // modulus + 1) * modulus + rest
        for modulus, rest in sorted(remainders)[:MAX_REMAINDERS]
        for bound in sorted(set(compared))
        if bound > modulus > rest >= 0
    ]
    return tuple(compared + both[:MAX_CONSTANTS]), tuple(mentioned)


def _of_roots(words: Sequence[Word], compared: Sequence[int]) -> list[int]:
    """528 of `n * n > 278784`, 278784 of `sqrt(n) > 528`."""
    triples = zip(words, words[1:], words[2:], strict=False)
    squares = any(sign == "*" and a == b and _is_name(a) for a, sign, b in triples)
    roots = any("sqrt" in word for word in words if isinstance(word, str))
    found = [isqrt(value) for value in compared if squares and value > SMALL * SMALL]
    return found + [value * value for value in compared if roots and SMALL < value * value <= MAX]


def _invert_factors(factors: Sequence[tuple[int, str]], value: int) -> Iterator[int]:
    """`n * 3 < 1584`: 528, where `value` stands on the other side of the comparison."""
    for factor, sign in factors:
        if 0 < factor <= (40 if sign in ("<<", ">>") else MAX):
            yield _UNDONE[sign](value, factor)


def _find_factor(words: Sequence[Word], at: int, step: int) -> Iterator[tuple[int, str]]:
    """The 3 and the * of `n * 3 < 1584`."""
    far = 3 if step > 0 else -2 if _word_at(words, at - 1) == ")" else -1
    factor, sign = _word_at(words, at + far), _word_at(words, at + far - 1)
    if isinstance(factor, int) and isinstance(sign, str) and sign in _UNDONE:
        yield factor, sign


def _word_at(words: Sequence[Word], place: int) -> Word | None:
    return words[place] if 0 <= place < len(words) else None


def fold_constants(words: list[Word]) -> list[Word]:
    """`( 4 * 1024 )` as 4096, `(int)528` as 528; what is no constant as it stands."""
    for _ in range(MAX_PASSES):
        before, words = len(words), _reduced_once(words)
        if len(words) == before:
            break
    return words


def _reduced_once(words: list[Word]) -> list[Word]:
    out: list[Word] = []
    for word in words:
        out.append(word)
        match out[-4:]:
            case [*called, "(", int(inside), ")"] if not (called and _is_name(called[0])):
                out[-3:] = [inside]
    words, out, at = out, [], 0
    while at < len(words):
        a, op, b = words[at], _word_at(words, at + 1), _word_at(words, at + 2)
        if a == "(" and b == ")" and op in _INTEGER_TYPES and isinstance(_word_at(words, at + 3), int):
            at += 3  # a cast
            continue
        value = _fold_binary(a, op, b)
        mine = _PRECEDENCE.get(op, 0) if isinstance(op, str) else 0
        before, behind = _word_at(out, len(out) - 1), _word_at(words, at + 3)
        if value is None or _has_precedence(before, mine) or _has_precedence(behind, mine + 1):
            out.append(a)
            at += 1
        else:
            out.append(value)
            at += 3
    return out


def _fold_binary(a: Word, op: Word | None, b: Word | None) -> int | None:
    if not isinstance(a, int) or not isinstance(b, int) or not isinstance(op, str) or op not in _COMPUTE:
        return None
    if (op in ("/", "%") and b == 0) or (op in ("<<", ">>") and not 0 <= b < 40):
        return None
    value = _COMPUTE[op](a, b)
    return value if abs(value) <= MAX else None


def _has_precedence(word: Word | None, precedence: int) -> bool:
    return isinstance(word, str) and _PRECEDENCE.get(word, 0) >= precedence


def _is_name(word: Word) -> bool:
    return isinstance(word, str) and word.isidentifier() and word not in ("return", "if", "while", "case")


def threshold_sizes(
    domain: Domain, values: Sequence[int], rng: np.random.Generator, limit: float, most: int
) -> tuple[Sizes, ...]:
    """Legal points at, below and above the constants, in every size at once, and arrays that have about so
    many elements; `most` of them, each of at most `limit` bytes."""
    rules = domain.problem.contract.sizes
    room = most - most // 4
    lists = [_sizes_around(domain, rule, values, room) for rule in rules]
    small = [_small_values(domain, rule) for rule in rules]
    if not all(map(len, small)):
        return ()
    # Large values of one size meet small ones of the next, so that products stay affordable.
    ordered = [sorted(one, reverse=bool(number % 2)) for number, one in enumerate(lists)]
    found: dict[Sizes, int] = {}  # -> how telling it is, 0 the most
    for wanted in zip_longest(*ordered):
        point = [int(rng.choice(pool)) if v is None else v for v, pool in zip(wanted, small, strict=True)]
        rank = min(one.index(v) for one, v in zip(lists, wanted, strict=True) if v is not None)
        tried = [_first_legal(domain, np.array([point], dtype=np.int64), limit)]
        if not tried[0]:
            alone = [(size, value) for size, value in enumerate(wanted) if value is not None]
            tried = [_isolated_size(domain, size, value, small, rng, limit) for size, value in alone]
        found |= {sizes: rank for sizes in tried if sizes is not None}
    telling = sorted(found, key=found.__getitem__)[:room]
    lengths = (sizes for value in values for sizes in _by_length(domain, value, rng, limit))
    return tuple(dict.fromkeys([*telling, *islice(lengths, most - len(telling))]))


def broad_sizes(
    domain: Domain, values: Sequence[int], rng: np.random.Generator, limit: float
) -> tuple[Sizes, ...]:
    """Each size at the constant that tells most, and the others anywhere, not small if they can be: what
    is wrong there may need many of them to show."""
    points = domain.sample(rng)
    found: list[Sizes | None] = []
    for size, rule in enumerate(domain.problem.contract.sizes):
        telling = _sizes_around(domain, rule, [value for value in values if value > SMALL], 1)
        moved = points.copy()
        moved[:, size] = telling[0] if telling else 0
        large = (np.delete(moved, size, axis=1) > OTHERS).sum(axis=1)
        moved = moved[np.argsort(-large, kind="stable")]
        found.append(_first_legal(domain, moved, limit) if telling else None)
    return tuple(dict.fromkeys(sizes for sizes in found if sizes is not None))


def _sizes_around(domain: Domain, rule: SizeRule, values: Sequence[int], most: int) -> list[int]:
    found: dict[int, None] = {}
    steps = np.arange(-2, 3, dtype=np.int64) * rule.multiple_of
    for value in values:
        if not rule.min - rule.multiple_of <= value <= rule.max + rule.multiple_of:
            continue
        near = domain.legal_values(rule, value + steps)
        parts = near[near == value], near[near > value][:1], near[near < value][-1:]
        found.update(dict.fromkeys(np.concatenate(parts).tolist()))
        if len(found) >= most:
            break
    return list(found)[:most]


def _small_values(domain: Domain, rule: SizeRule) -> Ints:
    steps = np.arange(OTHERS + 1, dtype=np.int64) * rule.multiple_of
    legal = domain.legal_values(rule, np.concatenate([rule.min + steps, steps]))
    some = legal[legal >= SMALL] if (legal >= SMALL).any() else legal
    return some if len(some) else np.array(domain.edge_values(rule)[:8], dtype=np.int64)


def _isolated_size(
    domain: Domain, size: int, wanted: int, small: Sequence[Ints], rng: np.random.Generator, limit: float
) -> Sizes | None:
    """This size as wanted and the others small."""
    points = np.stack([rng.choice(pool, 64) for pool in small], axis=1)
    points[:, size] = wanted
    return _first_legal(domain, points, limit)


def _by_length(domain: Domain, length: int, rng: np.random.Generator, limit: float) -> Iterator[Sizes]:
    """Points at which some array has just fewer elements than this, and just as many or more."""
    points = domain.sample(rng)[:256]
    for counts in array_lengths(domain, points):
        for size, rule in enumerate(domain.problem.contract.sizes):
            each = counts / np.maximum(points[:, size], 1)
            target = np.ceil(length / np.maximum(each, 1e-9))
            fits = (each > 1) & (target <= rule.max) & (target > rule.min)
            for side in (0, -1):
                moved = points[fits].copy()
                step = rule.multiple_of
                moved[:, size] = (-(-target[fits] // step) + side) * step
                if sizes := _first_legal(domain, moved, limit):
                    yield sizes
            if fits.any():
                break


def _first_legal(domain: Domain, points: Ints, limit: float) -> Sizes | None:
    legal = domain.allowed(points)
    legal = legal[domain.bytes(legal) <= limit]
    return next(domain.named(legal[:1]), None)


Level = Literal["smoke", "full", "verify"]

SMOKE_BYTES = 2 << 20
SMOKE_CASES = 5
WATCHED_CASES = 3
EDGE_CASES = 17
THRESHOLD_CASES = {"full": 6, "verify": 10}
AROUND = 4  # cases for each constant: at it, below and above, and an array of such a length
ODD_BYTES = 4 << 20
MAX_ODD_BYTES_AT = 16 << 20  # with these values the reference is asked for every row
MIXED_CASES = 3  # with room for most structures each
HALVES_CASES = 2  # of the same sizes
LARGE_BYTES = 48 << 20  # of one case at verification on a CPU, beyond those that are tested anyway
HUGE = 1 << 31  # elements or bytes of one array: on a GPU one case goes beyond
HUGE_SHARE = 0.15  # of a device's memory: inputs, outputs and what they are compared with lie there together
MAX_VALUES = 60  # of one size
COMPARABLE_ITEMS = 16  # the error of fewer independent items is luck, the original's as well as a candidate's


@dataclass(frozen=True)
class Case:
    """One test: sizes in the contract's order, and how the inputs are drawn. `compares_errors`: whether a
    candidate's error is compared with the original's. Within one item (a row of a norm) all errors share a
    factor, and from constant inputs an operator makes the same few numbers over and over: there a lucky
    original would reject a better candidate. Such a case is held to everything else, and another to this as
    well: its twin with more items, or the same sizes with other inputs."""

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
    pairs += [(sizes, name) for sizes in (small[1:2] or small) for name in _odd_distributions(problem)[:1]]
    return _build_cases(domain, pairs, seed, "smoke")


def watched_cases(
    problem: Problem, variant: Variant, device: Device, seed: int, nbytes: int
) -> tuple[Case, ...]:
    """For tools that make a launch a thousand times slower: the smallest, and others that show the most."""
    domain = domain_of(problem, variant, device)
    points = _sorted_edges(domain).within(nbytes)
    if not len(points):
        return ()
    sizes = domain.named(points[_choose_covering(_coverage_masks(points), [0], WATCHED_CASES)])
    return tuple(Case(one, "normal", seed_of(seed, "watched", one), "smoke") for one in sizes)


def full_cases(problem: Problem, variant: Variant, device: Device, seed: int) -> tuple[Case, ...]:
    """All edges, workload sizes and distributions, and the constants that a size may be compared with."""
    domain = domain_of(problem, variant, device)
    small = _smoke_sizes(domain)
    telling = small[1:3] or small  # the first is the smallest there is, which shows little
    distributions = _usable_distributions(problem)
    at_workloads = [name for name in ("normal", "wide") if name in distributions]
    odd = _odd_distributions(problem) if telling else ()
    pairs = [
        *((sizes, "normal") for sizes in _edge_sizes(domain)),
        *((sizes, name) for name in distributions for sizes in telling),
        *((telling[i % len(telling)], name) for i, name in enumerate(odd)),
        *((sizes, name) for name in at_workloads for sizes in domain.workloads()),
        *((sizes, "normal") for sizes in _threshold_cases(domain, variant, seed, "full", 4 * SMOKE_BYTES)),
    ]
    return (*_build_cases(domain, pairs, seed, "full"), *_recorded_cases(domain, "full"))


def verify_cases(
    problem: Problem, variant: Variant, device: Device, seed: int, used: Collection[Sizes]
) -> tuple[Case, ...]:
    """Fresh seeds at sizes over the whole contract, and at the workloads. Sizes not among `used`, as far as
    the domain has any: at random, at the constants that one may be compared with, with each size at its
    largest, and one large case."""
    domain = domain_of(problem, variant, device)
    rng = np.random.default_rng(seed_of(seed, "verify"))
    limit = _sorted_edges(domain).limit(domain.byte_limit())
    places = fresh_sizes(domain, _sorted_edges(domain).points, rng, limit, used)
    reaching = [*_corner_sizes(domain, rng, limit), *_large_sizes(domain, rng, device, limit)]
    names = _shuffle_names(_usable_distributions(problem), rng)
    odd = _shuffle_names(_odd_distributions(problem), rng)
    # Values that show a wrong size as well as any go with those; the others hide too much.
    plain = ["normal", *(name for name in odd if name == MIXED)]
    varied = [name for name in names if name not in CONSTANT]  # constants show little at full size
    small = [sizes for sizes in _smoke_sizes(domain)[1:] if sizes not in places] or places[:1]
    little = [sizes for sizes in places if domain.bytes(_size_point(sizes))[0] <= ODD_BYTES] or small
    mixed_sizes = sizes_with_rows(domain, rng, min(limit, ODD_BYTES), MIXED_CASES) or little[:1]
    little.sort(key=lambda sizes: -min(value for _, value in sizes))  # a few elements show little
    around = _threshold_cases(domain, variant, seed, "verify", _most_bytes(domain, device))
    roomy = [domain.bytes(_size_point(sizes))[0] > MAX_ODD_BYTES_AT for sizes in around]
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
    return (*_build_cases(domain, pairs, seed, "verify"), *_recorded_cases(domain, "verify"))


def _recorded_cases(domain: Domain, level: Level) -> tuple[Case, ...]:
    """A program's own launches, whose results the original gave: no error is compared with none."""
    legal = [one for one in domain.problem.recorded if len(domain.allowed(_size_point(one.sizes)))]
    return tuple(Case(one.sizes, one.distribution, 0, level, compares_errors=False) for one in legal)


def _corner_sizes(domain: Domain, rng: np.random.Generator, limit: float) -> list[Sizes]:
    """Each size as large as it gets, the others so small that this is affordable."""
    points = np.concatenate([_sorted_edges(domain).points, domain.sample(rng)])
    points = points[domain.bytes(points) <= max(limit, LARGE_BYTES / 4)]
    if not len(points):
        return []
    corner = domain.allowed(points.max(axis=0, keepdims=True))
    corner = corner[domain.bytes(corner) <= limit]  # all of them, where that is no more than usual
    ends = points[[int(column.argmax()) for column in points.T]] if not len(corner) else corner
    return list(dict.fromkeys(domain.named(ends)))


def _most_bytes(domain: Domain, device: Device) -> float:
    most = min(4 * LARGE_BYTES if device.inspects else LARGE_BYTES, device.limits.max_allocation)
    return max(domain.byte_limit(), most)


def _large_sizes(domain: Domain, rng: np.random.Generator, device: Device, limit: float) -> list[Sizes]:
    """One case larger than all others, where it takes no longer than its bytes say; on a GPU one with an
    array beyond 2**31 elements, or else bytes."""
    points = np.concatenate([domain.sample(rng), domain.sample(rng)])
    taken, volume = domain.bytes(points), np.prod(points.astype(np.float64), axis=1)
    usual = np.prod(domain.workload_points().astype(np.float64), axis=1).max(initial=0.0)
    quick = volume <= np.maximum(taken, 4 * usual)
    points, taken = points[quick], taken[quick]
    most = _most_bytes(domain, device)
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


def _threshold_cases(
    domain: Domain, variant: Variant, seed: int, level: Level, limit: float
) -> tuple[Sizes, ...]:
    limit = min(limit, domain.most_bytes or limit)
    rng = np.random.default_rng(seed_of(seed, "thresholds", level))
    if level != "verify":
        known = common_constants(variant).values
        return threshold_sizes(domain, known, rng, limit, THRESHOLD_CASES[level])
    all_of = collect_constants(variant, rng)
    most = max(THRESHOLD_CASES[level], AROUND * all_of.telling)
    found = threshold_sizes(domain, all_of.values, rng, limit, most)
    broad = broad_sizes(domain, all_of.values, rng, domain.byte_limit())
    return tuple(dict.fromkeys([*found, *broad]))


def _shuffle_names(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [str(name) for name in rng.permutation(names)] if names else []


def _size_point(sizes: Sizes) -> Ints:
    return np.array([[value for _, value in sizes]], dtype=np.int64)


def case_reach(problem: Problem, cases: Iterable[Case]) -> tuple[tuple[str, int], ...]:
    """How far cases go: the largest of each size, and of the elements of each array with several sizes."""
    seen = [dict(case.sizes) for case in cases]
    found = {name: max(sizes[name] for sizes in seen) for name in problem.size_names if seen}
    for argument in problem.arguments:
        several = {name for e in argument.shape for name in e.names}
        if argument.is_array and len(several) > 1 and several <= {*problem.size_names} and seen:
            text = product_text(e.text for e in argument.shape)
            found[text] = max(parse_expr(text).evaluate(sizes) for sizes in seen)
    return tuple(found.items())


def _more_items(problem: Problem, item: str) -> int | None:
    """The smallest number of items that is enough, None where the contract has none."""
    rule = next(rule for rule in problem.contract.sizes if rule.name == item)
    enough = -(-COMPARABLE_ITEMS // rule.multiple_of) * rule.multiple_of
    values = sorted(rule.one_of) if rule.one_of else [max(enough, rule.min)]
    return next((value for value in values if value >= COMPARABLE_ITEMS and rule.allows(value)), None)


def _build_cases(
    domain: Domain, pairs: Iterable[tuple[Sizes, str]], seed: int, level: Level
) -> tuple[Case, ...]:
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


def _usable_distributions(problem: Problem) -> tuple[str, ...]:
    """All of them, or one where the user has said how every array is filled."""
    free = (a for a in problem.arguments if a.is_drawn and a.values is None and a.range is None)
    return DISTRIBUTIONS if problem.inputs is not None or any(free) else DISTRIBUTIONS[:1]


# What rounds to fewer bits, in a kernel's text: there ties are drawn on purpose.
_CONVERTS = re.compile(
    r"rint|round|convert_|__(float|double|half)\w*2|_r[nzud]\b|\bcvt|fp8|e4m3|e5m2|\bchar\b"
)


def _odd_distributions(problem: Problem) -> tuple[str, ...]:
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
def _sorted_edges(domain: Domain) -> _Edges:
    points = np.unique(domain.edges(), axis=0)
    taken = domain.bytes(points)
    order = np.argsort(taken, kind="stable")
    return _Edges(points[order], taken[order])


@lru_cache(maxsize=512)
def _smoke_sizes(domain: Domain) -> tuple[Sizes, ...]:
    points = _sorted_edges(domain).within(SMOKE_BYTES)
    if not len(points):
        return ()
    chosen = _choose_covering(_coverage_masks(points), [0], SMOKE_CASES)
    others = (index for index in range(len(points) // 2, len(points)) if index not in chosen)
    chosen += islice(others, max(0, 3 - len(chosen)))  # two may show all there is to see; a third is cheap
    return tuple(domain.named(points[chosen]))


@lru_cache(maxsize=512)
def _edge_sizes(domain: Domain) -> tuple[Sizes, ...]:
    points = _sorted_edges(domain).within(domain.byte_limit())
    if not len(points):
        return ()
    sights = [(100 * weight, shown) for weight, shown in _coverage_masks(points)]
    for rule, column in zip(domain.problem.contract.sizes, points.T, strict=True):
        telling = domain.edge_values(rule)[:MAX_VALUES]
        sights += [(MAX_VALUES - place, column == value) for place, value in enumerate(telling)]
    small = [int((points == [v for _, v in sizes]).all(axis=1).argmax()) for sizes in _smoke_sizes(domain)]
    largest = [int((column == column.max()).argmax()) for column in points.T]
    most = min(FULL_BYTES, domain.byte_limit())
    largest.append(len(_sorted_edges(domain).within(most)) - 1)  # all of them large; points are sorted
    return tuple(domain.named(points[_choose_covering(sights, [*small, *largest], EDGE_CASES)]))


def _coverage_masks(points: Ints) -> list[tuple[int, Bools]]:
    """What a case can show about the ways kernels usually go wrong: (weight, which points show it). A tail is
    an odd multiple of the step between legal values: no block or vector divides it evenly."""
    tails, several, many = list[Bools](), list[Bools](), list[Bools]()
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
        sights += [
            *((2, shown) for shown in reach),
            (2, column >= min(spans[2], int(column.max()))),  # more than there is room for
            (1, column == column.min()),
            (1, tail & (column < 64) & (column > column.min())),  # less than a block
            (1, tail & (column > 256) & (column < 2048)),  # less than a large one
            (1, (column % 256 == 0) & (column > 0)),  # nothing left over
        ]
    sights.append((4, np.all([*several, *tails], axis=0)))
    for one, other in combinations(range(len(many)), 2):
        sights += [(3, many[one] & several[other]), (3, many[other] & several[one])]
        a, b = points[:, one], points[:, other]
        sights.append((3, (a != b) & (a > a.min()) & (b > b.min())))  # the two swapped
    return sights


def _choose_covering(sights: Sequence[tuple[int, Bools]], first: Sequence[int], count: int) -> list[int]:
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


def case_misfit(problem: Problem, case: ExtraCase) -> str | None:
    """Why a case cannot be one of this problem; None where it can."""
    sizes = dict(case.sizes)
    if tuple(sizes) != problem.size_names:
        return f"it must give every size, {', '.join(problem.size_names)}, and no other"
    if broken := problem.contract.violations(sizes):
        return broken[0]
    # How large a workspace is, a device may decide.
    known = [a for a in problem.arguments if all(e.names <= sizes.keys() for e in (*a.shape, *a.strides))]
    domain = Domain(replace(problem, arguments=tuple(known)), ())
    if domain.bytes(_size_point(case.sizes))[0] > domain.byte_limit():
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
    legal = [(c.sizes, c.distribution) for c in wanted if len(domain.allowed(_size_point(c.sizes)))]
    return _build_cases(domain, legal, seed, level)
