"""Fast intrinsics in place of library functions, by macros behind the includes: judged by the oracle."""

from __future__ import annotations

import re

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import LocalDraft, add
from tunesmith.expert.moves.port import Context, Refused

CUDA = {
    name: f"__{name}"
    for name in ("expf", "exp10f", "logf", "log2f", "log10f", "sinf", "cosf", "tanf", "powf")
}
OPENCL = {
    name: f"native_{name}" for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "powr")
}


class LocalFast:
    name = "fast"
    remedies = (Remedy.FAST_INTRINSICS,)
    parameters = ("FAST",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        if "use_fast_math" in " ".join(context.problem.kernel.flags):
            return Refused("-use_fast_math is among the problem's flags: the intrinsics are used already")
        table = OPENCL if context.language == "opencl" else CUDA
        text = draft.site.text
        used = [name for name in table if re.search(rf"(?<![\w.>]){name}\s*\(", text)]
        if not used:
            return Refused("no function is called that has a fast form")
        if qualified := [name for name in used if re.search(rf"::\s*{name}\s*\(", text)]:
            return Refused(f"{qualified[0]} is called with its namespace, where a macro cannot replace it")
        if own := [name for name in used if re.search(rf"\b(?:float|double)\s+{name}\s*\(", text)]:
            return Refused(f"the source has a function of its own called {own[0]}")
        parameter = context.macro("FAST")
        macros = [f"#define {name} {table[name]}" for name in used]
        return add(
            draft,
            self,
            Choice(parameter, (0, 1), 0, "1: functions of the special-function unit"),
            after_includes=(f"#if {parameter}", *macros, "#endif"),
            answers=((Remedy.FAST_INTRINSICS, f"{parameter} == 1"),),
        )
