"""Template arguments that follow a size, `kernel<{head_dim}>`: read as one more parameter of the kernel.

Such a parameter has the template's own name for it and the size for its value. No launch passes it: the
writer declares it as a constant of the build. A size that the contract allows one value of is that number:
types may then depend on it, `vec<T, HEAD_DIM>`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.csource.binding import sizes_of_entry
from tunesmith.problem.problem import Argument, Problem
from tunesmith.space.expr import parse

_MARK = "entry."  # no name of an argument has a dot


def with_entry_sizes(problem: Problem) -> Problem:
    """The problem with an argument for each size that the entry of its one launch inserts."""
    if len(problem.launches) != 1 or any(is_of_entry(argument.name) for argument in problem.arguments):
        return problem
    launch = replace(problem.launches[0], entry=_with_numbers(problem, problem.launches[0].entry))
    problem = replace(problem, launches=(launch,))
    sizes = [name for name in sizes_of_entry(launch.entry) if name in problem.size_names]
    added = [Argument(f"{_MARK}{n}", "int32", "scalar", value=parse(name)) for n, name in enumerate(sizes)]
    launch = replace(launch, args=(*launch.args, *(argument.name for argument in added)))
    return replace(problem, arguments=(*problem.arguments, *added), launches=(launch,))


def _with_numbers(problem: Problem, entry: str) -> str:
    for rule in problem.contract.sizes:
        least, most = rule.span
        if least == most:
            entry = re.sub(rf"\{{\s*{rule.name}\s*\}}", str(least), entry)
    return entry


def is_of_entry(argument: str) -> bool:
    return argument.startswith(_MARK)
