"""What a compiler defines of its own accord: asked of the one that will be used, or else assumed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tunesmith.csource.lex import first_word, lex
from tunesmith.csource.nodes import Unreadable

# Which of the toolkit's headers have, not all compilers: `preprocess` decides these by itself.
OF_HEADERS = frozenset({"CUDART_VERSION", "CUDA_VERSION"})
# Every CUDA compiler has these: a source that asks which version it is must mean the same to all versions.
TELL_VERSION = ("__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__")
_LISTED = re.compile(r"^#define (\w+(?:\([^)]*\))?)(?:[ \t]+(.*))?$", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\.?\d[\w.]*")
_OWN = re.compile(
    r"__(?:CUDA|NV|HIP|OPENCL|GNUC|clang|AMD|GFX|gfx|x86_64|aarch64|linux|cplusplus|SIZEOF_|FAST_RELAXED)\w*"
    r"|_(?:MSC_VER|WIN32|WIN64)|cl_khr_\w+|CL_VERSION_\d_\d|__ENDIAN_LITTLE__|__IMAGE_SUPPORT__|NDEBUG"
)
_CONDITIONS = ("if", "ifdef", "ifndef", "elif")


@dataclass(frozen=True)
class Predefined:
    """`macros` that are numbers, or nothing at all, take part in everything; of the `others`, which headers
    define as text, only that they are defined is of use."""

    macros: tuple[tuple[str, str], ...]
    said_by: str  # whom to believe, in words
    others: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        """Whether it is the compiler's to define, or not to."""
        return is_compilers(name) or name in self.others or any(name == own for own, _ in self.macros)


NOTHING = Predefined((), "")


def is_compilers(name: str) -> bool:
    return _OWN.fullmatch(name) is not None


def listed(text: str) -> tuple[tuple[str, str], ...]:
    """Macros with their values, of the #define directives that a compiler prints for `-dM`."""
    return tuple((name, value.strip()) for name, value in _LISTED.findall(text))


def sorted_out(macros: Iterable[tuple[str, str]], said_by: str) -> Predefined:
    """Of what a compiler says, as name (with its parameters, if it has any) and text."""
    numbers: list[tuple[str, str]] = []
    others: list[str] = []
    for name, value in macros:
        plain = name.partition("(")[0]
        if plain in OF_HEADERS:
            continue
        if plain == name and (not value or _NUMBER.fullmatch(value)):
            numbers.append((name, value))
        else:
            others.append(plain)
    return Predefined(tuple(numbers), said_by, tuple(others))


def assumed(language: str, capability: int = 0, why: str = "no compiler was asked") -> Predefined:
    """Where nobody can be asked."""
    arch = capability or 90
    if language == "cuda":
        versions = (("MAJOR", 13), ("MINOR", 0), ("BUILD", 0))
        macros = [("__CUDACC__", "1"), ("__CUDACC_RTC__", "1"), ("__CUDA_ARCH__", f"{arch}0")]
        macros += [("__cplusplus", "201703L"), *((f"__CUDACC_VER_{n}__", str(v)) for n, v in versions)]
        return Predefined(tuple(macros), f"assumed, since {why}: NVRTC, C++17, sm_{arch}")
    if language == "hip":
        names = ("__HIPCC__", "__HIP__", "__HIP_DEVICE_COMPILE__", "__HIP_PLATFORM_AMD__")
        macros = [*((name, "1") for name in names), ("__cplusplus", "201703L")]
        return Predefined(tuple(macros), f"assumed, since {why}: hipcc for AMD, C++17")
    if language == "opencl":
        return opencl(120, (), f"assumed, since {why}: OpenCL C 1.2")
    return Predefined((), f"assumed, since {why}")


def opencl(version: int, extensions: Iterable[str], said_by: str, c_version: int = 120) -> Predefined:
    """Of a device: 300 for OpenCL 3.0; `c_version`: of the language, 1.2 unless -cl-std says otherwise."""
    known = [n for n in (100, 110, 120, 200, 300) if n <= version]
    macros = [("__OPENCL_VERSION__", str(version)), ("__OPENCL_C_VERSION__", str(c_version))]
    macros += [(f"CL_VERSION_{n // 100}_{n // 10 % 10}", str(n)) for n in known]
    macros += [("__ENDIAN_LITTLE__", "1"), *((name, "1") for name in extensions)]
    return Predefined(tuple(macros), said_by)


_OPENCL = re.compile(r"OpenCL (\d)\.(\d)")
_OPENCL_C = re.compile(r"-cl-std=CL(\d)\.(\d)")
# PoCL's compiler tells which functions of its own it has; of these a kernel may use some.
_BUILTINS = (
    "nontemporal_load nontemporal_store prefetch shufflevector convertvector expect assume assume_aligned "
    "unreachable popcount clz ctz reduce_add reduce_min reduce_max"
)
_CLANG = (
    ("__has_builtin(name)", "TUNESMITH_HAS_##name"),
    *((f"TUNESMITH_HAS___builtin_{name}", "1") for name in _BUILTINS.split()),
)


def opencl_of(driver: str, flags: str, extensions: Iterable[str] | None = None) -> Predefined:
    """Of a device by what its driver says of it; `extensions` None: nobody asked."""
    said, standard = _OPENCL.search(driver), _OPENCL_C.search(flags)
    version = int(said[1]) * 100 + int(said[2]) * 10 if said else 120
    c_version = int(standard[1]) * 100 + int(standard[2]) * 10 if standard else min(120, version)
    who = f"{'the platform' if said else 'assumed'}: OpenCL {version / 100:.1f}, C {c_version / 100:.1f}"
    found = opencl(version, extensions or (), who, c_version)
    fast = (("__FAST_RELAXED_MATH__", "1"),) if "-cl-fast-relaxed-math" in flags else ()
    return Predefined((*found.macros, *fast, *(_CLANG if "PoCL" in driver else ())), who)


# What a target that does not have them is known to lack.
ABSENT = re.compile(
    r"__CUDA\w*|__NVCC__|__HIP\w*|__AMDGCN\w*|__gfx\w+|USE_ROCM|WITH_\w+|CUDA_VERSION|CUDART_\w+|HIP_VERSION"
    r"|__OPENCL\w*|__opencl_c_\w+|__has_(?!include|embed)\w+|cl_\w+|CL_VERSION_\w+|__FAST_RELAXED_MATH__|_MSC_VER|_WIN32|_WIN64|NDEBUG"
)
# Names without a leading underscore that some compiler, or some build, defines.
PLAIN = re.compile(
    r"linux|unix|i386|mips|sparc|(?:POCL|LLVM|CLANG|SPIR|IMG|MAX_WORK|MAX_KERNEL)_\w+|INTTYPE|ALIGN[48]"
    r"|kernel_exec|assert"
)
# What has another value in another place, at another time, or by another compiler.
PLACES = re.compile(
    r"__(?:LINE|FILE|FILE_NAME|BASE_FILE|COUNTER|INCLUDE_LEVEL|DATE|TIME|TIMESTAMP)__|__CUDACC\w*|__CUDART\w*"
    r"|__CUDA_(?:ARCH|API)\w*|__CUDA_\w*VERSION\w*|__NVCC\w*|__cplusplus|__HIPCC__|__HIP_(?:PLATFORM|ARCH)\w*"
    r"|__HIP_DEVICE_COMPILE__|__(?:GNUC|clang|POCL|gfx|AMDGCN|AVX|FMA|SSE|ARM|x86_64|aarch64|CLANG)\w*"
    r"|__NV_CL_C_VERSION|_WIN32|_WIN64|_MSC_VER|(?:CUDA|CUDART|HIP)_VERSION|__OPENCL_(?:C_)?VERSION__"
    r"|CL_VERSION_\w+|cl_khr_\w+|__opencl_c_\w+|__IMAGE_SUPPORT__|__ENDIAN_LITTLE__|__FAST_RELAXED_MATH__"
)


def asked_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in sources that a compiler may have defined: those in conditions, and those only it has."""
    found: set[str] = set()
    for text in texts:
        try:
            tokens = lex(text)
        except Unreadable:
            continue  # which is said where it is read
        for place, token in enumerate(tokens):
            if token.kind == "word" and is_compilers(token.text):
                found.add(token.text)
            elif token.kind == "directive":
                word, rest = first_word(token.text)
                following = tokens[place + 1].text.split() if place + 1 < len(tokens) else []
                is_guard = word == "ifndef" and following == ["define", rest]
                inside = {t.text for t in lex(rest) if t.kind == "word"} if word != "include" else set()
                asks = word in _CONDITIONS and not is_guard
                found |= {name for name in inside if asks or is_compilers(name)}
    return tuple(sorted(found - OF_HEADERS - {"defined"}))


# -- of standard headers ------------------------------------------------------------------------------------

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
    # With a parameter: a number of that type, or a wider one.
    **{f"INT{bits}_C(value)": "value" for bits in (8, 16, 32)},
    "INT64_C(value)": "value##LL",
    **{f"UINT{bits}_C(value)": "value" for bits in (8, 16)},
    "UINT32_C(value)": "value##U",
    "UINT64_C(value)": "value##ULL",
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
