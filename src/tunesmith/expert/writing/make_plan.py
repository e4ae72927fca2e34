"""Everything that is decided before a line is printed, for one draft."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tunesmith.core.problem import Problem
from tunesmith.expert.c.nodes import Binary, Expr, Index, Name, Number, Type
from tunesmith.expert.c.walk import declared_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.affine import BUILTINS, byte_size
from tunesmith.expert.model.kernel import Draft, Each, Kernel, Once, Repeat, Step, When
from tunesmith.expert.model.step_tree import all_steps, own_parts
from tunesmith.expert.writing.beside import Independence, gathered
from tunesmith.expert.writing.groups import group_loops, side_by_side
from tunesmith.expert.writing.naming import Knobs, Names
from tunesmith.expert.writing.packs import pack_accesses
from tunesmith.expert.writing.plan import LoopPlan, Plan, loops_in
from tunesmith.expert.writing.sites import Sites
from tunesmith.expert.writing.sizes import Sizes
from tunesmith.expert.writing.unwritable import Unwritable


def make_plan(draft: Draft, problem: Problem) -> Plan:
    steps = _own_objects(_flat_kept(draft.kernel))
    if draft.schedule.beside is not None and len(problem.launches) == 1:
        steps = gathered(steps, Independence.of(draft.kernel, problem))
    kernel = replace(draft.kernel, steps=steps)
    if len(problem.launches) != 1:
        raise Unwritable("the problem launches several kernels; the writer writes one")
    texts = [problem.kernel.text, kernel.function.text, *(text for _, text in problem.kernel.headers)]
    taken = [choice.name for choice in draft.schedule.choices]
    names = Names(texts, [*taken, *problem.size_names, *_model_names(kernel)])
    knobs = Knobs.of(kernel, draft.schedule, names)
    sizes = Sizes.of(kernel, problem)
    arrays = {p.name: p.type for p in kernel.function.parameters if p.type.is_pointer}
    found = Plan(
        draft, problem, kernel, sizes, knobs, names, {}, [], arrays, _written(kernel, arrays, problem),
        _alignments(kernel, problem),
    )  # fmt: skip
    _refuse_launch_words(kernel)
    if found.is_flat and (found.has_totals or kernel.kept):
        raise Unwritable("a kernel without tasks has a total; nothing says which threads share it")
    for each in loops_in(kernel.steps):
        found.loops[id(each)] = _plan_loop(each, found)
    if found.language != "opencl":  # a CPU's caches keep rows better than its few registers
        group_loops(kernel.steps, found)
        if draft.schedule.beside is not None:
            found.beside = side_by_side(found)
    return found


def _refuse_launch_words(kernel: Kernel) -> None:
    """The launch is ours to choose: what a step says of today's would be wrong."""
    for step in all_steps(kernel.steps):
        for part in own_parts(step):
            for node in nodes_in(part):
                if isinstance(node, Name) and node.name in BUILTINS:
                    raise Unwritable(f"a step asks for {node.name}, which another launch changes")


def _model_names(kernel: Kernel) -> Iterator[str]:
    """Every name in the steps: the reader may have made some that the source does not have."""
    yield from (name for task in kernel.tasks for name in (task.name, task.count) if name)
    yield from (kept.name for kept in kernel.kept)
    for step in all_steps(kernel.steps):
        if isinstance(step, Each | Repeat):
            yield step.index
        if isinstance(step, Each):
            yield from (total.name for total in step.totals)
        for part in own_parts(step):
            yield from names_in(part)
            yield from declared_in(part)


def _flat_kept(kernel: Kernel) -> tuple[Step, ...]:
    """`row[i][c]` as `row[i * width + c]`, like any other array."""
    widths = {kept.name: kept.width for kept in kernel.kept if kept.width > 1}
    if not widths:
        return kernel.steps

    def visit(node: Expr) -> Expr:
        match node:
            case Index(base=Index(base=Name(name=name), index=index), index=place) if name in widths:
                width = widths[name]
                product = Binary("*", index, Number(str(width), width))
                return Index(Name(name), Binary("+", product, place))
        return node

    def step(found: Step) -> Step:
        match found:
            case When(then=then, otherwise=otherwise):
                return replace(found, then=tuple(map(step, then)), otherwise=tuple(map(step, otherwise)))
            case Repeat(body=body):
                return replace(found, body=tuple(map(step, body)))
            case Each(body=body):
                return replace(found, body=map_statements(body, lambda expr: map_expr(expr, visit)))
            case _:
                return found

    return tuple(map(step, kernel.steps))


def _own_objects(steps: Sequence[Step]) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in steps:
        match step:
            case When(then=then, otherwise=otherwise):
                done.append(replace(step, then=_own_objects(then), otherwise=_own_objects(otherwise)))
            case Repeat(body=body):
                done.append(replace(step, body=_own_objects(body)))
            case _:
                done.append(replace(step))
    return tuple(done)


def _written(kernel: Kernel, arrays: dict[str, Type], problem: Problem) -> frozenset[str]:
    by_name = dict(zip(problem.launches[0].args, (p.name for p in kernel.function.parameters), strict=False))
    found: set[str] = set()
    for argument in problem.arguments:
        name = by_name.get(argument.name, argument.name)
        if argument.is_written or argument.role == "workspace" or argument.alias is not None:
            found.add(name)
            if argument.alias is not None:
                found.add(by_name.get(argument.alias, argument.alias))
    # What the model stores to, whatever the problem says of it.
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each | Once):
            continue
        sites = Sites.of(step.body, arrays)
        found |= sites.escaped | {site.array for site in sites.found if site.kind == "store"}
    return frozenset(found & arrays.keys())


def _alignments(kernel: Kernel, problem: Problem) -> dict[str, int]:
    """Bytes at whose multiples callers promise each array to start."""
    found: dict[str, int] = {}
    for parameter, name in zip(kernel.function.parameters, problem.launches[0].args, strict=False):
        argument = problem.argument(name)
        if parameter.type.is_pointer:
            own = byte_size(parameter.type.base) or 1  # what the source itself relies on
            found[parameter.name] = max(argument.align or argument.element.bytes, own)
    return found


def _plan_loop(each: Each, plan: Plan) -> LoopPlan:
    vector = plan.knobs.vector
    if vector.most == plan.knobs.items.most == 1 and plan.knobs.keep.most == 0:
        return LoopPlan(each, ())
    aligned = plan.language != "opencl"
    kept = [kept.name for kept in plan.kernel.kept]
    packed = pack_accesses(each, plan.arrays, kept, plan.sizes, vector.most, aligned)
    packs = packed.packs
    loop = LoopPlan(each, packs)
    for pack in packs:
        loop.names[pack.key] = plan.names.fresh(f"{pack.array}_pack")
    loop.tail = plan.is_flat or not plan.sizes.is_plain(loop.extent) or plan.language == "opencl"
    if loop.tail and any(pack.array in kept for pack in packs):
        raise Unwritable("what a loop keeps for a later one has no length that the contract tells")
    return loop
