"""Statements before they are read: every variable its own name, `while` as `for`, structures taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.expert.c.nodes import (
    Assign,
    Braces,
    Call,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Jump,
    Member,
    Name,
    Number,
    Scope,
    Source,
    Stmt,
    Type,
    While,
)
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import assigned_in, map_expr, map_statements, names_in, nodes_in
from tunesmith.expert.model.reach import OutOfReach

_VECTORS = {
    f"{base}{count}": tuple("xyzw"[:count])
    for base in ("float", "double", "int", "uint")
    for count in (2, 3, 4)
}
_ELEMENTS = {"float": "float", "double": "double", "int": "int", "uint": "unsigned int"}
_STRUCT = re.compile(r"\bstruct\s+(?:__\w+__\s*(?:\([^)]*\))?\s*)*(\w+)\s*\{([^{}()]*)\}")
_FIELD = re.compile(r"^\s*((?:[A-Za-z_]\w*\s+)+)([\w\s,]+)$")


def tidy(body: tuple[Stmt, ...], source: Source, parameters: Iterable[str]) -> tuple[Stmt, ...]:
    renamed = _Unique(set(parameters)).block(body, {}, 0)
    shaped = _with_loops(_joined(renamed), 0)
    return _without_structures(shaped, _structures(source))


class _Unique:
    """Gives every declaration a name of its own; blocks for their own sake dissolve."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def block(self, stmts: Sequence[Stmt], names: dict[str, Expr], depth: int) -> tuple[Stmt, ...]:
        if depth > 100:
            raise OutOfReach("its statements are nested more than 100 deep")
        done: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case Scope(body=body):
                    done += self.block(body, dict(names), depth + 1)
                case Declare():
                    done.append(self.declare(stmt, names))
                case If():
                    done.append(
                        replace(
                            stmt,
                            condition=substitute(stmt.condition, names),
                            then=self.block(stmt.then, dict(names), depth + 1),
                            otherwise=self.block(stmt.otherwise, dict(names), depth + 1),
                        )
                    )
                case For():
                    inner = dict(names)
                    init = tuple(
                        self.declare(part, inner)
                        if isinstance(part, Declare)
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
                case While():
                    body = self.block(stmt.body, dict(names), depth + 1)
                    done.append(replace(stmt, condition=substitute(stmt.condition, names), body=body))
                case _:
                    done += substitute((stmt,), names)
        return tuple(done)

    def declare(self, stmt: Declare, names: dict[str, Expr]) -> Declare:
        fresh, count = stmt.name, 2
        while fresh in self._taken:
            fresh, count = f"{stmt.name}_{count}", count + 1
        self._taken.add(fresh)
        dims = tuple(substitute(dim, names) for dim in stmt.dims)
        init = None if stmt.init is None else substitute(stmt.init, names)
        names.pop(stmt.name, None)
        if fresh != stmt.name:
            names[stmt.name] = Name(fresh)
        return replace(stmt, name=fresh, dims=dims, init=init)


def _joined(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`int i; i = f();` becomes one declaration where that is the only assignment."""
    writes: dict[str, int] = {}
    for node in nodes_in(body):
        for name in assigned_in(node) if isinstance(node, Assign) else ():
            writes[name] = writes.get(name, 0) + (isinstance(node, Assign) and _target(node) == name)
    open_: dict[str, Declare] = {}
    done: list[Stmt] = []
    for stmt in body:
        plain = isinstance(stmt, Declare) and stmt.init is None and not stmt.is_array and not stmt.storage
        if plain and isinstance(stmt, Declare) and writes.get(stmt.name) == 1:
            open_[stmt.name] = stmt
        if isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign) and stmt.expr.op == "=":
            target = stmt.expr.target
            if isinstance(target, Name) and target.name in open_:
                declare = open_.pop(target.name)
                done.remove(declare)
                done.append(replace(declare, init=stmt.expr.value, line=stmt.line))
                continue
        for name in names_in(stmt):
            open_.pop(name, None)
        done.append(stmt)
    return tuple(done)


def _target(assign: Assign) -> str | None:
    return assign.target.name if isinstance(assign.target, Name) else None


def _with_loops(stmts: Sequence[Stmt], depth: int) -> tuple[Stmt, ...]:
    """Loops that declare their own index, where they are written with `while` or an index from before."""
    done: list[Stmt] = []
    for at, stmt in enumerate(stmts):
        match stmt:
            case If():
                stmt = replace(
                    stmt,
                    then=_with_loops(stmt.then, depth + 1),
                    otherwise=_with_loops(stmt.otherwise, depth + 1),
                )
            case For():
                stmt = replace(stmt, body=_with_loops(stmt.body, depth + 1))
            case While():
                stmt = replace(stmt, body=_with_loops(stmt.body, depth + 1))
        later = stmts[at + 1 :]
        if isinstance(stmt, While) and not stmt.after:
            stmt = _as_for(stmt)
        if isinstance(stmt, For) and (not stmt.init or isinstance(stmt.init[0], Evaluate)):
            stmt = _with_own_index(stmt, done, later)
        done.append(stmt)
    return tuple(done)


def _as_for(loop: While) -> Stmt:
    if not loop.body or not isinstance(loop.body[-1], Evaluate):
        return loop
    if any(isinstance(node, Jump) and node.word == "continue" for node in nodes_in(loop.body)):
        return loop
    step = loop.body[-1].expr
    changed = assigned_in(step)
    if len(changed) != 1 or changed & assigned_in(loop.body[:-1]) or not changed <= names_in(loop.condition):
        return loop
    return For((), loop.condition, (step,), loop.body[:-1], line=loop.line)


def _with_own_index(loop: For, before: list[Stmt], later: Sequence[Stmt]) -> For:
    """Takes the index's start from before the loop, where nothing else needs it."""
    if loop.init:
        part = loop.init[0]
        if len(loop.init) != 1 or not isinstance(part, Evaluate) or not isinstance(part.expr, Assign):
            return loop
        target = part.expr.target
        if not isinstance(target, Name) or part.expr.op != "=" or not _is_reset(target.name, later):
            return loop
        declared = [s for s in before if isinstance(s, Declare) and s.name == target.name]
        if len(declared) != 1 or target.name in names_in(part.expr.value):
            return loop
        fresh = f"{target.name}_in_{loop.line}"
        named = substitute((replace(loop, init=()),), {target.name: Name(fresh)})[0]
        assert isinstance(named, For)
        return replace(named, init=(Declare(declared[0].type, fresh, part.expr.value, line=loop.line),))
    counted = [name for step in loop.step for name in assigned_in(step)]
    if len(counted) != 1 or any(counted[0] in names_in(stmt) for stmt in later):
        return loop
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, Declare) and stmt.name == counted[0] and stmt.init is not None:
            del before[at]
            return replace(loop, init=(replace(stmt, type=replace(stmt.type, const=False)),))
        if counted[0] in names_in(stmt) or isinstance(stmt, If | For | While):
            return loop
    return loop


def _is_reset(name: str, later: Sequence[Stmt]) -> bool:
    """Whether what follows sets the variable anew before it reads it."""
    for stmt in later:
        if isinstance(stmt, For) and stmt.init and isinstance(stmt.init[0], Evaluate):
            start = stmt.init[0].expr
            if isinstance(start, Assign) and start.target == Name(name) and name not in names_in(start.value):
                return True
        if name in names_in(stmt):
            return False
    return True


def _structures(source: Source) -> dict[str, tuple[tuple[str, str], ...]]:
    """Plain structures of the file: name -> (field, type) in order."""
    found: dict[str, tuple[tuple[str, str], ...]] = {
        name: tuple((field, _ELEMENTS[name[:-1]]) for field in fields) for name, fields in _VECTORS.items()
    }
    for text in source.preamble:
        for name, inside in _STRUCT.findall(text):
            fields: list[tuple[str, str]] = []
            for line in inside.split(";"):
                match = _FIELD.match(line.strip()) if line.strip() else None
                if match is None:
                    continue
                fields += [(field.strip(), match[1].strip()) for field in match[2].split(",")]
            found[name] = tuple(fields)
    return found


def _without_structures(
    body: tuple[Stmt, ...], structures: dict[str, tuple[tuple[str, str], ...]]
) -> tuple[Stmt, ...]:
    """Variables of a structure that are only used by their fields become one variable for each."""
    whole: dict[str, int] = {}
    for node in nodes_in(body):
        if isinstance(node, Member) and isinstance(node.base, Name):
            whole[node.base.name] = whole.get(node.base.name, 0) - 1
        elif isinstance(node, Name):
            whole[node.name] = whole.get(node.name, 0) + 1
        elif not isinstance(node, Declare | Member):
            for name in getattr(node, "names", ()):
                whole[name] = whole.get(name, 0) + 1
    # `nodes_in` meets the base of a member as a name too: those cancel out.
    split = {
        stmt.name: structures[stmt.type.base]
        for stmt in body
        if isinstance(stmt, Declare)
        and stmt.type.base in structures
        and not stmt.type.is_pointer
        and not stmt.dims
        and not stmt.storage
        and whole.get(stmt.name, 0) == 0
        and _parts(stmt, len(structures[stmt.type.base])) is not None
    }
    if not split:
        return body

    def field_name(node: Expr) -> Expr:
        if isinstance(node, Member) and isinstance(node.base, Name) and node.base.name in split:
            return Name(f"{node.base.name}_{node.field}")
        return node

    def declare(stmt: Stmt) -> Stmt | Iterable[Stmt]:
        if isinstance(stmt, Declare) and stmt.name in split:
            parts = _parts(stmt, len(split[stmt.name])) or ()
            return [
                Declare(Type(type_, const=stmt.type.const), f"{stmt.name}_{field}", part, line=stmt.line)
                for (field, type_), part in zip(split[stmt.name], parts, strict=True)
            ]
        return stmt

    return map_statements(body, lambda e: map_expr(e, field_name), declare)


def _parts(stmt: Declare, count: int) -> tuple[Expr | None, ...] | None:
    match stmt.init:
        case None:
            return (None,) * count
        case Braces(items=items) if len(items) <= count:
            return (*items, *[Number("0", 0)] * (count - len(items)))
        case Call(function=function, args=args) if function == f"make_{stmt.type.base}":
            return args if len(args) == count else None
    return None
