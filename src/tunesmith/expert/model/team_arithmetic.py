"""Operations on values of a team: numbers computed, expressions built, parts of totals joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.fold import binary, unary
from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, Ternary, Type, Unary
from tunesmith.csource.types import is_integer
from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.affine import MIRROR, OPPOSITE
from tunesmith.expert.model.kernel import JOINING, Operator
from tunesmith.expert.model.team_memory import BlockMemory
from tunesmith.expert.model.team_record import ElementTotals, TaskBounds


@dataclass
class ValueArithmetic:
    """What operators and choices make of values."""

    memory: BlockMemory
    bounds: TaskBounds
    elements: ElementTotals

    def combine(self, op: str, left: tv.Vec, right: tv.Vec, active: tv.Threads) -> tv.Vec:
        return self.memory.apply(lambda a, b, t: self.binary(op, a, b, t), left, right, active)

    def built(
        self, make: Callable[[Sequence[Expr]], Expr], parts: Sequence[tv.Vec], active: tv.Threads
    ) -> tv.Vec:
        """An expression made of others, where all of them hold for the whole team."""

        def at(thread: int) -> tv.Value:
            exprs: list[Expr] = []
            for part in parts:
                value = part.at(thread)
                expr = tv.expr_of(value)
                if expr is None:
                    return partial(value, self.memory.line)
                exprs.append(expr)
            return tv.Sym(make(exprs))

        if all(part.one is not None for part in parts):
            return tv.Vec(at(active[0] if active else 0))
        return self.memory.vector(active, at)

    def cast(self, type_: Type, value: tv.Value) -> tv.Value:
        match value:
            case tv.Int(expr=None) | tv.Int(expr=Number()) if is_integer(type_):
                return value
            case tv.Int(expr=expr) if is_integer(type_) and expr is not None:
                return replace(value, expr=Cast(type_, expr))
            case tv.Int(expr=expr) | tv.Sym(expr=expr) if expr is not None:
                return tv.Sym(Cast(type_, expr))
            case tv.PartialTotal(parts=parts) if self.memory.totals[parts[0][0]].type.base == type_.base:
                return value
        return partial(value, self.memory.line)

    def unary(self, op: str, value: tv.Value) -> tv.Value:
        match value:
            case tv.Int(value=number, expr=Number()):
                return tv.Int(unary(op, number), Number(str(unary(op, number)), unary(op, number)))
            case tv.Int(value=number, expr=expr):
                said = None if expr is None else Unary(op, expr)
                return replace(value, value=unary(op, number), expr=said)
            case tv.Sym(expr=expr):
                return tv.Sym(Unary(op, expr))
            case tv.Which(op=relation, left=left, right=right) if op == "!":
                return tv.Which(OPPOSITE.get(relation, "=="), left, right)
        return partial(value, self.memory.line)

    def binary(self, op: str, left: tv.Value, right: tv.Value, thread: int) -> tv.Value:
        if isinstance(left, tv.Int) and isinstance(right, tv.Int):
            value = binary(op, left.value, right.value)
            if value is None:
                return tv.Poison(f"'{op}' has no value here", self.memory.line)
            if op in MIRROR:
                bounded = self.bounds.test(op, left, right)
                if bounded is not None:
                    return bounded
            sized = left.sized or right.sized
            if left.expr is None or right.expr is None:
                return tv.Int(value, None, sized=sized)
            if isinstance(left.expr, Number) and isinstance(right.expr, Number):
                return tv.Int(value, Number(str(value), value))
            if op in ("+", "-") and right.expr == Number("0", 0):
                return left
            return tv.Int(value, Binary(op, left.expr, right.expr), left.launch or right.launch, sized)
        if isinstance(left, tv.Poison) or isinstance(right, tv.Poison):
            return left if isinstance(left, tv.Poison) else right
        if isinstance(left, tv.PartialTotal | tv.Share) or isinstance(right, tv.PartialTotal | tv.Share):
            if op in JOINING:
                return self.join(JOINING[op], left, right, thread)
            if op in OPPOSITE:
                return tv.Which(op, left, right)
            return partial(left if isinstance(left, tv.PartialTotal | tv.Share) else right, self.memory.line)
        a, b = tv.expr_of(left), tv.expr_of(right)
        if a is None or b is None:
            return partial(left if a is None else right, self.memory.line)
        if op in JOINING and self.adds_nothing(JOINING[op], a, b):
            return left
        if op in JOINING and self.adds_nothing(JOINING[op], b, a):
            return right
        return tv.Sym(Binary(op, a, b))

    def adds_nothing(self, operator: Operator, value: Expr, other: Expr) -> bool:
        """Whether a complete total (or a mere number) meets what lanes without a share bring along."""
        total = self.memory.totals.get(value.name) if isinstance(value, Name) else None
        if total is None and not isinstance(value, Number):
            return False
        return tv.is_neutral(operator, tv.Sym(other), None if total is None else total.start)

    def join(self, operator: Operator, left: tv.Value, right: tv.Value, thread: int) -> tv.Value:
        """Two values combined by a total's operator, at least one of them a part (or a complete total)."""
        left, right = (self.elements.as_total(operator, side, thread) for side in (left, right))
        for part, other in ((left, right), (right, left)):
            if isinstance(part, tv.PartialTotal) and not isinstance(other, tv.PartialTotal):
                start = self.memory.totals[part.parts[0][0]].start
                if part.operator == operator and tv.is_neutral(operator, other, start):
                    return part
                other_part = self.as_part(other, operator, thread)
                if other_part is None or part.operator != operator:
                    return partial(part, self.memory.line)
                return self.memory.settled(tv.joined(operator, part, other_part), thread)
        if isinstance(left, tv.PartialTotal) and isinstance(right, tv.PartialTotal):
            if left.operator != operator or right.operator != operator:
                return partial(left, self.memory.line)
            result = tv.joined(operator, left, right)
            if isinstance(result, tv.Poison):
                return tv.Poison(result.reason, self.memory.line)
            return self.memory.settled(result, thread)
        return partial(left, self.memory.line)

    def as_part(self, value: tv.Value, operator: Operator, thread: int) -> tv.PartialTotal | None:
        name = value.expr.name if isinstance(value, tv.Sym) and isinstance(value.expr, Name) else ""
        total = self.memory.totals.get(name)
        if total is None or total.operator != operator:
            return None
        return tv.PartialTotal(operator, ((name, self.memory.team_masks[self.memory.team(thread)]),))

    def extreme(
        self, function: str, operator: Operator, left: tv.Value, right: tv.Value, thread: int
    ) -> tv.Value:
        if isinstance(left, tv.Int) and isinstance(right, tv.Int):
            value = (max if operator == "max" else min)(left.value, right.value)
            expr = Call(function, (left.expr, right.expr)) if left.expr and right.expr else None
            return tv.Int(value, expr, left.launch or right.launch, left.sized or right.sized)
        if isinstance(left, tv.PartialTotal | tv.Share) or isinstance(right, tv.PartialTotal | tv.Share):
            if isinstance(left, tv.Poison) or isinstance(right, tv.Poison):
                return left if isinstance(left, tv.Poison) else right
            return self.join(operator, left, right, thread)
        a, b = tv.expr_of(left), tv.expr_of(right)
        if a is None or b is None:
            return partial(left if a is None else right, self.memory.line)
        if a == b or self.adds_nothing(operator, a, b):
            return left
        if self.adds_nothing(operator, b, a):
            return right
        return tv.Sym(Call(function, (a, b)))

    def select(self, condition: tv.Value, yes: tv.Value, no: tv.Value, thread: int) -> tv.Value:
        """condition ? yes : no, for a condition that is no number."""
        if yes == no:
            return yes
        if isinstance(condition, tv.Which):
            pair = (condition.left, condition.right)
            larger = condition.op in (">", ">=")
            if condition.op in MIRROR and (yes, no) in (pair, pair[::-1]):
                operator: Operator = "max" if larger == ((yes, no) == pair) else "min"
                return self.join(operator, yes, no, thread)
            return tv.Poison("a choice by a part of a total", self.memory.line)
        test, a, b = tv.expr_of(condition), tv.expr_of(yes), tv.expr_of(no)
        if test is None or a is None or b is None:
            return partial(condition if test is None else yes if a is None else no, self.memory.line)
        return tv.Sym(Ternary(test, a, b))


def partial(value: tv.Value, line: int) -> tv.Poison:
    if isinstance(value, tv.Poison):
        return value
    if isinstance(value, tv.PartialTotal):
        names = ", ".join(f"'{name}'" for name, _ in value.parts)
        return tv.Poison(f"uses {names} where not every thread's share is in it", line)
    if isinstance(value, tv.Share):
        return tv.Poison("uses another thread's element by itself", line)
    return tv.Poison("a value that differs from thread to thread", line)
