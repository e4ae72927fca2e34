"""A problem: what the kernel is, how it is called, where it must be right and where it must be fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tunesmith.core.digest import digest_of
from tunesmith.core.dtypes import ElementType, element_type
from tunesmith.core.expr import Expr
from tunesmith.core.space import Constraint

Role = Literal["input", "output", "inout", "workspace", "local", "scalar"]
Compare = Literal["close", "exact", "codes"]
Distribution = Literal["normal", "uniform", "positive", "integers", "zeros", "ones"]

# The kinds of operations a problem may count; a multiply-add is two.
OPERATIONS = ("fp32", "fp16", "fp64", "tensor")


@dataclass(frozen=True)
class PythonFunction:
    """A function in one of the user's own Python files; the text travels with the run."""

    path: str
    function: str
    text: str


@dataclass(frozen=True)
class Kernel:
    path: str
    text: str
    entry: str
    language: str
    flags: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()  # the user's own: as included -> text
    compiler: str = ""  # nvrtc | nvcc; empty: the first that takes the source


@dataclass(frozen=True)
class Argument:
    """One argument in the kernel's own order. Arrays have a shape, scalars a value."""

    name: str
    type: str
    role: Role
    shape: tuple[Expr, ...] = ()
    strides: tuple[Expr, ...] = ()  # in elements; empty means dense, last axis fastest
    value: Expr | float | None = None
    values: Distribution | None = None  # None: the tester explores all of them
    range: tuple[float, float] | None = None
    init: float | None = None  # what the caller pre-fills an output with
    align: int | None = None
    alias: str | None = None
    rtol: float | None = None
    atol: float | None = None
    compare: Compare | None = None
    traffic: Expr | None = None

    @property
    def element(self) -> ElementType:
        return element_type(self.type)

    @property
    def is_array(self) -> bool:
        return self.role not in ("scalar", "local")

    @property
    def is_written(self) -> bool:
        return self.role in ("output", "inout")


@dataclass(frozen=True)
class Launch:
    """One kernel launch; grid counts blocks (work-groups), block counts threads (work-items)."""

    entry: str
    grid: tuple[Expr, ...]
    block: tuple[Expr, ...]
    args: tuple[str, ...]
    shared: Expr | None = None
    cluster: tuple[Expr, ...] = ()
    cooperative: bool = False
    pdl: bool = False


@dataclass(frozen=True)
class SizeRule:
    """What callers promise about one size."""

    name: str
    min: int
    max: int
    multiple_of: int = 1
    one_of: tuple[int, ...] = ()

    def allows(self, value: int) -> bool:
        if self.one_of:
            return value in self.one_of
        return self.min <= value <= self.max and value % self.multiple_of == 0

    def describe(self) -> str:
        if self.one_of:
            return f"one of {', '.join(map(str, self.one_of))}"
        step = f" in steps of {self.multiple_of}" if self.multiple_of != 1 else ""
        return f"{self.min} to {self.max}{step}"


@dataclass(frozen=True)
class Contract:
    sizes: tuple[SizeRule, ...]
    require: tuple[Constraint, ...] = ()

    def violations(self, sizes: Mapping[str, int]) -> tuple[str, ...]:
        broken = [
            f"{rule.name} = {sizes[rule.name]}, the contract allows {rule.describe()}"
            for rule in self.sizes
            if not rule.allows(sizes[rule.name])
        ]
        broken += [f"it breaks {c.expr.text!r}" for c in self.require if not c.expr.holds(sizes)]
        return tuple(broken)


@dataclass(frozen=True)
class Workload:
    name: str
    sizes: tuple[tuple[str, int], ...]
    weight: float = 1.0
    cache: Literal["cold", "warm"] = "cold"

    def as_dict(self) -> dict[str, int]:
        return dict(self.sizes)


@dataclass(frozen=True)
class Accuracy:
    rtol: float
    atol: float
    reference: PythonFunction | None = None
    independent: str | None = None  # a size whose items do not influence each other: big cases are sampled
    deterministic: bool = True  # False: the original itself may differ from run to run
    baseline_may_fail: bool = False


@dataclass(frozen=True)
class Problem:
    name: str
    kernel: Kernel
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]
    contract: Contract
    workloads: tuple[Workload, ...]
    accuracy: Accuracy
    inputs: PythonFunction | None = None
    traffic: Expr | None = None
    operations: tuple[tuple[str, Expr], ...] = ()  # what must be computed, by kind, where the user says so

    @property
    def size_names(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self.contract.sizes)

    @property
    def digest(self) -> str:
        return digest_of(repr(self))

    def workload(self, name: str) -> Workload:
        return next(w for w in self.workloads if w.name == name)

    def argument(self, name: str) -> Argument:
        return next(a for a in self.arguments if a.name == name)
