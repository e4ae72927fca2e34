"""Which accesses of a loop's body become packs: neighbours that are loaded or stored as one.

A pack is `width` elements for each of the VEC indices a thread takes at once; width 0 is one element that all
of them share (`scale[i / 128]`). Only accesses that every turn makes are packed, and only where the array's
other accesses in the same body cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tunesmith.expert.read.integers import (
    Stride,
    conditions_for_multiple,
    expand_terms,
    from_terms,
    index_stride,
)
from tunesmith.expert.read.model import Each
from tunesmith.expert.write.given import Sizes
from tunesmith.expert.write.sites import AccessSite, Sites
from tunesmith.source import tree as c
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size
from tunesmith.source.walk import declared_in, names_in, nodes_in

INDEX = "#"  # stands for a loop's index in keys, whatever it is called there
Sum = frozenset[tuple[tuple[c.Expr, ...], int]]
Key = tuple[str, str, Sum, int, Sum]  # array, element, index without its constant, the constant, offset
Member = tuple[AccessSite, Stride, int]  # an access, how it moves, and its constant within a step
_MAX_WIDTH = 16


@dataclass(frozen=True)
class Pack:
    key: Key
    array: str
    element: c.Type | None
    width: int
    offset: c.Expr | None  # of a cast pointer, as in the source
    index: c.Expr  # of its first element, at the first index of the pack
    sites: tuple[tuple[c.Expr, c.Expr], ...]  # the access as it stands in the body -> where in the pack it is
    loads: bool
    stores: bool
    needs: frozenset[c.Expr]  # must be multiples of VEC
    unit: int = 1  # and times this, so that a pack starts at a multiple of its size

    @property
    def names(self) -> frozenset[str]:
        """What its place depends on."""
        return names_in(self.index) | (frozenset() if self.offset is None else names_in(self.offset))


def pack_accesses(
    each: Each, arrays: Mapping[str, c.Type], staged: Iterable[str], sizes: Sizes, most: int, aligned: bool
) -> tuple[Pack, ...]:
    """`most`: the largest VEC there may be; `aligned`: packs must start at multiples of VEC."""
    staged_names = frozenset(staged)
    sites = Sites.of(each.body, [*arrays, *staged_names])
    inside = frozenset(declared_in(each.body))
    groups: dict[Key, list[Member]] = {}
    loose: set[str] = set(sites.escaped)  # arrays that are also, or only, touched outside packs
    for site in sites.found:
        found = _site_key_and_stride(site, each, arrays.get(site.array))
        outside = site.names - {name for name, _ in site.loops}
        if found is None or outside & inside:  # a place that the turn itself computes is not known yet
            loose.add(site.array)
            continue
        groups.setdefault(found[0], []).append((site, found[1], found[2]))
    packs: list[Pack] = []
    for key, members in groups.items():
        pack = _build_pack(key, members, each, sizes, most, aligned, members[0][0].array in staged_names)
        if pack is None or pack.array in sites.escaped:
            loose.add(members[0][0].array)
        else:
            packs.append(pack)
    refused = _find_refused_arrays(packs, loose, sites) - staged_names
    return tuple(p for p in packs if p.array not in refused)


def _site_key_and_stride(
    site: AccessSite, each: Each, array_type: c.Type | None
) -> tuple[Key, Stride, int] | None:
    """Its key without the constant part, how it moves, and that constant."""
    inner = {name: c.Number("0", 0) for name, _ in site.loops}
    index = substitute(site.index, inner) if inner else site.index
    moves = index_stride(index, each.index)
    used = names_in(index)
    shift: Sum = frozenset()
    if site.offset is not None:
        if site.loops:
            return None
        used |= names_in(site.offset)
        moves = _with_offset(moves, index_stride(site.offset, each.index), site, array_type)
        shift = frozenset(expand_terms(substitute(site.offset, {each.index: c.Name(INDEX)})).items())
    if moves is None or not 0 <= moves.step <= _MAX_WIDTH:
        return None
    if moves.step == 0 and each.index not in used:
        return None  # the same for the whole loop: the compiler's to hoist
    parts = dict(expand_terms(substitute(index, {each.index: c.Name(INDEX)})))
    constant = parts.pop((), 0)
    residue = constant % moves.step if moves.step > 1 else 0
    element = site.element.base if site.element is not None else ""
    return (site.array, element, frozenset(parts.items()), constant - residue, shift), moves, residue


def _with_offset(
    index: Stride | None, offset: Stride | None, site: AccessSite, array_type: c.Type | None
) -> Stride | None:
    """An offset of `i * 8` halves in front of a cast to 16 bytes moves by one of these."""
    if index is None or offset is None or site.element is None or array_type is None:
        return None
    wide, narrow = byte_size(site.element.base), byte_size(array_type.base)
    if wide is None or narrow is None or (offset.step * narrow) % wide:
        return None
    return Stride(index.step + offset.step * narrow // wide, (*index.within, *offset.within))


def _build_pack(
    key: Key, members: Sequence[Member], each: Each, sizes: Sizes, most: int, aligned: bool, is_staged: bool
) -> Pack | None:
    first, moves, _ = members[0]
    loads = [m for m in members if m[0].kind == "load"]
    stores = [m for m in members if m[0].kind == "store"]
    if not is_staged:
        if stores and not any(site.sure and site.whole for site, _, _ in stores):
            return None
        if not any(site.sure for site, _, _ in members):
            return None
        if moves.step == 0 and stores:
            return None
        surely = [(site, r) for site, _, r in (stores or loads) if site.sure]
        if moves.step > 1 and _touched_residues(surely, moves.step) != frozenset(range(moves.step)):
            return None
    if moves.step <= 1 and any(site.loops for site, _, _ in members):
        return None
    index = _first_index(members)
    # A cast access is as wide as the source made it, and no wider: nothing more must divide.
    checks = aligned and moves.step > 0 and not is_staged and first.element is None
    needs = _required_multiples(index, moves, each, sizes, checks, most)
    if needs is None:
        return None
    unit = max(moves.step, 1)
    if any(sizes.divisor(need) % unit for need in needs) or key[3] % unit:
        unit = 1
    read_first = is_staged or _reads_first(members) or any(not site.whole for site, _, _ in stores)
    places = tuple(dict.fromkeys((site.node, _index_in_pack(site, residue)) for site, _, residue in members))
    return Pack(
        key, first.array, first.element, moves.step, first.offset, index, places,
        loads=bool(loads) if not stores else read_first and bool(loads),
        stores=bool(stores), needs=needs, unit=unit,
    )  # fmt: skip


def _first_index(members: Sequence[Member]) -> c.Expr:
    """Of the pack's first element, as the source writes it: its casts keep products wide enough."""
    site, _, residue = min(members, key=lambda member: member[2])
    index = substitute(site.index, {name: c.Number("0", 0) for name, _ in site.loops})
    return c.Binary("-", index, c.Number(str(residue), residue)) if residue else index


def _reads_first(members: Sequence[Member]) -> bool:
    """Whether an element may be read before the body has surely written it."""
    written: set[int] = set()
    for site, _, residue in members:
        if site.kind == "load" and (residue not in written or site.loops):
            return True
        if site.kind == "store" and site.sure and site.whole and not site.loops:
            written.add(residue)
    return False


def _touched_residues(members: Iterable[tuple[AccessSite, int]], step: int) -> frozenset[int]:
    """Which of `step` neighbours are touched, inner loops unrolled."""
    found: set[int] = set()
    for site, residue in members:
        ranges = [range(count) for _, count in site.loops]
        offset = _inner_loop_coefficients(site)
        if offset is None:
            return frozenset()
        for values in product(*ranges):
            at = residue + sum(by * v for by, v in zip(offset, values, strict=True))
            if not 0 <= at < step:
                return frozenset()
            found.add(at)
    return frozenset(found)


def _inner_loop_coefficients(site: AccessSite) -> tuple[int, ...] | None:
    """The coefficients of the inner loops' variables, where they are plain numbers."""
    found: list[int] = []
    parts = expand_terms(site.index)
    for name, _ in site.loops:
        inside = {key: count for key, count in parts.items() if any(name in names_in(f) for f in key)}
        if set(inside) != {(c.Name(name),)}:
            return None
        found.append(inside[(c.Name(name),)])
    return tuple(found)


def _index_in_pack(site: AccessSite, residue: int) -> c.Expr:
    """Where in the pack the element is, beside `width` times the lane."""
    offset = _inner_loop_coefficients(site) or ()
    parts: dict[tuple[c.Expr, ...], int] = {(): residue} if residue else {}
    for (name, _), coefficient in zip(site.loops, offset, strict=False):
        parts[(c.Name(name),)] = coefficient
    return from_terms(parts)


def _required_multiples(
    index: c.Expr, moves: Stride, each: Each, sizes: Sizes, aligned: bool, most: int
) -> frozenset[c.Expr] | None:
    """What must be multiples of VEC; None where that cannot be said, or holds for no VEC there is."""
    needs: set[c.Expr] = set(moves.within)
    if aligned:
        for key, count in expand_terms(index).items():
            inside = [factor for factor in key if each.index in names_in(factor)]
            moved = index_stride(inside[0], each.index) if inside else None
            if moved is not None and moved.step:
                continue  # the index itself, or a remainder of it: multiples by `within`
            others = tuple(factor for factor in key if factor not in inside)
            found = _multiple_conditions(from_terms({others: count}), sizes)
            if found is None:
                return None
            needs |= found
    if aligned or moves.within:
        found = _multiple_conditions(each.start, sizes)
        if found is None:
            return None
        needs |= found
    numbers = {need for need in needs if isinstance(need, c.Number)}
    if any(not isinstance(number.value, int) or number.value % most for number in numbers):
        return None
    return frozenset(needs - numbers) if all(map(sizes.is_plain, needs - numbers)) else None


def _multiple_conditions(expr: c.Expr, sizes: Sizes) -> set[c.Expr] | None:
    fixed = {name for name in names_in(expr) if sizes.node(c.Name(name)) is not None}
    found = conditions_for_multiple(expr, fixed)
    if found is None:
        known = {name: sizes.known[name] for name in names_in(expr) if name in sizes.known}
        if not known or names_in(expr) <= names_in(again := substitute(expr, known)):
            return None
        return _multiple_conditions(again, sizes)
    return set(found)


def _find_refused_arrays(packs: Sequence[Pack], loose: set[str], sites: Sites) -> set[str]:
    """Arrays of which a part is written in packs, at the end of a turn, and the rest on the way."""
    refused: set[str] = set()
    key_of = {node: pack.key for pack in packs for node, _ in pack.sites}
    for array in {pack.array for pack in packs if pack.stores}:
        if array in loose:
            refused.add(array)
        seen: set[Key | None] = set()
        for site in (s for s in sites.found if s.array == array):
            key = key_of.get(site.node)
            if site.kind == "store":
                seen.add(key)
            elif seen - {key}:
                refused.add(array)
    for pack in packs:  # a load in a pack comes before loose stores of the same array
        if pack.loads and not pack.stores and pack.array in loose and pack.array in sites.stored:
            refused.add(pack.array)
    return refused


def pack_replacements(
    packs: Iterable[Pack], names: Mapping[Key, c.Index], lane: c.Expr
) -> dict[c.Expr, c.Expr]:
    """Each access in the body -> its element of the pack; `names`: the pack a thread works on."""
    found: dict[c.Expr, c.Expr] = {}
    for pack in packs:
        for node, place in pack.sites:
            at: c.Expr = c.Number("0", 0)
            if pack.width:
                at = lane if pack.width == 1 else c.Binary("*", lane, c.Number(str(pack.width), pack.width))
                if place != c.Number("0", 0):
                    at = c.Binary("+", at, place)
            found[node] = c.Index(c.Member(names[pack.key], "at"), at)
    return found


@dataclass(frozen=True)
class Converted:
    """The last statement of a body stores `value`, converted, as element `lane` of the array `into`."""

    before: tuple[c.Stmt, ...]
    into: c.Expr
    value: c.Expr
    form: str


def split_final_conversion(
    body: tuple[c.Stmt, ...], lane: str, in_pairs: Mapping[str, str]
) -> Converted | None:
    """None where a body does not end so, or may be left before its end."""
    if not body or any(isinstance(node, c.Jump | c.Return) for node in nodes_in(body)):
        return None
    match body[-1]:
        case c.Evaluate(expr=c.Assign(op="=", target=target, value=c.Call(function=helper, args=(value,)))):
            if isinstance(target, c.Member) and target.field == "__x":  # the whole of a float8
                target = target.base
            form = in_pairs.get(helper)
            if form is not None and isinstance(target, c.Index) and target.index == c.Name(lane):
                return Converted(body[:-1], target.base, value, form)
    return None
