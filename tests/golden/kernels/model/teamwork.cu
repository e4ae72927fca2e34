// Reductions in every style come to the same reading; those that miss a thread are refused.

// case: style: tree in shared memory
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[256]; const int t = threadIdx.x;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
b[t] = s; __syncthreads();
for (int k = blockDim.x / 2; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 7)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: interleaved tree
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[256]; const int t = threadIdx.x;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
b[t] = s; __syncthreads();
for (int k = 1; k < blockDim.x; k *= 2) {
if (t % (2 * k) == 0) b[t] += b[t + k]; __syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: last warp unrolled, volatile
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ volatile float b[256]; const int t = threadIdx.x;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
b[t] = s; __syncthreads();
if (t < 128) b[t] += b[t + 128]; __syncthreads(); if (t < 64) b[t] += b[t + 64]; __syncthreads();
if (t < 32) { b[t] += b[t + 32]; b[t] += b[t + 16]; b[t] += b[t + 8]; b[t] += b[t + 4];
b[t] += b[t + 2]; b[t] += b[t + 1]; } __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 9)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: warps, then the first warp
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[32];
const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (lane == 0) b[warp] = s; __syncthreads();
if (warp == 0) { s = lane < warps ? b[lane] : 0.0f;
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (lane == 0) b[0] = s; }
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 5, line 12)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: warps, then every thread
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[8];
const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (lane == 0) b[warp] = s; __syncthreads();
float t = 0.0f; for (int w = 0; w < warps; w++) t += b[w];
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / t;
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 5, line 9)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: shuffles down, one thread adds the rest
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[8]; __shared__ float all;
const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o);
if (lane == 0) b[warp] = s; __syncthreads();
if (threadIdx.x == 0) { for (int w = 1; w < warps; w++) s += b[w]; all = s; } __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / all;
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 5, line 9)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: warps counted in floating point
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[32]; __shared__ float all;
const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (lane == 0) b[warp] = s; __syncthreads();
s = threadIdx.x < blockDim.x / 32.f ? b[lane] : 0.0f;
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) all = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / all;
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 5, line 11)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: style: atomics on shared memory
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float all; if (threadIdx.x == 0) all = 0.0f; __syncthreads();
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
atomicAdd(&all, s); __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / all;
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 6)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: maximum by comparison
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[256]; const int t = threadIdx.x; float m = -1e30f;
for (int i = t; i < d; i += 256) { float v = x[blockIdx.x * d + i]; if (v > m) m = v; }
b[t] = m; __syncthreads();
for (int k = 128; k > 0; k /= 2) {
if (t < k && b[t + k] > b[t]) b[t] = b[t + k]; __syncthreads(); }
if (t == 0) out[blockIdx.x] = b[0];
}
// want: block: block<rows | each 0..d maxm; once 1
// want: each 0..d maxm (m from -1e30f):
// want:     float v = x[block * d + i];
// want:     if (v > m)
// want:         m = v;
// want: once 1:
// want:     out[block] = m;
// want: load x[block * d + i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   'm' may be joined in another order: proved (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: two loops into one sum
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; const float *r = x + blockIdx.x * d;
for (int i = threadIdx.x; i < d / 4; i += 32) {
float4 v = ((const float4 *)r)[i]; s += v.x + v.y; }
for (int i = d / 4 * 4 + threadIdx.x; i < d; i += 32) s += r[i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d / 4 +s; each d / 4 * 4..d +s_2; let s_3; once 1
// want: each 0..d / 4 +s (s from 0.0f):
// want:     float4 v = ((const float4 *)(x + block * d))[i];
// want:     s += v.x + v.y;
// want: each d / 4 * 4..d +s_2 (s_2 from 0.0f):
// want:     s_2 += x[block * d + i_2];
// want: let s_3:
// want:     const float s_3 = s + s_2;
// want: once 1:
// want:     out[block] = s_3;
// want: load x[i]: 1
// want: load x[block * d + i_2]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 5)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   's_2' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in an array of each thread
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float a = 0.0f, b = 0.0f;
for (int i = threadIdx.x; i < d; i += 32) { a += x[i]; b += x[i] * x[i]; }
float v[2] = {a, b}; for (int k = 0; k < 2; k++)
for (int o = 16; o > 0; o /= 2) v[k] += __shfl_xor_sync(~0u, v[k], o);
if (threadIdx.x == 0) out[blockIdx.x] = v[0] / v[1];
}
// want: block: block<rows | each 0..d +a +b; once 1
// want: each 0..d +a +b (a from 0.0f, b from 0.0f):
// want:     a += x[i];
// want:     b += x[i] * x[i];
// want: once 1:
// want:     out[block] = a / b;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   'a' may be joined in another order: the contract's word ([accuracy])
// want:   'b' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a total by the hardware
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int s = 0; for (int i = threadIdx.x; i < d; i += 32) s += (int)x[i];
s = __reduce_add_sync(0xffffffffu, s); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0):
// want:     s += (int)x[i];
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: proved (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a total by the hardware (2)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int s = 0; for (int i = threadIdx.x; i < d; i += 32) s += (int)x[i];
s = __reduce_add_sync(0xffffu, s); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 3: a mask that is not just the threads of the warp that are here

// case: a sum whatever the order of its operands
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = x[i] + (s + 1.0f); }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s = x[i] + (s + 1.0f);
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a sum whatever the order of its operands (2)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = (s + x[i]) - 1.0f; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s = s + x[i] - 1.0f;
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a sum whatever the order of its operands (3)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = fmaf(x[i], x[i], s) + 1.0f; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s = fmaf(x[i], x[i], s) + 1.0f;
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a sum whatever the order of its operands (4)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s -= x[i]; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s -= x[i];
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a sum whatever the order of its operands (5)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = __fadd_rn(1.0f, s + x[i]); }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: block: block<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s = __fadd_rn(1.0f, s + x[i]);
// want: once 1:
// want:     out[block] = s;
// want: load x[i]: 1
// want: store out[block]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what looks like a sum and is none
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = x[i] - s; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 2: 's' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: what looks like a sum and is none (2)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = s * x[i] + 1.0f; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 2: 's' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: what looks like a sum and is none (3)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = fmaf(s, x[i], 1.0f); }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 2: 's' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: what looks like a sum and is none (4)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = (s + x[i]) + s; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 2: 's' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: what looks like a sum and is none (5)
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) { s = fmaxf(s + x[i], 0.0f); }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 2: 's' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: one element to a thread
// with: launch = { block = ["next_pow2(d)"] }
// with: contract = { d = { min = 1, max = 1024 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[1024]; const int t = threadIdx.x; const int row = blockIdx.x;
float v = t < d ? x[row * d + t] : 0.0f; b[t] = v * v; __syncthreads();
for (int k = blockDim.x / 2; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }
if (t < d) out[row * d + t] = v * rsqrtf(b[0] / d);
}
// want: block: row<rows | each 0..d +total; each 0..d
// want: each 0..d +total (total from 0.0f):
// want:     total = total + x[row * d + t] * x[row * d + t];
// want: each 0..d:
// want:     out[row * d + t_2] = x[row * d + t_2] * rsqrtf(total / d);
// want: load x[row * d + t]: 1
// want: store out[row * d + t_2]: 1
// want: load x[row * d + t_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 5)
// want:   'total' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: one element to a thread needs a thread for each
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float v = threadIdx.x < d ? x[blockIdx.x * d + threadIdx.x] : 0.0f; float s = v;
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (threadIdx.x < d) out[blockIdx.x * d + threadIdx.x] = v / s;
}
// want: not read: with rows = 65536, d = 65536 the launch comes to 32 values of 'threadIdx.x', and the kernel's own test allows 65536

// case: threads beyond the last element hold what they held before the branch
// with: launch = { block = ["32"] }
// with: contract = { d = { min = 1, max = 32 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int t = threadIdx.x; const int row = blockIdx.x; float s = 0.0f;
if (t < d) { s = 0.0f; s += x[row * d + t]; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (t < d) out[row * d + t] = s;
}
// want: block: row<rows | each 0..d +total; each 0..d
// want: each 0..d +total (total from 0.0f):
// want:     total = total + (0.0f + x[row * d + t]);
// want: each 0..d:
// want:     out[row * d + t_2] = total;
// want: load x[row * d + t]: 1
// want: store out[row * d + t_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 5)
// want:   'total' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: threads beyond the last element hold what they held before the branch (2)
// with: launch = { block = ["32"] }
// with: contract = { d = { min = 1, max = 32 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int t = threadIdx.x; const int row = blockIdx.x; float s = 1.0f;
if (t < d) { s = 0.0f; s += x[row * d + t]; }
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
if (t < d) out[row * d + t] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element add '1.0f'

// case: planted bug: the offset starts too low
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 8; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / s;
}
// want: not read: line 5: the loop reads 's': not every thread's share of 's' is in it

// case: planted bug: the mask leaves out half the warp
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffu, s, o);
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / s;
}
// want: not read: line 5: the loop reads 's': a shuffle whose mask leaves out a thread it reads

// case: planted bug: only one warp is added up
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / s;
}
// want: not read: line 5: the loop reads 's': not every thread's share of 's' is in it

// case: planted bug: shuffles down, but everyone reads
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / s;
}
// want: not read: line 5: the loop reads 's': counts the share of some threads twice

// case: planted bug: the tree misses its first step
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[256]; const int t = threadIdx.x;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
b[t] = s; __syncthreads();
for (int k = 64; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: not read: line 7: the loop reads 'b[0]': not every thread's share of 's' is in it; as tiles: line 6: a loop with barriers turns differently for different threads

// case: planted bug: a barrier is missing
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[256]; const int t = threadIdx.x;
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
b[t] = s;
for (int k = 128; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[0];
}
// want: not read: line 7: the loop reads 'b[0]': 'b[128]' is read with no barrier since another warp wrote it; as tiles: line 6: a loop with barriers turns differently for different threads

// case: planted bug: a barrier in a branch
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
if (threadIdx.x < 128) __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / s;
}
// want: not read: line 4: a barrier where not all threads of the block arrive

// case: planted bug: shared memory is read before it is written
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[8];
float s = 0.0f;
 for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];
for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / b[3];
}
// want: not read: line 5: the loop reads 'b[3]': 'b[3]' is read before anything is there; as tiles: line 5: how far 'i' counts has no number in a block
