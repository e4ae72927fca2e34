"""Moves that share a task's work otherwise among threads, blocks and the whole device."""

from __future__ import annotations

from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.moves.packing import widest_vector
from tunesmith.expert.moves.port import Context, extend, move, product
from tunesmith.expert.moves.shape import Shape, is_map, loops, runs_of, shape_of
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
    longest = shape.longest
    parts = PARTS if longest is not None and longest <= SHORT else ()
    reach = longest if longest is not None else most
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


def term(text: str) -> str:
    """A size's text as a factor."""
    whole = text.startswith(("max(", "(")) and text.endswith(")")
    return text if text.isidentifier() or text.isdigit() or whole else f"({text})"


COUNTS = (1, 2, 4, 8, 16, 32, 64)
COUNTS_ON_CPU = (1, 4, 16, 64)
LEAST_THREADS = 64  # smaller blocks leave threads unused: a multiprocessor has 32 blocks at most
MOST_THREADS = 512  # larger blocks of many rows only wait for each other's end


@move("tasks", (Remedy.ROWS_PER_BLOCK, Remedy.WARP_PER_ROW, Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS), "TASKS")
def tasks(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several tasks to a block, side by side: rows too short for a block, or a warp for each row."""
    kernel, lanes = draft.kernel, draft.schedule.lanes
    if not kernel.tasks:
        return "the whole grid works on one task: there are none to put side by side"
    shape = shape_of(draft, context)
    limits = context.device.limits
    if lanes is None or lanes.values == (1,):  # a task is one thread's work
        widths = (1, 8, 32, 64, 128, 256) if context.on_cpu else (32, 64, 128, 256, 512, 1024)
        values = tuple(v for v in widths if v <= limits.max_threads)
        default = nearest(values, shape.tasks_in_block)
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
    if schedule.lanes is None:
        return "a task is one thread's work"
    shape = shape_of(draft, context)
    prefer = []
    if schedule.tasks is not None:
        prefer.append(("split_rows_are_long", f"{name} == 0 or {schedule.tasks.name} == 1"))
    if shape.extent:
        taken = product(schedule.lanes, schedule.vector, schedule.items)
        prefer += _worthwhile(name, taken, term(shape.extent), schedule)
    choice = ParameterChoice(name, (0, 1), 0, "1: a task's elements are spread over several blocks")
    answers = [(Remedy.SPLIT_ROWS, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")]
    return extend(draft, "split", choice, prefer, answers)


def _worthwhile(name: str, taken: str, whole: str, schedule: Schedule) -> list[tuple[str, str]]:
    """`taken`: elements that a block takes at once; `whole`: those of a task."""
    beside = schedule.beside
    if beside is None:
        return [("something_to_split", f"{name} == 0 or {taken} < {whole}")]
    # Loops apart leave blocks idle in the shorter one. As one they may also be one block's without any loop:
    # then loads that wait for nothing go ahead of those that do.
    several = f" or {schedule.tasks.name} > 1" if schedule.tasks is not None else ""
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
    threads = product(schedule.lanes, schedule.tasks)
    most = context.device.limits.threads_per_sm or 2048
    room = f"{FEWEST_THREADS} <= {name} * {threads} <= {most}"
    prefer = [("room_to_persist", f"{name} == 0 or {room}")]
    if draft.kernel.tasks:
        work, each = shape.tasks, product(schedule.tasks)
    else:
        work, each = shape.extent, product(schedule.lanes, schedule.vector, schedule.items)
    if work:
        prefer.append(("many_to_go_on", f"{name} == 0 or {term(work)} >= 2 * {name} * {each} * device.sms"))
    choice = ParameterChoice(
        name, (0, 1, 2, 4, 8), 0, "blocks to a multiprocessor that go on; 0: a block ends with its tasks"
    )
    answers = [(Remedy.PERSISTENT_GRID, f"{name} > 0")]
    return extend(draft, "persistent", choice, prefer, answers)
