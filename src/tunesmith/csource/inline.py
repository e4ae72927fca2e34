"""Calls of the file's own functions put in place, where these touch memory, threads or their arguments.

Functions that only compute a value from values stay calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, function_causes, is_pure
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.specialise import complete_arguments, file_meaning, specialise, template_meaning
from tunesmith.csource.substitution import Placed, Placer
from tunesmith.csource.types import Types, declared_types, type_of

_MAX_STACK = 24
_MAX_CALLS = 2000


@dataclass(frozen=True)
class Inlined:
    function: c.Function
    notes: tuple[str, ...]  # calls that had to stay, with the reason and the line


def inline(function: c.Function, source: c.Source) -> Inlined:
    work = _Inliner(function, source)
    body = work.block(function.body, (), 0)
    result = replace(function, body=fold_statements((*work.placer.shared, *body)))
    work.note_other_calls(result)
    return Inlined(result, tuple(dict.fromkeys(work.notes)))


class _Inliner:
    def __init__(self, function: c.Function, source: c.Source) -> None:
        self.notes: list[str] = []
        self._source = source
        self._types = declared_types(function)
        taken = set(self._types) | set(walk.declared_in(function.body)) | set(walk.names_in(function.body))
        taken |= {f.name for f in source.functions} | {name for name, _ in source.constants}
        taken |= {parameter.name for parameter in function.parameters}
        self.placer = Placer(taken, self._types, source)
        self._calls = 0
        self._wanted: dict[str, bool] = {}

    def block(self, stmts: tuple[c.Stmt, ...], stack: tuple[str, ...], depth: int) -> tuple[c.Stmt, ...]:
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        done: list[c.Stmt] = []
        for stmt in stmts:
            done.extend(self._statement(stmt, stack, depth + 1))
        return tuple(done)

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
                return (*before, *placed.body, replace(stmt, expr=replace(assign, value=placed.value)))
        done = walk.map_parts(stmt, hoisted, block)
        return (*before, done)

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

        return walk.map_expr(expr, node)

    def _refuse_in_head(self, exprs: tuple[c.Expr, ...], line: int) -> None:
        for call in (call for expr in exprs for call in walk.calls_in(expr)):
            if self._is_wanted(call):
                self._note(call, "it stands in the head of a loop", line)

    def _note(self, call: c.Call, why: str, line: int) -> None:
        self.notes.append(f"line {line}: {call.function} stays a call: {why}")

    def _is_wanted(self, call: c.Call) -> bool:
        if call.function not in self._wanted:
            own = own_functions(call, self._source)
            self._wanted[call.function] = any(side_effect(f, self._source) or not f.text for f in own)
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
            function = resolve(call, self._types, self._source)
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

    def _short(self, call: c.Call, stack: tuple[str, ...]) -> c.Expr | None:
        """The call as an expression, where the function is only one itself and calls none in turn."""
        if call.function in stack:
            return None
        function = resolve(call, self._types, self._source)
        if isinstance(function, str) or any(self._is_wanted(inner) for inner in walk.calls_in(function.body)):
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


def own_functions(call: c.Call, source: c.Source) -> list[c.Function]:
    """The file's functions a call may mean, by name and number of arguments."""
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
    fits = [f for f in candidates if not call.template_args or f.text.startswith("template")]
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
            if formal.type.base == parameter.name and (text := _deduced_text(formal.type, arg, types, source))
        }
        if parameter.kind == "type" and len(found) == 1:
            texts.append(found.pop())
        elif parameter.default:
            break
        else:
            raise c.Unreadable(f"its template parameter {parameter.name} cannot be told from the arguments")
    return tuple(texts)


def _deduced_text(formal: c.Type, arg: c.Expr, types: Types, source: c.Source) -> str:
    type_ = type_of(arg, types, source.functions, source.language)
    if type_ is None or type_.pointers < formal.pointers:
        return ""
    extra = type_.pointers - formal.pointers
    const = "const " if type_.const and not formal.const and type_.pointers else ""
    return const + type_.base + "*" * extra
