"""Goes through a kernel's statements with all threads of a block, and keeps what each team does as steps.

Loops over elements become `Each`; the cooperation around them is played through and leaves `Let` for what
everyone in the team then knows, `Once` for what one thread stores, `When` for branches of the whole team.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.fold import fold
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in, negated, nodes_in
from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.accesses import is_atomic, place_of, pointed_at, without_members
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.kernel import Each, Let, Once, Operator, Step, When
from tunesmith.expert.model.team_loops import Groups, LoopReader, TeamState

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

    # -- branches: by thread numbers they divide the team, by sizes or data the whole team takes them --

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
        if touched and leaves(stmt.then) and not groups.yes and not groups.which:
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
        is_exit = leaves(stmt.then)
        if is_exit and self.team.depth > 0:
            raise self.refusal("threads leave from inside a loop or branch")
        outer, line, alive = self.record.steps, self.memory.line, self.team.alive
        sides: list[tuple[Step, ...]] = []
        second = (*stmt.otherwise, *rest) if is_exit else stmt.otherwise
        snapshot, cells = before = self.memory.held()
        named = dict(self.record.named)
        self.team.depth += 0 if is_exit else 1
        for body in (stmt.then, second):
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
            self.record.steps.append(When(fold(negated(condition)), otherwise, (), line))
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
        for test, steps in ((condition, sides[0]), (negated(condition), sides[1])):
            for step in steps:
                if not isinstance(step, Each) or step.totals:
                    raise self.refusal("threads cooperate in a branch by element")
                own = substitute(test, {self.memory.own_index: c.Name(step.index)})
                self.record.steps.append(replace(step, body=(c.If(own, step.body, line=step.line),)))
        return False, active

    # -- effects ------------------------------------------------------------------------------------

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
                self.store("+=" if op == "++" else "-=", operand, number(1), active)
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
        place = place_of(without_members(target))
        if place is None or place.array not in self.memory.arrays:
            raise self.refusal(f"what '{print_expr(target)}' stores to is not followed")
        teams = {self.memory.team(thread) for thread in active}
        if len(teams) != self.memory.threads // self.memory.lanes and len(teams) != len(
            {self.memory.team(t) for t in self.team.alive}
        ):
            raise self.refusal(f"only some of a block's teams store to '{place.array}'")
        if op != "=" and len(active) > len(teams):
            if atomic:
                raise self.refusal(
                    f"{atomic} on global memory by several threads, outside a loop over elements"
                )
            raise self.refusal(f"several threads update the same element of '{place.array}'")
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
            why = tv.blame(values, active)
            raise self.refusal(f"what is stored to '{place.array}' is not the same for the team: {why}")
        made: c.Expr = c.Assign(op, where_expr, what_expr)
        if atomic:
            made = c.Call(atomic, (c.Unary("&", where_expr), what_expr))
        stored = self.record.store(made, self.bounds.in_force)
        last = self.record.steps[-1] if self.record.steps else None
        if isinstance(last, Once):
            self.record.steps[-1] = replace(last, body=(*last.body, stored))
        else:
            self.record.steps.append(Once((stored,), self.memory.line))

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
        stored = self.record.store(c.Assign(op, where, what_expr), self.bounds.in_force)
        self.team.elements.stored(place.array)
        last = self.record.steps[-1] if self.record.steps else None
        if isinstance(last, Each) and not last.totals:
            more = substitute((stored,), {self.memory.own_index: c.Name(last.index)})
            self.record.steps[-1] = replace(last, body=(*last.body, *more))
        else:
            self.record.steps.append(self.team.elements.loop_over((stored,)))


def leaves(body: Sequence[c.Stmt]) -> bool:
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
