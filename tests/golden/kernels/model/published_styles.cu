// What published kernels are made of, and what only looks like it: traps that must not be read so.

// case: read: a block reduction
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 24, line 28)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: its operator and how many have a value
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Reduce(s, cub::Sum(), blockDim.x);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 24, line 28)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a reducer with a name
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
Reduce all(temp); s = all.Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 24, line 28)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: turns that are guarded piece by piece
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int k = 0; k < (d + blockDim.x - 1) / blockDim.x; k++) { int i = k * blockDim.x + threadIdx.x;
float v = 0; if (i < d) v = r[i]; v *= 2.0f; if (i < d) o[i] = v; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float v = 0;
// want:     v = x[block * d + (int)k_own];
// want:     v *= 2.0f;
// want:     out[block * d + (int)k_own] = v;
// want: load x[block * d + (int)k_own]: 1
// want: store out[block * d + (int)k_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: zeros field by field
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float4 *r = (const float4 *)(x + blockIdx.x * d); float *o = out + blockIdx.x * d;
float s = 0;for (int k = 0; k < (d / 4 + blockDim.x - 1) / blockDim.x; k++) {
int i = k * blockDim.x + threadIdx.x; float4 v;
v.x = 0.0f; v.y = 0.0f; v.z = 0.0f; v.w = 0.0f; if (i < d / 4) v = r[i]; float t = v.x;
t += v.w; s += t * t; }
__shared__ float total;
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = total;
}
// want: block: block<rows | each 0..d / 4 +s; each 0..d
// want: each 0..d / 4 +s (s from 0.0f):
// want:     float4 v;
// want:     v = ((const float4 *)(x + block * d))[(int)k_own];
// want:     float t = v.x;
// want:     t += v.w;
// want:     s += t * t;
// want: each 0..d:
// want:     out[block * d + i_2] = s;
// want: load x[(int)k_own]: 1
// want: store out[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23, line 31)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: places that are declared first and said later
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d / 2; i += blockDim.x) { int low, high; low = i;
high = i + d / 2; float a, b; a = r[low]; b = r[high]; o[low] = a - b; o[high] = a + b; }
}
// want: block: block<rows | each 0..d / 2
// want: each 0..d / 2:
// want:     float a = x[block * d + i];
// want:     float b = x[block * d + (i + d / 2)];
// want:     out[block * d + i] = a - b;
// want:     out[block * d + (i + d / 2)] = a + b;
// want: load x[block * d + i]: 1
// want: load x[block * d + (i + d / 2)]: 1
// want: store out[block * d + i]: 1
// want: store out[block * d + (i + d / 2)]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: totals joined by a helper, in the way that suits the block
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
const float all = blockDim.x <= 32 ? lanes_sum(s) : block_sum(s);
__shared__ float total;
if (threadIdx.x == 0) total = all; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[block * d + i];
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] / s;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23, line 27)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a pointer that moves in the branch that uses it
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x; float *o = out; if (d > 4) { r += blockIdx.x * d; o = o + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }
}
// want: block: block<rows | when d > 4 {each 0..d}
// want: each 0..d:
// want:     out[block * d + i] = x[block * d + i];
// want: store out[block * d + i]: 1
// want: load x[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a test that every block passes, around some of its work
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;
if (blockIdx.x < rows) { for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] += r[i]; }
}
// want: block: block<rows | each 0..d; each 0..d
// want: each 0..d:
// want:     out[block * d + i] = 1.0f;
// want: each 0..d:
// want:     out[block * d + i_2] += x[block * d + i_2];
// want: store out[block * d + i]: 1
// want: update out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23, line 24)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: pairs of totals in dynamic shared memory
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float2 s = make_float2(0.0f, 0.0f); for (int i = threadIdx.x; i < d; i += blockDim.x) {
const float v = r[i]; s.x += v; s.y += v * v; }
for (int o = 16; o > 0; o >>= 1) { s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
extern __shared__ float2 part[]; if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
__syncthreads(); s = part[threadIdx.x % 8];
for (int o = 4; o > 0; o >>= 1) { s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] * s.x + s.y;
}
// want: block: block<rows | each 0..d +s_x +s_y; each 0..d
// want: each 0..d +s_x +s_y (s_x from 0.0f, s_y from 0.0f):
// want:     const float v = x[block * d + i];
// want:     s_x += v;
// want:     s_y += v * v;
// want: each 0..d:
// want:     out[block * d + i_2] = x[block * d + i_2] * s_x + s_y;
// want: load x[block * d + i]: 1
// want: store out[block * d + i_2]: 1
// want: load x[block * d + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 23, line 29)
// want:   's_x' may be joined in another order: the contract's word ([accuracy])
// want:   's_y' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: one dynamic array by two names
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
extern __shared__ float a[]; extern __shared__ float b[];
if (threadIdx.x == 0) a[0] = r[0]; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] * b[0];
}
// want: block: block<rows | let a; each 0..d
// want: let a:
// want:     const float a = x[block * d];
// want: each 0..d:
// want:     out[block * d + i] = x[block * d + i] * a;
// want: load x[block * d]: None
// want: store out[block * d + i]: 1
// want: load x[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 25)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a lambda that takes part
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
auto twice = [&](int i) { o[i] = 2.0f * r[i]; };
for (int i = threadIdx.x; i < d; i += blockDim.x) twice(i);
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[block * d + i] = 2.0f * x[block * d + i];
// want: store out[block * d + i]: 1
// want: load x[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 24)
// want:   x, out do not overlap: the contract's word (no alias)

// case: traps: one dynamic array by two names of different types
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float2 s = make_float2(0.0f, 0.0f); for (int i = threadIdx.x; i < d; i += blockDim.x) {
const float v = r[i]; s.x += v; s.y += v * v; }
for (int o = 16; o > 0; o >>= 1) { s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
extern __shared__ float2 part[]; extern __shared__ float other[]; other[threadIdx.x] = 1.0f;
if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
__syncthreads(); s = part[threadIdx.x % 8];
for (int o = 4; o > 0; o >>= 1) { s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] * s.x + s.y;
}
// want: not read: line 26: 'other' is the same shared memory as 'part'

// case: traps: a dynamic array that is written by another name
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
extern __shared__ float a[]; extern __shared__ float b[];
if (threadIdx.x == 0) a[0] = r[0]; __syncthreads(); b[0] = r[1]; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = threadIdx.x * a[0];
}
// want: not read: line 25: the loop reads 'threadIdx.x': it differs from thread to thread; as tiles: line 24: two threads write one place of 'a' with no barrier between

// case: traps: a total that only the first thread has
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
const float total = Reduce(temp).Sum(s);
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: the loop reads 'total': only the first thread has what the library's total gives

// case: traps: a block larger than the reduction was told
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 128> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: a total over 128 of 256 threads, in a block of 128

// case: traps: a reduction over some of the threads
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s, 100);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: a total over 100 of 256 threads, in a block of 256

// case: traps: a reduction in a branch
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
if (threadIdx.x < 128) s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: the library's total is not called by all threads, or with sizes not known

// case: traps: an operator of the file
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Reduce(s, Mine());
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: 'cub::BlockReduce<float, 256>(temp).Reduce(s, Mine{})' is not understood, and cub::BlockReduce is called, whose text is not in the file

// case: traps: a tile's total taken for the block's
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
const float total = cooperative_groups::reduce(tile, s, cooperative_groups::plus<float>());
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 26: the loop reads 'total': not every thread's share of 's' is in it

// case: traps: a helper that joins something else
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];
const float all = lanes_worst(s);
__shared__ float total;
if (threadIdx.x == 0) total = all; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 27: the loop reads 'total': uses 's' where not every thread's share is in it

// case: traps: a pointer that moved in a branch before
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
if (threadIdx.x % 2 == 0) r += 1;
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i];
}
// want: not read: line 24: the pointer 'r' moves

// case: traps: a pointer that moves from turn to turn
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += blockDim.x) { if (i > 3) r += 1; o[i] = r[0]; }
}
// want: not read: line 23: the pointer 'r' moves

// case: traps: a test that not every block passes, around some of its work
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;
if (blockIdx.x < d) { for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }
}
// want: not read: line 23: this is stored whether or not 'blockIdx.x' is within its bound, which is tested elsewhere

// case: traps: a test of a number that is cut off
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;
if (blockIdx.x < (unsigned char)rows) {
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }
}
// want: not read: line 23: this is stored whether or not 'blockIdx.x' is within its bound, which is tested elsewhere

// case: traps: places that are said again for the next turn
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
int low; low = threadIdx.x; for (int i = threadIdx.x; i < d; i += blockDim.x) {
int next; next = low + 1; o[low] = r[i] + o[next]; low = next; }
}
// want: not read: line 23: 'low' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: traps: a field that is no zero
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float4 *r = (const float4 *)(x + blockIdx.x * d); float *o = out + blockIdx.x * d;
float s = 0;for (int k = 0; k < (d / 4 + blockDim.x - 1) / blockDim.x; k++) {
int i = k * blockDim.x + threadIdx.x; float4 v;
v.x = 0.0f; v.y = 0.0f; v.z = 0.0f; v.w = 1.0f; if (i < d / 4) v = r[i]; float t = v.x;
t += v.w; s += t * t; }
__shared__ float total;
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = total;
}
// want: not read: line 23: the loop reads 'threadIdx.x': it differs from thread to thread

// case: traps: a field that is not set
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float4 *r = (const float4 *)(x + blockIdx.x * d); float *o = out + blockIdx.x * d;
float s = 0;for (int k = 0; k < (d / 4 + blockDim.x - 1) / blockDim.x; k++) {
int i = k * blockDim.x + threadIdx.x; float4 v;
v.x = 0.0f; v.y = 0.0f; v.z = 0.0f;  if (i < d / 4) v = r[i]; float t = v.x;
t += v.w; s += t * t; }
__shared__ float total;
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = total;
}
// want: not read: line 23: the loop reads 'threadIdx.x': it differs from thread to thread

// case: traps: a turn that adds what was not loaded
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
struct Mine { float a; };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float total;
const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;
float s = 0;
for (int k = 0; k < (d + blockDim.x - 1) / blockDim.x; k++) { int i = k * blockDim.x + threadIdx.x;
float v = 1; if (i < d) v = r[i]; s += v; }
typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;
s = Reduce(temp).Sum(s);
if (threadIdx.x == 0) total = s; __syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;

}
// want: not read: line 25: the loop reads 'threadIdx.x': it differs from thread to thread

// case: a version that changes nothing of the kernel
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
#if CUDART_VERSION >= 12000
#define WAY 1
#else
#define WAY 2
#endif
__device__ void hint() {
#if WAY == 1
cudaTriggerProgrammaticLaunchCompletion();
#endif
}

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
hint(); const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] =  x[i];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 8: that the launch behind may start is not kept: it starts when this one ends
// want:   the turns of a loop may come in any order: the kernel's own (line 13)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a version that changes the kernel
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
#if CUDART_VERSION >= 12000
#define WAY 1
#else
#define WAY 2
#endif

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] =  x[i] * WAY;
}
// want: not read: line 1: #if CUDART_VERSION >= 12000 depends on what a header defines

// case: a version that changes the kernel (2)
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
// with: kernel = { compiler = "nvcc" }
#if CUDART_VERSION >= 12000
#define WAY 1
#else
#define WAY 2
#endif

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] =  x[i] * WAY;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a helper that a version changes
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
#if CUDART_VERSION >= 12000
#define WAY 1
#else
#define WAY 2
#endif
__device__ float scaled(float v) { return v * WAY; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] =  scaled(x[i]);
}
// want: not read: line 1: #if CUDART_VERSION >= 12000 depends on what a header defines

// case: a loop that no thread goes round again
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) {
x = x + i / d * d; out[i] = x[i % d]; }
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i / d * d + i % d];
// want: store out[i]: 1
// want: load x[i / d * d + i % d]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that some thread may go round again
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 65535)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) {
x = x + i / d * d; out[i] = x[i % d]; }
}
// want: not read: line 3: the pointer 'x' moves

// case: loops that some thread may go round again (2)
// with: launch = { grid = ["ceildiv(rows * d, 512)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) {
x = x + i / d * d; out[i] = x[i % d]; }
}
// want: not read: line 3: the pointer 'x' moves

// case: loops that some thread may go round again (3)
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += blockDim.x) {
x = x + i / d * d; out[i] = x[i % d]; }
}
// want: not read: line 3: the pointer 'x' moves

// case: loops that some thread may go round again (4)
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) {
x = x + i / d * d; if (x[0] > 0) break; out[i] = x[i % d]; }
}
// want: not read: line 3: the pointer 'x' moves

// case: a table that as many threads fill
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < d) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / rows];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * (x[i / rows] + 1.0f);
// want: store out[i]: 1
// want: load x[i]: 1
// want: load x[i / rows]: 0 within rows
// want:   every place of 'table' that is read was filled before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a table that as many threads fill (2)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 257 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < d) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / rows];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element have a share in 'x[threadIdx.x] + 1.0f'; as tiles: line 3: how far 'i' counts has no number in a block

// case: a table that as many threads fill (3)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x <= d) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / rows];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element have a share in 'x[threadIdx.x] + 1.0f'; as tiles: line 3: how far 'i' counts has no number in a block

// case: a table that as many threads fill (4)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < d - 1) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / rows];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element have a share in 'x[threadIdx.x] + 1.0f'; as tiles: 'threadIdx.x < d - 1' may be of an unsigned number below zero

// case: a table that as many threads fill (5)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < d) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / rows + 1];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element have a share in 'x[threadIdx.x] + 1.0f'; as tiles: line 3: how far 'i' counts has no number in a block

// case: a table that as many threads fill (6)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < d) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / d];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: threads beyond the last element have a share in 'x[threadIdx.x] + 1.0f'; as tiles: line 3: how far 'i' counts has no number in a block

// case: a table that as many threads fill (7)
// with: launch = { grid = ["min(ceildiv(rows * d, 256), 99)"] }
// with: contract = { d = { min = 1, max = 256 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float table[1024]; if (threadIdx.x < rows) table[threadIdx.x] = x[threadIdx.x] + 1.0f;
__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
i += gridDim.x * blockDim.x) out[i] = x[i] * table[i / d];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 4: what is stored to 'out' is not the same for the team: uses 'total' where not every thread's share is in it; as tiles: line 3: how far 'i' counts has no number in a block
