"""A call of several kernels as one template: each kernel with its own moves, its parameters by its number."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tunesmith.base.errors import BadInput
from tunesmith.expert.drafting import Refusals, best_page, left_out, sort_refusals
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, PARAMETERS, Move
from tunesmith.expert.moves.compiler import cap_registers, tune_build_flags
from tunesmith.expert.moves.launch import LEAST_CAPABILITY, SWITCH, drop_fills, overlap_launches
from tunesmith.expert.moves.move import Context, merge_answers
from tunesmith.expert.moves.text_edits import (
    EditSite,
    LocalDraft,
    add_choice,
    apply_edits,
    find_site,
    local_defaults,
    local_heading,
    start_draft,
    whole_text,
)
from tunesmith.expert.read.call import (
    CallPart,
    CallReading,
    find_overlaps,
    launches_of,
    with_handed,
    with_own_roles,
    without_fills,
)
from tunesmith.expert.read.contract import with_entry_sizes
from tunesmith.expert.read.model import KernelModel, ParameterChoice
from tunesmith.expert.write import Unwritable
from tunesmith.expert.write.given import add_distinct_conditions
from tunesmith.expert.write.page import drop_choices, page_of, unused_choices
from tunesmith.expert.write.several import OwnText, WrittenPart, kept_memory, text_of_call
from tunesmith.problem.problem import Problem
from tunesmith.problem.reduced import without_kernels
from tunesmith.problem.template import Remedy
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Refactoring, Written
from tunesmith.source.tree import Unreadable

OwnTextRefusals = list[tuple[str, str]]


@dataclass(frozen=True)
class TextOfKernel:
    """Where a kernel stands in the text, or why that is not to be seen; and which launches run it."""

    site: EditSite | str
    launches: tuple[int, ...]  # among those of the draft
    context: Context
    entry: str


def texts_of(problem: Problem, parts: Sequence[CallPart], context: Context) -> tuple[TextOfKernel, ...]:
    """The kernels of a problem's launches by their entries; `parts` give them their numbers."""
    numbers = {_plain_entry_name(part.entry): part.number for part in reversed(parts)}
    names = list(dict.fromkeys(_plain_entry_name(launch.entry) for launch in problem.launches))
    found = []
    for name in names:
        entries = (_plain_entry_name(launch.entry) for launch in problem.launches)
        places = tuple(place for place, entry in enumerate(entries) if entry == name)
        alone = replace(problem, launches=tuple(problem.launches[place] for place in places))
        number = numbers.get(name, "") if len(parts) > 1 else ""
        found.append(TextOfKernel(find_site(alone), places, Context(alone, context.device, number), name))
    return tuple(found)


def _plain_entry_name(entry: str) -> str:
    return entry.split("<")[0].split("::")[-1].strip()


def apply_local_moves(
    problem: Problem, kernels: Sequence[TextOfKernel], moves: Sequence[Move[LocalDraft]], context: Context
) -> tuple[LocalDraft, OwnTextRefusals]:
    """The original's text with these moves where they apply; and those that apply nowhere."""
    alone = kernels[0].site if len(kernels) == 1 else ""
    whole = whole_text(problem) if isinstance(alone, str) else alone
    draft, refused = start_draft(whole, problem), list[tuple[str, str]]()
    for move in moves:
        if move.of_file:
            result = move.apply(draft, context)
            if isinstance(result, str):
                refused.append((move.name, result))
            else:
                draft = result
            continue
        said: list[tuple[str, str]] = []
        for kernel in kernels:
            changed = _on_one(draft, kernel, move)
            if isinstance(changed, str):
                said.append((kernel.entry, changed))
            else:
                draft = changed
        if len(said) == len(kernels):
            refused.append((move.name, by_kernel(said)))
    return draft, refused


def _on_one(draft: LocalDraft, kernel: TextOfKernel, move: Move[LocalDraft]) -> LocalDraft | str:
    """The move on one kernel of the draft."""
    if isinstance(kernel.site, str):
        return kernel.site
    view = replace(draft, site=kernel.site, launches=tuple(draft.launches[at] for at in kernel.launches))
    result = move.apply(view, kernel.context)
    if isinstance(result, str):
        return result
    launches = list(draft.launches)
    for at, launch in zip(kernel.launches, result.launches, strict=True):
        launches[at] = launch
    return replace(result, site=draft.site, launches=tuple(launches))


def by_kernel(said: Sequence[tuple[str, str]]) -> str:
    """Reasons by kernel; one that they share once."""
    reasons = dict.fromkeys(reason for _, reason in said)
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{name}: {reason}" for name, reason in said)


def own_text(draft: LocalDraft, places: Sequence[int], gone: Collection[str] = ()) -> OwnText:
    """For a file that has other kernels besides; `places` are those of the draft's launches in the call.

    Kernels that are `gone` have no launch."""
    text = without_kernels(apply_edits(draft), gone) if draft.launches else ""
    return OwnText(local_heading(draft), tuple(places), text, tuple(local_defaults(draft)))


def write_call(task: Refactoring, context: Context, reading: CallReading) -> Written | str:
    """A template of several kernels, each with the moves that apply to it; why there is none.

    Kernels that cannot be read, or not be written, keep their text."""
    on_launches, why_all = _on_launches(task, context, reading)
    problem, reading = on_launches.problem, on_launches.reading
    context, of_kernels = replace(context, problem=problem), replace(task, moves=_of_kernels(task))
    left: list[tuple[CallPart, str]] = []
    made: list[_MadePart] = []
    for part, kernel in reading:
        found = kernel if isinstance(kernel, str) else _of_call(of_kernels, part, kernel, context)
        if isinstance(found, str):
            left.append((part, found))
        else:
            made.append(found)
    return _join_kernels(task, context, on_launches, made, left, why_all)


def _join_kernels(
    task: Refactoring,
    context: Context,
    call: _ChangedCall,
    made: Sequence[_MadePart],
    left: Sequence[tuple[CallPart, str]],
    why_all: Refusals,
) -> Written | str:
    """Kernels that are written and kernels that keep their text as one file.

    Where that cannot be, one more kernel keeps its text, if it can then."""
    found = _as_one_file(task, context, call, made, left, why_all)
    for one in made if isinstance(found, str) and len(made) > 1 else ():
        others = [other for other in made if other is not one]
        fewer = _as_one_file(task, context, call, others, [*left, (one.written.part, str(found))], why_all)
        if isinstance(fewer, Written):
            return fewer
    return found


def _as_one_file(
    task: Refactoring,
    context: Context,
    on_launches: _ChangedCall,
    made: Sequence[_MadePart],
    left: Sequence[tuple[CallPart, str]],
    why_all: Refusals,
) -> Written | str:
    reading, left = on_launches.reading, list(left)
    if left:
        kept = [(one, kept_memory(one.written.page)) for one in made]
        made = [one for one, memory in kept if memory is None]
        shared = "it shares '{}' with kernels that keep their text"
        left += [(one.written.part, shared.format(memory)) for one, memory in kept if memory]
    if not made:
        return by_kernel([(part.entry, why) for part, why in left])
    made, switches, why_order = _overlap_kernels(task, list(made), reading, context)
    unwritten, every = ([part for part, _ in pairs] for pairs in (left, reading))
    unchanged, moves, why_text = _keep_own_text(task, unwritten, every, context, switches)
    try:
        text = text_of_call(context.problem, [one.written for one in made], unchanged)
        parse_template(text, path=context.problem.kernel.path, problem=context.problem)
    except (Unwritable, Unreadable) as error:
        return f"its kernels cannot be written as one file: {error.reason}"
    except BadInput as error:
        return f"the template was written, and cannot be read again: {error}"
    done = {*on_launches.moves, *moves, *(name for one in made for name in one.moves)}
    labels = [(_kernel_label(one.written.part, reading), one) for one in made]
    said = [(label, name, why) for label, one in labels for name, why in one.refused]
    reasons = [*why_text, *why_all, *why_order]
    lacking = [(name, _why_not(name, said, reasons)) for name in task.moves if name not in done]
    keeps = "It keeps its own text, with local moves only"
    notes = [f"{part.entry} is beyond the expert: {why}. {keeps}" for part, why in left]
    notes += on_launches.notes
    pages = [one.written for one in made]
    notes += [f"{one.part.entry}: {note}" for one in pages for note in one.page.plan.kernel.notes]
    names = tuple(name for name in PARAMETERS if name in done)
    skipped = sort_refusals([(name, f"{kernel}: {why}") for kernel, name, why in said if name in done])
    return Written(text, names, sort_refusals(lacking), tuple(dict.fromkeys(notes)), skipped=skipped)


def _kernel_label(part: CallPart, reading: CallReading) -> str:
    """A kernel by its name, with its number where the call runs another one of that name."""
    several = sum(other.entry == part.entry for other, _ in reading) > 1
    return f"{part.entry} (kernel {part.number})" if several else part.entry


@dataclass(frozen=True, eq=False)
class _MadePart:
    """One kernel of a call, written; with the moves in it, and those that do not apply to it."""

    written: WrittenPart
    moves: tuple[str, ...]
    refused: Refusals


@dataclass(frozen=True)
class _ChangedCall:
    """A call after moves on its launches."""

    problem: Problem
    reading: CallReading
    moves: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _on_launches(task: Refactoring, context: Context, reading: CallReading) -> tuple[_ChangedCall, Refusals]:
    """The moves that act on the launches, and not on single kernels."""
    call = _ChangedCall(context.problem, reading)
    if drop_fills.name not in task.moves:
        return call, []
    fewer = without_fills(context.problem, reading)
    if isinstance(fewer, str):
        return call, [(drop_fills.name, fewer)]
    problem, reading, notes = fewer
    return _ChangedCall(problem, reading, (drop_fills.name,), notes), []


def _why_not(move: str, said: Sequence[tuple[str, str, str]], of_text: Refusals) -> str:
    """Of a move that no kernel of the call has."""
    reasons = [(entry, why) for entry, name, why in said if name == move]
    reasons += [
        ("its text", why) for name, why in of_text if name == move and why not in dict(reasons).values()
    ]
    return by_kernel(reasons) if reasons else "it edits the text of kernels that cannot be read"


def _of_kernels(task: Refactoring) -> tuple[str, ...]:
    return tuple(m.name for m in MOVES if m.name in task.moves and not m.of_file)


def _of_call(
    task: Refactoring, part: CallPart, kernel: KernelModel, context: Context, handed: Collection[str] = ()
) -> _MadePart | str:
    """`handed`: arrays that a launch which may still be under way writes."""
    alone = with_handed(with_own_roles(part.problem, kernel, handed))
    sized = with_entry_sizes(alone, kernel.pinned)
    found = best_page(task, Context(sized, context.device, part.number), kernel)
    if isinstance(found, str):
        return found
    text, draft, refused = found
    draft = drop_choices(draft, unused_choices(draft.schedule.choices, text))
    return _MadePart(WrittenPart(part, page_of(draft, sized)), draft.moves, refused)


def _overlap_kernels(
    task: Refactoring, made: list[_MadePart], reading: CallReading, context: Context
) -> tuple[list[_MadePart], tuple[ParameterChoice, ...], Refusals]:
    """The kernels with waits for the launches ahead of them where these may overlap, and what says so."""
    if overlap_launches.name not in task.moves:
        return made, (), []
    if context.language != "cuda" or context.device.limits.capability < LEAST_CAPABILITY:
        return made, (), [(overlap_launches.name, "launches overlap on NVIDIA's GPUs alone, from sm_90 on")]
    found, reasons = find_overlaps(context.problem, reading)
    done = {place: one for one in made for place in one.written.part.places}
    models, switches = dict(reading), list[ParameterChoice]()
    of_kernels, note = replace(task, moves=_of_kernels(task)), dict(overlap_launches.parameters)[SWITCH]
    for one in found:
        if one.place not in done:
            continue
        part = done[one.place].written.part
        kernel, name = models[part], replace(context, number=part.number).macro(SWITCH)
        assert isinstance(kernel, KernelModel), "it was written"
        again: _MadePart | str = done[one.place]
        if one.handed.intersection(part.problem.launches[0].args):
            again = _of_call(of_kernels, part, kernel, context, one.handed)
        if isinstance(again, str):
            reasons = (*reasons, f"{part.entry}: {again}")
            continue
        names = dict(zip(part.problem.launches[0].args, kernel.function.parameters, strict=False))
        handed = frozenset(p.name for argument, p in names.items() if argument in one.handed)
        done[one.place] = _with_launch_order(again, waits_if=name, handed=handed)
        before = done.get(one.place - 1)
        starts = before is not None and len(before.written.part.places) == 1
        if before is not None and starts:
            done[one.place - 1] = _with_launch_order(before, starts_if=f"{name} == 2")
        switches.append(ParameterChoice(name, (0, 1, 2) if starts else (0, 1), 0, note, categorical=True))
    said = "; ".join(reasons) or "no kernel behind another is written"
    refused = [] if switches else [(overlap_launches.name, said)]
    return list(dict.fromkeys(done[place] for place in sorted(done))), tuple(switches), refused


def _with_launch_order(one: _MadePart, **how: Any) -> _MadePart:
    plan = one.written.page.plan
    draft = replace(plan.draft, order=replace(plan.draft.order, **how))
    return replace(one, written=replace(one.written, page=page_of(draft, plan.problem)))


def _keep_own_text(
    task: Refactoring,
    parts: Sequence[CallPart],
    every: Sequence[CallPart],
    context: Context,
    switches: Sequence[ParameterChoice],
) -> tuple[OwnText, tuple[str, ...], Refusals]:
    """Kernels of a call that keep their text, and what is said of the build as a whole."""
    places = sorted(place for part in parts for place in part.places)
    problem = replace(context.problem, launches=launches_of(context.problem, parts))
    on_kernels = [m for m in LOCAL_MOVES if not m.of_file and parts]
    of_build = [m for m in LOCAL_MOVES if m.name in (cap_registers.name, tune_build_flags.name)]
    wanted = [move for move in (*on_kernels, *of_build) if move.name in task.moves]
    kernels, whole = texts_of(problem, every, context), replace(context, problem=problem)
    draft, refused = apply_local_moves(problem, kernels, wanted, whole)
    for choice in switches:
        draft = add_choice(draft, overlap_launches.name, choice)
        least = (f"overlap_{choice.name}", f"{choice.name} == 0 or device.capability >= {LEAST_CAPABILITY}")
        answer = (str(Remedy.FEWER_LAUNCHES), f"{choice.name} > 0")
        draft = replace(
            draft,
            require=add_distinct_conditions(draft.require, [least]),
            answers=merge_answers(draft.answers, [answer]),
        )
    draft = replace(draft, choices=tuple(left_out(choice, task.without) for choice in draft.choices))
    kept, entries = ({_plain_entry_name(part.entry) for part in some} for some in (parts, every))
    return own_text(draft, places, entries - kept), draft.moves, refused
