"""Kernels whose tasks are each worked on by a team of threads, read by playing through their blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.nodes import Binary, Cast, Expr, Name, Type
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in, numbered
from tunesmith.expert.model import geometry
from tunesmith.expert.model.affine import BUILTINS, number
from tunesmith.expert.model.kernel import (
    KernelReading,
    OutOfReach,
    Reach,
    Step,
    Task,
    names_in_steps,
    renamed_lets,
    replaced,
    without_unused,
)
from tunesmith.expert.model.kernel import Team as TeamKind
from tunesmith.expert.model.normal import Id
from tunesmith.expert.model.scenarios import Scenario
from tunesmith.expert.model.team_loops import TeamState
from tunesmith.expert.model.team_memory import BlockMemory, Int, Vec
from tunesmith.expert.model.team_statements import BlockInterpreter
from tunesmith.expert.model.translate import axis_name, block_threads, launch_name, product


class TeamReader:
    """Plays through every scenario, compares what comes out, and finds the tasks in it."""

    def __init__(
        self,
        kernel: geometry.LaunchedKernel,
        layouts: Sequence[geometry.Layout],
        warp: int,
        real: Sequence[Scenario] = (),
        element_per_thread: bool = False,
    ) -> None:
        self._kernel = kernel
        self._normal, self._launch, self._loops = kernel.normal, kernel.launch, kernel.loops
        self._layouts = layouts
        self._warp = warp
        self._real = real or [layout.scenario for layout in layouts]
        self._element_per_thread = element_per_thread
        self._element = ""
        self._reach: list[Reach] = []
        names = self._normal.definitions
        names |= {name: Name(name) for name in sorted(geometry.THREAD | geometry.BLOCK)}
        # Variables (and built-in indices) that run along an axis of the tasks, in every scenario.
        self._axes = {name: axis for name, expr in names.items() if (axis := self._axis(expr)) is not None}

    def _axis(self, expr: Expr) -> geometry.CountedIndex | None:
        found = geometry.counted(expr, self._layouts) if geometry.is_straight(expr) else None
        return found if found is not None and found.times == 1 else None

    def read(self) -> KernelReading:
        played = [self._play(layout) for layout in reversed(self._layouts)]
        first, steps = played[0]
        for other, other_steps in played[1:]:
            if other_steps != steps:
                block = other.memory.scenario.block
                raise OutOfReach(
                    "what the threads of a block do together differs with the launch: blocks of "
                    f"{first.memory.scenario.block} and of {block} threads come to different steps"
                )
        self._check_effects(first)
        tasks, steps = self._tasks(first, steps)
        staged = tuple(found.staged for found in first.memory.staged.values())
        if self._element in first.bounds.limits:
            lanes = block_threads() if self._lanes() is None else self._lanes() or number(0)
            self._reach.append(Reach(self._element, first.bounds.limits[self._element], lanes))
        barriers, reach = first.record.barriers, tuple(self._reach)
        return KernelReading(tasks, steps, self._kind(), self._lanes(), staged, barriers, (), reach)

    # -- playing ------------------------------------------------------------------------------------

    def _play(self, layout: geometry.Layout) -> tuple[TeamState, tuple[Step, ...]]:
        fixed = self._fixed(layout)
        element: tuple[Expr, str] = (number(0), "int")
        if self._element_per_thread:
            self._element = self._own_index(layout, fixed)
            element = (self._lanes() or number(layout.lanes), self._kernel.type_of(self._element))
        memory = BlockMemory(self._normal, layout, self._warp, fixed, self._kernel.aliases, self._element)
        tasks = frozenset(self._axes) | ({self._element} if self._element else set())
        team = TeamState(self._normal, layout, self._loops, memory, tasks, element)
        BlockInterpreter(team).statements(self._normal.body, team.alive)
        return team, renamed_lets(without_unused(team.record.steps), team.record.better_names)

    def _own_index(self, layout: geometry.Layout, fixed: dict[str, Vec]) -> str:
        """The index that says which element of its team a thread has; every such index is called by it."""
        names = self._normal.definitions
        names |= {name: Name(name) for name in sorted(geometry.THREAD)}
        ranks = [name for name, expr in names.items() if self._is_rank(expr)]
        if not ranks:
            raise OutOfReach("no index says which thread of its team a thread is")
        element = ranks[0]
        for name in ranks:
            fixed[name] = Vec(
                None, [Int(t % layout.lanes, Name(element)) for t in range(layout.scenario.threads)]
            )
        if layout.lanes == 1:
            fixed |= {name: Vec(Int(0, Name(element))) for name in ranks}
        return element

    def _is_rank(self, expr: Expr) -> bool:
        for layout in self._layouts:
            form = geometry.form_of(expr, layout.scenario)
            if form is None or any(form.per_block):
                return False
            if any(value != t % layout.lanes for t, value in enumerate(form.base)):
                return False
        return True

    def _fixed(self, layout: geometry.Layout) -> dict[str, Vec]:
        """What built-in indices and the variables made of them are, in every thread of block 0."""
        scenario = layout.scenario
        found: dict[str, Vec] = {}
        numbers = scenario.numbers
        for name in BUILTINS:
            expr: Expr | None = Name(name) if name in self._axes else None
            if name in geometry.LAUNCH:
                # How many blocks there are a kernel may ask: that of tasks has a name (see `_tasks`).
                asked = Name(name) if name.startswith("gridDim") else None
                found[name] = Vec(Int(numbers[name], self._launch.values.get(name, asked), True))
            elif name in geometry.BLOCK:
                found[name] = Vec(Int(0, expr))
            else:
                axis = "xyz".index(name[-1])
                places = [scenario.thread(thread)[axis] for thread in range(scenario.threads)]
                found[name] = _vector(places, expr)
        for name, id_ in self._normal.ids.items():
            values = geometry.values_of(id_.expr, scenario)
            if values is None:
                raise OutOfReach.at(id_.line, f"'{id_.name}' has no number at launch")
            sized = not names_in(id_.expr) <= set(BUILTINS)
            if not names_in(id_.expr) & (geometry.THREAD | geometry.BLOCK):
                found[name] = Vec(Int(values[0], self._said(id_), True, sized))
            else:
                expr = Name(name) if name in self._axes else self._said(id_)
                found[name] = _vector(values, expr, sized)
        return found

    def _said(self, id_: Id) -> Expr | None:
        """An index that is the same for the team, in terms of the tasks; None where it is not."""
        expr = id_.short
        for _ in range(20):
            inner = {
                name: self._normal.ids[name].short
                for name in names_in(expr)
                if name in self._normal.ids and name not in self._axes
            }
            if not inner:
                break
            expr = substitute(expr, inner)
        if any(name in geometry.THREAD and name not in self._axes for name in names_in(expr)):
            return None
        return self._launch.replaced(expr)

    # -- tasks --------------------------------------------------------------------------------------

    def _check_effects(self, team: TeamState) -> None:
        """What is stored outside a task's bound would be left out."""
        for name in team.bounds.limits:
            for effect in team.record.effects:
                if name not in effect.bounded:
                    raise OutOfReach.at(
                        effect.line,
                        f"this is stored whether or not '{name}' is within its bound, "
                        "which is tested elsewhere",
                    )

    def _tasks(self, team: TeamState, steps: tuple[Step, ...]) -> tuple[tuple[Task, ...], tuple[Step, ...]]:
        loops = team.bounds.tasks - set(self._axes) - {self._element}
        axes = {**self._axes, **{index: self._loop_axis(index) for index in loops}}
        used = {name: axes[name] for name in names_in_steps(steps) & set(axes) | loops}
        used, aliases = self._one_name_each(used, team)
        self._check_cover(used)
        names = dict(aliases)
        tasks: list[tuple[tuple[bool, int], Task]] = []
        taken = set(self._normal.types) | set(self._normal.ids) | names_in_steps(steps)
        for name, axis in used.items():
            extent = self._extent(name, axis, team)
            fresh = name
            if name in BUILTINS:
                fresh = numbered(axis_name(name), taken)
                names[name] = Name(fresh)
            task = Task(fresh, extent, self._kernel.type_of(name), self._launch.size_text(extent))
            tasks.append(((axis.grid is None, -(axis.grid or 0)), task))
        tasks.sort(key=lambda pair: pair[0])
        steps = replaced(steps, names) if names else steps
        # How far a task's index goes may be asked for: it is given a name (see `wrap_up`).
        named = {task.extent.name for _, task in tasks if isinstance(task.extent, Name)}
        left = names_in_steps(steps) & set(BUILTINS) - named
        if left:
            raise OutOfReach(f"what the team does depends on {', '.join(sorted(left))}")
        return tuple(task for _, task in tasks), steps

    def _one_name_each(
        self, used: dict[str, geometry.CountedIndex], team: TeamState
    ) -> tuple[dict[str, geometry.CountedIndex], dict[str, Expr]]:
        """One name for every axis; other names for the same are replaced by it."""
        chosen: dict[str, geometry.CountedIndex] = {}
        aliases: dict[str, Expr] = {}
        ranked = sorted(used, key=lambda n: (n not in team.bounds.limits, n in BUILTINS, n))
        for name in ranked:
            axis = used[name]
            other = next((n for n, a in chosen.items() if a == axis), None)
            if other is not None:
                aliases[name] = Cast(Type(self._kernel.type_of(name)), Name(other))
                continue
            if any((a.teams and axis.teams) or a.grid == axis.grid is not None for a in chosen.values()):
                raise OutOfReach("both the number of a block and the number of a team in it say the task")
            chosen[name] = axis
        return chosen, aliases

    def _check_cover(self, used: Mapping[str, geometry.CountedIndex]) -> None:
        for layout in self._layouts:
            for axis in range(3):
                if layout.scenario.several[axis] and not any(a.grid == axis for a in used.values()):
                    raise OutOfReach(f"the blocks along {'xyz'[axis]} of the grid all do the same work")
            if layout.teams > 1 and not any(a.teams for a in used.values()):
                raise OutOfReach(f"the {layout.teams} teams of a block all do the same work")

    def _loop_axis(self, index: str) -> geometry.CountedIndex:
        """What a loop over tasks counts; it must step by as many as start together."""
        loop, definitions = self._loops[index], self._normal.definitions
        axis = self._axis(substitute(loop.head.start, definitions))
        if axis is None:
            raise OutOfReach.at(loop.line, f"the loop over '{index}' is shared in a way not followed")
        step = substitute(loop.head.step, definitions)
        for layout in self._layouts:
            together = 1 if axis.grid is None else layout.scenario.grid[axis.grid]
            together *= layout.teams if axis.teams else 1
            by = int_value(step, layout.scenario.numbers)
            if by != together:
                said = "no number at launch" if by is None else str(by)
                raise OutOfReach.at(
                    loop.line, f"the loop over '{index}' steps by {said}, but {together} start together"
                )
        return axis

    def _extent(self, name: str, axis: geometry.CountedIndex, team: TeamState) -> Expr:
        bound = team.bounds.limits.get(name)
        if bound is not None:
            goes_on = name in self._loops
            shapes = [lay.teams for lay in self._layouts], [lay.lanes for lay in self._layouts]
            if not goes_on or not axis.teams or any(len(set(counts)) == 1 for counts in shapes):
                self._reach.append(Reach(name, bound, self._count(axis), goes_on))
            return bound
        extent = self._count(axis)
        whole = self._launch.replaced(extent)
        return fold(extent) if names_in(whole) & set(BUILTINS) else whole

    def _count(self, axis: geometry.CountedIndex) -> Expr:
        """How many tasks the launch comes to along the axis."""
        count: Expr = number(1) if axis.grid is None else launch_name("gridDim", axis.grid)
        return product(count, self._teams()) if axis.teams or self._by_rows() else count

    def _by_rows(self) -> bool:
        return self._real[0] != self._layouts[0].scenario

    def _teams(self) -> Expr:
        if self._by_rows():
            return block_threads()
        counts = {layout.teams for layout in self._layouts}
        if len(counts) == 1:
            return number(counts.pop())
        lanes = {layout.lanes for layout in self._layouts}
        if len(lanes) == 1:
            return fold(Binary("/", block_threads(), number(lanes.pop())))
        raise OutOfReach("how many teams a block has follows no rule")

    def _lanes(self) -> Expr | None:
        lanes = {layout.lanes for layout in self._layouts}
        if len(lanes) == 1:
            return number(lanes.pop())
        if any(layout.teams != 1 for layout in self._layouts):
            return None
        threads = self._launch.replaced(block_threads())
        return None if names_in(threads) & set(BUILTINS) else threads

    def _kind(self) -> TeamKind:
        layout = self._layouts[-1]
        if layout.lanes == 1:
            return "thread"
        if layout.teams == 1 or layout.lanes > self._warp:
            return "block"
        return "warp" if layout.lanes == self._warp else "part of a warp"


def _vector(values: Sequence[int], expr: Expr | None, sized: bool = False) -> Vec:
    if len(set(values)) == 1:
        return Vec(Int(values[0], expr, sized=sized))
    return Vec(None, [Int(value, expr, sized=sized) for value in values])


def read_teams(kernel: geometry.LaunchedKernel, language: str) -> KernelReading:
    warp, tried = 64 if language == "hip" else 32, kernel.scenarios
    if not any(loop.role == "element" for loop in kernel.loops.values()):
        return _read_element_per_thread(kernel, warp)
    layouts = [geometry.Layout(at, geometry.team_lanes(kernel.loops, kernel.normal, at)) for at in tried]
    try:
        return TeamReader(kernel, layouts, warp).read()
    except OutOfReach:
        if language != "hip":
            raise
        # Some devices that HIP serves have warps of 32.
        return TeamReader(kernel, layouts, 32).read()


def _read_element_per_thread(kernel: geometry.LaunchedKernel, warp: int) -> KernelReading:
    """Kernels with an element to each thread: by blocks, or by rows of a block with several."""
    tried = [scenario for scenario in kernel.scenarios if scenario.threads > 1]
    tried = [tried[0], tried[-1]] if len(tried) > 2 else tried
    shapes = [[geometry.Layout(scenario, scenario.threads) for scenario in tried]] if tried else []
    if any(scenario.block[1] * scenario.block[2] > 1 for scenario in tried):
        shapes.append([geometry.Layout(scenario, scenario.block[0]) for scenario in tried])
    if all(scenario.threads % warp == 0 for scenario in tried):
        shapes.append([geometry.Layout(scenario, warp) for scenario in tried])
    reasons: list[OutOfReach] = []
    distinct = {tuple(layout.lanes for layout in layouts): layouts for layouts in reversed(shapes)}
    for layouts in reversed(distinct.values()):
        try:
            return TeamReader(kernel, layouts, warp, element_per_thread=True).read()
        except OutOfReach as stop:
            reasons.append(stop)
    if not reasons:
        raise OutOfReach("a single thread to a block")
    furthest = max(reasons, key=lambda stop: stop.line)
    raise OutOfReach(
        f"threads cooperate other than by totals over a row's elements: {furthest.reason}", furthest.line
    )


def read_rows(kernel: geometry.LaunchedKernel) -> KernelReading:
    """Kernels with a thread to each row: the loops of one thread become loops over elements."""
    layouts = [geometry.Layout(scenario.of_threads(), 1) for scenario in kernel.scenarios[-2:]]
    return TeamReader(kernel, layouts, 32, real=kernel.scenarios).read()
