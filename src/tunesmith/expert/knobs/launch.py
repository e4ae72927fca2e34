"""Which numbers of the launch stand for which constants of the text, so that the one follows the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from tunesmith.expert.knobs.find import (
    PLAIN,
    ConstantTable,
    evaluate_node,
    name_words,
    product_of,
    read_prefix,
    used_names,
    with_names,
)
from tunesmith.expert.knobs.text import AXES, KnobText, Words, matching_paren, word_set
from tunesmith.expert.knobs.values import cap_of
from tunesmith.space.expr import Arithmetic, FunctionCall, Node, Num, Variable, operands_of_node, unparse
from tunesmith.space.space import substitute_trees

_MAX_NAMES = 3000  # of constants in one function: what comes behind them is not looked at
_NEAR = 12  # words before the first name of an expression
_FAR = 60  # words in parentheses, or of a statement up to the block's extent
_COMPARED = frozenset({"<", "<=", ">", ">=", "==", "!="})
_LEVELS = (PLAIN, PLAIN + 1, PLAIN + 2)  # a sum, a product, a name
_THREADS = word_set(
    "block blocksize threads thread tpb nt wg workgroup group cta local dim bdim blockdim tile"
)
_SIDES = {
    "x": word_set("x cols col columns width w n"),
    "y": word_set("y rows row height h m"),
    "z": word_set("z depth d batch"),
}


@dataclass(frozen=True)
class LaunchEvidence:
    """Of one launch. Trees are over literals, and `blockDim.x` for what the launch says itself."""

    seen: tuple[Node, ...]  # constant expressions in the text, in its order
    by_block: Mapping[str, frozenset[Node]]  # axis -> what blockIdx is multiplied with
    threads: Mapping[tuple[str, Node], int]  # how much says that an axis of the block is this
    words: frozenset[str]
    to_thread: frozenset[tuple[str, Node]]  # axis and what a thread's number among all is multiplied with
    by_extent: frozenset[str]  # axes along which threads go on by the block's extent

    def asks_for_block(self, axis: str) -> bool:
        """Whether the text looks at the block's extent."""
        return f"blockDim.{axis}" in self.words or f"globalIdx.{axis}" in self.words

    def goes_on_by_block(self, axis: str) -> bool:
        """Whether threads come to everything with blocks of any extent: they step by it, or number blocks."""
        return axis in self.by_extent or any(
            f"blockDim.{axis}" in used_names(node) for nodes in self.by_block.values() for node in nodes
        )

    def goes_on(self, axis: str) -> bool:
        """Whether blocks step over the grid, so that any number of them will do."""
        return f"gridDim.{axis}" in self.words or f"globalDim.{axis}" in self.words

    def with_value(self, value: int, values: Mapping[str, int]) -> list[Node]:
        return [node for node in self.seen if evaluate_node(node, values) == value]


def evidence_of(constants: ConstantTable, text: KnobText, reached: Sequence[int]) -> LaunchEvidence:
    seen: dict[Node, None] = {}
    by_block: dict[str, set[Node]] = {axis: set() for axis in AXES}
    threads: dict[tuple[str, Node], int] = {}
    words: set[str] = set()
    to_thread: dict[tuple[str, Node], None] = {}
    by_extent: set[str] = set()
    for place in reached:
        tokens = text.items[place].tokens
        by_extent.update(axis for axis in AXES if _steps_by_extent(tokens, f"blockDim.{axis}"))
        words.update(token.text for token in tokens)
        for start, end, node in _constant_expressions(tokens, constants, place):
            seen.setdefault(node)
            for axis in AXES:
                if _is_multiplied_by(tokens, start, end, f"blockIdx.{axis}"):
                    by_block[axis].add(node)
                if _is_multiplied_by(tokens, start, end, f"globalIdx.{axis}") or _is_block_sum_factor(
                    tokens, start, end, axis
                ):
                    to_thread[axis, node] = None
                if told := _block_extent_score(tokens, start, end, axis):
                    threads[axis, node] = threads.get((axis, node), 0) + told
        for axis, node in _thread_indexed_extents(tokens, constants, place):
            threads[axis, node] = threads.get((axis, node), 0) + 3
    for axis in AXES:
        if f"globalIdx.{axis}" in words:
            by_block[axis].add(Variable(f"blockDim.{axis}"))
            seen.setdefault(Variable(f"blockDim.{axis}"))
    plain = {axis: tuple(nodes) for axis, nodes in by_block.items()}
    for axis, node in to_thread:  # (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS
        for one in plain[axis]:
            if not used_names(node) & used_names(one):
                by_block[axis].add(product_of((one, node)))
                seen.setdefault(product_of((one, node)))
    found = {axis: frozenset(nodes) for axis, nodes in by_block.items()}
    return LaunchEvidence(
        tuple(seen), found, threads, frozenset(words), frozenset(to_thread), frozenset(by_extent)
    )


def _constant_expressions(
    tokens: Words, constants: ConstantTable, place: int
) -> Iterator[tuple[int, int, Node]]:
    """Every constant expression that names something, with where it begins and ends."""
    resolve = constants.resolve(place)
    known = [at for at, token in enumerate(tokens) if token.kind == "word" and resolve(token.text)]
    for start, token in enumerate(tokens[: known[_MAX_NAMES]] if len(known) > _MAX_NAMES else tokens):
        if token.kind not in ("word", "number") and token.text != "(":
            continue
        near = bisect_left(known, start)
        if near == len(known) or known[near] - start > _NEAR:
            continue  # it would name nothing
        before = tokens[start - 1] if start else token
        called = before.kind == "word" and before is not token and token.text == "("
        if called or (before.text in ("/", "%") and token.text != "("):
            continue
        ends: set[int] = set()
        for level in _LEVELS:
            found = read_prefix(tokens, start, resolve, level)
            if found is not None and found[1] not in ends:
                ends.add(found[1])
                node = constants.meaning(found[0])
                if used_names(node):
                    yield start, found[1], node


def _thread_indexed_extents(
    tokens: Words, constants: ConstantTable, place: int
) -> Iterator[tuple[str, Node]]:
    """Extents of arrays along which a thread's number is the index: `tile[threadIdx.y]` of `tile[ROWS]`."""
    extents: dict[str, list[Node]] = {}
    for at in range(2, len(tokens)):
        if tokens[at].text != "[" or tokens[at - 1].kind != "word":
            continue
        name, groups = tokens[at - 1].text, _bracket_groups(tokens, at)
        if name not in extents:
            if tokens[at - 2].kind == "word" or tokens[at - 2].text == ">":
                found = [read_prefix(group, 0, constants.resolve(place), PLAIN) for group in groups]
                whole = [f for f, g in zip(found, groups, strict=True) if f is not None and f[1] == len(g)]
                extents[name] = [constants.meaning(f[0]) for f in whole] if len(whole) == len(groups) else []
            continue
        for node, group in zip(extents[name], groups, strict=False):
            word = group[0].text if len(group) == 1 else ""
            if word.startswith("threadIdx.") and used_names(node):
                yield word[-1], node


def _bracket_groups(tokens: Words, at: int) -> list[Words]:
    """What stands in each of the brackets that follow each other from there."""
    found: list[Words] = []
    depth, start = 0, at
    while at < len(tokens) and (depth or tokens[at].text == "["):
        depth += (tokens[at].text == "[") - (tokens[at].text == "]")
        at += 1
        if depth == 0:
            found.append(tokens[start + 1 : at - 1])
            start = at
    return found if depth == 0 else [*found, tokens[start + 1 : at]]


def _token_text(tokens: Words, at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _is_multiplied_by(tokens: Words, start: int, end: int, word: str) -> bool:
    before = [_token_text(tokens, start - distance) for distance in (1, 2, 3)]
    after = [_token_text(tokens, end + distance) for distance in (0, 1, 2)]
    return any(
        sign == "*" and word in (first, second if first == bracket else "")
        for bracket, (sign, first, second) in ((")", before), ("(", after))
    )


def _is_block_sum_factor(tokens: Words, start: int, end: int, axis: str) -> bool:
    """Whether it multiplies a sum in parentheses that has the block's number in it."""
    if _token_text(tokens, start - 1) == "*" and _token_text(tokens, start - 2) == ")":
        opened, closed = matching_paren(tokens, start - 2, _FAR, -1), start - 2
    elif _token_text(tokens, end) == "*" and _token_text(tokens, end + 1) == "(":
        opened, closed = end + 1, matching_paren(tokens, end + 1, _FAR)
    else:
        return False
    if opened < 1 or closed < 0 or tokens[opened - 1].kind == "word":
        return False  # arguments of a call, or no group
    return any(token.text == f"blockIdx.{axis}" for token in tokens[opened:closed])


def _block_extent_score(tokens: Words, start: int, end: int, axis: str) -> int:
    """How much a place in the text says that the block has this extent along the axis."""
    thread, found = f"threadIdx.{axis}", 0
    before, after = _token_text(tokens, start - 1), _token_text(tokens, end)
    if before in _COMPARED and _token_text(tokens, start - 2) == thread:
        found += 3
    if after in _COMPARED and _token_text(tokens, end + 1) == thread:
        found += 3
    if before == "+=" and _steps_from(tokens, start, thread):
        found += 3
    if (
        after == "+"
        and _token_text(tokens, end + 1) == thread
        and _is_multiplied_by(tokens, start, end, f"blockIdx.{axis}")
    ):
        found += 2
    if before == "(" and _token_text(tokens, start - 2) == "__launch_bounds__" and axis == "x":
        found += 4
    return found


def _steps_from(tokens: Words, at: int, thread: str) -> bool:
    """Whether the head of the loop around that place begins with the thread's number."""
    semicolons = 0
    while at > 0 and semicolons < 3:
        at -= 1
        text = tokens[at].text
        semicolons += text == ";"
        if text == thread and semicolons == 2:
            return True
        if text in ("{", "}"):
            return False
    return False


def _steps_by_extent(tokens: Words, extent: str) -> bool:
    """`i += blockDim.x`, or by a name for a multiple of it; or a helper that is told thread and block."""
    thread = extent.replace("blockDim", "threadIdx")
    names = {extent}
    for at, token in enumerate(tokens):
        if token.text not in names:
            continue
        start = at
        while start > max(at - _FAR, 0) and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        before = [t.text for t in tokens[start:at]]
        after = [t.text for t in tokens[at + 1 : at + 3]]
        adds = before[-1:] == ["+"] and (after == ["-", "1"] or before[-4:-3] == before[-2:-1])
        by = before[before.index("+=") :] if "+=" in before else ["["]
        if adds or not ({"[", "/", "?"} & set(by) or after[:1] in (["/"], [">>"], ["-"])):
            return True
        if after[:1] in (["*"], [";"], [","]) and "=" in before[1:]:
            names.add(before[before.index("=") - 1])  # int step = blockDim.x * 4
        if before[-1:] == [","] and after[:1] in ([","], [")"]) and thread in before:
            return True
    return False


def fits_name(node: Node, axis: str, constants: ConstantTable) -> int:
    """How well the names in a tree go with threads along an axis."""
    names = [constants.every[key].name for key in used_names(node) if key in constants.every]
    words = frozenset(word for name in names for word in name_words(name))
    found = int(bool(words & _THREADS)) + int(bool(words & _SIDES[axis]))
    found -= 2 * int(
        any(words & _SIDES[other] for other in AXES if other != axis) and not words & _SIDES[axis]
    )
    return found + int(isinstance(node, Variable)) - int(node == Num(1))


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


def follow_launches(
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
        sides = [evaluate_node(node, {}) for node in launch.block]
        for axis, value in zip(AXES, sides, strict=False):
            if value is not None:
                self._values[f"blockDim.{axis}"] = value
        block = tuple(self._follow_block_side(*each) for each in zip(AXES, launch.block, sides, strict=False))
        missing: dict[str, Node] = {f"blockDim.{axis}": Num(1) for axis in AXES[len(block) :]}
        self._block = missing | {f"blockDim.{axis}": node for axis, node in zip(AXES, block, strict=False)}
        grid = tuple(self._grid(axis, node) for axis, node in zip(AXES, launch.grid, strict=False))
        shared = self._follow_shared(launch.shared) if launch.shared is not None else None
        self._check_grid(grid)
        return LaunchTrees(grid, block, shared)

    def _follow_block_side(self, axis: str, node: Node, value: int | None) -> Node:
        if value is None and (cap := cap_of(node)) and self._told.goes_on_by_block(axis):
            number: Node = Num(cap[1])
            meaning = self._stands_for(axis, number, cap[1])
            if meaning != number:
                self._caps[cap[0]] = substitute_trees(cap[0], {number: meaning})
                self._numbers[f"blockDim.{axis}"] = {number: meaning}
            return substitute_trees(node, self._caps)
        return node if value is None or value < 2 else self._stands_for(axis, node, value)

    def _stands_for(self, axis: str, node: Node, value: int) -> Node:
        """The constant that a number of the block is, a knob of the launch, or the number."""
        asks = self._told.asks_for_block(axis)

        def may_be_block(node: Node) -> bool:
            asks_itself = any(name.startswith("blockDim.") for name in used_names(node))
            return not asks_itself and (axis, node) not in self._told.to_thread

        found = self._candidates(value, may_be_block)
        told = self._told.threads
        scored = [(told.get((axis, n), 0) + fits_name(n, axis, self._work.constants), n) for n in found]
        if asks:  # the text goes along with any block, unless it, or a name, says otherwise
            scored = [(score, n) for score, n in scored if score >= _SPEAKS]
        chosen = self._best(scored) or (None if asks else self._find_product(value))
        if chosen is not None:
            return self._opened(chosen)
        return self._as_knob(f"BLOCK_{axis.upper()}", value, node) if asks else node

    def _find_product(self, value: int) -> Node | None:
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

    def _as_knob(self, name: str, value: int, node: Node) -> Node:
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
        knobs = {name for name, side in self._block.items() if used_names(side)}
        return not used_names(node).isdisjoint(self._work.open | knobs)

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

    def _grid(self, axis: str, node: Node) -> Node:
        """A grid that a number cuts short decides which elements there are, unless blocks go on."""
        found = self._followed_grid(axis, node)
        return node if self._is_cut(found) and not self._told.goes_on(axis) else found

    def _is_cut(self, node: Node) -> bool:
        if isinstance(node, FunctionCall) and node.function == "min":
            moving = {*self._work.open, *self._work.own} & used_names(node)
            if moving and any(isinstance(arg, Num) for arg in node.args):
                return True
        return any(self._is_cut(child) for child in operands_of_node(node))

    def _followed_grid(self, axis: str, node: Node) -> Node:
        counted = self._told.by_block[axis]
        node = substitute_trees(node, self._caps)
        for name in self._numbers.keys() & {name for n in counted for name in used_names(n)}:
            node = substitute_trees(node, self._numbers[name])
        value = evaluate_node(node, {})
        if value is not None and value > 1 and self._told.goes_on(axis):
            return self._as_knob(f"GRID_{axis.upper()}", value, node)
        changed = self._replace_divisors(node, axis, {})
        changed = self._by_multiple(node, axis) if changed == node else changed
        single = [n for n in counted if evaluate_node(n, self._values) == 1 and self._can_change(n)]
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
            each = evaluate_node(by, self._values) or 0
            if each < 2 or value < 2 or not self._can_change(by):
                continue
            for node in self._told.seen:
                of = evaluate_node(node, known) or 0
                if (value - 1) * each < of <= value * each and isinstance(node, Variable) and node != by:
                    found[FunctionCall("ceildiv", (self._opened(node), self._opened(by)))] = node.id
        if len(found) != 1:
            return None
        ((quotient, size),) = found.items()
        if size in self._work.open:
            self._work.dropped[size] = f"by the grid, {value} blocks along {axis}, it is a size"
        return quotient

    def _replace_divisors(self, node: Node, axis: str, inside: Mapping[int, Node]) -> Node:
        """The tree with what it divides by replaced; `(n + 255) // 256` has the number twice."""

        def replaced(part: Node) -> Node:
            return self._replace_divisors(part, axis, inside)

        match node:
            case Arithmetic("//" | "%", left, right):
                divisor = self._match_divisor(right, axis)
                value = evaluate_node(right, {})
                known = {**inside, value - 1: divisor} if divisor != right and value else inside
                return Arithmetic(node.op, self._replace_divisors(left, axis, known), divisor)
            case FunctionCall("ceildiv" | "round_up", (left, right)):
                return FunctionCall(node.function, (replaced(left), self._match_divisor(right, axis)))
            case Num(value) if value in inside and value > 0:
                return Arithmetic("-", inside[value], Num(1))
            case Arithmetic(op, left, right):
                return Arithmetic(op, replaced(left), replaced(right))
            case FunctionCall(function, args):
                return FunctionCall(function, tuple(map(replaced, args)))
        return node

    def _match_divisor(self, node: Node, axis: str) -> Node:
        value = evaluate_node(node, {})
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
            return Arithmetic(
                "*", self._match_divisor(node.left, axis), self._match_divisor(node.right, axis)
            )
        return node

    def _by_multiple(self, node: Node, axis: str) -> Node:
        """The outermost divisor replaced: one inside says how elements are packed."""
        match node:
            case FunctionCall("min" | "max", args):
                return FunctionCall(node.function, tuple(self._by_multiple(arg, axis) for arg in args))
            case Arithmetic("*", left, right):
                return Arithmetic("*", self._by_multiple(left, axis), self._by_multiple(right, axis))
            case FunctionCall("ceildiv", (left, right)) | Arithmetic("//", left, right):
                value = evaluate_node(right, {})
                multiple = self._find_multiple(value, axis) if value is not None else None
                if value is not None and multiple is not None:
                    less: Node = Arithmetic("-", multiple, Num(1))
                    return substitute_trees(node, {Num(value): multiple, Num(value - 1): less})
        return node

    def _find_multiple(self, value: int, axis: str) -> Node | None:
        """What blocks are counted by, times what the text has no constant for: elements of a vector."""
        known = {n: v for n in self._told.by_block[axis] if (v := evaluate_node(n, self._values))}
        fits = [n for n, v in known.items() if 1 < v < value and value % v == 0 and self._can_change(n)]
        if not fits:
            return None
        top = max(known[n] for n in fits)
        (*_, first) = (n for n in self._told.seen if n in fits and known[n] == top)
        return product_of((self._opened(first), Num(value // top)))

    def _follow_shared(self, node: Node) -> Node:
        node = substitute_trees(node, self._caps)
        value = evaluate_node(node, {})
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
                sides = [evaluate_node(side, {}) for side in (left, right)]
                return product_of(
                    side
                    if value in ELEMENTS and value != max(v or 17 for v in sides)
                    else self._factors(side)
                    for side, value in zip((left, right), sides, strict=True)
                )
            case Arithmetic(op, left, right) if op in ("+", "-"):
                return Arithmetic(op, self._factors(left), self._factors(right))
        return node

    def _check_grid(self, grid: Sequence[Node]) -> None:
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
                        f"{unparse(self._launch.grid[AXES.index(axis)])!r}, does not show how it follows"
                    )

    def _steps_over(self, tree: Node, by: Node, key: str) -> bool:
        """Whether the text has all that the grid's blocks come to at once as a constant, made of the key."""
        blocks, each = evaluate_node(tree, {}), evaluate_node(by, self._values)
        if blocks is None or each is None or blocks < 2:
            return False
        found = self._told.with_value(blocks * each, self._values)
        return any(key in used_names(self._opened(node)) and node != by for node in found)
