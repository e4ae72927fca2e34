"""Calls of the file's own functions put in place, where these touch memory, threads or their arguments.

Functions that only compute a value from values stay calls: `helpers_needed` says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.expert.c.callees import own_functions, resolve, touches
from tunesmith.expert.c.fold import fold_statements, is_pure
from tunesmith.expert.c.infer import declared_types
from tunesmith.expert.c.nodes import (
    Assign,
    Binary,
    Call,
    Declare,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Name,
    Return,
    Scope,
    Source,
    Stmt,
    Ternary,
    While,
)
from tunesmith.expert.c.placing import Placed, Placer
from tunesmith.expert.c.unreadable import MAX_DEPTH, TooDeep, Unreadable
from tunesmith.expert.c.walk import (
    calls_in,
    children,
    declared_in,
    map_expr,
    names_in,
    nodes_in,
    statements_in,
)

_MAX_STACK = 24
_MAX_CALLS = 2000


@dataclass(frozen=True)
class Inlined:
    function: Function
    notes: tuple[str, ...]  # calls that had to stay, with the reason and the line


def inline(function: Function, source: Source, also: frozenset[str] = frozenset()) -> Inlined:
    """`also`: functions to be put in place even though they only compute a value."""
    work = _Inliner(function, source, also)
    body = work.block(function.body, (), 0)
    result = replace(function, body=fold_statements((*work.placer.shared, *body)))
    work.note_other_calls(result)
    return Inlined(result, tuple(dict.fromkeys(work.notes)))


class _Inliner:
    def __init__(self, function: Function, source: Source, also: frozenset[str]) -> None:
        self.notes: list[str] = []
        self._source = source
        self._also = also
        self._types = declared_types(function)
        taken = set(self._types) | set(declared_in(function.body)) | set(names_in(function.body))
        taken |= {f.name for f in source.functions} | {name for name, _ in source.constants}
        taken |= {parameter.name for parameter in function.parameters}
        self.placer = Placer(taken, self._types, source)
        self._calls = 0
        self._wanted: dict[str, bool] = {}

    def block(self, stmts: tuple[Stmt, ...], stack: tuple[str, ...], depth: int) -> tuple[Stmt, ...]:
        if depth > MAX_DEPTH:
            raise TooDeep
        done: list[Stmt] = []
        for stmt in stmts:
            done.extend(self._statement(stmt, stack, depth + 1))
        return tuple(done)

    def _statement(self, stmt: Stmt, stack: tuple[str, ...], d: int) -> tuple[Stmt, ...]:
        match stmt:
            case If(condition=condition, then=then, otherwise=otherwise):
                more, condition = self._hoisted(condition, stmt, stack)
                then, otherwise = self.block(then, stack, d), self.block(otherwise, stack, d)
                return (*more, replace(stmt, condition=condition, then=then, otherwise=otherwise))
            case For(init=init, body=body):
                before: tuple[Stmt, ...] = ()
                heads: list[Declare | Evaluate] = []
                for part in init:
                    more, head = self._simple(part, stack)
                    before, heads = (*before, *more), [*heads, head]
                for expr in (*stmt.step, *(() if stmt.condition is None else (stmt.condition,))):
                    self._refuse_in(expr, "it stands in the head of a loop", stmt.line)
                return (*before, replace(stmt, init=tuple(heads), body=self.block(body, stack, d)))
            case While(condition=condition, body=body):
                self._refuse_in(condition, "it stands in the head of a loop", stmt.line)
                return (replace(stmt, body=self.block(body, stack, d)),)
            case Scope(body=body):
                return (replace(stmt, body=self.block(body, stack, d)),)
            case Evaluate(expr=Call() as call) if self._is_wanted(call):
                more, args = self._hoisted_args(call, stmt, stack)
                call = replace(call, args=args)
                placed = self._place(call, stmt, stack)
                return (*more, *((replace(stmt, expr=call),) if placed is None else _without_value(placed)))
            case Evaluate(expr=Assign(op="=", target=Name(), value=Call() as call)) if self._is_wanted(call):
                return self._update(stmt, call, stack)
            case Evaluate() | Declare():
                more, simple = self._simple(stmt, stack)
                return (*more, simple)
            case Return(value=value) if value is not None:
                more, value = self._hoisted(value, stmt, stack)
                return (*more, replace(stmt, value=value))
            case _:
                return (stmt,)

    def _simple(
        self, stmt: Declare | Evaluate, stack: tuple[str, ...]
    ) -> tuple[tuple[Stmt, ...], Declare | Evaluate]:
        if isinstance(stmt, Evaluate):
            before, expr = self._hoisted(stmt.expr, stmt, stack)
            return before, replace(stmt, expr=expr)
        if stmt.init is None:
            return (), stmt
        before, init = self._hoisted(stmt.init, stmt, stack)
        return before, replace(stmt, init=init)

    def _update(self, stmt: Evaluate, call: Call, stack: tuple[str, ...]) -> tuple[Stmt, ...]:
        """`sum = warp_sum(sum)`: the function may work on the variable itself, without a copy."""
        assign = stmt.expr
        if not isinstance(assign, Assign) or not isinstance(assign.target, Name):
            return (stmt,)
        before, args = self._hoisted_args(call, stmt, stack)
        placed = self._place(replace(call, args=args), stmt, stack, updated=assign.target.name)
        if placed is None:
            return (*before, replace(stmt, expr=replace(assign, value=replace(call, args=args))))
        if placed.value is None or placed.value == assign.target:
            return (*before, *placed.body)
        return (*before, *placed.body, replace(stmt, expr=replace(assign, value=placed.value)))

    # -- calls inside expressions -------------------------------------------------------------------

    def _hoisted(self, expr: Expr, stmt: Stmt, stack: tuple[str, ...]) -> tuple[tuple[Stmt, ...], Expr]:
        """The expression with values in place of calls, and the statements that compute these before it."""
        if not any(self._is_wanted(call) for call in calls_in(expr)):
            return (), expr
        sometimes = _sometimes_evaluated(expr)
        before: list[Stmt] = []

        def node(part: Expr) -> Expr:
            if not isinstance(part, Call) or not self._is_wanted(part):
                return part
            short = self._short(part, stack)
            if short is not None:
                return short
            if part.function in sometimes:
                self._note(part, "it is called only under a condition inside an expression", stmt.line)
                return part
            placed = self._place(part, stmt, stack)
            if placed is None:
                return part
            if placed.value is None:
                self._note(part, "it gives no value", stmt.line)
                return part
            before.extend(placed.body)
            return placed.value

        changed = map_expr(expr, node)
        return tuple(before), changed

    def _hoisted_args(
        self, call: Call, stmt: Stmt, stack: tuple[str, ...]
    ) -> tuple[tuple[Stmt, ...], tuple[Expr, ...]]:
        before: list[Stmt] = []
        args: list[Expr] = []
        for arg in call.args:
            more, changed = self._hoisted(arg, stmt, stack)
            before.extend(more)
            args.append(changed)
        return tuple(before), tuple(args)

    def _refuse_in(self, expr: Expr, why: str, line: int) -> None:
        for call in calls_in(expr):
            if self._is_wanted(call):
                self._note(call, why, line)

    def _note(self, call: Call, why: str, line: int) -> None:
        self.notes.append(f"line {line}: {call.function} stays a call: {why}")

    def _is_wanted(self, call: Call) -> bool:
        if call.function not in self._wanted:
            own = own_functions(call, self._source)
            self._wanted[call.function] = bool(own) and (
                call.function in self._also or any(touches(f, self._source) or not f.text for f in own)
            )
        return self._wanted[call.function] and bool(own_functions(call, self._source))

    def note_other_calls(self, function: Function) -> None:
        """Calls of the file's functions with a number of arguments that none of them takes: defaults."""
        own = {f.name for f in self._source.functions if not f.is_kernel}
        for stmt in statements_in(function.body):
            for part in children(stmt):
                for call in calls_in(part) if isinstance(part, Expr) else ():
                    if call.function in own and not own_functions(call, self._source):
                        self._note(call, f"none of that name takes {len(call.args)} arguments", stmt.line)

    # -- one call -----------------------------------------------------------------------------------

    def _place(self, call: Call, stmt: Stmt, stack: tuple[str, ...], updated: str = "") -> Placed | None:
        self._calls += 1
        if call.function in stack or len(stack) > _MAX_STACK:
            why = "it calls itself" if call.function in stack else "functions call each other too deep"
            self._note(call, why, stmt.line)
            return None
        if self._calls > _MAX_CALLS:
            self._note(call, f"more than {_MAX_CALLS} calls were put in place already", stmt.line)
            return None
        function = resolve(call, self._types, self._source)
        if isinstance(function, str):
            self._note(call, function, stmt.line)
            return None
        try:
            placed = self.placer.place(function, call.args, stmt.line, updated)
        except TooDeep:
            raise
        except Unreadable as trouble:
            self._note(call, trouble.reason, stmt.line)
            return None
        body = self.block(placed.body, (*stack, call.function), len(stack) + 1)
        return replace(placed, body=body)

    def _short(self, call: Call, stack: tuple[str, ...]) -> Expr | None:
        """The call as an expression, where the function is only one itself and calls none in turn."""
        if call.function in stack:
            return None
        function = resolve(call, self._types, self._source)
        if isinstance(function, str) or any(self._is_wanted(inner) for inner in calls_in(function.body)):
            return None
        return self.placer.as_expression(function, call.args)


def _without_value(placed: Placed) -> tuple[Stmt, ...]:
    """The body for its effects alone: a last variable that only holds the value goes."""
    last = placed.body[-1] if placed.body else None
    unused = isinstance(last, Declare) and Name(last.name) == placed.value and is_pure(last)
    return placed.body[:-1] if unused else placed.body


def _sometimes_evaluated(expr: Expr) -> frozenset[str]:
    """Functions called in a branch of a ternary or behind && and ||."""
    found: set[str] = set()
    for node in nodes_in(expr):
        behind: tuple[Expr, ...] = ()
        if isinstance(node, Ternary):
            behind = (node.yes, node.no)
        elif isinstance(node, Binary) and node.op in ("&&", "||"):
            behind = (node.right,)
        for part in behind:
            found |= {call.function for call in calls_in(part)}
    return frozenset(found)
