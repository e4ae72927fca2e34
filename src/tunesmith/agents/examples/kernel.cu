// /// tunesmith
// [launch]
// grid  = ["ceildiv(n, 512)"]
// block = ["256"]
// ///
#define BLOCK 256
#define ITEMS 2
extern "C" __global__ void scale(float* out, const float* x, int n) {
    int first = blockIdx.x * BLOCK * ITEMS + threadIdx.x;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        int i = first + k * BLOCK;
        if (i < n) {
            out[i] = 2.0f * x[i];
        }
    }
}
