"""The kernel of a template: its head, the loop over tasks, its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_kernel
from tunesmith.csource.snippets import Wording, chained, code
from tunesmith.csource.walk import commented, names_in
from tunesmith.expert.model.kernel import Each, Let, Once, Repeat, Step, When
from tunesmith.expert.writing.comments import SourceComments, at_line
from tunesmith.expert.writing.cpu_loops import CpuLoops
from tunesmith.expert.writing.fast_math import FastMath, known_types
from tunesmith.expert.writing.loops import unrolled
from tunesmith.expert.writing.naming import wide
from tunesmith.expert.writing.nest import LoopAxis
from tunesmith.expert.writing.plain_names import with_plain_names
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.ring import RingLoops
from tunesmith.expert.writing.rules import Baked
from tunesmith.expert.writing.source_names import SourceNames
from tunesmith.expert.writing.tile import TileText

# As assembly: NVRTC has functions for these only with the header of the device's runtime.
_WAIT = c.Verbatim('asm volatile("griddepcontrol.wait;" ::: "memory");')
_START = c.Verbatim('asm volatile("griddepcontrol.launch_dependents;" ::: "memory");')
_HAS_WAITS = "__CUDA_ARCH__ >= 900"


class KernelText:
    def __init__(self, plan: WritingPlan, fast: FastMath, baked: Baked, loops: RingLoops | CpuLoops) -> None:
        self._plan, self._fast, self._baked, self.loops = plan, fast, baked, loops
        self._w, self._tasks = loops.words, c.Name(plan.word("tasks"))

    def defines(self) -> tuple[c.Stmt, ...]:
        plan, define = self._plan, self._w.define
        pieces = (define("PIECE", "blockIdx.x"), define("PIECES", "gridDim.x"))
        alone = (define("PIECE", "0"), define("PIECES", "1"))

        def rows(axis: str) -> tuple[c.Stmt, ...]:
            return (define("TASK_BLOCK", f"blockIdx.{axis}"), define("TASK_BLOCKS", f"gridDim.{axis}"))

        found: tuple[c.Stmt, ...] = pieces if plan.is_flat else rows("x")
        if not plan.is_flat and plan.knobs.split.most > 0:
            said = "blocks side by side on one task"
            found = self._w.when("SPLIT", (*pieces, *rows("y")), (*alone, *rows("x")), said)
        return (*found, *self.loops.defines())

    def text(self) -> str:
        plan = self._plan
        function = plan.kernel.function
        scope = {p.name for p in function.parameters}
        parameters = self._baked.taken(self._parameters())
        macros = names_in(self.defines())
        taken = frozenset({*macros, *plan.file_words, *(p.name for p in parameters)})
        body = (
            *self._overlaps(),
            *self._baked.declare(),
            *SourceNames.of(function, plan.language).in_body(
                (*self.loops.declare(), *self._work(scope)), taken, self.loops.division.functions
            ),
        )
        named = with_plain_names(body, [p.name for p in parameters], plan.file_words, macros)
        made = replace(
            function, parameters=parameters, body=SourceComments(plan.kernel.source).statements(named)
        )
        return print_kernel(made, self._head(), plan.language)

    def _overlaps(self) -> tuple[c.Stmt, ...]:
        """The wait for the launch ahead, before all else; then the launch behind may start."""
        order, waits = self._plan.draft.order, self._plan.kernel.waits
        done = list[c.Stmt]()
        if condition := order.waits_if or (_HAS_WAITS if waits else ""):
            done += Wording({}).when(condition, (_WAIT,), said="the launch ahead has ended")
        if order.starts_if:
            done += Wording({}).when(order.starts_if, (_START,))
        return tuple(done)

    def _work(self, scope: set[str]) -> tuple[c.Stmt, ...]:
        if "tile" in self._plan.draft.schedule:
            return TileText(self._plan, self._fast).text()
        is_flat, steps = self._plan.is_flat, self._plan.kernel.steps
        return self._steps(steps, scope) if is_flat else self._over_tasks(scope)

    def _head(self) -> str:
        knobs = self._plan.knobs
        threads = knobs.lanes.name
        if knobs.tasks.is_parameter or knobs.tasks.default > 1:
            threads = f"{threads} * {knobs.tasks.name}"
        if self._plan.language == "opencl":
            size = f"reqd_work_group_size({knobs.lanes.name}, {knobs.tasks.name}, 1)"
            return f"__kernel __attribute__(({size})) void"
        head = 'extern "C" __global__ void __launch_bounds__'
        if not knobs.bounds.is_parameter:
            return f"{head}({threads})"
        if self._plan.language == "hip":
            return f"{head}({threads}) __attribute__((amdgpu_waves_per_eu({knobs.bounds.name})))"
        return f"{head}({threads}, {knobs.bounds.name})"

    def _parameters(self) -> list[c.Parameter]:
        """`__restrict__` where callers promise that no two arrays overlap."""
        plan = self._plan
        disjoint = all(argument.alias is None for argument in plan.problem.arguments)
        # What a launch ahead writes may not be read before the wait.
        handed = plan.draft.order.handed
        return [
            replace(p, type=replace(p.type, restrict=p.name not in handed))
            if p.type.is_pointer and (disjoint or p.name in handed)
            else p
            for p in plan.kernel.function.parameters
        ]

    # -- tasks --------------------------------------------------------------------------------------

    def _over_tasks(self, scope: set[str]) -> tuple[c.Stmt, ...]:
        plan, knobs, w = self._plan, self._plan.knobs, self._w
        extents = [plan.blocking.extent(task) for task in plan.tasks]
        most = [task.extent for task in plan.tasks]  # there are as many teams, or fewer
        fits = plan.sizes.fits_int(*most, c.Number("2", 2)) if plan.counts_tasks else True
        type_ = "int" if fits else wide(plan.language)
        count = w.expr("(T)TASK_BLOCKS * TASKS", T=type_)
        if plan.counts_tasks:
            first = extents[0] if fits else c.Cast(c.Type(type_), extents[0])
            count = chained("*", first, *extents[1:])
        several = ["PERSIST"] if knobs.persistent.most > 0 else []
        if knobs.split.most > 0 and plan.counts_tasks:  # else there is a block for every task
            several.append("SPLIT")
        body = (
            *self._task_names(type_),
            *self._shared_rows(),
            *self._steps(plan.kernel.steps, scope | {task.name for task in plan.kernel.tasks}),
        )
        first, step = (w.expr(text, T=type_) for text in ("(T)TASK_BLOCK * TASKS", "(T)TASK_BLOCKS * TASKS"))
        turns = LoopAxis(plan.word("first"), self._tasks, first, step, type_)
        whole = turns.at_start(body)
        if several:
            said, goes_on = "blocks go on to further tasks", w.expr(" || ".join(several))
            comments = (c.Comment(said, behind=True),)
            whole = (c.Alternative(goes_on, turns.over(()), turns.at_start(), body, comments=comments),)
        return (*w.code("const T tasks = count;", T=type_, count=count), *commented(whole, (c.BLANK,)))

    def _task_names(self, type_: str) -> tuple[c.Stmt, ...]:
        plan, w = self._plan, self._w
        place = w.expr("first + (T)threadIdx.y" if plan.knobs.tasks.most > 1 else "first", T=type_)
        truth = "int" if plan.language == "opencl" else "bool"
        text = "const T task = place;"
        if plan.guards:
            text = """const U inside = place < tasks;  // the last block may lack tasks
                const T task = inside ? place : tasks - 1;"""
        elif plan.knobs.tasks.most > 1:
            text += "if (task >= tasks) return;"
        done = [*w.code(text, T=type_, U=truth, place=place)]
        for outer, axis in zip(plan.outer, "zy", strict=False):
            done += _named(outer.type, outer.name, c.Name(f"blockIdx.{axis}"))
            done += _named("unsigned int", outer.count, c.Name(f"gridDim.{axis}"))
        names, rest = list(plan.tasks), w.expr("task")
        extents = [plan.blocking.extent(task) for task in names]
        for number, (task, extent) in enumerate(zip(reversed(names), reversed(extents), strict=True)):
            value = rest if number == len(names) - 1 else c.Binary("%", rest, extent)
            value = value if task.type == type_ else c.Cast(c.Type(task.type), value)
            # Nobody tells its count, so it is the slowest, and the grid is exactly as large.
            count = c.Binary("/", self._tasks, chained("*", *extents[1:])) if extents[1:] else self._tasks
            name = task.name
            if task == plan.blocking.task:
                name, several = plan.blocking.start, c.Name(plan.blocking.count)
                value, count = c.Binary("*", value, several), c.Binary("*", count, several)
            done += at_line(_named(task.type, name, value), plan.lines.get(task.name, 0))
            rest = c.Binary("/", rest, extent)
            done += _named("unsigned int", task.count, count)
        return tuple(done)

    def _shared_rows(self) -> tuple[c.Stmt, ...]:
        plan, w, blocking = self._plan, self._w, self._plan.blocking
        if not plan.shared:
            return ()
        done = [*w.code("extern __shared__ __align__(16) unsigned char kept_bytes[];")]
        before = w.expr("kept_bytes + RING_BYTES" if self.loops.ring else "kept_bytes")
        for row in plan.shared:
            at = w.expr("before + threadIdx.y * size", before=before, size=row.bytes)
            if blocking.task is None:
                done += code("T *own = (T *)at;", T=row.type.base, own=row.name, at=at)
                before = w.expr("before + TASKS * size", before=before, size=row.bytes)
                continue
            mine = blocking.words.expr("at + r * TASKS * size", at=at, size=row.bytes)
            pointer = c.Type(row.type.base, 1)
            done += blocking.declared(c.Declare(pointer, row.name, c.Cast(pointer, mine)))
            before = w.expr("before + BLOCKED * TASKS * size", before=before, size=row.bytes)
        kept = w.when("!KEEP" if plan.keeps_staged else "", done)
        return commented(kept, (c.Comment("What a loop leaves for a later one."),))

    # -- steps --------------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step], scope: set[str]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for step in steps:
            match step:
                case Each():
                    done += self.loops.write(self._plan.loop(step), scope)
                case Let(body=body):
                    done += self._plan.blocking.team_values(self._statements(body))
                case Once(body=body):
                    several = self._plan.is_flat or self._plan.knobs.split.most > 0
                    alone = " && PIECE == 0" if several else ""
                    condition = self._w.expr(f"lane == 0{alone}{' && inside' if self._plan.guards else ''}")
                    done += self._plan.blocking.over([c.If(condition, self._statements(body))])
                case When(condition=condition, then=then, otherwise=otherwise):
                    yes, no = (self._steps(part, set(scope)) for part in (then, otherwise))
                    done.append(c.If(condition, yes, no, line=step.line))
                case Repeat():
                    inner = self._steps(step.body, scope | {step.index})
                    turns = LoopAxis(step.index, step.stop, step.start, step.step, step.type)
                    done += at_line(turns.over(inner), step.line)
        return tuple(done)

    def _statements(self, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        stmts, _ = self._fast.statements(body, known_types(self._plan.kernel))
        return unrolled(stmts, self._plan)


def _named(type_: str, name: str, value: c.Expr) -> tuple[c.Stmt, ...]:
    """Nothing where there is no name for it."""
    return (c.Declare(c.Type(type_, const=True), name, value),) if name else ()
