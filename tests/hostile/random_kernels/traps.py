"""Kernels written by hand, each with one thing that is easily read wrong: it is kept, or refused."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.call_traps import CALL_TRAPS
from tests.hostile.random_kernels.choice_traps import CHOICE_TRAPS
from tests.hostile.random_kernels.cpp_traps import CPP_TRAPS
from tests.hostile.random_kernels.kept_row_traps import KEPT_ROW_TRAPS
from tests.hostile.random_kernels.object_traps import OBJECT_TRAPS
from tests.hostile.random_kernels.team_traps import TEAM_TRAPS
from tests.hostile.random_kernels.trap import (
    ALL,
    EVEN,
    LOOP,
    SUM,
    TREE,
    Trap,
    block_trap,
    flat_trap,
    thread_trap,
)

_LANE = '__device__ unsigned lane_of() { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }'

# -- special registers, clocks, votes, shuffles, barriers, volatile
_COOPERATION: Mapping[str, Trap] = {
    "lane by assembly": flat_trap('unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l));\nout[i] = x[i] + l;'),
    "lane by a helper": flat_trap("out[i] = x[i] + lane_of();", _LANE),
    "warp by assembly": flat_trap(
        'unsigned w; asm volatile("mov.u32 %0, %%warpid;" : "=r"(w));\nout[i] = x[i] + w;'
    ),
    "lane mask by assembly": flat_trap(
        'unsigned m; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(m));\nout[i] = __popc(m);'
    ),
    "a vote": flat_trap("out[i] = __any_sync(0xffffffffu, x[i] > 7.0f) ? 1.0f : 0.0f;", columns=EVEN),
    "a vote of all": flat_trap("out[i] = __all_sync(0xffffffffu, x[i] > -7.0f) ? 1.0f : 0.0f;", columns=EVEN),
    "a ballot": flat_trap("out[i] = __popc(__ballot_sync(0xffffffffu, x[i] > 0.0f));", columns=EVEN),
    "the active mask": flat_trap("out[i] = x[i] + (__activemask() != 0u ? 1.0f : 0.0f);", columns=EVEN),
    "equal values": flat_trap("out[i] = __popc(__match_any_sync(0xffffffffu, (int)x[i]));", columns=EVEN),
    "a warp's sum": flat_trap("out[i] = __reduce_add_sync(0xffffffffu, (int)x[i]);", columns=EVEN),
    "a warp's sum in a helper": flat_trap(
        "out[i] = all(x[i]);",
        "__device__ int all(int v) { return __reduce_max_sync(0xffffffffu, v); }",
        EVEN,
    ),
    "a vote in a helper": flat_trap(
        "out[i] = some(x[i]);", "__device__ int some(int v) { return __any_sync(~0u, v > 6); }", EVEN
    ),
    "neighbours by shuffle": flat_trap("out[i] = x[i] + __shfl_xor_sync(~0u, x[i], 1);", columns=EVEN),
    "a scan by shuffles": flat_trap(
        "float s = x[i];\nfor (int o = 1; o < 32; o *= 2) {\n    float t = __shfl_up_sync(~0u, s, o);\n"
        "    if (threadIdx.x % 32 >= o) s += t;\n}\nout[i] = s;",
        columns=EVEN,
    ),
    "half sums": block_trap(
        SUM + "for (int o = 8; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n" + LOOP + "out[i] = s;"
    ),
    "one warp's total of two": block_trap(
        SUM + "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
        "if (threadIdx.x == 0) out[0] = s;"
    ),
    "a tree that starts low": block_trap(
        SUM + TREE.replace("o = 32;", "o = 16;") + "if (threadIdx.x == 0) out[0] = room[0];"
    ),
    "a clock": flat_trap("const long long t = clock64();\nout[i] = x[i];\nif (clock64() < t) out[i] = 0.0f;"),
    "a clock in a helper": flat_trap(
        "out[i] = x[i] + later();", "__device__ int later() { return clock64() > 0 ? 1 : 2; }"
    ),
    "volatile shared memory": block_trap(
        "volatile __shared__ float kept[64];\nkept[threadIdx.x] = threadIdx.x < d ? x[threadIdx.x] : 0.0f;\n"
        "__syncthreads();\n" + LOOP + "out[i] = kept[63 - threadIdx.x];"
    ),
    "a barrier in a branch": block_trap(
        "__shared__ float first;\nif (d > 40) {\n"
        "    if (threadIdx.x == 0) first = x[0];\n    __syncthreads();\n"
        "    " + LOOP + "out[i] = first + x[i];\n} else {\n    " + LOOP + "out[i] = x[i];\n}"
    ),
    "a barrier that counts": block_trap(
        "const int n = __syncthreads_count(threadIdx.x < d && x[threadIdx.x] > 0.0f);\n"
        + LOOP
        + "out[i] = n;"
    ),
    "a barrier that asks": block_trap(
        "const int n = __syncthreads_or(threadIdx.x < d && x[threadIdx.x] > 6.0f);\n" + LOOP + "out[i] = n;"
    ),
    "a flag that any thread sets": block_trap(
        "__shared__ int flag;\nif (threadIdx.x == 0) flag = 0;\n__syncthreads();\n"
        + LOOP
        + "if (x[i] > 6.0f) flag = 1;\n__syncthreads();\n"
        + LOOP
        + "out[i] = flag;"
    ),
    "shared memory turned round": block_trap(
        "__shared__ float kept[512];\n"
        + LOOP
        + "kept[i] = x[i];\n__syncthreads();\n"
        + LOOP
        + "out[i] = kept[d - 1 - i];"
    ),
    "shared memory of the thread": block_trap(
        "__shared__ float kept[64];\nkept[threadIdx.x] = x[threadIdx.x % d];\n__syncthreads();\n"
        + LOOP
        + "out[i] = kept[(threadIdx.x + 1) % 64];"
    ),
    "a histogram in shared memory": block_trap(
        "__shared__ int count[16];\nif (threadIdx.x < 16) count[threadIdx.x] = 0;\n__syncthreads();\n"
        + LOOP
        + "atomicAdd(&count[(int)x[i] & 15], 1);\n__syncthreads();\n"
        + LOOP
        + "out[i] = count[i & 15];"
    ),
    "what others stored": block_trap(
        LOOP + "out[i] = x[i];\n__syncthreads();\n" + LOOP + "aux[i & 63] = 0;\n"
        "if (threadIdx.x == 0) aux[row % 64] = 0;"
    ),
    "the last thread to come": block_trap(
        LOOP + "out[i] = x[i];\n__syncthreads();\nif (threadIdx.x == 63) out[0] = out[d - 1] + 1.0f;"
    ),
}

# -- totals that are none, or not of everything
_TOTALS: Mapping[str, Trap] = {
    "every thread begins with one": block_trap(
        "float s = 1.0f;\n" + LOOP + "s += x[i];\n" + TREE + LOOP + "out[i] = room[0];"
    ),
    "threads begin with themselves": block_trap(
        "float s = threadIdx.x;\n" + LOOP + "s += x[i];\n" + TREE + LOOP + "out[i] = room[0];"
    ),
    "half of the threads add": block_trap(
        "float s = 0.0f;\nif (threadIdx.x < 32) {\n    "
        + LOOP
        + "s += x[i];\n}\n"
        + TREE
        + LOOP
        + "out[i] = room[0];"
    ),
    "a loop that skips": block_trap(
        "float s = 0.0f;\nfor (int i = threadIdx.x; i < d; i += 128) s += x[i];\n"
        + TREE
        + LOOP
        + "out[i] = room[0];"
    ),
    "a loop that begins at one": block_trap(
        "float s = 0.0f;\nfor (int i = threadIdx.x + 1; i < d; i += 64) s += x[i];\n"
        + TREE
        + LOOP
        + "out[i] = room[0];"
    ),
    "a total that is capped": thread_trap(
        "float s = 0.0f;\nfor (int i = 0; i < d; i++) s = fminf(s + x[i], 10.0f);\nout[0] = s;"
    ),
    "a total that changes sides": thread_trap(
        "float s = 0.0f;\nfor (int i = 0; i < d; i++) s = x[i] - s;\nout[0] = s;"
    ),
    "a running sum": thread_trap("float s = 0.0f;\nfor (int i = 0; i < d; i++) { s += x[i]; out[i] = s; }"),
    "a maximum and where": thread_trap(
        "float m = -100.0f; int at = 0;\nfor (int i = 0; i < d; i++) if (x[i] > m) { m = x[i]; at = i; }\n"
        "out[0] = at;"
    ),
    "the last maximum and where": thread_trap(
        "float m = -100.0f; int at = 0;\nfor (int i = 0; i < d; i++) if (x[i] >= m) { m = x[i]; at = i; }\n"
        "out[0] = at;"
    ),
    "a narrow total": thread_trap(
        "unsigned char s = 0;\nfor (int i = 0; i < d; i++) s += (unsigned char)(int)x[i];\nout[0] = s;"
    ),
    "a narrow signed total": thread_trap(
        "signed char s = 100;\nfor (int i = 0; i < d; i++) s += (signed char)(x[i] * 3.0f);\nout[0] = s;"
    ),
    "an unsigned product": thread_trap(
        "unsigned s = 1;\n"
        "for (int i = 0; i < d; i++) s *= (unsigned)((int)x[i] | 1);\nout[0] = (float)(s & 1023);"
    ),
    "a maximum of what is below zero": block_trap(
        "float s = 0.0f;\n"
        + LOOP
        + "s = fmaxf(s, x[i] - 20.0f);\n"
        + TREE.replace(
            "room[threadIdx.x] += room[threadIdx.x + o]",
            "room[threadIdx.x] = fmaxf(room[threadIdx.x], room[threadIdx.x + o])",
        )
        + LOOP
        + "out[i] = room[0];"
    ),
    "two totals that cross": thread_trap(
        "float a = 0.0f, b = 1.0f;\nfor (int i = 0; i < d; i++) { float t = a; a = b + x[i]; b = t; }\n"
        "out[0] = a; if (d > 1) out[1] = b;"
    ),
    "the last one stays": thread_trap("for (int i = 0; i < d; i++) out[0] = x[i];"),
    "a count that stops": thread_trap(
        "int n = 0;\nfor (int i = 0; i < d; i++) { if (x[i] > 7.0f) break; n++; }\nout[0] = n;"
    ),
    "a total that ends early": thread_trap(
        "float s = 0.0f;\nfor (int i = 0; i < d && s < 20.0f; i++) s += x[i];\nout[0] = s;"
    ),
    "an atomic total": flat_trap("atomicAdd(&aux[i & 7], (int)x[i]);\nout[i] = 1.0f;"),
    "a total that a test reads": thread_trap(
        "float s = 0.0f;\nfor (int i = 0; i < d; i++) if (s < 5.0f) s += x[i];\nout[0] = s;"
    ),
}

# -- elements that depend on each other, and memory at its end
_MEMORY: Mapping[str, Trap] = {
    "a scan in memory": thread_trap("for (int i = 1; i < d; i++) out[i] = out[i - 1] + x[i];"),
    "a scan two apart": thread_trap("for (int i = 2; i < d; i++) out[i] = out[i - 2] + x[i];"),
    "a fall in memory": thread_trap("for (int i = 0; i + 1 < d; i++) out[i] = out[i + 1] + x[i];"),
    "a swap in place": thread_trap(
        "for (int i = 0; i < d / 2; i++) { float t = out[i]; out[i] = out[d - 1 - i]; out[d - 1 - i] = t; }"
    ),
    "pairs that are stored": thread_trap("for (int i = 0; i < d; i++) out[i / 2] = x[i];"),
    "stores behind a mask": thread_trap("for (int i = 0; i < d; i++) out[i & ~3] += x[i];"),
    "stores that wrap": thread_trap("for (int i = 0; i < d; i++) out[(i * 7) % d] = x[i] + i;"),
    "a load near the end": flat_trap(
        "float v = 0.0f;\nif (i + 1 < rows * d && x[i + 1] > 0.0f) v = x[i + 1];\nout[i] = v;"
    ),
    "a load near the start": flat_trap("out[i] = i >= 3 && x[i - 3] > 0.0f ? x[i - 3] : -1.0f;"),
    "a load behind an or": flat_trap("out[i] = i + 4 >= rows * d || x[i + 4] < 0.0f ? 1.0f : 2.0f;"),
    "a load under a ternary": flat_trap("out[i] = i % 2 == 0 ? x[i] : i + 9 < rows * d ? x[i + 9] : 0.0f;"),
    "an unsigned test of both ends": flat_trap(
        "out[i] = (unsigned)(i - 2) < (unsigned)(rows * d) ? x[i - 2] : 0.0f;"
    ),
    "division of what is negative": flat_trap(
        "out[i] = x[(i - 5) / 4 + 1 < 0 ? 0 : ((i - 5) / 4 + 1) % (rows * d)];"
    ),
    "remainders of what is negative": flat_trap("out[i] = (float)((i - 5) % 4);"),
    "an index with its bits turned": flat_trap("out[i] = (i ^ 2) < rows * d ? x[i ^ 2] : 0.0f;"),
    "an index that is rounded": flat_trap("out[i] = x[i & ~3] + ((i | 1) < rows * d ? x[i | 1] : 0.0f);"),
    "an index that wraps": flat_trap("out[i] = x[(i + 5) % (rows * d)];"),
    "an index that wraps in a row": flat_trap("const int c = i % d;\nout[i] = x[i - c + (c + 3) % d];"),
    "a narrow index": flat_trap("const short s = (short)(i * 3000);\nout[i] = x[(s & 0x7fff) % (rows * d)];"),
    "a narrow loop": thread_trap("for (unsigned char k = 0; k < 200; k += 7) out[k % d] += x[k % d];"),
    "a loop downwards": block_trap(
        "for (int i = d - 1 - (int)threadIdx.x; i >= 0; i -= 64) out[i] = x[i] + i;"
    ),
    "a pointer that moves": thread_trap(
        "const float *p = x;\nfor (int i = 0; i < d; i++) out[i] = *p++ * 2.0f;"
    ),
    "an index that moves in a call": thread_trap(
        "int j = 0;\nfor (int i = 0; i < d; i++) out[i] = x[j++] + j;"
    ),
    "an assignment in a test": flat_trap("float v;\nif ((v = x[i]) > 0.0f) v += 1.0f;\nout[i] = v;"),
    "bits of a float": flat_trap(
        "const float v = x[i];\nconst int b = *(const int *)&v;\nout[i] = (float)(b >> 20);"
    ),
    "a loop that does first": flat_trap(
        "int n = 0;\nfloat v = x[i];\ndo { v -= 3.0f; n++; } while (v > 0.0f);\nout[i] = n;"
    ),
    "a switch": flat_trap(
        "switch (i & 3) { case 0: out[i] = x[i]; break; case 1: out[i] = 1.0f;\n"
        "case 2: out[i] = 2.0f; break; default: out[i] = -x[i]; }"
    ),
    "a list that is followed": thread_trap(
        "int at = 0;\nfor (int i = 0; i < d; i++) { out[i] = x[at]; at = (at + ((int)x[at] & 7) + 1) % d; }"
    ),
    "a helper that stores": flat_trap(
        "out[i] = marked(aux, i) + x[i];",
        "__device__ float marked(int *to, int i) { to[i & 63] = i & 63; return 1.0f; }",
    ),
    "a helper that changes what it is given": flat_trap(
        "float v = x[i];\nconst float w = moved(v);\nout[i] = v * 100.0f + w;",
        "__device__ float moved(float &v) { const float old = v; v += 1.0f; return old; }",
    ),
    "a helper that asks for its thread": flat_trap(
        "out[i] = x[i] + mine();", "__device__ float mine() { return (float)(threadIdx.x % 7); }"
    ),
    "a variable of the file": flat_trap("if (i == 0) seen = 5;\nout[i] = x[i];", "__device__ int seen;"),
    "a constant of the file": flat_trap(
        "out[i] = x[i] * steps[i & 3];", "__constant__ float steps[4] = {1, 2, 4, 8};"
    ),
    "the grid in a value": flat_trap("out[i] = x[i] + gridDim.x;"),
    "the thread beside its four elements": Trap(
        "const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
        "for (int n = 0; n < 4; n++)\n"
        "    if (first + n < rows * d) out[first + n] = x[first + n] + (threadIdx.x & 3);",
        ("ceildiv(rows * d, 256)",),
    ),
    "the thread beside its number in a plane": Trap(
        "const int i = blockIdx.x * 64 + threadIdx.y * 16 + threadIdx.x;\n"
        "if (i < rows * d) out[i] = x[i] + (threadIdx.x & 3);",
        ALL,
        ("16", "4"),
    ),
    "the thread in a value": block_trap(LOOP + "out[i] = x[i] + (threadIdx.x & 1);"),
    "names of the template": block_trap(
        "const int lane = threadIdx.x, LANES = 64, task = 3, base = 1, VEC = 2;\n"
        "for (int i = lane; i < d; i += LANES) out[i] = x[i] * task + base - VEC;"
    ),
    "a threads' branch that stays": block_trap(
        "if (threadIdx.x >= 40) return;\nfor (int i = threadIdx.x; i < d; i += 40) out[i] = x[i];"
    ),
    "rows by a second axis": Trap(
        "const int row = blockIdx.x * 4 + threadIdx.y;\nif (row >= rows) return;\n"
        "for (int i = threadIdx.x; i < d; i += 16) out[row * d + i] = x[row * d + i] + threadIdx.y;",
        ("ceildiv(rows, 4)",),
        ("16", "4"),
    ),
    "a copy that is not waited for by all": block_trap(
        "__shared__ float kept[64];\nkept[threadIdx.x] = 0.0f;\n__syncthreads();\n"
        "for (int i = threadIdx.x; i < d; i += 64) kept[threadIdx.x] += x[i];\n__syncthreads();\n"
        "if (threadIdx.x == 0) { float s = 0.0f; for (int k = 0; k < 64; k += 2) s += kept[k]; out[0] = s; }"
    ),
}

# -- what generated kernels found, made short
_FOUND: Mapping[str, Trap] = {
    "a value in parentheses before and": flat_trap(
        "out[i] = 2 < (int)(x[i]) && (float)(i & 7) > x[i] ? 1.0f : 2.0f;"
    ),
    "an index that is cut twice": flat_trap(
        "const int row = i / d;\nout[i] = x[((i & 7) - row % 5) & 15];", columns=EVEN
    ),
    "a kept row that is read in a branch": block_trap(
        "__shared__ float kept[512];\nfloat s = 0.0f;\n"
        + LOOP
        + "{ kept[i] = x[i] * 2.0f; s += x[i]; }\n"
        + TREE
        + "float t = 0.0f;\n"
        + LOOP
        + "t += kept[i];\n"
        + TREE.replace("room", "other").replace("= s", "= t")
        + "if (room[0] > other[0]) {\n    "
        + LOOP
        + "out[i] = kept[i];\n} else {\n    "
        + LOOP
        + "out[i] = -kept[i];\n}"
    ),
    "a sum that is at least zero": block_trap(
        SUM + TREE + "s = fmaxf(room[0], 0.0f);\n" + LOOP + "out[i] = x[i] + s;"
    ),
    "a narrow number of a thread": block_trap(
        "const unsigned char t = (unsigned char)(threadIdx.x * 16);\nif (t == 240) aux[0] = 1;\n"
        + LOOP
        + "out[i] = x[i];"
    ),
    "a narrow constant": block_trap(
        "const signed char c = (signed char)200;\n" + LOOP + "out[i] = c < 0 ? x[i] : 0.0f;\n"
        "if (c > 0) aux[1] = 5;"
    ),
    "a signed test of the thread": block_trap(
        "const int t = threadIdx.x;\n" + LOOP + "out[i] = x[i];\nif (t - 1 < 0) aux[row & 63] = 1;"
    ),
    "an unsigned test of the thread": block_trap(
        LOOP + "out[i] = x[i];\nif (threadIdx.x - 1 > 100u) aux[row & 63] = 1;"
    ),
}

# -- pointers and indices that move
_MOVED: Mapping[str, Trap] = {
    "a pointer from an index that changes": flat_trap(
        "int k = i;\nconst float *p = x + k;\nk = 0;\nout[i] = *p;"
    ),
    "a pointer from an index that a loop changes": thread_trap(
        "int k = 0;\nfor (int i = 0; i < d; i++) {\n    const float *p = x + k;\n    k++;\n"
        "    out[i] = *p + k;\n}"
    ),
    "a pointer from an index that a branch changes": flat_trap(
        "int k = i;\nconst float *p = x + k;\nif (x[i] > 0.0f) k = 0;\nout[i] = *p + x[k];"
    ),
    "a pointer moved in a branch": flat_trap("const float *p = x;\nif (i > 3) p += i;\nout[i] = *p;"),
    "a pointer moved and used in a branch": flat_trap(
        "const float *p = x;\nif (i > 3) { p += i; out[i] = *p; } else { out[i] = p[0] * 2.0f; }"
    ),
    "a pointer set anew in a loop": thread_trap(
        "const float *p = x;\nfor (int i = 0; i < d; i++) {\n    out[i] = *p;\n    p = x + (d - 1 - i);\n}"
    ),
    "a pointer that a loop moves": thread_trap(
        "const float *p = x;\nfor (int i = 0; i < d; ++i, ++p) out[i] = *p * 2.0f;"
    ),
    "a pointer that a branch of a loop moves": thread_trap(
        "const float *p = x;\nfor (int i = 0; i < d; i++) {\n    out[i] = *p;\n    if (x[i] > 0.0f) p++;\n}"
    ),
    "a pointer moved past a loop": thread_trap(
        "const float *p = x;\nfor (int i = 0; i < d; i++) { out[i] = *p; p += 1; }\nout[0] += p[-1];"
    ),
    "a wide pointer that a loop moves": thread_trap(
        "const float2 *p = (const float2 *)(x - (long long)row * d);\n"
        "for (int i = 0; i < d / 2; i++) {\n"
        "    out[2 * i] = p->x;\n    out[2 * i + 1] = p->y;\n    p += 1;\n}"
    ),
    "an index that moves with a loop": thread_trap(
        "int k = d - 1;\nfor (int i = 0; i < d; ++i, k += -1) out[k] = x[i] + k;"
    ),
    "an index that moves in the middle of a turn": thread_trap(
        "int k = 0;\nfor (int i = 0; i < d; i++) {\n    out[k] = x[i];\n    k += 1;\n    out[k - 1] += k;\n}"
    ),
    "an index that moves unless it goes on": thread_trap(
        "int k = 0;\nfor (int i = 0; i < d; i++) {\n    if (x[i] > 0.0f) continue;\n"
        "    out[k] = x[i];\n    k++;\n}"
    ),
    "an index that moves by what changes": thread_trap(
        "int k = 0, by = 1;\nfor (int i = 0; i < d; i++) {\n"
        "    out[i] = x[k % d];\n    k += by;\n    by++;\n}"
    ),
    "rows as long as there are any": Trap(
        "int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0, at = i;\n"
        "if (i < d)\n    for (int k = 0; k < 4; k++)\n        if (r < rows) {\n"
        "            out[at] = x[at] + r;\n            ++r;\n            at += d;\n        }",
        ("ceildiv(d, 64)",),
    ),
    "rows as long as one is not empty": Trap(
        "int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0, at = i;\n"
        "if (i < d)\n    for (int k = 0; k < rows; k++)\n        if (x[at] > 0.0f) {\n"
        "            out[at] = x[at] + r;\n            ++r;\n            at += d;\n        }",
        ("ceildiv(d, 64)",),
    ),
    "two bounds in the head of a loop": thread_trap(
        "for (int i = 0, end = min(d, 40); i < end; ++i) out[i] = x[end - 1 - i];"
    ),
}

TRAPS: Mapping[str, Trap] = {
    **_COOPERATION,
    **_TOTALS,
    **_MEMORY,
    **_FOUND,
    **_MOVED,
    **CPP_TRAPS,
    **OBJECT_TRAPS,
    **CALL_TRAPS,
    **KEPT_ROW_TRAPS,
    **TEAM_TRAPS,
    **CHOICE_TRAPS,
}

# Wrong today, and why. Each is expected to fail, so that it is taken out once it holds.
KNOWN_HOLES: Mapping[str, str] = {}
