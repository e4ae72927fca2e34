"""OpenCL C for a CPU, as the text of a template file."""

from __future__ import annotations

from collections.abc import Callable

from tunesmith.csource.printing import print_function
from tunesmith.expert.writing.baking import Baked
from tunesmith.expert.writing.cpu_loops import CpuLoops, CpuTotals
from tunesmith.expert.writing.cpu_vectors import Lift
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.kernel_text import KernelText, guard
from tunesmith.expert.writing.plan import Plan
from tunesmith.expert.writing.source_parts import used_functions
from tunesmith.expert.writing.unwritable import Unwritable

_EXP = """\
#if {fast}
// exp(x) = 2^n * exp(r), with n the integer nearest to x / ln 2 and r what is left.
{vec} fast_exp({vec} x)
{{
    x = x < -104.0f ? ({vec})(-104.0f) : x;  // 0 below, infinity above; NaN passes
    x = x > 89.0f ? ({vec})(89.0f) : x;
    {vec} shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: n ends up in the lowest bits
    {ivec} n = {as_ivec}(shifted) - 0x4b400000;
    {vec} whole = shifted - 12582912.0f;
    {vec} r = x - whole * 0.693145751953125f;  // ln 2 in two parts, the first times n is exact
    r = r - whole * 1.42860677e-6f;
    // 1 + r + r^2 * (a polynomial fitted for |r| <= ln(2) / 2, good to 1e-10)
    {vec} p = 1.979002700e-4f;
    p = p * r + 1.394497813e-3f;
    p = p * r + 8.333498612e-3f;
    p = p * r + 4.166629165e-2f;
    p = p * r + 1.666666567e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    {ivec} half_n = n >> 1;  // two steps, so that neither 2^k overflows
    return p * {as_vec}((half_n + 127) << 23) * {as_vec}((n - half_n + 127) << 23);
}}
#endif
"""


def vector_types(
    values: tuple[int, ...], knob: str, vec: str, ivec: str, as_vec: str, as_ivec: str
) -> list[str]:
    lines: list[str] = []
    for number, value in enumerate(values):
        digits = "" if value == 1 else str(value)
        lines += [
            f"#{'if' if number == 0 else 'elif'} {knob} == {value}",
            f"typedef float{digits} {vec};",
            f"typedef int{digits} {ivec};",
            f"#define {as_vec} as_float{digits}",
            f"#define {as_ivec} as_int{digits}",
        ]
    return [*lines, "#endif"]


def write_opencl(
    plan: Plan,
    fast: FastMath,
    assemble: Callable[[Plan, Baked, KernelText, list[list[str]]], str],
    helpers: Callable[[Plan, FastMath], list[list[str]]],
) -> str:
    if plan.kernel.kept:
        raise Unwritable("a loop leaves values for a later one in local memory, which a CPU has no use for")
    if any(value not in (1, 2, 4, 8, 16) for value in plan.knobs.vector.values):
        raise Unwritable("OpenCL has vectors of 2, 4, 8 and 16 elements")
    fresh = plan.names.fresh
    vec, ivec, as_vec, as_ivec = fresh("vec"), fresh("ivec"), fresh("AS_VEC"), fresh("AS_IVEC")
    baked, totals, inside = Baked.of(plan), CpuTotals(plan), guard(plan)
    functions = {f.name: f for f in used_functions(plan.kernel)}
    plain = FastMath(plan.language, plan.names)  # fast forms are for vectors; what is scalar stays as it is
    lift = Lift(vec, plan.names, functions, fast)
    loops = CpuLoops(plan, fast, totals, inside, lift)
    kernel = KernelText(plan, plain, baked, loops, totals, inside)
    body = kernel.text()
    types: list[str] = []
    if loops.uses_vectors:
        types = vector_types(plan.knobs.vector.values, plan.knobs.vector.name, vec, ivec, as_vec, as_ivec)
        types += [
            "",
            "// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.",
            f"typedef struct __attribute__((packed)) {{ {vec} v; }} {(un := fresh('unaligned'))};",
            f"#define {loops.load}(from) (((__global const {un} *)(from))->v)",
            f"#define {loops.store}(x, to) (((__global {un} *)(to))->v = (x))",
        ]
    lifted = [print_function(f, "opencl").strip().split("\n") for f in lift.written]
    macros = fast.macros("\n".join([body, *("\n".join(part) for part in lifted)]))
    code: list[list[str]] = [types]
    if any("fast_exp" in line for line in macros):
        text = _EXP.format(fast=fast.fast, vec=vec, ivec=ivec, as_vec=as_vec, as_ivec=as_ivec)
        code.append(text.rstrip("\n").split("\n"))
    code += [macros, *helpers(plan, plain), *lifted, *loops.folds.text(), body.rstrip("\n").split("\n")]
    return assemble(plan, baked, kernel, code)
