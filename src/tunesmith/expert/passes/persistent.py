"""The move `persistent`."""

from __future__ import annotations

from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import is_alone
from tunesmith.problem.template import Remedy


@move(
    "persistent",
    needs="a GPU; a kernel that is told how many tasks there are",
    turn="anywhere",
    remedies=(Remedy.PERSISTENT_GRID,),
    PERSIST="blocks to a multiprocessor that go on; 0: a block ends",
)
def persistent(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A grid of as many blocks as the device holds, each going on to further work: no last wave."""
    if context.on_cpu:
        return "a CPU takes up work-groups as they come: there are no waves to fill"
    if is_alone(draft.kernel):
        return "there is one task in all: no block could go on to another"
    if any(word.startswith("gridDim") for task in draft.kernel.tasks for word in names_in(task.extent)):
        return "the kernel is not told how many tasks there are: no block could know when to stop"
    return extend(draft, "persistent", ParameterChoice(name, (0, 1, 2, 4, 8), 0))
