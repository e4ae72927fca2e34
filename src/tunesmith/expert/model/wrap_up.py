"""From a reading to a `Kernel`: accesses, notes, and what flat kernels need to be one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.core.expr import nodes as size
from tunesmith.core.problem import Problem
from tunesmith.csource.nodes import Call, Expr, For, Function, Name, Opaque, Source, Stmt, Verbatim
from tunesmith.csource.walk import (
    children,
    declared_in,
    names_in,
    nodes_in,
    root,
    statements_in,
    writes_in,
)
from tunesmith.expert.model.accesses import accesses, marked_again
from tunesmith.expert.model.affine import stride
from tunesmith.expert.model.exchange import check_exchange
from tunesmith.expert.model.flat import Flat
from tunesmith.expert.model.independence import clash, touches
from tunesmith.expert.model.kernel import Kernel, Step, Task
from tunesmith.expert.model.launch_terms import LaunchTerms
from tunesmith.expert.model.loops import head_of, trips
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.places import is_pointer
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.reading import Reading
from tunesmith.expert.model.step_tree import all_steps, names_in_steps, parts_of, replaced
from tunesmith.expert.model.value_types import BUILTINS

_SMALL = 64  # turns of a loop that is part of what is done for one element


def looks_like_rows(flat: Flat, normal: Normal) -> bool:
    """Whether each thread walks a row of its own: neighbours far apart, its own turns side by side."""
    for node in nodes_in(flat.each.body):
        if not isinstance(node, For):
            continue
        head = head_of(node)
        if head is None or (trips(head) or _SMALL + 1) <= _SMALL:
            continue
        for touch in touches(node.body, normal.arrays):
            along = stride(touch.place.index, head.index)
            across = stride(touch.place.index, flat.each.index)
            if along is not None and along.step == 1 and (across is None or across.step not in (0, 1)):
                return True
    return False


def flat_reading(flat: Flat, normal: Normal, aliases: Mapping[str, str], reason: str) -> Reading:
    for node in nodes_in(flat.each.body):
        if isinstance(node, Verbatim) and node.names & set(normal.arrays):
            line = node.line
            raise OutOfReach(
                f"line {line}: '{node.text.strip().splitlines()[0][:60]}' is not understood", line
            )
    trouble = clash(flat.each.body, flat.each.index, normal.arrays, aliases, parallel=True)
    if trouble is not None:
        raise OutOfReach(f"threads depend on each other: {trouble}", flat.each.line)
    notes = (f"each thread walks a row of its own, which cannot be shared out: {reason}",) if reason else ()
    return Reading(flat.tasks, (flat.each,), "grid", None, (), 0, (*flat.notes, *notes), flat.reach)


def kernel_of(
    reading: Reading,
    normal: Normal,
    problem: Problem,
    source: Source,
    function: Function,
    bound: tuple[tuple[str, str], ...],
    launch: LaunchTerms,
) -> Kernel:
    steps = marked_again(reading.steps, normal.arrays, multiples(problem, launch))
    _check_pointers(steps, normal)
    check_exchange(steps, normal.arrays, aliases_of(problem, function), reading.barriers > 0)
    tasks, steps = _counted(reading.tasks, steps, normal)
    notes = list(reading.notes)
    notes += [
        f"line {step.line}: the loop stores only what an earlier loop has stored"
        for step in all_steps(steps)
        if getattr(step, "again", False)
    ]
    return Kernel(
        source,
        function,
        tasks,
        steps,
        reading.team,
        reading.lanes,
        reading.kept,
        accesses(steps, normal.arrays),
        bound,
        reading.barriers,
        tuple(notes),
        reading.apart or (reading.reach,),
    )


def _counted(
    tasks: tuple[Task, ...], steps: tuple[Step, ...], normal: Normal
) -> tuple[tuple[Task, ...], tuple[Step, ...]]:
    """Axes of today's grid that the steps ask for, by a name: another launch has other axes."""
    used, taken = names_in_steps(steps), set(normal.types) | set(normal.ids)
    done: list[Task] = []
    for task in tasks:
        if isinstance(task.extent, Name) and task.extent.name in used & set(BUILTINS):
            name = f"{task.name}_count"
            while name in taken:
                name += "_"
            steps = replaced(steps, {task.extent.name: Name(name)})
            task = replace(task, count=name)
        done.append(task)
    return tuple(done), steps


def aliases_of(problem: Problem, function: Function) -> dict[str, str]:
    """Arrays that are the same memory, by the kernel's names for them: one stands for all."""
    by_name = {a.name: a for a in problem.arguments}
    ordered = [by_name[name] for name in problem.launches[0].args if name in by_name]
    names = {a.name: p.name for a, p in zip(ordered, function.parameters, strict=False)}
    return {
        names[a.name]: names.get(a.alias, a.alias) for a in ordered if a.alias is not None and a.name in names
    }


def check_own_memory(normal: Normal) -> None:
    """Memory is only followed in what is understood; variables of the file may only be read."""
    own = set(normal.types) | set(normal.arrays) | set(normal.shared) | set(normal.ids)
    own |= set(declared_in(normal.body))
    for stmt in statements_in(normal.body):
        parts: list[Expr | Stmt] = [part for part in children(stmt) if isinstance(part, Expr)]
        parts += [stmt] if isinstance(stmt, Verbatim) else []
        for target in (target for part in parts for target in writes_in(part)):
            name = root(target)[0]
            if name is not None and name not in own:
                raise OutOfReach(
                    f"line {stmt.line}: '{name}', a variable of the file, is written to", stmt.line
                )
        for node in (node for part in parts for node in nodes_in(part)):
            if isinstance(node, Opaque | Verbatim) and node.names & (set(normal.arrays) | set(normal.shared)):
                text = " ".join(node.text.split())
                text = text if len(text) <= 60 else text[:57] + "..."
                raise OutOfReach(f"line {stmt.line}: '{text}' is not understood", stmt.line)


def multiples(problem: Problem, launch: LaunchTerms) -> dict[str, int]:
    """What the contract promises: parameters that are multiples of something."""
    rules = {rule.name: rule.multiple_of for rule in problem.contract.sizes}
    return {
        name: rules.get(node.id, 1) for name, node in launch.parameters.items() if isinstance(node, size.Name)
    }


def _check_pointers(steps: Sequence[Step], normal: Normal) -> None:
    """Arrays may only be touched by indexing: a pointer handed to a function is out of sight."""
    for step in all_steps(steps):
        for part in parts_of(step):
            for node in nodes_in(part):
                if isinstance(node, Call) and not node.function.lower().startswith(
                    ("atomic", "vload", "vstore")
                ):
                    for arg in node.args:
                        array = _pointer(arg, normal)
                        if array is not None:
                            raise OutOfReach(
                                f"line {step.line}: '{array}' is handed to {node.function} as a pointer",
                                step.line,
                            )


def _pointer(arg: Expr, normal: Normal) -> str | None:
    if not is_pointer(arg, normal.arrays):
        return None
    return next((name for name in sorted(names_in(arg)) if name in normal.arrays), None)
