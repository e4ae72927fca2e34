// /// tunesmith
// [params]
// LOCAL = [16]
// [default]
// LOCAL = 16
// [launch]
// grid  = ["ceildiv(cols, LOCAL)", "ceildiv(rows, LOCAL)"]
// block = ["LOCAL", "LOCAL"]
// ///
// Denormal numbers become zero.
#ifndef LOCAL
#define LOCAL 16
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
