"""What the threads of one block hold: variables, shared memory, totals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tunesmith.csource.nodes import (
    Binary,
    Call,
    Declare,
    Expr,
    Name,
    Type,
)
from tunesmith.csource.types import is_integer
from tunesmith.expert.model.kernel import Total
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.scenario import Scenario
from tunesmith.expert.model.team_values import (
    ZERO,
    Int,
    Part,
    Poison,
    Share,
    Sym,
    Value,
    Which,
    expr_of,
)

Threads = tuple[int, ...]
MOST_WORK = 150_000  # evaluations for one scenario


@dataclass
class Vec:
    """A value for every thread: one for all, or a list by thread number."""

    one: Value | None = None
    many: list[Value] = field(default_factory=list)

    def at(self, thread: int) -> Value:
        return self.many[thread] if self.one is None else self.one


@dataclass
class Cell:
    value: Value
    writer: int
    epoch: int


@dataclass(frozen=True)
class Effect:
    """A store and the tasks whose bound was known to hold there."""

    line: int
    bounded: frozenset[str]


class Memory:
    """The variables of every thread and the cells of shared memory."""

    def __init__(
        self,
        scenario: Scenario,
        lanes: int,
        warp: int,
        types: Mapping[str, Type],
        arrays: Mapping[str, Type],
        shared: Mapping[str, Declare],
        fixed: Mapping[str, Vec],
    ) -> None:
        self.scenario = scenario
        self.threads = scenario.threads
        self.warp = warp
        self.lanes = lanes
        self.team_masks = tuple(((1 << lanes) - 1) << (team * lanes) for team in range(self.threads // lanes))
        self.types = types
        self.arrays = arrays
        self.shared = shared
        self.fixed = fixed  # built-in indices and the variables made of them
        self.variables: dict[str, Vec] = {}
        self.cells: dict[str, dict[int, Cell]] = {name: {} for name in shared}
        self.totals: dict[str, Total] = {}
        self.epoch = 0
        self.line = 0
        self.work = 0
        self.log: list[tuple[str, int | None, int, Value | None]] | None = None

    def beyond(self, reason: str) -> OutOfReach:
        return OutOfReach(f"line {self.line}: {reason}", self.line)

    def team(self, thread: int) -> int:
        return thread // self.lanes

    def settled(self, value: Value, thread: int) -> Value:
        """A part that has everyone's share is the total itself."""
        if isinstance(value, Part):
            whole = self.team_masks[self.team(thread)]
            if all(mask == whole for _, mask in value.parts):
                return Sym(self.whole(value))
            if any(mask & ~whole for _, mask in value.parts):
                return Poison("mixes the shares of different tasks", self.line)
        return value

    def whole(self, part: Part) -> Expr:
        names = [Name(name) for name, _ in part.parts]
        result: Expr = names[0]
        for name in names[1:]:
            combine = self.totals[part.parts[0][0]].combine
            if part.operator in ("max", "min"):
                result = Call(combine or f"f{part.operator}f", (result, name))
            else:
                result = Binary(part.operator, result, name)
        return result

    def read(self, name: str, active: Threads) -> Vec:
        if name in self.fixed:
            return self.fixed[name]
        if name in self.variables:
            return self.variables[name]
        if name in self.shared:
            return self.read_cells(name, Vec(ZERO), active)
        if name in self.types and not self.types[name].is_pointer:
            numbers = dict(self.scenario.parameters)
            if name in numbers and is_integer(self.types[name]):
                return Vec(Int(numbers[name], Name(name), sized=True))
        return Vec(Sym(Name(name)))

    def write(self, name: str, values: Vec, active: Threads) -> None:
        old = self.variables.get(name)
        if self.log is not None:
            before = old or Vec(Poison(f"'{name}' is read before it is set", self.line))
            self.log += [(name, None, thread, before.at(thread)) for thread in active]
        if values.one is not None and len(active) == self.threads:
            self.variables[name] = values
            return
        unset: Value = Poison(f"'{name}' is set in some threads only", self.line)
        many = [old.at(t) for t in range(self.threads)] if old is not None else [unset] * self.threads
        for thread in active:
            many[thread] = values.at(thread)
        self.variables[name] = Vec(None, many)

    def read_cells(self, name: str, index: Vec, active: Threads) -> Vec:
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
                raise self.beyond(f"shared memory '{name}' is written at places that only the data tell")
            value = self.sent(values.at(thread), thread)
            old = cells.get(at.value)
            if self.log is not None:
                self.log.append((name, at.value, thread, old.value if old else None))
            clash = old is not None and old.epoch == self.epoch and old.writer not in (thread, -1)
            if clash and old is not None and old.value != value:
                value = Poison(f"several threads write '{name}[{at.value}]'", self.line)
            cells[at.value] = Cell(value, thread, self.epoch)

    def vector(self, active: Threads, fn: Callable[[int], Value]) -> Vec:
        self.work += len(active)
        if self.work > MOST_WORK:
            raise self.beyond("playing through its threads takes too long")
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
        if same and first is not None and not isinstance(first, Part | Share | Which):
            return Vec(first)
        return Vec(None, many)

    def apply(self, fn: Callable[[Value, Value, int], Value], left: Vec, right: Vec, active: Threads) -> Vec:
        if left.one is not None and right.one is not None:
            return Vec(fn(left.one, right.one, active[0] if active else 0))
        return self.vector(active, lambda t: fn(left.at(t), right.at(t), t))

    def sent(self, value: Value, thread: int) -> Value:
        """What other threads get of a thread's value; overridden where it depends on the element."""
        return value


_UNSET = Poison("it is not set in every thread")


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
        if isinstance(value, Part):
            names = ", ".join(f"'{name}'" for name, _ in value.parts)
            return f"not every thread's share of {names} is in it"
    return "it differs from thread to thread"
