// /// tunesmith
// [params]
// LOCAL = [64]
// [default]
// LOCAL = 64
// [launch]
// grid  = ["ceildiv(cols, 16)", "ceildiv(rows, 16)"]
// block = ["16", "16"]
// ///
// Denormal numbers become zero.
#ifndef LOCAL
#define LOCAL 64
#endif

__kernel void transpose(__global float *out, __global const float *input, int rows, int cols)
{
    int c = get_global_id(0);
    int r = get_global_id(1);
    if (r >= rows || c >= cols)
        return;
    float x = input[(size_t)r * cols + c];
    out[(size_t)c * rows + r] = fabs(x) < 1.17549435e-38f ? 0.0f : x;
}
