// /// tunesmith
// [params]
// BLOCK = [64, 128, 256, 512]   # threads in a block, at most: as many whole heads as fit
// PACKS = [1, 2, 4]             # packs of 16 bytes that a thread takes of a head, with the same weights
// ROWS  = [1, 2, 4]             # heads that a thread takes
// LOAD  = { values = [0, 1, 2], categorical = true }  # 0: through L1; 1: not kept in L1; 2: evicted first
// STORE = { values = [0, 1], categorical = true }     # 1: results are evicted first
// FAST  = [0, 1]                # 1: one approximate reciprocal for both weights instead of two divisions
// EARLY = [0, 1]                # 1: all loads come first; 0: as the compiler likes, with fewer registers
// [default]
// BLOCK = 128
// PACKS = 1
// ROWS  = 1
// LOAD  = 0
// STORE = 0
// FAST  = 0
// EARLY = 0
// [require]
// whole_packs   = "head_dim % (8 * PACKS) == 0"
// head_fits     = "head_dim <= 8 * PACKS * BLOCK"
// [prefer]
// few_registers = "PACKS * ROWS <= 4"
// early_is_new  = "EARLY == 0 or FAST == 1"  # a division has a branch of its own, and all loads come before it
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// items_in_flight = "PACKS * ROWS >= 2"
// unroll          = "PACKS * ROWS >= 2"
// rows_per_block  = "ROWS >= 2"
// more_blocks     = "BLOCK * ROWS <= 128"
// block_size      = "BLOCK != 128"
// fast_intrinsics = "FAST == 1"
// reciprocal      = "FAST == 1"
// cache_hints     = "LOAD > 0 or STORE > 0"
// [launch]
// entry = "merge_attn_states"
// grid  = ["ceildiv(tokens * heads, ROWS * (8 * PACKS * BLOCK // head_dim))"]
// block = ["head_dim // (8 * PACKS)", "8 * PACKS * BLOCK // head_dim"]
// ///
//
// Joins two partial attention results (of two parts of the keys) into one, by the log-sum-exp of their scores:
//     m = max(s_a, s_b),  w_a = exp(s_a - m),  w_b = exp(s_b - m)
//     v_merged = (w_a * v_a + w_b * v_b) / (w_a + w_b),  s_merged = log(w_a + w_b) + m
// A row is one head of one token. threadIdx.x counts the threads of a row, threadIdx.y rows, so that nothing
// is divided to find them.

#include <cuda_fp16.h>

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef PACKS
#define PACKS 1
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef LOAD
#define LOAD 0
#endif
#ifndef STORE
#define STORE 0
#endif
#ifndef FAST
#define FAST 0
#endif
#ifndef EARLY
#define EARLY 0
#endif

__device__ __forceinline__ uint4 load(const uint4 *from)
{
#if LOAD == 0
    return __ldg(from);
#elif LOAD == 1
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
#else
    return __ldcs(from);
#endif
}

__device__ __forceinline__ void store(uint4 *to, uint4 v)
{
#if STORE == 0
    *to = v;
#else
    __stcs(to, v);
#endif
}

__device__ __forceinline__ float empty_if_infinite(float score)
{
    return isinf(score) ? __int_as_float(0xff800000) : score;
}

__device__ __forceinline__ unsigned merge2(unsigned a, unsigned b, float weight_a, float weight_b)
{
    const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&a));
    const float2 y = __half22float2(*reinterpret_cast<const __half2 *>(&b));
    const __half2 merged = __floats2half2_rn(weight_a * x.x + weight_b * y.x, weight_a * x.y + weight_b * y.y);
    return *reinterpret_cast<const unsigned *>(&merged);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
merge_attn_states(const __half *__restrict__ v_a, const float *__restrict__ s_a,
                  const __half *__restrict__ v_b, const float *__restrict__ s_b,
                  __half *__restrict__ v_merged, float *__restrict__ s_merged,
                  unsigned tokens, unsigned heads, unsigned head_dim)
{
    const unsigned rows = tokens * heads;
    const unsigned first = blockIdx.x * ROWS * blockDim.y + threadIdx.y;
    const uint4 *from_a = reinterpret_cast<const uint4 *>(v_a) + threadIdx.x;
    const uint4 *from_b = reinterpret_cast<const uint4 *>(v_b) + threadIdx.x;
    uint4 *to = reinterpret_cast<uint4 *>(v_merged) + threadIdx.x;

    float score_a[ROWS], score_b[ROWS];
    uint4 a[ROWS][PACKS], b[ROWS][PACKS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const unsigned row = min(first + r * blockDim.y, rows - 1);  // beyond the end: the last one again
        const unsigned pack = row * (head_dim / 8);
        score_a[r] = __ldg(s_a + row);
        score_b[r] = __ldg(s_b + row);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            a[r][p] = load(from_a + pack + p * blockDim.x);
            b[r][p] = load(from_b + pack + p * blockDim.x);
        }
    }
#if EARLY
    if (head_dim == 0)  // never so; but the compiler puts no load off beyond a branch
        __trap();
#endif

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const unsigned row = first + r * blockDim.y;
        if (row >= rows)
            return;
        const unsigned pack = row * (head_dim / 8);
        const float x = empty_if_infinite(score_a[r]);
        const float y = empty_if_infinite(score_b[r]);
        const float m = fmaxf(x, y);
        const float exp_a = expf(x - m);
        const float exp_b = expf(y - m);
        const float sum = exp_a + exp_b;
#if FAST
        float inverse;  // of a number between 1 and 2, good to 1 ulp
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sum));
        const float weight_a = exp_a * inverse;
        const float weight_b = exp_b * inverse;
#else
        const float weight_a = exp_a / sum;
        const float weight_b = exp_b / sum;
#endif
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            uint4 merged;
            merged.x = merge2(a[r][p].x, b[r][p].x, weight_a, weight_b);
            merged.y = merge2(a[r][p].y, b[r][p].y, weight_a, weight_b);
            merged.z = merge2(a[r][p].z, b[r][p].z, weight_a, weight_b);
            merged.w = merge2(a[r][p].w, b[r][p].w, weight_a, weight_b);
            store(to + pack + p * blockDim.x, merged);
        }
        if (threadIdx.x == 0)
            s_merged[row] = logf(sum) + m;
    }
}
