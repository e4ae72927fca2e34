"""Teams in which every thread holds one element: no loop over a row's elements, but one thread for each.

    float v = i < d ? x[row * d + i] : -INFINITY;      what is computed from the thread's own number i is an
    m = block_max(v);                                  expression over elements; joining it over the team
    out[row * d + i] = expf(v - m) / sum;              makes a total of it, storing it a loop that stores

Such expressions are carried along unnamed and computed again in every loop that needs them.
"""

from __future__ import annotations

from tunesmith.expert.c.infer import type_of
from tunesmith.expert.c.nodes import Assign, Binary, Call, Cast, Evaluate, Expr, Name, Number, Stmt, Type
from tunesmith.expert.c.printing import print_expr
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import map_expr
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.kernel import Each, Operator, Total
from tunesmith.expert.model.scenario import Unknown, number_of
from tunesmith.expert.model.team_memory import BlockMemory
from tunesmith.expert.model.team_record import TaskBounds, TeamRecord, identity_of
from tunesmith.expert.model.team_values import Part, Share, Value, is_identity


class ElementTotals:
    """Loops made of what threads compute of their own elements; `everyone`: how many there are, unbounded."""

    def __init__(
        self, memory: BlockMemory, bounds: TaskBounds, record: TeamRecord, everyone: Expr, element_type: str
    ) -> None:
        self.memory = memory
        self.own_index = memory.own_index
        self.bounds = bounds
        self.record = record
        self.everyone = everyone
        self.element_type = element_type
        self.loop_count = 0
        self.made: dict[tuple[Expr, Operator], str] = {}

    def as_total(self, operator: Operator, value: Value, thread: int) -> Value:
        share = value if isinstance(value, Share) else self.memory.sent(value, thread)
        if not isinstance(share, Share):
            return value
        name = self.made.get((share.expr, operator))
        if name is None:
            name = self.made[(share.expr, operator)] = self.new_total(operator, share.expr)
        return Part(operator, ((name, share.mask),))

    def new_total(self, operator: Operator, expr: Expr) -> str:
        found = type_of(expr, self.record.all_types)
        type_ = Type("float") if found is None else Type(found.base)
        filled = map_expr(expr, lambda node: self.memory.fillers.get(node, node))
        start = identity_of(operator, type_)
        if (
            self.own_index in self.bounds.limits
            and self.own_index not in self.bounds.in_force
            and not self.is_full()
        ):
            if filled == expr or self.memory.is_of_element(filled):
                raise self.memory.refusal(
                    f"threads beyond the last element have a share in '{print_expr(expr)}'"
                )
            if operator in ("max", "min"):
                start = filled
            elif not _adds_nothing(operator, filled):
                raise self.memory.refusal(f"threads beyond the last element add '{print_expr(filled)}'")
        elif operator in ("max", "min") and filled != expr and not self.memory.is_of_element(filled):
            start = filled
        name = self.record.fresh("total")
        combine = ""
        update: Expr
        if operator in ("max", "min"):
            word = "max" if operator == "max" else "min"
            combine = f"f{word}f" if type_.base == "float" else word
            update = Assign("=", Name(name), Call(combine, (Name(name), expr)))
        else:
            update = Assign("=", Name(name), Binary(operator, Name(name), expr))
        total = Total(name, type_, operator, start, combine)
        self.memory.totals[name] = total
        body: tuple[Stmt, ...] = (Evaluate(update, self.memory.line),)
        self.record.steps.append(self.loop_over(body, (total,)))
        return name

    def is_full(self) -> bool:
        """Whether there is an element for every thread, here."""
        try:
            return (
                number_of(self.bounds.limits[self.own_index], dict(self.memory.scenario.parameters))
                >= self.memory.lanes
            )
        except Unknown:
            return False

    def loop_over(self, body: tuple[Stmt, ...], totals: tuple[Total, ...] = ()) -> Each:
        """Every loop has an index of its own: `tid`, `tid_2`, ..."""
        self.loop_count += 1
        index = plain_index(self.own_index) + (f"_{self.loop_count}" if self.loop_count > 1 else "")
        while index in self.memory.types and index != self.own_index:
            index += "_"
        body = substitute(body, {self.own_index: Name(index)})
        stop = self.bounds.limits.get(self.own_index, self.everyone)
        return Each(index, number(0), stop, body, totals, self.element_type, line=self.memory.line)


def plain_index(name: str) -> str:
    """`threadIdx.x` cannot be an index's name."""
    return "element" if "." in name else name


def _adds_nothing(operator: Operator, filled: Expr) -> bool:
    value = _constant(filled, 0)
    if value is not None:
        return is_identity(operator, Number(str(value), value))
    return is_identity(operator, filled) or (operator == "+" and _vanishes(filled))


def _constant(expr: Expr, depth: int) -> float | None:
    """The value of plain arithmetic on numbers: 0.f * 0.f."""
    match expr:
        case Number(value=value):
            return float(value)
        case Cast(value=inner) if depth < 50:
            return _constant(inner, depth + 1)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right) if depth < 50:
            a, b = _constant(left, depth + 1), _constant(right, depth + 1)
            if a is None or b is None:
                return None
            return a + b if op == "+" else a - b if op == "-" else a * b
    return None


def _vanishes(expr: Expr) -> bool:
    """exp(-infinity - m), as threads without an element add it to a sum of exponentials."""
    while isinstance(expr, Cast):
        expr = expr.value
    if not isinstance(expr, Call) or expr.function not in ("expf", "__expf", "exp", "exp2f", "native_exp"):
        return False
    arg = expr.args[0]
    while isinstance(arg, Binary) and arg.op == "-":
        arg = arg.left
    return is_identity("max", arg)
