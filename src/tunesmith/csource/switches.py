"""How the cases of a switch end."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c


def without_break(stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...] | None:
    """What a case does before it ends; None where it goes on."""
    match stmts[-1] if stmts else None:
        case c.Jump("break"):
            return stmts[:-1]
        case c.Return():
            return stmts
        case c.Scope(body=body) as scope:
            inner = without_break(body)
            return None if inner is None else (*stmts[:-1], replace(scope, body=inner))
    return None


def leaves_switch(stmts: tuple[c.Stmt, ...]) -> bool:
    """Whether a break inside of a branch ends the switch, not a loop."""
    for stmt in stmts:
        match stmt:
            case c.Jump("break"):
                return True
            case c.If(then=then, otherwise=otherwise):
                if leaves_switch((*then, *otherwise)):
                    return True
            case c.Scope(body=body):
                if leaves_switch(body):
                    return True
            case c.Verbatim():
                return True
    return False
