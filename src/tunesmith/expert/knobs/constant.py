"""Constant expressions of C as trees of the expression language: what is a number once some names are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from tunesmith.csource.arithmetic import LEVELS
from tunesmith.csource.lex import Token, read_number
from tunesmith.csource.types import byte_size
from tunesmith.space.expr import Expr, Undefined
from tunesmith.space.grammar import (
    Arithmetic,
    Compare,
    Conditional,
    FunctionCall,
    Logic,
    Node,
    Not,
    Num,
    Variable,
    children,
    names,
    unparse,
)
from tunesmith.space.settled import substituted

Resolve = Callable[[str], Node | None]  # what a word stands for; None: no constant

PLAIN = LEVELS["+"]  # the level from which there is arithmetic alone
_MOST_DEEP = 40
_MOST_WORDS = 48  # of an expression: longer ones are no constants here


def read_constant(tokens: Sequence[Token], resolve: Resolve) -> Node | None:
    """The whole of the words as one expression; None where a part of them is no constant."""
    found = read_prefix(tokens, 0, resolve, 0)
    return found[0] if found is not None and found[1] == len(tokens) else None


def read_prefix(
    tokens: Sequence[Token], at: int, resolve: Resolve, least: int, depth: int = 0
) -> tuple[Node, int] | None:
    """The longest expression of at least this level that begins there, and where it ends."""
    end = min(at + _MOST_WORDS, len(tokens))
    found = _primary(tokens, at, resolve, depth + 1)
    while found is not None and found[1] < end:
        left, at = found
        op = tokens[at].text
        level = LEVELS.get(op, 0)
        if level == 0 or level < least:
            if op == "?" and least <= 0:
                return _choice(tokens, found, resolve, depth)
            break
        right = read_prefix(tokens, at + 1, resolve, level + 1, depth + 1)
        if right is None:
            break
        made = _binary(op, left, right[0])
        if made is None:
            break
        found = made, right[1]
    return found


def _choice(
    tokens: Sequence[Token], test: tuple[Node, int], resolve: Resolve, depth: int
) -> tuple[Node, int] | None:
    then = read_prefix(tokens, test[1] + 1, resolve, 0, depth + 1)
    if then is None or then[1] >= len(tokens) or tokens[then[1]].text != ":":
        return test
    other = read_prefix(tokens, then[1] + 1, resolve, 0, depth + 1)
    return (Conditional(test[0], then[0], other[0]), other[1]) if other is not None else test


def _primary(tokens: Sequence[Token], at: int, resolve: Resolve, depth: int) -> tuple[Node, int] | None:
    if at >= len(tokens) or depth > _MOST_DEEP:
        return None
    token = tokens[at]
    if token.kind == "number" or token.text in ("true", "false"):
        value = read_number(token.text)
        return (Num(value), at + 1) if isinstance(value, int) and value < 1 << 40 else None
    if token.text == "(":
        inner = read_prefix(tokens, at + 1, resolve, 0, depth + 1)
        closes = inner is not None and inner[1] < len(tokens) and tokens[inner[1]].text == ")"
        return (inner[0], inner[1] + 1) if inner is not None and closes else None
    if token.text == "!":
        found = _primary(tokens, at + 1, resolve, depth + 1)
        return (Not(found[0]), found[1]) if found is not None else None
    if token.text == "sizeof":
        end = next((p for p in range(at, min(at + 6, len(tokens))) if tokens[p].text == ")"), at)
        size = byte_size(" ".join(t.text for t in tokens[at + 2 : end]))
        return (Num(size), end + 1) if size is not None else None
    if token.kind != "word":
        return None
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.text in ("min", "max") and after == "(":
        return _call(token.text, tokens, at + 2, resolve, depth)
    if after == "::":  # Traits::BLOCK, where one of that name is all there is
        return _primary(tokens, at + 2, resolve, depth + 1)
    node = resolve(token.text)
    return (node, at + 1) if node is not None and after != "(" else None


def _call(
    name: str, tokens: Sequence[Token], at: int, resolve: Resolve, depth: int
) -> tuple[Node, int] | None:
    args: list[Node] = []
    while at < len(tokens):
        found = read_prefix(tokens, at, resolve, 0, depth + 1)
        if found is None or found[1] >= len(tokens):
            return None
        args.append(found[0])
        at = found[1] + 1
        if tokens[found[1]].text == ")":
            return (FunctionCall(cast("Any", name), tuple(args)), at) if len(args) == 2 else None
        if tokens[found[1]].text != ",":
            return None
    return None


def _binary(op: str, left: Node, right: Node) -> Node | None:
    match op:
        case "||" | "&&":
            return Logic("or" if op == "||" else "and", (left, right))
        case "==" | "!=" | "<" | ">" | "<=" | ">=":
            return _power_of_two(op, left, right) or Compare(left, ((op, right),))
        case "<<" | ">>":
            if isinstance(right, Num) and 0 <= right.value < 31:
                power = Num(1 << right.value)
                return folded(Arithmetic("*" if op == "<<" else "//", left, power))
            return None
        case "&":  # X & (X - 1): only held against 0 does it have a meaning here
            return Arithmetic("%", left, Num(0)) if right == Arithmetic("-", left, Num(1)) else None
        case "/":
            return folded(Arithmetic("//", left, right))
        case "+" | "-" | "*" | "%":
            return folded(Arithmetic(op, left, right))
    return None


def _power_of_two(op: str, left: Node, right: Node) -> Node | None:
    match left:
        case Arithmetic("%", value, Num(0)) if right == Num(0) and op in ("==", "!="):
            test: Node = FunctionCall("is_pow2", (value,))
            return test if op == "==" else Not(test)
    return None


def folded(node: Node) -> Node:
    """A number where it is one, so that `4 * 32` is `128`."""
    if any(True for _ in names(node)):
        return node
    value = evaluated(node, {})
    return Num(value) if value is not None and value >= 0 else node


def evaluated(node: Node, values: Mapping[str, int]) -> int | None:
    try:
        return Expr("", node).evaluate(values)
    except Undefined:
        return None


def with_names(node: Node, meanings: Mapping[str, Node]) -> Node:
    """The tree with other trees in place of some of its names."""
    return substituted(node, {Variable(name): meaning for name, meaning in meanings.items()})


def size_of(node: Node) -> int:
    return 1 + sum(map(size_of, children(node)))


def used_names(node: Node) -> frozenset[str]:
    return frozenset(names(node))


def product_of(nodes: Iterable[Node]) -> Node:
    found: Node | None = None
    for node in nodes:
        if node == Num(1):
            continue
        found = node if found is None else folded(Arithmetic("*", found, node))
    return found or Num(1)


def text_of(node: Node) -> str:
    return unparse(node)
