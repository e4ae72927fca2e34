"""The kernel of a template, printed: its head, the loop over tasks, its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Number, Parameter, Stmt
from tunesmith.csource.printing import print_expr, print_parameter
from tunesmith.csource.types import byte_size
from tunesmith.expert.model.kernel import Each, Let, Once, Repeat, Step, When
from tunesmith.expert.writing.cpu_loops import CpuLoops
from tunesmith.expert.writing.fast_math import FastMath, known_types
from tunesmith.expert.writing.gpu_loops import GpuLoops
from tunesmith.expert.writing.loops import unrolled
from tunesmith.expert.writing.naming import CodeLines, dialect
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.rules import Baked, staged_extent
from tunesmith.expert.writing.team_totals import CpuTotals, TeamTotals


def guard(plan: WritingPlan) -> str:
    """The name for whether a thread has a task; "" where those that have none may leave.

    Where a total is taken over several warps every thread of a block must come along.
    """
    needs = plan.has_totals and not plan.is_flat and plan.knobs.tasks.most > 1 and plan.knobs.lanes.most > 1
    return plan.names.fresh("inside") if needs else ""


class KernelText:
    def __init__(
        self,
        plan: WritingPlan,
        fast: FastMath,
        baked: Baked,
        loops: GpuLoops | CpuLoops,
        totals: TeamTotals | CpuTotals,
        inside: str,
    ) -> None:
        fresh = plan.names.fresh
        self._plan, self._fast, self._baked = plan, fast, baked
        self._task, self._tasks, self._first = fresh("task"), fresh("tasks"), fresh("first")
        self._inside, self._totals, self.loops = inside, totals, loops
        self._d = dialect(plan.language)
        self._row, self._rows = fresh("TASK_BLOCK"), fresh("TASK_BLOCKS")
        self._memory = fresh("kept_bytes")

    def defines(self) -> list[str]:
        plan, loops, d = self._plan, self.loops, self._d
        pieces = [f"#define {loops.piece} {d.block[0]}", f"#define {loops.pieces} {d.grid[0]}"]

        def rows(axis: int) -> list[str]:
            return [f"#define {self._row} {d.block[axis]}", f"#define {self._rows} {d.grid[axis]}"]

        split = plan.knobs.split
        if plan.is_flat:
            lines = pieces
        elif split.most > 0:
            alone = [f"#define {loops.piece} 0", f"#define {loops.pieces} 1"]
            switch = f"#if {split.name}  // blocks side by side on one task"
            lines = [switch, *pieces, *rows(1), "#else", *alone, *rows(0), "#endif"]
        else:
            lines = rows(0)
        return [*lines, *self._totals.defines(), *loops.defines()]

    def text(self) -> str:
        plan, out = self._plan, CodeLines()
        function = plan.kernel.function
        out.add(f"{self._d.kernel} {self._bounds()}".rstrip())
        parameters = [print_parameter(self._baked.parameter(p), plan.language) for p in self._parameters()]
        out.add(_wrapped(f"{function.name}(", parameters))
        with out.block(""):
            out.add(*self._baked.lines(), *self.loops.division.lines())
            self._totals.declare(out)
            out.add(f"const int {self.loops.lane} = {self._d.thread[0]};")
            scope = {p.name for p in function.parameters}
            if plan.is_flat:
                self._steps(plan.kernel.steps, out, scope)
            else:
                self._over_tasks(out, scope)
        return out.text.replace("\n {", "\n{")

    def _bounds(self) -> str:
        knobs, bounds = self._plan.knobs, self._plan.draft.schedule.bounds
        threads = knobs.lanes.name
        if knobs.tasks.is_parameter or knobs.tasks.default > 1:
            threads = f"{threads} * {knobs.tasks.name}"
        if self._plan.language == "opencl":
            return f"__attribute__((reqd_work_group_size({knobs.lanes.name}, {knobs.tasks.name}, 1))) void"
        if self._plan.language == "hip" or bounds is None:
            return f"__launch_bounds__({threads})"
        return f"__launch_bounds__({threads}, {bounds.name})"

    def _parameters(self) -> list[Parameter]:
        """`__restrict__` where callers promise that no two arrays overlap."""
        plan = self._plan
        disjoint = all(argument.alias is None for argument in plan.problem.arguments)
        return [
            replace(p, type=replace(p.type, restrict=True)) if p.type.is_pointer and disjoint else p
            for p in plan.kernel.function.parameters
        ]

    # -- tasks --------------------------------------------------------------------------------------

    def _over_tasks(self, out: CodeLines, scope: set[str]) -> None:
        plan, knobs = self._plan, self._plan.knobs
        extents = [task.extent for task in plan.tasks]
        fits = plan.sizes.fits_int(*extents, Number("2", 2)) if plan.counts_tasks else True
        type_ = "int" if fits else self._d.wide
        counts = [print_expr(extent, plan.language) for extent in extents]
        cast = "" if fits else f"({self._d.wide})"
        product = " * ".join(_in_product(count) for count in counts)
        if not plan.counts_tasks:
            cast, product = "", f"({type_}){self._rows} * {knobs.tasks.name}"
        out.add(f"const {type_} {self._tasks} = {cast}{product};")
        out.blank()
        tasks, first = knobs.tasks.name, self._first
        start = f"({type_}){self._row} * {tasks}"
        step = f"({type_}){self._rows} * {tasks}"
        loop = f"for ({type_} {first} = {start}; {first} < {self._tasks}; {first} += {step}) {{"
        goes_on = [knobs.persistent.name] if knobs.persistent.most > 0 else []
        if knobs.split.most > 0 and plan.counts_tasks:  # else there is a block for every task
            goes_on.append(knobs.split.name)
        if goes_on:
            out.add(f"#if {' || '.join(goes_on)}  // blocks go on to further tasks", loop, "#else")
        out.open()
        out.add(f"const {type_} {first} = {start};", *(["#endif"] if goes_on else []))
        self._task_names(out, type_)
        self._staged_rows(out)
        self._steps(plan.kernel.steps, out, scope | {task.name for task in plan.kernel.tasks})
        out.close()

    def _task_names(self, out: CodeLines, type_: str) -> None:
        plan = self._plan
        place = f"{self._first} + ({type_}){self._d.thread[1]}" if plan.knobs.tasks.most > 1 else self._first
        if self._inside:
            guard_text = f"const {self._d.truth} {self._inside} = {place} < {self._tasks};"
            out.add(f"{guard_text}  // the last block may lack tasks")
            last = f"{self._tasks} - 1"
            out.add(f"const {type_} {self._task} = {self._inside} ? {place} : {last};")
        else:
            out.add(f"const {type_} {self._task} = {place};")
            if plan.knobs.tasks.most > 1:
                out.add(f"if ({self._task} >= {self._tasks})", "    return;")
        names = list(plan.tasks)
        places = ((self._d.block[2], self._d.grid[2]), (self._d.block[1], self._d.grid[1]))
        for outer, (place, count) in zip(plan.outer, places, strict=False):
            out.add(f"const {outer.type} {outer.name} = {place};")
            if outer.count:
                out.add(f"const unsigned int {outer.count} = {count};")
        rest = self._task
        for number, task in enumerate(reversed(names)):
            extent = _in_product(print_expr(task.extent, plan.language))
            value = rest if number == len(names) - 1 else f"{_in_product(rest)} % {extent}"
            if task.type != type_:
                value = f"({task.type}){value if value == self._task else f'({value})'}"
            out.add(f"const {task.type} {task.name} = {value};")
            rest = f"{rest} / {extent}"
            if task.count:  # nobody tells it, so it is the slowest, and the grid is exactly as large
                others = " * ".join(_in_product(print_expr(t.extent, plan.language)) for t in names[1:])
                count = f"{self._tasks} / ({others})" if others else self._tasks
                out.add(f"const unsigned int {task.count} = {count};")

    def _staged_rows(self, out: CodeLines) -> None:
        plan = self._plan
        if not plan.kernel.staged:
            return
        out.add("// What a loop leaves for a later one.")
        with out.only_if(f"!{plan.knobs.keep.name}" if plan.keeps_staged else ""):
            out.add(f"extern __shared__ __align__(16) unsigned char {self._memory}[];")
            before = ""
            for staged in plan.kernel.staged:
                extent = _in_product(print_expr(staged_extent(plan, staged.name)))
                size = (byte_size(staged.type.base) or 0) * staged.width
                bytes_ = f"(({extent} * {size} + 15) / 16 * 16)"
                at = f"{self._memory}{before} + threadIdx.y * {bytes_}"
                out.add(f"{staged.type.base} *{staged.name} = ({staged.type.base} *)({at});")
                before += f" + {plan.knobs.tasks.name} * {bytes_}"

    # -- steps --------------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step], out: CodeLines, scope: set[str]) -> None:
        for step in steps:
            match step:
                case Each():
                    self.loops.write(self._plan.loop(step), out, scope)
                case Let(body=body):
                    self._print(body, out)
                case Once(body=body):
                    conditions = [f"{self.loops.lane} == 0"]
                    if self._plan.is_flat or self._plan.knobs.split.most > 0:
                        conditions.append(f"{self.loops.piece} == 0")
                    if self._inside:
                        conditions.append(self._inside)
                    with out.block(f"if ({' && '.join(conditions)})"):
                        self._print(body, out)
                case When(condition=condition, then=then, otherwise=otherwise):
                    with out.block(f"if ({print_expr(condition)})"):
                        self._steps(then, out, set(scope))
                    if otherwise:
                        with out.block("else"):
                            self._steps(otherwise, out, set(scope))
                case Repeat():
                    stop, by = print_expr(step.stop), print_expr(step.step)
                    head = f"for ({step.type} {step.index} = {print_expr(step.start)}; "
                    with out.block(f"{head}{step.index} < {stop}; {step.index} += {by})"):
                        self._steps(step.body, out, scope | {step.index})

    def _print(self, body: Sequence[Stmt], out: CodeLines) -> None:
        stmts, _ = self._fast.statements(body, known_types(self._plan.kernel))
        out.statements(unrolled(stmts, self._plan), self._plan.language)


def _in_product(text: str) -> str:
    simple = all(word not in text for word in ("+", "-", "?", "<", ">", "&", "|", "%", "/"))
    return text if simple else f"({text})"


def _wrapped(head: str, items: Sequence[str], width: int = 108) -> str:
    """A call or a declaration over as many lines as it needs."""
    pad = " " * len(head)
    lines, line = [], head
    for number, item in enumerate(items):
        piece = item + (", " if number < len(items) - 1 else ")")
        if len(line) + len(piece.rstrip()) > width and line.strip() != head.strip():
            lines.append(line.rstrip())
            line = pad
        line += piece
    lines.append(line)
    return "\n".join(lines)
