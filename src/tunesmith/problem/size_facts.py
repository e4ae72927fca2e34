"""What a contract says of an expression over its sizes: how large it gets, and what divides it."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tunesmith.problem.problem import Contract
from tunesmith.space.grammar import LIMIT, Arithmetic, Compare, FunctionCall, Node, Num, Variable


@dataclass(frozen=True)
class SizeFact:
    """Of a value that is never negative and always there."""

    most: int
    divisor: int  # it is a multiple of that at all sizes; 0: it is 0


def size_fact(node: Node, contract: Contract) -> SizeFact | None:
    """None: nothing is certain; it may even have no value."""
    found = _fact(node, contract)
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


def _fact(node: Node, contract: Contract) -> SizeFact | None:
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
            most = {"+": one.most + other.most, "min": min(one.most, other.most)}
            return SizeFact(most.get(op, max(one.most, other.most)), gcd(one.divisor, other.divisor))
        case Arithmetic("//", left, Num(by)) | FunctionCall("ceildiv", (left, Num(by))) if by > 0:
            whole = size_fact(left, contract)
            if whole is None:
                return None
            up = 0 if isinstance(node, Arithmetic) else by - 1
            return SizeFact((whole.most + up) // by, whole.divisor // by if whole.divisor % by == 0 else 1)
    return None
