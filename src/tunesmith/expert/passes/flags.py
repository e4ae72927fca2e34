"""The move `flags`, on the model and on the text."""

from __future__ import annotations

from typing import Any

from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.passes.port import Context, move
from tunesmith.expert.passes.settings import EitherDraft, on_text, with_flag
from tunesmith.problem.template import Remedy

AS_TODAY = 5  # ptxas's own default, of 0 to 10


@move(
    "flags",
    needs="CUDA",
    turn="compiler",
    of_file=True,
    remedies=(Remedy.COMPILER_FLAGS,),
    LEVEL="how hard ptxas saves registers",
)
def flags(draft: EitherDraft, context: Context, name: str) -> Any:  # a draft of the same kind, or why not
    """What the assembler may be asked: how hard it should try to save registers."""
    if not context.flags.register_level:
        return f"no build flag of {context.language} takes a number that tunes"
    choice = ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY)
    return with_flag(draft, "flags", choice, context.flags.register_level)


flags_text = on_text(flags, "languages other than CUDA")
