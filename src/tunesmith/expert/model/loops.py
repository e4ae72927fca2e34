"""The head of a `for` loop: its index, start, stop and step."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.csource.nodes import Assign, Binary, Declare, Expr, For, Name, Number, Unary
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.affine import number, without_casts

_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Head:
    """for (index = start; index < stop; index += step)"""

    index: str
    type: str
    start: Expr
    stop: Expr
    step: Expr


def head_of(loop: For) -> Head | None:
    """None for loops that count otherwise: downwards, by halves, by several indices."""
    if len(loop.init) != 1 or len(loop.step) != 1 or loop.condition is None:
        return None
    declare = loop.init[0]
    if not isinstance(declare, Declare) or declare.init is None or not is_integer(declare.type):
        return None
    stop = _stop(loop.condition, declare.name)
    step = _step(loop.step[0], declare.name)
    if stop is None or step is None or declare.name in names_in(step) | names_in(stop):
        return None
    return Head(declare.name, declare.type.base, declare.init, stop, step)


def _stop(condition: Expr, index: str) -> Expr | None:
    if not isinstance(condition, Binary):
        return None
    op, left, right = condition.op, condition.left, condition.right
    if without_casts(right) == Name(index) and op in _MIRROR:
        op, left, right = _MIRROR[op], right, left
    if without_casts(left) != Name(index):
        return None
    if op == "<":
        return right
    if op == "<=":
        return Binary("+", right, number(1))
    return None


def _step(step: Expr, index: str) -> Expr | None:
    match step:
        case Unary(op="++", operand=Name(name=name)) if name == index:
            return number(1)
        case Assign(op="+=", target=Name(name=name), value=value) if name == index:
            return value
        case Assign(op="=", target=Name(name=name), value=Binary(op="+", left=left, right=right)):
            if name == index and left == Name(index):
                return right
            if name == index and right == Name(index):
                return left
    return None


def trips(head: Head) -> int | None:
    """How often the loop turns where that is a constant of the source."""
    match head.start, head.stop, head.step:
        case Number(value=int(start)), Number(value=int(stop)), Number(value=int(step)) if step > 0:
            return max(0, -(-(stop - start) // step))
    return None
