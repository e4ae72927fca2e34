"""What the languages bring along, by name: types, constants and functions; and the type of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tunesmith.source import tree as c
from tunesmith.source.lex import lex, split_at, squeeze_tokens
from tunesmith.source.walk import nodes_in

# Bytes and whether signed, in all spellings: OpenCL's ulong is CUDA's unsigned long long.
INTEGERS: Mapping[str, tuple[int, bool]] = {
    "bool": (1, False), "char": (1, True), "signed char": (1, True), "unsigned char": (1, False),
    "uchar": (1, False), "short": (2, True), "unsigned short": (2, False), "ushort": (2, False),
    "int": (4, True), "unsigned int": (4, False), "unsigned": (4, False), "uint": (4, False),
    "long": (8, True), "unsigned long": (8, False), "ulong": (8, False), "long long": (8, True),
    "unsigned long long": (8, False), "size_t": (8, False), "ptrdiff_t": (8, True), "ssize_t": (8, True),
    "intptr_t": (8, True), "uintptr_t": (8, False),
    **{f"int{bits}_t": (bits // 8, True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": (bits // 8, False) for bits in (8, 16, 32, 64)},
}  # fmt: skip
_SIZES: dict[str, int] = {
    **{name: size for name, (size, _) in INTEGERS.items()},
    "float": 4, "double": 8,
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


def canonical_type_name(name: str, language: str) -> str:
    """`unsigned` is "unsigned int", `half` in CUDA "__half"; what is not known stays as it is."""
    words = name.split()
    if words and all(word in PRIMITIVE for word in words):
        return _primitive_type_name(words)
    found = _SPELLINGS.get(name, name)
    return found if language == "opencl" else _CUDA_SPELLINGS.get(found, found)


def _primitive_type_name(words: Sequence[str]) -> str:
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


def is_integer(type_: c.Type) -> bool:
    return not type_.is_pointer and type_.base in INTEGERS


def byte_size(base: str) -> int | None:
    """Of a value of the type in either language, where it is known.

    OpenCL's and CUDA's three-element vectors differ; nobody here vectorises with them.
    """
    parts = vector_parts(base, "opencl")
    if parts is not None:
        return None if parts[1] == 3 else size_of(base, "opencl")
    return size_of(base)


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


RESULTS: dict[str, str] = {
    "__half2float": "float", "__bfloat162float": "float", "__low2float": "float", "__high2float": "float",
    "__float2half": "__half", "__float2half_rn": "__half", "__float2half_rz": "__half",
    "__float2bfloat16": "__nv_bfloat16", "__float2bfloat16_rn": "__nv_bfloat16",
    "__half22float2": "float2", "__bfloat1622float2": "float2", "__float22half2_rn": "__half2",
    "__float22bfloat162_rn": "__nv_bfloat162", "__floats2half2_rn": "__half2",
    "__floats2bfloat162_rn": "__nv_bfloat162", "__halves2half2": "__half2", "__float2half2_rn": "__half2",
    "__half2half2": "__half2", "__low2half": "__half", "__high2half": "__half",
    "__float_as_uint": "unsigned int", "__float_as_int": "int", "__uint_as_float": "float",
    "__int_as_float": "float", "__float2int_rn": "int", "__float2int_rz": "int", "__float2int_rd": "int",
    "__float2int_ru": "int", "__int2float_rn": "float", "__uint2float_rn": "float",
    "__float2uint_rn": "unsigned int", "__fdividef": "float", "__expf": "float", "__logf": "float",
    "__powf": "float", "__sinf": "float", "__cosf": "float", "__tanf": "float", "__frcp_rn": "float",
    "__fsqrt_rn": "float", "__frsqrt_rn": "float", "__fdiv_rn": "float", "__fmul_rn": "float",
    "__fadd_rn": "float", "__fsub_rn": "float", "__fmaf_rn": "float", "__saturatef": "float",
    "__log2f": "float", "__popc": "int", "__clz": "int", "__ffs": "int", "__ballot_sync": "unsigned int",
    "__activemask": "unsigned int", "__any_sync": "int", "__all_sync": "int",
    "__half_as_ushort": "unsigned short", "__half_as_short": "short", "__ushort_as_half": "__half",
    "__bfloat16_as_ushort": "unsigned short", "__ushort_as_bfloat16": "__nv_bfloat16",
    "__syncthreads_or": "int", "__syncthreads_and": "int", "__syncthreads_count": "int",
    "__nv_cvt_float_to_fp8": "__nv_fp8_storage_t", "get_global_id": "size_t", "get_local_id": "size_t",
}  # fmt: skip
# The result has the type of the first argument; with an f behind the name, that of a float.
_REAL = frozenset({
    "acos", "asin", "atan", "atan2", "cbrt", "ceil", "copysign", "cos", "cosh", "erf", "erfc", "exp",
    "exp10", "exp2", "expm1", "fabs", "fdivide", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "ldexp",
    "log", "log10", "log1p", "log2", "nearbyint", "normcdf", "pow", "rcbrt", "rint", "round", "rsqrt", "sin",
    "sinh", "sqrt", "tan", "tanh", "trunc",
})  # fmt: skip
# The result has the type of one of the arguments.
SAME_AS: dict[str, int] = {
    **dict.fromkeys(_REAL, 0),
    **{f"__shfl{way}": 0 for way in ("", "_xor", "_down", "_up")},
    **{f"__shfl{way}_sync": 1 for way in ("", "_xor", "_down", "_up")},
    **{f"__h{word}": 0 for word in ("mul", "add", "sub", "neg", "abs", "fma", "max", "min")},
    **{f"__h{word}2": 0 for word in ("mul", "add", "sub", "neg", "abs", "fma", "max", "min")},
    "__ldg": 0, "__ldcs": 0, "__ldcg": 0, "__ldca": 0, "__hdiv": 0, "hexp": 0, "hrsqrt": 0, "hsqrt": 0,
    "h2exp": 0, "native_exp": 0, "native_rsqrt": 0, "native_log": 0, "native_sqrt": 0, "native_recip": 0,
    "half_exp": 0, "abs": 0,
}  # fmt: skip
# It has the type that all of them are converted to; of a vector and numbers the vector's.
_OF_ALL = frozenset({
    "min", "max", "fmax", "fmin", "fma", "mad", "pow", "clamp", "mix", "native_divide",
})  # fmt: skip

Types = Mapping[str, c.Type]

_CONSTANTS: Types = {name: c.Type("float") for name in ("INFINITY", "NAN", "HUGE_VALF")}

PAIRS = {"__half2": "__half", "__nv_bfloat162": "__nv_bfloat16", "__hip_bfloat162": "__hip_bfloat16"}
_MEMBERS = {**PAIRS, "dim3": "unsigned int"}


def declared_types(function: c.Function, body: Iterable[c.Stmt] | None = None) -> dict[str, c.Type]:
    """Names of a function's parameters and variables with their types, an array as a pointer.

    A name declared twice with different types is not in it.
    """
    found: dict[str, c.Type] = {parameter.name: parameter.type for parameter in function.parameters}
    unsure: set[str] = set()
    for node in nodes_in(function.body if body is None else body):
        if isinstance(node, c.Declare):
            type_ = replace(node.type, pointers=node.type.pointers + (len(node.dims) or int(node.is_array)))
            if node.type.base == "auto":
                inner = None if node.init is None else type_of(node.init, found, ())
                if inner is None:
                    unsure.add(node.name)
                    continue
                type_ = replace(inner, const=node.type.const or (inner.const and inner.is_pointer))
            if found.setdefault(node.name, type_) != type_:
                unsure.add(node.name)
    return {name: type_ for name, type_ in found.items() if name not in unsure}


def type_of(
    expr: c.Expr, types: Types, functions: Iterable[c.Function] = (), language: str = "cuda", _depth: int = 0
) -> c.Type | None:
    if _depth > c.MAX_DEPTH:
        return None
    known = functions if isinstance(functions, tuple) else tuple(functions)

    def inner(part: c.Expr) -> c.Type | None:
        return type_of(part, types, known, language, _depth + 1)

    match expr:
        case c.Number():
            return _literal_type(expr)
        case c.Name(name=name):
            if name not in types and name.partition(".")[0] in c.INDICES:
                return c.Type("size_t" if language == "opencl" else "unsigned int")
            return types.get(name, _CONSTANTS.get(name))
        case c.Cast(type=type_) | c.SizeOf(type=type_):
            return type_ if isinstance(expr, c.Cast) else c.Type("size_t")
        case c.Braces(type=maybe):
            return maybe
        case c.Unary(op="!"):
            return c.Type("bool")
        case c.Unary(op="&", operand=operand):
            base = inner(operand)
            return None if base is None else replace(base, pointers=base.pointers + 1, reference=False)
        case c.Unary(op=op, operand=operand):
            base = inner(operand)
            return base if op in ("++", "--") or base is None else _promote_integer(base)
        case c.Index(base=of):
            base = inner(of)
            if base is None or not base.pointers:
                return None
            return replace(base, pointers=base.pointers - 1, restrict=False)
        case c.Member(base=of, arrow=False):
            return _member_type(inner(of), expr.field, language)
        case c.Binary(op="<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"):
            return c.Type("bool")
        case c.Binary(op=",", right=right):
            return inner(right)
        case c.Binary(op="<<" | ">>", left=left):
            base = inner(left)
            return None if base is None else _promote_integer(base)
        case c.Binary(left=left, right=right):
            return _common_arithmetic_type(inner(left), inner(right))
        case c.Ternary(yes=yes, no=no):
            a, b = inner(yes), inner(no)
            same = a is not None and b is not None and _value_type(a) == _value_type(b)
            return a if same else _common_arithmetic_type(a, b)
        case c.Assign(target=target):
            return inner(target)
        case c.Call(of=None):
            return _call_result_type(expr, inner, known, language)
    return None


def integer_type(expr: c.Expr, types: Types) -> c.Type | None:
    """None where it is no integer, or not known."""
    found = type_of(expr, types)
    return found if found is not None and is_integer(found) else None


def is_of_type(expr: c.Expr, type_: c.Type, types: Types) -> bool:
    """Whether an integer has the width and the sign of the type."""
    found = integer_type(expr, types)
    return found is not None and INTEGERS.get(found.base) == INTEGERS.get(type_.base)


def _value_type(type_: c.Type) -> c.Type:
    return c.Type(type_.base, type_.pointers)


def _literal_type(number: c.Number) -> c.Type:
    text, value = number.text, number.value
    if isinstance(value, float):
        return c.Type("float" if text[-1:] in "fF" else "double")
    if text in ("true", "false"):
        return c.Type("bool")
    if text.startswith("'"):
        return c.Type("char")
    suffix = text.lower().lstrip("-0123456789abcdefx")
    wide = suffix.count("l") == 2 or not -(2**31) <= value < 2**32
    if number.is_unsigned:
        return c.Type("unsigned long long" if wide or "l" in suffix else "unsigned int")
    return c.Type("long long" if wide or value >= 2**31 else "long" if "l" in suffix else "int")


def _promote_integer(type_: c.Type) -> c.Type:
    if type_.pointers == 0 and INTEGERS.get(type_.base, (4, True))[0] < 4:
        return c.Type("int")
    return _value_type(type_)


def _conversion_rank(base: str) -> tuple[int, int] | None:
    """Of the usual conversions: the wider, and of two as wide the unsigned one."""
    if base in INTEGERS:
        size, signed = INTEGERS[base]
        return size, int(not signed)
    return {"float": (16, 0), "double": (17, 0)}.get(base)


def _common_arithmetic_type(a: c.Type | None, b: c.Type | None) -> c.Type | None:
    """The usual arithmetic conversions; a pointer and an integer make a pointer."""
    if a is None or b is None:
        return None
    if a.pointers or b.pointers:
        return replace(a if a.pointers else b, reference=False) if not (a.pointers and b.pointers) else None
    a, b = _promote_integer(a), _promote_integer(b)
    if a == b:
        return a
    left, right = _conversion_rank(a.base), _conversion_rank(b.base)
    if left is None or right is None:
        return None
    return a if left >= right else b


def _member_type(base: c.Type | None, field: str, language: str) -> c.Type | None:
    if base is None or base.pointers:
        return None
    if base.base in _MEMBERS and field in ("x", "y", "z"):
        return c.Type(_MEMBERS[base.base])
    parts = vector_parts(base.base, language)
    if parts is None or not set(field) <= set("xyzw"):
        return None
    element = {"longlong": "long long", "ulonglong": "unsigned long long"}.get(parts[0], parts[0])
    if element == "char" and language != "opencl":
        element = "signed char"
    several = f"{parts[0]}{len(field)}"
    return c.Type(canonical_type_name(element, language) if len(field) == 1 else several)


def _call_result_type(
    call: c.Call, inner: Callable[[c.Expr], c.Type | None], functions: tuple[c.Function, ...], language: str
) -> c.Type | None:
    name = call.function.removeprefix("std::")
    called = [f for f in functions if f.name == name and len(f.parameters) == len(call.args)]
    if called:
        results = {_value_type(f.result) for f in called}
        names = {parameter.name for f in called for parameter in f.template} | {"auto"}
        return called[0].result if len(results) == 1 and called[0].result.base not in names else None
    if name in RESULTS:
        return c.Type(RESULTS[name])
    if name[-1:] == "f" and name[:-1] in _REAL:
        return c.Type("float")
    if name in _OF_ALL and len(call.args) > 1:
        first, *others = map(inner, call.args)
        is_vector = first is not None and vector_parts(first.base, language) is not None
        return first if is_vector else reduce(_common_arithmetic_type, others, first)
    if name in SAME_AS and len(call.args) > SAME_AS[name]:
        found = inner(call.args[SAME_AS[name]])
        if found is None:
            return None
        return c.Type(found.base, found.pointers - 1) if name.startswith("__ld") and found.pointers else found
    if name.startswith("make_") and vector_parts(name[5:], language):
        return c.Type(name[5:])
    if language == "opencl" and name.startswith(("convert_", "as_")):
        return c.Type(canonical_type_name(name.partition("_")[2].partition("_")[0], language))
    return None


# -- constants of a type


def integer_literal(value: int) -> c.Number:
    """An integer as a literal of a type that holds it."""
    suffix = "" if -(2**31) <= value < 2**31 else ("LL" if value < 2**63 else "ULL")
    return c.Number("(-2147483647 - 1)" if value == -(2**31) else f"{value}{suffix}", value)


_SUFFIXES = {
    "int": "", "bool": "", "unsigned int": "u", "long long": "LL", "unsigned long long": "ULL",
    "size_t": "ULL", "long": "L", "unsigned long": "UL", "int32_t": "", "uint32_t": "u", "int64_t": "LL",
    "uint64_t": "ULL",
}  # fmt: skip


def of_type(value: c.Expr, type_: c.Type) -> c.Expr:
    """A constant's value as an expression of the constant's own type."""
    if isinstance(value, c.Number) and type_.pointers == 0:
        if isinstance(value.value, int) and type_.base in _SUFFIXES:
            suffix = _SUFFIXES[type_.base]
            if not suffix:
                return integer_literal(value.value)
            if value.value >= 0 or "u" not in suffix.lower():
                return c.Number(f"{value.value}{suffix}", value.value)
        if type_.base == "float" and isinstance(value.value, float) and value.text[-1:] in "fF":
            return value
        if type_.base == "double" and isinstance(value.value, float) and value.text[-1:].isdigit():
            return value
    plain = c.Type(type_.base, type_.pointers)
    return value if isinstance(value, c.Cast) and value.type == plain else c.Cast(plain, value)


def split_arguments(text: str) -> list[str]:
    """Template arguments, or others between commas, each in the usual spacing."""
    return [squeeze_tokens(part) for part in split_at(",", lex(text)) if part]
