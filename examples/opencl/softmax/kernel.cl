// out[r, i] = exp(input[r, i] - max(input[r, :])) / (the sum of the row's exponentials)
// One work-item per row.
__kernel void softmax(__global float *out,
                      __global const float *input,
                      int rows, int d)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    size_t base = (size_t)row * d;

    float largest = -INFINITY;
    for (int i = 0; i < d; i++)
        largest = fmax(largest, input[base + i]);

    float sum = 0.0f;
    for (int i = 0; i < d; i++) {
        float power = exp(input[base + i] - largest);
        out[base + i] = power;
        sum += power;
    }

    for (int i = 0; i < d; i++)
        out[base + i] /= sum;
}
