"""Moves on a thread's instructions: cheaper operations, and what only steers the compiler."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.port import (
    AS_TODAY,
    NO_CAP,
    Context,
    extend,
    move,
    product,
    register_cap,
    saving_level,
)
from tunesmith.expert.moves.shape import fast_forms, index_divisions, inner_loops
from tunesmith.expert.moves.vectors import one_at_a_time, planned, with_wide
from tunesmith.expert.writing.loops import is_short
from tunesmith.expert.writing.rules import Baked
from tunesmith.problem.template import Remedy


@move("reciprocal", (Remedy.RECIPROCAL, Remedy.HOIST_INVARIANTS), "RECIP")
def reciprocal(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Multiplication by a reciprocal in place of divisions by one number: a parameter, judged by the
    oracle."""
    if not fast_forms(draft.kernel, context.language).by_invariants:
        return "no float is divided by what is the same for a whole loop"
    choice = ParameterChoice(
        name,
        (0, 1, 2),
        0,
        "divisions by one number: 0 as they are, 1 products, 2 products set right by their remainder",
        categorical=True,
    )
    prefer = with_wide(draft, context, name)
    answers = [(Remedy.RECIPROCAL, f"{name} > 0"), (Remedy.HOIST_INVARIANTS, f"{name} > 0")]
    return extend(draft, "reciprocal", choice, prefer, answers)


@move("fast", (Remedy.FAST_INTRINSICS, Remedy.FP32_LITERALS), "FAST")
def fast(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Fast intrinsics in place of library functions and divisions: a parameter, judged by the oracle."""
    if "use_fast_math" in " ".join(context.problem.kernel.flags):
        return "-use_fast_math is among the problem's flags: the intrinsics are used already"
    found = fast_forms(draft.kernel, context.language).functions
    if not found:
        return "no function or division of floats has a fast form here"
    choice = ParameterChoice(name, (0, 1), 0, f"1: fast forms of {', '.join(found)}")
    prefer = with_wide(draft, context, name)
    answers = [(Remedy.FAST_INTRINSICS, f"{name} == 1")]
    return extend(draft, "fast", choice, prefer, answers)


@move("divide", (Remedy.CHEAP_DIVISION,), "DIVIDE")
def divide(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Cheaper index division: the integer divisions of a loop by what does not change in it."""
    if context.language == "opencl":
        return "cheaper divisions are known for cuda and hip alone"
    if not index_divisions(draft.kernel):
        return "no index is divided by a number that only the call knows"
    choice = ParameterChoice(
        name,
        (0, 1, 2),
        0,
        "index divisions: 1: shifts, divisors are powers of two; 2: products with a reciprocal",
    )
    prefer = with_wide(draft, context, name)
    answers = [(Remedy.CHEAP_DIVISION, f"{name} > 0")]
    return extend(draft, "divide", choice, prefer, answers)


@move("bake", (Remedy.BAKE_SIZES, Remedy.CHEAP_DIVISION, Remedy.UNROLL), "BAKE")
def bake(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Sizes as constants of the build: one build for each workload's sizes, the original for all others."""
    choice = ParameterChoice(name, (0, 1), 0, "1: sizes are constants, with a build for each workload")
    plan = planned(draft, context, bake=choice)
    if isinstance(plan, str):
        return plan
    if not Baked.of(plan).sizes:
        return "no length or stride of a row is an argument that follows from the problem's sizes"
    prefer = with_wide(draft, context, name)
    if (divide := draft.schedule.divide) is not None:  # by a constant the compiler divides cheaply itself
        prefer.append(("bake_or_divide", f"{name} == 0 or {divide.name} == {divide.default}"))
    answers = [(Remedy.BAKE_SIZES, f"{name} == 1"), (Remedy.CHEAP_DIVISION, f"{name} == 1")]
    return extend(draft, "bake", choice, prefer, answers)


# -- what only steers the compiler: unrolling, bounds, registers, flags


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
    found = register_cap(context, name)
    if isinstance(found, str):
        return found
    prefer = one_at_a_time(draft, context, name, NO_CAP)
    if draft.schedule.persistent is not None:
        prefer.append(("regs_persist", f"{name} == {NO_CAP} or {draft.schedule.persistent.name} == 0"))
    answers = [(Remedy.REGISTER_CAP, f"{name} < {NO_CAP}")]
    changed = replace(draft, build_flags=(*draft.build_flags, found[1]))
    return extend(changed, "registers", found[0], prefer, answers)


@move("flags", (Remedy.COMPILER_FLAGS,), "LEVEL")
def flags(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """What the assembler may be asked: how hard it should try to save registers."""
    found = saving_level(context, name)
    if isinstance(found, str):
        return found
    prefer = one_at_a_time(draft, context, name, AS_TODAY)
    answers = [(Remedy.COMPILER_FLAGS, f"{name} != {AS_TODAY}")]
    changed = replace(draft, build_flags=(*draft.build_flags, found[1]))
    return extend(changed, "flags", found[0], prefer, answers)
