"""What a team does and knows: steps, a name for every expression worth one, the bounds of tasks.

Teams in which every thread holds one element: no loop over a row's elements, but one thread for each.

    float v = i < d ? x[row * d + i] : -INFINITY;      what is computed from the thread's own number i is an
    m = block_max(v);                                  expression over elements; joining it over the team
    out[row * d + i] = expf(v - m) / sum;              makes a total of it, storing it a loop that stores

Such expressions are carried along unnamed and computed again in every loop that needs them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from tunesmith.csource import nodes as c
from tunesmith.csource.fold import int_value
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import INTEGERS, integer_type, is_integer, type_of
from tunesmith.csource.walk import map_expr, names_in, nodes_in
from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.accesses import place_of
from tunesmith.expert.model.affine import (
    MIRROR,
    as_integer,
    number,
    same_value,
    without_casts,
    wrapped,
)
from tunesmith.expert.model.facts import order_free
from tunesmith.expert.model.kernel import Each, Let, Operator, Step, Total
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.team_memory import BlockMemory
from tunesmith.expert.model.totals import EXPONENTIALS

_LARGEST = 300


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
        self.limits: dict[str, c.Expr] = {}
        self.in_force: frozenset[str] = frozenset()
        self.touched: set[str] = set()
        self.may_bound = False

    def test(self, op: str, left: tv.Int, right: tv.Int) -> tv.Int | None:
        """A test of a task's index against its extent is settled: the tasks are those within it."""
        for one, other in ((left, right), (right, left)):
            of_threads = isinstance(other.expr, c.Number) or other.expr is None or other.launch
            if self.memory.is_of_element(one.expr) and of_threads:
                return None
        for task, limit, relation in ((left, right, op), (right, left, MIRROR[op])):
            if task.expr is None or limit.expr is None or isinstance(task.expr, c.Number):
                continue
            name = without_casts(task.expr)
            is_task = isinstance(name, c.Name) and name.name in self.tasks
            if not isinstance(name, c.Name) or not is_task or names_in(limit.expr) & self.tasks:
                continue
            extent = limit.expr if relation in ("<", ">=") else c.Binary("+", limit.expr, number(1))
            known = self.limits.get(name.name)
            if known is None and self.may_bound:
                known = self.limits[name.name] = extent
            if known is None or not same_value(known, extent):
                return None
            self.touched.add(name.name)
            return tv.ONE if relation in ("<", "<=") else tv.ZERO
        return None


class TeamRecord:
    """The steps of one block's teams so far, and what their `Let`s are called."""

    def __init__(self, memory: BlockMemory, normal: Normal) -> None:
        self.memory = memory
        self.steps: list[Step] = []
        self.effects: list[Effect] = []
        self.barriers = 0
        self.named: dict[tuple[str, c.Expr], str] = {}
        self.taken = set(normal.types) | set(normal.ids) | set(memory.fixed)
        self.let_types: dict[str, c.Type] = {}
        self._numbers: dict[str, int] = {}  # the last that a name was given
        # What was first seen in a cell of shared memory is better called by the variable that it goes into.
        self.from_shared: set[str] = set()
        self.better_names: dict[str, str] = {}
        self.loaded_at: dict[tuple[str, c.Expr], int] = {}
        self.speculative = 0

    def as_variable(self, type_: c.Type, hint: str, value: tv.Value) -> tv.Value:
        """A value as a variable of the type holds it; expressions get a name."""
        match value:
            case tv.Int(expr=expr) if not is_integer(type_) and expr is not None:
                return tv.Sym(self.name_of(type_, hint, expr))
            case tv.Int(value=given, expr=expr) if (held := wrapped(type_, given)) != given:
                said = c.Cast(c.Type(type_.base), expr) if expr is not None else None
                return replace(value, value=held, expr=number(held) if isinstance(expr, c.Number) else said)
            case tv.Int(expr=expr) if expr is not None and not isinstance(expr, c.Number):
                return replace(value, expr=as_integer(type_, expr, self.memory.types))
            case tv.Sym(expr=expr):
                return tv.Sym(self.name_of(type_, hint, expr))
            case tv.PartialTotal(parts=parts) if self.memory.totals[parts[0][0]].type.base != type_.base:
                return tv.Poison(f"a part of '{parts[0][0]}' changes its type", self.memory.line)
            case tv.Which():
                return tv.Poison("a comparison of parts of a total", self.memory.line)
        return value

    def name_of(self, type_: c.Type, hint: str, expr: c.Expr) -> c.Expr:
        """A `Let` for the expression, unless it is as simple as a name itself."""
        if self.memory.is_of_element(expr):
            return self._typed(type_, expr)
        known = self.all_types.get(expr.name) if isinstance(expr, c.Name) else None
        if isinstance(expr, c.Name) and known is not None and known.base == type_.base:
            if expr.name in self.from_shared and hint not in {*self.memory.shared, *self.let_types}:
                self.better_names.setdefault(expr.name, hint)
            return expr
        constant = _constant(type_, expr)
        if constant is not None:
            return constant
        if self.speculative:
            # Both sides of a choice are gone through, but only one is to be computed: nothing is named yet.
            return c.Cast(c.Type(type_.base), expr)
        key = (type_.base, expr)
        loads = any(isinstance(node, c.Index) for node in nodes_in(expr))
        # What was loaded may have been stored to since.
        if key in self.named and (not loads or self.loaded_at[key] == len(self.effects)):
            return c.Name(self.named[key])
        name = self.fresh(hint)
        self.named[key] = name
        self.loaded_at[key] = len(self.effects)
        self.let_types[name] = c.Type(type_.base)
        if hint in self.memory.shared and self.memory.shared[hint].is_array:
            self.from_shared.add(name)
        declare = c.Declare(c.Type(type_.base, const=True), name, expr, line=self.memory.line)
        self.steps.append(Let((declare,), self.memory.line))
        return c.Name(name)

    def store(self, assign: c.Expr, bounded: frozenset[str]) -> c.Stmt:
        """A store, noted as an effect."""
        self.effects.append(Effect(self.memory.line, bounded))
        return c.Evaluate(assign, self.memory.line)

    def fresh(self, hint: str) -> str:
        # A variable's own name is free until something was named by it.
        if hint not in self.let_types and hint not in self.memory.totals:
            return hint
        known = (self.let_types, self.memory.totals, self.taken)

        def is_taken(number: int) -> bool:
            return any(f"{hint}_{number}" in names for names in known)

        # On from the last number, unless that was given up with a turn that is read again.
        last = self._numbers.get(hint, 2)
        self._numbers[hint] = free = next(n for n in count(last if is_taken(last) else 2) if not is_taken(n))
        return f"{hint}_{free}"

    def _typed(self, type_: c.Type, expr: c.Expr) -> c.Expr:
        """What a thread computes of its element gets no name."""
        if sum(1 for _ in nodes_in(expr)) > _LARGEST:
            raise self.memory.refusal("what a thread computes of its element grows too large")
        found = type_of(expr, self.all_types)
        if found is not None and found.base == type_.base:
            return expr
        typed = c.Cast(c.Type(type_.base), expr)
        if expr in self.memory.fillers:
            self.memory.fillers[typed] = self.memory.fillers[expr]
        return typed

    @property
    def all_types(self) -> Mapping[str, c.Type]:
        totals = {name: total.type for name, total in self.memory.totals.items()}
        return {**self.memory.types, **self.let_types, **totals}


def _constant(type_: c.Type, expr: c.Expr) -> c.Expr | None:
    """A constant as a variable of the type holds it, where that needs no rounding; None for all else."""
    match expr:
        case c.Number(value=value, text=text):
            if type_.base == "float" and text[-1:] in ("f", "F") and not text.lower().startswith("0x"):
                return expr
            if type_.base == "double":
                return c.Number(f"{float(value)!r}", float(value))
            if type_.base == "float" and _fits_float(value):
                return c.Number(f"{float(value)!r}f", float(value))
            return None
        case c.Unary(op="-", operand=operand):
            inner = _constant(type_, operand)
            return None if inner is None else c.Unary("-", inner)
        case c.Name(name=name):
            return expr if name in tv.INFINITIES and type_.base in ("float", "double") else None
        case c.Call(function="__int_as_float" | "__uint_as_float" | "as_float", args=(c.Number(),)):
            return expr if type_.base == "float" else None
        case c.Cast(type=cast, value=inner_value) if cast.base == type_.base:
            return _constant(type_, inner_value)
        case c.Call(function="__float2half" | "__float2bfloat16", args=(c.Number(),)):
            return expr if type_.base not in ("float", "double") else None
    return None


def _fits_float(value: float) -> bool:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0]) == value
    except OverflowError:
        return False


def identity_of(operator: str, type_: c.Type) -> c.Expr:
    if operator in ("max", "min"):
        # Infinity without a header: NVRTC has no INFINITY.
        bits = c.Call("__int_as_float", (c.Number("0x7f800000", 0x7F800000),))
        return c.Unary("-", bits) if operator == "max" else bits
    value = 1 if operator == "*" else 0
    if is_integer(type_):
        return number(-1 if operator == "&" else value)
    return c.Number(f"{value}.0f" if type_.base == "float" else f"{value}.0", float(value))


@dataclass
class ElementTotals:
    """Loops made of what threads compute of their own elements; `everyone`: how many there are, unbounded."""

    memory: BlockMemory
    bounds: TaskBounds
    record: TeamRecord
    everyone: c.Expr
    element_type: str
    loop_count: int = 0
    made: dict[tuple[c.Expr, Operator], str] = field(default_factory=dict)

    def as_total(self, operator: Operator, value: tv.Value, thread: int) -> tv.Value:
        share = value if isinstance(value, tv.Share) else self.memory.sent(value, thread)
        if not isinstance(share, tv.Share):
            return value
        name = self.made.get((share.expr, operator))
        if name is None:
            name = self.made[(share.expr, operator)] = self.new_total(operator, share.expr)
        return tv.PartialTotal(operator, ((name, share.mask),))

    def new_total(self, operator: Operator, expr: c.Expr) -> str:
        found = type_of(expr, self.record.all_types)
        type_ = c.Type("float") if found is None else c.Type(found.base)
        filled = map_expr(expr, lambda node: self.memory.fillers.get(node, node))
        start = identity_of(operator, type_)
        limit = self.bounds.limits.get(self.memory.own_index)
        count = None if limit is None else int_value(limit, dict(self.memory.scenario.parameters))
        is_full = count is not None and count >= self.memory.lanes  # an element for every thread, here
        if limit is not None and self.memory.own_index not in self.bounds.in_force and not is_full:
            if filled == expr or self.memory.is_of_element(filled):
                raise self.memory.refusal(
                    f"threads beyond the last element have a share in '{print_expr(expr)}'"
                )
            if operator in ("max", "min"):
                start = filled
            elif not tv.is_identity(operator, filled) and not (operator == "+" and _vanishes(filled)):
                raise self.memory.refusal(f"threads beyond the last element add '{print_expr(filled)}'")
        elif operator in ("max", "min") and filled != expr and not self.memory.is_of_element(filled):
            start = filled
        name = self.record.fresh("total")
        combine = ""
        value: c.Expr = c.Binary(operator, c.Name(name), expr)
        if operator in ("max", "min"):
            combine = f"f{operator}f" if type_.base == "float" else operator
            value = c.Call(combine, (c.Name(name), expr))
        total = self.memory.totals[name] = Total(name, type_, operator, start, combine)
        update = c.Evaluate(c.Assign("=", c.Name(name), value), self.memory.line)
        self.record.steps.append(self.loop_over((update,), (total,)))
        return name

    def stored(self, array: str) -> None:
        """What was computed of the array's elements before this store cannot be computed again after it."""
        same = self.memory.aliases.get(array, array)

        def loads(expr: c.Expr | None) -> bool:
            found = () if expr is None else (place_of(n) for n in nodes_in(expr) if isinstance(n, c.Expr))
            return any(p is not None and self.memory.aliases.get(p.array, p.array) == same for p in found)

        def kept(value: tv.Value) -> tv.Value:
            expr = value.expr if isinstance(value, tv.Int | tv.Sym | tv.Share) else None
            lost = tv.Poison(f"uses '{array}' as it was before it is stored to", self.memory.line)
            return lost if self.memory.is_of_element(expr) and loads(expr) else value

        for name, vec in self.memory.variables.items():
            values = [vec.one] if vec.one is not None else vec.many
            now = [kept(value) for value in values]
            if any(new is not old for new, old in zip(now, values, strict=True)):
                self.memory.variables[name] = tv.Vec(now[0]) if vec.one is not None else tv.Vec(None, now)
        for cells in self.memory.cells.values():
            for cell in cells.values():
                cell.value = kept(cell.value)
        self.made = {key: name for key, name in self.made.items() if not loads(key[0])}

    def loop_over(self, body: tuple[c.Stmt, ...], totals: tuple[Total, ...] = ()) -> Each:
        """Every loop has an index of its own: `tid`, `tid_2`, ..."""
        self.loop_count += 1
        # `threadIdx.x` cannot be an index's name.
        index = "element" if "." in self.memory.own_index else self.memory.own_index
        index += f"_{self.loop_count}" if self.loop_count > 1 else ""
        while index in self.memory.types and index != self.memory.own_index:
            index += "_"
        body = substitute(body, {self.memory.own_index: c.Name(index)})
        stop = self.bounds.limits.get(self.memory.own_index, self.everyone)
        line = self.memory.line
        order = order_free(line, shared=True)
        return Each(index, number(0), stop, body, totals, self.element_type, line=line, order=order)


def _vanishes(expr: c.Expr) -> bool:
    """exp(-infinity - m), as threads without an element add it to a sum of exponentials."""
    while isinstance(expr, c.Cast):
        expr = expr.value
    if not isinstance(expr, c.Call) or expr.function not in EXPONENTIALS:
        return False
    arg = expr.args[0]
    while isinstance(arg, c.Binary) and arg.op == "-":
        arg = arg.left
    return tv.is_identity("max", arg)


def refuse_below_zero(
    expr: c.Binary, sides: tuple[tv.Vec, tv.Vec], active: tv.Threads, memory: BlockMemory
) -> None:
    """Numbers of threads are counted without wraps: an unsigned one below zero is really a large one."""
    if expr.op not in MIRROR and expr.op not in ("/", "%", ">>"):
        return
    common = integer_type(c.Binary("+", expr.left, expr.right), memory.types)
    if common is None or INTEGERS[common.base][1]:
        return
    values = (value for side in sides for value in side.values(active))
    if any(isinstance(value, tv.Int) and value.value < 0 for value in values):
        raise memory.refusal(f"an unsigned number below zero in '{print_expr(expr)}'")
