"""Conditions of the same shape as one: a template's header is short, and what it allows stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeGuard

from tunesmith.expert.writing.naming import Pairs, distinct
from tunesmith.space.expr import Node, parse, unparse
from tunesmith.space.grammar import Arithmetic, Compare, Logic, Num, Variable

Conditions = tuple[tuple[str, str], ...]


def merged(conditions: Pairs) -> Conditions:
    """`A == 0 or W` and `B == 0 or W` as `A == 0 and B == 0 or W`; settings that exclude each other as a sum.

    A merged condition stands where the first of its parts stood.
    """
    return _with_one_end(_at_most_one(tuple(conditions)))


def _at_most_one(conditions: Conditions) -> Conditions:
    """Three settings and more of which every two exclude each other: one at most is not as usual."""
    pairs = [(name, ends) for name, text in reversed(conditions) if len(ends := _ends(text)) == 2]
    edges = {frozenset(ends): name for name, ends in pairs if all(map(_is_setting, ends))}
    settings = tuple(dict.fromkeys(end for _, ends in pairs for end in ends if _is_setting(end)))
    apart = {one: {two for two in settings if frozenset((one, two)) in edges} for one in settings}

    def largest(group: tuple[Compare, ...], others: Sequence[Compare]) -> tuple[Compare, ...]:
        """The first of the largest groups that go on from this one."""
        best = group
        for place, one in enumerate(others):
            more = [two for two in others[place + 1 :] if two in apart[one]]
            if len(group) + 1 + len(more) > len(best):
                best = max(best, largest((*group, one), more), key=len)
        return best

    group = largest((), settings)
    if len(group) < 3:
        return conditions
    names = [edges[frozenset(pair)] for pair in combinations(group, 2)]
    called = "_".join(unparse(setting.left).lower() for setting in reversed(group))
    whole = (f"one_of_{called}", _sum_text(tuple(reversed(group))))
    return _at_most_one(_in_place(conditions, names, whole))


def _sum_text(group: tuple[Compare, ...]) -> str:
    first, *others = (Compare(setting.left, (("!=", setting.links[0][1]),)) for setting in group)
    total: Node = first
    for other in others:
        total = Arithmetic("+", total, other)
    return unparse(Compare(total, (("<=", Num(1)),)))


def _with_one_end(conditions: Conditions) -> Conditions:
    """Settings that are as usual unless the same thing holds."""
    groups: dict[tuple[Node, ...], list[tuple[str, Node]]] = {}
    for name, text in conditions:
        first, *rest = _ends(text)
        if rest and _is_setting(first):
            groups.setdefault(tuple(rest), []).append((name, first))
    for same, members in groups.items():
        if len(members) > 1:
            names = [name for name, _ in members]
            every = Logic("and", tuple(first for _, first in members))
            whole = (f"touches_{_suffix(names)}", unparse(Logic("or", (every, *same))))
            conditions = _in_place(conditions, names, whole)
    return conditions


def _in_place(conditions: Conditions, gone: Iterable[str], new: tuple[str, str]) -> Conditions:
    left = set(gone)
    place = next(place for place, (name, _) in enumerate(conditions) if name in left)
    before, after = conditions[:place], [pair for pair in conditions[place:] if pair[0] not in left]
    return distinct(before, (new, *after))


def _ends(text: str) -> tuple[Node, ...]:
    """What is joined by `or`."""
    tree = parse(text).tree
    return tree.operands if isinstance(tree, Logic) and tree.op == "or" else (tree,)


def _is_setting(node: Node) -> TypeGuard[Compare]:
    """`NAME == 3`"""
    if not isinstance(node, Compare) or len(node.links) != 1:
        return False
    (op, right), left = node.links[0], node.left
    return op == "==" and isinstance(left, Variable) and isinstance(right, Num)


def _suffix(names: list[str]) -> str:
    """The words that all of them end with."""
    found: list[str] = []
    for words in zip(*(reversed(name.split("_")) for name in names), strict=False):
        if len(set(words)) > 1:
            break
        found.insert(0, words[0])
    return "_".join(found) or names[0]
