"""The move `split`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move, product
from tunesmith.expert.passes.shape import all_loops, is_map, loops, shape_of, term
from tunesmith.problem.template import Remedy


@move(
    "split",
    needs="no totals, nothing staged between loops",
    turn="sharing",
    remedies=(Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS),
    places=all_loops,
    SPLIT="1: a task's elements are spread over several blocks",
)
def split(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""
    kernel, schedule = draft.kernel, draft.schedule
    if not is_map(kernel):
        totals = [total.name for loop in loops(kernel) for total in loop.totals]
        what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
        return f"a task has to stay in one block: {what} is known to its own threads alone"
    if not kernel.tasks or not loops(kernel):
        return "the loop is spread over the whole grid already"
    if "lanes" not in schedule:
        return "a task is one thread's work"
    shape = shape_of(draft, context)
    prefer = []
    if "tasks" in schedule:
        prefer.append(("split_rows_are_long", f"{name} == 0 or {schedule['tasks'].name} == 1"))
    if shape.extent:
        taken = product(schedule, "lanes", "vector", "items")
        prefer += _worthwhile(name, taken, term(shape.extent), schedule)
    choice = ParameterChoice(name, (0, 1), 0, "1: a task's elements are spread over several blocks")
    answers = [(Remedy.SPLIT_ROWS, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")]
    return extend(draft, "split", choice, prefer, answers)


def _worthwhile(name: str, taken: str, whole: str, schedule: Schedule) -> list[tuple[str, str]]:
    """`taken`: elements that a block takes at once; `whole`: those of a task."""
    beside = schedule.get("beside")
    if beside is None:
        return [("something_to_split", f"{name} == 0 or {taken} < {whole}")]
    # Loops apart leave blocks idle in the shorter one. As one they may also be one block's without any loop:
    # then loads that wait for nothing go ahead of those that do.
    several = f" or {schedule['tasks'].name} > 1" if "tasks" in schedule else ""
    return [
        ("split_as_one", f"{name} == 0 or {beside.name} == 1 and {taken} < 2 * {whole}"),
        ("no_loop_of_one_turn", f"{beside.name} == 0 or {name} == 1 or {taken} < {whole}{several}"),
    ]
