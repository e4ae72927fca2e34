// /// tunesmith
// [launch]
// grid  = ["ceildiv(rows, 64)"]
// block = ["64"]
// ///
extern "C" __global__ void centre(float* out, const float* x, int rows, int d) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
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
