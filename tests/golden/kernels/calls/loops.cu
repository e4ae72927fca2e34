// Loops inside of elements, as they are written.
// read: call
// with: base = "rows"

// case: a short one is unrolled whole
// with: moves = "lanes"
// with: looks_for = ["#pragma unroll", "for (int k = 0; k < 4; k++)"]
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        float s = 0.0f;
        for (int k = 0; k < 4; k++) s += x[row * d + k] * k;
        out[row * d + i] = s;
    }
}
// want: moves: lanes
// want: launch k(x, out, rows, d)
// want: parameters: LANES
// want: require block_fits: LANES * 8 <= device.max_threads
// want: prefer enough_threads: LANES * 8 >= min(64, device.max_threads)
// want: prefer short_rows: LANES * 8 <= 512
// want: prefer no_idle_lanes: LANES < 2 * d
// want: 1 times: #pragma unroll
// want: 1 times: for (int k = 0; k < 4; k++)
