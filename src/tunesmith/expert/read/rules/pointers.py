"""Places that are counted in bytes, counted in elements: `(float *)((char *)x + row * nb1)`.

Every term of the bytes is a whole number of elements: by its own factor, or by an argument that the problem
file says is a multiple (`value = "4 * d"`). What is not is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.read.integers import LaunchTerms, expand_terms, from_terms, make_sum, number_node
from tunesmith.expert.read.rules.totals import find_cooperative_call
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.substitution import substitute, with_unique_names
from tunesmith.source.types import byte_size, declared_types
from tunesmith.space import expr as size

_BYTES = frozenset({"char", "signed char", "unsigned char", "uchar", "uint8_t", "int8_t", "void"})
_NARROW = frozenset({*_BYTES, "short", "unsigned short", "int16_t", "uint16_t", "bool"})


def in_elements(function: c.Function, body: tuple[c.Stmt, ...], launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    types = {**declared_types(function), **{p.name: p.type for p in function.parameters}}
    changed = walk.assigned_in(body)

    def node(expr: c.Expr) -> c.Expr:
        match expr:
            case c.Cast(type=type_, value=c.Binary("+") as place) if type_.pointers == 1:
                return _counted(type_, place) or expr
        return expr

    def _counted(type_: c.Type, place: c.Expr) -> c.Expr | None:
        offsets: list[c.Expr] = []
        while isinstance(place, c.Binary) and place.op == "+":
            offsets.append(place.right)
            place = place.left
        unit = byte_size(type_.base)
        if not (isinstance(place, c.Cast) and place.type.pointers == 1 and place.type.base in _BYTES):
            return None
        pointer = place.value
        known = types.get(pointer.name) if isinstance(pointer, c.Name) else None
        if known is None or unit is None or (known.base, known.pointers) != (type_.base, 1):
            return None
        total: c.Expr = number_node(0)
        for offset in reversed(offsets):
            found = _in_units(offset, unit, launch.parameters, changed)
            if found is None:
                return None
            total = found if total == number_node(0) else c.Binary("+", total, found)
        return c.Binary("+", pointer, total)

    return walk.map_nodes(body, node)


def _in_units(
    offset: c.Expr, unit: int, known: Mapping[str, size.Node], changed: frozenset[str]
) -> c.Expr | None:
    if any(isinstance(part, c.Cast) and part.type.base in _NARROW for part in walk.nodes_in(offset)):
        return None
    done: dict[tuple[c.Expr, ...], int] = {}
    for key, count in expand_terms(offset).items():
        if count < 0:
            return None
        if count % unit == 0:
            done[key] = done.get(key, 0) + count // unit
            continue
        at = next((i for i, factor in enumerate(key) if _is_multiple(factor, unit, known, changed)), None)
        if at is None:
            return None
        whole = (*key[:at], c.Binary("/", key[at], number_node(unit)), *key[at + 1 :])
        done[whole] = done.get(whole, 0) + count
    return from_terms(done)


def _is_multiple(factor: c.Expr, unit: int, known: Mapping[str, size.Node], changed: frozenset[str]) -> bool:
    if not isinstance(factor, c.Name) or factor.name in changed or factor.name not in known:
        return False
    return _is_multiple_of_unit(unit, known[factor.name])


def _is_multiple_of_unit(unit: int, tree: size.Node) -> bool:
    match tree:
        case size.Num(value=value):
            return value % unit == 0
        case size.Arithmetic("*", left, right):
            return _is_multiple_of_unit(unit, left) or _is_multiple_of_unit(unit, right)
        case size.Arithmetic("+" | "-", left, right):
            return _is_multiple_of_unit(unit, left) and _is_multiple_of_unit(unit, right)
    return False


# -- Pointers to a thread's own arrays, as the arrays: `float *p = b + 2; p[k]` is `b[2 + k]`.
#
# Only of a pointer that always points to the same place. Another one is refused where its thread's work would
# be shared out (`styles/team`): whoever looks for the array's name would miss what the pointer does to
# it.


@dataclass(frozen=True)
class _PointedAt:
    array: str
    at: c.Expr


def with_arrays_for_pointers(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """`body` has unique names."""
    arrays = _own_arrays(body)
    if not arrays:
        return body
    changed = walk.assigned_in(body) - _find_loop_counters(body)
    fixed = {
        stmt.name: stmt
        for stmt in walk.statements_in(body)
        if isinstance(stmt, c.Declare) and _is_pointer(stmt) and stmt.name not in changed
    }
    hidden = _find_escaping_names(body)
    found: dict[str, _PointedAt] = {}
    for name, declare in fixed.items():
        target = None if declare.init is None else _resolve_pointee(declare.init, declare.type, arrays, found)
        if target is not None and name not in hidden and not walk.names_in(target.at) & changed:
            found[name] = target
    if not found:
        return body
    pointed = {target.array for target in found.values()}
    return _remove_pointer_declares(
        walk.map_nodes(body, lambda node: _rewrite_dereference(node, found, pointed)), found
    )


def _own_arrays(body: tuple[c.Stmt, ...]) -> dict[str, c.Declare]:
    """Arrays of one dimension that each thread has for itself."""
    nodes = (node for node in walk.nodes_in(body) if isinstance(node, c.Declare))
    return {node.name: node for node in nodes if len(node.dims) == 1 and not node.storage}


def _is_pointer(stmt: c.Declare) -> bool:
    plain = not stmt.dims and not stmt.storage and not stmt.type.reference
    return plain and stmt.type.pointers == 1 and not stmt.type.volatile


def _find_loop_counters(body: tuple[c.Stmt, ...]) -> set[str]:
    """Indices of loops that only their heads move: each turn has one value of them."""
    return {
        part.name
        for node in walk.nodes_in(body)
        if isinstance(node, c.For)
        for part in node.init
        if isinstance(part, c.Declare) and not part.type.is_pointer
        and part.name not in walk.assigned_in(node.body)
    }  # fmt: skip


def _find_escaping_names(body: tuple[c.Stmt, ...]) -> set[str]:
    """Names whose address is taken, or that stand in a text that is not understood."""
    found: set[str] = set()
    for node in walk.nodes_in(body):
        match node:
            case c.Unary(op="&", operand=c.Name(name=name)):
                found.add(name)
            case c.Opaque() | c.Verbatim():
                found |= set(node.names)
    return found


def _resolve_pointee(
    value: c.Expr, type_: c.Type, arrays: Mapping[str, c.Declare], known: Mapping[str, _PointedAt]
) -> _PointedAt | None:
    match value:
        case c.Name(name=name) if name in known:
            return known[name]
        case c.Name(name=name) if name in arrays:
            same = arrays[name].type.base == type_.base and not arrays[name].type.is_pointer
            return _PointedAt(name, number_node(0)) if same else None
        case c.Cast(type=to, value=inner) if (to.base, to.pointers) == (type_.base, 1):
            return _resolve_pointee(inner, type_, arrays, known)
        case c.Unary(op="&", operand=c.Index(base=base, index=index)):
            return _advance_pointee(_resolve_pointee(base, type_, arrays, known), index)
        case c.Binary(op="+", left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if (found := _resolve_pointee(one, type_, arrays, known)) is not None:
                    return _advance_pointee(found, other)
    return None


def _advance_pointee(target: _PointedAt | None, by: c.Expr) -> _PointedAt | None:
    return None if target is None else _PointedAt(target.array, make_sum(target.at, by))


def _rewrite_dereference(node: c.Expr, known: Mapping[str, _PointedAt], arrays: set[str]) -> c.Expr:
    """`map_nodes` comes to what is inside first, so that pointers are `b + at` by then."""
    match node:
        case c.Name(name=name) if name in known:
            array, at = c.Name(known[name].array), known[name].at
            return array if at == number_node(0) else c.Binary("+", array, at)
        case c.Index(base=c.Binary(op="+", left=c.Name(name=name), right=at), index=index) if name in arrays:
            return c.Index(c.Name(name), make_sum(at, index))
        case c.Unary(op="*", operand=c.Binary(op="+", left=c.Name(name=name), right=at)) if name in arrays:
            return c.Index(c.Name(name), at)
        case c.Unary(op="*", operand=c.Name(name=name)) if name in arrays:
            return c.Index(c.Name(name), number_node(0))
    return node


def _remove_pointer_declares(body: tuple[c.Stmt, ...], known: Mapping[str, _PointedAt]) -> tuple[c.Stmt, ...]:
    def block(stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        kept = (s for s in stmts if not (isinstance(s, c.Declare) and s.name in known))
        return tuple(walk.map_blocks(stmt, block) for stmt in kept)

    return block(body)


# -- A pointer that a branch chooses among arrays: what follows is done in each branch, with its own
# pointer.
#
# const float *from;                                if (i < n) {
# if (i < n) from = a + i;                              const float *from = a + i;  out[k] = from[0];
# else from = b + (i - n);                ->        } else {
# out[k] = from[0];                                     const float *from = b + (i - n);  out[k] = from[0];
#                                                   }


_NOTHING = (None, c.Name("nullptr"), c.Name("NULL"), c.Number("0", 0))
_LONGEST = 400  # nodes of what follows: it stands twice


def with_branches_for_pointers(
    body: tuple[c.Stmt, ...], parameters: Sequence[c.Parameter]
) -> tuple[c.Stmt, ...]:
    """At the top level of a kernel; names are each declared once."""
    for at, stmt in enumerate(body):
        if not isinstance(stmt, c.If) or not stmt.otherwise:
            continue
        rest = body[at + 1 :]
        chosen = {
            declare.name: declare
            for declare in body[:at]
            if isinstance(declare, c.Declare)
            and declare.type.is_pointer
            and declare.init in _NOTHING
            and not declare.is_array
            and _is_chosen(declare.name, stmt, body[:at])
        }
        if not chosen or not rest or not _may_stand_twice(rest):
            continue
        sides = [(*_declare_at_assignment(side, chosen), *rest) for side in (stmt.then, stmt.otherwise)]
        before = tuple(one for one in body[:at] if one not in chosen.values())
        done = (*before, replace(stmt, then=sides[0], otherwise=sides[1]))
        return with_unique_names(done, {parameter.name for parameter in parameters})
    return body


def _is_chosen(name: str, branch: c.If, before: Sequence[c.Stmt]) -> bool:
    """Whether each branch sets it once, before it is used, to an array of its own."""
    if name in walk.names_in(before) | walk.names_in(branch.condition):
        return False
    arrays: list[str | None] = []
    for side in (branch.then, branch.otherwise):
        uses = [stmt for stmt in side if name in walk.names_in(stmt)]
        value = _set_to(uses[0], name) if uses else None
        if value is None or name in walk.names_in(value) or name in walk.assigned_in(uses[1:]):
            return False
        arrays.append(walk.root_variable(c.Index(value, c.Number("0", 0)))[0])
    return None not in arrays and arrays[0] != arrays[1]


def _set_to(stmt: c.Stmt, name: str) -> c.Expr | None:
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=own), value=value)) if own == name:
            return value
    return None


def _declare_at_assignment(side: Sequence[c.Stmt], chosen: dict[str, c.Declare]) -> list[c.Stmt]:
    done: list[c.Stmt] = []
    for stmt in side:
        for name, declare in chosen.items():
            value = _set_to(stmt, name)
            if value is not None:
                stmt = replace(declare, init=value, line=stmt.line)
                break
        done.append(stmt)
    return done


def _may_stand_twice(rest: Sequence[c.Stmt]) -> bool:
    declares = any(isinstance(node, c.Declare) and node.storage for node in walk.nodes_in(rest))
    is_short = sum(1 for _ in walk.nodes_in(rest)) <= _LONGEST
    return is_short and not declares and find_cooperative_call(rest) is None


# -- Pointers that a loop moves, as numbers: `p += step` becomes `p_at += step`, and `p[i]` is `p[p_at +
# i]`.
#
# The pointer itself moves outside of loops alone then. A loop whose index begins with the thread's own is
# shared among threads, none of which knows where the turns of the others have left a pointer.


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
    zeros = [work.zero(p.name, 0) for p in parameters if p.name in moved]
    return (*zeros, *work.block(body, True))


class _PointerNumbers:
    def __init__(self, moved: Mapping[str, str], type_: c.Type) -> None:
        self._moved, self._type = moved, type_
        self._values = {name: c.Binary("+", c.Name(name), c.Name(at)) for name, at in moved.items()}

    def zero(self, name: str, line: int) -> c.Declare:
        return c.Declare(self._type, self._moved[name], number_node(0), line=line)

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
                return [walk.map_simple(stmt, self._rewrite_pointer_moves), self.zero(name, stmt.line)]
            case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=name), value=value)) if (
                name in self._moved and _own_move(stmt.expr) is None
            ):
                again = c.Assign("=", c.Name(self._moved[name]), number_node(0))
                value = substitute(value, self._values)
                anew = c.Evaluate(c.Assign("=", c.Name(name), value), stmt.line, stmt.comments)
                return [anew, c.Evaluate(again, stmt.line)]
            case c.Scope(body=body):
                return [*self.block(body, top)]
        return [walk.map_parts(stmt, self._rewrite_pointer_moves, lambda body: self.block(body, False))]

    def _rewrite_pointer_moves(self, expr: c.Expr) -> c.Expr:
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
            return name, f"{op[0]}=", number_node(1)
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
