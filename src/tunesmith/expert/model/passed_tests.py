"""Tests that every block of the launch passes: `if (blockIdx.x < rows)` in a grid of `rows` blocks.

What is proved is an equation of sizes: the bound and the number of blocks are the same expression.
"""

from __future__ import annotations

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import fold_statements
from tunesmith.csource.parse import read_expression
from tunesmith.csource.types import integer
from tunesmith.expert.model.affine import terms
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.translate import LaunchTerms

_WIDE = frozenset({"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"})
_WIDE |= {"size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "uint", "ulong"}
_BLOCKS = {f"blockIdx.{axis}": f"gridDim.{axis}" for axis in "xyz"}


def passed_by_all(normal: Normal, launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    """The statements without these tests."""
    changed = walk.assigned_in(normal.body)

    def answer(node: c.Expr) -> c.Expr:
        match node:
            case c.Binary("<" | ">=" as op, left, right) if _is_within(left, right):
                return integer(int(op == "<"))
        return node

    def _is_within(index: c.Expr, bound: c.Expr) -> bool:
        index, bound = _wide(index), _wide(bound)
        if isinstance(index, c.Name) and index.name in normal.ids and index.name not in changed:
            index = _wide(normal.ids[index.name].expr)
        if not isinstance(index, c.Name) or index.name not in _BLOCKS or walk.names_in(bound) & changed:
            return False
        if any(isinstance(part, c.Cast) and part.type.base not in _WIDE for part in walk.nodes_in(bound)):
            return False
        count = launch.parameters.get(_BLOCKS[index.name])
        said = launch.size_text(bound)
        return count is not None and bool(said) and _same(said, launch.size_text(c.Name(_BLOCKS[index.name])))

    return fold_statements(walk.map_nodes(normal.body, answer))


def _wide(expr: c.Expr) -> c.Expr:
    """Without casts that lose nothing of the number of a block."""
    while isinstance(expr, c.Cast) and expr.type.base in _WIDE and not expr.type.pointers:
        expr = expr.value
    return expr


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    if not all(set(text) <= _PLAIN for text in (one, other)):
        return False
    return terms(read_expression(one)) == terms(read_expression(other))


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789+-*() ")
