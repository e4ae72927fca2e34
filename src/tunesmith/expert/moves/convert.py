"""The move `convert`."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tunesmith.expert.moves.move import Context, define_move, extend_draft
from tunesmith.expert.read.model import ParameterChoice, TemplateDraft
from tunesmith.expert.write.fast_math import used_functions
from tunesmith.problem.template import Remedy
from tunesmith.source import tree as c

_BITS = {"unsigned char": 8, "unsigned short": 16, "unsigned int": 32}
_BITS |= {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32}
_SIGNED = ("int", "int32_t")
_DEEPEST = 100


@dataclass(frozen=True)
class RunValue:
    """`kind` is float, int or unsigned, all of 32 bits."""

    kind: str
    number: float


class _UnknownError(Exception):
    pass


def run_function(function: c.Function, argument: float) -> int | None:
    """What the function returns as an integer for one float; None where it cannot be run."""
    names: dict[str, RunValue] = {function.parameters[0].name: RunValue("float", _round_to_single(argument))}
    try:
        result = _run_block(function.body, names, 0)
        if result is None:
            return None
        return int(_convert_value(result, function.result.base).number)
    except (_UnknownError, OverflowError, ValueError, ZeroDivisionError):
        return None


def _run_block(stmts: Iterable[c.Stmt], names: dict[str, RunValue], depth: int) -> RunValue | None:
    if depth > _DEEPEST:
        raise _UnknownError
    for stmt in stmts:
        match stmt:
            case c.Declare(type=type_, name=name, init=init) if not stmt.is_array and not type_.is_pointer:
                start = RunValue("int", 0) if init is None else _eval_expr(init, names, 0)
                names[name] = _convert_value(start, type_.base)
            case c.Evaluate(expr=c.Assign(op=op, target=c.Name(name=name), value=value)) if name in names:
                given = _eval_expr(value, names, 0)
                if op != "=":
                    given = _eval_binary(op[:-1], names[name], given)
                names[name] = _wrap_number(names[name].kind, given.number)
            case c.If() | c.Scope():
                taken = stmt.body if isinstance(stmt, c.Scope) else stmt.then
                if isinstance(stmt, c.If) and not _eval_expr(stmt.condition, names, 0).number:
                    taken = stmt.otherwise
                if (result := _run_block(taken, names, depth + 1)) is not None:
                    return result
            case c.Return(value=value) if value is not None:
                return _eval_expr(value, names, 0)
            case _:
                raise _UnknownError
    return None


def _eval_expr(expr: c.Expr, names: dict[str, RunValue], depth: int) -> RunValue:
    if depth > _DEEPEST:
        raise _UnknownError
    d = depth + 1
    match expr:
        case c.Number(text=text, value=int(value)):
            unsigned = "u" in text.lower().removeprefix("0x") or value >= 2**31
            return RunValue("unsigned" if unsigned else "int", value)
        case c.Number(text=text, value=value) if text[-1:] in "fF":
            return RunValue("float", _round_to_single(value))
        case c.Name(name=name) if name in names:
            return names[name]
        case c.Cast(type=type_, value=value) if not type_.is_pointer:
            return _convert_value(_eval_expr(value, names, d), type_.base)
        case c.Ternary(condition=condition, yes=yes, no=no):
            return _eval_expr(yes if _eval_expr(condition, names, d).number else no, names, d)
        case c.Unary(op="-" | "~" as op, operand=operand):
            inner = _eval_expr(operand, names, d)
            if op == "-" or inner.kind != "float":
                return _wrap_number(inner.kind, -inner.number if op == "-" else ~int(inner.number))
        case c.Unary(op="!", operand=operand):
            return RunValue("int", int(not _eval_expr(operand, names, d).number))
        case c.Binary(op="&&" | "||" as op, left=left, right=right):
            first = bool(_eval_expr(left, names, d).number)
            if first == (op == "||"):
                return RunValue("int", int(first))
            return RunValue("int", int(bool(_eval_expr(right, names, d).number)))
        case c.Binary(op=op, left=left, right=right):
            return _eval_binary(op, _eval_expr(left, names, d), _eval_expr(right, names, d))
        case c.Call(function=function, args=args):
            return _eval_call(function, [_eval_expr(arg, names, d) for arg in args])
    raise _UnknownError


def _eval_binary(op: str, left: RunValue, right: RunValue) -> RunValue:
    a, b = left.number, right.number
    kinds = {left.kind, right.kind}
    kind = "float" if "float" in kinds else "unsigned" if "unsigned" in kinds else "int"
    if op in ("<<", ">>"):
        if "float" in kinds or not 0 <= b < 32:
            raise _UnknownError
        return _wrap_number(left.kind, int(a) << int(b) if op == "<<" else int(a) >> int(b))
    if kind == "unsigned":
        a, b = int(a) % 2**32, int(b) % 2**32
    compared = {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b, "!=": a != b}
    if op in compared:
        return RunValue("int", int(compared[op]))
    if op in ("+", "-", "*"):
        return _wrap_number(kind, a + b if op == "+" else a - b if op == "-" else a * b)
    if kind == "float":
        if op == "/":
            return _wrap_number(kind, a / b)
        raise _UnknownError
    x, y = int(a), int(b)
    if op in ("&", "|", "^"):
        return _wrap_number(kind, x & y if op == "&" else x | y if op == "|" else x ^ y)
    if op in ("/", "%") and x >= 0 and y > 0:
        return _wrap_number(kind, x // y if op == "/" else x % y)
    raise _UnknownError


def _eval_call(function: str, args: list[RunValue]) -> RunValue:
    numbers = [arg.number for arg in args]
    match function, args:
        case (("__float_as_uint" | "__float_as_int" | "as_uint" | "as_int"), [RunValue("float", number)]):
            kind = "unsigned" if function.endswith("uint") else "int"
            return _wrap_number(kind, struct.unpack("<I", struct.pack("<f", number))[0])
        case (("__uint_as_float" | "__int_as_float" | "as_float"), [RunValue("int" | "unsigned", number)]):
            return RunValue("float", struct.unpack("<f", struct.pack("<I", int(number) % 2**32))[0])
        case (("fabsf" | "fabs"), [RunValue("float", number)]):
            return RunValue("float", abs(number))
        case (("fminf" | "fmin" | "min"), [_, _]) if {a.kind for a in args} == {"float"}:
            return RunValue("float", min(numbers))
        case (("fmaxf" | "fmax" | "max"), [_, _]) if {a.kind for a in args} == {"float"}:
            return RunValue("float", max(numbers))
    raise _UnknownError


def _convert_value(value: RunValue, base: str) -> RunValue:
    if base == "float":
        return RunValue("float", _round_to_single(value.number))
    if base in _SIGNED:
        return _wrap_number("int", int(value.number))
    if base in _BITS:
        return RunValue("unsigned" if _BITS[base] == 32 else "int", int(value.number) % 2 ** _BITS[base])
    if base == "bool":
        return RunValue("int", int(bool(value.number)))
    raise _UnknownError


def _wrap_number(kind: str, number: float) -> RunValue:
    if kind == "float":
        return RunValue(kind, _round_to_single(number))
    whole = int(number) % 2**32
    return RunValue(kind, whole - 2**32 if kind == "int" and whole >= 2**31 else whole)


def _round_to_single(number: float) -> float:
    """Rounded to single precision, as every float operation is."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


@dataclass(frozen=True)
class Format:
    name: str
    results: tuple[str, ...]
    bits: int
    mantissa: int
    min_exponent: int
    largest: float
    header: str
    statement: str
    pair: str = ""  # the instruction for two values at once, where one for each wastes half of it

    def code(self, value: float) -> int:
        """The nearest, ties to even; of finite values in its range."""
        magnitude = abs(value)
        sign = 1 << (self.bits - 1) if math.copysign(1.0, value) < 0 else 0
        if magnitude == 0:
            return sign
        exponent = max(math.frexp(magnitude)[1] - 1, self.min_exponent)
        steps = round(math.ldexp(magnitude, self.mantissa - exponent))  # Python rounds ties to even
        return sign | ((exponent - self.min_exponent) << self.mantissa) + steps

    def value(self, code: int) -> float:
        field, fraction = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        whole = fraction + (1 << self.mantissa) if field else fraction
        return math.ldexp(whole, self.min_exponent + max(field, 1) - 1 - self.mantissa)


_BYTE, _SHORT = ("unsigned char", "uint8_t"), ("unsigned short", "uint16_t")
_FP8 = "return (unsigned char)__nv_cvt_float_to_fp8({x}, __NV_SATFINITE, %s);"
_FP8_PAIR = "__nv_cvt_float2_to_fp8x2(make_float2({a}, {b}), __NV_SATFINITE, %s)"
_BF16 = "return __bfloat16_as_ushort(__float2bfloat16_rn({x}));"
_FP16 = "return __half_as_ushort(__float2half_rn({x}));"
FORMATS = (
    Format("float8_e4m3", _BYTE, 8, 3, -6, 448.0, "cuda_fp8.h", _FP8 % "__NV_E4M3", _FP8_PAIR % "__NV_E4M3"),
    Format(
        "float8_e5m2", _BYTE, 8, 2, -14, 57344.0, "cuda_fp8.h", _FP8 % "__NV_E5M2", _FP8_PAIR % "__NV_E5M2"
    ),
    Format("bfloat16", _SHORT, 16, 7, -126, math.ldexp(255, 120), "cuda_bf16.h", _BF16),
    Format("float16", _SHORT, 16, 10, -14, 65504.0, "cuda_fp16.h", _FP16),
)
_CODES = 256  # that are looked at, spread over the format


@define_move(
    "convert",
    needs="a helper that is a conversion the hardware has; CUDA",
    turn="seldom",
    remedies=(Remedy.HARDWARE_CONVERSIONS,),
    places=lambda draft, _: ", ".join(name for name, _ in draft.hardware),
    CONVERT="1: the hardware's own conversion",
)
def use_conversions(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Hardware conversions in place of a source's own: a parameter, judged by the oracle.

    Helpers are recognised by what they compute: one from `float` to 8 or 16 bits is run on codes of e4m3,
    e5m2, bfloat16 and float16, on the ties between them and on numbers beside those. If it always gives the
    nearest code, the hardware's instruction may take its place. Numbers outside a format's range are not
    looked at: there the oracle decides. float8 is converted two at a time where results lie side by side.
    """
    if context.language != "cuda":
        return f"hardware conversions are known for cuda alone, not for {context.language}"
    helpers = [(f, form) for f in used_functions(draft.kernel) if (form := recognise_format(f)) is not None]
    included = " ".join(draft.kernel.source.includes)
    helpers = [(helper, form) for helper, form in helpers if form.header in included]
    if not helpers:
        return "no helper of the source computes a conversion that the hardware has"
    found = [(helper.name, form.statement.format(x=helper.parameters[0].name)) for helper, form in helpers]
    pairs = [(helper.name, form.pair) for helper, form in helpers if form.pair]
    names = ", ".join(f"{helper.name} to {form.name}" for helper, form in helpers)
    choice = ParameterChoice(name, (0, 1), 0, f"1: the hardware's own conversion for {names}")
    changed = replace(draft, hardware=(*draft.hardware, *found), in_pairs=(*draft.in_pairs, *pairs))
    return extend_draft(changed, "convert", choice)


def recognise_format(function: c.Function) -> Format | None:
    """The format that a helper rounds a float to, by what it gives."""
    if function.template or len(function.parameters) != 1:
        return None
    only = function.parameters[0].type
    if only.base != "float" or only.is_pointer or only.reference or function.result.is_pointer:
        return None
    forms = (form for form in FORMATS if function.result.base in form.results)
    return next(
        (f for f in forms if all(run_function(function, v) == f.code(v) for v in _sample_floats(f))), None
    )


def _sample_floats(form: Format) -> list[float]:
    """Codes, the ties between them and the numbers next to those, with either sign."""
    last = form.code(form.largest)
    codes = {min(last - 1, code * last // _CODES) for code in range(_CODES)} | {0, 1, 2, last - 1}
    found: dict[float, None] = {0.0: None, form.largest: None}
    for code in sorted(codes):
        low, high = form.value(code), form.value(code + 1)
        tie = (low + high) / 2
        near = math.ldexp(high - low, -8)
        found.update(dict.fromkeys((low, tie, tie - near, tie + near, low + (high - low) / 3)))
    singles = [v for v in found if v == 0 or v >= 2.0**-126]
    return [signed for value in singles for signed in (value, -value)]
