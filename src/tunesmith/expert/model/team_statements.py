"""Goes through a kernel's statements with all threads of a block, and keeps what each team does as steps.

Loops over elements become `Each`; the cooperation around them is played through and leaves `Let` for what
everyone in the team then knows, `Once` for what one thread stores, `When` for branches of the whole team.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.kernel import Each, Once, Operator, Step
from tunesmith.expert.model.places import place_of, without_members
from tunesmith.expert.model.team_branches import BranchReader
from tunesmith.expert.model.team_expressions import TeamState
from tunesmith.expert.model.team_loops import LoopReader
from tunesmith.expert.model.team_record import Effect
from tunesmith.expert.model.team_values import ZERO, Int, Poison, Threads, Vec, blame, expr_of, one_value

_BARRIERS = frozenset({"__syncthreads", "barrier", "work_group_barrier"})
_WARP_BARRIERS = frozenset({"__syncwarp", "sub_group_barrier"})
_IGNORED = frozenset(
    {"__builtin_assume", "__threadfence_block", "mem_fence", "__builtin_prefetch", "prefetch"}
)
_SHARED_ATOMICS: Mapping[str, Operator] = {
    "atomicAdd": "+", "atomicMax": "max", "atomicMin": "min", "atomicOr": "|", "atomicAnd": "&",
    "atomic_add": "+", "atomic_max": "max", "atomic_min": "min", "atomic_or": "|", "atomic_and": "&",
}  # fmt: skip


class BlockInterpreter:
    """One block in one scenario, on its way through the kernel."""

    def __init__(self, team: TeamState) -> None:
        self.team = team
        self.memory, self.record = team.memory, team.record
        self.arithmetic, self.expressions = team.arithmetic, team.expressions
        self.eval, self.refusal = team.expressions.eval, team.memory.refusal
        self.branches = BranchReader(team, self.statements)
        self.loops = LoopReader(team, self.statements)

    def run(self) -> None:
        self.statements(self.team.normal.body, self.team.alive)

    def statements(self, stmts: Sequence[c.Stmt], active: Threads) -> Threads:
        """Gives back the threads that are still there afterwards."""
        for at, stmt in enumerate(stmts):
            if not active:
                return active
            self.memory.line = getattr(stmt, "line", 0) or self.memory.line
            if isinstance(stmt, c.If):
                done, active = self.branches.branch(stmt, stmts[at + 1 :], active)
                if done:
                    return active
            else:
                active = self.statement(stmt, active)
        return active

    def statement(self, stmt: c.Stmt, active: Threads) -> Threads:
        match stmt:
            case c.Declare():
                self.declare(stmt, active)
            case c.Evaluate(expr=expr):
                self.effect(expr, active)
            case c.For():
                return self.loops.loop(stmt, active)
            case c.While():
                self.loops.turns((), stmt.condition, (), stmt.body, active, first=stmt.after)
            case c.Scope(body=body):
                return self.statements(body, active)
            case c.Return() | c.Jump(word="continue"):
                self.team.alive = tuple(t for t in self.team.alive if t not in set(active))
                return ()
            case _:
                text = getattr(stmt, "text", getattr(stmt, "word", "statement"))
                raise self.refusal(f"'{text.strip().splitlines()[0][:60]}' is not understood")
        return active

    def declare(self, stmt: c.Declare, active: Threads) -> None:
        if stmt.dims:
            self.memory.variables[f"{stmt.name}[]"] = Vec(ZERO)
            if isinstance(stmt.init, c.Braces) and len(stmt.dims) == 1:
                for at, item in enumerate(stmt.init.items):
                    self.assign(f"{stmt.name}[{at}]", stmt.type, stmt.name, self.eval(item, active), active)
            return
        if stmt.init is None:
            self.memory.write(
                stmt.name, Vec(Poison(f"'{stmt.name}' is read before it is set", stmt.line)), active
            )
            return
        self.assign(stmt.name, stmt.type, stmt.name, self.eval(stmt.init, active), active)

    def assign(self, key: str, type_: c.Type, hint: str, values: Vec, active: Threads) -> None:
        stored = self.memory.each(lambda a: self.record.as_variable(type_, hint, a), values, active)
        self.memory.write(key, stored, active)

    def effect(self, expr: c.Expr, active: Threads) -> None:
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
                self.store("+=" if op == "++" else "-=", operand, number(1), active)
            case c.Binary(op=",", left=left, right=right):
                self.effect(left, active)
                self.effect(right, active)
            case c.Call(function=function) if "atomic" in function.lower():
                raise self.refusal(f"{function} on global memory, outside a loop over elements")
            case c.Call(function=function):
                raise self.refusal(f"the call of '{function}' between loops over elements is not understood")
            case _:
                self.eval(expr, active)

    def shared_atomic(self, operator: Operator, target: c.Expr, value: c.Expr, active: Threads) -> None:
        name = self.memory.shared_name(target)
        assert name is not None
        index = self.expressions.cell_index(name, target, active)
        values = self.eval(value, active)
        for thread in active:
            at = index.at(thread)
            old = self.memory.cells[name].get(at.value) if isinstance(at, Int) else None
            if old is None or not isinstance(at, Int):
                raise self.refusal(f"'{name}' is added to before it is set")
            total = (
                self.arithmetic.binary("+", old.value, values.at(thread), thread)
                if operator == "+"
                else self.arithmetic.join(operator, old.value, values.at(thread), thread)
            )
            old.value, old.writer, old.epoch = total, thread, self.memory.epoch

    def store(self, op: str, target: c.Expr, value: c.Expr, active: Threads) -> None:
        name = self.memory.shared_name(target)
        values = self.eval(value, active)
        if op != "=":
            before = self.eval(target, active)
            values = self.arithmetic.combine(op[:-1], before, values, active)
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

    def store_local(self, array: str, at: c.Expr, values: Vec, active: Threads) -> None:
        places = self.eval(at, active)
        groups: dict[int, list[int]] = {}
        for thread in active:
            place = places.at(thread)
            if not isinstance(place, Int):
                raise self.refusal(f"'{array}' is written at a place that only the data tell")
            groups.setdefault(place.value, []).append(thread)
        for place_value, threads in groups.items():
            type_ = self.memory.types.get(array, c.Type("float"))
            self.assign(f"{array}[{place_value}]", type_, array, values, tuple(threads))

    def store_global(self, op: str, target: c.Expr, value: c.Expr, values: Vec, active: Threads) -> None:
        if self.memory.own_index:
            where_expr = expr_of(one_value(self.eval(target, active), active))
            if where_expr is not None and self.memory.is_of_element(where_expr):
                self.store_element(op, target, where_expr, value, active)
                return
        place = place_of(without_members(target))
        if place is None or place.array not in self.memory.arrays:
            raise self.refusal(f"what '{print_expr(target)}' stores to is not followed")
        teams = {self.memory.team(thread) for thread in active}
        if len(teams) != self.memory.threads // self.memory.lanes and len(teams) != len(
            {self.memory.team(t) for t in self.team.alive}
        ):
            raise self.refusal(f"only some of a block's teams store to '{place.array}'")
        several = any(sum(1 for t in active if self.memory.team(t) == team) > 1 for team in teams)
        if op != "=" and several:
            raise self.refusal(f"several threads update the same element of '{place.array}'")
        where = one_value(self.eval(target, active), active)
        where_expr = expr_of(where)
        if where_expr is None:
            why = f" ({where.reason})" if isinstance(where, Poison) else ""
            raise self.refusal(
                f"'{print_expr(target)}' is stored to at a place that depends on the thread, outside a loop "
                f"over elements{why}"
            )
        if op != "=":
            values = self.eval(value, active)
        what = one_value(values, active)
        what_expr = expr_of(what)
        if what_expr is None:
            why = blame(values, active)
            raise self.refusal(f"what is stored to '{place.array}' is not the same for the team: {why}")
        self.record.effects.append(Effect(self.memory.line, self.team.bounds.in_force))
        body = (c.Evaluate(c.Assign(op, where_expr, what_expr), self.memory.line),)
        if self.record.steps and isinstance(self.record.steps[-1], Once):
            self.record.steps[-1] = replace(self.record.steps[-1], body=(*self.record.steps[-1].body, *body))
        else:
            self.record.steps.append(Once(body, self.memory.line))

    def store_element(self, op: str, target: c.Expr, where: c.Expr, value: c.Expr, active: Threads) -> None:
        if len(active) % self.memory.lanes:
            raise self.refusal("an element is stored by some threads of a team only")
        what = one_value(self.eval(value, active), active)
        what_expr = expr_of(what)
        if what_expr is None:
            why = what.reason if isinstance(what, Poison) else "it differs from thread to thread"
            raise self.refusal(f"'{print_expr(target)}' is stored: {why}")
        if place_of(without_members(where)) is None:
            raise self.refusal(f"what '{print_expr(target)}' stores to is not followed")
        self.record.effects.append(Effect(self.memory.line, self.team.bounds.in_force))
        stmt = c.Evaluate(c.Assign(op, where, what_expr), self.memory.line)
        last: Step | None = self.record.steps[-1] if self.record.steps else None
        if isinstance(last, Each) and not last.totals:
            more = substitute((stmt,), {self.memory.own_index: c.Name(last.index)})
            self.record.steps[-1] = replace(last, body=(*last.body, *more))
        else:
            self.record.steps.append(self.team.elements.loop_over((stmt,)))
