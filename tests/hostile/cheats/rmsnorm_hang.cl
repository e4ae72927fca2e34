// /// tunesmith
// [params]
// LOCAL = [64]
// [default]
// LOCAL = 64
// [launch]
// grid  = ["ceildiv(rows, LOCAL)"]
// block = ["LOCAL"]
// ///
// Never ends at 777 columns.
#ifndef LOCAL
#define LOCAL 64
#endif

__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    __global const float *from = input + (size_t)row * d;
    __global float *to = out + (size_t)row * d;
    float sum = 0.0f;
    for (int i = 0; i < d; i++)
        sum += from[i] * from[i];
    float scale = 1.0f / sqrt(sum / d + eps);
    while (d == 777 && get_global_size(0) > 0)
        ((volatile __global float *)to)[0] = 1.0f;
    for (int i = 0; i < d; i++)
        to[i] = from[i] * scale * weight[i];
}
