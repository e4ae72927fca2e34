"""Loops that turn once, without the loop: channels of an image that has one, steps of an update made once.

    for (int c = 0; c < CN; ++c) if (low[c] > src[c]) { dst[c] = 0; break; }      with CN 1
    ->  if (low[0] > src[0]) dst[0] = 0;

Where the loop ends is a number, or an argument that the problem file fixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import is_pure
from tunesmith.csource.fold import converted, int_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.expert.model.affine import as_integer, head_of


def without_single_turns(
    function: c.Function, fixed: Mapping[str, int]
) -> tuple[c.Function, tuple[str, ...]]:
    """`fixed`: arguments that are one number in every call. Also the names of those that had a say."""
    hidden = walk.assigned_in(function.body) | set(walk.declared_in(function.body))
    known = {name: value for name, value in fixed.items() if name not in hidden}
    said: set[str] = set()

    def block(stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            stmt = walk.map_blocks(stmt, block)
            if isinstance(stmt, c.For) and stmt.condition is not None:
                found = _turned(stmt, known, _gone(stmts, at))
                said.update(walk.names_in(stmt.condition) & known.keys() if found is not None else ())
                stmt = stmt if found is None else found
            done.append(stmt)
        return tuple(done)

    body = block(function.body)
    return (function if body == function.body else replace(function, body=body)), tuple(sorted(said))


def _gone(stmts: tuple[c.Stmt, ...], at: int) -> set[str]:
    """Variables that nothing reads behind a statement of the block in which they are declared."""
    found = {
        stmt.name
        for stmt in stmts[:at]
        if isinstance(stmt, c.Declare) and not stmt.is_array and not stmt.storage and not stmt.type.reference
    }
    for node in walk.nodes_in(stmts):
        if isinstance(node, c.Unary) and node.op == "&":
            found -= walk.names_in(node)
        elif isinstance(node, c.Declare) and node.type.reference and node.init is not None:
            found -= walk.names_in(node.init)
        elif isinstance(node, c.Verbatim | c.Opaque):
            found -= node.names
    return found - walk.names_in(stmts[at + 1 :])


def _turned(loop: c.For, known: Mapping[str, int], gone: set[str]) -> c.Scope | None:
    """What its only turn does; None for loops that may turn otherwise. `gone`: what nobody reads then."""
    index = loop.init[0] if len(loop.init) == 1 else None
    if not isinstance(index, c.Declare) or not is_integer(index.type) or index.init is None:
        return None
    others = tuple(step for step in loop.step if index.name not in walk.names_in(step))
    own = tuple(step for step in loop.step if step not in others)
    head = head_of(replace(loop, step=own, body=(*loop.body, *(c.Evaluate(step) for step in others))))
    if head is None or index.name in walk.declared_in(loop.body) or not isinstance(head.start, c.Number):
        return None
    start, stop, step = (int_value(part, known) for part in (head.start, head.stop, head.step))
    if start is None or stop is None or step is None or not 0 <= start < stop <= start + step:
        return None
    if converted(start + step, index.type.base) != start + step:  # it would wrap, and turn again
        return None
    body = _without_jumps(loop.body)
    if body is None or (others and body != loop.body):
        return None
    body = substitute(body, {index.name: as_integer(index.type, head.start, {})})
    after = tuple(c.Evaluate(step, line=loop.line) for step in others if not _only_moves(step, gone))
    return c.Scope((*body, *after), line=loop.line, comments=loop.comments)


def _only_moves(step: c.Expr, names: set[str]) -> bool:
    """Whether it does no more than set one of these."""
    match step:
        case c.Unary(op="++" | "--", operand=c.Name(name=name)):
            return name in names
        case c.Assign(target=c.Name(name=name), value=value):
            return name in names and is_pure(value)
    return False


def _without_jumps(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...] | None:
    """The body of a loop without the `break` or `continue` that ends it; None where one stands elsewhere."""
    if not body:
        return body
    *before, last = body
    match last:
        case c.Jump():
            return tuple(before) if not _jumps(before) else None
        case c.If():
            then, otherwise = _without_jumps(last.then), _without_jumps(last.otherwise)
            if then is None or otherwise is None or _jumps(before):
                return None
            return (*before, replace(last, then=then, otherwise=otherwise))
    return None if _jumps(body) else body


def _jumps(stmts: tuple[c.Stmt, ...] | list[c.Stmt]) -> bool:
    """Whether one of them may leave the loop around them, or it is not known."""
    for stmt in stmts:
        match stmt:
            case c.Jump() | c.Verbatim():
                return True
            case c.If() if _jumps(stmt.then) or _jumps(stmt.otherwise):
                return True
            case c.Scope() if _jumps(stmt.body):
                return True
    return False
