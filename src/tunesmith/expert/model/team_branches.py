"""Branches: by thread numbers they divide the team, by sizes or data the whole team takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import Assign, Expr, For, If, Jump, Name, Return, Stmt, Type, While
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import negated, nodes_in
from tunesmith.expert.model.kernel import Each, Let, Step, When
from tunesmith.expert.model.places import place_of, without_members
from tunesmith.expert.model.team_expressions import Run, TeamState
from tunesmith.expert.model.team_memory import BlockMemory, Key, copied_cells
from tunesmith.expert.model.team_values import Int, Poison, Sym, Threads, Value, Vec, Which, expr_of


class BranchReader:
    """Divergence among threads, choices by data, and `When`; `run` goes through a branch's statements."""

    def __init__(self, team: TeamState, run: Run) -> None:
        self.team = team
        self.run = run
        self.memory, self.bounds, self.record = team.memory, team.bounds, team.record
        self.arithmetic = team.arithmetic
        self.eval, self.refusal = team.expressions.eval, team.memory.refusal

    def branch(self, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        """Whether `rest` was gone through as well, and who is still there."""
        if not self.memory.own_index:
            return self._branch(stmt, rest, active)
        outer, self.memory.log = self.memory.log, []
        try:
            result = self._branch(stmt, rest, active)
            for name, cell, thread, old in self.memory.log or []:
                if cell is None and old is not None and name in self.memory.variables:
                    self.memory.fill(expr_of(self.memory.variables[name].at(thread)), expr_of(old))
        finally:
            if outer is not None:
                outer += self.memory.log or []
            self.memory.log = outer
        return result

    def _branch(self, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
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
            left += self.run(stmt.then, groups.yes)
            self.bounds.in_force = before
        if groups.no:
            left += self.run(stmt.otherwise, groups.no)
        if groups.which:
            self.choose_between(condition, stmt, groups.which)
            left += groups.which
        if touched and leaves(stmt.then) and not groups.yes and not groups.which:
            self.bounds.in_force = before | touched
        return False, tuple(sorted(left))

    def choose_between(self, condition: Vec, stmt: If, active: Threads) -> None:
        """A branch by data: both sides are computed, and what they set is chosen."""
        outer = self.memory.log
        sides: list[dict[Key, Value]] = []
        first: dict[Key, Value | None] = {}
        steps = len(self.record.steps)
        for body in (stmt.then, stmt.otherwise):
            self.memory.log = []
            self.record.speculative += 1
            left = self.run(body, active)
            self.record.speculative -= 1
            if len(left) != len(active):
                raise self.refusal("threads leave in a branch that depends on the data")
            changed: dict[Key, Value] = {}
            for name, cell, thread, old in self.memory.log:
                key = (name, cell, thread)
                first.setdefault(key, old)
                changed[key] = self.memory.now(key)
            for key in changed:
                self.memory.restore(key, first[key])
            sides.append(changed)
        self.memory.log = outer
        if any(not isinstance(step, Let) for step in self.record.steps[steps:]):
            raise self.refusal("a branch that depends on the data stores or loops over elements")
        for key, old in first.items():
            unset = Poison("it is set in one branch only", self.memory.line) if old is None else old
            yes, no = (side.get(key, unset) for side in sides)
            value = self.arithmetic.select(condition.at(key[2]), yes, no, key[2])
            name, cell, thread = key
            if cell is None:
                hint = name.partition("[")[0]
                type_ = self.memory.types.get(hint, Type("float"))
                value = self.record.as_variable(type_, hint, value)
                self.memory.write(name, Vec(value), (thread,))
            else:
                value = self.record.as_variable(self.memory.shared[name].type, name, value)
                self.memory.write_cells(name, Vec(Int(cell)), Vec(value), (thread,))

    def when(self, condition: Expr, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        """A branch of the whole team, by sizes or data that everyone in it knows."""
        if self.memory.is_of_element(condition):
            return self._by_element(condition, stmt, active)
        if not _has_steps(stmt, self.memory.arrays):
            self.choose_between(Vec(Sym(condition)), stmt, active)
            return False, active
        if {self.memory.team(t) for t in active} and len(active) % self.memory.lanes:
            raise self.refusal("a branch by size or data that only some threads of a team reach")
        is_exit = leaves(stmt.then)
        if is_exit and self.team.depth > 0:
            raise self.refusal("threads leave from inside a loop or branch")
        outer, line, alive = self.record.steps, self.memory.line, self.team.alive
        sides: list[tuple[Step, ...]] = []
        second = (*stmt.otherwise, *rest) if is_exit else stmt.otherwise
        snapshot, cells = dict(self.memory.variables), copied_cells(self.memory.cells)
        named = dict(self.record.named)
        self.team.depth += 0 if is_exit else 1
        for body in (stmt.then, second):
            self.record.steps = []
            self.memory.variables = dict(snapshot)
            self.memory.cells = copied_cells(cells)
            self.record.named = dict(named)
            self.team.alive = alive
            self.run(body, active)
            sides.append(tuple(self.record.steps))
        self.team.depth -= 0 if is_exit else 1
        self.record.steps, self.record.named = outer, named
        self.memory.without_changed(cells, "it is set inside a branch")
        if not is_exit:
            self.team.alive = alive
            for name, vec in self.memory.variables.items():
                if snapshot.get(name) is not vec:
                    self.memory.variables[name] = Vec(Poison(f"'{name}' is set inside a branch", line))
        if any(sides):
            self.record.steps.append(_when(condition, sides[0], sides[1], line))
        return is_exit, active

    def _by_element(self, condition: Expr, stmt: If, active: Threads) -> tuple[bool, Threads]:
        """A test of the element: what is stored is stored under it."""
        outer, self.record.steps = self.record.steps, []
        sides: list[list[Step]] = []
        before = dict(self.memory.variables)
        for body in (stmt.then, stmt.otherwise):
            self.record.steps = []
            if len(self.run(body, active)) != len(active):
                raise self.refusal("threads leave by a test of their element")
            sides.append(self.record.steps)
        self.record.steps = outer
        if not any(sides):
            self.memory.variables = before
            self.choose_between(Vec(Sym(condition)), stmt, active)
            return False, active
        if any(vec is not self.memory.variables[name] for name, vec in before.items()):
            raise self.refusal("a branch by element both stores and sets variables")
        for test, steps in ((condition, sides[0]), (negated(condition), sides[1])):
            for step in steps:
                if not isinstance(step, Each) or step.totals:
                    raise self.refusal("threads cooperate in a branch by element")
                own = substitute(test, {self.memory.own_index: Name(step.index)})
                self.record.steps.append(replace(step, body=(If(own, step.body, line=step.line),)))
        return False, active


@dataclass(frozen=True)
class Groups:
    """Threads by what a condition is for them: settled yes or no, a choice by parts, or one for the team."""

    yes: Threads
    no: Threads
    which: Threads
    uniform: Expr | None = None

    @staticmethod
    def of(condition: Vec, active: Threads, memory: BlockMemory) -> Groups:
        yes, no, which = list[int](), list[int](), list[int]()
        uniform: dict[Expr, None] = {}
        for thread in active:
            match condition.at(thread):
                case Int() as value if memory.is_settled(value):
                    (yes if value.value else no).append(thread)
                case Int(expr=expr) | Sym(expr=expr) if expr is not None:
                    uniform[expr] = None
                case Which():
                    which.append(thread)
                case Poison(reason=reason, line=line):
                    where = f" (line {line})" if line and line != memory.line else ""
                    raise memory.refusal(f"a branch depends on what {reason}{where}")
                case Int():
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


def _when(condition: Expr, then: tuple[Step, ...], otherwise: tuple[Step, ...], line: int) -> When:
    if then:
        return When(condition, then, otherwise, line)
    return When(fold(negated(condition)), otherwise, (), line)


def leaves(body: Sequence[Stmt]) -> bool:
    return bool(body) and (isinstance(body[-1], Return) or body[-1] == Jump("continue"))


def _has_steps(stmt: If, arrays: Mapping[str, Type]) -> bool:
    """Whether a branch does more than set variables."""
    for node in nodes_in((*stmt.then, *stmt.otherwise)):
        if isinstance(node, For | While | Return | Jump):
            return True
        if isinstance(node, Assign):
            place = place_of(without_members(node.target))
            if place is not None and place.array in arrays:
                return True
    return False
