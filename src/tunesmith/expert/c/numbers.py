"""C literals: their values from their text, and text for computed values."""

from __future__ import annotations

import re

from tunesmith.expert.c.nodes import Cast, Expr, Number, Type

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)")
_FLOAT = re.compile(r"(\d*\.\d+(?:[eE][+-]?\d+)?|\d+\.?(?:[eE][+-]?\d+)?)(f16|bf16|[fFlLhH]?)")
_HEX_FLOAT = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlLhH]?)")
_CHARACTERS = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_MAX_LITERAL = 400


def read_number(text: str) -> int | float | None:
    """The value of a numeric, character or boolean literal; None where it is none that is known."""
    text = text.replace("'", "") if text[:1].isdigit() else text
    if len(text) > _MAX_LITERAL:
        return None
    if text in ("true", "false"):
        return int(text == "true")
    integer = _INTEGER.fullmatch(text)
    if integer:
        digits = integer[1]
        if digits[:2] in ("0x", "0X", "0b", "0B"):
            return int(digits, 0)
        if digits.startswith("0") and len(digits) > 1:
            return int(digits, 8) if not set(digits) & set("89") else None
        return int(digits)
    real = _FLOAT.fullmatch(text)
    if real:
        return float(real[1])
    hexadecimal = _HEX_FLOAT.fullmatch(text)
    if hexadecimal:
        return float.fromhex(hexadecimal[1])
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1])
    if len(text) == 4 and text[:2] == "'\\" and text[3] == "'":
        return _CHARACTERS.get(text[2])
    return None


def is_unsigned(text: str) -> bool:
    """Whether a literal is of an unsigned type: by its suffix, or a hexadecimal too large for int."""
    match = _INTEGER.fullmatch(text.replace("'", ""))
    if match is None:
        return False
    value = read_number(text)
    wide = "l" in match[2].lower()
    return "u" in match[2].lower() or (
        isinstance(value, int) and match[1][:2] in ("0x", "0X") and not wide and 2**31 <= value < 2**32
    )


def integer(value: int) -> Number:
    """An integer as a literal of a type that holds it."""
    suffix = "" if -(2**31) <= value < 2**31 else ("LL" if value < 2**63 else "ULL")
    text = f"{value}{suffix}"
    if value == -(2**31):
        text = "(-2147483647 - 1)"
    return Number(text, value)


_SUFFIXES = {
    "int": "", "bool": "", "unsigned int": "u", "long long": "LL", "unsigned long long": "ULL",
    "size_t": "ULL", "long": "L", "unsigned long": "UL", "int32_t": "", "uint32_t": "u", "int64_t": "LL",
    "uint64_t": "ULL",
}  # fmt: skip


def of_type(value: Expr, type_: Type) -> Expr:
    """A constant's value as an expression of the constant's own type."""
    if isinstance(value, Number) and type_.pointers == 0:
        if isinstance(value.value, int) and type_.base in _SUFFIXES:
            suffix = _SUFFIXES[type_.base]
            if value.value >= 0 or "u" not in suffix.lower():
                return Number(f"{value.value}{suffix}", value.value) if suffix else integer(value.value)
        if type_.base == "float" and isinstance(value.value, float) and value.text[-1:] in "fF":
            return value
        if type_.base == "double" and isinstance(value.value, float) and value.text[-1:].isdigit():
            return value
    plain = Type(type_.base, type_.pointers)
    return value if isinstance(value, Cast) and value.type == plain else Cast(plain, value)
