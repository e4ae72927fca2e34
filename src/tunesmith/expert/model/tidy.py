"""Statements before they are read: exits as branches, every variable its own name, `while` as `for`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.expert.c import nodes as c
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import assigned_in, names_in, nodes_in
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.structures import structures, without_structures

_MOST = 4000  # statements after rewriting; a branch that leaves only sometimes has its rest copied


def structured(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """The statements with no `return` and no `continue` of their own left; loops inside keep theirs."""
    return _Exits().block(tuple(stmts), 0)


class _Exits:
    def __init__(self) -> None:
        self._count = 0

    def block(self, stmts: tuple[c.Stmt, ...], depth: int) -> tuple[c.Stmt, ...]:
        if depth > 100:
            raise OutOfReach("its branches are nested more than 100 deep")
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            self._count += 1
            if self._count > _MOST:
                raise OutOfReach("too many branches leave the kernel early")
            match stmt:
                case c.Return() | c.Jump(word="continue"):
                    return tuple(done)
                case c.Jump():
                    raise OutOfReach(f"line {stmt.line}: a loop over elements stops early", stmt.line)
                case c.For() | c.While():
                    for node in nodes_in(stmt):
                        if isinstance(node, c.Return):
                            raise OutOfReach(f"line {node.line}: returns from inside a loop", node.line)
                case c.If() if _leaves(stmt):
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


def _leaves(stmt: c.If) -> bool:
    """Whether some path through the branch leaves; loops inside answer for themselves."""
    pending: list[c.Stmt] = [*stmt.then, *stmt.otherwise]
    while pending:
        node = pending.pop()
        if isinstance(node, c.Return | c.Jump):
            return True
        if isinstance(node, c.If):
            pending += [*node.then, *node.otherwise]
    return False


def negated(condition: c.Expr) -> c.Expr:
    if isinstance(condition, c.Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, c.Binary) and condition.op in ("==", "!="):
        return c.Binary("!=" if condition.op == "==" else "==", condition.left, condition.right)
    return c.Unary("!", condition)


# -- statements before they are read: every variable its own name, `while` as `for`, structures taken apart


def tidy(body: tuple[c.Stmt, ...], source: c.Source, parameters: Iterable[str]) -> tuple[c.Stmt, ...]:
    renamed = _Unique(set(parameters)).block(body, {}, 0)
    shaped = _with_loops(_joined(renamed), 0)
    return without_structures(shaped, structures(source))


class _Unique:
    """Gives every declaration a name of its own; blocks for their own sake dissolve."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def block(self, stmts: Sequence[c.Stmt], names: dict[str, c.Expr], depth: int) -> tuple[c.Stmt, ...]:
        if depth > 100:
            raise OutOfReach("its statements are nested more than 100 deep")
        done: list[c.Stmt] = []
        for stmt in stmts:
            match stmt:
                case c.Scope(body=body):
                    done += self.block(body, dict(names), depth + 1)
                case c.Declare():
                    done.append(self.declare(stmt, names))
                case c.If():
                    done.append(
                        replace(
                            stmt,
                            condition=substitute(stmt.condition, names),
                            then=self.block(stmt.then, dict(names), depth + 1),
                            otherwise=self.block(stmt.otherwise, dict(names), depth + 1),
                        )
                    )
                case c.For():
                    inner = dict(names)
                    init = tuple(
                        self.declare(part, inner)
                        if isinstance(part, c.Declare)
                        else replace(part, expr=substitute(part.expr, inner))
                        for part in stmt.init
                    )
                    done.append(
                        replace(
                            stmt,
                            init=init,
                            condition=None if stmt.condition is None else substitute(stmt.condition, inner),
                            step=tuple(substitute(step, inner) for step in stmt.step),
                            body=self.block(stmt.body, inner, depth + 1),
                        )
                    )
                case c.While():
                    body = self.block(stmt.body, dict(names), depth + 1)
                    done.append(replace(stmt, condition=substitute(stmt.condition, names), body=body))
                case _:
                    done += substitute((stmt,), names)
        return tuple(done)

    def declare(self, stmt: c.Declare, names: dict[str, c.Expr]) -> c.Declare:
        fresh, count = stmt.name, 2
        while fresh in self._taken:
            fresh, count = f"{stmt.name}_{count}", count + 1
        self._taken.add(fresh)
        dims = tuple(substitute(dim, names) for dim in stmt.dims)
        init = None if stmt.init is None else substitute(stmt.init, names)
        names.pop(stmt.name, None)
        if fresh != stmt.name:
            names[stmt.name] = c.Name(fresh)
        return replace(stmt, name=fresh, dims=dims, init=init)


def _joined(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`int i; i = f();` becomes one declaration where that is the only assignment."""
    writes: dict[str, int] = {}
    for node in nodes_in(body):
        for name in assigned_in(node) if isinstance(node, c.Assign) else ():
            writes[name] = writes.get(name, 0) + (isinstance(node, c.Assign) and _target(node) == name)
    open_: dict[str, c.Declare] = {}
    done: list[c.Stmt] = []
    for stmt in body:
        plain = isinstance(stmt, c.Declare) and stmt.init is None and not stmt.is_array and not stmt.storage
        if plain and isinstance(stmt, c.Declare) and writes.get(stmt.name) == 1:
            open_[stmt.name] = stmt
        if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.op == "=":
            target = stmt.expr.target
            if isinstance(target, c.Name) and target.name in open_:
                declare = open_.pop(target.name)
                done.remove(declare)
                done.append(replace(declare, init=stmt.expr.value, line=stmt.line))
                continue
        for name in names_in(stmt):
            open_.pop(name, None)
        done.append(stmt)
    return tuple(done)


def _target(assign: c.Assign) -> str | None:
    return assign.target.name if isinstance(assign.target, c.Name) else None


def _with_loops(stmts: Sequence[c.Stmt], depth: int) -> tuple[c.Stmt, ...]:
    """Loops that declare their own index, where they are written with `while` or an index from before."""
    done: list[c.Stmt] = []
    for at, stmt in enumerate(stmts):
        match stmt:
            case c.If():
                stmt = replace(
                    stmt,
                    then=_with_loops(stmt.then, depth + 1),
                    otherwise=_with_loops(stmt.otherwise, depth + 1),
                )
            case c.For():
                stmt = replace(stmt, body=_with_loops(stmt.body, depth + 1))
            case c.While():
                stmt = replace(stmt, body=_with_loops(stmt.body, depth + 1))
        later = stmts[at + 1 :]
        if isinstance(stmt, c.While) and not stmt.after:
            stmt = _as_for(stmt)
        if isinstance(stmt, c.For) and (not stmt.init or isinstance(stmt.init[0], c.Evaluate)):
            stmt = _with_own_index(stmt, done, later)
        done.append(stmt)
    return tuple(done)


def _as_for(loop: c.While) -> c.Stmt:
    if not loop.body or not isinstance(loop.body[-1], c.Evaluate):
        return loop
    if any(isinstance(node, c.Jump) and node.word == "continue" for node in nodes_in(loop.body)):
        return loop
    step = loop.body[-1].expr
    changed = assigned_in(step)
    if len(changed) != 1 or changed & assigned_in(loop.body[:-1]) or not changed <= names_in(loop.condition):
        return loop
    return c.For((), loop.condition, (step,), loop.body[:-1], line=loop.line)


def _with_own_index(loop: c.For, before: list[c.Stmt], later: Sequence[c.Stmt]) -> c.For:
    """Takes the index's start from before the loop, where nothing else needs it."""
    if loop.init:
        part = loop.init[0]
        if len(loop.init) != 1 or not isinstance(part, c.Evaluate) or not isinstance(part.expr, c.Assign):
            return loop
        target = part.expr.target
        if not isinstance(target, c.Name) or part.expr.op != "=" or not _is_reset(target.name, later):
            return loop
        declared = [s for s in before if isinstance(s, c.Declare) and s.name == target.name]
        if len(declared) != 1 or target.name in names_in(part.expr.value):
            return loop
        fresh = f"{target.name}_in_{loop.line}"
        named = substitute((replace(loop, init=()),), {target.name: c.Name(fresh)})[0]
        assert isinstance(named, c.For)
        return replace(named, init=(c.Declare(declared[0].type, fresh, part.expr.value, line=loop.line),))
    counted = [name for step in loop.step for name in assigned_in(step)]
    if len(counted) != 1 or any(counted[0] in names_in(stmt) for stmt in later):
        return loop
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, c.Declare) and stmt.name == counted[0] and stmt.init is not None:
            del before[at]
            return replace(loop, init=(replace(stmt, type=replace(stmt.type, const=False)),))
        if counted[0] in names_in(stmt) or isinstance(stmt, c.If | c.For | c.While):
            return loop
    return loop


def _is_reset(name: str, later: Sequence[c.Stmt]) -> bool:
    """Whether what follows sets the variable anew before it reads it."""
    for stmt in later:
        if isinstance(stmt, c.For) and stmt.init and isinstance(stmt.init[0], c.Evaluate):
            start = stmt.init[0].expr
            if (
                isinstance(start, c.Assign)
                and start.target == c.Name(name)
                and name not in names_in(start.value)
            ):
                return True
        if name in names_in(stmt):
            return False
    return True
