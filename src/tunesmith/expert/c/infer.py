"""The type of an expression, as far as declarations, literals and known functions tell. None: not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tunesmith.expert.c.known_functions import FLOAT_MATH, RESULTS, SAME_AS
from tunesmith.expert.c.nodes import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Declare,
    Expr,
    Function,
    Index,
    Member,
    Name,
    Number,
    SizeOf,
    Stmt,
    Ternary,
    Type,
    Unary,
)
from tunesmith.expert.c.numbers import is_unsigned
from tunesmith.expert.c.type_names import canonical, vector_parts
from tunesmith.expert.c.unreadable import MAX_DEPTH
from tunesmith.expert.c.walk import nodes_in

Types = Mapping[str, Type]

_RANKS = {
    "double": 9, "float": 8, "unsigned long long": 7, "unsigned long": 7, "size_t": 7, "uint64_t": 7,
    "long long": 6, "long": 6, "int64_t": 6, "ptrdiff_t": 6, "unsigned int": 5, "uint32_t": 5, "int": 4,
    "int32_t": 4, "short": 3, "unsigned short": 3, "char": 2, "unsigned char": 2, "signed char": 2,
    "int8_t": 2, "uint8_t": 2, "int16_t": 3, "uint16_t": 3, "bool": 1,
}  # fmt: skip
_PAIRS = {
    "__half2": "__half", "__nv_bfloat162": "__nv_bfloat16", "__hip_bfloat162": "__hip_bfloat16",
    "dim3": "unsigned int",
}  # fmt: skip


def declared_types(function: Function, body: Iterable[Stmt] | None = None) -> dict[str, Type]:
    """Names of a function's parameters and variables with their types, an array as a pointer.

    A name declared twice with different types is not in it.
    """
    found: dict[str, Type] = {parameter.name: parameter.type for parameter in function.parameters}
    unsure: set[str] = set()
    for node in nodes_in(function.body if body is None else body):
        if isinstance(node, Declare):
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
    expr: Expr, types: Types, functions: Iterable[Function] = (), language: str = "cuda", _depth: int = 0
) -> Type | None:
    if _depth > MAX_DEPTH:
        return None
    known = functions if isinstance(functions, tuple) else tuple(functions)

    def inner(part: Expr) -> Type | None:
        return type_of(part, types, known, language, _depth + 1)

    match expr:
        case Number(text=text, value=value):
            return _literal(text, value)
        case Name(name=name):
            if name.partition(".")[0] in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
                return Type("size_t" if language == "opencl" else "unsigned int")
            return types.get(name)
        case Cast(type=type_) | SizeOf(type=type_):
            return type_ if isinstance(expr, Cast) else Type("size_t")
        case Braces(type=maybe):
            return maybe
        case Unary(op="!"):
            return Type("bool")
        case Unary(op="&", operand=operand):
            base = inner(operand)
            return None if base is None else replace(base, pointers=base.pointers + 1, reference=False)
        case Unary(op=op, operand=operand):
            base = inner(operand)
            return base if op in ("++", "--") or base is None else _promoted(base)
        case Index(base=of):
            base = inner(of)
            return (
                None
                if base is None or not base.pointers
                else replace(base, pointers=base.pointers - 1, restrict=False)
            )
        case Member(base=of, arrow=False):
            return _member(inner(of), expr.field, language)
        case Binary(op="<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"):
            return Type("bool")
        case Binary(op=",", right=right):
            return inner(right)
        case Binary(op="<<" | ">>", left=left):
            base = inner(left)
            return None if base is None else _promoted(base)
        case Binary(left=left, right=right):
            return _joined(inner(left), inner(right))
        case Ternary(yes=yes, no=no):
            a, b = inner(yes), inner(no)
            return a if a is not None and b is not None and _value(a) == _value(b) else _joined(a, b)
        case Assign(target=target):
            return inner(target)
        case Call():
            return _call(expr, inner, known, language)
        case _:
            return None


def _value(type_: Type) -> Type:
    return Type(type_.base, type_.pointers)


def _literal(text: str, value: int | float) -> Type:
    if isinstance(value, float):
        return Type("float" if text[-1:] in "fF" else "double")
    if text in ("true", "false"):
        return Type("bool")
    if text.startswith("'"):
        return Type("char")
    suffix = text.lower().lstrip("-0123456789abcdefx")
    wide = suffix.count("l") == 2 or not -(2**31) <= value < 2**32
    if is_unsigned(text):
        return Type("unsigned long long" if wide or "l" in suffix else "unsigned int")
    return Type("long long" if wide or value >= 2**31 else "long" if "l" in suffix else "int")


def _promoted(type_: Type) -> Type:
    if type_.pointers == 0 and _RANKS.get(type_.base, 99) < 4:
        return Type("int")
    return _value(type_)


def _joined(a: Type | None, b: Type | None) -> Type | None:
    """The usual arithmetic conversions; a pointer and an integer make a pointer."""
    if a is None or b is None:
        return None
    if a.pointers or b.pointers:
        return replace(a if a.pointers else b, reference=False) if not (a.pointers and b.pointers) else None
    a, b = _promoted(a), _promoted(b)
    if a == b:
        return a
    left, right = _RANKS.get(a.base), _RANKS.get(b.base)
    if left is None or right is None:
        return None
    return a if left >= right else b


def _member(base: Type | None, field: str, language: str) -> Type | None:
    if base is None or base.pointers:
        return None
    if base.base in _PAIRS and field in ("x", "y", "z"):
        return Type(_PAIRS[base.base])
    parts = vector_parts(base.base, language)
    if parts is None or not set(field) <= set("xyzw"):
        return None
    element = {"longlong": "long long", "ulonglong": "unsigned long long"}.get(parts[0], parts[0])
    if element == "char" and language != "opencl":
        element = "signed char"
    return Type(canonical(element, language)) if len(field) == 1 else Type(f"{parts[0]}{len(field)}")


def _call(
    call: Call, inner: Callable[[Expr], Type | None], functions: tuple[Function, ...], language: str
) -> Type | None:
    name = call.function.removeprefix("std::")
    own = [f for f in functions if f.name == name and len(f.parameters) == len(call.args)]
    if own:
        results = {_value(f.result) for f in own}
        names = {parameter.name for f in own for parameter in f.template}
        return own[0].result if len(results) == 1 and own[0].result.base not in names | {"auto"} else None
    if name in RESULTS:
        return Type(RESULTS[name])
    if name in FLOAT_MATH:
        return Type("float")
    if name in ("min", "max") and len(call.args) == 2:
        return _joined(inner(call.args[0]), inner(call.args[1]))
    if name in SAME_AS and len(call.args) > SAME_AS[name]:
        found = inner(call.args[SAME_AS[name]])
        if found is None:
            return None
        return Type(found.base, found.pointers - 1) if name.startswith("__ld") and found.pointers else found
    if name.startswith("make_") and vector_parts(name[5:], language):
        return Type(name[5:])
    if language == "opencl" and name.startswith(("convert_", "as_")):
        return Type(canonical(name.partition("_")[2].partition("_")[0], language))
    return None
