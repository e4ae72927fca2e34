"""SASS, NVIDIA's machine code as text, counted: the instruction mix of one kernel and how it touches memory.

Spellings of sm_70 to sm_120; what is unknown counts as an instruction and nothing more.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tunesmith.backends.cuda.cubin import (
    INDIRECT,
    JUMPS,
    Instruction,
    Listing,
    disassemble_cubin,
    register_names,
    unpack,
)
from tunesmith.base.codec import Malformed
from tunesmith.profiles.facts import Direction, Instructions, MemoryAccess, Mix, Pattern, Space

# How values vary over the threads of a warp, in one pass over all registers. Only the low half of a 64-bit
# value is followed, which is where neighbouring threads differ.
SAME, STEP, FAR, LANE, DATA = "same", "step", "far", "lane", "data"
# Of conditions: met by one thread of a warp, by all but one, by those up to a bound.
ONE, ALL_BUT_ONE, BOUND = "one", "all but one", "bound"
_ROUNDS = 40  # of the analysis; a value can change three times


class Value(NamedTuple):
    kind: str
    number: int | None = None  # the step of STEP; the constant of SAME, where it is one


UNIFORM = Value(SAME)
ZERO = Value(SAME, 0)
State = dict[str, Value]

_NUMBER = re.compile(r"-?0x[0-9a-f]+|-?\d+")
_REGISTER = re.compile(r"^[-~|]*(U?R(?:\d+|Z))\b")
_PREDICATE = re.compile(r"^!?(U?P(?:\d+|T))$")
_THREAD_NUMBERS = ("SR_TID.X", "SR_LANEID")
_ADDS = frozenset(("IADD3", "IADD", "VIADD", "UIADD3", "UIADD"))
_MULTIPLIES = frozenset(("IMAD", "UIMAD"))
_LOADS = frozenset(("LDG", "LDS", "LD", "LDSM"))
_SAME_FOR_ALL = frozenset(
    ("S2UR", "CS2R", "R2UR", "VOTE", "VOTEU", "REDUX", "CREDUX", "ELECT", "ULDC", "LDCU")
)
# Their predicate asks for the slow path of a function, which is rarely taken.
_RARE = frozenset(("FCHK",))


class Lanes:
    """For every instruction, what its operands are at the time it runs."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._states: dict[int, State] = {}  # before each instruction that touches memory or branches
        self._solve_dataflow()

    def address(self, instruction: Instruction) -> Value:
        """Of a memory instruction."""
        operand = next((o for o in instruction.operands if "[" in o and not o.startswith("c[")), "")
        return _address_value(operand, self._states.get(instruction.number, {}))

    def condition(self, instruction: Instruction) -> str:
        """How the outcome of a branch varies over a warp. ONE: one thread meets it, jumps or goes on."""
        name = instruction.condition
        state = self._states.get(instruction.number, {})
        if not name:
            index = [_operand_value(o, state) for o in instruction.operands if _REGISTER.match(o)]
            return _join_all(index).kind if index else SAME
        return state.get(name, UNIFORM).kind

    def _solve_dataflow(self) -> None:
        listing = self._listing
        entries: dict[int, State] = {0: {}} if listing.blocks else {}
        waiting = set(entries)
        for _ in range(_ROUNDS * max(1, len(listing.blocks))):
            if not waiting:
                break
            at = min(waiting)
            waiting.discard(at)
            block, state = listing.blocks[at], dict(entries[at])
            for instruction in listing.instructions[block.first : block.end]:
                touches = any("[" in operand for operand in instruction.operands)
                if touches or instruction.condition or instruction.name in INDIRECT:
                    self._states[instruction.number] = dict(state)
                _step_state(instruction, state)
            for following in block.successors:
                merged = _merge_states(entries.get(following), state)
                if merged != entries.get(following):
                    entries[following] = merged
                    waiting.add(following)


def _merge_states(known: State | None, new: State) -> State:
    if known is None:
        return dict(new)
    return {name: _join_values(known.get(name), new.get(name)) for name in known.keys() | new.keys()}


def _join_values(first: Value | None, second: Value | None) -> Value:
    if first is None or second is None:
        return first or second or UNIFORM
    if first == second:
        return first
    if first.kind == second.kind == SAME:
        return UNIFORM
    if {first.kind, second.kind} == {SAME, BOUND}:
        return Value(BOUND)
    return Value(DATA if DATA in (first.kind, second.kind) else LANE)


def _join_all(values: list[Value]) -> Value:
    """Of an operation nothing is known about."""
    kinds = {v.kind for v in values}
    if kinds <= {SAME}:
        return UNIFORM
    return Value(DATA if DATA in kinds else LANE)


def _step_state(instruction: Instruction, state: State) -> None:
    predicates, destination, sources = _split_destinations(instruction)
    if destination is None and not predicates:
        return
    values = [_operand_value(o, state) for o in sources if not _PREDICATE.match(o)]
    result = _result_value(instruction, values, sources, state)
    if destination is not None:
        names = _written_registers(destination, instruction)
        _set_register(state, names[0], result, instruction)
        for name in names[1:]:
            # The high half of an address or index is the same for a warp; of a load all words are alike.
            high = result if instruction.name in _LOADS or result.kind in (LANE, DATA) else UNIFORM
            _set_register(state, name, high, instruction)
    for name in predicates:
        _set_register(state, name, _predicate_value(instruction, values, result, sources, state), instruction)


def _set_register(state: State, name: str, value: Value, instruction: Instruction) -> None:
    guarded = instruction.guard not in ("", "PT", "UPT")
    state[name] = _join_values(state.get(name), value) if guarded and name in state else value


def _split_destinations(instruction: Instruction) -> tuple[list[str], str | None, list[str]]:
    """Predicates and the register that are written, and what is read."""
    name, left = instruction.name, list(instruction.operands)
    if name.startswith(("ST", "RED", "BRA", "BAR", "BSS", "BSY", "EXIT", "MEMBAR", "CALL", "RET", "BRX")):
        return [], None, left
    predicates: list[str] = []
    destination: str | None = None
    while left:
        operand = left[0]
        written = _PREDICATE.match(operand)
        if written is not None and not operand.startswith("!") and len(predicates) < 2:
            predicates.append(written[1])
        elif destination is None and _REGISTER.match(operand) and not _is_comparison(name):
            destination = operand
        else:
            break
        left.pop(0)
    return [p for p in predicates if not p.endswith("PT")], destination, left


def _is_comparison(name: str) -> bool:
    return name.removeprefix("U").endswith(("SETP", "SETP2", "PLOP3", "FCHK")) or name == "R2P"


def _written_registers(destination: str, instruction: Instruction) -> list[str]:
    base = _REGISTER.match(destination)
    assert base is not None
    prefix, digits = ("UR", base[1][2:]) if base[1].startswith("UR") else ("R", base[1][1:])
    if digits == "Z":
        return [base[1]]
    words = {"64": 2, "WIDE": 2, "128": 4, "256": 8}
    least = 2 if instruction.name in ("DADD", "DMUL", "DFMA") else 1
    count = max([least, *(words.get(m, 1) for m in instruction.modifiers)])
    return [f"{prefix}{int(digits) + k}" for k in range(count)]


def _operand_value(operand: str, state: State) -> Value:
    text = operand.replace(".reuse", "")
    if (register := _REGISTER.match(text)) is not None:
        if register[1].endswith("Z"):
            return ZERO
        found = state.get(register[1], UNIFORM)
        return _negate_value(found) if text.startswith("-") else found
    if _NUMBER.fullmatch(text):
        number = int(text, 0)
        return Value(SAME, number - (1 << 32) if 1 << 31 <= number < 1 << 32 else number)
    if text.startswith(("c[", "-c[")):
        return _join_all([state.get(r, UNIFORM) for r in re.findall(r"\bU?R\d+\b", text)])
    return UNIFORM


def _address_value(operand: str, state: State) -> Value:
    groups = re.findall(r"\[([^\]]*)\]", operand)
    total = ZERO
    for part in re.split(r"\+", groups[-1]) if groups else ():
        scale = re.search(r"\.X(\d+)", part)
        value = _operand_value(part.split(".")[0], state)
        total = _add_values(total, _multiply_values(value, Value(SAME, int(scale[1]))) if scale else value)
    return total


def _result_value(instruction: Instruction, values: list[Value], sources: list[str], state: State) -> Value:
    name, modifiers = instruction.name, instruction.modifiers
    if name == "S2R":
        return Value(STEP, 1) if sources and sources[0] in _THREAD_NUMBERS else UNIFORM
    if name in _SAME_FOR_ALL:
        return UNIFORM
    if name in _LOADS:
        where = next((o for o in sources if "[" in o), "")
        return UNIFORM if _address_value(where, state).kind == SAME else Value(DATA)
    if name.startswith(("ATOM", "SHFL", "LDL")):  # what a thread spilled is its own
        return Value(DATA)
    if "X" in modifiers or ("HI" in modifiers and name not in ("SHF", "USHF")):
        return _high_half_value(instruction, values)
    if name in ("MOV", "UMOV"):
        return values[0] if values else UNIFORM
    if name in ("HFMA2", "HFMA2_MMA") and [s.lstrip("-") for s in sources[:2]] == ["RZ", "RZ"]:
        return _packed_halves(sources[2:4])
    if name in _MULTIPLIES and len(values) >= 3:
        return _add_values(_multiply_values(values[0], values[1]), values[2])
    if name in _ADDS:
        return _add_values(*values)
    if name in ("LEA", "ULEA") and len(values) >= 3:
        return _add_values(_shifted_left(values[0], values[2]), values[1])
    if name in ("SHF", "USHF") and len(values) >= 3:
        return _shift_value(modifiers, values)
    if name in ("LOP3", "ULOP3") and len(values) >= 4:
        return _logic_value(values)
    if name == "PRMT" and len(values) >= 3 and values[1].kind == SAME and values[2].kind == SAME:
        return values[0] if values[0].kind in (SAME, STEP, FAR) else _join_all(values)
    if name in ("SEL", "USEL") and len(values) >= 2:
        return _join_values(values[0], values[1])
    return _join_all(values)


def _packed_halves(halves: list[str]) -> Value:
    """A constant put together from two numbers in half precision, the high one first."""
    try:
        high, low = (int.from_bytes(struct.pack("<e", float(half)), "little") for half in halves)
    except (ValueError, OverflowError):
        return UNIFORM
    return Value(SAME, high << 16 | low)


def _predicate_value(
    instruction: Instruction, values: list[Value], result: Value, sources: list[str], state: State
) -> Value:
    name = instruction.name
    if name in _RARE:
        return UNIFORM
    inputs = [state.get(m[1], UNIFORM) for o in sources if (m := _PREDICATE.match(o)) is not None]
    if name in ("LOP3", "ULOP3"):  # whether any bit is left
        outcome = Value({STEP: ALL_BUT_ONE, FAR: ALL_BUT_ONE}.get(result.kind, result.kind))
    elif name in ("ISETP", "UISETP") and len(values) >= 2:
        outcome = _comparison_value(instruction.modifiers, _add_values(values[0], _negate_value(values[1])))
    elif _is_comparison(name):
        outcome = Value(_join_all(values).kind)
    else:
        outcome = UNIFORM  # a carry: of interest to the high half alone
    mixed = [v for v in inputs if v.kind != SAME]
    if not mixed:
        return outcome
    if outcome.kind == SAME and len(mixed) == 1:
        return mixed[0]
    if {outcome.kind, *(v.kind for v in mixed)} <= {SAME, BOUND}:
        return Value(BOUND)
    return Value(DATA if DATA in (outcome.kind, *(v.kind for v in mixed)) else LANE)


def _comparison_value(modifiers: tuple[str, ...], difference: Value) -> Value:
    if difference.kind in (STEP, FAR):
        if "EQ" in modifiers:
            return Value(ONE)
        return Value(ALL_BUT_ONE if "NE" in modifiers else BOUND)
    return Value(difference.kind)


def _negate_value(value: Value) -> Value:
    return Value(value.kind, -value.number) if value.number is not None else value


def _add_values(*values: Value) -> Value:
    kinds = {v.kind for v in values}
    if kinds <= {SAME}:
        numbers = [v.number for v in values if v.number is not None]
        return Value(SAME, sum(numbers)) if len(numbers) == len(values) else UNIFORM
    if not kinds <= {SAME, STEP, FAR}:
        return Value(DATA if DATA in kinds else LANE)
    if FAR in kinds:
        return Value(FAR)
    step = sum(v.number or 0 for v in values if v.kind == STEP)
    return Value(STEP, step) if step else UNIFORM


def _multiply_values(first: Value, second: Value) -> Value:
    if ZERO in (first, second):
        return ZERO
    if first.kind == SAME:
        first, second = second, first
    if second.kind != SAME or first.kind in (LANE, DATA):
        return _join_all([first, second])
    if first.kind == SAME:
        known = first.number is not None and second.number is not None
        return Value(SAME, (first.number or 0) * (second.number or 0)) if known else UNIFORM
    if first.kind == STEP and second.number is not None:
        return Value(STEP, (first.number or 0) * second.number)
    return Value(FAR)


def _shifted_left(value: Value, by: Value) -> Value:
    if by.number is None or not 0 <= by.number < 64:
        return value if value == ZERO else _join_all([value, by])
    return _multiply_values(value, Value(SAME, 1 << by.number))


def _shift_value(modifiers: tuple[str, ...], values: list[Value]) -> Value:
    low, by, high = values[:3]
    if modifiers and modifiers[0] == "L":
        return UNIFORM if "HI" in modifiers and "U64" in modifiers else _shifted_left(low, by)
    value = high if "HI" in modifiers else low
    if value.kind not in (STEP, FAR) or by.number is None:
        return _join_all([value, by])
    if by.number >= 31:
        return UNIFORM  # the sign
    step, size = abs(value.number or 0), 1 << by.number
    if value.kind == STEP and size >= 32 * step:
        return UNIFORM  # a warp's number
    if value.kind == STEP and step % size == 0:
        return Value(STEP, step // size)
    return Value(LANE)


def _high_half_value(instruction: Instruction, values: list[Value]) -> Value:
    """The high half of something: the same for a warp, unless it varies irregularly. LEA.HI is also how a
    number is divided by a power of two: the bias that a negative one needs, added to it."""
    if instruction.name == "LEA" and instruction.modifiers == ("HI",) and len(values) >= 2:
        return _add_values(values[1], UNIFORM) if values[0].kind == SAME else _join_all(values)
    if instruction.name in _MULTIPLIES and "HI" in instruction.modifiers:
        return _join_all(values)
    return UNIFORM if {v.kind for v in values} <= {SAME, STEP, FAR} else _join_all(values)


def _logic_value(values: list[Value]) -> Value:
    """Bits kept or cut off by a mask, or set in a number that is aligned; anything else is unknown."""
    first, second, third, table = values[:4]
    if first.kind == SAME:
        first, second = second, first
    if first.kind != STEP or second.kind != SAME or third.kind != SAME:
        return _join_all([first, second, third])
    step = abs(first.number or 0)
    if table.number == 0xFC and third == ZERO:
        return first
    if table.number != 0xC0 or second.number is None or step & (step - 1):
        return Value(LANE)
    varying = 31 * step  # the bits in which a warp's threads differ
    mask = second.number & 0xFFFFFFFF
    if mask & varying == varying:
        return first
    return Value(LANE) if mask & varying else UNIFORM


_FP64 = frozenset(("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"))
_FP32 = frozenset(
    ("FADD", "FMUL", "FFMA", "FMNMX", "FMNMX3", "FSETP", "FSEL", "FADD2", "FMUL2", "FFMA2", "FSWZADD", "FSET")
)
_FP16 = frozenset(("HADD2", "HMUL2", "HFMA2", "HSETP2", "HSET2", "HMNMX2", "HADD2_32", "HFMA2_MMA"))
_MULTIPLY = frozenset(("IMAD", "IMUL", "XMAD", "IDP", "UIMAD"))
_NO_PRODUCT = frozenset(("MOV", "SHL", "IADD", "X"))  # IMAD as a plain move, shift or sum
_SLOW_CONVERSIONS = frozenset(("F2F", "F2I", "I2F", "FRND", "UI2F", "UF2I", "UF2F", "UFRND"))
_CONVERSIONS = _SLOW_CONVERSIONS | {"F2FP", "I2FP", "F2IP", "I2I", "I2IP", "UI2FP", "UF2FP"}
_SHUFFLES = frozenset(("SHFL", "REDUX", "CREDUX"))
_SPACES: dict[str, tuple[Space, Direction]] = {
    "LDG": ("global", "load"),
    "LD": ("global", "load"),
    "LDGSTS": ("global", "load"),
    "STG": ("global", "store"),
    "ST": ("global", "store"),
    "LDS": ("shared", "load"),
    "LDSM": ("shared", "load"),
    "STS": ("shared", "store"),
    "STSM": ("shared", "store"),
    "ATOM": ("global", "atomic"),
    "ATOMG": ("global", "atomic"),
    "RED": ("global", "atomic"),
    "REDG": ("global", "atomic"),
    "ATOMS": ("shared", "atomic"),
}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_MATRICES = {"2": 8, "4": 16}  # bytes a thread of LDSM.16.M88.4
_DIVISION = ("div_s64", "div_u64", "rem_s64", "rem_u64")


def read_sass(text: str) -> Instructions | None:
    """Of the text of one kernel; None where there is no instruction in it."""
    listing = Listing(text)
    if not listing.instructions:
        return None
    lanes = Lanes(listing)
    # Without the endless loop behind the end of every kernel.
    main = listing.instructions[: listing.main]
    body = [i for i in main if i.name not in JUMPS or i.targets != (i.number,)]
    hot = [i for i in body if i.number in listing.looped] or body
    numbers = {i.number for i in hot}
    alone, looped = _one_thread(listing, lanes)
    reading, per_stored = _reading_loops(listing, lanes)
    return Instructions(
        all=_instruction_mix(body, body),
        hot=_instruction_mix(hot, body),
        accesses=_memory_accesses(body, numbers, lanes),
        loops=len(listing.loops),
        bytes_in_flight=_bytes_in_flight(body),
        one_thread=len(alone),
        one_thread_loop=len(looped),
        one_thread_global=sum(1 for i in body if i.number in looped and "global" in _SPACES.get(i.name, ())),
        split_by_lane=_count_divergent(listing, lanes, LANE),
        split_by_data=_count_divergent(listing, lanes, DATA),
        reading_loops=reading,
        loaded_per_stored=per_stored,
    )


def _instruction_mix(counted: Sequence[Instruction], body: Sequence[Instruction]) -> Mix:
    classes = Counter(kind for each in counted for kind in _instruction_classes(each))
    return Mix(total=len(counted), division=_count_divisions(counted, body), **classes)


def _instruction_classes(instruction: Instruction) -> Iterable[str]:
    name, modifiers = instruction.name, instruction.modifiers
    if name in _FP64:
        yield "fp64"
    elif name in _FP32:
        yield "fp32"
    elif name in _FP16:
        if not _is_move(instruction):
            yield "fp16"
    elif name.endswith("MMA"):
        yield "tensor"
    elif name in _MULTIPLY:
        if _NO_PRODUCT.isdisjoint(modifiers) and not _is_move(instruction):
            yield "multiply"
    elif name in _CONVERSIONS:
        yield "conversion"
        if name in _SLOW_CONVERSIONS:
            yield "slow_conversion"
    elif name in ("MUFU", "UMUFU"):
        yield "special"
    elif name in JUMPS or name in INDIRECT:
        yield "branch"
    elif name in ("BAR", "UCGABAR_WAIT"):
        yield "barrier"
    elif name in _SHUFFLES:
        yield "shuffle"
    elif name in ("LDL", "STL"):
        yield "local_load" if name == "LDL" else "local_store"


def _is_move(instruction: Instruction) -> bool:
    """A multiply-add of zeros: how a constant is put into a register by a unit that is free."""
    return [o.lstrip("-") for o in instruction.operands[1:3]] == ["RZ", "RZ"]


def _count_divisions(counted: Sequence[Instruction], body: Sequence[Instruction]) -> int:
    """Sequences that divide integers by what is no constant. One begins with the reciprocal of the divisor,
    rounded up, and goes on with two high products. A loop that divides by the same number again and again has
    the second of these alone. In 64 bits it is a function that is called, with a way around it for small
    operands that is counted already."""
    reciprocals = sum(1 for i in counted if _is_reciprocal(i))
    products = sum(1 for i in counted if i.name == "IMAD" and "HI" in i.modifiers)
    called = sum(1 for i in counted if any(name in i.calls for name in _DIVISION))
    kept = products - 2 * reciprocals if any(_is_reciprocal(i) for i in body) and not called else 0
    return max(reciprocals + max(0, kept), called)


def _is_reciprocal(instruction: Instruction) -> bool:
    return instruction.name in ("I2F", "UI2F") and "RP" in instruction.modifiers


def _memory_accesses(body: Sequence[Instruction], hot: set[int], lanes: Lanes) -> tuple[MemoryAccess, ...]:
    found: Counter[tuple[Space, Direction, int, Pattern, int | None, bool]] = Counter()
    for each in body:
        if each.name in _SPACES:
            space, direction = _SPACES[each.name]
            pattern, stride = _access_pattern(lanes.address(each), each.name)
            found[space, direction, _access_width(each), pattern, stride, each.number in hot] += 1
    return tuple(
        MemoryAccess(space, direction, width, pattern, is_hot, count, stride)
        for (space, direction, width, pattern, stride, is_hot), count in found.items()
    )


def _access_pattern(address: Value, name: str) -> tuple[Pattern, int | None]:
    if name in ("LDSM", "STSM"):
        return "unknown", None  # rows by a rule of their own
    if address.kind == SAME:
        return "uniform", None
    if address.kind == STEP and address.number is not None:
        return "strided", abs(address.number)
    return ("far", None) if address.kind == FAR else ("unknown", None)


def _access_width(instruction: Instruction) -> int:
    table = _MATRICES if instruction.name in ("LDSM", "STSM") else _WIDTHS
    return next((table[m] for m in instruction.modifiers if m in table), 4)


def _bytes_in_flight(instructions: Sequence[Instruction]) -> int:
    """The most that was asked for and not yet used: what is read first waits for all of it."""
    waiting: dict[str, int] = {}
    most = 0
    for each in instructions:
        read = each.operands if each.name in _SPACES and each.name.startswith("ST") else each.operands[1:]
        if each.name == "BAR" or any(r in waiting for operand in read for r in register_names(operand)):
            waiting.clear()
        if each.name in ("LDG", "LD", "LDGSTS") and each.operands:
            names = register_names(each.operands[0])
            waiting[names[0] if names and each.name != "LDGSTS" else f"#{each.number}"] = _access_width(each)
            most = max(most, sum(waiting.values()))
    return most


def _one_thread(listing: Listing, lanes: Lanes) -> tuple[set[int], set[int]]:
    """Instructions that one thread of a warp runs alone, and those of them in loops of its own."""
    alone: set[int] = set()
    for number, block in enumerate(listing.blocks):
        last = listing.instructions[block.end - 1]
        kind = lanes.condition(last) if last.condition else SAME
        if kind not in (ONE, ALL_BUT_ONE):
            continue
        jumps_alone = (kind == ONE) != last.negated
        targets = {n for n in block.successors if listing.blocks[n].first in last.targets}
        sides = [n for n in block.successors if n > number and (n in targets) == jumps_alone]
        others = [n for n in block.successors if n > number and n not in sides]
        for side in sides:
            alone |= listing.ahead_of(side).difference(*(listing.ahead_of(other) for other in others))
    rows = {n for b in alone for n in range(listing.blocks[b].first, listing.blocks[b].end)}
    looped = {n for first, last in listing.loops if {first, last} <= rows for n in range(first, last + 1)}
    return rows, rows & looped


def _reading_loops(listing: Listing, lanes: Lanes) -> tuple[int, float | None]:
    """Of the innermost loops in their order: how many only load, ahead of one that loads and stores, and what
    that loads for each byte that it stores. What is the same for a warp counts for nothing."""
    inner = [
        a for a in listing.loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in listing.loops)
    ]
    moved: list[dict[str, int]] = []
    for first, last in inner:
        found = {"load": 0, "store": 0}
        for each in listing.instructions[first : last + 1]:
            space, direction = _SPACES.get(each.name, ("", ""))
            if space == "global" and direction in found and lanes.address(each).kind != SAME:
                found[direction] += _access_width(each)
        moved.append(found)
    both = [n for n, one in enumerate(moved) if one["load"] and one["store"]]
    if not both:
        return 0, None
    ahead = sum(1 for one in moved[: both[-1]] if one["load"] and not one["store"])
    return ahead, max(moved[n]["load"] / moved[n]["store"] for n in both)


def _count_divergent(listing: Listing, lanes: Lanes, kind: str) -> int:
    """Instructions that a warp runs in addition because its threads go several ways; a loop that they leave
    at different times counts for half."""
    extra: set[int] = set()
    loops = 0
    for number, block in enumerate(listing.blocks):
        last = listing.instructions[block.end - 1]
        if last.number >= listing.main or not (last.targets or last.name in INDIRECT) or last.name == "CALL":
            continue
        if lanes.condition(last) != kind:
            continue
        ways = sorted(listing.ways(number), key=listing.size)
        extra |= set().union(*ways[:-1])
        loops += sum(last.number - target + 1 for target in last.targets if target < last.number) // 2
    return listing.size(extra) + loops


_disassemble_once = lru_cache(maxsize=8)(lambda cubin: disassemble_cubin(cubin))


def instructions_of(binary: bytes, entry: str) -> tuple[Instructions | None, str]:
    try:
        symbols, cubin = unpack(binary)
    except Malformed as error:
        return None, error.message
    found = _disassemble_once(cubin)
    if found.fault:
        return None, found.fault
    text = found.kernels.get(symbols.get(entry, ""))
    read = read_sass(text) if text else None
    return (read, "") if read is not None else (None, f"the disassembly has no code of {entry}")
