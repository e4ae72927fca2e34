"""A kernel that was read, with as many of a task's moves as go together: a draft, and its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tunesmith.base.errors import BadInput
from tunesmith.expert.moves import MOVES, PARAMETERS
from tunesmith.expert.moves.move import Context
from tunesmith.expert.read.model import KernelModel, ParameterChoice, TemplateDraft, handed_to
from tunesmith.expert.write import Unwritable, render_draft
from tunesmith.expert.write.page import unused_choices
from tunesmith.problem.default_rules import usual_name
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Refactoring
from tunesmith.source.tree import Unreadable

BASE = ("lanes", "tasks")  # the writer needs these to share the work as the original does
Refusals = list[tuple[str, str]]
Page = tuple[str, TemplateDraft, Refusals]  # the template written, and moves that did not apply


def at_line(line: int) -> str:
    return f" (line {line})" if line else ""


def best_page(task: Refactoring, context: Context, kernel: KernelModel) -> Page | str:
    """With as many of the task's moves as go together; why none can be written."""
    wanted = [move.name for move in MOVES if move.name in task.moves]
    refused = not_here(task, [move.name for move in MOVES])
    while True:
        page = _write_page(task, context, kernel, wanted)
        if not isinstance(page, str):
            text, draft, not_applied = page
            idle = _without_effect(draft, text)
            if not idle:
                return text, draft, not_applied + refused
            refused += [(name, "the kernel as it is printed would not depend on it") for name in idle]
            wanted = [name for name in wanted if name not in idle]
        elif wanted and not isinstance(_write_page(task, context, kernel, []), str):
            dropped = _find_culprit(task, context, kernel, wanted)
            refused.append((dropped, f"with it {page}"))
            wanted.remove(dropped)
        else:
            return page


def _write_page(task: Refactoring, context: Context, kernel: KernelModel, wanted: list[str]) -> Page | str:
    """The template with these moves, or why there is none."""
    try:
        draft, refused = _apply_moves(kernel, wanted, context)
        draft = _with_choices(draft, lambda _, choice: left_out(choice, task.without))
        text = render_draft(draft, context.problem)
        if draft.moves and not _without_effect(draft, text):
            parse_template(text, path=context.problem.kernel.path, problem=context.problem)
    except (Unreadable, Unwritable) as error:
        where = at_line(error.line) if isinstance(error, Unreadable) else ""
        return f"the kernel was read, and cannot be written: {error.reason}{where}"
    except BadInput as error:
        return f"the template was written, and cannot be read again: {error}"
    return text, draft, refused


def _find_culprit(task: Refactoring, context: Context, kernel: KernelModel, wanted: list[str]) -> str:
    """The last move without which the rest can be written; the last of all where there is none."""
    for name in reversed(wanted):
        others = [other for other in wanted if other != name]
        if not isinstance(_write_page(task, context, kernel, others), str):
            return name
    return wanted[-1]


def _apply_moves(kernel: KernelModel, wanted: list[str], context: Context) -> tuple[TemplateDraft, Refusals]:
    order = handed_to(kernel.function, bool(context.problem.launches[0].pdl))
    draft, refused = TemplateDraft(kernel, number=context.number, order=order), list[tuple[str, str]]()
    for move in MOVES:
        if move.name not in wanted and move.name not in BASE:
            continue
        result = move.apply(draft, context)
        if not isinstance(result, str):
            draft = result if move.name in wanted else _pin_defaults(result, draft)
        elif move.name in wanted:
            refused.append((move.name, result))
    return draft, refused


def _without_effect(draft: TemplateDraft, text: str) -> tuple[str, ...]:
    """Moves of which a parameter is not declared, or nowhere in the code, the launch or the flags."""
    idle = {usual_name(choice.name)[0] for choice in unused_choices(draft.schedule.choices, text)}
    return tuple(m for m in draft.moves if m not in BASE and idle.intersection(PARAMETERS[m]))


def _pin_defaults(draft: TemplateDraft, before: TemplateDraft) -> TemplateDraft:
    """A move that was not asked for, at its default: what the writer needs, with nothing to search."""

    def pinned(role: str, choice: ParameterChoice) -> ParameterChoice:
        return choice if role in before.schedule else replace(choice, values=(choice.default,))

    return replace(_with_choices(draft, pinned), moves=before.moves)


def _with_choices(
    draft: TemplateDraft, change: Callable[[str, ParameterChoice], ParameterChoice]
) -> TemplateDraft:
    """Each choice, with its role, passed through `change`."""
    found = {role: change(role, choice) for role, choice in draft.schedule.items()}
    return replace(draft, schedule=draft.schedule.having(**found))


def left_out(choice: ParameterChoice, without: tuple[tuple[str, int], ...]) -> ParameterChoice:
    """The choice less the values that proved wrong; its default stays, or something must be left."""
    wrong = {value for name, value in without if name == choice.name}
    values = tuple(value for value in choice.values if value not in wrong) or (choice.default,)
    return replace(choice, values=values, default=choice.default if choice.default in values else values[0])


def sort_refusals(refused: Refusals) -> tuple[tuple[str, str], ...]:
    """In the order of the moves, whatever the task's was."""
    order = list(PARAMETERS)
    return tuple(sorted(refused, key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def not_here(
    task: Refactoring, known: list[str], why: str = "it edits the text of kernels that cannot be read"
) -> Refusals:
    return [(name, why) for name in task.moves if name not in known]
