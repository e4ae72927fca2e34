"""Numbers that a text has written out where its launch has them too, given a name: `blockIdx.x * 16`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.lex import Token, read_number
from tunesmith.expert.knobs.constant import evaluated
from tunesmith.expert.knobs.text import AXES, SHARED, WARP_WORDS, KnobText
from tunesmith.problem.problem import Problem
from tunesmith.space.grammar import Node, Num, children

LEAST = 8  # below, a number has too many meanings


@dataclass(frozen=True)
class WrittenNumber:
    """All the places of a number in the functions that a kernel reaches, under one name."""

    name: str
    value: int
    places: tuple[Token, ...]


def name_numbers(
    problem: Problem, text: KnobText, reached: Sequence[int], blocks: Sequence[Sequence[Node]]
) -> tuple[KnobText, tuple[WrittenNumber, ...], tuple[str, ...]]:
    """The text with names for the block's own numbers, these, and sentences on those that stay numbers."""
    found: list[WrittenNumber] = []
    left: list[str] = []
    values = {value for block in blocks for node in block if (value := evaluated(node, {})) is not None}
    every = {token.text for item in text.items for token in item.tokens}
    for value in sorted(value for value in values if value >= LEAST):
        name = f"NUMBER_{value}"
        places = [
            place for place in reached if text.items[place].is_function and not text.items[place].header
        ]
        tokens = [token for place in places for token in text.items[place].tokens]
        own = [at for at, token in enumerate(tokens) if _is(token, value)]
        if name in every or not any(_is_the_blocks(tokens, at) for at in own):
            continue
        if asked := [axis for axis in AXES if {f"blockDim.{axis}", f"globalIdx.{axis}"} & every]:
            left.append(f"{value} in the text stays: it asks for the block along {asked[0]} as well")
            continue
        if value in (fixed := fixed_numbers(problem)):
            left.append(f"{value} in the text stays: it is {fixed[value]} of the problem")
            continue
        if value in (32, 64) and any(WARP_WORDS.fullmatch(word) for word in every):
            left.append(f"{value} in the text stays: it may be the width of a warp")
            continue
        near = [n for n in (value - 1, value // 2, 2 * value) if any(_is(token, n) for token in tokens)]
        if near:
            left.append(f"{value} in the text stays: {near[0]} is there as well, and may follow from it")
            continue
        text = _named(text, places, value, name)
        found.append(WrittenNumber(name, value, tuple(tokens[at] for at in own)))
    return text, tuple(found), tuple(left)


def _is(token: Token, value: int) -> bool:
    return token.kind == "number" and read_number(token.text) == value and "." not in token.text


def _is_the_blocks(tokens: Sequence[Token], at: int) -> bool:
    """Whether blocks are counted by it, or an array in shared memory has that many elements."""
    text = [tokens[place].text if 0 <= place < len(tokens) else "" for place in range(at - 2, at + 3)]
    if (text[1] == "*" and text[0].startswith("blockIdx.")) or (
        text[3] == "*" and text[4].startswith("blockIdx.")
    ):
        return True
    if text[1] == "[" and text[3] == "]":
        start = at
        while start > 0 and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        return any(token.text in SHARED for token in tokens[start:at])
    return False


def _named(text: KnobText, places: Sequence[int], value: int, name: str) -> KnobText:
    items = list(text.items)
    for place in places:
        words = (replace(t, kind="word", text=name) if _is(t, value) else t for t in items[place].tokens)
        items[place] = replace(items[place], tokens=tuple(words))
    return replace(text, items=tuple(items))


def fixed_numbers(problem: Problem) -> dict[int, str]:
    """Numbers that the contract fixes: a size with one value, an extent of an array."""
    found: dict[int, str] = {}
    for argument in problem.arguments:
        if argument.role == "local":
            continue
        for extent in argument.shape:
            found |= dict.fromkeys(_numbers(extent.tree), f"an extent of {argument.name}")
    for rule in problem.contract.sizes:
        if len(rule.one_of) == 1 or rule.min == rule.max:
            found[rule.one_of[0] if rule.one_of else rule.min] = f"the size {rule.name}"
    return found


def _numbers(node: Node) -> Iterator[int]:
    if isinstance(node, Num):
        yield node.value
    for child in children(node):
        yield from _numbers(child)
