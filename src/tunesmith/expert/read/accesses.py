"""Where memory is touched: pointer arithmetic folded into one canonical form of access.

The canonical forms of an access to an array (a kernel parameter or shared memory), which the rest of the
expert may rely on:

    Index(Name(array), index)                                     in the array's own type
    Index(Cast(Type("uint4", pointers=1), Name(array)), index)    the same bytes read as another type,
    Index(Cast(Type(...), Binary("+", Name(array), offset)), index)   `offset` in elements of the array's own
                                                                  type, `index` in units of the type read

`__ldg(p)`, `__ldcs(p)` and their like become plain accesses: how to cache is the schedule's to say. So does
`__stcs(p, v)`. `&a[i]` as a pointer is `a + i`. A cast to the type that the pointer has anyway is dropped.

How loops touch arrays: what depends on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.read.integers import (
    Stride,
    expand_terms,
    index_stride,
    make_sum,
    number_node,
    same_value,
    split_affine,
)
from tunesmith.source import tree as c
from tunesmith.source.effects import Effects, function_effects, is_function
from tunesmith.source.printing import print_expr
from tunesmith.source.types import byte_size
from tunesmith.source.walk import Part, assigned_in, declared_in, map_expr, names_in, nodes_in

_LOADS = frozenset({"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv", "__builtin_nontemporal_load"})
_STORES = frozenset({"__stcs", "__stcg", "__stwb", "__stwt"})
_ZERO = number_node(0)
_BY_CALL = " by vload and vstore"


@dataclass(frozen=True)
class ArrayPlace:
    """A canonical access taken apart. `as_type` is None where the array is read in its own type."""

    array: str
    index: c.Expr
    offset: c.Expr | None = None  # in elements of the array's own type
    as_type: c.Type | None = None


def fold_accesses(expr: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    """Every access in the expression in canonical form. `types` are those of pointers and arrays."""
    return map_expr(expr, lambda node: _fold_access(node, types))


def _fold_access(node: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    match node:
        case c.Call(function=function, args=(pointer,)) if function in _LOADS:
            return _canonical_access(pointer, number_node(0), types)
        case c.Call(function=function, args=(pointer, value)) if function in _STORES:
            return c.Assign("=", _canonical_access(pointer, number_node(0), types), value)
        case c.Unary(op="*", operand=operand):
            return _canonical_access(operand, number_node(0), types)
        case c.Member(base=base, field=field, arrow=True):
            return c.Member(_canonical_access(base, number_node(0), types), field)
        case c.Index(base=base, index=index):
            return _canonical_access(base, index, types)
    return node


def _canonical_access(pointer: c.Expr, index: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    place = pointed_at(pointer, types, index)
    if place is None:
        return c.Index(pointer, index)
    array: c.Expr = c.Name(place.array)
    if place.as_type is None:
        return c.Index(array, place.index)
    array = array if place.offset is None else c.Binary("+", array, place.offset)
    space, pointers = types[place.array].space, place.as_type.pointers + 1
    return c.Index(c.Cast(replace(place.as_type, pointers=pointers, space=space), array), place.index)


def pointed_at(pointer: c.Expr, types: Mapping[str, c.Type], index: c.Expr = _ZERO) -> ArrayPlace | None:
    """The element `index` behind that which `a + i`, `(T *)(a + i)` or `&a[i]` points at; None for others."""
    match pointer:
        case c.Name(name=name) if is_pointer(pointer, types):
            return ArrayPlace(name, index)
        case c.Binary(op="+", left=left, right=right) if is_pointer(left, types) or is_pointer(right, types):
            base, by = (left, right) if is_pointer(left, types) else (right, left)
            return pointed_at(base, types, make_sum(by, index))
        case c.Binary(op="-", left=left, right=right) if is_pointer(left, types):
            back = c.Unary("-", right) if index == _ZERO else c.Binary("-", index, right)
            return pointed_at(left, types, back)
        case c.Unary(op="&", operand=c.Index(base=base, index=at)):
            return pointed_at(base, types, make_sum(at, index))
        case c.Cast(type=type_, value=value) if type_.is_pointer:
            inner = pointed_at(value, types)
            offset = None if inner is None else _in_own_elements(inner, types)
            if inner is None or offset is None:
                return None
            array_type = types[inner.array]
            if (array_type.base, array_type.pointers) == (type_.base, type_.pointers):
                return ArrayPlace(inner.array, make_sum(offset, index))
            return ArrayPlace(inner.array, index, None if offset == _ZERO else offset, _pointee_type(type_))
    return None


def _in_own_elements(place: ArrayPlace, types: Mapping[str, c.Type]) -> c.Expr | None:
    """How far into its array a place is, in elements of the array; None where that is no whole number."""
    if place.as_type is None or place.index == _ZERO:
        return place.index if place.as_type is None else place.offset or _ZERO
    wide, narrow = byte_size(place.as_type.base), byte_size(types[place.array].base)
    if not wide or not narrow or wide % narrow:
        return None
    moved = place.index if wide == narrow else c.Binary("*", place.index, number_node(wide // narrow))
    return make_sum(place.offset or _ZERO, moved)


def is_pointer(expr: c.Expr, types: Mapping[str, c.Type]) -> bool:
    match expr:
        case c.Name(name=name):
            return name in types and types[name].is_pointer
        case c.Cast(type=type_):
            return type_.is_pointer
        case c.Binary(op="+" | "-", left=left, right=right):
            return is_pointer(left, types) != is_pointer(right, types)
        case c.Unary(op="&"):
            return True
    return False


def without_members(expr: c.Expr) -> c.Expr:
    """`a[i].x` -> `a[i]`"""
    while isinstance(expr, c.Member):
        expr = expr.base
    return expr


def array_and_indices(expr: c.Expr) -> tuple[str | None, tuple[c.Expr, ...]]:
    """`a[y][x]` -> a, (y, x)"""
    indices: list[c.Expr] = []
    while isinstance(expr, c.Index):
        indices.insert(0, expr.index)
        expr = expr.base
    return (expr.name if isinstance(expr, c.Name) else None), tuple(indices)


def place_of(expr: c.Expr) -> ArrayPlace | None:
    """The place of an `Index` in canonical form; None for anything else."""
    if not isinstance(expr, c.Index):
        return None
    match expr.base:
        case c.Name(name=name):
            return ArrayPlace(name, expr.index)
        case c.Cast(type=type_, value=c.Name(name=name)) if type_.is_pointer:
            return ArrayPlace(name, expr.index, as_type=_pointee_type(type_))
        case c.Cast(type=type_, value=c.Binary(op="+", left=c.Name(name=name), right=offset)) if (
            type_.is_pointer
        ):
            return ArrayPlace(name, expr.index, offset, _pointee_type(type_))
    return None


def _pointee_type(type_: c.Type) -> c.Type:
    return c.Type(type_.base, type_.pointers - 1, type_.const, volatile=type_.volatile)


def element_type(place: ArrayPlace, array: c.Type) -> c.Type:
    """As what an element of the array is reached."""
    return place.as_type or c.Type(array.base, array.pointers - 1, array.const)


def moved_by(place: ArrayPlace, index: str, array: c.Type) -> Stride | None:
    """How far a place moves with an index, in elements as they are reached; None: by no constant."""
    moved = index_stride(place.index, index)
    if moved is None or place.offset is None:
        return moved
    ahead = index_stride(place.offset, index)
    mine, theirs = byte_size(array.base), byte_size(element_type(place, array).base)
    if ahead is None or not mine or not theirs or ahead.step * mine % theirs:
        return None
    step = moved.step + ahead.step * mine // theirs
    return Stride(step, tuple(dict.fromkeys((*moved.within, *ahead.within))))


@dataclass(frozen=True)
class Touch:
    """One access to an array in a body. `node` is the canonical `Index`."""

    place: ArrayPlace
    node: c.Index
    writes: bool
    reads: bool
    atomic: bool = False


def find_touches(body: Part, arrays: Mapping[str, c.Type]) -> tuple[Touch, ...]:
    """Every access to these arrays, in the order of the text."""
    found: list[Touch] = []
    written: dict[int, bool] = {}  # id of the target -> whether it is read as well
    atomic: set[int] = set()
    for node in nodes_in(body):
        if isinstance(node, c.Assign):
            written[id(without_members(node.target))] = node.op != "="
        elif isinstance(node, c.Unary) and node.op in ("++", "--"):
            written[id(node.operand)] = True
        elif isinstance(node, c.Call) and is_atomic(node.function) and node.args:
            first = node.args[0]
            if isinstance(first, c.Unary) and first.op == "&":
                written[id(first.operand)] = True
                atomic.add(id(first.operand))
            elif (place := pointed_at(first, arrays)) is not None:
                element = c.Index(c.Name(place.array), place.index)
                found.append(Touch(place, element, writes=True, reads=True, atomic=True))
        elif isinstance(node, c.Call):
            moved = _vector_access(node, arrays)
            found += [] if moved is None else [moved]
    for node in nodes_in(body):
        if isinstance(node, c.Index):
            place, key = place_of(node), id(node)
            if place is not None and place.array in arrays:
                reads = written.get(key, True)
                found.append(Touch(place, node, key in written, reads, key in atomic))
    return tuple(found)


def is_atomic(function: str) -> bool:
    return is_function(function) and bool(function_effects(function) & Effects.ATOMIC)


def _vector_access(call: c.Call, arrays: Mapping[str, c.Type]) -> Touch | None:
    """`vload4(i, p)` and `vstore4(v, i, p)` of OpenCL as the accesses they are."""
    if not is_function(call.function) or not call.function.startswith(("vload", "vstore")):
        return None
    writes = call.function.startswith("vstore")
    args = call.args[1:] if writes else call.args
    place = pointed_at(args[1], arrays) if len(args) > 1 else None
    if place is None:
        return None
    digits = "".join(sign for sign in call.function if sign.isdigit())
    kind = "halves" if "half" in call.function else "elements"
    wide = c.Type(f"{digits or 1} {kind}{_BY_CALL}")  # like no other: equal to itself alone
    place = ArrayPlace(place.array, args[0], place.index, wide)
    return Touch(place, c.Index(c.Name(place.array), args[0]), writes, not writes)


def bytes_at_once(type_: c.Type, array: c.Type) -> int | None:
    """Of an access that moves the type, also by `vload4`."""
    if not type_.base.endswith(_BY_CALL):
        return byte_size(type_.base)
    count, kind = type_.base.removesuffix(_BY_CALL).split()
    element_bytes = 2 if kind == "halves" else byte_size(array.base)
    return None if element_bytes is None else int(count) * element_bytes


def find_clash(
    body: Sequence[c.Stmt],
    index: str,
    arrays: Mapping[str, c.Type],
    aliases: Mapping[str, str],
    parallel: bool,
) -> str | None:
    """Why turns may depend on each other, in words; None where they do not.

    `parallel`: the kernel runs the turns on different threads already. Then stores are taken to be apart, and
    only reading what another turn writes is looked for."""
    by_array: dict[str, list[Touch]] = {}
    turns = _Turns.of(body, index)
    for touch in find_touches(body, arrays):
        by_array.setdefault(aliases.get(touch.place.array, touch.place.array), []).append(touch)
    for array, found in by_array.items():
        stores = [touch for touch in found if touch.writes and not touch.atomic]
        if not stores:
            continue
        for touch in found:
            if touch.atomic:
                return f"'{array}' is written both plainly and by atomics"
            meets = [s for s in stores if s is not touch and not turns.is_safe(touch.place, s.place)]
            # On different threads a turn that reads what another writes has no value to rely on today.
            if meets and (not parallel or (len(meets) == len(stores) and not touch.writes)):
                here, there = print_expr(meets[0].node), print_expr(touch.node)
                return f"'{array}' is written at '{here}' and touched at '{there}'"
        repeated = (_repeated_store(store, index, declared_in(body)) for store in stores if not parallel)
        if (reason := next(filter(None, repeated), None)) is not None:
            return reason
    return None


@dataclass(frozen=True)
class _Turns:
    """What may differ within a turn, and from turn to turn."""

    index: str
    moving: frozenset[str]  # variables that a turn changes, but for the counters of its inner loops
    own: frozenset[str]  # all that it declares

    @classmethod
    def of(cls, body: Sequence[c.Stmt], index: str) -> _Turns:
        heads = {
            part.name
            for node in nodes_in(body)
            if isinstance(node, c.For)
            for part in node.init
            if isinstance(part, c.Declare) and part.name not in assigned_in(node.body)
        }
        return cls(index, assigned_in(body) - heads, frozenset(declared_in(body)))

    def is_safe(self, left: ArrayPlace, right: ArrayPlace) -> bool:
        """Whether two places are the same in every turn, or never meet in different turns."""
        if (names_in(_flat_index(left)) | names_in(_flat_index(right))) & self.moving:
            return False
        return same_place(left, right) or _is_disjoint(left, right, self.index, self.own)


def _flat_index(place: ArrayPlace) -> c.Expr:
    return place.index if place.offset is None else c.Binary("+", place.index, place.offset)


def same_place(left: ArrayPlace, right: ArrayPlace) -> bool:
    if (left.as_type.base if left.as_type else "") != (right.as_type.base if right.as_type else ""):
        return False
    return same_value(left.index, right.index) and same_value(left.offset or _ZERO, right.offset or _ZERO)


def _is_disjoint(left: ArrayPlace, right: ArrayPlace, index: str, varying: frozenset[str]) -> bool:
    """Whether c * i + r and c * j + s never meet for i != j: their distance is no multiple of c.

    `varying`: what every turn has a value of its own of."""
    a, b = split_affine(_flat_index(left), index), split_affine(_flat_index(right), index)
    if a is None or b is None or left.as_type != right.as_type or not same_value(a[0], b[0]):
        return False
    if (names_in(a[1]) | names_in(b[1])) & varying:
        return False
    if left.as_type is not None and not same_value(left.offset or _ZERO, right.offset or _ZERO):
        return False
    distance = expand_terms(c.Binary("-", a[1], b[1]))
    every = a[0].value if isinstance(a[0], c.Number) else None
    if not isinstance(every, int) or set(distance) - {()}:
        return False
    return every != 0 and distance.get((), 0) % every != 0


def _repeated_store(store: Touch, index: str, inner: Sequence[str]) -> str | None:
    """Why two turns may store to the same element."""
    found = split_affine(_flat_index(store.place), index)
    if found is not None and found[0] == number_node(0):
        return f"'{print_expr(store.node)}' is the same element in every turn"
    if found is None or names_in(found[1]) & set(inner) or not _is_positive(found[0]):
        return f"'{print_expr(store.node)}' may be the same element in different turns"
    return None


def _is_positive(coefficient: c.Expr) -> bool:
    """Whether it is more than 0 where sizes are: a sum of products of names, none of them taken away."""
    found = expand_terms(coefficient)
    plain = all(isinstance(factor, c.Name) for key in found for factor in key)
    return bool(found) and plain and all(count > 0 for count in found.values())
