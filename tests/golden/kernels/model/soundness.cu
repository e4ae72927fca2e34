// What must not be read as independent, and what is read only as far as it goes.

// case: refused: neighbours in place
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d - 1) out[i] = out[i + 1] + x[i];
}
// want: not read: threads depend on each other: 'out' is written at 'out[i]' and touched at 'out[i + 1]'

// case: refused: a row turned round in place
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += 256) out[r + i] = out[r + d - 1 - i];
}
// want: not read: line 4: the elements of the loop over 'i' depend on each other: 'out' is written at 'out[(int)(blockIdx.x * d) + i]' and touched at 'out[(int)(blockIdx.x * d) + d - 1 - i]'

// case: refused: global memory between threads
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += 256) out[r + i] = x[r + i];
__syncthreads();
float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += out[r + d - 1 - i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
}
// want: not read: line 6: 'out[(int)(block * d) + d - 1 - i]' is touched here by other threads than in line 4 ('out[(int)(block * d) + i]'): 'out' passes values between threads

// case: refused: a carried value that is no total
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float a = 0; for (int i = threadIdx.x; i < d; i += 256) { a = a * 0.5f + x[i]; out[i] = a; }
}
// want: not read: line 3: 'a' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: refused: a guard that does not guard everything
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
if (row < rows / 2) for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i];
if (threadIdx.x == 0) out[row * d] = 1.0f;
}
// want: not read: line 5: this is stored whether or not 'row' is within its bound, which is tested elsewhere

// case: refused: a launch that does not reach the bound
// with: launch = { grid = ["min(rows, 64)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
if (row >= rows) return;
for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i];
}
// want: not read: with rows = 512, d = 32 the launch comes to 64 values of 'row', and the kernel's own test allows 512

// case: refused: totals over all blocks
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += x[blockIdx.x * d + i];
atomicAdd(out, s);
}
// want: not read: line 4: atomicAdd on global memory by several threads, outside a loop over elements

// case: refused: a thread number in the body
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i] * threadIdx.x;
}
// want: not read: line 3: the loop reads 'threadIdx.x': it differs from thread to thread

// case: refused: a branch by thread and size
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += x[i];
if (threadIdx.x < d / 2) s = 0; __syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 4: a branch depends on the thread and on a size at once

// case: refused: a branch by thread and size, through a variable
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int left = d - (int)threadIdx.x; float s = 0;
for (int i = threadIdx.x; i < d; i += 256) s += x[i];
if (left > 8) s = 0; __syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
// want: not read: line 5: a branch depends on the thread and on a size at once

// case: refused: a pointer that moves
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *p = x; for (int i = threadIdx.x; i < d; i += 256) { out[i] = *p; p += 256; }
}
// want: not read: line 3: the pointer 'p' moves

// case: refused: a pointer that moves inside an expression
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float *p = x; for (int i = threadIdx.x; i < d; i += 256) out[i] = *p++;
}
// want: not read: line 3: the pointer 'p' moves

// case: refused: an unsigned thread number below zero
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i];
if (threadIdx.x - 1 > 300u) out[blockIdx.x * d] = 1;
}
// want: not read: line 4: an unsigned number below zero in 'threadIdx.x - 1 > 300u'

// case: refused: inline assembly
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) { float v;
asm("ld.volatile.global.f32 %0, [%1];" : "=f"(v) : "l"(x + i)); out[i] = v; }
}
// want: not read: line 5: 'asm("ld.volatile.global.f32 %0, [%1];" : "=f"(v) : "l"(x ...' is not understood, and it contains assembly: ld.volatile.global.f32

// case: refused: a number in assembly
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); if (i < rows * d) out[i] = x[i] * l;
}
// want: not read: line 4: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid

// case: refused: a lambda that asks for its thread
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
auto f = [&](float a) { return a * clock(); }; if (i < rows * d) out[i] = f(x[i]);
}
// want: not read: line 4: clock is called, which depends on the time

// case: refused: a lambda
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
auto f = [k = 2.0f](float a) { return a * k; }; if (i < rows * d) out[i] = f(x[i]);
}
// want: not read: line 4: 'f(x[i])' is not understood, and f, a variable, is called

// case: refused: a lambda that keeps an earlier value
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
float s = 1; auto f = [=](float a) { return a * s; };
s = 2; if (i < rows * d) out[i] = f(x[i]);
}
// want: not read: line 2: k could not be read: a lambda keeps an earlier value of s

// case: refused: a variable of the file
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) { seen = i; out[i] = x[i]; }
}
// want: not read: line 4: 'seen', a variable of the file, is written to

// case: refused: a value carried over the whole grid
// with: launch = { grid = ["64"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float p = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;
    i += gridDim.x * blockDim.x) { out[i] = x[i] + p; p = x[i]; }
}
// want: not read: line 3: 'p' is carried from one element to the next

// case: refused: a function of another file
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int seen;
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = warp_sum(x[i]);
}
// want: not read: line 4: warp_sum is called, whose text is not in the file

// case: what is called may hide no cooperation: an operator
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
struct R { __device__ float operator()(float a) const { return a + __shfl_xor_sync(~0u, a, 1); } };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = R{}(x[i]);
}
// want: not read: line 4: 'R{}(x[i])' is not understood, and a structure of the file uses __shfl_xor_sync

// case: what is called may hide no cooperation: a method
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
struct R { __device__ float go(float a) const { return a + __shfl_xor_sync(~0u, a, 1); } };
__device__ R made() { return R(); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = made().go(x[i]);
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once

// case: what is called may hide no cooperation: a function that could not be read
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
template <typename T, typename... Rest> __device__ T joined(T a, Rest... rest) {
    return a + __shfl_xor_sync(~0u, a, 1); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = joined(x[i], 1);
}
// want: not read: line 5: joined is called, whose text is not in the file (line 1: a function could not be read: the template parameter `typename... Rest` is not understood)

// case: what is called may hide no cooperation: an object that is made and called at once
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
template <typename T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T, template <typename> class Op> __device__ T joined(T a) {
    return Op<T>()(a, __shfl_xor_sync(~0u, a, 1)); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = joined<float, Add>(x[i]);
}
// want: not read: line 3: 'Add<float>()(a, __shfl_xor_sync(~0u, a, 1))' is not understood, and it uses __shfl_xor_sync

// case: what is called may hide no cooperation: an object that is called
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
template <typename T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T, template <typename> class Op> __device__ T joined(T a) {
    Op<T> op; return op(a, __shfl_xor_sync(~0u, a, 1)); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = joined<float, Add>(x[i]);
}
// want: not read: threads cooperate other than by totals over a row's elements: line 6: a branch depends on the thread and on a size at once

// case: what is called may hide no cooperation: a function given as a template argument
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ float pair(float a) { return a + __shfl_xor_sync(~0u, a, 1); }
template <float (*F)(float)> __device__ float by(float a) { return F(a); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = by<pair>(x[i]);
}
// want: not read: line 5: pair stays a call, and it calls __shfl_xor_sync

// case: what is called may hide no cooperation: an operator by its sign
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
struct V { float a; __device__ float operator+(V b) const { return a + threadIdx.x; } };
__device__ float sum(float a) { V v; v.a = a; return v + v; }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = sum(x[i]);
}
// want: not read: line 5: a structure of the file uses threadIdx

// case: what is called may hide no cooperation: a free operator
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
struct V { float a; };
__device__ float operator+(V a, V b) { return a.a + clock(); }
__device__ float sum(float a) { V v; v.a = a; return v + v; }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = sum(x[i]);
}
// want: not read: line 4: an operator of the file uses clock

// case: what is called may hide no cooperation: a conversion
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
struct V { float a; __device__ operator float() const { return a * clock(); } };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = (float)V{x[i]};
}
// want: not read: line 4: clock is called, which depends on the time

// case: what is called may hide no cooperation: a parameter's default
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ float scaled(float a, int k = threadIdx.x) { return a * k; }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = scaled(x[i]);
}
// want: not read: line 4: scaled stays a call, and its head uses threadIdx

// case: what is called may hide no cooperation: assembly in a function
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ unsigned lane() { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = x[i] * lane();
}
// want: not read: line 1: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid

// case: assembly that only computes is a helper like any
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
__device__ int rounded(float v) { unsigned r;
asm volatile("{.reg .f32 t;\n\tadd.f32 t, %1, %1;\n"" cvt.rni.sat.s8.f32 %0, t;}" : "=r"(r) : "f"(v));
return (int)(signed char)r; }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d) out[i] = rounded(x[i]);
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = rounded(x[i]);
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: an index that only looks flat stays as it is
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
const int j = i < d ? i : i - d; if (i < rows * d) out[i] = x[j];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i < d ? i : i - d];
// want: store out[i]: 1
// want: load x[i < d ? i : i - d]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a bound on what is no index of its own stays a test
// with: launch = { grid = ["ceildiv(rows * d, 512)", "2"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
if (i < rows * d) out[i] = x[i];
}
// want: grid: block_y<2, block<ceildiv(rows * d, 512) | each 0..256
// want: each 0..256:
// want:     if ((int)(256 * ((rows * d + 511) / 512 * block_y + block) + thread) < rows * d)
// want:         out[(int)(256 * ((rows * d + 511) / 512 * block_y + block) + thread)] =
// want:             x[(int)(256 * ((rows * d + 511) / 512 * block_y + block) + thread)];
// want: store out[(int)(256 * ((rows * d + 511) / 512 * block_y + block) + thread)]: 1
// want: load x[(int)(256 * ((rows * d + 511) / 512 * block_y + block) + thread)]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second bound stays a test
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i >= rows * d) return;
const int j = i * 2; if (j < d) out[i] = x[i];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     if ((int)(i * 2) < d)
// want:         out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: an axis of one block counts nothing
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
if (i < rows * d) out[i] = x[i];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that count the same for all threads: by the block, with a break
// with: launch = { block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
float s = 0; for (int b = 0; b < d; b += blockDim.x) {
    const int i = b + threadIdx.x; if (i >= d) break; s += x[r + i]; }
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
for (int b = 0; b < d; b += blockDim.x) {
    const int i = b + threadIdx.x; if (i >= d) return; out[r + i] = x[r + i] * s; }
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += x[(int)(block * d) + (int)b_own];
// want: each 0..d:
// want:     out[(int)(block * d) + (int)b_2_own] = x[(int)(block * d) + (int)b_2_own] * s;
// want: load x[(int)(block * d) + (int)b_own]: 1
// want: store out[(int)(block * d) + (int)b_2_own]: 1
// want: load x[(int)(block * d) + (int)b_2_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 6)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that count the same for all threads: by the block, no name for the element
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int b = 0; b < d; b += 256)
    if (b + threadIdx.x < d) out[r + b + threadIdx.x] = x[r + b + threadIdx.x];
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[(int)(block * d) + b_own] = x[(int)(block * d) + b_own];
// want: store out[(int)(block * d) + b_own]: 1
// want: load x[(int)(block * d) + b_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that count the same for all threads: by rounds
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
const int rounds = (d + 255) / 256; for (int k = 0; k < rounds; k++) {
    const int i = k * 256 + threadIdx.x; if (i < d && x[r + i] > 0) out[r + i] = x[r + i]; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     if (x[(int)(block * d) + (int)k_own] > 0)
// want:         out[(int)(block * d) + (int)k_own] = x[(int)(block * d) + (int)k_own];
// want: load x[(int)(block * d) + (int)k_own]: 1
// want: store out[(int)(block * d) + (int)k_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that count the same for all threads: four to a thread, a block apart
// with: launch = { grid = ["ceildiv(rows * d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;
    if (i < rows * d) out[i] = x[i]; }
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[(int)k_own] = x[(int)k_own];
// want: store out[(int)k_own]: 1
// want: load x[(int)k_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: loops that count the same for all threads: four to a thread, side by side
// with: launch = { grid = ["ceildiv(rows * d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
for (int k = 0; k < 4; k++) { if (first + k >= rows * d) break; out[first + k] = x[first + k]; }
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[k_own] = x[k_own];
// want: store out[k_own]: 1
// want: load x[k_own]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: several to a thread need a launch that comes to all
// with: launch = { grid = ["ceildiv(rows * d, 2048)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;
    if (i < rows * d) out[i] = x[i]; }
}
// want: not read: with rows = 512, d = 32 the launch comes to 8192 values of 'k_own', and the kernel's own test allows 16384

// case: several to a thread that use the thread as well stay as they are
// with: launch = { grid = ["ceildiv(rows * d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;
    if (i < rows * d) out[i] = x[threadIdx.x]; }
}
// want: grid: block<ceildiv(rows * d, 1024) | each 0..256
// want: each 0..256:
// want:     for (int k = 0; k < 4; k++) {
// want:         if ((int)((int)(block * (256 * 4) + thread) + k * 256) < rows * d)
// want:             out[(int)((int)(block * (256 * 4) + thread) + k * 256)] = x[thread];
// want:     }
// want: store out[(int)((int)(block * (256 * 4) + thread) + k * 256)]: 1
// want: load x[thread]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: several to a thread that hand on a value stay as they are
// with: launch = { grid = ["ceildiv(rows * d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float p = 0; const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;
for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;
    if (i < rows * d) { out[i] = x[i] + p; p = x[i]; } }
}
// want: grid: block<ceildiv(rows * d, 1024) | each 0..256
// want: each 0..256:
// want:     float p = 0;
// want:     for (int k = 0; k < 4; k++) {
// want:         if ((int)((int)(block * (256 * 4) + thread) + k * 256) < rows * d) {
// want:             out[(int)((int)(block * (256 * 4) + thread) + k * 256)] =
// want:                 x[(int)((int)(block * (256 * 4) + thread) + k * 256)] + p;
// want:             p = x[(int)((int)(block * (256 * 4) + thread) + k * 256)];
// want:         }
// want:     }
// want: store out[(int)((int)(block * (256 * 4) + thread) + k * 256)]: 1
// want: load x[(int)((int)(block * (256 * 4) + thread) + k * 256)]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: rounds that are too few stay as they are
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int k = 0; k < d / 256; k++) {
    const int i = k * 256 + threadIdx.x; if (i < d) out[r + i] = x[r + i]; }
}
// want: grid: block<rows | each 0..256
// want: each 0..256:
// want:     for (int k = 0; k < d / 256; k++) {
// want:         if ((int)(k * 256 + thread) < d)
// want:             out[(int)(block * d) + (int)(k * 256 + thread)] = x[(int)(block * d) + (int)(k * 256 + thread)];
// want:     }
// want: store out[(int)(block * d) + (int)(k * 256 + thread)]: 1
// want: load x[(int)(block * d) + (int)(k * 256 + thread)]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: both sides of a branch by size remain
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
if (d % 4 == 0) { for (int i = threadIdx.x; i < d / 4; i += 256)
    ((float4 *)(out + r))[i] = ((const float4 *)(x + r))[i]; }
else { for (int i = threadIdx.x; i < d; i += 256) out[r + i] = x[r + i]; }
}
// want: block: block<rows | when d % 4 == 0 {each 0..d / 4} else {each 0..d}
// want: each 0..d / 4:
// want:     ((float4 *)(out + (int)(block * d)))[i] = ((const float4 *)(x + (int)(block * d)))[i];
// want: each 0..d:
// want:     out[(int)(block * d) + i_2] = x[(int)(block * d) + i_2];
// want: store out[i]: 1
// want: load x[i]: 1
// want: store out[(int)(block * d) + i_2]: 1
// want: load x[(int)(block * d) + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3, line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: wide steps become units
// with: launch = { grid = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = (blockIdx.x * 256 + threadIdx.x) * 4; i < rows * d; i += gridDim.x * 1024)
    *(float4 *)(out + i) = *(const float4 *)(x + i);
}
// want: grid: | each 0..(rows * d + 3) / 4
// want: each 0..(rows * d + 3) / 4:
// want:     ((float4 *)(out + i_step * 4))[0] = ((const float4 *)(x + i_step * 4))[0];
// want: store out[0]: 1
// want: load x[0]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: integers keep their width
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const long long at = (long long)blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += 256) out[at + i] = x[at + i];
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[(long long)block * d + i] = x[(long long)block * d + i];
// want: store out[(long long)block * d + i]: 1
// want: load x[(long long)block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a loop with cooperation inside runs in turn
// with: launch = { grid = ["4"], block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int h = 0; h < rows; h++) { float s = 0;
for (int i = threadIdx.x; i < d; i += 32) s += x[(blockIdx.x * rows + h) * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
if (threadIdx.x == 0) out[blockIdx.x * rows + h] = s; }
}
// want: block: block<4 | again h {each 0..d +s; once 1}
// want: each 0..d +s (s from 0.0f):
// want:     s += x[(block * rows + h) * d + i];
// want: once 1:
// want:     out[block * rows + h] = s;
// want: load x[(block * rows + h) * d + i]: 1
// want: store out[block * rows + h]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: an online softmax of one thread is two loops
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
float m = -INFINITY, l = 0.0f;
for (int i = 0; i < d; i++) { float v = x[row * d + i]; float n = fmaxf(m, v);
    l = l * expf(m - n) + expf(v - n); m = n; }
for (int i = 0; i < d; i++) out[row * d + i] = expf(x[row * d + i] - m) / l;
}
// want: thread: row<rows | each 0..d maxm; each 0..d +l_sum; let l; each 0..d
// want: each 0..d maxm (m from -INFINITY fmaxf):
// want:     float v = x[row * d + i];
// want:     m = fmaxf(m, v);
// want: each 0..d +l_sum (l_sum from 0.0f):
// want:     float v_again = x[row * d + i_again];
// want:     l_sum += expf(v_again - m);
// want: let l:
// want:     const float l = 0.0f * expf(-INFINITY - m) + l_sum;
// want: each 0..d:
// want:     out[row * d + i_2] = expf(x[row * d + i_2] - m) / l;
// want: load x[row * d + i]: 1
// want: load x[row * d + i_again]: 1
// want: store out[row * d + i_2]: 1
// want: load x[row * d + i_2]: 1
// want: note: the maximum and the sum of exponentials, found in one pass, are read as two loops
// want:   the turns of a loop may come in any order: proved (line 4, line 6)
// want:   'm' may be joined in another order: proved (line 4)
// want:   'l_sum' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what only resembles an online softmax is left alone
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
float m = -INFINITY, l = 0.0f;
for (int i = 0; i < d; i++) { float v = x[row * d + i]; float n = fmaxf(m, v);
    l = l * expf(n - m) + expf(v - n); m = n; }
out[row] = l;
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float m = -INFINITY;
// want:     float l = 0.0f;
// want:     for (int i = 0; i < d; i++) {
// want:         float v = x[row * d + i];
// want:         float n = fmaxf(m, v);
// want:         l = l * expf(n - m) + expf(v - n);
// want:         m = n;
// want:     }
// want:     out[row] = l;
// want: load x[row * d + i]: None
// want: store out[row]: 1
// want: note: each thread walks a row of its own, which cannot be shared out: line 4: 'l' is carried from one element to the next in a way that is no sum, product, maximum or minimum
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: shared memory declared as bytes
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
extern __shared__ char raw[]; float *b = (float *)raw; const int r = blockIdx.x * d;
float *row = b + blockDim.x; float s = 0.0f;
for (int i = threadIdx.x; i < d; i += blockDim.x) { row[i] = x[r + i]; s += row[i]; }
b[threadIdx.x] = s; __syncthreads();
for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) b[threadIdx.x] += b[threadIdx.x + k]; __syncthreads(); }
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r + i] = row[i] / b[0];
}
// want: block: block<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     raw[i] = x[(int)(block * d) + i];
// want:     s += raw[i];
// want: each 0..d:
// want:     out[(int)(block * d) + i_2] = raw[i_2] / s;
// want: keeps raw: 1 float
// want: load x[(int)(block * d) + i]: 1
// want: store out[(int)(block * d) + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a load under a condition stays under it
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x; const int at = (int)x[row]; float base = 0.0f;
if (at >= 0) base = x[at];
for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i] - base;
}
// want: block: row<rows | let at, base; each 0..d
// want: let at, base:
// want:     const int at = (int)x[row];
// want:     const float base = at >= 0 ? (float)x[at] : 0.0f;
// want: each 0..d:
// want:     out[row * d + i] = x[row * d + i] - base;
// want: load x[row]: None
// want: load x[at]: None
// want: store out[row * d + i]: 1
// want: load x[row * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a turn must not live on what the last left in shared memory
// with: launch = { grid = ["1"], block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float last; if (threadIdx.x == 0) last = 0.0f; __syncthreads();
for (int h = 0; h < rows; h++) { float s = 0;
for (int i = threadIdx.x; i < d; i += 32) s += x[h * d + i] * last;
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
__syncthreads(); if (threadIdx.x == 0) { last = s; out[h] = s; } __syncthreads(); }
}
// want: not read: line 4: the loop reads 'last': an earlier turn of a loop has set it

// case: atomics that every thread repeats
// with: launch = { grid = ["1"], block = ["32"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 32) out[i] = x[i]; float n = 0;
for (int j = 0; j < d; j++) atomicAdd(&out[j], x[j]);
}
// want: not read: line 3: every thread of the team updates the same elements in turn

// case: an integer constant in a float variable divides as a float
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float half = 1; half = half / d;
for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = half;
}
// want: block: block<rows | let half; each 0..d
// want: let half:
// want:     const float half = 1.0f / d;
// want: each 0..d:
// want:     out[block * d + i] = half;
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a constant that a float must round keeps its variable
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float tenth = 0; tenth = 0.1;
for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i] * tenth;
}
// want: block: block<rows | let tenth; each 0..d
// want: let tenth:
// want:     const float tenth = 0.1;
// want: each 0..d:
// want:     out[block * d + i] = x[i] * tenth;
// want: store out[block * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: several elements of a thread without a test of their own
// with: launch = { block = ["8"] }
// with: contract = { d = { one_of = [32] } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
for (int k = 0; k < 4; k++) out[first + k] = x[first + k];
}
// want: grid: | each 0..rows * 8
// want: each 0..rows * 8:
// want:     for (int k = 0; k < 4; k++)
// want:         out[first_step * 4 + k] = x[first_step * 4 + k];
// want: store out[first_step * 4 + k]: 4
// want: load x[first_step * 4 + k]: 4
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: vectors and what is left of them over the whole grid
// with: launch = { grid = ["min(rows, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
const int n = rows * d, step = blockDim.x * gridDim.x;
for (int k = i; k < n / 4; k += step) ((float4 *)out)[k] = ((const float4 *)x)[k];
for (int k = n / 4 * 4 + i; k < n; k += step) out[k] = x[k];
}
// want: grid: | each 0..rows * d / 4; each 0..rows * d - rows * d / 4 * 4
// want: each 0..rows * d / 4:
// want:     ((float4 *)out)[k] = ((const float4 *)x)[k];
// want: each 0..rows * d - rows * d / 4 * 4:
// want:     out[k_2 + rows * d / 4 * 4] = x[k_2 + rows * d / 4 * 4];
// want: store out[k]: 1
// want: load x[k]: 1
// want: store out[k_2 + rows * d / 4 * 4]: 1
// want: load x[k_2 + rows * d / 4 * 4]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: elements that one thread stores twice in order
// with: launch = { grid = ["min(rows, 64)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float *row = out;
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) row[i] = 0.0f;
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d / 3; i += gridDim.x * blockDim.x) row[i] = x[i];
}
// want: not read: line 4: 'out[i]' is touched here by other threads than in line 3 ('out[i]'): 'out' passes values between threads

// case: elements that one thread stores twice in order (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float *row = out + blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += 256) row[i] = 0.0f;
for (int i = threadIdx.x; i < d / 3; i += 256) row[i] = x[i];
}
// want: not read: line 4: 'out[block * d + i]' is touched here by other threads than in line 3 ('out[block * d + i]'): 'out' passes values between threads

// case: totals in memory: set before
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
out[i * d] = 0; int j; for (j = 0; j < d; j++) out[i * d] += x[i * d + j];
}
// want: thread: i<rows | each 0..d +out_here; once 1
// want: each 0..d +out_here (out_here from 0.0f):
// want:     out_here += x[i * d + j_in_3];
// want: once 1:
// want:     out[i * d] = out_here;
// want: load x[i * d + j_in_3]: 1
// want: store out[i * d]: None
// want:   the turns of a loop may come in any order: proved (line 3)
// want:   'out_here' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in memory: added to
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
for (int j = 0; j < d; j++) out[i * d] += x[i * d + j];
}
// want: thread: i<rows | each 0..d +out_here; once 1
// want: each 0..d +out_here (out_here from 0.0f):
// want:     out_here += x[i * d + j];
// want: once 1:
// want:     out[i * d] += out_here;
// want: load x[i * d + j]: 1
// want: update out[i * d]: None
// want:   the turns of a loop may come in any order: proved (line 3)
// want:   'out_here' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in memory: the largest
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
out[i * d] = -INFINITY; for (int j = 0; j < d; j++) out[i * d] = fmaxf(out[i * d], x[i * d + j]);
}
// want: thread: i<rows | each 0..d maxout_here; once 1
// want: each 0..d maxout_here (out_here from -INFINITY fmaxf):
// want:     out_here = fmaxf(out_here, x[i * d + j]);
// want: once 1:
// want:     out[i * d] = out_here;
// want: load x[i * d + j]: 1
// want: store out[i * d]: None
// want:   the turns of a loop may come in any order: proved (line 3)
// want:   'out_here' may be joined in another order: proved (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in memory: read as well
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
for (int j = 0; j < d; j++) if (out[i * d] < 9) out[i * d] += x[i * d + j];
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int j = 0; j < d; j++) {
// want:         if (out[i * d] < 9)
// want:             out[i * d] += x[i * d + j];
// want:     }
// want: load out[i * d]: None
// want: update out[i * d]: None
// want: load x[i * d + j]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'j' depend on each other: 'out[i * d]' is the same element in every turn
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in memory: the element moves
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
for (int j = 0; j < d; j++) out[i * d + j % 2] += x[i * d + j];
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int j = 0; j < d; j++)
// want:         out[i * d + j % 2] += x[i * d + j];
// want: update out[i * d + j % 2]: None
// want: load x[i * d + j]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'j' depend on each other: 'out[i * d + j % 2]' may be the same element in different turns
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: totals in a structure
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
float2 s = make_float2(0.0f, 0.0f);
for (int i = threadIdx.x; i < d; i += 256) { float v = x[r + i]; s.x += v; s.y += v * v; }
for (int o = 16; o > 0; o /= 2) {
    s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
__shared__ float2 all[8]; if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = s; __syncthreads();
s = threadIdx.x % 32 < 8 ? all[threadIdx.x % 32] : make_float2(0.0f, 0.0f);
for (int o = 16; o > 0; o /= 2) {
    s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }
for (int i = threadIdx.x; i < d; i += 256) out[r + i] = (x[r + i] - s.x) * s.y;
}
// want: block: block<rows | each 0..d +s_x +s_y; each 0..d
// want: each 0..d +s_x +s_y (s_x from 0.0f, s_y from 0.0f):
// want:     float v = x[(int)(block * d) + i];
// want:     s_x += v;
// want:     s_y += v * v;
// want: each 0..d:
// want:     out[(int)(block * d) + i_2] = (x[(int)(block * d) + i_2] - s_x) * s_y;
// want: load x[(int)(block * d) + i]: 1
// want: store out[(int)(block * d) + i_2]: 1
// want: load x[(int)(block * d) + i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 4, line 11)
// want:   's_x' may be joined in another order: the contract's word ([accuracy])
// want:   's_y' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: fields that are set from each other
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i >= rows * d) return;
float2 s = make_float2(x[i], 2.0f); s = make_float2(s.y, s.x); out[i] = s.x - s.y;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     float s_x = x[i];
// want:     float s_y = 2.0f;
// want:     float s_x_new_1 = s_y;
// want:     float s_y_new_1 = s_x;
// want:     s_x = s_x_new_1;
// want:     s_y = s_y_new_1;
// want:     out[i] = s_x - s_y;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: structures that are loaded whole stay whole
// with: launch = { grid = ["ceildiv(rows * d, 512)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows * d / 2) { float2 v = ((const float2 *)x)[i]; ((float2 *)out)[i] = v; }
}
// want: grid: | each 0..rows * d / 2
// want: each 0..rows * d / 2:
// want:     float2 v = ((const float2 *)x)[i];
// want:     ((float2 *)out)[i] = v;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a narrow total that starts somewhere wraps
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
signed char s = 100; for (int j = 0; j < d; j++) s += (signed char)x[i * d + j];
out[i * d] = s;
}
// want: thread: i<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0):
// want:     s += (signed char)x[i * d + j];
// want: once 1:
// want:     out[i * d] = (signed char)(100 + s);
// want: load x[i * d + j]: 1
// want: store out[i * d]: None
// want:   the turns of a loop may come in any order: proved (line 3)
// want:   's' may be joined in another order: proved (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a sum that starts at zero is still cut at zero
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;
float s = 0.0f; for (int j = 0; j < d; j++) s += x[i * d + j];
out[i * d] = fmaxf(s, 0.0f);
}
// want: thread: i<rows | each 0..d +s; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s += x[i * d + j];
// want: once 1:
// want:     out[i * d] = fmaxf(s, 0.0f);
// want: load x[i * d + j]: 1
// want: store out[i * d]: None
// want:   the turns of a loop may come in any order: proved (line 3)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: a thread beside the elements it takes is counted once
// with: launch = { grid = ["ceildiv(rows * d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
for (int n = 0; n < 4; n++) if (first + n < rows * d) out[first + n] = x[first + n] + threadIdx.x;
}
// want: grid: | each 0..(rows * d + 1023) / 1024 * 256
// want: each 0..(rows * d + 1023) / 1024 * 256:
// want:     for (int n = 0; n < 4; n++) {
// want:         if (first_step * 4 + n < rows * d)
// want:             out[first_step * 4 + n] = x[first_step * 4 + n] + (unsigned int)(first_step * 4 / 4 % 256);
// want:     }
// want: store out[first_step * 4 + n]: 4
// want: load x[first_step * 4 + n]: 4
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a thread beside the elements it takes is counted once (2)
// with: launch = { grid = ["ceildiv(rows * d, 256)"], block = ["16", "16"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.y * 16 + threadIdx.x;
if (i < rows * d) out[i] = x[i] + threadIdx.x;
}
// want: not read: 'i' and 'threadIdx.x' both say which of the same threads it is

// case: a pointer keeps the index that it was made from
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
int k = i;
const float *p = x + k;
k = 0;
if (i < rows * d) out[i] = *p + x[k];
}
// want: grid: | each 0..(rows * d + 255) / 256 * 256
// want: each 0..(rows * d + 255) / 256 * 256:
// want:     int k = i;
// want:     const int k_then = k;
// want:     k = 0;
// want:     if (i < rows * d)
// want:         out[i] = x[k_then] + x[k];
// want: store out[i]: 1
// want: load x[k_then]: None
// want: load x[k]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: pointers and indices that a loop moves are sums over its index
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x;
if (row >= rows) return;
const float *p = x + row * d;
int at = row * d;
for (int i = 0; i < d; ++i, ++p) { out[at] = *p; at += 1; }
}
// want: thread: row<rows | each 0..d
// want: each 0..d:
// want:     out[row * d + i] = x[row * d + ((long long)0 + (long long)i)];
// want: store out[row * d + i]: 1
// want: load x[row * d + ((long long)0 + (long long)i)]: 1
// want:   the turns of a loop may come in any order: proved (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns that come to all elements of the sizes tried need not at others
// with: launch = { grid = ["ceildiv(rows * d, 256)"], block = ["64"] }
// with: contract = { d = { one_of = [32, 64, 96, 256] } }
// with: workloads = { many = { rows = 3, d = 64 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int n = 0; n < 4; n++) {
  const int i = blockIdx.x * 256 + n * 64 + threadIdx.x;
  if (i >= rows * (d / 4)) continue;
  out[i * 4] = out[i * 4] * 0.5f + 1.0f;
}
}
// want: grid: | each 0..rows * (d / 4)
// want: each 0..rows * (d / 4):
// want:     out[(int)n_own * 4] = out[(int)n_own * 4] * 0.5f + 1.0f;
// want: store out[(int)n_own * 4]: 4
// want: load out[(int)n_own * 4]: 4
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)
