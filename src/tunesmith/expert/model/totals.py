"""Totals in the body of a loop: variables that every turn only adds to, multiplies, or takes the largest of.

sum += e;   sum = sum + e;   sum = fmaf(a, b, sum);   m = fmaxf(m, e);   m = max(e, m);
if (e > m) m = e;   m = e > m ? e : m;   n += flag;   bits |= e;
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.csource.nodes import Assign, Binary, Call, Evaluate, Expr, If, Name, Stmt, Ternary, Unary
from tunesmith.csource.walk import names_in, nodes_in, root, statements_in
from tunesmith.expert.model.kernel import Operator

MAXIMA = frozenset({"fmaxf", "fmax", "max", "std::max", "std::fmax", "__hmax", "__vmaxs2", "umax", "fmax_rn"})
MINIMA = frozenset({"fminf", "fmin", "min", "std::min", "std::fmin", "__hmin", "umin"})
_FUSED = frozenset({"fmaf", "fma", "mad", "__fmaf_rn", "__hfma"})
_ADDS = frozenset({"__hadd", "__fadd_rn", "__dadd_rn"})
_ASSIGNED: dict[str, Operator] = {"+=": "+", "-=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}
_JOINED: dict[str, Operator] = {"+": "+", "*": "*", "&": "&", "|": "|", "^": "^"}


@dataclass(frozen=True)
class Update:
    """How a statement changes a total; `combine` is the function that it calls for it."""

    operator: Operator
    combine: str = ""


def update_of(stmt: Stmt, name: str) -> Update | None:
    """How a statement updates the variable, if it does nothing else with it."""
    match stmt:
        case Evaluate(expr=Assign(op="=", target=Name(name=target), value=value)) if target == name:
            return _joined(value, name)
        case Evaluate(expr=Assign(op=op, target=Name(name=target), value=value)):
            if target != name or name in names_in(value) or op not in _ASSIGNED:
                return None
            return Update(_ASSIGNED[op])
        case Evaluate(expr=Unary(op="++" | "--", operand=Name(name=target))) if target == name:
            return Update("+")
        case If(condition=condition, then=(Evaluate(expr=Assign() as assign),), otherwise=()):
            if assign.op != "=" or assign.target != Name(name):
                return None
            return _chosen(condition, assign.value, Name(name))
    return None


def _joined(value: Expr, name: str) -> Update | None:
    own = Name(name)
    match value:
        case Binary(op=op, left=left, right=right) if op in _JOINED:
            if (left == own) != (right == own) and not _occurs_beside(own, left, right):
                return Update(_JOINED[op])
            # (sum + a) + b
            if op in ("+", "*") and isinstance(left, Binary) and name not in names_in(right):
                inner = _joined(left, name)
                return inner if inner is not None and inner.operator == op else None
            return None
        case Binary(op="-", left=left, right=right) if left == own and name not in names_in(right):
            return Update("+")
        case Call(function=function, args=(left, right)) if (left == own) != (right == own):
            if _occurs_beside(own, left, right):
                return None
            if function in MAXIMA:
                return Update("max", function)
            if function in MINIMA:
                return Update("min", function)
            return Update("+", function) if function in _ADDS else None
        case Call(function=function, args=(left, right)) if function in MAXIMA | MINIMA:
            # max(max(m, a), b)
            for part, rest in ((left, right), (right, left)):
                found = _joined(part, name) if name in names_in(part) else None
                if found is not None and name not in names_in(rest):
                    kind: Operator = "max" if function in MAXIMA else "min"
                    return found if found.operator == kind else None
            return None
        case Call(function=function, args=(a, b, c)) if function in _FUSED:
            return Update("+") if c == own and name not in names_in(a) | names_in(b) else None
        case Ternary(condition=condition, yes=yes, no=no) if (yes == own) != (no == own):
            other = no if yes == own else yes
            if name in names_in(other):
                return None
            if no == own:
                return _chosen(condition, other, own)
            # m > e ? m : e
            return _chosen(condition, own, other, swap=True)
    return None


def _occurs_beside(own: Name, left: Expr, right: Expr) -> bool:
    return own.name in names_in(right if left == own else left)


def _chosen(condition: Expr, chosen: Expr, other: Expr, swap: bool = False) -> Update | None:
    """`chosen` is taken over `other` where the condition holds: the larger or the smaller of the two?"""
    total = chosen if swap else other
    element = other if swap else chosen
    if isinstance(total, Name) and total.name in names_in(element):
        return None
    match condition:
        case Binary(op=">" | ">=", left=left, right=right) if (left, right) == (chosen, other):
            return Update("max")
        case Binary(op="<" | "<=", left=left, right=right) if (left, right) == (other, chosen):
            return Update("max")
        case Binary(op="<" | "<=", left=left, right=right) if (left, right) == (chosen, other):
            return Update("min")
        case Binary(op=">" | ">=", left=left, right=right) if (left, right) == (other, chosen):
            return Update("min")
    return None


def update_in(body: Sequence[Stmt], name: str) -> Update | None:
    """The one way in which the body updates the variable; None if it reads it too or updates it otherwise."""
    found: Update | None = None
    accounted = 0
    for stmt in statements_in(body):
        update = update_of(stmt, name)
        if update is None:
            continue
        if found is not None and found.operator != update.operator:
            return None
        found = update if found is None or not found.combine else found
        accounted += _occurrences(stmt, name)
    return found if accounted == _occurrences_in(body, name) else None


def _occurrences(part: Stmt, name: str) -> int:
    return sum(1 for node in nodes_in(part) if node == Name(name))


def _occurrences_in(body: Sequence[Stmt], name: str) -> int:
    return sum(_occurrences(stmt, name) for stmt in body)


def carried(body: Sequence[Stmt], declared: frozenset[str]) -> frozenset[str]:
    """Variables from outside that the body writes, also in part."""
    found: set[str] = set()
    for node in nodes_in(body):
        target: Expr | None = None
        if isinstance(node, Assign):
            target = node.target
        elif isinstance(node, Unary) and node.op in ("++", "--"):
            target = node.operand
        if target is not None:
            name, through = root(target)
            if name is not None and not through and name not in declared:
                found.add(name)
    return frozenset(found)


def is_set_first(body: Sequence[Stmt], name: str) -> bool:
    """Whether every turn sets the variable before it reads it: then nothing is carried."""
    for stmt in body:
        if isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign):
            assign = stmt.expr
            if assign.op == "=" and assign.target == Name(name) and name not in names_in(assign.value):
                return True
        if name in names_in(stmt):
            return False
    return True
