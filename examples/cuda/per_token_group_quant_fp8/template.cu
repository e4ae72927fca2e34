// /// tunesmith
// [params]
// BLOCK  = [64, 128, 256, 512]  # threads in a block
// PACKS  = [1, 2, 4]            # packs of 8 values that a thread takes of a group, which has 16 of them
// GROUPS = [1, 2, 4]            # groups that a thread has a part in, all their loads at once
// WIDE   = [0, 1]               # 1: a thread's packs lie in pairs and leave in stores of 16 bytes, not of 8
// LOAD   = { values = [0, 1, 2], categorical = true }  # 0: through L1; 1: not kept in L1; 2: evicted first
// STORE  = { values = [0, 1], categorical = true }     # 1: results are evicted first
// DIVIDE = [0, 1]               # 1: one reciprocal to a group, and products with it set right, for divisions
// [default]
// BLOCK  = 256
// PACKS  = 1
// GROUPS = 1
// WIDE   = 0
// LOAD   = 0
// STORE  = 0
// DIVIDE = 0
// [require]
// pairs = "WIDE == 0 or PACKS >= 2"
// [prefer]
// few_registers  = "PACKS * GROUPS <= 4"
// few_divisions  = "DIVIDE == 1 or PACKS * GROUPS == 1"
// pairs_in_cache = "WIDE == 0 or LOAD != 1"  # a load of one half of a pair takes half of each sector
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access      = "WIDE == 1"
// items_in_flight  = "PACKS * GROUPS >= 2"
// unroll           = "PACKS * GROUPS >= 2"
// reciprocal       = "DIVIDE == 1"
// hoist_invariants = "DIVIDE == 1"
// more_blocks      = "BLOCK * PACKS * GROUPS <= 256"
// block_size       = "BLOCK != 256"
// cache_hints      = "LOAD > 0 or STORE > 0"
// [launch]
// entry = "per_token_group_quant"
// grid  = ["ceildiv(tokens * (d // 128), GROUPS * (BLOCK * PACKS // 16))"]
// block = ["BLOCK"]
// ///
//
// Quantisation to float8 (e4m3), with a scale of its own for each group of 128 neighbours in a row:
//     scale = max(eps, largest |x| of the group) / fp8_max,  q = x / scale, held within fp8_min and fp8_max
// A group is read once: it stays in the registers of THREADS threads side by side, which find its largest
// value by shuffles.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef PACKS
#define PACKS 1
#endif
#ifndef GROUPS
#define GROUPS 1
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef LOAD
#define LOAD 0
#endif
#ifndef STORE
#define STORE 0
#endif
#ifndef DIVIDE
#define DIVIDE 0
#endif

// Callers pass 128 as group_size, and 448 as fp8_max.
#define GROUP_PACKS 16
#define FP8_MAX 448.0f
#define THREADS (GROUP_PACKS / PACKS)  // for a group
#define TEAMS (BLOCK / THREADS)        // groups in a block at a time

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

template <typename V>
__device__ __forceinline__ void store(V *to, V v)
{
#if STORE == 0
    *to = v;
#else
    __stcs(to, v);
#endif
}

// Which pack of the group a thread's p-th one is.
__device__ __forceinline__ int place(int lane, int p)
{
#if WIDE
    return (p / 2 * THREADS + lane) * 2 + p % 2;
#else
    return p * THREADS + lane;
#endif
}

__device__ __forceinline__ __nv_bfloat162 larger(__nv_bfloat162 most, unsigned two)
{
    return __hmax2(most, __habs2(*reinterpret_cast<const __nv_bfloat162 *>(&two)));
}

// x / by. With its reciprocal at hand that is a product and a correction: the remainder is exact in one fma.
// For values of 8 bits and the scales made of them every such quotient is the division's own, to the last bit.
// (A product below the range of floats needs an |x| far below the scale, and is 0 as a code in any case.)
// By an infinite scale the product with 0 is the quotient already, and has no remainder.
__device__ __forceinline__ float divide(float x, float by, float inverse)
{
#if DIVIDE
    const float q = x * inverse;
    return isinf(by) ? q : fmaf(fmaf(-q, by, x), inverse, q);
#else
    return x / by;
#endif
}

__device__ __forceinline__ float inverse_of(float x)
{
#if DIVIDE
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return isinf(x) ? y : fmaf(fmaf(-x, y, 1.0f), y, y);
#else
    return 0.0f;
#endif
}

// What is not a number becomes the smallest one.
__device__ __forceinline__ float clamped(float x, float low, float high) { return fminf(fmaxf(x, low), high); }

// Two values to two codes.
__device__ __forceinline__ unsigned codes(unsigned two, float scale, float inverse, float least, float most)
{
    const float low = divide(__uint_as_float(two << 16), scale, inverse);
    const float high = divide(__uint_as_float(two & 0xffff0000u), scale, inverse);
    const float2 both = make_float2(clamped(low, least, most), clamped(high, least, most));
    return __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ uint2 codes(uint4 pack, float scale, float inverse, float least, float most)
{
    return make_uint2(
        codes(pack.x, scale, inverse, least, most) | codes(pack.y, scale, inverse, least, most) << 16,
        codes(pack.z, scale, inverse, least, most) | codes(pack.w, scale, inverse, least, most) << 16);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
per_token_group_quant(const __nv_bfloat16 *__restrict__ input,
                      __nv_fp8_e4m3 *__restrict__ output_q,
                      float *__restrict__ output_s,
                      int group_size, int num_groups,
                      float eps, float fp8_min, float fp8_max)
{
    const int lane = threadIdx.x % THREADS;
    const int first = blockIdx.x * (TEAMS * GROUPS) + threadIdx.x / THREADS;

    uint4 x[GROUPS][PACKS];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const int group = min(first + g * TEAMS, num_groups - 1);  // beyond the end: the last one again
        const uint4 *from = reinterpret_cast<const uint4 *>(input) + static_cast<size_t>(group) * GROUP_PACKS;
#pragma unroll
        for (int p = 0; p < PACKS; p++)
            x[g][p] = load(from + place(lane, p));
    }

    float absmax[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        __nv_bfloat162 most = __halves2bfloat162(__ushort_as_bfloat16(0), __ushort_as_bfloat16(0));
#pragma unroll
        for (int p = 0; p < PACKS; p++)
            most = larger(larger(larger(larger(most, x[g][p].x), x[g][p].y), x[g][p].z), x[g][p].w);
        absmax[g] = fmaxf(eps, fmaxf(__low2float(most), __high2float(most)));
#pragma unroll
        for (int step = THREADS / 2; step > 0; step /= 2)
            absmax[g] = fmaxf(absmax[g], __shfl_xor_sync(0xffffffffu, absmax[g], step));
    }

#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const int group = first + g * TEAMS;
        if (group >= num_groups)
            return;
        const float scale = isinf(absmax[g]) ? absmax[g] : divide(absmax[g], FP8_MAX, 1.0f / FP8_MAX);
        const float inverse = inverse_of(scale);
        if (lane == 0)
            output_s[group] = scale;
        uint2 *to = reinterpret_cast<uint2 *>(output_q) + static_cast<size_t>(group) * GROUP_PACKS;
#pragma unroll
        for (int p = 0; p < PACKS; p += 1 + WIDE) {
            const uint2 q = codes(x[g][p], scale, inverse, fp8_min, fp8_max);
#if WIDE
            const uint2 next = codes(x[g][p + 1], scale, inverse, fp8_min, fp8_max);
            store(reinterpret_cast<uint4 *>(to + place(lane, p)), make_uint4(q.x, q.y, next.x, next.y));
#else
            store(to + place(lane, p), q);
#endif
        }
    }
}
