"""The online softmax of a single thread, which finds a maximum and a sum of exponentials in one pass, as two.

    if (v > m) { l = l * expf(m - v) + 1; m = v; } else l += expf(v - m);

    n = fmaxf(m, v);  l = l * expf(m - n) + expf(v - n);  m = n;

Both leave the largest v in m and the sum of expf(v - m) in l, whatever the order of the turns: a maximum
first, then a sum, either of which can be shared out. What l held before is scaled once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.totals import MAXIMA

_EXPONENTIALS = frozenset({"expf", "__expf", "exp", "exp2f", "exp2", "native_exp", "native_exp2"})


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
    body = _block(normal.body, types, maximum, 0)
    return None if body == normal.body else replace(normal, body=body, types=types)


def _block(stmts: Sequence[c.Stmt], types: dict[str, c.Type], maximum: str, depth: int) -> tuple[c.Stmt, ...]:
    done: list[c.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, c.For):
            online = _online(stmt, maximum)
            if online is not None and {online.largest, online.total} <= set(types):
                done += _passes(stmt, online, types)
                continue
            if depth < 20:
                stmt = replace(stmt, body=_block(stmt.body, types, maximum, depth + 1))
        done.append(stmt)
    return tuple(done)


def _online(loop: c.For, maximum: str) -> _Online | None:
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
        case [c.If(condition=c.Binary(op=op, left=left, right=right), then=then, otherwise=(last,))]:
            value, largest = (left, right) if op in (">", ">=") else (right, left)
            if op not in (">", ">=", "<", "<=") or not isinstance(largest, c.Name):
                return None
            added = _added(last)
            if added is None or len(then) not in (2, 3):
                return None
            total, function = added[0], _exponential(added[1], value, largest)
            grown = _grown(then[:-1], total, largest, value)
            if function is None or grown is None or grown[0] != function or not _is_one(grown[1]):
                return None
            if then[-1] != c.Evaluate(c.Assign("=", largest, value)):
                return None
            return _Online(largest.name, total, value, function, maximum, ())
    return None


def _by_maximum(rest: Sequence[c.Stmt]) -> _Online | None:
    if len(rest) not in (3, 4) or not isinstance(rest[0], c.Declare):
        return None
    call = _maximum_of(rest[0])
    last = rest[-1]
    if call is None or not isinstance(last, c.Evaluate) or not isinstance(last.expr, c.Assign):
        return None
    newest, largest = c.Name(rest[0].name), last.expr.target
    if (
        last.expr != c.Assign("=", largest, newest)
        or not isinstance(largest, c.Name)
        or largest not in call.args
    ):
        return None
    value = call.args[1] if call.args[0] == largest else call.args[0]
    first = rest[1]
    if not isinstance(first, c.Evaluate) or not isinstance(first.expr, c.Assign):
        return None
    total = first.expr.target
    if not isinstance(total, c.Name):
        return None
    grown = _grown(rest[1:-1], total.name, largest, newest)
    function = None if grown is None else _exponential(grown[1], value, newest)
    if grown is None or function is None or grown[0] != function:
        return None
    return _Online(largest.name, total.name, value, function, call.function, ())


def _maximum_of(declare: c.Declare) -> c.Call | None:
    init = declare.init
    return init if isinstance(init, c.Call) and init.function in MAXIMA and len(init.args) == 2 else None


def _added(stmt: c.Stmt) -> tuple[str, c.Expr] | None:
    """`l += e` -> l, e"""
    match stmt:
        case c.Evaluate(expr=c.Assign(op="+=", target=c.Name(name=name), value=value)):
            return name, value
        case c.Evaluate(
            expr=c.Assign(op="=", target=c.Name(name=name), value=c.Binary(op="+", left=left, right=right))
        ):
            if left == c.Name(name):
                return name, right
    return None


def _grown(stmts: Sequence[c.Stmt], total: str, old: c.Name, new: c.Expr) -> tuple[str, c.Expr] | None:
    """`l = l * exp(old - new) + e`, in one statement or two -> the exponential's name, e"""
    own = c.Name(total)
    if len(stmts) == 2:
        match stmts[0]:
            case c.Evaluate(expr=c.Assign(op="*=", target=target, value=factor)) if target == own:
                pass
            case c.Evaluate(
                expr=c.Assign(op="=", target=target, value=c.Binary(op="*", left=left, right=factor))
            ):
                if target != own or left != own:
                    return None
            case _:
                return None
        added = _added(stmts[1])
        function = _exponential(factor, old, new)
        return None if added is None or added[0] != total or function is None else (function, added[1])
    match stmts[0] if len(stmts) == 1 else None:
        case c.Evaluate(expr=c.Assign(op="=", target=target, value=c.Binary(op="+", left=left, right=right))):
            if target != own:
                return None
            for product, other in ((left, right), (right, left)):
                if (
                    isinstance(product, c.Binary)
                    and product.op == "*"
                    and own in (product.left, product.right)
                ):
                    factor = product.right if product.left == own else product.left
                    function = _exponential(factor, old, new)
                    if function is not None and total not in names_in(other):
                        return function, other
    return None


def _exponential(expr: c.Expr, left: c.Expr, right: c.Expr) -> str | None:
    """The function of `exp(left - right)`."""
    match expr:
        case c.Call(function=function, args=(c.Binary(op="-", left=a, right=b),)):
            return function if function in _EXPONENTIALS and (a, b) == (left, right) else None
    return None


def _is_one(expr: c.Expr) -> bool:
    return isinstance(expr, c.Number) and expr.value == 1


def _passes(loop: c.For, online: _Online, types: dict[str, c.Type]) -> list[c.Stmt]:
    largest, total = c.Name(online.largest), c.Name(online.total)
    head = loop.init[0]
    assert isinstance(head, c.Declare)
    had, was, added = (c.Name(_fresh(f"{name}_{word}", types)) for name, word in (
        (online.total, "before"), (online.largest, "before"), (online.total, "sum")))  # fmt: skip
    for variable in (had, added):
        types[variable.name] = types[online.total]
    types[was.name] = types[online.largest]
    line = loop.line
    first = c.Evaluate(c.Assign("=", largest, c.Call(online.maximum, (largest, online.value))), line)
    again = {name: c.Name(_fresh(f"{name}_again", types)) for name in (head.name, *_declared(online.before))}
    for name, fresh in again.items():
        types[fresh.name] = types.get(name, head.type)
    before = tuple(
        replace(
            stmt, name=again[stmt.name].name, init=None if stmt.init is None else substitute(stmt.init, again)
        )
        for stmt in online.before
        if isinstance(stmt, c.Declare)
    )
    value = substitute(online.value, again)
    second = c.Evaluate(
        c.Assign("+=", added, c.Call(online.exponential, (c.Binary("-", value, largest),))), line
    )
    return [
        c.Declare(types[had.name], had.name, total, line=line),
        c.Declare(types[was.name], was.name, largest, line=line),
        replace(loop, body=(*online.before, first)),
        c.Declare(types[added.name], added.name, c.Number("0.0f", 0.0), line=line),
        replace(
            loop,
            init=(replace(head, name=again[head.name].name),),
            condition=None if loop.condition is None else substitute(loop.condition, again),
            step=tuple(substitute(step, again) for step in loop.step),
            body=(*before, second),
        ),
        c.Evaluate(c.Assign("=", total, _joined(online, had, was, added)), line),
    ]


def _joined(online: _Online, had: c.Name, was: c.Name, added: c.Name) -> c.Expr:
    scale = c.Call(online.exponential, (c.Binary("-", was, c.Name(online.largest)),))
    return c.Binary("+", c.Binary("*", had, scale), added)


def _declared(stmts: Sequence[c.Stmt]) -> list[str]:
    return [stmt.name for stmt in stmts if isinstance(stmt, c.Declare)]


def _fresh(name: str, types: dict[str, c.Type]) -> str:
    while name in types:
        name += "_"
    return name
