"""Variables that every turn of a loop sets before it reads them, declared inside the loop.

    float4 v;  __half2 *parts = (__half2 *)&v;        for (i ...) {
    for (i ...) {                                         float4 v;  __half2 *parts = (__half2 *)&v;
        v = x[i];  ... parts[0] ...         ->            v = x[i];  ... parts[0] ...
    }                                                 }

So nothing of them is carried from turn to turn. Every byte of the variable has to be written, as a whole or
through a pointer to its parts, before anything of it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import int_value
from tunesmith.csource.types import byte_size
from tunesmith.expert.model.affine import head_of, trips

_MOST = 256  # bytes of one variable


@dataclass(frozen=True)
class TurnVariable:
    """A variable and the pointers to it, each name with the bytes of an element that it reaches."""

    declares: tuple[c.Declare, ...]
    size: int
    parts: Mapping[str, int]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(declare.name for declare in self.declares)


def with_scratch_in_loops(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """At the top level of a kernel; names are each declared once."""
    moved: dict[int, list[c.Declare]] = {}
    for scratch in _found(body):
        users = [
            at
            for at, stmt in enumerate(body)
            if stmt not in scratch.declares and walk.names_in(stmt) & scratch.names
        ]
        loop = body[users[0]] if len(users) == 1 else None
        if not isinstance(loop, c.For) or walk.names_in(_head(loop)) & scratch.names:
            continue
        if _is_written_first(loop.body, scratch):
            moved.setdefault(users[0], []).extend(scratch.declares)
    gone = [declare for declares in moved.values() for declare in declares]
    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        if at in moved and isinstance(stmt, c.For):
            stmt = replace(stmt, body=(*moved[at], *stmt.body))
        if stmt not in gone:
            done.append(stmt)
    return tuple(done)


def _head(loop: c.For) -> tuple[c.Stmt, ...]:
    tests = (*loop.step, *(() if loop.condition is None else (loop.condition,)))
    return (*loop.init, *(c.Evaluate(test) for test in tests))


def _found(body: Sequence[c.Stmt]) -> list[TurnVariable]:
    declares = [stmt for stmt in body if isinstance(stmt, c.Declare)]
    changed = walk.assigned_in([s for s in body if not isinstance(s, c.Declare)])
    pointers: dict[str, list[c.Declare]] = {}
    for stmt in declares:
        target = _variable(stmt.init) if stmt.type.pointers == 1 and not stmt.dims else ""
        if target and stmt.name not in changed:
            pointers.setdefault(target, []).append(stmt)
    found: list[TurnVariable] = []
    for own in declares:
        size = _bytes(own)
        if own.init is not None or own.storage or own.type.is_pointer or own.type.reference or size is None:
            continue
        parts = {one.name: byte_size(one.type.base) or 0 for one in pointers.get(own.name, [])}
        if own.dims:
            parts[own.name] = byte_size(own.type.base) or 0
        if parts and all(parts.values()):
            found.append(TurnVariable((own, *pointers.get(own.name, [])), size, parts))
    return found


def _variable(init: c.Expr | None) -> str:
    """The variable that `(T *)&v` points to."""
    while isinstance(init, c.Cast):
        init = init.value
    match init:
        case c.Unary(op="&", operand=c.Name(name=name)):
            return name
    return ""


def _bytes(declare: c.Declare) -> int | None:
    size = byte_size(declare.type.base)
    for dim in declare.dims:
        count = int_value(dim)
        size = None if size is None or count is None else size * count
    return size if size is not None and 0 < size <= _MOST else None


def _is_written_first(body: Sequence[c.Stmt], scratch: TurnVariable) -> bool:
    left = set(range(scratch.size))
    for stmt in body:
        if not left:
            return True
        if not walk.names_in(stmt) & scratch.names:
            continue
        written = _written(stmt, scratch)
        if written is None:
            return False
        left -= written
    return not left


def _written(stmt: c.Stmt, scratch: TurnVariable) -> set[int] | None:
    """The bytes that a statement sets; None where it does anything else with the variable."""
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=target, value=value)):
            if walk.names_in(value) & scratch.names:
                return None
            match target:
                case c.Name(name=name) if name == scratch.declares[0].name and not scratch.declares[0].dims:
                    return set(range(scratch.size))
                case c.Index(base=c.Name(name=name), index=index) if name in scratch.parts:
                    at, size = int_value(index), scratch.parts[name]
                    return None if at is None else set(range(at * size, (at + 1) * size))
        case c.For(body=(c.Evaluate(expr=c.Assign(op="=", target=target, value=value)),)):
            head = head_of(stmt)
            count = None if head is None else trips(head)
            if head is None or count is None or walk.names_in(value) & scratch.names:
                return None
            match target, head.start, head.step:
                case c.Index(c.Name(name=name), c.Name(name=own)), c.Number(value=0), c.Number(value=1):
                    if name in scratch.parts and own == head.index:
                        return set(range(count * scratch.parts[name]))
    return None
