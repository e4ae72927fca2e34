"""What the code requires of its knobs: assertions, quotients without rest, whole warps, shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token, closing_angle, split_at
from tunesmith.csource.types import byte_size
from tunesmith.expert.knobs.constant import Resolve, product_of, read_constant, read_prefix, used_names
from tunesmith.expert.knobs.evidence import LaunchEvidence
from tunesmith.expert.knobs.find import ConstantTable, entry_parts
from tunesmith.expert.knobs.text import SHARED, WARP_WORDS, KnobText
from tunesmith.problem.problem import Problem
from tunesmith.space.grammar import Arithmetic, Compare, Node, Not, Num, children

_ASSERTS = ("static_assert", "_Static_assert")
_HALVING = frozenset({">>=", "<<=", "/=", "*="})
_HEAD = 60  # words of a declaration
_GROUP = 400  # words in parentheses
UNKNOWN_BYTES = 4  # of an element whose type only the compiler knows


@dataclass(frozen=True)
class Requirement:
    name: str
    node: Node  # over literals and `blockDim.x`


def asserted(constants: ConstantTable, text: KnobText, reached: Sequence[int]) -> Iterator[Requirement]:
    """`static_assert`, and what an #error stands under."""
    loose = [
        place for place, item in enumerate(text.items) if item.tokens and item.tokens[0].text in _ASSERTS
    ]
    for place in (*reached, *loose):
        tokens = text.items[place].tokens
        for at, token in enumerate(tokens):
            if token.text in _ASSERTS and at + 1 < len(tokens):
                inside = _group(tokens, at + 1)
                node = read_constant(_before_comma(inside), constants.resolve(place))
                if node is not None:
                    yield Requirement("asserted", constants.meaning(node))
    for words in text.refused:
        node = read_constant(words, constants.resolve(None))
        if node is not None:
            yield Requirement("asserted", Not(constants.meaning(node)))


def _group(tokens: Sequence[Token], at: int) -> list[Token]:
    """Inside the parentheses that open there."""
    depth = 0
    for end in range(at, min(at + _GROUP, len(tokens))):
        depth += (tokens[end].text == "(") - (tokens[end].text == ")")
        if depth == 0:
            return list(tokens[at + 1 : end])
    return []


def _before_comma(tokens: Sequence[Token]) -> list[Token]:
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            return list(tokens[:at])
    return list(tokens)


def divided(constants: ConstantTable, evidence: Sequence[LaunchEvidence]) -> Iterator[Requirement]:
    """Quotients of constants, which count wrongly where there is a rest."""
    nodes = [constants.meaning(one.node) for one in constants.every.values()]
    nodes += [node for told in evidence for node in told.seen]
    for node in nodes:
        for quotient in _quotients(node):
            rest = Arithmetic("%", quotient.left, quotient.right)
            yield Requirement("divides", Compare(rest, (("==", Num(0)),)))


def _quotients(node: Node) -> Iterator[Arithmetic]:
    if isinstance(node, Arithmetic) and node.op == "//":
        yield node
    for child in children(node):
        yield from _quotients(child)


def stepped(constants: ConstantTable, text: KnobText, reached: Sequence[int]) -> Iterator[Requirement]:
    """`for (j = 0; j < TILE; j += STEP)`: the last turn must be a whole one."""
    for place in reached:
        tokens, resolve = text.items[place].tokens, constants.resolve(place)
        for at, token in enumerate(tokens):
            if token.text != "for" or at + 1 >= len(tokens):
                continue
            parts = _semicolons(_group(tokens, at + 1))
            if len(parts) != 3 or [t.text for t in parts[0][-2:]] != ["=", "0"]:
                continue
            bound = read_prefix(parts[1], 2, resolve, 9) if len(parts[1]) > 2 else None
            step = read_prefix(parts[2], 2, resolve, 9) if len(parts[2]) > 2 else None
            marks = (
                parts[1][1].text if len(parts[1]) > 1 else "",
                parts[2][1].text if len(parts[2]) > 1 else "",
            )
            if bound is None or step is None or marks != ("<", "+="):
                continue
            if bound[1] == len(parts[1]) and step[1] == len(parts[2]):
                rest = Arithmetic("%", constants.meaning(bound[0]), constants.meaning(step[0]))
                yield Requirement("whole_steps", Compare(rest, (("==", Num(0)),)))


def _semicolons(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


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


def halves(text: KnobText, reached: Sequence[int]) -> bool:
    """Whether something is halved or doubled in a loop, or masked: then it is a power of two."""
    for place in reached:
        tokens = text.items[place].tokens
        for at in range(len(tokens) - 1):
            if tokens[at].text in _HALVING and tokens[at + 1].text in ("1", "2"):
                return True
            if tokens[at].text in ("^", "&") and tokens[at + 1].text == "(" and tokens[at].kind == "mark":
                inside = _group(tokens, at + 1)
                if [t.text for t in inside[-2:]] == ["-", "1"]:
                    return True
            if tokens[at].text == "^" and tokens[at - 1].text.startswith("threadIdx."):
                return True
    return False


# -- arrays ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayExtents:
    name: str
    bytes: int  # of an element
    elements: Node
    shared: bool


def arrays(
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
                dims = _extents(tokens, at, constants, resolve)
                if not dims or not all(word.isidentifier() or word in ("::", "<", ">", "*") for word in head):
                    continue
                if "return" in head or not head:
                    continue
                words = [
                    w
                    for w in head
                    if w not in SHARED and w not in ("static", "volatile", "const", "register")
                ]
                size = types.get(" ".join(words), byte_size(" ".join(words)) or UNKNOWN_BYTES)
                yield ArrayExtents(tokens[at - 1].text, size, product_of(dims), bool(SHARED & set(head)))


def _extents(tokens: Sequence[Token], at: int, constants: ConstantTable, resolve: Resolve) -> list[Node]:
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
            if name not in item.introduces or not item.tokens or item.tokens[0].text != "template":
                continue
            end = closing_angle(item.tokens, 1)
            params = split_at(",", item.tokens[2:end]) if end is not None else []
            for part, arg in zip(params, args, strict=False):
                if part and part[0].text in ("typename", "class") and (size := byte_size(arg)):
                    found[part[-1].text] = size
    return found


def shared_bytes(found: Sequence[ArrayExtents]) -> Node | None:
    """What a block takes statically, where knobs decide it."""
    shared = {one.name: one for one in found if one.shared}
    sizes = [product_of((one.elements, Num(one.bytes))) for one in shared.values()]
    total: Node | None = None
    for size in sizes:
        total = size if total is None else Arithmetic("+", total, size)
    return total if total is not None and used_names(total) else None


def private_elements(found: Sequence[ArrayExtents]) -> Node | None:
    total: Node | None = None
    for one in found:
        if not one.shared and used_names(one.elements):
            total = one.elements if total is None else Arithmetic("+", total, one.elements)
    return total


def rest(node: Node, of: int) -> Node:
    """That nothing is left of a division."""
    return Compare(Arithmetic("%", node, Num(of)), (("==", Num(0)),))
