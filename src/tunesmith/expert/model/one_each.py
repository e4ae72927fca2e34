"""Teams in which every thread holds one element: no loop over a row's elements, but one thread for each.

    float v = i < d ? x[row * d + i] : -INFINITY;      what is computed from the thread's own number i is an
    m = block_max(v);                                  expression over elements; joining it over the team
    out[row * d + i] = expf(v - m) / sum;              makes a total of it, storing it a loop that stores

Such expressions are carried along unnamed and computed again in every loop that needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Evaluate,
    Expr,
    If,
    Member,
    Name,
    Number,
    Stmt,
    Ternary,
    Type,
)
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import type_of
from tunesmith.csource.walk import map_expr, names_in, nodes_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.exits import negated
from tunesmith.expert.model.kernel import Each, Operator, Step, Total
from tunesmith.expert.model.places import place_of
from tunesmith.expert.model.scenario import Unknown, number_of
from tunesmith.expert.model.team_memory import Effect, Threads, Vec, one_value
from tunesmith.expert.model.team_names import identity_of
from tunesmith.expert.model.team_steps import Team
from tunesmith.expert.model.team_values import Int, Part, Poison, Share, Sym, Value, expr_of, is_identity

_LARGEST = 300


class OneEach(Team):
    """`element` is the name of the thread's place in its team, which is the element's index."""

    own_index: str = ""
    everyone: Expr = Number("0", 0)  # how many elements there are where nothing bounds them
    element_type: str = "int"

    def start(self, element: str, everyone: Expr, element_type: str) -> None:
        self.own_index = element
        self.everyone = everyone
        self.element_type = element_type
        self.tasks.add(element)
        self.fillers: dict[Expr, Expr] = {}
        self.loop_count = 0
        self.made: dict[tuple[Expr, Operator], str] = {}

    def is_of_element(self, expr: Expr | None) -> bool:
        return expr is not None and self.own_index in names_in(expr)

    @property
    def stop(self) -> Expr:
        return self.bounds.get(self.own_index, self.everyone)

    # -- who is meant -------------------------------------------------------------------------------

    def is_settled(self, value: Int) -> bool:
        return super().is_settled(value) or (not value.sized and self.is_of_element(value.expr))

    def bound(self, op: str, left: Int, right: Int) -> Int | None:
        for one, other in ((left, right), (right, left)):
            of_threads = isinstance(other.expr, Number) or other.expr is None or other.launch
            if self.is_of_element(one.expr) and of_threads:
                return None
        return super().bound(op, left, right)

    def eval(self, expr: Expr, active: Threads) -> Vec:
        if not isinstance(expr, Ternary):
            return super().eval(expr, active)
        before, self.may_bound = self.may_bound, True
        self.touched.discard(self.own_index)
        condition = self.eval(expr.condition, active)
        self.may_bound = before
        if self.own_index not in self.touched or not isinstance(one_value(condition, active), Int):
            return self.choose(condition, expr.yes, expr.no, active)
        inside = bool(getattr(condition.at(active[0]), "value", 0))
        yes, no = (expr.yes, expr.no) if inside else (expr.no, expr.yes)
        result = self.eval(yes, active)
        self.fill(expr_of(result.at(active[0])), expr_of(self.eval(no, active).at(active[0])))
        return result

    def fill(self, inside: Expr | None, outside: Expr | None) -> None:
        """What threads beyond the last element hold instead."""
        if inside is not None and outside is not None and self.is_of_element(inside):
            self.fillers[inside] = outside

    def branch(self, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        outer, self.log = self.log, []
        try:
            result = super().branch(stmt, rest, active)
            for name, cell, thread, old in self.log or []:
                if cell is None and old is not None and name in self.variables:
                    self.fill(expr_of(self.variables[name].at(thread)), expr_of(old))
        finally:
            if outer is not None:
                outer += self.log or []
            self.log = outer
        return result

    def when(self, condition: Expr, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        """A test of the element: what is stored is stored under it."""
        if not self.is_of_element(condition):
            return super().when(condition, stmt, rest, active)
        outer, self.steps = self.steps, []
        sides: list[list[Step]] = []
        before = dict(self.variables)
        for body in (stmt.then, stmt.otherwise):
            self.steps = []
            if len(self.block(body, active)) != len(active):
                raise self.beyond("threads leave by a test of their element")
            sides.append(self.steps)
        self.steps = outer
        if not any(sides):
            self.variables = before
            self.choose_between(Vec(Sym(condition)), stmt, active)
            return False, active
        if any(vec is not self.variables[name] for name, vec in before.items()):
            raise self.beyond("a branch by element both stores and sets variables")
        for test, steps in ((condition, sides[0]), (negated(condition), sides[1])):
            for step in steps:
                if not isinstance(step, Each) or step.totals:
                    raise self.beyond("threads cooperate in a branch by element")
                own = substitute(test, {self.own_index: Name(step.index)})
                self.steps.append(replace(step, body=(If(own, step.body, line=step.line),)))
        return False, active

    # -- values -------------------------------------------------------------------------------------

    def name_of(self, type_: Type, hint: str, expr: Expr) -> Expr:
        if not self.is_of_element(expr):
            return super().name_of(type_, hint, expr)
        if sum(1 for _ in nodes_in(expr)) > _LARGEST:
            raise self.beyond("what a thread computes of its element grows too large")
        found = type_of(expr, self._all_types)
        if found is not None and found.base == type_.base:
            return expr
        typed = Cast(Type(type_.base), expr)
        if expr in self.fillers:
            self.fillers[typed] = self.fillers[expr]
        return typed

    @property
    def _all_types(self) -> Mapping[str, Type]:
        totals = {name: total.type for name, total in self.totals.items()}
        return {**self.types, **self.let_types, **totals}

    def sent(self, value: Value, thread: int) -> Value:
        expr = expr_of(value)
        return Share(expr, 1 << thread) if expr is not None and self.is_of_element(expr) else value

    def settled(self, value: Value, thread: int) -> Value:
        if isinstance(value, Share):
            return Sym(value.expr) if value.mask == 1 << thread else value
        return super().settled(value, thread)

    def as_total(self, operator: Operator, value: Value, thread: int) -> Value:
        share = value if isinstance(value, Share) else self.sent(value, thread)
        if not isinstance(share, Share):
            return value
        name = self.made.get((share.expr, operator))
        if name is None:
            name = self.made[(share.expr, operator)] = self.new_total(operator, share.expr)
        return Part(operator, ((name, share.mask),))

    def new_total(self, operator: Operator, expr: Expr) -> str:
        found = type_of(expr, self._all_types)
        type_ = Type("float") if found is None else Type(found.base)
        filled = map_expr(expr, lambda node: self.fillers.get(node, node))
        start = identity_of(operator, type_)
        if self.own_index in self.bounds and self.own_index not in self.in_force and not self.is_full():
            if filled == expr or self.is_of_element(filled):
                raise self.beyond(f"threads beyond the last element have a share in '{print_expr(expr)}'")
            if operator in ("max", "min"):
                start = filled
            elif not _adds_nothing(operator, filled):
                raise self.beyond(f"threads beyond the last element add '{print_expr(filled)}'")
        elif operator in ("max", "min") and filled != expr and not self.is_of_element(filled):
            start = filled
        name = self.fresh("total")
        combine = ""
        update: Expr
        if operator in ("max", "min"):
            word = "max" if operator == "max" else "min"
            combine = f"f{word}f" if type_.base == "float" else word
            update = Assign("=", Name(name), Call(combine, (Name(name), expr)))
        else:
            update = Assign("=", Name(name), Binary(operator, Name(name), expr))
        total = Total(name, type_, operator, start, combine)
        self.totals[name] = total
        body: tuple[Stmt, ...] = (Evaluate(update, self.line),)
        self.steps.append(self.loop_over(body, (total,)))
        return name

    def is_full(self) -> bool:
        """Whether there is an element for every thread, here."""
        try:
            return number_of(self.bounds[self.own_index], dict(self.scenario.parameters)) >= self.lanes
        except Unknown:
            return False

    def loop_over(self, body: tuple[Stmt, ...], totals: tuple[Total, ...] = ()) -> Each:
        """Every loop has an index of its own: `tid`, `tid_2`, ..."""
        self.loop_count += 1
        index = plain_index(self.own_index) + (f"_{self.loop_count}" if self.loop_count > 1 else "")
        while index in self.types and index != self.own_index:
            index += "_"
        body = substitute(body, {self.own_index: Name(index)})
        return Each(index, number(0), self.stop, body, totals, self.element_type, line=self.line)

    # -- stores -------------------------------------------------------------------------------------

    def store_global(self, op: str, target: Expr, value: Expr, values: Vec, active: Threads) -> None:
        where = one_value(self.eval(target, active), active)
        where_expr = None if where is None else expr_of(where)
        if not self.is_of_element(where_expr) or where_expr is None:
            super().store_global(op, target, value, values, active)
            return
        if len(active) % self.lanes:
            raise self.beyond("an element is stored by some threads of a team only")
        what = one_value(self.eval(value, active), active)
        what_expr = None if what is None else expr_of(what)
        if what_expr is None:
            why = what.reason if isinstance(what, Poison) else "it differs from thread to thread"
            raise self.beyond(f"'{print_expr(target)}' is stored: {why}")
        inner = where_expr
        while isinstance(inner, Member):
            inner = inner.base
        if place_of(inner) is None:
            raise self.beyond(f"what '{print_expr(target)}' stores to is not followed")
        self.effects.append(Effect(self.line, self.in_force))
        stmt = Evaluate(Assign(op, where_expr, what_expr), self.line)
        last: Step | None = self.steps[-1] if self.steps else None
        if isinstance(last, Each) and not last.totals:
            more = substitute((stmt,), {self.own_index: Name(last.index)})
            self.steps[-1] = replace(last, body=(*last.body, *more))
        else:
            self.steps.append(self.loop_over((stmt,)))


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
