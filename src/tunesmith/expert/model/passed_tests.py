"""Tests that every block of the launch passes, and loops that no thread goes round again.

    if (blockIdx.x < rows)                                    in a grid of `rows` blocks
    for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                                                              in a grid of ceildiv(n, block) blocks

What is proved is an equation of sizes: the bound and the number of blocks, or threads, are one expression.
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
from tunesmith.space import grammar as size
from tunesmith.space.expr import unparse

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


def turned_once(body: tuple[c.Stmt, ...], launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    """Loops over the whole grid that no thread comes to the second turn of, as branches.

    Nothing may change what the bound is made of: the grid was made for the arguments as they came.
    """
    assigned = walk.assigned_in(body)
    declared = {s.name: s.init for s in body if isinstance(s, c.Declare) and s.init is not None}
    changed = {
        name: sum(name in walk.assigned_in(part) for part in body) for name in declared
    }  # by how many statements

    def value(expr: c.Expr) -> c.Expr:
        """A variable that nothing changes, as what it is."""
        known = isinstance(expr, c.Name) and expr.name in declared and not changed[expr.name]
        return _wide(declared[expr.name] if known and isinstance(expr, c.Name) else expr)

    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        match stmt:
            case c.For(
                init=init,
                condition=c.Binary("<", c.Name(name=index), bound) as test,
                step=(c.Assign("+=", c.Name(name=moved), by),),
                body=inside,
            ) if moved == index and _starts(init, index, declared) == _thread():
                outside = (*body[:at], *body[at + 1 :])
                own = index in walk.assigned_in(inside) or bool(assigned & walk.names_in(bound))
                used = index in walk.names_in([s for s in outside if not _declares(s, index)])
                jumps = any(isinstance(node, c.Jump) for node in walk.nodes_in(inside))
                once = value(by) == _threads() and _covers(bound, launch) and _is_wide(stmt, index, body)
                if once and not own and not used and not jumps:
                    first = [s for s in init if isinstance(s, c.Declare)]
                    done += [*first, c.If(test, inside, line=stmt.line, comments=stmt.comments)]
                    continue
        done.append(stmt)
    return tuple(done)


def _thread() -> c.Expr:
    block = c.Binary("*", c.Name("blockIdx.x"), c.Name("blockDim.x"))
    return c.Binary("+", block, c.Name("threadIdx.x"))


def _threads() -> c.Expr:
    return c.Binary("*", c.Name("gridDim.x"), c.Name("blockDim.x"))


def _declares(stmt: c.Stmt, name: str) -> bool:
    return isinstance(stmt, c.Declare) and stmt.name == name


def _is_wide(loop: c.For, index: str, body: tuple[c.Stmt, ...]) -> bool:
    """Whether the index holds every thread's number: a narrow one comes to small numbers again."""
    found = [s for s in (*loop.init, *body) if isinstance(s, c.Declare) and s.name == index]
    return bool(found) and all(s.type.base in _WIDE and not s.type.is_pointer for s in found)


def _starts(init: tuple[c.Stmt, ...], index: str, declared: dict[str, c.Expr]) -> c.Expr | None:
    """What the index is before the first turn."""
    match init:
        case (c.Declare(name=name, init=first),) if name == index and first is not None:
            return _wide(first)
        case () | (c.Evaluate(expr=c.Name()),) if index in declared:
            return _wide(declared[index])
    return None


def _covers(bound: c.Expr, launch: LaunchTerms) -> bool:
    """Whether the threads of the grid are as many as the bound, or up to a block more."""
    blocks, block = launch.parameters.get("gridDim.x"), launch.parameters.get("blockDim.x")
    said = launch.size_text(_wide(bound))
    match blocks:
        case size.FunctionCall("ceildiv", (count, size.Num() as by)):
            return by == block and bool(said) and _same(said, unparse(count))
    return False


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
