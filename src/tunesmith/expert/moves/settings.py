"""Moves that only steer the compiler: unrolling, bounds, registers, flags."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource.nodes import For
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.local.moves import AS_TODAY, CAPS, NO_CAP
from tunesmith.expert.moves.packing import one_at_a_time
from tunesmith.expert.moves.port import Context, NotApplicable, extend, product
from tunesmith.expert.moves.shape import inner_loops
from tunesmith.expert.writing.sites import counted
from tunesmith.problem.template import Remedy

SHORT = 16  # turns: such a loop is unrolled whole by the writer


class Unroll:
    """Unrolling of the loops inside a body, which every thread runs for itself."""

    name = "unroll"
    remedies = (Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT)
    parameters = ("UNROLL",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        found = inner_loops(draft.kernel)
        if not found:
            return NotApplicable("no thread runs a loop of its own inside a turn")
        if all(loop.unroll is not None or is_short(loop) for loop in found):
            return NotApplicable(
                "every inner loop has a pragma of its own, or is short and unrolled whole anyway"
            )
        name = context.macro("UNROLL")
        # PoCL's compiler refuses 0, which CUDA's takes for "as you like".
        values = (1, 2, 4, 8) if context.language == "opencl" else (0, 1, 2, 4, 8)
        return extend(
            draft,
            self,
            {
                "unroll": ParameterChoice(
                    name, values, values[0], "turns of an inner loop at once; 0: as the compiler likes"
                )
            },
            answers=[(Remedy.UNROLL, f"{name} > 1"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")],
        )


def is_short(loop: For) -> bool:
    count = counted(loop)
    return count is not None and count[1] <= SHORT


class Bounds:
    """`__launch_bounds__`: the compiler learns the block's size, and how many blocks must fit."""

    name = "bounds"
    remedies = (Remedy.LAUNCH_BOUNDS,)
    parameters = ("BOUNDS",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if context.language != "cuda":
            return NotApplicable(f"{context.language} has no bound on blocks to a compute unit")
        name, schedule = context.macro("BOUNDS"), draft.schedule
        threads = product(schedule.lanes, schedule.tasks)
        most = context.device.limits.threads_per_sm or 2048
        prefer = [("bounds_fit", f"{name} == 1 or {name} * {threads} <= {most}")]
        if schedule.persistent is not None:
            prefer.append(("bounds_persist", f"{name} == 1 or {schedule.persistent.name} == 0"))
        prefer += one_at_a_time(draft, context, name, 1)
        return extend(
            draft,
            self,
            {
                "bounds": ParameterChoice(
                    name, (1, 2, 4), 1, "blocks that must fit on a multiprocessor at once"
                )
            },
            prefer=prefer,
            answers=[(Remedy.LAUNCH_BOUNDS, f"{name} > 1")],
        )


class Registers:
    """A cap on registers: more threads on a multiprocessor, at the risk of spills."""

    name = "registers"
    remedies = (Remedy.REGISTER_CAP,)
    parameters = ("REGS",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if context.language != "cuda":
            return NotApplicable(f"no flag caps registers in {context.language}")
        if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
            return NotApplicable("the problem's own flags cap registers already")
        name = context.macro("REGS")
        prefer = one_at_a_time(draft, context, name, NO_CAP)
        if draft.schedule.persistent is not None:
            prefer.append(("regs_persist", f"{name} == {NO_CAP} or {draft.schedule.persistent.name} == 0"))
        return extend(
            draft,
            self,
            {"registers": ParameterChoice(name, CAPS, NO_CAP, "registers of a thread, at most")},
            prefer=prefer,
            answers=[(Remedy.REGISTER_CAP, f"{name} < {NO_CAP}")],
        )


class FlagsMove:
    """What the assembler may be asked: how hard it should try to save registers."""

    name = "flags"
    remedies = (Remedy.COMPILER_FLAGS,)
    parameters = ("LEVEL",)

    def apply(self, draft: TemplateDraft, context: Context) -> TemplateDraft | NotApplicable:
        if context.language != "cuda":
            return NotApplicable(f"no build flag of {context.language} takes a number that tunes")
        name = context.macro("LEVEL")
        flag = f"-Xptxas=--register-usage-level={{{name}}}"
        return extend(
            replace(draft, build_flags=(*draft.build_flags, flag)),
            self,
            {"flags": ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY, "how hard ptxas saves registers")},
            prefer=one_at_a_time(draft, context, name, AS_TODAY),
            answers=[(Remedy.COMPILER_FLAGS, f"{name} != {AS_TODAY}")],
        )
