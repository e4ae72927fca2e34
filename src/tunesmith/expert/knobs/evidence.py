"""What the text of a kernel says of its launch: which constant blocks are counted by, which threads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token
from tunesmith.expert.knobs.constant import PLAIN, evaluated, product_of, read_prefix, used_names
from tunesmith.expert.knobs.find import ConstantTable
from tunesmith.expert.knobs.text import AXES, KnobText, word_set
from tunesmith.expert.knobs.uses import words_of
from tunesmith.space.grammar import Node, Num, Variable

_MOST_NAMES = 3000  # of constants in one function: what comes behind them is not looked at
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
        return [node for node in self.seen if evaluated(node, values) == value]


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
        for start, end, node in _expressions(tokens, constants, place):
            seen.setdefault(node)
            for axis in AXES:
                if _multiplies(tokens, start, end, f"blockIdx.{axis}"):
                    by_block[axis].add(node)
                if _multiplies(tokens, start, end, f"globalIdx.{axis}") or _scales(tokens, start, end, axis):
                    to_thread[axis, node] = None
                if told := _told(tokens, start, end, axis):
                    threads[axis, node] = threads.get((axis, node), 0) + told
        for axis, node in _indexed(tokens, constants, place):
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


def _expressions(
    tokens: Sequence[Token], constants: ConstantTable, place: int
) -> Iterator[tuple[int, int, Node]]:
    """Every constant expression that names something, with where it begins and ends."""
    resolve = constants.resolve(place)
    known = [at for at, token in enumerate(tokens) if token.kind == "word" and resolve(token.text)]
    for start, token in enumerate(tokens[: known[_MOST_NAMES]] if len(known) > _MOST_NAMES else tokens):
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


def _indexed(tokens: Sequence[Token], constants: ConstantTable, place: int) -> Iterator[tuple[str, Node]]:
    """Extents of arrays along which a thread's number is the index: `tile[threadIdx.y]` of `tile[ROWS]`."""
    extents: dict[str, list[Node]] = {}
    for at in range(2, len(tokens)):
        if tokens[at].text != "[" or tokens[at - 1].kind != "word":
            continue
        name, groups = tokens[at - 1].text, _bracketed(tokens, at)
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


def _bracketed(tokens: Sequence[Token], at: int) -> list[list[Token]]:
    """What stands in each of the brackets that follow each other from there."""
    found: list[list[Token]] = []
    depth = 0
    while at < len(tokens) and (depth or tokens[at].text == "["):
        text = tokens[at].text
        if text == "[" and depth == 0:
            found.append([])
        elif not (text == "]" and depth == 1):
            found[-1].append(tokens[at])
        depth += (text == "[") - (text == "]")
        at += 1
    return found


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _multiplies(tokens: Sequence[Token], start: int, end: int, word: str) -> bool:
    before = _text(tokens, start - 1) == "*" and word in (
        _text(tokens, start - 2),
        _text(tokens, start - 3) if _text(tokens, start - 2) == ")" else "",
    )
    after = _text(tokens, end) == "*" and word in (
        _text(tokens, end + 1),
        _text(tokens, end + 2) if _text(tokens, end + 1) == "(" else "",
    )
    return before or after


def _scales(tokens: Sequence[Token], start: int, end: int, axis: str) -> bool:
    """Whether it multiplies a sum in parentheses that has the block's number in it."""
    if _text(tokens, start - 1) == "*" and _text(tokens, start - 2) == ")":
        opened, closed = _matching(tokens, start - 2, -1), start - 2
    elif _text(tokens, end) == "*" and _text(tokens, end + 1) == "(":
        opened, closed = end + 1, _matching(tokens, end + 1, 1)
    else:
        return False
    if opened < 1 or closed < 0 or tokens[opened - 1].kind == "word":
        return False  # arguments of a call, or no group
    return any(token.text == f"blockIdx.{axis}" for token in tokens[opened:closed])


def _matching(tokens: Sequence[Token], at: int, step: int) -> int:
    """The other parenthesis of a pair, where it is near; else -1."""
    depth, first = 0, at
    while 0 <= at < len(tokens) and abs(at - first) < _FAR:
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0:
            return at
        at += step
    return -1


def _told(tokens: Sequence[Token], start: int, end: int, axis: str) -> int:
    """How much a place in the text says that the block has this extent along the axis."""
    thread, found = f"threadIdx.{axis}", 0
    before, after = _text(tokens, start - 1), _text(tokens, end)
    if before in _COMPARED and _text(tokens, start - 2) == thread:
        found += 3
    if after in _COMPARED and _text(tokens, end + 1) == thread:
        found += 3
    if before == "+=" and _steps_from(tokens, start, thread):
        found += 3
    if (
        after == "+"
        and _text(tokens, end + 1) == thread
        and _multiplies(tokens, start, end, f"blockIdx.{axis}")
    ):
        found += 2
    if before == "(" and _text(tokens, start - 2) == "__launch_bounds__" and axis == "x":
        found += 4
    return found


def _steps_from(tokens: Sequence[Token], at: int, thread: str) -> bool:
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


def _steps_by_extent(tokens: Sequence[Token], extent: str) -> bool:
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
    words = frozenset(word for name in names for word in words_of(name))
    found = int(bool(words & _THREADS)) + int(bool(words & _SIDES[axis]))
    found -= 2 * int(
        any(words & _SIDES[other] for other in AXES if other != axis) and not words & _SIDES[axis]
    )
    return found + int(isinstance(node, Variable)) - int(node == Num(1))
