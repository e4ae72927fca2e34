"""Calls of the file's own functions put in place, where these touch memory, threads or their arguments.

Functions that only compute a value from values stay calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, function_causes, is_pure
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.objects import Objects
from tunesmith.csource.printing import print_expr
from tunesmith.csource.simplify import simplified
from tunesmith.csource.specialise import (
    complete_arguments,
    file_meaning,
    specialise,
    split_entry,
    template_meaning,
)
from tunesmith.csource.substitution import Placed, Placer, with_unique_names
from tunesmith.csource.types import Types, declared_types, is_integer, type_of

_MAX_STACK = 24
_MAX_CALLS = 2000


@dataclass(frozen=True)
class Inlined:
    function: c.Function
    notes: tuple[str, ...]  # calls that had to stay, with the reason and the line
    source: c.Source  # without functions that bear a library's name and take a record of the file


def inline(function: c.Function, source: c.Source) -> Inlined:
    work = _Inliner(function, source)
    function = work.function
    body = work.block(function.body, (), 0)
    result = replace(function, body=(*work.placer.shared, *body))
    if work.objects.active and not work.notes:
        result = work.objects.lowered(result)
        result = replace(result, body=simplified(result.body))
    result = replace(result, body=fold_statements(walk.map_nodes(result.body, _as_text)))
    work.note_other_calls(result)
    return Inlined(result, tuple(dict.fromkeys(work.notes)), work.objects.source)


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
        self._file = self._source = self.objects.source
        self.function = self._with_elements(function) if self.objects.active else function
        self._calls = 0
        self._wanted: dict[str, bool] = {}

    def _with_elements(self, function: c.Function) -> c.Function:
        """Types of records under their settled names; parameters point to elements of records."""
        function = self.objects.instances.settled(function)
        taken = {parameter.name for parameter in function.parameters}
        function = replace(function, body=with_unique_names(function.body, taken))
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
            for part in self.objects.prepared(stmt) if self.objects.active else (stmt,):
                done.extend(self._statement(part, stack, depth + 1))
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
        done = walk.map_parts(stmt, hoisted, block)
        return (*before, *self._finished(done))

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
                side_effect(f, self._source) or not f.text or _is_index_arithmetic(f) for f in own
            )
        return self._wanted[call.function] and bool(own_functions(call, self._source))

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
        if isinstance(function, str) or not self.objects.active:
            return function
        function = self.objects.instances.settled(function)
        taken = {parameter.name for parameter in function.parameters}
        return replace(function, body=with_unique_names(function.body, taken))

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
    """Functions called in a branch of a ternary or behind && and ||."""
    found: set[str] = set()
    for node in walk.nodes_in(expr):
        behind: tuple[c.Expr, ...] = ()
        if isinstance(node, c.Ternary):
            behind = (node.yes, node.no)
        elif isinstance(node, c.Binary) and node.op in ("&&", "||"):
            behind = (node.right,)
        for part in behind:
            found |= {call.function for call in walk.calls_in(part)}
    return frozenset(found)


def _is_index_arithmetic(function: c.Function) -> bool:
    """`ceil_div(n, 4)`: an expression of integers, put in place so that extents are seen."""
    last = function.body[0] if len(function.body) == 1 else None
    types = [function.result, *(parameter.type for parameter in function.parameters)]
    plain = all(is_integer(type_) and not type_.reference and type_.base != "bool" for type_ in types)
    return plain and isinstance(last, c.Return) and last.value is not None and not function.template


def own_functions(call: c.Call, source: c.Source) -> list[c.Function]:
    """The file's functions a call may mean, by name and number of arguments."""
    if call.of is not None:
        return []
    return [
        function
        for function in source.functions
        if function.name == call.function
        and len(function.parameters) == len(call.args)
        and not function.is_kernel
    ]


def side_effect(function: c.Function, source: c.Source) -> str:
    """What a function does besides computing a value from values, in words; "" for a pure one.

    That it may stop the kernel does not count: a kernel that keeps its contract never comes to that.
    """
    found = function_causes(function, Program.of(source))
    return next((cause.what for cause in found if cause.effects != Effects.STOPS), "")


def resolve(call: c.Call, types: Types, source: c.Source) -> c.Function | str:
    """The function a call means with its template arguments filled in; a sentence where that is not clear."""
    given = [type_of(arg, types, source.functions, source.language) for arg in call.args]
    special = [f for f in own_functions(call, source) if f.specialises]
    candidates = [f for f in own_functions(call, source) if not f.specialises]
    if len(candidates) != 1:
        # As the language ranks them: a function for just these types, then a template that fits them.
        exact = [f for f in (*candidates, *special) if not f.template and _matches(f, given)]
        candidates = exact or [f for f in candidates if f.template]
    # With template arguments at the call, it means a template or what is written for one.
    fits = [f for f in candidates if not call.template_args or f.template or f.text.startswith("template")]
    if len(fits) != 1:
        return f"which {call.function} is called cannot be told from its arguments"
    function = fits[0]
    try:
        if not function.template:
            return specialise(function, file_meaning(source))
        texts = _deduced(function, call, types, source)
        exact = [f for f in special if f.specialises == texts]
        if exact:
            return specialise(exact[0], file_meaning(source))
        arguments = complete_arguments(function.template, texts, source)
        return specialise(function, template_meaning(function.template, arguments, source))
    except c.Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _matches(function: c.Function, given: list[c.Type | None]) -> bool:
    return all(
        type_ is not None and (parameter.type.base, parameter.type.pointers) == (type_.base, type_.pointers)
        for parameter, type_ in zip(function.parameters, given, strict=True)
    )


def _deduced(function: c.Function, call: c.Call, types: Types, source: c.Source) -> tuple[str, ...]:
    """Template arguments: those written at the call, then those its arguments' types tell."""
    texts = list(call.template_args)
    for parameter in function.template[len(texts) :]:
        found = {
            text
            for formal, arg in zip(function.parameters, call.args, strict=True)
            if (text := _deduced_text(parameter.name, formal.type, arg, types, source))
        }
        if len(found) == 1:
            texts.append(found.pop())
        elif parameter.default:
            break
        else:
            raise c.Unreadable(f"its template parameter {parameter.name} cannot be told from the arguments")
    return tuple(texts)


def _deduced_text(name: str, formal: c.Type, arg: c.Expr, types: Types, source: c.Source) -> str:
    type_ = type_of(arg, types, source.functions, source.language)
    if type_ is None or type_.pointers < formal.pointers:
        return ""
    if "<" in formal.base and formal.pointers == type_.pointers:  # vec<T, N> of vec<float, 4>
        (head, pattern), (own, given) = split_entry(formal.base), split_entry(type_.base)
        fits = head == own and len(pattern) == len(given)
        return next((g for p, g in zip(pattern, given, strict=True) if p == name), "") if fits else ""
    if formal.base != name:
        return ""
    extra = type_.pointers - formal.pointers
    const = "const " if type_.const and not formal.const and type_.pointers else ""
    return const + type_.base + "*" * extra
