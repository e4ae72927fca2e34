"""Loops that turn once, without the loop: channels of an image that has one, steps of an update made once.

    for (int c = 0; c < CN; ++c) if (low[c] > src[c]) { dst[c] = 0; break; }      with CN 1
    ->  if (low[0] > src[0]) dst[0] = 0;

Where the loop ends is a number, or an argument that the problem file fixes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tunesmith.expert.read.integers import (
    additive_update,
    as_integer,
    head_of,
    is_narrow,
    number_node,
    trip_count,
)
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, effects_of, is_pure
from tunesmith.source.fold import convert_to_type, int_value
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size, is_integer, is_of_type, vector_parts


def without_single_turns(
    function: c.Function, fixed: Mapping[str, int]
) -> tuple[c.Function, tuple[str, ...]]:
    """`fixed`: arguments that are one number in every call. Also the names of those that had a say."""
    hidden = walk.assigned_in(function.body) | set(walk.declared_in(function.body))
    known = {name: value for name, value in fixed.items() if name not in hidden}
    said: set[str] = set()

    def block(stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            stmt = walk.map_blocks(stmt, block)
            if isinstance(stmt, c.For) and stmt.condition is not None:
                found = _unroll_single_iteration(stmt, known, _find_dead_variables(stmts, at))
                said.update(walk.names_in(stmt.condition) & known.keys() if found is not None else ())
                stmt = stmt if found is None else found
            done.append(stmt)
        return tuple(done)

    body = block(function.body)
    return (function if body == function.body else replace(function, body=body)), tuple(sorted(said))


def _find_dead_variables(stmts: tuple[c.Stmt, ...], at: int) -> set[str]:
    """Variables that nothing reads behind a statement of the block in which they are declared."""
    found = {
        stmt.name
        for stmt in stmts[:at]
        if isinstance(stmt, c.Declare) and not stmt.is_array and not stmt.storage and not stmt.type.reference
    }
    for node in walk.nodes_in(stmts):
        if isinstance(node, c.Unary) and node.op == "&":
            found -= walk.names_in(node)
        elif isinstance(node, c.Declare) and node.type.reference and node.init is not None:
            found -= walk.names_in(node.init)
        elif isinstance(node, c.Verbatim | c.Opaque):
            found -= node.names
    return found - walk.names_in(stmts[at + 1 :])


def _unroll_single_iteration(loop: c.For, known: Mapping[str, int], gone: set[str]) -> c.Scope | None:
    """What its only turn does; None for loops that may turn otherwise. `gone`: what nobody reads then."""
    index = loop.init[0] if len(loop.init) == 1 else None
    if not isinstance(index, c.Declare) or not is_integer(index.type) or index.init is None:
        return None
    others = tuple(step for step in loop.step if index.name not in walk.names_in(step))
    of_index = tuple(step for step in loop.step if step not in others)
    head = head_of(replace(loop, step=of_index, body=(*loop.body, *(c.Evaluate(step) for step in others))))
    if head is None or index.name in walk.declared_in(loop.body) or not isinstance(head.start, c.Number):
        return None
    start, stop, step = (int_value(part, known) for part in (head.start, head.stop, head.step))
    if start is None or stop is None or step is None or not 0 <= start < stop <= start + step:
        return None
    if convert_to_type(start + step, index.type.base) != start + step:  # it would wrap, and turn again
        return None
    body = _without_jumps(loop.body)
    if body is None or (others and body != loop.body):
        return None
    body = substitute(body, {index.name: as_integer(index.type, head.start, {})})
    after = tuple(c.Evaluate(step, line=loop.line) for step in others if not _only_moves(step, gone))
    return c.Scope((*body, *after), line=loop.line, comments=loop.comments)


def _only_moves(step: c.Expr, names: set[str]) -> bool:
    """Whether it does no more than set one of these."""
    match step:
        case c.Unary(op="++" | "--", operand=c.Name(name=name)):
            return name in names
        case c.Assign(target=c.Name(name=name), value=value):
            return name in names and is_pure(value)
    return False


def _without_jumps(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...] | None:
    """The body of a loop without the `break` or `continue` that ends it; None where one stands elsewhere."""
    if not body:
        return body
    *before, last = body
    match last:
        case c.Jump():
            return tuple(before) if not _may_leave_loop(before) else None
        case c.If():
            then, otherwise = _without_jumps(last.then), _without_jumps(last.otherwise)
            if then is None or otherwise is None or _may_leave_loop(before):
                return None
            return (*before, replace(last, then=then, otherwise=otherwise))
    return None if _may_leave_loop(body) else body


def _may_leave_loop(stmts: tuple[c.Stmt, ...] | list[c.Stmt]) -> bool:
    """Whether one of them may leave the loop around them, or it is not known."""
    for stmt in stmts:
        match stmt:
            case c.Jump() | c.Verbatim():
                return True
            case c.If() if _may_leave_loop(stmt.then) or _may_leave_loop(stmt.otherwise):
                return True
            case c.Scope() if _may_leave_loop(stmt.body):
                return True
    return False


# -- Variables that a loop moves by the same amount in every turn, as sums over the loop's index.
#
#     for (int y = y0, y1 = min(rows, y0 + 4); y < y1; ++y, at += step) ... src[at]
#     ->  for (int y = y0; y < y1; ++y) ... src[at + (y - y0) * step]
#
# So are those that move at the end of a branch which, once it is not taken, is never taken again:
# `for (...) if (y < rows) { ...; ++y; at += step; }`.


Variables = Mapping[str, c.Declare]


def with_sums_over_loops(
    stmts: Sequence[c.Stmt],
    parameters: Mapping[str, c.Type],
    around: Variables | None = None,
    later: frozenset[str] = frozenset(),
) -> tuple[c.Stmt, ...]:
    """`stmts` have unique names; `around`: variables declared since the innermost loop around began, `later`:
    names that are used behind the statements."""
    inside = partial(with_sums_over_loops, parameters=parameters)
    done: list[c.Stmt] = []
    visible = dict(around or {})
    for at, stmt in enumerate(stmts):
        used = later | walk.names_in(tuple(stmts[at + 1 :]))
        if isinstance(stmt, c.If | c.Scope):
            stmt = walk.map_blocks(stmt, partial(inside, around=visible, later=used))
        else:
            stmt = walk.map_blocks(stmt, inside)
        if isinstance(stmt, c.For):
            stmt = _expand_induction_updates(stmt, visible, used, parameters)
        if isinstance(stmt, c.Declare) and not stmt.is_array and not stmt.storage:
            visible[stmt.name] = stmt
        done.append(stmt)
    return tuple(done)


@dataclass(frozen=True)
class _LoopMove:
    """A variable that moves by `by` in every turn."""

    name: str
    by: c.Expr
    type: str = "int"  # in which it is added up


def plain_head(loop: c.For) -> tuple[list[c.Declare], c.For]:
    """What the head declares besides the index, and nothing changes, is declared before the loop."""
    changed = walk.assigned_in(replace(loop, init=()))
    declared = [part for part in loop.init if isinstance(part, c.Declare)]
    if len(declared) != len(loop.init) or not declared:
        return [], loop
    fixed = [part for part in declared if part.name not in changed and part.init is not None]
    moving = [part for part in declared if part not in fixed]
    later = {name for part in fixed for name in walk.names_in(part)} & {part.name for part in moving}
    starts = {
        part.name: part.init for part in moving if part.init is not None and _is_pure_arithmetic(part.init)
    }
    if not fixed or len(moving) > 1 or not later <= starts.keys():
        return [], loop
    # `y1 = min(rows, y + 4)` is what y begins with.
    hoisted = [substitute((part,), starts)[0] for part in fixed]
    return [part for part in hoisted if isinstance(part, c.Declare)], replace(loop, init=tuple(moving))


def _expand_induction_updates(
    loop: c.For, declared: Variables, later: frozenset[str], parameters: Mapping[str, c.Type]
) -> c.For:
    def may_be_summed(update: _LoopMove) -> bool:
        variable = declared.get(update.name)
        return (
            variable is not None
            and is_integer(variable.type)
            and not variable.type.reference
            and not is_narrow(variable.type)
            and update.name not in later
            and _times_assigned(loop, update.name) == 1
            and not walk.names_in(update.by) & (walk.assigned_in(loop) | set(walk.declared_in(loop)))
            and (loop.condition is None or update.name not in walk.names_in(loop.condition))
        )

    if len(loop.init) != 1 or not isinstance(loop.init[0], c.Declare):
        return loop
    index = loop.init[0].name
    in_head = [u for step in loop.step if (u := _match_additive_update(step)) is not None and u.name != index]
    in_head = [replace(u, type=declared[u.name].type.base) for u in in_head if may_be_summed(u)]
    moved = {u.name for u in in_head}
    kept = tuple(step for step in loop.step if not _is_update_of(step, moved))
    if any(moved & walk.names_in(step) for step in kept):
        return loop
    plain = replace(loop, step=kept)
    turn = _iteration_number(plain)
    if turn is None:
        return loop
    types = {
        **parameters,
        **{name: declare.type for name, declare in declared.items()},
        index: loop.init[0].type,
    }
    if in_head:
        plain = replace(plain, body=_substitute_updates(plain.body, in_head, turn, types))
    return _with_updates_in_body(plain, turn, types, may_be_summed)


def _with_updates_in_body(
    loop: c.For, turn: c.Expr, types: Mapping[str, c.Type], may_be_summed: Callable[[_LoopMove], bool]
) -> c.For:
    guard = loop.body[0] if len(loop.body) == 1 and isinstance(loop.body[0], c.If) else None
    body = loop.body if guard is None or guard.otherwise else guard.then
    if any(isinstance(node, c.Jump) and node.word == "continue" for node in walk.nodes_in(body)):
        return loop
    found = [
        replace(u, type=types[u.name].base)
        for s in body
        if isinstance(s, c.Evaluate)
        and (u := _match_additive_update(s.expr)) is not None
        and may_be_summed(u)
    ]
    if body is not loop.body:
        assert guard is not None
        if not _stays_false(guard.condition, found, types, loop):
            return loop
    if not found:
        return loop
    done: list[c.Stmt] = []
    passed: list[_LoopMove] = []
    for stmt in body:
        update = _match_additive_update(stmt.expr) if isinstance(stmt, c.Evaluate) else None
        moved = next((u for u in found if update is not None and replace(u, type="int") == update), None)
        if moved is not None:
            passed.append(moved)
            continue
        waiting = [u for u in found if u not in passed]
        stmt = _substitute_updates((stmt,), waiting, turn, types)[0]
        done.append(_substitute_updates((stmt,), passed, c.Binary("+", turn, number_node(1)), types)[0])
    if body is loop.body or guard is None:
        return replace(loop, body=tuple(done))
    condition = substitute(guard.condition, _induction_values(found, turn, types))
    return replace(loop, body=(replace(guard, condition=condition, then=tuple(done)),))


def _stays_false(
    condition: c.Expr, found: Sequence[_LoopMove], types: Mapping[str, c.Type], loop: c.For
) -> bool:
    """Whether what moves only upwards is held against a bound that does not move, in its own type."""
    match condition:
        case c.Binary(op="<" | "<=", left=c.Name(name=name), right=bound):
            up = any(u.name == name and isinstance(u.by, c.Number) and u.by.value > 0 for u in found)
            alike = name in types and is_of_type(bound, types[name], types)
            still = not walk.names_in(bound) & walk.assigned_in(loop) and _is_pure_arithmetic(bound)
            return up and alike and still
    return False


def _iteration_number(loop: c.For) -> c.Expr | None:
    """How many turns have been before this one."""
    head = head_of(loop)
    if head is None or not isinstance(head.step, c.Number) or not isinstance(head.step.value, int):
        return None
    moves = walk.names_in(head.start) & walk.assigned_in(loop)
    if head.step.value < 1 or moves or not _is_pure_arithmetic(head.start):
        return None
    index: c.Expr = c.Name(head.index)
    turn = index if head.start == number_node(0) else c.Binary("-", index, head.start)
    return turn if head.step.value == 1 else c.Binary("/", turn, head.step)


def _substitute_updates(
    stmts: Sequence[c.Stmt], updates: Sequence[_LoopMove], turn: c.Expr, types: Mapping[str, c.Type]
) -> tuple[c.Stmt, ...]:
    return substitute(tuple(stmts), _induction_values(updates, turn, types)) if updates else tuple(stmts)


def _induction_values(
    updates: Sequence[_LoopMove], turn: c.Expr, types: Mapping[str, c.Type]
) -> dict[str, c.Expr]:
    """In each variable's own type, as adding up would be."""

    def added(update: _LoopMove) -> c.Expr:
        turns, by = as_integer(c.Type(update.type), turn, types), update.by
        if by == number_node(1):
            return turns
        return c.Binary("*", turns, as_integer(c.Type(update.type), by, types))

    return {update.name: c.Binary("+", c.Name(update.name), added(update)) for update in updates}


def _is_update_of(step: c.Expr, names: set[str]) -> bool:
    update = _match_additive_update(step)
    return update is not None and update.name in names


def _match_additive_update(expr: c.Expr) -> _LoopMove | None:
    update = additive_update(expr)
    if update is None or not _is_pure_arithmetic(update[1]) or update[0] in walk.names_in(update[1]):
        return None
    return _LoopMove(*update)


def _is_pure_arithmetic(expr: c.Expr) -> bool:
    """Arithmetic of names and numbers: the same whenever it is computed."""
    allowed = c.Number | c.Name | c.SizeOf | c.Binary | c.Cast
    return all(
        isinstance(node, allowed) and not (isinstance(node, c.Binary) and node.op == ",")
        for node in walk.nodes_in(expr)
    )


def _times_assigned(loop: c.For, name: str) -> int:
    counts: Counter[str] = Counter()
    for node in walk.nodes_in(loop):
        if isinstance(node, c.Assign):
            counts[walk.root_variable(node.target)[0] or ""] += 1
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            counts[walk.root_variable(node.operand)[0] or ""] += 1
        elif isinstance(node, c.Opaque | c.Verbatim):
            counts.update(node.names)
    return counts[name]


# -- Turns whose work is guarded piece by piece, read as turns that are guarded as a whole.
#
#     for (r = 0; r < rounds; r++) {                    for (r = 0; r < rounds; r++)
#         vec x = 0;                                        if (i < d) {
#         if (i < d) x = load(i);                 ->            vec x = load(i);
#         for (j ...) sum += x[j] * x[j];                       for (j ...) sum += x[j] * x[j];
#         if (i < d) store(i, x);                               store(i, x);
#     }                                                     }
#
# Right where a turn whose guard does not hold leaves nothing behind: it sets no more than variables of its
# own,
# and adds nothing but zeros to a total. What is zero is found by going through such a turn.


_QUIET = Effects.THREAD | Effects.SHAPE
# Of zero they make zero.
_KEEP_ZERO = frozenset({
    "__half2float", "__bfloat162float", "__float2half", "__float2half_rn", "__float2bfloat16",
    "__float2bfloat16_rn", "fabsf", "fabs", "sqrtf", "make_float2", "make_float4", "make_uint2", "make_uint4",
    "make_half2", "__halves2half2", "__half2half2", "__float2half2_rn", "make_bfloat162",
})  # fmt: skip


def with_guarded_turns(stmts: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
    """Names in the statements are each declared once."""
    return walk.map_statements(stmts, on_stmt=_hoist_iteration_guard)


def _hoist_iteration_guard(stmt: c.Stmt) -> c.Stmt:
    if not isinstance(stmt, c.For) or len(stmt.init) != 1 or not isinstance(stmt.init[0], c.Declare):
        return stmt
    index, ahead, body = stmt.init[0].name, *_split_index_prologue(stmt.body)
    for part in body:
        if isinstance(part, c.If) and not part.otherwise and _is_guard(part.condition, index, ahead, body):
            if len(body) > 1 and _IdleTurn(body, part.condition).leaves_nothing:
                inside = _without_dead_fills(_inline_guarded_branches(body, part.condition))
                return replace(stmt, body=(*ahead, c.If(part.condition, inside, line=part.line)))
            return stmt
    return stmt


def _split_index_prologue(body: tuple[c.Stmt, ...]) -> tuple[tuple[c.Stmt, ...], tuple[c.Stmt, ...]]:
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


def _inline_guarded_branches(body: Sequence[c.Stmt], guard: c.Expr) -> tuple[c.Stmt, ...]:
    """The body of a turn whose guard holds."""
    done: list[c.Stmt] = []
    for stmt in body:
        taken = isinstance(stmt, c.If) and stmt.condition == guard and not stmt.otherwise
        done += stmt.then if taken and isinstance(stmt, c.If) else (stmt,)
    return tuple(done)


class _IdleTurn:
    """A turn whose guard does not hold, gone through to see what it leaves behind."""

    def __init__(self, body: Sequence[c.Stmt], guard: c.Expr) -> None:
        idle = [
            stmt
            for stmt in body
            if not (isinstance(stmt, c.If) and stmt.condition == guard and not stmt.otherwise)
        ]
        self._own = {node.name: node for node in walk.nodes_in(idle) if isinstance(node, c.Declare)}
        self._zeros: set[str] = set()
        self._fields: dict[str, set[str]] = {}  # of vectors: those that are zero
        self.leaves_nothing = all(self._is_nothing(stmt, 0) for stmt in idle)

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
                root = walk.root_variable(target)[0]
                if root is None or not self._is_quiet(value) or not self._is_quiet(target):
                    return False
                if root in self._own and self._is_local(root):
                    if op != "+=" or not self._is_zero(value):
                        self._set(root, target, value if op == "=" else None)
                    return True
                return op == "+=" and isinstance(target, c.Name) and self._is_zero(value)
        return False

    def _is_nothing_in_loop(self, loop: c.For, depth: int) -> bool:
        filled = _match_fill_loop(loop)
        if filled is not None and filled[0] in self._own:
            name, size, value = filled
            if self._is_zero(value) and size == _byte_count(self._own[name]):
                self._zeros.add(name)
                return True
        heads = (*loop.init, *loop.step, *(() if loop.condition is None else (loop.condition,)))
        quiet = (Effects.ASSIGNS, Effects.NONE)
        if any(effects_of(part) not in quiet for part in heads) or not _is_counted_loop(loop):
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
            if self._fields[name] == set(_vector_fields(self._own[name])):
                self._zeros.add(name)

    def _is_local(self, name: str) -> bool:
        """A variable or array of the turn, not what a pointer of the turn points to."""
        declare = self._own.get(name)
        return declare is not None and not declare.type.is_pointer and not declare.type.reference

    def _is_quiet(self, expr: c.Expr) -> bool:
        """Whether evaluating it does nothing; it may read what is there in every turn."""
        if effects_of(expr) & ~(Effects.READS | Effects.THREAD | Effects.SHAPE):
            return False
        reads = (node for node in walk.nodes_in(expr) if isinstance(node, c.Index))
        return all(walk.root_variable(node)[0] in self._own for node in reads)

    def _is_zero(self, expr: c.Expr) -> bool:
        match expr:
            case c.Number(value=value):
                return value == 0
            case c.Name(name=name):
                return name in self._zeros
            case c.Index() | c.Member():
                root = walk.root_variable(expr)[0]
                return root is not None and root in self._zeros and self._is_local(root)
            case c.Cast(type=type_, value=inner):
                return not type_.is_pointer and self._is_zero(inner)
            case c.Binary(op="*" | "+", left=left, right=right):
                return self._is_zero(left) and self._is_zero(right)
            case c.Call(function=function, args=args, of=None):
                return function in _KEEP_ZERO and all(self._is_zero(arg) for arg in args)
        return False


def _vector_fields(declare: c.Declare) -> str:
    parts = None if declare.dims else vector_parts(declare.type.base)
    return "" if parts is None else "xyzw"[: parts[1]]


def _field_of(target: c.Expr, declare: c.Declare) -> str:
    """The field that `v.x = ` or `*(half2 *)&v.x = ` sets as a whole."""
    whole, fields = byte_size(declare.type.base), _vector_fields(declare)
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


def _is_counted_loop(loop: c.For) -> bool:
    """It ends by itself: its index starts and stops at numbers, and only its head moves it."""
    if len(loop.init) != 1 or not isinstance(loop.init[0], c.Declare) or len(loop.step) != 1:
        return False
    name, condition = loop.init[0].name, loop.condition
    moved = walk.assigned_in(loop.step[0]) == {name} and name not in walk.assigned_in(loop.body)
    return moved and isinstance(condition, c.Binary) and int_value(condition.right) is not None


def _match_fill_loop(loop: c.For) -> tuple[str, int, c.Expr] | None:
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


def _byte_count(declare: c.Declare) -> int | None:
    """Of a variable; of an array its elements, below zero, as `_filled` counts them."""
    if not declare.dims:
        return byte_size(declare.type.base)
    count = int_value(declare.dims[0]) if len(declare.dims) == 1 else None
    return None if count is None else -count


def _without_dead_fills(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Without what is set and then loaded over before anybody reads it."""
    declared = {node.name for node in body if isinstance(node, c.Declare)}
    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        name = _set_by(stmt)
        later = [s for s in body[at + 1 :] if name and name in walk.names_in(s)]
        dead = name in declared and later
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
    filled = _match_fill_loop(stmt) if isinstance(stmt, c.For) else None
    if filled is not None:
        return filled[0]
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=target)):
            return walk.root_variable(target)[0] or ""
    return ""


def _read_by(stmt: c.Stmt) -> frozenset[str]:
    fill = _match_fill_loop(stmt) if isinstance(stmt, c.For) else None
    value = fill[2] if fill is not None else None
    if isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign):
        value = stmt.expr.value
    return frozenset() if value is None else walk.names_in(value)


def _is_set_whole(stmt: c.Stmt, name: str, body: Sequence[c.Stmt]) -> bool:
    declare = next((n for n in body if isinstance(n, c.Declare) and n.name == name), None)
    filled = _match_fill_loop(stmt) if isinstance(stmt, c.For) else None
    if filled is not None:
        return declare is not None and filled[1] == _byte_count(declare)
    return (
        isinstance(stmt, c.Evaluate) and isinstance(stmt.expr, c.Assign) and stmt.expr.target == c.Name(name)
    )


# -- Variables that every turn of a loop sets before it reads them, declared inside the loop.
#
#     float4 v;  __half2 *parts = (__half2 *)&v;        for (i ...) {
#     for (i ...) {                                         float4 v;  __half2 *parts = (__half2 *)&v;
#         v = x[i];  ... parts[0] ...         ->            v = x[i];  ... parts[0] ...
#     }                                                 }
#
# So nothing of them is carried from turn to turn. Every byte of the variable has to be written, as a whole or
# through a pointer to its parts, before anything of it is read.


_MAX = 256  # bytes of one variable


@dataclass(frozen=True)
class TurnVariable:
    """A variable and the pointers to it, each name with the bytes of an element that it reaches."""

    declares: tuple[c.Declare, ...]
    size: int
    parts: Mapping[str, int]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(declare.name for declare in self.declares)


def with_scratch_in_loops(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """At the top level of a kernel; names are each declared once."""
    moved: dict[int, list[c.Declare]] = {}
    for scratch in _find_turn_variables(body):
        users = [
            at
            for at, stmt in enumerate(body)
            if stmt not in scratch.declares and walk.names_in(stmt) & scratch.names
        ]
        loop = body[users[0]] if len(users) == 1 else None
        if not isinstance(loop, c.For) or walk.names_in(_loop_head_statements(loop)) & scratch.names:
            continue
        if _is_written_first(loop.body, scratch):
            moved.setdefault(users[0], []).extend(scratch.declares)
    gone = [declare for declares in moved.values() for declare in declares]
    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        if at in moved and isinstance(stmt, c.For):
            stmt = replace(stmt, body=(*moved[at], *stmt.body))
        if stmt not in gone:
            done.append(stmt)
    return tuple(done)


def _loop_head_statements(loop: c.For) -> tuple[c.Stmt, ...]:
    tests = (*loop.step, *(() if loop.condition is None else (loop.condition,)))
    return (*loop.init, *(c.Evaluate(test) for test in tests))


def _find_turn_variables(body: Sequence[c.Stmt]) -> list[TurnVariable]:
    declares = [stmt for stmt in body if isinstance(stmt, c.Declare)]
    changed = walk.assigned_in([s for s in body if not isinstance(s, c.Declare)])
    pointers: dict[str, list[c.Declare]] = {}
    for stmt in declares:
        target = _pointee_variable(stmt.init) if stmt.type.pointers == 1 and not stmt.dims else ""
        if target and stmt.name not in changed:
            pointers.setdefault(target, []).append(stmt)
    found: list[TurnVariable] = []
    for variable in declares:
        size = _size_in_bytes(variable)
        if (
            variable.init is not None
            or variable.storage
            or variable.type.is_pointer
            or variable.type.reference
            or size is None
        ):
            continue
        parts = {one.name: byte_size(one.type.base) or 0 for one in pointers.get(variable.name, [])}
        if variable.dims:
            parts[variable.name] = byte_size(variable.type.base) or 0
        if parts and all(parts.values()):
            found.append(TurnVariable((variable, *pointers.get(variable.name, [])), size, parts))
    return found


def _pointee_variable(init: c.Expr | None) -> str:
    """The variable that `(T *)&v` points to."""
    while isinstance(init, c.Cast):
        init = init.value
    match init:
        case c.Unary(op="&", operand=c.Name(name=name)):
            return name
    return ""


def _size_in_bytes(declare: c.Declare) -> int | None:
    size = byte_size(declare.type.base)
    for dim in declare.dims:
        count = int_value(dim)
        size = None if size is None or count is None else size * count
    return size if size is not None and 0 < size <= _MAX else None


def _is_written_first(body: Sequence[c.Stmt], scratch: TurnVariable) -> bool:
    left = set(range(scratch.size))
    for stmt in body:
        if not left:
            return True
        if not walk.names_in(stmt) & scratch.names:
            continue
        written = _bytes_written(stmt, scratch)
        if written is None:
            return False
        left -= written
    return not left


def _bytes_written(stmt: c.Stmt, scratch: TurnVariable) -> set[int] | None:
    """The bytes that a statement sets; None where it does anything else with the variable."""
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=target, value=value)):
            if walk.names_in(value) & scratch.names:
                return None
            match target:
                case c.Name(name=name) if name == scratch.declares[0].name and not scratch.declares[0].dims:
                    return set(range(scratch.size))
                case c.Index(base=c.Name(name=name), index=index) if name in scratch.parts:
                    at, size = int_value(index), scratch.parts[name]
                    return None if at is None else set(range(at * size, (at + 1) * size))
        case c.For(body=(c.Evaluate(expr=c.Assign(op="=", target=target, value=value)),)):
            head = head_of(stmt)
            count = None if head is None else trip_count(head)
            if head is None or count is None or walk.names_in(value) & scratch.names:
                return None
            match target, head.start, head.step:
                case c.Index(c.Name(name=name), c.Name(name=own)), c.Number(value=0), c.Number(value=1):
                    if name in scratch.parts and own == head.index:
                        return set(range(count * scratch.parts[name]))
    return None
