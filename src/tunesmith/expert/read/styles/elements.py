"""Kernels whose threads each take an element (or a few) and need nothing of each other.

One index becomes the loop over elements: that of neighbouring threads. The others are tasks. What the grid
has too much is cut off by the guards of the source: `if (i >= n) return`, `if (row < rows && col < cols)`,
grid-stride loops. Where there is no guard, the launch says how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from tunesmith.expert.read.accesses import element_type, find_clash, find_touches, moved_by
from tunesmith.expert.read.geometry import (
    BLOCK,
    THREAD,
    CountedIndex,
    LaunchedKernel,
    Layout,
    form_of,
    identify_index,
    is_straight,
    wrapping_nodes,
)
from tunesmith.expert.read.integers import (
    BUILTINS,
    axis_name,
    block_threads,
    bounds_in,
    head_of,
    launch_name,
    make_product,
    number_node,
    same_value,
    simplify_exact,
    without_casts,
)
from tunesmith.expert.read.model import Each, Fact, KernelReading, OutOfReach, Reach, Task, order_free
from tunesmith.expert.read.normal import Normal
from tunesmith.expert.read.rules.tidy import check_no_return, remove_early_exits
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Name, Number
from tunesmith.source.types import byte_size
from tunesmith.source.walk import names_in, numbered_name

RANK = {"flat": 0, "both": 0, "team": 1, "block": 1}


def can_derive_index(known: CountedIndex, other: CountedIndex) -> bool:
    """Whether `other` follows from `known`."""
    if known.kind == other.kind and known.axis == other.axis:
        return other.times % known.times == 0
    if other.times != 1:
        return False
    if known.kind == "both":
        return other.kind in ("team", "block") and other.axis == known.axis
    return known.kind == "flat" and other.kind == "block" and other.axis == known.axis


@dataclass(frozen=True)
class Flat:
    """`each` is over the index of neighbouring threads; `tasks` are the others, slowest first."""

    tasks: tuple[Task, ...]
    each: Each
    notes: tuple[str, ...] = ()
    reach: tuple[Reach, ...] = ()
    facts: tuple[Fact, ...] = ()


class FlatReader:
    def __init__(self, kernel: LaunchedKernel) -> None:
        self._kernel = kernel
        self._normal, self._scenarios, self._launch = kernel.normal, kernel.scenarios, kernel.launch
        self._layouts = [Layout(scenario, 1) for scenario in kernel.scenarios]
        self._reach: list[Reach] = []
        self._taken = self._normal.names

    def read(self) -> Flat:
        peeled = Guards(self._kernel).peel()
        if peeled.loops:
            check_no_return(peeled.body)
        body = remove_early_exits(peeled.body)
        if not body:
            raise OutOfReach("the kernel does nothing")
        for name in sorted(walk.assigned_in(body) & set(self._launch.parameters)):
            raise OutOfReach(f"each element changes the parameter '{name}', which others use")
        definitions = {**self._normal.definitions, **peeled.loops}
        known = set(definitions) | THREAD | BLOCK
        used = sorted((walk.names_in(body) & known) | set(peeled.loops) | (set(peeled.bounds) & known))
        indices: dict[str, CountedIndex] = {}
        for _ in range(20):
            values: dict[str, c.Expr] = {}
            for name in used:
                found = self._index(definitions.get(name, c.Name(name)))
                if found is not None:
                    indices[name] = found
                    continue
                values[name] = self._normal.ids[name].short if name in self._normal.ids else definitions[name]
                body = self._guarded_again(name, body, peeled)
            values = values or self._made_of_others(indices, peeled)
            if not values:
                break
            indices = {name: index for name, index in indices.items() if name not in values}
            body = substitute(body, values)
            used = sorted(walk.names_in(body) & (set(self._normal.ids) | THREAD | BLOCK) - set(indices))
        indices, body = self._unify_indices(indices, body, peeled)
        return self._flat(indices, body, peeled)

    def _made_of_others(self, indices: Mapping[str, CountedIndex], peeled: Peeled) -> dict[str, c.Expr]:
        """Of two that tell the same threads apart the one that is made of others, written out."""
        for (name, one), (other, two) in combinations(indices.items(), 2):
            derived = can_derive_index(one, two) or can_derive_index(two, one)
            if derived or not self._told(one) & self._told(two):
                continue
            ids = self._normal.ids
            for index in (name, other):
                of_others = index in ids and bool(walk.names_in(ids[index].short) & set(ids))
                if of_others and index not in peeled.bounds and index not in peeled.loops:
                    return {index: ids[index].short}
        return {}

    def _index(self, expr: c.Expr) -> CountedIndex | None:
        """What the variable counts, the same in every scenario."""
        plain = simplify_exact(expr, self._kernel.multiples)
        if not is_straight(plain):
            return None
        return identify_index(expr, self._layouts, by_axis=True, is_linear=not any(wrapping_nodes(plain)))

    def _guarded_again(self, name: str, body: tuple[c.Stmt, ...], peeled: Peeled) -> tuple[c.Stmt, ...]:
        """A bound on what turns out to count nothing of its own stays a test."""
        if name in peeled.loops:
            raise OutOfReach.at(peeled.line, f"what the loop over '{name}' counts is not clear")
        bound = peeled.bounds.pop(name, None)
        return body if bound is None else (c.If(c.Binary("<", c.Name(name), bound), body, line=peeled.line),)

    def _unify_indices(
        self, indices: dict[str, CountedIndex], body: tuple[c.Stmt, ...], peeled: Peeled
    ) -> tuple[dict[str, CountedIndex], tuple[c.Stmt, ...]]:
        """One name for each thing counted: others are said in its terms."""
        chosen: dict[str, CountedIndex] = {}
        values: dict[str, c.Expr] = {}
        ranked = sorted(indices, key=lambda n: (RANK[indices[n].kind], indices[n].times, n in BUILTINS, n))
        for name in ranked:
            index = indices[name]
            other = next((n for n, i in chosen.items() if can_derive_index(i, index)), None)
            if other is None:
                chosen[name] = index
                continue
            values[name] = self._in_terms(name, index, other, chosen[other])
            bound = peeled.bounds.get(name)
            if bound is None:
                continue
            if chosen[other] == index and same_value(peeled.bounds.get(other, bound), bound):
                peeled.bounds[other] = bound
            elif chosen[other].times == 1 and chosen[other].kind == index.kind and other not in peeled.bounds:
                peeled.bounds[other] = _divided_up(bound, index.times)
            else:
                body = self._guarded_again(name, body, peeled)
        return chosen, substitute(body, values) if values else body

    def _in_terms(self, name: str, index: CountedIndex, other: str, known: CountedIndex) -> c.Expr:
        base: c.Expr = c.Name(other)
        if index.kind == known.kind:
            base = make_product(base, number_node(index.times // known.times))
        else:
            base = base if known.times == 1 else c.Binary("/", base, number_node(known.times))
            count = block_threads() if known.kind == "flat" else launch_name("blockDim", index.axis)
            base = c.Binary("%" if index.kind == "team" else "/", base, self._launch.replaced(count))
        return c.Cast(c.Type(self._kernel.type_of(name)), base)

    def _flat(self, indices: dict[str, CountedIndex], body: tuple[c.Stmt, ...], peeled: Peeled) -> Flat:
        self._check_cover(indices)
        element, notes = self._side_by_side(self._element(indices), indices, body)
        tasks: list[tuple[tuple[int, int], Task]] = []
        whole: Each | None = None
        for name, index in indices.items():
            extent = self._extent(name, index, peeled)
            fresh = name if name not in BUILTINS else walk.fresh_name(axis_name(name), self._taken)
            if index.times != 1:
                fresh = walk.fresh_name(f"{name}_step", self._taken)
                value: c.Expr = c.Binary("*", c.Name(fresh), number_node(index.times))
                body = substitute(body, {name: value})
            elif fresh != name:
                body = substitute(body, {name: c.Name(fresh)})
            type_ = self._kernel.type_of(name)
            if name == element:
                whole = Each(fresh, number_node(0), extent, (), (), type_, line=peeled.line)
            else:
                order = (index.kind == "team", -index.axis)
                tasks.append((order, Task(fresh, extent, type_, self._launch.size_text(extent))))
        assert whole is not None
        whole = replace(whole, body=substitute(body, self._launch.values))
        tasks.sort(key=lambda pair: pair[0])
        return Flat(tuple(task for _, task in tasks), whole, tuple(notes), tuple(self._reach))

    def _side_by_side(
        self, element: str, indices: Mapping[str, CountedIndex], body: tuple[c.Stmt, ...]
    ) -> tuple[str, list[str]]:
        """Another index to loop over, where elements lie side by side along that one and not along this."""

        def bytes_beside(name: str) -> int:
            """The bytes of an element that lie beside those of the next one."""
            arrays, total = self._normal.arrays, 0
            for place in (touch.place for touch in find_touches(body, arrays)):
                array_type = arrays[place.array]
                moved = moved_by(place, name, array_type)
                if moved is not None and moved.step == 1:
                    total += byte_size(element_type(place, array_type).base) or 1
            return total

        best = max(indices, key=bytes_beside)
        if bytes_beside(element) or not bytes_beside(best):
            return element, []
        note = f"neighbouring threads differ in '{element}', but elements lie side by side along '{best}'"
        return best, [note]

    def _element(self, indices: Mapping[str, CountedIndex]) -> str:
        """The index that differs between neighbouring threads."""
        for wanted in (("flat", 0), ("flat", 1), ("flat", 2), ("both", 0), ("team", 0), ("both", 1)):
            for name, index in indices.items():
                if (index.kind, index.axis) == wanted:
                    return name
        if all(scenario.threads == 1 for scenario in self._scenarios):
            for name, index in indices.items():
                if index.kind == "block" and index.axis == 0:
                    return name
        raise OutOfReach("what a thread does does not depend on which thread it is")

    def _check_cover(self, indices: Mapping[str, CountedIndex]) -> None:
        """What no index tells apart would all do the same; what two do would be counted twice."""
        for (name, one), (other, two) in combinations(indices.items(), 2):
            if self._told(one) & self._told(two):
                raise OutOfReach(f"'{name}' and '{other}' both say which of the same threads it is")
        for scenario in self._scenarios:
            for axis in range(3):
                along = {index.kind for index in indices.values() if index.axis == axis}
                is_flat = any(index.kind == "flat" for index in indices.values())
                if scenario.several[axis] and not along & {"block", "both", "flat"}:
                    raise OutOfReach(f"the blocks along {'xyz'[axis]} of the grid all do the same work")
                if scenario.block[axis] > 1 and not (is_flat or along & {"team", "both"}):
                    raise OutOfReach(f"the threads along {'xyz'[axis]} of a block all do the same work")

    def _told(self, index: CountedIndex) -> set[tuple[str, int]]:
        """The axes of blocks and threads, longer than one, that an index tells apart."""
        axes = {"flat": range(3), "block": range(0)}.get(index.kind, [index.axis])
        told = {*(("thread", axis) for axis in axes), *([("block", index.axis)] * (index.kind != "team"))}
        ways = [{"block": scenario.grid, "thread": scenario.block} for scenario in self._scenarios]
        return {(kind, axis) for kind, axis in told if any(way[kind][axis] > 1 for way in ways)}

    def _extent(self, name: str, index: CountedIndex, peeled: Peeled) -> c.Expr:
        bound = peeled.bounds.get(name)
        if bound is not None:
            self._reach.append(Reach(name, bound, self._value_count(index), goes_on=name in peeled.loops))
            whole = self._launch.replaced(bound)
            return whole if index.times == 1 else _divided_up(whole, index.times)
        extent = self._value_count(CountedIndex(index.kind, index.axis))
        replaced = self._launch.replaced(extent)
        return replaced if not walk.names_in(replaced) & set(BUILTINS) else extent

    def _value_count(self, index: CountedIndex) -> c.Expr:
        """How many values the launch comes to."""
        blocks = launch_name("gridDim", index.axis)
        threads = block_threads() if index.kind == "flat" else launch_name("blockDim", index.axis)
        extent = {"block": blocks, "team": threads}.get(index.kind, make_product(blocks, threads))
        return extent if index.times == 1 else make_product(number_node(index.times), extent)


def _divided_up(expr: c.Expr, by: int) -> c.Expr:
    return fold_expr(c.Binary("/", c.Binary("+", expr, number_node(by - 1)), number_node(by)))


@dataclass
class Peeled:
    """What is left, and what was taken off."""

    body: tuple[c.Stmt, ...]
    bounds: dict[str, c.Expr] = field(default_factory=dict)
    loops: dict[str, c.Expr] = field(default_factory=dict)  # index of a grid-stride loop -> its start
    line: int = 0


class Guards:
    def __init__(self, kernel: LaunchedKernel) -> None:
        self._normal, self._loops, self._scenarios = kernel.normal, kernel.loops, kernel.scenarios
        self._definitions = kernel.normal.definitions
        self._computed = set(walk.declared_in(kernel.normal.body))

    def peel(self) -> Peeled:
        """Takes guards and grid-stride loops off, down to what is done for one element."""
        found = Peeled(self._normal.body)
        before: list[c.Stmt] = []
        rest = list(found.body)
        while rest:
            stmt = rest[0]
            if isinstance(stmt, c.If) and not stmt.otherwise:
                leaves = len(stmt.then) == 1 and isinstance(stmt.then[0], c.Return | c.Jump)
                guards = self._guards(stmt.condition, not leaves) if leaves or len(rest) == 1 else None
                if guards is not None and self._bound(found, guards):
                    rest = rest[1:] if leaves else list(stmt.then)
                    found.line = found.line or stmt.line
                    continue
            if len(rest) == 1 and isinstance(stmt, c.For):
                head = head_of(stmt)
                role = self._loops[head.index].role if head is not None and head.index in self._loops else ""
                shared = head is not None and role in ("grid", "task")
                if head is not None and shared and self._is_grid_stride_step(head.start, head.step):
                    changed = walk.assigned_in(stmt.body) | walk.stored_in(stmt.body)
                    for name in sorted(changed & set(walk.declared_in(before))):
                        raise OutOfReach.at(stmt.line, f"'{name}' is carried from one element to the next")
                    found.loops[head.index] = substitute(head.start, self._definitions)
                    found.bounds[head.index] = head.stop
                    found.line = found.line or stmt.line
                    rest = list(stmt.body)
                    continue
            if isinstance(stmt, c.Declare):
                before.append(rest.pop(0))
                continue
            break
        found.body = (*before, *rest)
        found.line = found.line or next((s.line for s in rest if getattr(s, "line", 0)), 0)
        return found

    def _guards(self, condition: c.Expr, holds: bool) -> list[tuple[str, c.Expr]] | None:
        """(index, extent) of every comparison in the condition; None where it tests anything else."""
        bounds = bounds_in(condition, lambda expr: self._index_name(expr) is not None, holds)
        # What the body itself computes is not known where the loop ends.
        known = (set(self._normal.types) | set(BUILTINS)) - self._computed
        known -= set(self._normal.ids) | THREAD | BLOCK
        if bounds is None or not all(walk.names_in(stop) <= known for _, stop in bounds):
            return None
        return [(self._index_name(index) or "", stop) for index, stop in bounds]

    def _index_name(self, expr: c.Expr) -> str | None:
        plain = without_casts(expr)
        if isinstance(plain, c.Name) and (plain.name in self._normal.ids or plain.name in THREAD | BLOCK):
            return plain.name
        for name, id_ in self._normal.ids.items():
            if without_casts(id_.expr) == plain:
                return name
        return None

    def _bound(self, found: Peeled, guards: list[tuple[str, c.Expr]]) -> bool:
        if not all(same_value(found.bounds.get(name, extent), extent) for name, extent in guards):
            return False
        found.bounds.update(guards)
        return True

    def _is_grid_stride_step(self, start: c.Expr, step: c.Expr) -> bool:
        """Whether a grid-stride loop steps by as many as start together, in every scenario."""
        begin, by = substitute(start, self._definitions), substitute(step, self._definitions)
        for scenario in self._scenarios:
            form = form_of(begin, scenario)
            moving = [axis for axis in range(3) if form is not None and form.per_block[axis]]
            if form is None or len(moving) != 1:
                return False
            together = form.per_block[moving[0]] * scenario.grid[moving[0]]
            if int_value(by, scenario.numbers) != together:
                return False
        return True


def flat_reading(flat: Flat, normal: Normal, aliases: Mapping[str, str], reason: str) -> KernelReading:
    for node in walk.nodes_in(flat.each.body):
        if isinstance(node, c.Verbatim):
            raise OutOfReach.at(node.line, f"'{node.text.strip().splitlines()[0][:60]}' is not understood")
    trouble = find_clash(flat.each.body, flat.each.index, normal.arrays, aliases, parallel=True)
    if trouble is not None:
        raise OutOfReach(f"threads depend on each other: {trouble}", flat.each.line)
    notes = (f"each thread walks a row of its own, which cannot be shared out: {reason}",) if reason else ()
    each = replace(flat.each, order=order_free(flat.each.line, shared=True))
    said = (*flat.notes, *notes)
    return KernelReading(flat.tasks, (each,), "grid", None, (), 0, said, flat.reach, facts=flat.facts)


# -- Flat ranges that end where the grid does, since no argument says how many elements there are: as
# tasks, one for each block of today's launch, with as many elements as that has threads.
#
#     i = blockIdx.x * blockDim.x + threadIdx.x;        for each block below gridDim.x
# out[i] = f(x[i]);                           ->        for each i from 0 to 256: out[block * 256 + i] = ...
#
# Another launch must have just as many blocks of tasks, and nothing else says how many there are.


def with_blocks_as_tasks(flat: Flat, kernel: LaunchedKernel) -> Flat:
    each = flat.each
    if flat.tasks or each.start != number_node(0) or not names_in(each.stop) <= set(BUILTINS):
        return flat
    for axis in "xyz":
        blocks, threads = Name(f"gridDim.{axis}"), Name(f"blockDim.{axis}")
        size = kernel.launch.values.get(threads.name)
        if isinstance(size, Number) and same_value(each.stop, make_product(blocks, threads)):
            name = numbered_name("block", kernel.normal.names | names_in(each.body) | {each.index})
            task = Task(name, blocks, each.type, kernel.launch.size_text(blocks))
            place = Binary("+", Binary("*", Name(name), size), Name(each.index))
            body = substitute(each.body, {each.index: place})
            return replace(flat, tasks=(task,), each=replace(each, stop=size, body=body))
    return flat
