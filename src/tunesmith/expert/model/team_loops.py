"""Loops: over elements, over tasks, by the whole team in turn, or turn by turn among threads."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import (
    Binary,
    Declare,
    Evaluate,
    Expr,
    For,
    Name,
    Number,
    Stmt,
    Type,
)
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import declared_in, nodes_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.element_loops import element_body
from tunesmith.expert.model.geometry import THREAD, Strided, check_lanes
from tunesmith.expert.model.independence import touches
from tunesmith.expert.model.kernel import Again, Each, Total
from tunesmith.expert.model.loops import Head, head_of
from tunesmith.expert.model.team_branches import Branching, Groups
from tunesmith.expert.model.team_memory import Effect, Threads, Vec, one_value
from tunesmith.expert.model.team_names import identity_of
from tunesmith.expert.model.team_values import (
    ZERO,
    Int,
    Part,
    Poison,
    Value,
    expr_of,
    is_identity,
)
from tunesmith.expert.model.totals import Update

_MOST_TURNS = 4096


class Looping(Branching):
    """Every `for` and `while` of a kernel, by its role."""

    def loop(self, stmt: For, active: Threads) -> Threads:
        head = head_of(stmt)
        strided = None if head is None else self.loops.get(head.index)
        if head is not None and strided is not None:
            if strided.role == "element":
                self.element_loop(stmt, head, strided, active)
                return active
            if strided.role in ("task", "grid"):
                return self.task_loop(stmt, head, active)
            if not self.is_structural(head, active):
                self.run_time_loop(stmt, head, active)
                return active
        self.turns(stmt.init, stmt.condition, stmt.step, stmt.body, active)
        return active

    def is_structural(self, head: Head, active: Threads) -> bool:
        """Whether the loop's turns are settled by the shape of the launch and constants of the source."""
        for part in (head.start, head.stop, head.step):
            value = one_value(self.eval(part, active), active)
            if value is None:
                return True  # differs from thread to thread: about threads
            if not isinstance(value, Int) or not self.is_settled(value):
                return False
        return True

    def task_loop(self, stmt: For, head: Head, active: Threads) -> Threads:
        if self.depth > 0 or head.index in self.bounds:
            raise self.beyond("a loop over tasks inside another loop or branch")
        stop = one_value(self.eval(head.stop, active), active)
        extent = None if stop is None else expr_of(stop)
        if extent is None:
            raise self.beyond(f"the end of the loop over '{head.index}' differs between threads")
        first = self.eval(head.start, active)
        self.tasks.add(head.index)
        self.bounds[head.index] = extent
        before = self.in_force
        self.in_force |= {head.index}

        def index(thread: int) -> Value:
            value = first.at(thread)
            return Int(value.value if isinstance(value, Int) else 0, Name(head.index))

        self.fixed = {**self.fixed, head.index: self.vector(active, index)}
        self.block(stmt.body, active)
        self.in_force = before
        self.alive = active
        return active

    def turns(
        self,
        init: Sequence[Declare | Evaluate],
        condition: Expr | None,
        steps: Sequence[Expr],
        body: Sequence[Stmt],
        active: Threads,
        first: bool = False,
    ) -> None:
        """Turn by turn, with whatever threads are still in it."""
        for part in init:
            self.statement(part, active)
        self.depth += 1
        for turn in range(_MOST_TURNS):
            if condition is not None and not (first and turn == 0):
                test = self.eval(condition, active)
                groups = Groups.of(test, active, self)
                if groups.uniform is not None or groups.which:
                    raise self.beyond(f"how often a loop turns depends on '{print_expr(condition)}'")
                active = groups.yes
            if not active:
                self.depth -= 1
                return
            if len(self.block(body, active)) != len(active):
                raise self.beyond("threads leave from inside a loop")
            for step in steps:
                self.effect(step, active)
        raise self.beyond(f"a loop turns more than {_MOST_TURNS} times")

    def element_loop(self, stmt: For, head: Head, strided: Strided, active: Threads) -> None:
        if len(active) % self.lanes or len({self.team(t) for t in active}) * self.lanes != len(active):
            raise self.beyond("a loop over elements that only some threads of a team reach")
        axes = self.tasks
        definitions = {name: i.expr for name, i in self.normal.ids.items() if name not in axes}
        start = substitute(head.start, definitions)
        if not check_lanes(substitute(start, self._axis_definitions()), strided.unit, self.layout):
            raise self.beyond(
                f"the threads of a team do not take the elements of the loop over '{head.index}' in turn"
            )
        first = fold(substitute(start, dict.fromkeys(THREAD, number(0))))
        self.each(stmt, head, first, number(strided.unit), active, shared_by_team=True)

    def _axis_definitions(self) -> dict[str, Expr]:
        return {name: id_.expr for name, id_ in self.normal.ids.items()}

    def run_time_loop(self, stmt: For, head: Head, active: Threads) -> None:
        """A loop that one thread of the team runs, or all of them alike, over a range given by sizes."""
        inside = {n.init[0].name for n in nodes_in(stmt.body) if isinstance(n, For) and n.init
                  and isinstance(n.init[0], Declare)}  # fmt: skip
        if any(name in self.loops and self.loops[name].role == "element" for name in inside):
            self.again(stmt, head, active)
            return
        step = fold(head.step)
        if not isinstance(step, Number):
            raise self.beyond(f"the step of the loop over '{head.index}' is no constant")
        self.each(stmt, head, head.start, step, active, shared_by_team=False)

    def again(self, stmt: For, head: Head, active: Threads) -> None:
        if len(active) != len(self.alive):
            raise self.beyond("a loop with cooperation inside that not all threads reach")
        parts = [one_value(self.eval(part, active), active) for part in (head.start, head.stop, head.step)]
        exprs = [None if part is None else expr_of(part) for part in parts]
        if any(expr is None for expr in exprs):
            raise self.beyond(f"the range of the loop over '{head.index}' differs between threads")
        start = parts[0]
        outer_steps, outer_fixed, line = self.steps, self.fixed, self.line
        value = Int(start.value if isinstance(start, Int) else 0, Name(head.index))
        self.fixed = {**self.fixed, head.index: Vec(value)}
        own = set(declared_in(stmt.body))
        before, named = dict(self.variables), dict(self.named)
        self.depth += 1
        # A first turn finds the cells that turns leave behind: a later turn must not live on them.
        remembered = (dict(self.totals), dict(self.let_types), list(self.effects), self.barriers)
        cells = self.copied_cells()
        self.steps = []
        self.block(stmt.body, active)
        self.without_changed(cells, "an earlier turn of a loop has set it")
        self.totals, self.let_types, self.effects, self.barriers = remembered
        self.variables, self.named, self.steps = dict(before), dict(named), []
        self.epoch += 1
        self.block(stmt.body, active)
        self.depth -= 1
        body, self.steps, self.fixed = tuple(self.steps), outer_steps, outer_fixed
        self.named = named
        for name, vec in self.variables.items():
            if before.get(name) is vec or name.partition("[")[0] in own:
                continue
            raise self.beyond(
                f"'{name}' is carried from one turn of the loop over '{head.index}' to the next"
            )
        first, stop, step = exprs
        assert first is not None and stop is not None and step is not None
        self.steps.append(Again(head.index, first, stop, step, body, head.type, line))

    def check_redundant(self, stmt: For, active: Threads) -> None:
        """A loop that all threads of a team run alike may store, but not update."""
        if len(active) <= len({self.team(thread) for thread in active}):
            return
        found = touches(stmt.body, self.arrays)
        written = {touch.place.array for touch in found if touch.writes}
        if any(touch.atomic or (touch.reads and touch.place.array in written) for touch in found):
            raise self.beyond("every thread of the team updates the same elements in turn")

    def each(
        self, stmt: For, head: Head, first: Expr, unit: Expr, active: Threads, *, shared_by_team: bool
    ) -> None:
        ends = [one_value(self.eval(part, active), active) for part in (first, head.stop)]
        start, stop = (None if end is None else expr_of(end) for end in ends)
        if start is None or stop is None:
            why = next((f": {end.reason}" for end in ends if isinstance(end, Poison)), "")
            raise self.beyond(f"the range of the loop over '{head.index}' differs between threads{why}")
        assert isinstance(unit, Number) and isinstance(unit.value, int)
        if not shared_by_team:
            self.check_redundant(stmt, active)
        start = fold(start)
        index = head.index if unit.value == 1 else self.fresh(f"{head.index}_step")
        element = element_body(self, stmt, head, active, index, (start, stop, unit.value), shared_by_team)
        body = element.body
        if unit.value != 1:
            place: Expr = Binary("*", Name(index), unit)
            if start != number(0):
                place = Binary("+", start, place)
            body = substitute(body, {head.index: place})
            length = stop if start == number(0) else Binary("-", stop, start)
            stop = fold(Binary("/", Binary("+", length, number(unit.value - 1)), unit))
            start = number(0)
        totals = tuple(
            self.total(name, update, active, shared_by_team) for name, update in element.updates.items()
        )
        renamed = {old: Name(t.name) for old, t in zip(element.updates, totals, strict=True) if old != t.name}
        if renamed:
            body = substitute(body, renamed)
        if element.stores:
            self.effects.append(Effect(stmt.line, self.in_force))
        self.steps.append(Each(index, start, stop, body, totals, head.type, line=stmt.line))

    def total(self, name: str, update: Update, active: Threads, shared_by_team: bool) -> Total:
        type_ = Type(self.types[name].base)
        fresh = self.fresh(name)
        old = self.read(name, active)
        value = one_value(old, active)
        expr = None if value is None else expr_of(value)
        begin: Value | None = None  # what has to be combined with the loop's own total
        if expr is not None and (update.operator in ("max", "min") or is_identity(update.operator, expr)):
            start = expr
        else:
            start = identity_of(update.operator, type_)
            begin = ZERO
            alone = self.lanes == 1 or not shared_by_team
            parts = all(isinstance(self.settled(old.at(t), t), Part) for t in active)
            if not (parts or (alone and expr is not None)):
                bad = next((v.reason for t in active if isinstance(v := old.at(t), Poison)), "")
                raise self.beyond(
                    f"'{name}' starts from something other than nothing in every thread"
                    + (f": {bad}" if bad else "")
                )
        total = Total(fresh, type_, update.operator, start, update.combine)
        self.totals[fresh] = total

        def after(thread: int) -> Value:
            mask = 1 << thread if shared_by_team else self.team_masks[self.team(thread)]
            own = self.settled(Part(update.operator, ((fresh, mask),)), thread)
            if begin is None:
                return own
            before = old.at(thread)
            if isinstance(own, Part) or isinstance(before, Part):
                return self.join(update.operator, before, own, thread)
            return self.binary(update.operator, before, own, thread)

        self.write(name, self.vector(active, after), active)
        return total
