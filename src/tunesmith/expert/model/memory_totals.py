"""Elements that a loop updates in memory, turn after turn, held in a variable while it runs.

    out[i] = 0;                                        float out_here = 0;
    for (j = 0; j < n; j++) out[i] += a[i * n + j];    for (...) out_here += a[i * n + j];
                                                       out[i] = out_here;

Without the first line the sum starts at 0 and is added to the element behind the loop. Only where nothing
else in the loop touches the array, and the element is the same in every turn. Whether other threads touch it
is looked at later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.nodes import (
    Assign,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Index,
    Jump,
    Name,
    Number,
    Opaque,
    Return,
    Stmt,
    Type,
    Verbatim,
)
from tunesmith.csource.walk import assigned_in, declared_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.element_loops import cooperates
from tunesmith.expert.model.normal import Normal


def with_totals_in_variables(normal: Normal, aliases: Mapping[str, str]) -> Normal:
    work = _Holding(normal, aliases)
    body = work.block(normal.body)
    return replace(normal, body=body, types={**normal.types, **work.types}) if work.types else normal


class _Holding:
    def __init__(self, normal: Normal, aliases: Mapping[str, str]) -> None:
        self._types = {name: Type(type_.base) for name, type_ in normal.arrays.items() if type_.pointers == 1}
        self._types |= {name: Type(d.type.base) for name, d in normal.shared.items() if len(d.dims) <= 1}
        self._aliased = set(aliases) | set(aliases.values())
        self._taken = set(normal.types) | set(normal.ids) | set(declared_in(normal.body))
        self.types: dict[str, Type] = {}

    def block(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, If):
                stmt = replace(stmt, then=self.block(stmt.then), otherwise=self.block(stmt.otherwise))
            if isinstance(stmt, For):
                after: list[Stmt] = []
                for target in _updated(stmt.body):
                    held = self._held(target, stmt, done) if self._may_be_held(target, stmt) else None
                    if held is not None:
                        stmt = held[0]
                        after.append(held[1])
                stmt = replace(stmt, body=self.block(stmt.body))
                done += [stmt, *after]
            else:
                done.append(stmt)
        return tuple(done)

    def _may_be_held(self, target: Index, loop: For) -> bool:
        array = target.base.name if isinstance(target.base, Name) else ""
        if array not in self._types or array in self._aliased or cooperates(loop.body) is not None:
            return False
        moving = assigned_in((loop,)) | set(declared_in((loop,)))
        loads = [node for node in nodes_in(target.index) if isinstance(node, Index)]
        if names_in(target.index) & moving or loads:
            return False
        nodes = list(nodes_in((loop,)))
        if any(isinstance(n, Opaque | Verbatim | Return) for n in nodes):
            return False
        if any(isinstance(n, Jump) and n.word == "break" for n in nodes):
            return False
        uses = sum(1 for node in nodes if node == Name(array))
        return uses == sum(1 for node in nodes if node == target)

    def _held(self, target: Index, loop: For, before: list[Stmt]) -> tuple[For, Stmt] | None:
        """The loop on a variable, and the store behind it; the variable is set in `before`."""
        assert isinstance(target.base, Name)
        array = target.base.name
        set_at = _set_before(target, before)
        op, start = "=", Number("0", 0) if set_at is None else _value(before[set_at])
        if set_at is None:
            nodes = list(nodes_in(loop))
            sums = [n for n in nodes if isinstance(n, Assign) and n.op == "+=" and n.target == target]
            if len(sums) != sum(1 for node in nodes if node == target):
                return None  # it is read as well
            op = "+="
        else:
            del before[set_at]
        name, count = f"{array}_here", 2
        while name in self._taken:
            name, count = f"{array}_here_{count}", count + 1
        self._taken.add(name)
        self.types[name] = self._types[array]
        before.append(Declare(self._types[array], name, start, line=loop.line))
        held = map_statements((loop,), lambda e: map_expr(e, lambda n: Name(name) if n == target else n))[0]
        assert isinstance(held, For)
        return held, Evaluate(Assign(op, target, Name(name)), loop.line)


def _set_before(target: Index, before: Sequence[Stmt]) -> int | None:
    """Where the element is set, with nothing but declarations behind that; None where it is not."""
    assert isinstance(target.base, Name)
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign) and stmt.expr.target == target:
            plain = stmt.expr.op == "=" and target.base.name not in names_in(stmt.expr.value)
            return at if plain else None
        if not isinstance(stmt, Declare) or target.base.name in names_in(stmt):
            return None
    return None


def _value(stmt: Stmt) -> Expr:
    assert isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign)
    return stmt.expr.value


def _updated(body: Sequence[Stmt]) -> list[Index]:
    """Elements that are set from what they were."""
    found: dict[Index, None] = {}
    for node in nodes_in(body):
        if not isinstance(node, Assign) or not isinstance(node.target, Index):
            continue
        if node.op in ("+=", "*=", "-=") or node.target in list(nodes_in(node.value)):
            found[node.target] = None
    return list(found)
