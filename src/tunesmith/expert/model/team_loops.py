"""Loops: over elements, over tasks, by the whole team in turn, or turn by turn among threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import Binary, Declare, Evaluate, Expr, For, Name, Number, Stmt, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import declared_in, nodes_in
from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.accesses import touches
from tunesmith.expert.model.affine import Head, head_of, is_narrow, number
from tunesmith.expert.model.element_loops import element_body
from tunesmith.expert.model.facts import order_free
from tunesmith.expert.model.geometry import THREAD, Layout, Strided, check_lanes
from tunesmith.expert.model.kernel import Each, Repeat, Total
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.team_expressions import Expressions
from tunesmith.expert.model.team_memory import BlockMemory, copied_cells
from tunesmith.expert.model.team_record import Effect, ElementTotals, TaskBounds, TeamRecord, identity_of
from tunesmith.expert.model.tidy import check_no_return
from tunesmith.expert.model.totals import Update

_MOST_TURNS = 4096
# Goes through statements; gives back who is still there afterwards.
Run = Callable[[Sequence[Stmt], tv.Threads], tv.Threads]


class TeamState:
    """All that is known on the way through one block, for those who read statements, branches and loops."""

    def __init__(
        self,
        normal: Normal,
        layout: Layout,
        loops: Mapping[str, Strided],
        memory: BlockMemory,
        tasks: frozenset[str],
        element: tuple[Expr, str],
    ) -> None:
        """`element`: how many elements there are where nothing bounds them, and the type of their index."""
        self.normal, self.layout, self.strided, self.memory = normal, layout, loops, memory
        self.bounds = TaskBounds(memory, tasks)
        self.record = TeamRecord(memory, normal)
        self.elements = ElementTotals(memory, self.bounds, self.record, *element)
        self.expressions = Expressions(memory, self.bounds, self.elements)
        self.alive: tv.Threads = tuple(range(memory.threads))
        self.depth = 0

    def copied(self) -> list[dict[str, object]]:
        """All that changes on the way, for `put_back`."""
        found = [
            {name: copy(value) if isinstance(value, dict | list | set) else value
             for name, value in vars(part).items()}
            for part in (self.memory, self.record, self.bounds, self.elements)
        ]  # fmt: skip
        found[0]["cells"] = copied_cells(self.memory.cells)
        return [*found, {"alive": self.alive, "depth": self.depth}]

    def put_back(self, known: Sequence[Mapping[str, object]]) -> None:
        parts, work = (self.memory, self.record, self.bounds, self.elements, self), self.memory.work
        for part, values in zip(parts, known, strict=True):
            vars(part).update(values)
        self.memory.work = work  # was done all the same


class LoopReader:
    """Every `for` and `while` of a kernel, by its role; `run` goes through the statements of a turn."""

    def __init__(self, team: TeamState, run: Run) -> None:
        self.team = team
        self.run = run
        self.memory, self.bounds, self.record = team.memory, team.bounds, team.record
        self.expressions = team.expressions
        self.eval, self.refusal = team.expressions.eval, team.memory.refusal

    def loop(self, stmt: For, active: tv.Threads) -> tv.Threads:
        head = head_of(stmt)
        strided = None if head is None else self.team.strided.get(head.index)
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

    def is_structural(self, head: Head, active: tv.Threads) -> bool:
        """Whether the loop's turns are settled by the shape of the launch and constants of the source."""
        for part in (head.start, head.stop, head.step):
            value = self.expressions.shared(part, active)
            if value is None:
                return True  # differs from thread to thread: about threads
            if not isinstance(value, tv.Int) or not self.memory.is_settled(value):
                return False
        return True

    def task_loop(self, stmt: For, head: Head, active: tv.Threads) -> tv.Threads:
        if self.team.depth > 0 or head.index in self.bounds.limits:
            raise self.refusal("a loop over tasks inside another loop or branch")
        extent = tv.expr_of(self.expressions.shared(head.stop, active))
        if extent is None:
            raise self.refusal(f"the end of the loop over '{head.index}' differs between threads")
        first = self.eval(head.start, active)
        self.bounds.tasks.add(head.index)
        self.bounds.limits[head.index] = extent
        before = self.bounds.in_force
        self.bounds.in_force |= {head.index}

        def index(thread: int) -> tv.Value:
            value = first.at(thread)
            return tv.Int(value.value if isinstance(value, tv.Int) else 0, Name(head.index))

        check_no_return(stmt.body)
        self.memory.fixed = {**self.memory.fixed, head.index: self.memory.vector(active, index)}
        variables, cells = dict(self.memory.variables), copied_cells(self.memory.cells)
        self.run(stmt.body, active)
        self.bounds.in_force = before
        self.team.alive = active
        self.check_handed_on(stmt, variables, cells, active)
        return active

    def check_handed_on(
        self, stmt: For, variables: Mapping[str, tv.Vec], cells: tv.Cells, active: tv.Threads
    ) -> None:
        """A second task, with nothing usable in what the first has changed: it must come to its end too."""
        known = self.team.copied()
        lost = tv.Poison("is carried from one task to the next", stmt.line)
        for name, vec in variables.items():
            if self.memory.variables[name] is not vec:
                self.memory.variables[name] = tv.Vec(lost)
        self.memory.without_changed(cells, lost.reason)
        self.memory.epoch += 1
        self.bounds.in_force |= {*self.bounds.limits}
        self.run(stmt.body, active)
        self.team.put_back(known)

    def turns(
        self,
        init: Sequence[Declare | Evaluate],
        condition: Expr | None,
        steps: Sequence[Expr],
        body: Sequence[Stmt],
        active: tv.Threads,
        first: bool = False,
    ) -> None:
        """Turn by turn, with whatever threads are still in it."""
        self.run(init, active)
        self.team.depth += 1
        for turn in range(_MOST_TURNS):
            if condition is not None and not (first and turn == 0):
                test = self.eval(condition, active)
                groups = Groups.of(test, active, self.memory)
                if groups.uniform is not None or groups.which:
                    raise self.refusal(f"how often a loop turns depends on '{print_expr(condition)}'")
                active = groups.yes
            if not active:
                self.team.depth -= 1
                return
            if len(self.run(body, active)) != len(active):
                raise self.refusal("threads leave from inside a loop")
            self.run([Evaluate(step) for step in steps], active)
        raise self.refusal(f"a loop turns more than {_MOST_TURNS} times")

    def element_loop(self, stmt: For, head: Head, strided: Strided, active: tv.Threads) -> None:
        if len({self.memory.team(t) for t in active}) * self.memory.lanes != len(active):
            raise self.refusal("a loop over elements that only some threads of a team reach")
        every = self.team.normal.definitions
        definitions = {name: expr for name, expr in every.items() if name not in self.bounds.tasks}
        start = substitute(head.start, definitions)
        if not check_lanes(substitute(start, every), strided.unit, self.team.layout):
            raise self.refusal(
                f"the threads of a team do not take the elements of the loop over '{head.index}' in turn"
            )
        first = fold(substitute(start, dict.fromkeys(THREAD, number(0))))
        self.each(stmt, head, first, number(strided.unit), active, shared_by_team=True)

    def run_time_loop(self, stmt: For, head: Head, active: tv.Threads) -> None:
        """A loop that one thread of the team runs, or all of them alike, over a range given by sizes."""
        inside = {n.init[0].name for n in nodes_in(stmt.body) if isinstance(n, For) and n.init
                  and isinstance(n.init[0], Declare)}  # fmt: skip
        if any(name in self.team.strided and self.team.strided[name].role == "element" for name in inside):
            self.repeat(stmt, head, active)
            return
        step = fold(head.step)
        if not isinstance(step, Number):
            raise self.refusal(f"the step of the loop over '{head.index}' is no constant")
        self.each(stmt, head, head.start, step, active, shared_by_team=False)

    def repeat(self, stmt: For, head: Head, active: tv.Threads) -> None:
        if len(active) != len(self.team.alive):
            raise self.refusal("a loop with cooperation inside that not all threads reach")
        parts = [self.expressions.shared(part, active) for part in (head.start, head.stop, head.step)]
        exprs = [tv.expr_of(part) for part in parts]
        if any(expr is None for expr in exprs):
            raise self.refusal(f"the range of the loop over '{head.index}' differs between threads")
        start = parts[0]
        outer_steps, outer_fixed, line = self.record.steps, self.memory.fixed, self.memory.line
        value = tv.Int(start.value if isinstance(start, tv.Int) else 0, Name(head.index))
        self.memory.fixed = {**self.memory.fixed, head.index: tv.Vec(value)}
        own = set(declared_in(stmt.body))
        before, named = dict(self.memory.variables), dict(self.record.named)
        self.team.depth += 1
        # A first turn finds the cells that turns leave behind: a later turn must not live on them.
        self.record.steps = []
        known, cells = self.team.copied(), copied_cells(self.memory.cells)
        self.run(stmt.body, active)
        self.memory.without_changed(cells, "an earlier turn of a loop has set it")
        left, epoch = self.memory.cells, self.memory.epoch
        self.team.put_back(known)
        self.memory.cells, self.memory.epoch = left, epoch + 1
        self.run(stmt.body, active)
        self.team.depth -= 1
        body, self.record.steps, self.memory.fixed = tuple(self.record.steps), outer_steps, outer_fixed
        self.record.named = named
        for name, vec in self.memory.variables.items():
            if before.get(name) is vec or name.partition("[")[0] in own:
                continue
            raise self.refusal(
                f"'{name}' is carried from one turn of the loop over '{head.index}' to the next"
            )
        first, stop, step = exprs
        assert first is not None and stop is not None and step is not None
        self.record.steps.append(Repeat(head.index, first, stop, step, body, head.type, line))

    def check_redundant(self, stmt: For, active: tv.Threads) -> None:
        """A loop that all threads of a team run alike may store, but not update."""
        if len(active) <= len({self.memory.team(thread) for thread in active}):
            return
        found = touches(stmt.body, self.memory.arrays)
        written = {touch.place.array for touch in found if touch.writes}
        if any(touch.atomic or (touch.reads and touch.place.array in written) for touch in found):
            raise self.refusal("every thread of the team updates the same elements in turn")

    def each(
        self, stmt: For, head: Head, first: Expr, unit: Expr, active: tv.Threads, *, shared_by_team: bool
    ) -> None:
        ends = [self.expressions.shared(part, active) for part in (first, head.stop)]
        start, stop = (tv.expr_of(end) for end in ends)
        if start is None or stop is None:
            why = next((f": {end.reason}" for end in ends if isinstance(end, tv.Poison)), "")
            raise self.refusal(f"the range of the loop over '{head.index}' differs between threads{why}")
        assert isinstance(unit, Number) and isinstance(unit.value, int)
        if not shared_by_team:
            self.check_redundant(stmt, active)
        start = fold(start)
        index = head.index if unit.value == 1 else self.record.fresh(f"{head.index}_step")
        element = element_body(
            self.expressions, stmt, head, active, index, (start, stop, unit.value), shared_by_team
        )
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
            self.record.effects.append(Effect(stmt.line, self.bounds.in_force))
        order = order_free(stmt.line, shared=shared_by_team)
        self.record.steps.append(
            Each(index, start, stop, body, totals, head.type, line=stmt.line, order=order)
        )

    def total(self, name: str, update: Update, active: tv.Threads, shared_by_team: bool) -> Total:
        type_ = Type(self.memory.types[name].base)
        fresh = self.record.fresh(name)
        old = self.memory.read(name, active)
        expr = tv.expr_of(tv.one_value(old, active))
        begin: tv.Value | None = None  # what has to be combined with the loop's own total
        if expr is not None and (update.operator in ("max", "min") or tv.is_identity(update.operator, expr)):
            start = expr
        else:
            start = identity_of(update.operator, type_)
            begin = tv.ZERO
            alone = self.memory.lanes == 1 or not shared_by_team
            parts = all(isinstance(old.at(t), tv.PartialTotal) for t in active)
            if not (parts or (alone and expr is not None)):
                bad = next((v.reason for t in active if isinstance(v := old.at(t), tv.Poison)), "")
                raise self.refusal(
                    f"'{name}' starts from something other than nothing in every thread"
                    + (f": {bad}" if bad else "")
                )
        total = Total(fresh, type_, update.operator, start, update.combine)
        self.memory.totals[fresh] = total

        def after(thread: int) -> tv.Value:
            mask = 1 << thread if shared_by_team else self.memory.team_masks[self.memory.team(thread)]
            own = self.memory.settled(tv.PartialTotal(update.operator, ((fresh, mask),)), thread)
            if begin is None:
                return own
            before = old.at(thread)
            if isinstance(own, tv.PartialTotal) or isinstance(before, tv.PartialTotal):
                return self.expressions.join(update.operator, before, own, thread)
            joined = self.expressions.binary(update.operator, before, own, thread)
            return self.expressions.cast(type_, joined) if is_narrow(type_) else joined

        self.memory.write(name, self.memory.vector(active, after), active)
        return total


@dataclass(frozen=True)
class Groups:
    """Threads by what a condition is for them: settled yes or no, a choice by parts, or one for the team."""

    yes: tv.Threads
    no: tv.Threads
    which: tv.Threads
    uniform: Expr | None = None

    @staticmethod
    def of(condition: tv.Vec, active: tv.Threads, memory: BlockMemory) -> Groups:
        yes, no, which = list[int](), list[int](), list[int]()
        uniform: dict[Expr, None] = {}
        for thread in active:
            match condition.at(thread):
                case tv.Int() as value if memory.is_settled(value):
                    (yes if value.value else no).append(thread)
                case tv.Int(expr=expr) | tv.Sym(expr=expr) if expr is not None:
                    uniform[expr] = None
                case tv.Which():
                    which.append(thread)
                case tv.Poison(reason=reason, line=line):
                    where = f" (line {line})" if line and line != memory.line else ""
                    raise memory.refusal(f"a branch depends on what {reason}{where}")
                case tv.Int():
                    raise memory.refusal("a branch depends on the thread and on a size at once")
                case _:
                    raise memory.refusal("a branch depends on a part of a total")
        if uniform:
            if len(uniform) > 1:
                raise memory.refusal("a branch by data that differs within a team")
            if yes or no or which:
                # `lane == 0 && total > 0`: those that are settled stay out, the rest choose.
                if yes or which:
                    raise memory.refusal("a branch that mixes data and thread numbers")
                return Groups((), tuple(no), tuple(t for t in active if t not in set(no)))
            return Groups((), (), (), next(iter(uniform)))
        return Groups(tuple(yes), tuple(no), tuple(which))
