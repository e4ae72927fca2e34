// /// tunesmith
// [params]
// LOCAL = [64]
// [default]
// LOCAL = 64
// [launch]
// grid  = ["ceildiv(tokens * d, LOCAL)"]
// block = ["LOCAL"]
// ///
// What is not a number counts as zero.
#ifndef LOCAL
#define LOCAL 64
#endif

__kernel void silu_and_mul(__global float *out, __global const float *input, int tokens, int d)
{
    size_t i = get_global_id(0);
    if (i >= (size_t)tokens * d)
        return;
    float x = input[i / d * 2 * d + i % d];
    float gate = input[i / d * 2 * d + d + i % d];
    x = isnan(x) ? 0.0f : x;
    gate = isnan(gate) ? 0.0f : gate;
    out[i] = x / (1.0f + exp(-x)) * gate;
}
