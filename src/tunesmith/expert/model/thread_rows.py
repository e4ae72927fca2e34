"""Rows that one thread takes in turn, as tasks: each row by itself.

    y0 = 4 * get_global_id(1);                                  y < rows:  a task
    for (y = y0; y < min(rows, y0 + 4); ++y) ... [y * step + x]     ... [y * step + x]

    for (i = 0; i < 4; i++) if (y0 + i < rows) ...              the same

Threads come to every row once: where y0 counts by as many as the loop turns, and the launch comes to all of
them. That rows do not depend on each other is the kernel's own where different threads take them. Of rows of
one thread it is proved: what is stored in a row lies apart from all that another row touches (`size_bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, effects_of
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import INTEGERS, byte_size, integer_type
from tunesmith.expert.model.accesses import ArrayPlace, Touch, element_type, touches
from tunesmith.expert.model.affine import (
    Head,
    Terms,
    affine,
    bounds_in,
    from_terms,
    head_of,
    number,
    same_value,
    stride,
    terms,
    trips,
    without_casts,
)
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.flat import Flat
from tunesmith.expert.model.geometry import LaunchedKernel
from tunesmith.expert.model.kernel import OutOfReach, Reach, Task
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.scenarios import Scenario
from tunesmith.expert.model.size_bounds import SizeBounds
from tunesmith.expert.model.tidy import structured
from tunesmith.problem.problem import SizeRule
from tunesmith.space import grammar as size


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
        if head is None or (trips(head) or _SMALL + 1) <= _SMALL:
            continue
        for touch in touches(node.body, normal.arrays):
            along = stride(touch.place.index, head.index)
            across = stride(touch.place.index, flat.each.index)
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
        return c.Binary("*", c.Name(self.task.name), number(self.count))

    @property
    def all_of_task(self) -> c.Expr:
        return fold(c.Binary("*", self.task.extent, number(self.count)))


def _rows_of(flat: Flat, kernel: LaunchedKernel) -> _ThreadRows | None:
    """None where no thread takes rows in turn."""
    if not flat.each.body:
        return None
    *before, loop = flat.each.body
    if not isinstance(loop, c.For) or not all(isinstance(stmt, c.Declare) for stmt in before):
        return None
    head = head_of(loop)
    if head is None or head.step != number(1):
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
        name: number(node.value)
        for name, node in kernel.launch.parameters.items()
        if isinstance(node, size.Num)
    }
    known = set(kernel.launch.parameters) - walk.assigned_in(kernel.normal.body)
    stops, bound = [head.stop], None
    pair = _smaller_of(head.stop)
    if pair is not None:
        own = [part for part in pair if task.name in walk.names_in(part)]
        others = [part for part in pair if walk.names_in(part) <= known]
        if len(own) != 1 or len(others) != 1 or own == others:
            return None
        stops, bound = own, others[0]
    count = int_value(fold(from_terms(terms(substitute(c.Binary("-", stops[0], head.start), fixed)))))
    if count is None or count < 2:
        return None
    from_zero = head.start == number(0)
    first = c.Binary("*", c.Name(task.name), number(count))
    if not from_zero and not same_value(head.start, first):
        return None
    found = _ThreadRows(before, loop, head, task, count, from_zero, loop.body, bound)
    if bound is None:
        return _guarded(found, known)
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


def _guarded(found: _ThreadRows, known: set[str]) -> _ThreadRows | None:
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
        self._row = self._name(taken)
        index = {name: c.Type(task.type) for task in flat.tasks for name in (task.name,)}
        self._types = {**kernel.normal.types, **index, self._row: c.Type(self._type)}
        self._types |= {flat.each.index: c.Type(flat.each.type), found.head.index: c.Type(found.head.type)}

    def _name(self, taken: set[str]) -> str:
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
            turn = walk.commented(structured(found.body), found.loop.comments)
            body = self._in_rows((*found.before, *turn))
            self._check(body)
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
        return substitute(body, {found.task.name: c.Binary("/", row, number(found.count))})

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
        plain = from_terms(self._row_first(terms(expr)))
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

    # -- that rows of one thread do not depend on each other ---------------------------------------------

    def _check(self, body: tuple[c.Stmt, ...]) -> None:
        found, own = self._found, set(walk.declared_in(self._found.before))
        for name in sorted(own & (walk.assigned_in(found.loop) | walk.stored_in(found.loop))):
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
        for touch in touches(body, arrays):
            by_array.setdefault(aliases.get(touch.place.array, touch.place.array), []).append(touch)
        inner = self._heads(body)
        moving = {self._row} | ((set(walk.declared_in(body)) | walk.assigned_in(body)) - {*inner})
        for every in by_array.values():
            if any(touch.writes for touch in every):
                self._check_array(every, inner, moving)

    def _check_array(self, every: Sequence[Touch], inner: Mapping[str, Head], moving: set[str]) -> None:
        """What is stored in a row, and all that is touched in another, lie a whole row apart."""
        one, each = number(1), self._flat.each
        ranges = {each.index: (each.start, c.Binary("-", each.stop, one))}
        for head in inner.values():
            ranges[head.index] = ranges[f"{head.index}'"] = (head.start, c.Binary("-", head.stop, one))
        bounds = SizeBounds(self._rules, self._kernel.launch.parameters, ranges)
        elsewhere = {name: c.Name(f"{name}'") for name in inner}  # loops inside turn apart in another row
        placed = [self._placed(touch, moving) for touch in every]
        for store in placed:
            for other in placed if store.touch.writes else ():
                apart = c.Binary("-", store.place, substitute(other.place, elsewhere))
                ahead = c.Binary("-", c.Binary("-", store.by, number(store.width)), apart)
                behind = c.Binary("+", c.Binary("-", store.by, number(other.width)), apart)
                if not same_value(store.by, other.by) or not all(map(bounds.never_negative, (ahead, behind))):
                    here, there = print_expr(store.touch.node), print_expr(other.touch.node)
                    raise OutOfReach(f"'{here}' in one row may meet '{there}' in another")

    def _placed(self, touch: Touch, moving: set[str]) -> _InRow:
        array = self._kernel.normal.arrays[touch.place.array]
        width = byte_size(element_type(touch.place, array).base)
        whole = None if touch.atomic else self._bytes(touch.place)
        split = None if whole is None else affine(whole, self._row)
        if width is None or whole is None or split is None:
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is not known")
        if (walk.names_in(split[0]) | walk.names_in(split[1])) & moving:
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is computed there")
        if any(isinstance(node, c.Index | c.Call) for node in walk.nodes_in(whole)):
            raise OutOfReach(f"where '{print_expr(touch.node)}' lies in its row is loaded")
        return _InRow(touch, *split, width)

    def _bytes(self, place: ArrayPlace) -> c.Expr | None:
        """Where a place is, in bytes from the start of its array."""
        own = byte_size(self._kernel.normal.arrays[place.array].base)
        wide = own if place.as_type is None else byte_size(place.as_type.base)
        if own is None or wide is None:
            return None
        at: c.Expr = c.Binary("*", place.index, number(wide))
        return at if place.offset is None else c.Binary("+", at, c.Binary("*", place.offset, number(own)))

    def _heads(self, body: tuple[c.Stmt, ...]) -> dict[str, Head]:
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
