"""The body of a loop on OpenCL's vectors: the same statements, with what differs between lanes as vectors.

Floats are vectors of floats; integers of up to 32 bits, which C computes with as `int`, are vectors of ints,
narrowed where they are stored or cast. Loops that count the same for all lanes stay loops, and a branch that
all of them take stays one; a branch with one assignment is a choice. What has no such form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tunesmith.expert.read.accesses import element_type, moved_by, place_of
from tunesmith.expert.read.model import Total
from tunesmith.expert.write.buffers import LoopPlan
from tunesmith.expert.write.fast_math import FastMath, known_types, used_functions
from tunesmith.expert.write.given import Names, Unwritable, at_line, item_axis, nest_loops
from tunesmith.expert.write.loops import ElementLoops, add_unroll_pragmas, vector_macros_text
from tunesmith.expert.write.packs import Pack
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.expert.write.totals import CpuTotals, Folds, assign_to_name, combine_totals, start_total
from tunesmith.source import tree as c
from tunesmith.source.snippets import parse_snippet
from tunesmith.source.substitution import substitute
from tunesmith.source.types import Types, is_integer, type_of
from tunesmith.source.walk import assigned_in, calls_in, declared_in, expressions_in, names_in

# -- Words for OpenCL's vectors: types, loads and stores, conversions, what is done to all lanes at once.
#
# A word gets its macro where it is first asked for; `texts` defines those that were.


# Integers whose values are those of an `int` -> OpenCL's word for vectors of them.
INTEGER_WORDS = {
    "int": "int", "unsigned char": "uchar", "uchar": "uchar", "char": "char", "signed char": "char",
    "unsigned short": "ushort", "ushort": "ushort", "short": "short",
}  # fmt: skip


class NoVector(Exception):
    """Why a body has no vector form."""


def has_vectors(base: str) -> bool:
    """Whether elements of the type are known as vectors."""
    return base == "float" or base in INTEGER_WORDS


@dataclass
class VectorWords:
    """`vec`, `ivec`: the vector types; `load`: the macro that loads floats; `functions`: the source's own, by
    name; `fast`: its macros take vectors as well; `types`: of what bodies name."""

    vec: str
    ivec: str
    load: str
    names: Names
    functions: Mapping[str, c.Function]
    fast: FastMath
    types: Types
    helpers: dict[str, str] = field(default_factory=dict)  # the source's function -> its vector form
    written: list[c.Function] = field(default_factory=list)
    store: str = ""
    conversions: dict[tuple[str, str], str] = field(default_factory=dict)  # word and ending -> macro
    lane_words: dict[str, str] = field(default_factory=dict)  # what is done to the lanes of a vector -> macro
    narrow: dict[str, tuple[str, str]] = field(default_factory=dict)  # word -> macros that load and store it

    def converted(self, word: str, value: c.Expr, ending: str = "") -> c.Expr:
        key = (f"convert_{word}", ending)
        if key not in self.conversions:
            self.conversions[key] = self.names.fresh(f"TO_{word}{ending}".upper())
        return c.Call(self.conversions[key], (value,))

    def moves(self, base: str) -> tuple[str, str]:
        """The macros that load and store vectors of these integers."""
        word = INTEGER_WORDS[base]
        if word not in self.narrow:
            if word != "int":  # the macros convert
                self.converted("int", c.Name(""))
                self.converted(word, c.Name(""))
            self.narrow[word] = (
                self.names.fresh(f"LOAD_{word}".upper()), self.names.fresh(f"STORE_{word}".upper()),
            )  # fmt: skip
        return self.narrow[word]

    def loaded(self, base: str, at: c.Expr) -> c.Expr:
        return c.Call(self.load if base == "float" else self.moves(base)[0], (at,))

    def stored(self, base: str, value: c.Expr, at: c.Expr) -> c.Expr:
        return c.Call(self.store if base == "float" else self.moves(base)[1], (value, at))

    def of_lanes(self, word: Literal["ALL", "ANY", "REVERSED"], value: c.Expr) -> c.Expr:
        if word not in self.lane_words:
            self.lane_words[word] = self.names.fresh(word)
        return c.Call(self.lane_words[word], (value,))

    def vector_of(self, base: str) -> str:
        return self.vec if base == "float" else self.ivec


_SAME_FOR_VECTORS = frozenset(
    """
    exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan sinh cosh tanh asin acos atan
    erf erfc fabs fmax fmin fma mad pow powr fmod floor ceil round rint trunc copysign clamp min max mix
    native_exp native_log native_sqrt native_rsqrt native_divide native_recip native_sin native_cos half_exp
    maxmag minmag hypot atan2 degrees radians sign step
    """.split()  # noqa: SIM905 - as a text it can be read
)
_OF_INTEGERS = frozenset(("min", "max", "clamp"))
_TESTS = frozenset(("isnan", "isinf", "isfinite", "isnormal", "signbit"))
_COMPARE = frozenset(("<", ">", "<=", ">=", "==", "!="))
_FLOAT_SIGNS = frozenset(("+", "-", "*", "/"))
_INTEGER_SIGNS = frozenset(("+", "-", "*", "&", "|", "^", "<<", ">>"))  # no division: a lane may have a 0
_CONVERSION = re.compile(r"convert_(float|int|uchar|char|ushort|short)((?:_sat)?(?:_rt[ezpn])?)")
_MAX_HELPERS = 16


# "one": the same for all lanes; "mask": the truth of a comparison of vectors
_Kind = Literal["one", "floats", "ints", "mask"]


@dataclass(frozen=True)
class _LaneValue:
    expr: c.Expr
    kind: _Kind


@dataclass(frozen=True)
class LaneElement:
    """What an access is in a body: the vector that holds it, or one value for all lanes; of this type."""

    expr: c.Expr
    base: str


@dataclass(frozen=True)
class LanePlaces:
    """`packs`: accesses that are loaded ahead or stored behind; `direct`: arrays, with their types, of which
    neighbours may be loaded and stored on the way.

    `here` is the first lane's index, of the loop's `type`, and `lanes` how many there are."""

    packs: Mapping[c.Expr, LaneElement]
    direct: Mapping[str, c.Type] = field(default_factory=dict)
    here: c.Expr = field(default_factory=lambda: c.Name(""))
    type: str = "int"
    lanes: str = ""


class VectorBody:
    """`vectors`: names that are vectors from the start, the totals, with their types."""

    def __init__(self, lift: VectorWords, index: str, places: LanePlaces, vectors: dict[str, str]) -> None:
        self._lift, self._index, self._places = lift, index, places
        self._vectorize_body = vectors
        self._of_index: set[str] = {index}  # integers that differ from lane to lane: for indices alone
        self._made_of: dict[str, c.Expr] = {}
        self._changed: frozenset[str] = frozenset()
        self._in_branch = False  # where not every lane may come to

    def whole(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        self._changed = assigned_in(tuple(stmts))
        return self.block(stmts)

    def block(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            done += self._statement(stmt)
        return tuple(done)

    def _statement(self, stmt: c.Stmt) -> list[c.Stmt]:
        match stmt:
            case c.Declare(type=type_) if not stmt.is_array and not type_.is_pointer and not stmt.storage:
                return self._declare(stmt)
            case c.Evaluate(expr=c.Assign() as assign):
                return [replace(stmt, expr=self._assign(assign))]
            case c.Scope(body=body):
                return [replace(stmt, body=self.block(body))]
            case c.Return(value=value) if value is not None and not self._index:
                return [replace(stmt, value=self._convert_to_floats(self._value(value)))]
            case c.If(condition=condition) if self._is_uniform(condition):
                then, otherwise = self.block(stmt.then), self.block(stmt.otherwise)
                return [replace(stmt, then=then, otherwise=otherwise)]
            case c.If(
                condition=condition, then=(c.Evaluate(expr=c.Assign(op="=") as only),), otherwise=()
            ) if self._is_vector(only.target):
                chosen = c.Ternary(condition, only.value, only.target)
                return [c.Evaluate(self._assign(c.Assign("=", only.target, chosen)), stmt.line)]
            case c.If(otherwise=()) if self._index and not self._in_branch:
                return self._together_or_not(stmt)
            case c.For(init=init, condition=test, step=steps) if test is not None and self._index:
                parts = [one.init if isinstance(one, c.Declare) else one.expr for one in init]
                if not all(part is not None and self._is_uniform(part) for part in (*parts, test, *steps)):
                    raise NoVector("a loop inside counts otherwise in other lanes")
                return [replace(stmt, body=self.block(stmt.body))]
        raise NoVector("it has a statement that is no declaration and no assignment")

    def _is_vector(self, target: c.Expr) -> bool:
        return target in self._places.packs or (
            isinstance(target, c.Name) and target.name in self._vectorize_body
        )

    def _together_or_not(self, branch: c.If) -> list[c.Stmt]:
        """A branch that the lanes take together, on vectors; one by one where only some of them take it."""
        scalar = substitute((branch,), self._made_of)[0]
        outside = assigned_in(scalar) - set(declared_in(scalar))
        used, places = names_in(scalar), [place_of(part) for part in expressions_in(scalar)]
        if outside or used & (self._vectorize_body.keys() | (self._of_index - {self._index})):
            raise NoVector("a branch that some lanes take hands values on")
        if not {place.array for place in places if place is not None} <= self._places.direct.keys():
            raise NoVector("a branch that some lanes take touches what is moved in packs")
        if any(call.function in self._lift.fast.all_names for call in calls_in(scalar)):
            raise NoVector("a branch that some lanes take has fast forms, which are of vectors")
        mask = self._convert_to_mask(self._value(branch.condition))
        if mask.kind != "mask":
            raise NoVector("a branch asks for no comparison")
        taken, lane = (c.Name(self._lift.names.fresh(word)) for word in ("taken", "one"))
        then = self.block(branch.then)
        index = c.Declare(
            c.Type(self._places.type, const=True), self._index, c.Binary("+", self._places.here, lane)
        )
        start = c.Declare(c.Type("int"), lane.name, c.Number("0", 0))
        test, step = c.Binary("<", lane, c.Name(self._places.lanes)), c.Unary("++", lane, postfix=True)
        apart = c.For((start,), test, (step,), (index, scalar), line=branch.line)
        some = c.If(self._lift.of_lanes("ANY", taken), (apart,), line=branch.line)
        every = self._lift.of_lanes("ALL", taken)
        return [
            c.Declare(c.Type(self._lift.ivec, const=True), taken.name, mask.expr, line=branch.line),
            c.If(every, then, (some,), line=branch.line, comments=branch.comments),
        ]

    def _is_uniform(self, expr: c.Expr) -> bool:
        """Whether it is the same for all lanes."""
        used = names_in(expr)
        return self._of_index.isdisjoint(used) and self._vectorize_body.keys().isdisjoint(used)

    def _declare(self, stmt: c.Declare) -> list[c.Stmt]:
        type_, init = stmt.type, stmt.init
        value = None
        if is_integer(type_):
            made = init is not None and self._is_index(init)
            if made and init is not None:
                self._of_index.add(stmt.name)
                if stmt.name not in self._changed:
                    self._made_of[stmt.name] = c.Cast(c.Type(type_.base), substitute(init, self._made_of))
                return []
            value = None if init is None else self._value(init)
            if value is None or value.kind == "one":
                return [stmt if value is None else replace(stmt, init=value.expr)]
        elif type_.base != "float":
            raise NoVector(f"{stmt.name} is a {type_.base}")
        elif init is not None:
            value = self._value(init)
        base = "float" if type_.base == "float" else type_.base
        given = None if value is None else self._held(value, base)
        self._vectorize_body[stmt.name] = base
        return [replace(stmt, type=c.Type(self._lift.vector_of(base), const=type_.const), init=given)]

    def _is_index(self, init: c.Expr) -> bool:
        """Whether an integer is made of the index alone, and loads nothing."""
        used = names_in(init)
        return not self._of_index.isdisjoint(used) and not any(
            isinstance(part, c.Index) for part in expressions_in(init)
        )

    def _assign(self, assign: c.Assign) -> c.Expr:
        target, base = assign.target, ""
        if target in self._places.packs:
            found = self._places.packs[target]
            target, base = found.expr, found.base
        elif isinstance(target, c.Name):
            base = self._vectorize_body.get(target.name, "")
        if not base and isinstance(target, c.Index):
            return self._stored(assign, target)
        if not base or not isinstance(target, c.Name):
            raise NoVector("it assigns to something that is no vector")
        value = self._value(assign.value)
        if base == "float":
            return c.Assign(assign.op, target, self._convert_to_floats(value))
        if assign.op != "=":
            value = self._binary(assign.op[:-1], _LaneValue(target, "ints"), value)
        return c.Assign("=", target, self._held(value, base))

    def _convert_to_floats(self, value: _LaneValue) -> c.Expr:
        match value.kind:
            case "floats":
                return value.expr
            case "ints":
                return self._lift.converted("float", value.expr)
            case "one":
                return c.Cast(c.Type(self._lift.vec), value.expr)
        raise NoVector("it uses a comparison as a number")

    def _convert_to_ints(self, value: _LaneValue) -> c.Expr:
        """Of what C computes with as an `int`."""
        if value.kind == "ints":
            return value.expr
        if value.kind == "one" and self._one_kind(value) == "ints":
            return c.Cast(c.Type(self._lift.ivec), value.expr)
        raise NoVector("it mixes integers with what is none")

    def _one_kind(self, value: _LaneValue) -> _Kind:
        """What a value that all lanes share makes of what it is joined with."""
        found = type_of(value.expr, self._lift.types, tuple(self._lift.functions.values()), "opencl")
        if found is None or found.is_pointer:
            raise NoVector("it joins integers with what has no type")
        if found.base == "float":
            return "floats"
        if found.base == "bool" or found.base in INTEGER_WORDS:
            return "ints"
        raise NoVector(f"it joins integers with a {found.base}")

    def _held(self, value: _LaneValue, base: str) -> c.Expr:
        """As a variable of the type holds it."""
        if base == "float":
            return self._convert_to_floats(value)
        if base not in INTEGER_WORDS:
            raise NoVector(f"a {base} has no vector form")
        word = INTEGER_WORDS[base]
        if value.kind == "one":
            return c.Cast(c.Type(self._lift.ivec), c.Cast(c.Type(base), value.expr))
        if value.kind == "mask":
            raise NoVector("it uses a comparison as a number")
        if word == "int":
            return value.expr if value.kind == "ints" else self._lift.converted("int", value.expr)
        return self._lift.converted("int", self._lift.converted(word, value.expr))

    def _convert_to_mask(self, value: _LaneValue) -> _LaneValue:
        if value.kind == "ints":
            return _LaneValue(c.Binary("!=", value.expr, c.Number("0", 0)), "mask")
        if value.kind == "floats":
            raise NoVector("it uses a float as a condition")
        return value

    def _value(self, expr: c.Expr) -> _LaneValue:
        if expr in self._places.packs:
            place = self._places.packs[expr]
            if not isinstance(place.expr, c.Name):
                return _LaneValue(place.expr, "one")
            return _LaneValue(place.expr, "floats" if place.base == "float" else "ints")
        match expr:
            case c.Number(value=float(), text=text) if text[-1:] not in "fF":
                raise NoVector(f"{text} is a double")
            case c.Number():
                return _LaneValue(expr, "one")
            case c.Name(name=name):
                if name in self._of_index:
                    raise NoVector("it computes with the index")
                base = self._vectorize_body.get(name)
                return _LaneValue(expr, "one" if base is None else "floats" if base == "float" else "ints")
            case c.Unary(op="-" | "+", operand=operand):
                value = self._value(operand)
                if value.kind == "mask":
                    raise NoVector("it uses a comparison as a number")
                return replace(value, expr=replace(expr, operand=value.expr))
            case c.Unary(op="!", operand=operand):
                value = self._convert_to_mask(self._value(operand))
                if value.kind == "mask":
                    return _LaneValue(c.Binary("==", value.expr, c.Number("0", 0)), "mask")
                return _LaneValue(replace(expr, operand=value.expr), "one")
            case c.Binary(op=op, left=left, right=right):
                first = self._value(left)
                return self._binary(
                    op, first, self._inside(right) if op in ("&&", "||") else self._value(right)
                )
            case c.Ternary():
                return self._ternary(expr)
            case c.Call():
                return self._call(expr)
            case c.Cast(type=type_, value=inner):
                return self._cast(type_, self._value(inner))
            case c.Index():
                return _LaneValue(expr, "one") if self._is_uniform(expr) else self._load_neighbours(expr)
        raise NoVector("it has an expression without a vector form")

    def _inside(self, expr: c.Expr) -> _LaneValue:
        """What not every lane may come to."""
        before, self._in_branch = self._in_branch, True
        try:
            return self._value(expr)
        finally:
            self._in_branch = before

    def _load_neighbours(self, access: c.Index) -> _LaneValue:
        """A load that all lanes make, each of the element beside the last one's."""
        at, base, backwards = self._beside(access)
        loaded = self._lift.loaded(base, at)
        made = self._lift.of_lanes("REVERSED", loaded) if backwards else loaded
        return _LaneValue(made, "floats" if base == "float" else "ints")

    def _stored(self, assign: c.Assign, target: c.Index) -> c.Expr:
        """A store that all lanes make, each to the element beside the last one's."""
        at, base, backwards = self._beside(target)
        value = self._value(assign.value)
        if assign.op != "=":
            value = self._binary(assign.op[:-1], self._load_neighbours(target), value)
        held = self._held(value, base)
        return self._lift.stored(base, self._lift.of_lanes("REVERSED", held) if backwards else held, at)

    def _beside(self, access: c.Index) -> tuple[c.Expr, str, bool]:
        """Where the lanes' elements begin, of which type they are, and whether they lie backwards."""
        written = substitute(access, self._made_of)
        place = place_of(written)
        array_type = None if place is None else self._places.direct.get(place.array)
        if place is None or array_type is None or self._in_branch or not self._index:
            raise NoVector("it reaches a place of its own in every lane")
        used, base = names_in(written), element_type(place, array_type).base
        if used & (self._vectorize_body.keys() | (self._of_index - {self._index})) or not has_vectors(base):
            raise NoVector("it reaches a place of its own in every lane")
        moved = moved_by(place, self._index, array_type)
        if moved is None or moved.step not in (1, -1) or moved.within:
            raise NoVector("it reaches what does not lie side by side")
        first = self._places.here
        if moved.step < 0:
            last = c.Binary("-", c.Name(self._places.lanes), c.Number("1", 1))
            first = c.Binary("+", first, last)
        return c.Unary("&", substitute(written, {self._index: first})), base, moved.step < 0

    def _cast(self, type_: c.Type, value: _LaneValue) -> _LaneValue:
        if value.kind == "one":
            return _LaneValue(c.Cast(type_, value.expr), "one")
        if type_.is_pointer or not has_vectors(type_.base):
            raise NoVector(f"it converts to {type_.base}")
        if type_.base == "float":
            return _LaneValue(self._convert_to_floats(value), "floats")
        return _LaneValue(self._held(value, type_.base), "ints")

    def _binary(self, op: str, left: _LaneValue, right: _LaneValue) -> _LaneValue:
        kinds = {left.kind, right.kind}
        if kinds == {"one"}:
            return _LaneValue(c.Binary(op, left.expr, right.expr), "one")
        if op in ("&&", "||"):
            left, right = self._convert_to_mask(left), self._convert_to_mask(right)
            if {left.kind, right.kind} != {"mask"}:
                raise NoVector("it joins conditions of different kinds")
            return _LaneValue(c.Binary(op[0], left.expr, right.expr), "mask")
        if "mask" in kinds:
            raise NoVector(f"it has no vector form of {op}")
        if "ints" in kinds:
            other = left if right.kind == "ints" else right
            if other.kind == "floats" or (other.kind == "one" and self._one_kind(other) == "floats"):
                left, right = (
                    value if value.kind == "one" else _LaneValue(self._convert_to_floats(value), "floats")
                    for value in (left, right)
                )
        kind: _Kind = "floats" if "floats" in {left.kind, right.kind} else "ints"
        if op not in _COMPARE | (_FLOAT_SIGNS if kind == "floats" else _INTEGER_SIGNS):
            raise NoVector(f"it has no vector form of {op}")
        return _LaneValue(c.Binary(op, left.expr, right.expr), "mask" if op in _COMPARE else kind)

    def _ternary(self, expr: c.Ternary) -> _LaneValue:
        condition = self._convert_to_mask(self._value(expr.condition))
        yes, no = self._inside(expr.yes), self._inside(expr.no)
        kinds = {yes.kind, no.kind}
        if condition.kind == "one" and kinds == {"one"}:
            return _LaneValue(c.Ternary(condition.expr, yes.expr, no.expr), "one")
        whole = kinds == {"one"} and {self._one_kind(yes), self._one_kind(no)} == {"ints"}
        mixed = "ints" in kinds and all(v.kind == "ints" or self._is_int(v) for v in (yes, no))
        if whole or mixed:
            sides = self._convert_to_ints(yes), self._convert_to_ints(no)
            return _LaneValue(c.Ternary(condition.expr, *sides), "ints")
        sides = self._convert_to_floats(yes), self._convert_to_floats(no)
        return _LaneValue(c.Ternary(condition.expr, *sides), "floats")

    def _is_int(self, value: _LaneValue) -> bool:
        return value.kind == "one" and self._one_kind(value) == "ints"

    def _call(self, call: c.Call) -> _LaneValue:
        values = [self._value(arg) for arg in call.args]
        if all(value.kind == "one" for value in values):
            return _LaneValue(c.Call(call.function, tuple(v.expr for v in values), call.template_args), "one")
        function = call.function
        if function in self._lift.functions:
            arguments = tuple(self._convert_to_floats(v) for v in values)
            return _LaneValue(c.Call(_vectorize_function(self._lift, function), arguments), "floats")
        if function in _TESTS and values[0].kind == "floats":
            return _LaneValue(c.Call(function, (values[0].expr,)), "mask")
        asked = _CONVERSION.fullmatch(function)
        if asked is not None and len(values) == 1 and values[0].kind in ("floats", "ints"):
            return self._converted(asked[1], asked[2], values[0])
        if function not in _SAME_FOR_VECTORS | self._lift.fast.all_names:
            raise NoVector(f"{function} has no vector form")
        if any(value.kind == "ints" for value in values):
            if function not in _OF_INTEGERS:
                raise NoVector(f"{function} is of floats, and is given integers")
            return _LaneValue(c.Call(function, tuple(self._convert_to_ints(v) for v in values)), "ints")
        return _LaneValue(c.Call(function, tuple(self._convert_to_floats(v) for v in values)), "floats")

    def _converted(self, word: str, ending: str, value: _LaneValue) -> _LaneValue:
        if word == "float":
            same = value.kind == "floats"
            made = value.expr if same else self._lift.converted(word, value.expr, ending)
            return _LaneValue(made, "floats")
        made = self._lift.converted(word, value.expr, ending)
        return _LaneValue(made if word == "int" else self._lift.converted("int", made), "ints")


def _vectorize_function(lift: VectorWords, name: str) -> str:
    """The vector form of a function of floats, made where it is first asked for."""
    if name in lift.helpers:
        return lift.helpers[name]
    function = lift.functions[name]
    floats = all(p.type.base == "float" and not p.type.is_pointer for p in function.parameters)
    if not floats or function.result.base != "float" or len(lift.helpers) >= _MAX_HELPERS:
        raise NoVector(f"{name} is no function of floats")
    lift.helpers[name] = fresh = lift.names.fresh(f"{name}_of_vector")
    vector = c.Type(lift.vec)
    parameters = tuple(c.Parameter(vector, p.name) for p in function.parameters)
    inner = VectorBody(lift, "", LanePlaces({}), {p.name: "float" for p in parameters})
    stmts, _ = lift.fast.statements(function.body, {p.name: p.type for p in function.parameters})
    body = inner.block(stmts)
    if sum(isinstance(stmt, c.Return) for stmt in body) != 1 or not isinstance(body[-1], c.Return):
        raise NoVector(f"{name} returns in several places")
    lift.written.append(c.Function(fresh, parameters, body, vector))
    return fresh


# -- One loop over a task's elements in OpenCL C for a CPU: vectors, then what is left.
#
# Compilers for CPUs turn arithmetic on vector types into vector instructions; a loop over lanes with a call
# in it they leave alone. What has no vector form (places made of data, branches with more than one
# assignment) is refused, and the loop stays scalar.


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
        types = {name: type_ for name, type_ in known_types(plan.kernel).items() if type_ is not None}
        vec, ivec, load = plan.word("vec"), plan.word("ivec"), plan.word("LOAD")
        self._lift = VectorWords(
            vec, ivec, load, plan.names, functions, fast, types, store=plan.word("STORE")
        )
        self._uses_vectors, self._folds = False, Folds(plan, self._lift.vec)

    def before(self) -> list[str]:
        if not self._uses_vectors:
            return []
        lift = self._lift
        return [
            vector_macros_text(self._plan, self._fast.fast, lift.conversions, lift.narrow, lift.lane_words)
        ]

    def functions(self) -> tuple[c.Function, ...]:
        return (*self._lift.written, *self._folds.functions())

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        before, end = self._end(loop)
        done = list(before)
        body, inverses = self._fast_body(loop)
        for total in each.totals:
            done += at_line(start_total(total, scope), self._plan.lines.get(total.name, 0))
            scope.add(total.name)
        vectors = self._vectorize_body(loop, body)
        if vectors is None:
            first = self._first(loop, c.Name(self.lane), self.words.expr("LANES"), type_)
            turns = self._scalar(loop, first, end)
        else:
            for name, divisor in inverses:
                done += parse_snippet("const float inverse = 1.0f / by;", inverse=name, by=divisor)
            turns = self._vector_loop(loop, vectors, end)
        return (*done, *at_line(turns, each.line), *self.totals.reduce(loop, self.lane))

    def _scalar(self, loop: LoopPlan, first: c.Expr, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        index = self.words.code("const T i = base;", T=each.type, i=each.index)
        body = (*index, *add_unroll_pragmas(each.body, self._plan))
        return self._turns(type_, first, end, self.words.expr("LANES")).over(body)

    def _vectorize_body(self, loop: LoopPlan, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...] | None:
        """The body on vectors; None where it has no such form, or nothing to load or store as vectors."""
        if self._plan.knobs.vector.most == 1 or not any(pack.width for pack in loop.packs):
            return None
        places: dict[c.Expr, LaneElement] = {}
        for pack in loop.packs:
            base = self._base_of(pack)
            if pack.width > 1 or not has_vectors(base):
                return None
            first = self._place(pack, loop, self._here)
            vector = c.Name(loop.name(pack)) if pack.width else first
            places |= {node: LaneElement(vector, base) for node, _ in pack.sites}
        if any(total.type.base != "float" for total in loop.each.totals):
            return None
        totals = {total.name: total.type.base for total in loop.each.totals}
        here = self._index_of(loop, self._here)
        around = LanePlaces(
            places, self._arrays_outside_packs(loop), here, loop.each.type, self._plan.word("VEC")
        )
        try:
            lifted = VectorBody(self._lift, loop.each.index, around, totals).whole(body)
        except NoVector:
            return None
        self._uses_vectors = True
        return lifted

    def _arrays_outside_packs(self, loop: LoopPlan) -> dict[str, c.Type]:
        """Arrays that may be reached between packs: only read, or held by no pack, whatever it is called."""
        plan, packed = self._plan, {pack.array for pack in loop.packs}
        parameters = (parameter.name for parameter in plan.kernel.function.parameters)
        names = dict(zip(plan.problem.launches[0].args, parameters, strict=False))
        aliases = [(one.name, one.alias) for one in plan.problem.arguments if one.alias is not None]
        packed |= {names.get(name, name) for pair in aliases for name in pair}
        shut = packed & plan.written
        return {name: type_ for name, type_ in plan.arrays.items() if name not in shut}

    def _base_of(self, pack: Pack) -> str:
        return (pack.element or self._plan.arrays[pack.array]).base

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
            done += item_axis(self._item, count).over(begun)
        partial: dict[str, c.Expr] = {name: w.expr("a[k]", a=array) for name, array in parts.items()}
        stores = [self._store(pack, loop) for pack in loop.packs if pack.stores]
        body = (
            *(self._load(pack, loop) for pack in loop.packs if pack.width),
            *add_unroll_pragmas(substitute(vectors, partial), self._plan),
            *stores,
        )
        first, chunk = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_), w.expr("CHUNK")
        axes = (self._turns(type_, first, end, chunk), self._items(loop, end, "ITEMS"))
        rest = self._scalar(loop, self._rest(loop, end, type_), end)
        return (
            *done,
            *nest_loops(axes, body),
            *w.when("VEC > 1", rest, said="what is left of the range"),
            *(stmt for total in each.totals for stmt in self._reduce_lanes(total, parts[total.name])),
        )

    def _reduce_lanes(self, total: Total, parts: str) -> tuple[c.Stmt, ...]:
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
        pair, folded = combine_totals(total, near, far), self._folds.name(total)
        done = self.words.code(text, near=near, pair=pair, whole=whole, folded=folded, p=parts)
        return (*done, assign_to_name(total.name, combine_totals(total, c.Name(total.name), c.Name(whole))))

    def _load(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        base = self._base_of(pack)
        value = self._lift.loaded(base, self._address(pack, loop)) if pack.loads else None
        type_ = c.Type(self._lift.vector_of(base), const=pack.loads and not pack.stores)
        return c.Declare(type_, loop.name(pack), value)

    def _store(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        base = self._base_of(pack)
        return c.Evaluate(self._lift.stored(base, c.Name(loop.name(pack)), self._address(pack, loop)))
