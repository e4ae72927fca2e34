"""The move `persistent`."""

from __future__ import annotations

from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move, product
from tunesmith.expert.passes.shape import shape_of, term
from tunesmith.problem.template import Remedy

FEWEST_THREADS = 512  # on a multiprocessor: fewer cannot hide the latency of their loads


@move(
    "persistent",
    needs="a GPU; a kernel that is told how many tasks there are",
    turn="anywhere",
    remedies=(Remedy.PERSISTENT_GRID,),
    PERSIST="blocks to a multiprocessor that go on; 0: a block ends with its tasks",
)
def persistent(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A grid of as many blocks as the device holds, each going on to further work: no last wave."""
    schedule = draft.schedule
    if context.on_cpu:
        return "a CPU takes up work-groups as they come: there are no waves to fill"
    if any(word.startswith("gridDim") for task in draft.kernel.tasks for word in names_in(task.extent)):
        return "the kernel is not told how many tasks there are: no block could know when to stop"
    shape = shape_of(draft, context)
    threads = product(schedule, "lanes", "tasks")
    most = context.device.limits.threads_per_sm or 2048
    room = f"{FEWEST_THREADS} <= {name} * {threads} <= {most}"
    prefer = [("room_to_persist", f"{name} == 0 or {room}")]
    if draft.kernel.tasks:
        work, each = shape.tasks, product(schedule, "tasks")
    else:
        work, each = (
            shape.extent,
            product(schedule, "lanes", "vector", "items"),
        )
    if work:
        prefer.append(("many_to_go_on", f"{name} == 0 or {term(work)} >= 2 * {name} * {each} * device.sms"))
    note = "blocks to a multiprocessor that go on; 0: a block ends with its tasks"
    choice = ParameterChoice(name, (0, 1, 2, 4, 8), 0, note)
    answers = [(Remedy.PERSISTENT_GRID, f"{name} > 0")]
    return extend(draft, "persistent", choice, prefer, answers)
