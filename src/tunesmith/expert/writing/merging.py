"""Conditions that begin alike as one: a template's header is short, and what it allows stays the same."""

from __future__ import annotations

from typing import TypeGuard

from tunesmith.expert.writing.naming import Pairs
from tunesmith.space.expr import Node, parse, unparse
from tunesmith.space.grammar import Compare, Logic, Num, Variable

Conditions = tuple[tuple[str, str], ...]


def merged(conditions: Pairs) -> Conditions:
    """`A == 0 or V` and `A == 0 or W` as `A == 0 or V and W`: where the first of them stood, by its name."""
    found: dict[str, Node] = {}
    first: dict[Compare, str] = {}  # setting -> the condition that begins with it
    for name, text in conditions:
        tree = parse(text).tree
        setting = tree.operands[0] if isinstance(tree, Logic) and tree.op == "or" else None
        if not _is_setting(setting):
            found[name] = tree
        elif setting in first:
            found[first[setting]] = _joined(found[first[setting]], tree)
        else:
            first[setting], found[name] = name, tree
    return tuple((name, unparse(tree)) for name, tree in found.items())


def _joined(one: Node, other: Node) -> Node:
    """Of two conditions that begin with the same setting."""
    rests = [_rest(one), _rest(other)]
    parts = [part for rest in rests for part in (rest.operands if _is_all(rest) else (rest,))]
    return Logic("or", (_first(one), Logic("and", tuple(dict.fromkeys(parts)))))


def _first(node: Node) -> Node:
    assert isinstance(node, Logic)
    return node.operands[0]


def _rest(node: Node) -> Node:
    assert isinstance(node, Logic)
    return node.operands[1] if len(node.operands) == 2 else Logic("or", node.operands[1:])


def _is_all(node: Node) -> TypeGuard[Logic]:
    return isinstance(node, Logic) and node.op == "and"


def _is_setting(node: Node | None) -> TypeGuard[Compare]:
    """`NAME == 3`"""
    if not isinstance(node, Compare) or len(node.links) != 1:
        return False
    (op, right), left = node.links[0], node.left
    return op == "==" and isinstance(left, Variable) and isinstance(right, Num)
