"""What the threads of one block hold: variables, shared memory, totals; and the values in them.

`Int`     a number, known in every thread; `expr` says it in terms of parameters and tasks, None where it
          depends on the thread
`Sym`     an expression that is the same for the whole team
`PartialTotal`    what some threads have of one or more totals; bits of `mask` are threads
`Share`   what one thread has of an expression over elements, before it is joined with others
`Which`   the comparison of two values of which one is a part: good for choosing the larger one, no more
`Poison`  nothing that may be used: why, and from which line
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from tunesmith.expert.read.accesses import array_and_indices, place_of
from tunesmith.expert.read.geometry import Layout
from tunesmith.expert.read.integers import (
    MIRROR,
    as_integer,
    number_node,
    same_value,
    without_casts,
    wrap_value,
)
from tunesmith.expert.read.model import Each, ElementArray, Let, Operator, OutOfReach, Step, Total, order_free
from tunesmith.expert.read.normal import Normal
from tunesmith.expert.read.rules.totals import EXPONENTIALS
from tunesmith.source import tree as c
from tunesmith.source.fold import int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Call, Cast, Expr, Name, Number, Unary
from tunesmith.source.types import INTEGERS, integer_type, is_integer, type_of
from tunesmith.source.walk import map_expr, names_in, nodes_in


@dataclass(frozen=True, slots=True)
class Int:
    value: int
    expr: Expr | None = None
    launch: bool = False  # it comes from the shape of the launch: tests of it are settled, not kept
    sized: bool = False  # a parameter of the kernel is in it: another size, another number


@dataclass(frozen=True, slots=True)
class Sym:
    expr: Expr


@dataclass(frozen=True, slots=True)
class PartialTotal:
    operator: Operator
    parts: tuple[tuple[str, int], ...]  # total -> threads whose share is in it


@dataclass(frozen=True, slots=True)
class Which:
    op: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Poison:
    reason: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """The value of an expression over elements in one thread, on its way to others; no total yet."""

    expr: Expr
    mask: int


Value = Int | Sym | PartialTotal | Share | Which | Poison


Threads = tuple[int, ...]


@dataclass
class Vec:
    """A value for every thread: one for all, or a list by thread number."""

    one: Value | None = None
    many: list[Value] = field(default_factory=list)

    def at(self, thread: int) -> Value:
        return self.many[thread] if self.one is None else self.one

    def values(self, active: Threads) -> Sequence[Value]:
        """Those of the threads, a value that all have once."""
        return [self.many[thread] for thread in active] if self.one is None else [self.one] if active else []


_IDENTITY: dict[Operator, tuple[float, ...]] = {
    "+": (0,), "*": (1,), "|": (0,), "^": (0,), "&": (-1, 0xFFFFFFFF),
    "max": (-math.inf,), "min": (math.inf,),
}  # fmt: skip
INFINITIES = ("INFINITY", "CUDART_INF_F", "CUDART_INF", "HUGE_VALF", "HUGE_VAL")
_EXACT = range(-256, 257)


def expr_of(value: Value | None) -> Expr | None:
    """The value as an expression that holds for the whole team."""
    return value.expr if isinstance(value, Int | Sym) else None


def is_neutral(operator: Operator, value: Value, start: Expr | None) -> bool:
    """Whether the value changes nothing: an identity, or for maxima and minima what they start from."""
    expr = expr_of(value)
    if expr is None:
        return isinstance(value, Int) and value.value in _IDENTITY[operator]
    return (operator in ("max", "min") and expr == start) or is_identity(operator, expr)


def is_identity(operator: Operator, expr: Expr) -> bool:
    """Whether an expression is plainly the operator's identity."""
    return evaluate_constant(expr, 0) in _IDENTITY[operator]


def evaluate_constant(expr: Expr, depth: int) -> float | None:
    """The number that an expression is, as kernels write those that change no total; None for any other."""
    if depth > 50:
        return None
    match expr:
        case Number(value=value):
            return float(value)
        case Name(name=name) if name in INFINITIES:
            return math.inf
        case Call(function="__int_as_float" | "__uint_as_float" | "as_float", args=(Number(value=bits),)):
            return {0x7F800000: math.inf, 0xFF800000: -math.inf}.get(int(bits))
        case (
            Call(function="__float2half" | "__float2bfloat16" | "__int2half_rn", args=(value,))
            | Cast(value=value)
        ):
            return evaluate_constant(value, depth + 1)
        case Unary(op="-", operand=operand):
            inner = evaluate_constant(operand, depth + 1)
            return None if inner is None else -inner
        case Binary(op=op, left=left, right=right):
            return _fold_exact_constants(
                op, evaluate_constant(left, depth + 1), evaluate_constant(right, depth + 1)
            )
    return None


def _fold_exact_constants(op: str, left: float | None, right: float | None) -> float | None:
    """Arithmetic on small whole numbers, which is exact in any type: 0.f * 0.f; and 1 / 0.f, an infinity."""
    if left is None or right is None or not all(value in _EXACT for value in (left, right)):
        return None
    match op:
        case "/" if left and not right:
            return math.copysign(math.inf, left)
        case "+" | "-":
            return left + right if op == "+" else left - right
        case "*":
            return left * right
    return None


def join_partial_totals(operator: Operator, left: PartialTotal, right: PartialTotal) -> PartialTotal | Poison:
    """Two parts as one; for sums no thread's share may be in both."""
    found = dict(left.parts)
    for name, mask in right.parts:
        mine = found.get(name, 0)
        if mine & mask and operator not in ("max", "min", "&", "|"):
            return Poison("counts the share of some threads twice")
        found[name] = mine | mask
    return PartialTotal(operator, tuple(found.items()))


ZERO = Int(0, number_node(0))
ONE = Int(1, number_node(1))


def one_value(vec: Vec, active: Iterable[int]) -> Value | None:
    """The value that all these threads share; None where they differ."""
    if vec.one is not None:
        return vec.one
    found = [vec.many[thread] for thread in active]
    if not found:
        return None
    first = found[0]
    said = expr_of(first)
    for value in found[1:]:
        # Numbers may differ where what they stand for is the same: the index of a task, in different teams.
        if value is not first and value != first and (said is None or expr_of(value) != said):
            return None
    return first


def explain_divergence(vec: Vec, active: Iterable[int]) -> str:
    """Why the threads do not share a value, in words."""
    found = [vec.at(thread) for thread in active]
    for value in found:
        if isinstance(value, Poison):
            return value.reason
    for value in found:
        if isinstance(value, PartialTotal):
            names = ", ".join(f"'{name}'" for name, _ in value.parts)
            return f"not every thread's share of {names} is in it"
    return "it differs from thread to thread"


_UNSET = Poison("it is not set in every thread")
MAX_WORK = 600_000  # evaluations for one scenario
Span = tuple[Expr, Expr, int]  # start, stop and unit of a loop


@dataclass
class SharedCell:
    value: Value
    writer: int
    epoch: int


Cells = dict[str, dict[int, SharedCell]]


@dataclass(frozen=True)
class StagedArray:
    """`bounds`: first and last place of every team, in the shared array's own elements."""

    staged: ElementArray
    array: str
    bounds: tuple[tuple[int, int], ...]
    span: Span


def copied_cells(held: Cells) -> Cells:
    return {name: {at: replace(cell) for at, cell in cells.items()} for name, cells in held.items()}


class BlockMemory:
    """The variables of every thread and the cells of shared memory.

    `own_index` is the name of a thread's place in its team where that is the index of its one element, and
    empty where threads go through elements in loops."""

    def __init__(
        self,
        normal: Normal,
        layout: Layout,
        warp: int,
        fixed: Mapping[str, Vec],
        aliases: Mapping[str, str],
        own_index: str,
    ) -> None:
        self.scenario = layout.scenario
        self.threads = self.scenario.threads
        self.warp = warp
        self.lanes = layout.lanes
        teams = self.threads // self.lanes
        self.team_masks = tuple(((1 << self.lanes) - 1) << (team * self.lanes) for team in range(teams))
        self.types, self.functions = normal.types, normal.functions
        self.arrays = normal.arrays
        self.shared = normal.shared
        self.aliases = aliases
        self.fixed = fixed  # built-in indices and the variables made of them
        self.own_index = own_index
        self.variables: dict[str, Vec] = {}
        self.cells: Cells = {name: {} for name in self.shared}
        # By array, type and first places.
        self.staged: dict[tuple[str, str, tuple[int, ...]], StagedArray] = {}
        self.totals: dict[str, Total] = {}
        self.fillers: dict[Expr, Expr] = {}  # what threads beyond the last element hold instead
        self.epoch = 0
        self.line = 0
        self.work = 0

    def refusal(self, reason: str) -> OutOfReach:
        return OutOfReach.at(self.line, reason)

    def team(self, thread: int) -> int:
        return thread // self.lanes

    def settled(self, value: Value, thread: int) -> Value:
        """A part that has everyone's share is the total itself; a thread's own share is its element."""
        if isinstance(value, Share):
            return Sym(value.expr) if value.mask == 1 << thread else value
        if isinstance(value, PartialTotal):
            whole = self.team_masks[self.team(thread)]
            if all(mask == whole for _, mask in value.parts):
                return Sym(self.whole(value))
            if any(mask & ~whole for _, mask in value.parts):
                return Poison("mixes the shares of different tasks", self.line)
        return value

    def whole(self, part: PartialTotal) -> Expr:
        names = [Name(name) for name, _ in part.parts]
        result: Expr = names[0]
        combine = self.totals[names[0].name].combine or f"f{part.operator}f"
        for name in names[1:]:
            if part.operator in ("max", "min"):
                result = Call(combine, (result, name))
            else:
                result = Binary(part.operator, result, name)
        return result

    def read(self, name: str, active: Threads) -> Vec:
        if name in self.fixed:
            return self.fixed[name]
        if name in self.variables:
            found = self.variables[name]
            if found.one is None and any(isinstance(found.many[t], PartialTotal) for t in active):
                return self.vector(active, lambda t: self.settled(found.many[t], t))
            return found
        if name in self.shared:
            return self.read_cells(name, Vec(ZERO), active)
        if name in self.types and not self.types[name].is_pointer:
            numbers = dict(self.scenario.parameters)
            if name in numbers and is_integer(self.types[name]):
                return Vec(Int(numbers[name], Name(name), sized=True))
        return Vec(Sym(Name(name)))

    def write(self, name: str, values: Vec, active: Threads) -> None:
        old = self.variables.get(name)
        if values.one is not None and len(active) == self.threads:
            self.variables[name] = values
            return
        unset: Value = Poison(f"'{name}' is set in some threads only", self.line)
        many = list(old.many) if old and old.one is None else [(old and old.one) or unset] * self.threads
        for thread in active:
            many[thread] = values.at(thread)
        self.variables[name] = Vec(None, many)

    def read_cells(self, name: str, index: Vec, active: Threads) -> Vec:
        if self.cell_index_clashes(name, index, active):
            raise self.refusal(f"shared memory '{name}' holds a row's elements and is read singly too")
        cells = self.cells[name]

        def read(thread: int) -> Value:
            at = index.at(thread)
            if not isinstance(at, Int):
                return Poison(f"'{name}' is read at a place that only the data tell", self.line)
            cell = cells.get(at.value)
            if cell is None:
                return Poison(f"'{name}[{at.value}]' is read before anything is there", self.line)
            apart = cell.writer // self.warp != thread // self.warp
            if cell.epoch == self.epoch and cell.writer != thread and apart and cell.writer >= 0:
                return Poison(
                    f"'{name}[{at.value}]' is read with no barrier since another warp wrote it", self.line
                )
            return self.settled(cell.value, thread)

        return self.vector(active, read)

    def write_cells(self, name: str, index: Vec, values: Vec, active: Threads) -> None:
        cells = self.cells[name]
        for thread in active:
            at = index.at(thread)
            if not isinstance(at, Int):
                raise self.refusal(f"shared memory '{name}' is written at places that only the data tell")
            value = self.sent(values.at(thread), thread)
            old = cells.get(at.value)
            clash = old is not None and old.epoch == self.epoch and old.writer not in (thread, -1)
            if clash and old is not None and old.value != value:
                value = Poison(f"several threads write '{name}[{at.value}]'", self.line)
            cells[at.value] = SharedCell(value, thread, self.epoch)

    def vector(self, active: Threads, fn: Callable[[int], Value]) -> Vec:
        self.work += len(active)
        if self.work > MAX_WORK:
            raise self.refusal("playing through its threads takes too long")
        many: list[Value] = [_UNSET] * self.threads
        first: Value | None = None
        same = True
        for thread in active:
            value = fn(thread)
            many[thread] = value
            if first is None:
                first = value
            elif same and value is not first and value != first:
                same = False
        if same and first is not None and not isinstance(first, PartialTotal | Share | Which):
            return Vec(first)
        return Vec(None, many)

    def apply(self, fn: Callable[[Value, Value, int], Value], left: Vec, right: Vec, active: Threads) -> Vec:
        if left.one is not None and right.one is not None:
            return Vec(fn(left.one, right.one, active[0] if active else 0))
        return self.vector(active, lambda t: fn(left.at(t), right.at(t), t))

    def each(self, fn: Callable[[Value], Value], values: Vec, active: Threads) -> Vec:
        return self.apply(lambda value, _, thread: fn(value), values, values, active)

    def truth(self, value: Value) -> bool | None:
        """What a condition is where who and how many the threads are settles it; None where it does not."""
        return bool(value.value) if isinstance(value, Int) and self.is_settled(value) else None

    def sent(self, value: Value, thread: int) -> Value:
        """What other threads get of a thread's value."""
        expr = expr_of(value)
        return Share(expr, 1 << thread) if expr is not None and self.is_of_element(expr) else value

    def without_changed(self, before: Cells, why: str) -> None:
        """Cells that differ from before hold nothing that may be used."""
        for name, cells in self.cells.items():
            for at, cell in cells.items():
                old = before[name].get(at)
                if old is None or old.value != cell.value or old.epoch != cell.epoch:
                    cell.value = Poison(why, self.line)

    @property
    def staged_names(self) -> frozenset[str]:
        return frozenset(found.staged.name for found in self.staged.values())

    def cell_index_clashes(self, name: str, index: Vec, active: Threads) -> bool:
        bounds = [each for one in self.staged.values() if one.array == name for each in one.bounds]
        places = [place.value for thread in active if isinstance(place := index.at(thread), Int)]
        return any(low <= place < high for place in places for low, high in bounds)

    def shared_name(self, target: Expr) -> str | None:
        name, _ = array_and_indices(target)
        return name if name in self.shared else None

    def held(self) -> tuple[dict[str, Vec], Cells]:
        """All that threads hold now, for `put_back`."""
        return dict(self.variables), copied_cells(self.cells)

    def put_back(self, held: tuple[Mapping[str, Vec], Cells]) -> None:
        self.variables, self.cells = dict(held[0]), copied_cells(held[1])

    def check_mask(self, masks: Vec, active: Threads) -> None:
        """All of a warp that are here, and nobody else, take part in what one of them joins."""
        for thread in active:
            first, mask = thread // self.warp * self.warp, masks.at(thread)
            here = sum(1 << (t - first) for t in active if first <= t < first + self.warp)
            if not isinstance(mask, Int) or mask.value & ((1 << self.warp) - 1) != here:
                raise self.refusal("a mask that is not just the threads of the warp that are here")

    def is_of_element(self, expr: Expr | None) -> bool:
        return bool(self.own_index) and expr is not None and self.own_index in names_in(expr)

    def is_settled(self, value: Int) -> bool:
        """Whether a condition is decided by who and how many the threads are, not by sizes or data."""
        expr = value.expr
        of_threads = expr is None or value.launch or isinstance(expr, Number)
        return not value.sized and (of_threads or self.is_of_element(expr))

    def fill(self, inside: Expr | None, outside: Expr | None) -> None:
        """What threads beyond the last element hold instead."""
        if inside is not None and outside is not None and self.is_of_element(inside):
            self.fillers[inside] = outside


# -- Totals that libraries make: over whom, and who has them afterwards.
#
# The first thread of a block or warp has what CUB gives, the others nothing that may be used; of a tile of
# cooperative groups all have it. Every thread of the group must come, in a block no larger than was told.


_JOINED: Mapping[str, Operator] = {"add": "+", "max": "max", "min": "min"}
# Of the languages: over a block or a warp, for all of its threads.
GROUP_TOTALS: Mapping[str, Operator] = {
    "work_group_reduce_add": "+", "work_group_reduce_max": "max", "work_group_reduce_min": "min",
    "sub_group_reduce_add": "+", "sub_group_reduce_max": "max", "sub_group_reduce_min": "min",
    "__reduce_add_sync": "+", "__reduce_max_sync": "max", "__reduce_min_sync": "min",
    "__reduce_or_sync": "|", "__reduce_and_sync": "&", "__reduce_xor_sync": "^",
}  # fmt: skip
LIBRARY_TOTALS: Mapping[str, tuple[str, Operator]] = {
    f"__{of}_total_{word}": (of, operator)
    for of in ("block", "warp", "tile")
    for word, operator in _JOINED.items()
}


@dataclass(frozen=True)
class LibraryTotal:
    memory: BlockMemory
    operator: Operator
    span: int  # threads that make one total
    active: Threads
    for_all: bool

    def seen(self, total: Vec) -> Vec:
        """What each thread has of it."""
        if self.for_all:
            return total
        nothing = Poison("only the first thread has what the library's total gives", self.memory.line)
        return self.memory.vector(self.active, lambda t: nothing if t % self.span else total.at(t))


def library_total(memory: BlockMemory, name: str, sizes: Sequence[Vec], active: Threads) -> LibraryTotal:
    """`sizes`: the threads that the library was told of, and how many of them have a value."""
    of, operator = LIBRARY_TOTALS[name]
    numbers = [one_value(size, active) for size in sizes]
    known = [number.value for number in numbers if isinstance(number, Int)]
    threads = memory.threads
    if not known or len(known) != len(sizes) or (of == "block" and len(active) != threads):
        raise memory.refusal("the library's total is not called by all threads, or with sizes not known")
    told, valid = known[0], known[-1]
    span = threads if of == "block" else told
    everybody = valid == threads or (told == threads and valid > told)  # a full block asks for no more
    if of == "block" and (not everybody or told < threads):
        raise memory.refusal(f"a total over {valid} of {threads} threads, in a block of {told}")
    if of != "block" and (len(known) > 1 or not 0 < span <= memory.warp or span & (span - 1)):
        raise memory.refusal("a total over a part of a warp that is not understood")
    firsts = {thread - thread % span for thread in active}
    if of != "block" and any(t not in active for f in firsts for t in range(f, min(f + span, threads))):
        raise memory.refusal("the library's total is not called by all threads of a group")
    return LibraryTotal(memory, operator, span, active, for_all=of == "tile")


# -- What a team does and knows: steps, a name for every expression worth one, the bounds of tasks.
#
# Teams in which every thread holds one element: no loop over a row's elements, but one thread for each.
#
#     float v = i < d ? x[row * d + i] : -INFINITY;      what is computed from the thread's own number i is an
#     m = block_max(v);                                  expression over elements; joining it over the team
#     out[row * d + i] = expf(v - m) / sum;              makes a total of it, storing it a loop that stores
#
# Such expressions are carried along unnamed and computed again in every loop that needs them.


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

    def test(self, op: str, left: Int, right: Int) -> Int | None:
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
            extent = limit.expr if relation in ("<", ">=") else c.Binary("+", limit.expr, number_node(1))
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
        self.named: dict[tuple[str, c.Expr], str] = {}
        self.taken = set(normal.types) | set(normal.ids) | set(memory.fixed)
        self.let_types: dict[str, c.Type] = {}
        self._numbers: dict[str, int] = {}  # the last that a name was given
        # What was first seen in a cell of shared memory is better called by the variable that it goes into.
        self.from_shared: set[str] = set()
        self.better_names: dict[str, str] = {}
        self.loaded_at: dict[tuple[str, c.Expr], int] = {}
        self.speculative = 0

    def as_variable(self, type_: c.Type, hint: str, value: Value) -> Value:
        """A value as a variable of the type holds it; expressions get a name."""
        match value:
            case Int(expr=expr) if not is_integer(type_) and expr is not None:
                return Sym(self.name_of(type_, hint, expr))
            case Int(value=given, expr=expr) if (held := wrap_value(type_, given)) != given:
                said = c.Cast(c.Type(type_.base), expr) if expr is not None else None
                return replace(
                    value, value=held, expr=number_node(held) if isinstance(expr, c.Number) else said
                )
            case Int(expr=expr) if expr is not None and not isinstance(expr, c.Number):
                return replace(value, expr=as_integer(type_, expr, self.memory.types))
            case Sym(expr=expr):
                return Sym(self.name_of(type_, hint, expr))
            case PartialTotal(parts=parts) if self.memory.totals[parts[0][0]].type.base != type_.base:
                return Poison(f"a part of '{parts[0][0]}' changes its type", self.memory.line)
            case Which():
                return Poison("a comparison of parts of a total", self.memory.line)
        return value

    def name_of(self, type_: c.Type, hint: str, expr: c.Expr) -> c.Expr:
        """A `Let` for the expression, unless it is as simple as a name itself."""
        if self.memory.is_of_element(expr):
            return self._cast_to_type(type_, expr)
        known = self.all_types.get(expr.name) if isinstance(expr, c.Name) else None
        if isinstance(expr, c.Name) and known is not None and known.base == type_.base:
            if expr.name in self.from_shared and hint not in {*self.memory.shared, *self.let_types}:
                self.better_names.setdefault(expr.name, hint)
            return expr
        constant = _typed_constant(type_, expr)
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

    def add_store(self, assign: c.Expr, bounded: frozenset[str]) -> c.Stmt:
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

    def _cast_to_type(self, type_: c.Type, expr: c.Expr) -> c.Expr:
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


def _typed_constant(type_: c.Type, expr: c.Expr) -> c.Expr | None:
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
            inner = _typed_constant(type_, operand)
            return None if inner is None else c.Unary("-", inner)
        case c.Name(name=name):
            return expr if name in INFINITIES and type_.base in ("float", "double") else None
        case c.Call(function="__int_as_float" | "__uint_as_float" | "as_float", args=(c.Number(),)):
            return expr if type_.base == "float" else None
        case c.Cast(type=cast, value=inner_value) if cast.base == type_.base:
            return _typed_constant(type_, inner_value)
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
        return number_node(-1 if operator == "&" else value)
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

    def as_total(self, operator: Operator, value: Value, thread: int) -> Value:
        share = value if isinstance(value, Share) else self.memory.sent(value, thread)
        if not isinstance(share, Share):
            return value
        name = self.made.get((share.expr, operator))
        if name is None:
            name = self.made[(share.expr, operator)] = self.new_total(operator, share.expr)
        return PartialTotal(operator, ((name, share.mask),))

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
            elif not is_identity(operator, filled) and not (operator == "+" and _is_zero_exponential(filled)):
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

        def kept(value: Value) -> Value:
            expr = value.expr if isinstance(value, Int | Sym | Share) else None
            lost = Poison(f"uses '{array}' as it was before it is stored to", self.memory.line)
            return lost if self.memory.is_of_element(expr) and loads(expr) else value

        for name, vec in self.memory.variables.items():
            values = [vec.one] if vec.one is not None else vec.many
            now = [kept(value) for value in values]
            if any(new is not old for new, old in zip(now, values, strict=True)):
                self.memory.variables[name] = Vec(now[0]) if vec.one is not None else Vec(None, now)
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
        return Each(index, number_node(0), stop, body, totals, self.element_type, line=line, order=order)


def _is_zero_exponential(expr: c.Expr) -> bool:
    """exp(-infinity - m), as threads without an element add it to a sum of exponentials."""
    while isinstance(expr, c.Cast):
        expr = expr.value
    if not isinstance(expr, c.Call) or expr.function not in EXPONENTIALS:
        return False
    arg = expr.args[0]
    while isinstance(arg, c.Binary) and arg.op == "-":
        arg = arg.left
    return is_identity("max", arg)


def refuse_below_zero(expr: c.Binary, sides: tuple[Vec, Vec], active: Threads, memory: BlockMemory) -> None:
    """Numbers of threads are counted without wraps: an unsigned one below zero is really a large one."""
    if expr.op not in MIRROR and expr.op not in ("/", "%", ">>"):
        return
    common = integer_type(c.Binary("+", expr.left, expr.right), memory.types)
    if common is None or INTEGERS[common.base][1]:
        return
    values = (value for side in sides for value in side.values(active))
    if any(isinstance(value, Int) and value.value < 0 for value in values):
        raise memory.refusal(f"an unsigned number below zero in '{print_expr(expr)}'")
