"""Arithmetic of sizes for shapes: what divides what, and in which order strides come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count as counting
from math import isqrt

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.affine import exact, from_terms, number, terms
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, all_steps

Terms = dict[tuple[c.Expr, ...], int]


def in_whole_sizes(expr: c.Expr, multiples: Mapping[str, int]) -> c.Expr:
    """Simplified, with sizes divided by what divides them: `8 * (d / 8)` is d."""
    shares = {f"{name} / {by}": (name, by) for name, most in multiples.items() for by in _divisors(most)}
    whole = {share: c.Binary("/", c.Name(name), number(by)) for share, (name, by) in shares.items()}
    found: Terms = {}
    for key, count in terms(exact(expr, multiples)).items():
        factors: list[c.Expr] = []
        for factor in key:
            name, by = shares.get(factor.name, ("", 1)) if isinstance(factor, c.Name) else ("", 1)
            if not name:
                factors.append(factor)
            elif count % by == 0:
                factors.append(c.Name(name))
                count //= by
            else:
                factors.append(c.Binary("/", c.Name(name), number(by)))
        factors = [substitute(factor, whole) for factor in factors]
        product = tuple(sorted(factors, key=print_expr))
        found[product] = found.get(product, 0) + count
    return from_terms(found)


def _divisors(most: int) -> Iterator[int]:
    return (by for by in range(1, most + 1) if most % by == 0)


def rounded_up(expr: c.Expr | None, by: int | None) -> c.Expr | None:
    """x of `(x + 15) / 16`, where it is rounded up by that number."""
    match expr:
        case c.Binary(op="/", left=left, right=c.Number(value=int(divisor))) if divisor == by:
            rest = dict(terms(left))
            if rest.pop((), 0) == divisor - 1:
                return from_terms(rest)
    return None


def primes() -> Iterator[int]:
    """Sizes to compare strides by: large, and none the multiple of others."""
    return (at for at in counting(1009, 2) if all(at % n for n in range(3, isqrt(at) + 1, 2)))


def side_by_side(parts: set[tuple[int, int]], whole: int) -> bool:
    """Whether parts fill the whole, each where the one before it ends: two halves of a row."""
    reached = 0
    for start, extent in sorted(parts):
        if start != reached:
            return False
        reached += extent
    return reached == whole


def meanings_of(kernel: KernelModel) -> dict[str, c.Expr]:
    """Variables with one value, and that value."""
    found: dict[str, c.Expr] = {}
    changed: set[str] = set()
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each | Let | Once):
            continue
        changed |= walk.assigned_in(step.body)
        for stmt in walk.statements_in(step.body):
            if isinstance(stmt, c.Declare):
                if stmt.init is None or stmt.name in found:
                    changed.add(stmt.name)
                else:
                    found[stmt.name] = stmt.init
    return {name: value for name, value in found.items() if name not in changed}
