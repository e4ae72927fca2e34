"""CUB's loads and stores of a block's elements, as what each thread loads and stores for itself.

    cub::BlockLoad<float, 256, 4>(temp).Load(p, items, n, 0.0f)
        ->  for (j = 0; j < 4; ++j) items[j] = threadIdx.x * 4 + j < n ? p[threadIdx.x * 4 + j] : 0.0f

How the elements come there (directly, as vectors, by way of shared memory) makes no difference to who has
which: thread t has those from t * ITEMS on. Striped ones, and blocks of several axes, are left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource.effects import is_pure
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.lex import lex, split_at, squeeze
from tunesmith.csource.parse import read_expression

_COPY = re.compile(r"(?:typename )?cub::Block(Load|Store)<(.+)>")
COPY_STORAGE = re.compile(r"(?:typename )?cub::Block(?:Load|Store)<.+>::TempStorage")
SHARED_STORAGE = re.compile(r"__shared__ union \{(?: ?(?:typename )?[^;{}]+::TempStorage \w+;)+ ?\} ?\w+ ?;?")
_BLOCKED = re.compile(
    r"(?:cub::)?BLOCK_(?:LOAD|STORE)_(?:DIRECT|VECTORIZE|(?:WARP_)?TRANSPOSE(?:_TIMESLICED)?)"
)


@dataclass(frozen=True)
class BlockCopy:
    way: str  # Load, Store
    items: int


def copy_of(base: str) -> BlockCopy | None:
    """What a type copies; None where it is no such type, or one whose elements lie otherwise."""
    found = _COPY.fullmatch(base)
    if found is None:
        return None
    args = [squeeze(part) for part in split_at(",", lex(found[2])) if part]
    if not 3 <= len(args) <= 4 or (len(args) == 4 and not _BLOCKED.fullmatch(args[3])):
        return None
    try:
        items = int_value(fold(read_expression(args[2])))
    except c.Unreadable:
        return None
    return BlockCopy(found[1], items) if items is not None and 0 < items <= 256 else None


def copied(call: c.Call, copy: BlockCopy, number: int, line: int) -> tuple[c.Stmt, ...] | None:
    """The call as statements; None where it is not understood."""
    if call.function != copy.way or not 2 <= len(call.args) <= 3 + (copy.way == "Load"):
        return None
    place, items, *more = call.args
    if not all(is_pure(arg) for arg in more) or not isinstance(items, c.Name | c.Index):
        return None
    index, count = c.Name(f"item_{number}"), c.Number(str(copy.items), copy.items)
    at = c.Binary("+", c.Binary("*", c.Name("threadIdx.x"), count), index)
    there, here = _element(place, at), c.Index(items, index)
    target, value = (here, there) if copy.way == "Load" else (there, here)
    before: list[c.Stmt] = []
    body: c.Stmt = c.Evaluate(c.Assign("=", target, value), line=line)
    if more:
        valid: c.Expr = more[0]
        if not isinstance(valid, c.Name | c.Number):
            before.append(c.Declare(c.Type("int", const=True), f"valid_{number}", valid, line=line))
            valid = c.Name(f"valid_{number}")
        inside = c.Binary("<", at, valid)
        if len(more) == 2:
            chosen = c.Ternary(inside, value, more[1])
            body = c.Evaluate(c.Assign("=", target, chosen), line=line)
        else:
            body = c.If(inside, (body,), line=line)
    zero = c.Declare(c.Type("int"), index.name, c.Number("0", 0), line=line)
    head = c.Binary("<", index, count), (c.Unary("++", index),)
    return (*before, c.For((zero,), *head, (body,), unroll=0, line=line))


def _element(place: c.Expr, at: c.Expr) -> c.Expr:
    match place:
        case c.Unary(op="&", operand=c.Index(base=base, index=index)):
            return c.Index(base, c.Binary("+", index, at))
    return c.Index(place, at)
