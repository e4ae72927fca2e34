"""How values vary over the threads of a warp, as far as machine code tells: one pass over all registers.

A value is the same for all threads, or differs by a fixed step from each thread to the next, or in some other
way. Only the low half of a 64-bit value is followed, which is where neighbouring threads differ.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from tunesmith.backends.cuda.disassembly import INDIRECT, Instruction, Listing

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
        self._solve()

    def address(self, instruction: Instruction) -> Value:
        """Of a memory instruction."""
        operand = next((o for o in instruction.operands if "[" in o and not o.startswith("c[")), "")
        return _address(operand, self._states.get(instruction.number, {}))

    def condition(self, instruction: Instruction) -> str:
        """How the outcome of a branch varies over a warp. ONE: one thread meets it, jumps or goes on."""
        name = instruction.condition
        state = self._states.get(instruction.number, {})
        if not name:
            index = [_value(o, state) for o in instruction.operands if _REGISTER.match(o)]
            return _join_all(index).kind if index else SAME
        return state.get(name, UNIFORM).kind

    def _solve(self) -> None:
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
                _step(instruction, state)
            for following in block.successors:
                merged = _merged(entries.get(following), state)
                if merged != entries.get(following):
                    entries[following] = merged
                    waiting.add(following)


def _merged(known: State | None, new: State) -> State:
    if known is None:
        return dict(new)
    return {name: _join(known.get(name), new.get(name)) for name in known.keys() | new.keys()}


def _join(first: Value | None, second: Value | None) -> Value:
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


# -- one instruction ------------------------------------------------------------------------------------


def _step(instruction: Instruction, state: State) -> None:
    predicates, destination, sources = _parts(instruction)
    if destination is None and not predicates:
        return
    values = [_value(o, state) for o in sources if not _PREDICATE.match(o)]
    result = _result(instruction, values, sources, state)
    if destination is not None:
        names = _written(destination, instruction)
        _set(state, names[0], result, instruction)
        for name in names[1:]:
            # The high half of an address or index is the same for a warp; of a load all words are alike.
            high = result if instruction.name in _LOADS or result.kind in (LANE, DATA) else UNIFORM
            _set(state, name, high, instruction)
    for name in predicates:
        _set(state, name, _predicate(instruction, values, result, sources, state), instruction)


def _set(state: State, name: str, value: Value, instruction: Instruction) -> None:
    guarded = instruction.guard not in ("", "PT", "UPT")
    state[name] = _join(state.get(name), value) if guarded and name in state else value


def _parts(instruction: Instruction) -> tuple[list[str], str | None, list[str]]:
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
        elif destination is None and _REGISTER.match(operand) and not _compares(name):
            destination = operand
        else:
            break
        left.pop(0)
    return [p for p in predicates if not p.endswith("PT")], destination, left


def _compares(name: str) -> bool:
    return name.removeprefix("U").endswith(("SETP", "SETP2", "PLOP3", "FCHK")) or name == "R2P"


def _written(destination: str, instruction: Instruction) -> list[str]:
    base = _REGISTER.match(destination)
    assert base is not None
    prefix, digits = ("UR", base[1][2:]) if base[1].startswith("UR") else ("R", base[1][1:])
    if digits == "Z":
        return [base[1]]
    words = {"64": 2, "WIDE": 2, "128": 4, "256": 8}
    least = 2 if instruction.name in ("DADD", "DMUL", "DFMA") else 1
    count = max([least, *(words.get(m, 1) for m in instruction.modifiers)])
    return [f"{prefix}{int(digits) + k}" for k in range(count)]


def _value(operand: str, state: State) -> Value:
    text = operand.replace(".reuse", "")
    if (register := _REGISTER.match(text)) is not None:
        if register[1].endswith("Z"):
            return ZERO
        found = state.get(register[1], UNIFORM)
        return _negated(found) if text.startswith("-") else found
    if _NUMBER.fullmatch(text):
        number = int(text, 0)
        return Value(SAME, number - (1 << 32) if 1 << 31 <= number < 1 << 32 else number)
    if text.startswith(("c[", "-c[")):
        return _join_all([state.get(r, UNIFORM) for r in re.findall(r"\bU?R\d+\b", text)])
    return UNIFORM


def _address(operand: str, state: State) -> Value:
    groups = re.findall(r"\[([^\]]*)\]", operand)
    total = ZERO
    for part in re.split(r"\+", groups[-1]) if groups else ():
        scale = re.search(r"\.X(\d+)", part)
        value = _value(part.split(".")[0], state)
        total = _sum(total, _product(value, Value(SAME, int(scale[1]))) if scale else value)
    return total


def _result(instruction: Instruction, values: list[Value], sources: list[str], state: State) -> Value:
    name, modifiers = instruction.name, instruction.modifiers
    if name == "S2R":
        return Value(STEP, 1) if sources and sources[0] in _THREAD_NUMBERS else UNIFORM
    if name in _SAME_FOR_ALL:
        return UNIFORM
    if name in _LOADS:
        where = next((o for o in sources if "[" in o), "")
        return UNIFORM if _address(where, state).kind == SAME else Value(DATA)
    if name.startswith(("ATOM", "SHFL", "LDL")):  # what a thread spilled is its own
        return Value(DATA)
    if "X" in modifiers or ("HI" in modifiers and name not in ("SHF", "USHF")):
        return _high(instruction, values)
    if name in ("MOV", "UMOV"):
        return values[0] if values else UNIFORM
    if name in ("HFMA2", "HFMA2_MMA") and [s.lstrip("-") for s in sources[:2]] == ["RZ", "RZ"]:
        return _packed(sources[2:4])
    if name in _MULTIPLIES and len(values) >= 3:
        return _sum(_product(values[0], values[1]), values[2])
    if name in _ADDS:
        return _sum(*values)
    if name in ("LEA", "ULEA") and len(values) >= 3:
        return _sum(_shifted_left(values[0], values[2]), values[1])
    if name in ("SHF", "USHF") and len(values) >= 3:
        return _shifted(modifiers, values)
    if name in ("LOP3", "ULOP3") and len(values) >= 4:
        return _logic(values)
    if name == "PRMT" and len(values) >= 3 and values[1].kind == SAME and values[2].kind == SAME:
        return values[0] if values[0].kind in (SAME, STEP, FAR) else _join_all(values)
    if name in ("SEL", "USEL") and len(values) >= 2:
        return _join(values[0], values[1])
    return _join_all(values)


def _packed(halves: list[str]) -> Value:
    """A constant put together from two numbers in half precision, the high one first."""
    try:
        high, low = (int.from_bytes(struct.pack("<e", float(half)), "little") for half in halves)
    except (ValueError, OverflowError):
        return UNIFORM
    return Value(SAME, high << 16 | low)


def _predicate(
    instruction: Instruction, values: list[Value], result: Value, sources: list[str], state: State
) -> Value:
    name = instruction.name
    if name in _RARE:
        return UNIFORM
    inputs = [state.get(m[1], UNIFORM) for o in sources if (m := _PREDICATE.match(o)) is not None]
    if name in ("LOP3", "ULOP3"):  # whether any bit is left
        own = Value({STEP: ALL_BUT_ONE, FAR: ALL_BUT_ONE}.get(result.kind, result.kind))
    elif name in ("ISETP", "UISETP") and len(values) >= 2:
        own = _comparison(instruction.modifiers, _sum(values[0], _negated(values[1])))
    elif _compares(name):
        own = Value(_join_all(values).kind)
    else:
        own = UNIFORM  # a carry: of interest to the high half alone
    mixed = [v for v in inputs if v.kind != SAME]
    if not mixed:
        return own
    if own.kind == SAME and len(mixed) == 1:
        return mixed[0]
    if {own.kind, *(v.kind for v in mixed)} <= {SAME, BOUND}:
        return Value(BOUND)
    return Value(DATA if DATA in (own.kind, *(v.kind for v in mixed)) else LANE)


def _comparison(modifiers: tuple[str, ...], difference: Value) -> Value:
    if difference.kind in (STEP, FAR):
        if "EQ" in modifiers:
            return Value(ONE)
        return Value(ALL_BUT_ONE if "NE" in modifiers else BOUND)
    return Value(difference.kind)


# -- arithmetic -----------------------------------------------------------------------------------------


def _negated(value: Value) -> Value:
    return Value(value.kind, -value.number) if value.number is not None else value


def _sum(*values: Value) -> Value:
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


def _product(first: Value, second: Value) -> Value:
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
    return _product(value, Value(SAME, 1 << by.number))


def _shifted(modifiers: tuple[str, ...], values: list[Value]) -> Value:
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


def _high(instruction: Instruction, values: list[Value]) -> Value:
    """The high half of something: the same for a warp, unless it varies irregularly. LEA.HI is also how a
    number is divided by a power of two: the bias that a negative one needs, added to it."""
    if instruction.name == "LEA" and instruction.modifiers == ("HI",) and len(values) >= 2:
        return _sum(values[1], UNIFORM) if values[0].kind == SAME else _join_all(values)
    if instruction.name in _MULTIPLIES and "HI" in instruction.modifiers:
        return _join_all(values)
    return UNIFORM if {v.kind for v in values} <= {SAME, STEP, FAR} else _join_all(values)


def _logic(values: list[Value]) -> Value:
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
    own = 31 * step  # the bits in which a warp's threads differ
    mask = second.number & 0xFFFFFFFF
    if mask & own == own:
        return first
    return Value(LANE) if mask & own else UNIFORM
