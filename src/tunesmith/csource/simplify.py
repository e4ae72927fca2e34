"""What putting methods in place leaves behind, made plain: loops of one turn, arrays of one, arrays by other names.

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


def simplified(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    """Names in the statements are each declared once."""
    body = walk.map_statements(fold_statements(body), on_stmt=_without_single_turn)
    return _with_plain_arrays(fold_statements(body))


def _without_single_turn(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
    if not isinstance(stmt, c.For) or len(stmt.init) != 1 or len(stmt.step) != 1:
        return stmt
    index, condition = stmt.init[0], stmt.condition
    if not isinstance(index, c.Declare) or index.init is None or not isinstance(condition, c.Binary):
        return stmt
    name = c.Name(index.name)
    start, stop = int_value(index.init), int_value(condition.right)
    counts = stmt.step[0] in (c.Unary("++", name), c.Unary("++", name, postfix=True))
    if start is None or stop != start + 1 or condition.op != "<" or condition.left != name or not counts:
        return stmt
    if index.name in walk.assigned_in(stmt.body) or any(isinstance(n, c.Jump) for n in walk.nodes_in(stmt.body)):
        return stmt
    value = of_type(integer(start), c.Type(index.type.base)) if start else _ZERO
    done = substitute(stmt.body, {index.name: value})
    return walk.commented(done, stmt.comments)


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
