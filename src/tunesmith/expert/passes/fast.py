"""The move `fast`, on the model and on the text."""

from __future__ import annotations

import re

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import LocalDraft, add
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import fast_forms
from tunesmith.problem.template import Remedy


@move(
    "fast",
    needs="a function or quotient of floats with a fast form; no `-use_fast_math` yet",
    turn="anywhere",
    remedies=(Remedy.FAST_INTRINSICS, Remedy.FP32_LITERALS),
    places=lambda draft, context: ", ".join(fast_forms(draft.kernel, context.language).functions),
    FAST="1: fast forms",
)
def fast(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Fast intrinsics in place of library functions and divisions: a parameter, judged by the oracle."""
    if "use_fast_math" in " ".join(context.problem.kernel.flags):
        return "-use_fast_math is among the problem's flags: the intrinsics are used already"
    found = fast_forms(draft.kernel, context.language).functions
    if not found:
        return "no function or division of floats has a fast form here"
    choice = ParameterChoice(name, (0, 1), 0, f"1: fast forms of {', '.join(found)}")
    return extend(draft, "fast", choice)


CUDA = ("__", ("expf", "exp10f", "logf", "log2f", "log10f", "sinf", "cosf", "tanf", "powf"))
OPENCL = ("native_", ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "powr"))


@move(
    "fast",
    needs="functions called with their namespace, or defined by the source; `-use_fast_math`",
    turn="anywhere",
    of_file=True,
    remedies=(Remedy.FAST_INTRINSICS,),
    FAST="1: functions of the special-function unit",
)
def fast_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """Fast intrinsics in place of library functions, by macros behind the includes: judged by the oracle."""
    if "use_fast_math" in " ".join(context.problem.kernel.flags):
        return "-use_fast_math is among the problem's flags: the intrinsics are used already"
    prefix, known = OPENCL if context.language == "opencl" else CUDA
    text = draft.site.text
    used = [word for word in known if re.search(rf"(?<![\w.>]){word}\s*\(", text)]
    if not used:
        return "no function is called that has a fast form"
    if qualified := [word for word in used if re.search(rf"::\s*{word}\s*\(", text)]:
        return f"{qualified[0]} is called with its namespace, where a macro cannot replace it"
    if own := [word for word in used if re.search(rf"\b(?:float|double)\s+{word}\s*\(", text)]:
        return f"the source has a function of its own called {own[0]}"
    macros = [f"#define {word} {prefix}{word}" for word in used]
    return add(
        draft,
        "fast",
        ParameterChoice(name, (0, 1), 0),
        after_includes=(f"#if {name}", *macros, "#endif"),
    )
