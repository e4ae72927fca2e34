// /// tunesmith
// [params]
// VEC    = [1, 4, 8]            # values in one load or store: a thread turns that many pairs of a head
// HEADS  = [1, 2, 4, 8]         # heads that a thread takes with the same cosines and sines, all loads at once
// TOKENS = [1, 2, 4]            # tokens in a block
// BLOCK  = [128, 256, 512]      # threads in a block, at most: a token with more is split over blocks
// HINT   = { values = [0, 1, 2], categorical = true }  # 1: results are evicted first; 2: loads as well
// [default]
// VEC    = 1
// HEADS  = 1
// TOKENS = 1
// BLOCK  = 512
// HINT   = 0
// [require]
// whole_vectors = "rot_dim % (2 * VEC) == 0 and head_dim % VEC == 0"
// whole_blocks  = "tokens % TOKENS == 0"     # the kernel is not told how many tokens there are
// head_fits     = "rot_dim * TOKENS <= 2 * VEC * BLOCK"
// [prefer]
// scalars_alone = "VEC > 1 or HEADS * TOKENS == 1"
// two_warps     = "rot_dim * TOKENS * ceildiv(heads + kv_heads, HEADS) >= 2 * VEC * 64"
// whole_tokens  = "TOKENS == 1 or rot_dim * TOKENS * ceildiv(heads + kv_heads, HEADS) <= 2 * VEC * BLOCK"
// block_is_used = "BLOCK == 128 or rot_dim * TOKENS * ceildiv(heads + kv_heads, HEADS) > VEC * BLOCK"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access      = "VEC >= 4"
// items_in_flight  = "VEC * HEADS >= 8"
// unroll           = "HEADS >= 2"
// hoist_invariants = "HEADS >= 2"                 # cosines and sines are loaded once for several heads
// split_rows       = "BLOCK <= 256 and TOKENS == 1"
// more_blocks      = "BLOCK <= 256 and TOKENS == 1"
// rows_per_block   = "TOKENS >= 2"
// block_size       = "BLOCK <= 256"
// cache_hints      = "HINT > 0"
// [launch]
// entry = "rotary_embedding"
// grid  = [
//     "tokens // TOKENS",
//     "ceildiv(heads + kv_heads, HEADS * (2 * VEC * BLOCK // (rot_dim * TOKENS)))",
// ]
// block = [
//     "rot_dim // (2 * VEC)",
//     "ceildiv(heads + kv_heads, HEADS * ceildiv(heads + kv_heads, HEADS * (2 * VEC * BLOCK // (rot_dim * TOKENS))))",
//     "TOKENS",
// ]
// ///
//
// Rotary position embedding in the NeoX layout, in place: in every head of query and key the element i of the
// first half of the rotated part and the element i of its second half turn by the angle (position, i):
//     x' = x * cos - y * sin,  y' = y * cos + x * sin
// A row of the cache holds the cosines of one position, then its sines.
//
// threadIdx.x counts the vectors of half a head, threadIdx.y heads (the key's follow the query's), threadIdx.z
// tokens, so that nothing is divided to find them. The heads are loaded while the position is under way, which
// leads to the cosines and sines. Each pair belongs to one thread, which reads both before it writes either.

#include <cuda_bf16.h>

#ifndef VEC
#define VEC 1
#endif
#ifndef HEADS
#define HEADS 1
#endif
#ifndef TOKENS
#define TOKENS 1
#endif
#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef HINT
#define HINT 0
#endif

#if VEC == 1
typedef unsigned short vec;
#elif VEC == 4
typedef uint2 vec;
#elif VEC == 8
typedef uint4 vec;
#endif

__device__ __forceinline__ vec load(const __nv_bfloat16 *from)
{
#if HINT == 2
    return __ldcs(reinterpret_cast<const vec *>(from));
#else
    return *reinterpret_cast<const vec *>(from);
#endif
}

__device__ __forceinline__ void store(__nv_bfloat16 *to, vec v)
{
#if HINT == 0
    *reinterpret_cast<vec *>(to) = v;
#else
    __stcs(reinterpret_cast<vec *>(to), v);
#endif
}

__device__ __forceinline__ void turn(float &x, float &y, float c, float s)
{
    const float turned = x * c - y * s;
    y = y * c + x * s;
    x = turned;
}

#if VEC == 1
__device__ __forceinline__ void rotate(vec &x, vec &y, const vec &c, const vec &s)
{
    float a = __bfloat162float(__ushort_as_bfloat16(x)), b = __bfloat162float(__ushort_as_bfloat16(y));
    turn(a, b, __bfloat162float(__ushort_as_bfloat16(c)), __bfloat162float(__ushort_as_bfloat16(s)));
    x = __bfloat16_as_ushort(__float2bfloat16_rn(a));
    y = __bfloat16_as_ushort(__float2bfloat16_rn(b));
}
#else
__device__ __forceinline__ float low(unsigned two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float high(unsigned two) { return __uint_as_float(two & 0xffff0000u); }

__device__ __forceinline__ unsigned both(float low, float high)
{
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&two);
}

__device__ __forceinline__ void rotate(vec &x, vec &y, const vec &c, const vec &s)
{
#pragma unroll
    for (int i = 0; i < VEC / 2; i++) {
        unsigned &two_x = reinterpret_cast<unsigned *>(&x)[i], &two_y = reinterpret_cast<unsigned *>(&y)[i];
        const unsigned two_c = reinterpret_cast<const unsigned *>(&c)[i];
        const unsigned two_s = reinterpret_cast<const unsigned *>(&s)[i];
        float x0 = low(two_x), y0 = low(two_y), x1 = high(two_x), y1 = high(two_y);
        turn(x0, y0, low(two_c), low(two_s));
        turn(x1, y1, high(two_c), high(two_s));
        two_x = both(x0, x1);
        two_y = both(y0, y1);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
rotary_embedding(const long long *__restrict__ positions,
                 __nv_bfloat16 *__restrict__ query,
                 __nv_bfloat16 *__restrict__ key,
                 const __nv_bfloat16 *__restrict__ cos_sin_cache,
                 int rot_dim, long long query_stride, long long key_stride,
                 int heads, int kv_heads, int head_dim)
{
    const int half = rot_dim / 2;
    const int column = threadIdx.x * VEC;
    const long long token = static_cast<long long>(blockIdx.x) * TOKENS + threadIdx.z;
    const long long position = __ldg(positions + token);

    const int first = blockIdx.y * blockDim.y + threadIdx.y;
    const int step = gridDim.y * blockDim.y;
    const long long in_query = token * query_stride + column;
    const long long in_key = token * key_stride + column - heads * head_dim;
    const auto place = [=](int head) {
        return (head < heads ? query : key) + ((head < heads ? in_query : in_key) + head * head_dim);
    };

    vec x[HEADS], y[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const int head = first + h * step;
        if (head < heads + kv_heads) {
            const __nv_bfloat16 *from = place(head);
            x[h] = load(from);
            y[h] = load(from + half);
        }
    }

    if (rot_dim == 0)  // never so; but the compiler puts no load off beyond a branch
        __trap();

    const __nv_bfloat16 *row = cos_sin_cache + position * rot_dim + column;
    const vec c = __ldg(reinterpret_cast<const vec *>(row));
    const vec s = __ldg(reinterpret_cast<const vec *>(row + half));

#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const int head = first + h * step;
        if (head < heads + kv_heads) {
            __nv_bfloat16 *to = place(head);
            rotate(x[h], y[h], c, s);
            store(to, x[h]);
            store(to + half, y[h]);
        }
    }
}
