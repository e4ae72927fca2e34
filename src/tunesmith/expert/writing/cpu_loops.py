"""One loop over a task's elements in OpenCL C for a CPU: vectors, then what is left.

A body on vectors is the same statements, with floats that differ between lanes made OpenCL vectors. Compilers
for CPUs turn arithmetic on vector types into vector instructions; a loop over lanes with a call in it they
leave alone. What has no vector form (integers made of the index, inner loops, branches with more than one
assignment) is refused, and the loop stays scalar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import code
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import Total
from tunesmith.expert.writing.buffers import LoopPlan
from tunesmith.expert.writing.comments import at_line
from tunesmith.expert.writing.fast_math import FastMath, used_functions
from tunesmith.expert.writing.loops import ElementLoops, unrolled
from tunesmith.expert.writing.naming import Names, Unwritable
from tunesmith.expert.writing.nest import items, nest
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.team_totals import CpuTotals, Folds, assigned, joined, started
from tunesmith.expert.writing.texts import vectors

_SAME_FOR_VECTORS = frozenset(
    """
    exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan sinh cosh tanh asin acos atan
    erf erfc fabs fmax fmin fma mad pow powr fmod floor ceil round rint trunc copysign clamp min max mix
    native_exp native_log native_sqrt native_rsqrt native_divide native_recip native_sin native_cos half_exp
    maxmag minmag hypot atan2 degrees radians sign step
    """.split()  # noqa: SIM905 - as a text it can be read
)
_TESTS = frozenset(("isnan", "isinf", "isfinite", "isnormal", "signbit"))
_COMPARE = frozenset(("<", ">", "<=", ">=", "==", "!="))
_MOST_HELPERS = 16


class NoVector(Exception):
    """Why a body has no vector form."""


@dataclass(frozen=True)
class _LaneValue:
    expr: c.Expr
    kind: str  # "one": the same for all lanes; "vector"; "mask": the truth of a comparison of vectors


@dataclass
class Lift:
    """`vec`: the vector type; `loads`: accesses -> their vectors; `functions`: the source's own, by name."""

    vec: str
    names: Names
    functions: Mapping[str, c.Function]
    fast: FastMath  # its macros take vectors as well
    helpers: dict[str, str] = field(default_factory=dict)  # the source's function -> its vector form
    written: list[c.Function] = field(default_factory=list)

    def helper(self, name: str) -> str:
        """The vector form of a function of floats, made where it is first asked for."""
        if name in self.helpers:
            return self.helpers[name]
        function = self.functions[name]
        floats = all(p.type.base == "float" and not p.type.is_pointer for p in function.parameters)
        if not floats or function.result.base != "float" or len(self.helpers) >= _MOST_HELPERS:
            raise NoVector(f"{name} is no function of floats")
        self.helpers[name] = fresh = self.names.fresh(f"{name}_of_vector")
        vector = c.Type(self.vec)
        parameters = tuple(c.Parameter(vector, p.name) for p in function.parameters)
        inner = _VectorBody(self, "", {}, {p.name for p in parameters})
        stmts, _ = self.fast.statements(function.body, {p.name: p.type for p in function.parameters})
        body = inner.block(stmts)
        if sum(isinstance(stmt, c.Return) for stmt in body) != 1 or not isinstance(body[-1], c.Return):
            raise NoVector(f"{name} returns in several places")
        self.written.append(c.Function(fresh, parameters, body, vector))
        return fresh


class _VectorBody:
    """`places`: accesses -> vector variables, or scalars of the first lane; `vectors`: the totals."""

    def __init__(self, lift: Lift, index: str, places: Mapping[c.Expr, c.Expr], vectors: set[str]) -> None:
        self._lift, self._index, self._places = lift, index, places
        self._vectors = vectors
        self._of_index: set[str] = {index}  # integers that differ from lane to lane: for indices alone

    def block(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            done += self._statement(stmt)
        return tuple(done)

    def _statement(self, stmt: c.Stmt) -> list[c.Stmt]:
        match stmt:
            case c.Declare(type=type_, init=init) if (
                not stmt.is_array and not type_.is_pointer and not stmt.storage
            ):
                if is_integer(type_):
                    if init is not None and not self._of_index.isdisjoint(names_in(init)):
                        self._of_index.add(stmt.name)
                        return []
                    return [stmt if init is None else replace(stmt, init=self._one(init))]
                if type_.base != "float":
                    raise NoVector(f"{stmt.name} is a {type_.base}")
                value = None if init is None else self._vector(init)
                self._vectors.add(stmt.name)
                return [replace(stmt, type=c.Type(self._lift.vec, const=type_.const), init=value)]
            case c.Evaluate(expr=c.Assign() as assign):
                return [replace(stmt, expr=self._assign(assign))]
            case c.Scope(body=body):
                return [replace(stmt, body=self.block(body))]
            case c.Return(value=value) if value is not None and not self._index:
                return [replace(stmt, value=self._vector(value))]
            case c.If(condition=condition, then=(c.Evaluate(expr=c.Assign(op="=") as only),), otherwise=()):
                chosen = c.Ternary(condition, only.value, only.target)
                return [c.Evaluate(self._assign(c.Assign("=", only.target, chosen)), stmt.line)]
            case _:
                raise NoVector("it has a statement that is no declaration and no assignment")

    def _assign(self, assign: c.Assign) -> c.Expr:
        target = assign.target
        if target not in self._places and not (isinstance(target, c.Name) and target.name in self._vectors):
            raise NoVector("it assigns to something that is no vector")
        return c.Assign(assign.op, self._places.get(target, target), self._vector(assign.value))

    # -- expressions --------------------------------------------------------------------------------

    def _vector(self, expr: c.Expr) -> c.Expr:
        return self._widened(self._value(expr))

    def _widened(self, value: _LaneValue) -> c.Expr:
        is_vector = self._no_mask(value) == "vector"
        return value.expr if is_vector else c.Cast(c.Type(self._lift.vec), value.expr)

    def _one(self, expr: c.Expr) -> c.Expr:
        value = self._value(expr)
        if value.kind != "one":
            raise NoVector("it makes an integer of a float")
        return value.expr

    def _value(self, expr: c.Expr) -> _LaneValue:
        if expr in self._places:
            place = self._places[expr]
            return _LaneValue(place, "vector" if isinstance(place, c.Name) else "one")
        match expr:
            case c.Number(value=float(), text=text) if text[-1:] not in "fF":
                raise NoVector(f"{text} is a double")
            case c.Number():
                return _LaneValue(expr, "one")
            case c.Name(name=name):
                if name in self._of_index:
                    raise NoVector("it computes with the index")
                return _LaneValue(expr, "vector" if name in self._vectors else "one")
            case c.Unary(op="-" | "+", operand=operand):
                value = self._value(operand)
                return _LaneValue(replace(expr, operand=value.expr), self._no_mask(value))
            case c.Binary(op=op, left=left, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case c.Ternary(condition=condition, yes=yes, no=no):
                return self._ternary(self._value(condition), self._value(yes), self._value(no))
            case c.Call():
                return self._call(expr)
            case c.Cast(type=type_, value=inner):
                value = self._value(inner)
                if value.kind == "one":
                    return _LaneValue(c.Cast(type_, value.expr), "one")
                if type_.base != "float" or type_.is_pointer:
                    raise NoVector(f"it converts to {type_.base}")
                return value
            case c.Index() if self._of_index.isdisjoint(names_in(expr)) and self._vectors.isdisjoint(
                names_in(expr)
            ):
                return _LaneValue(expr, "one")
            case _:
                raise NoVector("it has an expression without a vector form")

    def _no_mask(self, value: _LaneValue) -> str:
        if value.kind == "mask":
            raise NoVector("it uses a comparison as a number")
        return value.kind

    def _binary(self, op: str, left: _LaneValue, right: _LaneValue) -> _LaneValue:
        kinds = {left.kind, right.kind}
        if kinds == {"one"}:
            return _LaneValue(c.Binary(op, left.expr, right.expr), "one")
        if op in ("&&", "||"):
            if kinds != {"mask"}:
                raise NoVector("it joins conditions of different kinds")
            return _LaneValue(c.Binary(op[0], left.expr, right.expr), "mask")
        if "mask" in kinds or op not in _COMPARE | {"+", "-", "*", "/"}:
            raise NoVector(f"it has no vector form of {op}")
        return _LaneValue(c.Binary(op, left.expr, right.expr), "mask" if op in _COMPARE else "vector")

    def _ternary(self, condition: _LaneValue, yes: _LaneValue, no: _LaneValue) -> _LaneValue:
        kinds = {yes.kind, no.kind}
        if condition.kind == "vector":
            raise NoVector("it uses a float as a condition")
        if condition.kind == "one" and kinds == {"one"}:
            return _LaneValue(c.Ternary(condition.expr, yes.expr, no.expr), "one")
        return _LaneValue(c.Ternary(condition.expr, self._widened(yes), self._widened(no)), "vector")

    def _call(self, call: c.Call) -> _LaneValue:
        values = [self._value(arg) for arg in call.args]
        if all(value.kind == "one" for value in values):
            return _LaneValue(c.Call(call.function, tuple(v.expr for v in values), call.template_args), "one")
        if call.function in _TESTS and call.function not in self._lift.functions:
            return _LaneValue(c.Call(call.function, (values[0].expr,)), "mask")
        function = call.function
        if function in self._lift.functions:
            function = self._lift.helper(function)
        elif function not in _SAME_FOR_VECTORS | self._lift.fast.all_names:
            raise NoVector(f"{function} has no vector form")
        return _LaneValue(c.Call(function, tuple(self._widened(v) for v in values)), "vector")


# -- the loop ----------------------------------------------------------------------------------------


class CpuLoops(ElementLoops):
    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        if plan.kernel.staged:
            raise Unwritable(
                "a loop leaves values for a later one in local memory, which a CPU has no use for"
            )
        if any(value not in (1, 2, 4, 8, 16) for value in plan.knobs.vector.values):
            raise Unwritable("OpenCL has vectors of 2, 4, 8 and 16 elements")
        self.totals: CpuTotals = CpuTotals(plan)
        functions = {function.name: function for function in used_functions(plan.kernel)}
        self._lift = Lift(plan.word("vec"), plan.names, functions, fast)
        self._uses_vectors, self._folds = False, Folds(plan, self._lift.vec)

    def before(self) -> list[str]:
        return [vectors(self._plan, self._fast.fast)] if self._uses_vectors else []

    def functions(self) -> tuple[c.Function, ...]:
        return (*self._lift.written, *self._folds.functions())

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        before, end = self._end(loop)
        done = list(before)
        body, inverses = self._fast_body(loop)
        for total in each.totals:
            done += at_line(started(total, scope), self._plan.lines.get(total.name, 0))
            scope.add(total.name)
        vectors = self._vectors(loop, body)
        if vectors is None:
            first = self._first(loop, c.Name(self.lane), self.words.expr("LANES"), type_)
            turns = self._scalar(loop, first, end)
        else:
            for name, divisor in inverses:
                done += code("const float inverse = 1.0f / by;", inverse=name, by=divisor)
            turns = self._vector_loop(loop, vectors, end)
        return (*done, *at_line(turns, each.line), *self.totals.reduce(loop, self.lane))

    # -- one element at a time ----------------------------------------------------------------------

    def _scalar(self, loop: LoopPlan, first: c.Expr, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        own = self.words.code("const T i = base;", T=each.type, i=each.index)
        body = (*own, *unrolled(each.body, self._plan))
        return self._turns(type_, first, end, self.words.expr("LANES")).over(body)

    # -- vectors ------------------------------------------------------------------------------------

    def _vectors(self, loop: LoopPlan, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...] | None:
        """The body on vectors; None where it has no such form, or nothing to load or store as vectors."""
        if self._plan.knobs.vector.most == 1 or not any(pack.width for pack in loop.packs):
            return None
        places: dict[c.Expr, c.Expr] = {}
        for pack in loop.packs:
            if pack.width > 1 or (pack.element or self._plan.arrays[pack.array]).base != "float":
                return None
            first = self._place(pack, loop, self._here)
            vector = c.Name(loop.name(pack)) if pack.width else first
            places |= {node: vector for node, _ in pack.sites}
        if any(total.type.base != "float" for total in loop.each.totals):
            return None
        totals = {total.name for total in loop.each.totals}
        try:
            lifted = _VectorBody(self._lift, loop.each.index, places, totals).block(body)
        except NoVector:
            return None
        self._uses_vectors = True
        return lifted

    def _vector_loop(self, loop: LoopPlan, vectors: tuple[c.Stmt, ...], end: c.Expr) -> tuple[c.Stmt, ...]:
        w, each, type_ = self.words, loop.each, self._plan.index_type(loop)
        parts = {total.name: self._plan.names.fresh(f"{total.name}_parts") for total in each.totals}
        count, done = w.expr("ITEMS"), list[c.Stmt]()
        for total in each.totals:
            array = c.Name(parts[total.name])
            begun = w.code(
                "array[k] = start;", array=array, start=c.Cast(c.Type(self._lift.vec), total.start)
            )
            done.append(c.Declare(c.Type(self._lift.vec), array.name, dims=(count,)))
            done += items(self._item, count).over(begun)
        own: dict[str, c.Expr] = {name: w.expr("a[k]", a=array) for name, array in parts.items()}
        stores = [self._store(pack, loop) for pack in loop.packs if pack.stores]
        body = (
            *(self._load(pack, loop) for pack in loop.packs if pack.width),
            *unrolled(substitute(vectors, own), self._plan),
            *stores,
        )
        first, chunk = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_), w.expr("CHUNK")
        axes = (self._turns(type_, first, end, chunk), self._items(loop, end, "ITEMS"))
        rest = self._scalar(loop, self._rest(loop, end, type_), end)
        return (
            *done,
            *nest(axes, body),
            *w.when("VEC > 1", rest, said="what is left of the range"),
            *(stmt for total in each.totals for stmt in self._join(total, parts[total.name])),
        )

    def _join(self, total: Total, parts: str) -> tuple[c.Stmt, ...]:
        """Vectors to one value, in pairs: a chain of additions would add up their roundings."""
        near, far = (self.words.expr(text, p=parts) for text in ("p[k]", "p[k + apart]"))
        whole = self._plan.names.fresh(f"{total.name}_whole")
        text = """#pragma unroll
            for (int apart = 1; apart < ITEMS; apart *= 2) {
                #pragma unroll
                for (int k = 0; k + apart < ITEMS; k += 2 * apart)
                    near = pair;
            }
            const float whole = folded(p[0]);"""
        pair, folded = joined(total, near, far), self._folds.name(total)
        done = self.words.code(text, near=near, pair=pair, whole=whole, folded=folded, p=parts)
        return (*done, assigned(total.name, joined(total, c.Name(total.name), c.Name(whole))))

    def _load(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        value = self.words.expr("LOAD(at)", at=self._address(pack, loop)) if pack.loads else None
        return c.Declare(c.Type(self._lift.vec, const=pack.loads and not pack.stores), loop.name(pack), value)

    def _store(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        value, at = c.Name(loop.name(pack)), self._address(pack, loop)
        return c.Evaluate(self.words.expr("STORE(value, at)", value=value, at=at))
