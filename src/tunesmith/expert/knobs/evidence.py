"""What the text of a kernel says of its launch: which constant blocks are counted by, which threads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token
from tunesmith.expert.knobs.constant import PLAIN, evaluated, read_prefix, used_names
from tunesmith.expert.knobs.find import ConstantTable
from tunesmith.expert.knobs.text import AXES, KnobText, word_set
from tunesmith.expert.knobs.uses import words_of
from tunesmith.space.grammar import Node, Num, Variable

_MOST_NAMES = 3000  # of constants in one function: what comes behind them is not looked at
_NEAR = 12  # words before the first name of an expression
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

    def asks_for_block(self, axis: str) -> bool:
        """Whether the text looks at the block's extent."""
        return f"blockDim.{axis}" in self.words or f"globalIdx.{axis}" in self.words

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
    for place in reached:
        tokens = text.items[place].tokens
        words.update(token.text for token in tokens)
        for start, end, node in _expressions(tokens, constants, place):
            seen.setdefault(node)
            for axis in AXES:
                if _multiplies(tokens, start, end, f"blockIdx.{axis}"):
                    by_block[axis].add(node)
                if told := _told(tokens, start, end, axis):
                    threads[axis, node] = threads.get((axis, node), 0) + told
        for axis, node in _indexed(tokens, constants, place):
            threads[axis, node] = threads.get((axis, node), 0) + 3
    for axis in AXES:
        if f"globalIdx.{axis}" in words:
            by_block[axis].add(Variable(f"blockDim.{axis}"))
            seen.setdefault(Variable(f"blockDim.{axis}"))
    found = {axis: frozenset(nodes) for axis, nodes in by_block.items()}
    return LaunchEvidence(tuple(seen), found, threads, frozenset(words))


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


def fits_name(node: Node, axis: str, constants: ConstantTable) -> int:
    """How well the names in a tree go with threads along an axis."""
    names = [constants.every[key].name for key in used_names(node) if key in constants.every]
    words = frozenset(word for name in names for word in words_of(name))
    found = int(bool(words & _THREADS)) + int(bool(words & _SIDES[axis]))
    found -= 2 * int(
        any(words & _SIDES[other] for other in AXES if other != axis) and not words & _SIDES[axis]
    )
    return found + int(isinstance(node, Variable)) - int(node == Num(1))
