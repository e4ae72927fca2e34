"""What threads hold of arrays while they work on them: buffers, and the copies that fill and empty them.

Levels are global memory, shared memory and registers. A buffer is in registers; what it holds comes from one
of the others, where it goes back. All of it is decided before a line is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tunesmith.csource.nodes import Binary, Expr, Type
from tunesmith.csource.snippets import expr
from tunesmith.csource.types import byte_size, integer
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.affine import terms
from tunesmith.expert.model.kernel import Each, Step, all_steps, names_in_steps, own_parts, step_lists
from tunesmith.expert.writing.blocking import Blocking, RowTable
from tunesmith.expert.writing.given import Given, loops_in
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.packs import Key, Pack, pack_accesses
from tunesmith.expert.writing.sites import Sites, extent_of

Level = Literal["registers", "shared", "global"]


@dataclass(frozen=True)
class Buffer:
    """Where a loop's elements of one pack lie while threads work on them, and for how long.

    A buffer lives for a turn. One that is `kept` lives as long as the loops over one range, where the
    schedule keeps rows in registers: then what is `filled` is not loaded, what is `replaced` or lies in
    shared memory otherwise is not stored, and what is `wanted` a later loop reads again.
    """

    name: str
    home: Level  # where its elements come from and go to; the buffer itself is in registers
    kept: bool = False
    filled: bool = False  # by an earlier loop
    replaced: bool = False  # by a later one that stores all of it, and not read in between
    wanted: bool = False
    table: str = ""  # of rows of packs, where tasks that are taken at once differ in what they hold
    row: int = 0  # in the table, behind the task's own
    span: int = 0  # rows that the table has beside one for each task


@dataclass(frozen=True)
class SharedRow:
    """What a loop leaves for a later one in shared memory; it lives as long as its task."""

    name: str
    type: Type
    extent: Expr  # elements: as far as the loops that use it go
    size: int  # bytes of each; 0 where they are not known

    @property
    def bytes(self) -> Expr:
        return expr("(extent * size + 15) / 16 * 16", extent=self.extent, size=integer(self.size))


@dataclass(frozen=True)
class Copy:
    """Of one pack, between its buffer and where it lies: `way` is the pack's method that does it."""

    pack: Pack
    way: str
    waits: bool = False  # its place depends on what another one brings
    needless: bool = False  # where rows are kept in registers


@dataclass(frozen=True)
class LoopPlan:
    each: Each
    packs: tuple[Pack, ...] = ()
    buffers: Mapping[Key, Buffer] = field(default_factory=dict)
    loads: tuple[Copy, ...] = ()  # before a turn's work; those that wait come last
    stores: tuple[Copy, ...] = ()  # behind it
    tables: tuple[RowTable, ...] = ()
    tail: bool = False  # the range may end within a pack
    in_row: bool = False  # one of several loops over a range, between which a thread's elements can stay
    opens: tuple[Pack, ...] = ()  # where it is the first of these: all packs that stay in one of them

    @property
    def is_packed(self) -> bool:
        """Whether a thread takes VEC neighbours at once: where one access at least is wide, or must be."""
        return self.in_row or any(pack.width for pack in self.packs)

    @property
    def extent(self) -> Expr:
        return extent_of(self.each)

    @property
    def kept(self) -> frozenset[Key]:
        return frozenset(key for key, buffer in self.buffers.items() if buffer.kept)

    def name(self, pack: Pack) -> str:
        return self.buffers[pack.key].name


def planned_loops(given: Given, blocking: Blocking) -> tuple[LoopPlan, ...]:
    """All loops, by their numbers."""
    loops = [_plan_loop(each, given) for each in loops_in(given.kernel.steps)]
    if given.language != "opencl":  # a CPU's caches keep rows better than its few registers
        for row in rows(given.kernel.steps):
            for loop in _kept([loops[each.number] for each in row], given):
                loops[loop.each.number] = loop
    return tuple(_with_copies(_with_tables(loop, blocking), given) for loop in loops)


def shared_rows(given: Given, loops: Sequence[LoopPlan]) -> tuple[SharedRow, ...]:
    found = []
    for staged in given.kernel.staged:
        stops = [loop.each.stop for loop in loops if staged.name in names_in(loop.each.body)]
        extent = stops[0] if stops else Binary("-", loops[0].each.stop, loops[0].each.start)
        size = (byte_size(staged.type.base) or 0) * staged.width
        found.append(SharedRow(staged.name, staged.type, extent, size))
    return tuple(found)


def _plan_loop(each: Each, given: Given) -> LoopPlan:
    knobs, vector = given.knobs, given.knobs.vector
    narrow = vector.most == knobs.items.most == knobs.blocking.most == 1
    if narrow and knobs.keep.most == 0 and not knobs.ring.is_parameter:
        return LoopPlan(each)
    aligned = given.language != "opencl"
    staged = [staged.name for staged in given.kernel.staged]
    packs = pack_accesses(each, given.arrays, staged, given.sizes, vector.most, aligned)
    in_turn = _in_turn(each, given)
    packs = tuple(pack for pack in packs if pack.array not in in_turn)
    tail = given.is_flat or not given.sizes.is_plain(extent_of(each)) or not aligned
    if tail and any(pack.array in staged for pack in packs):
        raise Unwritable("what a loop keeps for a later one has no length that the contract tells")
    buffers = {
        pack.key: Buffer(
            given.names.fresh(f"{pack.array}_pack"), "shared" if pack.array in staged else "global"
        )
        for pack in packs
    }
    return LoopPlan(each, packs, buffers, tail=tail)


def _with_tables(loop: LoopPlan, blocking: Blocking) -> LoopPlan:
    buffers, tables = dict(loop.buffers), blocking.tables(loop.packs, loop.kept)
    for pack in loop.opens:
        if not blocking.is_same(pack):
            buffers[pack.key] = replace(buffers[pack.key], table=loop.name(pack))
    for table in tables:
        for key, row in table.rows.items():
            name = loop.name(table.first)
            buffers[key] = replace(buffers[key], table=name, row=row, span=table.span)
    return replace(loop, buffers=buffers, tables=tables)


# -- copies: which way each takes


def _with_copies(loop: LoopPlan, given: Given) -> LoopPlan:
    loads, stores = list[Copy](), list[Copy]()
    keeps = loop.in_row and given.knobs.keep.most > 0
    for pack in loop.packs:
        buffer = loop.buffers[pack.key]
        if pack.loads:
            loads.append(Copy(pack, _way_in(pack, given), _waits(pack, given), keeps and buffer.filled))
        if pack.stores:
            way = "store_once" if given.knobs.store_hint.is_parameter and buffer.home == "global" else "store"
            needless = keeps and (buffer.replaced or buffer.home == "shared")
            stores.append(Copy(pack, way, needless=needless))
    # A load that waits for another one's result would hold up those behind it.
    loads.sort(key=lambda copy: (copy.waits, not (keeps and loop.buffers[copy.pack.key].kept)))
    return replace(loop, loads=tuple(loads), stores=tuple(stores))


def _waits(pack: Pack, given: Given) -> bool:
    """Whether its place depends on more than parameters, the task and the index."""
    known = {p.name for p in given.kernel.function.parameters if not p.type.is_pointer}
    known |= {task.name for task in given.kernel.tasks}
    return not pack.names <= known | {each.index for each in loops_in(given.kernel.steps)}


def is_once(pack: Pack, given: Given) -> bool:
    """Elements that belong to one task nobody else wants in a cache."""
    return given.is_flat or not pack.names.isdisjoint(task.name for task in given.kernel.tasks)


def _way_in(pack: Pack, given: Given) -> str:
    plain = not (pack.width and pack.array in given.arrays and is_once(pack, given))
    if plain or not given.knobs.load_hint.is_parameter:
        return "load"
    return "load_shared" if pack.array in given.written else "load_once"


# -- loops over one range, between which a thread's elements can stay


def rows(steps: Sequence[Step]) -> Iterator[list[Each]]:
    """Several loops over one range in one list of steps."""
    for own in step_lists(steps):
        ranges: dict[tuple[object, object], list[Each]] = {}
        for step in own:
            if isinstance(step, Each):
                key = (frozenset(terms(step.start).items()), frozenset(terms(step.stop).items()))
                ranges.setdefault(key, []).append(step)
        yield from (loops for loops in ranges.values() if len(loops) > 1)


def _kept(row: Sequence[LoopPlan], given: Given) -> Sequence[LoopPlan]:
    """Loops over one range, with the buffers that stay from one to a later one."""
    if given.sizes.node(row[0].extent) is None:
        return row
    staged = {staged.name for staged in given.kernel.staged}
    elsewhere = _outside(row, given)
    if staged & elsewhere & {name for loop in row for name in names_in(loop.each.body)}:
        return row  # a loop in a branch reads what these would have kept in registers alone
    uses: dict[Key, list[tuple[LoopPlan, Pack]]] = {}
    for loop in row:
        for pack in loop.packs:
            uses.setdefault(pack.key, []).append((loop, pack))
    shared = {
        key: members
        for key, members in uses.items()
        if _is_used_again([pack for _, pack in members])
        and (key[0] in staged or not (key[0] in elsewhere & given.written or _is_mixed(row, key, given)))
    }
    if not shared:
        return row
    done = []
    for number, loop in enumerate(row):
        buffers = dict(loop.buffers)
        for key, members in shared.items():
            first = members[0][0]
            own = next((pack for pack in loop.packs if pack.key == key), None)
            later = [pack for other in row[number + 1 :] for pack in other.packs if pack.key == key]
            if own is not None or number == 0:
                buffers[key] = replace(
                    first.buffers[key],
                    kept=True,
                    filled=own is not None and own.loads and loop is not first,
                    replaced=own is not None and own.stores and any(pack.stores for pack in later),
                    wanted=any(pack.loads for pack in later),
                )
        opens = () if number else tuple(members[0][1] for members in shared.values())
        done.append(replace(loop, buffers=buffers, in_row=True, opens=opens))
    return done


def _is_used_again(packs: Sequence[Pack]) -> bool:
    return any(pack.loads for pack in packs[1:]) or sum(pack.stores for pack in packs) > 1


def _outside(row: Sequence[LoopPlan], given: Given) -> set[str]:
    """Names in steps other than these loops."""
    own = {loop.each.number for loop in row}
    others = [s for s in all_steps(given.kernel.steps) if not isinstance(s, Each) or s.number not in own]
    return {name for step in others for part in own_parts(step) for name in names_in(part)}


def _is_mixed(row: Sequence[LoopPlan], key: Key, given: Given) -> bool:
    """Whether the loops touch the array by another name as well or, if it is written, in another way."""
    array = key[0]
    if len(_names_of(array, given)) > 1:
        return True  # a store by another name would be missed
    if array not in given.written:
        return False
    for loop in row:
        packs = {node: pack.key for pack in loop.packs for node, _ in pack.sites}
        sites = Sites.of(loop.each.body, given.arrays)
        others = (site for site in sites.found if site.array == array and packs.get(site.node) != key)
        if array in sites.escaped or any(others):
            return True
    return False


def _names_of(array: str, given: Given) -> frozenset[str]:
    """The names by which the steps touch the array's memory: those that the contract says are the same."""
    storage = given.independence.storage
    same = {name for name in given.arrays if storage.get(name, name) == storage.get(array, array)}
    return names_in_steps(given.kernel.steps) & same


def _in_turn(each: Each, given: Given) -> set[str]:
    """Arrays of one memory by several names, which the body touches by one after a store by another."""
    storage = given.independence.storage
    sites = Sites.of(each.body, given.arrays)
    used = names_in(each.body)
    stored: dict[str, set[str]] = {}
    mixed: set[str] = set()
    for site in sites.found:
        memory = storage[site.array]
        names = {name for name in used & storage.keys() if storage[name] == memory}
        repeats = bool(site.loops) and memory in {storage[array] for array in sites.stored}
        if len(names) > 1 and (repeats or names & sites.escaped or stored.get(memory, set()) - {site.array}):
            mixed.add(memory)
        if site.kind == "store":
            stored.setdefault(memory, set()).add(site.array)
    return {name for name in storage if storage[name] in mixed}
