"""Moves on what is computed: cheaper operations in place of exact or general ones."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.packing import planned, with_wide
from tunesmith.expert.moves.port import Context, NotApplicable, extend
from tunesmith.expert.moves.shape import fast_forms, index_divisions
from tunesmith.expert.writing.rules import Baked
from tunesmith.problem.template import Remedy


class Reciprocal:
    """Multiplication by a reciprocal in place of divisions by one number: a parameter, judged
    by the oracle.
    """

    name = "reciprocal"
    remedies = (Remedy.RECIPROCAL, Remedy.HOIST_INVARIANTS)
    parameters = ("RECIP",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if not fast_forms(draft.kernel, context.language).by_invariants:
            return NotApplicable("no float is divided by what is the same for a whole loop")
        name = context.macro("RECIP")
        note = "divisions by one number: 0 as they are, 1 products, 2 products set right by their remainder"
        return extend(
            draft,
            self,
            {"reciprocal": ParameterChoice(name, (0, 1, 2), 0, note, categorical=True)},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.RECIPROCAL, f"{name} > 0"), (Remedy.HOIST_INVARIANTS, f"{name} > 0")],
        )


class Fast:
    """Fast intrinsics in place of library functions and divisions: a parameter, judged by the oracle."""

    name = "fast"
    remedies = (Remedy.FAST_INTRINSICS, Remedy.FP32_LITERALS)
    parameters = ("FAST",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if "use_fast_math" in " ".join(context.problem.kernel.flags):
            return NotApplicable(
                "-use_fast_math is among the problem's flags: the intrinsics are used already"
            )
        found = fast_forms(draft.kernel, context.language).functions
        if not found:
            return NotApplicable("no function or division of floats has a fast form here")
        name = context.macro("FAST")
        return extend(
            draft,
            self,
            {"fast": ParameterChoice(name, (0, 1), 0, f"1: fast forms of {', '.join(found)}")},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.FAST_INTRINSICS, f"{name} == 1")],
        )


class Divide:
    """Cheaper index division: the integer divisions of a loop by what does not change in it."""

    name = "divide"
    remedies = (Remedy.CHEAP_DIVISION,)
    parameters = ("DIVIDE",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if context.language == "opencl":
            return NotApplicable("cheaper divisions are known for cuda and hip alone")
        if not index_divisions(draft.kernel):
            return NotApplicable("no index is divided by a number that only the call knows")
        name = context.macro("DIVIDE")
        note = "index divisions: 1: shifts, divisors are powers of two; 2: products with a reciprocal"
        return extend(
            draft,
            self,
            {"divide": ParameterChoice(name, (0, 1, 2), 0, note)},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.CHEAP_DIVISION, f"{name} > 0")],
        )


class Bake:
    """Sizes as constants of the build: one build for each workload's sizes, the original for all others."""

    name = "bake"
    remedies = (Remedy.BAKE_SIZES, Remedy.CHEAP_DIVISION, Remedy.UNROLL)
    parameters = ("BAKE",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        name = context.macro("BAKE")
        choice = ParameterChoice(name, (0, 1), 0, "1: sizes are constants, with a build for each workload")
        plan = planned(draft, context, {"bake": choice})
        if isinstance(plan, str):
            return NotApplicable(plan)
        if not Baked.of(plan).sizes:
            return NotApplicable(
                "no length or stride of a row is an argument that follows from the problem's sizes"
            )
        prefer = with_wide(draft, context, name)
        if (divide := draft.schedule.divide) is not None:  # by a constant the compiler divides cheaply itself
            prefer.append(("bake_or_divide", f"{name} == 0 or {divide.name} == {divide.default}"))
        return extend(
            draft,
            self,
            {"bake": choice},
            prefer=prefer,
            answers=[(Remedy.BAKE_SIZES, f"{name} == 1"), (Remedy.CHEAP_DIVISION, f"{name} == 1")],
        )
