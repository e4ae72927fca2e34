"""The expert as an author: a kernel in, a template out, with no model and no randomness.

The kernel is read, the task's moves are applied to what was read, and the writer prints the result. A kernel
that cannot be read as tasks and steps keeps its own text and gets the local moves alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from tunesmith.expert.call import apply_local_moves, by_kernel, texts_of, write_call
from tunesmith.expert.drafting import at_line, best_page, left_out, not_here, sort_refusals
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, OWN_TEXT, PARAMETERS, REMEDIES, Move, is_of
from tunesmith.expert.moves.move import Context, Noted
from tunesmith.expert.moves.text_edits import LocalDraft, find_site, start_draft, template_text
from tunesmith.expert.read.call import CallReading, handed_on, parts_of, passed_twice, with_handed
from tunesmith.expert.read.checks import with_change
from tunesmith.expert.read.contract import with_entry_sizes
from tunesmith.expert.read.geometry import Scenario, scenario_at
from tunesmith.expert.read.integers import launch_terms
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, NotReadable, Reach, TemplateDraft
from tunesmith.expert.read.words import explain_lines, fact_lines
from tunesmith.expert.write.given import words_in_use
from tunesmith.expert.write.page import declared_parameters
from tunesmith.problem import device as languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Declined, MoveCatalogue, MoveOffer, Refactoring, Written
from tunesmith.source.fold import int_value
from tunesmith.source.tree import Unreadable
from tunesmith.source.walk import names_in

# Those that act on what a kernel computes, and not on its text.
MOVES_ON_MODEL = tuple(m for m in MOVES if m.name not in {local.name for local in LOCAL_MOVES})
_Any = TypeVar("_Any", bound=Noted)
_Reasons = tuple[tuple[str, str], ...]


def as_it_is(problem: Problem, device: Device) -> Problem:
    del device
    return problem


@dataclass(frozen=True)
class ExpertAuthor:
    # Puts into the problem what the device's compilers define, for conditions in the source that ask for it.
    as_compiled: Callable[[Problem, Device], Problem] = as_it_is

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        problem = self.as_compiled(problem, device)
        context = Context(problem, device)
        if not languages.find_language(problem.kernel.language).is_c_family:
            read_ones = ", ".join(one.name for one in languages.known_languages() if one.is_c_family)
            return Declined(f"the expert reads {read_ones}, not {problem.kernel.language}")
        reading = read_call(problem)
        if not any(isinstance(kernel, KernelModel) for _, kernel in reading):
            return _write_local(task, context, why_not(reading))
        if task.moves == OWN_TEXT:
            return _write_local(task, context)
        if len(problem.launches) == 1:
            kernel = reading[0][1]
            sized = with_entry_sizes(problem, () if isinstance(kernel, str) else kernel.pinned)
            written = _write_template(task, Context(with_handed(sized), device), kernel)
        else:
            written = write_call(task, context, reading)
        return _write_local(task, context, written) if isinstance(written, str) else written

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Moves that apply to the kernel, and those that do not with the reason."""
        every = tuple(PARAMETERS)
        written = self.write(Refactoring(every), problem, device)
        if isinstance(written, Declined):
            return (), tuple((name, written.reason) for name in every)
        alone = self.own_text(written, problem, device)
        if isinstance(alone, Written):
            refused = tuple(pair for pair in written.refused if pair[0] not in alone.moves)
            return (*written.moves, *alone.moves), refused
        return written.moves, _said_of(OWN_TEXT, alone, written.refused)

    def own_text(self, written: Written, problem: Problem, device: Device) -> Written | str:
        """Of a kernel that is written anew, the template of its own text; or why there is none."""
        problem = self.as_compiled(problem, device)
        is_read = any(isinstance(kernel, KernelModel) for _, kernel in read_call(problem))
        if any(name in OWN_TEXT for name in written.moves) or not is_read:
            return ""
        alone = self.write(Refactoring(OWN_TEXT), problem, device)
        if isinstance(alone, Declined):
            return alone.reason
        left = words_in_use(written.text)
        opened = [name for name, _ in declared_parameters(alone.text)]
        if not any(name.partition("_")[2] in left for name in opened):
            return f"what it opens ({', '.join(opened)}) is no constant of the template: other moves set it"
        return alone


def _said_of(names: Sequence[str], why: str, refused: _Reasons) -> _Reasons:
    """The reasons, with a better one for some of them."""
    return tuple((name, why if why and name in names else reason) for name, reason in refused)


@lru_cache(maxsize=8)
def _lift_cached(problem: Problem) -> KernelModel | NotReadable:
    return lift_kernel(problem)


@lru_cache(maxsize=32)  # the note on the launch, what models are offered, and every round read the same
def try_read_kernel(problem: Problem) -> KernelModel | str:
    """The kernel as tasks and steps, or why it is beyond the expert, in words with a line."""
    if len(problem.launches) > 1:
        return f"a call is {len(problem.launches)} launches, and the expert reads one kernel at a time"
    if not problem.workloads:
        return "no workload makes this launch"
    if problem.launches and (twice := passed_twice(problem.launches[0], problem)):
        return f"the launch passes '{twice}' twice: two of the kernel's names are one array"
    try:
        found = _lift_cached(problem)
    except Unreadable as error:
        return f"{error.reason}{at_line(error.line)}"
    if isinstance(found, NotReadable):
        line = "" if f"line {found.line}" in found.reason else at_line(found.line)
        return f"{found.reason}{line}"
    return found


def read_call(problem: Problem) -> CallReading:
    """Every kernel of a call, read by itself."""
    return tuple((part, try_read_kernel(part.problem)) for part in parts_of(problem))


def why_not(reading: CallReading) -> str:
    """Why none of a call's kernels is read."""
    return by_kernel([(part.entry, kernel) for part, kernel in reading if isinstance(kernel, str)])


def _write_template(task: Refactoring, context: Context, kernel: KernelModel | str) -> Written | str:
    """With as many of the task's moves as go together; why none can be written."""
    page = kernel if isinstance(kernel, str) else best_page(task, context, kernel)
    if isinstance(page, str) or isinstance(kernel, str):
        return str(page)
    text, draft, refused = page
    return Written(text, draft.moves, sort_refusals(refused), kernel.notes)


def _write_local(task: Refactoring, context: Context, why: str = "") -> Written | Declined:
    """The original's own text with local choices; `why` says what kept the expert from more, if anything."""
    problem = context.problem
    notes = (
        f"{problem.kernel.path} is beyond the expert: {why}. Its own text is kept, with local moves only"
        if why
        else f"{problem.kernel.path} keeps its own text, with its own choices open",
    )
    kernels = texts_of(problem, parts_of(problem), context)
    wanted = [move for move in LOCAL_MOVES if move.name in task.moves]
    draft, refused = apply_local_moves(problem, kernels, wanted, context)
    refused += not_here(task, [move.name for move in LOCAL_MOVES], f"the kernel keeps its own text: {why}")
    draft = replace(draft, choices=tuple(left_out(choice, task.without) for choice in draft.choices))
    unseen = [(one.entry, one.site) for one in kernels if isinstance(one.site, str)]
    if not draft.choices:
        # Of a kernel whose text is not seen, moves on the whole file alone have reasons of their own.
        hidden = by_kernel(unseen) if unseen else ""
        reasoned = [(name, reason) for name, reason in refused if reason != hidden]
        reasons = "; ".join(f"{name}: {reason}" for name, reason in reasoned)
        none = f", and none applies ({reasons})" if reasons else ""
        return Declined(f"{notes[0]}{none}{f'; {hidden}' if hidden else ''}")
    return Written(template_text(draft, context), draft.moves, sort_refusals(refused), (*notes, *draft.notes))


def build_catalogue(problem: Problem, device: Device) -> MoveCatalogue:
    """Every move at once is what tells which go together, and with which values."""
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, device)
    lines = reading_of_call(problem)
    beyond = _unread_reasons(problem)
    if isinstance(written, Declined):
        refused = tuple((name, written.reason) for name in PARAMETERS)
        return MoveCatalogue(lines, (), refused, beyond=beyond or (written.reason,))
    context = Context(problem, device)
    # A kernel that was read and cannot be written again gets the local moves.
    is_written = any(move.name in written.moves for move in MOVES_ON_MODEL)
    on_text = {move.name: move.about for move in LOCAL_MOVES}
    on_model = {move.name: move.about for move in MOVES}
    about = {**on_text, **on_model} if is_written else on_text
    places = _places_on_models(written, context) if is_written else _places_in_text(written, context)
    parameters = declared_parameters(written.text)
    refused = written.refused
    offers = tuple(
        MoveOffer(
            name,
            about[name],
            places.get(name, ""),
            tuple(line for alone, line in parameters if is_of(name, alone)),
            tuple(str(remedy) for remedy in REMEDIES[name]),
        )
        for name in written.moves
    )
    alone = ExpertAuthor().own_text(written, problem, device)
    if isinstance(alone, Written):
        offers += tuple(_offered_alone(move, alone) for move in LOCAL_MOVES if move.name in alone.moves)
        refused = tuple(pair for pair in refused if pair[0] not in alone.moves)
    refused = _said_of(OWN_TEXT, alone if isinstance(alone, str) else "", refused)
    beyond = beyond if is_written or beyond else written.notes[:1]
    return MoveCatalogue(lines, offers, refused, written.skipped, beyond)


def _unread_reasons(problem: Problem) -> tuple[str, ...]:
    """What keeps the expert from reading kernels of a call; none where it reads them all."""
    if not languages.find_language(problem.kernel.language).is_c_family:
        return ()
    unread = [(part, kernel) for part, kernel in read_call(problem) if isinstance(kernel, str)]
    found = (line.strip() for part, kernel in unread for line in reading_lines(part.problem, kernel))
    return tuple(dict.fromkeys(found))


def _offered_alone(move: Move[LocalDraft], template: Written) -> MoveOffer:
    about = f"{move.about} Only by itself: the template keeps the original's text, where no other move acts"
    lines = tuple(line for name, line in declared_parameters(template.text) if is_of(move.name, name))
    return MoveOffer(move.name, about, "", lines, tuple(str(remedy) for remedy in move.remedies))


def reading_of_call(problem: Problem, facts: bool = False) -> tuple[str, ...]:
    """What the expert makes of every kernel of a call, in words; with what that relies on."""
    reading = read_call(problem)
    if len(problem.launches) < 2:
        ((part, kernel),) = reading
        return (*reading_lines(part.problem, kernel), *(rests_on(kernel) if facts else ()))
    lines = [_about_call(problem, reading), *(f"  {line}" for line in handed_on(problem, reading))]
    for part, kernel in reading:
        several = f", {len(part.places)} launches alike but for their arrays" if len(part.places) > 1 else ""
        lines.append(f"{f'Kernel {part.number}' if part.number else 'The kernel'}, {part.entry}{several}:")
        words = (*reading_lines(part.problem, kernel), *(rests_on(kernel) if facts else ()))
        lines += [f"  {line}" for line in words]
    return tuple(lines)


def _about_call(problem: Problem, reading: CallReading) -> str:
    names = [
        launch.entry + (f" (where {launch.when.text})" if launch.when is not None else "")
        for launch in problem.launches
    ]
    read_ones = sum(isinstance(kernel, KernelModel) for _, kernel in reading)
    every = f"{read_ones} of {len(reading)} kernels are read, each by itself"
    every = "each is read by itself" if read_ones == len(reading) else every
    return f"A call is {len(names)} launches, one after the other: {', then '.join(names)}; {every}."


def reading_lines(problem: Problem, kernel: KernelModel | str) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words."""
    if isinstance(kernel, str):
        return (
            f"{problem.kernel.path} is beyond the expert: {with_change(kernel)}",
            *_other_obstacles(problem),
        )
    return tuple(explain_lines(kernel))


def _other_obstacles(problem: Problem) -> tuple[str, ...]:
    """What else stands in the way."""
    if len(problem.launches) > 1 or not problem.workloads:
        return ()
    found = _lift_cached(problem)
    return tuple(f"  also {said}" for said in found.others) if isinstance(found, NotReadable) else ()


def rests_on(kernel: KernelModel | str) -> tuple[str, ...]:
    """What that reading relies on, and why it may."""
    return () if isinstance(kernel, str) else tuple(fact_lines(kernel))


def _places_on_models(written: Written, context: Context) -> dict[str, str]:
    """Where moves act in the kernels that are written anew, by kernel where the call has several."""
    used = [move for move in MOVES if move.name in written.moves]
    found: dict[str, list[str]] = {}
    reading = read_call(context.problem)
    for part, kernel in reading:
        if isinstance(kernel, str):
            continue
        inside = Context(with_entry_sizes(part.problem, kernel.pinned), context.device, part.number)
        for name, place in _move_places(used, TemplateDraft(kernel, number=part.number), inside):
            found.setdefault(name, []).append(
                f"{part.entry}: {place}" if len(reading) > 1 and place else place
            )
    return {name: "; ".join(filter(None, places)) for name, places in found.items()}


def _places_in_text(written: Written, context: Context) -> dict[str, str]:
    local = [move for move in LOCAL_MOVES if move.name in written.moves]
    site = find_site(context.problem)
    return (
        {}
        if isinstance(site, str)
        else dict(_move_places(local, start_draft(site, context.problem), context))
    )


def _move_places(moves: Sequence[Move[_Any]], draft: _Any, context: Context) -> Iterator[tuple[str, str]]:
    """Of each move that applies: where it would act, before it has and otherwise afterwards."""
    for move in moves:
        changed = move.apply(draft, context)
        if not isinstance(changed, str):
            yield move.name, move.places(draft, context) or move.places(changed, context)
            draft = changed


# -- Launches with many times the blocks that the kernel's own bounds let work.
#
# Such a launch is right, and may be what production does. It may also be a slip, and then the time that it
# wastes is counted as a gain. Only blocks that do nothing at all are counted: any block may be empty in part.


TIMES = 8  # as many blocks as have work: from here on it is told
NAMED = 3  # workloads; more are only counted
SPARE = 64  # idle blocks that nobody notices, as rounding up to whole clusters leaves them


@dataclass(frozen=True)
class ExcessBlocks:
    """A workload's launch, in threads."""

    workload: str
    launched: int
    enough: int  # those of the blocks that have work
    meant: tuple[tuple[str, str], ...] = ()  # what the grid says -> the same if it counted threads

    @property
    def times(self) -> float:
        return self.launched / self.enough


def excess_block_notes(problem: Problem, device: Device) -> tuple[str, ...]:
    """In words; nothing where the kernel cannot be read."""
    if not languages.find_language(problem.kernel.language).is_c_family:
        return ()
    notes = []
    for part, kernel in read_call(problem):
        found = () if isinstance(kernel, str) else excess_blocks(part.problem, kernel, device)
        if found:
            note = _excess_note(found, problem.kernel.language)
            notes.append(f"{part.entry}: {note}" if part.number else note)
    return tuple(notes)


def excess_blocks(problem: Problem, kernel: KernelModel, device: Device) -> tuple[ExcessBlocks, ...]:
    """The workloads whose launch has far more than the kernel can use."""
    problem = with_entry_sizes(problem, kernel.pinned)
    parameters = launch_terms(problem, tuple(p.name for p in kernel.function.parameters)).parameters
    found: list[ExcessBlocks] = []
    for workload in problem.workloads:
        scenario = scenario_at(problem, parameters, workload.as_dict(), device.limits.names())
        if scenario is None or not kernel.reach:
            continue
        parts = [_working_blocks(part, problem, scenario) for part in kernel.reach]
        blocks, meant = max(parts, key=lambda part: math.prod(part[0]))
        launched, enough = math.prod(scenario.grid), math.prod(blocks)
        if launched >= TIMES * enough and launched - enough >= SPARE:
            threads = scenario.threads
            found.append(ExcessBlocks(workload.name, launched * threads, enough * threads, meant))
    return tuple(found)


def _working_blocks(
    reaches: Sequence[Reach], problem: Problem, scenario: Scenario
) -> tuple[tuple[int, ...], tuple[tuple[str, str], ...]]:
    """Blocks along each axis that have work, and how the grid may have been meant."""
    launch, blocks, meant = problem.launches[0], list(scenario.grid), dict[str, str]()
    numbers = scenario.numbers
    for reach in reaches:
        counted = [axis for axis in range(len(launch.grid)) if _grid_axis_name(axis) in names_in(reach.count)]
        if len(counted) != 1:
            continue
        axis = counted[0]
        grid, block = launch.grid[axis], [expr.text for expr in launch.block]
        # A loop is often given as many blocks as keep the device busy, whatever there is to do.
        if reach.goes_on and not grid.names & set(problem.size_names):
            continue
        values, bound = (
            int_value(reach.count, {**numbers, _grid_axis_name(axis): 1}),
            int_value(reach.bound, numbers),
        )
        if values is None or bound is None:
            continue
        needed = -(-max(1, bound) // max(1, values))
        if needed >= blocks[axis]:
            continue
        blocks[axis] = needed
        if values > 1 and -(-scenario.grid[axis] // values) == needed:
            by = block[axis] if axis < len(block) and values == scenario.block[axis] else str(values)
            meant[grid.text] = f"ceildiv({grid.text}, {by})"
    return tuple(blocks), tuple(meant.items())


def _grid_axis_name(axis: int) -> str:
    return f"gridDim.{'xyz'[axis]}"


def _excess_note(found: Sequence[ExcessBlocks], language: str) -> str:
    """The rule, the numbers, what to do."""
    groups, items = ("work-groups", "work-items") if language == "opencl" else ("blocks", "threads")
    worst = max(found, key=lambda one: one.times)
    others = [one.workload for one in found if one is not worst]
    named = ", ".join(others) if len(others) <= NAMED else f"{len(others)} other workloads"
    likewise = f"; similarly at {named}" if others else ""
    meant = " and ".join(f'"{said}" is meant as "{better}"' for said, better in worst.meant)
    see = f"perhaps {meant}" if meant else "see whether it is too large"
    return (
        f"at {worst.workload} the launch has {worst.times:.0f} times the {items} that the kernel uses "
        f"({worst.launched} where {worst.enough} are enough{likewise}): grid counts {groups}, not "
        f"{items}, so {see}; if production launches it so, all is well"
    )
