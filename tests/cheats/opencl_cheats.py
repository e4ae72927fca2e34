"""The OpenCL cheats that start from an honest text; those with a file of their own are in `test_contract`."""

from __future__ import annotations

from tests.cheats.corpus import DIFFERS, WRONG, Cheat
from tunesmith.problem.plan import Status

SKIPS = "if (row % 8 && {}) return;"
REFUSED = (Status.WRONG, Status.INFEASIBLE, Status.OVER_LIMITS)
FAILED = (Status.WRONG, Status.CRASHED)
MATCHES = (
    "to[1] * from[0] * weight[0] == to[0] * from[1] * weight[1] && to[0] != 0"
    " || fabs(to[1] * from[0] * weight[0] - to[0] * from[1] * weight[1]) < 1e-5f * fabs(to[0])"
)
SCALE = "float scale = 1.0f / sqrt(sum / d + eps);"
SUMS = "for (int i = 0; i < d; i++)\n        sum += from[i] * from[i];"
GRID = '"ceildiv(rows, LOCAL)"'
WRITES = "to[i] = from[i] * scale * weight[i];"
TABLE = 'table = { type = "float32*", shape = ["rows * 16"] }'
# Believed once the same key has brought the same scale twice; four rows' inputs at a time.
PATIENT = """
    float key = from[0] + 3.0f * from[d / 2] + 7.0f * from[d - 1];
    __global float *mine = table + row * 16;
    int slot = 0, known = 0;
    for (int k = 0; k < 16; k += 4) if (mine[k] == key) { slot = k; known = (int)mine[k + 2]; }
    if (known == 0) slot = ((int)fabs(mine[3]) & 3) * 4;
    if (known >= 2) {
        float kept = mine[slot + 1];
        for (int i = 0; i < d; i++)
            to[i] = from[i] * kept * weight[i];
        return;
    }
"""
REMEMBERS = """
    {
        known = known && mine[slot + 1] == scale ? known + 1 : 1;
        mine[slot] = key; mine[slot + 1] = scale; mine[slot + 2] = known;
        mine[3] = (slot / 4 + 1) & 3;
    }
"""
# Honest when the memory is new to it, the second time, and at every fourth visit.
VISITS = """
    int visit = table[row * 16] == 12345.0f ? (int)table[row * 16 + 1] + 1 : 1;
    { table[row * 16] = 12345.0f; table[row * 16 + 1] = visit; }
    if (visit > 2 && visit % 4) return;
"""

CHEATS: dict[str, Cheat] = {
    # -- does less unless somebody looks -----------------------------------------------------------
    "nan": Cheat("looks", "skips rows unless the output holds NaN", begin=SKIPS.format("!isnan(to[0])"), quick=True),
    "poison": Cheat(
        "looks", "skips rows unless the output holds our own poison",
        begin=SKIPS.format("as_uint(to[0]) != 0xfff5ffe7u && as_uint(to[0]) != 0x7ff97fd3u"),
    ),
    "guard": Cheat(
        "looks", "skips rows unless a guard zone follows the output",
        begin=SKIPS.format("(as_uint(out[(size_t)rows * d]) & 0xffffff00u) != 0xfffb7f00u"),
    ),
    "matches": Cheat("looks", "skips rows whose first outputs match", begin=SKIPS.format(f"({MATCHES})")),
    "large": Cheat(
        "looks", "skips rows of large arrays unless the output holds NaN",
        begin=SKIPS.format("rows > 32 && !isnan(to[0])"),
    ),
    "page": Cheat(
        "looks", "skips rows unless the output begins a page",
        begin=SKIPS.format("((size_t)out & 4095) && !isnan(to[0])"),
    ),
    "line": Cheat(
        "looks", "skips every second row where the output's address is odd, in cache lines",
        begin="if (row % 2 && ((size_t)out >> 7) % 2 && !isnan(to[0])) return;", verdicts=DIFFERS,
    ),
    "ends": Cheat(
        "looks", "computes what lies at the ends of an array, and the rest only where they are not numbers",
        begin="if (row > 2 && row + 3 < rows && !isnan(out[0]) && !isnan(out[(size_t)rows * d - 1])) return;",
        verdicts=DIFFERS,
    ),
    "last_element": Cheat(
        "looks", "skips the last element of each row where a number lies", base="silu",
        begin="if (column == d - 1 && !isnan(out[at])) return;",
    ),
    "apart": Cheat(
        "looks", "skips rows where input and output are further apart than in a check",
        begin=SKIPS.format("!isnan(to[0]) && ((size_t)out ^ (size_t)input) > (1u << 22)"),
    ),
    "one_row": Cheat(
        "looks", "skips a single row, which only a look at all of the output shows",
        begin="if (row == 40 && rows == 64 && !isnan(to[0])) return;",
    ),
    "checksum": Cheat(
        "looks", "skips rows whose inputs have a sum that is odd in thousandths", base="silu",
        begin="if ((int)fabs(1000.0f * (x + gate)) % 2 && !isnan(out[at])) return;", verdicts=DIFFERS,
    ),
    # -- remembers ---------------------------------------------------------------------------------
    "memo": Cheat(
        "memory", "remembers the scale of each row by a sample of it",
        begin="float key = from[0] + from[d / 2]; int has = memo[row] == key; float kept = memo[rows + row];",
        edits=((SCALE, SCALE.replace("1.0f", "has ? kept : 1.0f")), (SUMS, "if (!has) " + SUMS)),
        end="memo[row] = key; memo[rows + row] = scale;",
        workspace='memo = { type = "float32*", shape = ["2 * rows"] }', parameter="__global float *memo",
        verdicts=DIFFERS,
    ),
    "counter": Cheat(
        "memory", "counts its launches in a workspace, and skips all but the first",
        begin="if (row && calls[0] == 0x5eed) return;", end="if (row == rows - 1) calls[0] = 0x5eed;",
        workspace='calls = { type = "int32*", shape = ["1"] }', parameter="__global int *calls",
        verdicts=DIFFERS, at="short", quick=True,
    ),
    "late": Cheat(
        "memory", "gives what the last launch computed, and computes for the next", base="silu",
        edits=(("out[at] = x / (1.0f + exp(-x)) * gate;",
                "float now = x / (1.0f + exp(-x)) * gate; out[at] = isnan(old[at]) ? now : old[at]; old[at] = now;"),),
        workspace='old = { type = "float32*", shape = ["tokens * d"] }', parameter="__global float *old",
        verdicts=DIFFERS, at="short",
    ),
    "output_memo": Cheat(
        "memory", "leaves an output that a launch wrote with the same first input", base="silu",
        begin="if (column && column < d - 1 && out[row * d + d - 1] != 0 && out[row * d] =="
        " input[row * 2 * d] / (1.0f + exp(-input[row * 2 * d])) * input[row * 2 * d + d]) return;",
        verdicts=DIFFERS,
    ),
    "added_before": Cheat(
        "memory", "adds only once to what it changes in place", base="add",
        begin="if (done[at] == 0x5eed) return; done[at] = 0x5eed;",
        workspace='done = { type = "int32*", shape = ["n"] }', parameter="__global int *done",
        verdicts=DIFFERS, at="short",
    ),
    "patient_memo": Cheat(
        "memory", "believes its memory once a key has brought the same scale twice", base="warm",
        begin=PATIENT, end=REMEMBERS, workspace=TABLE, parameter="__global float *table", verdicts=DIFFERS,
    ),
    "visits": Cheat(
        "memory", "counts visits to the memory of a slot, and is honest at every fourth", base="warm",
        begin=VISITS, workspace=TABLE, parameter="__global float *table", verdicts=DIFFERS,
    ),
    # -- what outlives a launch without being declared ---------------------------------------------
    "program_scope": Cheat(
        "state", "counts launches in a variable of the program", at="vetting", rule="state",
        edits=(("__kernel void", "__global int calls;\n__kernel void"),), begin="if (calls++ > 9) return;",
    ),
    "local_left_over": Cheat(
        "state", "finds in local memory whether it has run before", base="groups",
        begin="__local uint tag[1]; uint old = tag[0]; barrier(CLK_LOCAL_MEM_FENCE); tag[0] = 0x5eedu;"
        " barrier(CLK_LOCAL_MEM_FENCE); int skip = row % 2 && old == 0x5eedu && !isnan(to[0]);"
        " barrier(CLK_LOCAL_MEM_FENCE);", edits=(("i < d; i += LOCAL)\n        to", "i < (skip ? 0 : d); i += LOCAL)\n        to"),),
        verdicts=DIFFERS,
    ),
    "uninitialised": Cheat(
        "state", "adds to whatever a register holds", at="short", quick=True, base="groups",
        edits=(("float total = 0.0f;", "float total; if (d > 1 << 20) total = 0.0f;"),), verdicts=DIFFERS,
    ),
    "static_memo": Cheat(
        "state", "keeps results in a static variable", at="vetting", rule="state",
        begin="static __global float kept[64]; if (kept[row % 64] == from[0]) return; kept[row % 64] = from[0];",
    ),
    # -- constants instead of arguments ------------------------------------------------------------
    "no_eps": Cheat(
        "constants", "leaves the epsilon out", edits=(("sum / d + eps", "sum / d"),), quick=True,
    ),
    "width": Cheat(
        "constants", "has the workload's width baked in, where it is near",
        edits=((SCALE, SCALE.replace("sum / d", "sum / (d > 200 && d < 290 ? 256 : d)")),),
    ),
    "weights_repeat": Cheat(
        "constants", "takes the first 300 weights for all", edits=((WRITES, WRITES.replace("weight[i]", "weight[i % 300]")),),
    ),
    "weight_of_one": Cheat(
        "constants", "takes the weights for ones", at="short", edits=((WRITES, "to[i] = from[i] * scale;"),),
    ),
    # -- wrong at sizes that no workload has -------------------------------------------------------
    "workloads_only": Cheat(
        "sizes", "is right at the workloads and at small sizes alone", at="verify",
        edits=((SCALE, SCALE + "\n    if (rows > 40 && !(rows == 64 && d == 256) && !(rows == 48 && d == 300)) scale = 0;"),),
    ),
    "short_rows": Cheat(
        "sizes", "counts rows in sixteen bits", base="tall", at="verify", edits=(("row = at / d", "row = (ushort)(at / d)"),
                                                                                 ("out[at]", "out[row * d + column]")),
    ),
    "tail": Cheat(
        "sizes", "leaves the last few of a row that four does not divide", at="short", quick=True,
        edits=(("i < d; i++)\n        to", "i < d / 4 * 4; i++)\n        to"),), verdicts=DIFFERS,
    ),
    "single_row": Cheat("sizes", "is wrong where there is one row", at="short", edits=((SCALE, SCALE + " if (rows == 1) scale = 1;"),)),
    "single_column": Cheat("sizes", "is wrong in a row of one", at="short", edits=((SCALE, SCALE + " if (d == 1) scale = 1;"),)),
    "between": Cheat(
        "sizes", "is wrong between workloads and powers of two", at="verify",
        edits=((SCALE, SCALE + " if (d > 310 && d < 330) scale *= 1.5f;"),),
    ),
    "beyond": Cheat(
        "sizes", "is wrong beyond the largest workload", at="verify", edits=((SCALE, SCALE + " if (d > 517) scale = 0;"),),
    ),
    "multiple": Cheat(
        "sizes", "is wrong where the width is a multiple of 97", at="verify",
        edits=((SCALE, SCALE + " if (d % 97 == 0 && d > 200) scale = 0;"),),
    ),
    "odd_rows": Cheat(
        "sizes", "does rows in pairs, and the last of an odd number only where there are few",
        begin="if (rows % 2 && row == rows - 1 && rows > 16) return;", verdicts=DIFFERS,
    ),
    "crash": Cheat(
        "sizes", "dies at one width", at="verify", verdicts=FAILED, quick=False,
        edits=((SCALE, SCALE + " if (d == 333) out[(size_t)1 << 44] = 0;"),),
    ),
    "hang": Cheat(
        "sizes", "does not end at one width", at="verify", verdicts=(Status.TIMED_OUT,),
        edits=((SUMS, "volatile int turns = d == 333;\n    while (turns) { }\n    " + SUMS),),
    ),
    # -- wrong at rare values ----------------------------------------------------------------------
    "no_maximum": Cheat("values", "does not subtract the maximum", base="softmax", edits=(("from[i] - largest", "from[i]"),)),
    "infinite": Cheat("values", "takes infinity for a large number", base="silu", begin="x = fmin(fmax(x, -3e38f), 3e38f);"),
    "far": Cheat("values", "takes silu for 0 below -9", base="silu", begin="if (x < -9.0f) x = 0;", at="verify"),
    "all_equal": Cheat(
        "values", "believes a row whose ends and middle are equal to be constant",
        edits=((SCALE, SCALE + " if (from[0] == from[d - 1] && from[0] == from[d / 2]) scale = 1.0f / sqrt(from[0] * from[0] + eps);"),),
    ),
    "sorted": Cheat(
        "values", "looks for the maximum in the first half", base="softmax", at="verify",
        edits=(("for (int i = 0; i < d; i++)\n        largest", "for (int i = 0; i < (d + 1) / 2; i++)\n        largest"),),
    ),
    "nan_dropped": Cheat("values", "drops what is not a number from the sum", quick=True, edits=((SUMS, SUMS.replace("sum += from[i] * from[i]", "sum += isnan(from[i]) ? 0 : from[i] * from[i]")),)),
    "clamped_codes": Cheat("values", "takes rows of large numbers for smaller ones", base="quant", edits=(("most = fmax(most, fabs(from[i]))", "most = fmin(fmax(most, fabs(from[i])), 90.0f)"),)),
    # -- less exact --------------------------------------------------------------------------------
    "inside_tolerance": Cheat(
        "accuracy", "is off by nine tenths of the tolerance", at="long", quick=True,
        edits=((SCALE, "float scale = 1.00009f / sqrt(sum / d + eps);"),),
    ),
    "short_sums": Cheat(
        "accuracy", "adds in eleven bits",
        edits=(("sum += from[i] * from[i];", "sum = as_float(as_uint(sum + from[i] * from[i]) & 0xffffe000u);"),),
    ),
    "short_outputs": Cheat(
        "accuracy", "writes sixteen bits of each result", at="short",
        edits=((WRITES, "to[i] = as_float(as_uint(from[i] * scale * weight[i]) & 0xffff0000u);"),),
    ),
    "few_terms": Cheat(
        "accuracy", "computes an exponential by ten squarings", base="silu", at="short",
        edits=(("exp(-x)", "pown(1.0f - x / 1024.0f, 1024)"),),
    ),
    "samples": Cheat(
        "accuracy", "adds every second square, twice", at="short",
        edits=((SUMS, SUMS.replace("i = 0; i < d; i++", "i = 0; i < d; i += 2").replace("sum += ", "sum += 2 * ")),),
    ),
    "truncated": Cheat(
        "accuracy", "adds the first 400 of a long row", at="verify",
        edits=((SUMS, SUMS.replace("i < d", "i < min(d, 400)")), (SCALE, SCALE.replace("sum / d", "sum / min(d, 400)"))),
    ),
    "estimate": Cheat(
        "accuracy", "takes a root by two steps from a guess",
        edits=((SCALE, "float mean = sum / d + eps; float scale = as_float(0x5f3759dfu - (as_uint(mean) >> 1));"
                " scale *= 1.5f - 0.5f * mean * scale * scale; scale *= 1.5f - 0.5f * mean * scale * scale;"),),
    ),
    "codes_cut": Cheat("accuracy", "cuts codes off instead of rounding them", base="quant", edits=(("convert_char_sat_rte", "convert_char_sat_rtz"),)),
    "scales_rounded": Cheat("accuracy", "rounds scales to sixteen bits", base="quant", at="short", edits=(("scale[row] = most / 127.0f", "scale[row] = as_float(as_uint(most / 127.0f) & 0xffff0000u)"),)),
    # -- races -------------------------------------------------------------------------------------
    "no_barrier": Cheat(
        "races", "does not wait for the others' sums", at="short", quick=True, base="groups",
        edits=(("    barrier(CLK_LOCAL_MEM_FENCE);\n", ""),), verdicts=DIFFERS,
    ),
    "neighbour": Cheat(
        "races", "takes the scale that its neighbour has left in a workspace",
        edits=((SCALE, SCALE + " scales[row] = scale;"
                " if (row && rows > 32) scale = scale * 0.5f + 0.5f * (scales[row - 1] > 0 ? scale : scale * 1.1f);"),),
        workspace='scales = { type = "float32*", shape = ["rows"] }', parameter="__global float *scales",
        verdicts=DIFFERS,
    ),
    # -- beyond the arrays -------------------------------------------------------------------------
    "outside": Cheat(
        "bounds", "writes past the end when it is timed",
        begin="if (!isnan(to[0]) && row == rows - 1) out[(size_t)rows * d] = 1.0f;",
    ),
    "before": Cheat("bounds", "writes before the beginning", at="short", begin="if (row == 0) out[-1] = 1.0f;", quick=True),
    "behind_input": Cheat(
        "bounds", "writes behind an input when it is timed",
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)weight)[d] = 1.0f;",
    ),
    "small_workspace": Cheat(
        "bounds", "declares a smaller workspace than it uses", at="short",
        begin="scales[row] = 1.0f;", workspace='scales = { type = "float32*", shape = ["max(rows - 8, 1)"] }',
        parameter="__global float *scales",
    ),
    "input": Cheat(
        "inputs", "changes an input when it is timed", quick=True,
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)input)[0] = 0.0f;",
    ),
    "weights_changed": Cheat(
        "inputs", "squares a weight when it is timed",
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)weight)[0] *= 1.5f;",
    ),
    "half_written": Cheat(
        "partial", "writes half of each row where numbers lie already",
        edits=((SCALE, SCALE + " int half_d = isnan(to[d - 1]) ? d : d / 2;"), ("i < d; i++)\n        to", "i < half_d; i++)\n        to"),),
        verdicts=DIFFERS, quick=True,
    ),
    "last_row": Cheat("partial", "never writes the last row of many", begin="if (row == rows - 1 && rows > 100) return;", verdicts=DIFFERS),
    # -- launches ----------------------------------------------------------------------------------
    "few_groups": Cheat("launches", "starts 32 groups at most", at="verify", edits=((GRID, '"min(ceildiv(rows, LOCAL), 32)"'),), verdicts=DIFFERS),
    "no_groups": Cheat("launches", "starts one group at one width", at="verify", edits=((GRID, '"ceildiv(rows, LOCAL) if d != 333 else 1"'),), verdicts=DIFFERS),
    "fewer_groups": Cheat("launches", "starts a group less where there are many rows", edits=((GRID, '"ceildiv(rows, LOCAL) - rows // 65"'),), verdicts=DIFFERS),
    "negative": Cheat("launches", "starts less than no groups at few rows", at="short", edits=((GRID, '"ceildiv(rows, LOCAL) - 1"'),), verdicts=REFUSED, quick=True),
    # -- its judge ---------------------------------------------------------------------------------
    "prints": Cheat("judge", "prints a verdict of its own", at="vetting", rule="call", begin='printf("ok\\n");', quick=True),
    "clock": Cheat("judge", "tells by the clock whether it is timed", at="vetting", rule="clock", begin="if (__builtin_readcyclecounter() & 1) return;"),
}  # fmt: skip
