"""Types of values: which are integers, how wide they are, and the type of an integer expression."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, SizeOf, Ternary, Type, Unary

# Bytes and whether signed. Both languages' spellings; E.g. OpenCL's ulong is CUDA's unsigned long long.
_INTEGERS: Mapping[str, tuple[int, bool]] = {
    "bool": (1, False), "char": (1, True), "signed char": (1, True), "unsigned char": (1, False),
    "uchar": (1, False), "short": (2, True), "unsigned short": (2, False), "ushort": (2, False),
    "int": (4, True), "unsigned int": (4, False), "unsigned": (4, False), "uint": (4, False),
    "long": (8, True), "unsigned long": (8, False), "ulong": (8, False), "long long": (8, True),
    "unsigned long long": (8, False), "size_t": (8, False), "ptrdiff_t": (8, True), "ssize_t": (8, True),
    "int8_t": (1, True), "uint8_t": (1, False), "int16_t": (2, True), "uint16_t": (2, False),
    "int32_t": (4, True), "uint32_t": (4, False), "int64_t": (8, True), "uint64_t": (8, False),
    "intptr_t": (8, True), "uintptr_t": (8, False),
}  # fmt: skip
_SCALARS: Mapping[str, int] = {
    **{name: size for name, (size, _) in _INTEGERS.items()},
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "__hip_bfloat16": 2, "float": 4, "double": 8,
    "__nv_fp8_e4m3": 1, "__nv_fp8_e5m2": 1, "__half2": 4, "__nv_bfloat162": 4,
    "__nv_fp8x2_e4m3": 2, "__nv_fp8x4_e4m3": 4,
}  # fmt: skip
_VECTOR_OF = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8, "longlong": 8,
    "ulonglong": 8, "float": 4, "double": 8, "half": 2,
}  # fmt: skip

BUILTINS = tuple(
    f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"
)
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")


def is_integer(type_: Type) -> bool:
    return not type_.is_pointer and type_.base in _INTEGERS


def byte_size(base: str) -> int | None:
    """Of a value of the type, where it is known."""
    if base in _SCALARS:
        return _SCALARS[base]
    digits = base[len(base.rstrip("0123456789")) :]
    element = base[: len(base) - len(digits)]
    if digits and element in _VECTOR_OF:
        count = int(digits)
        # OpenCL's and CUDA's three-element vectors differ; nobody here vectorises with them.
        return None if count == 3 or count > 16 else _VECTOR_OF[element] * count
    return None


def is_same_integer(left: Type, right: Type) -> bool:
    return (
        not left.is_pointer
        and not right.is_pointer
        and _INTEGERS.get(left.base) == _INTEGERS.get(right.base) is not None
    )


def type_of(expr: Expr, types: Mapping[str, Type]) -> Type | None:
    """The type of an integer expression by the usual conversions; None where it is no integer or unknown."""
    match expr:
        case Number(value=int(), text=text):
            suffix = text.lower()[len(text.rstrip("uUlL")) :]
            wide = "l" in suffix or abs(expr.value) >= 2**31
            return Type(("unsigned " if "u" in suffix else "") + ("long long" if wide else "int"))
        case Name(name=name):
            if name in BUILTINS and name not in types:
                return Type("unsigned int")
            found = types.get(name)
            return found if found is not None and is_integer(found) else None
        case Cast(type=type_):
            return type_ if is_integer(type_) else None
        case SizeOf():
            return Type("size_t")
        case Unary(op="!"):
            return Type("bool")
        case Unary(op="-" | "+" | "~", operand=operand):
            return _promoted(type_of(operand, types), Type("int"))
        case Binary(op=op) if op in _COMPARISONS:
            return Type("bool")
        case Binary(op="<<" | ">>", left=left):
            return _promoted(type_of(left, types), Type("int"))
        case Binary(left=left, right=right):
            return _promoted(type_of(left, types), type_of(right, types))
        case Ternary(yes=yes, no=no):
            return _promoted(type_of(yes, types), type_of(no, types))
        case Call(function="min" | "max", args=(left, right)):
            return _promoted(type_of(left, types), type_of(right, types))
    return None


def _promoted(left: Type | None, right: Type | None) -> Type | None:
    if left is None or right is None:
        return None
    (a, a_signed), (b, b_signed) = _INTEGERS[left.base], _INTEGERS[right.base]
    a_signed, b_signed = a_signed or a < 4, b_signed or b < 4
    a, b = max(a, 4), max(b, 4)
    size = max(a, b)
    signed = (a_signed or a < size) and (b_signed or b < size)
    return Type(("" if signed else "unsigned ") + ("int" if size == 4 else "long long"))
