// Launches with a thread to each element and no argument that says how many there are.

// case: with an argument it is one range
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
out[i] = x[i] * 2;
}
// want: grid: | each 0..rows * 256
// want: each 0..rows * 256:
// want:     out[i] = x[i] * 2;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: with an argument it is one range (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) out[i] = x[i] * 2;
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     out[i] = x[i] * 2;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)
