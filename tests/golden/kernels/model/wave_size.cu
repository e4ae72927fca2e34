// `warpSize` is as wide as the waves of the device that a kernel is read for.

// case: without a device it is what the language assumes
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 32;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)
