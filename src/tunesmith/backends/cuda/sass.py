"""SASS, NVIDIA's machine code as text, counted: the instruction mix of one kernel and how it touches memory.

Spellings of sm_70 to sm_120; what is unknown counts as an instruction and nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tunesmith.backends.cuda.disassembly import (
    INDIRECT,
    JUMPS,
    Instruction,
    Listing,
    disassemble,
    registers,
)
from tunesmith.backends.cuda.entries import unpack
from tunesmith.backends.cuda.lanes import ALL_BUT_ONE, DATA, FAR, LANE, ONE, SAME, STEP, Lanes, Value
from tunesmith.problem.codec import Malformed
from tunesmith.profiles.facts import Direction, Instructions, MemoryAccess, Mix, Pattern, Space

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
        all=_mix(body, body),
        hot=_mix(hot, body),
        accesses=_accesses(body, numbers, lanes),
        loops=len(listing.loops),
        bytes_in_flight=_bytes_in_flight(body),
        one_thread=len(alone),
        one_thread_loop=len(looped),
        one_thread_global=sum(1 for i in body if i.number in looped and "global" in _SPACES.get(i.name, ())),
        split_by_lane=_split(listing, lanes, LANE),
        split_by_data=_split(listing, lanes, DATA),
        reading_loops=reading,
        loaded_per_stored=per_stored,
    )


def _mix(counted: Sequence[Instruction], body: Sequence[Instruction]) -> Mix:
    classes = Counter(kind for each in counted for kind in _classes(each))
    return Mix(total=len(counted), division=_divisions(counted, body), **classes)


def _classes(instruction: Instruction) -> Iterable[str]:
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


def _divisions(counted: Sequence[Instruction], body: Sequence[Instruction]) -> int:
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


def _accesses(body: Sequence[Instruction], hot: set[int], lanes: Lanes) -> tuple[MemoryAccess, ...]:
    found: Counter[tuple[Space, Direction, int, Pattern, int | None, bool]] = Counter()
    for each in body:
        if each.name in _SPACES:
            space, direction = _SPACES[each.name]
            pattern, stride = _pattern(lanes.address(each), each.name)
            found[space, direction, _width(each), pattern, stride, each.number in hot] += 1
    return tuple(
        MemoryAccess(space, direction, width, pattern, is_hot, count, stride)
        for (space, direction, width, pattern, stride, is_hot), count in found.items()
    )


def _pattern(address: Value, name: str) -> tuple[Pattern, int | None]:
    if name in ("LDSM", "STSM"):
        return "unknown", None  # rows by a rule of their own
    if address.kind == SAME:
        return "uniform", None
    if address.kind == STEP and address.number is not None:
        return "strided", abs(address.number)
    return ("far", None) if address.kind == FAR else ("unknown", None)


def _width(instruction: Instruction) -> int:
    table = _MATRICES if instruction.name in ("LDSM", "STSM") else _WIDTHS
    return next((table[m] for m in instruction.modifiers if m in table), 4)


def _bytes_in_flight(instructions: Sequence[Instruction]) -> int:
    """The most that was asked for and not yet used: what is read first waits for all of it."""
    waiting: dict[str, int] = {}
    most = 0
    for each in instructions:
        read = each.operands if each.name in _SPACES and each.name.startswith("ST") else each.operands[1:]
        if each.name == "BAR" or any(r in waiting for operand in read for r in registers(operand)):
            waiting.clear()
        if each.name in ("LDG", "LD", "LDGSTS") and each.operands:
            names = registers(each.operands[0])
            waiting[names[0] if names and each.name != "LDGSTS" else f"#{each.number}"] = _width(each)
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
    own = {n for first, last in listing.loops if {first, last} <= rows for n in range(first, last + 1)}
    return rows, rows & own


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
                found[direction] += _width(each)
        moved.append(found)
    both = [n for n, one in enumerate(moved) if one["load"] and one["store"]]
    if not both:
        return 0, None
    ahead = sum(1 for one in moved[: both[-1]] if one["load"] and not one["store"])
    return ahead, max(moved[n]["load"] / moved[n]["store"] for n in both)


def _split(listing: Listing, lanes: Lanes, kind: str) -> int:
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


_disassemble_once = lru_cache(maxsize=8)(lambda cubin: disassemble(cubin))


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
