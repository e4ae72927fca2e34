"""Moves on what is computed: cheaper operations in place of exact or general ones."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.packing import planned, with_wide
from tunesmith.expert.moves.port import Context, extend, move
from tunesmith.expert.moves.shape import fast_forms, index_divisions
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
