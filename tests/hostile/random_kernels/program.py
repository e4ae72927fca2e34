"""A kernel with its contract, as text: generated, written by hand, or shortened."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.plan import Geometry, Plan
from tunesmith.problem.problem import Problem, element_type
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Variant


@dataclass(frozen=True)
class Operand:
    """An argument. Arrays have a shape, and are filled with whole numbers from `low` to `high`, each once if
    `distinct`; `high` of a gather's indices is an expression over the sizes."""

    name: str
    type: str
    shape: tuple[str, ...] = ()
    role: str = "input"
    low: int = -8
    high: int | str = 8
    distinct: bool = False
    align: int = 0
    value: str = ""
    alias: str = ""

    def toml(self) -> str:
        lines = ["[[argument]]", f'name = "{self.name}"']
        if self.alias:
            return "\n".join(
                [*lines, f'type = "{self.type}*"', f'role = "{self.role}"', f'alias = "{self.alias}"']
            )
        if not self.shape:
            return "\n".join([*lines, f'type = "{self.type}"', f'value = "{self.value}"'])
        shape = ", ".join(f'"{size}"' for size in self.shape)
        lines += [f'type = "{self.type}*"', f"shape = [{shape}]", f'role = "{self.role}"']
        if self.align:
            lines.append(f"align = {self.align}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Program:
    name: str
    source: str
    operands: tuple[Operand, ...]
    grid: tuple[str, ...]
    block: tuple[str, ...]
    contract: Mapping[str, str]  # a size's promise, as in a problem file
    sizes: tuple[Mapping[str, int], ...]  # where it is compared; the first two are the workloads
    shared: str = ""
    entry: str = "k"
    tags: tuple[str, ...] = ()  # what of the grammar it has
    language: str = "cuda"

    def with_source(self, source: str) -> Program:
        return replace(self, source=source)

    @property
    def suffix(self) -> str:
        return "cl" if self.language == "opencl" else "cu"

    def toml(self) -> str:
        grid, block = (", ".join(f'"{part}"' for part in parts) for parts in (self.grid, self.block))
        shared = f'shared = "{self.shared}"\n' if self.shared else ""
        promises = "\n".join(f"{name} = {promise}" for name, promise in self.contract.items())
        workloads = "\n".join(
            f"w{place} = {{ {', '.join(f'{name} = {value}' for name, value in sizes.items())} }}"
            for place, sizes in enumerate(self.sizes[:2])
        )
        operands = "\n".join(operand.toml() for operand in self.operands)
        return (
            f'name = "{self.name}"\n[kernel]\nsource = "kernel.{self.suffix}"\n'
            f'entry = "{self.entry}"\nlanguage = "{self.language}"\n'
            f"{operands}\n[launch]\ngrid = [{grid}]\nblock = [{block}]\n{shared}[contract]\n{promises}\n"
            f"[workloads]\n{workloads}\n[accuracy]\nrtol = 1e-3\natol = 1e-3\n"
        )

    def problem(self) -> Problem:
        return parse_problem(self.toml(), path="problem.toml", read=lambda _: self.source)

    def inputs(self, plan: Plan, seed: int) -> dict[str, NDArray[Any]]:
        """Small whole numbers, so that sums are exact in any order."""
        rng = random.Random(seed)
        found: dict[str, NDArray[Any]] = {}
        sizes = dict(plan.sizes)
        for operand in self.operands:
            if not operand.shape or operand.role not in ("input", "inout") or operand.alias:
                continue
            buffer = plan.buffer(operand.name)
            high = operand.high if isinstance(operand.high, int) else eval(operand.high, {}, dict(sizes))
            draws = np.random.default_rng(rng.randrange(1 << 30))
            if operand.distinct:
                values = draws.permutation(buffer.extent)
            else:
                values = draws.integers(operand.low, high + 1, buffer.extent)
            found[operand.name] = values.astype(element_type(operand.type).numpy)
        return found


@dataclass(frozen=True)
class Trial:
    """One kernel at one size: which variant, how it is launched, and the order of its threads."""

    variant: Variant
    plan: Plan
    seed: int
    label: str = ""

    @property
    def launch(self) -> Geometry:
        (launch,) = self.plan.launches
        return launch


@dataclass(frozen=True)
class Case:
    """The first trial is the original; the others must leave what it leaves."""

    name: str
    trials: tuple[Trial, ...]
    inputs: Mapping[str, NDArray[Any]] = field(hash=False)


@dataclass(frozen=True)
class Outcome:
    case: Case
    trial: Trial
    verdict: str  # ok, differs, stray, crash, timeout, build
    detail: str
