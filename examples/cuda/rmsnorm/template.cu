// /// tunesmith
// [params]
// LANES   = [32, 64, 128, 192, 256, 384, 512, 768, 1024]  # threads to a row
// ROWS    = [1, 2, 4]                 # rows in a block
// VEC     = [1, 2, 4, 8]              # elements in one load or store
// ITEMS   = [0, 1, 2, 3, 4, 6, 8, 16] # vectors of its row a thread keeps; 0: the row is read twice
// EARLY   = [0, 1]                    # 1: weights are loaded before the sum is known
// HINT    = { values = [0, 1, 2], categorical = true }  # 1: loads of rows leave L1 alone; 2: rows are streamed
// PERSIST = [0, 512, 1024]            # 0: a block ends with its rows; else blocks go on to further ones, and
//                                     # there are as many as make this many threads on every multiprocessor
// [default]
// LANES   = 1024
// ROWS    = 1
// VEC     = 1
// ITEMS   = 0
// EARLY   = 0
// HINT    = 0
// PERSIST = 0
// [require]
// block_fits    = "LANES * ROWS <= device.max_threads"
// blocks_go_on  = "PERSIST == 0 or LANES * ROWS <= PERSIST"
// whole_vectors = "d % VEC == 0"
// row_fits      = "ITEMS == 0 or LANES * VEC * ITEMS >= d"
// [prefer]
// no_idle_item   = "ITEMS <= 1 or LANES * VEC * (ITEMS - 1) < d"
// no_idle_lanes  = "LANES * VEC <= 2 * d"
// wide_if_kept   = "VEC == 8 or ITEMS == 0 or (VEC == 4 and LANES >= 256)"
// some_lanes     = "ITEMS > 0 or (LANES >= 256 and ROWS == 1)"
// short_rows     = "ROWS == 1 or LANES <= 128"
// registers      = "max(LANES * ROWS, PERSIST) * (VEC * ITEMS * (1 + EARLY) // 2 + 32) <= 65536"
// early_if_kept  = "EARLY == 0 or 0 < ITEMS <= 8"
// hint_if_kept   = "HINT == 0 or (ITEMS > 0 and VEC == 8)"
// many_to_go_on  = "PERSIST == 0 or (EARLY == 1 and VEC == 8 and tokens >= 1024)"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access      = "VEC >= 4"
// items_in_flight  = "VEC * ITEMS >= 8 or EARLY == 1"
// unroll           = "ITEMS > 0"
// row_in_registers = "ITEMS > 0"
// warp_per_row     = "LANES == 32"
// rows_per_block   = "ROWS >= 2"
// more_blocks      = "ROWS == 1 and PERSIST == 0"
// persistent_grid  = "PERSIST > 0"
// block_size       = "LANES * ROWS <= 512"
// cache_hints      = "HINT > 0"
// [launch]
// grid  = [
//   "min(ceildiv(tokens, ROWS), device.sms * (PERSIST // (LANES * ROWS))) if PERSIST else ceildiv(tokens, ROWS)",
// ]
// block = ["LANES", "ROWS"]
// ///
//
// out[t, i] = bfloat16(input[t, i] * rsqrt(mean(input[t, :]^2) + eps)) * weight[i]
// LANES threads share a row. They read it once and keep it in registers as it came; their sums meet by
// shuffles, and through shared memory where the row has several warps. The roundings are the original's.
#include <cuda_bf16.h>

#ifndef LANES
#define LANES 1024
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef ITEMS
#define ITEMS 0
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef HINT
#define HINT 0
#endif
#ifndef PERSIST
#define PERSIST 0
#endif

#define WARPS (LANES / 32)  // to a row
#define SUMS (WARPS > 16 ? 32 : WARPS > 8 ? 16 : WARPS > 4 ? 8 : WARPS > 2 ? 4 : 2)  // a power of two

#if VEC == 1
typedef unsigned short raw;
#elif VEC == 2
typedef unsigned int raw;
#elif VEC == 4
typedef uint2 raw;
#else
typedef uint4 raw;
#endif

union pack {
    raw bits;
    unsigned short one[VEC];
    unsigned pair[(VEC + 1) / 2];
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

__device__ __forceinline__ float2 pair_of(const pack &p, int j)
{
    return __bfloat1622float2(*(const __nv_bfloat162 *)&p.pair[j]);
}

__device__ __forceinline__ float squares(raw bits)
{
    pack p;
    p.bits = bits;
#if VEC == 1
    const float x = __bfloat162float(__ushort_as_bfloat16(p.one[0]));
    return x * x;
#else
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const float2 x = pair_of(p, j);
        even += x.x * x.x;
        odd += x.y * x.y;
    }
    return even + odd;
#endif
}

__device__ __forceinline__ raw scaled(raw bits, float scale, raw weights)
{
    pack p, w, result;
    p.bits = bits;
    w.bits = weights;
#if VEC == 1
    const float x = __bfloat162float(__ushort_as_bfloat16(p.one[0]));
    result.one[0] = __bfloat16_as_ushort(__hmul(__float2bfloat16_rn(x * scale), __ushort_as_bfloat16(w.one[0])));
#else
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const float2 x = pair_of(p, j);
        const __nv_bfloat162 normal = __floats2bfloat162_rn(x.x * scale, x.y * scale);
        const __nv_bfloat162 product = __hmul2(normal, *(const __nv_bfloat162 *)&w.pair[j]);
        result.pair[j] = *(const unsigned *)&product;
    }
#endif
    return result.bits;
}

// Keeps the compiler from holding on to the floats it made of these bits, which take twice the registers.
__device__ __forceinline__ void forget(raw &v)
{
#if VEC == 1
    asm volatile("" : "+h"(v));
#elif VEC == 2
    asm volatile("" : "+r"(v));
#elif VEC == 4
    asm volatile("" : "+r"(v.x), "+r"(v.y));
#else
    asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
#endif
}

// The sum over the row's threads, for each of them. Every thread of the block must come here.
__device__ __forceinline__ float row_sum(float sum, float *of_warp)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
#if WARPS > 1
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x % SUMS < WARPS ? of_warp[threadIdx.x % SUMS] : 0.0f;
#pragma unroll
    for (int step = SUMS / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
#endif
    return sum;
}

extern "C" __global__ void __launch_bounds__(LANES * ROWS, PERSIST ? PERSIST / (LANES * ROWS) : 1)
rmsnorm(__nv_bfloat16 *__restrict__ out, const __nv_bfloat16 *__restrict__ input,
        const __nv_bfloat16 *weight, float eps, int tokens, int d)
{
    __shared__ float of_warp[2][ROWS][WARPS];
    const raw *weights = (const raw *)weight;
    const int per_row = d / VEC;  // vectors
    const int lane = threadIdx.x;

#if ITEMS && EARLY
    raw w[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        w[k] = lane + k * LANES < per_row ? weights[lane + k * LANES] : raw();
#endif

#if PERSIST
    int turn = 0;  // Sums of one turn may still be read while those of the next are written.
    for (int first = blockIdx.x * ROWS; first < tokens; first += gridDim.x * ROWS, turn ^= 1) {
#else
    const int turn = 0;
    const int first = blockIdx.x * ROWS;
    {
#endif
        const int token = first + threadIdx.y;
        const int count = ROWS == 1 || token < tokens ? per_row : 0;  // the last block may lack rows
        const raw *from = (const raw *)input + (long long)token * per_row;
        raw *to = (raw *)out + (long long)token * per_row;
        float sum = 0.0f;

#if ITEMS
        raw x[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            x[k] = lane + k * LANES < count ? load(from + lane + k * LANES) : raw();
        if (lane < count) {  // the branch keeps all loads before it
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                sum += squares(x[k]);
        }
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            forget(x[k]);
#else
        for (int i = lane; i < count; i += LANES)
            sum += squares(load(from + i));
#endif

        const float mean = __fdividef(row_sum(sum, of_warp[turn][threadIdx.y]), d);
        const float scale = rsqrtf(mean + eps);

#if ITEMS && EARLY
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (lane + k * LANES < count)
                store(to + lane + k * LANES, scaled(x[k], scale, w[k]));
#elif ITEMS
#pragma unroll
        for (int group = 0; group < ITEMS; group += 4) {  // four loads of weights under way at once
            raw w[4];
#pragma unroll
            for (int k = group; k < ITEMS && k < group + 4; k++)
                w[k - group] = lane + k * LANES < count ? weights[lane + k * LANES] : raw();
#pragma unroll
            for (int k = group; k < ITEMS && k < group + 4; k++)
                if (lane + k * LANES < count)
                    store(to + lane + k * LANES, scaled(x[k], scale, w[k - group]));
        }
#else
        for (int i = lane; i < count; i += LANES)
            store(to + i, scaled(load(from + i), scale, weights[i]));
#endif
    }
}
