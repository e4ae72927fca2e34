"""The move `split`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import all_loops, is_map, loops
from tunesmith.problem.template import Remedy


@move(
    "split",
    needs="no totals, nothing staged between loops",
    turn="sharing",
    remedies=(Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS),
    places=all_loops,
    SPLIT="1: a task's elements are spread over several blocks",
)
def split(draft: TemplateDraft, _context: Context, name: str) -> TemplateDraft | str:
    """A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""
    kernel = draft.kernel
    if not is_map(kernel):
        totals = [total.name for loop in loops(kernel) for total in loop.totals]
        what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
        return f"a task has to stay in one block: {what} is known to its own threads alone"
    if not kernel.tasks or not loops(kernel):
        return "the loop is spread over the whole grid already"
    if "lanes" not in draft.schedule:
        return "a task is one thread's work"
    return extend(draft, "split", ParameterChoice(name, (0, 1), 0))
