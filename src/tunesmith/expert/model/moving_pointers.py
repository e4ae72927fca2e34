"""Pointers that a loop moves, as numbers: `p += step` becomes `p_at += step`, and `p[i]` is `p[p_at + i]`.

The pointer itself moves outside of loops alone then. A loop whose index begins with the thread's own is
shared among threads, none of which knows where the turns of the others have left a pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.affine import number

_THREADS = frozenset(f"threadIdx.{axis}" for axis in "xyz")


def with_numbers_for_pointers(
    body: tuple[c.Stmt, ...], parameters: Sequence[c.Parameter], language: c.Language
) -> tuple[c.Stmt, ...]:
    """`body` has unique names."""
    types = {p.name: p.type for p in parameters}
    heads: set[str] = set()
    for stmt in walk.statements_in(body):
        if isinstance(stmt, c.Declare) and not stmt.is_array and not stmt.storage:
            types[stmt.name] = stmt.type
        elif isinstance(stmt, c.For):
            heads |= {part.name for part in stmt.init if isinstance(part, c.Declare)}
    taken = set(walk.declared_in(body)) | walk.names_in(body) | types.keys()
    moved = {
        name: walk.fresh_name(f"{name}_at", taken)
        for name in dict.fromkeys(_moved_in_loops(body, False))
        if name not in heads and _is_plain_pointer(types.get(name)) and _is_always_seen(body, name)
    }
    if not moved:
        return body
    work = _PointerNumbers(moved, c.Type("long" if language == "opencl" else "long long"))
    own = [work.zero(p.name, 0) for p in parameters if p.name in moved]
    return (*own, *work.block(body, True))


class _PointerNumbers:
    def __init__(self, moved: Mapping[str, str], type_: c.Type) -> None:
        self._moved, self._type = moved, type_
        self._values = {name: c.Binary("+", c.Name(name), c.Name(at)) for name, at in moved.items()}

    def zero(self, name: str, line: int) -> c.Declare:
        return c.Declare(self._type, self._moved[name], number(0), line=line)

    def block(self, stmts: Iterable[c.Stmt], top: bool) -> tuple[c.Stmt, ...]:
        """`top`: in no branch and no loop, where a pointer may go on being one."""
        done: list[c.Stmt] = []
        for stmt in stmts:
            done += self._statement(stmt, top)
        return tuple(done)

    def _statement(self, stmt: c.Stmt, top: bool) -> list[c.Stmt]:
        match stmt:
            case c.Evaluate(expr=expr) if top and (move := _own_move(expr)) and move[0] in self._moved:
                moved = c.Assign(move[1], c.Name(move[0]), substitute(move[2], self._values))
                return [c.Evaluate(moved, stmt.line, stmt.comments)]
            case c.Declare(name=name) if name in self._moved:
                # A block inside a loop is gone through anew: so is what is declared there.
                return [walk.map_simple(stmt, self._expression), self.zero(name, stmt.line)]
            case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=name), value=value)) if (
                name in self._moved and _own_move(stmt.expr) is None
            ):
                again = c.Assign("=", c.Name(self._moved[name]), number(0))
                value = substitute(value, self._values)
                anew = c.Evaluate(c.Assign("=", c.Name(name), value), stmt.line, stmt.comments)
                return [anew, c.Evaluate(again, stmt.line)]
            case c.Scope(body=body):
                return [*self.block(body, top)]
        return [walk.map_parts(stmt, self._expression, lambda body: self.block(body, False))]

    def _expression(self, expr: c.Expr) -> c.Expr:
        move = _own_move(expr)
        if move is None or move[0] not in self._moved:
            return substitute(expr, self._values)
        name, op, by = move
        return c.Assign(op, c.Name(self._moved[name]), substitute(by, self._values))


def _own_move(expr: c.Expr) -> tuple[str, str, c.Expr] | None:
    """(pointer, += or -=, by) of what goes on from where it is."""
    match expr:
        case c.Assign(op="+=" | "-=" as op, target=c.Name(name=name), value=by):
            return (name, op, by) if name not in walk.names_in(by) else None
        case c.Unary(op="++" | "--" as op, operand=c.Name(name=name)):
            return name, f"{op[0]}=", number(1)
        case c.Assign(
            op="=", target=c.Name(name=name), value=c.Binary(op="+" | "-" as op, left=left, right=by)
        ):
            if left == c.Name(name) and name not in walk.names_in(by):
                return name, f"{op}=", by
    return None


def _moved_in_loops(stmts: Iterable[c.Stmt], in_loop: bool) -> Iterable[str]:
    for stmt in stmts:
        if isinstance(stmt, c.For | c.While):
            if not _is_shared_out(stmt):
                steps = stmt.step if isinstance(stmt, c.For) else ()
                yield from (move[0] for step in steps if (move := _own_move(step)) is not None)
                yield from _moved_in_loops(stmt.body, True)
        elif isinstance(stmt, c.If):
            yield from _moved_in_loops((*stmt.then, *stmt.otherwise), in_loop)
        elif isinstance(stmt, c.Scope):
            yield from _moved_in_loops(stmt.body, in_loop)
        elif in_loop and isinstance(stmt, c.Evaluate) and (move := _own_move(stmt.expr)) is not None:
            yield move[0]


def _is_shared_out(loop: c.For | c.While) -> bool:
    return isinstance(loop, c.For) and any(
        isinstance(part, c.Declare) and bool(walk.names_in(part) & _THREADS) for part in loop.init
    )


def _is_plain_pointer(type_: c.Type | None) -> bool:
    return type_ is not None and type_.pointers == 1 and not type_.reference and not type_.volatile


def _is_always_seen(body: Sequence[c.Stmt], name: str) -> bool:
    """Whether all that changes it is a statement or a step, and it is set anew outside of loops alone."""
    whole: list[c.Expr] = []
    for stmt in walk.statements_in(body):
        whole += [stmt.expr] if isinstance(stmt, c.Evaluate) else stmt.step if isinstance(stmt, c.For) else []
    seen = {id(expr) for expr in whole}
    for node in walk.nodes_in(body):
        match node:
            case c.Assign(target=c.Name(name=own)) | c.Unary(op="++" | "--" | "&", operand=c.Name(name=own)):
                if own == name and (id(node) not in seen or getattr(node, "op", "") == "&"):
                    return False
            case c.Opaque() | c.Verbatim() if name in node.names:
                return False
    inside = [s for s in walk.statements_in(body) if isinstance(s, c.For | c.While)]
    anew = [
        node
        for loop in inside
        if name not in walk.declared_in(loop)
        for node in walk.nodes_in(loop)
        if isinstance(node, c.Assign) and node.target == c.Name(name) and _own_move(node) is None
    ]
    return not anew
