// Volatile accesses stay.

// case: a cast
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) {  out[i] = *(volatile const float *)(x + i); }
}
// want: not read: line 3: memory is used as volatile float: every access has to happen as written

// case: a cast of an element's address
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) {  out[i] = *(const volatile float *)&x[i]; }
}
// want: not read: line 3: memory is used as volatile float: every access has to happen as written

// case: a variable
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) { volatile float v = x[i]; out[i] = v; }
}
// want: not read: line 3: 'v' is volatile: every access has to happen as written

// case: a pointer
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) { const volatile float *p = x; out[i] = p[i]; }
}
// want: not read: line 3: 'p' is volatile: every access has to happen as written

// case: a variable of the file
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) {  out[i] = x[i] + flag; }
}
// want: not read: line 3: 'flag' is volatile: every access has to happen as written

// case: a static variable
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ volatile int flag;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) { static int n; n++; out[i] = x[i] + n; }
}
// want: not read: line 3: 'n' is static: it keeps its value from launch to launch

// case: volatile shared memory is followed
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float buffer[32]; volatile float *b = buffer; 
const int r = blockIdx.x * d, t = threadIdx.x;
float s = 0; for (int i = t; i < d; i += 32) s += x[r + i];
b[t] = s; __syncthreads();
for (int o = 16; o > 0; o /= 2) { if (t < o) b[t] += b[t + o]; __syncthreads(); }
if (t == 0) out[r] = b[0];
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s += x[(int)(block * d) + i];
// want: once 1:
// want:     out[(int)(block * d)] = s;
// want: load x[(int)(block * d) + i]: 1
// want: store out[(int)(block * d)]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)
