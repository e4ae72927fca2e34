"""What the contract's ranges say of index arithmetic: sums that are never below zero, whatever the sizes are.

An expression is a polynomial over sizes and indices. Indices, and quotients of sizes, are put at the end of
their range that makes the whole smallest; sizes are counted from their least value on. If nothing is taken
away then, it is never negative. What is not understood is a symbol without a range, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_expr
from tunesmith.expert.model.affine import terms
from tunesmith.problem.problem import SizeRule
from tunesmith.space import grammar as size
from tunesmith.space.grammar import Node

_Sum = dict[tuple[str, ...], Fraction]  # names that are multiplied -> how often that is added
_Range = tuple[_Sum, _Sum]
_MOST_TERMS = 200
_DEEPEST = 40


def _plus(left: _Sum, right: _Sum, times: Fraction | int = 1) -> _Sum:
    found = dict(left)
    for key, count in right.items():
        found[key] = found.get(key, Fraction(0)) + count * times
    return {key: count for key, count in found.items() if count}


def _times(left: _Sum, right: _Sum) -> _Sum:
    found: _Sum = {}
    for key, count in left.items():
        for other, more in right.items():
            found = _plus(found, {tuple(sorted((*key, *other))): count * more})
    return found


def _constant(value: int | Fraction) -> _Sum:
    return {(): Fraction(value)} if value else {}


@dataclass
class SizeBounds:
    """`parameters`: the kernel's integers over sizes; `ranges`: indices as first and last value."""

    rules: tuple[SizeRule, ...]
    parameters: Mapping[str, Node]
    ranges: Mapping[str, tuple[c.Expr, c.Expr]]
    _quotients: dict[str, _Range] = field(default_factory=dict)

    def never_negative(self, expr: c.Expr) -> bool:
        return self._holds(self._of(expr), 0)

    def _of(self, expr: c.Expr) -> _Sum:
        found: _Sum = {}
        for key, count in terms(expr).items():
            product = _constant(count)
            for factor in key:
                product = _times(product, self._factor(factor))
            found = _plus(found, product)
        return found

    def _factor(self, factor: c.Expr) -> _Sum:
        if isinstance(factor, c.Name) and factor.name not in self.ranges and factor.name in self.parameters:
            return self._node(self.parameters[factor.name])
        match factor:
            # C cuts off towards 0, which is down of what is never below it.
            case c.Binary("/", left, c.Number(value=int(by))) if by > 0 and self.never_negative(left):
                name, exact = print_expr(factor), _times(self._of(left), _constant(Fraction(1, by)))
                self._quotients[name] = (_plus(exact, _constant(Fraction(1 - by, by))), exact)
                return {(name,): Fraction(1)}
        return {(f"{factor.name} here" if isinstance(factor, c.Name) else print_expr(factor),): Fraction(1)}

    def _node(self, node: Node) -> _Sum:
        match node:
            case size.Num(value):
                return _constant(value)
            case size.Variable(name):
                return {(name,): Fraction(1)}
            case size.Neg(operand):
                return _plus({}, self._node(operand), -1)
            case size.Arithmetic("+" | "-" as op, left, right):
                return _plus(self._node(left), self._node(right), 1 if op == "+" else -1)
            case size.Arithmetic("*", left, right):
                return _times(self._node(left), self._node(right))
            case size.Arithmetic("//", left, size.Num(by)) if by > 0:
                return self._quotient(node, left, by, Fraction(1 - by, by), Fraction(0))
            case size.FunctionCall("ceildiv", (left, size.Num(by))) if by > 0:
                return self._quotient(node, left, by, Fraction(0), Fraction(by - 1, by))
        return {(size.unparse(node) + " ?",): Fraction(1)}

    def _quotient(self, node: Node, whole: Node, by: int, low: Fraction, high: Fraction) -> _Sum:
        name, exact = size.unparse(node), _times(self._node(whole), _constant(Fraction(1, by)))
        self._quotients[name] = (_plus(exact, _constant(low)), _plus(exact, _constant(high)))
        return {(name,): Fraction(1)}

    def _holds(self, found: _Sum, depth: int) -> bool:
        if depth > _DEEPEST or len(found) > _MOST_TERMS:
            return False
        used = {name for key in found for name in key}
        for name, (first, last) in self.ranges.items():
            if f"{name} here" in used:
                return self._at_its_end(found, f"{name} here", (self._of(first), self._of(last)), depth)
        for name, range_ in self._quotients.items():
            if name in used:
                return self._at_its_end(found, name, range_, depth)
        least = {
            rule.name: min(rule.one_of)
            if rule.one_of
            else -(-rule.min // rule.multiple_of) * rule.multiple_of
            for rule in self.rules
        }
        shifted: _Sum = {}
        for key, count in found.items():
            product = _constant(count)
            for name in key:
                if least.get(name, -1) < 0:
                    return False
                product = _times(product, _plus({(name,): Fraction(1)}, _constant(least[name])))
            shifted = _plus(shifted, product)
        return all(count >= 0 for count in shifted.values())

    def _at_its_end(self, found: _Sum, name: str, range_: _Range, depth: int) -> bool:
        """The same with a name put at that end of its range which makes the sum smallest."""
        factor: _Sum = {}
        rest: _Sum = {}
        for key, count in found.items():
            if key.count(name) > 1:
                return False
            if name in key:
                factor = _plus(factor, {tuple(other for other in key if other != name): count})
            else:
                rest[key] = count
        low, high = range_
        if self._holds(factor, depth + 1):
            return self._holds(_plus(rest, _times(factor, low)), depth + 1)
        if self._holds(_plus({}, factor, -1), depth + 1):
            return self._holds(_plus(rest, _times(factor, high)), depth + 1)
        return False
