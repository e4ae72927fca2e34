"""Turns whose work is guarded piece by piece, read as turns that are guarded as a whole.

    for (r = 0; r < rounds; r++) {                    for (r = 0; r < rounds; r++)
        vec x = 0;                                        if (i < d) {
        if (i < d) x = load(i);                 ->            vec x = load(i);
        for (j ...) sum += x[j] * x[j];                       for (j ...) sum += x[j] * x[j];
        if (i < d) store(i, x);                               store(i, x);
    }                                                     }

Right where a turn whose guard does not hold leaves nothing behind: it sets no more than variables of its own,
and adds nothing but zeros to a total. What is zero is found by going through such a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, effects_of
from tunesmith.csource.fold import int_value
from tunesmith.csource.types import byte_size, is_integer, vector_parts

_QUIET = Effects.THREAD | Effects.SHAPE
# Of zero they make zero.
_KEEP_ZERO = frozenset({
    "__half2float", "__bfloat162float", "__float2half", "__float2half_rn", "__float2bfloat16",
    "__float2bfloat16_rn", "fabsf", "fabs", "sqrtf", "make_float2", "make_float4", "make_uint2", "make_uint4",
    "make_half2", "__halves2half2", "__half2half2", "__float2half2_rn", "make_bfloat162",
})  # fmt: skip


def with_guarded_turns(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """Names in the statements are each declared once."""
    return walk.map_statements(stmts, on_stmt=_loop)


def _loop(stmt: c.Stmt) -> c.Stmt:
    if not isinstance(stmt, c.For) or len(stmt.init) != 1 or not isinstance(stmt.init[0], c.Declare):
        return stmt
    index, ahead, body = stmt.init[0].name, *_places(stmt.body)
    for part in body:
        if isinstance(part, c.If) and not part.otherwise and _is_guard(part.condition, index, ahead, body):
            if len(body) > 1 and _IdleTurn(body, part.condition).leaves_nothing():
                inside = _without_dead_fills(_chosen(body, part.condition))
                return replace(stmt, body=(*ahead, c.If(part.condition, inside, line=part.line)))
            return stmt
    return stmt


def _places(body: tuple[c.Stmt, ...]) -> tuple[tuple[c.Stmt, ...], tuple[c.Stmt, ...]]:
    """The integers at a turn's start that only say where it is, and what follows them."""
    changed = walk.assigned_in(body)
    for at, stmt in enumerate(body):
        plain = isinstance(stmt, c.Declare) and stmt.init is not None and not stmt.dims and not stmt.storage
        if not plain or not isinstance(stmt, c.Declare) or not is_integer(stmt.type):
            return body[:at], body[at:]
        if stmt.name in changed or effects_of(stmt) & ~_QUIET:
            return body[:at], body[at:]
    return body, ()


def _is_guard(condition: c.Expr, index: str, ahead: Sequence[c.Stmt], body: Sequence[c.Stmt]) -> bool:
    names = walk.names_in(condition)
    changed = walk.assigned_in(body) | set(walk.declared_in(body))
    is_bound = isinstance(condition, c.Binary) and condition.op in ("<", "<=", ">", ">=")
    moves = names & {index, *walk.declared_in(ahead)}
    return is_bound and bool(moves) and not names & changed and not effects_of(condition) & ~_QUIET


def _chosen(body: Sequence[c.Stmt], guard: c.Expr) -> tuple[c.Stmt, ...]:
    """The body of a turn whose guard holds."""
    done: list[c.Stmt] = []
    for stmt in body:
        taken = isinstance(stmt, c.If) and stmt.condition == guard and not stmt.otherwise
        done += stmt.then if taken and isinstance(stmt, c.If) else (stmt,)
    return tuple(done)


class _IdleTurn:
    """A turn whose guard does not hold, gone through to see what it leaves behind."""

    def __init__(self, body: Sequence[c.Stmt], guard: c.Expr) -> None:
        self._body = [
            stmt
            for stmt in body
            if not (isinstance(stmt, c.If) and stmt.condition == guard and not stmt.otherwise)
        ]
        self._own: Mapping[str, c.Declare] = {
            node.name: node for node in walk.nodes_in(self._body) if isinstance(node, c.Declare)
        }
        self._zeros: set[str] = set()
        self._fields: dict[str, set[str]] = {}  # of vectors: those that are zero

    def leaves_nothing(self) -> bool:
        return all(self._is_nothing(stmt, 0) for stmt in self._body)

    def _is_nothing(self, stmt: c.Stmt, depth: int) -> bool:
        match stmt:
            case c.Declare(name=name, init=init, storage=""):
                if init is not None and not self._is_quiet(init):
                    return False
                self._zeros -= {name}
                if init is not None and not stmt.dims and self._is_zero(init):
                    self._zeros.add(name)
                return True
            case c.For() if depth < 20:
                return self._is_nothing_in_loop(stmt, depth)
            case c.Evaluate(expr=c.Assign(op=op, target=target, value=value)):
                root = walk.root(target)[0]
                if root is None or not self._is_quiet(value) or not self._is_quiet(target):
                    return False
                if root in self._own and self._is_local(root):
                    if op != "+=" or not self._is_zero(value):
                        self._set(root, target, value if op == "=" else None)
                    return True
                return op == "+=" and isinstance(target, c.Name) and self._is_zero(value)
        return False

    def _is_nothing_in_loop(self, loop: c.For, depth: int) -> bool:
        filled = _filled(loop)
        if filled is not None and filled[0] in self._own:
            name, size, value = filled
            if self._is_zero(value) and size == _bytes(self._own[name]):
                self._zeros.add(name)
                return True
        heads = (*loop.init, *loop.step, *(() if loop.condition is None else (loop.condition,)))
        quiet = (Effects.ASSIGNS, Effects.NONE)
        if any(effects_of(part) not in quiet for part in heads) or not _counts(loop):
            return False
        touched = walk.assigned_in(loop.body) | walk.stored_in(loop.body)
        before = set(self._zeros)
        done = all(self._is_nothing(part, depth + 1) for part in loop.body)
        self._zeros = before - touched
        return done

    def _set(self, name: str, target: c.Expr, value: c.Expr | None) -> None:
        field = _field_of(target, self._own[name])
        if value is None or not self._is_zero(value):
            self._zeros.discard(name)
            self._fields.pop(name, None)
        elif target == c.Name(name):
            self._zeros.add(name)
        elif field:
            self._fields.setdefault(name, set()).add(field)
            if self._fields[name] == set(_fields(self._own[name])):
                self._zeros.add(name)

    def _is_local(self, name: str) -> bool:
        """A variable or array of the turn, not what a pointer of the turn points to."""
        declare = self._own.get(name)
        return declare is not None and not declare.type.is_pointer and not declare.type.reference

    def _is_quiet(self, expr: c.Expr) -> bool:
        """Whether evaluating it does nothing; it may read what is there in every turn."""
        own = {*self._own}
        if effects_of(expr) & ~(Effects.READS | Effects.THREAD | Effects.SHAPE):
            return False
        return all(walk.root(node)[0] in own for node in walk.nodes_in(expr) if isinstance(node, c.Index))

    def _is_zero(self, expr: c.Expr) -> bool:
        match expr:
            case c.Number(value=value):
                return value == 0
            case c.Name(name=name):
                return name in self._zeros
            case c.Index() | c.Member():
                root = walk.root(expr)[0]
                return root is not None and root in self._zeros and self._is_local(root)
            case c.Cast(type=type_, value=inner):
                return not type_.is_pointer and self._is_zero(inner)
            case c.Binary(op="*" | "+", left=left, right=right):
                return self._is_zero(left) and self._is_zero(right)
            case c.Call(function=function, args=args, of=None):
                return function in _KEEP_ZERO and all(self._is_zero(arg) for arg in args)
        return False


def _fields(declare: c.Declare) -> str:
    parts = None if declare.dims else vector_parts(declare.type.base)
    return "" if parts is None else "xyzw"[: parts[1]]


def _field_of(target: c.Expr, declare: c.Declare) -> str:
    """The field that `v.x = ` or `*(half2 *)&v.x = ` sets as a whole."""
    whole, fields = byte_size(declare.type.base), _fields(declare)
    match target:
        case c.Index(
            base=c.Cast(type=type_, value=c.Unary(op="&", operand=c.Member() as member)),
            index=c.Number(value=0),
        ):
            size = byte_size(type_.base)
            fits = whole is not None and size is not None and size * len(fields) == whole
            return member.field if fits and member.base == c.Name(declare.name) else ""
        case c.Member(base=c.Name(name=name), field=field) if name == declare.name and field in fields:
            return field
    return ""


def _counts(loop: c.For) -> bool:
    """It ends by itself: its index starts and stops at numbers, and only its head moves it."""
    if len(loop.init) != 1 or not isinstance(loop.init[0], c.Declare) or len(loop.step) != 1:
        return False
    name, condition = loop.init[0].name, loop.condition
    moved = walk.assigned_in(loop.step[0]) == {name} and name not in walk.assigned_in(loop.body)
    return moved and isinstance(condition, c.Binary) and int_value(condition.right) is not None


def _filled(loop: c.For) -> tuple[str, int, c.Expr] | None:
    """`for (i = 0; i < 8; ++i) ((half *)&x)[i] = v;`: the variable, and the bytes from its first on."""
    stmt = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(stmt, c.Evaluate) or not isinstance(stmt.expr, c.Assign) or stmt.expr.op != "=":
        return None
    index, target = loop.init[0] if len(loop.init) == 1 else None, stmt.expr.target
    if not isinstance(index, c.Declare) or index.init is None or int_value(index.init) != 0:
        return None
    condition, name = loop.condition, c.Name(index.name)
    once = (c.Unary("++", name), c.Unary("++", name, postfix=True))
    if not isinstance(condition, c.Binary) or (condition.op, condition.left) != ("<", name):
        return None
    turns = int_value(condition.right)
    if turns is None or len(loop.step) != 1 or loop.step[0] not in once:
        return None
    match target:
        case c.Index(base=c.Name(name=variable), index=place) if place == name:
            return variable, -turns, stmt.expr.value
        case c.Index(
            base=c.Cast(type=type_, value=c.Unary(op="&", operand=c.Name(name=variable))), index=place
        ) if place == name and byte_size(type_.base) is not None:
            return variable, turns * (byte_size(type_.base) or 0), stmt.expr.value
    return None


def _bytes(declare: c.Declare) -> int | None:
    """Of a variable; of an array its elements, below zero, as `_filled` counts them."""
    if not declare.dims:
        return byte_size(declare.type.base)
    count = int_value(declare.dims[0]) if len(declare.dims) == 1 else None
    return None if count is None else -count


def _without_dead_fills(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Without what is set and then loaded over before anybody reads it."""
    own = {node.name for node in body if isinstance(node, c.Declare)}
    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        name = _set_by(stmt)
        later = [s for s in body[at + 1 :] if name and name in walk.names_in(s)]
        dead = name in own and later
        for following in later if dead else ():
            if _set_by(following) != name or name in _read_by(following):
                dead = False
                break
            if _is_set_whole(following, name, body):
                break
        else:
            dead = False
        if not dead:
            done.append(stmt)
    return tuple(done)


def _set_by(stmt: c.Stmt) -> str:
    """The variable that a statement sets, in whole or in part, and does nothing else; "" for others."""
    filled = _filled(stmt) if isinstance(stmt, c.For) else None
    if filled is not None:
        return filled[0]
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=target)):
            return walk.root(target)[0] or ""
    return ""


def _read_by(stmt: c.Stmt) -> frozenset[str]:
    value = _filled(stmt)[2] if isinstance(stmt, c.For) and _filled(stmt) is not None else None  # type: ignore[index]
    if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
        value = stmt.expr.value
    return frozenset() if value is None else walk.names_in(value)


def _is_set_whole(stmt: c.Stmt, name: str, body: Sequence[c.Stmt]) -> bool:
    declare = next((n for n in body if isinstance(n, c.Declare) and n.name == name), None)
    filled = _filled(stmt) if isinstance(stmt, c.For) else None
    if filled is not None:
        return declare is not None and filled[1] == _bytes(declare)
    return (
        isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.target == c.Name(name)
    )
