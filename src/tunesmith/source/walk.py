"""Ways through the tree: children, rebuilding, and what a part of it uses, declares, writes and calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import fields, replace
from operator import attrgetter, is_
from typing import Any, TypeAlias, cast, get_args

from tunesmith.source import tree as c

Part: TypeAlias = c.Expr | c.Stmt | Iterable[c.Stmt]  # what the questions below may be asked of
Block: TypeAlias = Callable[[tuple[c.Stmt, ...]], tuple[c.Stmt, ...]]  # what is done with a block

_STATEMENTS = (
    c.Declare, c.Evaluate, c.If, c.For, c.While, c.Return, c.Jump, c.Scope, c.Verbatim, c.Alternative,
    c.MacroDefinition,
)  # fmt: skip
_LEAVES = (c.Name, c.Number, c.SizeOf, c.Opaque)
_UNREAD = (c.Opaque, c.Verbatim)
# Of every kind of node: its fields, and whether expressions or statements are in them.
_FIELDS: dict[type, tuple[tuple[str, bool], ...]] = {
    kind: tuple(
        (part.name, re.search(r"Expr|Stmt|Declare", str(part.type)) is not None) for part in fields(kind)
    )
    for kind in (*_STATEMENTS, *get_args(c.Expr))
}
_BELOW = {kind: tuple(name for name, is_below in parts if is_below) for kind, parts in _FIELDS.items()}
# Kinds of which every part below is one expression: most nodes are of these, and most time goes by on them.
_PLAIN: dict[type, Callable[[Any], tuple[c.Expr, ...]]] = {
    c.Binary: attrgetter("left", "right"),
    c.Index: attrgetter("base", "index"),
    c.Assign: attrgetter("target", "value"),
    c.Ternary: attrgetter("condition", "yes", "no"),
    c.Unary: lambda node: (node.operand,),
    c.Cast: lambda node: (node.value,),
    c.Member: lambda node: (node.base,),
    c.Evaluate: lambda node: (node.expr,),
}


def child_nodes(node: c.Expr | c.Stmt) -> tuple[c.Expr | c.Stmt, ...]:
    """The expressions and statements directly below, in the order of the text."""
    if (plain := _PLAIN.get(type(node))) is not None:
        return plain(node)
    if isinstance(node, c.Declare):
        return tuple(e for e in (node.align, *node.dims, node.init) if e is not None)
    if isinstance(node, c.While) and node.after:
        return (*node.body, node.condition)
    found: list[c.Expr | c.Stmt] = []
    for name in _BELOW[type(node)]:
        part = getattr(node, name)
        if part is not None:
            found += part if isinstance(part, tuple) else (part,)
    return tuple(found)


# What is directly below, from the last to the first; None: nothing ever is.
_BACKWARDS: dict[type, Callable[[Any], Iterable[c.Expr | c.Stmt]] | None] = {
    **{kind: (lambda node: reversed(child_nodes(node))) if names else None for kind, names in _BELOW.items()},
    **_PLAIN,
    c.Binary: attrgetter("right", "left"),
    c.Index: attrgetter("index", "base"),
    c.Assign: attrgetter("value", "target"),
    c.Ternary: attrgetter("no", "yes", "condition"),
}


def nodes_in(part: Part) -> Iterator[c.Expr | c.Stmt]:
    """Every node below and with `part`, in the order of the text."""
    pending: list[c.Expr | c.Stmt] = []
    if type(part) in _BELOW:
        pending.append(cast("c.Expr | c.Stmt", part))
    else:
        pending.extend(reversed(tuple(cast("Iterable[c.Stmt]", part))))
    take, add, below = pending.pop, pending.extend, _BACKWARDS
    while pending:
        node = take()
        yield node
        if (inside := below[type(node)]) is not None:
            add(inside(node))


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
        elif isinstance(node, _UNREAD):
            found |= node.names
    return frozenset(found)


def declared_in(part: Part) -> tuple[str, ...]:
    """Names of the variables declared at any depth, in order, once each."""
    return tuple(dict.fromkeys(node.name for node in nodes_in(part) if isinstance(node, c.Declare)))


def calls_in(part: Part) -> tuple[c.Call, ...]:
    return tuple(node for node in nodes_in(part) if isinstance(node, c.Call))


def root_variable(expr: c.Expr) -> tuple[str | None, bool]:
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
    targets: list[c.Expr] = []
    for node in nodes_in(part):
        if isinstance(node, c.Assign):
            targets.append(node.target)
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            targets.append(node.operand)
        elif isinstance(node, _UNREAD):
            found |= node.names
    return frozenset(found | {name for name, through in map(root_variable, targets) if name and not through})


def stored_in(part: Part) -> frozenset[str]:
    """Pointers and arrays through which assignments, ++ and -- write."""
    found = (root_variable(target) for target in writes_in(part))
    return frozenset(name for name, through in found if name is not None and through)


def numbered_name(want: str, taken: Container[str]) -> str:
    """The name, with the first number from 2 on that makes it unlike those that are taken."""
    name, number = want, 2
    while name in taken:
        name, number = f"{want}_{number}", number + 1
    return name


def fresh_name(want: str, taken: set[str]) -> str:
    """The same, and it is taken from now on."""
    name = numbered_name(want, taken)
    taken.add(name)
    return name


# -- rebuilding -------------------------------------------------------------------------------------


def map_expr(expr: c.Expr, fn: Callable[[c.Expr], c.Expr], _depth: int = 0) -> c.Expr:
    """The expression rebuilt from the leaves up, each rebuilt node passed through `fn`. A node whose parts
    come back as they were is not built again."""
    if _depth > c.MAX_DEPTH:
        raise c.TooDeep
    kind = type(expr)
    if kind in _LEAVES:
        return fn(expr)
    is_changed = False
    parts: list[Any] = []
    for name, is_below in _FIELDS[kind]:
        part = getattr(expr, name)
        if is_below and part is not None:
            if type(part) is tuple:
                made: Any = tuple([map_expr(each, fn, _depth + 1) for each in part])
                is_changed = is_changed or not all(map(is_, made, part))
            else:
                made = map_expr(part, fn, _depth + 1)
                is_changed = is_changed or made is not part
            part = made
        parts.append(part)
    return fn(kind(*parts) if is_changed else expr)


def map_below(expr: c.Expr, fn: Callable[[c.Expr], c.Expr]) -> c.Expr:
    """The expression with those directly below it passed through `fn`."""
    parts: list[Any] = []
    for name, is_below in _FIELDS[type(expr)]:
        part = getattr(expr, name)
        if is_below and isinstance(part, tuple):
            part = tuple([fn(each) for each in part])
        elif is_below and part is not None:
            part = fn(part)
        parts.append(part)
    return type(expr)(*parts)


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
        rebuilt = map_parts(stmt, on_expr or _return_unchanged, block)
        result = rebuilt if on_stmt is None else on_stmt(rebuilt)
        if isinstance(result, _STATEMENTS):
            done.append(result)
        else:
            done.extend(result)
    return tuple(done)


def map_nodes(stmts: Iterable[c.Stmt], fn: Callable[[c.Expr], c.Expr]) -> tuple[c.Stmt, ...]:
    """Every expression in the statements, also those inside others, passed through `fn`."""
    return map_statements(stmts, lambda expr: map_expr(expr, fn))


def _return_unchanged(expr: c.Expr) -> c.Expr:
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
        case c.Alternative(condition=condition, then=then, otherwise=otherwise):
            then, otherwise, inside = on_body(then), on_body(otherwise), on_body(stmt.inside)
            condition = on_expr(condition)
            return replace(stmt, condition=condition, then=then, otherwise=otherwise, inside=inside)
        case c.MacroDefinition(value=value):
            return replace(stmt, value=on_expr(value))
    return stmt


def map_blocks(stmt: c.Stmt, on_body: Block) -> c.Stmt:
    return map_parts(stmt, _return_unchanged, on_body)


def map_simple(stmt: c.Declare | c.Evaluate, on_expr: Callable[[c.Expr], c.Expr]) -> c.Declare | c.Evaluate:
    if isinstance(stmt, c.Evaluate):
        expr = on_expr(stmt.expr)
        return stmt if expr is stmt.expr else replace(stmt, expr=expr)
    init = None if stmt.init is None else on_expr(stmt.init)
    dims = tuple([on_expr(dim) for dim in stmt.dims])
    align = None if stmt.align is None else on_expr(stmt.align)
    if init is stmt.init and align is stmt.align and all(map(is_, dims, stmt.dims)):
        return stmt
    return replace(stmt, init=init, dims=dims, align=align)


def prepend_comments(stmts: Iterable[c.Stmt], comments: Iterable[c.Comment]) -> tuple[c.Stmt, ...]:
    """The first of the statements with these comments, ahead of its own."""
    found = tuple(stmts)
    if not found:
        return ()
    return replace(found[0], comments=(*comments, *found[0].comments)), *found[1:]


def map_types(stmts: Iterable[c.Stmt], fn: Callable[[c.Type], c.Type]) -> tuple[c.Stmt, ...]:
    """Every type of a declaration, cast, sizeof or braced value passed through `fn`."""

    def declared(stmt: c.Stmt) -> c.Stmt:
        return map_declared(stmt, lambda declare: replace(declare, type=fn(declare.type)))

    return map_statements(stmts, lambda expr: map_types_in(expr, fn), declared)


def map_declared(stmt: c.Stmt, fn: Callable[[c.Declare], c.Declare]) -> c.Stmt:
    """One statement with what it declares passed through `fn`, in the head of a `for` as well."""
    if isinstance(stmt, c.Declare):
        return fn(stmt)
    if isinstance(stmt, c.For):
        return replace(stmt, init=tuple([fn(p) if isinstance(p, c.Declare) else p for p in stmt.init]))
    return stmt


def map_types_in(expr: c.Expr, fn: Callable[[c.Type], c.Type]) -> c.Expr:
    def node(part: c.Expr) -> c.Expr:
        if isinstance(part, c.Cast | c.SizeOf):
            return replace(part, type=fn(part.type))
        if isinstance(part, c.Braces) and part.type is not None:
            return replace(part, type=fn(part.type))
        return part

    return map_expr(expr, node)


_MAX_COPIED = 4000  # statements: a branch that leaves only sometimes has what follows it copied


def without_exits(
    stmts: Iterable[c.Stmt], result: str | None = None, *, may_copy: bool = False
) -> tuple[c.Stmt, ...]:
    """`if (a) return; rest` as `if (a) {} else { rest }`: the same steps without leaving early.

    A `continue` of the loop around the statements counts as leaving; loops inside keep theirs. `result`: the
    variable that takes the value returned; None for void. `may_copy`: what follows a branch may be written
    twice. Raises Unreadable where it cannot be done.
    """
    return _Exits(result, may_copy).block(tuple(stmts), 0)


class _Exits:
    def __init__(self, result: str | None, may_copy: bool) -> None:
        self._result, self._may_copy = result, may_copy
        self._count = 0

    def block(self, stmts: tuple[c.Stmt, ...], depth: int) -> tuple[c.Stmt, ...]:
        if depth > c.MAX_DEPTH:
            raise c.TooDeep
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            self._count += 1
            if self._count > _MAX_COPIED:
                raise c.Unreadable("too many branches leave it early")
            rest = stmts[at + 1 :]
            match stmt:
                case c.Return(value=value) if self._result is not None and value is not None:
                    given = c.Assign("=", c.Name(self._result), value)
                    return (*done, c.Evaluate(given, line=stmt.line))
                case c.Return() | c.Jump(word="continue"):
                    return tuple(done)
                case c.Jump():
                    raise c.Unreadable("a loop over elements stops early", stmt.line)
                case c.For() | c.While() if _may_leave((stmt,)):
                    raise c.Unreadable("it returns from inside a loop", stmt.line)
                case c.Scope(body=body) if _may_leave(body):
                    return (*done, *self.block((*body, *rest), depth + 1))
                case c.If(then=then, otherwise=otherwise) if _may_leave((stmt,)):
                    if not (self._may_copy or _always_returns(then) or _always_returns(otherwise)):
                        raise c.Unreadable("it returns from places that cannot be joined into one")
                    then, otherwise = (self.block((*side, *rest), depth + 1) for side in (then, otherwise))
                    if then:
                        done.append(replace(stmt, then=then, otherwise=otherwise))
                    elif otherwise:
                        condition = negate_condition(stmt.condition)
                        done.append(replace(stmt, condition=condition, then=otherwise, otherwise=()))
                    return tuple(done)
            done.append(stmt)
        return tuple(done)


def _may_leave(stmts: Iterable[c.Stmt]) -> bool:
    """Whether some path through the statements leaves them; the jumps of loops inside stay in there."""
    for stmt in stmts:
        match stmt:
            case c.Return() | c.Jump():
                return True
            case c.If() if _may_leave(stmt.then) or _may_leave(stmt.otherwise):
                return True
            case c.Scope(body=body) if _may_leave(body):
                return True
            case c.For() | c.While() if any(isinstance(node, c.Return) for node in nodes_in(stmt.body)):
                return True
    return False


def negate_condition(condition: c.Expr) -> c.Expr:
    if isinstance(condition, c.Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, c.Binary) and condition.op in ("==", "!="):
        return c.Binary("!=" if condition.op == "==" else "==", condition.left, condition.right)
    return c.Unary("!", condition)  # of floats: !(a < b) is not a >= b


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
