"""Moves that share the work out differently: tasks, split, items, lanes, persistent, vectors, rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.expert.moves.move import (
    Context,
    LoopShape,
    all_loops,
    define_move,
    element_loops,
    extend_draft,
    has_sums,
    index_bytes,
    is_alone,
    is_map,
    loaded_bytes,
    named_arrays,
    named_tasks,
    nearest_value,
    packs_in,
    parameter_product,
    rules_of_sizes,
    shape_of,
    widest_vector,
    with_kernel_facts,
)
from tunesmith.expert.read.integers import as_division, expand_terms, from_terms, is_narrow, number_node
from tunesmith.expert.read.model import Each, ParameterChoice, Task, TemplateDraft
from tunesmith.expert.write.sites import starts_at_zero
from tunesmith.problem.template import Remedy
from tunesmith.source.tree import Binary, Cast, Expr, Name, Stmt
from tunesmith.source.types import is_integer
from tunesmith.source.walk import declared_in, map_nodes, names_in, nodes_in
from tunesmith.space.expr import parse_expr

COUNTS = (1, 2, 4, 8, 16, 32, 64)
COUNTS_ON_CPU = (1, 4, 16, 64)
MAX_THREADS = 512  # larger blocks of many rows only wait for each other's end


@define_move(
    "tasks",
    needs="tasks",
    turn="sharing",
    remedies=(Remedy.ROWS_PER_BLOCK, Remedy.WARP_PER_ROW, Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS),
    places=named_tasks,
    TASKS="tasks to a block",
)
def group_tasks(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several tasks to a block, side by side: rows too short for a block, or a warp for each row."""
    kernel, lanes = draft.kernel, draft.schedule.get("lanes")
    if not kernel.tasks:
        return "the whole grid works on one task: there are none to put side by side"
    if is_alone(kernel):
        return "there is one task in all: a block has no other to take beside it"
    shape = shape_of(draft, context)
    limits = context.device.limits
    if lanes is None or lanes.values == (1,):  # a task is one thread's work
        widths = (1, 8, 32, 64, 128, 256) if context.on_cpu else (32, 64, 128, 256, 512, 1024)
        values = tuple(v for v in widths if v <= limits.max_threads)
        today = max(shape.threads, default=shape.lanes) // max(1, shape.lanes)
        default = nearest_value(values, max(1, today))
        choice = ParameterChoice(name, values, default, "tasks to a block, one a thread")
        return extend_draft(draft, "tasks", choice)
    fewest = min(lanes.values)
    counts = COUNTS_ON_CPU if context.on_cpu else COUNTS
    most = max(1, (limits.max_threads if context.on_cpu else MAX_THREADS) // fewest)
    values = tuple(v for v in counts if v <= most)
    default = nearest_value(values, max(shape.threads, default=lanes.default) // lanes.default)
    return extend_draft(draft, "tasks", ParameterChoice(name, values, default))


@define_move(
    "split",
    needs="no totals, nothing staged between loops",
    turn="sharing",
    remedies=(Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS),
    places=all_loops,
    SPLIT="1: a task's elements are spread over several blocks",
)
def split_tasks(draft: TemplateDraft, _context: Context, name: str) -> TemplateDraft | str:
    """A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""
    kernel = draft.kernel
    if not is_map(kernel):
        totals = [total.name for loop in element_loops(kernel) for total in loop.totals]
        what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
        return f"a task has to stay in one block: {what} is known to its own threads alone"
    if not kernel.tasks or not element_loops(kernel):
        return "the loop is spread over the whole grid already"
    if "lanes" not in draft.schedule:
        return "a task is one thread's work"
    return extend_draft(draft, "split", ParameterChoice(name, (0, 1), 0))


@define_move(
    "items",
    needs="a loop",
    turn="sharing",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.UNROLL),
    places=all_loops,
    ITEMS="vectors a thread has under way at once",
)
def batch_items(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several packs of a thread in flight: all are loaded before the first is used."""
    kernel, schedule = draft.kernel, draft.schedule
    if not element_loops(kernel):
        return "there is no loop of which several turns could be under way"
    shape, prefer = shape_of(draft, context), []
    if context.on_cpu and has_sums(kernel) and shape.lanes > 1:
        # The longer a sum, the more roundings are in it. With half of the original's sums the oracle lets
        # results pass, with a quarter it did not.
        reach = f"{parameter_product(schedule, 'lanes', 'vector')} * {name}"
        prefer.append(("enough_sums", f"2 * {reach} >= {shape.lanes}"))
    values = (1, 4, 16) if context.on_cpu else (1, 2, 4)
    loaded = loaded_bytes(draft, context) or ""
    return extend_draft(draft, "items", ParameterChoice(name, values, 1), prefer, loaded=loaded)


WIDTHS = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
PARTS = (4, 8, 16)  # of a warp, for rows that a warp would not be busy with
SHORT = 1024  # elements: such a row may do with a part of a warp
WARP = 32
TURNS = (1, 2, 4)
MAX_EVEN = 4
ON_CPU = (1, 8, 64)  # a CPU runs a group's work-items one after the other
_SHARED = (Remedy.BLOCK_SIZE, Remedy.WARP_PER_ROW, Remedy.SHUFFLE_REDUCTION, Remedy.SHARE_SERIAL_WORK)


@define_move(
    "lanes",
    needs="a loop to share; else one thread to a task",
    turn="sharing",
    remedies=_SHARED,
    places=lambda draft, context: "; ".join(
        filter(None, [named_tasks(draft, context), all_loops(draft, context)])
    ),
    stays_open=True,
    LANES="threads to a task",
)
def assign_lanes(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """How many threads share a task: a whole block, a warp, a part of a warp, or one thread alone.

    Values go up to one turn of the longest row, in parts of a warp where rows are short, with widths that
    make a row a few whole turns. The default is as near to the original's own launch as that allows.
    """
    shape = shape_of(draft, context)
    named = {"row": shape.extent, "beside": shape.beside, "rows": shape.tasks}
    draft = with_kernel_facts(draft, **named if draft.kernel.tasks else {"elements": shape.extent})
    draft = with_kernel_facts(draft, kind="cpu") if context.on_cpu else draft
    if not element_loops(draft.kernel):  # the writer has to know: a task is one thread's work
        return extend_draft(draft, "lanes", ParameterChoice(name, (1,), 1))
    answers = [(Remedy.SHARE_SERIAL_WORK, f"{name} > 1")] if draft.kernel.team == "thread" else []
    most = widest_vector(draft, context, "VEC")
    values = _lane_widths(shape, context, 1 if isinstance(most, str) else most[0])
    choice = ParameterChoice(name, values, nearest_value(values, shape.lanes))
    return extend_draft(draft, "lanes", choice, answers=answers)


def _lane_widths(shape: LoopShape, context: Context, vector: int) -> tuple[int, ...]:
    most = context.device.limits.max_threads
    if context.on_cpu:
        return tuple(sorted(v for v in {*ON_CPU, shape.lanes} if v <= most))
    reach = max(shape.extents, default=most)
    parts = PARTS if shape.extents and reach <= SHORT else ()
    # One value beyond the row is of use: that is where a row is one turn.
    widths = [v for v in WIDTHS if v <= most]
    fitting = {v for v in widths if v < reach} | set([v for v in widths if v >= reach][:1])
    today = {shape.lanes} if shape.lanes % WARP == 0 and shape.lanes <= max(fitting) else set()
    return (*(p for p in parts if p < reach), *sorted(fitting | today | _even_widths(shape, vector, most)))


def _even_widths(shape: LoopShape, vector: int, most: int) -> set[int]:
    """Widths with which a row of vectors is a few whole turns, with no thread idle in the last."""
    found: list[int] = []
    for extent in sorted(set(shape.extents)):
        for turns in TURNS:
            width = -(-extent // (vector * turns * WARP)) * WARP
            if 2 * WARP <= width <= most and width not in (*WIDTHS, *found):
                found.append(width)
    return set(found[:MAX_EVEN])


@define_move(
    "persistent",
    needs="a GPU; a kernel that is told how many tasks there are",
    turn="anywhere",
    remedies=(Remedy.PERSISTENT_GRID,),
    PERSIST="blocks to a multiprocessor that go on; 0: a block ends",
)
def make_persistent(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A grid of as many blocks as the device holds, each going on to further work: no last wave."""
    if context.on_cpu:
        return "a CPU takes up work-groups as they come: there are no waves to fill"
    if is_alone(draft.kernel):
        return "there is one task in all: no block could go on to another"
    if any(word.startswith("gridDim") for task in draft.kernel.tasks for word in names_in(task.extent)):
        return "the kernel is not told how many tasks there are: no block could know when to stop"
    return extend_draft(draft, "persistent", ParameterChoice(name, (0, 1, 2, 4, 8), 0))


def _vector_places(draft: TemplateDraft, context: Context) -> str:
    found = widest_vector(draft, context, context.macro("VEC"))
    return "" if isinstance(found, str) else named_arrays(p.array for p in packs_in(found[1]))


@define_move(
    "vector",
    needs="an access to neighbours in every turn; an `align` that allows it; "
    "sizes that `VEC` divides (`require`)",
    turn="sharing",
    remedies=(Remedy.WIDE_ACCESS, Remedy.COALESCE),
    places=_vector_places,
    VEC="elements in one load or store",
)
def vectorize_accesses(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Wide loads and stores: a thread takes VEC neighbours at once, in accesses of up to 16 bytes.

    Proved on the model: the access moves by one element (or by whole packs) from index to index and happens
    in every turn. Taken from the contract: how arrays are aligned, that they do not overlap, and which sizes
    VEC must divide, which the writer makes the template's `require`. What does not qualify stays as it is.

    Values go to 16 bytes of the narrowest type (64 on a CPU) and two accesses of the widest, as far as some
    workload allows them.
    """
    if not element_loops(draft.kernel):
        return "there is no loop over neighbours to take several of at once"
    found = widest_vector(draft, context, name)
    if isinstance(found, str):
        return found
    most, plan = found
    values = tuple(v for v in (1, 2, 4, 8, 16) if v <= most)
    every = ParameterChoice(name, values, 1)
    given = replace(draft, schedule=draft.schedule.having(vector=every))
    rules = [parse_expr(text) for text in rules_of_sizes(given, context, every)]
    legal = {1} | {
        value
        for value in values
        for workload in context.problem.workloads
        if all(rule.holds({**workload.as_dict(), name: value}) for rule in rules)
    }
    if legal == {1}:
        return "rows are no whole number of vectors at any workload, or start at odd places"
    widest = max(index_bytes(pack, plan) for pack in packs_in(plan))
    lanes, prefer = draft.schedule.get("lanes"), []
    if lanes is not None and context.on_cpu and not is_map(draft.kernel):
        # A vector has the unit to itself; work-items would take turns, and wait to join their totals.
        prefer.append(("lanes_or_vectors", f"{lanes.name} == 1 or {name} == 1"))
    choice = replace(every, values=tuple(v for v in values if v in legal))
    return extend_draft(draft, "vector", choice, prefer, element=widest)


SHORTEST = 8  # elements of a row: fewer do not keep a team busy


@define_move(
    "rows",
    needs="one flat loop over `n * d` elements that takes its index apart by `d`, rows of 8 elements or more",
    turn="seldom",
    remedies=(Remedy.CHEAP_DIVISION, Remedy.HOIST_INVARIANTS),
    places=all_loops,
)
def unflatten_rows(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """A flat loop as rows: `i / d` and `i % d` become a task, the row, and the place in it; nothing is
    divided.

    Proved on the model: the loop runs over whole rows, 0 <= i < n * d, and takes its index apart by d. Of
    several lengths it is one that leaves nothing of a row to be divided: `i / k / d` is `row / k` then. There
    is no parameter: with tasks the work is shared otherwise altogether.
    """
    kernel = draft.kernel
    if kernel.tasks:
        return "the work is in rows already"
    if len(kernel.steps) != 1 or not isinstance(kernel.steps[0], Each) or kernel.steps[0].totals:
        return "the kernel is more than one flat loop over independent elements"
    loop = kernel.steps[0]
    if not starts_at_zero(loop):
        return "the loop does not start at 0"
    row, place = _fresh_index_name(draft, "row"), _fresh_index_name(draft, f"{loop.index}_in_row")
    found = [(rows, _taken_apart(loop, length, row, place)) for rows, length in _row_lengths(loop)]
    if not found:
        return "the index is not taken apart by a length that divides the whole"
    # Of several lengths the first that leaves nothing of a row to be divided.
    rows, by_row = next((one for one in found if not _has_division(one[1])), found[0])
    tasks, steps = (Task(row, rows, loop.type),), (by_row,)
    by_rows = replace(kernel, tasks=tasks, steps=steps, team="block", lanes=None, accesses=())
    if min(shape_of(TemplateDraft(by_rows), context).extents, default=0) < SHORTEST:
        return f"rows of fewer than {SHORTEST} elements do not keep a team busy, or their length is unknown"
    return extend_draft(replace(draft, kernel=by_rows), "rows", {})


def _row_lengths(loop: Each) -> Iterator[tuple[Expr, Expr]]:
    """How many rows, and how long: for each divisor of the index that is a factor of the whole."""
    changing = {loop.index, *declared_in(loop.body)}
    for node in nodes_in(loop.body):
        division = _as_quotient(node)
        if division is None or _strip_wide_casts(division.left) != Name(loop.index):
            continue
        rows = None if names_in(division.right) & changing else _exact_quotient(loop.stop, division.right)
        if rows is not None:
            yield rows, division.right


def _as_quotient(node: Expr | Stmt) -> Binary | None:
    """A division or a remainder, also one written by a shift or a mask."""
    division = as_division(node) if isinstance(node, Binary) else None
    return division if isinstance(division, Binary) and division.op in ("/", "%") else None


def _exact_quotient(whole: Expr, length: Expr) -> Expr | None:
    """`tokens * d` by d; None where it is no factor."""
    product, divisor = expand_terms(whole), expand_terms(length)
    if len(product) != 1 or len(divisor) != 1:
        return None
    (factors, count), (parts, scale) = next(iter(product.items())), next(iter(divisor.items()))
    rest = list(factors)
    for part in parts:
        if part not in rest:
            return None
        rest.remove(part)
    return from_terms({tuple(rest): count // scale}) if count % scale == 0 else None


def _taken_apart(loop: Each, length: Expr, row: str, place: str) -> Each:
    """The loop over a row. `i / (k * d)` is `row / k`: what divides the whole and is rows together."""

    def rewritten(node: Expr) -> Expr:
        if (division := _as_quotient(node)) is not None:
            by = _index_divisor(division, whole)
            is_part = by is not None and _exact_quotient(loop.stop, by) is not None
            rows = _exact_quotient(by, length) if by is not None and is_part else None
            if rows is None:
                return node
            if division.op == "/":
                return Name(row) if rows == number_node(1) else Binary("/", Name(row), rows)
            if division.right == by:
                among = Binary("*", Binary("%", Name(row), rows), length)
                return Name(place) if rows == number_node(1) else Binary("+", among, Name(place))
            return node
        if isinstance(node, Binary) and node.op == "-" and _strip_wide_casts(node.left) == whole:
            return Name(place) if expand_terms(node.right) == expand_terms(whole.left) else node
        return whole if node == Name(loop.index) else node

    whole = Binary("+", Binary("*", Name(row), length), Name(place))
    return replace(loop, index=place, start=number_node(0), stop=length, body=map_nodes(loop.body, rewritten))


def _index_divisor(division: Binary, whole: Expr) -> Expr | None:
    """What the whole index is divided by: `i / a / b` by a * b. None where something else is divided."""
    left = _strip_wide_casts(division.left)
    if left == whole:
        return division.right
    if isinstance(left, Binary) and left.op == "/" and division.op == "/":
        inner = _index_divisor(left, whole)
        return None if inner is None else Binary("*", inner, division.right)
    return None


def _has_division(loop: Each) -> bool:
    """Whether the place in a row is divided."""
    divisions = filter(None, map(_as_quotient, nodes_in(loop.body)))
    return any(loop.index in names_in(division.left) for division in divisions)


def _strip_wide_casts(expr: Expr) -> Expr:
    """Without conversions between integers that cut nothing off."""
    while isinstance(expr, Cast) and is_integer(expr.type) and not is_narrow(expr.type):
        expr = expr.value
    return expr


def _fresh_index_name(draft: TemplateDraft, want: str) -> str:
    kernel = draft.kernel
    taken = {p.name for p in kernel.function.parameters} | {name for name, _ in kernel.source.constants}
    taken |= {f.name for f in kernel.source.functions}
    for loop in element_loops(kernel):
        taken |= {loop.index, *declared_in(loop.body), *names_in(loop.body)}
    while want in taken:
        want += "_"
    return want
