"""Where memory is touched: pointer arithmetic folded into one canonical form of access.

The canonical forms of an access to an array (a kernel parameter or shared memory), which the rest of the
expert may rely on:

    Index(Name(array), index)                                     in the array's own type
    Index(Cast(Type("uint4", pointers=1), Name(array)), index)    the same bytes read as another type,
    Index(Cast(Type(...), Binary("+", Name(array), offset)), index)   `offset` in elements of the array's own
                                                                  type, `index` in units of the type read

`__ldg(p)`, `__ldcs(p)` and their like become plain accesses: how to cache is the schedule's to say. So does
`__stcs(p, v)`. `&a[i]` as a pointer is `a + i`. A cast to the type that the pointer has anyway is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tunesmith.csource.nodes import Assign, Binary, Call, Cast, Expr, Index, Member, Name, Type, Unary
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import map_expr
from tunesmith.expert.model.affine import number

_LOADS = frozenset({"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv", "__builtin_nontemporal_load"})
_STORES = frozenset({"__stcs", "__stcg", "__stwb", "__stwt"})


def folded(expr: Expr, types: Mapping[str, Type]) -> Expr:
    """Every access in the expression in canonical form. `types` are those of pointers and arrays."""
    return map_expr(expr, lambda node: _fold(node, types))


def _fold(node: Expr, types: Mapping[str, Type]) -> Expr:
    match node:
        case Call(function=function, args=(pointer,)) if function in _LOADS:
            return _fold(Index(pointer, number(0)), types)
        case Call(function=function, args=(pointer, value)) if function in _STORES:
            return Assign("=", _fold(Index(pointer, number(0)), types), value)
        case Unary(op="*", operand=operand):
            return _fold(Index(operand, number(0)), types)
        case Member(base=base, field=field, arrow=True):
            return Member(_fold(Index(base, number(0)), types), field)
        case Index(base=Binary() | Cast() | Unary() | Name() as base, index=index):
            return _indexed(base, index, types)
    return node


def _indexed(base: Expr, index: Expr, types: Mapping[str, Type]) -> Expr:
    while True:
        match base:
            case Binary(op="+", left=left, right=right) if is_pointer(left, types):
                base, index = left, _sum(right, index)
            case Binary(op="+", left=left, right=right) if is_pointer(right, types):
                base, index = right, _sum(left, index)
            case Binary(op="-", left=left, right=right) if is_pointer(left, types):
                base, index = left, _difference(index, right)
            case Unary(op="&", operand=Index(base=inner, index=at)) if _address(inner, types) is not None:
                base, index = inner, _sum(at, index)
            case Cast(type=type_, value=value) if type_.is_pointer:
                address = _address(value, types)
                if address is None:
                    return Index(base, index)
                own = address.type
                if own is not None and own.base == type_.base and own.pointers == type_.pointers:
                    base = _pointer(address)
                    continue
                return Index(Cast(replace(type_, restrict=False), _pointer(address)), index)
            case _:
                return Index(base, index)


@dataclass(frozen=True)
class _Address:
    array: str
    offset: Expr | None  # in elements of the array's own type
    type: Type | None  # of the pointer


def _address(expr: Expr, types: Mapping[str, Type]) -> _Address | None:
    """An array's name and the offset into it; None where the pointer is to something else."""
    match expr:
        case Name(name=name) if name in types and types[name].is_pointer:
            return _Address(name, None, types[name])
        case Binary(op="+" | "-" as op, left=left, right=right):
            if op == "+" and not is_pointer(left, types):
                left, right = right, left
            inner = _address(left, types)
            scale = None if inner is None else _scale(left, inner, types)
            if inner is None or scale is None:
                return None
            moved = right if scale == 1 else Binary("*", right, number(scale))
            joined = (_sum if op == "+" else _difference)(inner.offset or number(0), moved)
            return _Address(inner.array, joined, inner.type)
        case Unary(op="&", operand=Index(base=base, index=index)):
            return _address(Binary("+", base, index), types)
        case Cast(type=type_, value=value) if type_.is_pointer:
            return _address(value, types)
    return None


def _scale(pointer: Expr, address: _Address, types: Mapping[str, Type]) -> int | None:
    """How many elements of the array one step of the pointer is; None where it is no whole number."""
    while isinstance(pointer, Binary):
        pointer = pointer.left if is_pointer(pointer.left, types) else pointer.right
    if not isinstance(pointer, Cast) or address.type is None or pointer.type.base == address.type.base:
        return 1
    step, own = byte_size(pointer.type.base), byte_size(address.type.base)
    return step // own if step and own and step % own == 0 else None


def _pointer(address: _Address) -> Expr:
    if address.offset is None or address.offset == number(0):
        return Name(address.array)
    return Binary("+", Name(address.array), address.offset)


def is_pointer(expr: Expr, types: Mapping[str, Type]) -> bool:
    match expr:
        case Name(name=name):
            return name in types and types[name].is_pointer
        case Cast(type=type_):
            return type_.is_pointer
        case Binary(op="+" | "-", left=left, right=right):
            return is_pointer(left, types) != is_pointer(right, types)
        case Unary(op="&"):
            return True
    return False


def _sum(left: Expr, right: Expr) -> Expr:
    if left == number(0):
        return right
    if right == number(0):
        return left
    return Binary("+", left, right)


def _difference(left: Expr, right: Expr) -> Expr:
    return Unary("-", right) if left == number(0) else Binary("-", left, right)


# -- reading canonical accesses ---------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayPlace:
    """A canonical access taken apart. `as_type` is None where the array is read in its own type."""

    array: str
    index: Expr
    offset: Expr | None = None  # in elements of the array's own type
    as_type: Type | None = None


def without_members(expr: Expr) -> Expr:
    """`a[i].x` -> `a[i]`"""
    while isinstance(expr, Member):
        expr = expr.base
    return expr


def place_of(expr: Expr) -> ArrayPlace | None:
    """The place of an `Index` in canonical form; of `a[y][x]` too, with the outer index in `offset`."""
    if not isinstance(expr, Index):
        return None
    match expr.base:
        case Name(name=name):
            return ArrayPlace(name, expr.index)
        case Cast(type=type_, value=Name(name=name)) if type_.is_pointer:
            return ArrayPlace(name, expr.index, as_type=_pointee(type_))
        case Cast(type=type_, value=Binary(op="+", left=Name(name=name), right=offset)) if type_.is_pointer:
            return ArrayPlace(name, expr.index, offset, _pointee(type_))
    return None


def _pointee(type_: Type) -> Type:
    return Type(type_.base, type_.pointers - 1, type_.const, volatile=type_.volatile)
