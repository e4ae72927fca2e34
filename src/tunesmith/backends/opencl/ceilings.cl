// What an OpenCL device can do at best: kernels that move bytes, multiply and add, and nothing else.

__kernel void copy1(__global uint4 *out, __global const uint4 *in, long n)
{
    const long i = get_global_id(0);
    if (i < n)
        out[i] = in[i];
}

__kernel void copy4(__global uint4 *out, __global const uint4 *in, long n)
{
    const long width = get_local_size(0);
    const long first = get_group_id(0) * width * 4 + get_local_id(0);
    for (long i = first; i < first + 4 * width && i < n; i += width)
        out[i] = in[i];
}

// A stretch for each work-item: what suits a CPU, where a work-item is a turn of a loop.
#define STRETCH 256
__kernel void copy256(__global uint4 *out, __global const uint4 *in, long n)
{
    const long first = get_global_id(0) * STRETCH;
    const long end = min(first + STRETCH, n);
    for (long i = first; i < end; i++)
        out[i] = in[i];
}

// Stored only where four words in a row are all ones, which no draw is; the compiler cannot know.
__kernel void read1(__global uint *out, __global const uint4 *in, long n)
{
    const long i = get_global_id(0);
    const uint4 own = i < n ? in[i] : (uint4)(0);
    if ((own.x & own.y & own.z & own.w) == 0xffffffffu)
        out[0] = own.x;
}

__kernel void read4(__global uint *out, __global const uint4 *in, long n)
{
    const long width = get_local_size(0);
    const long first = get_group_id(0) * width * 4 + get_local_id(0);
    uint all = 0;
    for (long i = first; i < first + 4 * width && i < n; i += width) {
        const uint4 own = in[i];
        all |= own.x & own.y & own.z & own.w;
    }
    if (all == 0xffffffffu)
        out[0] = all;
}

__kernel void read256(__global uint *out, __global const uint4 *in, long n)
{
    const long first = get_global_id(0) * STRETCH;
    const long end = min(first + STRETCH, n);
    uint4 all = (uint4)(0xffffffffu);
    for (long i = first; i < end; i++)
        all &= in[i];
    if (first < n && (all.x & all.y & all.z & all.w) == 0xffffffffu)
        out[0] = all.x;
}

__kernel void empty(void) {}

// Eight chains of vectors a work-item, each a multiply-add after the other. They stay near 1, never reach -1.
// Written so that compilers contract it: some call a library for mad.
#define STEP(x) x = x * by + plus
__kernel void fp32(__global float *out, float a, float b, int rounds)
{
    const float8 by = (float8)(a), plus = (float8)(b);
    float8 x0 = (float8)(1.0f + 0.01f * get_local_id(0)), x1 = x0 + 0.1f, x2 = x0 + 0.2f, x3 = x0 + 0.3f;
    float8 x4 = x0 + 0.4f, x5 = x0 + 0.5f, x6 = x0 + 0.6f, x7 = x0 + 0.7f;
    for (int i = 0; i < rounds; i++) {
        STEP(x0), STEP(x1), STEP(x2), STEP(x3), STEP(x4), STEP(x5), STEP(x6), STEP(x7);
    }
    const float8 sum = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
    if (sum.s0 + sum.s1 + sum.s2 + sum.s3 + sum.s4 + sum.s5 + sum.s6 + sum.s7 == -1.0f)
        out[0] = sum.s0;
}
