"""Operations on values of a team: numbers computed, expressions built, parts of totals joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.fold import binary, unary
from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, Ternary, Type, Unary
from tunesmith.csource.types import is_integer
from tunesmith.expert.model.affine import OPPOSITE
from tunesmith.expert.model.kernel import Operator
from tunesmith.expert.model.team_memory import BlockMemory
from tunesmith.expert.model.team_record import ElementTotals, TaskBounds
from tunesmith.expert.model.team_values import (
    Int,
    PartialTotal,
    Poison,
    Share,
    Sym,
    Threads,
    Value,
    Vec,
    Which,
    expr_of,
    is_neutral,
    joined,
)

_ORDERINGS = frozenset({"<", ">", "<=", ">="})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})
_JOINS: Mapping[str, Operator] = {"+": "+", "*": "*", "&": "&", "|": "|", "^": "^"}


class ValueArithmetic:
    """What operators and choices make of values."""

    def __init__(self, memory: BlockMemory, bounds: TaskBounds, elements: ElementTotals) -> None:
        self.memory = memory
        self.bounds = bounds
        self.elements = elements

    def combine(self, op: str, left: Vec, right: Vec, active: Threads) -> Vec:
        return self.memory.apply(lambda a, b, t: self.binary(op, a, b, t), left, right, active)

    def built(self, make: Callable[[Sequence[Expr]], Expr], parts: Sequence[Vec], active: Threads) -> Vec:
        """An expression made of others, where all of them hold for the whole team."""

        def at(thread: int) -> Value:
            exprs: list[Expr] = []
            for part in parts:
                value = part.at(thread)
                expr = expr_of(value)
                if expr is None:
                    return partial(value, self.memory.line)
                exprs.append(expr)
            return Sym(make(exprs))

        if all(part.one is not None for part in parts):
            return Vec(at(active[0] if active else 0))
        return self.memory.vector(active, at)

    def cast(self, type_: Type, value: Value) -> Value:
        match value:
            case Int(expr=None) | Int(expr=Number()) if is_integer(type_):
                return value
            case Int(expr=expr) if is_integer(type_) and expr is not None:
                return replace(value, expr=Cast(type_, expr))
            case Int(expr=expr) | Sym(expr=expr) if expr is not None:
                return Sym(Cast(type_, expr))
            case PartialTotal(parts=parts) if self.memory.totals[parts[0][0]].type.base == type_.base:
                return value
        return partial(value, self.memory.line)

    def unary(self, op: str, value: Value) -> Value:
        match value:
            case Int(value=number, expr=Number()):
                return Int(unary(op, number), Number(str(unary(op, number)), unary(op, number)))
            case Int(value=number, expr=expr):
                said = None if expr is None else Unary(op, expr)
                return replace(value, value=unary(op, number), expr=said)
            case Sym(expr=expr):
                return Sym(Unary(op, expr))
            case Which(op=relation, left=left, right=right) if op == "!":
                return Which(OPPOSITE.get(relation, "=="), left, right)
        return partial(value, self.memory.line)

    def binary(self, op: str, left: Value, right: Value, thread: int) -> Value:
        if isinstance(left, Int) and isinstance(right, Int):
            value = binary(op, left.value, right.value)
            if value is None:
                return Poison(f"'{op}' has no value here", self.memory.line)
            if op in _ORDERINGS:
                bounded = self.bounds.test(op, left, right)
                if bounded is not None:
                    return bounded
            sized = left.sized or right.sized
            if left.expr is None or right.expr is None:
                return Int(value, None, sized=sized)
            if isinstance(left.expr, Number) and isinstance(right.expr, Number):
                return Int(value, Number(str(value), value))
            if op in ("+", "-") and right.expr == Number("0", 0):
                return left
            return Int(value, Binary(op, left.expr, right.expr), left.launch or right.launch, sized)
        if isinstance(left, Poison):
            return left
        if isinstance(right, Poison):
            return right
        if isinstance(left, PartialTotal | Share) or isinstance(right, PartialTotal | Share):
            if op in _JOINS:
                return self.join(_JOINS[op], left, right, thread)
            if op in _COMPARISONS:
                return Which(op, left, right)
            return partial(left if isinstance(left, PartialTotal | Share) else right, self.memory.line)
        a, b = expr_of(left), expr_of(right)
        if a is None or b is None:
            return partial(left if a is None else right, self.memory.line)
        if op in _JOINS and self.adds_nothing(_JOINS[op], a, b):
            return left
        if op in _JOINS and self.adds_nothing(_JOINS[op], b, a):
            return right
        return Sym(Binary(op, a, b))

    def adds_nothing(self, operator: Operator, value: Expr, other: Expr) -> bool:
        """Whether a complete total (or a mere number) meets what lanes without a share bring along."""
        total = self.memory.totals.get(value.name) if isinstance(value, Name) else None
        if total is None and not isinstance(value, Number):
            return False
        return is_neutral(operator, Sym(other), None if total is None else total.start)

    def join(self, operator: Operator, left: Value, right: Value, thread: int) -> Value:
        """Two values combined by a total's operator, at least one of them a part (or a complete total)."""
        left, right = (
            self.elements.as_total(operator, left, thread),
            self.elements.as_total(operator, right, thread),
        )
        for part, other in ((left, right), (right, left)):
            if isinstance(part, PartialTotal) and not isinstance(other, PartialTotal):
                start = self.memory.totals[part.parts[0][0]].start
                if part.operator == operator and is_neutral(operator, other, start):
                    return part
                other_part = self.as_part(other, operator, thread)
                if other_part is None or part.operator != operator:
                    return partial(part, self.memory.line)
                return self.memory.settled(joined(operator, part, other_part), thread)
        if isinstance(left, PartialTotal) and isinstance(right, PartialTotal):
            if left.operator != operator or right.operator != operator:
                return partial(left, self.memory.line)
            result = joined(operator, left, right)
            return (
                Poison(result.reason, self.memory.line)
                if isinstance(result, Poison)
                else self.memory.settled(result, thread)
            )
        return partial(left, self.memory.line)

    def as_part(self, value: Value, operator: Operator, thread: int) -> PartialTotal | None:
        if isinstance(value, Sym) and isinstance(value.expr, Name) and value.expr.name in self.memory.totals:
            total = self.memory.totals[value.expr.name]
            if total.operator == operator:
                return PartialTotal(
                    operator, ((total.name, self.memory.team_masks[self.memory.team(thread)]),)
                )
        return None

    def extreme(self, function: str, operator: Operator, left: Value, right: Value, thread: int) -> Value:
        if isinstance(left, Int) and isinstance(right, Int):
            value = (max if operator == "max" else min)(left.value, right.value)
            whole = left.expr is not None and right.expr is not None
            expr = Call(function, (left.expr, right.expr)) if left.expr and right.expr else None
            sized = left.sized or right.sized
            return Int(value, expr if whole else None, left.launch or right.launch, sized)
        if isinstance(left, PartialTotal | Share) or isinstance(right, PartialTotal | Share):
            if isinstance(left, Poison) or isinstance(right, Poison):
                return left if isinstance(left, Poison) else right
            return self.join(operator, left, right, thread)
        a, b = expr_of(left), expr_of(right)
        if a is None or b is None:
            return partial(left if a is None else right, self.memory.line)
        if a == b or self.adds_nothing(operator, a, b):
            return left
        if self.adds_nothing(operator, b, a):
            return right
        return Sym(Call(function, (a, b)))

    def select(self, condition: Value, yes: Value, no: Value, thread: int) -> Value:
        """condition ? yes : no, for a condition that is no number."""
        if yes == no:
            return yes
        if isinstance(condition, Which):
            pair = (condition.left, condition.right)
            larger = condition.op in (">", ">=")
            if condition.op in ("<", "<=", ">", ">=") and (yes, no) in (pair, pair[::-1]):
                operator: Operator = "max" if larger == ((yes, no) == pair) else "min"
                return self.join(operator, yes, no, thread)
            return Poison("a choice by a part of a total", self.memory.line)
        test, a, b = expr_of(condition), expr_of(yes), expr_of(no)
        if test is None or a is None or b is None:
            return partial(condition if test is None else yes if a is None else no, self.memory.line)
        return Sym(Ternary(test, a, b))


def partial(value: Value, line: int) -> Poison:
    if isinstance(value, Poison):
        return value
    if isinstance(value, PartialTotal):
        names = ", ".join(f"'{name}'" for name, _ in value.parts)
        return Poison(f"uses {names} where not every thread's share is in it", line)
    if isinstance(value, Share):
        return Poison("uses another thread's element by itself", line)
    return Poison("a value that differs from thread to thread", line)
