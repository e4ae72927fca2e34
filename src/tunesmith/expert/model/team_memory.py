"""What the threads of one block hold: variables, shared memory, totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tunesmith.csource.nodes import Binary, Call, Expr, Index, Name, Number
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import names_in
from tunesmith.expert.model import team_values as tv
from tunesmith.expert.model.geometry import Layout
from tunesmith.expert.model.kernel import ElementArray, OutOfReach, Total
from tunesmith.expert.model.normal import Normal

_UNSET = tv.Poison("it is not set in every thread")
MOST_WORK = 150_000  # evaluations for one scenario
Span = tuple[Expr, Expr, int]  # start, stop and unit of a loop
Key = tuple[str, int | None, int]  # a variable (None) or a cell of shared memory, as one thread sees it


@dataclass
class SharedCell:
    value: tv.Value
    writer: int
    epoch: int


Cells = dict[str, dict[int, SharedCell]]


@dataclass(frozen=True)
class KeptArray:
    """`bounds`: first and last place of every team, in the shared array's own elements."""

    kept: ElementArray
    array: str
    bounds: tuple[tuple[int, int], ...]
    span: Span


@dataclass
class KeptArrays:
    """By array, type and first places."""

    found: dict[tuple[str, str, tuple[int, ...]], KeptArray] = field(default_factory=dict)

    def covers(self, array: str, place: int) -> bool:
        return any(
            kept.array == array and any(low <= place < high for low, high in kept.bounds)
            for kept in self.found.values()
        )


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
        fixed: Mapping[str, tv.Vec],
        aliases: Mapping[str, str],
        own_index: str,
    ) -> None:
        self.scenario = layout.scenario
        self.threads = self.scenario.threads
        self.warp = warp
        self.lanes = layout.lanes
        teams = self.threads // self.lanes
        self.team_masks = tuple(((1 << self.lanes) - 1) << (team * self.lanes) for team in range(teams))
        self.types = normal.types
        self.arrays = normal.arrays
        self.shared = normal.shared
        self.aliases = aliases
        self.fixed = fixed  # built-in indices and the variables made of them
        self.own_index = own_index
        self.variables: dict[str, tv.Vec] = {}
        self.cells: Cells = {name: {} for name in self.shared}
        self.kept_arrays = KeptArrays()
        self.totals: dict[str, Total] = {}
        self.fillers: dict[Expr, Expr] = {}  # what threads beyond the last element hold instead
        self.epoch = 0
        self.line = 0
        self.work = 0
        self.log: list[tuple[str, int | None, int, tv.Value | None]] | None = None

    def refusal(self, reason: str) -> OutOfReach:
        return OutOfReach.at(self.line, reason)

    def team(self, thread: int) -> int:
        return thread // self.lanes

    def settled(self, value: tv.Value, thread: int) -> tv.Value:
        """A part that has everyone's share is the total itself; a thread's own share is its element."""
        if isinstance(value, tv.Share):
            return tv.Sym(value.expr) if value.mask == 1 << thread else value
        if isinstance(value, tv.PartialTotal):
            whole = self.team_masks[self.team(thread)]
            if all(mask == whole for _, mask in value.parts):
                return tv.Sym(self.whole(value))
            if any(mask & ~whole for _, mask in value.parts):
                return tv.Poison("mixes the shares of different tasks", self.line)
        return value

    def whole(self, part: tv.PartialTotal) -> Expr:
        names = [Name(name) for name, _ in part.parts]
        result: Expr = names[0]
        for name in names[1:]:
            combine = self.totals[part.parts[0][0]].combine
            if part.operator in ("max", "min"):
                result = Call(combine or f"f{part.operator}f", (result, name))
            else:
                result = Binary(part.operator, result, name)
        return result

    def read(self, name: str, active: tv.Threads) -> tv.Vec:
        if name in self.fixed:
            return self.fixed[name]
        if name in self.variables:
            return self.variables[name]
        if name in self.shared:
            return self.read_cells(name, tv.Vec(tv.ZERO), active)
        if name in self.types and not self.types[name].is_pointer:
            numbers = dict(self.scenario.parameters)
            if name in numbers and is_integer(self.types[name]):
                return tv.Vec(tv.Int(numbers[name], Name(name), sized=True))
        return tv.Vec(tv.Sym(Name(name)))

    def write(self, name: str, values: tv.Vec, active: tv.Threads) -> None:
        old = self.variables.get(name)
        if self.log is not None:
            before = old or tv.Vec(tv.Poison(f"'{name}' is read before it is set", self.line))
            self.log += [(name, None, thread, before.at(thread)) for thread in active]
        if values.one is not None and len(active) == self.threads:
            self.variables[name] = values
            return
        unset: tv.Value = tv.Poison(f"'{name}' is set in some threads only", self.line)
        many = [old.at(t) for t in range(self.threads)] if old is not None else [unset] * self.threads
        for thread in active:
            many[thread] = values.at(thread)
        self.variables[name] = tv.Vec(None, many)

    def read_cells(self, name: str, index: tv.Vec, active: tv.Threads) -> tv.Vec:
        if self.cell_index_clashes(name, index, active):
            raise self.refusal(f"shared memory '{name}' holds a row's elements and is read singly too")
        cells = self.cells[name]

        def read(thread: int) -> tv.Value:
            at = index.at(thread)
            if not isinstance(at, tv.Int):
                return tv.Poison(f"'{name}' is read at a place that only the data tell", self.line)
            cell = cells.get(at.value)
            if cell is None:
                return tv.Poison(f"'{name}[{at.value}]' is read before anything is there", self.line)
            apart = cell.writer // self.warp != thread // self.warp
            if cell.epoch == self.epoch and cell.writer != thread and apart and cell.writer >= 0:
                return tv.Poison(
                    f"'{name}[{at.value}]' is read with no barrier since another warp wrote it", self.line
                )
            return self.settled(cell.value, thread)

        return self.vector(active, read)

    def write_cells(self, name: str, index: tv.Vec, values: tv.Vec, active: tv.Threads) -> None:
        cells = self.cells[name]
        for thread in active:
            at = index.at(thread)
            if not isinstance(at, tv.Int):
                raise self.refusal(f"shared memory '{name}' is written at places that only the data tell")
            value = self.sent(values.at(thread), thread)
            old = cells.get(at.value)
            if self.log is not None:
                self.log.append((name, at.value, thread, old.value if old else None))
            clash = old is not None and old.epoch == self.epoch and old.writer not in (thread, -1)
            if clash and old is not None and old.value != value:
                value = tv.Poison(f"several threads write '{name}[{at.value}]'", self.line)
            cells[at.value] = SharedCell(value, thread, self.epoch)

    def vector(self, active: tv.Threads, fn: Callable[[int], tv.Value]) -> tv.Vec:
        self.work += len(active)
        if self.work > MOST_WORK:
            raise self.refusal("playing through its threads takes too long")
        many: list[tv.Value] = [_UNSET] * self.threads
        first: tv.Value | None = None
        same = True
        for thread in active:
            value = fn(thread)
            many[thread] = value
            if first is None:
                first = value
            elif same and value is not first and value != first:
                same = False
        if same and first is not None and not isinstance(first, tv.PartialTotal | tv.Share | tv.Which):
            return tv.Vec(first)
        return tv.Vec(None, many)

    def apply(
        self,
        fn: Callable[[tv.Value, tv.Value, int], tv.Value],
        left: tv.Vec,
        right: tv.Vec,
        active: tv.Threads,
    ) -> tv.Vec:
        if left.one is not None and right.one is not None:
            return tv.Vec(fn(left.one, right.one, active[0] if active else 0))
        return self.vector(active, lambda t: fn(left.at(t), right.at(t), t))

    def each(self, fn: Callable[[tv.Value], tv.Value], values: tv.Vec, active: tv.Threads) -> tv.Vec:
        return self.apply(lambda value, _, thread: fn(value), values, values, active)

    def truth(self, value: tv.Value) -> bool | None:
        """What a condition is where who and how many the threads are settles it; None where it does not."""
        return bool(value.value) if isinstance(value, tv.Int) and self.is_settled(value) else None

    def sent(self, value: tv.Value, thread: int) -> tv.Value:
        """What other threads get of a thread's value."""
        expr = tv.expr_of(value)
        return tv.Share(expr, 1 << thread) if expr is not None and self.is_of_element(expr) else value

    def without_changed(self, before: Cells, why: str) -> None:
        """Cells that differ from before hold nothing that may be used."""
        for name, cells in self.cells.items():
            for at, cell in cells.items():
                old = before[name].get(at)
                if old is None or old.value != cell.value or old.epoch != cell.epoch:
                    cell.value = tv.Poison(why, self.line)

    @property
    def kept_names(self) -> frozenset[str]:
        return frozenset(found.kept.name for found in self.kept_arrays.found.values())

    def forget(self, name: str, why: tv.Poison) -> None:
        self.variables[name] = tv.Vec(why)

    def cell_index_clashes(self, name: str, index: tv.Vec, active: tv.Threads) -> bool:
        places = [index.at(thread) for thread in active]
        return any(isinstance(p, tv.Int) and self.kept_arrays.covers(name, p.value) for p in places)

    def shared_name(self, target: Expr) -> str | None:
        while isinstance(target, Index):
            target = target.base
        return target.name if isinstance(target, Name) and target.name in self.shared else None

    def now(self, key: Key) -> tv.Value:
        name, cell, thread = key
        return self.variables[name].at(thread) if cell is None else self.cells[name][cell].value

    def restore(self, key: Key, old: tv.Value | None) -> None:
        name, cell, thread = key
        log, self.log = self.log, None
        if cell is None:
            self.write(
                name, tv.Vec(old or tv.Poison(f"'{name}' is read before it is set", self.line)), (thread,)
            )
        elif old is None:
            self.cells[name].pop(cell, None)
        else:
            self.cells[name][cell] = SharedCell(old, thread, self.epoch)
        self.log = log

    def is_of_element(self, expr: Expr | None) -> bool:
        return bool(self.own_index) and expr is not None and self.own_index in names_in(expr)

    def is_settled(self, value: tv.Int) -> bool:
        """Whether a condition is decided by who and how many the threads are, not by sizes or data."""
        expr = value.expr
        of_threads = expr is None or value.launch or isinstance(expr, Number)
        return not value.sized and (of_threads or self.is_of_element(expr))

    def fill(self, inside: Expr | None, outside: Expr | None) -> None:
        """What threads beyond the last element hold instead."""
        if inside is not None and outside is not None and self.is_of_element(inside):
            self.fillers[inside] = outside
