// out[c, r] = input[r, c]
// One work-item per element.
__kernel void transpose(__global float *out,
                        __global const float *input,
                        int rows, int cols)
{
    int c = get_global_id(0);
    int r = get_global_id(1);
    if (r < rows && c < cols)
        out[(size_t)c * rows + r] = input[(size_t)r * cols + c];
}
