// /// tunesmith
// [params]
// LANES   = [64, 128, 192, 256, 352, 448, 512, 704, 896, 1024]  # threads to a row
// ROWS    = [1, 2]                    # rows in a block
// VEC     = [4, 8]                    # elements in one load or store
// ITEMS   = [0, 1, 2, 3, 4, 6, 7, 8]  # vectors of its row a thread keeps; 0: the row is kept in shared memory
// EARLY   = [0, 1]                    # 1: weights are loaded before the sum is known
// HINT    = { values = [0, 1, 2], categorical = true }  # 1: loads of rows leave L1 alone; 2: rows are streamed
// PERSIST = [0, 512, 1024]            # 0: a block ends with its rows; else blocks go on to further ones, and
//                                     # there are as many as make this many threads on every multiprocessor
// [default]
// LANES   = 1024
// ROWS    = 1
// VEC     = 8
// ITEMS   = 0
// EARLY   = 0
// HINT    = 0
// PERSIST = 0
// [require]
// block_fits    = "LANES * ROWS <= device.max_threads"
// blocks_go_on  = "PERSIST == 0 or LANES * ROWS <= PERSIST"
// whole_vectors = "d % VEC == 0"
// row_fits      = "ITEMS == 0 or LANES * VEC * ITEMS >= d"
// memory_fits   = "ITEMS > 0 or 4 * d * ROWS + 1024 <= device.shared"
// [prefer]
// no_idle_item   = "ITEMS <= 1 or LANES * VEC * (ITEMS - 1) < d"
// no_idle_lanes  = "LANES * VEC <= 2 * d"
// wide_or_plain  = "VEC == 8 or (HINT == 0 and EARLY == 0 and PERSIST == 0 and ROWS == 1)"
// some_lanes     = "ITEMS > 0 or (LANES >= 256 and ROWS == 1 and EARLY == 0 and PERSIST == 0)"
// short_rows     = "ROWS == 1 or LANES <= 256"
// registers      = "max(LANES * ROWS, PERSIST) * (VEC * ITEMS * 5 * (2 + EARLY) // 8 + 34) <= 65536"
// many_to_go_on  = "PERSIST == 0 or (EARLY == 1 and tokens >= 512)"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access      = "VEC == 8"
// items_in_flight  = "ITEMS >= 2 or EARLY == 1"
// unroll           = "ITEMS > 0"
// row_in_registers = "ITEMS > 0"
// less_shared      = "ITEMS > 0"
// rows_per_block   = "ROWS >= 2"
// more_blocks      = "ROWS == 1 and PERSIST == 0"
// persistent_grid  = "PERSIST > 0"
// block_size       = "LANES * ROWS <= 512"
// cache_hints      = "HINT > 0"
// [launch]
// grid   = [
//   "min(ceildiv(tokens, ROWS), device.sms * (PERSIST // (LANES * ROWS))) if PERSIST else ceildiv(tokens, ROWS)",
// ]
// block  = ["LANES", "ROWS"]
// shared = "0 if ITEMS else 4 * d * ROWS"
// ///
//
// residual[t, :] += input[t, :], then input[t, i] = residual[t, i] * rsqrt(mean(residual[t, :]^2) + eps) * weight[i]
// LANES threads share a row. They read both arrays once and keep the sum in float32, in registers; their sums of
// squares meet by shuffles, and through shared memory where the row has several warps. What is normalised is
// the sum before it is rounded for the residual, as in the original.
#include <cuda_fp16.h>

#ifndef LANES
#define LANES 1024
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef VEC
#define VEC 8
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

#if VEC == 4
typedef uint2 raw;
#else
typedef uint4 raw;
#endif

union pack {
    raw bits;
    unsigned pair[VEC / 2];
};

struct __align__(16) floats {
    float at[VEC];
};

// The rows are written here, too: loads through the read-only path are not for them.
__device__ __forceinline__ raw load(const raw *from)
{
#if HINT == 1 && VEC == 8
    raw v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
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

__device__ __forceinline__ floats added(raw one, raw other)
{
    pack p, q;
    floats sum;
    p.bits = one;
    q.bits = other;
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const float2 a = __half22float2(*(const __half2 *)&p.pair[j]);
        const float2 b = __half22float2(*(const __half2 *)&q.pair[j]);
        sum.at[2 * j] = a.x + b.x;
        sum.at[2 * j + 1] = a.y + b.y;
    }
    return sum;
}

__device__ __forceinline__ float squares(const floats &x)
{
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int j = 0; j < VEC; j += 2) {
        even += x.at[j] * x.at[j];
        odd += x.at[j + 1] * x.at[j + 1];
    }
    return even + odd;
}

__device__ __forceinline__ raw rounded(const floats &x)
{
    pack result;
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const __half2 two = __floats2half2_rn(x.at[2 * j], x.at[2 * j + 1]);
        result.pair[j] = *(const unsigned *)&two;
    }
    return result.bits;
}

__device__ __forceinline__ raw scaled(floats x, float scale, raw weights)
{
    pack w;
    w.bits = weights;
#pragma unroll
    for (int j = 0; j < VEC / 2; j++) {
        const float2 two = __half22float2(*(const __half2 *)&w.pair[j]);
        x.at[2 * j] *= scale * two.x;
        x.at[2 * j + 1] *= scale * two.y;
    }
    return rounded(x);
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
fused_add_rmsnorm(__half *__restrict__ input, __half *__restrict__ residual, const __half *weight,
                  float eps, int tokens, int d)
{
    __shared__ float of_warp[2][ROWS][WARPS];
    const raw *weights = (const raw *)weight;
    const int per_row = d / VEC;  // vectors
    const int lane = threadIdx.x;

#if ITEMS == 0
    extern __shared__ floats kept[];
    floats *row = kept + threadIdx.y * per_row;
#elif EARLY
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
        raw *inputs = (raw *)input + (long long)token * per_row;
        raw *residuals = (raw *)residual + (long long)token * per_row;
        float sum = 0.0f;

#if ITEMS
        raw a[ITEMS], b[ITEMS];
        floats x[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            a[k] = lane + k * LANES < count ? load(inputs + lane + k * LANES) : raw();
            b[k] = lane + k * LANES < count ? load(residuals + lane + k * LANES) : raw();
        }
        if (lane < count) {  // the branch keeps all loads before it
#pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                x[k] = added(a[k], b[k]);
                sum += squares(x[k]);
                if (lane + k * LANES < count)
                    store(residuals + lane + k * LANES, rounded(x[k]));
            }
        }
#else
        for (int i = lane; i < count; i += LANES) {
            const floats x = added(load(inputs + i), load(residuals + i));
            sum += squares(x);
            store(residuals + i, rounded(x));
            row[i] = x;
        }
#endif

        const float mean = __fdividef(row_sum(sum, of_warp[turn][threadIdx.y]), d);
        const float scale = rsqrtf(mean + eps);

#if ITEMS && EARLY
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (lane + k * LANES < count)
                store(inputs + lane + k * LANES, scaled(x[k], scale, w[k]));
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
                    store(inputs + lane + k * LANES, scaled(x[k], scale, w[k - group]));
        }
#else
        for (int i = lane; i < count; i += LANES)
            store(inputs + i, scaled(row[i], scale, weights[i]));
#endif
    }
}
