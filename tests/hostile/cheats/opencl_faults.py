"""OpenCL templates that are wrong at some sizes or values, or less exact than the original."""

from __future__ import annotations

from tests.hostile.cheats.corpus import DIFFERS, Cheat
from tunesmith.problem.plan import Status

FAILED = (Status.WRONG, Status.CRASHED)
SCALE = "float scale = 1.0f / sqrt(sum / d + eps);"
SUMS = "for (int i = 0; i < d; i++)\n        sum += from[i] * from[i];"
WRITES = "to[i] = from[i] * scale * weight[i];"

FAULTS: dict[str, Cheat] = {
    # -- wrong at sizes that no workload has -------------------------------------------------------
    "workloads_only": Cheat(
        "sizes",
        "is right at the workloads and at small sizes alone",
        at="verify",
        edits=(
            (
                SCALE,
                SCALE
                + "\n    if (rows > 40 && !(rows == 64 && d == 256) && !(rows == 48 && d == 300)) scale = 0;",
            ),
        ),
    ),
    "short_rows": Cheat(
        "sizes",
        "counts rows in sixteen bits",
        base="tall",
        at="verify",
        edits=(("row = at / d", "row = (ushort)(at / d)"), ("out[at]", "out[row * d + column]")),
    ),
    "tail": Cheat(
        "sizes",
        "leaves the last few of a row that four does not divide",
        at="short",
        quick=True,
        edits=(("i < d; i++)\n        to", "i < d / 4 * 4; i++)\n        to"),),
        verdicts=DIFFERS,
    ),
    "single_row": Cheat(
        "sizes",
        "is wrong where there is one row",
        at="short",
        edits=((SCALE, SCALE + " if (rows == 1) scale = 1;"),),
    ),
    "single_column": Cheat(
        "sizes", "is wrong in a row of one", at="short", edits=((SCALE, SCALE + " if (d == 1) scale = 1;"),)
    ),
    "between": Cheat(
        "sizes",
        "is wrong between workloads and powers of two",
        at="verify",
        edits=((SCALE, SCALE + " if (d > 310 && d < 330) scale *= 1.5f;"),),
    ),
    "beyond": Cheat(
        "sizes",
        "is wrong beyond the largest workload",
        at="verify",
        edits=((SCALE, SCALE + " if (d > 517) scale = 0;"),),
    ),
    "multiple": Cheat(
        "sizes",
        "is wrong where the width is a multiple of 97",
        at="verify",
        edits=((SCALE, SCALE + " if (d % 97 == 0 && d > 200) scale = 0;"),),
    ),
    "odd_rows": Cheat(
        "sizes",
        "does rows in pairs, and the last of an odd number only where there are few",
        begin="if (rows % 2 && row == rows - 1 && rows > 16) return;",
        verdicts=DIFFERS,
    ),
    "crash": Cheat(
        "sizes",
        "dies at one width",
        at="verify",
        verdicts=FAILED,
        quick=False,
        edits=((SCALE, SCALE + " if (d == 333) out[(size_t)1 << 44] = 0;"),),
    ),
    "hang": Cheat(
        "sizes",
        "does not end at one width",
        at="verify",
        verdicts=(Status.TIMED_OUT,),
        edits=((SUMS, "volatile int turns = d == 333;\n    while (turns) { }\n    " + SUMS),),
    ),
    # -- wrong at rare values ----------------------------------------------------------------------
    "no_maximum": Cheat(
        "values", "does not subtract the maximum", base="softmax", edits=(("from[i] - largest", "from[i]"),)
    ),
    "infinite": Cheat(
        "values", "takes infinity for a large number", base="silu", begin="x = fmin(fmax(x, -3e38f), 3e38f);"
    ),
    "far": Cheat(
        "values", "takes silu for 0 below -9", base="silu", begin="if (x < -9.0f) x = 0;", at="verify"
    ),
    "all_equal": Cheat(
        "values",
        "believes a row whose ends and middle are equal to be constant",
        edits=(
            (
                SCALE,
                SCALE + " if (from[0] == from[d - 1] && from[0] == from[d / 2])"
                " scale = 1.0f / sqrt(from[0] * from[0] + eps);",
            ),
        ),
    ),
    "sorted": Cheat(
        "values",
        "looks for the maximum in the first half",
        base="softmax",
        at="verify",
        edits=(
            (
                "for (int i = 0; i < d; i++)\n        largest",
                "for (int i = 0; i < (d + 1) / 2; i++)\n        largest",
            ),
        ),
    ),
    "nan_dropped": Cheat(
        "values",
        "drops what is not a number from the sum",
        quick=True,
        edits=(
            (SUMS, SUMS.replace("sum += from[i] * from[i]", "sum += isnan(from[i]) ? 0 : from[i] * from[i]")),
        ),
    ),
    "clamped_codes": Cheat(
        "values",
        "takes rows of large numbers for smaller ones",
        base="quant",
        edits=(("most = max(most, fabs(from[i]))", "most = min(max(most, fabs(from[i])), 90.0f)"),),
    ),
    # -- less exact --------------------------------------------------------------------------------
    "inside_tolerance": Cheat(
        "accuracy",
        "is off by nine tenths of the tolerance",
        at="long",
        quick=True,
        edits=((SCALE, "float scale = 1.00009f / sqrt(sum / d + eps);"),),
    ),
    "short_sums": Cheat(
        "accuracy",
        "adds in eleven bits",
        edits=(
            ("sum += from[i] * from[i];", "sum = as_float(as_uint(sum + from[i] * from[i]) & 0xffffe000u);"),
        ),
    ),
    "short_outputs": Cheat(
        "accuracy",
        "writes sixteen bits of each result",
        at="short",
        edits=((WRITES, "to[i] = as_float(as_uint(from[i] * scale * weight[i]) & 0xffff0000u);"),),
    ),
    "few_terms": Cheat(
        "accuracy",
        "computes an exponential by ten squarings",
        base="silu",
        at="short",
        edits=(("exp(-x)", "pown(1.0f - x / 1024.0f, 1024)"),),
    ),
    "samples": Cheat(
        "accuracy",
        "adds every second square, twice",
        at="short",
        edits=(
            (
                SUMS,
                SUMS.replace("i = 0; i < d; i++", "i = 0; i < d; i += 2").replace("sum += ", "sum += 2 * "),
            ),
        ),
    ),
    "truncated": Cheat(
        "accuracy",
        "adds the first 400 of a long row",
        at="verify",
        edits=(
            (SUMS, SUMS.replace("i < d", "i < min(d, 400)")),
            (SCALE, SCALE.replace("sum / d", "sum / min(d, 400)")),
        ),
    ),
    "estimate": Cheat(
        "accuracy",
        "takes a root by two steps from a guess",
        edits=(
            (
                SCALE,
                "float mean = sum / d + eps; float scale = as_float(0x5f3759dfu - (as_uint(mean) >> 1));"
                " scale *= 1.5f - 0.5f * mean * scale * scale; scale *= 1.5f - 0.5f * mean * scale * scale;",
            ),
        ),
    ),
    "codes_cut": Cheat(
        "accuracy",
        "cuts codes off instead of rounding them",
        base="quant",
        edits=(("convert_char_sat_rte", "convert_char_sat_rtz"),),
    ),
    "scales_rounded": Cheat(
        "accuracy",
        "rounds scales to sixteen bits",
        base="quant",
        at="short",
        edits=(
            ("scale[row] = most / 127.0f", "scale[row] = as_float(as_uint(most / 127.0f) & 0xffff0000u)"),
        ),
    ),
}
