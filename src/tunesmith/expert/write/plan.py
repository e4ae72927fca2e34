"""What is decided of a kernel before a line is printed: packs, tails, what stays in registers, names."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from tunesmith.expert.read.contract import with_entry_sizes
from tunesmith.expert.read.model import Each, TemplateDraft
from tunesmith.expert.write.buffers import Blocking, LoopPlan, SharedRow, planned_loops, shared_rows
from tunesmith.expert.write.given import Given, Unwritable, wide_integer_type
from tunesmith.expert.write.sites import find_loop_runs, length_of_all
from tunesmith.problem.problem import Problem
from tunesmith.source.tree import Number


@dataclass(frozen=True)
class WritingPlan(Given):
    blocking: Blocking = field(default_factory=Blocking)
    all_loops: tuple[LoopPlan, ...] = ()  # by their numbers
    beside: tuple[tuple[LoopPlan, ...], ...] = ()  # loops that may run side by side
    shared: tuple[SharedRow, ...] = ()

    def index_type(self, loop: LoopPlan) -> str:
        """An int, unless a step beyond the end could overflow it."""
        reach = [loop.each.stop, Number("2", 2)] if self.is_spread else [loop.each.stop]
        return "int" if self.sizes.fits_int(*reach) else wide_integer_type(self.language)

    @property
    def keeps(self) -> bool:
        """Whether rows may stay in registers: the schedule says so, and loops read elements again."""
        return self.knobs.keep.most > 0 and any(loop.in_row for loop in self.all_loops)

    @property
    def guards(self) -> bool:
        """Whether threads without a task come along: where several warps share a total a whole block must."""
        several = self.knobs.tasks.most > 1 and self.knobs.lanes.most > 1
        return self.has_totals and not self.is_flat and several

    @property
    def settles(self) -> bool:
        """Whether what is kept must be held on to as it came."""
        return self.language == "cuda" and self.keeps

    @property
    def keeps_staged(self) -> bool:
        """Whether nothing is left in shared memory once rows are kept."""
        kept = {key[0] for loop in self.all_loops for key in loop.kept}
        return self.keeps and all(row.name in kept for row in self.shared)

    def loop(self, each: Each) -> LoopPlan:
        return self.all_loops[each.number]


def make_plan(draft: TemplateDraft, problem: Problem) -> WritingPlan:
    given = Given.of(draft, with_entry_sizes(problem, draft.kernel.pinned))
    if given.is_flat and (given.has_totals or given.kernel.staged):
        raise Unwritable("a kernel without tasks has a total; nothing says which threads share it")
    blocking = Blocking()
    if given.knobs.blocking.is_parameter:
        if given.is_flat or given.language == "opencl":
            raise Unwritable("there are no tasks, or no registers, to take several at once")
        blocking = Blocking.of(given)
    loops = planned_loops(given, blocking)
    known = {field.name: getattr(given, field.name) for field in fields(given)}
    beside, shared = side_by_side(given, loops), shared_rows(given, loops)
    return WritingPlan(**known, blocking=blocking, all_loops=loops, beside=beside, shared=shared)


def side_by_side(given: Given, loops: tuple[LoopPlan, ...]) -> tuple[tuple[LoopPlan, ...], ...]:
    """Those that take their elements in one way, none of which could keep them, with no pack over an end."""
    if given.is_flat or given.language == "opencl" or not given.knobs.beside.is_parameter:
        return ()
    found = []
    for run in find_loop_runs(given.kernel.steps, given.independence):
        plans = tuple(loops[each.number] for each in run)
        packed = {any(pack.width for pack in loop.packs) for loop in plans}
        whole = not any(loop.tail or loop.in_row for loop in plans)
        if whole and len(packed) == 1 and given.sizes.node(length_of_all(run)) is not None:
            found.append(plans)
    return tuple(found)
