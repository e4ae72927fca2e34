"""A launch made concrete: sizes in, shapes, bytes and geometry out. Workers see plans, never expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.core.device import Device, Resources
from tunesmith.core.dtypes import element_type
from tunesmith.core.expr import Expr, Undefined
from tunesmith.core.problem import Argument, Compare, Distribution, Problem, Role
from tunesmith.core.template import Variant


@dataclass(frozen=True)
class BufferPlan:
    name: str
    type: str
    role: Role
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    extent: int  # elements from the first to the last one touched
    align: int
    values: Distribution | None
    range: tuple[float, float] | None
    init: float | None
    rtol: float
    atol: float
    compare: Compare
    itemsize: int

    @property
    def nbytes(self) -> int:
        return self.extent * self.itemsize

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class ScalarPlan:
    name: str
    type: str
    value: float | int


@dataclass(frozen=True)
class LocalPlan:
    name: str
    nbytes: int


@dataclass(frozen=True)
class Geometry:
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    args: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    sizes: tuple[tuple[str, int], ...]
    buffers: tuple[BufferPlan, ...]
    scalars: tuple[ScalarPlan, ...]
    locals: tuple[LocalPlan, ...]
    aliases: tuple[tuple[str, str], ...]  # argument -> the buffer it shares
    launches: tuple[Geometry, ...]

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for b in self.buffers)

    def buffer(self, name: str) -> BufferPlan:
        return next(b for b in self.buffers if b.name == name)

    def compared(self) -> tuple[BufferPlan, ...]:
        return tuple(b for b in self.buffers if b.role in ("output", "inout"))


@dataclass(frozen=True)
class Refused:
    """Why a variant cannot run at these sizes: by its own rules, or by the device's limits."""

    over_limits: bool
    reason: str


def plan_launch(
    problem: Problem, variant: Variant, sizes: Mapping[str, int], device: Device, resources: Resources | None
) -> Plan | Refused:
    names = {**sizes, **device.limits.names(), **(resources.names() if resources else {})}
    for condition in variant.domain:
        if condition.names <= names.keys() and not condition.holds(names):
            about_build = any(name.startswith("resources.") for name in condition.names)
            return Refused(about_build, f"requires {condition.text}, not so at {_show(sizes)}")
    try:
        plan = _plan(problem, variant, sizes, names)
    except Undefined as error:
        return Refused(False, f"an expression has no value at {_show(sizes)}: {error}")
    for scalar in plan.scalars:
        if not element_type(scalar.type).holds(scalar.value):
            return Refused(False, f"{scalar.name} = {scalar.value} does not fit {scalar.type}")
    reason = limits_broken(plan, device, resources)
    return Refused(True, reason) if reason else plan


def limits_broken(plan: Plan, device: Device, resources: Resources | None) -> str | None:
    """The first hardware limit the plan breaks, in words; drivers do not all check this themselves."""
    limits = device.limits
    for item in plan.locals:
        if item.nbytes < 1:
            return f"local memory {item.name} has {item.nbytes} bytes, it needs at least 1"
    for launch in plan.launches:
        threads = math.prod(launch.block)
        if min(*launch.block, *launch.grid) < 1:
            return f"the launch is empty: grid {launch.grid}, block {launch.block}"
        if launch.shared < 0:
            return f"{launch.shared} bytes of shared memory"
        if threads > limits.max_threads:
            return f"{threads} threads per block, the device allows {limits.max_threads}"
        if resources and resources.max_threads and threads > resources.max_threads:
            return f"{threads} threads per block, this build allows {resources.max_threads}"
        for axis in range(3):
            if launch.block[axis] > limits.max_block[axis]:
                return f"block {launch.block}, the device allows {limits.max_block}"
            if launch.grid[axis] > limits.max_grid[axis]:
                return f"grid {launch.grid}, the device allows {limits.max_grid}"
        local = sum(item.nbytes for item in plan.locals if item.name in launch.args)
        shared = launch.shared + local + (resources.shared or 0 if resources else 0)
        if shared > limits.shared:
            return f"{shared} bytes of shared memory per block, the device allows {limits.shared}"
    for buffer in plan.buffers:
        if buffer.nbytes > limits.max_allocation:
            return (
                f"array {buffer.name} needs {buffer.nbytes} bytes, the device allows {limits.max_allocation}"
            )
    return None


def argument_bytes(argument: Argument, sizes: Mapping[str, int]) -> int:
    shape, strides = _layout(argument, sizes)
    return _extent(shape, strides) * argument.element.bytes


def necessary_traffic(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Bytes that must move: inputs once in, outputs once out, unless the problem states it."""
    if problem.traffic is not None:
        return problem.traffic.evaluate(sizes)
    total = 0
    for argument in problem.arguments:
        if not argument.is_array or argument.role == "workspace" or argument.alias:
            continue
        stated = argument.traffic.evaluate(sizes) if argument.traffic is not None else None
        ways = 2 if argument.role == "inout" else 1
        elements = math.prod(max(0, e.evaluate(sizes)) for e in argument.shape)
        total += stated if stated is not None else ways * elements * argument.element.bytes
    return total


def _plan(problem: Problem, variant: Variant, sizes: Mapping[str, int], names: Mapping[str, int]) -> Plan:
    buffers, scalars, locals_, aliases = [], [], [], []
    for argument in variant.arguments:
        element = argument.element
        if argument.role == "scalar":
            value = argument.value
            assert value is not None, f"scalar {argument.name} has no value"
            number = value.evaluate(names) if isinstance(value, Expr) else value
            scalars.append(ScalarPlan(argument.name, argument.type, number))
        elif argument.role == "local":
            count = math.prod(max(0, e.evaluate(names)) for e in argument.shape)
            locals_.append(LocalPlan(argument.name, count * element.bytes))
        elif argument.alias:
            aliases.append((argument.name, argument.alias))
        else:
            shape, strides = _layout(argument, names)
            buffers.append(
                BufferPlan(
                    name=argument.name,
                    type=argument.type,
                    role=argument.role,
                    shape=shape,
                    strides=strides,
                    extent=_extent(shape, strides),
                    align=argument.align or element.bytes,
                    values=argument.values,
                    range=argument.range,
                    init=argument.init,
                    rtol=problem.accuracy.rtol if argument.rtol is None else argument.rtol,
                    atol=problem.accuracy.atol if argument.atol is None else argument.atol,
                    compare=argument.compare or ("close" if element.kind == "float" else "exact"),
                    itemsize=element.bytes,
                )
            )
    launches = tuple(
        Geometry(
            entry=launch.entry,
            grid=_three(launch.grid, names),
            block=_three(launch.block, names),
            shared=launch.shared.evaluate(names) if launch.shared is not None else 0,
            args=launch.args,
        )
        for launch in variant.launches
    )
    return Plan(
        tuple(sizes.items()), tuple(buffers), tuple(scalars), tuple(locals_), tuple(aliases), launches
    )


def _layout(argument: Argument, names: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(max(0, e.evaluate(names)) for e in argument.shape)
    if argument.strides:
        return shape, tuple(e.evaluate(names) for e in argument.strides)
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return shape, tuple(reversed(strides))


def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if math.prod(shape) == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _three(exprs: tuple[Expr, ...], names: Mapping[str, int]) -> tuple[int, int, int]:
    values = [e.evaluate(names) for e in exprs] + [1, 1]
    return values[0], values[1], values[2]


def _show(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sizes.items())
