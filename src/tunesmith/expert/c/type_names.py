"""Names of types: one spelling for each, their sizes, and which words name a type at all."""

from __future__ import annotations

from collections.abc import Sequence

_SIZES: dict[str, int] = {
    "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1,
    "short": 2, "unsigned short": 2, "int16_t": 2, "uint16_t": 2,
    "int": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "float": 4,
    "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "int64_t": 8, "uint64_t": 8,
    "size_t": 8, "ptrdiff_t": 8, "intptr_t": 8, "uintptr_t": 8, "double": 8,
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "__hip_bfloat16": 2, "hip_bfloat16": 2,
    "__half2": 4, "__nv_bfloat162": 4, "__hip_bfloat162": 4,
    "__nv_fp8_e4m3": 1, "__nv_fp8_e5m2": 1, "__nv_fp8_storage_t": 1, "__nv_fp8x2_storage_t": 2,
    "__nv_fp8x4_storage_t": 4, "__nv_fp8x2_e4m3": 2, "__nv_fp8x2_e5m2": 2, "__nv_fp8x4_e4m3": 4,
    "__nv_fp8x4_e5m2": 4, "__hip_fp8_e4m3": 1, "__hip_fp8_e4m3_fnuz": 1, "__half_raw": 2,
    "__nv_bfloat16_raw": 2, "dim3": 12, "cudaTextureObject_t": 8,
}  # fmt: skip
_ELEMENTS = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
    "longlong": 8, "ulonglong": 8, "float": 4, "double": 8,
}  # fmt: skip
_SPELLINGS = {
    "uint": "unsigned int", "uchar": "unsigned char", "ushort": "unsigned short", "ulong": "unsigned long",
    "std::size_t": "size_t", "_Bool": "bool",
}  # fmt: skip
_SPELLINGS |= {f"std::{name}": name for name in _SIZES if name.endswith("_t")}
_CUDA_SPELLINGS = {
    "half": "__half", "half2": "__half2", "nv_bfloat16": "__nv_bfloat16", "nv_bfloat162": "__nv_bfloat162",
}  # fmt: skip
PRIMITIVE = frozenset({
    "void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "auto", "_Bool",
})  # fmt: skip


def canonical(name: str, language: str) -> str:
    """`unsigned` is "unsigned int", `half` in CUDA "__half"; what is not known stays as it is."""
    words = name.split()
    if words and all(word in PRIMITIVE for word in words):
        return _primitive(words)
    found = _SPELLINGS.get(name, name)
    return found if language == "opencl" else _CUDA_SPELLINGS.get(found, found)


def _primitive(words: Sequence[str]) -> str:
    kinds = set(words)
    if kinds & {"float", "double", "void", "bool", "_Bool", "auto"}:
        return "bool" if "_Bool" in kinds else next(word for word in words if word not in ("signed", "const"))
    sign = "unsigned " if "unsigned" in kinds else ""
    if "char" in kinds:
        return sign + "char" if sign or "signed" not in kinds else "signed char"
    if "short" in kinds:
        return sign + "short"
    longs = words.count("long")
    return sign + ("long long" if longs == 2 else "long" if longs else "int")


def size_of(name: str, language: str = "cuda") -> int | None:
    """Bytes of a type by its canonical name; None where it is not known."""
    if name in _SIZES:
        return _SIZES[name]
    if name in _CUDA_SPELLINGS:
        return 4 if name.endswith("2") else 2
    parts = vector_parts(name, language)
    if parts is None:
        return None
    element, count = parts
    size = 2 if element == "half" else _ELEMENTS[element]
    return size * (4 if count == 3 and language == "opencl" else count)


def vector_parts(name: str, language: str = "cuda") -> tuple[str, int] | None:
    """`float4` is ("float", 4); None for what is no built-in vector."""
    element = name.rstrip("0123456789")
    digits = name[len(element) :]
    widths = ("2", "3", "4", "8", "16") if language == "opencl" else ("1", "2", "3", "4")
    if digits not in widths or (element not in _ELEMENTS and (element != "half" or language != "opencl")):
        return None
    return element, int(digits)


def is_builtin_type(name: str, language: str = "cuda") -> bool:
    return (
        name in PRIMITIVE
        or name in _SPELLINGS
        or name in _SIZES
        or size_of(name, language) is not None
        or (name.endswith("_t") and name.isidentifier())
    )
