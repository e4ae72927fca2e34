"""Which numbers of the launch stand for which constants of the text, so that the one follows the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from tunesmith.expert.knobs.caps import cap_of
from tunesmith.expert.knobs.constant import evaluated, product_of, text_of, used_names, with_names
from tunesmith.expert.knobs.evidence import LaunchEvidence, fits_name
from tunesmith.expert.knobs.find import ConstantTable
from tunesmith.expert.knobs.text import AXES
from tunesmith.space.grammar import Arithmetic, FunctionCall, Node, Num, Variable, children
from tunesmith.space.settled import substituted

_SPEAKS = 2  # a constant whose name is one for threads, or something that the text does with one
ELEMENTS = (1, 2, 4, 8, 16)  # bytes


@dataclass(frozen=True)
class LaunchTrees:
    grid: tuple[Node, ...]
    block: tuple[Node, ...]
    shared: Node | None

    def names(self) -> frozenset[str]:
        nodes = (*self.grid, *self.block, *((self.shared,) if self.shared is not None else ()))
        return frozenset(name for node in nodes for name in used_names(node))


@dataclass(frozen=True)
class Followed:
    launches: tuple[LaunchTrees, ...]
    own: Mapping[str, int]  # numbers of launches that became knobs themselves: name -> today's value
    tied: tuple[tuple[str, str], ...]  # keys between which nothing decides: they move together
    dropped: Mapping[str, str]  # keys that a launch would have to follow and does not, and why


@dataclass
class _Work:
    constants: ConstantTable
    open: frozenset[str]  # keys of constants that may change
    closed: frozenset[str]
    shares: tuple[str, ...]  # literals that a thread's place is computed with
    own: dict[str, int] = field(default_factory=dict)
    tied: dict[tuple[str, str], None] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


def follow(
    launches: Sequence[LaunchTrees],
    evidence: Sequence[LaunchEvidence],
    constants: ConstantTable,
    open_keys: Iterable[str],
    closed: Iterable[str],
    shares: Iterable[str],
) -> Followed:
    """`closed`: numbers of the launch that stay as they are, though no constant stands for them; `shares`:
    literals that a thread's place is computed with."""
    work = _Work(constants, frozenset(open_keys), frozenset(closed), tuple(shares))
    found = []
    for number, (launch, told) in enumerate(zip(launches, evidence, strict=True)):
        found.append(_OneLaunch(work, launch, told, number).followed())
    return Followed(tuple(found), work.own, tuple(work.tied), work.dropped)


class _OneLaunch:
    def __init__(self, work: _Work, launch: LaunchTrees, told: LaunchEvidence, number: int) -> None:
        self._work, self._launch, self._told, self._number = work, launch, told, number
        self._values = work.constants.values()
        self._closed = {key: Num(value) for key, value in self._values.items() if key not in work.open}
        self._block: dict[str, Node] = {}
        self._caps: dict[Node, Node] = {}  # what sides are as the launch has them -> with another cap
        self._numbers: dict[str, dict[Node, Node]] = {}  # the same of the cap alone, by the block's extent

    def followed(self) -> LaunchTrees:
        launch = self._launch
        sides = [evaluated(node, {}) for node in launch.block]
        for axis, value in zip(AXES, sides, strict=False):
            if value is not None:
                self._values[f"blockDim.{axis}"] = value
        block = tuple(self._side(*each) for each in zip(AXES, launch.block, sides, strict=False))
        missing: dict[str, Node] = {f"blockDim.{axis}": Num(1) for axis in AXES[len(block) :]}
        self._block = missing | {f"blockDim.{axis}": node for axis, node in zip(AXES, block, strict=False)}
        grid = tuple(self._grid(axis, node) for axis, node in zip(AXES, launch.grid, strict=False))
        shared = self._shared(launch.shared) if launch.shared is not None else None
        self._check(grid)
        return LaunchTrees(grid, block, shared)

    # -- the block ------------------------------------------------------------------------------------

    def _side(self, axis: str, node: Node, value: int | None) -> Node:
        if value is None and (cap := cap_of(node)) and self._told.goes_on_by_block(axis):
            number: Node = Num(cap[1])
            meaning = self._stands_for(axis, number, cap[1])
            if meaning != number:
                self._caps[cap[0]] = substituted(cap[0], {number: meaning})
                self._numbers[f"blockDim.{axis}"] = {number: meaning}
            return substituted(node, self._caps)
        return node if value is None or value < 2 else self._stands_for(axis, node, value)

    def _stands_for(self, axis: str, node: Node, value: int) -> Node:
        """The constant that a number of the block is, a knob of the launch, or the number."""
        asks = self._told.asks_for_block(axis)
        found = self._candidates(
            value, lambda n: not _asks_for_block(n) and (axis, n) not in self._told.to_thread
        )
        told = self._told.threads
        scored = [(told.get((axis, n), 0) + fits_name(n, axis, self._work.constants), n) for n in found]
        if asks:  # the text goes along with any block, unless it, or a name, says otherwise
            scored = [(score, n) for score, n in scored if score >= _SPEAKS]
        chosen = self._best(scored) or (None if asks else self._product(value))
        if chosen is not None:
            return self._opened(chosen)
        return self._own(f"BLOCK_{axis.upper()}", value, node) if asks else node

    def _product(self, value: int) -> Node | None:
        """Threads that two or three constants make up together: warps times lanes, groups times threads."""
        known = self._work.constants.every
        pool = [key for key in self._work.shares if (known[key].value or 0) > 1]
        for count in (2, 3):
            found = [
                keys
                for keys in combinations(pool, count)
                if prod(known[key].value or 1 for key in keys) == value and self._work.open.intersection(keys)
            ]
            if len(found) == 1:
                return product_of(Variable(key) for key in found[0])
        return None

    def _own(self, name: str, value: int, node: Node) -> Node:
        """A number of the launch as a knob of its own; no word of C begins with a dot."""
        name = f".{name}_{self._number + 1}" if self._number else f".{name}"
        if name in self._work.closed:
            return node
        self._work.own[name] = value
        return Variable(name)

    def _candidates(self, value: int, fits: Callable[[Node], bool]) -> list[Node]:
        every = self._told.with_value(value, self._values)
        return [node for node in every if fits(node) and self._can_change(node)]

    def _can_change(self, node: Node) -> bool:
        return any(name in self._work.open or name in self._block_knobs() for name in used_names(node))

    def _block_knobs(self) -> list[str]:
        return [name for name, node in self._block.items() if used_names(node)]

    def _opened(self, node: Node) -> Node:
        """Over what may change alone."""
        return with_names(node, {**self._closed, **self._block})

    def _best(self, scored: Sequence[tuple[int, Node]]) -> Node | None:
        if not scored:
            return None
        top = max(score for score, _ in scored)
        best = [node for score, node in scored if score == top]
        plain = [node for node in best if isinstance(node, Variable)]
        for other in plain[1:]:
            self._work.tied[plain[0].id, other.id] = None
        return (plain or best)[0]

    # -- the grid -------------------------------------------------------------------------------------

    def _grid(self, axis: str, node: Node) -> Node:
        """A grid that a number cuts short decides which elements there are, unless blocks go on."""
        found = self._followed_grid(axis, node)
        return node if self._is_cut(found) and not self._told.goes_on(axis) else found

    def _is_cut(self, node: Node) -> bool:
        if isinstance(node, FunctionCall) and node.function == "min":
            moving = {*self._work.open, *self._work.own} & used_names(node)
            if moving and any(isinstance(arg, Num) for arg in node.args):
                return True
        return any(self._is_cut(child) for child in children(node))

    def _followed_grid(self, axis: str, node: Node) -> Node:
        counted = self._told.by_block[axis]
        node = substituted(node, self._caps)
        for name in self._numbers.keys() & {name for n in counted for name in used_names(n)}:
            node = substituted(node, self._numbers[name])
        value = evaluated(node, {})
        if value is not None and value > 1 and self._told.goes_on(axis):
            return self._own(f"GRID_{axis.upper()}", value, node)
        changed = self._divisors(node, axis, {})
        changed = self._by_multiple(node, axis) if changed == node else changed
        single = [n for n in counted if evaluated(n, self._values) == 1 and self._can_change(n)]
        if changed == node and value is not None and (quotient := self._quotient(value, axis)):
            return quotient
        if changed == node and len(single) == 1:  # one to a block today: nothing in the grid shows it
            return FunctionCall("ceildiv", (node, self._opened(single[0])))
        return changed

    def _quotient(self, value: int, axis: str) -> Node | None:
        """A number of blocks that is a constant of the text by what blocks are counted by, rounded up."""
        known = self._work.constants.values()
        found: dict[Node, str] = {}
        for by in self._told.by_block[axis]:
            each = evaluated(by, self._values) or 0
            if each < 2 or value < 2 or not self._can_change(by):
                continue
            for node in self._told.seen:
                of = evaluated(node, known) or 0
                if (value - 1) * each < of <= value * each and isinstance(node, Variable) and node != by:
                    found[FunctionCall("ceildiv", (self._opened(node), self._opened(by)))] = node.id
        if len(found) != 1:
            return None
        ((quotient, size),) = found.items()
        if size in self._work.open:
            self._work.dropped[size] = f"by the grid, {value} blocks along {axis}, it is a size"
        return quotient

    def _divisors(self, node: Node, axis: str, inside: Mapping[int, Node]) -> Node:
        """The tree with what it divides by replaced; `(n + 255) // 256` has the number twice."""
        match node:
            case Arithmetic("//" | "%", left, right):
                divisor = self._divisor(right, axis)
                value = evaluated(right, {})
                known = {**inside, value - 1: divisor} if divisor != right and value else inside
                return Arithmetic(node.op, self._divisors(left, axis, known), divisor)
            case FunctionCall("ceildiv" | "round_up", (left, right)):
                return FunctionCall(
                    node.function, (self._divisors(left, axis, inside), self._divisor(right, axis))
                )
            case Num(value) if value in inside and value > 0:
                return Arithmetic("-", inside[value], Num(1))
            case Arithmetic(op, left, right):
                return Arithmetic(op, self._divisors(left, axis, inside), self._divisors(right, axis, inside))
            case FunctionCall(function, args):
                return FunctionCall(function, tuple(self._divisors(arg, axis, inside) for arg in args))
        return node

    def _divisor(self, node: Node, axis: str) -> Node:
        value = evaluated(node, {})
        if value is None or value < 2:
            return node
        found = self._candidates(value, lambda _: True)
        counted = self._told.by_block[axis]
        whole = [used_names(n) for n in found if n in counted]
        found = [n for n in found if not any(used_names(n) < names for names in whole)]
        scored = [(5 * (n in counted) + fits_name(n, axis, self._work.constants), n) for n in found]
        if counted and not any(n in counted for n in found):
            scored = []  # blocks are counted by something else
        if chosen := self._best(scored):
            return self._opened(chosen)
        if isinstance(node, Arithmetic) and node.op == "*":
            return Arithmetic("*", self._divisor(node.left, axis), self._divisor(node.right, axis))
        return node

    def _by_multiple(self, node: Node, axis: str) -> Node:
        """The outermost divisor replaced: one inside says how elements are packed."""
        match node:
            case FunctionCall("min" | "max", args):
                return FunctionCall(node.function, tuple(self._by_multiple(arg, axis) for arg in args))
            case Arithmetic("*", left, right):
                return Arithmetic("*", self._by_multiple(left, axis), self._by_multiple(right, axis))
            case FunctionCall("ceildiv", (left, right)) | Arithmetic("//", left, right):
                value = evaluated(right, {})
                multiple = self._multiple(value, axis) if value is not None else None
                if value is not None and multiple is not None:
                    less: Node = Arithmetic("-", multiple, Num(1))
                    return substituted(node, {Num(value): multiple, Num(value - 1): less})
        return node

    def _multiple(self, value: int, axis: str) -> Node | None:
        """What blocks are counted by, times what the text has no constant for: elements of a vector."""
        known = {n: v for n in self._told.by_block[axis] if (v := evaluated(n, self._values))}
        fits = [n for n, v in known.items() if 1 < v < value and value % v == 0 and self._can_change(n)]
        if not fits:
            return None
        top = max(known[n] for n in fits)
        (*_, first) = (n for n in self._told.seen if n in fits and known[n] == top)
        return product_of((self._opened(first), Num(value // top)))

    # -- shared memory --------------------------------------------------------------------------------

    def _shared(self, node: Node) -> Node:
        node = substituted(node, self._caps)
        value = evaluated(node, {})
        if value is not None and value > 1:
            for size in ELEMENTS[2:] + ELEMENTS[:2]:
                if value % size == 0 and (chosen := self._extent(value // size)) is not None:
                    return product_of((chosen, Num(size)))
        return self._factors(node)

    def _extent(self, value: int) -> Node | None:
        found = self._candidates(value, lambda _: True) if value > 1 else []
        scored = [(fits_name(n, "x", self._work.constants), n) for n in found]
        chosen = self._best(scored)
        return self._opened(chosen) if chosen is not None else None

    def _factors(self, node: Node) -> Node:
        """Numbers in it that are extents; one that multiplies may be the bytes of an element."""
        match node:
            case Num(value):
                found = self._extent(value)
                return node if found is None else found
            case Arithmetic("*", left, right):
                sides = [evaluated(side, {}) for side in (left, right)]
                return product_of(
                    side
                    if value in ELEMENTS and value != max(v or 17 for v in sides)
                    else self._factors(side)
                    for side, value in zip((left, right), sides, strict=True)
                )
            case Arithmetic(op, left, right) if op in ("+", "-"):
                return Arithmetic(op, self._factors(left), self._factors(right))
        return node

    # -- what had to be followed ----------------------------------------------------------------------

    def _check(self, grid: Sequence[Node]) -> None:
        """A constant that blocks are counted by must be in the grid."""
        for axis, tree in zip(AXES, grid, strict=False):
            names = used_names(tree)
            for node in self._told.by_block[axis]:
                opened = self._opened(node)
                for key in used_names(opened) & {*self._work.open, *self._work.own}:
                    if key in names or self._told.goes_on(axis) or self._steps_over(tree, node, key):
                        continue
                    known = self._work.constants.every
                    name = known[key].name if key in known else "the launch's block"
                    self._work.dropped[key] = (
                        f"blocks along {axis} are counted by {name}, and the grid, "
                        f"{text_of(self._launch.grid[AXES.index(axis)])!r}, does not show how it follows"
                    )

    def _steps_over(self, tree: Node, by: Node, key: str) -> bool:
        """Whether the text has all that the grid's blocks come to at once as a constant, made of the key."""
        blocks, each = evaluated(tree, {}), evaluated(by, self._values)
        if blocks is None or each is None or blocks < 2:
            return False
        found = self._told.with_value(blocks * each, self._values)
        return any(key in used_names(self._opened(node)) and node != by for node in found)


def _asks_for_block(node: Node) -> bool:
    return any(name.startswith("blockDim.") for name in used_names(node))
