"""What a launch says of a kernel, over the kernel's own parameters: blocks of a grid, threads of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.core.expr.nodes import Node
from tunesmith.core.problem import Problem
from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import Binary, Expr, Name
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.translate import from_sizes, parameter_values, to_sizes


@dataclass(frozen=True)
class LaunchTerms:
    """`parameters`: integer parameters over sizes; `values`: gridDim and blockDim over parameters."""

    parameters: Mapping[str, Node]
    values: Mapping[str, Expr]

    @property
    def single(self) -> dict[str, Expr]:
        """Numbers of blocks and threads along axes that have one of them."""
        found: dict[str, Expr] = {}
        for index, count in (("blockIdx", "gridDim"), ("threadIdx", "blockDim")):
            for letter in "xyz":
                if self.values.get(f"{count}.{letter}") == number(1):
                    found |= {f"{index}.{letter}": number(0), f"{count}.{letter}": number(1)}
        return found

    def replaced(self, expr: Expr) -> Expr:
        """gridDim and blockDim written as what the launch gives them, where parameters can say it."""
        return fold(substitute(expr, self.values))

    def size_text(self, expr: Expr) -> str:
        """The same over the problem's sizes, "" where there is no such expression."""
        return to_sizes(expr, self.parameters) or ""


def launch_terms(problem: Problem, parameters: tuple[str, ...]) -> LaunchTerms:
    known = parameter_values(problem, parameters)
    values: dict[str, Expr] = {}
    sizes: dict[str, Node] = dict(known)
    if problem.launches:
        launch = problem.launches[0]
        for name, exprs in (("gridDim", launch.grid), ("blockDim", launch.block)):
            for axis, letter in enumerate("xyz"):
                key = f"{name}.{letter}"
                if axis >= len(exprs):
                    values[key] = number(1)
                    continue
                sizes[key] = exprs[axis].tree
                found = from_sizes(exprs[axis].tree, known)
                if found is not None:
                    values[key] = found
    return LaunchTerms(sizes, values)


def product(left: Expr, right: Expr) -> Expr:
    if left == number(1):
        return right
    return left if right == number(1) else Binary("*", left, right)


def axis_name(builtin: str) -> str:
    """A name for a built-in index that has none in the source: blockIdx.y -> block_y."""
    word = {"blockIdx": "block", "threadIdx": "thread"}[builtin.partition(".")[0]]
    return word + ("" if builtin.endswith(".x") else f"_{builtin[-1]}")


def launch_name(kind: str, axis: int) -> Expr:
    return Name(f"{kind}.{'xyz'[axis]}")
