"""Moves on tasks and loops: which there are, and how threads, blocks and the whole device share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Cast, Expr, Name
from tunesmith.csource.types import is_integer
from tunesmith.csource.walk import declared_in, map_nodes, names_in, nodes_in
from tunesmith.expert.model.affine import as_division, from_terms, number, same_value, terms
from tunesmith.expert.model.kernel import Each, ParameterChoice, Schedule, Task, TemplateDraft, map_steps
from tunesmith.expert.moves.port import Context, extend, move, product
from tunesmith.expert.moves.shape import Shape, is_map, loops, runs_of, shape_of, term
from tunesmith.expert.moves.vectors import widest_vector
from tunesmith.expert.writing.sites import starts_at_zero
from tunesmith.problem.template import Remedy

WIDTHS = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
PARTS = (4, 8, 16)  # of a warp, for rows that a warp would not be busy with
SHORT = 1024  # elements: such a row may do with a part of a warp
WARP = 32
SHUFFLED = 256  # threads whose totals meet mostly by shuffles; more wait for more warps
TURNS = (1, 2, 4)
MOST_EVEN = 4
ON_CPU = (1, 8, 64)  # a CPU runs a group's work-items one after the other


_SHARED = (Remedy.BLOCK_SIZE, Remedy.WARP_PER_ROW, Remedy.SHUFFLE_REDUCTION, Remedy.SHARE_SERIAL_WORK)


@move("lanes", _SHARED, "LANES")
def lanes(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """How many threads share a task: a whole block, a warp, a part of a warp, or one thread alone."""
    kernel = draft.kernel
    if not loops(kernel):  # the writer has to know: a task is one thread's work
        return extend(draft, "lanes", ParameterChoice(name, (1,), 1, "a task is one thread's work"))
    shape = shape_of(draft, context)
    limits = context.device.limits
    most = widest_vector(draft, context, "VEC")
    values = _domain(shape, context, 1 if isinstance(most, str) else most[0])
    default = nearest(values, shape.lanes)
    answers = [(Remedy.BLOCK_SIZE, f"{name} != {default}")]
    if not context.on_cpu:
        answers.append((Remedy.WARP_PER_ROW, f"{name} <= {limits.warp or 32}"))
    if kernel.team == "thread":
        answers.append((Remedy.SHARE_SERIAL_WORK, f"{name} > 1"))
    if not is_map(kernel) and not context.on_cpu:
        answers.append((Remedy.SHUFFLE_REDUCTION, f"{name} <= {SHUFFLED}"))
    prefer = []
    if shape.extent and not context.on_cpu:
        prefer.append(("no_idle_lanes", f"{name} < 2 * {term(shape.extent)}"))
    choice = ParameterChoice(name, values, default, "threads to a task")
    return extend(draft, "lanes", choice, prefer, answers)


def _domain(shape: Shape, context: Context, vector: int) -> tuple[int, ...]:
    most = context.device.limits.max_threads
    if context.on_cpu:
        return tuple(sorted(v for v in {*ON_CPU, shape.lanes} if v <= most))
    reach = max(shape.extents, default=most)
    parts = PARTS if shape.extents and reach <= SHORT else ()
    # One value beyond the row is of use: that is where a row is one turn.
    widths = [v for v in WIDTHS if v <= most]
    fitting = {v for v in widths if v < reach} | set([v for v in widths if v >= reach][:1])
    own = {shape.lanes} if shape.lanes % WARP == 0 and shape.lanes <= max(fitting) else set()
    return (*(p for p in parts if p < reach), *sorted(fitting | own | _even(shape, vector, most)))


def _even(shape: Shape, vector: int, most: int) -> set[int]:
    """Widths with which a row of vectors is a few whole turns, with no thread idle in the last."""
    found: list[int] = []
    for extent in sorted(set(shape.extents)):
        for turns in TURNS:
            width = -(-extent // (vector * turns * WARP)) * WARP
            if 2 * WARP <= width <= most and width not in (*WIDTHS, *found):
                found.append(width)
    return set(found[:MOST_EVEN])


def nearest(values: tuple[int, ...], wanted: int) -> int:
    """The value next to what the original has; of two as near, the larger."""
    return min(values, key=lambda value: (abs(value - wanted), -value))


COUNTS = (1, 2, 4, 8, 16, 32, 64)
COUNTS_ON_CPU = (1, 4, 16, 64)
LEAST_THREADS = 64  # smaller blocks leave threads unused: a multiprocessor has 32 blocks at most
MOST_THREADS = 512  # larger blocks of many rows only wait for each other's end


@move("tasks", (Remedy.ROWS_PER_BLOCK, Remedy.WARP_PER_ROW, Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS), "TASKS")
def tasks(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several tasks to a block, side by side: rows too short for a block, or a warp for each row."""
    kernel, lanes = draft.kernel, draft.schedule.get("lanes")
    if not kernel.tasks:
        return "the whole grid works on one task: there are none to put side by side"
    shape = shape_of(draft, context)
    limits = context.device.limits
    if lanes is None or lanes.values == (1,):  # a task is one thread's work
        widths = (1, 8, 32, 64, 128, 256) if context.on_cpu else (32, 64, 128, 256, 512, 1024)
        values = tuple(v for v in widths if v <= limits.max_threads)
        default = nearest(values, max(1, max(shape.threads, default=shape.lanes) // max(1, shape.lanes)))
        choice = ParameterChoice(name, values, default, "tasks to a block, one a thread")
        return extend(draft, "tasks", choice, answers=[(Remedy.BLOCK_SIZE, f"{name} != {default}")])
    fewest = min(lanes.values)
    counts = COUNTS_ON_CPU if context.on_cpu else COUNTS
    most = max(1, (limits.max_threads if context.on_cpu else MOST_THREADS) // fewest)
    values = tuple(v for v in counts if v <= most)
    default = nearest(values, max(shape.threads, default=lanes.default) // lanes.default)
    prefer = []
    if not context.on_cpu:
        least = min(LEAST_THREADS, limits.max_threads)
        prefer.append(("enough_threads", f"{lanes.name} * {name} >= {least}"))
        prefer.append(("short_rows", f"{name} == 1 or {lanes.name} * {name} <= {MOST_THREADS}"))
    choice = ParameterChoice(name, values, default, "tasks to a block")
    answers = [(Remedy.ROWS_PER_BLOCK, f"{name} > 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")]
    return extend(draft, "tasks", choice, prefer, answers)


@move("beside", (Remedy.ITEMS_IN_FLIGHT, Remedy.MORE_BLOCKS), "BESIDE")
def beside(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Independent loops of a task side by side: one loop over all their indices, shared among the task's
    threads.

    Proved on the model: the loops start at 0, total nothing and keep nothing for each other, and neither
    touches an array that the other writes (which arrays may overlap is in the contract). One after the
    other, the second loop's loads come after the first loop's stores, a memory's latency later, and each
    leaves threads idle in its last turn; side by side all loads are under way at once, and a split task has
    more blocks.
    """
    kernel = draft.kernel
    if context.on_cpu:
        return "a CPU runs a group's work-items one after the other: nothing waits"
    if len(loops(kernel)) < 2:
        return "a task is one loop: there is no other to run beside it"
    if not kernel.tasks:
        return "the loops are spread over the whole grid already"
    if not runs_of(kernel, context):
        return "no two loops in a row stand alone: they total something, or touch what the other writes"
    choice = ParameterChoice(name, (0, 1), 0, "1: loops that do not depend on each other run side by side")
    answers = [(Remedy.ITEMS_IN_FLIGHT, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")]
    return extend(draft, "beside", choice, answers=answers)


@move("split", (Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS), "SPLIT")
def split(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""
    kernel, schedule = draft.kernel, draft.schedule
    if not is_map(kernel):
        totals = [total.name for loop in loops(kernel) for total in loop.totals]
        what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
        return f"a task has to stay in one block: {what} is known to its own threads alone"
    if not kernel.tasks or not loops(kernel):
        return "the loop is spread over the whole grid already"
    if "lanes" not in schedule:
        return "a task is one thread's work"
    shape = shape_of(draft, context)
    prefer = []
    if "tasks" in schedule:
        prefer.append(("split_rows_are_long", f"{name} == 0 or {schedule['tasks'].name} == 1"))
    if shape.extent:
        taken = product(schedule, "lanes", "vector", "items")
        prefer += _worthwhile(name, taken, term(shape.extent), schedule)
    choice = ParameterChoice(name, (0, 1), 0, "1: a task's elements are spread over several blocks")
    answers = [(Remedy.SPLIT_ROWS, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")]
    return extend(draft, "split", choice, prefer, answers)


def _worthwhile(name: str, taken: str, whole: str, schedule: Schedule) -> list[tuple[str, str]]:
    """`taken`: elements that a block takes at once; `whole`: those of a task."""
    beside = schedule.get("beside")
    if beside is None:
        return [("something_to_split", f"{name} == 0 or {taken} < {whole}")]
    # Loops apart leave blocks idle in the shorter one. As one they may also be one block's without any loop:
    # then loads that wait for nothing go ahead of those that do.
    several = f" or {schedule['tasks'].name} > 1" if "tasks" in schedule else ""
    return [
        ("split_as_one", f"{name} == 0 or {beside.name} == 1 and {taken} < 2 * {whole}"),
        ("no_loop_of_one_turn", f"{beside.name} == 0 or {name} == 1 or {taken} < {whole}{several}"),
    ]


FEWEST_THREADS = 512  # on a multiprocessor: fewer cannot hide the latency of their loads


@move("persistent", (Remedy.PERSISTENT_GRID,), "PERSIST")
def persistent(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A grid of as many blocks as the device holds, each going on to further work: no last wave."""
    schedule = draft.schedule
    if context.on_cpu:
        return "a CPU takes up work-groups as they come: there are no waves to fill"
    if any(word.startswith("gridDim") for task in draft.kernel.tasks for word in names_in(task.extent)):
        return "the kernel is not told how many tasks there are: no block could know when to stop"
    shape = shape_of(draft, context)
    threads = product(schedule, "lanes", "tasks")
    most = context.device.limits.threads_per_sm or 2048
    room = f"{FEWEST_THREADS} <= {name} * {threads} <= {most}"
    prefer = [("room_to_persist", f"{name} == 0 or {room}")]
    if draft.kernel.tasks:
        work, each = shape.tasks, product(schedule, "tasks")
    else:
        work, each = (
            shape.extent,
            product(schedule, "lanes", "vector", "items"),
        )
    if work:
        prefer.append(("many_to_go_on", f"{name} == 0 or {term(work)} >= 2 * {name} * {each} * device.sms"))
    note = "blocks to a multiprocessor that go on; 0: a block ends with its tasks"
    choice = ParameterChoice(name, (0, 1, 2, 4, 8), 0, note)
    answers = [(Remedy.PERSISTENT_GRID, f"{name} > 0")]
    return extend(draft, "persistent", choice, prefer, answers)


# -- the loops themselves: a flat loop as rows, loops that store again left out


@move("redundant", (Remedy.ROW_IN_REGISTERS,))
def redundant(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """Loops left out that only store again what an earlier loop of the task has stored.

    That every element they store has been stored before is proved on the model; that the values are the same
    is not, so the whole template stands or falls with the oracle. There is no parameter: without the loop
    the rest of the kernel may be shared otherwise, and nobody wants it back.
    """
    found = [loop for loop in loops(draft.kernel) if loop.again]
    if not found or any(loop.totals for loop in found):
        return "no loop only stores again what an earlier one has stored"
    if context.problem.accuracy.reference is None and not context.problem.accuracy.deterministic:
        return "without a reference and with results that vary nobody could tell whether it was needed"
    steps = map_steps(
        draft.kernel.steps, lambda step: None if isinstance(step, Each) and step.again else step
    )
    return extend(replace(draft, kernel=replace(draft.kernel, steps=steps)), "redundant", {})


SHORTEST = 8  # elements of a row: fewer do not keep a team busy


@move("rows", (Remedy.CHEAP_DIVISION, Remedy.HOIST_INVARIANTS))
def rows(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """A flat loop as rows: `i / d` and `i % d` become a task, the row, and the place in it; nothing is
    divided.

    Proved on the model: the loop runs over whole rows, 0 <= i < n * d, and takes its index apart by d. There
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
    found = next(_lengths(loop), None)
    if found is None:
        return "the index is not taken apart by a length that divides the whole"
    rows, length = found
    row, place = _fresh(draft, "row"), _fresh(draft, f"{loop.index}_in_row")
    tasks, steps = (Task(row, rows, loop.type),), (_taken_apart(loop, length, row, place),)
    by_rows = replace(kernel, tasks=tasks, steps=steps, team="block", lanes=None, accesses=())
    if min(shape_of(TemplateDraft(by_rows), context).extents, default=0) < SHORTEST:
        return f"rows of fewer than {SHORTEST} elements do not keep a team busy, or their length is unknown"
    return extend(replace(draft, kernel=by_rows), "rows", {})


def _lengths(loop: Each) -> Iterator[tuple[Expr, Expr]]:
    """How many rows, and how long: for each divisor of the index that is a factor of the whole."""
    changing = {loop.index, *declared_in(loop.body)}
    for node in nodes_in(loop.body):
        division = as_division(node) if isinstance(node, Binary) else None
        if not isinstance(division, Binary) or division.op not in ("/", "%"):
            continue
        if _bare(division.left) != Name(loop.index) or names_in(division.right) & changing:
            continue
        rows = _quotient(loop.stop, division.right)
        if rows is not None:
            yield rows, division.right


def _quotient(whole: Expr, length: Expr) -> Expr | None:
    """`tokens * d` by d; None where it is no factor."""
    product, divisor = terms(whole), terms(length)
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
    def rewritten(node: Expr) -> Expr:
        division = as_division(node) if isinstance(node, Binary) else None
        if isinstance(division, Binary) and division.op in ("/", "%") and _bare(division.left) == whole:
            if same_value(division.right, length):
                return Name(row if division.op == "/" else place)
            return node
        return whole if node == Name(loop.index) else node

    whole = Binary("+", Binary("*", Name(row), length), Name(place))
    return replace(loop, index=place, start=number(0), stop=length, body=map_nodes(loop.body, rewritten))


def _bare(expr: Expr) -> Expr:
    """Without conversions between integers."""
    while isinstance(expr, Cast) and is_integer(expr.type):
        expr = expr.value
    return expr


def _fresh(draft: TemplateDraft, want: str) -> str:
    kernel = draft.kernel
    taken = {p.name for p in kernel.function.parameters} | {name for name, _ in kernel.source.constants}
    taken |= {f.name for f in kernel.source.functions}
    for loop in loops(kernel):
        taken |= {loop.index, *declared_in(loop.body), *names_in(loop.body)}
    while want in taken:
        want += "_"
    return want
