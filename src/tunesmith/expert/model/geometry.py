"""Who does what: which threads form a team, which variables say the task, which loops go over elements.

Nothing here is matched by shape. Index expressions are computed for every thread of a block, for a few
blocks, at the numbers of a `Scenario`; what they are is seen from the values: `threadIdx.x & 31`, `tid % 32`
and `get_local_id(0)` in a block of 32 all turn out to be the place in a team of 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tunesmith.csource.nodes import Binary, Call, Expr, For, Ternary
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in, nodes_in
from tunesmith.expert.model.affine import number
from tunesmith.expert.model.loops import Head, head_of
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.scenario import Scenario, Triple, Unknown, number_of
from tunesmith.expert.model.value_types import BUILTINS

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
def form_of(expr: Expr, scenario: Scenario) -> Form | None:
    """None where the index is not linear in the block's number or reads what has no number."""
    numbers = dict(scenario.parameters)
    thready = [name for name in names_in(expr) if name in THREAD]
    numbers.update(scenario.builtins((0, 0, 0), 0))

    def at(block: Triple, thread: int) -> int:
        place = scenario.thread(thread)
        for name in thready:
            numbers[name] = place["xyz".index(name[-1])]
        numbers["blockIdx.x"], numbers["blockIdx.y"], numbers["blockIdx.z"] = block
        return number_of(expr, numbers)

    try:
        base = tuple(at((0, 0, 0), thread) for thread in range(scenario.threads))
        last = scenario.threads - 1
        steps: list[int] = []
        for axis in range(3):
            one, two = [0, 0, 0], [0, 0, 0]
            one[axis], two[axis] = 1, 2
            step = at(_triple(one), 0) - base[0]
            if at(_triple(two), 0) != base[0] + 2 * step or at(_triple(one), last) != base[last] + step:
                return None
            steps.append(step)
        if at((1, 2, 3), last) != base[last] + steps[0] + 2 * steps[1] + 3 * steps[2]:
            return None
    except Unknown:
        return None
    return Form(base, _triple(steps))


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


def _triple(values: list[int]) -> Triple:
    return values[0], values[1], values[2]


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


def strided_loops(normal: Normal, scenario: Scenario) -> dict[str, Strided]:
    """The loops of the kernel by their index, with the role each has; seen in the largest scenario."""
    definitions = {name: id_.expr for name, id_ in normal.ids.items()}
    found: dict[str, Strided] = {}
    for node in nodes_in(normal.body):
        if not isinstance(node, For):
            continue
        head = head_of(node)
        if head is None:
            continue
        start, step = substitute(head.start, definitions), substitute(head.step, definitions)
        role, unit = _role(start, step, scenario)
        found[head.index] = Strided(head, role, unit, node.line)
    return found


def _role(start: Expr, step: Expr, scenario: Scenario) -> tuple[Role, int]:
    names = names_in(start)
    if not names & (THREAD | BLOCK):
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
    try:
        by = number_of(step, {**dict(scenario.parameters), **scenario.builtins((0, 0, 0), 0)})
    except Unknown:
        return "sequential", 1
    # Steps as wide as a team of several threads; smaller ones are a thread's own loop.
    shared = by % unit == 0 and by // unit > 1 and scenario.threads % (by // unit) == 0
    return ("element", unit) if shared else ("sequential", 1)


def _without_unknown(start: Expr) -> Expr:
    """The start with names that have no number (loads, task indices) counted as 0: they shift all threads."""
    unknown = {name: number(0) for name in names_in(start) if name not in BUILTINS}
    return substitute(start, unknown)


def team_lanes(loops: Mapping[str, Strided], normal: Normal, scenario: Scenario) -> int:
    """How many threads share a task in this scenario, from the steps of the loops over elements."""
    definitions = {name: id_.expr for name, id_ in normal.ids.items()}
    numbers = {**dict(scenario.parameters), **scenario.builtins((0, 0, 0), 0)}
    lanes: dict[int, int] = {}
    for loop in loops.values():
        if loop.role != "element":
            continue
        try:
            step = number_of(substitute(loop.head.step, definitions), numbers)
        except Unknown:
            raise OutOfReach(
                f"line {loop.line}: the step of the loop over '{loop.head.index}' has no number at launch",
                loop.line,
            ) from None
        if step % loop.unit or scenario.threads % max(1, step // loop.unit):
            raise OutOfReach(
                f"line {loop.line}: the loop over '{loop.head.index}' steps by {step}, which its "
                f"{scenario.threads} threads do not share evenly",
                loop.line,
            )
        lanes.setdefault(step // loop.unit, loop.line)
    if len(lanes) > 1:
        a, b = list(lanes)[:2]
        raise OutOfReach(
            f"lines {lanes[a]} and {lanes[b]}: one loop is shared by {a} threads, another by {b}", lanes[b]
        )
    return next(iter(lanes), 1)


@dataclass(frozen=True)
class Axis:
    """What one task index counts: blocks of one axis of the grid, teams within a block, or both."""

    grid: int | None
    teams: bool


def axis_of(expr: Expr, layout: Layout) -> Axis | None:
    """The axis a variable runs along; None where its values differ in a team or follow another rule."""
    form = form_of(expr, layout.scenario) if is_straight(expr) else None
    if form is None:
        return None
    teams = [form.base[layout.members(team)[0]] for team in range(layout.teams)]
    if any(form.base[t] != teams[t // layout.lanes] for t in range(layout.scenario.threads)):
        return None
    moving = [axis for axis in range(3) if form.per_block[axis]]
    counts_teams = teams == list(range(layout.teams))
    if len(moving) == 1:
        step = form.per_block[moving[0]]
        if step == layout.teams and counts_teams:
            return Axis(moving[0], layout.teams > 1)
        if step == 1 and not any(teams):
            return Axis(moving[0], False)
    if not moving and counts_teams and layout.teams > 1:
        return Axis(None, True)
    return None


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
