"""What methods put in place leave behind, made plain: loops of one turn, arrays of one or by other names.

uint4 data[1]; for (i = 0; i < 1; ++i) data[i] = p[i]; ... ((half *)data)[j]
    ->  uint4 data; data = p[0]; ... ((half *)&data)[j]
float4 data[2]; ... ((float *)data)[j]      where it is never used otherwise
    ->  float data[8]; ... data[j]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import fold_statements, int_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size, integer, of_type

_ZERO = c.Number("0", 0)
_FEW = 4  # turns of a loop that is written out


def simplified(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Names in the statements are each declared once."""
    body = walk.map_statements(fold_statements(body), on_stmt=_without_few_turns)
    return _with_plain_arrays(fold_statements(body))


def declared_where_set(body: tuple[c.Stmt, ...], names: set[str]) -> tuple[c.Stmt, ...]:
    """`float v_x; ... v_x = a;` as `... float v_x = a;`, where that is the first that is heard of it."""
    done: list[c.Stmt] = []
    stmts = [walk.map_blocks(stmt, lambda inside: declared_where_set(inside, names)) for stmt in body]
    later: dict[int, c.Stmt] = {}
    for at, stmt in enumerate(stmts):
        if at in later:
            done.append(later[at])
            continue
        if isinstance(stmt, c.Declare) and stmt.name in names and _is_bare(stmt):
            use = next((n for n in range(at + 1, len(stmts)) if stmt.name in _named(stmts[n])), None)
            value = None if use is None else _value_set(stmts[use], stmt.name)
            if use is not None and value is not None and use not in later:
                later[use] = replace(stmt, init=value)
                continue
        done.append(stmt)
    return tuple(done)


def _is_bare(stmt: c.Declare) -> bool:
    return stmt.init is None and not stmt.dims and not stmt.storage


def _named(stmt: c.Stmt) -> frozenset[str]:
    return walk.names_in(stmt) | frozenset(walk.declared_in(stmt))


def _value_set(stmt: c.Stmt, name: str) -> c.Expr | None:
    match stmt:
        case c.Evaluate(expr=c.Assign(op="=", target=c.Name(name=own), value=value)) if own == name:
            return None if name in walk.names_in(value) else value
    return None


def _without_few_turns(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
    if not isinstance(stmt, c.For) or len(stmt.init) != 1 or len(stmt.step) != 1:
        return stmt
    index, condition = stmt.init[0], stmt.condition
    if not isinstance(index, c.Declare) or index.init is None or not isinstance(condition, c.Binary):
        return stmt
    name = c.Name(index.name)
    start, stop = int_value(index.init), int_value(condition.right)
    counts = stmt.step[0] in (c.Unary("++", name), c.Unary("++", name, postfix=True))
    if start is None or stop is None or condition.op != "<" or condition.left != name or not counts:
        return stmt
    if stop != start + 1 and not (start == 0 < stop <= _FEW and _moves_vectors(stmt)):
        return stmt
    if index.name in walk.assigned_in(stmt.body) or any(
        isinstance(n, c.Jump) for n in walk.nodes_in(stmt.body)
    ):
        return stmt
    if stop == start + 1:
        value = of_type(integer(start), c.Type(index.type.base)) if start else _ZERO
        return walk.commented(substitute(stmt.body, {index.name: value}), stmt.comments)
    turns = (substitute(stmt.body, {index.name: integer(turn)}) for turn in range(stop))
    return walk.commented(tuple(part for turn in turns for part in turn), stmt.comments)


def _moves_vectors(loop: c.For) -> bool:
    """A few vectors between an object and memory: `for (i ...) ((float4 *)to)[i] = data[i];`."""
    stmt = loop.body[0] if len(loop.body) == 1 and loop.unroll == 0 else None
    if not isinstance(stmt, c.Evaluate) or not isinstance(stmt.expr, c.Assign) or stmt.expr.op != "=":
        return False
    sides = (stmt.expr.target, stmt.expr.value)
    index = c.Name(loop.init[0].name) if isinstance(loop.init[0], c.Declare) else None
    indexed = all(isinstance(side, c.Index) and side.index == index for side in sides)
    return indexed and any(isinstance(side, c.Index) and isinstance(side.base, c.Cast) for side in sides)


def _with_plain_arrays(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    single: dict[str, str] = {}
    other: dict[str, tuple[str, int]] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Declare) or len(node.dims) != 1 or node.storage or node.type.is_pointer:
            continue
        count = int_value(node.dims[0])
        uses = list(_uses(body, node.name))
        if count is None or node.init is not None or "" in uses:
            continue
        own, kinds = byte_size(node.type.base), set(uses)
        if count == 1:
            single[node.name] = node.type.base
        elif len(kinds) == 1 and own is not None:
            base = kinds.pop()
            size = byte_size(base)
            if base != "[]" and size is not None and (own * count) % size == 0:
                other[node.name] = base, own * count // size
    if not single and not other:
        return body

    def expr(node: c.Expr) -> c.Expr:
        match node:
            case c.Index(base=c.Name(name=name), index=c.Number(value=0)) if name in single:
                return c.Name(name)
            case c.Cast(type=type_, value=c.Name(name=name)) if name in single and type_.is_pointer:
                return c.Cast(type_, c.Unary("&", c.Name(name)))
            case c.Index(base=c.Cast(value=c.Name(name=name)), index=index) if name in other:
                return c.Index(c.Name(name), index)
        return node

    def declared(stmt: c.Stmt) -> c.Stmt:
        if isinstance(stmt, c.Declare) and stmt.name in single:
            return replace(stmt, dims=())
        if isinstance(stmt, c.Declare) and stmt.name in other:
            base, count = other[stmt.name]
            return replace(stmt, type=replace(stmt.type, base=base), dims=(integer(count),))
        return stmt

    return walk.map_statements(body, lambda whole: walk.map_expr(whole, expr), declared)


def _uses(body: tuple[c.Stmt, ...], name: str) -> Iterator[str]:
    """How an array is used: "[]" by its index, the type through which it is indexed, "" in any other way.

    One of a single element may only be indexed by 0, or the element is not the array.
    """
    sizes: Mapping[str, int | None] = {
        n.name: int_value(n.dims[0]) for n in walk.nodes_in(body) if isinstance(n, c.Declare) and n.dims
    }
    seen: set[int] = set()
    for node in walk.nodes_in(body):
        match node:
            case c.Index(base=c.Name(name=used), index=index) if used == name:
                seen.add(id(node.base))
                yield "[]" if sizes.get(name) != 1 or index == _ZERO else ""
            case c.Index(base=c.Cast(type=type_, value=c.Name(name=used) as inner)) if used == name:
                seen.add(id(inner))
                yield type_.base if type_.pointers == 1 else ""
            case c.Name(name=used) if used == name and id(node) not in seen:
                yield ""
            case c.Opaque(names=names) | c.Verbatim(names=names) if name in names:
                yield ""
