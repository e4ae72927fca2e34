"""Plays through what the threads of a block do together, to see what it comes to.

Reductions are written in countless ways: shuffles up and down, trees in shared memory, a first warp that
adds up the others' sums, one thread that does. None is matched by its shape here. All threads of one block go
through the statements in step, with concrete thread numbers and sizes; where a loop over elements leaves a
thread with its share of a total, the thread holds a `PartialTotal`. Joining parts with the total's operator
unites the sets of threads; a value counts as the total only when it has everyone's share once. A shuffle that
leaves out threads or a tree that misses some therefore cannot pass.

This file evaluates expressions; `team` goes through statements and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.expert.read.accesses import ArrayPlace, array_and_indices, find_clash, place_of
from tunesmith.expert.read.integers import (
    MIRROR,
    OPPOSITE,
    Head,
    coefficient_of,
    number_node,
    same_value,
    wrap_value,
)
from tunesmith.expert.read.model import JOINING, ElementArray, Operator
from tunesmith.expert.read.rules.tidy import check_no_return, remove_early_exits
from tunesmith.expert.read.rules.totals import (
    MAXIMA,
    MINIMA,
    Update,
    carried_variables,
    find_cooperative_call,
    is_set_first,
    update_in,
)
from tunesmith.expert.read.styles import team_values as tv
from tunesmith.expert.read.styles.team_values import (
    GROUP_TOTALS,
    LIBRARY_TOTALS,
    BlockMemory,
    ElementTotals,
    TaskBounds,
    library_total,
    refuse_below_zero,
)
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, function_effects, is_function
from tunesmith.source.fold import COMPARISONS, evaluate_binary, evaluate_unary, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Assign, Binary, Declare, Expr, For, Index, Name, Stmt, Type, Verbatim
from tunesmith.source.types import byte_size, is_integer, type_of

_WAYS = {"": "at", "_xor": "xor", "_down": "down", "_up": "up"}
_NAMED = ("__shfl{}_sync", "__shfl{}", "sub_group_shuffle{}")
_SHUFFLES = {name.format(end): way for end, way in _WAYS.items() for name in _NAMED}
_SHUFFLES["sub_group_broadcast"] = "at"
_Pairing = Callable[[c.Expr, c.Expr], c.Expr]


@dataclass
class Expressions:
    """The threads of one block at work on expressions, and what operators and choices make of values."""

    memory: BlockMemory
    bounds: TaskBounds
    elements: ElementTotals

    def combine(self, op: str, left: tv.Vec, right: tv.Vec, active: tv.Threads) -> tv.Vec:
        return self.memory.apply(lambda a, b, t: self.binary(op, a, b, t), left, right, active)

    def built(
        self, make: Callable[[Sequence[c.Expr]], c.Expr], parts: Sequence[tv.Vec], active: tv.Threads
    ) -> tv.Vec:
        """An expression made of others, where all of them hold for the whole team."""

        def at(thread: int) -> tv.Value:
            values = [part.at(thread) for part in parts]
            exprs = [expr for value in values if (expr := tv.expr_of(value)) is not None]
            return tv.Sym(make(exprs)) if len(exprs) == len(values) else self.unusable(*values)

        if all(part.one is not None for part in parts):
            return tv.Vec(at(active[0] if active else 0))
        return self.memory.vector(active, at)

    def cast(self, type_: c.Type, value: tv.Value) -> tv.Value:
        match value:
            case tv.Int(value=given, expr=expr) if is_integer(type_):
                held = wrap_value(type_, given)
                if isinstance(expr, c.Number):
                    return value if held == given else replace(value, value=held, expr=number_node(held))
                return replace(value, value=held, expr=None if expr is None else c.Cast(type_, expr))
            case tv.Int(expr=expr) | tv.Sym(expr=expr) if expr is not None:
                return tv.Sym(c.Cast(type_, expr))
            case tv.PartialTotal(parts=parts) if self.memory.totals[parts[0][0]].type.base == type_.base:
                return value
        return self.unusable(value)

    def unary(self, op: str, value: tv.Value) -> tv.Value:
        match value:
            case tv.Int(value=given, expr=expr):
                done = evaluate_unary(op, given)
                said = number_node(done) if isinstance(expr, c.Number) else expr and c.Unary(op, expr)
                return replace(value, value=done, expr=said)
            case tv.Sym(expr=expr):
                return tv.Sym(c.Unary(op, expr))
            case tv.Which(op=relation, left=left, right=right) if op == "!":
                return tv.Which(OPPOSITE.get(relation, "=="), left, right)
        return self.unusable(value)

    def binary(self, op: str, left: tv.Value, right: tv.Value, thread: int) -> tv.Value:
        if isinstance(left, tv.Int) and isinstance(right, tv.Int):
            value = evaluate_binary(op, left.value, right.value)
            if value is None:
                return tv.Poison(f"'{op}' has no value here", self.memory.line)
            if op in MIRROR:
                bounded = self.bounds.test(op, left, right)
                if bounded is not None:
                    return bounded
            sized = left.sized or right.sized
            if left.expr is None or right.expr is None:
                return tv.Int(value, None, sized=sized)
            if isinstance(left.expr, c.Number) and isinstance(right.expr, c.Number):
                return tv.Int(value, c.Number(str(value), value))
            if op in ("+", "-") and right.expr == c.Number("0", 0):
                return left
            return tv.Int(value, c.Binary(op, left.expr, right.expr), left.launch or right.launch, sized)
        if op in OPPOSITE and _has_part(left, right) and not _first_poison(left, right):
            return tv.Which(op, left, right)
        return self.made_of(JOINING.get(op), left, right, thread, lambda a, b: c.Binary(op, a, b))

    def made_of(
        self, operator: Operator | None, left: tv.Value, right: tv.Value, thread: int, make: _Pairing
    ) -> tv.Value:
        """Two values by an operator of totals, or by another (None): parts are joined, expressions made."""
        if _first_poison(left, right):
            return _first_poison(left, right) or left
        if _has_part(left, right):
            return self.join(operator, left, right, thread) if operator else self.unusable(left, right)
        a, b = tv.expr_of(left), tv.expr_of(right)
        if a is None or b is None:
            return self.unusable(left, right)
        same = a == b and operator in ("max", "min")
        if operator is not None and (same or self.adds_nothing(operator, a, b)):
            return left
        if operator is not None and self.adds_nothing(operator, b, a):
            return right
        return tv.Sym(make(a, b))

    def adds_nothing(self, operator: Operator, value: c.Expr, other: c.Expr) -> bool:
        """Whether a complete total (or a mere number) meets what lanes without a share bring along."""
        total = self.memory.totals.get(value.name) if isinstance(value, c.Name) else None
        if total is None and not isinstance(value, c.Number):
            return False
        start = total.start if total is not None and total.operator == operator else None
        return tv.is_neutral(operator, tv.Sym(other), start)

    def join(self, operator: Operator, left: tv.Value, right: tv.Value, thread: int) -> tv.Value:
        """Two values combined by a total's operator, at least one of them a part (or a complete total)."""
        left, right = (self.elements.as_total(operator, side, thread) for side in (left, right))
        for part, other in ((left, right), (right, left)):
            if isinstance(part, tv.PartialTotal) and not isinstance(other, tv.PartialTotal):
                start = self.memory.totals[part.parts[0][0]].start
                if part.operator == operator and tv.is_neutral(operator, other, start):
                    return part
                name = other.expr.name if isinstance(other, tv.Sym) and isinstance(other.expr, c.Name) else ""
                total = self.memory.totals.get(name)
                if total is None or total.operator != operator or part.operator != operator:
                    return self.unusable(part)
                whole = tv.PartialTotal(operator, ((name, self.memory.team_masks[self.memory.team(thread)]),))
                return self.memory.settled(tv.join_partial_totals(operator, part, whole), thread)
        if isinstance(left, tv.PartialTotal) and isinstance(right, tv.PartialTotal):
            if left.operator != operator or right.operator != operator:
                return self.unusable(left)
            result = tv.join_partial_totals(operator, left, right)
            if isinstance(result, tv.Poison):
                return tv.Poison(result.reason, self.memory.line)
            return self.memory.settled(result, thread)
        return self.unusable(left)

    def extreme(
        self, function: str, operator: Operator, left: tv.Value, right: tv.Value, thread: int
    ) -> tv.Value:
        if isinstance(left, tv.Int) and isinstance(right, tv.Int):
            value = (max if operator == "max" else min)(left.value, right.value)
            expr = c.Call(function, (left.expr, right.expr)) if left.expr and right.expr else None
            return tv.Int(value, expr, left.launch or right.launch, left.sized or right.sized)
        return self.made_of(operator, left, right, thread, lambda a, b: c.Call(function, (a, b)))

    def select(self, condition: tv.Value, yes: tv.Value, no: tv.Value, thread: int) -> tv.Value:
        """condition ? yes : no, for a condition that is no number."""
        if yes == no:
            return yes
        if isinstance(condition, tv.Which):
            pair = (condition.left, condition.right)
            larger = condition.op in (">", ">=")
            if condition.op in MIRROR and (yes, no) in (pair, pair[::-1]):
                operator: Operator = "max" if larger == ((yes, no) == pair) else "min"
                return self.join(operator, yes, no, thread)
            return tv.Poison("a choice by a part of a total", self.memory.line)
        test, a, b = tv.expr_of(condition), tv.expr_of(yes), tv.expr_of(no)
        if test is None or a is None or b is None:
            return self.unusable(condition, yes, no)
        return tv.Sym(c.Ternary(test, a, b))

    def unusable(self, *values: tv.Value) -> tv.Poison:
        """Why the first of these that is no expression for the whole team may not be used."""
        match next((value for value in values if tv.expr_of(value) is None), values[0]):
            case tv.Poison() as poison:
                return poison
            case tv.PartialTotal(parts=parts):
                names = ", ".join(f"'{name}'" for name, _ in parts)
                reason = f"uses {names} where not every thread's share is in it"
            case tv.Share():
                reason = "uses another thread's element by itself"
            case _:
                reason = "a value that differs from thread to thread"
        return tv.Poison(reason, self.memory.line)

    def cell_index(self, name: str, target: c.Expr, active: tv.Threads) -> tv.Vec:
        _, indices = array_and_indices(target)
        return self.flat_index(name, indices, active) if indices else tv.Vec(tv.ZERO)

    def flat_index(self, name: str, indices: Sequence[c.Expr], active: tv.Threads) -> tv.Vec:
        """One number for a cell of an array of several dimensions."""
        dims = self.memory.shared[name].dims if name in self.memory.shared else ()
        numbers = self.memory.scenario.numbers
        total = self.eval(indices[0], active)
        for dim, index in zip(dims[1:], indices[1:], strict=False):
            width = int_value(dim, numbers)
            if width is None:
                raise self.memory.refusal(f"the shape of '{name}' has no number")
            scaled = self.combine("*", total, tv.Vec(tv.Int(width)), active)
            total = self.combine("+", scaled, self.eval(index, active), active)
        return total

    def shared(self, expr: c.Expr, active: tv.Threads) -> tv.Value | None:
        """What an expression is for all these threads; None where it differs."""
        return tv.one_value(self.eval(expr, active), active)

    def eval(self, expr: c.Expr, active: tv.Threads) -> tv.Vec:
        match expr:
            case c.Number(value=value):
                return tv.Vec(tv.Int(value, expr) if isinstance(value, int) else tv.Sym(expr))
            case c.Name(name=name):
                if name in ("true", "false"):
                    return tv.Vec(tv.Int(int(name == "true"), expr))
                return self.memory.read(name, active)
            case c.Cast(type=target, value=value):
                inner = self.eval(value, active)
                return self.memory.each(lambda a: self.cast(target, a), inner, active)
            case c.SizeOf():
                size = int_value(expr)
                return tv.Vec(tv.Sym(expr) if size is None else tv.Int(size, expr))
            case c.Unary(op="++" | "--"):
                raise self.memory.refusal(f"'{print_expr(expr)}' inside an expression")
            case c.Unary(op="&", operand=operand):
                return tv.Vec(tv.Poison(f"takes the address of '{print_expr(operand)}'", self.memory.line))
            case c.Unary(op=op, operand=operand):
                inner = self.eval(operand, active)
                return self.memory.each(lambda a: self.unary(op, a), inner, active)
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                return self.logic(op, left, right, active)
            case c.Binary():
                return self.operation(expr, active)
            case c.Ternary():
                return self.ternary(expr, active)
            case c.Call():
                return self.call(expr, active)
            case c.Index():
                return self.element(expr, active)
            case c.Member(base=base, field=field_):
                return self.built(lambda exprs: c.Member(exprs[0], field_), [self.eval(base, active)], active)
            case c.Braces(items=items, type=type_):
                parts = [self.eval(item, active) for item in items]
                return self.built(lambda exprs: c.Braces(tuple(exprs), type_), parts, active)
            case c.Assign():
                raise self.memory.refusal(f"'{print_expr(expr)}' assigns inside an expression")
        raise self.memory.refusal(f"'{print_expr(expr)}' is not understood")

    def operation(self, expr: c.Binary, active: tv.Threads) -> tv.Vec:
        match expr:
            # `lane < blockDim.x / 32.f`: how often whole warps fit, in floating point.
            case c.Binary("<", left, c.Binary("/", all_, c.Number(value=float(by)))) if 0 < by == int(by):
                count = self.shared(all_, active)
                if isinstance(count, tv.Int) and count.launch and not count.sized:
                    up = tv.Vec(tv.Int(-(-count.value // int(by)), None, launch=True))
                    return self.combine("<", self.eval(left, active), up, active)
        sides = self.eval(expr.left, active), self.eval(expr.right, active)
        refuse_below_zero(expr, sides, active, self.memory)
        return self.combine(expr.op, *sides, active)

    def logic(self, op: str, left: c.Expr, right: c.Expr, active: tv.Threads) -> tv.Vec:
        first = self.eval(left, active)
        # The right side is only computed where C computes it.
        stops = op == "||"
        rest = tuple(t for t in active if self.memory.truth(first.at(t)) is not stops)
        second = self.eval(right, rest) if rest else first

        def at(thread: int) -> tv.Value:
            ended = tv.ONE if stops else tv.ZERO
            if thread not in inside:
                return ended
            a, b = first.at(thread), second.at(thread)
            if self.memory.truth(a) is not None:
                return b
            if self.memory.truth(b) is not None:
                return ended if self.memory.truth(b) is stops else a
            if not isinstance(a, tv.Int) or not isinstance(b, tv.Int):
                return self.binary(op, a, b, thread)
            expr = None if a.expr is None or b.expr is None else c.Binary(op, a.expr, b.expr)
            return tv.Int(int(COMPARISONS[op](a.value, b.value)), expr, sized=a.sized or b.sized)

        inside = frozenset(rest)
        return self.memory.vector(active, at)

    def choose(self, condition: tv.Vec, yes: c.Expr, no: c.Expr, active: tv.Threads) -> tv.Vec:
        truths = {thread: self.memory.truth(condition.at(thread)) for thread in active}

        def side(expr: c.Expr, wanted: bool) -> tv.Vec:
            chosen = tuple(t for t in active if truths[t] is not (not wanted))
            return self.eval(expr, chosen) if chosen else tv.Vec(tv.ZERO)

        first, second = side(yes, True), side(no, False)

        def at(thread: int) -> tv.Value:
            if truths[thread] is not None:
                return (first if truths[thread] else second).at(thread)
            return self.select(condition.at(thread), first.at(thread), second.at(thread), thread)

        return self.memory.vector(active, at)

    def element(self, expr: c.Index, active: tv.Threads) -> tv.Vec:
        name, indices = array_and_indices(expr)
        if name is not None and name in self.memory.shared and indices:
            return self.memory.read_cells(name, self.flat_index(name, indices, active), active)
        place = place_of(expr)
        if place is not None and place.array in self.memory.arrays:
            parts = [self.eval(place.index, active)]
            if place.offset is not None:
                parts.append(self.eval(place.offset, active))

            def make(exprs: Sequence[c.Expr]) -> c.Expr:
                if place.as_type is None:
                    return c.Index(expr.base, exprs[0])
                assert isinstance(expr.base, c.Cast)
                array = c.Name(place.array)
                pointer = array if len(exprs) == 1 else c.Binary("+", array, exprs[1])
                return c.Index(c.Cast(expr.base.type, pointer), exprs[0])

            return self.built(make, parts, active)
        if name is not None and indices and f"{name}[]" in self.memory.variables:
            return self.local_element(name, indices, active)
        base, index = self.eval(expr.base, active), self.eval(expr.index, active)
        return self.built(lambda exprs: c.Index(exprs[0], exprs[1]), [base, index], active)

    def local_element(self, name: str, indices: Sequence[c.Expr], active: tv.Threads) -> tv.Vec:
        places = [self.eval(index, active) for index in indices]

        def at(thread: int) -> tv.Value:
            numbers = [place.at(thread) for place in places]
            key = name + "".join(f"[{n.value}]" if isinstance(n, tv.Int) else "[?]" for n in numbers)
            found = self.memory.variables.get(key)
            if found is None:
                return tv.Poison(f"'{key}' is read before it is set", self.memory.line)
            return self.memory.settled(found.at(thread), thread)

        return self.memory.vector(active, at)

    def call(self, call: c.Call, active: tv.Threads) -> tv.Vec:
        name, args = call.function, call.args
        if name in _SHUFFLES:
            return self.shuffle(call, active)
        if name in GROUP_TOTALS:
            span = self.memory.threads if name.startswith("work_group") else self.memory.warp
            if name.endswith("_sync"):
                self.memory.check_mask(self.eval(args[0], active), active)
            return self.group_total(GROUP_TOTALS[name], self.eval(args[-1], active), span, active)
        if name in LIBRARY_TOTALS:
            total = library_total(self.memory, name, [self.eval(arg, active) for arg in args[1:]], active)
            return total.seen(
                self.group_total(total.operator, self.eval(args[0], active), total.span, active)
            )
        if name in MAXIMA | MINIMA and len(args) == 2:
            kind: Operator = "max" if name in MAXIMA else "min"
            left, right = self.eval(args[0], active), self.eval(args[1], active)
            return self.memory.apply(lambda a, b, t: self.extreme(name, kind, a, b, t), left, right, active)
        effects = function_effects(name) if is_function(name) else Effects.NONE
        if not effects.may_repeat and not effects & Effects.ASSIGNS:
            raise self.memory.refusal(f"the call of '{name}' inside an expression is not followed")
        parts = [self.eval(arg, active) for arg in args]
        return self.built(lambda exprs: c.Call(name, tuple(exprs), call.template_args), parts, active)

    def shuffle(self, call: c.Call, active: tv.Threads) -> tv.Vec:
        """What a thread gets from another of its warp; from one that takes no part it gets nothing usable."""
        masked = call.function.endswith("_sync")
        args = call.args[1:] if masked else call.args
        mask = self.eval(call.args[0], active) if masked else tv.Vec(tv.Int(-1))
        if len(args) not in (2, 3):
            raise self.memory.refusal(f"{call.function} has {len(call.args)} arguments: not understood")
        values, amount = self.eval(args[0], active), self.eval(args[1], active)
        width = self.eval(args[2], active) if len(args) == 3 else tv.Vec(tv.Int(self.memory.warp))
        kind, present = _SHUFFLES[call.function], frozenset(active)

        def at(thread: int) -> tv.Value:
            by, wide, who = amount.at(thread), width.at(thread), mask.at(thread)
            if not isinstance(by, tv.Int) or not isinstance(wide, tv.Int) or not isinstance(who, tv.Int):
                return tv.Poison("a shuffle by an amount that only the data tell", self.memory.line)
            if not 0 < wide.value <= self.memory.warp:
                return tv.Poison(f"a shuffle of width {wide.value}", self.memory.line)
            lane = thread % self.memory.warp
            first = lane // wide.value * wide.value
            place = lane - first
            target = {
                "at": by.value % wide.value, "xor": place ^ by.value,
                "down": place + by.value, "up": place - by.value,
            }[kind]  # fmt: skip
            if not 0 <= target < wide.value:
                target = place
            source = thread - lane + first + target
            if not who.value >> lane & 1 or not who.value >> (first + target) & 1:
                return tv.Poison("a shuffle whose mask leaves out a thread it reads", self.memory.line)
            if source not in present:
                return tv.Poison("a shuffle reads a thread that takes no part in it", self.memory.line)
            return self.memory.settled(self.memory.sent(values.at(source), source), thread)

        return self.memory.vector(active, at)

    def group_total(self, operator: Operator, values: tv.Vec, span: int, active: tv.Threads) -> tv.Vec:
        results: dict[int, tv.Value] = {}
        for first in range(0, self.memory.threads, span):
            members = [t for t in active if first <= t < first + span]
            if not members:
                continue
            total = self.memory.sent(values.at(members[0]), members[0])
            for thread in members[1:]:
                share = self.memory.sent(values.at(thread), thread)
                total = self.join(operator, total, share, thread)
            results.update(dict.fromkeys(members, total))
        return self.memory.vector(active, lambda t: self.memory.settled(results[t], t))

    def ternary(self, expr: c.Ternary, active: tv.Threads) -> tv.Vec:
        """A choice; where it tests a thread's own element, threads without one hold the other side."""
        if not self.memory.own_index:
            return self.choose(self.eval(expr.condition, active), expr.yes, expr.no, active)
        before, self.bounds.may_bound = self.bounds.may_bound, True
        self.bounds.touched.discard(self.memory.own_index)
        condition = self.eval(expr.condition, active)
        self.bounds.may_bound = before
        if self.memory.own_index not in self.bounds.touched or not isinstance(
            tv.one_value(condition, active), tv.Int
        ):
            return self.choose(condition, expr.yes, expr.no, active)
        inside = bool(getattr(condition.at(active[0]), "value", 0))
        yes, no = (expr.yes, expr.no) if inside else (expr.no, expr.yes)
        result, rest = self.eval(yes, active), self.eval(no, active)
        self.memory.fill(tv.expr_of(result.at(active[0])), tv.expr_of(rest.at(active[0])))
        return result


def _first_poison(*values: tv.Value) -> tv.Poison | None:
    return next((value for value in values if isinstance(value, tv.Poison)), None)


def _has_part(*values: tv.Value) -> bool:
    return any(isinstance(value, tv.PartialTotal | tv.Share) for value in values)


# -- The body of a loop over elements, made to stand on its own.
#
# What the team knows by then replaces the names it reads; totals and what is merely set in every turn are
# told
# apart. Shared memory becomes known values, or an array of one value for every element.
#
# What one loop leaves for a later one over the same range becomes an `ElementArray`. In the bodies its
# accesses
# have one of two forms, with the loop's own index, whatever the place in shared memory was:
#
#     Index(Name(staged), Name(index))                         one value for an element (`width` 1)
#     Index(Index(Name(staged), Name(index)), Number(k))       `width` of them, 0 <= k < width
#
# `ElementArray.type` is the type moved at once: `((float4 *)row)[2 * i + 1]` is `row[i][1]` of float4s of
# width 2. Any other use of shared memory in a loop over elements is refused.


@dataclass(frozen=True)
class Element:
    body: tuple[Stmt, ...]
    updates: Mapping[str, Update]
    stores: bool


def element_body(
    team: Expressions,
    loop: For,
    head: Head,
    active: tv.Threads,
    index: str,
    span: tuple[Expr, Expr, int],
    shared_by_team: bool,
) -> Element:
    """`index` is the name the loop's index will have; `span` its start, stop and unit in the source."""
    memory = team.memory
    memory.line = loop.line
    call = find_cooperative_call(loop.body)
    if call is not None:
        raise memory.refusal(f"{call.function} inside a loop over elements")
    check_no_return(loop.body)
    body = remove_early_exits(loop.body)
    for node in walk.nodes_in(body):
        if isinstance(node, Verbatim):
            raise memory.refusal(f"'{node.text.strip().splitlines()[0][:60]}' is not understood")
    local_names = frozenset(walk.declared_in(body)) | {head.index}
    body, updates, locals_ = _collect_carried_updates(memory, body, local_names)
    places = SharedPlaces(
        team, head, local_names, active, index, span, walk.stored_in(body), walk.assigned_in(body)
    )
    body = walk.map_nodes(body, places.node)
    body = _substitute_known_names(
        team, body, local_names | set(updates) | locals_ | {index}, places.known, active
    )
    trouble = find_clash(body, head.index, memory.arrays, memory.aliases, shared_by_team)
    if trouble is not None:
        kind = "elements" if shared_by_team else "turns"
        raise memory.refusal(f"the {kind} of the loop over '{head.index}' depend on each other: {trouble}")
    atomic = any("atomic" in call.function.lower() for call in walk.calls_in(body))
    return Element(body, updates, atomic or bool(walk.stored_in(body) & set(memory.arrays)))


def _collect_carried_updates(
    memory: tv.BlockMemory, body: tuple[Stmt, ...], local_names: frozenset[str]
) -> tuple[tuple[Stmt, ...], dict[str, Update], frozenset[str]]:
    updates: dict[str, Update] = {}
    locals_: list[Declare] = []
    for name in sorted(carried_variables(body, local_names)):
        if name in memory.shared:
            continue
        if f"{name}[]" in memory.variables:
            raise memory.refusal(f"the array '{name}' is carried from one element to the next")
        if name not in memory.types:
            raise memory.refusal(f"'{name}' is changed in a loop over elements")
        update = update_in(body, name)
        if update is not None:
            _check_exact(memory, body, name)
            updates[name] = update
        elif is_set_first(body, name):
            locals_.append(Declare(Type(memory.types[name].base), name, line=memory.line))
            lost = tv.Poison(f"'{name}' is what the last element left, whichever that is", memory.line)
            memory.variables[name] = tv.Vec(lost)
        else:
            raise memory.refusal(
                f"'{name}' is carried from one element to the next in a way that is no sum, product, "
                f"maximum or minimum{_of_running_mean(body)}"
            )
    return (*locals_, *body), updates, frozenset(declare.name for declare in locals_)


def _of_running_mean(body: Sequence[Stmt]) -> str:
    """Words about a mean that counts as it goes, `mean += (x - mean) / count`: Welford's."""
    changed = walk.assigned_in(body)
    for node in walk.nodes_in(body):
        if isinstance(node, Assign) and node.op == "+=" and isinstance(node.target, Name):
            quotients = [n for n in walk.nodes_in(node.value) if isinstance(n, Binary) and n.op == "/"]
            if any(walk.names_in(n.right) & changed for n in quotients):
                return (
                    ": a running mean (Welford's), whose parts are joined by how many elements they are of. "
                    "With a sum and a second loop for the squares it would be read"
                )
    return ""


def _check_exact(memory: tv.BlockMemory, body: Sequence[Stmt], name: str) -> None:
    """An integer that floats are added to is cut off in every turn: their order would matter."""
    if not is_integer(memory.types[name]):
        return
    declared = {n.name: n.type for n in walk.nodes_in(body) if isinstance(n, Declare)}
    for node in walk.nodes_in(body):
        if isinstance(node, Assign) and node.target == Name(name):
            found = type_of(node.value, {**memory.types, **declared}, memory.functions)
            if found is None or not is_integer(found):
                raise memory.refusal(f"'{name}', an integer, adds up what are no integers: the order matters")


def _substitute_known_names(
    team: Expressions,
    body: tuple[Stmt, ...],
    local_names: frozenset[str],
    shared: Mapping[str, Expr],
    active: tv.Threads,
) -> tuple[Stmt, ...]:
    """Names from before the loop replaced by what the team knows them to be."""
    memory = team.memory
    values: dict[str, Expr] = dict(shared)
    changed = walk.assigned_in(body)
    for name in sorted(walk.names_in(body) - local_names - set(shared)):
        if name in memory.arrays or name in memory.staged_names:
            continue
        if f"{name}[]" in memory.variables:
            raise memory.refusal(f"the array '{name}' is filled before the loop that reads it")
        if name in memory.shared:
            raise memory.refusal(f"shared memory '{name}' is used in a way that is not followed")
        expr = _team_value_before_loop(team, Name(name), active)
        if name in changed:
            raise memory.refusal(f"'{name}' is changed in a loop over elements")
        if expr != Name(name):
            values[name] = expr
    return substitute(body, values) if values else body


def _team_value_before_loop(team: Expressions, node: Expr, active: tv.Threads) -> Expr:
    """What the whole team knows it to be before the loop."""
    expr = tv.expr_of(team.shared(node, active))
    if expr is None:
        why = tv.explain_divergence(team.eval(node, active), active)
        raise team.memory.refusal(f"the loop reads '{print_expr(node)}': {why}")
    return expr


@dataclass
class SharedPlaces:
    _team: Expressions
    _head: Head
    _own: frozenset[str]
    _active: tv.Threads
    _index: str
    _span: tv.Span
    _stored: frozenset[str]
    _changed: frozenset[str]
    # Known values stand in the body under names that no source can have, until all are put in at once.
    known: dict[str, Expr] = field(default_factory=dict)

    @property
    def _memory(self) -> tv.BlockMemory:
        return self._team.memory

    def node(self, node: Expr) -> Expr:
        memory = self._memory
        if isinstance(node, Name) and node.name in memory.shared and not memory.shared[node.name].is_array:
            if node.name in self._changed:
                raise memory.refusal(f"the shared variable '{node.name}' is changed in a loop over elements")
            return self._bind_known_value(node)
        if not isinstance(node, Index):
            return node
        place = place_of(node)
        array = memory.shared_name(node)
        if place is not None and place.array in memory.shared:
            array = place.array
        if array is None:
            return node
        _, indices = array_and_indices(node)
        if len(indices) < len(memory.shared[array].dims):
            return node  # a row of a 2-D array: met again with its last index
        if not walk.names_in(node) & self._own:
            if array in self._stored:
                raise memory.refusal(
                    f"shared memory '{array}' is written at one place by a loop over elements"
                )
            return self._bind_known_value(node)
        return self._element(node, array, indices, place)

    def _bind_known_value(self, node: Expr) -> Expr:
        name = f"@{len(self.known)}"
        self.known[name] = _team_value_before_loop(self._team, node, self._active)
        return Name(name)

    def _element(self, node: Index, array: str, indices: Sequence[Expr], place: ArrayPlace | None) -> Expr:
        memory, index = self._memory, self._head.index
        unit = coefficient_of(indices[-1], index)
        outer = any(walk.names_in(i) & self._own for i in indices[:-1])
        beside = walk.names_in(indices[-1]) & (self._own - {index})
        moves = self._moved_by(place)
        if unit is None or unit + moves <= 0 or min(unit, moves) < 0 or outer or beside:
            raise self._unfit(node)
        firsts = self._unit_start_places(node, array, indices)
        element_bytes, moved = byte_size(memory.shared[array].type.base), None
        type_ = memory.shared[array].type
        if place is not None and place.as_type is not None:
            type_ = place.as_type
            moved = byte_size(type_.base)
        ratio = 1 if moved is None or element_bytes is None else moved // element_bytes
        if ratio == 0 or (moved is not None and element_bytes is None) or moves * self._span[2] % ratio:
            raise self._unfit(node)
        offset = self._offset(place)
        width = unit * self._span[2] + moves * self._span[2] // ratio
        k = firsts[0] % width
        bases = tuple(first - k for first in firsts)
        if any(first % width != k for first in firsts):
            raise self._unfit(node)
        name = self._stage_shared_range(array, Type(type_.base), offset, bases, width, ratio, node)
        result: Expr = Index(Name(name), Name(self._index))
        return result if width == 1 else Index(result, number_node(k))

    def _moved_by(self, place: ArrayPlace | None) -> int:
        """How many of the array's own elements the place moves on with the loop's index, by its offset;
        below zero where that is not known."""
        if place is None or place.offset is None or not walk.names_in(place.offset) & self._own:
            return 0
        found = coefficient_of(place.offset, self._head.index)
        beside = walk.names_in(place.offset) & (self._own - {self._head.index})
        return -1 if found is None or beside else found

    def _unfit(self, node: Expr) -> Exception:
        return self._memory.refusal(
            f"shared memory is used as '{print_expr(node)}', not as a value for every element"
        )

    def _unit_start_places(self, node: Expr, array: str, indices: Sequence[Expr]) -> list[int]:
        """The place with the loop's index at its unit's start, for every team."""
        memory = self._memory
        at_zero = [substitute(index, {self._head.index: number_node(0)}) for index in indices]
        numbers = self._team.flat_index(array, at_zero, self._active)
        firsts: dict[int, int] = {}
        for thread in self._active:
            value = numbers.at(thread)
            if (
                not isinstance(value, tv.Int)
                or firsts.setdefault(memory.team(thread), value.value) != value.value
            ):
                raise self._unfit(node)
        return list(firsts.values())

    def _offset(self, place: ArrayPlace | None) -> int:
        if place is None or place.offset is None:
            return 0
        offset = substitute(place.offset, {self._head.index: number_node(0)})
        found = self._team.eval(offset, self._active)
        values = set(found.values(self._active))
        value = values.pop()
        if values or not isinstance(value, tv.Int):
            raise self._memory.refusal("shared memory is used at an offset that differs between threads")
        return value.value

    def _stage_shared_range(
        self, array: str, type_: Type, offset: int, bases: tuple[int, ...], width: int, ratio: int, node: Expr
    ) -> str:
        memory = self._memory
        places = tuple(offset + base * ratio for base in bases)
        known = memory.staged
        key = (array, type_.base, places)
        if key in known:
            found = known[key]
            same = same_value(found.span[0], self._span[0]) and same_value(found.span[1], self._span[1])
            if not same or found.span[2] != self._span[2] or found.staged.width != width:
                raise memory.refusal(
                    f"shared memory '{array}' is filled by one range of elements and used by another"
                )
            return found.staged.name
        if array not in self._stored:
            raise memory.refusal(
                f"shared memory is read as '{print_expr(node)}', which no loop over the same elements wrote"
            )
        ends = [self._team.eval(end, self._active).at(self._active[0]) for end in self._span[:2]]
        start, stop = (end.value if isinstance(end, tv.Int) else 0 for end in ends)
        length = max(0, -(-(stop - start) // self._span[2])) * width * ratio
        bounds = tuple(
            (place + start * width * ratio, place + start * width * ratio + length) for place in places
        )
        for low, high in bounds:
            for other in known.values():
                if other.array == array and any(low < b and a < high for a, b in other.bounds):
                    raise memory.refusal(f"shared memory '{array}' holds two things at the same place")
            if any(low <= cell < high for cell in memory.cells[array]):
                raise memory.refusal(f"shared memory '{array}' holds single values and a row's elements")
        name = walk.fresh_name(array, set(memory.staged_names))
        known[key] = tv.StagedArray(ElementArray(name, type_, width), array, bounds, self._span)
        return name
