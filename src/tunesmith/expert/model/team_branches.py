"""Branches: by thread numbers they divide the team, by sizes or data the whole team takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Expr,
    For,
    If,
    Jump,
    Member,
    Name,
    Number,
    Return,
    Stmt,
    Type,
    While,
)
from tunesmith.csource.walk import names_in, nodes_in
from tunesmith.expert.model.affine import number, same_value, without_casts
from tunesmith.expert.model.exits import negated
from tunesmith.expert.model.kernel import Let, Step, When
from tunesmith.expert.model.places import place_of
from tunesmith.expert.model.team_memory import Cell, Threads, Vec
from tunesmith.expert.model.team_names import Named
from tunesmith.expert.model.team_values import (
    ONE,
    ZERO,
    Int,
    Poison,
    Sym,
    Value,
    Which,
)


class Branching(Named):
    """Tests of bounds, divergence among threads, choices by data, and `When`."""

    def bound(self, op: str, left: Int, right: Int) -> Int | None:
        """A test of a task's index against its extent is settled: the tasks are those within it."""
        for task, limit, relation in ((left, right, op), (right, left, _MIRROR[op])):
            if task.expr is None or limit.expr is None or isinstance(task.expr, Number):
                continue
            name = without_casts(task.expr)
            if not isinstance(name, Name) or name.name not in self.tasks or names_in(limit.expr) & self.tasks:
                continue
            extent = limit.expr if relation in ("<", ">=") else Binary("+", limit.expr, number(1))
            known = self.bounds.get(name.name)
            if known is None and self.may_bound:
                known = self.bounds[name.name] = extent
            if known is None or not same_value(known, extent):
                return None
            self.touched.add(name.name)
            return ONE if relation in ("<", "<=") else ZERO
        return None

    def branch(self, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        """Whether `rest` was gone through as well, and who is still there."""
        self.touched.clear()
        self.may_bound = not stmt.otherwise
        condition = self.eval(stmt.condition, active)
        self.may_bound = False
        touched = frozenset(self.touched)
        groups = Groups.of(condition, active, self)
        if groups.uniform is not None:
            return self.when(groups.uniform, stmt, rest, active)
        before = self.in_force
        left: list[int] = []
        if groups.yes:
            self.in_force = before | touched
            left += self.block(stmt.then, groups.yes)
            self.in_force = before
        if groups.no:
            left += self.block(stmt.otherwise, groups.no)
        if groups.which:
            self.choose_between(condition, stmt, groups.which)
            left += groups.which
        if touched and leaves(stmt.then) and not groups.yes and not groups.which:
            self.in_force = before | touched
        return False, tuple(sorted(left))

    def choose_between(self, condition: Vec, stmt: If, active: Threads) -> None:
        """A branch by data: both sides are computed, and what they set is chosen."""
        outer = self.log
        sides: list[dict[tuple[str, int | None, int], Value]] = []
        first: dict[tuple[str, int | None, int], Value | None] = {}
        steps = len(self.steps)
        for body in (stmt.then, stmt.otherwise):
            self.log = []
            self.speculative += 1
            left = self.block(body, active)
            self.speculative -= 1
            if len(left) != len(active):
                raise self.beyond("threads leave in a branch that depends on the data")
            changed: dict[tuple[str, int | None, int], Value] = {}
            for name, cell, thread, old in self.log:
                key = (name, cell, thread)
                first.setdefault(key, old)
                changed[key] = self.now(key)
            for key in changed:
                self.restore(key, first[key])
            sides.append(changed)
        self.log = outer
        if any(not isinstance(step, Let) for step in self.steps[steps:]):
            raise self.beyond("a branch that depends on the data stores or loops over elements")
        for key, old in first.items():
            unset: Value = old if old is not None else Poison("it is set in one branch only", self.line)
            yes, no = (side.get(key, unset) for side in sides)
            value = self.select(condition.at(key[2]), yes, no, key[2])
            name, cell, thread = key
            if cell is None:
                type_ = self.types.get(name.partition("[")[0], Type("float"))
                hint = name.partition("[")[0]
                value = self.as_variable(type_, hint, value)
                self.write(name, Vec(value), (thread,))
            else:
                value = self.as_variable(self.shared[name].type, name, value)
                self.write_cells(name, Vec(Int(cell)), Vec(value), (thread,))

    def now(self, key: tuple[str, int | None, int]) -> Value:
        name, cell, thread = key
        return self.variables[name].at(thread) if cell is None else self.cells[name][cell].value

    def restore(self, key: tuple[str, int | None, int], old: Value | None) -> None:
        name, cell, thread = key
        log, self.log = self.log, None
        if cell is None:
            self.write(name, Vec(old or Poison(f"'{name}' is read before it is set", self.line)), (thread,))
        elif old is None:
            self.cells[name].pop(cell, None)
        else:
            self.cells[name][cell] = Cell(old, thread, self.epoch)
        self.log = log

    def when(self, condition: Expr, stmt: If, rest: Sequence[Stmt], active: Threads) -> tuple[bool, Threads]:
        """A branch of the whole team, by sizes or data that everyone in it knows."""
        if not _has_steps(stmt, self.arrays):
            self.choose_between(Vec(Sym(condition)), stmt, active)
            return False, active
        if {self.team(t) for t in active} and len(active) % self.lanes:
            raise self.beyond("a branch by size or data that only some threads of a team reach")
        is_exit = leaves(stmt.then)
        if is_exit and self.depth > 0:
            raise self.beyond("threads leave from inside a loop or branch")
        outer, line, alive = self.steps, self.line, self.alive
        sides: list[tuple[Step, ...]] = []
        second = (*stmt.otherwise, *rest) if is_exit else stmt.otherwise
        snapshot, cells, named = dict(self.variables), self.copied_cells(), dict(self.named)
        self.depth += 0 if is_exit else 1
        for body in (stmt.then, second):
            self.steps = []
            self.variables = dict(snapshot)
            self.cells = {
                name: {at: replace(cell) for at, cell in held.items()} for name, held in cells.items()
            }
            self.named = dict(named)
            self.alive = alive
            self.block(body, active)
            sides.append(tuple(self.steps))
        self.depth -= 0 if is_exit else 1
        self.steps, self.named = outer, named
        self.without_changed(cells, "it is set inside a branch")
        if not is_exit:
            self.alive = alive
            self.variables = {
                name: vec
                if snapshot.get(name) is vec
                else Vec(Poison(f"'{name}' is set inside a branch", line))
                for name, vec in self.variables.items()
            }
        if any(sides):
            self.steps.append(_when(condition, sides[0], sides[1], line))
        return is_exit, active


_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Groups:
    """Threads by what a condition is for them: settled yes or no, a choice by parts, or one for the team."""

    yes: Threads
    no: Threads
    which: Threads
    uniform: Expr | None = None

    @staticmethod
    def of(condition: Vec, active: Threads, team: Named) -> Groups:
        yes: list[int] = []
        no: list[int] = []
        which: list[int] = []
        uniform: dict[Expr, None] = {}
        for thread in active:
            match condition.at(thread):
                case Int() as value if team.is_settled(value):
                    (yes if value.value else no).append(thread)
                case Int(expr=expr) | Sym(expr=expr) if expr is not None:
                    uniform[expr] = None
                case Which():
                    which.append(thread)
                case Poison(reason=reason, line=line):
                    where = f" (line {line})" if line and line != team.line else ""
                    raise team.beyond(f"a branch depends on what {reason}{where}")
                case Int():
                    raise team.beyond("a branch depends on the thread and on a size at once")
                case _:
                    raise team.beyond("a branch depends on a part of a total")
        if uniform:
            if len(uniform) > 1:
                raise team.beyond("a branch by data that differs within a team")
            if yes or no or which:
                # `lane == 0 && total > 0`: those that are settled stay out, the rest choose.
                if yes or which:
                    raise team.beyond("a branch that mixes data and thread numbers")
                return Groups((), tuple(no), tuple(t for t in active if t not in set(no)))
            return Groups((), (), (), next(iter(uniform)))
        return Groups(tuple(yes), tuple(no), tuple(which))


def _when(condition: Expr, then: tuple[Step, ...], otherwise: tuple[Step, ...], line: int) -> When:
    if then:
        return When(condition, then, otherwise, line)
    return When(fold(negated(condition)), otherwise, (), line)


def leaves(body: Sequence[Stmt]) -> bool:
    return (
        bool(body)
        and isinstance(body[-1], Return | Jump)
        and not (isinstance(body[-1], Jump) and body[-1].word == "break")
    )


def _has_steps(stmt: If, arrays: Mapping[str, Type]) -> bool:
    """Whether a branch does more than set variables."""
    for node in nodes_in((*stmt.then, *stmt.otherwise)):
        if isinstance(node, For | While | Return | Jump):
            return True
        if isinstance(node, Assign):
            target = node.target
            while isinstance(target, Member):
                target = target.base
            place = place_of(target)
            if place is not None and place.array in arrays:
                return True
    return False
