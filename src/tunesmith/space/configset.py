"""The legal configurations of a space as a numbered set, without a list of them.

Parameters that share no constraint are listed apart and their product is left implicit: configuration i is
found by dividing i by what lies below, like the digits of a number. With several workloads a row of one table
may suit only some of them, and two rows go together only if a common workload is left. The set is therefore
a small graph: a state is the workloads still possible at a table, and every group of rows leads from a state
to a state of the next table. States are few, and counting from the last table back makes the numbering exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tunesmith.errors import BadInput
from tunesmith.space.enumeration import ComboTable, Ids
from tunesmith.space.expr import LIMIT
from tunesmith.space.params import Config, Param

_CHUNK = 4096


@dataclass(frozen=True)
class _Level:
    """A table and, for each state and group of rows, where it leads."""

    table: ComboTable
    leads_to: NDArray[np.int64]  # [state, group]: the state at the next level
    below: NDArray[np.int64]  # [state, group]: configurations for each row of the group
    firsts: NDArray[np.int64]  # [state, group]: the first number, relative to the state's


class ConfigSet:
    """Every configuration legal for at least one workload, numbered from 0 in a fixed order."""

    def __init__(
        self,
        params: Sequence[Param],
        tables: Sequence[ComboTable],
        workloads: int,
        possible: int,
        candidate: str = "",
    ) -> None:
        """`possible` is the set of workloads (bit i: workload i) not ruled out by their sizes alone."""
        self._params = tuple(params)
        self._candidate = candidate
        self._workloads = workloads
        self._levels, self._outcomes, self._size = _link(tables, possible)
        largest = max((len(param.values) for param in params), default=1)
        self._position_type = np.min_scalar_type(largest - 1)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Config:
        return self._config(self.positions([self._checked(index)])[0].tolist())

    def __iter__(self) -> Iterator[Config]:
        for start in range(0, self._size, _CHUNK):
            for row in self.positions(range(start, min(start + _CHUNK, self._size))).tolist():
                yield self._config(row)

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Config) and self.index(config) is not None

    def index(self, config: Config) -> int | None:
        """The number of a configuration, None where it is not in the set."""
        values = config.as_dict()
        if config.candidate != self._candidate or values.keys() != {param.name for param in self._params}:
            return None
        positions = [param.positions.get(values[param.name], -1) for param in self._params]
        if -1 in positions or not self._size:
            return None
        number, state = 0, 0
        for level in self._levels:
            found = _find(level.table, positions)
            if found is None:
                return None
            group, place = found
            below = int(level.below[state, group])
            if not below:  # no workload is left
                return None
            number += int(level.firsts[state, group]) + place * below
            state = int(level.leads_to[state, group])
        return number

    def feasible(self, index: int) -> tuple[bool, ...]:
        """For each workload, whether the configuration is legal (and preferred) there."""
        _, states = self._walk([self._checked(index)])
        left = self._outcomes[int(states[0])]
        return tuple(bool(left >> bit & 1) for bit in range(self._workloads))

    def feasible_matrix(self, indices: ArrayLike | None = None) -> NDArray[np.bool_]:
        """One row per index (all without), one column per workload."""
        _, states = self._walk(indices)
        bits = [[bool(left >> bit & 1) for bit in range(self._workloads)] for left in self._outcomes]
        return np.array(bits, dtype=np.bool_).reshape(-1, self._workloads)[states]

    def positions(self, indices: ArrayLike | None = None) -> NDArray[np.unsignedinteger]:
        """One row per index (all without), one column per parameter: positions in the domains."""
        rows, states = self._walk(indices)
        # Filled, and mostly read, column by column.
        matrix = np.empty((len(states), len(self._params)), dtype=self._position_type, order="F")
        for level, row in zip(self._levels, rows, strict=True):
            for param, column in zip(level.table.params, level.table.columns, strict=True):
                matrix[:, param] = column[row]
        return matrix

    def values_matrix(self, indices: ArrayLike | None = None) -> NDArray[np.int64]:
        """One row per index (all without), one column per parameter: the values themselves."""
        positions = self.positions(indices)
        matrix = np.empty(positions.shape, dtype=np.int64, order="F")
        for column, param in enumerate(self._params):
            matrix[:, column] = np.array(param.values, dtype=np.int64)[positions[:, column]]
        return matrix

    def _checked(self, index: int) -> int:
        number = index + self._size if index < 0 else index
        if not 0 <= number < self._size:
            raise IndexError(f"configuration {index} of {self._size}")
        return number

    def _config(self, positions: Sequence[int]) -> Config:
        pairs = zip(self._params, positions, strict=True)
        items = tuple((param.name, param.values[position]) for param, position in pairs)
        return Config(items, self._candidate)

    def _walk(self, indices: ArrayLike | None) -> tuple[list[Ids], NDArray[np.int64]]:
        """For each index, its row in every table, and the state reached after the last."""
        rest = np.arange(self._size) if indices is None else np.asarray(indices, dtype=np.int64)
        if rest.size and (rest.min() < 0 or rest.max() >= self._size):
            raise IndexError(f"configurations {rest.min()} to {rest.max()} of {self._size}")
        states = np.zeros(len(rest), dtype=np.int64)
        rows: list[Ids] = []
        for level in self._levels:
            if level.below.size == 1:  # always so with one workload: the same answer, several times faster
                place, rest = np.divmod(rest, level.below[0, 0])
                rows.append(level.table.grouped[place])
                continue
            groups = _groups(level, states, rest)
            place, rest = np.divmod(rest - level.firsts[states, groups], level.below[states, groups])
            rows.append(level.table.grouped[place + level.table.starts[groups]])
            states = level.leads_to[states, groups]
        return rows, states


def _link(tables: Sequence[ComboTable], possible: int) -> tuple[tuple[_Level, ...], tuple[int, ...], int]:
    """The levels, the workload sets of the states after the last one, and the number of configurations."""
    states: list[list[int]] = [[possible]]
    for table in tables:
        met = {state & rows for state in states[-1] for rows in table.sets} - {0}
        states.append(sorted(met))
    totals = [1] * len(states[-1]) if possible else [0]
    levels: list[_Level] = []
    for table, here, after in zip(reversed(tables), reversed(states[:-1]), reversed(states[1:]), strict=True):
        places = {state: place for place, state in enumerate(after)}
        sizes = np.diff(table.starts).tolist()
        # A group that leaves no workload counts nothing; where it leads does not matter.
        leads_to = [[places.get(state & rows, 0) for rows in table.sets] for state in here]
        each = {0: 0} | {state: totals[place] for state, place in places.items()}
        below = [[each[state & rows] for rows in table.sets] for state in here]
        firsts: list[list[int]] = []
        totals = []
        for row in below:
            ends = [0]
            for size, count in zip(sizes, row, strict=True):
                ends.append(ends[-1] + size * count)
            firsts.append(ends[:-1])
            totals.append(ends[-1])
        if max(totals, default=0) > LIMIT:
            fault = "the space has more than 2**62 legal configurations, too many to number"
            raise BadInput(fault, hint="give its parameters fewer values, or add constraints")
        shape = (len(here), len(table.sets))
        as_array = [np.array(cells, dtype=np.int64).reshape(shape) for cells in (leads_to, below, firsts)]
        levels.append(_Level(table, *as_array))
    return tuple(reversed(levels)), tuple(states[-1]), sum(totals)


def _groups(level: _Level, states: NDArray[np.int64], rest: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which group of rows each number falls into, given its state."""
    groups = np.zeros(len(rest), dtype=np.int64)
    if level.below.shape[1] == 1:
        return groups
    for state in range(len(level.below)):
        here = np.flatnonzero(states == state)
        counted = np.flatnonzero(level.below[state])
        place = np.searchsorted(level.firsts[state, counted], rest[here], side="right") - 1
        groups[here] = counted[place]
    return groups


def _find(table: ComboTable, positions: Sequence[int]) -> tuple[int, int] | None:
    """The group of the row with these positions, and its place in the group."""
    low, high = 0, len(table.groups)
    for param, column in zip(table.params, table.columns, strict=True):
        wanted = column.dtype.type(positions[param])  # another type would convert the whole column
        part = column[low:high]
        low, high = low + int(part.searchsorted(wanted)), low + int(part.searchsorted(wanted, "right"))
    if low == high:
        return None
    group = int(table.groups[low])
    members = table.grouped[table.starts[group] : table.starts[group + 1]]
    return group, int(members.searchsorted(np.int32(low)))
