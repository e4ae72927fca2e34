"""Calls of the file's own functions put in place, where these touch memory, threads or their arguments.

Functions that only compute a value from values stay calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.bit_copies import with_bit_copies
from tunesmith.csource.callees import own_functions, resolve, with_defaults
from tunesmith.csource.const_calls import marked
from tunesmith.csource.effects import Effects, Program, function_causes, is_pure
from tunesmith.csource.fold import fold, fold_statements, int_value
from tunesmith.csource.handed_lambdas import with_handed_lambdas
from tunesmith.csource.library import uses_library, with_known_cooperation
from tunesmith.csource.objects import Objects
from tunesmith.csource.printing import print_expr, print_function
from tunesmith.csource.simplify import simplified
from tunesmith.csource.substitution import Placed, Placer, with_unique_names
from tunesmith.csource.types import declared_types, is_integer

_MAX_STACK = 24
_WORD = re.compile(r"[A-Za-z_]\w*")
_MAX_CALLS = 2000
EXCHANGES = frozenset(f"__shfl{way}{end}" for way in ("", "_xor", "_down", "_up") for end in ("", "_sync"))


@dataclass(frozen=True)
class Inlined:
    function: c.Function
    notes: tuple[str, ...]  # calls that had to stay, with the reason and the line
    source: c.Source  # without functions that bear a library's name and take a record of the file


def inline(function: c.Function, source: c.Source, obstacles: list[tuple[int, str]] | None = None) -> Inlined:
    """Raises Unreadable; with a list of `obstacles` it takes them down there and goes on as far as it can."""
    function, source = with_handed_lambdas(function, source)
    function = with_known_cooperation(function)
    function = with_defaults(function, source)
    work = _Inliner(function, source)
    work.obstacles = obstacles
    function = work.function
    body = work.block(function.body, (), 0)
    result = replace(function, body=(*work.placer.shared, *body))
    if work.objects.active and not work.notes and not obstacles:
        result = work.objects.lowered(result)
        result = replace(result, body=simplified(result.body))
    elif work.notes and obstacles is None and work.objects.used_whole(result):
        raise c.Unreadable(work.notes[0])  # a call that stays takes an object, which is no variable by now
    result = replace(result, body=fold_statements(walk.map_nodes(result.body, _as_text)))
    result = replace(result, body=_with_integers_written(result))
    result = replace(result, body=with_bit_copies(_one_by_one(result.body)))
    work.note_other_calls(result)
    source = work.objects.source
    if work.objects.active and not work.notes:
        source = _without_records(result, source)
    return Inlined(result, tuple(dict.fromkeys(work.notes)), source)


def _without_records(function: c.Function, source: c.Source) -> c.Source:
    """Without the text of records, where nothing that is left names one."""
    names = {record.name.rpartition("::")[2] for record in source.records}
    called, pending = set[str](), [function]
    left = [text for text in source.preamble if text not in source.of_records]
    left.append(print_function(function))
    while pending:
        for call in walk.calls_in(pending.pop().body):
            own = [f for f in source.functions if f.name == call.function and call.function not in called]
            called.add(call.function)
            pending += own
            left += [f.text or print_function(f) for f in own]
    if any(word in names for text in left for word in _WORD.findall(text)):
        return source
    preamble = tuple(text for text in source.preamble if text not in source.of_records)
    return replace(source, preamble=preamble)


def _with_integers_written(function: c.Function) -> tuple[c.Stmt, ...]:
    """`auto i = blockIdx.x * blockDim.x`, `auto p = (float4 *)x` under the type that it has."""
    types = declared_types(function)

    def declared(stmt: c.Stmt) -> c.Stmt:
        return walk.map_declared(stmt, written)

    def written(declare: c.Declare) -> c.Declare:
        known = types.get(declare.name)
        match declare:
            case c.Declare(type=c.Type(base="auto", reference=False) as own, init=c.Cast(type=cast)):
                if cast.pointers and own.pointers <= 1:
                    return replace(declare, type=replace(cast, restrict=own.restrict))
        if declare.type.base != "auto" or known is None or not is_integer(known) or declare.type.reference:
            return declare
        return replace(declare, type=replace(declare.type, base=known.base))

    return walk.map_statements(function.body, on_stmt=declared)


def _one_by_one(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`a = b = x` as `b = x; a = b`, where b is a variable; without assertions that hold."""

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        match one:
            case c.Evaluate(expr=c.Call(function="assert", args=(test,))) if int_value(fold(test)):
                return ()
            case c.Evaluate(expr=c.Assign("=", target, c.Assign("=", c.Name() as inner, value)) as outer) if (
                inner.name not in walk.names_in(target)
            ):
                first = c.Evaluate(c.Assign("=", inner, value), line=one.line, comments=one.comments)
                return first, c.Evaluate(replace(outer, value=inner), line=one.line)
        return one

    return walk.map_statements(body, on_stmt=stmt)


def _as_text(node: c.Expr) -> c.Expr:
    """A method of what is not known here: anything may happen to what it names."""
    if isinstance(node, c.Call) and node.of is not None:
        return c.Opaque(print_expr(node), walk.names_in(node))
    return node


class _Inliner:
    def __init__(self, function: c.Function, source: c.Source) -> None:
        self.notes: list[str] = []
        self._file, self._source = source, source
        self._types = declared_types(function)
        taken = set(self._types) | set(walk.declared_in(function.body)) | set(walk.names_in(function.body))
        taken |= {f.name for f in source.functions} | {name for name, _ in source.constants}
        taken |= {parameter.name for parameter in function.parameters}
        taken.add("this")
        self.placer = Placer(taken, self._types, source)
        self.objects = Objects(source, self._types, self.placer.fresh)
        self.objects.construction.unset = self.placer.results
        self._file = self._source = self.objects.source
        self.function = self._with_elements(function) if self.objects.active else function
        self.placer.note_addresses(self.function.body)
        self._calls = 0
        self.obstacles: list[tuple[int, str]] | None = None
        self._wanted: dict[str, bool] = {}

    def _with_elements(self, function: c.Function) -> c.Function:
        """Types of records under their settled names; parameters point to elements of records."""
        function = self.objects.instances.settled(function)
        taken = {parameter.name for parameter in function.parameters}
        function = replace(function, body=with_unique_names(function.body, taken))
        function = marked(function, self.objects.differing, self._source)
        self._types.clear()
        self._types.update(declared_types(function))
        for name in self._types:
            self.placer.take(name)
        flat = self.objects.places.flat_type
        parameters = tuple(replace(p, type=flat(p.name, p.type)) for p in function.parameters)
        return replace(function, parameters=parameters)

    def block(self, stmts: tuple[c.Stmt, ...], stack: tuple[str, ...], depth: int) -> tuple[c.Stmt, ...]:
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        done: list[c.Stmt] = []
        for stmt in stmts:
            try:
                for part in self.objects.prepared(stmt) if self.objects.active else (stmt,):
                    done.extend(self._statement(part, stack, depth + 1))
            except c.Unreadable as trouble:
                if self.obstacles is None or isinstance(trouble, c.TooDeep):
                    raise
                self.obstacles.append((trouble.line or stmt.line, trouble.reason))
        return tuple(done)

    def _finished(self, stmt: c.Stmt) -> tuple[c.Stmt, ...]:
        return self.objects.finished(stmt) if self.objects.active else (stmt,)

    def _statement(self, stmt: c.Stmt, stack: tuple[str, ...], d: int) -> tuple[c.Stmt, ...]:
        before: list[c.Stmt] = []

        def hoisted(expr: c.Expr) -> c.Expr:
            return self._hoisted(expr, stmt, stack, before)

        def block(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
            return self.block(body, stack, d)

        match stmt:
            case c.For(init=init, condition=condition, step=step):
                heads = tuple([walk.map_simple(part, hoisted) for part in init])
                self._refuse_in_head((*step, *(() if condition is None else (condition,))), stmt.line)
                return (*before, walk.map_blocks(replace(stmt, init=heads), block))
            case c.While(condition=condition):
                self._refuse_in_head((condition,), stmt.line)
                return (walk.map_blocks(stmt, block),)
            case c.Evaluate(expr=c.Call() as call) if self._is_wanted(call):
                call = replace(call, args=tuple([hoisted(arg) for arg in call.args]))
                if call.of is None and self._short(call, stack) is not None:  # a place that nobody takes
                    return tuple(before)
                placed = self._place(call, stmt, stack)
                return (*before, *((replace(stmt, expr=call),) if placed is None else _without_value(placed)))
            case c.Evaluate(
                expr=c.Assign(op="=", target=c.Name(name=name), value=c.Call() as call) as assign
            ) if self._is_wanted(call):
                # `sum = warp_sum(sum)`: the function may work on the variable itself, without a copy.
                call = replace(call, args=tuple([hoisted(arg) for arg in call.args]))
                placed = self._place(call, stmt, stack, updated=name)
                if placed is None:
                    return (*before, replace(stmt, expr=replace(assign, value=call)))
                if placed.value is None or placed.value == assign.target:
                    return (*before, *placed.body)
                done: c.Stmt = replace(stmt, expr=replace(assign, value=placed.value))
                return (*before, *placed.body, *self._finished(done))
        if isinstance(stmt, c.Evaluate) and self._does_nothing(stmt.expr):
            return ()
        if (branches := self._as_branches(stmt)) is not None:
            return tuple(part for one in branches for part in self._statement(one, stack, d + 1))
        done = walk.map_parts(stmt, hoisted, block)
        return (*before, *self._finished(done))

    def _does_nothing(self, expr: c.Expr) -> bool:
        """A call for its effects, of a function that has none: what is left of it under an #if."""
        if not isinstance(expr, c.Call) or not all(is_pure(arg) for arg in expr.args):
            return False
        own = own_functions(expr, self._source)
        return bool(own) and not any(f.body for f in own)

    def _as_branches(self, stmt: c.Stmt) -> tuple[c.Stmt, ...] | None:
        """`x = few ? warp_sum(x) : block_sum(x)` as a branch, where what is called has to be put in place."""
        match stmt:
            case c.Declare(init=c.Ternary() as choice, storage="", dims=()) if not stmt.type.reference:
                first: tuple[c.Stmt, ...] = (replace(stmt, init=None, type=replace(stmt.type, const=False)),)
                target: c.Expr = c.Name(stmt.name)
            case c.Evaluate(expr=c.Assign(op="=", target=c.Name() as target, value=c.Ternary() as choice)):
                first = ()
            case _:
                return None
        ways = (choice.yes, choice.no)
        if not all(isinstance(way, c.Call) and self._is_wanted(way) for way in ways):
            return None
        types = [self._result(way) for way in ways if isinstance(way, c.Call)]
        if types[0] is None or types[0] != types[1]:
            return None
        put = [c.Evaluate(c.Assign("=", target, way), line=stmt.line) for way in ways]
        return (*first, c.If(choice.condition, (put[0],), (put[1],), line=stmt.line))

    def _result(self, call: c.Call) -> c.Type | None:
        found = resolve(call, self._types, self._source)
        return None if isinstance(found, str) or found.result.base == "auto" else found.result

    # -- calls inside expressions -------------------------------------------------------------------

    def _hoisted(self, expr: c.Expr, stmt: c.Stmt, stack: tuple[str, ...], before: list[c.Stmt]) -> c.Expr:
        """The expression with values in place of calls; the statements that compute these go to `before`."""
        if not any(self._is_wanted(call) for call in walk.calls_in(expr)):
            return expr
        sometimes = _sometimes_evaluated(expr)

        def node(part: c.Expr) -> c.Expr:
            if not isinstance(part, c.Call) or not self._is_wanted(part):
                return part
            short = self._short(part, stack)
            if short is not None:
                return self._shortened(short, part, stmt, stack, before)
            if part.function in sometimes:
                self._note(part, "it is called under a condition or behind a comma", stmt.line)
                return part
            placed = self._place(part, stmt, stack)
            if placed is None:
                return part
            if placed.value is None:
                self._note(part, "it gives no value", stmt.line)
                return part
            before.extend(placed.body)
            return placed.value

        return walk.map_expr(expr, node)

    def _shortened(
        self, short: c.Expr, call: c.Call, stmt: c.Stmt, stack: tuple[str, ...], before: list[c.Stmt]
    ) -> c.Expr:
        """An expression that stands for a call, with what is called in it by a sign put in place as well."""
        if not self.objects.active:
            return short
        found: list[c.Stmt] = []
        done = self.objects.expr(short, found, stmt.line)
        if len(stack) > _MAX_STACK:
            raise c.Unreadable("functions call each other too deep", stmt.line)
        inner = (*stack, call.function)
        for part in found:
            before.extend(self._statement(part, inner, 0))
        return self._hoisted(done, stmt, inner, before)

    def _refuse_in_head(self, exprs: tuple[c.Expr, ...], line: int) -> None:
        for call in (call for expr in exprs for call in walk.calls_in(expr)):
            if self._is_wanted(call):
                self._note(call, "it stands in the head of a loop", line)

    def _note(self, call: c.Call, why: str, line: int) -> None:
        self.notes.append(f"line {line}: {call.function.partition('#')[0]} stays a call: {why}")

    def _is_wanted(self, call: c.Call) -> bool:
        if self.objects.active:
            made = self.objects.overloads.made
            if len(made) != len(self._source.functions) - len(self._file.functions):
                self._source = replace(self._file, functions=(*self._file.functions, *made.values()))
            if call.of is None and self.objects.concerns(call):
                return bool(own_functions(call, self._source))
        if call.function not in self._wanted:
            own = own_functions(call, self._source)
            self._wanted[call.function] = any(
                side_effect(f, self._source) or not f.text or _is_index_arithmetic(f) or uses_library(f)
                for f in own
            )
        if self._wanted[call.function]:
            return bool(own_functions(call, self._source))
        return self._counts(call)

    def _counts(self, call: c.Call) -> bool:
        """Whether it means a template that is index arithmetic for these arguments, or joins lanes."""
        own = own_functions(call, self._source)
        if own and any(inner.function in EXCHANGES for arg in call.args for inner in walk.calls_in(arg)):
            joins = resolve(call, self._types, self._source)
            return not isinstance(joins, str) and _is_expression(joins)
        if len(own) != 1 or not own[0].template or not _is_expression(own[0]):
            return False
        function = resolve(call, self._types, self._source)
        return not isinstance(function, str) and _is_index_arithmetic(replace(function, template=()))

    def note_other_calls(self, function: c.Function) -> None:
        """Calls of the file's functions with a number of arguments that none of them takes: defaults."""
        own = {f.name for f in self._source.functions if not f.is_kernel}
        for stmt in walk.statements_in(function.body):
            for part in walk.children(stmt):
                for call in walk.calls_in(part) if isinstance(part, c.Expr) else ():
                    if call.function in own and not own_functions(call, self._source):
                        self._note(call, f"none of that name takes {len(call.args)} arguments", stmt.line)

    # -- one call -----------------------------------------------------------------------------------

    def _place(self, call: c.Call, stmt: c.Stmt, stack: tuple[str, ...], updated: str = "") -> Placed | None:
        self._calls += 1
        try:
            if call.function in stack:
                raise c.Unreadable("it calls itself")
            if len(stack) > _MAX_STACK:
                raise c.Unreadable("functions call each other too deep")
            if self._calls > _MAX_CALLS:
                raise c.Unreadable(f"more than {_MAX_CALLS} calls were put in place already")
            function = self._resolved(call)
            if isinstance(function, str):
                raise c.Unreadable(function)
            placed = self.placer.place(function, call.args, stmt.line, updated)
        except c.TooDeep:
            raise
        except c.Unreadable as trouble:
            self._note(call, trouble.reason, stmt.line)
            return None
        body = self.block(placed.body, (*stack, call.function), len(stack) + 1)
        return replace(placed, body=body)

    def _resolved(self, call: c.Call) -> c.Function | str:
        function = resolve(call, self._types, self._source)
        if isinstance(function, str):
            return function
        function = with_known_cooperation(function)
        function = with_defaults(function, self._source)
        if not self.objects.active:
            return function
        function = self.objects.instances.settled(function)
        taken = {parameter.name for parameter in function.parameters}
        function = replace(function, body=with_unique_names(function.body, taken))
        return marked(function, self.objects.differing, self._source)

    def _short(self, call: c.Call, stack: tuple[str, ...]) -> c.Expr | None:
        """The call as an expression, where the function is only one itself and calls none in turn."""
        if call.function in stack:
            return None
        function = self._resolved(call)
        if isinstance(function, str):
            return None
        if function.result.reference and call.function in self.objects.overloads.made:
            return self.placer.as_place(function, call.args)
        if any(self._is_wanted(inner) for inner in walk.calls_in(function.body)):
            return None
        return self.placer.as_expression(function, call.args)


def _without_value(placed: Placed) -> tuple[c.Stmt, ...]:
    """The body for its effects alone: a last variable that only holds the value goes."""
    last = placed.body[-1] if placed.body else None
    unused = isinstance(last, c.Declare) and c.Name(last.name) == placed.value and is_pure(last)
    return placed.body[:-1] if unused else placed.body


def _sometimes_evaluated(expr: c.Expr) -> frozenset[str]:
    """Functions called in a branch of a ternary, behind && and ||, or after what stands before a comma."""
    found: set[str] = set()
    for node in walk.nodes_in(expr):
        behind: tuple[c.Expr, ...] = ()
        if isinstance(node, c.Ternary):
            behind = (node.yes, node.no)
        elif isinstance(node, c.Binary) and node.op in ("&&", "||", ","):
            behind = (node.right,)
        for part in behind:
            found |= {call.function for call in walk.calls_in(part)}
    return frozenset(found)


def _is_index_arithmetic(function: c.Function) -> bool:
    """`ceil_div(n, 4)`: an expression of integers, put in place so that extents are seen."""
    types = [function.result, *(parameter.type for parameter in function.parameters)]
    plain = all(is_integer(type_) and not type_.reference and type_.base != "bool" for type_ in types)
    return plain and _is_expression(function) and not function.template


def _is_expression(function: c.Function) -> bool:
    last = function.body[0] if len(function.body) == 1 else None
    return isinstance(last, c.Return) and last.value is not None


def side_effect(function: c.Function, source: c.Source) -> str:
    """What a function does besides computing a value from values, in words; "" for a pure one.

    That it may stop the kernel does not count: a kernel that keeps its contract never comes to that.
    """
    found = function_causes(function, Program.of(source))
    return next((cause.what for cause in found if cause.effects != Effects.STOPS), "")
