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

The online softmax of a single thread, which finds a maximum and a sum of exponentials in one pass, as two.

    if (v > m) { l = l * expf(m - v) + 1; m = v; } else l += expf(v - m);

    n = fmaxf(m, v);  l = l * expf(m - n) + expf(v - n);  m = n;

Both leave the largest v in m and the sum of expf(v - m) in l, whatever the order of the turns: a maximum
first, then a sum, either of which can be shared out. What l held before is scaled once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.read.integers import MIRROR
from tunesmith.expert.read.model import JOINING, Operator
from tunesmith.expert.read.normal import Normal
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, function_effects, is_function
from tunesmith.source.substitution import rename_variables, substitute
from tunesmith.source.walk import declared_in, names_in, numbered_name

MAXIMA = frozenset({"fmaxf", "fmax", "max", "std::max", "std::fmax", "__hmax", "__vmaxs2", "umax", "fmax_rn"})
MINIMA = frozenset({"fminf", "fmin", "min", "std::min", "std::fmin", "__hmin", "umin"})
_FUSED = frozenset({"fmaf", "fma", "mad", "__fmaf_rn", "__hfma"})
_ADDS = frozenset({"__hadd", "__fadd_rn", "__dadd_rn"})
EXPONENTIALS = frozenset({"expf", "__expf", "exp", "exp2f", "exp2", "native_exp", "native_exp2"})
_TOGETHER = Effects.MASK | Effects.BARRIER


@dataclass(frozen=True)
class Update:
    """How a statement changes a total; `combine` is the function that it calls for it."""

    operator: Operator
    combine: str = ""


def set_to(stmt: c.Stmt) -> tuple[str, c.Expr | None]:
    """The variable that a statement sets and what to: `l += e` is l, l + e. ("", None) for any other."""
    match stmt:
        case c.Evaluate(expr=c.Assign(op=op, target=c.Name(name=name) as own, value=value)):
            return name, value if op == "=" else c.Binary(op[:-1], own, value)
        case c.Evaluate(expr=c.Unary(op="++" | "--" as op, operand=c.Name(name=name) as own)):
            return name, c.Binary(op[0], own, c.Number("1", 1))
    return "", None


def update_of(stmt: c.Stmt, name: str) -> Update | None:
    """How a statement updates the variable, if it does nothing else with it."""
    if isinstance(stmt, c.If) and len(stmt.then) == 1 and not stmt.otherwise:
        variable, (target, value) = c.Name(name), set_to(stmt.then[0])
        is_set = target == name and value is not None and name not in walk.names_in(value)
        if not is_set or value is None:
            return None
        return _match_extremum_choice(stmt.condition, value, variable)
    target, value = set_to(stmt)
    return _match_joined_update(value, name) if target == name and value is not None else None


def _match_joined_update(value: c.Expr, name: str) -> Update | None:
    """`sum + a`, `max(max(m, a), b)`, `fmaf(a, b, sum)`, `e > m ? e : m`."""
    variable = c.Name(name)
    if isinstance(value, c.Ternary):
        beside = value.no if value.yes == variable else value.yes
        is_choice = variable in (value.yes, value.no) and name not in walk.names_in(beside)
        return _match_extremum_choice(value.condition, value.yes, value.no) if is_choice else None
    found = _match_join_operator(value)
    if found is None:
        return None
    update, operands = found
    inside = [operand for operand in operands if name in walk.names_in(operand)]
    if len(inside) != 1:
        return None
    inner = update if inside[0] == variable else _match_joined_update(inside[0], name)
    return inner if inner is not None and inner.operator == update.operator else None


def _match_join_operator(value: c.Expr) -> tuple[Update, tuple[c.Expr, ...]] | None:
    """What joins the operands of an expression, in any order, and these."""
    match value:
        case c.Binary(op=op, left=left, right=right) if op in JOINING:
            return Update(JOINING[op]), (left, right)
        case c.Binary(op="-", left=left, right=right):
            return Update("+"), (left, c.Unary("-", right))
        case c.Call(function=function, args=(a, b, added)) if function in _FUSED:
            return Update("+"), (c.Binary("*", a, b), added)
        case c.Call(function=function, args=(left, right)) if function in MAXIMA | MINIMA | _ADDS:
            operator: Operator = "max" if function in MAXIMA else "min" if function in MINIMA else "+"
            return Update(operator, function), (left, right)
    return None


def _match_extremum_choice(condition: c.Expr, chosen: c.Expr, other: c.Expr) -> Update | None:
    """`chosen` is taken over `other` where the condition holds: the larger or the smaller of the two?"""
    match condition:
        case c.Binary(op=op, left=left, right=right) if op in MIRROR:
            if (left, right) == (other, chosen):
                return Update("max" if MIRROR[op] in (">", ">=") else "min")
            if (left, right) == (chosen, other):
                return Update("max" if op in (">", ">=") else "min")
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
        accounted += _count_occurrences(stmt, name)
    return found if accounted == _count_occurrences(body, name) else None


def _count_occurrences(part: c.Stmt | Sequence[c.Stmt], name: str) -> int:
    return sum(1 for node in walk.nodes_in(part) if node == c.Name(name))


def carried_variables(body: Sequence[c.Stmt], declared: frozenset[str]) -> frozenset[str]:
    """Variables from outside that the body writes, also in part."""
    found = (walk.root_variable(target) for target in walk.writes_in(body))
    return frozenset(name for name, through in found if name is not None and not through) - declared


def is_set_first(body: Sequence[c.Stmt], name: str) -> bool:
    """Whether the variable is set before it is read, also by the head of a loop: then nothing is carried."""
    for stmt in body:
        first = stmt.init[0] if isinstance(stmt, c.For) and stmt.init else stmt
        target, value = set_to(first)
        if target == name and value is not None and name not in walk.names_in(value):
            return True
        if name in walk.names_in(stmt):
            return False
    return True


def find_cooperative_call(body: Sequence[c.Stmt]) -> c.Call | None:
    """The first call in which threads wait for each other or take each other's values."""
    known = (call for call in walk.calls_in(body) if is_function(call.function))
    return next((call for call in known if function_effects(call.function) & _TOGETHER), None)


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
                for target in _find_updated_elements(stmt.body):
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
        if array not in self._types or array in self._aliased or find_cooperative_call(loop.body) is not None:
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
        tested = {id(n) for branch in nodes if isinstance(branch, c.If) for n in walk.nodes_in(branch)}
        if any(node == target and id(node) in tested for node in nodes):
            return False  # perhaps it is never touched
        uses = sum(1 for node in nodes if node == c.Name(array))
        return uses == sum(1 for node in nodes if node == target)

    def _held(self, target: c.Index, loop: c.For, before: list[c.Stmt]) -> tuple[c.For, c.Stmt] | None:
        """The loop on a variable, and the store behind it; the variable is set in `before`."""
        assert isinstance(target.base, c.Name)
        array = target.base.name
        start = _taken_from(before, target)
        op = "=" if start is not None else "+="
        if start is None:
            nodes = list(walk.nodes_in(loop))
            sums = [n for n in nodes if isinstance(n, c.Assign) and n.op == "+=" and n.target == target]
            if len(sums) != sum(1 for node in nodes if node == target):
                return None  # it is read as well
        name = walk.fresh_name(f"{array}_here", self._taken)
        self.types[name] = self._types[array]
        before.append(c.Declare(self._types[array], name, start or c.Number("0", 0), line=loop.line))
        held = walk.map_nodes((loop,), lambda n: c.Name(name) if n == target else n)[0]
        assert isinstance(held, c.For)
        return held, c.Evaluate(c.Assign(op, target, c.Name(name)), loop.line)


def _taken_from(before: list[c.Stmt], target: c.Index) -> c.Expr | None:
    """What the element is set to, with only declarations behind that; the statement goes. Else None."""
    assert isinstance(target.base, c.Name)
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.target == target:
            value = stmt.expr.value
            if stmt.expr.op != "=" or target.base.name in walk.names_in(value):
                return None
            del before[at]
            return value
        if not isinstance(stmt, c.Declare) or target.base.name in walk.names_in(stmt):
            return None
    return None


def _find_updated_elements(body: Sequence[c.Stmt]) -> list[c.Index]:
    """Elements that are set from what they were."""
    found: dict[c.Index, None] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Assign) or not isinstance(node.target, c.Index):
            continue
        if node.op in ("+=", "*=", "-=") or node.target in list(walk.nodes_in(node.value)):
            found[node.target] = None
    return list(found)


@dataclass(frozen=True)
class _Online:
    largest: str
    total: str
    value: c.Expr
    exponential: str
    maximum: str
    before: tuple[c.Stmt, ...]  # declarations that the value needs


def with_two_passes(normal: Normal, maximum: str) -> Normal | None:
    """The kernel with such loops taken apart; None where it has none. `maximum`: the language's own."""
    types = dict(normal.types)
    body = _split_online_loops(normal.body, types, maximum, 0)
    return None if body == normal.body else replace(normal, body=body, types=types)


def _split_online_loops(
    stmts: Sequence[c.Stmt], types: dict[str, c.Type], maximum: str, depth: int
) -> tuple[c.Stmt, ...]:
    done: list[c.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, c.For):
            online = _match_online_softmax(stmt, maximum)
            if online is not None and {online.largest, online.total} <= set(types):
                done += _build_two_passes(stmt, online, types)
                continue
            if depth < 20:
                stmt = replace(stmt, body=_split_online_loops(stmt.body, types, maximum, depth + 1))
        done.append(stmt)
    return tuple(done)


def _match_online_softmax(loop: c.For, maximum: str) -> _Online | None:
    if len(loop.init) != 1 or not isinstance(loop.init[0], c.Declare):
        return None
    declares: list[c.Stmt] = []
    rest = list(loop.body)
    while rest and isinstance(rest[0], c.Declare) and not _maximum_of(rest[0]):
        declares.append(rest.pop(0))
    found = _by_branch(rest, maximum) or _by_maximum(rest)
    if found is None:
        return None
    carried = {found.largest, found.total}
    if carried & names_in(found.value) or carried & set().union(*map(names_in, declares), set()):
        return None
    return replace(found, before=tuple(declares))


def _by_branch(rest: Sequence[c.Stmt], maximum: str) -> _Online | None:
    match rest:
        case [
            c.If(condition=c.Binary(op=op, left=left, right=right), then=(*grows, moved), otherwise=(last,))
        ]:
            value, largest = (left, right) if op in (">", ">=") else (right, left)
            if op not in MIRROR or moved != c.Evaluate(c.Assign("=", largest, value)):
                return None
            total, added = set_to(last)
            if not isinstance(largest, c.Name) or not isinstance(added, c.Binary) or added.op != "+":
                return None
            function = _match_exponential(added.right, value, largest)
            grown = _match_rescaled_sum(grows, total, largest, value)
            one = grown[1] if grown is not None and grown[0] == function else None
            if added.left == c.Name(total) and isinstance(one, c.Number) and one.value == 1 and function:
                return _Online(largest.name, total, value, function, maximum, ())
    return None


def _by_maximum(rest: Sequence[c.Stmt]) -> _Online | None:
    match rest:
        case [c.Declare(name=newest, init=init), *grows, last] if grows:
            largest, moved = set_to(last)
            maximum, new = c.Name(largest), c.Name(newest)
            if not isinstance(init, c.Call) or _maximum_of(rest[0]) is None or maximum not in init.args:
                return None
            value = init.args[1] if init.args[0] == maximum else init.args[0]
            total = set_to(grows[0])[0]
            grown = _match_rescaled_sum(grows, total, maximum, new) if moved == new else None
            if grown is not None and _match_exponential(grown[1], value, new) == grown[0]:
                return _Online(largest, total, value, grown[0], init.function, ())
    return None


def _maximum_of(stmt: c.Stmt) -> c.Call | None:
    init = stmt.init if isinstance(stmt, c.Declare) else None
    return init if isinstance(init, c.Call) and init.function in MAXIMA and len(init.args) == 2 else None


def _match_rescaled_sum(
    stmts: Sequence[c.Stmt], total: str, old: c.Name, new: c.Expr
) -> tuple[str, c.Expr] | None:
    """`l = l * exp(old - new) + e`, in one statement or two -> the exponential's name, e"""
    variable: c.Expr = c.Name(total)
    grown = variable
    for stmt in stmts:
        name, value = set_to(stmt)
        if name != total or value is None:
            return None
        grown = substitute(value, {total: grown})
    if not isinstance(grown, c.Binary) or grown.op != "+" or len(stmts) > 2:
        return None
    for product, other in ((grown.left, grown.right), (grown.right, grown.left)):
        if isinstance(product, c.Binary) and product.op == "*" and variable in (product.left, product.right):
            factor = product.right if product.left == variable else product.left
            function = _match_exponential(factor, old, new)
            if function is not None and total not in names_in(other):
                return function, other
    return None


def _match_exponential(expr: c.Expr, left: c.Expr, right: c.Expr) -> str | None:
    """The function of `exp(left - right)`."""
    match expr:
        case c.Call(function=function, args=(c.Binary(op="-", left=a, right=b),)):
            return function if function in EXPONENTIALS and (a, b) == (left, right) else None
    return None


def _build_two_passes(loop: c.For, online: _Online, types: dict[str, c.Type]) -> list[c.Stmt]:
    largest, total = c.Name(online.largest), c.Name(online.total)
    head = loop.init[0]
    assert isinstance(head, c.Declare)
    had, was, added = (c.Name(numbered_name(f"{name}_{word}", types)) for name, word in (
        (online.total, "before"), (online.largest, "before"), (online.total, "sum")))  # fmt: skip
    for variable in (had, added):
        types[variable.name] = types[online.total]
    types[was.name] = types[online.largest]
    line = loop.line
    first = c.Evaluate(c.Assign("=", largest, c.Call(online.maximum, (largest, online.value))), line)
    again = {name: numbered_name(f"{name}_again", types) for name in (head.name, *declared_in(online.before))}
    for name, fresh in again.items():
        types[fresh] = types.get(name, head.type)
    power = c.Call(online.exponential, (c.Binary("-", online.value, largest),))
    second = c.Evaluate(c.Assign("+=", added, power), line)
    scale = c.Call(online.exponential, (c.Binary("-", was, largest),))
    return [
        c.Declare(types[had.name], had.name, total, line=line),
        c.Declare(types[was.name], was.name, largest, line=line),
        replace(loop, body=(*online.before, first)),
        c.Declare(types[added.name], added.name, c.Number("0.0f", 0.0), line=line),
        *rename_variables((replace(loop, body=(*online.before, second)),), again),
        c.Evaluate(c.Assign("=", total, c.Binary("+", c.Binary("*", had, scale), added)), line),
    ]
