"""Bits of local arrays taken as another type: `memcpy` between one and a variable as an assignment; arrays
that are accessed as wider words aligned for it.

    int4 bits; memcpy(&bits, &cells, sizeof(bits));    ->    bits = ((int4 *)cells)[0];
    half cells[8]; ((uint4 *)cells)[0] = bits;         ->    alignas(16) half cells[8]; ...

A variable that is taken apart (`objects`) has lost the alignment of its record, and `memcpy` asks for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.types import byte_size, integer

_COPIES = frozenset({"memcpy", "__builtin_memcpy", "std::memcpy"})


@dataclass(frozen=True)
class LocalStorage:
    """A variable of the function: one value, or an array of `count` of them."""

    base: str
    count: int  # 0: no array

    @property
    def bytes(self) -> int | None:
        size = byte_size(self.base)
        return None if size is None else size * max(1, self.count)


def with_bit_copies(body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    storage = _storage(body)

    def stmt(one: c.Stmt) -> c.Stmt:
        match one:
            case c.Evaluate(expr=c.Call(function=name, args=(to, of, size), of=None)) if name in _COPIES:
                done = _assigned(to, of, int_value(fold(size)), storage)
                return one if done is None else replace(one, expr=done)
        return one

    return _aligned(walk.map_statements(body, on_stmt=stmt), storage)


def _storage(body: tuple[c.Stmt, ...]) -> dict[str, LocalStorage]:
    """By name, where a name means one thing only."""
    found: dict[str, LocalStorage] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Declare):
            continue
        counts = [int_value(fold(dim)) for dim in node.dims]
        plain = not node.type.is_pointer and not node.type.reference and not node.storage and len(counts) < 2
        known = LocalStorage(node.type.base, (counts[0] or 0) if counts else 0)
        if not plain or None in counts or node.name in found:
            known = LocalStorage("", 0)
        found[node.name] = known
    return {name: one for name, one in found.items() if one.bytes is not None}


def _assigned(to: c.Expr, of: c.Expr, size: int | None, storage: Mapping[str, LocalStorage]) -> c.Expr | None:
    names = _named(to), _named(of)
    target, value = (storage.get(name) for name in names)
    if size is None or target is None or value is None or size > min(target.bytes or 0, value.bytes or 0):
        return None
    if bool(target.count) == bool(value.count):  # of two single values one may be no variable later on
        return None
    word = value if target.count else target
    if word.bytes != size:
        return None
    sides = [
        c.Index(c.Cast(c.Type(word.base, 1), c.Name(name)), integer(0)) if one.count else c.Name(name)
        for name, one in zip(names, (target, value), strict=True)
    ]
    return c.Assign("=", sides[0], sides[1])


def _named(place: c.Expr) -> str:
    if isinstance(place, c.Cast) and place.type == c.Type("void", 1):
        place = place.value
    if isinstance(place, c.Unary) and place.op == "&":
        place = place.operand
    return place.name if isinstance(place, c.Name) else ""


def _aligned(body: tuple[c.Stmt, ...], storage: Mapping[str, LocalStorage]) -> tuple[c.Stmt, ...]:
    """Arrays aligned to the widest word that they are accessed as."""
    widest: dict[str, int] = {}
    for node in walk.nodes_in(body):
        match node:
            case c.Cast(type=type_, value=c.Name(name=name)) if type_.pointers == 1 and name in storage:
                own, word = byte_size(storage[name].base), byte_size(type_.base)
                if storage[name].count and own is not None and word is not None and word > own:
                    widest[name] = max(word, widest.get(name, 0))

    def declared(declare: c.Declare) -> c.Declare:
        by = widest.get(declare.name)
        return declare if by is None or declare.align is not None else replace(declare, align=integer(by))

    return walk.map_statements(body, on_stmt=lambda s: walk.map_declared(s, declared)) if widest else body
