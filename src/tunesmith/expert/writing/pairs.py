"""Results of a loop that the hardware converts two at a time: which statement makes them, and of what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.csource.nodes import Assign, Call, Evaluate, Expr, Index, Jump, Member, Name, Return, Stmt
from tunesmith.csource.walk import nodes_in


@dataclass(frozen=True)
class Converted:
    """The last statement of a body stores `value`, converted, as element `lane` of the array `into`."""

    before: tuple[Stmt, ...]
    into: Expr
    value: Expr
    form: str


def converted(body: tuple[Stmt, ...], lane: str, in_pairs: Mapping[str, str]) -> Converted | None:
    """None where a body does not end so, or may be left before its end."""
    if not body or any(isinstance(node, Jump | Return) for node in nodes_in(body)):
        return None
    match body[-1]:
        case Evaluate(expr=Assign(op="=", target=target, value=Call(function=helper, args=(value,)))):
            if isinstance(target, Member) and target.field == "__x":  # the whole of a float8
                target = target.base
            form = in_pairs.get(helper)
            if form is not None and isinstance(target, Index) and target.index == Name(lane):
                return Converted(body[:-1], target.base, value, form)
    return None
