"""A parameter with its finite domain, and a configuration: one value for each parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tunesmith.base.errors import BadInput
from tunesmith.base.text import named_values
from tunesmith.space import expr_arrays
from tunesmith.space.expr import LIMIT, Expr, is_name


@dataclass(frozen=True)
class Config:
    """Parameter values in the order the parameters are declared; equal only in the same order, and of the
    same template: `candidate` says which of a run's templates they belong to, empty for the one given."""

    items: tuple[tuple[str, int], ...]
    candidate: str = ""

    @classmethod
    def of(cls, values: Mapping[str, int]) -> Config:
        return cls(tuple(values.items()))

    def __getitem__(self, name: str) -> int:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def __str__(self) -> str:
        return named_values(self.items) or "as written"

    @property
    def label(self) -> str:
        """The values, and whose they are where a run may have several templates."""
        if self.candidate and not self.items:
            return f"kernel {self.candidate}"
        return f"{self} of template {self.candidate}" if self.candidate else str(self)

    def as_dict(self) -> dict[str, int]:
        return dict(self.items)

    def replace(self, name: str, value: int) -> Config:
        self[name]  # a name that is not there is an error, not an addition
        return replace(self, items=tuple((key, value if key == name else old) for key, old in self.items))


@dataclass(frozen=True)
class Param:
    """`values` in the declared order: neighbours are adjacent in it, unless the parameter is categorical."""

    name: str
    values: tuple[int, ...]
    categorical: bool = False

    def __post_init__(self) -> None:
        if not is_name(self.name):
            hint = "choose a name that can be a C macro and is no word of the expression language"
            fault = f"a parameter is named by letters, digits and underscores, got {self.name!r}"
            raise BadInput(fault, hint=hint)
        if not self.values:
            raise BadInput(f"parameter {self.name} has no values", hint=f"write {self.name} = [1, 2, 4]")
        for value in self.values:
            if type(value) is not int or abs(value) > LIMIT:
                fault = f"parameter {self.name} has the value {value!r}: values are integers up to 2**62"
                raise BadInput(fault, hint="number the choices, 0 and 1 for off and on")
        if repeated := sorted(value for value, times in Counter(self.values).items() if times > 1):
            fault = f"parameter {self.name} lists {', '.join(map(str, repeated))} more than once"
            raise BadInput(fault, hint="list every value once")

    @cached_property
    def positions(self) -> dict[int, int]:
        """Where each value stands in the declared order."""
        return {value: position for position, value in enumerate(self.values)}

    def neighbours(self, value: int) -> tuple[int, ...]:
        position = self.positions[value]
        if self.categorical:
            return self.values[:position] + self.values[position + 1 :]
        return self.values[max(position - 1, 0) : position] + self.values[position + 1 : position + 2]


# The legal configurations are a numbered set, without a list of them.
#
# Parameters that constraints tie together are listed in a table. It grows by one parameter at a time, and
# each constraint is applied as soon as its last parameter comes in, so that the Cartesian product is never
# built. Constraints are evaluated once per combination of the few parameters they read, and the rows are
# joined with what that allows. Each row carries the number of the set of workloads it is legal for; such sets
# are few.
#
# Parameters that share no constraint are listed apart and their product is left implicit: configuration i is
# found by dividing i by what lies below, like the digits of a number. With several workloads two rows go
# together only if a common workload is left. The set is therefore a small graph: a state is the workloads
# still possible at a table, and every group of rows leads from a state to a state of the next table. Counting
# from the last table back makes the numbering exact.

MAX_ROWS = 20_000_000
_BLOCK = 1 << 21  # entries handled at a time: bounds the memory of a step, not of the result
_MAX_AXES = 32  # a NumPy array has at most 64, and many parameters may have a single value each

Positions = NDArray[np.unsignedinteger]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class ParamRule:
    """An expression over parameters alone that must hold for the given workloads (bit i: workload i)."""

    expr: Expr
    scope: frozenset[int]  # the parameters it reads, by their place in the space
    workloads: int


@dataclass(frozen=True)
class ComboTable:
    """Legal combinations of some parameters, sorted; rows that suit the same workloads form a group."""

    params: tuple[int, ...]
    columns: tuple[Positions, ...]  # one per parameter: each row's position in the parameter's domain
    sets: tuple[int, ...]  # the workloads of each group
    groups: Positions  # the group of each row
    grouped: Ids  # the rows, group by group
    starts: NDArray[np.int64]  # grouped[starts[i]:starts[i + 1]] are the rows of group i


def build_combo_tables(
    params: Sequence[Param], rules: Sequence[ParamRule], workloads: int
) -> tuple[ComboTable, ...]:
    """One table for each group of parameters that share no rule with the others, in declared order."""
    groups = _connected_components(len(params), [rule.scope for rule in rules])
    ruled = [(group, [rule for rule in rules if not rule.scope.isdisjoint(group)]) for group in groups]
    return tuple(_Growth(params, some, workloads).table(group) for group, some in ruled)


def _connected_components(count: int, scopes: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    groups = {index: frozenset((index,)) for index in range(count)}
    for scope in scopes:
        merged = frozenset[int]().union(*(groups[index] for index in scope))
        for index in merged:
            groups[index] = merged
    return sorted(set(groups.values()), key=min)


def _binding_order(
    group: frozenset[int], scopes: Sequence[frozenset[int]], domains: Sequence[int]
) -> list[int]:
    """Complete the rule that costs the fewest combinations next, its smaller domains first."""
    order: list[int] = []
    pending = list(scopes)
    while pending:
        cost = {scope: prod(domains[index] for index in scope.difference(order)) for scope in pending}
        cheapest = min(pending, key=lambda scope: (cost[scope], sorted(scope)))
        order += sorted(cheapest.difference(order), key=lambda index: (domains[index], index))
        pending = [scope for scope in pending if not scope.issubset(order)]
    return order + sorted(group.difference(order))


class _WorkloadSets:
    """Numbers for the workload sets that occur; 0 is the empty set, 1 is all."""

    def __init__(self, everything: int) -> None:
        self.everything = everything
        self.sets = [0, everything]
        self.ids = {0: 0, everything: 1}

    def id(self, workloads: int) -> int:
        if workloads not in self.ids:
            self.ids[workloads] = len(self.sets)
            self.sets.append(workloads)
        return self.ids[workloads]

    def meet(self, a: Ids, b: Ids) -> Ids:
        """Row by row, the intersection of two sets."""
        width = len(self.sets)
        if width == 2:
            return a & b
        pairs = a.astype(np.int64) * width + b
        if width * width <= 2 * pairs.size:
            present = np.flatnonzero(np.bincount(pairs, minlength=width * width))
            lookup = np.zeros(width * width, dtype=np.int32)
            lookup[present] = self._intersect_pairs(present, width)
            return np.take(lookup, pairs)
        present, places = np.unique(pairs, return_inverse=True)
        intersections: Ids = self._intersect_pairs(present, width)[places]
        return intersections

    def _intersect_pairs(self, pairs: NDArray[np.int64], width: int) -> Ids:
        both = [self.id(self.sets[pair // width] & self.sets[pair % width]) for pair in pairs.tolist()]
        return np.array(both, dtype=np.int32)


class _Growth:
    """A table under construction."""

    def __init__(self, params: Sequence[Param], rules: Sequence[ParamRule], workloads: int) -> None:
        self.params = params
        self.rules = rules
        self.sets = _WorkloadSets(workloads)
        self.order: list[int] = []
        self.columns: list[Positions] = []
        self.ids: Ids = np.ones(1, dtype=np.int32)

    def table(self, group: frozenset[int]) -> ComboTable:
        domains = [len(param.values) for param in self.params]
        for index in _binding_order(group, [rule.scope for rule in self.rules], domains):
            self.bind(index, group)
        counts = np.bincount(self.ids, minlength=len(self.sets.sets))
        occurring = np.flatnonzero(counts)
        sets = tuple(self.sets.sets[id] for id in occurring.tolist())
        # In few bits the stable sort is a radix sort.
        groups = np.searchsorted(occurring, self.ids).astype(np.min_scalar_type(len(sets)))
        grouped = np.argsort(groups, kind="stable").astype(np.int32)
        starts = np.concatenate(([0], np.cumsum(counts[occurring])))
        return ComboTable(tuple(self.order), tuple(self.columns), sets, groups, grouped, starts)

    def bind(self, index: int, group: frozenset[int]) -> None:
        """Give every row each value of one more parameter, as far as the rules now complete allow it."""
        ready = [rule for rule in self.rules if index in rule.scope and rule.scope <= {index, *self.order}]
        others = sorted(frozenset[int]().union(*(rule.scope for rule in ready)) - {index})
        domain = len(self.params[index].values)
        combinations = prod(len(self.params[other].values) for other in others)
        rows = len(self.ids)
        # Few combinations of what the rules read: judge these, and look each row up. Else judge each row.
        few = combinations <= rows and combinations * domain <= _BLOCK and len(others) < _MAX_AXES
        shared = self.judge_combinations(ready, others, index) if few else None
        step = max(1, _BLOCK // domain)
        grown: list[tuple[list[Positions], Ids]] = []
        total = 0
        for start in range(0, max(rows, 1), step):  # once even without rows: the columns must be there
            block = slice(start, min(start + step, rows))
            if shared is None:
                allowed = self.judge_rows(ready, others, index, block)
                keys = np.arange(block.stop - block.start)
            else:
                allowed = shared
                keys = self.keys(others, block)
            grown.append(self.join(block, keys, allowed))
            total += len(grown[-1][1])
            if total > MAX_ROWS:
                raise _too_many([self.params[member] for member in sorted(group)])
        parts = zip(*(columns for columns, _ in grown), strict=True)
        self.columns = [np.concatenate(part) for part in parts]
        self.ids = np.concatenate([ids for _, ids in grown])
        self.order.append(index)

    def judge_combinations(self, rules: Sequence[ParamRule], others: Sequence[int], index: int) -> Ids:
        """Workload sets for all combinations of `others` (rows) with the values of `index` (columns)."""
        axes = [*others, index]
        mesh = np.ix_(*(np.array(self.params[axis].values, dtype=np.int64) for axis in axes))
        columns = {self.params[axis].name: values for axis, values in zip(axes, mesh, strict=True)}
        shape = tuple(len(self.params[axis].values) for axis in axes)
        return self.judge_rules(rules, columns, shape).reshape(-1, shape[-1])

    def judge_rows(self, rules: Sequence[ParamRule], others: Sequence[int], index: int, block: slice) -> Ids:
        """The same for the rows of a block, one by one."""
        columns: dict[str, NDArray[np.int64]] = {}
        for other in others:
            values = np.array(self.params[other].values, dtype=np.int64)
            here = self.columns[self.order.index(other)][block]
            columns[self.params[other].name] = values[here][:, np.newaxis]
        domain = np.array(self.params[index].values, dtype=np.int64)
        columns[self.params[index].name] = domain[np.newaxis, :]
        return self.judge_rules(rules, columns, (block.stop - block.start, len(domain)))

    def judge_rules(
        self, rules: Sequence[ParamRule], columns: dict[str, NDArray[np.int64]], shape: tuple[int, ...]
    ) -> Ids:
        ids = np.ones(prod(shape), dtype=np.int32)
        for rule in rules:
            held = np.broadcast_to(expr_arrays.evaluate_truth(rule.expr, columns), shape).ravel()
            without = self.sets.id(self.sets.everything & ~rule.workloads)
            ids = self.sets.meet(ids, np.where(held, np.int32(1), np.int32(without)))
        return ids.reshape(shape)

    def keys(self, others: Sequence[int], block: slice) -> NDArray[np.int64]:
        """For each row, which combination of `others` it holds."""
        keys = np.zeros(block.stop - block.start, dtype=np.int64)
        for other in others:
            keys *= len(self.params[other].values)
            keys += self.columns[self.order.index(other)][block]
        return keys

    def join(self, block: slice, keys: NDArray[np.int64], allowed: Ids) -> tuple[list[Positions], Ids]:
        """Repeat each row for every value that `allowed[key]` leaves it."""
        domain = allowed.shape[1]
        entries = np.flatnonzero(allowed)  # in row-major order: those of one key lie together
        counts = np.count_nonzero(allowed, axis=1)
        firsts = np.cumsum(counts) - counts
        copies = counts[keys]
        ends = np.cumsum(copies)
        parents = np.repeat(np.arange(len(keys)), copies)
        # Where the copies of a row start in the new table, and where its key's entries start.
        shift = firsts[keys] - (ends - copies)
        chosen = entries[np.arange(len(parents)) + shift[parents]]
        small = np.min_scalar_type(domain - 1)
        columns: list[Positions] = [column[block][parents] for column in self.columns]
        columns.append((chosen % domain).astype(small))
        if len(self.sets.sets) == 2:
            return columns, np.ones(len(parents), dtype=np.int32)
        ids = self.sets.meet(self.ids[block][parents], allowed.ravel()[chosen])
        alive = ids != 0
        return (columns, ids) if alive.all() else ([column[alive] for column in columns], ids[alive])


def _too_many(params: Sequence[Param]) -> BadInput:
    listed = ", ".join(param.name for param in params)
    return BadInput(
        f"the parameters {listed} depend on one another through constraints and have more than "
        f"{MAX_ROWS:,} legal combinations, the most that are listed",
        hint="give them fewer values, or drop a constraint that ties two groups of them together",
    )


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
        self._params, self._candidate = params, candidate
        self._workloads = workloads
        self._levels, self._outcomes, self._size = _link_levels(tables, possible)
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
            if (found := _find_row(level.table, positions)) is None:
                return None
            group, place = found
            if not (below := int(level.below[state, group])):  # no workload is left
                return None
            number += int(level.firsts[state, group]) + place * below
            state = int(level.leads_to[state, group])
        return number

    def feasible(self, index: int) -> tuple[bool, ...]:
        """For each workload, whether the configuration is legal (and preferred) there."""
        _, states = self._walk_levels([self._checked(index)])
        left = self._outcomes[int(states[0])]
        return tuple(bool(left >> bit & 1) for bit in range(self._workloads))

    def positions(self, indices: ArrayLike | None = None) -> NDArray[np.unsignedinteger]:
        """One row per index (all without), one column per parameter: positions in the domains."""
        rows, states = self._walk_levels(indices)
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

    def _walk_levels(self, indices: ArrayLike | None) -> tuple[list[Ids], NDArray[np.int64]]:
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
            groups = _find_row_groups(level, states, rest)
            place, rest = np.divmod(rest - level.firsts[states, groups], level.below[states, groups])
            rows.append(level.table.grouped[place + level.table.starts[groups]])
            states = level.leads_to[states, groups]
        return rows, states


def _link_levels(
    tables: Sequence[ComboTable], possible: int
) -> tuple[tuple[_Level, ...], tuple[int, ...], int]:
    """The levels, the workload sets of the states after the last one, and the number of configurations."""
    states = [[possible]]
    for table in tables:
        states.append(sorted({state & rows for state in states[-1] for rows in table.sets} - {0}))
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


def _find_row_groups(level: _Level, states: NDArray[np.int64], rest: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _find_row(table: ComboTable, positions: Sequence[int]) -> tuple[int, int] | None:
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
