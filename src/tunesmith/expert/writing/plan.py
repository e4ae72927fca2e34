"""What is decided of a kernel before a line is printed: packs, tails, what stays in registers, names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tunesmith.core.problem import Problem
from tunesmith.expert.c.nodes import Binary, Expr, Number, Type
from tunesmith.expert.c.walk import names_in
from tunesmith.expert.model.affine import BUILTINS
from tunesmith.expert.model.kernel import Draft, Each, Kernel, Step, Task
from tunesmith.expert.model.step_tree import all_steps
from tunesmith.expert.writing.naming import Knobs, Names
from tunesmith.expert.writing.packs import Key, Pack
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.expert.writing.unwritable import Unwritable


@dataclass
class Group:
    """Loops over the same range, one after the other, between which a thread's elements can stay."""

    start: Expr
    stop: Expr
    loops: list[LoopPlan] = field(default_factory=list)
    shared: set[Key] = field(default_factory=set)  # packs that live as long as the group
    early: dict[Key, Pack] = field(
        default_factory=dict
    )  # loads of later loops that may come with the first's


@dataclass
class LoopPlan:
    each: Each
    packs: tuple[Pack, ...]
    names: dict[Key, str] = field(default_factory=dict)
    tail: bool = False  # the range may end within a pack
    group: Group | None = None
    reused: set[Key] = field(default_factory=set)  # loaded, or made, by an earlier loop of the group
    dead: set[Key] = field(default_factory=set)  # stored again by a later one, and not read in between

    @property
    def extent(self) -> Expr:
        if self.each.start == Number("0", 0):
            return self.each.stop
        return Binary("-", self.each.stop, self.each.start)


@dataclass
class Plan:
    draft: Draft
    problem: Problem
    kernel: Kernel  # with every loop an object of its own
    sizes: Sizes
    knobs: Knobs
    names: Names
    loops: dict[int, LoopPlan]  # by id of the loop
    groups: list[Group]
    arrays: dict[str, Type]  # pointer parameters
    written: frozenset[str]  # arrays the kernel writes, and their aliases
    element_align: dict[str, int]
    beside: list[tuple[LoopPlan, ...]] = field(default_factory=list)  # loops that may run side by side

    @property
    def language(self) -> str:
        return self.kernel.source.language

    @property
    def is_flat(self) -> bool:
        return not self.kernel.tasks

    @property
    def outer(self) -> tuple[Task, ...]:
        """Further indices of the tasks that only today's grid tells the end of: axes z and y of the grid.

        Axis y is free where no task is split over several blocks. What lies along x today stays
        there: only that axis may be long.
        """
        untold = [task for task in self.kernel.tasks if names_in(task.extent) & set(BUILTINS)]
        if len(untold) > (2 if self.knobs.split.most > 0 else 3):
            raise Unwritable(
                "several indices of the tasks end where today's grid does, and nobody tells where"
            )
        along_x = next((task for task in untold if "gridDim.x" in names_in(task.extent)), None)
        return tuple(task for task in untold if task != (along_x or untold[0]))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The others, which become one index; one whose end nobody tells is the slowest."""
        found = [task for task in self.kernel.tasks if task not in self.outer]
        return tuple(sorted(found, key=lambda task: not names_in(task.extent) & set(BUILTINS)))

    @property
    def counts_tasks(self) -> bool:
        """Whether the kernel is told how many tasks there are; else the grid must be exactly as large."""
        return not any(names_in(task.extent) & set(BUILTINS) for task in self.tasks)

    @property
    def all_loops(self) -> tuple[LoopPlan, ...]:
        return tuple(self.loops.values())

    @property
    def has_totals(self) -> bool:
        return any(loop.each.totals for loop in self.all_loops)

    @property
    def keeps(self) -> tuple[Group, ...]:
        """Groups with something to keep, where the schedule may keep it."""
        return tuple(self.groups) if self.knobs.keep.most > 0 else ()

    def is_touched_once(self, pack: Pack) -> bool:
        """Whether its elements belong to one task, so that nobody else wants them in a cache."""
        names = names_in(pack.index) | (frozenset() if pack.offset is None else names_in(pack.offset))
        return self.is_flat or not names.isdisjoint(task.name for task in self.kernel.tasks)

    def loop(self, each: Each) -> LoopPlan:
        return self.loops[id(each)]


def loops_in(steps: Sequence[Step]) -> Iterator[Each]:
    return (step for step in all_steps(steps) if isinstance(step, Each))
