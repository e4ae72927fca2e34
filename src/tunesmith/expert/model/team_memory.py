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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Index, Name, Number, Unary
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.geometry import Layout
from tunesmith.expert.model.kernel import ElementArray, Operator, OutOfReach, Total
from tunesmith.expert.model.normal import Normal


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
    return constant(expr, 0) in _IDENTITY[operator]


def constant(expr: Expr, depth: int) -> float | None:
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
            return constant(value, depth + 1)
        case Unary(op="-", operand=operand):
            inner = constant(operand, depth + 1)
            return None if inner is None else -inner
        case Binary(op=op, left=left, right=right):
            return _calculated(op, constant(left, depth + 1), constant(right, depth + 1))
    return None


def _calculated(op: str, left: float | None, right: float | None) -> float | None:
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


def joined(operator: Operator, left: PartialTotal, right: PartialTotal) -> PartialTotal | Poison:
    """Two parts as one; for sums no thread's share may be in both."""
    found = dict(left.parts)
    for name, mask in right.parts:
        mine = found.get(name, 0)
        if mine & mask and operator not in ("max", "min", "&", "|"):
            return Poison("counts the share of some threads twice")
        found[name] = mine | mask
    return PartialTotal(operator, tuple(found.items()))


ZERO = Int(0, number(0))
ONE = Int(1, number(1))


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


def blame(vec: Vec, active: Iterable[int]) -> str:
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


def array_and_indices(expr: Expr) -> tuple[str | None, tuple[Expr, ...]]:
    """`a[y][x]` -> a, (y, x)"""
    indices: list[Expr] = []
    while isinstance(expr, Index):
        indices.insert(0, expr.index)
        expr = expr.base
    return (expr.name if isinstance(expr, Name) else None), tuple(indices)


_UNSET = Poison("it is not set in every thread")
MOST_WORK = 600_000  # evaluations for one scenario
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
    empty where threads go through elements in loops.
    """

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
        if self.work > MOST_WORK:
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
