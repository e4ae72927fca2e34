"""Kernels whose tasks are each worked on by a team of threads, read by playing through their blocks.

Long, because one interpreter of statements, with a case for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from tunesmith.expert.read import geometry
from tunesmith.expert.read.accesses import find_touches, is_atomic, place_of, pointed_at, without_members
from tunesmith.expert.read.geometry import THREAD, Layout, Scenario, Strided, check_lanes
from tunesmith.expert.read.integers import (
    BUILTINS,
    Head,
    axis_name,
    block_threads,
    head_of,
    is_narrow,
    launch_name,
    make_product,
    number_node,
)
from tunesmith.expert.read.model import (
    Each,
    KernelReading,
    Let,
    Once,
    Operator,
    OutOfReach,
    Reach,
    Repeat,
    Step,
    Task,
    Total,
    When,
    names_in_steps,
    order_free,
    renamed_lets,
    substitute_in_steps,
    without_unused,
)
from tunesmith.expert.read.model import Team as TeamKind
from tunesmith.expert.read.normal import Id, Normal
from tunesmith.expert.read.rules.tidy import check_no_return
from tunesmith.expert.read.rules.totals import Update
from tunesmith.expert.read.styles import team_values as tv
from tunesmith.expert.read.styles.team_expressions import Expressions, element_body
from tunesmith.expert.read.styles.team_values import (
    BlockMemory,
    Effect,
    ElementTotals,
    Int,
    TaskBounds,
    TeamRecord,
    Vec,
    copied_cells,
    identity_of,
)
from tunesmith.source import tree as c
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Cast, Declare, Evaluate, Expr, For, Name, Number, Stmt, Type
from tunesmith.source.walk import declared_in, names_in, negate_condition, nodes_in, numbered_name

_MAX_TURNS = 4096
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
        for turn in range(_MAX_TURNS):
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
        raise self.refusal(f"a loop turns more than {_MAX_TURNS} times")

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
        first = fold_expr(substitute(start, dict.fromkeys(THREAD, number_node(0))))
        self.each(stmt, head, first, number_node(strided.unit), active, shared_by_team=True)

    def run_time_loop(self, stmt: For, head: Head, active: tv.Threads) -> None:
        """A loop that one thread of the team runs, or all of them alike, over a range given by sizes."""
        inside = {n.init[0].name for n in nodes_in(stmt.body) if isinstance(n, For) and n.init
                  and isinstance(n.init[0], Declare)}  # fmt: skip
        if any(name in self.team.strided and self.team.strided[name].role == "element" for name in inside):
            self.repeat(stmt, head, active)
            return
        step = fold_expr(head.step)
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
        local_names = set(declared_in(stmt.body))
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
            if before.get(name) is vec or name.partition("[")[0] in local_names:
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
        found = find_touches(stmt.body, self.memory.arrays)
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
        start = fold_expr(start)
        start = number_node(0) if isinstance(start, Number) and start.value == 0 else start  # 0u as well
        index = head.index if unit.value == 1 else self.record.fresh(f"{head.index}_step")
        element = element_body(
            self.expressions, stmt, head, active, index, (start, stop, unit.value), shared_by_team
        )
        body = element.body
        if unit.value != 1:
            place: Expr = Binary("*", Name(index), unit)
            if start != number_node(0):
                place = Binary("+", start, place)
            body = substitute(body, {head.index: place})
            length = stop if start == number_node(0) else Binary("-", stop, start)
            stop = fold_expr(Binary("/", Binary("+", length, number_node(unit.value - 1)), unit))
            start = number_node(0)
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
            share = self.memory.settled(tv.PartialTotal(update.operator, ((fresh, mask),)), thread)
            if begin is None:
                return share
            before = old.at(thread)
            if isinstance(share, tv.PartialTotal) or isinstance(before, tv.PartialTotal):
                return self.expressions.join(update.operator, before, share, thread)
            joined = self.expressions.binary(update.operator, before, share, thread)
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


# -- Goes through a kernel's statements with all threads of a block, and keeps what each team does as
# steps.
#
# Loops over elements become `Each`; the cooperation around them is played through and leaves `Let` for what
# everyone in the team then knows, `Once` for what one thread stores, `When` for branches of the whole team.


_BARRIERS = frozenset({"__syncthreads", "barrier", "work_group_barrier"})
_WARP_BARRIERS = frozenset({"__syncwarp", "sub_group_barrier"})
_IGNORED = frozenset(
    {"__builtin_assume", "__threadfence_block", "mem_fence", "__builtin_prefetch", "prefetch"}
)
_SHARED_ATOMICS: Mapping[str, Operator] = {
    "atomicAdd": "+", "atomicMax": "max", "atomicMin": "min", "atomicOr": "|", "atomicAnd": "&",
    "atomic_add": "+", "atomic_max": "max", "atomic_min": "min", "atomic_or": "|", "atomic_and": "&",
}  # fmt: skip


class BlockInterpreter(LoopReader):
    """One block in one scenario, on its way through the kernel."""

    def __init__(self, team: TeamState) -> None:
        super().__init__(team, self.statements)

    def statements(self, stmts: Sequence[c.Stmt], active: tv.Threads) -> tv.Threads:
        """Gives back the threads that are still there afterwards."""
        for at, stmt in enumerate(stmts):
            if not active:
                return active
            self.memory.line = getattr(stmt, "line", 0) or self.memory.line
            if isinstance(stmt, c.If):
                done, active = self.branch(stmt, stmts[at + 1 :], active)
                if done:
                    return active
            else:
                active = self.statement(stmt, active)
        return active

    def statement(self, stmt: c.Stmt, active: tv.Threads) -> tv.Threads:
        match stmt:
            case c.Declare():
                self.declare(stmt, active)
            case c.Evaluate(expr=expr):
                self.effect(expr, active)
            case c.For():
                return self.loop(stmt, active)
            case c.While():
                self.turns((), stmt.condition, (), stmt.body, active, first=stmt.after)
            case c.Scope(body=body):
                return self.statements(body, active)
            case c.Return() | c.Jump(word="continue"):
                self.team.alive = tuple(t for t in self.team.alive if t not in set(active))
                return ()
            case _:
                text = getattr(stmt, "text", getattr(stmt, "word", "statement"))
                raise self.refusal(f"'{text.strip().splitlines()[0][:60]}' is not understood")
        return active

    def branch(self, stmt: c.If, rest: Sequence[c.Stmt], active: tv.Threads) -> tuple[bool, tv.Threads]:
        """Whether `rest` was gone through as well, and who is still there."""
        before = dict(self.memory.variables) if self.memory.own_index else {}
        result = self._branch(stmt, rest, active)
        # Threads beyond the last element hold what they held before.
        for name, old in before.items():
            vec = self.memory.variables[name]
            for thread in active if vec is not old else ():
                self.memory.fill(tv.expr_of(vec.at(thread)), tv.expr_of(old.at(thread)))
        return result

    def _branch(self, stmt: c.If, rest: Sequence[c.Stmt], active: tv.Threads) -> tuple[bool, tv.Threads]:
        self.bounds.touched.clear()
        self.bounds.may_bound = not stmt.otherwise
        condition = self.eval(stmt.condition, active)
        self.bounds.may_bound = False
        touched = frozenset(self.bounds.touched)
        groups = Groups.of(condition, active, self.memory)
        if groups.uniform is not None:
            return self.when(groups.uniform, stmt, rest, active)
        before = self.bounds.in_force
        left: list[int] = []
        if groups.yes:
            self.bounds.in_force = before | touched
            left += self.statements(stmt.then, groups.yes)
            self.bounds.in_force = before
        if groups.no:
            left += self.statements(stmt.otherwise, groups.no)
        if groups.which:
            self.choose_between(condition, stmt, groups.which)
            left += groups.which
        if touched and has_final_exit(stmt.then) and not groups.yes and not groups.which:
            self.bounds.in_force = before | touched
        return False, tuple(sorted(left))

    def choose_between(self, condition: tv.Vec, stmt: c.If, active: tv.Threads) -> None:
        """A branch by data: both sides are computed, and what they set is chosen."""
        variables, cells = before = self.memory.held()
        steps = len(self.record.steps)
        sides: list[tuple[dict[str, tv.Vec], tv.Cells]] = []
        for body in (stmt.then, stmt.otherwise):
            self.record.speculative += 1
            left = self.statements(body, active)
            self.record.speculative -= 1
            if len(left) != len(active):
                raise self.refusal("threads leave in a branch that depends on the data")
            sides.append((self.memory.variables, self.memory.cells))
            self.memory.put_back(before)
        if any(not isinstance(step, Let) for step in self.record.steps[steps:]):
            raise self.refusal("a branch that depends on the data stores or loops over elements")
        for name in dict.fromkeys(name for side, _ in sides for name in side):
            unset = tv.Vec(tv.Poison(f"'{name}' is read before it is set", self.memory.line))
            old = variables.get(name, unset)
            yes, no = (side.get(name, old) for side, _ in sides)
            type_ = self.memory.types.get(name.partition("[")[0], c.Type("float"))
            for thread in active if yes is not old or no is not old else ():
                chosen = condition.at(thread), yes.at(thread), no.at(thread)
                value = self.record.as_variable(
                    type_, name.partition("[")[0], self.expressions.select(*chosen, thread)
                )
                self.memory.write(name, tv.Vec(value), (thread,))
        for name, shared in self.memory.shared.items():
            unset_cell = tv.SharedCell(tv.Poison("it is set in one branch only", self.memory.line), -1, -1)
            for at in dict.fromkeys(at for _, side in sides for at in side[name]):
                old_cell = cells[name].get(at, unset_cell)
                first, second = (side[name].get(at, old_cell) for _, side in sides)
                if first == second == old_cell:
                    continue
                thread = (first if first != old_cell else second).writer
                chosen = condition.at(thread), first.value, second.value
                value = self.record.as_variable(shared.type, name, self.expressions.select(*chosen, thread))
                self.memory.write_cells(name, tv.Vec(tv.Int(at)), tv.Vec(value), (thread,))

    def when(
        self, condition: c.Expr, stmt: c.If, rest: Sequence[c.Stmt], active: tv.Threads
    ) -> tuple[bool, tv.Threads]:
        """A branch of the whole team, by sizes or data that everyone in it knows."""
        if self.memory.is_of_element(condition):
            return self._by_element(condition, stmt, active)
        if not _has_steps(stmt, self.memory.arrays):
            self.choose_between(tv.Vec(tv.Sym(condition)), stmt, active)
            return False, active
        if {self.memory.team(t) for t in active} and len(active) % self.memory.lanes:
            raise self.refusal("a branch by size or data that only some threads of a team reach")
        is_exit = has_final_exit(stmt.then)
        if is_exit and self.team.depth > 0:
            raise self.refusal("threads leave from inside a loop or branch")
        outer, line, alive = self.record.steps, self.memory.line, self.team.alive
        sides: list[tuple[Step, ...]] = []
        snapshot, cells = before = self.memory.held()
        named = dict(self.record.named)
        self.team.depth += 0 if is_exit else 1
        for body in (stmt.then, (*stmt.otherwise, *(rest if is_exit else ()))):
            self.record.steps = []
            self.memory.put_back(before)
            self.record.named = dict(named)
            self.team.alive = alive
            self.statements(body, active)
            sides.append(tuple(self.record.steps))
        self.team.depth -= 0 if is_exit else 1
        self.record.steps, self.record.named = outer, named
        self.memory.without_changed(cells, "it is set inside a branch")
        if not is_exit:
            self.team.alive = alive
            for name, vec in self.memory.variables.items():
                if snapshot.get(name) is not vec:
                    self.memory.variables[name] = tv.Vec(tv.Poison(f"'{name}' is set inside a branch", line))
        then, otherwise = sides
        if then:
            self.record.steps.append(When(condition, then, otherwise, line))
        elif otherwise:
            self.record.steps.append(When(fold_expr(negate_condition(condition)), otherwise, (), line))
        return is_exit, active

    def _by_element(self, condition: c.Expr, stmt: c.If, active: tv.Threads) -> tuple[bool, tv.Threads]:
        """A test of the element: what is stored is stored under it."""
        outer, self.record.steps = self.record.steps, []
        sides: list[list[Step]] = []
        before = dict(self.memory.variables)
        for body in (stmt.then, stmt.otherwise):
            self.record.steps = []
            if len(self.statements(body, active)) != len(active):
                raise self.refusal("threads leave by a test of their element")
            sides.append(self.record.steps)
        self.record.steps = outer
        if not any(sides):
            self.memory.variables = before
            self.choose_between(tv.Vec(tv.Sym(condition)), stmt, active)
            return False, active
        if any(vec is not self.memory.variables[name] for name, vec in before.items()):
            raise self.refusal("a branch by element both stores and sets variables")
        for test, steps in ((condition, sides[0]), (negate_condition(condition), sides[1])):
            for step in steps:
                if not isinstance(step, Each) or step.totals:
                    raise self.refusal("threads cooperate in a branch by element")
                guard = substitute(test, {self.memory.own_index: c.Name(step.index)})
                self.record.steps.append(replace(step, body=(c.If(guard, step.body, line=step.line),)))
        return False, active

    def declare(self, stmt: c.Declare, active: tv.Threads) -> None:
        if stmt.dims:
            self.memory.variables[f"{stmt.name}[]"] = tv.Vec(tv.ZERO)
            if isinstance(stmt.init, c.Braces) and len(stmt.dims) == 1:
                for at, item in enumerate(stmt.init.items):
                    self.assign(f"{stmt.name}[{at}]", stmt.type, stmt.name, self.eval(item, active), active)
            return
        if stmt.init is None:
            unset = tv.Poison(f"'{stmt.name}' is read before it is set", stmt.line)
            self.memory.write(stmt.name, tv.Vec(unset), active)
            return
        if stmt.type.is_pointer:
            for name in sorted(names_in(stmt.init)):
                if f"{name}[]" in self.memory.variables:
                    what = f"the pointer '{stmt.name}' to the array '{name}' of a thread is not followed"
                    raise self.refusal(what)
        self.assign(stmt.name, stmt.type, stmt.name, self.eval(stmt.init, active), active)

    def assign(self, key: str, type_: c.Type, hint: str, values: tv.Vec, active: tv.Threads) -> None:
        stored = self.memory.each(lambda a: self.record.as_variable(type_, hint, a), values, active)
        self.memory.write(key, stored, active)

    def effect(self, expr: c.Expr, active: tv.Threads) -> None:
        match expr:
            case c.Call(function=function) if function in _BARRIERS:
                if len(active) != len(self.team.alive):
                    raise self.refusal("a barrier where not all threads of the block arrive")
                self.memory.epoch += 1
                self.record.barriers += 1
            case c.Call(function=function) if function in _WARP_BARRIERS or function in _IGNORED:
                return
            case c.Call(function=function, args=(c.Unary(op="&", operand=target), value)) if (
                function in _SHARED_ATOMICS and self.memory.shared_name(target) is not None
            ):
                self.shared_atomic(_SHARED_ATOMICS[function], target, value, active)
            case c.Assign(op=op, target=target, value=value):
                self.store(op, target, value, active)
            case c.Unary(op="++" | "--" as op, operand=operand):
                self.store("+=" if op == "++" else "-=", operand, number_node(1), active)
            case c.Binary(op=",", left=left, right=right):
                self.effect(left, active)
                self.effect(right, active)
            case c.Call(function=function, args=(target, value)) if function in _SHARED_ATOMICS:
                self.global_atomic(function, target, value, active)
            case c.Call(function=function) if "atomic" in function.lower():
                raise self.refusal(f"{function} on global memory, outside a loop over elements")
            case c.Call(function=function):
                raise self.refusal(f"the call of '{function}' between loops over elements is not understood")
            case _:
                self.eval(expr, active)

    def shared_atomic(self, operator: Operator, target: c.Expr, value: c.Expr, active: tv.Threads) -> None:
        name = self.memory.shared_name(target)
        assert name is not None
        index = self.expressions.cell_index(name, target, active)
        values = self.eval(value, active)
        for thread in active:
            at = index.at(thread)
            old = self.memory.cells[name].get(at.value) if isinstance(at, tv.Int) else None
            if old is None or not isinstance(at, tv.Int):
                raise self.refusal(f"'{name}' is added to before it is set")
            total = (
                self.expressions.binary("+", old.value, values.at(thread), thread)
                if operator == "+"
                else self.expressions.join(operator, old.value, values.at(thread), thread)
            )
            old.value, old.writer, old.epoch = total, thread, self.memory.epoch

    def global_atomic(self, function: str, pointer: c.Expr, value: c.Expr, active: tv.Threads) -> None:
        """What one thread of each team adds to global memory: a block's total, say."""
        target = pointer.operand if isinstance(pointer, c.Unary) and pointer.op == "&" else None
        place = pointed_at(pointer, self.memory.arrays) if target is None else place_of(target)
        if place is None or place.array not in self.memory.arrays or place.as_type is not None:
            raise self.refusal(f"what {function} changes is not followed")
        element = c.Index(c.Name(place.array), place.index)
        self.store_global("+=", element, value, self.eval(value, active), active, function)

    def store(self, op: str, target: c.Expr, value: c.Expr, active: tv.Threads) -> None:
        name = self.memory.shared_name(target)
        values = self.eval(value, active)
        if op != "=":
            before = self.eval(target, active)
            values = self.expressions.combine(op[:-1], before, values, active)
        if name is not None:
            index = self.expressions.cell_index(name, target, active)
            if self.memory.cell_index_clashes(name, index, active):
                raise self.refusal(f"shared memory '{name}' holds a row's elements and is written singly too")
            type_ = self.memory.shared[name].type
            stored = self.memory.each(lambda a: self.record.as_variable(type_, name, a), values, active)
            self.memory.write_cells(name, index, stored, active)
            return
        match target:
            case c.Name(name=variable):
                type_ = self.memory.types.get(variable, c.Type("int"))
                self.assign(variable, type_, variable, values, active)
            case c.Index(base=c.Name(name=array), index=at) if f"{array}[]" in self.memory.variables:
                self.store_local(array, at, values, active)
            case _:
                self.store_global(op, target, value, values, active)

    def store_local(self, array: str, at: c.Expr, values: tv.Vec, active: tv.Threads) -> None:
        places = self.eval(at, active)
        groups: dict[int, list[int]] = {}
        for thread in active:
            place = places.at(thread)
            if not isinstance(place, tv.Int):
                raise self.refusal(f"'{array}' is written at a place that only the data tell")
            groups.setdefault(place.value, []).append(thread)
        for place_value, threads in groups.items():
            type_ = self.memory.types.get(array, c.Type("float"))
            self.assign(f"{array}[{place_value}]", type_, array, values, tuple(threads))

    def store_global(
        self,
        op: str,
        target: c.Expr,
        value: c.Expr,
        values: tv.Vec,
        active: tv.Threads,
        atomic: str = "",
    ) -> None:
        """`atomic`: the function that does it."""
        where = self.expressions.shared(target, active)
        where_expr = tv.expr_of(where)
        if where_expr is not None and self.memory.is_of_element(where_expr):
            if atomic:
                raise self.refusal(f"{atomic} on global memory, outside a loop over elements")
            self.store_element(op, target, where_expr, value, active)
            return
        array = self._array_stored_by_teams(op, target, active, atomic)
        if where_expr is None:
            why = f" ({where.reason})" if isinstance(where, tv.Poison) else ""
            raise self.refusal(
                f"'{print_expr(target)}' is stored to at a place that depends on the thread, outside a loop "
                f"over elements{why}"
            )
        if op != "=":
            values = self.eval(value, active)
        what_expr = tv.expr_of(tv.one_value(values, active))
        if what_expr is None:
            why = tv.explain_divergence(values, active)
            raise self.refusal(f"what is stored to '{array}' is not the same for the team: {why}")
        made: c.Expr = c.Assign(op, where_expr, what_expr)
        if atomic:
            made = c.Call(atomic, (c.Unary("&", where_expr), what_expr))
        stored = self.record.add_store(made, self.bounds.in_force)
        last = self.record.steps[-1] if self.record.steps else None
        if isinstance(last, Once):
            self.record.steps[-1] = replace(last, body=(*last.body, stored))
        else:
            self.record.steps.append(Once((stored,), self.memory.line))

    def _array_stored_by_teams(self, op: str, target: c.Expr, active: tv.Threads, atomic: str) -> str:
        """The array, of which every team stores one element; refused where some do, or several threads."""
        place = place_of(without_members(target))
        if place is None or place.array not in self.memory.arrays:
            raise self.refusal(f"what '{print_expr(target)}' stores to is not followed")
        teams = {self.memory.team(thread) for thread in active}
        alive = {self.memory.team(thread) for thread in self.team.alive}
        if len(teams) not in (self.memory.threads // self.memory.lanes, len(alive)):
            raise self.refusal(f"only some of a block's teams store to '{place.array}'")
        if op != "=" and len(active) > len(teams):
            if atomic:
                raise self.refusal(
                    f"{atomic} on global memory by several threads, outside a loop over elements"
                )
            raise self.refusal(f"several threads update the same element of '{place.array}'")
        return place.array

    def store_element(
        self, op: str, target: c.Expr, where: c.Expr, value: c.Expr, active: tv.Threads
    ) -> None:
        if len(active) % self.memory.lanes:
            raise self.refusal("an element is stored by some threads of a team only")
        what = self.expressions.shared(value, active)
        what_expr = tv.expr_of(what)
        if what_expr is None:
            why = what.reason if isinstance(what, tv.Poison) else "it differs from thread to thread"
            raise self.refusal(f"'{print_expr(target)}' is stored: {why}")
        place = place_of(without_members(where))
        if place is None:
            raise self.refusal(f"what '{print_expr(target)}' stores to is not followed")
        stored = self.record.add_store(c.Assign(op, where, what_expr), self.bounds.in_force)
        self.team.elements.stored(place.array)
        last = self.record.steps[-1] if self.record.steps else None
        if isinstance(last, Each) and not last.totals:
            more = substitute((stored,), {self.memory.own_index: c.Name(last.index)})
            self.record.steps[-1] = replace(last, body=(*last.body, *more))
        else:
            self.record.steps.append(self.team.elements.loop_over((stored,)))


def has_final_exit(body: Sequence[c.Stmt]) -> bool:
    return bool(body) and (isinstance(body[-1], c.Return) or body[-1] == c.Jump("continue"))


def _has_steps(stmt: c.If, arrays: Mapping[str, c.Type]) -> bool:
    """Whether a branch does more than set variables."""
    for node in nodes_in((*stmt.then, *stmt.otherwise)):
        if isinstance(node, c.For | c.While | c.Return | c.Jump):
            return True
        if isinstance(node, c.Call) and is_atomic(node.function):
            return True
        if isinstance(node, c.Assign):
            place = place_of(without_members(node.target))
            if place is not None and place.array in arrays:
                return True
    return False


class TeamReader:
    """Plays through every scenario, compares what comes out, and finds the tasks in it."""

    def __init__(
        self,
        kernel: geometry.LaunchedKernel,
        layouts: Sequence[geometry.Layout],
        warp: int,
        real: Sequence[Scenario] = (),
        element_per_thread: bool = False,
    ) -> None:
        self._kernel = kernel
        self._normal, self._launch, self._loops = kernel.normal, kernel.launch, kernel.loops
        self._layouts = layouts
        self._warp = warp
        self._real = real or [layout.scenario for layout in layouts]
        self._element_per_thread = element_per_thread
        self._element = ""
        self._reach: list[Reach] = []
        names = self._normal.definitions
        names |= {name: Name(name) for name in sorted(geometry.THREAD | geometry.BLOCK)}
        # Variables (and built-in indices) that run along an axis of the tasks, in every scenario.
        self._axes = {name: axis for name, expr in names.items() if (axis := self._axis(expr)) is not None}

    def _axis(self, expr: Expr) -> geometry.CountedIndex | None:
        found = geometry.identify_index(expr, self._layouts) if geometry.is_straight(expr) else None
        return found if found is not None and found.times == 1 else None

    def read(self) -> KernelReading:
        played = [self._play(layout) for layout in reversed(self._layouts)]
        first, steps = played[0]
        for other, other_steps in played[1:]:
            if other_steps != steps:
                block = other.memory.scenario.block
                raise OutOfReach(
                    "what the threads of a block do together differs with the launch: blocks of "
                    f"{first.memory.scenario.block} and of {block} threads come to different steps"
                )
        self._check_effects(first)
        tasks, steps = self._tasks(first, steps)
        staged = tuple(found.staged for found in first.memory.staged.values())
        if self._element in first.bounds.limits:
            lanes = block_threads() if self._lanes() is None else self._lanes() or number_node(0)
            self._reach.append(Reach(self._element, first.bounds.limits[self._element], lanes))
        barriers, reach = first.record.barriers, tuple(self._reach)
        return KernelReading(tasks, steps, self._kind(), self._lanes(), staged, barriers, (), reach)

    def _play(self, layout: geometry.Layout) -> tuple[TeamState, tuple[Step, ...]]:
        fixed = self._fixed(layout)
        element: tuple[Expr, str] = (number_node(0), "int")
        if self._element_per_thread:
            self._element = self._own_index(layout, fixed)
            element = (self._lanes() or number_node(layout.lanes), self._kernel.type_of(self._element))
        memory = BlockMemory(self._normal, layout, self._warp, fixed, self._kernel.aliases, self._element)
        tasks = frozenset(self._axes) | ({self._element} if self._element else set())
        team = TeamState(self._normal, layout, self._loops, memory, tasks, element)
        BlockInterpreter(team).statements(self._normal.body, team.alive)
        return team, renamed_lets(without_unused(team.record.steps), team.record.better_names)

    def _own_index(self, layout: geometry.Layout, fixed: dict[str, Vec]) -> str:
        """The index that says which element of its team a thread has; every such index is called by it."""
        names = self._normal.definitions
        names |= {name: Name(name) for name in sorted(geometry.THREAD)}
        ranks = [name for name, expr in names.items() if self._is_rank(expr)]
        if not ranks:
            raise OutOfReach("no index says which thread of its team a thread is")
        element = ranks[0]
        for name in ranks:
            fixed[name] = Vec(
                None, [Int(t % layout.lanes, Name(element)) for t in range(layout.scenario.threads)]
            )
        if layout.lanes == 1:
            fixed |= {name: Vec(Int(0, Name(element))) for name in ranks}
        return element

    def _is_rank(self, expr: Expr) -> bool:
        for layout in self._layouts:
            form = geometry.form_of(expr, layout.scenario)
            if form is None or any(form.per_block):
                return False
            if any(value != t % layout.lanes for t, value in enumerate(form.base)):
                return False
        return True

    def _fixed(self, layout: geometry.Layout) -> dict[str, Vec]:
        """What built-in indices and the variables made of them are, in every thread of block 0."""
        scenario = layout.scenario
        found: dict[str, Vec] = {}
        numbers = scenario.numbers
        for name in BUILTINS:
            expr: Expr | None = Name(name) if name in self._axes else None
            if name in geometry.LAUNCH:
                # How many blocks there are a kernel may ask: that of tasks has a name (see `_tasks`).
                asked = Name(name) if name.startswith("gridDim") else None
                found[name] = Vec(Int(numbers[name], self._launch.values.get(name, asked), True))
            elif name in geometry.BLOCK:
                found[name] = Vec(Int(0, expr))
            else:
                axis = "xyz".index(name[-1])
                places = [scenario.thread(thread)[axis] for thread in range(scenario.threads)]
                found[name] = _vector_of_ints(places, expr)
        for name, id_ in self._normal.ids.items():
            values = geometry.values_of(id_.expr, scenario)
            if values is None:
                raise OutOfReach.at(id_.line, f"'{id_.name}' has no number at launch")
            sized = not names_in(id_.expr) <= set(BUILTINS)
            if not names_in(id_.expr) & (geometry.THREAD | geometry.BLOCK):
                found[name] = Vec(Int(values[0], self._said(id_), True, sized))
            else:
                expr = Name(name) if name in self._axes else self._said(id_)
                found[name] = _vector_of_ints(values, expr, sized)
        return found

    def _said(self, id_: Id) -> Expr | None:
        """An index that is the same for the team, in terms of the tasks; None where it is not."""
        expr = id_.short
        for _ in range(20):
            inner = {
                name: self._normal.ids[name].short
                for name in names_in(expr)
                if name in self._normal.ids and name not in self._axes
            }
            if not inner:
                break
            expr = substitute(expr, inner)
        if any(name in geometry.THREAD and name not in self._axes for name in names_in(expr)):
            return None
        return self._launch.replaced(expr)

    def _check_effects(self, team: TeamState) -> None:
        """What is stored outside a task's bound would be left out."""
        for name in team.bounds.limits:
            for effect in team.record.effects:
                if name not in effect.bounded:
                    raise OutOfReach.at(
                        effect.line,
                        f"this is stored whether or not '{name}' is within its bound, "
                        "which is tested elsewhere",
                    )

    def _tasks(self, team: TeamState, steps: tuple[Step, ...]) -> tuple[tuple[Task, ...], tuple[Step, ...]]:
        loops = team.bounds.tasks - set(self._axes) - {self._element}
        axes = {**self._axes, **{index: self._loop_axis(index) for index in loops}}
        used = {name: axes[name] for name in names_in_steps(steps) & set(axes) | loops}
        used, aliases = self._one_name_each(used, team)
        self._check_cover(used)
        names = dict(aliases)
        tasks: list[tuple[tuple[bool, int], Task]] = []
        taken = set(self._normal.types) | set(self._normal.ids) | names_in_steps(steps)
        for name, axis in used.items():
            extent = self._extent(name, axis, team)
            fresh = name
            if name in BUILTINS:
                fresh = numbered_name(axis_name(name), taken)
                names[name] = Name(fresh)
            task = Task(fresh, extent, self._kernel.type_of(name), self._launch.size_text(extent))
            tasks.append(((axis.grid is None, -(axis.grid or 0)), task))
        tasks.sort(key=lambda pair: pair[0])
        steps = substitute_in_steps(steps, names) if names else steps
        # How far a task's index goes may be asked for: it is given a name (see `wrap_up`).
        named = {task.extent.name for _, task in tasks if isinstance(task.extent, Name)}
        left = names_in_steps(steps) & set(BUILTINS) - named
        if left:
            raise OutOfReach(f"what the team does depends on {', '.join(sorted(left))}")
        return tuple(task for _, task in tasks), steps

    def _one_name_each(
        self, used: dict[str, geometry.CountedIndex], team: TeamState
    ) -> tuple[dict[str, geometry.CountedIndex], dict[str, Expr]]:
        """One name for every axis; other names for the same are replaced by it."""
        chosen: dict[str, geometry.CountedIndex] = {}
        aliases: dict[str, Expr] = {}
        ranked = sorted(used, key=lambda n: (n not in team.bounds.limits, n in BUILTINS, n))
        for name in ranked:
            axis = used[name]
            other = next((n for n, a in chosen.items() if a == axis), None)
            if other is not None:
                aliases[name] = Cast(Type(self._kernel.type_of(name)), Name(other))
                continue
            if any((a.teams and axis.teams) or a.grid == axis.grid is not None for a in chosen.values()):
                raise OutOfReach("both the number of a block and the number of a team in it say the task")
            chosen[name] = axis
        return chosen, aliases

    def _check_cover(self, used: Mapping[str, geometry.CountedIndex]) -> None:
        for layout in self._layouts:
            for axis in range(3):
                if layout.scenario.several[axis] and not any(a.grid == axis for a in used.values()):
                    raise OutOfReach(f"the blocks along {'xyz'[axis]} of the grid all do the same work")
            if layout.teams > 1 and not any(a.teams for a in used.values()):
                raise OutOfReach(f"the {layout.teams} teams of a block all do the same work")

    def _loop_axis(self, index: str) -> geometry.CountedIndex:
        """What a loop over tasks counts; it must step by as many as start together."""
        loop, definitions = self._loops[index], self._normal.definitions
        axis = self._axis(substitute(loop.head.start, definitions))
        if axis is None:
            raise OutOfReach.at(loop.line, f"the loop over '{index}' is shared in a way not followed")
        step = substitute(loop.head.step, definitions)
        for layout in self._layouts:
            together = 1 if axis.grid is None else layout.scenario.grid[axis.grid]
            together *= layout.teams if axis.teams else 1
            by = int_value(step, layout.scenario.numbers)
            if by != together:
                said = "no number at launch" if by is None else str(by)
                raise OutOfReach.at(
                    loop.line, f"the loop over '{index}' steps by {said}, but {together} start together"
                )
        return axis

    def _extent(self, name: str, axis: geometry.CountedIndex, team: TeamState) -> Expr:
        bound = team.bounds.limits.get(name)
        if bound is not None:
            goes_on = name in self._loops
            shapes = [lay.teams for lay in self._layouts], [lay.lanes for lay in self._layouts]
            if not goes_on or not axis.teams or any(len(set(counts)) == 1 for counts in shapes):
                self._reach.append(Reach(name, bound, self._task_count(axis), goes_on))
            return bound
        extent = self._task_count(axis)
        whole = self._launch.replaced(extent)
        return fold_expr(extent) if names_in(whole) & set(BUILTINS) else whole

    def _task_count(self, axis: geometry.CountedIndex) -> Expr:
        """How many tasks the launch comes to along the axis."""
        count: Expr = number_node(1) if axis.grid is None else launch_name("gridDim", axis.grid)
        return make_product(count, self._teams_per_block()) if axis.teams or self._by_rows() else count

    def _by_rows(self) -> bool:
        return self._real[0] != self._layouts[0].scenario

    def _teams_per_block(self) -> Expr:
        if self._by_rows():
            return block_threads()
        counts = {layout.teams for layout in self._layouts}
        if len(counts) == 1:
            return number_node(counts.pop())
        lanes = {layout.lanes for layout in self._layouts}
        if len(lanes) == 1:
            return fold_expr(Binary("/", block_threads(), number_node(lanes.pop())))
        raise OutOfReach("how many teams a block has follows no rule")

    def _lanes(self) -> Expr | None:
        lanes = {layout.lanes for layout in self._layouts}
        if len(lanes) == 1:
            return number_node(lanes.pop())
        if any(layout.teams != 1 for layout in self._layouts):
            return None
        threads = self._launch.replaced(block_threads())
        return None if names_in(threads) & set(BUILTINS) else threads

    def _kind(self) -> TeamKind:
        layout = self._layouts[-1]
        if layout.lanes == 1:
            return "thread"
        if layout.teams == 1 or layout.lanes > self._warp:
            return "block"
        return "warp" if layout.lanes == self._warp else "part of a warp"


def _vector_of_ints(values: Sequence[int], expr: Expr | None, sized: bool = False) -> Vec:
    if len(set(values)) == 1:
        return Vec(Int(values[0], expr, sized=sized))
    return Vec(None, [Int(value, expr, sized=sized) for value in values])


def read_teams(kernel: geometry.LaunchedKernel, language: str) -> KernelReading:
    warp, tried = 64 if language == "hip" else 32, kernel.scenarios
    if not any(loop.role == "element" for loop in kernel.loops.values()):
        return _read_element_per_thread(kernel, warp)
    layouts = [geometry.Layout(at, geometry.team_lanes(kernel.loops, kernel.normal, at)) for at in tried]
    try:
        return TeamReader(kernel, layouts, warp).read()
    except OutOfReach:
        if language != "hip":
            raise
        # Some devices that HIP serves have warps of 32.
        return TeamReader(kernel, layouts, 32).read()


def _read_element_per_thread(kernel: geometry.LaunchedKernel, warp: int) -> KernelReading:
    """Kernels with an element to each thread: by blocks, or by rows of a block with several."""
    tried = [scenario for scenario in kernel.scenarios if scenario.threads > 1]
    tried = [tried[0], tried[-1]] if len(tried) > 2 else tried
    shapes = [[geometry.Layout(scenario, scenario.threads) for scenario in tried]] if tried else []
    if any(scenario.block[1] * scenario.block[2] > 1 for scenario in tried):
        shapes.append([geometry.Layout(scenario, scenario.block[0]) for scenario in tried])
    if all(scenario.threads % warp == 0 for scenario in tried):
        shapes.append([geometry.Layout(scenario, warp) for scenario in tried])
    reasons: list[OutOfReach] = []
    distinct = {tuple(layout.lanes for layout in layouts): layouts for layouts in reversed(shapes)}
    for layouts in reversed(distinct.values()):
        try:
            return TeamReader(kernel, layouts, warp, element_per_thread=True).read()
        except OutOfReach as stop:
            reasons.append(stop)
    if not reasons:
        raise OutOfReach("a single thread to a block")
    furthest = max(reasons, key=lambda stop: stop.line)
    raise OutOfReach(
        f"threads cooperate other than by totals over a row's elements: {furthest.reason}", furthest.line
    )


def read_rows(kernel: geometry.LaunchedKernel) -> KernelReading:
    """Kernels with a thread to each row: the loops of one thread become loops over elements."""
    layouts = [geometry.Layout(scenario.of_threads(), 1) for scenario in kernel.scenarios[-2:]]
    return TeamReader(kernel, layouts, 32, real=kernel.scenarios).read()
