// /// tunesmith
// [launch]
// grid  = ["ceildiv(rows, 64)"]
// block = ["64"]
// ///
__kernel void centre(__global float* out, __global const float* x, int rows, int d) {
    int row = get_global_id(0);
    if (row < rows) {
        float sum = 0.0f;
        for (int i = 0; i < d; ++i) {
            sum += x[(size_t)row * d + i];
        }
        for (int i = 0; i < d; ++i) {
            out[(size_t)row * d + i] = x[(size_t)row * d + i] - sum / d;
        }
    }
}
