"""From a kernel to its knobs: found, held against the launch, grouped, with their values and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tunesmith.expert.knobs.find import (
    ConstantTable,
    KnobUses,
    Resolve,
    entry_parts,
    evaluate_node,
    find_constants,
    find_uses,
    fixed_numbers,
    name_numbers,
    name_words,
    product_of,
    read_constant,
    read_prefix,
    used_names,
    why_not,
    with_names,
)
from tunesmith.expert.knobs.launch import Followed, LaunchEvidence, LaunchTrees, evidence_of, follow_launches
from tunesmith.expert.knobs.text import (
    AXES,
    SHARED,
    WARP_WORDS,
    KnobText,
    Words,
    matching_paren,
    read_text,
    split_outside_parens,
    template_parameters,
)
from tunesmith.expert.knobs.values import ABOUT, Bounds, Role, cap_values, is_cap, values_of, without_cap
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.source.types import byte_size
from tunesmith.space.expr import (
    Arithmetic,
    Compare,
    CompareOp,
    Node,
    Not,
    Num,
    Variable,
    operands_of_node,
    unparse,
)

_ASSERTS = ("static_assert", "_Static_assert")
_HALVING = frozenset({">>=", "<<=", "/=", "*="})
_NO_TYPE = frozenset({"static", "volatile", "const", "register"})
_HEAD = 60  # words of a declaration
_GROUP = 400  # words in parentheses
UNKNOWN_BYTES = 4  # of an element whose type only the compiler knows


@dataclass(frozen=True)
class Requirement:
    name: str
    node: Node  # over literals and `blockDim.x`


def assertion_requirements(
    constants: ConstantTable, text: KnobText, reached: Sequence[int]
) -> Iterator[Requirement]:
    """`static_assert`, and what an #error stands under."""
    loose = [
        place for place, item in enumerate(text.items) if item.tokens and item.tokens[0].text in _ASSERTS
    ]
    for place in (*reached, *loose):
        tokens = text.items[place].tokens
        for at, token in enumerate(tokens):
            if token.text in _ASSERTS and at + 1 < len(tokens):
                condition = split_outside_parens(",", _parenthesised_tokens(tokens, at + 1))[0]
                node = read_constant(condition, constants.resolve(place))
                if node is not None:
                    yield Requirement("asserted", constants.meaning(node))
    for words in text.refused:
        node = read_constant(words, constants.resolve(None))
        if node is not None:
            yield Requirement("asserted", Not(constants.meaning(node)))


def division_requirements(
    constants: ConstantTable, evidence: Sequence[LaunchEvidence]
) -> Iterator[Requirement]:
    """Quotients of constants, which count wrongly where there is a rest."""
    nodes = [constants.meaning(one.node) for one in constants.every.values()]
    nodes += [node for told in evidence for node in told.seen]
    for node in nodes:
        for quotient in _find_quotients(node):
            yield Requirement("divides", divisibility_test(quotient.left, quotient.right))


def _find_quotients(node: Node) -> Iterator[Arithmetic]:
    if isinstance(node, Arithmetic) and node.op == "//":
        yield node
    for child in operands_of_node(node):
        yield from _find_quotients(child)


def step_requirements(
    constants: ConstantTable, text: KnobText, reached: Sequence[int]
) -> Iterator[Requirement]:
    """`for (j = 0; j < TILE; j += STEP)`: the last turn must be a whole one."""
    for place in reached:
        tokens, resolve = text.items[place].tokens, constants.resolve(place)
        for at, token in enumerate(tokens):
            if token.text != "for" or at + 1 >= len(tokens):
                continue
            parts = split_outside_parens(";", _parenthesised_tokens(tokens, at + 1))
            if len(parts) != 3 or [t.text for t in parts[0][-2:]] != ["=", "0"]:
                continue
            if min(map(len, parts[1:])) < 3 or [part[1].text for part in parts[1:]] != ["<", "+="]:
                continue
            bound, step = (read_prefix(part, 2, resolve, 9) for part in parts[1:])
            if bound and step and (bound[1], step[1]) == (len(parts[1]), len(parts[2])):
                whole = divisibility_test(constants.meaning(bound[0]), constants.meaning(step[0]))
                yield Requirement("whole_steps", whole)


def uses_warps(told: LaunchEvidence, text: KnobText, reached: Sequence[int]) -> bool:
    """Whether threads count on others of their warp."""
    if any(WARP_WORDS.fullmatch(word) for word in told.words):
        return True
    pairs = {("/", "32"), ("%", "32"), ("&", "31"), (">>", "5"), ("/", "64"), ("%", "64")}
    return any(
        tokens[at].text.startswith("threadIdx.") and (tokens[at + 1].text, tokens[at + 2].text) in pairs
        for tokens in (text.items[place].tokens for place in reached)
        for at in range(len(tokens) - 2)
    )


def has_halving(text: KnobText, reached: Sequence[int]) -> bool:
    """Whether something is halved or doubled in a loop, or masked: then it is a power of two."""
    for place in reached:
        tokens = text.items[place].tokens
        for at in range(len(tokens) - 1):
            if tokens[at].text in _HALVING and tokens[at + 1].text in ("1", "2"):
                return True
            if tokens[at].text in ("^", "&") and tokens[at + 1].text == "(" and tokens[at].kind == "mark":
                inside = _parenthesised_tokens(tokens, at + 1)
                if [t.text for t in inside[-2:]] == ["-", "1"]:
                    return True
            if tokens[at].text == "^" and tokens[at - 1].text.startswith("threadIdx."):
                return True
    return False


@dataclass(frozen=True)
class ArrayExtents:
    name: str
    bytes: int  # of an element
    elements: Node
    shared: bool


def find_array_extents(
    constants: ConstantTable, text: KnobText, reached: Sequence[int], types: Mapping[str, int]
) -> Iterator[ArrayExtents]:
    """Declared with constant extents inside functions: `__shared__ float tile[TILE][TILE + 1];`"""
    for place in reached:
        tokens, resolve = text.items[place].tokens, constants.resolve(place)
        start = 0
        for at, token in enumerate(tokens):
            if token.text in (";", "{", "}"):
                start = at + 1
            elif token.text == "[" and 2 <= at - start < _HEAD and tokens[at - 1].kind == "word":
                head = [t.text for t in tokens[start : at - 1]]
                dims = _read_extents(tokens, at, constants, resolve)
                if not dims or not all(word.isidentifier() or word in ("::", "<", ">", "*") for word in head):
                    continue
                if "return" in head or not head:
                    continue
                type_ = " ".join(word for word in head if word not in SHARED | _NO_TYPE)
                size = types.get(type_, byte_size(type_) or UNKNOWN_BYTES)
                yield ArrayExtents(tokens[at - 1].text, size, product_of(dims), bool(SHARED & set(head)))


def _read_extents(tokens: Words, at: int, constants: ConstantTable, resolve: Resolve) -> list[Node]:
    found: list[Node] = []
    while at < len(tokens) and tokens[at].text == "[":
        inside = read_prefix(tokens, at + 1, resolve, 9)
        if inside is None or inside[1] >= len(tokens) or tokens[inside[1]].text != "]":
            return []
        found.append(constants.meaning(inside[0]))
        at = inside[1] + 1
    return found


def element_types(problem: Problem, text: KnobText) -> dict[str, int]:
    """Bytes of the types that entries bind: `kernel<float>` of `template <typename T>`."""
    found: dict[str, int] = {}
    for launch in problem.launches:
        name, args = entry_parts(launch.entry)
        for item in text.items:
            parameters = template_parameters(item.tokens) if name in item.introduces else []
            for part, arg in zip(parameters, args, strict=False):
                if part and part[0].text in ("typename", "class") and (size := byte_size(arg)):
                    found[part[-1].text] = size
    return found


def shared_bytes(found: Sequence[ArrayExtents]) -> Node | None:
    """What a block takes statically, where knobs decide it."""
    shared = {one.name: one for one in found if one.shared}
    total = _add_nodes(product_of((one.elements, Num(one.bytes))) for one in shared.values())
    return total if total is not None and used_names(total) else None


def private_elements(found: Sequence[ArrayExtents]) -> Node | None:
    return _add_nodes(one.elements for one in found if not one.shared and used_names(one.elements))


def _add_nodes(nodes: Iterable[Node]) -> Node | None:
    total: Node | None = None
    for node in nodes:
        total = node if total is None else Arithmetic("+", total, node)
    return total


def divisibility_test(node: Node, of: Node) -> Node:
    """That nothing is left of a division."""
    return Compare(Arithmetic("%", node, of), (("==", Num(0)),))


def compare_node(node: Node, op: CompareOp, value: int) -> Node:
    return Compare(node, ((op, Num(value)),))


def _parenthesised_tokens(tokens: Words, at: int) -> Words:
    """Inside the parentheses that open there."""
    return tokens[at + 1 : max(matching_paren(tokens, at, _GROUP), 0)]


MAX = 8  # knobs of a kernel; more are more combinations than a search sees anything of
STATIC = {"cuda": 48 << 10, "hip": 64 << 10}  # bytes of shared memory that a text may declare
PRIVATE = 256  # elements of arrays in registers
_ORDER: tuple[Role, ...] = ("threads", "tile", "depth", "unroll", "resident", "pad", "blocks", "switch")


@dataclass(frozen=True)
class KnobDomain:
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
    def description(self) -> str:
        where = f", line {', '.join(map(str, self.lines))}" if self.lines else ", of the launch"
        return f"{ABOUT[self.role]}{', at most' if self.is_cap else ''}{where}"


@dataclass(frozen=True)
class KnobPlan:
    text: KnobText
    constants: ConstantTable
    evidence: tuple[LaunchEvidence, ...]
    reached: tuple[tuple[int, ...], ...]  # by launch
    followed: Followed
    dials: tuple[KnobDomain, ...]
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
        followed = follow_launches(launches, evidence, constants, open_keys, left, shares)
        dropped = {**followed.dropped, **_counted_elsewhere(followed, problem, text, every)}
        if dropped.keys() - left.keys():
            left |= dropped
            continue
        room = _Room(problem, device, text, every, has_halving(text, every))
        dials = sorted(
            _make_dials(constants, uses, open_keys, followed, room), key=lambda dial: _ORDER.index(dial.role)
        )
        plan = KnobPlan(text, constants, evidence, reached, followed, tuple(dials), ())
        plan, single = _narrow_values(plan, knob_requirements(plan, problem, device))
        if single or len(dials) > MAX:
            left |= single or {key: f"{MAX} others come first" for dial in dials[MAX:] for key in dial.keys}
            continue
        told = (_unchanged_reason(constants, key, reason) for key, reason in left.items())
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


def _narrow_values(plan: KnobPlan, conditions: Sequence[tuple[str, Node]]) -> tuple[KnobPlan, dict[str, str]]:
    """Values that a condition on one dial alone rules out are not among its own; and those with one value."""
    found, single = list[KnobDomain](), dict[str, str]()
    for dial in plan.dials:
        alone = [node for _, node in conditions if used_names(node) <= set(dial.keys)]
        values = tuple(
            value
            for value in dial.values
            if all(evaluate_node(node, dict.fromkeys(dial.keys, value)) for node in alone)
        )
        found.append(replace(dial, values=values))
        if len(values) < 2:
            why = "what the code asks for" if alone else "what blocks come to at the workloads"
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
        cap, nodes = Variable(key), list[Node]()
        for launch in followed.launches:
            if is_cap(cap, launch.block):
                nodes += launch.block
                if launch.shared is not None and key not in used_names(launch.shared):
                    bounds = replace(bounds, most=min(bounds.most, today))  # memory for more may not be there
        workloads = [workload.as_dict() for workload in self.problem.workloads]
        return cap_values(cap, today, nodes, workloads, bounds) if nodes else ()


def _unchanged_reason(constants: ConstantTable, key: str, reason: str) -> str:
    if key not in constants.every:
        return f"{key.lstrip('.')} of the launch stays as it is: {reason}"
    one = constants.every[key]
    return f"{one.name}{f' (line {one.line})' if one.line else ''} stays as it is: {reason}"


def _make_dials(
    constants: ConstantTable,
    uses: Mapping[str, KnobUses],
    open_keys: Iterable[str],
    followed: Followed,
    room: _Room,
) -> Iterator[KnobDomain]:
    wide = any(sum(node != Num(1) for node in launch.block) > 1 for launch in followed.launches)
    for keys in _group_tied_keys(list(open_keys), followed.tied):
        ones = [constants.every[key] for key in keys]
        kinds = frozenset(kind for key in keys for kind in uses[key].kinds)
        role = _knob_role(keys, kinds, followed, any(one.is_switch for one in ones), ones[0].name)
        today = ones[0].value
        assert today is not None, "a literal has a value"
        bounds = Bounds(powers_only=room.halving)
        if role == "threads" and any(Variable(key) in _block_extents(followed, key) for key in keys):
            bounds = room.threads(today, wide=wide, is_launch=False)
        lines = tuple(one.line for one in ones if one.line)
        yield KnobDomain(
            keys, ones[0].name, role, today, values_of(role, today, bounds), "shared" in kinds, lines
        )
    for key, today in followed.own.items():
        role = "threads" if key.startswith(".BLOCK") else "blocks"
        bounds = room.threads(today, wide=wide, is_launch=True) if role == "threads" else Bounds()
        capped = room.of_cap(key, today, followed, bounds)
        values = capped or values_of(role, today, bounds)
        yield KnobDomain((key,), key.lstrip("."), role, today, values, False, (), bool(capped))


def _block_extents(followed: Followed, key: str) -> list[Node]:
    """Extents of blocks, at most."""
    return [without_cap(node, Variable(key)) for launch in followed.launches for node in launch.block]


def _written_out(text: KnobText, reached: Sequence[int], number: int) -> bool:
    return any(
        token.kind == "number" and token.text.rstrip("uUlL") == str(number)
        for place in reached
        for token in text.items[place].tokens
    )


def _knob_role(
    keys: Sequence[str], kinds: frozenset[str], followed: Followed, is_switch: bool, name: str
) -> Role:
    key_set = frozenset(keys)
    if is_switch:
        return "switch"
    if any(Variable(key) in _block_extents(followed, key) for key in keys):
        return "threads"
    if name_words(name) & {"pad", "padding"} and "shared" in kinds:
        return "pad"
    if any(key_set & used_names(node) for launch in followed.launches for node in launch.grid):
        return "tile"
    if any(_has_key_factor(node, key_set) for key in keys for node in _block_extents(followed, key)):
        return "threads"
    return "unroll" if kinds == {"unroll"} else "depth"


def _has_key_factor(node: Node, keys: frozenset[str]) -> bool:
    """Whether it is a product with one of the keys in it."""
    if isinstance(node, Arithmetic) and node.op == "*":
        return _has_key_factor(node.left, keys) or _has_key_factor(node.right, keys)
    return isinstance(node, Variable) and node.id in keys


def _group_tied_keys(keys: Sequence[str], tied: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Keys that move together, in the order of the text."""
    group = {key: {key} for key in keys}
    for a, b in tied:
        if a in group and b in group:
            joined = group[a] | group[b]
            for key in joined:
                group[key] = joined
    found = dict.fromkeys(tuple(sorted(group[key], key=keys.index)) for key in keys)
    return list(found)


def knob_requirements(plan: KnobPlan, problem: Problem, device: Device) -> list[tuple[str, Node]]:
    """Legality, over the keys of dials: what the code asks for today as well."""
    found: list[tuple[str, Node]] = []
    types = element_types(problem, plan.text)
    limit = min(STATIC.get(problem.kernel.language, device.limits.shared), device.limits.shared)
    for number, places in enumerate(plan.reached):
        every = [
            *assertion_requirements(plan.constants, plan.text, places),
            *division_requirements(plan.constants, plan.evidence[number : number + 1]),
            *step_requirements(plan.constants, plan.text, places),
        ]
        found += [(one.name, plan.opened(number, one.node)) for one in every]
        declared = list(find_array_extents(plan.constants, plan.text, places, types))
        taken = shared_bytes(declared)
        if taken is not None:
            found.append(("shared_fits", compare_node(plan.opened(number, taken), "<=", limit)))
        if uses_warps(plan.evidence[number], plan.text, places) and device.kind != "cpu":
            whole = divisibility_test(plan.threads(number), Num(device.limits.warp))
            found.append(("whole_warps", whole))
    return _useful_conditions(plan, found)


def knob_preferences(plan: KnobPlan, problem: Problem, device: Device) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    types = element_types(problem, plan.text)
    for number, places in enumerate(plan.reached):
        private = private_elements(list(find_array_extents(plan.constants, plan.text, places, types)))
        if private is not None:
            found.append(("registers_fit", compare_node(plan.opened(number, private), "<=", PRIVATE)))
        if device.kind != "cpu":
            found.append(("a_warp_or_more", compare_node(plan.threads(number), ">=", device.limits.warp)))
    return _useful_conditions(plan, found)


def _useful_conditions(plan: KnobPlan, found: Iterable[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Those that name a dial, hold today, and do not hold everywhere."""
    today = plan.today()
    domains = {key: dial.values for dial in plan.dials for key in dial.keys}
    kept: dict[str, tuple[str, Node]] = {}
    for name, node in found:
        names = used_names(node)
        if names and names <= domains.keys() and evaluate_node(node, today) and _can_fail(node, plan):
            kept.setdefault(unparse(node), (name, node))
    return list(kept.values())


def _can_fail(node: Node, plan: KnobPlan) -> bool:
    dials = [dial for dial in plan.dials if used_names(node) & set(dial.keys)]
    if prod(len(dial.values) for dial in dials) > 20_000:
        return True
    rows: list[dict[str, int]] = [{}]
    for dial in dials:
        rows = [{**row, **dict.fromkeys(dial.keys, value)} for row in rows for value in dial.values]
    return any(not evaluate_node(node, row) for row in rows)


def text_by_parameters(node: Node, names: Mapping[str, str]) -> str:
    """With keys as the parameters that set them."""
    return unparse(with_names(node, {key: Variable(name) for key, name in names.items()}))
