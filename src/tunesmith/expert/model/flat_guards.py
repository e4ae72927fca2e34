"""Guards and grid-stride loops around what is done for one element: they tell where its indices end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tunesmith.csource.nodes import Binary, Declare, Expr, For, If, Jump, Name, Return, Stmt, Unary
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import assigned_in, declared_in, names_in
from tunesmith.expert.model.affine import BUILTINS, MIRROR, head_of, number, same_value, without_casts
from tunesmith.expert.model.geometry import BLOCK, THREAD, LaunchedKernel, Unknown, form_of, number_of
from tunesmith.expert.model.kernel import OutOfReach


@dataclass
class Peeled:
    """What is left, and what was taken off."""

    body: tuple[Stmt, ...]
    bounds: dict[str, Expr] = field(default_factory=dict)
    loops: dict[str, Expr] = field(default_factory=dict)  # index of a grid-stride loop -> its start
    types: dict[str, str] = field(default_factory=dict)
    line: int = 0


class Guards:
    def __init__(self, kernel: LaunchedKernel) -> None:
        self._normal, self._loops, self._scenarios = kernel.normal, kernel.loops, kernel.scenarios
        self._definitions = kernel.normal.definitions

    def peel(self) -> Peeled:
        """Takes guards and grid-stride loops off, down to what is done for one element."""
        found = Peeled(self._normal.body)
        before: list[Stmt] = []
        rest = list(found.body)
        while rest:
            stmt = rest[0]
            if isinstance(stmt, If) and _is_exit(stmt.then) and not stmt.otherwise:
                guards = self._guards(stmt.condition, "||", (">=", ">"))
                if guards is not None and self._bound(found, guards):
                    rest.pop(0)
                    found.line = found.line or stmt.line
                    continue
            if len(rest) == 1 and isinstance(stmt, If) and not stmt.otherwise:
                guards = self._guards(stmt.condition, "&&", ("<", "<="))
                if guards is not None and self._bound(found, guards):
                    rest = list(stmt.then)
                    found.line = found.line or stmt.line
                    continue
            if len(rest) == 1 and isinstance(stmt, For):
                head = head_of(stmt)
                role = self._loops[head.index].role if head is not None and head.index in self._loops else ""
                if head is not None and role in ("grid", "task") and self._covers(head.start, head.step):
                    for name in sorted(assigned_in(stmt.body) & set(declared_in(before))):
                        raise OutOfReach.at(stmt.line, f"'{name}' is carried from one element to the next")
                    found.loops[head.index] = substitute(head.start, self._definitions)
                    found.bounds[head.index] = head.stop
                    found.types[head.index] = head.type
                    found.line = found.line or stmt.line
                    rest = list(stmt.body)
                    continue
            if isinstance(stmt, Declare):
                before.append(rest.pop(0))
                continue
            break
        found.body = (*before, *rest)
        found.line = found.line or next((s.line for s in rest if getattr(s, "line", 0)), 0)
        return found

    def _guards(self, condition: Expr, joint: str, ops: tuple[str, str]) -> list[tuple[str, Expr]] | None:
        """(index, extent) of every comparison in the condition; None where it tests anything else."""
        if isinstance(condition, Binary) and condition.op == joint:
            first = self._guards(condition.left, joint, ops)
            second = self._guards(condition.right, joint, ops)
            return None if first is None or second is None else first + second
        if isinstance(condition, Unary) and condition.op == "!":
            opposite = ("<", "<=") if ops[0] == ">=" else (">=", ">")
            return self._guards(condition.operand, "&&" if joint == "||" else "||", opposite)
        if not isinstance(condition, Binary):
            return None
        op, left, right = condition.op, condition.left, condition.right
        if self._name(right) is not None and self._name(left) is None and op in MIRROR:
            op, left, right = MIRROR[op], right, left
        name = self._name(left)
        if name is None or op not in ops or names_in(right) & (set(self._normal.ids) | THREAD | BLOCK):
            return None
        if not names_in(right) <= set(self._normal.types) | set(BUILTINS):
            return None
        return [(name, right if op in ("<", ">=") else Binary("+", right, number(1)))]

    def _name(self, expr: Expr) -> str | None:
        plain = without_casts(expr)
        if isinstance(plain, Name) and (plain.name in self._normal.ids or plain.name in THREAD | BLOCK):
            return plain.name
        for name, id_ in self._normal.ids.items():
            if without_casts(id_.expr) == plain:
                return name
        return None

    def _bound(self, found: Peeled, guards: list[tuple[str, Expr]]) -> bool:
        for name, extent in guards:
            known = found.bounds.get(name)
            if known is not None and not same_value(known, extent):
                return False
        found.bounds.update(guards)
        return True

    def _covers(self, start: Expr, step: Expr) -> bool:
        """Whether a grid-stride loop steps by as many as start together, in every scenario."""
        begin, by = substitute(start, self._definitions), substitute(step, self._definitions)
        for scenario in self._scenarios:
            form = form_of(begin, scenario)
            if form is None:
                return False
            moving = [axis for axis in range(3) if form.per_block[axis]]
            if len(moving) != 1:
                return False
            numbers = scenario.numbers
            try:
                if number_of(by, numbers) != form.per_block[moving[0]] * scenario.grid[moving[0]]:
                    return False
            except Unknown:
                return False
        return True


def _is_exit(body: Sequence[Stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], Return | Jump)
