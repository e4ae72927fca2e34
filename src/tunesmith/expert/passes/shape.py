"""A kernel's loops and launch in numbers, and what its steps compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tunesmith.csource.nodes import Assign, Binary, For, Number
from tunesmith.csource.printing import print_expr
from tunesmith.csource.types import integer_type, is_integer
from tunesmith.csource.walk import declared_in, names_in, nodes_in
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, TemplateDraft, all_steps
from tunesmith.expert.passes.port import Context
from tunesmith.expert.writing.fast_math import FastMath, known_types, used_functions
from tunesmith.expert.writing.naming import Names
from tunesmith.expert.writing.sites import Independence, Run, extent_of, gathered, length_of_all
from tunesmith.expert.writing.sites import runs as find_runs
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.space.expr import Expr as SizeExpr
from tunesmith.space.expr import Node, Undefined, parse, unparse


def loops(kernel: KernelModel) -> tuple[Each, ...]:
    return tuple(step for step in all_steps(kernel.steps) if isinstance(step, Each))


def is_map(kernel: KernelModel) -> bool:
    """Whether every element stands alone: nothing is totalled or handed from loop to loop."""
    return not kernel.staged and not any(loop.totals for loop in loops(kernel))


def has_sums(kernel: KernelModel) -> bool:
    """Whether floats are added up: in another order they give another sum."""
    totals = [total for loop in loops(kernel) for total in loop.totals]
    return any(total.operator == "+" and not is_integer(total.type) for total in totals)


@dataclass(frozen=True)
class LoopShape:
    """Each tuple of numbers has one for every workload; it is empty where the contract does not say."""

    extent: str  # of the longest loop, as text of the template file; "" where unknown
    beside: str  # the same where loops run side by side; "" where none can
    extents: tuple[int, ...]
    tasks: str  # how many there are
    threads: tuple[int, ...]  # of a block today
    lanes: int  # threads to a task today, at the workload where there are most


def shape_of(draft: TemplateDraft, context: Context) -> LoopShape:
    kernel, problem = draft.kernel, context.problem
    sizes = Sizes.of(kernel, problem)
    nodes = [sizes.node(extent_of(loop)) for loop in loops(kernel)]
    known = tuple(dict.fromkeys(node for node in nodes if node is not None))
    extent, together = _longest(known), ""
    if "beside" in draft.schedule:
        runs = runs_of(kernel, context)
        lengths = [length_of_all(run) for run in runs]
        rest = [loop.stop for loop in loops(kernel) if not any(loop in run for run in runs)]
        joint = tuple(dict.fromkeys(n for e in (*lengths, *rest) if (n := sizes.node(e)) is not None))
        together = _longest(joint)
        known = tuple(dict.fromkeys((*joint, *known)))
    tasks = [parse(task.size).tree if task.size else sizes.node(task.extent) for task in kernel.tasks]
    counts = [node for node in tasks if node is not None]
    whole = len(counts) == len(tasks)
    threads = _at_workloads(tuple(e.tree for e in problem.launches[0].block), context, prod)
    texts = [unparse(node) for node in counts] if whole else []
    return LoopShape(
        extent=extent,
        beside=together,
        extents=_at_workloads(known, context, max) if known else (),
        tasks=" * ".join(text if text.isidentifier() else f"({text})" for text in texts),
        threads=threads,
        lanes=_lanes(kernel, sizes, context, threads),
    )


def _longest(nodes: Sequence[Node]) -> str:
    texts = tuple(dict.fromkeys(unparse(node) for node in nodes))
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})" if texts else ""


def runs_of(kernel: KernelModel, context: Context) -> tuple[Run, ...]:
    """Loops that may run side by side."""
    rules = Independence.of(kernel, context.problem)
    return find_runs(gathered(kernel.steps, rules), rules)


def _lanes(kernel: KernelModel, sizes: Sizes, context: Context, threads: tuple[int, ...]) -> int:
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


def nearest(values: tuple[int, ...], wanted: int) -> int:
    """The value next to what the original has; of two as near, the larger."""
    return min(values, key=lambda value: (abs(value - wanted), -value))


def is_alone(kernel: KernelModel) -> bool:
    """Whether there is one task in all, so that no team has another beside it or after it."""
    ends = [task.extent for task in kernel.tasks]
    return bool(ends) and all(isinstance(end, Number) and end.value == 1 for end in ends)


# -- where a move would act, in words ---------------------------------------------------------------


def named_lines(lines: Iterable[int]) -> str:
    found = sorted({line for line in lines if line})
    return f"line{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}" if found else ""


def named_loops(found: Iterable[Each]) -> str:
    named = [f"{each.index} below {print_expr(each.stop)} (line {each.line})" for each in found]
    return f"loop{'s' if len(named) > 1 else ''} over {', '.join(named)}" if named else ""


def all_loops(draft: TemplateDraft, _context: Context) -> str:
    return named_loops(loops(draft.kernel))


def named_tasks(draft: TemplateDraft, _context: Context) -> str:
    tasks = " and ".join(f"{t.name} below {t.size or print_expr(t.extent)}" for t in draft.kernel.tasks)
    return f"a task is one {tasks}" if tasks else ""


def named_arrays(names: Iterable[str]) -> str:
    return f"arrays {', '.join(dict.fromkeys(names))}"


# -- what a kernel's steps compute with: what has a fast form, index divisions, inner loops ---------


def inner_loops(kernel: KernelModel) -> tuple[For, ...]:
    bodies = [step.body for step in all_steps(kernel.steps) if isinstance(step, Each | Let | Once)]
    return tuple(node for body in bodies for node in nodes_in(body) if isinstance(node, For))


@dataclass(frozen=True)
class FastForms:
    """What the writer would put behind macros: nothing where it would change nothing."""

    functions: tuple[str, ...]  # called, that have a fast form; quotients count as one
    by_invariants: int  # quotients by what is the same for a whole loop


def fast_forms(kernel: KernelModel, language: str) -> FastForms:
    """As the writer finds them: in the steps, and in helper functions that they may call."""
    functions = tuple(f for f in kernel.source.functions if not f.template)
    fast = FastMath(language, Names(()), "FAST", "", functions)
    reciprocal = FastMath(language, Names(()), "", "RECIP", functions)
    types, count = known_types(kernel), 0
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Let | Once):
            varying = frozenset((step.index,)) if isinstance(step, Each) else None
            fast.statements(step.body, types, varying)
            count += len(reciprocal.statements(step.body, types, varying)[1])
    for function in used_functions(kernel):
        fast.statements(function.body, {p.name: p.type for p in function.parameters})
    return FastForms(tuple(sorted(name.lower() for name in fast.all_names if name)), count)


def index_divisions(kernel: KernelModel) -> int:
    """Divisions and remainders of integers in loops, by something that is no constant and does not vary."""
    types = {name: type_ for name, type_ in known_types(kernel).items() if type_ is not None}
    found: set[Binary] = set()
    for loop in loops(kernel):
        varying = {loop.index, *declared_in(loop.body)}
        for node in nodes_in(loop.body):
            division = Binary(node.op[0], node.target, node.value) if isinstance(node, Assign) else node
            if not isinstance(division, Binary) or division.op not in ("/", "%"):
                continue
            by_invariant = names_in(division.left) & varying and not names_in(division.right) & varying
            if by_invariant and not isinstance(division.right, Number) and integer_type(division, types):
                found.add(division)
    return len(found)
