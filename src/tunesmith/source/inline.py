"""Calls of the file's own functions put in place, where these touch memory, threads or their arguments.

Functions that only compute a value from values stay calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import (
    Effects,
    NotAssembly,
    Program,
    function_causes,
    is_assembly,
    is_pure,
    of_assembly,
    read_assembly,
    sections_of,
)
from tunesmith.source.fold import fold_expr, fold_statements, int_value
from tunesmith.source.library import uses_library, with_known_cooperation
from tunesmith.source.printing import print_expr, print_function
from tunesmith.source.reader.objects import Objects
from tunesmith.source.reader.parse import read_expression, read_source_tree
from tunesmith.source.reader.records import mark_const_calls
from tunesmith.source.reader.templates import (
    complete_arguments,
    own_functions,
    resolve_call,
    specialise_function,
    template_meaning,
    with_defaults,
)
from tunesmith.source.substitution import Placed, Placer, simplify_statements, with_unique_names
from tunesmith.source.text import blank_elements, identifiers_in
from tunesmith.source.types import Types, byte_size, declared_types, integer_literal, is_integer, type_of

# -- Function templates that are handed a lambda, `each(x, n, [&](float v) { s += v; })`: one for each lambda.
#
# The parameter goes, and with it the template parameter that is its type. What the lambda captures is handed
# on in its place, by reference, and the lambda's own function is called with it.


_MAX = 32  # functions made of one kernel
_FORWARD = ("std::forward", "forward", "std::move", "move")


def with_handed_lambdas(function: c.Function, source: c.Source) -> tuple[c.Function, c.Source]:
    work = _HandedLambdas(source)
    body = work.body(function.body)
    if not work.made:
        return function, source
    made = tuple(work.made.values())
    return replace(function, body=body), replace(source, functions=(*source.functions, *made))


@dataclass
class _HandedLambdas:
    source: c.Source
    made: dict[str, c.Function] = field(default_factory=dict)

    def body(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return walk.map_nodes(stmts, lambda node: self._call(node) if isinstance(node, c.Call) else node)

    def _find_handed_lambda(self, arg: c.Expr) -> c.Function | None:
        """The function of a lambda that is handed on: it is called with what it captures alone."""
        if not isinstance(arg, c.Call) or not arg.function.startswith("lambda_"):
            return None
        found = [f for f in self.source.functions if f.name == arg.function]
        handed = len(found) == 1 and len(arg.args) < len(found[0].parameters)
        return found[0] if handed else None

    def _call(self, call: c.Call) -> c.Expr:
        lambdas = [self._find_handed_lambda(arg) for arg in call.args]
        if call.of is not None or not any(lambdas):
            return call
        name = "_with_".join([call.function, *(one.name for one in lambdas if one is not None)])
        if name not in self.made:
            made = self._made(call, lambdas, name)
            if made is None or len(self.made) >= _MAX:
                return call
            self.made[name] = made
        pairs = list(zip(call.args, lambdas, strict=True))
        plain = [arg for arg, one in pairs if one is None]
        handed = (arg for arg, one in pairs if one is not None and isinstance(arg, c.Call))
        captured = [each for call in handed for each in call.args]
        return replace(call, function=name, args=(*plain, *captured))

    def _made(self, call: c.Call, lambdas: list[c.Function | None], name: str) -> c.Function | None:
        """The callee for just these lambdas; None where that is not clear."""
        count = len(call.args)
        named = [f for f in self.source.functions if f.name == call.function and not f.is_kernel]
        fitting = [f for f in named if len(f.parameters) == count]
        if len(fitting) != 1:
            return None
        callee, body = fitting[0], fitting[0].body
        types = [parameter.name for parameter in callee.template if parameter.kind == "type"]
        taken = {p.name for p in callee.parameters} | {*walk.declared_in(body), *walk.names_in(body)}
        parameters = [p for p, one in zip(callee.parameters, lambdas, strict=True) if one is None]
        gone: set[str] = set()
        for parameter, arg, one in zip(callee.parameters, call.args, lambdas, strict=True):
            if one is None or not isinstance(arg, c.Call):
                continue
            base = parameter.type.base
            explicit = [p.name for p in callee.template[: len(call.template_args)]]
            if base not in types or base in explicit or parameter.type.pointers:
                return None
            gone.add(base)
            held = self._captured_parameters(one, arg)
            if held is None or parameter.name in walk.assigned_in(body):
                return None
            names: list[c.Expr] = []
            for each in held:
                fresh = walk.fresh_name(each.name, taken)
                parameters.append(replace(each, name=fresh))
                names.append(c.Name(fresh))
            body = _substitute_lambda_calls(body, parameter.name, replace(arg, args=tuple(names)))
            if parameter.name in walk.names_in(body):
                return None
        if _names_a_type(body, gone) or any(
            gone.intersection(identifiers_in(p.type.base)) for p in parameters
        ):
            return None
        template = tuple(p for p in callee.template if p.name not in gone)
        return replace(
            callee, name=name, template=template, parameters=tuple(parameters), body=self.body(body), text=""
        )

    def _captured_parameters(self, function: c.Function, handed: c.Call) -> tuple[c.Parameter, ...] | None:
        """What the lambda captures, under the types that it has there."""
        try:
            arguments = complete_arguments(function.template, handed.template_args, self.source)
            known = specialise_function(function, template_meaning(function.template, arguments, self.source))
        except c.Unreadable:
            return None
        count = len(handed.args)
        return known.parameters[len(known.parameters) - count :] if count else ()


def _substitute_lambda_calls(body: tuple[c.Stmt, ...], name: str, handed: c.Call) -> tuple[c.Stmt, ...]:
    """With the lambda's function in place of the parameter: where it is called, and where it is handed on."""

    def node(expr: c.Expr) -> c.Expr:
        match expr:
            case c.Call(function="operator()", args=args, of=c.Name(name=called)) if called == name:
                return replace(handed, args=(*args, *handed.args))
            case c.Call(args=(c.Name(name=called),)) if called == name and expr.function in _FORWARD:
                return handed
            case c.Call(args=args):
                given = tuple([handed if arg == c.Name(name) else arg for arg in args])
                return expr if given == args else replace(expr, args=given)
        return expr

    return walk.map_nodes(body, node)


def _names_a_type(body: tuple[c.Stmt, ...], types: set[str]) -> bool:
    """Whether one of the types is named in it."""
    for node in walk.nodes_in(body):
        stated = getattr(node, "type", None)
        texts = [stated.base] if isinstance(stated, c.Type) else []
        texts += node.template_args if isinstance(node, c.Call) else ()
        texts += [node.text] if isinstance(node, c.Opaque | c.Verbatim) else []
        if any(types.intersection(identifiers_in(text)) for text in texts):
            return True
    return False


# -- Bits of local arrays taken as another type: `memcpy` between one and a variable as an assignment;
# arrays that are accessed as wider words aligned for it.
#
#     int4 bits; memcpy(&bits, &cells, sizeof(bits));    ->    bits = ((int4 *)cells)[0];
#     half cells[8]; ((uint4 *)cells)[0] = bits;         ->    alignas(16) half cells[8]; ...
#
# A variable that is taken apart (`objects`) has lost the alignment of its record, and `memcpy` asks for none.


_COPIES = frozenset({"memcpy", "__builtin_memcpy", "std::memcpy"})


@dataclass(frozen=True)
class LocalStorage:
    """A variable of the function: one value, or an array of `count` of them."""

    base: str
    count: int  # 0: no array

    @property
    def bytes(self) -> int | None:
        size = byte_size(self.base)
        return None if size is None else size * max(1, self.count)


def with_bit_copies(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    storage = _find_local_storage(body)

    def stmt(one: c.Stmt) -> c.Stmt:
        match one:
            case c.Evaluate(expr=c.Call(function=name, args=(to, of, size), of=None)) if name in _COPIES:
                done = _copy_as_assignment(to, of, int_value(fold_expr(size)), storage)
                return one if done is None else replace(one, expr=done)
        return one

    return _align_accessed_arrays(walk.map_statements(body, on_stmt=stmt), storage)


def _find_local_storage(body: tuple[c.Stmt, ...]) -> dict[str, LocalStorage]:
    """By name, where a name means one thing only."""
    found: dict[str, LocalStorage] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Declare):
            continue
        counts = [int_value(fold_expr(dim)) for dim in node.dims]
        plain = not node.type.is_pointer and not node.type.reference and not node.storage and len(counts) < 2
        known = LocalStorage(node.type.base, (counts[0] or 0) if counts else 0)
        if not plain or None in counts or node.name in found:
            known = LocalStorage("", 0)
        found[node.name] = known
    return {name: one for name, one in found.items() if one.bytes is not None}


def _copy_as_assignment(
    to: c.Expr, of: c.Expr, size: int | None, storage: Mapping[str, LocalStorage]
) -> c.Expr | None:
    names = _copied_name(to), _copied_name(of)
    target, value = (storage.get(name) for name in names)
    if size is None or target is None or value is None or size > min(target.bytes or 0, value.bytes or 0):
        return None
    if bool(target.count) == bool(value.count):  # of two single values one may be no variable later on
        return None
    word = value if target.count else target
    if word.bytes != size:
        return None
    sides = [
        c.Index(c.Cast(c.Type(word.base, 1), c.Name(name)), integer_literal(0)) if one.count else c.Name(name)
        for name, one in zip(names, (target, value), strict=True)
    ]
    return c.Assign("=", sides[0], sides[1])


def _copied_name(place: c.Expr) -> str:
    if isinstance(place, c.Cast) and place.type == c.Type("void", 1):
        place = place.value
    if isinstance(place, c.Unary) and place.op == "&":
        place = place.operand
    return place.name if isinstance(place, c.Name) else ""


def _align_accessed_arrays(
    body: tuple[c.Stmt, ...], storage: Mapping[str, LocalStorage]
) -> tuple[c.Stmt, ...]:
    """Arrays aligned to the widest word that they are accessed as."""
    widest: dict[str, int] = {}
    for node in walk.nodes_in(body):
        match node:
            case c.Cast(type=type_, value=c.Name(name=name)) if type_.pointers == 1 and name in storage:
                element, word = byte_size(storage[name].base), byte_size(type_.base)
                if storage[name].count and element is not None and word is not None and word > element:
                    widest[name] = max(word, widest.get(name, 0))

    def declared(declare: c.Declare) -> c.Declare:
        if declare.name not in widest or declare.align is not None:
            return declare
        return replace(declare, align=integer_literal(widest[declare.name]))

    return walk.map_statements(body, on_stmt=lambda s: walk.map_declared(s, declared)) if widest else body


_MAX_STACK = 24
_WORD = re.compile(r"[A-Za-z_]\w*")
_MAX_CALLS = 2000
EXCHANGES = frozenset(f"__shfl{way}{end}" for way in ("", "_xor", "_down", "_up") for end in ("", "_sync"))


@dataclass(frozen=True)
class Inlined:
    function: c.Function
    notes: tuple[str, ...]  # calls that had to stay, with the reason and the line
    source: c.Source  # without functions that bear a library's name and take a record of the file


def inline_calls(
    function: c.Function, source: c.Source, obstacles: list[tuple[int, str]] | None = None
) -> Inlined:
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
        result = replace(result, body=simplify_statements(result.body))
    elif work.notes and obstacles is None and work.objects.used_whole(result):
        raise c.Unreadable(work.notes[0])  # a call that stays takes an object, which is no variable by now
    result = replace(result, body=fold_statements(walk.map_nodes(result.body, _as_text)))
    result = replace(result, body=with_bit_copies(_one_by_one(_with_integers_written(result))))
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
            functions = [
                f for f in source.functions if f.name == call.function and call.function not in called
            ]
            called.add(call.function)
            pending += functions
            left += [f.text or print_function(f) for f in functions]
    if any(word in names for text in left for word in _WORD.findall(text)):
        return source
    return replace(source, preamble=tuple(text for text in source.preamble if text not in source.of_records))


def _with_integers_written(function: c.Function) -> tuple[c.Stmt, ...]:
    """`auto i = blockIdx.x * blockDim.x`, `auto p = (float4 *)x` under the type that it has."""
    types = declared_types(function)

    def written(declare: c.Declare) -> c.Declare:
        known = types.get(declare.name)
        match declare:
            case c.Declare(type=c.Type(base="auto", reference=False) as stated, init=c.Cast(type=cast)):
                if cast.pointers and stated.pointers <= 1:
                    return replace(declare, type=replace(cast, restrict=stated.restrict))
        if declare.type.base != "auto" or known is None or not is_integer(known) or declare.type.reference:
            return declare
        return replace(declare, type=replace(declare.type, base=known.base))

    return walk.map_statements(function.body, on_stmt=lambda stmt: walk.map_declared(stmt, written))


def _one_by_one(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`a = b = x` as `b = x; a = b`, where b is a variable; without assertions that hold."""

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        match one:
            case c.Evaluate(expr=c.Call(function="assert", args=(test,))) if int_value(fold_expr(test)):
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
        function = mark_const_calls(function, self.objects.differing, self._source)
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

    def _finish_statement(self, stmt: c.Stmt) -> tuple[c.Stmt, ...]:
        return self.objects.finished(stmt) if self.objects.active else (stmt,)

    def _statement(self, stmt: c.Stmt, stack: tuple[str, ...], d: int) -> tuple[c.Stmt, ...]:
        before: list[c.Stmt] = []

        def hoisted(expr: c.Expr) -> c.Expr:
            return self._hoist_calls(expr, stmt, stack, before)

        block = partial(self.block, stack=stack, depth=d)
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
                return (*before, *placed.body, *self._finish_statement(done))
        if isinstance(stmt, c.Evaluate) and self._does_nothing(stmt.expr):
            return ()
        if (branches := self._as_branches(stmt)) is not None:
            return tuple(part for one in branches for part in self._statement(one, stack, d + 1))
        done = walk.map_parts(stmt, hoisted, block)
        return (*before, *self._finish_statement(done))

    def _does_nothing(self, expr: c.Expr) -> bool:
        """A call for its effects, of a function that has none: what is left of it under an #if."""
        if not isinstance(expr, c.Call) or not all(is_pure(arg) for arg in expr.args):
            return False
        functions = own_functions(expr, self._source)
        return bool(functions) and not any(f.body for f in functions)

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
        found = resolve_call(call, self._types, self._source)
        return None if isinstance(found, str) or found.result.base == "auto" else found.result

    def _hoist_calls(
        self, expr: c.Expr, stmt: c.Stmt, stack: tuple[str, ...], before: list[c.Stmt]
    ) -> c.Expr:
        """The expression with values in place of calls; the statements that compute these go to `before`."""
        if not any(self._is_wanted(call) for call in walk.calls_in(expr)):
            return expr
        sometimes = _sometimes_evaluated(expr)

        def node(part: c.Expr) -> c.Expr:
            if not isinstance(part, c.Call) or not self._is_wanted(part):
                return part
            short = self._short(part, stack)
            if short is not None:
                return self._expand_short_call(short, part, stmt, stack, before)
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

    def _expand_short_call(
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
        return self._hoist_calls(done, stmt, inner, before)

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
            functions = own_functions(call, self._source)
            self._wanted[call.function] = any(
                side_effect(f, self._source) or not f.text or _is_index_arithmetic(f) or uses_library(f)
                for f in functions
            )
        if self._wanted[call.function]:
            return bool(own_functions(call, self._source))
        return self._is_index_call(call)

    def _is_index_call(self, call: c.Call) -> bool:
        """Whether it means a template that is index arithmetic for these arguments, or joins lanes."""
        functions = own_functions(call, self._source)
        inside = (inner.function for arg in call.args for inner in walk.calls_in(arg))
        if functions and not EXCHANGES.isdisjoint(inside):
            joins = resolve_call(call, self._types, self._source)
            return not isinstance(joins, str) and _is_expression(joins)
        if len(functions) != 1 or not functions[0].template or not _is_expression(functions[0]):
            return False
        function = resolve_call(call, self._types, self._source)
        return not isinstance(function, str) and _is_index_arithmetic(replace(function, template=()))

    def note_other_calls(self, function: c.Function) -> None:
        """Calls of the file's functions with a number of arguments that none of them takes: defaults."""
        names = {f.name for f in self._source.functions if not f.is_kernel}
        for stmt in walk.statements_in(function.body):
            for part in walk.child_nodes(stmt):
                for call in walk.calls_in(part) if isinstance(part, c.Expr) else ():
                    if call.function in names and not own_functions(call, self._source):
                        self._note(call, f"none of that name takes {len(call.args)} arguments", stmt.line)

    def _place(self, call: c.Call, stmt: c.Stmt, stack: tuple[str, ...], updated: str = "") -> Placed | None:
        self._calls += 1
        try:
            if call.function in stack:
                raise c.Unreadable("it calls itself")
            if len(stack) > _MAX_STACK:
                raise c.Unreadable("functions call each other too deep")
            if self._calls > _MAX_CALLS:
                raise c.Unreadable(f"more than {_MAX_CALLS} calls were put in place already")
            function = self._resolve_callee(call)
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

    def _resolve_callee(self, call: c.Call) -> c.Function | str:
        function = resolve_call(call, self._types, self._source)
        if isinstance(function, str):
            return function
        function = with_known_cooperation(function)
        function = with_defaults(function, self._source)
        if not self.objects.active:
            return function
        function = self.objects.instances.settled(function)
        taken = {parameter.name for parameter in function.parameters}
        function = replace(function, body=with_unique_names(function.body, taken))
        return mark_const_calls(function, self.objects.differing, self._source)

    def _short(self, call: c.Call, stack: tuple[str, ...]) -> c.Expr | None:
        """The call as an expression, where the function is only one itself and calls none in turn."""
        if call.function in stack:
            return None
        function = self._resolve_callee(call)
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


# -- Second names for variables and elements, `float4 &here = out[i];`, as what they refer to.
#
# A reference that may be written through has just the type of what it names, so the two are one. What says
# which element it is must stay as it was when the reference was made.


def without_references(function: c.Function) -> c.Function:
    """Those that cannot be said so stay."""
    if not any(isinstance(node, c.Declare) and node.type.reference for node in walk.nodes_in(function.body)):
        return function
    body = with_unique_names(function.body, {parameter.name for parameter in function.parameters})
    changed, stored = walk.assigned_in(body), walk.stored_in(body)
    types = declared_types(replace(function, body=body))
    texts = {name for n in walk.nodes_in(body) if isinstance(n, c.Opaque | c.Verbatim) for name in n.names}
    places: dict[str, c.Expr] = {}

    def named(node: c.Expr) -> c.Expr:  # one name is one variable by now: nothing is caught
        return places.get(node.name, node) if isinstance(node, c.Name) else node

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        if not isinstance(one, c.Declare) or not _is_second_name(one) or one.init is None:
            return one
        place = walk.map_expr(one.init, named)
        if one.name in texts or not _is_stable_place(place, changed):
            return one
        if one.type.const and not _is_needed(one, place, types, changed | stored):
            return one
        places[one.name] = place
        return ()

    body = walk.map_statements(body, on_stmt=stmt)
    return replace(function, body=walk.map_nodes(body, named)) if places else function


def _is_second_name(declare: c.Declare) -> bool:
    type_ = declare.type
    return type_.reference and not type_.pointers and not declare.is_array


def _is_needed(declare: c.Declare, place: c.Expr, types: Types, changed: frozenset[str]) -> bool:
    """Of a const one: whether what it names may change, and has its type. Else it is as good as a copy."""
    named = type_of(place, types)
    same = named is not None and not named.pointers and declare.type.base in ("auto", named.base)
    return same and walk.root_variable(place)[0] in changed


def _is_stable_place(place: c.Expr, changed: frozenset[str]) -> bool:
    """Whether it is one and the same place from here on."""
    match place:
        case c.Name():
            return True
        case c.Member(base=base, arrow=False):
            return _is_stable_place(base, changed)
        case c.Index(base=base, index=index):
            which = (base, index) if not isinstance(base, c.Index) else (index,)
            is_fixed = all(is_pure(part) and not walk.names_in(part) & changed for part in which)
            return is_fixed and (not isinstance(base, c.Index) or _is_stable_place(base, changed))
    return False


# -- Reasons in the words of the source: names that were made on the way there as what they stand for.
#
# `q_a` is the field `q.a` of an object that was taken apart, `index_2` a variable `index` of which there are
# several, `lambda_sum_8` the lambda that `sum` is set to. What the source says itself stays as it is.


_NUMBERED = re.compile(r"(?P<name>.+?)(?:_\d+)+")
_LAMBDA = re.compile(r"lambda_(?P<name>\w*)_\d+")


def find_identifiers(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def in_words_of(source: frozenset[str], reason: str) -> str:
    """`source`: the names that the user has written."""

    def said(match: re.Match[str]) -> str:
        name = match[0]
        return name if name in source or "_" not in name else _original_name(name, source) or name

    return _WORD.sub(said, reason)


def _original_name(name: str, source: frozenset[str]) -> str:
    if (made := _LAMBDA.fullmatch(name)) is not None:
        return f"the lambda {made['name']}" if made["name"] in source else "a lambda"
    numbered = _NUMBERED.fullmatch(name)
    plain = numbered["name"] if numbered is not None else name
    if plain in source:
        return plain
    for at in (found.start() for found in re.finditer("_", plain)):
        of, field = plain[:at], plain[at + 1 :]
        owner = of if of in source else _original_name(of, source) if "_" in of else ""
        if owner and field in source:
            return f"{owner}.{field}"
    return ""


# -- Assembly in a kernel that only computes, as a helper: one value of registers.
#
#     asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
#                                         ->  r = fma_rn_f16x2(a[i], b[i]);
#
# Compilers take an operand only where its type has the kind and the size of its constraint, so that nothing
# is converted on the way. What does more than compute, or sets several values, stays as it is.


_TYPES = {"f": "float", "r": "unsigned int", "h": "unsigned short", "l": "unsigned long long", "d": "double"}
_VALUE = re.compile(r'\s*"\s*=?&?([frhld])\s*"\s*\((.*)\)\s*', re.DOTALL)
_CONSTANT = re.compile(r'\s*"\s*n\s*"\s*\(\s*(-?\d+|0[xX][0-9a-fA-F]+)[uU]?\s*\)\s*')
_ADDRESS = re.compile(r"[\[\]]")


def with_helpers(source: c.Source) -> c.Source:
    """The kernels of a source with such assembly as calls, and the helpers ahead of them."""
    if source.language != "cuda" or not any("asm" in f.text for f in source.functions if f.is_kernel):
        return source
    apart = _Apart({word for f in source.functions for word in re.findall(r"\w+", f.text)})
    changed = [apart.kernel(f) if f.is_kernel else f for f in source.functions]
    return replace(source, functions=(*apart.helpers.values(), *changed)) if apart.helpers else source


@dataclass
class _Apart:
    taken: set[str]
    helpers: dict[str, c.Function] = field(default_factory=dict)  # by what follows their name

    def kernel(self, function: c.Function) -> c.Function:
        return replace(function, body=walk.map_statements(function.body, on_stmt=self._statement))

    def _statement(self, stmt: c.Stmt) -> c.Stmt:
        if not isinstance(stmt, c.Verbatim) or not is_assembly(stmt.text):
            return stmt
        try:
            found = self._call(stmt.text)
        except (NotAssembly, c.Unreadable):
            return stmt
        return c.Evaluate(found, line=stmt.line, comments=stmt.comments) if found is not None else stmt

    def _call(self, text: str) -> c.Expr | None:
        read, sections = read_assembly(text), sections_of(text)
        if of_assembly(text) or not read.instructions or len(sections) not in (2, 3):
            return None
        template, outputs, inputs = (*sections, "")[:3]
        if _ADDRESS.search(template):  # an address, or an operand by name
            return None
        target = _VALUE.fullmatch(outputs)
        if target is None or "=" not in outputs.partition("(")[0] or len(_split_asm_operands(outputs)) != 1:
            return None
        place = read_expression(target[2])
        if not isinstance(place, c.Name | c.Member | c.Index):
            return None
        names, given, kept = list[str](), list[c.Expr](), list[str]()
        for number, operand in enumerate(_split_asm_operands(inputs)):
            value, constant = _VALUE.fullmatch(operand), _CONSTANT.fullmatch(operand)
            if constant is not None:
                kept.append(f'"n"({constant[1]})')
            elif value is None or "=" in operand.partition("(")[0] or value[1] == "l":
                return None
            else:
                names.append(f"{_TYPES[value[1]]} in_{number}")
                given.append(read_expression(value[2]))
                kept.append(f'"{value[1]}"(in_{number})')
        made = (template.strip(), target[1], names, kept, "volatile" if read.volatile else "")
        name = self._helper(read.instructions[-1].opcode, *made)
        return c.Assign("=", place, c.Call(name, tuple(given)))

    def _helper(
        self, opcode: str, template: str, result: str, names: Sequence[str], kept: Sequence[str], word: str
    ) -> str:
        rest = (
            f"({', '.join(names)})\n{{\n    {_TYPES[result]} out;\n"
            f'    asm {word}({template} : "={result}"(out) : {", ".join(kept)});\n    return out;\n}}'
        )
        if rest not in self.helpers:
            name = walk.numbered_name(re.sub(r"\W+", "_", opcode), self.taken)
            self.taken.add(name)
            text = f"__device__ __forceinline__ {_TYPES[result]} {name}{rest}"
            (self.helpers[rest],) = read_source_tree(text, "cuda").functions
        return self.helpers[rest].name


def _split_asm_operands(operands: str) -> list[str]:
    """Apart at commas outside strings and brackets."""
    plain, found, depth, start = blank_elements(operands, ("string",)), list[str](), 0, 0
    for at, sign in enumerate(plain):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(operands[start:at])
            start = at + 1
    return [part for part in (*found, operands[start:]) if part.strip()]
