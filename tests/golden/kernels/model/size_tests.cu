// Tests by thread and size as loops, loops with two ends, atomics of one thread; what only looks like it.

// case: a tail by a test is a loop of the team
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (threadIdx.x < d % 4) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: block: block<rows | each 0..d / 4 * 4 +s; each 0..d % 4 +s_2; let part; each 0..d
// want: each 0..d / 4 * 4 +s (s from 0.0f):
// want:     s += x[(long long)block * d + i];
// want: each 0..d % 4 +s_2 (s_2 from 0.0f):
// want:     s_2 += x[(long long)block * d + (d / 4 * 4 + lane_own)];
// want: let part:
// want:     const float part = s + s_2;
// want: each 0..d:
// want:     out[(long long)block * d + i_2] = x[(long long)block * d + i_2] - part;
// want: load x[(long long)block * d + i]: 1
// want: load x[(long long)block * d + (d / 4 * 4 + lane_own)]: 1
// want: store out[(long long)block * d + i_2]: 1
// want: load x[(long long)block * d + i_2]: 1
// want:   blocks never have fewer threads than a test lets through: the contract's word (line 4)
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   's_2' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a tail by a test is a loop of the team (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (threadIdx.x < d - d / 4 * 4) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: block: block<rows | each 0..d / 4 * 4 +s; each 0..d % 4 +s_2; let part; each 0..d
// want: each 0..d / 4 * 4 +s (s from 0.0f):
// want:     s += x[(long long)block * d + i];
// want: each 0..d % 4 +s_2 (s_2 from 0.0f):
// want:     s_2 += x[(long long)block * d + (d / 4 * 4 + lane_own)];
// want: let part:
// want:     const float part = s + s_2;
// want: each 0..d:
// want:     out[(long long)block * d + i_2] = x[(long long)block * d + i_2] - part;
// want: load x[(long long)block * d + i]: 1
// want: load x[(long long)block * d + (d / 4 * 4 + lane_own)]: 1
// want: store out[(long long)block * d + i_2]: 1
// want: load x[(long long)block * d + i_2]: 1
// want:   blocks never have fewer threads than a test lets through: the contract's word (line 4)
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   's_2' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a tail by a test is a loop of the team (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (d % 4 > threadIdx.x) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: block: block<rows | each 0..d / 4 * 4 +s; each 0..d % 4 +s_2; let part; each 0..d
// want: each 0..d / 4 * 4 +s (s from 0.0f):
// want:     s += x[(long long)block * d + i];
// want: each 0..d % 4 +s_2 (s_2 from 0.0f):
// want:     s_2 += x[(long long)block * d + (d / 4 * 4 + lane_own)];
// want: let part:
// want:     const float part = s + s_2;
// want: each 0..d:
// want:     out[(long long)block * d + i_2] = x[(long long)block * d + i_2] - part;
// want: load x[(long long)block * d + i]: 1
// want: load x[(long long)block * d + (d / 4 * 4 + lane_own)]: 1
// want: store out[(long long)block * d + i_2]: 1
// want: load x[(long long)block * d + i_2]: 1
// want:   blocks never have fewer threads than a test lets through: the contract's word (line 4)
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   's_2' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: one that lets more through than there are threads is none
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (threadIdx.x < d % 300) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: not read: line 4: a branch depends on the thread and on a size at once; as tiles: line 6: a loop with barriers turns differently for different threads

// case: one that lets more through than there are threads is none (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (threadIdx.x < d) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: not read: line 4: a branch depends on the thread and on a size at once; as tiles: line 6: a loop with barriers turns differently for different threads

// case: one that lets more through than there are threads is none (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
if (threadIdx.x + 5 < d % 4) s += r[d / 4 * 4 + threadIdx.x];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: not read: line 4: a branch depends on the thread and on a size at once; as tiles: line 6: a loop with barriers turns differently for different threads

// case: of two ends the nearer one holds
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d && i < rows; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: block: block<rows | each 0..min(d, rows) +s; each 0..d
// want: each 0..min(d, rows) +s (s from 0.0f):
// want:     s += x[(long long)block * d + i];
// want: each 0..d:
// want:     out[(long long)block * d + i_2] = x[(long long)block * d + i_2] - s;
// want: load x[(long long)block * d + i]: 1
// want: store out[(long long)block * d + i_2]: 1
// want: load x[(long long)block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 7)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what one thread of a team adds is done once
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
if (threadIdx.x == 0) atomicAdd(&out[0], part[0]);
}
// want: block: block<rows | each 0..d / 4 * 4 +s; once 1
// want: each 0..d / 4 * 4 +s (s from 0.0f):
// want:     s += x[(long long)block * d + i];
// want: once 1:
// want:     atomicAdd(&out[0], s);
// want: load x[(long long)block * d + i]: 1
// want: atomic out[0]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what several add or what comes back is refused
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
atomicAdd(&out[0], part[0]);
}
// want: not read: line 7: atomicAdd on global memory by several threads, outside a loop over elements; as tiles: threads of a block cooperate other than by tiles

// case: what several add or what comes back is refused (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
if (threadIdx.x % 32 == 0) atomicAdd(&out[0], part[0]);
}
// want: not read: line 7: atomicAdd on global memory by several threads, outside a loop over elements; as tiles: threads of a block cooperate other than by tiles

// case: what several add or what comes back is refused (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
if (threadIdx.x == 0) atomicAdd(&out[0], s);
}
// want: not read: line 7: what is stored to 'out' is not the same for the team: not every thread's share of 's' is in it; as tiles: threads of a block cooperate other than by tiles

// case: what several add or what comes back is refused (4)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
if (threadIdx.x == 0) atomicExch(&out[0], part[0]);
}
// want: not read: line 7: atomicExch on global memory, outside a loop over elements; as tiles: threads of a block cooperate other than by tiles

// case: what several add or what comes back is refused (5)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
if (threadIdx.x == 0) out[1] = atomicAdd(&out[0], part[0]);
}
// want: not read: line 7: the call of 'atomicAdd' inside an expression is not followed; as tiles: threads of a block cooperate other than by tiles

// case: a running mean is refused and called so
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;
float mean = 0.0f, squares = 0.0f; int count = 0;
for (int i = threadIdx.x; i < d; i += blockDim.x) { count++; const float e = r[i] - mean;
mean += e / count; squares += e * (r[i] - mean); }
float s = mean;
__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();
for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];
__syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];
}
// want: not read: line 4: 'count' is carried from one element to the next in a way that is no sum, product, maximum or minimum: a running mean (Welford's), whose parts are joined by how many elements they are of. With a sum and a second loop for the squares it would be read; as tiles: line 8: a loop with barriers turns differently for different threads
