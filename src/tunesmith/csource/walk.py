"""Ways through the tree: children, rebuilding, and what a part of it uses, declares, writes and calls."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from tunesmith.csource import nodes as c

Part: TypeAlias = c.Expr | c.Stmt | Iterable[c.Stmt]  # what the questions below may be asked of
Block: TypeAlias = Callable[[tuple[c.Stmt, ...]], tuple[c.Stmt, ...]]  # what is done with a block

_STATEMENTS = (c.Declare, c.Evaluate, c.If, c.For, c.While, c.Return, c.Jump, c.Scope, c.Verbatim)


def children(node: c.Expr | c.Stmt) -> tuple[c.Expr | c.Stmt, ...]:
    """The expressions and statements directly below, in the order of the text."""
    match node:
        case c.Unary(operand=operand):
            return (operand,)
        case c.Binary(left=left, right=right):
            return (left, right)
        case c.Assign(target=target, value=value):
            return (target, value)
        case c.Ternary(condition=condition, yes=yes, no=no):
            return (condition, yes, no)
        case c.Call(args=args):
            return args
        case c.Index(base=base, index=index):
            return (base, index)
        case c.Member(base=base):
            return (base,)
        case c.Cast(value=value):
            return (value,)
        case c.Braces(items=items):
            return items
        case c.Declare(init=init, dims=dims, align=align):
            return tuple(e for e in (align, *dims, init) if e is not None)
        case c.Evaluate(expr=expr):
            return (expr,)
        case c.If(condition=condition, then=then, otherwise=otherwise):
            return (condition, *then, *otherwise)
        case c.For(init=init, condition=condition, step=step, body=body):
            return (*init, *(() if condition is None else (condition,)), *step, *body)
        case c.While(condition=condition, body=body, after=after):
            return (*body, condition) if after else (condition, *body)
        case c.Return(value=value):
            return () if value is None else (value,)
        case c.Scope(body=body):
            return body
    return ()


def nodes_in(part: Part) -> Iterator[c.Expr | c.Stmt]:
    """Every node below and with `part`, in the order of the text."""
    pending: list[c.Expr | c.Stmt] = []
    if isinstance(part, c.Expr | c.Stmt):
        pending.append(part)
    else:
        pending.extend(reversed(tuple(part)))
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def expressions_in(part: Part) -> Iterator[c.Expr]:
    """Every expression, also those inside others."""
    return (node for node in nodes_in(part) if not isinstance(node, _STATEMENTS))


def statements_in(part: Part) -> Iterator[c.Stmt]:
    return (node for node in nodes_in(part) if isinstance(node, _STATEMENTS))


def names_in(part: Part) -> frozenset[str]:
    """Names that are used; a declared name only where it is also used."""
    found: set[str] = set()
    for node in nodes_in(part):
        if isinstance(node, c.Name):
            found.add(node.name)
        elif isinstance(node, c.Opaque | c.Verbatim):
            found |= node.names
    return frozenset(found)


def declared_in(part: Part) -> tuple[str, ...]:
    """Names of the variables declared at any depth, in order, once each."""
    return tuple(dict.fromkeys(node.name for node in nodes_in(part) if isinstance(node, c.Declare)))


def calls_in(part: Part) -> tuple[c.Call, ...]:
    return tuple(node for node in nodes_in(part) if isinstance(node, c.Call))


def root(expr: c.Expr) -> tuple[str | None, bool]:
    """The variable an lvalue belongs to, and whether it is reached through a pointer or array index.

    `v`, `v.x` and `((half2 *)&v)[j]` are v itself; `p[i]`, `p[i].x` and `p->x` are reached through p.
    """
    through = False
    while True:
        match expr:
            case c.Name(name=name):
                return name, through
            case c.Index(base=base):
                address = base
                while isinstance(address, c.Cast) or (isinstance(address, c.Binary) and address.op in "+-"):
                    address = address.value if isinstance(address, c.Cast) else address.left
                if isinstance(address, c.Unary) and address.op == "&":
                    expr = address.operand
                else:
                    expr, through = address, True
            case c.Member(base=base, arrow=arrow):
                expr, through = base, through or arrow
            case c.Unary(op="*", operand=operand):
                expr, through = operand, True
            case c.Unary(op="++" | "--", operand=operand):
                expr = operand
            case c.Cast(value=value):
                expr = value
            case _:
                return None, through


def writes_in(part: Part) -> Iterator[c.Expr]:
    """The lvalues that assignments, ++ and -- change."""
    for node in nodes_in(part):
        if isinstance(node, c.Assign):
            yield node.target
        elif isinstance(node, c.Unary) and node.op in ("++", "--"):
            yield node.operand


def assigned_in(part: Part) -> frozenset[str]:
    """Variables that are themselves written, also in part (`v.x = `), or whose address is taken.

    A store through `p[i]` does not write p: see `stored_in`. Text that was not understood may write
    every name in it. Passing a variable to a function by reference cannot be seen here.
    """
    found: set[str] = set()
    for node in nodes_in(part):
        target: c.Expr | None = None
        if isinstance(node, c.Assign):
            target = node.target
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            target = node.operand
        elif isinstance(node, c.Opaque | c.Verbatim):
            found |= node.names
        if target is not None:
            name, through = root(target)
            if name is not None and not through:
                found.add(name)
    return frozenset(found)


def stored_in(part: Part) -> frozenset[str]:
    """Pointers and arrays through which assignments, ++ and -- write."""
    found = (root(target) for target in writes_in(part))
    return frozenset(name for name, through in found if name is not None and through)


def numbered(want: str, taken: Container[str]) -> str:
    """The name, with the first number from 2 on that makes it unlike those that are taken."""
    name, number = want, 2
    while name in taken:
        name, number = f"{want}_{number}", number + 1
    return name


def fresh_name(want: str, taken: set[str]) -> str:
    """The same, and it is taken from now on."""
    name = numbered(want, taken)
    taken.add(name)
    return name


# -- rebuilding -------------------------------------------------------------------------------------


def map_expr(expr: c.Expr, fn: Callable[[c.Expr], c.Expr], _depth: int = 0) -> c.Expr:
    """The expression rebuilt from the leaves up, each rebuilt node passed through `fn`."""
    if _depth > c.MAX_DEPTH:
        raise c.TooDeep
    d = _depth + 1
    match expr:
        case c.Unary(operand=operand):
            expr = c.Unary(expr.op, map_expr(operand, fn, d), expr.postfix)
        case c.Binary(left=left, right=right):
            expr = c.Binary(expr.op, map_expr(left, fn, d), map_expr(right, fn, d))
        case c.Assign(target=target, value=value):
            expr = c.Assign(expr.op, map_expr(target, fn, d), map_expr(value, fn, d))
        case c.Ternary(condition=condition, yes=yes, no=no):
            expr = c.Ternary(map_expr(condition, fn, d), map_expr(yes, fn, d), map_expr(no, fn, d))
        case c.Call(args=args):
            expr = c.Call(expr.function, tuple([map_expr(a, fn, d) for a in args]), expr.template_args)
        case c.Index(base=base, index=index):
            expr = c.Index(map_expr(base, fn, d), map_expr(index, fn, d))
        case c.Member(base=base):
            expr = c.Member(map_expr(base, fn, d), expr.field, expr.arrow)
        case c.Cast(value=value):
            expr = c.Cast(expr.type, map_expr(value, fn, d))
        case c.Braces(items=items):
            expr = c.Braces(tuple([map_expr(i, fn, d) for i in items]), expr.type)
        case c.Name() | c.Number() | c.SizeOf() | c.Opaque():
            pass
    return fn(expr)


def map_statements(
    stmts: Iterable[c.Stmt],
    on_expr: Callable[[c.Expr], c.Expr] | None = None,
    on_stmt: Callable[[c.Stmt], c.Stmt | Iterable[c.Stmt]] | None = None,
    _depth: int = 0,
) -> tuple[c.Stmt, ...]:
    """Statements rebuilt from the inside out.

    `on_expr` is given each whole expression of a statement (wrap `map_expr` to reach every node in it);
    `on_stmt` each rebuilt statement, for which it may give back one, several or none. The declarations in
    the head of a `for` are expressions' homes but no statements of their own: only `on_expr` sees into them.
    """
    if _depth > c.MAX_DEPTH:
        raise c.TooDeep

    def block(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return map_statements(body, on_expr, on_stmt, _depth + 1)

    done: list[c.Stmt] = []
    for stmt in stmts:
        rebuilt = map_parts(stmt, on_expr or _unchanged, block)
        result = rebuilt if on_stmt is None else on_stmt(rebuilt)
        if isinstance(result, _STATEMENTS):
            done.append(result)
        else:
            done.extend(result)
    return tuple(done)


def map_nodes(stmts: Iterable[c.Stmt], fn: Callable[[c.Expr], c.Expr]) -> tuple[c.Stmt, ...]:
    """Every expression in the statements, also those inside others, passed through `fn`."""
    return map_statements(stmts, lambda expr: map_expr(expr, fn))


def _unchanged(expr: c.Expr) -> c.Expr:
    return expr


def map_parts(
    stmt: c.Stmt,
    on_expr: Callable[[c.Expr], c.Expr],
    on_body: Block,
    on_simple: Callable[[c.Declare | c.Evaluate], c.Declare | c.Evaluate] | None = None,
) -> c.Stmt:
    """One statement with its whole expressions and its blocks passed through these, in this order.

    `on_simple` takes declarations and plain expressions, those in the head of a `for` as well, as a whole.
    """
    simple = on_simple or (lambda part: map_simple(part, on_expr))
    match stmt:
        case c.Declare() | c.Evaluate():
            return simple(stmt)
        case c.If(condition=condition, then=then, otherwise=otherwise):
            condition = on_expr(condition)
            return replace(stmt, condition=condition, then=on_body(then), otherwise=on_body(otherwise))
        case c.For(condition=condition):
            return replace(
                stmt,
                init=tuple([simple(part) for part in stmt.init]),
                condition=None if condition is None else on_expr(condition),
                step=tuple([on_expr(step) for step in stmt.step]),
                body=on_body(stmt.body),
            )
        case c.While(condition=condition):
            return replace(stmt, condition=on_expr(condition), body=on_body(stmt.body))
        case c.Return(value=value):
            return stmt if value is None else replace(stmt, value=on_expr(value))
        case c.Scope():
            return replace(stmt, body=on_body(stmt.body))
    return stmt


def map_blocks(stmt: c.Stmt, on_body: Block) -> c.Stmt:
    return map_parts(stmt, _unchanged, on_body)


def map_simple(stmt: c.Declare | c.Evaluate, on_expr: Callable[[c.Expr], c.Expr]) -> c.Declare | c.Evaluate:
    if isinstance(stmt, c.Evaluate):
        return replace(stmt, expr=on_expr(stmt.expr))
    return replace(
        stmt,
        init=None if stmt.init is None else on_expr(stmt.init),
        dims=tuple([on_expr(dim) for dim in stmt.dims]),
        align=None if stmt.align is None else on_expr(stmt.align),
    )


def map_types(stmts: Iterable[c.Stmt], fn: Callable[[c.Type], c.Type]) -> tuple[c.Stmt, ...]:
    """Every type of a declaration, cast, sizeof or braced value passed through `fn`."""

    def declared(stmt: c.Stmt) -> c.Stmt:
        if isinstance(stmt, c.Declare):
            return replace(stmt, type=fn(stmt.type))
        if isinstance(stmt, c.For):
            init = [replace(p, type=fn(p.type)) if isinstance(p, c.Declare) else p for p in stmt.init]
            return replace(stmt, init=tuple(init))
        return stmt

    return map_statements(stmts, lambda expr: map_types_in(expr, fn), declared)


def map_types_in(expr: c.Expr, fn: Callable[[c.Type], c.Type]) -> c.Expr:
    def node(part: c.Expr) -> c.Expr:
        if isinstance(part, c.Cast | c.SizeOf):
            return replace(part, type=fn(part.type))
        if isinstance(part, c.Braces) and part.type is not None:
            return replace(part, type=fn(part.type))
        return part

    return map_expr(expr, node)


def without_returns(stmts: tuple[c.Stmt, ...], result: str | None, _depth: int = 0) -> tuple[c.Stmt, ...]:
    """`if (a) return; rest` as `if (a) {} else { rest }`: the same steps without leaving early.

    `result`: the variable that takes the value; None for void. Raises Unreadable where it cannot be done.
    """
    if _depth > c.MAX_DEPTH:
        raise c.TooDeep
    d = _depth + 1
    for at, stmt in enumerate(stmts):
        rest = stmts[at + 1 :]
        match stmt:
            case c.Return(value=value):
                given: tuple[c.Stmt, ...] = ()
                if result is not None and value is not None:
                    given = (c.Evaluate(c.Assign("=", c.Name(result), value), line=stmt.line),)
                return (*stmts[:at], *given)
            case c.If(then=then, otherwise=otherwise) if _returns(then) or _returns(otherwise):
                if _always_returns(then):
                    otherwise = (*otherwise, *rest)
                elif _always_returns(otherwise):
                    then = (*then, *rest)
                else:
                    raise c.Unreadable("it returns from places that cannot be joined into one")
                then, otherwise = without_returns(then, result, d), without_returns(otherwise, result, d)
                new = replace(stmt, then=then, otherwise=otherwise)
                if not new.then:
                    new = replace(new, condition=negated(new.condition), then=new.otherwise, otherwise=())
                return (*stmts[:at], new) if new.then or new.otherwise else stmts[:at]
            case c.For() | c.While() | c.Scope() if _returns((stmt,)):
                if isinstance(stmt, c.Scope):
                    return without_returns((*stmts[:at], *stmt.body, *rest), result, d)
                raise c.Unreadable("it returns from inside a loop")
            case _:
                continue
    return stmts


def negated(condition: c.Expr) -> c.Expr:
    if isinstance(condition, c.Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, c.Binary) and condition.op in ("==", "!="):
        return c.Binary("!=" if condition.op == "==" else "==", condition.left, condition.right)
    return c.Unary("!", condition)  # of floats: !(a < b) is not a >= b


def _returns(stmts: tuple[c.Stmt, ...]) -> bool:
    return any(isinstance(node, c.Return) for node in statements_in(stmts))


def _always_returns(stmts: tuple[c.Stmt, ...]) -> bool:
    for stmt in reversed(stmts):
        if isinstance(stmt, c.Return):
            return True
        if isinstance(stmt, c.If) and stmt.otherwise:
            return _always_returns(stmt.then) and _always_returns(stmt.otherwise)
        if isinstance(stmt, c.Scope):
            return _always_returns(stmt.body)
        return False
    return False
