"""What threads hold of arrays while they work on them: buffers, and the copies that fill and empty them.

Levels are global memory, shared memory and registers. A buffer is in registers; what it holds comes from one
of the others, where it goes back. All of it is decided before a line is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tunesmith.expert.read.integers import BUILTINS, expand_terms
from tunesmith.expert.read.model import (
    Each,
    KernelModel,
    Let,
    Repeat,
    Step,
    Task,
    When,
    all_steps,
    names_in_steps,
    own_parts,
    step_lists,
)
from tunesmith.expert.write.given import Given, Unwritable, item_axis, loops_in
from tunesmith.expert.write.packs import Key, Pack, pack_accesses
from tunesmith.expert.write.sites import AccessSite, Sites, extent_of
from tunesmith.source import tree as c
from tunesmith.source.snippets import Wording, chain_operator, parse_snippet_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Expr, Type
from tunesmith.source.types import byte_size, integer_literal
from tunesmith.source.walk import assigned_in, names_in

# -- Neighbouring tasks that a team takes at once: the tile of registers that they share.
#
# One index of the tasks, b, is taken BLOCKED values at a time. Each step is done for all of them before the
# next: tasks do not depend on each other. What depends on b is there once for each, in arrays that unrolled
# loops go through, so they are registers; what does not is there once. Packs that move with b and overlap
# (rows
# above and below in a stencil) are one table of rows: each is loaded once, whoever reads it.


_FARTHEST = 4  # rows, or elements of a row, from one access to another that may share what is loaded


@dataclass(frozen=True)
class RowTable:
    """Rows of one array: those of the tasks, and `span` more that only some of them read."""

    first: Pack  # the row that lies lowest
    rows: Mapping[Key, int]  # packs -> how many rows above the first they lie
    span: int = 0


@dataclass
class Blocking:
    """`task` None: a team takes one task at a time, and nothing changes."""

    task: Task | None = None
    words: Wording = field(default_factory=lambda: Wording({}))
    is_counted: bool = False  # the last team may lack tasks
    written: frozenset[str] = frozenset()
    alike: int = 0  # loads that are the same for neighbouring tasks, or those of another at a neighbour
    names: dict[str, c.Expr] = field(default_factory=dict)  # what each of the tasks has -> its own

    @classmethod
    def of(cls, given: Given) -> Blocking:
        """Along the index that most loads do not move with, or overlap along; of those the fastest."""
        kernel, names, written = given.kernel, given.names, given.written
        found = [(task, _find_varying_names(kernel, task)) for task in given.tasks]
        able = [(task, varying) for task, varying in found if not isinstance(varying, str)]
        if not able:
            raise Unwritable(next(str(varying) for _, varying in reversed(found)))
        arrays = [name for name in given.arrays if name not in written]
        counts = {task: _count_reusable_loads(kernel, task, varying, arrays) for task, varying in able}
        task, varying = max(reversed(able), key=lambda one: counts[one[0]])
        own_words = {"r": names.fresh("r"), "start": names.fresh(f"{task.name}_first")}
        words = Wording({**given.words.words, **own_words})
        made = cls(task, words, not names_in(task.extent) & set(BUILTINS), written, counts[task])
        for name in sorted(varying - {task.name}):
            made.add(name)
        return made

    @property
    def start(self) -> str:
        """The name of the first task's index."""
        return str(self.words.words["start"])

    @property
    def count(self) -> str:
        return str(self.words.words["BLOCKED"])

    def add(self, name: str) -> None:
        """A name of which there is one for each task from now on."""
        if self.task is not None:
            self.names[name] = self.words.expr("own[r]", own=name)

    def extent(self, task: Task) -> c.Expr:
        """How many values an index of the tasks takes: the blocked one as many as there are teams for it."""
        if task != self.task or not self.is_counted:
            return task.extent
        return self.words.expr("(n + (BLOCKED - 1)) / BLOCKED", n=task.extent)

    def dims(self, *dims: c.Expr, span: int = 0) -> tuple[c.Expr, ...]:
        """Of an array of which each task has one."""
        if self.task is None:
            return dims
        rows = self.words.expr("BLOCKED + span", span=integer_literal(span)) if span else c.Name(self.count)
        return rows, *dims

    def over(self, stmts: Sequence[c.Stmt], span: int = 0, guarded: bool = True) -> tuple[c.Stmt, ...]:
        """The statements for each of the tasks, and `span` rows more, unrolled."""
        if self.task is None or not stmts:
            return tuple(stmts)
        inside = substitute(stmts, self.names)
        words = self.words
        if self.task.name in names_in(inside):
            text = "const T b = (T)(start + r);" if self.task.type != "int" else "const T b = start + r;"
            inside = (*words.code(text, T=self.task.type, b=self.task.name), *inside)
        within = None
        if guarded and self.is_counted:
            # The first is always there: what it loads the others need not load again.
            there, first = self._needed_row_test(words.expr("r"), span), "r <= span" if span else "r == 0"
            within = words.expr(f"{first} || there", span=integer_literal(span), there=there)
        return item_axis(str(words.words["r"]), self.dims(span=span)[0], within=within).over(inside)

    def _needed_row_test(self, row: c.Expr, span: int = 0) -> c.Expr:
        """Whether one of the team's tasks needs that row."""
        assert self.task is not None
        text = "row - span < n - start" if span else "row < n - start"
        return self.words.expr(text, row=row, span=integer_literal(span), n=self.task.extent)

    def declared(self, declare: c.Declare) -> tuple[c.Stmt, ...]:
        """A variable of which each task has one, and its value for each."""
        type_ = replace(declare.type, restrict=False, const=declare.type.const and declare.type.is_pointer)
        made = replace(declare, type=type_, init=None, dims=self.dims(*declare.dims))
        return (made, *self.over(_assign_initializer(declare)))

    def team_values(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        """Statements of a whole team: those that depend on the task for each, the others once."""
        if self.task is None:
            return tuple(stmts)
        done, run = list[c.Stmt](), list[c.Stmt]()
        varying = {self.task.name, *self.names}
        for stmt in stmts:
            if isinstance(stmt, c.Declare) and stmt.name in self.names:
                done += self.over(run)
                run = []
                done += self.declared(stmt)
            elif names_in(stmt) & varying:
                run.append(stmt)
            else:
                done += self.over(run)
                run = []
                done.append(stmt)
        return (*done, *self.over(run))

    def is_same(self, pack: Pack) -> bool:
        """Whether all tasks of a team read the same."""
        if self.task is None:
            return True
        is_alike = pack.names.isdisjoint((self.task.name, *self.names)) and pack.array not in self.names
        return is_alike and not pack.stores and pack.array not in self.written

    def tables(self, packs: Sequence[Pack], apart: Iterable[Key] = ()) -> tuple[RowTable, ...]:
        """Packs that differ from task to task; those `apart`, and what is stored, share no rows."""
        found: list[RowTable] = []
        alone = set(apart)
        left = [pack for pack in packs if not self.is_same(pack)]
        while left:
            first = left.pop(0)
            rows = {first.key: 0}
            if self._may_overlap(first) and first.key not in alone:
                able = (pack for pack in left if self._may_overlap(pack) and pack.key not in alone)
                alike = (pack for pack in able if _pack_layout_key(pack) == _pack_layout_key(first))
                shifts = ((pack.key, self._rows_between(first, pack)) for pack in alike)
                rows |= {key: by for key, by in shifts if by is not None}
            low, high = min(rows.values()), max(rows.values())
            if set(rows.values()) != set(range(low, high + 1)):  # rows that nobody reads stay away
                rows, low, high = {first.key: 0}, 0, 0
            lowest = next(pack for pack in (first, *left) if rows.get(pack.key) == low)
            left = [pack for pack in left if pack.key not in rows]
            found.append(RowTable(lowest, {key: by - low for key, by in rows.items()}, high - low))
        return tuple(found)

    def _may_overlap(self, pack: Pack) -> bool:
        assert self.task is not None
        varying = pack.names & {self.task.name, *self.names}
        return varying == {self.task.name} and not pack.stores and pack.array not in self.written

    def _rows_between(self, first: Pack, other: Pack) -> int | None:
        if self.task is None or first.offset is not None or other.offset is not None:
            return None
        found = _find_index_shift(first.index, other.index, self.task.name)
        return found[0] if found is not None and found[1] == 0 else None

    def row(self, table: str, by: int) -> c.Expr:
        return c.Index(c.Name(table), self._row(by))

    def nearby(
        self,
        body: tuple[c.Stmt, ...],
        tables: Sequence[tuple[RowTable, str]],
        known: Mapping[c.Expr, c.Expr],
        item: c.Expr,
        lane: c.Expr,
        vector: str,
    ) -> dict[c.Expr, c.Expr]:
        """Loads that some turns alone make, of what a table may have: from there if it has.

        `tables`: each with its name; `item` and `lane` say which pack of a row, and which element of that."""
        assert self.task is not None
        found: dict[c.Expr, c.Expr] = {}
        for table, name in tables:
            is_plain = table.first.width == 1 and table.first.element is None
            if not is_plain or not self._may_overlap(table.first):
                continue
            for site in Sites.of(body, [table.first.array]).found:
                by = _find_index_shift(table.first.index, site.index, self.task.name)
                if by is None or not _is_plain_load(site) or site.node in known or site.node in found:
                    continue
                pack = self.words.expr("table[row][k]", table=name, row=self._row(by[0]), k=item)
                value = c.Index(c.Member(pack, "at"), _add_constant(lane, by[1]))
                found[site.node] = self._if_there(table, by, value, site.node, lane, vector)
        return found

    def _row(self, by: int) -> c.Expr:
        return _add_constant(self.words.expr("r"), by)

    def _if_there(
        self, table: RowTable, by: tuple[int, int], value: c.Expr, node: c.Expr, lane: c.Expr, vector: str
    ) -> c.Expr:
        """An element of a table where it is one, and otherwise the load as it stands."""
        (rows, beside), row = by, self._row(by[0])
        tests: list[c.Expr] = []
        if not 0 <= rows <= table.span:
            n = self.dims(span=table.span)[0]
            tests.append(self.words.expr("row >= 0" if rows < 0 else "row < n", row=row, n=n))
            if self.is_counted and rows > table.span:
                tests.append(self._needed_row_test(row, table.span))
        if beside:
            text = "at >= 0" if beside < 0 else "at < VEC"
            tests.append(self.words.expr(text, at=_add_constant(lane, beside), VEC=vector))
        return c.Ternary(chain_operator("&&", *tests), value, node) if tests else value


def _add_constant(value: c.Expr, by: int) -> c.Expr:
    return c.Binary("+" if by > 0 else "-", value, integer_literal(abs(by))) if by else value


def _is_plain_load(site: AccessSite) -> bool:
    return site.kind == "load" and site.element is None and site.offset is None and not site.loops


def _pack_layout_key(pack: Pack) -> tuple[object, ...]:
    return pack.array, pack.element, pack.width, pack.unit


def _find_index_shift(first: c.Expr, other: c.Expr, name: str) -> tuple[int, int] | None:
    wanted = dict(expand_terms(other))
    constant = wanted.pop((), 0)
    for by in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs):
        moved = substitute(first, {name: c.Binary("+", c.Name(name), integer_literal(by))}) if by else first
        found = dict(expand_terms(moved))
        beside = constant - found.pop((), 0)
        if found == wanted and abs(beside) <= _FARTHEST:
            return by, beside
    return None


def _assign_initializer(declare: c.Declare) -> tuple[c.Stmt, ...]:
    if declare.init is None:
        return ()
    return (c.Evaluate(c.Assign("=", c.Name(declare.name), declare.init), line=declare.line),)


def _find_varying_names(kernel: KernelModel, task: Task) -> frozenset[str] | str:
    """The steps' names for what differs from task to task; or why several cannot be done at once."""
    steps = list(all_steps(kernel.steps))
    found = {task.name, *(staged.name for staged in kernel.staged)}
    found |= {total.name for step in steps if isinstance(step, Each) for total in step.totals}
    lets = [stmt for step in steps if isinstance(step, Let) for stmt in step.body]
    before = 0
    while before != len(found):
        before = len(found)
        for stmt in lets:
            declared = {stmt.name} if isinstance(stmt, c.Declare) else set[str]()
            if (names_in(stmt) | declared) & found:
                found |= declared | assigned_in((stmt,))
    return _find_batching_fault(kernel, found) or frozenset(found)


def _find_batching_fault(kernel: KernelModel, varying: set[str]) -> str:
    for step in all_steps(kernel.steps):
        match step:
            case Each() | Repeat():
                ends = names_in(step.start) | names_in(step.stop)
                ends |= names_in(step.step) if isinstance(step, Repeat) else frozenset()
                if ends & varying:
                    return f"how far the loop over {step.index} goes differs from task to task"
            case When(condition=condition) if names_in(condition) & varying:
                return f"tasks go different ways in line {step.line}"
            case Let(body=body):
                for stmt in body:
                    if (word := _unbatchable_variable(stmt)) and (names_in(stmt) | {word}) & varying:
                        return f"{word} cannot be there once for each of several tasks"
    return ""


def _unbatchable_variable(stmt: c.Stmt) -> str:
    """The name of a variable that no array can hold, or that cannot be assigned to."""
    if not isinstance(stmt, c.Declare):
        return ""
    plain = stmt.type.base != "auto" and not stmt.type.reference and not stmt.storage and stmt.align is None
    return "" if plain and not (stmt.is_array and stmt.init is not None) else stmt.name


def _count_reusable_loads(
    kernel: KernelModel, task: Task, varying: frozenset[str], arrays: Sequence[str]
) -> int:
    """How many loads are the same for neighbouring tasks, or those of another at a neighbour."""
    count = 0
    for step in all_steps(kernel.steps):
        if isinstance(step, Each):
            loads = [site for site in Sites.of(step.body, arrays).found if site.kind == "load"]
            for site in loads:
                count += not site.names & varying or any(
                    _is_neighbour_access(site, other, task.name) for other in loads
                )
    return count


def _is_neighbour_access(site: AccessSite, other: AccessSite, name: str) -> bool:
    if site.array != other.array or site.offset is not None or other.offset is not None:
        return False
    found = _find_index_shift(site.index, other.index, name)
    return found is not None and found[0] != 0


Level = Literal["registers", "shared", "global"]


@dataclass(frozen=True)
class Buffer:
    """Where a loop's elements of one pack lie while threads work on them, and for how long.

    A buffer lives for a turn. One that is `kept` lives as long as the loops over one range, where the
    schedule keeps rows in registers: then what is `filled` is not loaded, what is `replaced` or lies in
    shared memory otherwise is not stored, and what is `wanted` a later loop reads again."""

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
        return parse_snippet_expr(
            "(extent * size + 15) / 16 * 16", extent=self.extent, size=integer_literal(self.size)
        )


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
        for row in group_loops_by_range(given.kernel.steps):
            for loop in _plan_kept_buffers([loops[each.number] for each in row], given):
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
    homes: dict[bool, Level] = {True: "shared", False: "global"}
    buffers = {
        pack.key: Buffer(given.names.fresh(f"{pack.array}_pack"), homes[pack.array in staged])
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


def _with_copies(loop: LoopPlan, given: Given) -> LoopPlan:
    loads, stores = list[Copy](), list[Copy]()
    keeps = loop.in_row and given.knobs.keep.most > 0
    for pack in loop.packs:
        buffer = loop.buffers[pack.key]
        if pack.loads:
            waits = _has_dependent_place(pack, given)
            loads.append(Copy(pack, _way_in(pack, given), waits, keeps and buffer.filled))
        if pack.stores:
            way = "store_once" if given.knobs.store_hint.is_parameter and buffer.home == "global" else "store"
            needless = keeps and (buffer.replaced or buffer.home == "shared")
            stores.append(Copy(pack, way, needless=needless))
    # A load that waits for another one's result would hold up those behind it.
    loads.sort(key=lambda copy: (copy.waits, not (keeps and loop.buffers[copy.pack.key].kept)))
    return replace(loop, loads=tuple(loads), stores=tuple(stores))


def _has_dependent_place(pack: Pack, given: Given) -> bool:
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


def group_loops_by_range(steps: Sequence[Step]) -> Iterator[list[Each]]:
    """Several loops over one range in one list of steps."""
    for siblings in step_lists(steps):
        ranges: dict[tuple[object, object], list[Each]] = {}
        for step in siblings:
            if isinstance(step, Each):
                start, stop = (frozenset(expand_terms(end).items()) for end in (step.start, step.stop))
                ranges.setdefault((start, stop), []).append(step)
        yield from (loops for loops in ranges.values() if len(loops) > 1)


def _plan_kept_buffers(row: Sequence[LoopPlan], given: Given) -> Sequence[LoopPlan]:
    """Loops over one range, with the buffers that stay from one to a later one."""
    if given.sizes.node(row[0].extent) is None:
        return row
    staged = {staged.name for staged in given.kernel.staged}
    elsewhere = _names_outside_loops(row, given)
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
            pack_here = next((pack for pack in loop.packs if pack.key == key), None)
            later = [pack for other in row[number + 1 :] for pack in other.packs if pack.key == key]
            if pack_here is not None or number == 0:
                buffers[key] = replace(
                    first.buffers[key],
                    kept=True,
                    filled=pack_here is not None and pack_here.loads and loop is not first,
                    replaced=pack_here is not None
                    and pack_here.stores
                    and any(pack.stores for pack in later),
                    wanted=any(pack.loads for pack in later),
                )
        opens = () if number else tuple(members[0][1] for members in shared.values())
        done.append(replace(loop, buffers=buffers, in_row=True, opens=opens))
    return done


def _is_used_again(packs: Sequence[Pack]) -> bool:
    return any(pack.loads for pack in packs[1:]) or sum(pack.stores for pack in packs) > 1


def _names_outside_loops(row: Sequence[LoopPlan], given: Given) -> set[str]:
    """Names in steps other than these loops."""
    numbers = {loop.each.number for loop in row}
    others = [s for s in all_steps(given.kernel.steps) if not isinstance(s, Each) or s.number not in numbers]
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
