// /// tunesmith
// [params]
// BLOCK = [64, 128, 256, 512, 1024]   # threads, side by side on one row
// VEC   = [1, 2, 4, 8]                # elements in one load or store
// ITEMS = [1, 2, 4]                   # vectors a thread has under way at once, BLOCK vectors apart
// FAST  = [0, 1]                      # 1: exponential and quotient from the special-function unit
// HINT  = { values = [0, 1, 2], categorical = true }  # 1: loads leave L1 alone; 2: everything is streamed
// [default]
// BLOCK = 128
// VEC   = 1
// ITEMS = 1
// FAST  = 0
// HINT  = 0
// [require]
// block_fits    = "BLOCK <= device.max_threads"
// whole_vectors = "d % VEC == 0"
// [prefer]
// no_idle_block    = "BLOCK * VEC * ITEMS < 2 * d"
// hints_are_for_16 = "HINT == 0 or VEC == 8"
// room_for_two     = "BLOCK * VEC * ITEMS <= 16384"   # blocks on one multiprocessor, by their registers
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access     = "VEC >= 4"
// items_in_flight = "VEC * ITEMS >= 8"
// unroll          = "ITEMS >= 2"
// split_rows      = "BLOCK * VEC * ITEMS <= 2048"   # a row of 4096 is shared by two blocks and more
// more_blocks     = "BLOCK * VEC * ITEMS <= 1024"
// block_size      = "BLOCK != 128"
// fast_intrinsics = "FAST == 1"
// cache_hints     = "HINT > 0"
// [launch]
// entry = "silu_and_mul"
// grid  = ["ceildiv(d, BLOCK * VEC * ITEMS)", "min(tokens, 65535)"]
// block = ["BLOCK"]
// ///
//
// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// A block takes BLOCK * ITEMS vectors of one row. All its loads are sent before the first result is used, and
// neighbouring blocks take neighbouring pieces of memory. Beyond 65535 rows blocks go on to further ones.
#include <cuda_fp16.h>

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef FAST
#define FAST 0
#endif
#ifndef HINT
#define HINT 0
#endif

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
    unsigned short half[VEC];
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
#if FAST
    return __fdividef(x, 1.0f + __expf(-x));
#else
    return x / (1.0f + expf(-x));
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
silu_and_mul(__half *out, const __half *input, int tokens, int d, long long out_stride, long long input_stride)
{
    const int first = (blockIdx.x * (BLOCK * ITEMS) + threadIdx.x) * VEC;

    for (int token = blockIdx.y; token < tokens; token += gridDim.y) {
        const __half *x_row = input + token * input_stride;
        const __half *gate_row = x_row + d;
        __half *out_row = out + token * out_stride;

        raw x[ITEMS], gate[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * (BLOCK * VEC);
            if (i < d) {
                x[k] = load((const raw *)(x_row + i));
                gate[k] = load((const raw *)(gate_row + i));
            }
        }
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * (BLOCK * VEC);
            if (i < d) {
                pack a, b, c;
                a.bits = x[k];
                b.bits = gate[k];
#pragma unroll
                for (int j = 0; j < VEC; j++) {
                    const float value = silu(__half2float(__ushort_as_half(a.half[j])));
                    const float result = value * __half2float(__ushort_as_half(b.half[j]));
                    c.half[j] = __half_as_ushort(__float2half_rn(result));
                }
                store((raw *)(out_row + i), c.bits);
            }
        }
    }
}
