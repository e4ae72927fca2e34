"""Variables that a loop moves by the same amount in every turn, as sums over the loop's index.

    for (int y = y0, y1 = min(rows, y0 + 4); y < y1; ++y, at += step) ... src[at]
    ->  for (int y = y0; y < y1; ++y) ... src[at + (y - y0) * step]

So are those that move at the end of a branch which, once it is not taken, is never taken again:
`for (...) if (y < rows) { ...; ++y; at += step; }`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer, is_of_type
from tunesmith.expert.model.affine import as_integer, head_of, is_narrow, number

Variables = Mapping[str, c.Declare]


def with_sums_over_loops(
    stmts: Sequence[c.Stmt],
    parameters: Mapping[str, c.Type],
    around: Variables | None = None,
    later: frozenset[str] = frozenset(),
) -> tuple[c.Stmt, ...]:
    """`stmts` have unique names; `around`: variables declared since the innermost loop around began, `later`:
    names that are used behind the statements."""
    inside = partial(with_sums_over_loops, parameters=parameters)
    done: list[c.Stmt] = []
    own = dict(around or {})
    for at, stmt in enumerate(stmts):
        used = later | walk.names_in(tuple(stmts[at + 1 :]))
        if isinstance(stmt, c.If | c.Scope):
            stmt = walk.map_blocks(stmt, partial(inside, around=own, later=used))
        else:
            stmt = walk.map_blocks(stmt, inside)
        if isinstance(stmt, c.For):
            stmt = _summed(stmt, own, used, parameters)
        if isinstance(stmt, c.Declare) and not stmt.is_array and not stmt.storage:
            own[stmt.name] = stmt
        done.append(stmt)
    return tuple(done)


@dataclass(frozen=True)
class _LoopMove:
    """A variable that moves by `by` in every turn."""

    name: str
    by: c.Expr
    type: str = "int"  # in which it is added up


def plain_head(loop: c.For) -> tuple[list[c.Declare], c.For]:
    """What the head declares besides the index, and nothing changes, is declared before the loop."""
    changed = walk.assigned_in(replace(loop, init=()))
    declared = [part for part in loop.init if isinstance(part, c.Declare)]
    if len(declared) != len(loop.init) or not declared:
        return [], loop
    fixed = [part for part in declared if part.name not in changed and part.init is not None]
    moving = [part for part in declared if part not in fixed]
    later = {name for part in fixed for name in walk.names_in(part)} & {part.name for part in moving}
    starts = {part.name: part.init for part in moving if part.init is not None and _is_plain(part.init)}
    if not fixed or len(moving) > 1 or not later <= starts.keys():
        return [], loop
    # `y1 = min(rows, y + 4)` is what y begins with.
    hoisted = [substitute((part,), starts)[0] for part in fixed]
    return [part for part in hoisted if isinstance(part, c.Declare)], replace(loop, init=tuple(moving))


def _summed(
    loop: c.For, declared: Variables, later: frozenset[str], parameters: Mapping[str, c.Type]
) -> c.For:
    def may_be_summed(update: _LoopMove) -> bool:
        own = declared.get(update.name)
        return (
            own is not None
            and is_integer(own.type)
            and not own.type.reference
            and not is_narrow(own.type)
            and update.name not in later
            and _times_assigned(loop, update.name) == 1
            and not walk.names_in(update.by) & (walk.assigned_in(loop) | set(walk.declared_in(loop)))
            and (loop.condition is None or update.name not in walk.names_in(loop.condition))
        )

    if len(loop.init) != 1 or not isinstance(loop.init[0], c.Declare):
        return loop
    index = loop.init[0].name
    in_head = [u for step in loop.step if (u := _update(step)) is not None and u.name != index]
    in_head = [replace(u, type=declared[u.name].type.base) for u in in_head if may_be_summed(u)]
    moved = {u.name for u in in_head}
    kept = tuple(step for step in loop.step if not _moves(step, moved))
    if any(moved & walk.names_in(step) for step in kept):
        return loop
    plain = replace(loop, step=kept)
    turn = _turn(plain)
    if turn is None:
        return loop
    types = {**parameters, **{name: own.type for name, own in declared.items()}, index: loop.init[0].type}
    if in_head:
        plain = replace(plain, body=_moved(plain.body, in_head, turn, types))
    return _with_updates_in_body(plain, turn, types, may_be_summed)


def _with_updates_in_body(
    loop: c.For, turn: c.Expr, types: Mapping[str, c.Type], may_be_summed: Callable[[_LoopMove], bool]
) -> c.For:
    guard = loop.body[0] if len(loop.body) == 1 and isinstance(loop.body[0], c.If) else None
    body = loop.body if guard is None or guard.otherwise else guard.then
    if any(isinstance(node, c.Jump) and node.word == "continue" for node in walk.nodes_in(body)):
        return loop
    found = [
        replace(u, type=types[u.name].base)
        for s in body
        if isinstance(s, c.Evaluate) and (u := _update(s.expr)) is not None and may_be_summed(u)
    ]
    if body is not loop.body:
        assert guard is not None
        if not _stays_false(guard.condition, found, types, loop):
            return loop
    if not found:
        return loop
    done: list[c.Stmt] = []
    passed: list[_LoopMove] = []
    for stmt in body:
        update = _update(stmt.expr) if isinstance(stmt, c.Evaluate) else None
        moved = next((u for u in found if update is not None and replace(u, type="int") == update), None)
        if moved is not None:
            passed.append(moved)
            continue
        waiting = [u for u in found if u not in passed]
        stmt = _moved((stmt,), waiting, turn, types)[0]
        done.append(_moved((stmt,), passed, c.Binary("+", turn, number(1)), types)[0])
    if body is loop.body or guard is None:
        return replace(loop, body=tuple(done))
    condition = substitute(guard.condition, _sums(found, turn, types))
    return replace(loop, body=(replace(guard, condition=condition, then=tuple(done)),))


def _stays_false(
    condition: c.Expr, found: Sequence[_LoopMove], types: Mapping[str, c.Type], loop: c.For
) -> bool:
    """Whether what moves only upwards is held against a bound that does not move, in its own type."""
    match condition:
        case c.Binary(op="<" | "<=", left=c.Name(name=name), right=bound):
            up = any(u.name == name and isinstance(u.by, c.Number) and u.by.value > 0 for u in found)
            alike = name in types and is_of_type(bound, types[name], types)
            return up and alike and not walk.names_in(bound) & walk.assigned_in(loop) and _is_plain(bound)
    return False


def _turn(loop: c.For) -> c.Expr | None:
    """How many turns have been before this one."""
    head = head_of(loop)
    if head is None or not isinstance(head.step, c.Number) or not isinstance(head.step.value, int):
        return None
    if head.step.value < 1 or walk.names_in(head.start) & walk.assigned_in(loop) or not _is_plain(head.start):
        return None
    index: c.Expr = c.Name(head.index)
    turn = index if head.start == number(0) else c.Binary("-", index, head.start)
    return turn if head.step.value == 1 else c.Binary("/", turn, head.step)


def _moved(
    stmts: Sequence[c.Stmt], updates: Sequence[_LoopMove], turn: c.Expr, types: Mapping[str, c.Type]
) -> tuple[c.Stmt, ...]:
    return substitute(tuple(stmts), _sums(updates, turn, types)) if updates else tuple(stmts)


def _sums(updates: Sequence[_LoopMove], turn: c.Expr, types: Mapping[str, c.Type]) -> dict[str, c.Expr]:
    """In each variable's own type, as adding up would be."""

    def added(update: _LoopMove) -> c.Expr:
        own, by = as_integer(c.Type(update.type), turn, types), update.by
        if by == number(1):
            return own
        return c.Binary("*", own, as_integer(c.Type(update.type), by, types))

    return {update.name: c.Binary("+", c.Name(update.name), added(update)) for update in updates}


def _moves(step: c.Expr, names: set[str]) -> bool:
    update = _update(step)
    return update is not None and update.name in names


def _update(expr: c.Expr) -> _LoopMove | None:
    found = None
    match expr:
        case c.Unary(op="++", operand=c.Name(name=name)):
            found = _LoopMove(name, number(1))
        case c.Assign(op="+=", target=c.Name(name=name), value=by):
            found = _LoopMove(name, by)
        case c.Assign(op="=", target=c.Name(name=name), value=c.Binary(op="+", left=left, right=right)):
            if left == c.Name(name):
                found = _LoopMove(name, right)
            elif right == c.Name(name):
                found = _LoopMove(name, left)
    if found is None or not _is_plain(found.by) or found.name in walk.names_in(found.by):
        return None
    return found


def _is_plain(expr: c.Expr) -> bool:
    """Arithmetic of names and numbers: the same whenever it is computed."""
    allowed = c.Number | c.Name | c.SizeOf | c.Binary | c.Cast
    return all(
        isinstance(node, allowed) and not (isinstance(node, c.Binary) and node.op == ",")
        for node in walk.nodes_in(expr)
    )


def _times_assigned(loop: c.For, name: str) -> int:
    counts: Counter[str] = Counter()
    for node in walk.nodes_in(loop):
        if isinstance(node, c.Assign):
            counts[walk.root(node.target)[0] or ""] += 1
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            counts[walk.root(node.operand)[0] or ""] += 1
        elif isinstance(node, c.Opaque | c.Verbatim):
            counts.update(node.names)
    return counts[name]
