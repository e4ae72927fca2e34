"""Which expressions are single-precision floats, as far as declarations tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tunesmith.expert.c.nodes import (
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    Index,
    Member,
    Name,
    Number,
    Stmt,
    Ternary,
    Type,
    Unary,
)
from tunesmith.expert.c.unreadable import MAX_DEPTH
from tunesmith.expert.c.walk import nodes_in
from tunesmith.expert.model.affine import is_integer

FLOAT, INTEGER = "float", "int"
_FLOAT_CALLS = frozenset(
    """
    expf exp2f exp10f logf log2f log10f log1pf expm1f sqrtf rsqrtf sinf cosf tanf tanhf sinhf coshf erff erfcf
    powf fabsf fmaxf fminf fmaf fmodf floorf ceilf roundf rintf truncf cbrtf rcbrtf copysignf
    __expf __logf __log2f __fdividef __powf __sinf __cosf __fsqrt_rn __frcp_rn __fmaf_rn __fmul_rn __fadd_rn
    __half2float __bfloat162float __low2float __high2float __uint_as_float __int_as_float __int2float_rn
    __frsqrt_rn __saturatef
    """.split()  # noqa: SIM905 - as a text it can be read
)
# Overloaded in C++ and OpenCL: of a float they give a float.
_OF_ARGUMENT = frozenset(
    """
    exp exp2 log log2 sqrt rsqrt sin cos tan tanh erf pow fabs fmax fmin fma mad floor ceil round rint
    native_exp native_log native_sqrt native_rsqrt native_divide native_recip half_exp clamp min max abs
    __shfl_xor_sync __shfl_down_sync __ldg mix
    """.split()  # noqa: SIM905 - as above
)


def declared_types(part: Iterable[Stmt]) -> dict[str, Type | None]:
    """Of every variable declared; None where two of one name differ."""
    found: dict[str, Type | None] = {}
    for node in nodes_in(tuple(part)):
        declares = [node] if isinstance(node, Declare) else []
        if isinstance(node, For):
            declares = [part for part in node.init if isinstance(part, Declare)]
        for declare in declares:
            pointers = declare.type.pointers + len(declare.dims)
            type_ = Type(declare.type.base, pointers)
            found[declare.name] = type_ if found.get(declare.name, type_) == type_ else None
    return found


def base_of(
    expr: Expr, types: Mapping[str, Type | None], results: Mapping[str, Type], depth: int = 0
) -> str | None:
    """ "float", "int" for any integer, another type's name; None where it is not known."""
    if depth > MAX_DEPTH:
        return None
    d = depth + 1
    match expr:
        case Number(value=int()):
            return INTEGER
        case Number(text=text):
            return FLOAT if text[-1:] in "fF" else "double"
        case Name(name=name):
            return _named(types.get(name))
        case Index(base=base):
            inner = base
            while isinstance(inner, Index):
                inner = inner.base
            if isinstance(inner, Cast):
                return _named(Type(inner.type.base)) if inner.type.pointers == 1 else None
            type_ = types.get(inner.name) if isinstance(inner, Name) else None
            return None if type_ is None or not type_.is_pointer else _named(Type(type_.base))
        case Member(base=base, field=field):
            whole = base_of(base, types, results, d)
            is_vector = whole in ("float2", "float3", "float4") and field in ("x", "y", "z", "w")
            return FLOAT if is_vector else None
        case Call(function=function, args=args):
            if function in _FLOAT_CALLS:
                return FLOAT
            if function in results:
                return _named(results[function])
            if function in _OF_ARGUMENT and args:
                return _wider([base_of(arg, types, results, d) for arg in args])
            return None
        case Cast(type=type_):
            return _named(type_)
        case Unary(op="-" | "+", operand=operand):
            return base_of(operand, types, results, d)
        case Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return _wider([base_of(left, types, results, d), base_of(right, types, results, d)])
        case Ternary(yes=yes, no=no):
            return _wider([base_of(yes, types, results, d), base_of(no, types, results, d)])
        case _:
            return None


def _named(type_: Type | None) -> str | None:
    if type_ is None or type_.is_pointer:
        return None
    return INTEGER if is_integer(type_) else type_.base


def _wider(bases: list[str | None]) -> str | None:
    """By the usual conversions between integers, float and double."""
    if any(base not in (INTEGER, FLOAT, "double") for base in bases):
        return None
    return "double" if "double" in bases else FLOAT if FLOAT in bases else INTEGER
