"""What a team does and knows: steps, a name for every expression worth one, the bounds of tasks."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tunesmith.expert.c.infer import type_of
from tunesmith.expert.c.nodes import Binary, Call, Cast, Declare, Expr, Index, Name, Number, Type, Unary
from tunesmith.expert.c.walk import names_in, nodes_in
from tunesmith.expert.model.affine import number, same_value, without_casts
from tunesmith.expert.model.kernel import Let, Step
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.team_memory import BlockMemory
from tunesmith.expert.model.team_values import INFINITIES, ONE, ZERO, Int, Part, Poison, Sym, Value, Which
from tunesmith.expert.model.value_types import is_integer, is_same_integer
from tunesmith.expert.model.value_types import type_of as integer_type_of

_LARGEST = 300
_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Effect:
    """A store and the tasks whose bound was known to hold there."""

    line: int
    bounded: frozenset[str]


class TaskBounds:
    """Indices of tasks and the extents that tests of them tell."""

    def __init__(self, memory: BlockMemory, tasks: frozenset[str]) -> None:
        self.memory = memory
        self.tasks = set(tasks)
        self.limits: dict[str, Expr] = {}
        self.in_force: frozenset[str] = frozenset()
        self.touched: set[str] = set()
        self.may_bound = False

    def test(self, op: str, left: Int, right: Int) -> Int | None:
        """A test of a task's index against its extent is settled: the tasks are those within it."""
        for one, other in ((left, right), (right, left)):
            of_threads = isinstance(other.expr, Number) or other.expr is None or other.launch
            if self.memory.is_of_element(one.expr) and of_threads:
                return None
        for task, limit, relation in ((left, right, op), (right, left, _MIRROR[op])):
            if task.expr is None or limit.expr is None or isinstance(task.expr, Number):
                continue
            name = without_casts(task.expr)
            if not isinstance(name, Name) or name.name not in self.tasks or names_in(limit.expr) & self.tasks:
                continue
            extent = limit.expr if relation in ("<", ">=") else Binary("+", limit.expr, number(1))
            known = self.limits.get(name.name)
            if known is None and self.may_bound:
                known = self.limits[name.name] = extent
            if known is None or not same_value(known, extent):
                return None
            self.touched.add(name.name)
            return ONE if relation in ("<", "<=") else ZERO
        return None


class TeamRecord:
    """The steps of one block's teams so far, and what their `Let`s are called."""

    def __init__(self, memory: BlockMemory, normal: Normal) -> None:
        self.memory = memory
        self.steps: list[Step] = []
        self.effects: list[Effect] = []
        self.barriers = 0
        self.named: dict[tuple[str, Expr], str] = {}
        self.taken = set(normal.types) | set(normal.ids) | set(memory.fixed)
        self.let_types: dict[str, Type] = {}
        # What was first seen in a cell of shared memory is better called by the variable that it goes into.
        self.from_shared: set[str] = set()
        self.better_names: dict[str, str] = {}
        self.loaded_at: dict[tuple[str, Expr], int] = {}
        self.speculative = 0

    def as_variable(self, type_: Type, hint: str, value: Value) -> Value:
        """A value as a variable of the type holds it; expressions get a name."""
        match value:
            case Int(expr=expr) if not is_integer(type_) and expr is not None:
                return Sym(self.name_of(type_, hint, expr))
            case Int(expr=expr) if expr is not None and not isinstance(expr, Number):
                found = integer_type_of(expr, self.memory.types)
                if found is None or not is_same_integer(found, type_):
                    return replace(value, expr=Cast(Type(type_.base), expr))
            case Sym(expr=expr):
                return Sym(self.name_of(type_, hint, expr))
            case Part(parts=parts) if self.memory.totals[parts[0][0]].type.base != type_.base:
                return Poison(f"a part of '{parts[0][0]}' changes its type", self.memory.line)
            case Which():
                return Poison("a comparison of parts of a total", self.memory.line)
        return value

    def name_of(self, type_: Type, hint: str, expr: Expr) -> Expr:
        """A `Let` for the expression, unless it is as simple as a name itself."""
        if self.memory.is_of_element(expr):
            return self._typed(type_, expr)
        known = self.let_types.get(expr.name) if isinstance(expr, Name) else None
        if isinstance(expr, Name) and known is None and expr.name in self.memory.types:
            known = self.memory.types[expr.name]
        if isinstance(expr, Name) and expr.name in self.memory.totals:
            known = self.memory.totals[expr.name].type
        if isinstance(expr, Name) and known is not None and known.base == type_.base:
            if (
                expr.name in self.from_shared
                and hint not in self.memory.shared
                and hint not in self.let_types
            ):
                self.better_names.setdefault(expr.name, hint)
            return expr
        constant = _constant(type_, expr)
        if constant is not None:
            return constant
        if self.speculative:
            # Both sides of a choice are gone through, but only one is to be computed: nothing is named yet.
            return Cast(Type(type_.base), expr)
        key = (type_.base, expr)
        loads = any(isinstance(node, Index) for node in nodes_in(expr))
        # What was loaded may have been stored to since.
        if key in self.named and (not loads or self.loaded_at[key] == len(self.effects)):
            return Name(self.named[key])
        name = self.fresh(hint)
        self.named[key] = name
        self.loaded_at[key] = len(self.effects)
        self.let_types[name] = Type(type_.base)
        if hint in self.memory.shared and self.memory.shared[hint].is_array:
            self.from_shared.add(name)
        declare = Declare(Type(type_.base, const=True), name, expr, line=self.memory.line)
        self.steps.append(Let((declare,), self.memory.line))
        return Name(name)

    def fresh(self, hint: str) -> str:
        name, count = hint, 2
        used = set(self.let_types) | set(self.memory.totals)
        # A variable's own name is free until something was named by it.
        while name in used or (name in self.taken and name != hint):
            name, count = f"{hint}_{count}", count + 1
        return name

    def _typed(self, type_: Type, expr: Expr) -> Expr:
        """What a thread computes of its element gets no name."""
        if sum(1 for _ in nodes_in(expr)) > _LARGEST:
            raise self.memory.refusal("what a thread computes of its element grows too large")
        found = type_of(expr, self.all_types)
        if found is not None and found.base == type_.base:
            return expr
        typed = Cast(Type(type_.base), expr)
        if expr in self.memory.fillers:
            self.memory.fillers[typed] = self.memory.fillers[expr]
        return typed

    @property
    def all_types(self) -> Mapping[str, Type]:
        totals = {name: total.type for name, total in self.memory.totals.items()}
        return {**self.memory.types, **self.let_types, **totals}


def _constant(type_: Type, expr: Expr) -> Expr | None:
    """A constant as a variable of the type holds it, where that needs no rounding; None for all else."""
    match expr:
        case Number(value=value, text=text):
            if type_.base == "float" and text[-1:] in ("f", "F") and not text.lower().startswith("0x"):
                return expr
            if type_.base == "double":
                return Number(f"{float(value)!r}", float(value))
            if type_.base == "float" and _fits_float(value):
                return Number(f"{float(value)!r}f", float(value))
            return None
        case Unary(op="-", operand=operand):
            inner = _constant(type_, operand)
            return None if inner is None else Unary("-", inner)
        case Name(name=name):
            return expr if name in INFINITIES and type_.base in ("float", "double") else None
        case Call(function="__int_as_float" | "__uint_as_float" | "as_float", args=(Number(),)):
            return expr if type_.base == "float" else None
        case Cast(type=cast, value=inner_value) if cast.base == type_.base:
            return _constant(type_, inner_value)
        case Call(function="__float2half" | "__float2bfloat16", args=(Number(),)):
            return expr if type_.base not in ("float", "double") else None
    return None


def _fits_float(value: float) -> bool:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0]) == value
    except OverflowError:
        return False


def identity_of(operator: str, type_: Type) -> Expr:
    if operator in ("max", "min"):
        # Infinity without a header: NVRTC has no INFINITY.
        bits = Call("__int_as_float", (Number("0x7f800000", 0x7F800000),))
        return Unary("-", bits) if operator == "max" else bits
    value = 1 if operator == "*" else 0
    if is_integer(type_):
        return number(-1 if operator == "&" else value)
    return (
        Number(f"{value}.0f", float(value)) if type_.base == "float" else Number(f"{value}.0", float(value))
    )
