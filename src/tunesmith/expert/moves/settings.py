"""Moves that only steer the compiler: unrolling, bounds, registers, flags."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource.nodes import For
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.local.moves import AS_TODAY, CAPS, NO_CAP
from tunesmith.expert.moves.packing import one_at_a_time
from tunesmith.expert.moves.port import Context, extend, move, product
from tunesmith.expert.moves.shape import inner_loops
from tunesmith.expert.writing.sites import counted
from tunesmith.problem.template import Remedy

SHORT = 16  # turns: such a loop is unrolled whole by the writer


@move("unroll", (Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT), "UNROLL")
def unroll(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Unrolling of the loops inside a body, which every thread runs for itself."""
    found = inner_loops(draft.kernel)
    if not found:
        return "no thread runs a loop of its own inside a turn"
    if all(loop.unroll is not None or is_short(loop) for loop in found):
        return "every inner loop has a pragma of its own, or is short and unrolled whole anyway"
    # PoCL's compiler refuses 0, which CUDA's takes for "as you like".
    values = (1, 2, 4, 8) if context.language == "opencl" else (0, 1, 2, 4, 8)
    choice = ParameterChoice(
        name, values, values[0], "turns of an inner loop at once; 0: as the compiler likes"
    )
    answers = [(Remedy.UNROLL, f"{name} > 1"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")]
    return extend(draft, "unroll", choice, answers=answers)


def is_short(loop: For) -> bool:
    count = counted(loop)
    return count is not None and count[1] <= SHORT


@move("bounds", (Remedy.LAUNCH_BOUNDS,), "BOUNDS")
def bounds(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """`__launch_bounds__`: the compiler learns the block's size, and how many blocks must fit."""
    if context.language != "cuda":
        return f"{context.language} has no bound on blocks to a compute unit"
    schedule = draft.schedule
    threads = product(schedule.lanes, schedule.tasks)
    most = context.device.limits.threads_per_sm or 2048
    prefer = [("bounds_fit", f"{name} == 1 or {name} * {threads} <= {most}")]
    if schedule.persistent is not None:
        prefer.append(("bounds_persist", f"{name} == 1 or {schedule.persistent.name} == 0"))
    prefer += one_at_a_time(draft, context, name, 1)
    choice = ParameterChoice(name, (1, 2, 4), 1, "blocks that must fit on a multiprocessor at once")
    answers = [(Remedy.LAUNCH_BOUNDS, f"{name} > 1")]
    return extend(draft, "bounds", choice, prefer, answers)


@move("registers", (Remedy.REGISTER_CAP,), "REGS")
def registers(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A cap on registers: more threads on a multiprocessor, at the risk of spills."""
    if not context.flags.register_cap:
        return f"no flag caps registers in {context.language}"
    if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
        return "the problem's own flags cap registers already"
    prefer = one_at_a_time(draft, context, name, NO_CAP)
    if draft.schedule.persistent is not None:
        prefer.append(("regs_persist", f"{name} == {NO_CAP} or {draft.schedule.persistent.name} == 0"))
    choice = ParameterChoice(name, CAPS, NO_CAP, "registers of a thread, at most")
    answers = [(Remedy.REGISTER_CAP, f"{name} < {NO_CAP}")]
    flag = context.flags.register_cap.format(f"{{{name}}}")
    changed = replace(draft, build_flags=(*draft.build_flags, flag))
    return extend(changed, "registers", choice, prefer, answers)


@move("flags", (Remedy.COMPILER_FLAGS,), "LEVEL")
def flags(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """What the assembler may be asked: how hard it should try to save registers."""
    if not context.flags.register_level:
        return f"no build flag of {context.language} takes a number that tunes"
    flag = context.flags.register_level.format(f"{{{name}}}")
    choice = ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY, "how hard ptxas saves registers")
    prefer = one_at_a_time(draft, context, name, AS_TODAY)
    answers = [(Remedy.COMPILER_FLAGS, f"{name} != {AS_TODAY}")]
    changed = replace(draft, build_flags=(*draft.build_flags, flag))
    return extend(changed, "flags", choice, prefer, answers)
