"""The constants that a kernel may compare a size with, and sizes at, just below and just above each.

A path for 528 and more is reached by no small case and by few random ones. Whatever number stands in a
variant's conditions, its launches or its text may be such a bound: those in comparisons come first, and those
that are no power of two, around which every kernel is tested anyway.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, zip_longest
from math import isqrt

import numpy as np

from tunesmith.csource.lex import Token, lex, read_number
from tunesmith.problem.domain import Domain, Ints, Sizes, array_lengths
from tunesmith.problem.problem import SizeRule
from tunesmith.problem.template import Variant
from tunesmith.space.grammar import Compare, Node, Num, OneOf, children

MOST = 1 << 40  # beyond it no size goes
SMALL = 16  # edge cases have all around these
MOST_CONSTANTS = 64
MOST_PASSES = 64
MOST_REMAINDERS = 8
OTHERS = 64  # of a size that is not the one looked at, where its range allows

Word = int | str
_INTEGER_TYPES = frozenset(("int", "unsigned", "long", "short", "char", "size_t", "uint", "ulong"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_PRECEDENCE = {"*": 3, "/": 3, "%": 3, "+": 2, "-": 2, "<<": 1, ">>": 1}
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "+": operator.add,
    "-": operator.sub,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
# `n op k` compared with c: where n is then.
_UNDONE: dict[str, Callable[[int, int], int]] = {
    "*": lambda c, k: -(-c // k),
    "/": operator.mul,
    "%": operator.add,
    "&": lambda c, k: c + k + 1,
    "+": operator.sub,
    "-": operator.add,
    "<<": operator.rshift,
    ">>": operator.lshift,
}


@dataclass(frozen=True)
class Constants:
    """The most telling first; so many of them stand in comparisons and are tried by no other case."""

    values: tuple[int, ...]
    telling: int


def constants(variant: Variant, rng: np.random.Generator | None = None) -> Constants:
    """With `rng` nobody can foresee the order of equals, nor which are left out where there are too many."""
    exprs = [*variant.domain, *(e for launch in variant.launches for e in (*launch.grid, *launch.block))]
    compared, mentioned = Counter[int](), Counter[int]()
    for expr in exprs:
        compared.update(_in_conditions(expr.tree))
        mentioned.update(_numbers(expr.tree))
    in_text = _in_text("\n".join([*(text for _, text in variant.headers), variant.source]), variant.language)
    compared.update(in_text[0])
    mentioned.update(in_text[1])

    found = sorted({value for value in (*compared, *mentioned) if 2 < value <= MOST})
    order = dict(zip(found, rng.permutation(len(found)), strict=True)) if rng is not None else {}

    def kind(value: int) -> int:
        plain = value <= SMALL or value & (value - 1) == 0 or value & (value + 1) == 0
        return (2 if plain else 0) + (0 if value in compared else 1)

    def rank(value: int) -> tuple[bool, int, int, int]:
        often = 0 if order else compared[value] + mentioned[value]
        return value <= SMALL, kind(value), often, int(order.get(value, value))

    best = tuple(sorted(found, key=rank)[:MOST_CONSTANTS])
    return Constants(best, sum(kind(value) == 0 for value in best))


def common_constants(variant: Variant) -> Constants:
    """Those of all configurations of a template: by what stands in its own text, before any value of a
    parameter is put in. They share what the reference says of such cases."""
    _, marker, text = variant.source.partition("\n#line 1 ")
    own = replace(variant, source=text.partition("\n")[2]) if marker and variant.config else variant
    return constants(replace(own, domain=(), launches=()))


def _numbers(node: Node) -> Iterator[int]:
    if isinstance(node, Num):
        yield node.value
    for child in children(node):
        yield from _numbers(child)


def _in_conditions(node: Node) -> Iterator[int]:
    match node:
        case Compare(left, links):
            yield from (
                side.value for side in (left, *(right for _, right in links)) if isinstance(side, Num)
            )
        case OneOf(_, options):
            yield from options
    for child in children(node):
        yield from _in_conditions(child)


def _tokens(text: str, language: str) -> Sequence[Token]:
    """With macros expanded, where there are any and it can be read."""
    if "#" not in text:
        return lex(text)
    from tunesmith.csource.nodes import Unreadable
    from tunesmith.csource.preprocess import preprocess

    try:
        return preprocess(text, language).tokens
    except Unreadable:
        return lex(text)


@lru_cache(maxsize=64)
def _in_text(text: str, language: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers that something is compared with, and all others."""
    words = reduced([word for token in _tokens(text, language) if (word := _word(token)) is not None])
    compared: list[int] = []
    mentioned: list[int] = []
    remainders: set[tuple[int, int]] = set()  # `n % 97 == 5`: 97 and 5
    for at, word in enumerate(words):
        if not isinstance(word, int):
            continue
        for step in (-1, 1):  # the comparison stands before it, or behind it
            if _at(words, at + step) in _COMPARISONS:
                compared.append(word)
                compared += _undone(words, at + step, step, word)
                remainders |= {
                    (factor, word) for factor, sign in _factor(words, at + step, step) if sign == "%"
                }
        if _at(words, at - 1) == ">>" and 0 <= word < 40:
            mentioned.append(1 << word)
        mentioned.append(word)
    compared += _of_roots(words, compared)
    # Where both hold, `n % 97 == 5 && n > 200`: the first such number beyond the other.
    both = [
        (bound // modulus + 1) * modulus + rest
        for modulus, rest in sorted(remainders)[:MOST_REMAINDERS]
        for bound in sorted(set(compared))
        if bound > modulus > rest >= 0
    ]
    return tuple(compared + both[:MOST_CONSTANTS]), tuple(mentioned)


def _of_roots(words: Sequence[Word], compared: Sequence[int]) -> list[int]:
    """528 of `n * n > 278784`, 278784 of `sqrt(n) > 528`."""
    squares = any(
        _is_name(a) and a == b for a, sign, b in zip(words, words[1:], words[2:], strict=False) if sign == "*"
    )
    roots = any("sqrt" in word for word in words if isinstance(word, str))
    found = [isqrt(value) for value in compared if squares and value > SMALL * SMALL]
    return found + [value * value for value in compared if roots and SMALL < value * value <= MOST]


def _undone(words: Sequence[Word], at: int, step: int, value: int) -> Iterator[int]:
    """`n * 3 < 1584`: 528, where the comparison stands at this place and `value` on its other side."""
    for factor, sign in _factor(words, at, step):
        if 0 < factor <= (40 if sign in ("<<", ">>") else MOST):
            yield _UNDONE[sign](value, factor)


def _factor(words: Sequence[Word], at: int, step: int) -> Iterator[tuple[int, str]]:
    """The 3 and the * of `n * 3 < 1584`."""
    far = 3 if step > 0 else -2 if _at(words, at - 1) == ")" else -1
    factor, sign = _at(words, at + far), _at(words, at + far - 1)
    if isinstance(factor, int) and isinstance(sign, str) and sign in _UNDONE:
        yield factor, sign


def _at(words: Sequence[Word], place: int) -> Word | None:
    return words[place] if 0 <= place < len(words) else None


def _word(token: Token) -> Word | None:
    if token.kind == "number":
        value = read_number(token.text)
        return value if isinstance(value, int) else token.text
    return None if token.kind in ("directive", "string") else token.text


def reduced(words: list[Word]) -> list[Word]:
    """`( 4 * 1024 )` as 4096, `(int)528` as 528; what is no constant as it stands."""
    for _ in range(MOST_PASSES):
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
        a, op, b = words[at], _at(words, at + 1), _at(words, at + 2)
        if a == "(" and b == ")" and op in _INTEGER_TYPES and isinstance(_at(words, at + 3), int):
            at += 3  # a cast
            continue
        value = _computed(a, op, b)
        mine = _PRECEDENCE.get(op, 0) if isinstance(op, str) else 0
        before, behind = _at(out, len(out) - 1), _at(words, at + 3)
        if value is None or _binds(before, mine) or _binds(behind, mine + 1):
            out.append(a)
            at += 1
        else:
            out.append(value)
            at += 3
    return out


def _computed(a: Word, op: Word | None, b: Word | None) -> int | None:
    if not isinstance(a, int) or not isinstance(b, int) or not isinstance(op, str) or op not in _COMPUTE:
        return None
    if (op in ("/", "%") and b == 0) or (op in ("<<", ">>") and not 0 <= b < 40):
        return None
    value = _COMPUTE[op](a, b)
    return value if abs(value) <= MOST else None


def _binds(word: Word | None, precedence: int) -> bool:
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
    lists = [_around(domain, rule, values, room) for rule in rules]
    small = [_small(domain, rule) for rule in rules]
    if not all(map(len, small)):
        return ()
    # Large values of one size meet small ones of the next, so that products stay affordable.
    ordered = [sorted(one, reverse=bool(number % 2)) for number, one in enumerate(lists)]
    found: dict[Sizes, int] = {}  # -> how telling it is, 0 the most
    for wanted in zip_longest(*ordered):
        point = [int(rng.choice(pool)) if v is None else v for v, pool in zip(wanted, small, strict=True)]
        rank = min(one.index(v) for one, v in zip(lists, wanted, strict=True) if v is not None)
        together = _first(domain, np.array([point], dtype=np.int64), limit)
        alone = [] if together else [_alone(domain, wanted, i, small, rng, limit) for i in range(len(rules))]
        found |= {sizes: rank for sizes in (together, *alone) if sizes is not None}
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
        telling = _around(domain, rule, [value for value in values if value > SMALL], 1)
        moved = points.copy()
        moved[:, size] = telling[0] if telling else 0
        large = (np.delete(moved, size, axis=1) > OTHERS).sum(axis=1)
        moved = moved[np.argsort(-large, kind="stable")]
        found.append(_first(domain, moved, limit) if telling else None)
    return tuple(dict.fromkeys(sizes for sizes in found if sizes is not None))


def _around(domain: Domain, rule: SizeRule, values: Sequence[int], most: int) -> list[int]:
    found: dict[int, None] = {}
    steps = np.arange(-2, 3, dtype=np.int64) * rule.multiple_of
    for value in values:
        if not rule.min - rule.multiple_of <= value <= rule.max + rule.multiple_of:
            continue
        near = domain.legal_values(rule, value + steps)
        below, above = near[near < value], near[near > value]
        found.update(
            dict.fromkeys((*near[near == value].tolist(), *above[:1].tolist(), *below[-1:].tolist()))
        )
        if len(found) >= most:
            break
    return list(found)[:most]


def _small(domain: Domain, rule: SizeRule) -> Ints:
    steps = np.arange(OTHERS + 1, dtype=np.int64) * rule.multiple_of
    legal = domain.legal_values(rule, np.concatenate([rule.min + steps, steps]))
    some = legal[legal >= SMALL] if (legal >= SMALL).any() else legal
    return some if len(some) else np.array(domain.edge_values(rule)[:8], dtype=np.int64)


def _alone(
    domain: Domain,
    wanted: Sequence[int | None],
    size: int,
    small: Sequence[Ints],
    rng: np.random.Generator,
    limit: float,
) -> Sizes | None:
    """This size as wanted and the others small."""
    if wanted[size] is None:
        return None
    points = np.stack([rng.choice(pool, 64) for pool in small], axis=1)
    points[:, size] = wanted[size]
    return _first(domain, points, limit)


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
                if sizes := _first(domain, moved, limit):
                    yield sizes
            if fits.any():
                break


def _first(domain: Domain, points: Ints, limit: float) -> Sizes | None:
    legal = domain.allowed(points)
    legal = legal[domain.bytes(legal) <= limit]
    return next(domain.named(legal[:1]), None)
