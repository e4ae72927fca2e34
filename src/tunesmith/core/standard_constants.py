"""Constants of the C standard's headers, as C writes them: for a compiler that lacks these, and a reader."""

from __future__ import annotations

from collections.abc import Mapping

_BITS = (8, 16, 32, 64)


def _range(name: str, bits: int) -> dict[str, str]:
    most, suffix = 2 ** (bits - 1) - 1, "LL" if bits == 64 else ""
    return {f"{name}_MAX": f"{most}{suffix}", f"{name}_MIN": f"(-{most}{suffix} - 1)"}


def _most(bits: int) -> str:
    return f"{2**bits - 1}{'ULL' if bits == 64 else 'U' if bits == 32 else ''}"


STDINT: Mapping[str, str] = {
    **{name: value for bits in _BITS for name, value in _range(f"INT{bits}", bits).items()},
    **{f"UINT{bits}_MAX": _most(bits) for bits in _BITS},
    "SIZE_MAX": _most(64),
}
LIMITS: Mapping[str, str] = {
    "CHAR_BIT": "8",
    **_range("SCHAR", 8), **_range("CHAR", 8), **_range("SHRT", 16), **_range("INT", 32),
    **_range("LLONG", 64),
    "UCHAR_MAX": _most(8), "USHRT_MAX": _most(16), "UINT_MAX": _most(32), "ULLONG_MAX": _most(64),
}  # fmt: skip
FLOATS: Mapping[str, str] = {
    "FLT_RADIX": "2", "FLT_MANT_DIG": "24", "FLT_DIG": "6", "FLT_MIN_EXP": "(-125)", "FLT_MAX_EXP": "128",
    "FLT_MAX": "3.402823466e+38F", "FLT_MIN": "1.175494351e-38F", "FLT_EPSILON": "1.192092896e-07F",
    "FLT_TRUE_MIN": "1.401298464e-45F",
    "DBL_MANT_DIG": "53", "DBL_DIG": "15", "DBL_MIN_EXP": "(-1021)", "DBL_MAX_EXP": "1024",
    "DBL_MAX": "1.7976931348623157e+308", "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
}  # fmt: skip
MATH: Mapping[str, str] = {
    "M_E": "2.7182818284590452354", "M_LOG2E": "1.4426950408889634074", "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942", "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923", "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154", "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}  # fmt: skip
# By the header that has them, under both of its names.
BY_HEADER: Mapping[str, Mapping[str, str]] = {
    "stdint.h": STDINT, "cstdint": STDINT, "limits.h": LIMITS, "climits": LIMITS,
    "float.h": FLOATS, "cfloat": FLOATS, "math.h": MATH, "cmath": MATH,
}  # fmt: skip
