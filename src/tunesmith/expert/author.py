"""The expert as an author: a kernel in, a template out, with no model and no randomness.

The kernel is read, the task's moves are applied to what was read, and the writer prints the result. A kernel
that cannot be read as tasks and steps keeps its own text and gets the local moves alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Unreadable
from tunesmith.errors import BadInput
from tunesmith.expert.model.kernel import KernelModel, NotReadable, ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, PARAMETERS, Context
from tunesmith.expert.moves.local import find_site, start, template_text
from tunesmith.expert.writing import Unwritable, write
from tunesmith.problem import languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.template_source import WORD, find_block, used_words
from tunesmith.run.ports import Declined, Refactoring, Written

BASE = ("lanes", "tasks")  # the writer needs these to share the work as the original does
_USING = ("[defines]", "[build]", "[launch]")  # tables whose words are uses
_Refusals = list[tuple[str, str]]


class ExpertAuthor:
    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        context = Context(problem, device)
        if not languages.named(problem.kernel.language).is_c_family:
            read_ones = ", ".join(one.name for one in languages.known() if one.is_c_family)
            return Declined(f"the expert reads {read_ones}, not {problem.kernel.language}")
        reading = read(problem)
        if isinstance(reading, str):
            return _local(task, context, reading)
        return _template(task, context, reading)

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Moves that apply to the kernel, and those that do not with the reason."""
        every = tuple(PARAMETERS)
        written = self.write(Refactoring(every), problem, device)
        if isinstance(written, Declined):
            return (), tuple((name, written.reason) for name in every)
        return written.moves, written.refused


@lru_cache(maxsize=8)  # the note on the launch, what models are offered, and every round read the same kernel
def read(problem: Problem) -> KernelModel | str:
    """The kernel as tasks and steps, or why it is beyond the expert, in words with a line."""
    if len(problem.launches) > 1:
        return f"a call is {len(problem.launches)} launches, and the expert reads one kernel at a time"
    try:
        found = lift(problem)
    except Unreadable as error:
        return f"{error.reason}{_at(error.line)}"
    if isinstance(found, NotReadable):
        return found.reason if f"line {found.line}" in found.reason else f"{found.reason}{_at(found.line)}"
    return found


def _at(line: int) -> str:
    return f" (line {line})" if line else ""


def _template(task: Refactoring, context: Context, kernel: KernelModel) -> Written | Declined:
    """With as many of the task's moves as go together; the original's text where none can be written."""
    wanted = [move.name for move in MOVES if move.name in task.moves]
    refused = _not_here(task, [move.name for move in MOVES])
    while True:
        page = _page(task, context, kernel, wanted)
        if not isinstance(page, str):
            idle = _without_effect(page.draft, page.text)
            if not idle:
                return Written(page.text, page.draft.moves, _listed(page.refused + refused), kernel.notes)
            refused += [(name, "the kernel as it is printed would not depend on it") for name in idle]
            wanted = [name for name in wanted if name not in idle]
        elif wanted and not isinstance(_page(task, context, kernel, []), str):
            dropped = _culprit(task, context, kernel, wanted)
            refused.append((dropped, f"with it {page}"))
            wanted.remove(dropped)
        else:
            return _local(task, context, page)


@dataclass(frozen=True)
class _Page:
    text: str
    draft: TemplateDraft
    refused: _Refusals


def _page(task: Refactoring, context: Context, kernel: KernelModel, wanted: list[str]) -> _Page | str:
    """The template with these moves, or why there is none."""
    try:
        draft, refused = _drafted(kernel, wanted, context)
        draft = replace(draft, schedule=_without(draft.schedule, task.without))
        text = write(draft, context.problem)
        if draft.moves and not _without_effect(draft, text):
            parse_template(text, path=context.problem.kernel.path, problem=context.problem)
    except Unreadable as error:
        return f"the kernel was read, and cannot be written: {error.reason}{_at(error.line)}"
    except Unwritable as error:
        return f"the kernel was read, and cannot be written: {error.reason}"
    except BadInput as error:
        return f"the template was written, and cannot be read again: {error}"
    return _Page(text, draft, refused)


def _culprit(task: Refactoring, context: Context, kernel: KernelModel, wanted: list[str]) -> str:
    """The last move without which the rest can be written; the last of all where there is none."""
    for name in reversed(wanted):
        if not isinstance(_page(task, context, kernel, [other for other in wanted if other != name]), str):
            return name
    return wanted[-1]


def _drafted(kernel: KernelModel, wanted: list[str], context: Context) -> tuple[TemplateDraft, _Refusals]:
    draft, refused = TemplateDraft(kernel), list[tuple[str, str]]()
    for move in MOVES:
        if move.name not in wanted and move.name not in BASE:
            continue
        result = move.apply(draft, context)
        if not isinstance(result, str):
            draft = result if move.name in wanted else _settled(result, draft)
        elif move.name in wanted:
            refused.append((move.name, result))
    return draft, refused


def _without_effect(draft: TemplateDraft, text: str) -> tuple[str, ...]:
    """Moves of which a parameter is not declared, or nowhere in the code, the launch or the flags."""
    used, declared, title = set(used_words(without_comments(text))), set[str](), ""
    for line in find_block(text, "template").toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        words = WORD.findall(line)
        used.update(words if title in _USING else ())
        declared.update(words[:1] if title == "[params]" else ())
    idle = {c.name.rstrip("_") for c in draft.schedule.choices if c.name not in used & declared}
    return tuple(m for m in draft.moves if m not in BASE and idle.intersection(PARAMETERS[m]))


def _settled(draft: TemplateDraft, before: TemplateDraft) -> TemplateDraft:
    """A move that was not asked for, at its default: what the writer needs, with nothing to search."""
    changed = {
        field.name: replace(choice, values=(choice.default,))
        for field in fields(Schedule)
        if isinstance(choice := getattr(draft.schedule, field.name), ParameterChoice)
        and getattr(before.schedule, field.name) is None
    }
    return replace(draft, schedule=replace(draft.schedule, **changed), moves=before.moves)


def _without(schedule: Schedule, without: tuple[tuple[str, int], ...]) -> Schedule:
    changed = {
        field.name: left_out(choice, without)
        for field in fields(Schedule)
        if isinstance(choice := getattr(schedule, field.name), ParameterChoice)
    }
    return replace(schedule, **changed)


def left_out(choice: ParameterChoice, without: tuple[tuple[str, int], ...]) -> ParameterChoice:
    """The choice less the values that proved wrong; its default stays, or something must be left."""
    wrong = {value for name, value in without if name == choice.name}
    values = tuple(value for value in choice.values if value not in wrong) or (choice.default,)
    return replace(choice, values=values, default=choice.default if choice.default in values else values[0])


def _local(task: Refactoring, context: Context, why: str) -> Written | Declined:
    """The original's own text with local choices; `why` says what kept the expert from more."""
    problem = context.problem
    notes = (
        f"{problem.kernel.path} is beyond the expert: {why}. Its own text is kept, with local moves only",
    )
    site = find_site(problem)
    if isinstance(site, str):
        return Declined(f"{notes[0]}; and {site}")
    draft, refused = start(site, problem), list[tuple[str, str]]()
    for move in LOCAL_MOVES:
        if move.name in task.moves:
            result = move.apply(draft, context)
            if isinstance(result, str):
                refused.append((move.name, result))
            else:
                draft = result
    refused += _not_here(task, [move.name for move in LOCAL_MOVES], f"the kernel keeps its own text: {why}")
    draft = replace(draft, choices=tuple(left_out(choice, task.without) for choice in draft.choices))
    if not draft.choices:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused)
        return Declined(f"{notes[0]}, and none applies ({reasons})")
    return Written(template_text(draft, context), draft.moves, _listed(refused), notes)


def _listed(refused: _Refusals) -> tuple[tuple[str, str], ...]:
    """In the order of the moves, whatever the task's was."""
    order = list(PARAMETERS)
    return tuple(sorted(refused, key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _not_here(
    task: Refactoring, known: list[str], why: str = "it edits the text of kernels that cannot be read"
) -> _Refusals:
    return [(name, why) for name in task.moves if name not in known]
