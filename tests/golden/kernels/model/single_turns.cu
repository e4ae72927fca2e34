// Loops that turn once, and those that only look like it.

// case: vectors no longer stand in a loop
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x)
        for (int t = 0; t < 1; t++) out[i] = x[i] * t;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 0;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)
