"""A launch made concrete: sizes in, shapes, bytes and geometry out. Workers see plans, and no expression but
that of an input which is made by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tunesmith.base.text import named_values
from tunesmith.problem.device import (
    Device,
    Limits,
    Occupancy,
    Resources,
    Three,
    block_broken,
    compute_occupancy,
    grid_broken,
)
from tunesmith.problem.problem import Argument, Compare, Distribution, Launch, Problem, Role, element_type
from tunesmith.problem.template import Variant
from tunesmith.space.expr import Expr, RealExpr, Undefined


class Status(StrEnum):
    OK = "ok"
    INFEASIBLE = "infeasible"
    BUILD_FAILED = "build_failed"
    OVER_LIMITS = "over_limits"
    WRONG = "wrong"
    UNSTABLE = "unstable"
    SUSPECT = "suspect"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"


# What of a build depends on how it is launched as well: known only once block and shared memory are.
_OF_A_LAUNCH = frozenset(("resources.occupancy", "resources.blocks_per_sm"))


@dataclass(frozen=True)
class OutputErrors:
    """Absolute errors of an output against the reference in one case, and the original's own. None: too large
    for a number."""

    array: str
    max_error: float | None
    rms_error: float | None
    original_max_error: float | None
    original_rms_error: float | None


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
    itemsize: int  # of what lies in memory: an element, or the byte that `packed` elements share
    packed: int = 1
    traffic: int | None = None  # bytes the operator needs of it, where the problem says
    order: str = ""  # of an output: empty, ANY_ORDER, or the output that it goes with
    along: int = 0  # the axis whose order that is
    keys: str = ""  # the input that its indices point into
    keys_by_row: bool = False  # they count from the start of their row
    formula: str = ""  # of an input that no one draws: each element from its index
    is_filled_by_launch: bool = False  # a template's own workspace with an `init`: the original needs none

    @property
    def in_c_order(self) -> bool:
        """Whether the elements lie in memory one after the other, the last axis fastest."""
        step = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length > 1 and stride != step:
                return False
            step *= length
        return True

    @property
    def touched(self) -> int:
        """Bytes of memory that a kernel goes near."""
        return self.nbytes if self.traffic is None else min(self.nbytes, self.traffic)

    @property
    def words(self) -> int:
        """How many items of `itemsize` bytes lie in memory."""
        return -(-self.extent // self.packed)

    @property
    def nbytes(self) -> int:
        return self.words * self.itemsize

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
    grid: Three
    block: Three
    shared: int
    args: tuple[str, ...]
    cluster: Three | None = None
    cooperative: bool = False
    pdl: bool = False  # may start before its predecessor has ended, as its own code allows
    occupancy: int | None = None  # per cent; None where the device or the compiler does not say
    blocks_per_sm: int | None = None


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
class CannotRun:
    """Why a variant cannot run at these sizes: by its own rules, or by the device's limits."""

    over_limits: bool
    reason: str

    @property
    def status(self) -> Status:
        return Status.OVER_LIMITS if self.over_limits else Status.INFEASIBLE


def plan_launch(
    problem: Problem, variant: Variant, sizes: Mapping[str, int], device: Device, resources: Resources | None
) -> Plan | CannotRun:
    """Arguments and blocks first, then what they make of a multiprocessor, then the grids, which may ask."""
    built = resources or Resources()
    names = {**sizes, **device.limits.names(), **built.names()}
    later = [c for c in variant.domain if not c.names.isdisjoint(_OF_A_LAUNCH)]
    if unmet := _unmet_condition([c for c in variant.domain if c not in later], names, sizes):
        return unmet
    try:
        plan = _plan_arguments(problem, variant, sizes, names)
        wanted = [launch for launch in variant.launches if launch.when is None or launch.when.holds(names)]
        if not wanted:
            return CannotRun(False, f"no launch is left at {show_sizes(sizes)}")
        blocks = [_plan_block(launch, plan, names) for launch in wanted]
        if refused := _argument_misfit(plan) or _too_large(plan, blocks, device, built):
            return refused
        held = [b.occupancy(device.limits, built.of(b.entry)) for b in blocks]
        if unmet := _unmet_condition(later, {**names, **_worst_occupancy(held)}, sizes):
            return unmet
        each = zip(wanted, blocks, held, strict=True)
        launches = [_plan_geometry(launch, block, occupancy, names) for launch, block, occupancy in each]
    except Undefined as error:
        return CannotRun(False, f"an expression has no value at {show_sizes(sizes)}: {error}")
    for made in launches:
        resident = made.blocks_per_sm if made.blocks_per_sm is not None else built.blocks_per_sm
        if reason := grid_broken(made.grid, made.cluster, made.cooperative, resident, device.limits):
            return CannotRun(True, reason)
    return replace(plan, launches=tuple(launches))


def _unmet_condition(
    conditions: Iterable[Expr], names: Mapping[str, int], sizes: Mapping[str, int]
) -> CannotRun | None:
    """The first condition that does not hold; those on what nobody knows are not judged."""
    for condition in conditions:
        if condition.names <= names.keys() and not condition.holds(names):
            about_build = any(name.startswith("resources.") for name in condition.names)
            return CannotRun(about_build, f"requires {condition.text}, not so at {show_sizes(sizes)}")
    return None


def _argument_misfit(plan: Plan) -> CannotRun | None:
    """An argument that its type cannot hold."""
    for scalar in plan.scalars:
        if not (type_ := element_type(scalar.type)).holds(scalar.value):
            low, high = type_.bounds
            fault = f"{scalar.name} = {scalar.value} does not fit {scalar.type}, which holds {low} to {high}"
            return CannotRun(False, fault)
    for b in plan.buffers:
        last = b.shape[-1] if b.shape else 1
        if b.extent and last % b.packed:
            rule = f"{b.packed} {b.type} share a byte, so its last axis must be a multiple of {b.packed}"
            return CannotRun(False, f"array {b.name}: {rule}, got {last}")
    return None


def _too_large(plan: Plan, blocks: Sequence[_OneBlock], device: Device, built: Resources) -> CannotRun | None:
    """The first limit of the device that a block or an array breaks."""
    limits = device.limits
    for item in plan.locals:
        if item.nbytes < 1:
            return CannotRun(True, f"local memory {item.name} has {item.nbytes} bytes, it needs at least 1")
    for b in blocks:
        if reason := block_broken(b.size, b.shared, b.local, limits, built.of(b.entry)):
            return CannotRun(True, reason)
    for buffer in plan.buffers:
        if buffer.nbytes > limits.max_allocation:
            allowed = f"the device allows {limits.max_allocation}"
            return CannotRun(True, f"array {buffer.name} needs {buffer.nbytes} bytes, {allowed}")
    return None


@dataclass(frozen=True)
class _OneBlock:
    """One block of a launch: all that decides how many of them a multiprocessor holds."""

    entry: str
    size: Three
    shared: int
    local: int  # bytes of the launch's local arguments

    def occupancy(self, limits: Limits, resources: Resources) -> Occupancy | None:
        return compute_occupancy(limits, resources, math.prod(self.size), self.shared + self.local)


def _plan_block(launch: Launch, plan: Plan, names: Mapping[str, int]) -> _OneBlock:
    shared = launch.shared.evaluate(names) if launch.shared is not None else 0
    local = sum(item.nbytes for item in plan.locals if item.name in launch.args)
    return _OneBlock(launch.entry, _evaluate_triple(launch.block, names), shared, local)


def _worst_occupancy(held: Sequence[Occupancy | None]) -> dict[str, int]:
    """What conditions see: the launch that leaves a multiprocessor emptiest. Nothing if one is unknown."""
    known = [occupancy for occupancy in held if occupancy is not None]
    if not known or len(known) < len(held):
        return {}
    return Occupancy(min(o.blocks_per_sm for o in known), min(o.percent for o in known)).names()


def _plan_geometry(
    launch: Launch, block: _OneBlock, occupancy: Occupancy | None, names: Mapping[str, int]
) -> Geometry:
    # A grid that fills the device is made of this kernel's own blocks, whatever its neighbours take.
    seen = {**names, **(occupancy.names() if occupancy else {})}
    return Geometry(
        entry=launch.entry,
        grid=_evaluate_triple(launch.grid, seen),
        block=block.size,
        shared=block.shared,
        args=launch.args,
        cluster=_evaluate_triple(launch.cluster, seen) if launch.cluster else None,
        cooperative=launch.cooperative,
        pdl=bool(launch.pdl),
        occupancy=occupancy.percent if occupancy else None,
        blocks_per_sm=occupancy.blocks_per_sm if occupancy else None,
    )


def necessary_traffic(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Bytes that must move: inputs once in, outputs once out, unless the problem states it."""
    if problem.traffic is not None:
        return problem.traffic.evaluate(sizes)
    return sum(moved for _, moved in traffic_by_argument(problem, sizes))


def least_seconds(problem: Problem, sizes: Mapping[str, int], limits: Limits) -> float:
    """What moving the bytes takes at the memory's pins; 0 where these are not known."""
    return necessary_traffic(problem, sizes) / limits.pin_bandwidth if limits.pin_bandwidth else 0.0


def overstated_traffic(problem: Problem, limits: Limits, original: Mapping[str, float]) -> tuple[str, ...]:
    """A sentence on workloads where the original's seconds are less than moving its arrays takes, if any."""
    cold = [w for w in problem.workloads if w.cache == "cold" and w.name in original]
    names = [w.name for w in cold if original[w.name] < least_seconds(problem, w.as_dict(), limits)]
    if not names:
        return ()
    where = ", ".join(names)
    return (
        f"at {where} the original is faster than the memory could move its arrays once, so not all of them "
        "move: floors there are too high; say `traffic` of the arrays that are read or written in part",
    )


def traffic_by_argument(problem: Problem, sizes: Mapping[str, int]) -> Iterator[tuple[Argument, int]]:
    """Bytes that each array must move, both ways together where it is changed in place."""
    for argument in problem.arguments:
        if not argument.is_array or argument.role == "workspace" or argument.alias:
            continue
        if argument.traffic is not None:
            yield argument, argument.traffic.evaluate(sizes)
        else:
            elements = math.prod(max(0, e.evaluate(sizes)) for e in argument.shape)
            yield argument, argument.element.nbytes(elements) * (2 if argument.role == "inout" else 1)


def _plan_arguments(
    problem: Problem, variant: Variant, sizes: Mapping[str, int], names: Mapping[str, int]
) -> Plan:
    """The plan but for its launches."""
    buffers, scalars, locals_, aliases = [], [], [], []
    for argument in variant.arguments:
        if argument.role == "scalar":
            value = argument.value
            assert value is not None, f"scalar {argument.name} has no value"
            number = value.evaluate(names) if isinstance(value, Expr | RealExpr) else value
            scalars.append(ScalarPlan(argument.name, argument.type, number))
        elif argument.role == "local":
            count = math.prod(max(0, e.evaluate(names)) for e in argument.shape)
            locals_.append(LocalPlan(argument.name, argument.element.nbytes(count)))
        elif argument.alias:
            aliases.append((argument.name, argument.alias))
        else:
            buffers.append(_plan_buffer(problem, variant, argument, names))
    return Plan(tuple(sizes.items()), tuple(buffers), tuple(scalars), tuple(locals_), tuple(aliases), ())


def _plan_buffer(
    problem: Problem, variant: Variant, argument: Argument, names: Mapping[str, int]
) -> BufferPlan:
    element, accuracy = argument.element, problem.accuracy
    shape = tuple(max(0, e.evaluate(names)) for e in argument.shape)
    dense = (math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    strides = tuple(e.evaluate(names) for e in argument.strides) or tuple(dense)
    is_workspace = all(argument.name != one.name for one in problem.arguments)
    return BufferPlan(
        name=argument.name,
        type=argument.type,
        role=argument.role,
        shape=shape,
        strides=strides,
        extent=1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if math.prod(shape) else 0,
        align=argument.align or element.bytes,
        values=argument.values,
        range=argument.range,
        init=argument.init,
        rtol=accuracy.rtol if argument.rtol is None else argument.rtol,
        atol=accuracy.atol if argument.atol is None else argument.atol,
        compare=argument.compare or ("close" if element.kind == "float" else "exact"),
        itemsize=element.bytes,
        traffic=argument.traffic.evaluate(names) if argument.traffic is not None else None,
        packed=element.packed,
        order=argument.order,
        along=argument.along if argument.along is not None else max(0, len(shape) - 1),
        keys=argument.keys,
        formula=argument.formula.bind(names).text if argument.formula is not None else "",
        keys_by_row=bool(argument.keys) and _by_row(argument, variant.arguments),
        is_filled_by_launch=argument.init is not None and is_workspace,
    )


def _by_row(argument: Argument, others: Sequence[Argument]) -> bool:
    """Whether the output has the axes of its keys, but for the last: then an index counts within its row."""
    keys = next(a for a in others if a.name == argument.keys)
    axes, key_axes = ([e.text for e in a.shape[:-1]] for a in (argument, keys))
    return bool(axes) and axes == key_axes


def _evaluate_triple(exprs: tuple[Expr, ...], names: Mapping[str, int]) -> Three:
    values = [e.evaluate(names) for e in exprs] + [1, 1]
    return values[0], values[1], values[2]


def show_sizes(sizes: Mapping[str, int]) -> str:
    return named_values(sizes, ", ")


@dataclass(frozen=True)
class ExtraCase:
    """A case that somebody adds to those that are tested anyway."""

    sizes: tuple[tuple[str, int], ...]  # in the contract's order
    distribution: str
    why: str = ""
