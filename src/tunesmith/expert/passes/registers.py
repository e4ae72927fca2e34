"""The move `registers`, on the model and on the text."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import LocalDraft
from tunesmith.expert.passes.port import Context, move
from tunesmith.expert.passes.settings import FlagChoice, text_with_flag, with_flag
from tunesmith.problem.template import Remedy


@move(
    "registers",
    needs="CUDA; no cap in the problem's flags",
    turn="compiler",
    remedies=(Remedy.REGISTER_CAP,),
    REGS="registers of a thread, at most",
)
def registers(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A cap on registers: more threads on a multiprocessor, at the risk of spills."""
    return with_flag(draft, "registers", register_cap(context, name))


@move(
    "registers",
    needs="languages other than CUDA; a cap in the problem's flags",
    turn="compiler",
    remedies=(Remedy.REGISTER_CAP,),
    REGS="registers of a thread, at most",
)
def registers_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """A cap on registers for the whole file: more threads on a multiprocessor, at the risk of spills."""
    return text_with_flag(draft, "registers", register_cap(context, name))


NO_CAP = 255  # registers: all that a thread can have


def register_cap(context: Context, name: str) -> FlagChoice | str:
    """For a draft of either kind; or why registers are not capped."""
    if not context.flags.register_cap:
        return f"no flag caps registers in {context.language}"
    if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
        return "the problem's own flags cap registers already"
    choice = ParameterChoice(name, (32, 64, 128, NO_CAP), NO_CAP)
    return choice, context.flags.register_cap.format(f"{{{name}}}")
