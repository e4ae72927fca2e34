// /// tunesmith
// [params]
// LOCAL  = [1, 16, 256]         # work-items in a group, side by side on one row
// ITEMS  = [1, 4, 16]           # vectors a work-item takes, one after the other
// VEC    = [1, 8, 16]           # floats in one load, exponential or store
// EXP    = [0, 1]               # 0: the library's exp; 1: our own, written out in place
// STREAM = [0, 1]               # 1: results go past the cache
// [default]
// LOCAL  = 256
// ITEMS  = 1
// VEC    = 1
// EXP    = 0
// STREAM = 0
// [require]
// group_fits = "LOCAL <= device.max_threads"
// [prefer]
// enough_work = "LOCAL * ITEMS * VEC >= 64"
// no_idle_group = "LOCAL * ITEMS * VEC < 2 * d"
// stream_whole_lines = "STREAM == 0 or VEC > 1"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access     = "VEC > 1"
// items_in_flight = "ITEMS > 1"
// unroll          = "ITEMS > 1"
// more_blocks     = "LOCAL * ITEMS * VEC <= 256"
// block_size      = "LOCAL != 256"
// fast_intrinsics = "EXP == 1"
// cache_hints     = "STREAM == 1"
// [launch]
// grid  = ["tokens", "ceildiv(d, LOCAL * ITEMS * VEC)"]
// block = ["LOCAL", "1"]
// ///
//
// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// A group stays on one row, so nothing is divided to find it; a work-item takes a run of columns.

#ifndef LOCAL
#define LOCAL 256
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef EXP
#define EXP 0
#endif
#ifndef STREAM
#define STREAM 0
#endif

#if VEC == 1
typedef float vec;
typedef int ivec;
#define AS_IVEC as_int
#define AS_VEC as_float
#elif VEC == 8
typedef float8 vec;
typedef int8 ivec;
#define AS_IVEC as_int8
#define AS_VEC as_float8
#elif VEC == 16
typedef float16 vec;
typedef int16 ivec;
#define AS_IVEC as_int16
#define AS_VEC as_float16
#endif

// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.
typedef struct __attribute__((packed)) { vec v; } unaligned;
#define LOAD(p) (((__global const unaligned *)(p))->v)

#define STORE(x, p) (((__global unaligned *)(p))->v = (x))

// Streaming stores need whole, aligned vectors: LEAD floats come before the first of them.
#if STREAM && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(x, p) __builtin_nontemporal_store(x, (__global vec *)(p))
#define LEAD(p) ((int)((-(size_t)(p) & (sizeof(vec) - 1)) / sizeof(float)))
#endif
#endif
#ifndef STREAM_STORE
#define STREAM_STORE(x, p) STORE(x, p)
#define LEAD(p) 0
#endif

#if EXP == 0
#define EXP_OF(x) exp(x)
#else
// exp(x) = 2^n * exp(r), with n the integer nearest to x / ln 2 and r what is left.
vec EXP_OF(vec x)
{
    x = x < -104.0f ? (vec)(-104.0f) : x;             // 0 below, infinity above; NaN passes
    x = x > 89.0f ? (vec)(89.0f) : x;
    vec shifted = x * 1.44269504f + 12582912.0f;      // 1.5 * 2^23: n ends up in the lowest bits
    ivec n = AS_IVEC(shifted) - 0x4b400000;
    vec whole = shifted - 12582912.0f;
    vec r = x - whole * 0.693145751953125f;           // ln 2 in two parts, the first times n is exact
    r = r - whole * 1.42860677e-6f;
    // 1 + r + r^2 * (a polynomial fitted for |r| <= ln(2) / 2, good to 1e-10)
    vec p = 1.979002700e-4f;
    p = p * r + 1.394497813e-3f;
    p = p * r + 8.333498612e-3f;
    p = p * r + 4.166629165e-2f;
    p = p * r + 1.666666567e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    ivec half_n = n >> 1;                             // two steps, so that neither 2^k overflows
    return p * AS_VEC((half_n + 127) << 23) * AS_VEC((n - half_n + 127) << 23);
}
#endif

vec gated(__global const float *x, __global const float *gate)
{
    vec v = LOAD(x);
    return v / (1.0f + EXP_OF(-v)) * LOAD(gate);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1)))
void silu_and_mul(__global float *out,
                  __global const float *input,
                  int tokens, int d)
{
    size_t token = get_group_id(0);
    int i = (get_group_id(1) * LOCAL + get_local_id(0)) * (ITEMS * VEC);
    int end = min(d, i + ITEMS * VEC);

    __global const float *x = input + token * 2 * d;
    __global const float *gate = x + d;
    __global float *to = out + token * d;

    if (end - i < VEC) {  // also when nothing is left
        for (; i < end; i++)
            to[i] = x[i] / (1.0f + exp(-x[i])) * gate[i];
        return;
    }

    // The first and the last vector may overlap their neighbours: they write the same values again.
    int lead = LEAD(to + i);
    if (lead > 0)
        STORE(gated(x + i, gate + i), to + i);
    for (i += lead; i <= end - VEC; i += VEC)
        STREAM_STORE(gated(x + i, gate + i), to + i);
    if (i < end)
        STORE(gated(x + end - VEC, gate + end - VEC), to + end - VEC);
}
