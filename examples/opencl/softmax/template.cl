// /// tunesmith
// [params]
// LOCAL  = [1, 8, 64]           # work-items in a group; each takes one row
// VEC    = [1, 8, 16]           # floats in one load, exponential or store
// ACC    = [1, 2]               # partial maxima and sums that do not wait for each other
// EXP    = [0, 1]               # 0: the library's exp; 1: our own, written out in place
// LAST   = [0, 1, 2]            # last pass: 0 divides what waits in the output; 1 computes the
//                               # exponentials again; 2 does so too, and results go past the cache
// [default]
// LOCAL  = 64
// VEC    = 1
// ACC    = 1
// EXP    = 0
// LAST   = 0
// [require]
// group_fits = "LOCAL <= device.max_threads"
// whole_vector = "VEC <= d"
// [prefer]
// sums_of_vectors = "ACC == 1 or VEC > 1"
// stream_whole_lines = "LAST < 2 or VEC > 1"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access     = "VEC > 1"
// items_in_flight = "ACC > 1"
// unroll          = "ACC > 1"
// more_blocks     = "LOCAL < 64"
// block_size      = "LOCAL != 64"
// fast_intrinsics = "EXP == 1"
// cache_hints     = "LAST == 2"
// [launch]
// grid  = ["ceildiv(rows, LOCAL)"]
// block = ["LOCAL"]
// ///
//
// out[r, i] = exp(input[r, i] - max(input[r, :])) / (the sum of the row's exponentials)
// One work-item per row, as in the first version, but a row is walked VEC floats at a time. Where VEC
// does not divide d, the row's last vector reaches back over floats that have had their turn.

#ifndef LOCAL
#define LOCAL 64
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef ACC
#define ACC 1
#endif
#ifndef EXP
#define EXP 0
#endif
#ifndef LAST
#define LAST 0
#endif

#if VEC == 1
typedef float vec;
typedef int ivec;
#define LANE 0
#define AS_IVEC as_int
#define AS_VEC as_float
#elif VEC == 8
typedef float8 vec;
typedef int8 ivec;
#define LANE ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#define AS_IVEC as_int8
#define AS_VEC as_float8
#elif VEC == 16
typedef float16 vec;
typedef int16 ivec;
#define LANE ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define AS_IVEC as_int16
#define AS_VEC as_float16
#endif

// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.
typedef struct __attribute__((packed)) { vec v; } unaligned;
#define LOAD(p) (((__global const unaligned *)(p))->v)
#define STORE(x, p) (((__global unaligned *)(p))->v = (x))

// Streaming stores need whole, aligned vectors: LEAD floats come before the first of them.
#if LAST == 2 && defined(__has_builtin)
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
    x = x < -104.0f ? (vec)(-104.0f) : x;             // 0 below; NaN passes; never above 0 here
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
    ivec half_n = n >> 1;                             // two steps, so that neither 2^k underflows
    return p * AS_VEC((half_n + 127) << 23) * AS_VEC((n - half_n + 127) << 23);
}
#endif

// A NaN may be lost or may stay here; either way the row's sum, and so the row, becomes NaN.
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

float largest_of(vec v)
{
#if VEC == 1
    return v;
#else
#if VEC == 16
    float8 a = LARGER(v.lo, v.hi);
#else
    float8 a = v;
#endif
    float4 b = LARGER(a.lo, a.hi);
    return LARGER(LARGER(b.x, b.y), LARGER(b.z, b.w));
#endif
}

float total(vec v)
{
#if VEC == 1
    return v;
#else
#if VEC == 16
    float8 a = v.lo + v.hi;
#else
    float8 a = v;
#endif
    float4 b = a.lo + a.hi;
    return (b.x + b.y) + (b.z + b.w);
#endif
}

vec powers(__global const float *from, float largest)
{
    return EXP_OF(LOAD(from) - largest);
}

// The same, left in the output for the last pass where that wants it.
vec kept_powers(__global float *to, __global const float *from, float largest)
{
    vec p = powers(from, largest);
#if LAST == 0
    STORE(p, to);
#endif
    return p;
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1)))
void softmax(__global float *out,
             __global const float *input,
             int rows, int d)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    __global const float *from = input + (size_t)row * d;
    __global float *to = out + (size_t)row * d;
    const int back = d - VEC;  // where the row's last vector starts
    int i;

    vec m0 = LOAD(from + back), m1 = m0;
    for (i = 0; i <= d - VEC * ACC; i += VEC * ACC) {
        vec x = LOAD(from + i);
        m0 = LARGER(x, m0);
#if ACC == 2
        x = LOAD(from + i + VEC);
        m1 = LARGER(x, m1);
#endif
    }
#if ACC == 2
    if (i <= back) {
        vec x = LOAD(from + i);
        m0 = LARGER(x, m0);
    }
#endif
    float largest = largest_of(LARGER(m0, m1));

    vec s0 = 0.0f, s1 = 0.0f;
    for (i = 0; i <= d - VEC * ACC; i += VEC * ACC) {
        s0 += kept_powers(to + i, from + i, largest);
#if ACC == 2
        s1 += kept_powers(to + i + VEC, from + i + VEC, largest);
#endif
    }
#if ACC == 2
    if (i <= back) {
        s0 += kept_powers(to + i, from + i, largest);
        i += VEC;
    }
#endif
    if (i < d) {
        vec p = kept_powers(to + back, from + back, largest);
        s1 += LANE < i - back ? (vec)(0.0f) : p;  // the first lanes are in the sum already
    }
    float sum = total(s0 + s1);

#if LAST == 0
    for (i = 0; i <= back; i += VEC)
        STORE(LOAD(to + i) / sum, to + i);
    for (; i < d; i++)
        to[i] /= sum;
#else
    int lead = LEAD(to);
    if (lead > 0)
        STORE(powers(from, largest) / sum, to);
    for (i = lead; i <= back; i += VEC)
        STREAM_STORE(powers(from + i, largest) / sum, to + i);
    if (i < d)
        STORE(powers(from + back, largest) / sum, to + back);
#endif
}
