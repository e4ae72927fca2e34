"""Inline assembly that says what the language says as well: exchanges between lanes, loads and stores.

    asm("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, %3;" : "=f"(y) : "f"(x), "r"(d), "r"(mask))
                                        ->  y = __shfl_xor_sync(mask, x, d)
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), ... : "l"(p))
                                        ->  v = *(const uint4 *)p
    asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : ...)
                                        ->  v = 0; if (ok) v = *(const unsigned *)p
    asm("griddepcontrol.wait;")         ->  cudaGridDependencySynchronize()

One access to a statement, every operand accounted for; all else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.assembly import NotAssembly, instruction_lines
from tunesmith.csource.types import vector_parts

_SHUFFLE = re.compile(r"shfl\.sync\.(bfly|down|up|idx)\.b32 (.*)")
_NAMES = {
    "bfly": "__shfl_xor_sync", "down": "__shfl_down_sync", "up": "__shfl_up_sync", "idx": "__shfl_sync",
}  # fmt: skip
_HINTS = r"(?:\.(?:nc|ca|cg|cs|lu|cv|wb|wt|relaxed|weak|gpu|L1::\w+|L2::\w+))*"
_ACCESS = re.compile(rf"(ld|st)\.global({_HINTS})(?:\.v([24]))?\.([busf])(8|16|32|64) (.*)")
_LOAD = re.compile(r"(?:\{(?P<several>[^{}]*)\}|(?P<one>%\d+)), ?\[(?P<at>%\d+)(?: ?\+ ?(?P<plus>\d+))?\]")
_STORE = re.compile(r"\[(?P<at>%\d+)(?: ?\+ ?(?P<plus>\d+))?\], ?(?:\{(?P<several>[^{}]*)\}|(?P<one>%\d+))")
_PREDICATE = re.compile(r"\.reg ?\.pred %?(\w+)")
_TEST = re.compile(r"setp\.ne\.[bsu](?:32|64) %?(\w+), ?(%\d+), ?0")
_ZERO = re.compile(r"mov\.[busf](?:16|32|64) (%\d+), ?0(?:x0+)?")
_UNDER = re.compile(r"@%?(\w+) (.*)")
_DEPENDENT = re.compile(
    r'asm(?: volatile)? ?\( ?"griddepcontrol\.(wait|launch_dependents);? ?"(?: ?: ?: ?: ?"memory")? ?\) ?;?'
)
_DEPENDENTS = {
    "wait": "cudaGridDependencySynchronize", "launch_dependents": "cudaTriggerProgrammaticLaunchCompletion",
}  # fmt: skip
# Of a constraint: the type that its register has, and its bits.
_REGISTERS = {
    "f": ("float", 32), "r": ("unsigned int", 32), "h": ("unsigned short", 16),
    "l": ("unsigned long long", 64), "d": ("double", 64),
}  # fmt: skip
_VECTORS = {
    "float": "float", "unsigned int": "uint", "unsigned short": "ushort", "double": "double",
    "unsigned long long": "ulonglong",
}  # fmt: skip


@dataclass(frozen=True)
class AsmOperand:
    constraint: str
    value: c.Expr


def as_statements(
    text: str,
    outputs: Sequence[AsmOperand],
    inputs: Sequence[AsmOperand],
    types: Mapping[str, c.Type],
    line: int,
) -> tuple[c.Stmt, ...] | None:
    """None: it stays assembly. `types`: of variables, as far as they are known."""
    if (found := _DEPENDENT.fullmatch(" ".join(text.split()))) is not None:
        return (c.Evaluate(c.Call(_DEPENDENTS[found[1]]), line=line),)
    try:
        lines = instruction_lines(text)
    except NotAssembly:
        return None
    if any(not output.constraint.startswith("=") for output in outputs):
        return None
    operands = (*outputs, *inputs)
    if len(lines) > 1:
        return _guarded(lines, outputs, operands, types, line)
    return _one(lines[0], outputs, operands, types, line)


def _guarded(
    lines: Sequence[str],
    outputs: Sequence[AsmOperand],
    operands: Sequence[AsmOperand],
    types: Mapping[str, c.Type],
    line: int,
) -> tuple[c.Stmt, ...] | None:
    """An access under a predicate: what a load leaves out is zero."""
    declared, tested = _PREDICATE.fullmatch(lines[0]), _TEST.fullmatch(lines[1])
    access = _UNDER.fullmatch(lines[-1])
    if (
        declared is None
        or tested is None
        or access is None
        or len({m[1] for m in (declared, tested, access)}) != 1
    ):
        return None
    test = _operand(tested[2], operands)
    zeros = [_ZERO.fullmatch(one) for one in lines[2:-1]]
    if test is None or test.constraint not in ("r", "l") or any(zero is None for zero in zeros):
        return None
    named = [zero[1] for zero in zeros if zero is not None]
    if sorted(named) != sorted(f"%{at}" for at in range(len(outputs))):
        return None
    inside = _one(access[2], outputs, operands, types, line)
    set_here = {walk.root(output.value)[0] for output in outputs}
    read_there = [operand.value for operand in operands[len(outputs) :]]
    if inside is None or any(walk.names_in(value) & set_here for value in read_there):
        return None
    zero = c.Number("0", 0)
    before = tuple(c.Evaluate(c.Assign("=", out.value, zero), line=line) for out in outputs)
    whole = _only_target(inside)
    if len(outputs) > 1 and whole is not None:
        before = (c.Evaluate(c.Assign("=", whole, _zeros(outputs)), line=line),)
    return (*before, c.If(c.Binary("!=", test.value, zero), inside, line=line))


def _only_target(stmts: tuple[c.Stmt, ...]) -> c.Expr | None:
    match stmts:
        case (c.Evaluate(expr=c.Assign(target=target)),):
            return target
    return None


def _zeros(outputs: Sequence[AsmOperand]) -> c.Expr:
    register = _REGISTERS[outputs[0].constraint.lstrip("=")][0]
    zero = c.Number("0.0f", 0.0) if register == "float" else c.Number("0", 0)
    return c.Call(f"make_{_vector(register, len(outputs))}", tuple(zero for _ in outputs))


def _one(
    text: str,
    outputs: Sequence[AsmOperand],
    operands: Sequence[AsmOperand],
    types: Mapping[str, c.Type],
    line: int,
) -> tuple[c.Stmt, ...] | None:
    if (found := _SHUFFLE.fullmatch(text)) is not None:
        return _shuffled(found[1], found[2], operands, len(outputs), line)
    found = _ACCESS.fullmatch(text)
    if found is None or ".relaxed" in found[2] or ".cv" in found[2]:
        return None
    width, kind, bits = int(found[3] or 1), found[4], int(found[5])
    place = (_LOAD if found[1] == "ld" else _STORE).fullmatch(found[6])
    if place is None or place["plus"]:
        return None
    names = [part.strip() for part in (place["several"] or place["one"]).split(",")]
    values = [_operand(name, operands) for name in names]
    pointer = _operand(place["at"], operands)
    if len(names) != width or pointer is None or any(value is None for value in values):
        return None
    moved = [value for value in values if value is not None]
    register = _register(moved, kind, bits)
    if register is None or len(set(names)) != width:
        return None
    if found[1] == "ld":
        if len(outputs) != width or any(names[at] != f"%{at}" for at in range(width)):
            return None
        return _loaded(moved, register, pointer, types, line)
    return None if outputs else _stored(moved, register, pointer, types, line)


def _operand(text: str, operands: Sequence[AsmOperand]) -> AsmOperand | None:
    number = int(text[1:]) if re.fullmatch(r"%\d+", text) else -1
    return operands[number] if 0 <= number < len(operands) else None


def _register(values: Sequence[AsmOperand], kind: str, bits: int) -> str | None:
    """The type that moves: that of the registers, where they are as wide as what lies in memory."""
    found = {_REGISTERS.get(value.constraint.lstrip("="), ("", 0)) for value in values}
    if len(found) != 1:
        return None
    name, wide = found.pop()
    if wide != bits or (kind == "f" and name not in ("float", "double")):
        return None
    return name if kind != "s" else None


def _number(text: str, operands: Sequence[AsmOperand]) -> c.Expr | None:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", text):
        value = int(text, 0)
        return c.Number(text if value < 2**31 else f"{text}u", value)
    operand = _operand(text, operands)
    return None if operand is None else operand.value


def _shuffled(
    way: str, text: str, operands: Sequence[AsmOperand], outputs: int, line: int
) -> tuple[c.Stmt, ...] | None:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 5 or parts[0] != "%0" or outputs != 1:
        return None
    target, value = operands[0], _operand(parts[1], operands)
    by, clamp, mask = (_number(part, operands) for part in parts[2:])
    if value is None or by is None or mask is None or not isinstance(clamp, c.Number):
        return None
    if value.constraint != target.constraint.lstrip("=") or value.constraint not in ("f", "r"):
        return None
    segment, low = divmod(int(clamp.value), 256)
    width = 32 - segment
    if low != (0 if way == "up" else 31) or width not in (1, 2, 4, 8, 16, 32):
        return None
    args = (mask, value.value, by, *(() if width == 32 else (c.Number(str(width), width),)))
    return (c.Evaluate(c.Assign("=", target.value, c.Call(_NAMES[way], args)), line=line),)


def _whole(values: Sequence[AsmOperand], vector: str, types: Mapping[str, c.Type]) -> c.Expr | None:
    """The variable whose parts x, y, z, w these are, in order."""
    first = values[0].value
    base = first.base if isinstance(first, c.Member) else None
    if not isinstance(base, c.Name) or types.get(base.name) is None:
        return None
    known = types[base.name]
    if (known.base, known.pointers) != (vector, 0):
        return None
    parts = [c.Member(base, field) for field in "xyzw"[: len(values)]]
    return base if [value.value for value in values] == parts else None


def _vector(register: str, count: int) -> str:
    name = f"{_VECTORS[register]}{count}" if count > 1 else register
    assert count == 1 or vector_parts(name), name
    return name


def _address(pointer: AsmOperand, type_: str, const: bool) -> c.Expr:
    value = pointer.value
    while isinstance(value, c.Cast) and not value.type.is_pointer:
        value = value.value
    if isinstance(value, c.Call) and value.function == "__cvta_generic_to_global":
        value = value.args[0]
    return c.Index(c.Cast(c.Type(type_, 1, const), value), c.Number("0", 0))


def _loaded(
    values: Sequence[AsmOperand], register: str, pointer: AsmOperand, types: Mapping[str, c.Type], line: int
) -> tuple[c.Stmt, ...]:
    vector = _vector(register, len(values))
    found = _address(pointer, vector, const=True)
    if len(values) == 1:
        return (c.Evaluate(c.Assign("=", values[0].value, found), line=line),)
    whole = _whole(values, vector, types)
    if whole is not None:
        return (c.Evaluate(c.Assign("=", whole, found), line=line),)
    name = f"loaded_{line}"
    parts = tuple(
        c.Evaluate(c.Assign("=", value.value, c.Member(c.Name(name), field)), line=line)
        for value, field in zip(values, "xyzw", strict=False)
    )
    return (c.Declare(c.Type(vector, const=True), name, found, line=line), *parts)


def _stored(
    values: Sequence[AsmOperand], register: str, pointer: AsmOperand, types: Mapping[str, c.Type], line: int
) -> tuple[c.Stmt, ...]:
    vector = _vector(register, len(values))
    target = _address(pointer, vector, const=False)
    whole = values[0].value if len(values) == 1 else _whole(values, vector, types)
    if whole is None:
        whole = c.Call(f"make_{vector}", tuple(value.value for value in values))
    return (c.Evaluate(c.Assign("=", target, whole), line=line),)
