"""The move `restrict`, on the text."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.passes.local_draft import Edit, LocalDraft, add
from tunesmith.expert.passes.port import Context, move
from tunesmith.expert.passes.settings import switched
from tunesmith.problem.template import Remedy


def _places(draft: LocalDraft, _context: Context) -> str:
    return f"pointers {', '.join(pointer.name for pointer in draft.site.pointers if not pointer.restrict)}"


@move(
    "restrict",
    needs="arrays that `alias` others; a kernel that is launched several times",
    turn="seldom",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.HOIST_INVARIANTS),
    places=_places,
    RESTRICT="1: pointers are `restrict`, as the contract allows",
)
def restrict(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__restrict__` on pointers whose arrays the contract keeps apart: loads need not wait for stores."""
    problem = context.problem
    shared = {name for a in problem.arguments if a.alias for name in (a.alias, a.name)}
    # The launch names the arguments in the kernel's order, whatever the kernel calls them.
    args = draft.launches[0].launch.args
    if len(draft.launches) > 1:
        return "the kernel is launched more than once, perhaps with other arrays each time"
    if draft.launches[0].launch.pdl:
        return "the launch overlaps (pdl): a compiler might move loads before the wait for the one ahead"
    arrays = [word for word in args if problem.argument(word).is_array]
    if len(arrays) != len(draft.site.pointers):
        return f"not every pointer of {draft.site.name} is written as one in its header"
    pairs = zip(draft.site.pointers, arrays, strict=True)
    apart = [pointer for pointer, array in pairs if array not in shared and not pointer.restrict]
    spelled = "restrict" if context.language == "opencl" else "__restrict__"
    if not apart:
        return f"every pointer is {spelled} already, or may share memory with another (alias)"
    word = context.macro("NO_ALIAS")
    return add(
        draft,
        "restrict",
        ParameterChoice(name, (0, 1), 0),
        edits=tuple(Edit(pointer.at, f"{word} ") for pointer in apart),
        preamble=switched(name, word, spelled),
    )
