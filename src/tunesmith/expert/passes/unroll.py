"""The move `unroll`, on the model and on the text."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import Edit, LocalDraft, add
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import inner_loops, named_lines
from tunesmith.expert.writing.loops import is_short
from tunesmith.problem.template import Remedy


def _places(draft: TemplateDraft, _context: Context) -> str:
    own = [loop for loop in inner_loops(draft.kernel) if loop.unroll is None and not is_short(loop)]
    return f"inner loops, {named_lines(loop.line for loop in own)}"


def _text_places(draft: LocalDraft, _context: Context) -> str:
    return f"inner loops, {named_lines(loop.line for loop in draft.site.inner_loops if not loop.marked)}"


@move(
    "unroll",
    needs="an inner loop of more than 16 turns, or of a number not known",
    turn="compiler",
    remedies=(Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT),
    places=_places,
    UNROLL="turns of an inner loop at once; 0: as the compiler likes",
)
def unroll(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Unrolling of the loops inside a body, which every thread runs for itself."""
    found = inner_loops(draft.kernel)
    if not found:
        return "no thread runs a loop of its own inside a turn"
    if all(loop.unroll is not None or is_short(loop) for loop in found):
        return "every inner loop has a pragma of its own, or is short and unrolled whole anyway"
    # PoCL's compiler refuses 0, which CUDA's takes for "as you like".
    values = (1, 2, 4, 8) if context.language == "opencl" else (0, 1, 2, 4, 8)
    return extend(draft, "unroll", ParameterChoice(name, values, values[0]))


@move(
    "unroll",
    needs="loops with a pragma",
    turn="compiler",
    remedies=(Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT),
    places=_text_places,
    UNROLL="turns of an inner loop at once; 0: as it is",
)
def unroll_text(draft: LocalDraft, _context: Context, name: str) -> LocalDraft | str:
    """Unroll pragmas on the kernel's inner loops."""
    loops = [loop for loop in draft.site.inner_loops if not loop.marked]
    if not loops:
        return f"{draft.site.name} has no inner loop without a pragma of its own"
    pragma = f"#if {name}\n#pragma unroll {name}\n#endif\n"
    return add(
        draft,
        "unroll",
        ParameterChoice(name, (0, 1, 2, 4, 8), 0),
        edits=tuple(_above(draft.site.text, loop.at, pragma) for loop in loops),
    )


def _above(text: str, at: int, lines: str) -> Edit:
    """Lines above the one that begins at a place, or between it and what stands before it there."""
    start = text.rfind("\n", 0, at) + 1
    return Edit(at, f"\n{lines}") if text[start:at].strip() else Edit(start, lines)
