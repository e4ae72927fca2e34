// /// tunesmith
// [params]
// LOCAL  = [1, 8, 64]           # work-items in a group; each takes one row
// VEC    = [1, 8, 16]           # floats in one load or store
// ACC    = [1, 2, 4]            # partial sums of squares that do not wait for each other
// STREAM = [0, 1]               # 1: results go past the cache
// [default]
// LOCAL  = 64
// VEC    = 1
// ACC    = 1
// STREAM = 0
// [require]
// group_fits = "LOCAL <= device.max_threads"
// [prefer]
// sums_of_vectors = "ACC == 1 or VEC > 1"
// stream_whole_lines = "STREAM == 0 or VEC > 1"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// wide_access     = "VEC > 1"
// items_in_flight = "ACC > 1"
// unroll          = "ACC > 1"
// more_blocks     = "LOCAL < 64"
// block_size      = "LOCAL != 64"
// cache_hints     = "STREAM == 1"
// [launch]
// grid  = ["ceildiv(rows, LOCAL)"]
// block = ["LOCAL"]
// ///
//
// out[r, i] = input[r, i] / sqrt(mean(input[r, :]^2) + eps) * weight[i]
// One work-item per row, as in the first version, but a row is walked VEC floats at a time and its
// squares are summed in ACC vectors at once.

#ifndef LOCAL
#define LOCAL 64
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef ACC
#define ACC 1
#endif
#ifndef STREAM
#define STREAM 0
#endif

#if VEC == 1
typedef float vec;
#elif VEC == 8
typedef float8 vec;
#elif VEC == 16
typedef float16 vec;
#endif

// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.
typedef struct __attribute__((packed)) { vec v; } unaligned;
#define LOAD(p) (((__global const unaligned *)(p))->v)

// Streaming stores need whole, aligned vectors: the row's first floats go one by one up to there.
#if STREAM && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STORE(x, p) __builtin_nontemporal_store(x, (__global vec *)(p))
#define LEAD(p) ((-(size_t)(p) & (sizeof(vec) - 1)) / sizeof(float))
#endif
#endif
#ifndef STORE
#define STORE(x, p) (((__global unaligned *)(p))->v = (x))
#define LEAD(p) 0
#endif

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

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1)))
void rmsnorm(__global float *out,
             __global const float *input,
             __global const float *weight,
             float eps, int rows, int d)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    __global const float *from = input + (size_t)row * d;
    __global float *to = out + (size_t)row * d;

    vec s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f, x;
    int i = 0;
    for (; i <= d - VEC * ACC; i += VEC * ACC) {
        x = LOAD(from + i);
        s0 += x * x;
#if ACC >= 2
        x = LOAD(from + i + VEC);
        s1 += x * x;
#endif
#if ACC >= 4
        x = LOAD(from + i + 2 * VEC);
        s2 += x * x;
        x = LOAD(from + i + 3 * VEC);
        s3 += x * x;
#endif
    }
    for (; i <= d - VEC; i += VEC) {
        x = LOAD(from + i);
        s0 += x * x;
    }
    float sum = total((s0 + s1) + (s2 + s3));
    for (; i < d; i++)
        sum += from[i] * from[i];

    float scale = 1.0f / sqrt(sum / d + eps);

    int lead = min(d, (int)LEAD(to));
    for (i = 0; i < lead; i++)
        to[i] = from[i] * scale * weight[i];
    for (; i <= d - VEC; i += VEC)
        STORE(LOAD(from + i) * scale * LOAD(weight + i), to + i);
    for (; i < d; i++)
        to[i] = from[i] * scale * weight[i];
}
