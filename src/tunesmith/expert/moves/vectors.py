"""Moves on what a thread loads and stores: how much at once, how often, past which caches."""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.csource.types import byte_size
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.port import Context, alone, extend, move, product
from tunesmith.expert.moves.shape import has_sums, is_map, loops, shape_of, term
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import WritingPlan, make_plan
from tunesmith.expert.writing.rules import structural_rules
from tunesmith.problem.problem import Argument
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import parse


@move("vector", (Remedy.WIDE_ACCESS, Remedy.COALESCE), "VEC")
def vector(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Wide loads and stores: a thread takes VEC neighbours at once, in accesses of up to 16 bytes.

    Proved on the model: the access moves by one element (or by whole packs) from index to index and happens
    in every turn. Taken from the contract: how arrays are aligned, that they do not overlap, and which sizes
    VEC must divide, which the writer makes the template's `require`. What does not qualify stays as it is.
    """
    if not loops(draft.kernel):
        return "there is no loop over neighbours to take several of at once"
    found = widest_vector(draft, context, name)
    if isinstance(found, str):
        return found
    most, plan = found
    values = tuple(v for v in (1, 2, 4, 8, 16) if v <= most)
    every = ParameterChoice(name, values, 1, "elements in one load or store")
    given = replace(draft, schedule=draft.schedule.having(vector=every))
    rules = [parse(text) for text in _rules_of_sizes(given, context, every)]
    legal = {1} | {
        value
        for value in values
        for workload in context.problem.workloads
        if all(rule.holds({**workload.as_dict(), name: value}) for rule in rules)
    }
    if legal == {1}:
        return "rows are no whole number of vectors at any workload, or start at odd places"
    widest = max(index_bytes(pack, plan) for pack in packs_in(plan))
    lanes, extent = draft.schedule.get("lanes"), shape_of(draft, context).extent
    prefer = []
    if lanes is not None and extent and not context.on_cpu:
        # In place of the weaker one, of lanes alone.
        draft = replace(draft, prefer=tuple(p for p in draft.prefer if p[0] != "no_idle_lanes"))
        prefer.append(("no_idle_lanes", f"{lanes.name} * {name} < 2 * {term(extent)}"))
    if lanes is not None and context.on_cpu and not is_map(draft.kernel):
        # A vector has the unit to itself; work-items would take turns, and wait to join their totals.
        prefer.append(("lanes_or_vectors", f"{lanes.name} == 1 or {name} == 1"))
    choice = replace(every, values=tuple(v for v in values if v in legal))
    answers = [(Remedy.WIDE_ACCESS, f"{name} * {widest} >= 16")]
    return extend(draft, "vector", choice, prefer, answers)


MOST_BYTES = 256  # of a thread's loads under way: 64 registers, a quarter of what it can have
MOST_ON_CPU = 1024  # half of the widest vector registers


@move("items", (Remedy.ITEMS_IN_FLIGHT, Remedy.UNROLL), "ITEMS")
def items(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several packs of a thread in flight: all are loaded before the first is used."""
    kernel, schedule = draft.kernel, draft.schedule
    if not loops(kernel):
        return "there is no loop of which several turns could be under way"
    shape = shape_of(draft, context)
    each, most = loaded_bytes(draft, context), MOST_ON_CPU if context.on_cpu else MOST_BYTES
    taken = f"{product(schedule, 'vector')} * {name}"
    prefer = [("loads_under_way", f"{taken} * {each} <= {most}")] if each else []
    reach = f"{product(schedule, 'lanes', 'vector')} * {name}"
    if "lanes" in schedule and shape.extent:
        prefer.append(("no_idle_items", f"{name} == 1 or {reach} < 2 * {term(shape.extent)}"))
    if context.on_cpu and has_sums(kernel) and shape.lanes > 1:
        # The longer a sum, the more roundings are in it. With half of the original's sums the oracle lets
        # results pass, with a quarter it did not.
        prefer.append(("enough_sums", f"2 * {reach} >= {shape.lanes}"))
    values = (1, 4, 16) if context.on_cpu else (1, 2, 4)
    choice = ParameterChoice(name, values, 1, "vectors a thread has under way at once")
    answers = [(Remedy.ITEMS_IN_FLIGHT, f"{name} > 1"), (Remedy.UNROLL, f"{name} > 1")]
    return extend(draft, "items", choice, prefer, answers)


KEPT = (1, 2, 3, 4, 6, 8, 16)
REGISTERS = 65536  # of a multiprocessor
OTHERS = 32  # registers of a thread for everything but its row


@move("keep", (Remedy.ROW_IN_REGISTERS, Remedy.LESS_SHARED, Remedy.PAD_SHARED), "KEEP")
def keep(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A row kept in registers between passes: what a later loop reads again is loaded once.

    Proved on the model: a later loop runs over the same range and reads what an earlier one read or handed
    on in shared memory, at the same place. A thread then holds KEEP vectors of its row, which must be all of
    it.
    """
    kernel, schedule = draft.kernel, draft.schedule
    if context.on_cpu:
        return "a CPU has too few registers for a row; its cache holds it as well"
    if "lanes" not in schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, (0, *KEPT), 0, "vectors of its row a thread keeps in registers; 0: none")
    again = _kept_bytes(draft, context, choice)
    if isinstance(again, str):
        return again
    lanes, extent = schedule["lanes"].name, shape_of(draft, context).extent
    vector = schedule["vector"].name if schedule.get("vector") else "1"
    tasks = schedule["tasks"].name if schedule.get("tasks") else "1"
    per_thread = f"{name} * {vector} * {again} // 4 + {OTHERS}"
    registers = context.device.limits.registers_per_sm or REGISTERS
    prefer = [("registers", f"{lanes} * {tasks} * ({per_thread}) <= {registers}")]
    if extent:
        prefer.append(("no_idle_part", f"{name} <= 1 or {lanes} * {vector} * ({name} - 1) < {term(extent)}"))
    if "vector" in schedule and (widest := is_widest(draft, context)):
        half = max(schedule["vector"].values) // 2
        also = "" if f"{vector} >= {half}" in widest else f"{vector} == {half} or "
        prefer.append(("wide_if_kept", f"{name} == 0 or {also}{widest}"))
    if "tasks" in schedule:
        prefer.append(("kept_if_several", f"{name} > 0 or {tasks} <= {schedule['tasks'].default}"))
    answers = [(Remedy.ROW_IN_REGISTERS, f"{name} > 0"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")]
    if kernel.staged:
        answers.append((Remedy.LESS_SHARED, f"{name} > 0"))
    return extend(draft, "keep", choice, prefer, answers)


def _kept_bytes(draft: TemplateDraft, context: Context, choice: ParameterChoice) -> int | str:
    """Bytes to keep for one index of a row, or why there is nothing to keep."""
    if len(loops(draft.kernel)) < 2:
        return "there is one loop over the row only: nothing is read again"
    plan = planned(draft, context, keep=choice)
    if isinstance(plan, str):
        return plan
    if not plan.keeps:
        return "no later loop over the same range reads what an earlier one has read, element by element"
    sizes = {
        pack.key: index_bytes(pack, plan)
        for group in plan.keeps
        for loop in group.loops
        for pack in loop.packs
        if pack.key in group.shared
    }
    return sum(sizes.values())


@move("hints", (Remedy.CACHE_HINTS,), "LOAD", "STORE")
def hints(draft: TemplateDraft, context: Context, load: str, store: str) -> TemplateDraft | str:
    """Cache hints: loads and stores that tell the caches what is used once."""
    if not loops(draft.kernel):
        return "there is no loop whose accesses could carry a hint"
    plan = planned(draft, context)
    packs = () if isinstance(plan, str) else packs_in(plan)
    if not packs:
        return "no access is a plain one of neighbours, in every turn of its loop"
    choices: dict[str, ParameterChoice] = {}
    answers: list[tuple[str, str]] = []
    prefer: list[tuple[str, str]] = []
    if any(p.loads for p in packs) and context.language != "opencl":
        note = "1: loads leave L1 alone; 2: loads are evicted first"
        choices["load_hint"] = ParameterChoice(load, (0, 1, 2), 0, note, categorical=True)
        answers.append((Remedy.CACHE_HINTS, f"{load} > 0"))
        prefer += with_wide(draft, context, load)
    if any(p.stores for p in packs):
        note = f"1: results {'go past the cache' if context.language == 'opencl' else 'are evicted first'}"
        choices["store_hint"] = ParameterChoice(store, (0, 1), 0, note, categorical=True)
        answers.append((Remedy.CACHE_HINTS, f"{store} > 0"))
        prefer += with_wide(draft, context, store)
    if len(choices) == 2:
        prefer.append(("hints_agree", f"{load} == 0 or {store} == {load} // 2"))
    if not choices:
        return "no hint of the language applies to its accesses"
    return extend(draft, "hints", choices, prefer, answers)


# -- what the writer would make of a draft: which accesses become packs, and how many bytes they move


WIDEST = 16  # bytes of one access
ON_CPU = 64  # of a register of the widest kind
MOST_ACCESSES = 2  # that one pack may take
POWERS = (16, 8, 4, 2)  # elements; the most that are tried first


def planned(draft: TemplateDraft, context: Context, **choices: ParameterChoice) -> WritingPlan | str:
    """The writer's plan with these choices as well, or why it has none."""
    try:
        return make_plan(replace(draft, schedule=draft.schedule.having(**choices)), context.problem)
    except Unwritable as error:
        return error.reason


def packs_in(found: WritingPlan) -> tuple[Pack, ...]:
    """Of neighbours in global memory."""
    return tuple(p for loop in found.all_loops for p in loop.packs if p.width and p.array in found.arrays)


def argument_of(array: str, found: WritingPlan) -> Argument:
    """The problem's argument behind a parameter: by its place in the launch, whatever it is called."""
    names = [parameter.name for parameter in found.kernel.function.parameters]
    return found.problem.argument(found.problem.launches[0].args[names.index(array)])


def element_bytes(pack: Pack, found: WritingPlan) -> int | None:
    """Of one element: the array's own type, or what its pointer is cast to."""
    if pack.element is not None:
        return byte_size(pack.element.base)
    for staged in found.kernel.staged:
        if staged.name == pack.array:
            return byte_size(staged.type.base)
    size = byte_size(found.arrays[pack.array].base)
    return size if size is not None else argument_of(pack.array, found).element.bytes


def index_bytes(pack: Pack, found: WritingPlan) -> int:
    """Of one index of the loop: the elements it has of this array."""
    return (element_bytes(pack, found) or 4) * max(1, pack.width)


def loaded_bytes(draft: TemplateDraft, context: Context) -> int:
    """Bytes that one index of the busiest loop loads in packs; 0 where it loads none so."""
    found = planned(draft, context, items=ParameterChoice("ITEMS", (1, 2), 1))
    if isinstance(found, str):
        return 0
    loads = [[pack for pack in loop.packs if pack.loads and pack.width] for loop in found.all_loops]
    return max((sum(index_bytes(pack, found) for pack in packs) for packs in loads), default=0)


def widest_vector(draft: TemplateDraft, context: Context, name: str) -> tuple[int, WritingPlan] | str:
    """The largest VEC that is of use and the plan for it, or why there is none.

    An access has 16 bytes at most and as many as its array is aligned to; a pack of more takes several. One
    pack at least must gain by it, and none may need more than two accesses.
    """
    why = ""
    for most in POWERS:
        found = planned(draft, context, vector=ParameterChoice(name, (1, most), 1))
        if isinstance(found, str):
            why = why or found
            continue
        packs = packs_in(found)
        if packs and not (why := _fault(most, packs, found, ON_CPU if context.on_cpu else WIDEST)):
            return most, found
    return why or _loose(draft)


def _rules_of_sizes(draft: TemplateDraft, context: Context, vector: ParameterChoice) -> list[str]:
    """What the written kernel requires of sizes and the vector alone."""
    known = {vector.name, *context.problem.size_names}
    required = [text for kind, _, text in structural_rules(draft, context.problem) if kind == "require"]
    return [text for text in required if parse(text).names <= known]


def is_widest(draft: TemplateDraft, context: Context) -> str:
    """A condition that holds where one access at least is as wide as can be, or no wider vector is legal.

    "" where there are no vectors to choose from.
    """
    vector = draft.schedule.get("vector")
    if vector is None or len(vector.values) == 1:
        return ""
    rules = [text for text in _rules_of_sizes(draft, context, vector) if vector.name in parse(text).names]
    full, found = max(vector.values), planned(draft, context)
    if not isinstance(found, str):  # the smallest with which the widest elements move at full width
        size = max((index_bytes(pack, found) for pack in packs_in(found)), default=1)
        reach = ON_CPU if context.on_cpu else WIDEST
        full = min((v for v in vector.values if v * size >= reach), default=full)
    widest = f"{vector.name} >= {full}" if full < max(vector.values) else f"{vector.name} == {full}"
    if not rules:
        return widest
    wider = [re.sub(rf"\b{vector.name}\b", f"(2 * {vector.name})", text) for text in rules]
    return f"{widest} or not ({' and '.join(wider)})"


def _fault(most: int, packs: tuple[Pack, ...], found: WritingPlan, widest: int) -> str:
    """Why packs of that many indices are too wide; "" where they are not."""
    gains, why = False, ""
    for pack in packs:
        size, argument = element_bytes(pack, found), argument_of(pack.array, found)
        if size is None:
            return f"how large an element of {pack.array} is, is not known"
        own = size * pack.width
        if own * most > MOST_ACCESSES * widest:
            return f"{pack.array} is accessed {own} bytes at once already, of {widest} that one access has"
        # OpenCL's vloadn takes the address of any element.
        align = widest if found.language == "opencl" else found.element_align[pack.array]
        if own * most <= min(widest, align):
            gains = True
        elif align < 2 * own <= widest:
            why = (
                f"{argument.name} is promised at multiples of {align} bytes only: say align = {widest} in "
                "the problem file if callers give that"
            )
        else:
            why = why or f"{argument.name} is accessed {own} bytes at once already, of {widest}"
    return "" if gains else why


def _loose(draft: TemplateDraft) -> str:
    """Nothing is a pack: which accesses stand in the way, as the reading has them."""
    loose = [a for a in draft.kernel.accesses if a.loop and a.stride != 0]
    far = next((a for a in loose if a.stride is None or a.stride > 1), None)
    if far is not None:
        apart = f"{far.stride} elements" if far.stride is not None else "no fixed number of elements"
        return f"{far.array} moves by {apart} from one index to the next (line {far.line})"
    return "no access to neighbours happens in every turn of its loop"


# -- when finishing touches are worth a try: with the widest vectors there are, and settings one at a time


def with_wide(draft: TemplateDraft, context: Context, name: str, default: int = 0) -> list[tuple[str, str]]:
    """On narrow vectors other things cost more."""
    widest = is_widest(draft, context)
    return [(f"{name.lower()}_if_wide", f"{name} == {default} or {widest}")] if widest else []


def one_at_a_time(draft: TemplateDraft, context: Context, name: str, default: int) -> list[tuple[str, str]]:
    """What only steers the compiler is tried one by one: together such settings work against each other."""
    schedule = draft.schedule
    settings = (
        schedule.get("unroll"),
        schedule.get("bounds"),
        schedule.get("registers"),
        schedule.get("flags"),
    )
    return with_wide(draft, context, name, default) + alone(name, default, settings)
