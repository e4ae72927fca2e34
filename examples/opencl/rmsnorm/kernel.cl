// out[r, i] = input[r, i] / sqrt(mean(input[r, :]^2) + eps) * weight[i]
// One work-item per row.
__kernel void rmsnorm(__global float *out,
                      __global const float *input,
                      __global const float *weight,
                      float eps, int rows, int d)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    size_t base = (size_t)row * d;

    float sum = 0.0f;
    for (int i = 0; i < d; i++)
        sum += input[base + i] * input[base + i];

    float scale = 1.0f / sqrt(sum / d + eps);
    for (int i = 0; i < d; i++)
        out[base + i] = input[base + i] * scale * weight[i];
}
