"""Who does what in a launch.

Nothing here is matched by shape. Index expressions are computed for every thread of a block, for a few
blocks, at the numbers of a `Scenario`; what they are is seen from the values: `threadIdx.x & 31`, `tid % 32`
and `get_local_id(0)` in a block of 32 all turn out to be the place in a team of 32.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tunesmith.expert.read.integers import BUILTINS, Head, LaunchTerms, head_of, is_narrow, number_node
from tunesmith.expert.read.model import Fact, OutOfReach
from tunesmith.expert.read.normal import Normal
from tunesmith.problem.problem import Problem, SizeRule
from tunesmith.source.fold import COMPARISONS, int_value
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Call, Cast, Expr, For, Ternary
from tunesmith.source.types import byte_size
from tunesmith.source.walk import names_in, nodes_in
from tunesmith.space.expr import Expr as SizeExpr
from tunesmith.space.expr import Node, Undefined

Triple = tuple[int, int, int]
_MAX_THREADS = 1024
ANY_DEVICE = {"device.sms": 108}  # a launch may ask for multiprocessors; for a reading any number will do


@dataclass(frozen=True)
class Scenario:
    sizes: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]  # the kernel's integer parameters
    grid: Triple
    block: Triple
    several: tuple[bool, bool, bool]  # axes along which some launch of the kernel has more than one block

    @property
    def numbers(self) -> dict[str, int]:
        """Parameters and built-in indices, as the first thread has them."""
        return {**dict(self.parameters), **self.builtins((0, 0, 0), 0)}

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def thread(self, number: int) -> Triple:
        x, y, _ = self.block
        return number % x, number // x % y, number // (x * y)

    def builtins(self, block: Triple, thread: int) -> dict[str, int]:
        place = self.thread(thread)
        found: dict[str, int] = {}
        for at, axis in enumerate("xyz"):
            found[f"threadIdx.{axis}"] = place[at]
            found[f"blockIdx.{axis}"] = block[at]
            found[f"blockDim.{axis}"] = self.block[at]
            found[f"gridDim.{axis}"] = self.grid[at]
        return found

    def of_threads(self) -> Scenario:
        """As if every thread were a block by itself, along the axes of the block."""
        x, y, z = (self.several[axis] or self.block[axis] > 1 for axis in range(3))
        return replace(self, block=(1, 1, 1), several=(x, y, z))


def sample_scenarios(problem: Problem, values: Mapping[str, Node]) -> tuple[Scenario, ...]:
    """Launches of different block shapes: of the workloads, of the smallest sizes, of some between."""
    found: dict[Triple, Scenario] = {}
    every = every_scenario(problem, values)
    for scenario in every:
        if 0 < scenario.threads <= _MAX_THREADS:
            found.setdefault(scenario.block, scenario)
    ordered = sorted(found.values(), key=lambda s: s.threads)
    if len(ordered) == 1:  # one shape for all: other sizes still
        others = [s for s in every if s.block == ordered[0].block]
        ordered = [*others[-2:], *ordered] if len(others) > 2 else others
    if len(ordered) <= 4:
        return tuple(ordered)
    # The smallest two, the largest, and one in the middle: odd shapes are among the small ones.
    return (*ordered[:2], ordered[len(ordered) // 2], ordered[-1])


def every_scenario(problem: Problem, values: Mapping[str, Node]) -> tuple[Scenario, ...]:
    """Launches at all the sizes that are looked at, also those not played through."""
    made = (scenario_at(problem, values, sizes) for sizes in _sample_sizes(problem))
    found = dict.fromkeys(scenario for scenario in made if scenario is not None)
    x, y, z = (any(scenario.several[axis] for scenario in found) for axis in range(3))
    return tuple(dict.fromkeys(replace(scenario, several=(x, y, z)) for scenario in found))


def _sample_sizes(problem: Problem) -> Iterator[dict[str, int]]:
    for workload in problem.workloads:
        yield workload.as_dict()
    rules = problem.contract.sizes
    smallest = {rule.name: _nearest_allowed(rule, rule.min) for rule in rules}
    first = problem.workloads[0].as_dict() if problem.workloads else smallest
    tried = [smallest, {rule.name: _nearest_allowed(rule, rule.max) for rule in rules}]
    draw = random.Random(0)
    wishes = (0, 3, 33, 48, 100, 257, 1000)
    tried += [{r.name: _nearest_allowed(r, draw.choice(wishes)) for r in rules} for _ in range(24)]
    for rule in rules:
        more = (rule.min, rule.min * 5, 40, 200, 600, rule.max)
        tried += [first | {rule.name: _nearest_allowed(rule, at)} for at in more]
    for sizes in tried:
        if not problem.contract.violations(sizes):
            yield sizes


def _nearest_allowed(rule: SizeRule, wish: int) -> int:
    if rule.one_of:
        return min(rule.one_of, key=lambda value: abs(value - wish))
    step = rule.multiple_of
    value = max(rule.min, min(rule.max, wish))
    return max(-(-rule.min // step) * step, value // step * step)


def scenario_at(
    problem: Problem,
    values: Mapping[str, Node],
    sizes: Mapping[str, int],
    device: Mapping[str, int] = ANY_DEVICE,
) -> Scenario | None:
    """The launch at these sizes; None where it has no numbers."""
    if not problem.launches:
        return None
    launch = problem.launches[0]
    known = {**sizes, **device}
    try:
        grid = pad_triple([max(1, expr.evaluate(known)) for expr in launch.grid])
        block = pad_triple([max(1, expr.evaluate(known)) for expr in launch.block])
        parameters = tuple((name, SizeExpr("", node).evaluate(known)) for name, node in values.items())
    except Undefined:
        return None
    several = grid[0] > 1, grid[1] > 1, grid[2] > 1
    return Scenario(tuple(sizes.items()), parameters, grid, block, several)


def pad_triple(values: list[int]) -> Triple:
    x, y, z = [*values, 1, 1, 1][:3]
    return x, y, z


THREAD = frozenset(name for name in BUILTINS if name.startswith("threadIdx"))
BLOCK = frozenset(name for name in BUILTINS if name.startswith("blockIdx"))
LAUNCH = frozenset(name for name in BUILTINS if name.startswith(("blockDim", "gridDim")))


@dataclass(frozen=True)
class Form:
    """The values of an index: `base` for every thread of block 0; what one block more adds on each axis."""

    base: tuple[int, ...]
    per_block: Triple

    @property
    def is_uniform(self) -> bool:
        return len(set(self.base)) == 1


@lru_cache(maxsize=512)
def values_of(expr: Expr, scenario: Scenario) -> tuple[int, ...] | None:
    """What the expression is in every thread of block 0; None where it reads what has no number."""
    if not names_in(expr) & THREAD:
        value = int_value(expr, scenario.numbers)
        return None if value is None else (value,) * scenario.threads
    numbers, found = scenario.numbers, list[int]()
    for thread in range(scenario.threads):
        numbers["threadIdx.x"], numbers["threadIdx.y"], numbers["threadIdx.z"] = scenario.thread(thread)
        value = int_value(expr, numbers)
        if value is None:
            return None
        found.append(value)
    return tuple(found)


@lru_cache(maxsize=512)
def form_of(expr: Expr, scenario: Scenario, is_linear: bool = False) -> Form | None:
    """None where the index is not linear in the block's number or reads what has no number.

    `is_linear`: that is proved, and only its numbers are asked for."""

    def at(block: Triple, thread: int) -> int | None:
        return int_value(expr, {**numbers, **scenario.builtins(block, thread)})

    numbers = dict(scenario.parameters)
    # Every thread of block 0; of blocks beside it the first thread and the last.
    base, last = values_of(expr, scenario), scenario.threads - 1
    if base is None:
        return None
    steps: list[int] = []
    for axis in range(3):
        one, two = (pad_triple([by * (axis == n) for n in range(3)]) for by in (1, 2))
        next_ = at(one, 0)
        if next_ is None:
            return None
        step = next_ - base[0]
        if at(two, 0) != base[0] + 2 * step or at(one, last) != base[last] + step:
            return None
        steps.append(step)
    if at((1, 2, 3), last) != base[last] + steps[0] + 2 * steps[1] + 3 * steps[2]:
        return None
    return Form(base, pad_triple(steps)) if is_linear or _goes_on_so(expr, scenario) else None


def wrapping_nodes(expr: Expr) -> Iterator[Binary | Cast]:
    """What may wrap, or be cut off, from one block to another."""
    for node in nodes_in(expr):
        divides = isinstance(node, Binary) and node.op in ("/", "%", "&", ">>")
        if (divides or (isinstance(node, Cast) and is_narrow(node.type))) and names_in(node) & BLOCK:
            assert isinstance(node, Binary | Cast)
            yield node


def _goes_on_so(expr: Expr, scenario: Scenario) -> bool:
    """Whether what holds of the first blocks holds of all: each adds whole turns to what wraps."""
    for node in wrapping_nodes(expr):
        if isinstance(node, Cast):
            inner, whole = node.value, 1 << 8 * (byte_size(node.type.base) or 1)
        else:
            inner, given = node.left, int_value(node.right, scenario.numbers)
            if given is None or given < 0 or (node.op == "&" and given & (given + 1)):
                return False
            whole = given + 1 if node.op == "&" else 1 << given if node.op == ">>" else given
        form = form_of(inner, scenario)
        steps = () if form is None else zip(form.per_block, scenario.several, strict=True)
        if form is None or whole < 1 or any(step % whole for step, counts in steps if counts):
            return False
    return True


def is_straight(expr: Expr) -> bool:
    """Whether a few blocks stand for all: no choices, no division by a size, whose corners lie anywhere."""
    for node in nodes_in(expr):
        if isinstance(node, Ternary | Call):
            return False
        if isinstance(node, Binary) and node.op in ("/", "%"):
            if not names_in(node.right) <= LAUNCH:
                return False
        elif isinstance(node, Binary) and node.op not in ("+", "-", "*", "<<", ">>", "&"):
            return False
    return True


def chooses_by_size(expr: Expr) -> bool:
    """Whether it tests a size on the way: what it is at some sizes says nothing of others."""
    for node in nodes_in(expr):
        tests = isinstance(node, Ternary | Call) or (isinstance(node, Binary) and node.op in COMPARISONS)
        if tests and not names_in(node) <= set(BUILTINS):
            return True
    return False


Role = Literal["element", "task", "grid", "sequential"]


@dataclass(frozen=True)
class Strided:
    """A loop that threads share. `unit`: elements that neighbours in the team are apart."""

    head: Head
    role: Role
    unit: int = 1
    line: int = 0


@dataclass(frozen=True)
class Layout:
    """The teams of a block in one scenario: `lanes` threads in a row to each."""

    scenario: Scenario
    lanes: int

    @property
    def teams(self) -> int:
        return self.scenario.threads // self.lanes

    def members(self, team: int) -> range:
        return range(team * self.lanes, (team + 1) * self.lanes)


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel in normal form, and the launches in which its threads are looked at."""

    normal: Normal
    launch: LaunchTerms
    scenarios: Sequence[Scenario]
    loops: Mapping[str, Strided]
    aliases: Mapping[str, str]
    multiples: Mapping[str, int]  # what the contract promises of parameters

    def type_of(self, index: str) -> str:
        """Of a variable that says which thread or block this is, of a loop's index, or of a built-in one."""
        if index in self.normal.ids:
            return self.normal.ids[index].type.base
        return self.loops[index].head.type if index in self.loops else self.normal.types[index].base


@dataclass(frozen=True)
class OtherForm:
    """The same kernel in another form, and what that rests on."""

    kernel: LaunchedKernel
    facts: tuple[Fact, ...] = ()


def strided_loops(normal: Normal, scenario: Scenario) -> dict[str, Strided]:
    """The loops of the kernel by their index, with the role each has; seen in the largest scenario."""
    definitions = normal.definitions
    found: dict[str, Strided] = {}
    for node in nodes_in(normal.body):
        if not isinstance(node, For):
            continue
        head = head_of(node)
        if head is None:
            continue
        start, step = substitute(head.start, definitions), substitute(head.step, definitions)
        role, unit = _loop_role(start, step, scenario)
        found[head.index] = Strided(head, role, unit, node.line)
    return found


def _loop_role(start: Expr, step: Expr, scenario: Scenario) -> tuple[Role, int]:
    names = names_in(start)
    if not names & (THREAD | BLOCK) or chooses_by_size(start) or chooses_by_size(step):
        return "sequential", 1
    form = form_of(start, scenario)
    if form is None:
        form = form_of(_without_unknown(start), scenario)
    if form is None:
        return "sequential", 1
    over_grid = any(name.startswith("gridDim") for name in names_in(step))
    if over_grid:
        return ("task" if form.is_uniform or not names & THREAD else "grid"), 1
    if form.is_uniform:
        return "sequential", 1
    values = sorted(set(form.base))
    unit = values[1] - values[0]
    by = int_value(step, scenario.numbers)
    # Steps as wide as a team of several threads; smaller ones are a thread's own loop.
    shared = by is not None and by % unit == 0 and by // unit > 1 and scenario.threads % (by // unit) == 0
    return ("element", unit) if shared else ("sequential", 1)


def _without_unknown(start: Expr) -> Expr:
    """The start with names that have no number (loads, task indices) counted as 0: they shift all threads."""
    unknown = {name: number_node(0) for name in names_in(start) if name not in BUILTINS}
    return substitute(start, unknown)


def team_lanes(loops: Mapping[str, Strided], normal: Normal, scenario: Scenario) -> int:
    """How many threads share a task in this scenario, from the steps of the loops over elements."""
    definitions = normal.definitions
    numbers = scenario.numbers
    lanes: dict[int, int] = {}
    for loop in loops.values():
        if loop.role != "element":
            continue
        step = int_value(substitute(loop.head.step, definitions), numbers)
        if step is None:
            raise OutOfReach.at(
                loop.line, f"the step of the loop over '{loop.head.index}' has no number at launch"
            )
        if step % loop.unit or scenario.threads % max(1, step // loop.unit):
            raise OutOfReach.at(
                loop.line,
                f"the loop over '{loop.head.index}' steps by {step}, which its "
                f"{scenario.threads} threads do not share evenly",
            )
        lanes.setdefault(step // loop.unit, loop.line)
    if len(lanes) > 1:
        a, b = list(lanes)[:2]
        raise OutOfReach(
            f"lines {lanes[a]} and {lanes[b]}: one loop is shared by {a} threads, another by {b}", lanes[b]
        )
    return next(iter(lanes), 1)


@dataclass(frozen=True)
class CountedIndex:
    """What an index counts: "block" and "team", those of one axis; "both", the teams of one axis of the whole
    grid; "flat", all teams of the grid. `times`: how far apart neighbours are.

    The teams of a block stand in one row. Where a team is a thread, there are rows along each axis as well.
    """

    kind: Literal["block", "team", "both", "flat"]
    axis: int
    times: int = 1

    @property
    def grid(self) -> int | None:
        """The axis of the grid that it runs along."""
        return None if self.kind == "team" else self.axis

    @property
    def teams(self) -> bool:
        return self.kind != "block"


def identify_index(
    expr: Expr, layouts: Sequence[Layout], by_axis: bool = False, is_linear: bool = False
) -> CountedIndex | None:
    """What an index counts, the same in every launch; None where its values follow no such rule.

    `by_axis`: teams are single threads, which may be counted along one axis of the block."""
    found: set[CountedIndex] = set()
    for at, layout in enumerate(layouts):
        form = form_of(expr, layout.scenario, is_linear)
        kinds = set() if form is None else set(_matching_indices(form, layout, by_axis))
        found = kinds if at == 0 else found & kinds
        if not found:
            return None
    # An index that is 0 in every thread fits an axis of one thread; only the axis itself is meant.
    wide = [not by_axis or any(lay.scenario.block[axis] > 1 for lay in layouts) for axis in range(3)]
    found = {one for one in found if one.kind != "team" or wide[one.axis] or names_in(expr) <= THREAD}
    order = ["block", "team", "both", "flat"]
    return min(found, key=lambda one: (order.index(one.kind), one.axis), default=None)


def _matching_indices(form: Form, layout: Layout, by_axis: bool) -> Iterator[CountedIndex]:
    """Everything the values fit; in small launches several."""
    values = [form.base[layout.members(team)[0]] for team in range(layout.teams)]
    moving = [axis for axis in range(3) if form.per_block[axis]]
    if len(moving) > 1 or any(form.base[t] != values[t // layout.lanes] for t in range(len(form.base))):
        return
    row = list(range(layout.teams))
    if not moving and not by_axis and len(row) > 1 and values == row:
        yield CountedIndex("team", 0)
    for axis in moving or range(3):
        step = form.per_block[axis]
        along = [layout.scenario.thread(thread)[axis] for thread in row] if by_axis else []
        if step == 1 and not any(values):
            yield CountedIndex("block", axis)
        if step == 0 and values == along:
            yield CountedIndex("team", axis)
        if step > 0 and step % len(row) == 0 and values == [step // len(row) * place for place in row]:
            yield CountedIndex("flat", axis, step // len(row))
        times = step // layout.scenario.block[axis]
        if (
            times > 0
            and step == times * layout.scenario.block[axis]
            and values == [times * at for at in along]
        ):
            yield CountedIndex("both", axis, times)


def check_lanes(start: Expr, unit: int, layout: Layout) -> bool:
    """Whether the members of every team start one after the other, `unit` apart, at one place of the team."""
    form = form_of(start, layout.scenario) or form_of(_without_unknown(start), layout.scenario)
    if form is None:
        return False
    for team in range(layout.teams):
        members = layout.members(team)
        first = min(form.base[t] for t in members)
        if sorted(form.base[t] - first for t in members) != [unit * n for n in range(layout.lanes)]:
            return False
    return True
