"""A kernel's loops and launch in numbers: how long rows are and how wide blocks, at the workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tunesmith.core.expr import Expr as SizeExpr
from tunesmith.core.expr import Node, Undefined, parse, unparse
from tunesmith.expert.c.nodes import Binary, Expr, Number
from tunesmith.expert.model.affine import is_integer
from tunesmith.expert.model.kernel import Draft, Each, Kernel, Once, Repeat, Step, When
from tunesmith.expert.moves.port import Context
from tunesmith.expert.writing.beside import Independence, Run, gathered, length_of_all
from tunesmith.expert.writing.beside import runs as find_runs
from tunesmith.expert.writing.sizes import Sizes


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Also those inside branches and loops of the whole team; the model's nesting is the reader's own."""
    for step in steps:
        yield step
        if isinstance(step, When):
            yield from all_steps((*step.then, *step.otherwise))
        elif isinstance(step, Repeat):
            yield from all_steps(step.body)


def loops(kernel: Kernel) -> tuple[Each, ...]:
    return tuple(step for step in all_steps(kernel.steps) if isinstance(step, Each))


def is_map(kernel: Kernel) -> bool:
    """Whether every element stands alone: nothing is totalled or handed from loop to loop."""
    return not kernel.kept and not any(loop.totals for loop in loops(kernel))


def has_sums(kernel: Kernel) -> bool:
    """Whether floats are added up: in another order they give another sum."""
    totals = [total for loop in loops(kernel) for total in loop.totals]
    return any(total.operator == "+" and not is_integer(total.type) for total in totals)


def has_once(kernel: Kernel) -> bool:
    return any(isinstance(step, Once) for step in all_steps(kernel.steps))


@dataclass(frozen=True)
class Shape:
    """Each tuple of numbers has one for every workload; it is empty where the contract does not say."""

    extent: str  # of the longest loop, as text of the template file; "" where unknown
    extents: tuple[int, ...]
    tasks: str  # how many there are
    task_counts: tuple[int, ...]
    threads: tuple[int, ...]  # of a block today
    lanes: int  # threads to a task today, at the workload where there are most

    @property
    def longest(self) -> int | None:
        return max(self.extents, default=None)

    @property
    def tasks_in_block(self) -> int:
        """Today."""
        return max(1, max(self.threads, default=self.lanes) // max(1, self.lanes))


def shape_of(draft: Draft, context: Context) -> Shape:
    kernel, problem = draft.kernel, context.problem
    sizes = Sizes.of(kernel, problem)
    nodes = [length_of(loop, sizes) for loop in loops(kernel)]
    known = tuple(dict.fromkeys(node for node in nodes if node is not None))
    extent = _longest(known)
    if (beside := draft.schedule.beside) is not None:
        runs = runs_of(kernel, context)
        together = [length_of_all(run) for run in runs]
        rest = [loop.stop for loop in loops(kernel) if not any(loop in run for run in runs)]
        joint = tuple(dict.fromkeys(n for e in (*together, *rest) if (n := sizes.node(e)) is not None))
        extent = f"({_longest(joint)} if {beside.name} else {extent})"
        known = tuple(dict.fromkeys((*joint, *known)))
    tasks = [parse(task.size).tree if task.size else sizes.node(task.extent) for task in kernel.tasks]
    counts = [node for node in tasks if node is not None]
    whole = len(counts) == len(tasks)
    threads = _at_workloads(tuple(e.tree for e in problem.launches[0].block), context, prod)
    return Shape(
        extent=extent,
        extents=_at_workloads(known, context, max) if known else (),
        tasks=" * ".join(f"({unparse(n)})" if not unparse(n).isidentifier() else unparse(n) for n in counts)
        if whole and counts
        else "",
        task_counts=_at_workloads(tuple(counts), context, prod) if whole else (),
        threads=threads,
        lanes=_lanes(kernel, sizes, context, threads),
    )


def _longest(nodes: Sequence[Node]) -> str:
    texts = tuple(dict.fromkeys(unparse(node) for node in nodes))
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})" if texts else ""


def runs_of(kernel: Kernel, context: Context) -> tuple[Run, ...]:
    """Loops that may run side by side."""
    rules = Independence.of(kernel, context.problem)
    return find_runs(gathered(kernel.steps, rules), rules)


def length_of(loop: Each, sizes: Sizes) -> Node | None:
    """How many indices it runs over, in sizes; None where the contract does not tell."""
    stop: Expr = loop.stop
    if not (isinstance(loop.start, Number) and loop.start.value == 0):
        stop = Binary("-", loop.stop, loop.start)
    return sizes.node(stop)


def _lanes(kernel: Kernel, sizes: Sizes, context: Context, threads: tuple[int, ...]) -> int:
    if kernel.team == "thread":
        return 1
    if kernel.team == "warp":
        return context.device.limits.warp or 32
    if kernel.lanes is not None and (node := sizes.node(kernel.lanes)) is not None:
        found = _at_workloads((node,), context, max)
        if found:
            return max(1, *found)
    return max(threads, default=128)


def _at_workloads(
    nodes: tuple[Node, ...], context: Context, join: Callable[[Iterable[int]], int]
) -> tuple[int, ...]:
    found = []
    for workload in context.problem.workloads:
        values = {**workload.as_dict(), **context.device.limits.names()}
        try:
            found.append(int(join([SizeExpr("", node).evaluate(values) for node in nodes])))
        except Undefined:
            return ()
    return tuple(found)
