"""The type of an integer expression."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, SizeOf, Ternary, Type, Unary
from tunesmith.csource.types import INTEGERS, is_integer

BUILTINS = tuple(
    f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"
)
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")


def is_same_integer(left: Type, right: Type) -> bool:
    return (
        not left.is_pointer
        and not right.is_pointer
        and INTEGERS.get(left.base) == INTEGERS.get(right.base) is not None
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
    (a, a_signed), (b, b_signed) = INTEGERS[left.base], INTEGERS[right.base]
    a_signed, b_signed = a_signed or a < 4, b_signed or b < 4
    a, b = max(a, 4), max(b, 4)
    size = max(a, b)
    signed = (a_signed or a < size) and (b_signed or b < size)
    return Type(("" if signed else "unsigned ") + ("int" if size == 4 else "long long"))
