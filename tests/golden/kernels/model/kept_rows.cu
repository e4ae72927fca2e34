// Rows that threads keep in arrays of their own between totals: values of elements, or refused.

// case: a row kept turn by turn is a value of every element
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     float v_now;
// want:     v_now = x[(long long)block * d + (int)(0 + k_own)] * 2.0f;
// want:     s += v_now;
// want:     v[k_own] = v_now;
// want: each 0..d:
// want:     out[(long long)block * d + (0 + k_2_own)] = v[k_2_own] / s;
// want: keeps v: 1 float
// want: load x[(long long)block * d + (int)(0 + k_own)]: 1
// want: store out[(long long)block * d + (0 + k_2_own)]: 1
// want:   threads keep values of their own elements alone in 'v': proved (line 3)
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns beyond the row are elements too
// with: launch = { grid = ["ceildiv(rows, 4)"], block = ["32", "4"] }
// with: contract = { d = { min = 1, max = 256 } }
// with: workloads = { many = { rows = 512, d = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * 4 + threadIdx.y; if (row >= rows) return; float v[8];
for (int k = 0; k < 8; k++) { const int i = k * 32 + threadIdx.x; if (i < d) v[k] = x[row * d + i]; else v[k] = -1e30f; }
float m = v[0]; for (int k = 1; k < 8; k++) m = fmaxf(m, v[k]);
for (int b = 16; b > 0; b /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, b));
for (int k = 0; k < 8; k++) { const int i = k * 32 + threadIdx.x; if (i < d) out[row * d + i] = v[k] - m; else break; }
}
// want: warp: row<rows | each 0..256; each 0..256 maxm; each 0..256
// want: each 0..256:
// want:     float v_now;
// want:     if ((int)k_own < d)
// want:         v_now = x[row * d + (int)k_own];
// want:     else
// want:         v_now = -1e30f;
// want:     v[k_own] = v_now;
// want: each 0..256 maxm (m from -__int_as_float(0x7f800000) fmaxf):
// want:     m = fmaxf(m, v[k_2_own]);
// want: each 0..256:
// want:     if ((int)k_3_own < d)
// want:         out[row * d + (int)k_3_own] = v[k_3_own] - m;
// want: keeps v: 1 float
// want: load x[row * d + (int)k_own]: 1
// want: store out[row * d + (int)k_3_own]: 1
// want:   threads keep values of their own elements alone in 'v': proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 4, line 6)
// want:   'm' may be joined in another order: proved (line 4)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what only looks like it is refused
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0] + k;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (2)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[15 - k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (3)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[0] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (4)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; if (r[i] > 0.0f) v[k] = r[i]; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (5)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] += r[i]; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (6)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d - 1; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: '256 * k + threadIdx.x < d - 1' may be of an unsigned number below zero

// case: what only looks like it is refused (7)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[threadIdx.x * 16 + k] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (8)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; v[0] += 1.0f; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads

// case: what only looks like it is refused (9)
// with: contract = { d = { min = 1, max = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float v[16]; float s = 0.0f;
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) { const int i = blockDim.x * k + threadIdx.x; v[k] = r[i] * 2.0f; s += v[k]; v[k + 1] = 1.0f; }
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) o[blockDim.x * k + threadIdx.x] = v[k] / part[0];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: how often a loop turns depends on 'blockDim.x * k + threadIdx.x < d'; as tiles: line 6: a loop with barriers turns differently for different threads
