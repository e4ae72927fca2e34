"""Headers of the C and C++ standard that device code includes, in small: NVRTC comes with none.

Only what a kernel can use is in them: limits, integer types, constants of <math.h>, the functions of <cmath>
that CUDA has by these names, common type traits. Integer types are those of CUDA's C++ core libraries under
NVRTC, with which they get along. nvcc finds the host's own headers instead, so nothing of this is delivered.
A source that needs more is told so by the compiler, and is nvcc's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tunesmith.backends.cuda.standard_templates import ALGORITHM, NUMERIC_LIMITS, SWAP, TYPE_TRAITS
from tunesmith.core.files.read_headers import includes
from tunesmith.csource.types import FLOATS, LIMITS, MATH, STDINT

Headers = tuple[tuple[str, str], ...]

_BASES = {8: "char", 16: "short", 32: "int", 64: "long long"}
# nvcc includes <math.h> before a source's first line: sources may name these without asking for them.
_MATH = {
    **MATH,
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "HUGE_VALF": "__int_as_float(0x7f800000)",
    "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000LL)",
}
_OF_BOTH = (  # of float and of double, under one name
    *(
        "abs",
        "fabs",
        "fmod",
        "remainder",
        "fma",
        "fmax",
        "fmin",
        "fdim",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log10",
    ),
    *("log2", "log1p", "pow", "sqrt", "cbrt", "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "tgamma", "lgamma", "ceil", "floor"),
    *(
        "trunc",
        "round",
        "nearbyint",
        "rint",
        "lround",
        "llround",
        "frexp",
        "ldexp",
        "modf",
        "scalbn",
        "ilogb",
    ),
    *("logb", "nextafter", "copysign", "isnan", "isinf", "isfinite", "signbit"),
)
_OF_FLOAT = (
    *(
        "fabsf",
        "fmodf",
        "fmaf",
        "fmaxf",
        "fminf",
        "expf",
        "exp2f",
        "logf",
        "log10f",
        "log2f",
        "log1pf",
        "powf",
    ),
    *("sqrtf", "sinf", "cosf", "tanf", "tanhf", "erff", "ceilf", "floorf", "truncf", "roundf", "rintf"),
)
_LONG = """#ifdef _WIN32
#define LONG_MAX 2147483647L
#define ULONG_MAX 4294967295UL
#else
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#endif
#define LONG_MIN (-LONG_MAX - 1L)"""


def _header(name: str, *lines: str) -> str:
    guard = f"TUNESMITH_{re.sub(r'[^A-Z]', '_', name.upper())}"
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", *lines, "#endif", ""])


def _constant(name: str, value: str) -> str:
    return f"#ifndef {name}\n#define {name} {value}\n#endif"


def _in_std(names: Iterable[str]) -> str:
    return f"namespace std {{ {' '.join(f'using ::{name};' for name in names)} }}"


def _constants(values: Mapping[str, str]) -> list[str]:
    return [_constant(name, value) for name, value in values.items()]


def _integers() -> tuple[list[str], list[str]]:
    """Types and constants of <stdint.h>, and the names of the types."""
    names, lines = [], _constants(STDINT)
    for bits, base in _BASES.items():
        for kind in ("", "_least", "_fast"):
            signed, plain = f"int{kind}{bits}_t", f"uint{kind}{bits}_t"
            lines += [f"typedef signed {base} {signed};", f"typedef unsigned {base} {plain};"]
            names += [signed, plain]
        lines += [
            f"#define INT{bits}_C(value) value{'##LL' if bits == 64 else ''}",
            f"#define UINT{bits}_C(value) value{'##ULL' if bits == 64 else '##U' if bits == 32 else ''}",
        ]
    for name, base in (("intptr_t", ""), ("uintptr_t", "u"), ("intmax_t", ""), ("uintmax_t", "u")):
        lines.append(f"typedef {base}int64_t {name};")
        names.append(name)
    return lines, names


_ASSERT = """#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __trap())
#endif"""


def _standard() -> Mapping[str, str]:
    integers, integer_names = _integers()
    sizes = ["typedef decltype((char *)0 - (char *)0) ptrdiff_t;", _constant("NULL", "0")]
    sizes += ["#ifndef offsetof", "#define offsetof(type, member) __builtin_offsetof(type, member)", "#endif"]
    bodies = {
        "stdint.h": integers,
        "cstdint": ["#include <stdint.h>", _in_std(integer_names)],
        "limits.h": [*_constants(LIMITS), _LONG],
        "climits": ["#include <limits.h>"],
        "float.h": _constants(FLOATS),
        "cfloat": ["#include <float.h>"],
        "stddef.h": sizes,
        "cstddef": ["#include <stddef.h>", _in_std(("size_t", "ptrdiff_t"))],
        "math.h": _constants(_MATH),
        "cmath": ["#include <math.h>", _in_std((*_OF_BOTH, *_OF_FLOAT))],
        "stdbool.h": [],
        "cassert": ["#include <assert.h>"],
        "stdio.h": [],
        "cstdio": [_in_std(("printf",))],
        "stdlib.h": ["#include <stddef.h>"],
        "cstdlib": ["#include <cstddef>", _in_std(("abs",))],
        "algorithm": ["#include <utility>", ALGORITHM],
        "utility": ["#include <type_traits>", SWAP],
        "type_traits": [TYPE_TRAITS],
        "limits": [NUMERIC_LIMITS],
    }
    # <assert.h> may be included again, with NDEBUG set otherwise.
    return {name: _header(name, *lines) for name, lines in bodies.items()} | {"assert.h": f"{_ASSERT}\n"}


_STANDARD = _standard()


def standard_headers(source: str, given: Headers) -> Headers:
    """What of the standard these texts include and nobody has given: spelling and text."""
    own = {spelling for spelling, _ in given}
    found: dict[str, str] = {}
    queue = [
        source,
        *(text for _, text in given),
        *(["#include <math.h>"] if pre_included(source, given) else []),
    ]
    while queue:
        for spelling, _ in includes(queue.pop()):
            if spelling in _STANDARD and spelling not in own and spelling not in found:
                found[spelling] = _STANDARD[spelling]
                queue.append(_STANDARD[spelling])
    return tuple(found.items())


def pre_included(source: str, given: Headers) -> str:
    """The header that nvcc would have put in front, where a text makes use of it; else nothing."""
    if any(spelling == "math.h" for spelling, _ in given):
        return ""
    texts = "\n".join([source, *(text for _, text in given)])
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", texts)) & _MATH.keys()
    words -= set(re.findall(r"#[ \t]*define[ \t]+(\w+)", texts))
    return "math.h" if words else ""
