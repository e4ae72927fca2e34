// /// tunesmith
// [params]
// BLOCK = [64, 128, 192, 256, 320, 384, 512, 640, 768, 896, 1024]
// VEC   = [4, 8]                      # elements in one load or store
// ITEMS = [1, 2, 4]                   # vectors a thread has under way at once, BLOCK vectors apart
// FLAT  = { values = [0, 1], categorical = true }     # 0: a block stays on one row; 1: rows follow one another
// HINT  = { values = [0, 1, 2], categorical = true }  # 1: loads leave L1 alone; 2: everything is streamed
// [default]
// BLOCK = 512
// VEC   = 8
// ITEMS = 1
// FLAT  = 0
// HINT  = 0
// [require]
// block_fits    = "BLOCK <= device.max_threads"
// whole_vectors = "d % VEC == 0"
// flat_in_32bit = "FLAT == 0 or tokens * d // VEC <= 2147000000"
// [prefer]
// no_idle_block = "FLAT == 1 or BLOCK * VEC * ITEMS < 2 * d"
// room_for_two  = "BLOCK * VEC * ITEMS <= 16384"      # blocks on one multiprocessor, by their registers
// wide_or_plain = "VEC == 8 or HINT == 0"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access     = "VEC == 8"
// items_in_flight = "ITEMS >= 2"
// unroll          = "ITEMS >= 2"
// split_rows      = "BLOCK * VEC * ITEMS <= 2048"   # a row of 4096 is shared by two blocks and more
// more_blocks     = "BLOCK * VEC * ITEMS <= 2048"
// block_size      = "BLOCK <= 384"
// rows_per_block  = "FLAT == 1"
// cache_hints     = "HINT > 0"
// [launch]
// grid  = ["ceildiv(tokens * (d // VEC), BLOCK * ITEMS) if FLAT else ceildiv(d, BLOCK * VEC * ITEMS)",
//          "1 if FLAT else min(tokens, 65535)"]
// block = ["BLOCK"]
// ///
//
// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// A block takes BLOCK * ITEMS vectors, either of one row, the last block of a row being left with fewer, or of
// all rows as if they were one, which takes a division to find the row. All loads of a thread are sent before
// its first result is used. Beyond 65535 rows blocks that stay on rows go on to further ones.
#include <cuda_fp16.h>

#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef VEC
#define VEC 8
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef FLAT
#define FLAT 0
#endif
#ifndef HINT
#define HINT 0
#endif

#if VEC == 4
typedef uint2 raw;
#else
typedef uint4 raw;
#endif

union pack {
    raw bits;
    unsigned pair[VEC / 2];
};

__device__ __forceinline__ raw load(const raw *from)
{
#if HINT == 1 && VEC == 8
    raw v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
#elif HINT == 2
    return __ldcs(from);
#else
    return *from;
#endif
}

__device__ __forceinline__ void store(raw *to, raw v)
{
#if HINT == 2
    __stcs(to, v);
#else
    *to = v;
#endif
}

__device__ __forceinline__ float silu(float x)
{
    return __fdividef(x, 1.0f + __expf(-x));
}

__device__ __forceinline__ raw gated(raw x, raw gate)
{
    pack a, b, c;
    a.bits = x;
    b.bits = gate;
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const float2 u = __half22float2(*(const __half2 *)&a.pair[j]);
        const float2 v = __half22float2(*(const __half2 *)&b.pair[j]);
        const __half2 w = __floats2half2_rn(silu(u.x) * v.x, silu(u.y) * v.y);
        c.pair[j] = *(const unsigned *)&w;
    }
    return c.bits;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
silu_and_mul(__half *out, const __half *input, int tokens, int d)
{
    const unsigned per_row = (unsigned)d / VEC;  // vectors
    raw x[ITEMS], gate[ITEMS];

#if FLAT
    // The row of a thread's first vector takes a division; to its next ones it walks in even steps.
    const unsigned first = blockIdx.x * (BLOCK * ITEMS) + threadIdx.x;
    const unsigned step_rows = BLOCK / per_row, step_columns = BLOCK % per_row;
    unsigned row = first / per_row, column = first % per_row;
    long long to[ITEMS];  // in vectors
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const long long row_start = (long long)row * per_row;
        to[k] = row < (unsigned)tokens ? row_start + column : -1;
        if (to[k] >= 0) {
            x[k] = load((const raw *)input + row_start + to[k]);
            gate[k] = load((const raw *)input + row_start + to[k] + per_row);
        }
        row += step_rows;
        column += step_columns;
        if (column >= per_row) {
            column -= per_row;
            row++;
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (to[k] >= 0)
            store((raw *)out + to[k], gated(x[k], gate[k]));
#else
    const unsigned first = blockIdx.x * (BLOCK * ITEMS) + threadIdx.x;
    for (int token = blockIdx.y; token < tokens; token += gridDim.y) {
        const raw *x_row = (const raw *)input + 2LL * token * per_row;
        const raw *gate_row = x_row + per_row;
        raw *out_row = (raw *)out + (long long)token * per_row;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (first + k * BLOCK < per_row) {
                x[k] = load(x_row + first + k * BLOCK);
                gate[k] = load(gate_row + first + k * BLOCK);
            }
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (first + k * BLOCK < per_row)
                store(out_row + first + k * BLOCK, gated(x[k], gate[k]));
    }
#endif
}
