// One memory by two names.
// with: base = "two_names"

// case: a store by another name is a dependence
extern "C" __global__ void k(float *x, float *y, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += 64) out[r + i] = x[r + i] + (y[r + d - 1 - i] = 1.0f);
}
// want: not read: line 3: the elements of the loop over 'i' depend on each other: 'x' is written at 'y[(int)(blockIdx.x * d) + d - 1 - i]' and touched at 'x[(int)(blockIdx.x * d) + i]'
