// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// One work-item per result.
__kernel void silu_and_mul(__global float *out,
                           __global const float *input,
                           int tokens, int d)
{
    size_t i = get_global_id(0);
    if (i >= (size_t)tokens * d)
        return;

    size_t token = i / d;
    size_t column = i % d;
    float x = input[token * 2 * d + column];
    float gate = input[token * 2 * d + d + column];
    out[i] = x / (1.0f + exp(-x)) * gate;
}
