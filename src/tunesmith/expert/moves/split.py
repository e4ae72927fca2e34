"""A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft, Schedule
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.port import Context, Refused, extend, product
from tunesmith.expert.moves.shape import is_map, loops, shape_of


class Split:
    name = "split"
    remedies = (Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS)
    parameters = ("SPLIT",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel, schedule = draft.kernel, draft.schedule
        if not is_map(kernel):
            totals = [total.name for loop in loops(kernel) for total in loop.totals]
            what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
            return Refused(f"a task has to stay in one block: {what} is known to its own threads alone")
        if not kernel.tasks or not loops(kernel):
            return Refused("the loop is spread over the whole grid already")
        if schedule.lanes is None:
            return Refused("a task is one thread's work")
        shape = shape_of(draft, context)
        name = context.macro("SPLIT")
        prefer = []
        if schedule.tasks is not None:
            prefer.append(("split_rows_are_long", f"{name} == 0 or {schedule.tasks.name} == 1"))
        if shape.extent:
            taken = product(schedule.lanes, schedule.vector, schedule.items)
            prefer += _worthwhile(name, taken, term(shape.extent), schedule)
        return extend(
            draft,
            self,
            {"split": Choice(name, (0, 1), 0, "1: a task's elements are spread over several blocks")},
            prefer=prefer,
            answers=[(Remedy.SPLIT_ROWS, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")],
        )


def _worthwhile(name: str, taken: str, whole: str, schedule: Schedule) -> list[tuple[str, str]]:
    """`taken`: elements that a block takes at once; `whole`: those of a task."""
    beside = schedule.beside
    if beside is None:
        return [("something_to_split", f"{name} == 0 or {taken} < {whole}")]
    # Loops apart leave blocks idle in the shorter one. As one they may also be one block's without any loop:
    # then loads that wait for nothing go ahead of those that do.
    several = f" or {schedule.tasks.name} > 1" if schedule.tasks is not None else ""
    return [
        ("split_as_one", f"{name} == 0 or {beside.name} == 1 and {taken} < 2 * {whole}"),
        ("no_loop_of_one_turn", f"{beside.name} == 0 or {name} == 1 or {taken} < {whole}{several}"),
    ]
