"""The expert as an author: a kernel in, a template out, with no model and no randomness.

The kernel is read, the task's moves are applied to what was read, and the writer prints the result. A kernel
that cannot be read as tasks and steps keeps its own text and gets the local moves alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import Unreadable
from tunesmith.errors import BadInput
from tunesmith.expert.model.entry_sizes import with_entry_sizes
from tunesmith.expert.model.kernel import KernelModel, NotReadable, ParameterChoice, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.model.obstacles import with_change
from tunesmith.expert.model.words import explain_lines, fact_lines
from tunesmith.expert.passes import LOCAL_MOVES, MOVES, OWN_TEXT, PARAMETERS, REMEDIES, Context, Move, is_of
from tunesmith.expert.passes.local_draft import LocalDraft, find_site, start, template_text, whole_text
from tunesmith.expert.passes.port import Noted
from tunesmith.expert.writing import Unwritable, write
from tunesmith.expert.writing.write import declared, unused
from tunesmith.problem import languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.template_source import used_words
from tunesmith.run.ports import Catalogue, Declined, Offer, Refactoring, Written

BASE = ("lanes", "tasks")  # the writer needs these to share the work as the original does
_Any = TypeVar("_Any", bound=Noted)
_Refusals = list[tuple[str, str]]
_Reasons = tuple[tuple[str, str], ...]
_Page = tuple[str, TemplateDraft, _Refusals]  # the template written, and moves that did not apply


class ExpertAuthor:
    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        context = Context(problem, device)
        if not languages.named(problem.kernel.language).is_c_family:
            read_ones = ", ".join(one.name for one in languages.known() if one.is_c_family)
            return Declined(f"the expert reads {read_ones}, not {problem.kernel.language}")
        reading = read(problem)
        if isinstance(reading, str):
            return _local(task, context, reading)
        if task.moves == OWN_TEXT:
            return _local(task, context)
        written = _template(task, Context(with_entry_sizes(problem), device), reading)
        return _local(task, context, written) if isinstance(written, str) else written

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Moves that apply to the kernel, and those that do not with the reason."""
        every = tuple(PARAMETERS)
        written = self.write(Refactoring(every), problem, device)
        if isinstance(written, Declined):
            return (), tuple((name, written.reason) for name in every)
        own = self.own_text(written, problem, device)
        if isinstance(own, Written):
            refused = tuple(pair for pair in written.refused if pair[0] not in own.moves)
            return (*written.moves, *own.moves), refused
        return written.moves, _said_of(OWN_TEXT, own, written.refused)

    def own_text(self, written: Written, problem: Problem, device: Device) -> Written | str:
        """Of a kernel that is written anew, the template of its own text; or why there is none."""
        if any(name in OWN_TEXT for name in written.moves) or isinstance(read(problem), str):
            return ""
        own = self.write(Refactoring(OWN_TEXT), problem, device)
        if isinstance(own, Declined):
            return own.reason
        left = used_words(without_comments(written.text))
        opened = [name for name, _ in declared(own.text)]
        if not any(name.partition("_")[2] in left for name in opened):
            return f"what it opens ({', '.join(opened)}) is no constant of the template: other moves set it"
        return own


def _said_of(names: Sequence[str], why: str, refused: _Reasons) -> _Reasons:
    """The reasons, with a better one for some of them."""
    return tuple((name, why if why and name in names else reason) for name, reason in refused)


@lru_cache(maxsize=8)
def _lifted(problem: Problem) -> KernelModel | NotReadable:
    return lift(problem)


@lru_cache(maxsize=8)  # the note on the launch, what models are offered, and every round read the same kernel
def read(problem: Problem) -> KernelModel | str:
    """The kernel as tasks and steps, or why it is beyond the expert, in words with a line."""
    if len(problem.launches) > 1:
        return f"a call is {len(problem.launches)} launches, and the expert reads one kernel at a time"
    try:
        found = _lifted(problem)
    except Unreadable as error:
        return f"{error.reason}{_at(error.line)}"
    if isinstance(found, NotReadable):
        return found.reason if f"line {found.line}" in found.reason else f"{found.reason}{_at(found.line)}"
    return found


def _at(line: int) -> str:
    return f" (line {line})" if line else ""


def _template(task: Refactoring, context: Context, kernel: KernelModel) -> Written | str:
    """With as many of the task's moves as go together; why none can be written."""
    wanted = [move.name for move in MOVES if move.name in task.moves]
    refused = _not_here(task, [move.name for move in MOVES])
    while True:
        page = _page(task, context, kernel, wanted)
        if not isinstance(page, str):
            text, draft, not_applied = page
            idle = _without_effect(draft, text)
            if not idle:
                return Written(text, draft.moves, _listed(not_applied + refused), kernel.notes)
            refused += [(name, "the kernel as it is printed would not depend on it") for name in idle]
            wanted = [name for name in wanted if name not in idle]
        elif wanted and not isinstance(_page(task, context, kernel, []), str):
            dropped = _culprit(task, context, kernel, wanted)
            refused.append((dropped, f"with it {page}"))
            wanted.remove(dropped)
        else:
            return page


def _page(task: Refactoring, context: Context, kernel: KernelModel, wanted: list[str]) -> _Page | str:
    """The template with these moves, or why there is none."""
    try:
        draft, refused = _drafted(kernel, wanted, context)
        draft = _with_choices(draft, lambda _, choice: left_out(choice, task.without))
        text = write(draft, context.problem)
        if draft.moves and not _without_effect(draft, text):
            parse_template(text, path=context.problem.kernel.path, problem=context.problem)
    except Unreadable as error:
        return f"the kernel was read, and cannot be written: {error.reason}{_at(error.line)}"
    except Unwritable as error:
        return f"the kernel was read, and cannot be written: {error.reason}"
    except BadInput as error:
        return f"the template was written, and cannot be read again: {error}"
    return text, draft, refused


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
    idle = {choice.name.rstrip("_") for choice in unused(draft.schedule.choices, text)}
    return tuple(m for m in draft.moves if m not in BASE and idle.intersection(PARAMETERS[m]))


def _settled(draft: TemplateDraft, before: TemplateDraft) -> TemplateDraft:
    """A move that was not asked for, at its default: what the writer needs, with nothing to search."""

    def settled(role: str, choice: ParameterChoice) -> ParameterChoice:
        return choice if role in before.schedule else replace(choice, values=(choice.default,))

    return replace(_with_choices(draft, settled), moves=before.moves)


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


def _local(task: Refactoring, context: Context, why: str = "") -> Written | Declined:
    """The original's own text with local choices; `why` says what kept the expert from more, if anything."""
    problem = context.problem
    notes = (
        f"{problem.kernel.path} is beyond the expert: {why}. Its own text is kept, with local moves only"
        if why
        else f"{problem.kernel.path} keeps its own text, with its own choices open",
    )
    site = find_site(problem)
    draft = start(whole_text(problem) if isinstance(site, str) else site, problem)
    refused = list[tuple[str, str]]()
    for move in LOCAL_MOVES:
        if move.name in task.moves:
            # Where kernels are several, or not to be seen, only what needs none in particular is done.
            result = (
                site if isinstance(site, str) and move.name not in OWN_TEXT else move.apply(draft, context)
            )
            if isinstance(result, str):
                refused.append((move.name, result))
            else:
                draft = result
    refused += _not_here(task, [move.name for move in LOCAL_MOVES], f"the kernel keeps its own text: {why}")
    draft = replace(draft, choices=tuple(left_out(choice, task.without) for choice in draft.choices))
    if not draft.choices and isinstance(site, str):
        return Declined(f"{notes[0]}; and {site}")
    if not draft.choices:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused)
        return Declined(f"{notes[0]}, and none applies ({reasons})")
    return Written(template_text(draft, context), draft.moves, _listed(refused), (*notes, *draft.notes))


def _listed(refused: _Refusals) -> tuple[tuple[str, str], ...]:
    """In the order of the moves, whatever the task's was."""
    order = list(PARAMETERS)
    return tuple(sorted(refused, key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _not_here(
    task: Refactoring, known: list[str], why: str = "it edits the text of kernels that cannot be read"
) -> _Refusals:
    return [(name, why) for name in task.moves if name not in known]


# -- what the expert can do to a kernel, so that somebody else can choose


def catalogue(problem: Problem, device: Device) -> Catalogue:
    """Every move at once is what tells which go together, and with which values."""
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, device)
    kernel = read(problem)
    reading = reading_lines(problem, kernel)
    if isinstance(written, Declined):
        return Catalogue(reading, (), tuple((name, written.reason) for name in PARAMETERS))
    # A kernel that was read and cannot be written again gets the local moves.
    text_alone = {move.name for move in LOCAL_MOVES} - {move.name for move in MOVES}
    context = Context(problem, device)
    if isinstance(kernel, str) or text_alone.intersection(written.moves):
        local = [move for move in LOCAL_MOVES if move.name in written.moves]
        about = {move.name: move.about for move in local}
        site = find_site(problem)
        places = {} if isinstance(site, str) else dict(_places(local, start(site, problem), context))
    else:
        used = [move for move in MOVES if move.name in written.moves]
        about = {move.name: move.about for move in used}
        context = Context(with_entry_sizes(problem), device)
        places = dict(_places(used, TemplateDraft(kernel), context))
    parameters = declared(written.text)
    refused = written.refused
    offers = tuple(
        Offer(
            name,
            about[name],
            places.get(name, ""),
            tuple(line for own, line in parameters if is_of(name, own)),
            tuple(str(remedy) for remedy in REMEDIES[name]),
        )
        for name in written.moves
    )
    own = ExpertAuthor().own_text(written, problem, device)
    if isinstance(own, Written):
        offers += tuple(_offered_alone(move, own) for move in LOCAL_MOVES if move.name in own.moves)
        refused = tuple(pair for pair in refused if pair[0] not in own.moves)
    return Catalogue(reading, offers, _said_of(OWN_TEXT, own if isinstance(own, str) else "", refused))


def _offered_alone(move: Move[LocalDraft], own: Written) -> Offer:
    about = f"{move.about} Only by itself: the template keeps the original's text, where no other move acts"
    lines = tuple(line for name, line in declared(own.text) if is_of(move.name, name))
    return Offer(move.name, about, "", lines, tuple(str(remedy) for remedy in move.remedies))


def reading_lines(problem: Problem, kernel: KernelModel | str) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words."""
    if isinstance(kernel, str):
        return (f"{problem.kernel.path} is beyond the expert: {with_change(kernel)}", *_others(problem))
    return tuple(explain_lines(kernel))


def _others(problem: Problem) -> tuple[str, ...]:
    """What else stands in the way."""
    if len(problem.launches) > 1:
        return ()
    found = _lifted(problem)
    return tuple(f"  also {said}" for said in found.others) if isinstance(found, NotReadable) else ()


def rests_on(kernel: KernelModel | str) -> tuple[str, ...]:
    """What that reading relies on, and why it may."""
    return () if isinstance(kernel, str) else tuple(fact_lines(kernel))


def _places(moves: Sequence[Move[_Any]], draft: _Any, context: Context) -> Iterator[tuple[str, str]]:
    """Of each move that applies: where it would act, before it has and otherwise afterwards."""
    for move in moves:
        changed = move.apply(draft, context)
        if not isinstance(changed, str):
            yield move.name, move.places(draft, context) or move.places(changed, context)
            draft = changed
