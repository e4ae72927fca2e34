"""Template arguments that follow a size, `kernel<{head_dim}>`: read as one more parameter of the kernel.

Such a parameter has the template's own name for it and the size for its value. No launch passes it: the
writer declares it as a constant of the build. A size that the contract allows one value of is that number:
types may then depend on it, `vec<T, HEAD_DIM>`. Where they do and the contract allows several values, the
kernel is read at the one that all workloads have, and its template says so (`require`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tunesmith.csource.binding import sizes_of_entry
from tunesmith.expert.model.kernel import KernelModel, NotReadable
from tunesmith.problem.problem import Argument, Problem
from tunesmith.space.expr import parse

_MARK = "entry."  # no name of an argument has a dot


Pinned = tuple[tuple[str, int], ...]  # sizes, and the one value that a kernel is read at


def with_entry_sizes(problem: Problem, pinned: Pinned = ()) -> Problem:
    """The problem with an argument for each size that the entry of its one launch inserts."""
    if len(problem.launches) != 1 or any(is_of_entry(argument.name) for argument in problem.arguments):
        return problem
    problem = _narrowed(problem, dict(pinned))
    launch = replace(problem.launches[0], entry=_with_numbers(problem, problem.launches[0].entry))
    problem = replace(problem, launches=(launch,))
    sizes = [name for name in sizes_of_entry(launch.entry) if name in problem.size_names]
    added = [Argument(f"{_MARK}{n}", "int32", "scalar", value=parse(name)) for n, name in enumerate(sizes)]
    launch = replace(launch, args=(*launch.args, *(argument.name for argument in added)))
    return replace(problem, arguments=(*problem.arguments, *added), launches=(launch,))


def read_at_sizes(
    problem: Problem, read: Callable[[Problem], KernelModel | NotReadable]
) -> KernelModel | NotReadable:
    """The kernel for all sizes; where it is read for none but a number, for the one that workloads have."""
    found = read(with_entry_sizes(problem))
    pinned = sizes_to_pin(problem) if isinstance(found, NotReadable) else ()
    only = read(with_entry_sizes(problem, pinned)) if pinned else found
    if isinstance(only, NotReadable) or not pinned:
        return found
    sizes = " and ".join(f"{name} = {value}" for name, value in pinned)
    note = f"its types depend on a size of its entry: it is read for {sizes} alone"
    return replace(only, pinned=pinned, notes=(*only.notes, note))


def sizes_to_pin(problem: Problem) -> Pinned:
    """The sizes in the entry, where each has one value in all workloads; () where some have several."""
    entry = problem.launches[0].entry if len(problem.launches) == 1 else ""
    names = [name for name in sizes_of_entry(entry) if name in problem.size_names]
    values = {name: {workload.as_dict()[name] for workload in problem.workloads} for name in names}
    if any(len(found) != 1 for found in values.values()):
        return ()
    return tuple((name, found.pop()) for name, found in values.items())


def _narrowed(problem: Problem, pinned: dict[str, int]) -> Problem:
    """With one value for each of these sizes: what is proved then holds where a template asks for them."""
    rules = tuple(
        replace(rule, min=pinned[rule.name], max=pinned[rule.name], multiple_of=1, one_of=())
        if rule.name in pinned
        else rule
        for rule in problem.contract.sizes
    )
    return replace(problem, contract=replace(problem.contract, sizes=rules)) if pinned else problem


def _with_numbers(problem: Problem, entry: str) -> str:
    for rule in problem.contract.sizes:
        least, most = rule.span
        if least == most:
            entry = re.sub(rf"\{{\s*{rule.name}\s*\}}", str(least), entry)
    return entry


def is_of_entry(argument: str) -> bool:
    return argument.startswith(_MARK)
