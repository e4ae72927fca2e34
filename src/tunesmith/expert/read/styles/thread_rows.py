"""Rows that one thread takes in turn, as tasks: each row by itself.

    y0 = 4 * get_global_id(1);                                  y < rows:  a task
    for (y = y0; y < min(rows, y0 + 4); ++y) ... [y * step + x]     ... [y * step + x]

    for (i = 0; i < 4; i++) if (y0 + i < rows) ...              the same

Threads come to every row once: where y0 counts by as many as the loop turns, and the launch comes to all of
them. That rows do not depend on each other is the kernel's own where different threads take them. Of rows of
one thread it is proved: what is stored in a row lies apart from all that another row touches (`SizeBounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from tunesmith.expert.read.accesses import ArrayPlace, Touch, element_type, find_touches
from tunesmith.expert.read.contract import SizeBounds
from tunesmith.expert.read.geometry import THREAD, LaunchedKernel, OtherForm, Scenario, form_of, strided_loops
from tunesmith.expert.read.integers import (
    Head,
    Terms,
    bounds_in,
    expand_terms,
    from_terms,
    head_of,
    index_stride,
    make_product,
    make_sum,
    number_node,
    same_value,
    split_affine,
    trip_count,
    without_casts,
)
from tunesmith.expert.read.model import Fact, OutOfReach, Reach, Task
from tunesmith.expert.read.normal import Normal
from tunesmith.expert.read.rules.launched_loops import BoundsOf, counted_by_element
from tunesmith.expert.read.rules.tidy import remove_early_exits
from tunesmith.expert.read.rules.totals import MAXIMA, MINIMA, Update, set_to, update_in
from tunesmith.expert.read.styles.elements import Flat
from tunesmith.expert.read.styles.team_values import identity_of
from tunesmith.problem.problem import SizeRule
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, Program, effects_of, is_pure
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.types import INTEGERS, byte_size, integer_type
from tunesmith.space import expr as size


def with_rows_as_tasks(
    flat: Flat,
    kernel: LaunchedKernel,
    program: Program,
    rules: tuple[SizeRule, ...],
    launches: Sequence[Scenario],
) -> Flat:
    """The kernel with every row a task, or as it is: with a note where only the proof is missing."""
    found = _rows_of(flat, kernel)
    if found is None or not _comes_to_all(found, launches):
        return flat
    taken = {*kernel.normal.names, *walk.declared_in(flat.each.body), *(task.name for task in flat.tasks)}
    return _Rows(flat, kernel, found, program, rules, taken).apart()


_SMALL = 64  # turns of a loop that is part of what is done for one element


def looks_like_rows(flat: Flat, normal: Normal) -> bool:
    """Whether each thread walks a row of its own: neighbours far apart, its own turns side by side."""
    for node in walk.nodes_in(flat.each.body):
        if not isinstance(node, c.For):
            continue
        head = head_of(node)
        if head is None or (trip_count(head) or _SMALL + 1) <= _SMALL:
            continue
        for touch in find_touches(node.body, normal.arrays):
            along = index_stride(touch.place.index, head.index)
            across = index_stride(touch.place.index, flat.each.index)
            if along is not None and along.step == 1 and (across is None or across.step not in (0, 1)):
                return True
    return False


@dataclass(frozen=True)
class _ThreadRows:
    """`for (index = start; ...)` of `count` turns, of which `task` says the first row."""

    before: tuple[c.Stmt, ...]
    loop: c.For
    head: Head
    task: Task
    count: int
    from_zero: bool  # the loop counts the thread's own rows, not those of all
    body: tuple[c.Stmt, ...]
    bound: c.Expr | None  # rows end here

    @property
    def first(self) -> c.Expr:
        return c.Binary("*", c.Name(self.task.name), number_node(self.count))

    @property
    def all_of_task(self) -> c.Expr:
        return fold_expr(c.Binary("*", self.task.extent, number_node(self.count)))


def _rows_of(flat: Flat, kernel: LaunchedKernel) -> _ThreadRows | None:
    """None where no thread takes rows in turn."""
    if not flat.each.body:
        return None
    *before, loop = flat.each.body
    if not isinstance(loop, c.For) or not all(isinstance(stmt, c.Declare) for stmt in before):
        return None
    head = head_of(loop)
    if head is None or head.step != number_node(1):
        return None
    names = walk.names_in(loop)
    for task in (task for task in flat.tasks if task.name in names):
        found = _of_task(task, tuple(before), loop, head, kernel)
        if found is not None:
            return found
    return None


def _of_task(
    task: Task, before: tuple[c.Stmt, ...], loop: c.For, head: Head, kernel: LaunchedKernel
) -> _ThreadRows | None:
    fixed: dict[str, c.Expr] = {
        name: number_node(node.value)
        for name, node in kernel.launch.parameters.items()
        if isinstance(node, size.Num)
    }
    known = set(kernel.launch.parameters) - walk.assigned_in(kernel.normal.body)
    stops, bound = [head.stop], None
    pair = _smaller_of(head.stop)
    if pair is not None:
        of_thread = [part for part in pair if task.name in walk.names_in(part)]
        others = [part for part in pair if walk.names_in(part) <= known]
        if len(of_thread) != 1 or len(others) != 1 or of_thread == others:
            return None
        stops, bound = of_thread, others[0]
    count = int_value(
        fold_expr(from_terms(expand_terms(substitute(c.Binary("-", stops[0], head.start), fixed))))
    )
    if count is None or count < 2:
        return None
    from_zero = head.start == number_node(0)
    first = c.Binary("*", c.Name(task.name), number_node(count))
    if not from_zero and not same_value(head.start, first):
        return None
    found = _ThreadRows(before, loop, head, task, count, from_zero, loop.body, bound)
    if bound is None:
        return _apply_row_guard(found, known)
    return None if from_zero else found


def _smaller_of(expr: c.Expr) -> tuple[c.Expr, c.Expr] | None:
    """`min(a, b)`, `a < b ? a : b`"""
    match without_casts(expr):
        case c.Call(function="min", args=(left, right), of=None):
            return left, right
        case c.Ternary(c.Binary("<" | "<=", left, right), yes, no) if (yes, no) == (left, right):
            return left, right
        case c.Ternary(c.Binary(">" | ">=", left, right), yes, no) if (yes, no) == (right, left):
            return left, right
    return None


def _apply_row_guard(found: _ThreadRows, known: set[str]) -> _ThreadRows | None:
    """With the test that a turn begins with as the end of all rows; without any test as it is."""
    index: c.Expr = c.Name(found.head.index)
    row = c.Binary("+", found.first, index) if found.from_zero else index

    def is_row(expr: c.Expr) -> bool:
        return same_value(expr, row)

    guard = found.body[0] if found.body else None
    if isinstance(guard, c.If) and not guard.otherwise:
        # Rows only go up: once a turn is left for that, so are all later ones.
        leaves = len(guard.then) == 1 and isinstance(guard.then[0], c.Jump)
        tested = bounds_in(guard.condition, is_row, not leaves) if leaves or len(found.body) == 1 else None
        if tested is not None and len(tested) == 1 and walk.names_in(tested[0][1]) <= known:
            return replace(found, body=found.body[1:] if leaves else guard.then, bound=tested[0][1])
    # Turns that end nowhere but by their number may be parts of anything: words, packs, unrolled sums.
    return None if found.from_zero else found


def _comes_to_all(found: _ThreadRows, launches: Sequence[Scenario]) -> bool:
    """Whether no launch leaves rows out that the kernel's own test allows."""
    if found.bound is None:
        return True
    for scenario in launches:
        bound = int_value(found.bound, scenario.numbers)
        count = int_value(found.all_of_task, scenario.numbers)
        if bound is None or count is None or count < bound:
            return False
    return bool(launches)


@dataclass(frozen=True)
class _InRow:
    """An access at `by` bytes times the row, and `place` bytes from there."""

    touch: Touch
    by: c.Expr
    place: c.Expr
    width: int


class _Rows:
    def __init__(
        self,
        flat: Flat,
        kernel: LaunchedKernel,
        found: _ThreadRows,
        program: Program,
        rules: tuple[SizeRule, ...],
        taken: set[str],
    ) -> None:
        self._flat, self._kernel, self._found = flat, kernel, found
        self._program, self._rules = program, rules
        self._type = found.task.type if found.from_zero else found.head.type
        self._row = self._row_name(taken)
        index = {name: c.Type(task.type) for task in flat.tasks for name in (task.name,)}
        self._types = {**kernel.normal.types, **index, self._row: c.Type(self._type)}
        self._types |= {flat.each.index: c.Type(flat.each.type), found.head.index: c.Type(found.head.type)}

    def _row_name(self, taken: set[str]) -> str:
        found = self._found
        if not found.from_zero:
            return found.head.index
        short = found.task.name.removesuffix("_step")
        used = walk.names_in(self._flat.each.body) | walk.names_in(self._flat.each.stop)
        is_free = short not in used and short in self._kernel.normal.ids
        return short if is_free else walk.fresh_name(f"{short}_row", taken)

    def apart(self) -> Flat:
        found, flat = self._found, self._flat
        try:
            turn = walk.prepend_comments(remove_early_exits(found.body), found.loop.comments)
            body = self._in_rows((*found.before, *turn))
            self._check_rows(body)
        except OutOfReach as stop:
            note = f"line {found.loop.line}: a thread takes {found.count} rows in turn, which stay its own"
            return replace(flat, notes=(*flat.notes, f"{note}: {stop.reason}"))
        launch = self._kernel.launch
        extent = found.all_of_task if found.bound is None else launch.replaced(found.bound)
        task = Task(self._row, extent, self._type, launch.size_text(extent))
        reach = () if found.bound is None else (Reach(self._row, found.bound, found.all_of_task),)
        where = f"line {found.loop.line}"
        fact = Fact("rows that a thread takes in turn do not depend on each other", "proved", where)
        return replace(
            flat,
            tasks=tuple(task if one is found.task else one for one in flat.tasks),
            each=replace(flat.each, body=body),
            reach=(*flat.reach, *reach),
            facts=(*flat.facts, fact),
        )

    def _in_rows(self, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """Said of the row; what asks for the thread's first row divides."""
        found, row = self._found, c.Name(self._row)
        if found.from_zero:
            body = substitute(body, {found.head.index: c.Binary("-", row, found.first)})
        body = walk.map_nodes(body, self._without_first)
        return substitute(body, {found.task.name: c.Binary("/", row, number_node(found.count))})

    def _without_first(self, expr: c.Expr) -> c.Expr:
        """A sum in which the thread's first row comes and goes, without it."""
        first = self._found.task.name
        if (
            not isinstance(expr, c.Binary)
            or expr.op not in ("+", "-", "*")
            or first not in walk.names_in(expr)
        ):
            return expr
        # What the row is made of: 4 * first + (row - 4 * first).
        plain = from_terms(self._row_first(expand_terms(expr)))
        type_, made = integer_type(expr, self._types), integer_type(plain, self._types)
        if first in walk.names_in(plain) or type_ is None or made is None:
            return expr
        if INTEGERS[type_.base] == INTEGERS[made.base]:
            return plain
        # Its products are to be as wide as they were.
        wide = {name: c.Cast(c.Type(type_.base), c.Name(name)) for name in walk.names_in(plain)}
        return substitute(plain, wide)

    def _row_first(self, found: Terms) -> Terms:
        """`row * step + x`, as people write it."""
        row = c.Name(self._row)
        keys = sorted(found, key=lambda key: row not in key)
        return {tuple(sorted(key, key=lambda factor: factor != row)): found[key] for key in keys}

    def _check_rows(self, body: tuple[c.Stmt, ...]) -> None:
        found, before = self._found, set(walk.declared_in(self._found.before))
        for name in sorted(before & (walk.assigned_in(found.loop) | walk.stored_in(found.loop))):
            raise OutOfReach(f"'{name}' is carried from row to row")
        if any(isinstance(node, c.Return) for node in walk.nodes_in(found.loop)):
            raise OutOfReach("a thread returns from inside the loop")
        if self._found.task.name in walk.names_in(self._flat.each.stop):
            raise OutOfReach("how many elements there are depends on the row")
        quiet = Effects.READS | Effects.WRITES | Effects.ASSIGNS | Effects.THREAD | Effects.SHAPE
        if effects_of(body, self._program) & ~quiet:
            raise OutOfReach("a row does more than load, compute and store")
        aliases, arrays = self._kernel.aliases, self._kernel.normal.arrays
        by_array: dict[str, list[Touch]] = {}
        for touch in find_touches(body, arrays):
            by_array.setdefault(aliases.get(touch.place.array, touch.place.array), []).append(touch)
        inner = self._uniform_loop_heads(body)
        moving = {self._row} | ((set(walk.declared_in(body)) | walk.assigned_in(body)) - {*inner})
        for every in by_array.values():
            if any(touch.writes for touch in every):
                self._check_array(every, inner, moving)

    def _check_array(self, every: Sequence[Touch], inner: Mapping[str, Head], moving: set[str]) -> None:
        """What is stored in a row, and all that is touched in another, lie a whole row apart."""
        one, each = number_node(1), self._flat.each
        ranges = {each.index: (each.start, c.Binary("-", each.stop, one))}
        for head in inner.values():
            ranges[head.index] = ranges[f"{head.index}'"] = (head.start, c.Binary("-", head.stop, one))
        bounds = SizeBounds(self._rules, self._kernel.launch.parameters, ranges)
        elsewhere = {name: c.Name(f"{name}'") for name in inner}  # loops inside turn apart in another row
        placed = [self._locate_in_row(touch, moving) for touch in every]
        for store in placed:
            for other in placed if store.touch.writes else ():
                apart = c.Binary("-", store.place, substitute(other.place, elsewhere))
                ahead = c.Binary("-", c.Binary("-", store.by, number_node(store.width)), apart)
                behind = c.Binary("+", c.Binary("-", store.by, number_node(other.width)), apart)
                if not same_value(store.by, other.by) or not all(map(bounds.never_negative, (ahead, behind))):
                    here, there = print_expr(store.touch.node), print_expr(other.touch.node)
                    raise OutOfReach(f"'{here}' in one row may meet '{there}' in another")

    def _locate_in_row(self, touch: Touch, moving: set[str]) -> _InRow:
        array = self._kernel.normal.arrays[touch.place.array]
        width = byte_size(element_type(touch.place, array).base)
        whole = None if touch.atomic else self._byte_offset(touch.place)
        split = None if whole is None else split_affine(whole, self._row)
        if width is None or whole is None or split is None:
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is not known")
        if (walk.names_in(split[0]) | walk.names_in(split[1])) & moving:
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is computed there")
        if any(isinstance(node, c.Index | c.Call) for node in walk.nodes_in(whole)):
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is loaded")
        return _InRow(touch, *split, width)

    def _byte_offset(self, place: ArrayPlace) -> c.Expr | None:
        """Where a place is, in bytes from the start of its array."""
        element_bytes = byte_size(self._kernel.normal.arrays[place.array].base)
        wide = element_bytes if place.as_type is None else byte_size(place.as_type.base)
        if element_bytes is None or wide is None:
            return None
        at: c.Expr = c.Binary("*", place.index, number_node(wide))
        return (
            at
            if place.offset is None
            else c.Binary("+", at, c.Binary("*", place.offset, number_node(element_bytes)))
        )

    def _uniform_loop_heads(self, body: tuple[c.Stmt, ...]) -> dict[str, Head]:
        """Loops of a row from one number of the call to another, by their index."""
        known = set(self._kernel.launch.parameters)
        loops = [head_of(node) for node in walk.nodes_in(body) if isinstance(node, c.For)]
        return {
            head.index: head
            for head in loops
            if head is not None
            and (int_value(head.step) or 0) > 0
            and walk.names_in(head.start) | walk.names_in(head.stop) <= known
        }


# -- Rows that threads keep in arrays of their own between loops, read as one value for every element.
#
#     float v[4];
#     for (k = 0; k * blockDim.x + threadIdx.x < n; k++)        for (i = threadIdx.x; i < n; i += blockDim.x)
#         v[k] = x[k * blockDim.x + threadIdx.x];         ->        v[i] = x[i];
#     for (k = 0; k * blockDim.x + threadIdx.x < n; k++)        for (i = threadIdx.x; i < n; i += blockDim.x)
#         out[k * blockDim.x + threadIdx.x] = v[k];                 out[i] = v[i];
#
#     for (k = 0; k < 4; k++)                                   for (i = lane; i < 128; i += 32)
#         v[k] = k * 32 + lane < n ? x[k * 32 + lane] : 0;  ->      v[i] = i < n ? x[i] : 0;
#     for (k = 0; k < 4; k++)                                   for (i = lane; i < 128; i += 32)
#         sum += v[k];                                              sum += v[i];
#
# Place k of a thread's array is the element that the thread takes in turn k: all loops that touch the array
# count the same turns, so that no thread sees a place of another one. The first of them sets every place that
# it comes to before it is read: nothing is left of an earlier task. In the model such an array is one in
# shared
# memory, of which every team has its own.


_MAX = 1024  # places of one thread's array


@dataclass(frozen=True)
class TurnCount:
    """How a loop counts: as long as `each` * index + `first` is below `stop`, or `turns` times."""

    each: c.Expr | None  # None: the loop itself does not say which element a turn is for
    first: c.Expr | None
    stop: c.Expr | None
    turns: int | None

    def fits(self, other: TurnCount) -> bool:
        if self.turns != other.turns or (self.stop is None) != (other.stop is None):
            return False
        pairs = ((self.each, other.each), (self.first, other.first), (self.stop, other.stop))
        return all(a is None or b is None or same_value(a, b) for a, b in pairs)


def with_kept_rows(kernel: LaunchedKernel, _bounds_of: BoundsOf) -> OtherForm | None:
    """The kernel with such arrays as shared ones, and what that rests on; None where it has none."""
    work = _KeptRows(kernel.normal, kernel.scenarios)
    body = work.block(kernel.normal.body)
    if not work.kept:
        return None
    normal = replace(
        kernel.normal,
        body=body,
        types={**kernel.normal.types, **work.types, **work.variables},
        shared={**kernel.normal.shared, **work.kept},
    )
    roles = strided_loops(normal, kernel.scenarios[-1])
    if any(roles[name].role != "element" for name in work.types):
        return None
    said = "threads keep values of their own elements alone in '{}'"
    facts = [Fact(said.format(one.name), "proved", f"line {one.line}") for one in work.kept.values()]
    return OtherForm(replace(kernel, normal=normal), tuple(facts))


class _KeptRows:
    def __init__(self, normal: Normal, tried: Sequence[Scenario]) -> None:
        self._normal, self._tried = normal, tried
        self._definitions = normal.definitions
        self._taken = normal.names
        self.types: dict[str, c.Type] = {}  # of the new indices
        self.variables: dict[str, c.Type] = {}  # of turns
        self.kept: dict[str, c.Declare] = {}

    def block(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        unrolled = self._from_first(stmts)
        whole = tuple(self._without_break(stmt) if isinstance(stmt, c.For) else stmt for stmt in unrolled)
        arrays = [stmt for stmt in whole if isinstance(stmt, c.Declare) and _is_small_array(stmt)]
        found = self._converted(whole, arrays) if arrays else None
        stmts = stmts if found is None else found
        return tuple(walk.map_blocks(stmt, self.block) for stmt in stmts)

    def _from_first(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """`m = v[0]; for (k = 1; ...) m = fmaxf(m, v[k]);` as a loop from 0 on that starts from nothing."""
        done = list(stmts)
        for at, (stmt, loop) in enumerate(pairwise(stmts)):
            name, value = _value_set(stmt)
            head = head_of(loop) if isinstance(loop, c.For) else None
            if not name or head is None or not isinstance(loop, c.For) or head.start != number_node(1):
                continue
            match value:
                case c.Index(base=c.Name(name=array), index=c.Number(value=0)):
                    update = _plain_update(loop.body, name, c.Index(c.Name(array), c.Name(head.index)))
                case _:
                    continue
            type_ = self._normal.types.get(name)
            if update is None or type_ is None or type_.is_pointer or type_.base != "float":
                continue
            nothing = identity_of(update.operator, type_)
            done[at] = _set_to(stmt, nothing)
            first = loop.init[0]
            assert isinstance(first, c.Declare)
            done[at + 1] = replace(loop, init=(replace(first, init=number_node(0)),))
        return tuple(done)

    def _without_break(self, loop: c.For) -> c.For:
        index = _zero_based_index(loop)
        match loop.body:
            case (*before, c.If(condition=test, otherwise=(c.Jump(word="break"),)) as last):
                bounds = bounds_in(test, lambda expr: index in walk.names_in(expr))
                if index is None or bounds is None or len(bounds) != 1:
                    return loop
                moves = split_affine(bounds[0][0], index)
                fixed = walk.names_in(test) & walk.assigned_in(loop.body)
                if moves is None or fixed or index in walk.names_in(bounds[0][1]):
                    return loop
                step = [int_value(moves[0], scenario.numbers) for scenario in self._tried]
                plain = all(
                    isinstance(s, c.Declare) and s.init is not None and is_pure(s.init) for s in before
                )
                if plain and all(by is not None and by > 0 for by in step):
                    return replace(loop, body=(*before, replace(last, otherwise=())))
        return loop

    def _converted(self, stmts: tuple[c.Stmt, ...], arrays: Sequence[c.Declare]) -> tuple[c.Stmt, ...] | None:
        names = {declare.name for declare in arrays}
        names = {name for name in names if _sets_first(stmts, name)}
        users = {at for at, stmt in enumerate(stmts) if walk.names_in(stmt) & names and stmt not in arrays}
        loops = {at: stmt for at in users if isinstance(stmt := stmts[at], c.For)}
        if not names or len(loops) != len(users):
            return None
        counts = {at: self._turn_count(loop, names) for at, loop in loops.items()}
        known = [count for count in counts.values() if count is not None]
        chosen = next((count for count in known if count.each is not None), None)
        if chosen is None or len(known) != len(counts) or not all(chosen.fits(count) for count in known):
            return None
        if not self._shares_out(chosen):
            return None
        done = list(stmts)
        for at, loop in loops.items():
            made = self._by_element(loop, chosen, names)
            if made is None:
                return None
            done[at] = made
        for declare in arrays:
            if declare.name in names:
                places = number_node(_MAX * _MAX)  # as many as there may be
                self.kept[declare.name] = replace(declare, dims=(places,), init=None, storage="shared")
        return tuple(stmt for stmt in done if stmt not in arrays or getattr(stmt, "name", "") not in names)

    def _turn_count(self, loop: c.For, names: set[str]) -> TurnCount | None:
        """None for loops that count otherwise, or use an array at a place that is not the turn's."""
        index = _zero_based_index(loop)
        if index is None or loop.condition is None or index in walk.assigned_in(loop.body):
            return None
        if any(isinstance(node, c.Jump | c.Return | c.Verbatim) for node in walk.nodes_in(loop.body)):
            return None
        uses = [node for node in walk.nodes_in(loop.body) if isinstance(node, c.Name) and node.name in names]
        if len(uses) != sum(1 for _ in _find_indexed_accesses(loop.body, names, index)):
            return None
        head = head_of(loop)
        if head is not None:
            turns = int_value(head.stop)
            if head.start != number_node(0) or head.step != number_node(1) or turns is None:
                return None
            each, first = self._element(loop.body, index, names) or (None, None)
            return TurnCount(each, first, None, turns) if 0 < turns <= _MAX else None
        bounds = bounds_in(loop.condition, lambda expr: index in walk.names_in(expr))
        if bounds is None or len(bounds) != 1 or index in walk.names_in(bounds[0][1]):
            return None
        element = split_affine(bounds[0][0], index)
        fixed = walk.assigned_in(loop.body) & (walk.names_in(loop.condition) | {index})
        return None if element is None or fixed else TurnCount(element[0], element[1], bounds[0][1], None)

    def _element(self, body: Sequence[c.Stmt], index: str, names: set[str]) -> tuple[c.Expr, c.Expr] | None:
        """`each` and `first` of the element that a turn is for: what its tests compare, or its places."""
        tests = [node.condition for node in walk.nodes_in(body) if isinstance(node, c.If | c.Ternary)]
        for test in tests:
            bounds = bounds_in(test, lambda expr: index in walk.names_in(expr)) or ()
            for expr, _ in bounds:
                found = split_affine(expr, index)
                if found is not None and self._is_of_thread(found[1]):
                    return found
        for node in walk.nodes_in(body):
            array = walk.root_variable(node)[0] if isinstance(node, c.Index) else None
            if not isinstance(node, c.Index) or array in names or index not in walk.names_in(node.index):
                continue
            found = split_affine(node.index, index)
            if found is not None:
                of_thread = {
                    key: n for key, n in expand_terms(found[1]).items() if any(map(self._is_of_thread, key))
                }
                return found[0], from_terms(of_thread)
        return None

    def _is_of_thread(self, part: c.Expr) -> bool:
        return bool(walk.names_in(substitute(part, self._definitions)) & THREAD)

    def _shares_out(self, count: TurnCount) -> bool:
        """Whether threads start at 0 or above, and below a turn's step, in every block: turns lie apart."""
        assert count.each is not None and count.first is not None
        each, first = (substitute(part, self._definitions) for part in (count.each, count.first))
        for scenario in self._tried:
            step, form = int_value(each, scenario.numbers), form_of(first, scenario)
            if step is None or form is None or form.per_block != (0, 0, 0):
                return False
            if min(form.base) < 0 or max(form.base) >= step:
                return False
        return True

    def _with_variables(self, loop: c.For, names: set[str]) -> tuple[c.Stmt, ...]:
        """A place that a turn sets first is a variable of the turn, and stored at its end."""
        body = loop.body
        for name in sorted(names):
            place = next((node for node in walk.nodes_in(body) if _is_place(node, name)), None)
            if not isinstance(place, c.Index) or not _is_set(body, name):
                continue
            fresh = walk.fresh_name(f"{name}_now", self._taken)
            type_ = c.Type(self._normal.types[name].base)
            self.variables[fresh] = type_
            body = (
                c.Declare(type_, fresh, line=loop.line),
                *walk.map_nodes(body, partial(_said_as, name, c.Name(fresh))),
                c.Evaluate(c.Assign("=", place, c.Name(fresh)), line=loop.line),
            )
        return body

    def _by_element(self, loop: c.For, count: TurnCount, names: set[str]) -> c.For | None:
        index = _zero_based_index(loop)
        assert index is not None and count.each is not None and count.first is not None
        element = make_sum(c.Binary("*", c.Name(index), count.each), count.first)
        stop = count.stop
        if stop is None:
            assert count.turns is not None
            stop = fold_expr(make_product(count.each, number_node(count.turns)))

        def node(expr: c.Expr) -> c.Expr:
            at_turn = isinstance(expr, c.Index) and walk.root_variable(expr)[0] in names
            return replace(expr, index=element) if at_turn and isinstance(expr, c.Index) else expr

        body = walk.map_nodes(self._with_variables(loop, names), node)
        known = replace(self._normal, types={**self._normal.types, **self.types})
        made = counted_by_element(
            known, replace(loop, body=body), index, element, stop, count.first, count.each
        )
        if made is None:
            return None
        changed, name, type_ = made
        self.types[name] = type_
        return changed


def _is_place(node: c.Expr | c.Stmt, array: str) -> bool:
    return isinstance(node, c.Index) and node.base == c.Name(array)


def _said_as(array: str, name: c.Name, node: c.Expr) -> c.Expr:
    return name if _is_place(node, array) else node


def _is_small_array(declare: c.Declare) -> bool:
    size = int_value(declare.dims[0]) if len(declare.dims) == 1 else None
    plain = not declare.storage and not declare.type.is_pointer and declare.init is None
    return plain and size is not None and 0 < size <= _MAX


def _zero_based_index(loop: c.For) -> str | None:
    """The one index of a loop that counts 0, 1, 2, ... in its head, and nowhere else."""
    match loop.init, loop.step:
        case (c.Declare(name=name, init=start, dims=()),), (step,) if start is not None:
            counts = step in (
                c.Unary("++", c.Name(name)),
                c.Unary("++", c.Name(name), postfix=True),
                c.Assign("+=", c.Name(name), number_node(1)),
            )
            return name if counts and int_value(start) == 0 else None
    return None


def _find_indexed_accesses(body: Sequence[c.Stmt], names: set[str], index: str) -> Iterator[c.Index]:
    """Places of the arrays that are the turn's own."""
    for node in walk.nodes_in(body):
        match node:
            case c.Index(base=c.Name(name=name), index=at) if name in names:
                if without_casts(at) == c.Name(index):
                    yield node


def _sets_first(stmts: Sequence[c.Stmt], name: str) -> bool:
    """Whether the first loop that touches the array sets its turn's place before it reads it."""
    first = next((s for s in stmts if not isinstance(s, c.Declare) and name in walk.names_in(s)), None)
    return isinstance(first, c.For) and _is_set(first.body, name) is True


def _is_set(body: Sequence[c.Stmt], name: str) -> bool | None:
    """Whether it is; None where nothing is said of it."""
    for stmt in body:
        if name not in walk.names_in(stmt):
            continue
        match stmt:
            case c.Evaluate(expr=c.Assign(op="=", target=c.Index(base=c.Name()), value=value)):
                return name not in walk.names_in(value)
            case c.If(condition=condition, then=then, otherwise=otherwise):
                both = (_is_set(then, name), _is_set(otherwise, name))
                return both == (True, True) and name not in walk.names_in(condition)
            case c.Scope(body=inner):
                return _is_set(inner, name)
        return False
    return None


def _plain_update(body: Sequence[c.Stmt], name: str, place: c.Expr) -> Update | None:
    """A sum, maximum or minimum of the very values at the place, and of nothing else."""
    match body:
        case (c.Evaluate(expr=c.Assign(op="+=", target=c.Name(name=own), value=value)),):
            return Update("+") if own == name and value == place else None
        case (c.Evaluate(expr=c.Assign(op="=")) | c.If(),):
            update = update_in(body, name)
            if update is None or update.operator not in ("max", "min"):
                return None
            known = {name, *walk.names_in(place)}
            parts = [node for node in walk.nodes_in(body) if isinstance(node, c.Name | c.Number | c.Index)]
            plain = all(node == place or (isinstance(node, c.Name) and node.name in known) for node in parts)
            return (
                update if plain and not any(_is_computation(node) for node in walk.nodes_in(body)) else None
            )
    return None


def _is_computation(node: c.Expr | c.Stmt) -> bool:
    """Arithmetic, in place of a mere choice."""
    if isinstance(node, c.Call):
        return node.function not in MAXIMA | MINIMA
    choice = isinstance(node, c.Binary) and node.op in ("<", ">", "<=", ">=")
    return isinstance(node, c.Binary | c.Unary | c.Cast | c.Opaque) and not choice


def _value_set(stmt: c.Stmt) -> tuple[str, c.Expr | None]:
    if isinstance(stmt, c.Declare) and not stmt.dims and not stmt.storage:
        return stmt.name, stmt.init
    return set_to(stmt)


def _set_to(stmt: c.Stmt, value: c.Expr) -> c.Stmt:
    match stmt:
        case c.Declare():
            return replace(stmt, init=value)
        case c.Evaluate(expr=c.Assign() as assign):
            return replace(stmt, expr=replace(assign, value=value))
    return stmt
