"""What a team knows, under names: assignments, and a `Let` for every expression worth one."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import (
    Braces,
    Call,
    Cast,
    Declare,
    Expr,
    Index,
    Name,
    Number,
    Stmt,
    Type,
    Unary,
)
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import nodes_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.geometry import Layout, Strided
from tunesmith.expert.model.kept import KeptArrays
from tunesmith.expert.model.kernel import Let, Step
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.team_memory import Cell, Effect, Threads, Vec
from tunesmith.expert.model.team_values import (
    INFINITIES,
    ZERO,
    Int,
    Part,
    Poison,
    Sym,
    Value,
    Which,
)
from tunesmith.expert.model.teamwork import Machine
from tunesmith.expert.model.value_types import is_same_integer
from tunesmith.expert.model.value_types import type_of as integer_type_of


class Named(Machine, ABC):
    """One block in one scenario; what statements do is in `team_steps`."""

    def __init__(
        self,
        normal: Normal,
        layout: Layout,
        warp: int,
        loops: Mapping[str, Strided],
        fixed: Mapping[str, Vec],
        tasks: frozenset[str],
        aliases: Mapping[str, str],
    ) -> None:
        super().__init__(
            layout.scenario, layout.lanes, warp, normal.types, normal.arrays, normal.shared, fixed
        )
        self.normal = normal
        self.layout = layout
        self.loops = loops
        self.tasks = set(tasks)
        self.aliases = aliases
        self.kept_arrays = KeptArrays()
        self.bounds: dict[str, Expr] = {}
        self.in_force: frozenset[str] = frozenset()
        self.touched: set[str] = set()
        self.may_bound = False
        self.steps: list[Step] = []
        self.effects: list[Effect] = []
        self.alive: Threads = tuple(range(self.threads))
        self.named: dict[tuple[str, Expr], str] = {}
        self.taken = set(normal.types) | set(normal.ids) | set(fixed)
        self.let_types: dict[str, Type] = {}
        # What was first seen in a cell of shared memory is better called by the variable that it goes into.
        self.from_shared: set[str] = set()
        self.better_names: dict[str, str] = {}
        self.loaded_at: dict[tuple[str, Expr], int] = {}
        self.barriers = 0
        self.speculative = 0
        self.depth = 0

    @abstractmethod
    def block(self, stmts: Sequence[Stmt], active: Threads) -> Threads: ...

    @abstractmethod
    def statement(self, stmt: Stmt, active: Threads) -> Threads: ...

    @abstractmethod
    def effect(self, expr: Expr, active: Threads) -> None: ...

    def declare(self, stmt: Declare, active: Threads) -> None:
        if stmt.dims:
            self.variables[f"{stmt.name}[]"] = Vec(ZERO)
            if isinstance(stmt.init, Braces) and len(stmt.dims) == 1:
                for at, item in enumerate(stmt.init.items):
                    self.assign(f"{stmt.name}[{at}]", stmt.type, stmt.name, self.eval(item, active), active)
            return
        if stmt.init is None:
            self.write(stmt.name, Vec(Poison(f"'{stmt.name}' is read before it is set", stmt.line)), active)
            return
        self.assign(stmt.name, stmt.type, stmt.name, self.eval(stmt.init, active), active)

    def assign(self, key: str, type_: Type, hint: str, values: Vec, active: Threads) -> None:
        stored = self.apply(lambda a, _, t: self.as_variable(type_, hint, a), values, Vec(ZERO), active)
        self.write(key, stored, active)

    def as_variable(self, type_: Type, hint: str, value: Value) -> Value:
        """A value as a variable of the type holds it; expressions get a name."""
        match value:
            case Int(expr=expr) if not is_integer(type_) and expr is not None:
                return Sym(self.name_of(type_, hint, expr))
            case Int(expr=expr) if expr is not None and not isinstance(expr, Number):
                found = integer_type_of(expr, self.types)
                if found is None or not is_same_integer(found, type_):
                    return replace(value, expr=Cast(Type(type_.base), expr))
            case Sym(expr=expr):
                return Sym(self.name_of(type_, hint, expr))
            case Part(parts=parts) if self.totals[parts[0][0]].type.base != type_.base:
                return Poison(f"a part of '{parts[0][0]}' changes its type", self.line)
            case Which():
                return Poison("a comparison of parts of a total", self.line)
        return value

    def name_of(self, type_: Type, hint: str, expr: Expr) -> Expr:
        """A `Let` for the expression, unless it is as simple as a name itself."""
        known = self.let_types.get(expr.name) if isinstance(expr, Name) else None
        if isinstance(expr, Name) and known is None and expr.name in self.types:
            known = self.types[expr.name]
        if isinstance(expr, Name) and expr.name in self.totals:
            known = self.totals[expr.name].type
        if isinstance(expr, Name) and known is not None and known.base == type_.base:
            if expr.name in self.from_shared and hint not in self.shared and hint not in self.let_types:
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
        if hint in self.shared and self.shared[hint].is_array:
            self.from_shared.add(name)
        declare = Declare(Type(type_.base, const=True), name, expr, line=self.line)
        self.steps.append(Let((declare,), self.line))
        return Name(name)

    def copied_cells(self) -> dict[str, dict[int, Cell]]:
        return {name: {at: replace(cell) for at, cell in cells.items()} for name, cells in self.cells.items()}

    def without_changed(self, before: dict[str, dict[int, Cell]], why: str) -> None:
        """Cells that differ from before hold nothing that may be used."""
        for name, cells in self.cells.items():
            for at, cell in cells.items():
                old = before[name].get(at)
                if old is None or old.value != cell.value or old.epoch != cell.epoch:
                    cell.value = Poison(why, self.line)

    def fresh(self, hint: str) -> str:
        name, count = hint, 2
        used = set(self.let_types) | set(self.totals)
        # A variable's own name is free until something was named by it.
        while name in used or (name in self.taken and name != hint):
            name, count = f"{hint}_{count}", count + 1
        return name

    def read_cells(self, name: str, index: Vec, active: Threads) -> Vec:
        if self.cell_index_clashes(name, index, active):
            raise self.beyond(f"shared memory '{name}' holds a row's elements and is read singly too")
        return super().read_cells(name, index, active)

    @property
    def kept_names(self) -> frozenset[str]:
        return frozenset(found.kept.name for found in self.kept_arrays.found.values())

    def forget(self, name: str, why: Poison) -> None:
        self.variables[name] = Vec(why)

    def cell_index_clashes(self, name: str, index: Vec, active: Threads) -> bool:
        places = [index.at(thread) for thread in active]
        return any(isinstance(p, Int) and self.kept_arrays.covers(name, p.value) for p in places)

    def shared_name(self, target: Expr) -> str | None:
        while isinstance(target, Index):
            target = target.base
        return target.name if isinstance(target, Name) and target.name in self.shared else None


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
