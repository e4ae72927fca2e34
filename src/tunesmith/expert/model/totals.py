"""Totals in the body of a loop: variables, or elements of memory, that every turn only adds to.

sum += e;   sum = sum + e;   sum = fmaf(a, b, sum);   m = fmaxf(m, e);   m = max(e, m);
if (e > m) m = e;   m = e > m ? e : m;   n += flag;   bits |= e;

Elements that a loop updates in memory, turn after turn, held in a variable while it runs.

    out[i] = 0;                                        float out_here = 0;
    for (j = 0; j < n; j++) out[i] += a[i * n + j];    for (...) out_here += a[i * n + j];
                                                       out[i] = out_here;

Without the first line the sum starts at 0 and is added to the element behind the loop. Only where nothing
else in the loop touches the array, and the element is the same in every turn. Whether other threads touch it
is looked at later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.expert.model.kernel import Operator
from tunesmith.expert.model.normal import Normal

MAXIMA = frozenset({"fmaxf", "fmax", "max", "std::max", "std::fmax", "__hmax", "__vmaxs2", "umax", "fmax_rn"})
MINIMA = frozenset({"fminf", "fmin", "min", "std::min", "std::fmin", "__hmin", "umin"})
_FUSED = frozenset({"fmaf", "fma", "mad", "__fmaf_rn", "__hfma"})
_ADDS = frozenset({"__hadd", "__fadd_rn", "__dadd_rn"})
_ASSIGNED: dict[str, Operator] = {"+=": "+", "-=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}
_JOINED: dict[str, Operator] = {"+": "+", "*": "*", "&": "&", "|": "|", "^": "^"}
COOPERATION = (
    "__syncthreads", "barrier", "work_group_", "__shfl", "sub_group_", "__syncwarp", "__ballot", "__any",
    "__all", "__reduce_", "__match", "__activemask",
)  # fmt: skip


@dataclass(frozen=True)
class Update:
    """How a statement changes a total; `combine` is the function that it calls for it."""

    operator: Operator
    combine: str = ""


def update_of(stmt: c.Stmt, name: str) -> Update | None:
    """How a statement updates the variable, if it does nothing else with it."""
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=target), value=value)) if target == name:
            return _joined(value, name)
        case c.Evaluate(expr=c.Assign(op=op, target=c.Name(name=target), value=value)):
            if target != name or name in walk.names_in(value) or op not in _ASSIGNED:
                return None
            return Update(_ASSIGNED[op])
        case c.Evaluate(expr=c.Unary(op="++" | "--", operand=c.Name(name=target))) if target == name:
            return Update("+")
        case c.If(condition=condition, then=(c.Evaluate(expr=c.Assign() as assign),), otherwise=()):
            if assign.op != "=" or assign.target != c.Name(name):
                return None
            return _chosen(condition, assign.value, c.Name(name))
    return None


def _joined(value: c.Expr, name: str) -> Update | None:
    own = c.Name(name)
    match value:
        case c.Binary(op=op, left=left, right=right) if op in _JOINED:
            if (left == own) != (right == own) and not _occurs_beside(own, left, right):
                return Update(_JOINED[op])
            # (sum + a) + b
            if op in ("+", "*") and isinstance(left, c.Binary) and name not in walk.names_in(right):
                inner = _joined(left, name)
                return inner if inner is not None and inner.operator == op else None
            return None
        case c.Binary(op="-", left=left, right=right) if left == own and name not in walk.names_in(right):
            return Update("+")
        case c.Call(function=function, args=(left, right)) if (left == own) != (right == own):
            if _occurs_beside(own, left, right):
                return None
            if function in MAXIMA:
                return Update("max", function)
            if function in MINIMA:
                return Update("min", function)
            return Update("+", function) if function in _ADDS else None
        case c.Call(function=function, args=(left, right)) if function in MAXIMA | MINIMA:
            # max(max(m, a), b)
            for part, rest in ((left, right), (right, left)):
                found = _joined(part, name) if name in walk.names_in(part) else None
                if found is not None and name not in walk.names_in(rest):
                    kind: Operator = "max" if function in MAXIMA else "min"
                    return found if found.operator == kind else None
            return None
        case c.Call(function=function, args=(a, b, added)) if function in _FUSED:
            return Update("+") if added == own and name not in walk.names_in(a) | walk.names_in(b) else None
        case c.Ternary(condition=condition, yes=yes, no=no) if (yes == own) != (no == own):
            other = no if yes == own else yes
            if name in walk.names_in(other):
                return None
            if no == own:
                return _chosen(condition, other, own)
            # m > e ? m : e
            return _chosen(condition, own, other, swap=True)
    return None


def _occurs_beside(own: c.Name, left: c.Expr, right: c.Expr) -> bool:
    return own.name in walk.names_in(right if left == own else left)


def _chosen(condition: c.Expr, chosen: c.Expr, other: c.Expr, swap: bool = False) -> Update | None:
    """`chosen` is taken over `other` where the condition holds: the larger or the smaller of the two?"""
    total = chosen if swap else other
    element = other if swap else chosen
    if isinstance(total, c.Name) and total.name in walk.names_in(element):
        return None
    match condition:
        case c.Binary(op=">" | ">=", left=left, right=right) if (left, right) == (chosen, other):
            return Update("max")
        case c.Binary(op="<" | "<=", left=left, right=right) if (left, right) == (other, chosen):
            return Update("max")
        case c.Binary(op="<" | "<=", left=left, right=right) if (left, right) == (chosen, other):
            return Update("min")
        case c.Binary(op=">" | ">=", left=left, right=right) if (left, right) == (other, chosen):
            return Update("min")
    return None


def update_in(body: Sequence[c.Stmt], name: str) -> Update | None:
    """The one way in which the body updates the variable; None if it reads it too or updates it otherwise."""
    found: Update | None = None
    accounted = 0
    for stmt in walk.statements_in(body):
        update = update_of(stmt, name)
        if update is None:
            continue
        if found is not None and found.operator != update.operator:
            return None
        found = update if found is None or not found.combine else found
        accounted += _occurrences(stmt, name)
    return found if accounted == _occurrences_in(body, name) else None


def _occurrences(part: c.Stmt, name: str) -> int:
    return sum(1 for node in walk.nodes_in(part) if node == c.Name(name))


def _occurrences_in(body: Sequence[c.Stmt], name: str) -> int:
    return sum(_occurrences(stmt, name) for stmt in body)


def carried(body: Sequence[c.Stmt], declared: frozenset[str]) -> frozenset[str]:
    """Variables from outside that the body writes, also in part."""
    found = (walk.root(target) for target in walk.writes_in(body))
    return frozenset(name for name, through in found if name is not None and not through) - declared


def is_set_first(body: Sequence[c.Stmt], name: str) -> bool:
    """Whether every turn sets the variable before it reads it: then nothing is carried."""
    for stmt in body:
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
            assign = stmt.expr
            if assign.op == "=" and assign.target == c.Name(name) and name not in walk.names_in(assign.value):
                return True
        if name in walk.names_in(stmt):
            return False
    return True


def cooperates(body: Sequence[c.Stmt]) -> c.Call | None:
    return next(
        (n for n in walk.nodes_in(body) if isinstance(n, c.Call) and n.function.startswith(COOPERATION)), None
    )


def with_totals_in_variables(normal: Normal, aliases: Mapping[str, str]) -> Normal:
    work = _Holding(normal, aliases)
    body = work.block(normal.body)
    return replace(normal, body=body, types={**normal.types, **work.types}) if work.types else normal


class _Holding:
    def __init__(self, normal: Normal, aliases: Mapping[str, str]) -> None:
        self._types = {
            name: c.Type(type_.base) for name, type_ in normal.arrays.items() if type_.pointers == 1
        }
        self._types |= {name: c.Type(d.type.base) for name, d in normal.shared.items() if len(d.dims) <= 1}
        self._aliased = set(aliases) | set(aliases.values())
        self._taken = normal.names
        self.types: dict[str, c.Type] = {}

    def block(self, stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, c.For):
                after: list[c.Stmt] = []
                for target in _updated(stmt.body):
                    held = self._held(target, stmt, done) if self._may_be_held(target, stmt) else None
                    if held is not None:
                        stmt = held[0]
                        after.append(held[1])
                stmt = replace(stmt, body=self.block(stmt.body))
                done += [stmt, *after]
            else:
                done.append(walk.map_blocks(stmt, self.block) if isinstance(stmt, c.If) else stmt)
        return tuple(done)

    def _may_be_held(self, target: c.Index, loop: c.For) -> bool:
        array = target.base.name if isinstance(target.base, c.Name) else ""
        if array not in self._types or array in self._aliased or cooperates(loop.body) is not None:
            return False
        moving = walk.assigned_in((loop,)) | set(walk.declared_in((loop,)))
        loads = [node for node in walk.nodes_in(target.index) if isinstance(node, c.Index)]
        if walk.names_in(target.index) & moving or loads:
            return False
        nodes = list(walk.nodes_in((loop,)))
        if any(isinstance(n, c.Opaque | c.Verbatim | c.Return) for n in nodes):
            return False
        if any(isinstance(n, c.Jump) and n.word == "break" for n in nodes):
            return False
        uses = sum(1 for node in nodes if node == c.Name(array))
        return uses == sum(1 for node in nodes if node == target)

    def _held(self, target: c.Index, loop: c.For, before: list[c.Stmt]) -> tuple[c.For, c.Stmt] | None:
        """The loop on a variable, and the store behind it; the variable is set in `before`."""
        assert isinstance(target.base, c.Name)
        array = target.base.name
        set_at = _set_before(target, before)
        op, start = "=", c.Number("0", 0) if set_at is None else _value(before[set_at])
        if set_at is None:
            nodes = list(walk.nodes_in(loop))
            sums = [n for n in nodes if isinstance(n, c.Assign) and n.op == "+=" and n.target == target]
            if len(sums) != sum(1 for node in nodes if node == target):
                return None  # it is read as well
            op = "+="
        else:
            del before[set_at]
        name = walk.fresh_name(f"{array}_here", self._taken)
        self.types[name] = self._types[array]
        before.append(c.Declare(self._types[array], name, start, line=loop.line))
        held = walk.map_nodes((loop,), lambda n: c.Name(name) if n == target else n)[0]
        assert isinstance(held, c.For)
        return held, c.Evaluate(c.Assign(op, target, c.Name(name)), loop.line)


def _set_before(target: c.Index, before: Sequence[c.Stmt]) -> int | None:
    """Where the element is set, with nothing but declarations behind that; None where it is not."""
    assert isinstance(target.base, c.Name)
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.target == target:
            plain = stmt.expr.op == "=" and target.base.name not in walk.names_in(stmt.expr.value)
            return at if plain else None
        if not isinstance(stmt, c.Declare) or target.base.name in walk.names_in(stmt):
            return None
    return None


def _value(stmt: c.Stmt) -> c.Expr:
    assert isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign)
    return stmt.expr.value


def _updated(body: Sequence[c.Stmt]) -> list[c.Index]:
    """Elements that are set from what they were."""
    found: dict[c.Index, None] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Assign) or not isinstance(node.target, c.Index):
            continue
        if node.op in ("+=", "*=", "-=") or node.target in list(walk.nodes_in(node.value)):
            found[node.target] = None
    return list(found)
