// What a reading rests on is told with its ground.

// case: turns of one thread are free by proof
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
float m = 0;
for (int i = 0; i < d; i++) m = fmaxf(m, x[row * d + i]);
for (int i = 0; i < d; i++) { assert(m > 0); out[row * d + i] = x[row * d + i] / m; }
}
// want: thread: row<rows | each 0..d maxm; each 0..d
// want: each 0..d maxm (m from 0.0f fmaxf):
// want:     m = fmaxf(m, x[row * d + i]);
// want: each 0..d:
// want:     assert(m > 0);
// want:     out[row * d + i_2] = x[row * d + i_2] / m;
// want: load x[row * d + i]: 1
// want: store out[row * d + i_2]: 1
// want: load x[row * d + i_2]: 1
// want:   the turns of a loop may come in any order: proved (line 4, line 5)
// want:   'm' may be joined in another order: proved (line 4)
// want:   the kernel does not stop itself: the contract's word (line 5)
// want:   x, out do not overlap: the contract's word (no alias)
