"""Variables and arrays of a unit, what they hold and what has been written, as data flow passes by."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import DeviceWords, Refusal, UserWords
from tunesmith.problem.vetting.unit import FlowUnit, Layers, content_of
from tunesmith.source.reader.grammar import GrammarText, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


# -- What an expression tells of addresses: of which arrays, and whether by steps, by lowest bits or by more.


NUMBER = "number"  # what a pointer points to that is made of one
NOTHING = "null"  # what a pointer points to that may be null
SHIFTED_AWAY = 64
WIDEST_SHARED = 4096  # of shared memory, whose places follow from the build alone


@dataclass(frozen=True)
class FlowArray:
    name: str
    space: str  # argument, shared, private, constant; a variable; unknown: a parameter that nobody here fills
    is_read_only: bool = False
    lacks_write: bool = False  # nothing is there before this launch writes it
    holds: str = ""  # * pointers lie there, s structs that hold some


@dataclass(frozen=True)
class FlowValue:
    """A number or a pointer. No arrays and no lowest bits: nothing of an address is in it."""

    arrays: frozenset[str] = frozenset()
    shift: int | None = None  # None: a place there, some steps on; else bits of an address, shifted so far
    is_low: bool = False  # lowest bits of an address, as far as an alignment goes, have a part in it
    is_moved: bool = False
    dims: int = 1  # of what it points to

    @property
    def is_plain(self) -> bool:
        return not (self.arrays or self.is_low)

    @property
    def is_place(self) -> bool:
        return bool(self.arrays) and self.shift is None

    @property
    def one_array(self) -> str | None:
        return next(iter(self.arrays)) if self.is_place and len(self.arrays) == 1 else None

    def stepped(self, by: FlowValue) -> FlowValue:
        return replace(self, is_moved=True, is_low=self.is_low or by.is_low)

    def mixed(self, by: FlowValue, shift: int = 0) -> FlowValue:
        """Bits of both."""
        arrays = self.arrays | by.arrays
        shift = min(max(self.shift or 0, by.shift or 0) + shift, SHIFTED_AWAY)
        return FlowValue(arrays, shift if arrays else None, self.is_low or by.is_low)


PLAIN = FlowValue()
LOW = FlowValue(is_low=True)
NULL = FlowValue(frozenset({NOTHING}))
FORGED = FlowValue(frozenset({NUMBER}), 0)


def join_values(one: FlowValue, other: FlowValue) -> FlowValue:
    """Either of them."""
    if one == other:
        return one
    is_low = one.is_low or other.is_low
    if not (one.arrays or other.arrays):
        return LOW if is_low else PLAIN
    if one.arrays and other.arrays:
        arrays = one.arrays | other.arrays
        shifts = [each.shift for each in (one, other) if each.shift is not None]
        dims = max(one.dims, other.dims)
        return FlowValue(arrays, max(shifts, default=None), is_low, one.is_moved or other.is_moved, dims)
    held, bare = (one, other) if one.arrays else (other, one)
    return held.mixed(bare) if bare.is_low else replace(held, arrays=held.arrays | {NOTHING})


def join_all(values: Collection[FlowValue]) -> FlowValue:
    found = [value for value in values if not value.is_plain]
    result = found[0] if found else PLAIN
    for value in found[1:]:
        result = join_values(result, value)
    return result


def combine_values(
    operator: str, left: FlowValue, right: FlowValue, number: int | None, width: int
) -> FlowValue | None:
    """Of an operator of arithmetic; `number` is what the right side is, where that is known, `width` what an
    alignment may be. None: the distance between two arrays."""
    if left.is_plain and right.is_plain:
        return PLAIN
    if not (left.arrays or right.arrays):
        return LOW
    if operator == "+" and not (left.arrays and right.arrays):
        held, by = (left, right) if left.arrays else (right, left)
        return held.stepped(by)
    if operator == "-" and not right.arrays:
        return left.stepped(right)
    if operator == "-" and left.is_place and right.is_place:
        is_known = left.one_array is not None and left.one_array == right.one_array
        return (LOW if left.is_low or right.is_low else PLAIN) if is_known else None
    is_power = number is not None and number > 0 and number & (number - 1) == 0
    if operator == "%" and number is not None and is_power:
        operator, number = "&", number - 1
    if operator == "&" and number is not None:
        held = left if left.arrays else right
        if number >= 0 and 1 << number.bit_length() + (held.shift or 0) <= width:
            return LOW
        if number < 0 and ~number < width and held.is_place:
            return replace(held, is_low=True, is_moved=True)
    shift = 0
    if operator in (">>", "/", "%"):
        bits = number if operator == ">>" else (number or 0).bit_length() - 1 if is_power else None
        is_known = bits is not None and operator != "%" and 0 <= bits < SHIFTED_AWAY
        shift = bits if is_known and bits is not None else SHIFTED_AWAY
    return left.mixed(right, shift)


NULL_CONSTANT = re.compile(r"[()\s]*(?:0|NULL|nullptr)[uUlL]*[)\s]*")
_ALIGNMENT = "an alignment may be tested, as in `& 15`"
_DECLARES = ("declaration", "for_range_loop", "lambda_capture_initializer", "compound_literal_expression")
Place = str | FlowValue  # a variable, or what a pointer points to


class FlowMemory(FlowUnit):
    def __init__(
        self, parts: Sequence[tuple[GrammarText, Node]], words: DeviceWords, user: UserWords, is_c: bool
    ) -> None:
        super().__init__(parts, words, user, is_c)
        self.arrays: dict[str, FlowArray] = {}
        self.held: dict[str, FlowValue] = {}
        self.kinds: dict[str, Layers] = {}  # of variables, in C
        self.weak: set[str] = set()  # what is not always stored anew, and so joined
        self.begin()

    def begin(self) -> None:
        """A pass over the unit."""
        self.read: set[str] = set()
        self.is_stale = False
        self.scopes = [{}]
        self.constants = {}
        self.aliases: dict[str, tuple[Place, ...]] = {}
        self.depths: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.unset: set[str] = set()
        self.written: set[str] = set()
        self.control: list[list[tuple[str, Refusal]] | None] = []  # loops; None: what need not happen
        self.context = 0
        self.doubted: list[tuple[frozenset[str], Refusal]] = []  # what a later pass may allow

    def _names(self, arrays: frozenset[str]) -> str:
        named = sorted({self.arrays[key].name for key in arrays if key in self.arrays})
        return " and ".join(named) or "a pointer"

    def _declare(self, name: str, node: Node, layers: Layers = "") -> str:
        key = f"{name}@{node.start_byte}:{self.context}"
        self.kinds[key] = layers
        self.scopes[-1][name] = key
        self.depths[key] = len(self.control)
        owner: Node | None = node
        while owner is not None and not owner.type.endswith(_DECLARES):
            owner = owner.parent
        self.types[key] = text_of(owner.child_by_field_name("type")) if owner is not None else ""
        return key

    def _type_at(self, place: str) -> str:
        """Of a variable or a member of one, as far as a declaration says."""
        root, *members = place.split(".")
        kind = self.types.get(root, "")
        for member in members:
            kind = self.member_types.get((self.record_of(kind), member), "").rstrip("[")
        return kind

    def _load(self, place: Place, node: Node) -> FlowValue:
        if isinstance(place, FlowValue):
            return self._access(place, node)
        self.read.add(place)
        found = self.held.get(place)
        base, dot, member = place.rpartition(".")
        root = place.partition(".")[0]
        if found is None and dot:
            layers = self.fields.get(member, "")
            is_known = base.partition(".")[0] in self.depths or not base
            if layers.startswith("[") or (is_known and self.is_array_member(self._type_at(base), member)):
                lacks, holds = root in self.unset, content_of(layers)
                self.arrays.setdefault(place, FlowArray(member, "private", False, lacks, holds))
                sources = (base, f".{member}", f"*.{member}")  # what was kept in it elsewhere
                held = join_all([self.held[key] for key in sources if key in self.held])
                if not held.is_plain:
                    self._hold(f"*{place}", held, True)
                return FlowValue(frozenset({place}), dims=max(layers.count("["), 1))
            whole = self.held.get(base)
            found = whole if whole is not None and not whole.is_plain else self.held.get(f".{member}")
        if root in self.unset:
            self._refuse_unwritten(frozenset({root}), node, root.partition("@")[0])
        return found if found is not None else PLAIN

    def _store(self, place: Place, value: FlowValue, node: Node) -> None:
        if isinstance(place, FlowValue):
            self._write(place, value, node)
            return
        if self.is_c and value.shift is not None:
            what = f"keeps bits of the address of {self._names(value.arrays)}"
            raise self.refuse(node, f"{what}; {_ALIGNMENT}", "pointer")
        self.unset.discard(place.partition(".")[0])
        self.written.add(place)
        is_weak = len(self.control) > self.depths.get(place, -1)
        self._hold(place, value, is_weak)
        base, dot, member = place.rpartition(".")
        if dot:
            if not value.is_plain:
                self._hold(f".{member}", value, True)
                self._hold_whole(base, value)
            if member in self.union_members:
                for other in self.union_members:
                    star = "*" if other in self.array_members else ""
                    self._hold(f"{star}{base}.{other}", value, True)

    def _hold_whole(self, base: str, value: FlowValue) -> None:
        """A structure holds what its members do."""
        while base:
            self._hold(base, value, True)
            base = base.rpartition(".")[0]

    def _hold(self, key: str, value: FlowValue, is_weak: bool) -> None:
        if is_weak:
            self.weak.add(key)
        before = self.held.get(key)
        if before is not None and (is_weak or key in self.weak):
            value = join_values(before, value)
        if value != before:
            self.is_stale |= key in self.read and (is_weak or key in self.weak)
            self.held[key] = value

    def _lies_in(self, arrays: frozenset[str], space: str) -> bool:
        return all(key in self.arrays and self.arrays[key].space == space for key in arrays - {NOTHING})

    def _check_pointer(self, pointer: FlowValue, node: Node) -> None:
        if self.is_c and pointer.arrays and pointer.arrays <= {NOTHING, NUMBER}:
            self._doubt(node, "reaches memory by a number")
        elif pointer.shift is not None and (self.is_c or not self._lies_in(pointer.arrays, "shared")):
            what = (
                f"reaches memory by more of the address of {self._names(pointer.arrays)} than steps from it"
            )
            raise self.refuse(node, f"{what}; index the array", "pointer" if self.is_c else "address")

    def _access(self, pointer: FlowValue, node: Node) -> FlowValue:
        """What is read there."""
        self._check_pointer(pointer, node)
        arrays = pointer.arrays - {NOTHING, NUMBER}
        empty = {key for key in arrays if key in self.arrays and self.arrays[key].lacks_write}
        wholes = {*empty, *(key.rpartition(".")[0] for key in empty)}
        if empty and empty == arrays and not wholes & self.written:
            self._refuse_unwritten(frozenset(empty), node, self._names(frozenset(empty)))
        unset = {key.partition(".")[0] for key in arrays}
        if unset and unset <= self.unset:
            self._refuse_unwritten(frozenset(unset), node, self._names(arrays))
        values = [self.held[key] for array in arrays if (key := f"*{array}") in self.held]
        self.read |= {f"*{array}" for array in arrays}
        variables = (key for key in arrays if self.arrays[key].space == "variable")
        return join_all(values + [self.held[key] for key in variables if key in self.held])

    def _refuse_unwritten(self, keys: frozenset[str], node: Node, name: str) -> None:
        what = f"reads {name} before this launch has written it, so what another left there; write it first"
        refusal = self.refuse(node, what, "unset")
        for at, loop in enumerate(self.control):
            if loop is not None and len(self.control) > at + 1:
                loop.append((min(keys), refusal))  # a later turn may
                return
        raise refusal

    def _write(self, pointer: FlowValue, value: FlowValue, node: Node) -> None:
        self._check_pointer(pointer, node)
        for key in sorted(pointer.arrays - {NOTHING}):
            array = self.arrays.get(key)
            if array is None:
                continue
            if array.is_read_only:
                allowed = "a template writes only what the problem file calls output, inout or workspace"
                raise self.refuse(node, f"writes {array.name}, which is an input: {allowed}", "write")
            self.written.add(key)
            self.unset.discard(key.partition(".")[0])
            if not value.is_plain:
                if array.space in ("argument", "shared"):
                    what = f"stores what is made of the address of {self._names(value.arrays)}"
                    raise self.refuse(node, f"{what} in {array.name}; store values of arrays alone")
                self._hold(key if array.space == "variable" else f"*{key}", value, True)
                base, dot, member = key.rpartition(".")
                if dot:
                    self._hold(f"*.{member}", value, True)
                    self._hold_whole(base, value)

    def _doubt(self, node: Node, what: str) -> None:
        refusal = self.refuse(node, f"{what}; start from an argument or an array, and index it", "pointer")
        self.doubted.append((frozenset({NUMBER}), refusal))

    def _converted(
        self, value: FlowValue, layers: Layers, node: Node, source: Node | None, is_cast: bool = False
    ) -> FlowValue:
        """A value that becomes one of this type, said or not: no pointer of a number, and the other way."""
        kind = layers[:1]
        if not self.is_c or kind == "s":
            return value
        if not kind:
            if value.arrays and not is_cast:
                raise self.refuse(node, f"makes a number of a pointer; {_ALIGNMENT}", "pointer")
            return value.mixed(PLAIN) if value.arrays else value
        if not value.arrays:
            if source is not None and is_null(source):
                return NULL
            if not is_cast:
                self._doubt(node, "makes a pointer of a number")
            return FORGED if is_cast else PLAIN
        if not is_cast and value.arrays == FORGED.arrays:
            self._doubt(node, "makes a pointer of a number")
            return PLAIN
        if value.shift is not None and not is_cast:
            raise self.refuse(node, f"makes a pointer of a number; {_ALIGNMENT}", "pointer")
        holds = content_of(layers[1:])
        if any(key in self.arrays and self.arrays[key].holds != holds for key in value.arrays):
            raise self.refuse(node, "reads or writes a pointer as something else", "pointer")
        return replace(value, dims=1 + layers[1:].count("["))

    def _touch(self, value: FlowValue) -> None:
        """Somebody may have written there."""
        self.written |= value.arrays
        self.unset -= {key.partition(".")[0] for key in value.arrays}


def is_null(node: Node) -> bool:
    """A null pointer's constant, whatever casts are before it."""
    while not NULL_CONSTANT.fullmatch(text_of(node)):
        if node.type not in ("cast_expression", "parenthesized_expression") or not node.named_children:
            return False
        node = node.named_children[-1]
    return True
