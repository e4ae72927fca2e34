"""`__restrict__` on pointers whose arrays the contract keeps apart: loads need not wait for stores."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import Edit, LocalDraft, add
from tunesmith.expert.moves.port import Context, Refused


class Restrict:
    name = "restrict"
    remedies = (Remedy.ITEMS_IN_FLIGHT, Remedy.HOIST_INVARIANTS)
    parameters = ("RESTRICT",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        problem = context.problem
        shared = {a.alias for a in problem.arguments if a.alias} | {
            a.name for a in problem.arguments if a.alias
        }
        # The launch names the arguments in the kernel's order, whatever the kernel calls them.
        args = draft.launches[0].launch.args
        if len(draft.launches) > 1:
            return Refused("the kernel is launched more than once, perhaps with other arrays each time")
        arrays = [name for name in args if problem.argument(name).is_array]
        if len(arrays) != len(draft.site.pointers):
            return Refused(f"not every pointer of {draft.site.name} is written as one in its header")
        apart = [
            pointer
            for pointer, array in zip(draft.site.pointers, arrays, strict=True)
            if array not in shared and not pointer.restrict
        ]
        spelled = "restrict" if context.language == "opencl" else "__restrict__"
        if not apart:
            return Refused(f"every pointer is {spelled} already, or may share memory with another (alias)")
        parameter, word = context.macro("RESTRICT"), context.macro("NO_ALIAS")
        return add(
            draft,
            self,
            Choice(parameter, (0, 1), 0, f"1: pointers are {spelled}, as the contract allows"),
            edits=tuple(Edit(pointer.at, f"{word} ") for pointer in apart),
            preamble=(f"#if {parameter}", f"#define {word} {spelled}", "#else", f"#define {word}", "#endif"),
            answers=((Remedy.HOIST_INVARIANTS, f"{parameter} == 1"),),
        )
