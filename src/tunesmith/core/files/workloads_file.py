"""Read a file of workloads: sizes that take the place of a problem's own, under the same contract."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.files.read_sizes import read_workloads
from tunesmith.core.files.toml_table import load_toml
from tunesmith.core.files.try_sizes import try_problem
from tunesmith.core.problem import Problem


def with_workloads(problem: Problem, text: str, *, path: str) -> Problem:
    """The same problem, to be fast elsewhere; or one BadInput with everything that is wrong with the text."""
    root = load_toml(text, path=path)
    root.only(("workloads",))
    sizes = problem.size_names
    found = replace(problem, workloads=read_workloads(root, problem.contract, sizes, sizes))
    if not root.faults:
        try_problem(found, root)
    root.faults.raise_any()
    return found
