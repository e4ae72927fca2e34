"""A function's early returns turned into branches, so that its body can stand in another function."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.c.nodes import (
    Assign,
    Binary,
    Evaluate,
    Expr,
    For,
    If,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)
from tunesmith.expert.c.unreadable import MAX_DEPTH, TooDeep, Unreadable
from tunesmith.expert.c.walk import statements_in


def without_returns(stmts: tuple[Stmt, ...], result: str | None, _depth: int = 0) -> tuple[Stmt, ...]:
    """`if (a) return; rest` as `if (a) {} else { rest }`: the same steps without leaving early.

    `result`: the variable that takes the value; None for void. Raises Unreadable where it cannot be done.
    """
    if _depth > MAX_DEPTH:
        raise TooDeep
    d = _depth + 1
    for at, stmt in enumerate(stmts):
        rest = stmts[at + 1 :]
        match stmt:
            case Return(value=value):
                given: tuple[Stmt, ...] = ()
                if result is not None and value is not None:
                    given = (Evaluate(Assign("=", Name(result), value), line=stmt.line),)
                return (*stmts[:at], *given)
            case If(then=then, otherwise=otherwise) if _returns(then) or _returns(otherwise):
                if _always_returns(then):
                    new = replace(
                        stmt,
                        then=without_returns(then, result, d),
                        otherwise=without_returns((*otherwise, *rest), result, d),
                    )
                elif _always_returns(otherwise) and otherwise:
                    new = replace(
                        stmt,
                        then=without_returns((*then, *rest), result, d),
                        otherwise=without_returns(otherwise, result, d),
                    )
                else:
                    raise Unreadable("it returns from places that cannot be joined into one")
                if not new.then:
                    new = replace(new, condition=_negated(new.condition), then=new.otherwise, otherwise=())
                return (*stmts[:at], new) if new.then or new.otherwise else stmts[:at]
            case For() | While() | Scope() if _returns((stmt,)):
                if isinstance(stmt, Scope):
                    return without_returns((*stmts[:at], *stmt.body, *rest), result, d)
                raise Unreadable("it returns from inside a loop")
            case _:
                continue
    return stmts


def _negated(condition: Expr) -> Expr:
    opposite = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
    if isinstance(condition, Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, Binary) and condition.op in ("==", "!="):
        return Binary(opposite[condition.op], condition.left, condition.right)
    return Unary("!", condition)  # of floats: !(a < b) is not a >= b


def _returns(stmts: tuple[Stmt, ...]) -> bool:
    return any(isinstance(node, Return) for node in statements_in(stmts))


def _always_returns(stmts: tuple[Stmt, ...]) -> bool:
    for stmt in reversed(stmts):
        if isinstance(stmt, Return):
            return True
        if isinstance(stmt, If) and stmt.otherwise:
            return _always_returns(stmt.then) and _always_returns(stmt.otherwise)
        if isinstance(stmt, Scope):
            return _always_returns(stmt.body)
        return False
    return False
