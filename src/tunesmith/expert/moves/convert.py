"""Hardware conversions in place of a source's own: a parameter, judged by the oracle.

A helper from float to 8 or 16 bits is run on codes of a format, the ties between them and numbers beside.
One that always gives the nearest code is that conversion, however it is written, and the hardware has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tunesmith.core.profile.remedies import Remedy
from tunesmith.csource.nodes import Function
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.running import run
from tunesmith.expert.writing.source_parts import used_functions


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


class Convert:
    name = "convert"
    remedies = (Remedy.HARDWARE_CONVERSIONS,)
    parameters = ("CONVERT",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if context.language != "cuda":
            return Refused(f"hardware conversions are known for cuda alone, not for {context.language}")
        found: list[tuple[str, str]] = []
        pairs: list[tuple[str, str]] = []
        names: list[str] = []
        for function in used_functions(draft.kernel):
            meant = recognised(function)
            if meant is not None and any(meant.header in include for include in draft.kernel.source.includes):
                found.append((function.name, meant.statement.format(x=function.parameters[0].name)))
                names.append(f"{function.name} to {meant.name}")
                pairs += [(function.name, meant.pair)] if meant.pair else []
        if not found:
            return Refused("no helper of the source computes a conversion that the hardware has")
        name = context.macro("CONVERT")
        return extend(
            replace(draft, hardware=(*draft.hardware, *found), in_pairs=(*draft.in_pairs, *pairs)),
            self,
            {"convert": Choice(name, (0, 1), 0, f"1: the hardware's own conversion for {', '.join(names)}")},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.HARDWARE_CONVERSIONS, f"{name} == 1")],
        )


def recognised(function: Function) -> Format | None:
    """The format that a helper rounds a float to, by what it gives."""
    if function.template or len(function.parameters) != 1:
        return None
    only = function.parameters[0].type
    if only.base != "float" or only.is_pointer or only.reference or function.result.is_pointer:
        return None
    for form in FORMATS:
        if function.result.base in form.results and all(
            run(function, v) == form.code(v) for v in _samples(form)
        ):
            return form
    return None


def _samples(form: Format) -> list[float]:
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
