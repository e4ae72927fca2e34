"""Goes through a kernel's statements with all threads of a block, and keeps what each team does as steps.

Loops over elements become `Each`; the cooperation around them is played through (`teamwork`) and leaves
`Let` for what everyone in the team then knows, `Once` for what one thread stores, `When` for branches that
the whole team takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Call,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Index,
    Jump,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    Type,
    Unary,
    While,
)
from tunesmith.csource.printing import print_expr
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.kernel import Once, Operator
from tunesmith.expert.model.places import place_of
from tunesmith.expert.model.team_loops import Looping
from tunesmith.expert.model.team_memory import Effect, Threads, Vec, blame, one_value
from tunesmith.expert.model.team_values import (
    ZERO,
    Int,
    Poison,
    expr_of,
)

_BARRIERS = frozenset({"__syncthreads", "barrier", "work_group_barrier"})
_WARP_BARRIERS = frozenset({"__syncwarp", "sub_group_barrier"})
_IGNORED = frozenset(
    {"__builtin_assume", "__threadfence_block", "mem_fence", "__builtin_prefetch", "prefetch"}
)
_SHARED_ATOMICS: Mapping[str, Operator] = {
    "atomicAdd": "+", "atomicMax": "max", "atomicMin": "min", "atomicOr": "|", "atomicAnd": "&",
    "atomic_add": "+", "atomic_max": "max", "atomic_min": "min", "atomic_or": "|", "atomic_and": "&",
}  # fmt: skip


class Team(Looping):
    """One block in one scenario, on its way through the kernel."""

    def run(self) -> None:
        self.block(self.normal.body, self.alive)

    def block(self, stmts: Sequence[Stmt], active: Threads) -> Threads:
        """Gives back the threads that are still there afterwards."""
        for at, stmt in enumerate(stmts):
            if not active:
                return active
            self.line = getattr(stmt, "line", 0) or self.line
            if isinstance(stmt, If):
                done, active = self.branch(stmt, stmts[at + 1 :], active)
                if done:
                    return active
            else:
                active = self.statement(stmt, active)
        return active

    def statement(self, stmt: Stmt, active: Threads) -> Threads:
        match stmt:
            case Declare():
                self.declare(stmt, active)
            case Evaluate(expr=expr):
                self.effect(expr, active)
            case For():
                return self.loop(stmt, active)
            case While():
                self.turns((), stmt.condition, (), stmt.body, active, first=stmt.after)
            case Scope(body=body):
                return self.block(body, active)
            case Return() | Jump(word="continue"):
                self.alive = tuple(t for t in self.alive if t not in set(active))
                return ()
            case _:
                text = getattr(stmt, "text", getattr(stmt, "word", "statement"))
                raise self.beyond(f"'{text.strip().splitlines()[0][:60]}' is not understood")
        return active

    def effect(self, expr: Expr, active: Threads) -> None:
        match expr:
            case Call(function=function) if function in _BARRIERS:
                if len(active) != len(self.alive):
                    raise self.beyond("a barrier where not all threads of the block arrive")
                self.epoch += 1
                self.barriers += 1
            case Call(function=function) if function in _WARP_BARRIERS or function in _IGNORED:
                return
            case Call(function=function, args=(Unary(op="&", operand=target), value)) if (
                function in _SHARED_ATOMICS and self.shared_name(target) is not None
            ):
                self.shared_atomic(_SHARED_ATOMICS[function], target, value, active)
            case Assign(op=op, target=target, value=value):
                self.store(op, target, value, active)
            case Unary(op="++" | "--" as op, operand=operand):
                self.store("+=" if op == "++" else "-=", operand, number(1), active)
            case Binary(op=",", left=left, right=right):
                self.effect(left, active)
                self.effect(right, active)
            case Call(function=function) if "atomic" in function.lower():
                raise self.beyond(f"{function} on global memory, outside a loop over elements")
            case Call(function=function):
                raise self.beyond(f"the call of '{function}' between loops over elements is not understood")
            case _:
                self.eval(expr, active)

    def shared_atomic(self, operator: Operator, target: Expr, value: Expr, active: Threads) -> None:
        name = self.shared_name(target)
        assert name is not None
        index = self.cell_index(name, target, active)
        values = self.eval(value, active)
        for thread in active:
            at = index.at(thread)
            old = self.cells[name].get(at.value) if isinstance(at, Int) else None
            if old is None or not isinstance(at, Int):
                raise self.beyond(f"'{name}' is added to before it is set")
            total = (
                self.binary("+", old.value, values.at(thread), thread)
                if operator == "+"
                else self.join(
                    operator,
                    old.value,
                    values.at(thread),
                    thread,
                )
            )
            old.value, old.writer, old.epoch = total, thread, self.epoch

    def cell_index(self, name: str, target: Expr, active: Threads) -> Vec:
        indices: list[Expr] = []
        while isinstance(target, Index):
            indices.insert(0, target.index)
            target = target.base
        return self.flat_index(name, indices, active) if indices else Vec(ZERO)

    def store(self, op: str, target: Expr, value: Expr, active: Threads) -> None:
        name = self.shared_name(target)
        values = self.eval(value, active)
        if op != "=":
            before = self.eval(target, active)
            values = self.arithmetic(op[:-1], before, values, active)
        if name is not None:
            index = self.cell_index(name, target, active)
            if self.cell_index_clashes(name, index, active):
                raise self.beyond(f"shared memory '{name}' holds a row's elements and is written singly too")
            type_ = self.shared[name].type
            stored = self.apply(lambda a, _, t: self.as_variable(type_, name, a), values, Vec(ZERO), active)
            self.write_cells(name, index, stored, active)
            return
        match target:
            case Name(name=variable):
                type_ = self.types.get(variable, Type("int"))
                self.assign(variable, type_, variable, values, active)
                return
            case Index(base=Name(name=array), index=at) if f"{array}[]" in self.variables:
                self.store_local(array, at, values, active)
                return
        self.store_global(op, target, value, values, active)

    def store_local(self, array: str, at: Expr, values: Vec, active: Threads) -> None:
        places = self.eval(at, active)
        groups: dict[int, list[int]] = {}
        for thread in active:
            place = places.at(thread)
            if not isinstance(place, Int):
                raise self.beyond(f"'{array}' is written at a place that only the data tell")
            groups.setdefault(place.value, []).append(thread)
        for place_value, threads in groups.items():
            type_ = self.types.get(array, Type("float"))
            self.assign(f"{array}[{place_value}]", type_, array, values, tuple(threads))

    def store_global(self, op: str, target: Expr, value: Expr, values: Vec, active: Threads) -> None:
        inner = target
        while isinstance(inner, Member):
            inner = inner.base
        place = place_of(inner)
        if place is None or place.array not in self.arrays:
            raise self.beyond(f"what '{print_expr(target)}' stores to is not followed")
        teams = {self.team(thread) for thread in active}
        if len(teams) != self.threads // self.lanes and len(teams) != len({self.team(t) for t in self.alive}):
            raise self.beyond(f"only some of a block's teams store to '{place.array}'")
        several = any(sum(1 for t in active if self.team(t) == team) > 1 for team in teams)
        if op != "=" and several:
            raise self.beyond(f"several threads update the same element of '{place.array}'")
        where = one_value(self.eval(target, active), active)
        where_expr = None if where is None else expr_of(where)
        if where_expr is None:
            why = f" ({where.reason})" if isinstance(where, Poison) else ""
            raise self.beyond(
                f"'{print_expr(target)}' is stored to at a place that depends on the thread, outside a loop "
                f"over elements{why}"
            )
        if op != "=":
            values = self.eval(value, active)
        what = one_value(values, active)
        what_expr = None if what is None else expr_of(what)
        if what_expr is None:
            why = blame(values, active)
            raise self.beyond(f"what is stored to '{place.array}' is not the same for the team: {why}")
        self.effects.append(Effect(self.line, self.in_force))
        body = (Evaluate(Assign(op, where_expr, what_expr), self.line),)
        if self.steps and isinstance(self.steps[-1], Once):
            self.steps[-1] = replace(self.steps[-1], body=(*self.steps[-1].body, *body))
        else:
            self.steps.append(Once(body, self.line))
