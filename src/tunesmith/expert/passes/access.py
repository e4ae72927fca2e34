"""What the writer would make of a draft: which accesses become packs, and how many bytes they move."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource.types import byte_size
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import WritingPlan, make_plan
from tunesmith.expert.writing.rules import structural_rules
from tunesmith.problem.problem import Argument
from tunesmith.space.expr import parse

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


def kept_bytes(found: WritingPlan) -> int:
    """That a thread keeps for one index of a row."""
    return sum(index_bytes(pack, found) for loop in found.all_loops for pack in loop.opens)


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


def rules_of_sizes(draft: TemplateDraft, context: Context, vector: ParameterChoice) -> list[str]:
    """What the written kernel requires of sizes and the vector alone."""
    known = {vector.name, *context.problem.size_names}
    return [text for _, text in structural_rules(draft, context.problem) if parse(text).names <= known]


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
