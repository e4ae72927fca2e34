"""The CUDA cheats. They compile without a GPU, are caught on one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.hostile.cheats.corpus import DIFFERS, ROOT, WRONG, Cheat
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.session import problems

HEADER = """// /// tunesmith
// [params]
// BLOCK = [128, 256]
// [default]
// BLOCK = 128
// [launch]
// grid  = ["{grid}"]
// block = ["BLOCK"]
// args = [{args}]  // args
// ///
"""
SILU = (
    HEADER.format(grid="min(tokens, 256)", args='"out", "input", "tokens", "d", "out_stride", "input_stride"')
    + """#include <cuda_fp16.h>
/*head*/
template <typename T>
__device__ float silu(T value)
{
    float x = (float)value;
    return x / (1.0f + expf(-x));
}

template <typename T>
__global__ void silu_and_mul(T *out, const T *input, int tokens, int d,
                             long long out_stride, long long input_stride/*more*/)
{
    const int block = BLOCK;
    for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
        const T *x = input + token * input_stride;
        T *to = out + token * out_stride;
        /*begin*/
        for (long long i = threadIdx.x; i < d; i += block)
            to[i] = (T)(silu(x[i]) * (float)x[d + i]);
    }
    /*end*/
}
"""
)
RMSNORM = (
    HEADER.format(grid="tokens", args='"out", "input", "weight", "eps", "tokens", "d"')
    + """#include <cuda_bf16.h>
/*head*/
extern "C" __global__ void rmsnorm(__nv_bfloat16 *out, const __nv_bfloat16 *input,
                                   const __nv_bfloat16 *weight, float eps, int tokens, int d/*more*/)
{
    __shared__ float sums[BLOCK];
    const int lane = threadIdx.x;
    const long long token = blockIdx.x;
    const __nv_bfloat16 *row = input + token * d;
    __nv_bfloat16 *to = out + token * d;
    /*begin*/
    float sum = 0.0f;
    for (int i = lane; i < d; i += BLOCK) {
        const float x = __bfloat162float(row[i]);
        sum += x * x;
    }
    sums[lane] = sum;
    __syncthreads();
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        if (lane < step)
            sums[lane] += sums[lane + step];
        __syncthreads();
    }
    float scale = rsqrtf(sums[0] / d + eps);
    for (int i = lane; i < d; i += BLOCK)
        to[i] = __hmul(__float2bfloat16(__bfloat162float(row[i]) * scale), weight[i]);
    /*end*/
}
"""
)
HONEST = {"silu": SILU, "rmsnorm": RMSNORM, "warm": RMSNORM}
FOLDERS = {"silu": "silu_and_mul", "rmsnorm": "rmsnorm", "warm": "rmsnorm"}


@cache
def problem(base: str) -> Problem:
    whole = problems.load_problem(ROOT / "examples" / "cuda" / FOLDERS[base] / "problem.toml")[0]
    if base != "warm":
        return whole
    return replace(whole, workloads=(replace(whole.workloads[0], cache="warm"),))


SKIPS = "if (token % 8 && {}) continue;"
SUM = "sum += x * x;"
SCALE = "float scale = rsqrtf(sums[0] / d + eps);"
SYNC = "    sums[lane] = sum;\n    __syncthreads();"
FIRST = "if (!__hisnan(to[0]) && !token && !threadIdx.x) "
GRID = '"tokens"]\n// block'
PDL = ('// block = ["BLOCK"]', '// block = ["BLOCK"]\n// pdl = true')
WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
STORE = "to[i] = (T)(silu(x[i]) * (float)x[d + i]);"
MEMO = 'memo = { type = "float32*", shape = ["tokens"] }'
TABLE = 'table = { type = "float32*", shape = ["tokens * 16"] }'
FAILED = (Status.WRONG, Status.UNSTABLE, Status.CRASHED)
# Honest when the memory is new to it, the second time, and at every fourth visit.
VISITS = """
    const int visit = table[token * 16] == 12345.0f ? (int)table[token * 16 + 1] + 1 : 1;
    __syncthreads();
    if (lane == 0) { table[token * 16] = 12345.0f; table[token * 16 + 1] = visit; }
    if (visit > 2 && visit % 4) return;
"""
# Believed once the same key has brought the same scale twice.
PATIENT = """
    const float key = __bfloat162float(row[0]) + 3.0f * __bfloat162float(row[d / 2]);
    float *mine = table + token * 16;
    int slot = 0, known = 0;
    for (int k = 0; k < 16; k += 4) if (mine[k] == key) { slot = k; known = (int)mine[k + 2]; }
    if (known == 0) slot = ((int)fabsf(mine[3]) & 3) * 4;
    const float kept = mine[slot + 1];
    __syncthreads();
    if (known >= 2) {
        for (int i = lane; i < d; i += BLOCK)
            to[i] = __hmul(__float2bfloat16(__bfloat162float(row[i]) * kept), weight[i]);
        return;
    }
"""
REMEMBERS = """
    if (lane == 0) {
        mine[slot] = key; mine[slot + 1] = scale; mine[slot + 2] = known && kept == scale ? known + 1 : 1;
        mine[3] = (slot / 4 + 1) & 3;
    }
"""
ASYNC = """
    __shared__ __align__(16) __nv_bfloat16 part[BLOCK * 8];
    if (d >= BLOCK * 8 && d % 8 == 0) {
        const unsigned into = (unsigned)__cvta_generic_to_shared(part + lane * 8);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(into), "l"(row + lane * 8));
    }
    __syncthreads();
"""

CHEATS: dict[str, Cheat] = {
    # -- does less unless somebody looks -----------------------------------------------------------
    "nan": Cheat(
        "looks", "skips rows unless the output holds NaN", base="silu", begin=SKIPS.format("!__hisnan(to[0])")
    ),
    "large": Cheat(
        "looks",
        "skips rows of large arrays unless the output holds NaN",
        base="silu",
        begin=SKIPS.format("tokens > 1000 && !__hisnan(to[0])"),
    ),
    "poison": Cheat(
        "looks",
        "skips rows unless the output holds our poison",
        base="silu",
        begin=SKIPS.format("__half_as_ushort(to[0]) != 0xffe7 && __half_as_ushort(to[0]) != 0x7fd3"),
    ),
    "matches": Cheat(
        "looks",
        "skips rows whose first output matches",
        base="silu",
        begin=SKIPS.format("__heq(to[0], (__half)(silu(x[0]) * (float)x[d]))"),
    ),
    "blocks": Cheat(
        "looks",
        "does nothing in every second block where numbers lie",
        begin="if (blockIdx.x % 2 && !__hisnan(to[0])) return;",
        verdicts=DIFFERS,
    ),
    "apart": Cheat(
        "looks",
        "skips rows where arrays are further apart than in a check",
        base="silu",
        begin=SKIPS.format("!__hisnan(to[0]) && ((size_t)out ^ (size_t)input) > (1u << 24)"),
    ),
    "one_row": Cheat(
        "looks",
        "skips a single row, which only a look at all of the output shows",
        base="silu",
        begin="if (token == 13 && !__hisnan(to[0])) continue;",
    ),
    # -- remembers ---------------------------------------------------------------------------------
    "counter": Cheat(
        "state",
        "counts launches in a variable of the program",
        base="silu",
        rule="state",
        edits=(("/*head*/", "__device__ int calls;"),),
        begin=SKIPS.format("calls > 4"),
        end="if (!blockIdx.x && !threadIdx.x) calls++;",
        verdicts=DIFFERS,
    ),
    "memo": Cheat(
        "memory",
        "remembers rows by a sample",
        base="silu",
        begin="if (memo[token] == __half2float(x[0]) + __half2float(x[d / 2])) continue;",
        end="for (long long t = blockIdx.x; t < tokens; t += gridDim.x) if (!threadIdx.x) memo[t] ="
        " __half2float(input[t * input_stride]) + __half2float(input[t * input_stride + d / 2]);",
        workspace=MEMO,
        parameter="float *memo",
        verdicts=DIFFERS,
    ),
    "visits": Cheat(
        "memory",
        "counts visits to the memory of a slot, and is honest at every fourth",
        at="verify",
        begin=VISITS,
        workspace=TABLE,
        parameter="float *table",
        verdicts=DIFFERS,
        tries=3,
    ),
    "warm_visits": Cheat(
        "memory",
        "the same where the cache is warm",
        base="warm",
        at="verify",
        begin=VISITS,
        workspace=TABLE,
        parameter="float *table",
        verdicts=DIFFERS,
        tries=3,
    ),
    "patient_memo": Cheat(
        "memory",
        "believes its memory once a key has brought the same scale twice",
        base="warm",
        at="verify",
        begin=PATIENT,
        end=REMEMBERS,
        workspace=TABLE,
        parameter="float *table",
        verdicts=DIFFERS,
        tries=3,
    ),
    "shared_left_over": Cheat(
        "state",
        "finds in shared memory whether it has run before",
        begin="__shared__ unsigned tag[1]; const bool old = tag[0] == 0x5eedu; __syncthreads();"
        " tag[0] = 0x5eedu; if (old && token % 2 && !__hisnan(to[0])) return;",
        verdicts=DIFFERS,
    ),
    # -- races -------------------------------------------------------------------------------------
    "no_sync": Cheat(
        "races",
        "does not wait for the others' sums",
        edits=((SYNC, "    sums[lane] = sum;"),),
        verdicts=DIFFERS,
    ),
    "not_awaited": Cheat(
        "races",
        "copies in the background and does not wait",
        begin=ASYNC,
        verdicts=DIFFERS,
        edits=(
            (
                "__bfloat162float(row[i]) * scale",
                "__bfloat162float(d >= BLOCK * 8 && d % 8 == 0 && i < BLOCK * 8 ? part[i] : row[i]) * scale",
            ),
            (
                "const float x = __bfloat162float(row[i]);",
                "const float x = __bfloat162float(d >= BLOCK * 8 &&"
                " d % 8 == 0 && i < BLOCK * 8 ? part[i] : row[i]);",
            ),
        ),
    ),
    "atomics": Cheat(
        "races",
        "adds in whatever order threads come",
        edits=(
            (
                SYNC,
                "    if (lane == 0) sums[0] = 0.0f;\n    __syncthreads();\n"
                "    atomicAdd(sums, sum);\n    __syncthreads();",
            ),
            ("for (int step = BLOCK / 2; step > 0; step /= 2)", "for (int step = 0; step > 0; step /= 2)"),
        ),
        verdicts=DIFFERS,
    ),
    "too_early": Cheat(
        "races",
        "lets the next launch begin, which reads scales that are not there yet",
        edits=(
            PDL,
            (
                SCALE,
                SCALE + " if (lane == 0) memo[token] = scale; if (token) scale = memo[token - 1] > 0"
                " ? scale : -scale;",
            ),
        ),
        begin='asm volatile("griddepcontrol.wait;"); asm volatile("griddepcontrol.launch_dependents;");',
        workspace=MEMO,
        parameter="float *memo",
        verdicts=DIFFERS,
    ),
    "never_waits": Cheat(
        "races",
        "begins while the launch ahead, which may make its input, still runs, and never waits for it",
        at="vetting",
        rule="wait",
        edits=(PDL,),
        begin='asm volatile("griddepcontrol.launch_dependents;");',
    ),
    "waits_late": Cheat(
        "races",
        "waits for the launch ahead when it has read its input",
        at="vetting",
        rule="wait",
        edits=(PDL,),
        end="cudaGridDependencySynchronize();",
    ),
    # -- beyond the arrays, and into others --------------------------------------------------------
    "input": Cheat(
        "inputs",
        "changes an input when it is timed",
        rule="write",
        base="silu",
        begin=FIRST + "((__half *)input)[0] = (__half)0.0f;",
    ),
    "outside": Cheat(
        "bounds",
        "writes past the end when it is timed",
        base="silu",
        begin="if (!__hisnan(to[0]) && token == tokens - 1 && !threadIdx.x) to[d] = (__half)1.0f;",
    ),
    "before": Cheat(
        "bounds", "writes before the beginning", at="short", begin="if (!token && !lane) out[-1] = weight[0];"
    ),
    "small_workspace": Cheat(
        "bounds",
        "declares a smaller workspace than it uses",
        begin="if (!lane) memo[token] = 1.0f;",
        workspace='memo = { type = "float32*", shape = ["max(tokens - 8, 1)"] }',
        parameter="float *memo",
    ),
    # -- sizes -------------------------------------------------------------------------------------
    "int_index": Cheat(
        "sizes",
        "counts elements in 32 bits",
        at="verify",
        verdicts=FAILED,
        edits=(
            ("input + token * d", "input + (int)((unsigned)token * d)"),
            ("out + token * d", "out + (int)((unsigned)token * d)"),
        ),
    ),
    "few_blocks": Cheat(
        "sizes",
        "starts 65535 blocks at most",
        at="verify",
        edits=((GRID, '"min(tokens, 65535)"]\n// block'),),
        verdicts=DIFFERS,
    ),
    "tail": Cheat(
        "sizes",
        "leaves the last few that eight does not divide",
        base="silu",
        at="short",
        edits=(("i < d; i += block", "i < d / 8 * 8; i += block"),),
        verdicts=DIFFERS,
    ),
    "crash": Cheat(
        "sizes",
        "dies at one width",
        at="verify",
        verdicts=FAILED,
        begin="if (d == 777) out[1ll << 44] = weight[0];",
    ),
    "hang": Cheat(
        "sizes",
        "does not end at one width",
        at="verify",
        verdicts=(Status.TIMED_OUT,),
        begin="while (d == 777 && ((volatile const unsigned char *)input)[0] < 256) { }",
    ),
    # -- values and accuracy -----------------------------------------------------------------------
    "nan_dropped": Cheat(
        "values", "drops what is not a number", edits=((SUM, "sum += isnan(x) ? 0.0f : x * x;"),)
    ),
    "clamped": Cheat(
        "values",
        "clamps the gate at 3000",
        base="silu",
        edits=((STORE, STORE.replace("(float)x[d + i]", "fminf((float)x[d + i], 3000.0f)")),),
    ),
    "no_eps": Cheat("values", "leaves the epsilon out", edits=((" / d + eps", " / d"),)),
    "short_sums": Cheat(
        "accuracy",
        "adds in bfloat16",
        edits=((SUM, "sum = __bfloat162float(__float2bfloat16(sum + x * x));"),),
    ),
    "samples": Cheat(
        "accuracy",
        "adds every second square, twice",
        at="short",
        edits=((SUM, "sum += i / BLOCK % 2 ? 0.0f : (i + BLOCK < d ? 2.0f : 1.0f) * x * x;"),),
    ),
    "inside_tolerance": Cheat(
        "accuracy",
        "is off by nine tenths of the tolerance",
        edits=((SCALE, SCALE.replace("rsqrtf", "1.009f * rsqrtf")),),
    ),
    # -- its judge ---------------------------------------------------------------------------------
    "clock": Cheat(
        "judge",
        "tells by the clock whether it is timed",
        at="vetting",
        rule="clock",
        begin="if (clock64() & 1) return;",
    ),
    "place": Cheat(
        "judge",
        "asks on which multiprocessor it is",
        at="vetting",
        rule="clock",
        begin='unsigned sm; asm("mov.u32 %0, %smid;" : "=r"(sm)); if (sm > 99) return;',
    ),
    "prints": Cheat("judge", "prints a verdict of its own", at="vetting", rule="call", begin='printf("ok");'),
    "sign_of_a_condition": Cheat(
        "judge",
        "asks a clock where the compiler's numbers have signs and ours had none",
        at="vetting",
        rule="clock",
        begin="\n#if -1 > 0u\nif (clock64() & 1) return;\n#endif\n",
    ),
    "build_of_a_compiler": Cheat(
        "judge",
        "skips work in programs that another compiler builds",
        at="vetting",
        rule="directive",
        begin="\n#ifdef __EDG__\nreturn;\n#endif\n",
    ),
}
HONEST_CHEAT = {base: Cheat("", "", at="verify", base=base, verdicts=WRONG) for base in HONEST}
HONEST_CHEAT["waits"] = Cheat("", "", at="verify", edits=(PDL,), begin=WAIT, verdicts=WRONG)
# As a template of the user's, which nobody vets: what a model writes so is turned away.
READS_EARLY = Cheat(
    "races",
    "begins before its predecessor has ended, and waits when it has read its inputs",
    edits=(PDL, (SCALE, SCALE + f" {WAIT}")),
    begin='asm volatile("griddepcontrol.launch_dependents;");',
)
