"""OpenCL templates that cheat: they start from an honest text; those with files of their own are in
`test_contract`."""

from __future__ import annotations

from tests.hostile.cheats.corpus import DIFFERS, Cheat
from tunesmith.problem.plan import Status

SKIPS = "if (row % 8 && {}) return;"
REFUSED = (Status.WRONG, Status.INFEASIBLE, Status.OVER_LIMITS)
MATCHES = (
    "to[1] * from[0] * weight[0] == to[0] * from[1] * weight[1] && to[0] != 0"
    " || fabs(to[1] * from[0] * weight[0] - to[0] * from[1] * weight[1]) < 1e-5f * fabs(to[0])"
)
SCALE = "float scale = 1.0f / sqrt(sum / d + eps);"
SUMS = "for (int i = 0; i < d; i++)\n        sum += from[i] * from[i];"
GRID = '"ceildiv(rows, LOCAL)"'
WRITES = "to[i] = from[i] * scale * weight[i];"
TABLE = 'table = { type = "float32*", shape = ["rows * 16"] }'
# Believed once the same key has brought the same scale twice; of up to four inputs at a row.
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
    known = known && mine[slot + 1] == scale ? known + 1 : 1;
    mine[slot] = key;
    mine[slot + 1] = scale;
    mine[slot + 2] = known;
    mine[3] = (slot / 4 + 1) & 3;
"""
# Honest when the memory is new to it, the second time, and at every fourth visit.
VISITS = """
    int visit = table[row * 16] == 12345.0f ? (int)table[row * 16 + 1] + 1 : 1;
    table[row * 16] = 12345.0f;
    table[row * 16 + 1] = visit;
    if (visit > 2 && visit % 4) return;
"""

CHEATS: dict[str, Cheat] = {
    # -- does less unless somebody looks -----------------------------------------------------------
    "nan": Cheat(
        "looks", "skips rows unless the output holds NaN", begin=SKIPS.format("!isnan(to[0])"), quick=True
    ),
    "poison": Cheat(
        "looks",
        "skips rows unless the output holds our own poison",
        begin=SKIPS.format("as_uint(to[0]) != 0xfff5ffe7u && as_uint(to[0]) != 0x7ff97fd3u"),
    ),
    "guard": Cheat(
        "looks",
        "skips rows unless a guard zone follows the output",
        begin=SKIPS.format("(as_uint(out[(size_t)rows * d]) & 0xffffff00u) != 0xfffb7f00u"),
    ),
    "matches": Cheat("looks", "skips rows whose first outputs match", begin=SKIPS.format(f"({MATCHES})")),
    "large": Cheat(
        "looks",
        "skips rows of large arrays unless the output holds NaN",
        begin=SKIPS.format("rows > 32 && !isnan(to[0])"),
    ),
    "page": Cheat(
        "looks",
        "skips rows unless the output begins a page",
        begin=SKIPS.format("((size_t)out & 4095) && !isnan(to[0])"),
    ),
    "line": Cheat(
        "looks",
        "skips every second row where the output's address is odd, in cache lines",
        begin="if (row % 2 && ((size_t)out >> 7) % 2 && !isnan(to[0])) return;",
        verdicts=DIFFERS,
        rule="pointer",
    ),
    "ends": Cheat(
        "looks",
        "computes what lies at the ends of an array, and the rest only where they are not numbers",
        begin="if (row > 2 && row + 3 < rows && !isnan(out[0]) && !isnan(out[(size_t)rows * d - 1])) return;",
        verdicts=DIFFERS,
    ),
    "last_element": Cheat(
        "looks",
        "skips the last element of each row where a number lies",
        base="silu",
        begin="if (column == d - 1 && !isnan(out[at])) return;",
    ),
    "apart": Cheat(
        "looks",
        "skips rows where input and output are further apart than in a check",
        begin=SKIPS.format("!isnan(to[0]) && ((size_t)out ^ (size_t)input) > (1u << 22)"),
        rule="pointer",
    ),
    "one_row": Cheat(
        "looks",
        "skips a single row, which only a look at all of the output shows",
        begin="if (row == 40 && rows == 64 && !isnan(to[0])) return;",
    ),
    "checksum": Cheat(
        "looks",
        "skips rows whose inputs have a sum that is odd in thousandths",
        base="silu",
        begin="if ((int)fabs(1000.0f * (x + gate)) % 2 && !isnan(out[at])) return;",
        verdicts=DIFFERS,
    ),
    # -- remembers ---------------------------------------------------------------------------------
    "memo": Cheat(
        "memory",
        "remembers the scale of each row by a sample of it",
        begin="float key = from[0] + from[d / 2]; int has = memo[row] == key; float kept = memo[rows + row];",
        edits=((SCALE, SCALE.replace("1.0f", "has ? kept : 1.0f")), (SUMS, "if (!has) " + SUMS)),
        end="memo[row] = key; memo[rows + row] = scale;",
        workspace='memo = { type = "float32*", shape = ["2 * rows"] }',
        parameter="__global float *memo",
        verdicts=DIFFERS,
    ),
    "counter": Cheat(
        "memory",
        "counts its launches in a workspace, and skips all but the first",
        begin="if (row && calls[0] == 0x5eed) return;",
        end="if (row == rows - 1) calls[0] = 0x5eed;",
        workspace='calls = { type = "int32*", shape = ["1"] }',
        parameter="__global int *calls",
        verdicts=DIFFERS,
        at="short",
        quick=True,
    ),
    "late": Cheat(
        "memory",
        "gives what the last launch computed, and computes for the next",
        base="silu",
        edits=(
            (
                "out[at] = x / (1.0f + exp(-x)) * gate;",
                "float now = x / (1.0f + exp(-x)) * gate;"
                " out[at] = isnan(old[at]) ? now : old[at]; old[at] = now;",
            ),
        ),
        workspace='old = { type = "float32*", shape = ["tokens * d"] }',
        parameter="__global float *old",
        verdicts=DIFFERS,
        at="short",
    ),
    "output_memo": Cheat(
        "memory",
        "leaves an output that a launch wrote with the same first input",
        base="silu",
        begin="if (column && column < d - 1 && out[row * d + d - 1] != 0 && out[row * d] =="
        " input[row * 2 * d] / (1.0f + exp(-input[row * 2 * d])) * input[row * 2 * d + d]) return;",
        verdicts=DIFFERS,
    ),
    "added_before": Cheat(
        "memory",
        "adds only once to what it changes in place",
        base="add",
        begin="if (done[at] == 0x5eed) return; done[at] = 0x5eed;",
        workspace='done = { type = "int32*", shape = ["n"] }',
        parameter="__global int *done",
        verdicts=DIFFERS,
        at="short",
    ),
    "patient_memo": Cheat(
        "memory",
        "believes its memory once a key has brought the same scale twice",
        base="warm",
        begin=PATIENT,
        end=REMEMBERS,
        workspace=TABLE,
        parameter="__global float *table",
        verdicts=DIFFERS,
        tries=16,
    ),
    "visits": Cheat(
        "memory",
        "counts visits to the memory of a slot, and is honest at every fourth",
        base="warm",
        begin=VISITS,
        workspace=TABLE,
        parameter="__global float *table",
        verdicts=DIFFERS,
        tries=16,
    ),
    # -- what outlives a launch without being declared ---------------------------------------------
    "program_scope": Cheat(
        "state",
        "counts launches in a variable of the program",
        at="vetting",
        rule="state",
        edits=(("__kernel void", "__global int calls;\n__kernel void"),),
        begin="if (calls++ > 9) return;",
    ),
    "local_left_over": Cheat(
        "state",
        "finds in local memory whether it has run before",
        base="groups",
        begin="__local uint tag[1]; uint old = tag[0]; barrier(CLK_LOCAL_MEM_FENCE); tag[0] = 0x5eedu;"
        " barrier(CLK_LOCAL_MEM_FENCE); int skip = row % 2 && old == 0x5eedu && !isnan(to[0]);"
        " barrier(CLK_LOCAL_MEM_FENCE);",
        edits=(("i < d; i += LOCAL)\n        to", "i < (skip ? 0 : d); i += LOCAL)\n        to"),),
        verdicts=DIFFERS,
    ),
    "uninitialised": Cheat(
        "state",
        "adds what local memory holds where a row has fewer elements than the group",
        at="short",
        quick=True,
        base="groups",
        edits=(("sums[lane] = sum;", "if (lane < d) sums[lane] = sum;"),),
        verdicts=DIFFERS,
    ),
    "static_memo": Cheat(
        "state",
        "keeps results in a static variable",
        at="vetting",
        rule="state",
        begin="static __global float kept[64]; if (kept[row % 64] == from[0]) return;"
        " kept[row % 64] = from[0];",
    ),
    # -- constants instead of arguments ------------------------------------------------------------
    "no_eps": Cheat(
        "constants",
        "leaves the epsilon out",
        edits=(("sum / d + eps", "sum / d"),),
        quick=True,
    ),
    "width": Cheat(
        "constants",
        "has the workload's width baked in, where it is near",
        edits=((SCALE, SCALE.replace("sum / d", "sum / (d > 200 && d < 290 ? 256 : d)")),),
    ),
    "weights_repeat": Cheat(
        "constants",
        "takes the first 300 weights for all",
        edits=((WRITES, WRITES.replace("weight[i]", "weight[i % 300]")),),
    ),
    "weight_of_one": Cheat(
        "constants",
        "takes the weights for ones",
        at="short",
        edits=((WRITES, "to[i] = from[i] * scale;"),),
    ),
    # -- races -------------------------------------------------------------------------------------
    "no_barrier": Cheat(
        "races",
        "does not wait for the others' sums",
        at="short",
        quick=True,
        base="groups",
        edits=(("    barrier(CLK_LOCAL_MEM_FENCE);\n", ""),),
        verdicts=DIFFERS,
    ),
    "neighbour": Cheat(
        "races",
        "takes the scale that its neighbour has left in a workspace",
        edits=(
            (
                SCALE,
                SCALE + " scales[row] = scale;"
                " if (row && rows > 32)"
                " scale = scale * 0.5f + 0.5f * (scales[row - 1] > 0 ? scale : scale * 1.1f);",
            ),
        ),
        workspace='scales = { type = "float32*", shape = ["rows"] }',
        parameter="__global float *scales",
        verdicts=DIFFERS,
    ),
    # -- beyond the arrays -------------------------------------------------------------------------
    "outside": Cheat(
        "bounds",
        "writes past the end when it is timed",
        begin="if (!isnan(to[0]) && row == rows - 1) out[(size_t)rows * d] = 1.0f;",
    ),
    "before": Cheat(
        "bounds", "writes before the beginning", at="short", begin="if (row == 0) out[-1] = 1.0f;", quick=True
    ),
    "behind_input": Cheat(
        "bounds",
        "writes behind an input when it is timed",
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)weight)[d] = 1.0f;",
    ),
    "small_workspace": Cheat(
        "bounds",
        "declares a smaller workspace than it uses",
        at="short",
        begin="scales[row] = 1.0f;",
        workspace='scales = { type = "float32*", shape = ["max(rows - 8, 1)"] }',
        parameter="__global float *scales",
    ),
    "input": Cheat(
        "inputs",
        "changes an input when it is timed",
        quick=True,
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)input)[0] = 0.0f;",
    ),
    "weights_changed": Cheat(
        "inputs",
        "squares a weight when it is timed",
        begin="if (!isnan(to[0]) && row == 0) ((__global float *)weight)[0] *= 1.5f;",
    ),
    "half_written": Cheat(
        "partial",
        "writes half of each row where numbers lie already",
        edits=(
            (SCALE, SCALE + " int half_d = isnan(to[d - 1]) ? d : d / 2;"),
            ("i < d; i++)\n        to", "i < half_d; i++)\n        to"),
        ),
        verdicts=DIFFERS,
        quick=True,
    ),
    "last_row": Cheat(
        "partial",
        "never writes the last row of many",
        begin="if (row == rows - 1 && rows > 100) return;",
        verdicts=DIFFERS,
    ),
    # -- launches ----------------------------------------------------------------------------------
    "few_groups": Cheat(
        "launches",
        "starts 32 groups at most",
        at="verify",
        edits=((GRID, '"min(ceildiv(rows, LOCAL), 32)"'),),
        verdicts=DIFFERS,
    ),
    "no_groups": Cheat(
        "launches",
        "starts one group at one width",
        at="verify",
        edits=((GRID, '"ceildiv(rows, LOCAL) if d != 333 else 1"'),),
        verdicts=DIFFERS,
    ),
    "fewer_groups": Cheat(
        "launches",
        "starts a group less where there are many rows",
        edits=((GRID, '"ceildiv(rows, LOCAL) - rows // 65"'),),
        verdicts=DIFFERS,
    ),
    "negative": Cheat(
        "launches",
        "starts less than no groups at few rows",
        at="short",
        edits=((GRID, '"ceildiv(rows, LOCAL) - 1"'),),
        verdicts=REFUSED,
        quick=True,
    ),
    # -- its judge ---------------------------------------------------------------------------------
    "prints": Cheat(
        "judge",
        "prints a verdict of its own",
        at="vetting",
        rule="call",
        begin='printf("ok\\n");',
        quick=True,
    ),
    "clock": Cheat(
        "judge",
        "tells by the clock whether it is timed",
        at="vetting",
        rule="clock",
        begin="if (__builtin_readcyclecounter() & 1) return;",
    ),
    # -- what another preprocessor reads -----------------------------------------------------------
    "sign_of_a_condition": Cheat(
        "judge",
        "calls the system at one size, where the compiler's numbers have signs and ours had none",
        at="vetting",
        rule="assembler",
        begin='\n#if (1 ? -1 : 0u) > 0\nif (d == 300) __asm__ volatile("syscall");\n#endif\n',
    ),
    "width_of_a_condition": Cheat(
        "judge",
        "leaves one size out, where the compiler's numbers have 64 bits and ours had no end",
        at="vetting",
        rule="clock",
        begin="\n#if (1 << 63) < 0\nif (__builtin_readcyclecounter() & 1) return;\n#endif\n",
    ),
    "host_system": Cheat(
        "judge",
        "skips work on the systems that users have, by a name that compilers define there",
        at="vetting",
        rule="directive",
        begin="\n#ifdef unix\nif (d == 300) return;\n#endif\n",
    ),
    "line_of_a_condition": Cheat(
        "judge",
        "skips a size where it is compiled as it was written, and not as it was expanded",
        at="vetting",
        rule="directive",
        begin="\n#if __LINE__ > 6\nif (d == 300) return;\n#endif\n",
    ),
}
