"""The move `registers`, on the model and on the text."""

from __future__ import annotations

from typing import Any

from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.passes.port import Context, move
from tunesmith.expert.passes.settings import EitherDraft, on_text, with_flag
from tunesmith.problem.template import Remedy

NO_CAP = 255  # registers: all that a thread can have


@move(
    "registers",
    needs="CUDA; no cap in the problem's flags",
    turn="compiler",
    of_file=True,
    remedies=(Remedy.REGISTER_CAP,),
    REGS="registers of a thread, at most",
)
def registers(draft: EitherDraft, context: Context, name: str) -> Any:  # a draft of the same kind, or why not
    """A cap on registers: more threads on a multiprocessor, at the risk of spills."""
    if not context.flags.register_cap:
        return f"no flag caps registers in {context.language}"
    if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
        return "the problem's own flags cap registers already"
    choice = ParameterChoice(name, (32, 64, 128, NO_CAP), NO_CAP)
    return with_flag(draft, "registers", choice, context.flags.register_cap)


registers_text = on_text(registers, "languages other than CUDA; a cap in the problem's flags")
