"""The move `tile`; `writing/tile` has the code it prints and what that requires."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import named_arrays, nearest
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.tile import TiledMap, tiled_map
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import parse

SIDES = (16, 32, 64)
SHORT = (4, 8)  # where there are fewer along the loads
PADS = (0, 1, 2)
SIDE, PAD = 32, 1
THREADS = (64, 128, 256, 512, 1024)
MOST_TURNS = 32  # elements that a thread has under way
_OF_ROWS = ("row", "beside", "elements")  # what the usual rules of threads to a row ask for


def _found(draft: TemplateDraft, context: Context) -> tuple[WritingPlan, TiledMap] | str:
    plan = planned(draft, context)
    if isinstance(plan, str):
        return plan
    found = tiled_map(plan.kernel, plan.written, tuple(plan.arrays))
    if found is None:
        return "no map loads along one axis and stores along another"
    return plan, found


def _reach(plan: WritingPlan, found: TiledMap, context: Context) -> list[int]:
    """How far the loads' index goes at each workload, as far as that is known."""
    text = plan.sizes.text(found.far.extent)
    return [parse(text).evaluate(work.as_dict()) for work in context.problem.workloads] if text else []


def _places(draft: TemplateDraft, context: Context) -> str:
    found = _found(draft, context)
    return "" if isinstance(found, str) else named_arrays(site.array for site in found[1].loads)


@move(
    "tile",
    needs="a map that loads neighbours along one index in every turn, and stores along another; sizes that "
    "parameters tell; a GPU, CUDA or HIP",
    turn="sharing",
    remedies=(Remedy.STAGE_IN_SHARED, Remedy.COALESCE, Remedy.PAD_SHARED),
    places=_places,
    TILE="elements of a tile along the stores",
    ACROSS="elements of a tile along the loads",
    PAD="elements by which a tile's rows are longer",
)
def tile(draft: TemplateDraft, context: Context, name: str, across: str, pad: str) -> TemplateDraft | str:
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
    found = _found(draft, context)
    if isinstance(found, str):
        return found
    lanes, tasks = schedule["lanes"], schedule.get("tasks")
    today = lanes.default * (tasks.default if tasks is not None else 1)
    open_ = len(lanes.values) > 1
    values = tuple(v for v in THREADS if v <= context.device.limits.max_threads) if open_ else (today,)
    reach = _reach(*found, context)
    sides = (*(SHORT if reach and min(reach) < SIDES[0] else ()), *SIDES)
    side = SIDE if not reach or max(reach) > SIDES[0] else min(v for v in sides if v >= max(reach))
    if SIDE * side % values[0]:
        return f"{SIDE} x {side} elements are no whole turns of {values[0]} threads"
    threads = nearest(values, min(today, SIDE * side))
    own = replace(lanes, values=values, default=threads, note="threads to a tile")
    schedule = schedule.having(lanes=own)
    if tasks is not None:
        schedule = schedule.having(tasks=replace(tasks, values=(1,), default=1))
    choices = {
        "tile": ParameterChoice(name, SIDES, SIDE),
        "across": ParameterChoice(across, sides, side),
        "pad": ParameterChoice(pad, PADS, PAD),
    }
    prefer = [("tile_in_registers", f"{name} * {across} <= {MOST_TURNS} * {lanes.name}")]
    answers = [(remedy, f"{name} > 0") for remedy in (Remedy.STAGE_IN_SHARED, Remedy.COALESCE)]
    answers.append((Remedy.PAD_SHARED, f"{pad} > 0"))
    draft = replace(draft, schedule=schedule, shape=tuple(f for f in draft.shape if f[0] not in _OF_ROWS))
    return extend(draft, "tile", choices, prefer, answers)
