"""Runs a small helper function on numbers: straight code on 32-bit integers and floats, nothing else.

What it does not know ends the run with None: no guess is made about a function that was not run to its end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Evaluate,
    Expr,
    Function,
    If,
    Name,
    Number,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
)

_BITS = {
    "unsigned char": 8,
    "uint8_t": 8,
    "unsigned short": 16,
    "uint16_t": 16,
    "unsigned int": 32,
    "uint32_t": 32,
}
_SIGNED = ("int", "int32_t")
_DEEPEST = 100


@dataclass(frozen=True)
class Value:
    """`kind` is float, int or unsigned, all of 32 bits."""

    kind: str
    number: float


class _UnknownError(Exception):
    pass


def run(function: Function, argument: float) -> int | None:
    """What the function returns as an integer for one float; None where it cannot be run."""
    names: dict[str, Value] = {function.parameters[0].name: Value("float", _single(argument))}
    try:
        result = _block(function.body, names, 0)
        if result is None:
            return None
        return int(_converted(result, function.result.base).number)
    except (_UnknownError, OverflowError, ValueError, ZeroDivisionError):
        return None


def _block(stmts: Iterable[Stmt], names: dict[str, Value], depth: int) -> Value | None:
    if depth > _DEEPEST:
        raise _UnknownError
    for stmt in stmts:
        match stmt:
            case Declare(type=type_, name=name, init=init) if not stmt.is_array and not type_.is_pointer:
                start = Value("int", 0) if init is None else _value(init, names, 0)
                names[name] = _converted(start, type_.base)
            case Evaluate(expr=Assign(op=op, target=Name(name=name), value=value)) if name in names:
                given = _value(value, names, 0)
                if op != "=":
                    given = _binary(op[:-1], names[name], given)
                names[name] = _as_kind(given, names[name].kind)
            case If(condition=condition, then=then, otherwise=otherwise):
                taken = then if _value(condition, names, 0).number else otherwise
                result = _block(taken, names, depth + 1)
                if result is not None:
                    return result
            case Scope(body=body):
                result = _block(body, names, depth + 1)
                if result is not None:
                    return result
            case Return(value=value) if value is not None:
                return _value(value, names, 0)
            case _:
                raise _UnknownError
    return None


def _value(expr: Expr, names: dict[str, Value], depth: int) -> Value:
    if depth > _DEEPEST:
        raise _UnknownError
    d = depth + 1
    match expr:
        case Number(text=text, value=int(value)):
            return Value(
                "unsigned" if "u" in text.lower().removeprefix("0x") or value >= 2**31 else "int", value
            )
        case Number(text=text, value=value) if text[-1:] in "fF":
            return Value("float", _single(value))
        case Name(name=name) if name in names:
            return names[name]
        case Cast(type=type_, value=value) if not type_.is_pointer:
            return _converted(_value(value, names, d), type_.base)
        case Ternary(condition=condition, yes=yes, no=no):
            return _value(yes if _value(condition, names, d).number else no, names, d)
        case Unary(op="-", operand=operand):
            inner = _value(operand, names, d)
            return _wrapped(inner.kind, -inner.number)
        case Unary(op="~", operand=operand):
            inner = _value(operand, names, d)
            if inner.kind != "float":
                return _wrapped(inner.kind, ~int(inner.number))
        case Unary(op="!", operand=operand):
            return Value("int", int(not _value(operand, names, d).number))
        case Binary(op="&&" | "||" as op, left=left, right=right):
            first = bool(_value(left, names, d).number)
            if first == (op == "||"):
                return Value("int", int(first))
            return Value("int", int(bool(_value(right, names, d).number)))
        case Binary(op=op, left=left, right=right):
            return _binary(op, _value(left, names, d), _value(right, names, d))
        case Call(function=function, args=args):
            return _call(function, [_value(arg, names, d) for arg in args])
    raise _UnknownError


def _binary(op: str, left: Value, right: Value) -> Value:
    a, b = left.number, right.number
    kinds = {left.kind, right.kind}
    kind = "float" if "float" in kinds else "unsigned" if "unsigned" in kinds else "int"
    if op in ("<<", ">>"):
        if "float" in kinds or not 0 <= b < 32:
            raise _UnknownError
        return _wrapped(left.kind, int(a) << int(b) if op == "<<" else int(a) >> int(b))
    if kind == "unsigned":
        a, b = int(a) % 2**32, int(b) % 2**32
    compared = {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b, "!=": a != b}
    if op in compared:
        return Value("int", int(compared[op]))
    if op in ("+", "-", "*"):
        return _wrapped(kind, a + b if op == "+" else a - b if op == "-" else a * b)
    if kind == "float":
        if op == "/":
            return _wrapped(kind, a / b)
        raise _UnknownError
    x, y = int(a), int(b)
    if op in ("&", "|", "^"):
        return _wrapped(kind, x & y if op == "&" else x | y if op == "|" else x ^ y)
    if op in ("/", "%") and x >= 0 and y > 0:
        return _wrapped(kind, x // y if op == "/" else x % y)
    raise _UnknownError


def _call(function: str, args: list[Value]) -> Value:
    numbers = [arg.number for arg in args]
    match function, args:
        case (("__float_as_uint" | "__float_as_int" | "as_uint" | "as_int"), [Value("float", number)]):
            kind = "unsigned" if function.endswith("uint") else "int"
            return _wrapped(kind, struct.unpack("<I", struct.pack("<f", number))[0])
        case (("__uint_as_float" | "__int_as_float" | "as_float"), [Value("int" | "unsigned", number)]):
            return Value("float", struct.unpack("<f", struct.pack("<I", int(number) % 2**32))[0])
        case (("fabsf" | "fabs"), [Value("float", number)]):
            return Value("float", abs(number))
        case (("fminf" | "fmin" | "min"), [_, _]) if {a.kind for a in args} == {"float"}:
            return Value("float", min(numbers))
        case (("fmaxf" | "fmax" | "max"), [_, _]) if {a.kind for a in args} == {"float"}:
            return Value("float", max(numbers))
    raise _UnknownError


def _converted(value: Value, base: str) -> Value:
    if base == "float":
        return Value("float", _single(value.number))
    if base in _SIGNED:
        return _wrapped("int", int(value.number))
    if base in _BITS:
        return Value("unsigned" if _BITS[base] == 32 else "int", int(value.number) % 2 ** _BITS[base])
    if base == "bool":
        return Value("int", int(bool(value.number)))
    raise _UnknownError


def _as_kind(value: Value, kind: str) -> Value:
    return Value(kind, _single(value.number)) if kind == "float" else _wrapped(kind, int(value.number))


def _wrapped(kind: str, number: float) -> Value:
    if kind == "float":
        return Value(kind, _single(number))
    whole = int(number) % 2**32
    return Value(kind, whole - 2**32 if kind == "int" and whole >= 2**31 else whole)


def _single(number: float) -> float:
    """Rounded to single precision, as every float operation is."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])
