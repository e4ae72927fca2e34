"""Moves on memory accesses: rings, kept rows, hints, tiles and register blocking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.expert.moves.compiler import switchable_macro
from tunesmith.expert.moves.move import (
    Context,
    define_move,
    element_loops,
    extend_draft,
    index_bytes,
    is_alone,
    kept_bytes,
    named_arrays,
    named_loops,
    nearest_value,
    packs_in,
    shape_of,
    try_plan,
)
from tunesmith.expert.moves.text_edits import Edit, LocalDraft, add_choice
from tunesmith.expert.read.model import Each, ParameterChoice, TemplateDraft, map_steps
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.expert.write.ring import (
    BULK_CAPABILITY,
    LEAST_CAPABILITY,
    WARP,
    bulk_packs,
    ring_kind_counts,
    ring_packs,
)
from tunesmith.expert.write.tile import TiledMap, tiled_map
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import parse_expr

STAGES = (0, 2, 3, 4)


def _ring_places(draft: TemplateDraft, context: Context) -> str:
    found = try_plan(draft, context, ring=ParameterChoice(context.macro("STAGES"), (0, 2), 0))
    if isinstance(found, str):
        return ""
    copied = [(loop.each, packs) for loop in found.all_loops if (packs := ring_packs(found, loop))]
    arrays = named_arrays(pack.array for _, packs in copied for pack in packs)
    return f"{arrays}; {named_loops(each for each, _ in copied)}"


@define_move(
    "ring",
    needs="neighbours of an array that the kernel never writes, in pieces of 4, 8 or 16 bytes (`require`); "
    "several turns to a row, or blocks that go on; CUDA, sm_80",
    turn="afterwards",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.STAGE_IN_SHARED),
    places=_ring_places,
    STAGES="chunks copied ahead into shared memory; 0: loads",
    BULK="1: one thread sends for a team's whole chunk",
)
def prefetch_ring(draft: TemplateDraft, context: Context, name: str, runs: str) -> TemplateDraft | str:
    """Asynchronous copies into a ring in shared memory: chunks of a loop are under way in no registers.

    Proved on the model: the loop reads neighbours, in every turn, of an array that the kernel never writes.
    Taken from the contract: no other array overlaps it, and its alignment. Each thread sends for its own
    packs of later chunks (`cp.async`), waits for the oldest, and reads its own slots; there is no barrier.
    The first chunks of a loop are sent for before the totals of the loop ahead of it are joined, unless they
    depend on these. Slots are one thread's in all loops of the kernel, and those of a warp lie side by side.
    With BULK (sm_90) a team's chunk comes in one bulk copy to each array, which a barrier in shared memory
    counts; the last of its threads to have read a chunk sends for the next one into its place. It needs whole
    warps, chunks that lie in one piece, and 16 bytes (`require`); the ragged end stays with plain loads.
    What several tasks read (weights) goes through L1, the rest past it. `KEEP`, `SPLIT`,
    `BESIDE` and `BLOCKED` are excluded (`require`).
    """
    choice = ParameterChoice(name, STAGES, 0)
    plan = _why_no_ring(draft, context) or try_plan(draft, context, ring=choice)
    if isinstance(plan, str):
        return plan
    lanes = draft.schedule["lanes"].values
    if plan.is_flat and "persistent" not in draft.schedule:
        return "every block takes one chunk: there is no next one to copy ahead"
    counts = ring_kind_counts(plan)
    if not counts:
        scalar = "" if "vector" in draft.schedule else "; without vectors pieces are single elements"
        return f"no loop reads neighbours of an array that is only read, in pieces of 4 bytes{scalar}"
    shape = shape_of(draft, context)
    if not plan.is_flat and shape.extents and max(shape.extents) <= 2 * min(lanes):
        return f"a row is done in two turns at most: it has {max(shape.extents)} elements"
    choices = {"ring": choice}
    sent = any(bulk_packs(plan, loop) for loop in plan.all_loops)
    of_warps = any(count % WARP == 0 for count in lanes)
    if context.device.limits.capability >= BULK_CAPABILITY and sent and of_warps:
        choices["bulk"] = ParameterChoice(runs, (0, 1), 0, categorical=True)
    copied = sum(kind.bytes * count for kind, count in counts.items())
    return extend_draft(draft, "ring", choices, copied=copied, piece=min(kind.bytes for kind in counts))


def _why_no_ring(draft: TemplateDraft, context: Context) -> str:
    """What the device, the language or the other moves have against it."""
    if context.language != "cuda" or context.on_cpu:
        return "only CUDA's GPUs copy into shared memory while threads go on"
    if context.device.limits.capability < LEAST_CAPABILITY:
        device = context.device.architecture or "a device that does not say what it is"
        return f"asynchronous copies need sm_{LEAST_CAPABILITY}, and this is {device}"
    if not element_loops(draft.kernel):
        return "there is no loop whose next chunk could be copied ahead"
    if "lanes" not in draft.schedule:
        return "no loop is shared among threads"
    return "what would be copied ahead goes through tiles" if "tile" in draft.schedule else ""


KEPT = (1, 2, 3, 4, 6, 8, 16)


def _keep_places(draft: TemplateDraft, context: Context) -> str:
    found = try_plan(draft, context, keep=ParameterChoice(context.macro("KEEP"), (0, 1), 0))
    if isinstance(found, str):
        return ""
    row = [loop for loop in found.all_loops if loop.in_row]
    kept = [pack.array for loop in row for pack in loop.packs if pack.key in loop.kept]
    return named_arrays(kept) + f"; {named_loops(loop.each for loop in row)}"


@define_move(
    "keep",
    needs="a later loop over the same range that reads the same elements; a GPU",
    turn="sharing",
    remedies=(Remedy.ROW_IN_REGISTERS, Remedy.LESS_SHARED, Remedy.PAD_SHARED),
    places=_keep_places,
    KEEP="vectors of its row a thread keeps in registers; 0: none",
)
def keep_rows_in_registers(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A row kept in registers between passes: what a later loop reads again is loaded once.

    Proved on the model: a later loop runs over the same range and reads what an earlier one read or handed
    on in shared memory, at the same place. A thread then holds KEEP vectors of its row, which must be all of
    it.
    """
    if context.on_cpu:
        return "a CPU has too few registers for a row; its cache holds it as well"
    if "lanes" not in draft.schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, (0, *KEPT), 0)
    again = _read_again(draft, context, choice)
    if isinstance(again, str):
        return again
    tasks = draft.schedule.get("tasks")
    return extend_draft(draft, "keep", choice, kept=again, tasks=tasks.default if tasks is not None else "")


def _read_again(draft: TemplateDraft, context: Context, choice: ParameterChoice) -> int | str:
    """Bytes to keep for one index of a row, or why there is nothing to keep."""
    if len(element_loops(draft.kernel)) < 2:
        return "there is one loop over the row only: nothing is read again"
    plan = try_plan(draft, context, keep=choice)
    if isinstance(plan, str):
        return plan
    if not plan.keeps:
        return "no later loop over the same range reads what an earlier one has read, element by element"
    return kept_bytes(plan)


def _hint_places(draft: TemplateDraft, context: Context) -> str:
    found = try_plan(draft, context)
    return "" if isinstance(found, str) else named_arrays(p.array for p in packs_in(found))


@define_move(
    "hints",
    needs="plain accesses to neighbours",
    turn="anywhere",
    remedies=(Remedy.CACHE_HINTS,),
    places=_hint_places,
    LOAD="1: loads leave L1 alone; 2: loads are evicted first",
    STORE="1: results are evicted first, or go past the cache",
)
def hint_caches(draft: TemplateDraft, context: Context, load: str, store: str) -> TemplateDraft | str:
    """Cache hints: loads and stores that tell the caches what is used once."""
    if not element_loops(draft.kernel):
        return "there is no loop whose accesses could carry a hint"
    plan = try_plan(draft, context)
    packs = () if isinstance(plan, str) else packs_in(plan)
    if not packs:
        return "no access is a plain one of neighbours, in every turn of its loop"
    choices: dict[str, ParameterChoice] = {}
    if any(p.loads for p in packs) and context.language != "opencl":
        choices["load_hint"] = ParameterChoice(load, (0, 1, 2), 0, categorical=True)
    if any(p.stores for p in packs):
        note = f"1: results {'go past the cache' if context.language == 'opencl' else 'are evicted first'}"
        choices["store_hint"] = ParameterChoice(store, (0, 1), 0, note, categorical=True)
    if not choices:
        return "no hint of the language applies to its accesses"
    return extend_draft(draft, "hints", choices)


@define_move(
    "redundant",
    needs="a loop that only stores elements which an earlier loop of the task has stored",
    turn="sharing",
    remedies=(Remedy.ROW_IN_REGISTERS,),
    places=lambda draft, _: named_loops(each for each in element_loops(draft.kernel) if each.again),
)
def drop_redundant_loops(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """Loops left out that only store again what an earlier loop of the task has stored.

    That every element they store has been stored before is proved on the model; that the values are the same
    is not, so the whole template stands or falls with the oracle. There is no parameter: without the loop
    the rest of the kernel may be shared otherwise, and nobody wants it back.
    """
    found = [loop for loop in element_loops(draft.kernel) if loop.again]
    if not found or any(loop.totals for loop in found):
        return "no loop only stores again what an earlier one has stored"
    if context.problem.accuracy.reference is None and not context.problem.accuracy.deterministic:
        return "without a reference and with results that vary nobody could tell whether it was needed"
    steps = map_steps(
        draft.kernel.steps, lambda step: None if isinstance(step, Each) and step.again else step
    )
    return extend_draft(replace(draft, kernel=replace(draft.kernel, steps=steps)), "redundant", {})


@define_move(
    "restrict",
    needs="arrays that `alias` others; a kernel that is launched several times",
    turn="seldom",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.HOIST_INVARIANTS),
    places=lambda draft, _: f"pointers {', '.join(p.name for p in draft.site.pointers if not p.restrict)}",
    RESTRICT="1: pointers are `restrict`, as the contract allows",
)
def restrict_pointers(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__restrict__` on pointers whose arrays the contract keeps apart: loads need not wait for stores."""
    problem = context.problem
    shared = {name for a in problem.arguments if a.alias for name in (a.alias, a.name)}
    # The launch names the arguments in the kernel's order, whatever the kernel calls them.
    args = draft.launches[0].launch.args
    if len(draft.launches) > 1:
        return "the kernel is launched more than once, perhaps with other arrays each time"
    if draft.launches[0].launch.pdl:
        return "the launch overlaps (pdl): a compiler might move loads before the wait for the one ahead"
    arrays = [word for word in args if problem.argument(word).is_array]
    if len(arrays) != len(draft.site.pointers):
        return f"not every pointer of {draft.site.name} is written as one in its header"
    pairs = zip(draft.site.pointers, arrays, strict=True)
    apart = [pointer for pointer, array in pairs if array not in shared and not pointer.restrict]
    spelled = "restrict" if context.language == "opencl" else "__restrict__"
    if not apart:
        return f"every pointer is {spelled} already, or may share memory with another (alias)"
    word = context.macro("NO_ALIAS")
    return add_choice(
        draft,
        "restrict",
        ParameterChoice(name, (0, 1), 0),
        edits=tuple(Edit(pointer.at, f"{word} ") for pointer in apart),
        preamble=switchable_macro(name, word, spelled),
    )


SIDES = (16, 32, 64)
SHORT_TILES = (4, 8)  # where there are fewer along the loads
PADS = (0, 1, 2)
SIDE, PAD = 32, 1
THREADS = (64, 128, 256, 512, 1024)
MAX_TURNS = 32  # elements that a thread has under way
_OF_ROWS = ("row", "beside", "elements")  # what the usual rules of threads to a row ask for


def _plan_tiled_map(draft: TemplateDraft, context: Context) -> tuple[WritingPlan, TiledMap] | str:
    plan = try_plan(draft, context)
    if isinstance(plan, str):
        return plan
    found = tiled_map(plan.kernel, plan.written, tuple(plan.arrays))
    if found is None:
        return "no map loads along one axis and stores along another"
    return plan, found


def _load_extents(plan: WritingPlan, found: TiledMap, context: Context) -> list[int]:
    """How far the loads' index goes at each workload, as far as that is known."""
    text = plan.sizes.text(found.far.extent)
    return [parse_expr(text).evaluate(work.as_dict()) for work in context.problem.workloads] if text else []


def _tile_places(draft: TemplateDraft, context: Context) -> str:
    found = _plan_tiled_map(draft, context)
    return "" if isinstance(found, str) else named_arrays(site.array for site in found[1].loads)


@define_move(
    "tile",
    needs="a map that loads neighbours along one index in every turn, and stores along another; sizes that "
    "parameters tell; a GPU, CUDA or HIP",
    turn="sharing",
    remedies=(Remedy.STAGE_IN_SHARED, Remedy.COALESCE, Remedy.PAD_SHARED),
    places=_tile_places,
    TILE="elements of a tile along the stores",
    ACROSS="elements of a tile along the loads",
    PAD="elements by which a tile's rows are longer",
)
def tile_accesses(
    draft: TemplateDraft, context: Context, name: str, across: str, pad: str
) -> TemplateDraft | str:
    """Tiles through shared memory: loads along one index and stores along another, both in order.

    Proved on the model: the map has one loop without totals, every turn makes the load, at a place that moves
    by one along an index other than the stores', of an array that the kernel never writes. A block of LANES
    threads brings TILE x ACROSS elements into shared memory along the loads, waits, and goes through the body
    along the stores; both are of VEC elements, and all of a thread's loads are under way at once. Moves that
    share the map otherwise have nothing to do then.
    """
    schedule = draft.schedule
    if context.language not in ("cuda", "hip") or context.on_cpu:
        return "a CPU's caches hold the lines that a tile would"
    if "lanes" not in schedule:
        return "no loop is shared among threads"
    found = _plan_tiled_map(draft, context)
    if isinstance(found, str):
        return found
    lanes, tasks = schedule["lanes"], schedule.get("tasks")
    today = lanes.default * (tasks.default if tasks is not None else 1)
    open_ = len(lanes.values) > 1
    values = tuple(v for v in THREADS if v <= context.device.limits.max_threads) if open_ else (today,)
    sides, side = _sides_across(_load_extents(*found, context))
    if SIDE * side % values[0]:
        return f"{SIDE} x {side} elements are no whole turns of {values[0]} threads"
    threads = nearest_value(values, min(today, SIDE * side))
    schedule = schedule.having(lanes=replace(lanes, values=values, default=threads, note="threads to a tile"))
    if tasks is not None:
        schedule = schedule.having(tasks=replace(tasks, values=(1,), default=1))
    choices = {
        "tile": ParameterChoice(name, SIDES, SIDE),
        "across": ParameterChoice(across, sides, side),
        "pad": ParameterChoice(pad, PADS, PAD),
    }
    prefer = [("tile_in_registers", f"{name} * {across} <= {MAX_TURNS} * {lanes.name}")]
    answers = [(remedy, f"{name} > 0") for remedy in (Remedy.STAGE_IN_SHARED, Remedy.COALESCE)]
    answers.append((Remedy.PAD_SHARED, f"{pad} > 0"))
    draft = replace(draft, schedule=schedule, shape=tuple(f for f in draft.shape if f[0] not in _OF_ROWS))
    return extend_draft(draft, "tile", choices, prefer, answers)


def _sides_across(reach: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """A tile's sides along the loads to choose from, and the default, by how far the loads go."""
    sides = (*(SHORT_TILES if reach and min(reach) < SIDES[0] else ()), *SIDES)
    if not reach or max(reach) > SIDES[0]:
        return sides, SIDE
    return sides, min(value for value in sides if value >= max(reach))


COUNTS = (1, 2, 4, 8)
SHORT_ROW = 1024  # elements: of a longer row a team has several turns to load ahead


def _blocking_places(draft: TemplateDraft, context: Context) -> str:
    found = try_plan(draft, context, blocking=ParameterChoice(context.macro("BLOCKED"), (1, 2), 1))
    if isinstance(found, str) or found.blocking.task is None:
        return ""
    same = [p.array for each in found.all_loops for p in each.packs if found.blocking.is_same(p)]
    shared = f"; the same for all: {named_arrays(same)}" if same else ""
    return f"tasks along {found.blocking.task.name}{shared}"


@define_move(
    "blocking",
    needs="loops that go equally far for neighbouring tasks; loads that are the same for these or overlap, "
    "or rows of 1024 elements or fewer; a GPU, CUDA or HIP",
    turn="afterwards",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.ROWS_PER_BLOCK, Remedy.HOIST_INVARIANTS),
    places=_blocking_places,
    BLOCKED="neighbouring tasks that a team takes at once",
)
def block_registers(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Register blocking: a team takes several neighbouring tasks, and loads what they read alike once.

    Of several indices of the tasks it is the one along which most loads are the same (a norm's weights, a
    bias, the vector of a product) or overlap (the rows of a stencil). Every step is done for all tasks of the
    team before the next one, which is right because tasks do not depend on each other; loops must go equally
    far for all of them. Rows that overlap are a table in registers, and loads that only some turns make are
    taken from there where it has them. The last team may lack tasks; where only the grid tells how many there
    are, BLOCKED must divide their number (`require`).
    """
    if is_alone(draft.kernel):
        return "there is one task in all: it has no neighbours"
    if context.on_cpu or context.language == "opencl":
        return "a CPU has too few registers for a tile, and its caches hold what tasks read alike"
    if not draft.kernel.tasks:
        return "the whole grid works on one task: it has no neighbours"
    if not element_loops(draft.kernel) or "lanes" not in draft.schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, COUNTS, 1)
    plan = try_plan(draft, context, blocking=choice)
    if isinstance(plan, str):
        return plan
    extents = shape_of(draft, context).extents
    if not plan.blocking.alike and max(extents, default=SHORT_ROW + 1) > SHORT_ROW:
        return "neighbouring tasks read nothing alike, and their rows are long enough to load ahead in"
    apart, alike = _loop_load_bytes(plan)
    return extend_draft(draft, "blocking", choice, own=apart, alike=alike)


def _loop_load_bytes(plan: WritingPlan) -> tuple[int, int]:
    """Bytes that a thread has under way in the busiest loop: of each task, and what tasks share."""
    apart, shared = 0, 0
    for loop in plan.all_loops:
        loads = [pack for pack in loop.packs if pack.loads and pack.width]
        tables = plan.blocking.tables(loads)
        each = sum(index_bytes(table.first, plan) for table in tables)
        same = sum(index_bytes(pack, plan) for pack in loads if plan.blocking.is_same(pack))
        same += sum(index_bytes(table.first, plan) * table.span for table in tables)
        apart, shared = max((apart, shared), (each, same))
    return apart, shared
