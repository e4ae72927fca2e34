"""From a kernel to its knobs: found, held against the launch, grouped, with their values and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tunesmith.expert.knobs import rules
from tunesmith.expert.knobs.caps import cap_values, is_cap, without_cap
from tunesmith.expert.knobs.constant import evaluated, product_of, text_of, used_names, with_names
from tunesmith.expert.knobs.domains import ABOUT, Bounds, Role, values_of
from tunesmith.expert.knobs.evidence import LaunchEvidence, evidence_of
from tunesmith.expert.knobs.find import ConstantTable, entry_parts, find_constants
from tunesmith.expert.knobs.follow import Followed, LaunchTrees, follow
from tunesmith.expert.knobs.text import AXES, KnobText, read_text
from tunesmith.expert.knobs.uses import KnobUses, find_uses, why_not, words_of
from tunesmith.expert.knobs.written import fixed_numbers, name_numbers
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.space.grammar import Arithmetic, Compare, CompareOp, Node, Num, Variable

MOST = 8  # knobs of a kernel; more are more combinations than a search sees anything of
STATIC = {"cuda": 48 << 10, "hip": 64 << 10}  # bytes of shared memory that a text may declare
PRIVATE = 256  # elements of arrays in registers
_ORDER: tuple[Role, ...] = ("threads", "tile", "depth", "unroll", "resident", "pad", "blocks", "switch")


@dataclass(frozen=True)
class Dial:
    """One parameter: the constants that it sets, or a number of the launch (a key with a dot)."""

    keys: tuple[str, ...]
    name: str  # in the source
    role: Role
    today: int
    values: tuple[int, ...]
    shared: bool  # an extent of an array in shared memory
    lines: tuple[int, ...]
    is_cap: bool = False  # blocks are shorter where rows are

    @property
    def about(self) -> str:
        where = f", line {', '.join(map(str, self.lines))}" if self.lines else ", of the launch"
        return f"{ABOUT[self.role]}{', at most' if self.is_cap else ''}{where}"


@dataclass(frozen=True)
class KnobPlan:
    text: KnobText
    constants: ConstantTable
    evidence: tuple[LaunchEvidence, ...]
    reached: tuple[tuple[int, ...], ...]  # by launch
    followed: Followed
    dials: tuple[Dial, ...]
    left: tuple[str, ...]  # sentences on constants that stay as they are

    def opened(self, number: int, node: Node) -> Node:
        """A tree over what the dials set alone, as that launch has it."""
        moving = {key for dial in self.dials for key in dial.keys}
        values = self.constants.values()
        meanings: dict[str, Node] = {key: Num(value) for key, value in values.items() if key not in moving}
        block = self.followed.launches[number].block
        for place, axis in enumerate(AXES):
            meanings[f"blockDim.{axis}"] = block[place] if place < len(block) else Num(1)
        return with_names(node, meanings)

    def today(self) -> dict[str, int]:
        return {**self.constants.values(), **self.followed.own}

    def threads(self, number: int) -> Node:
        return product_of(self.followed.launches[number].block)

    def most_threads(self, number: int) -> Node:
        """Of a block at any size."""
        node = self.threads(number)
        for dial in self.dials:
            for key in dial.keys:
                node = without_cap(node, Variable(key))
        return node


def plan_knobs(problem: Problem, launches: Sequence[LaunchTrees], device: Device) -> KnobPlan:
    text = read_text(problem.kernel)
    entries = [entry_parts(launch.entry)[0] for launch in problem.launches]
    reached = tuple(text.reached(entry) for entry in entries)
    naming = frozenset(word for entry in entries for word in text.naming(entry))
    every = tuple(sorted({place for places in reached for place in places}))
    text, numbers, unnamed = name_numbers(problem, text, every, [launch.block for launch in launches])
    constants = find_constants(problem, text, every, numbers)
    uses = find_uses(constants, text, every)
    evidence = tuple(evidence_of(constants, text, places) for places in reached)
    left: dict[str, str] = {}
    for key, one in constants.every.items():
        if one.is_literal and (reason := why_not(one, uses[key], problem)):
            left[key] = reason
        elif one.name in naming:
            left[key] = "an #if chooses the kernel's name by it"
    literals = [key for key, one in constants.every.items() if one.is_literal]
    shares = [key for key in literals if "geometry" in uses[key].kinds]
    while True:
        open_keys = [key for key in literals if key not in left]
        followed = follow(launches, evidence, constants, open_keys, left, shares)
        dropped = {**followed.dropped, **_counted_elsewhere(followed, problem, text, every)}
        if dropped.keys() - left.keys():
            left |= dropped
            continue
        room = _Room(problem, device, text, every, rules.halves(text, every))
        dials = sorted(
            _dials(constants, uses, open_keys, followed, room), key=lambda dial: _ORDER.index(dial.role)
        )
        plan = KnobPlan(text, constants, evidence, reached, followed, tuple(dials), ())
        plan, single = _narrowed(plan, requirements(plan, problem, device))
        if single or len(dials) > MOST:
            left |= single or {key: f"{MOST} others come first" for dial in dials[MOST:] for key in dial.keys}
            continue
        told = (_sentence(constants, key, reason) for key, reason in left.items())
        return replace(plan, left=(*told, *unnamed))


def _counted_elsewhere(
    followed: Followed, problem: Problem, text: KnobText, reached: Sequence[int]
) -> dict[str, str]:
    """Numbers of blocks that something else relies on."""
    fixed, found = fixed_numbers(problem), dict[str, str]()
    for key, today in followed.own.items():
        if key.startswith(".GRID") and today in fixed:
            found[key] = f"it is {fixed[today]} of the problem"
        elif key.startswith(".GRID") and _written_out(text, reached, today):
            found[key] = f"the text has {today} as well"
    return found


def _narrowed(plan: KnobPlan, conditions: Sequence[tuple[str, Node]]) -> tuple[KnobPlan, dict[str, str]]:
    """Values that a condition on one dial alone rules out are not among its own; and those with one value."""
    found, single = list[Dial](), dict[str, str]()
    for dial in plan.dials:
        own = [node for _, node in conditions if used_names(node) <= set(dial.keys)]
        values = tuple(
            value
            for value in dial.values
            if all(evaluated(node, dict.fromkeys(dial.keys, value)) for node in own)
        )
        found.append(replace(dial, values=values))
        if len(values) < 2:
            why = "what the code asks for" if own else "what blocks come to at the workloads"
            single |= dict.fromkeys(dial.keys, f"{why} leaves it one value")
    return replace(plan, dials=tuple(found)), single


@dataclass(frozen=True)
class _Room:
    """What bounds the values of knobs."""

    problem: Problem
    device: Device
    text: KnobText
    reached: tuple[int, ...]
    halving: bool

    @property
    def warp(self) -> int:
        return self.device.limits.warp if self.device.kind != "cpu" else 1

    def threads(self, today: int, *, wide: bool, is_launch: bool) -> Bounds:
        """Where an array has just so many elements by number, fewer threads are safe and more are not."""
        given = [e.text for a in self.problem.arguments if a.role == "local" for e in a.shape]
        fixed = is_launch and _written_out(self.text, self.reached, today)
        fixed = fixed or any(str(today) in re.findall(r"\d+", text) for text in given)
        most = today if fixed else self.device.limits.max_threads
        return Bounds(most, 1 if wide else min(today, self.warp), self.halving, self.warp)

    def of_cap(self, key: str, today: int, followed: Followed, bounds: Bounds) -> tuple[int, ...]:
        """Of a number that blocks are cut off at; none where it is no such number."""
        own, nodes = Variable(key), list[Node]()
        for launch in followed.launches:
            if is_cap(own, launch.block):
                nodes += launch.block
                if launch.shared is not None and key not in used_names(launch.shared):
                    bounds = replace(bounds, most=min(bounds.most, today))  # memory for more may not be there
        workloads = [workload.as_dict() for workload in self.problem.workloads]
        return cap_values(own, today, nodes, workloads, bounds) if nodes else ()


def _sentence(constants: ConstantTable, key: str, reason: str) -> str:
    if key not in constants.every:
        return f"{key.lstrip('.')} of the launch stays as it is: {reason}"
    one = constants.every[key]
    return f"{one.name}{f' (line {one.line})' if one.line else ''} stays as it is: {reason}"


def _dials(
    constants: ConstantTable,
    uses: Mapping[str, KnobUses],
    open_keys: Iterable[str],
    followed: Followed,
    room: _Room,
) -> Iterator[Dial]:
    wide = any(sum(node != Num(1) for node in launch.block) > 1 for launch in followed.launches)
    for keys in _groups(list(open_keys), followed.tied):
        ones = [constants.every[key] for key in keys]
        kinds = frozenset(kind for key in keys for kind in uses[key].kinds)
        role = _role(keys, kinds, followed, any(one.is_switch for one in ones), ones[0].name)
        today = ones[0].value
        assert today is not None, "a literal has a value"
        bounds = Bounds(powers_only=room.halving)
        if role == "threads" and any(Variable(key) in _sides(followed, key) for key in keys):
            bounds = room.threads(today, wide=wide, is_launch=False)
        lines = tuple(one.line for one in ones if one.line)
        yield Dial(keys, ones[0].name, role, today, values_of(role, today, bounds), "shared" in kinds, lines)
    for key, today in followed.own.items():
        role = "threads" if key.startswith(".BLOCK") else "blocks"
        bounds = room.threads(today, wide=wide, is_launch=True) if role == "threads" else Bounds()
        capped = room.of_cap(key, today, followed, bounds)
        values = capped or values_of(role, today, bounds)
        yield Dial((key,), key.lstrip("."), role, today, values, False, (), bool(capped))


def _sides(followed: Followed, key: str) -> list[Node]:
    """Extents of blocks, at most."""
    return [without_cap(node, Variable(key)) for launch in followed.launches for node in launch.block]


def _written_out(text: KnobText, reached: Sequence[int], number: int) -> bool:
    return any(
        token.kind == "number" and token.text.rstrip("uUlL") == str(number)
        for place in reached
        for token in text.items[place].tokens
    )


def _role(keys: Sequence[str], kinds: frozenset[str], followed: Followed, is_switch: bool, name: str) -> Role:
    own = frozenset(keys)
    if is_switch:
        return "switch"
    if any(Variable(key) in _sides(followed, key) for key in keys):
        return "threads"
    if words_of(name) & {"pad", "padding"} and "shared" in kinds:
        return "pad"
    if any(own & used_names(node) for launch in followed.launches for node in launch.grid):
        return "tile"
    if any(_grows(node, own) for key in keys for node in _sides(followed, key)):
        return "threads"
    return "unroll" if kinds == {"unroll"} else "depth"


def _grows(node: Node, keys: frozenset[str]) -> bool:
    """Whether it is a product with one of the keys in it."""
    if isinstance(node, Arithmetic) and node.op == "*":
        return _grows(node.left, keys) or _grows(node.right, keys)
    return isinstance(node, Variable) and node.id in keys


def _groups(keys: Sequence[str], tied: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Keys that move together, in the order of the text."""
    group = {key: {key} for key in keys}
    for a, b in tied:
        if a in group and b in group:
            joined = group[a] | group[b]
            for key in joined:
                group[key] = joined
    found = dict.fromkeys(tuple(sorted(group[key], key=keys.index)) for key in keys)
    return list(found)


# -- conditions --------------------------------------------------------------------------------------


def requirements(plan: KnobPlan, problem: Problem, device: Device) -> list[tuple[str, Node]]:
    """Legality, over the keys of dials: what the code asks for today as well."""
    found: list[tuple[str, Node]] = []
    types = rules.element_types(problem, plan.text)
    limit = min(STATIC.get(problem.kernel.language, device.limits.shared), device.limits.shared)
    for number, places in enumerate(plan.reached):
        every = [
            *rules.asserted(plan.constants, plan.text, places),
            *rules.divided(plan.constants, plan.evidence[number : number + 1]),
            *rules.stepped(plan.constants, plan.text, places),
        ]
        found += [(one.name, plan.opened(number, one.node)) for one in every]
        declared = list(rules.arrays(plan.constants, plan.text, places, types))
        taken = rules.shared_bytes(declared)
        if taken is not None:
            found.append(("shared_fits", compared(plan.opened(number, taken), "<=", limit)))
        if rules.uses_warps(plan.evidence[number], plan.text, places) and device.kind != "cpu":
            whole = rules.rest(plan.threads(number), device.limits.warp)
            found.append(("whole_warps", whole))
    return _telling(plan, found)


def preferences(plan: KnobPlan, problem: Problem, device: Device) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    types = rules.element_types(problem, plan.text)
    for number, places in enumerate(plan.reached):
        private = rules.private_elements(list(rules.arrays(plan.constants, plan.text, places, types)))
        if private is not None:
            found.append(("registers_fit", compared(plan.opened(number, private), "<=", PRIVATE)))
        if device.kind != "cpu":
            found.append(("a_warp_or_more", compared(plan.threads(number), ">=", device.limits.warp)))
    return _telling(plan, found)


def compared(node: Node, op: CompareOp, value: int) -> Node:
    return Compare(node, ((op, Num(value)),))


def _telling(plan: KnobPlan, found: Iterable[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Those that name a dial, hold today, and do not hold everywhere."""
    today = plan.today()
    domains = {key: dial.values for dial in plan.dials for key in dial.keys}
    kept: dict[str, tuple[str, Node]] = {}
    for name, node in found:
        names = used_names(node)
        if names and names <= domains.keys() and evaluated(node, today) and _can_fail(node, plan):
            kept.setdefault(text_of(node), (name, node))
    return list(kept.values())


def _can_fail(node: Node, plan: KnobPlan) -> bool:
    dials = [dial for dial in plan.dials if used_names(node) & set(dial.keys)]
    if prod(len(dial.values) for dial in dials) > 20_000:
        return True
    rows: list[dict[str, int]] = [{}]
    for dial in dials:
        rows = [{**row, **dict.fromkeys(dial.keys, value)} for row in rows for value in dial.values]
    return any(not evaluated(node, row) for row in rows)


def named(node: Node, names: Mapping[str, str]) -> Node:
    """Keys as the parameters that set them."""
    return with_names(node, {key: Variable(name) for key, name in names.items()})
