// Tests of alignment and remainders: what the contract decides, and what it does not.

// case: a reading says what it rests on
// with: launch = { block = ["d"] }
// with: contract = { d = { min = 4, max = 256, multiple_of = 4 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * d + threadIdx.x;
if (d % 4 == 0) out[i] = x[i]; else out[i] = 0;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)
// want:   'd % 4 == 0' holds: the contract's word (line 3: align and multiple_of)
