"""Early exits as branches: `if (c) return; rest` becomes `if (!c) { rest }`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.csource.nodes import Binary, Expr, For, If, Jump, Return, Stmt, Unary, While
from tunesmith.csource.walk import nodes_in
from tunesmith.expert.model.reach import OutOfReach

_MOST = 4000  # statements after rewriting; a branch that leaves only sometimes has its rest copied


def structured(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with no `return` and no `continue` of their own left; loops inside keep theirs."""
    return _Exits().block(tuple(stmts), 0)


class _Exits:
    def __init__(self) -> None:
        self._count = 0

    def block(self, stmts: tuple[Stmt, ...], depth: int) -> tuple[Stmt, ...]:
        if depth > 100:
            raise OutOfReach("its branches are nested more than 100 deep")
        done: list[Stmt] = []
        for at, stmt in enumerate(stmts):
            self._count += 1
            if self._count > _MOST:
                raise OutOfReach("too many branches leave the kernel early")
            match stmt:
                case Return() | Jump(word="continue"):
                    return tuple(done)
                case Jump():
                    raise OutOfReach(f"line {stmt.line}: a loop over elements stops early", stmt.line)
                case For() | While():
                    for node in nodes_in(stmt):
                        if isinstance(node, Return):
                            raise OutOfReach(f"line {node.line}: returns from inside a loop", node.line)
                case If() if _leaves(stmt):
                    rest = stmts[at + 1 :]
                    then = self.block((*stmt.then, *rest), depth + 1)
                    otherwise = self.block((*stmt.otherwise, *rest), depth + 1)
                    if then:
                        done.append(replace(stmt, then=then, otherwise=otherwise))
                    elif otherwise:
                        done.append(
                            replace(stmt, condition=negated(stmt.condition), then=otherwise, otherwise=())
                        )
                    return tuple(done)
            done.append(stmt)
        return tuple(done)


def _leaves(stmt: If) -> bool:
    """Whether some path through the branch leaves; loops inside answer for themselves."""
    pending: list[Stmt] = [*stmt.then, *stmt.otherwise]
    while pending:
        node = pending.pop()
        if isinstance(node, Return | Jump):
            return True
        if isinstance(node, If):
            pending += [*node.then, *node.otherwise]
    return False


def negated(condition: Expr) -> Expr:
    if isinstance(condition, Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, Binary) and condition.op in ("==", "!="):
        return Binary("!=" if condition.op == "==" else "==", condition.left, condition.right)
    return Unary("!", condition)
