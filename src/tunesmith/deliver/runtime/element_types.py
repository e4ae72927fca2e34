"""Element types by name: how many bytes they have, and a number as those bytes."""

from __future__ import annotations

import math
import struct

_FORMATS = {
    "float16": "e",
    "float32": "f",
    "float64": "d",
    **{f"int{8 * size}": code for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
    **{f"uint{8 * size}": code for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
}
BYTES = {name: struct.calcsize("<" + code) for name, code in _FORMATS.items()}
BYTES.update({"bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1, "int4": 1, "uint4": 1})
PACKED = {"int4": 2, "uint4": 2}  # elements that share a byte, the first in its lowest bits
# What else may lie under an array that stands for the type: a library without the type has only its bits.
STAND_INS = {
    "bfloat16": ("uint16", "int16"),
    "float8_e4m3": ("uint8", "int8"),
    "float8_e5m2": ("uint8", "int8"),
    "int4": ("uint8", "int8"),
    "uint4": ("uint8", "int8"),
}
_SPELLED = {"float8_e4m3fn": "float8_e4m3", "half": "float16", "float": "float32", "double": "float64"}


def plain_type(name: str) -> str:
    """The name as a dispatch has it."""
    return _SPELLED.get(name, name)


def accepts(wanted: str, given: str) -> bool:
    return wanted == given or given in STAND_INS.get(wanted, ())


def is_float(name: str) -> bool:
    return name.startswith(("float", "bfloat"))


def nbytes(name: str, elements: int) -> int:
    return -(-elements // PACKED.get(name, 1)) * BYTES[name]


def as_bytes(name: str, value: float) -> bytes:
    """The value as it lies in memory (packed: in both halves of a byte). ValueError: it does not fit."""
    try:
        if name in _FORMATS:
            number: float = float(value) if is_float(name) else _whole(value)
            return struct.pack("<" + _FORMATS[name], number)
        if name == "bfloat16":
            return _bfloat16(float(value))
        if name in ("float8_e4m3", "float8_e5m2"):
            return bytes([_float8(name, float(value))])
        low, high = (-8, 7) if name == "int4" else (0, 15)
        if name in PACKED and low <= _whole(value) <= high:
            return bytes([(int(value) & 15) * 17])
    except (struct.error, OverflowError) as error:
        raise ValueError(f"{value!r} does not fit {name}") from error
    raise ValueError(f"{value!r} does not fit {name}")


def _whole(value: float) -> int:
    if value != int(value):
        raise ValueError(f"an integer is needed, got {value!r}")
    return int(value)


def _bfloat16(value: float) -> bytes:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if math.isnan(value):
        return b"\xc0\x7f"
    return struct.pack("<H", ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF)


def _float8(name: str, value: float) -> int:
    """Rounded to the nearest, ties to even; beyond the largest e4m3 is not a number and e5m2 infinite."""
    mantissa, bias = (3, 7) if name == "float8_e4m3" else (2, 15)
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    none, beyond = (0x7F, 0x7F) if name == "float8_e4m3" else (0x7E, 0x7C)
    if math.isnan(value):
        return sign | none
    size = abs(value)
    if math.isinf(size):
        return sign | beyond
    exponent = max(math.frexp(size)[1] - 1, 1 - bias) if size else 1 - bias
    steps = round(math.ldexp(size, mantissa - exponent))  # to even, and at most one binade up
    code = ((exponent + bias - 1) << mantissa) + steps
    return sign | min(beyond, code)
