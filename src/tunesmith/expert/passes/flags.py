"""The move `flags`, on the model and on the text."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import LocalDraft
from tunesmith.expert.passes.port import Context, move
from tunesmith.expert.passes.settings import FlagChoice, text_with_flag, with_flag
from tunesmith.problem.template import Remedy


@move(
    "flags",
    needs="CUDA",
    turn="compiler",
    remedies=(Remedy.COMPILER_FLAGS,),
    LEVEL="how hard ptxas saves registers",
)
def flags(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """What the assembler may be asked: how hard it should try to save registers."""
    return with_flag(draft, "flags", saving_level(context, name))


@move(
    "flags",
    needs="languages other than CUDA",
    turn="compiler",
    remedies=(Remedy.COMPILER_FLAGS,),
    LEVEL="how hard ptxas saves registers",
)
def flags_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """What the assembler may be asked: how hard it should try to save registers."""
    return text_with_flag(draft, "flags", saving_level(context, name))


AS_TODAY = 5  # ptxas's own default, of 0 to 10


def saving_level(context: Context, name: str) -> FlagChoice | str:
    """The same of a flag that says how hard the assembler should try."""
    if not context.flags.register_level:
        return f"no build flag of {context.language} takes a number that tunes"
    choice = ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY)
    return choice, context.flags.register_level.format(f"{{{name}}}")
