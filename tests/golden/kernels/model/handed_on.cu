// What passes from turn to turn, task to task or pointer to pointer: found, and refused with the line.

// case: refused: a thread that returns from a loop over the grid
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x)
{ if (x[i] < 0) return; out[i] = x[i]; }
}
// want: not read: line 8: a thread returns from inside a loop that is shared out

// case: refused: a thread that returns from a loop over elements
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
for (int i = threadIdx.x; i < d; i += 32) { if (x[row * d + i] < 0) return; out[row * d + i] = s; }
}
// want: not read: line 10: a thread returns from inside a loop that is shared out

// case: refused: a block that returns from a loop over tasks
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
if (s < 0) return; if (threadIdx.x == 0) out[row] = s; }
}
// want: not read: line 10: a thread returns from inside a loop that is shared out

// case: refused: a body that moves its index
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
for (int i = threadIdx.x; i < d; i += 32) { out[row * d + i] = s; if (s > 4) i += 32; }
}
// want: not read: line 10: a branch depends on the thread and on a size at once

// case: refused: a body that moves its end
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
int n = d; for (int i = threadIdx.x; i < n; i += 32) { out[row * d + i] = s; n--; }
}
// want: not read: line 10: a branch depends on the thread and on a size at once

// case: refused: a loop that writes where it ends
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
for (int i = threadIdx.x; i < (int)out[row * d]; i += 32) out[row * d + i] = s;
}
// want: not read: line 10: the loop writes 'out', and 'out[row * d]' says how far it goes

// case: refused: the same over the grid
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (int)out[0]; i += gridDim.x * blockDim.x)
out[i] = x[i];
}
// want: not read: line 7: the loop writes 'out', and 'out[0]' says how far it goes

// case: refused: a sum over tasks
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float all = 0;
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
all += s; if (threadIdx.x == 0) out[row] = all; }
}
// want: not read: line 11: what is stored to 'out' is not the same for the team: is carried from one task to the next

// case: refused: a count of tasks
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int n = 0;
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{ n++; for (int i = threadIdx.x; i < d; i += 32) out[row * d + i] = n; }
}
// want: not read: line 9: the loop reads 'n': is carried from one task to the next

// case: refused: shared memory from task to task
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float c; if (threadIdx.x == 0) c = 0; __syncthreads();
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{ float v = c; for (int i = threadIdx.x; i < d; i += 32) out[row * d + i] = v; __syncthreads(); if (threadIdx.x == 0) c = 5;
__syncthreads(); }
}
// want: not read: line 9: the loop reads 'v': is carried from one task to the next

// case: refused: a local array over the grid
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float t[1] = {0};
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x)
{ t[0] += x[i]; out[i] = t[0]; }
}
// want: not read: line 8: 't' is carried from one element to the next

// case: refused: an element read, stored and used again
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[1]; const int i = threadIdx.x, r = blockIdx.x * 32;
float s = out[r + i]; out[r + i] = x[r + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
if (i == 0) out[blockIdx.x] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 10: what is stored to 'out' is not the same for the team: uses 'out' as it was before it is stored to; as tiles: threads of a block cooperate other than by tiles

// case: refused: an element read, stored and stored elsewhere
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[1]; const int i = threadIdx.x, r = blockIdx.x * 32;
float s = x[r + i]; 
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
float v = out[r + i]; out[r + i] = s; ((float *)x)[r + i] = v;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 10: 'x[r + i]' is stored: uses 'out' as it was before it is stored to; as tiles: threads of a block cooperate other than by tiles

// case: refused: an integer that adds up floats
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
int n = 0; for (int i = threadIdx.x; i < d; i += 32) n += x[row * d + i];
for (int o = 16; o > 0; o /= 2) n += __shfl_xor_sync(~0u, n, o);
if (threadIdx.x == 0) out[row] = n;
}
// want: not read: line 10: 'n', an integer, adds up what are no integers: the order matters

// case: refused: an integer that adds up a helper's floats
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
int n = 0; for (int i = threadIdx.x; i < d; i += 32) n += twice(x[row * d + i]);
for (int o = 16; o > 0; o /= 2) n += __shfl_xor_sync(~0u, n, o);
if (threadIdx.x == 0) out[row] = n;
}
// want: not read: line 10: 'n', an integer, adds up what are no integers: the order matters

// case: refused: a mask of half a warp
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float b[1]; const int i = threadIdx.x, r = blockIdx.x * 32;
float s = x[r + i]; 
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
int n = __reduce_add_sync(i < 16 ? 0xffffu : 0xffff0000u, (int)x[r + i]); if (i == 0) out[r] = n;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 10: a mask that is not just the threads of the warp that are here; as tiles: threads of a block cooperate other than by tiles

// case: refused: an atomic by pointer beside a store
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
atomicAdd(out + 8, x[i]); out[i] = 1;
}
// want: not read: threads depend on each other: 'out' is written both plainly and by atomics

// case: refused: a place that is the same by its text alone
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
int k = i; out[k] = 1; k = (i + 7) % 64; float v = out[k]; out[i] = v;
}
// want: not read: threads depend on each other: 'out' is written at 'out[k]' and touched at 'out[k]'

// case: refused: places apart by what each turn has its own of
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
const int k = (int)x[i]; out[2 * i + k] = out[2 * i + k + 1];
}
// want: not read: threads depend on each other: 'out' is written at 'out[2 * i + k]' and touched at 'out[2 * i + k + 1]'

// case: refused: places apart in another type
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
((char *)out)[4 * i] = ((char *)(out + 1))[4 * i];
}
// want: not read: threads depend on each other: 'out' is written at '((char *)out)[4 * i]' and touched at '((char *)(out + 1))[4 * i]'

// case: refused: a pointer of no written type
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
auto q = out; out[i] = q[i + 1];
}
// want: not read: line 8: the pointer 'out' is used in a way that is not followed

// case: refused: an array of pointers
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
const float *q[2] = {x, out}; out[i] = q[1][i + 1];
}
// want: not read: line 8: the pointer 'x' is used in a way that is not followed

// case: refused: a pointer as a number
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
unsigned long long a = (unsigned long long)out; out[i] = ((float *)a)[i + 1];
}
// want: not read: line 8: memory is reached through a pointer made of a number

// case: refused: a pointer of the file
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
out[i] = elsewhere[i + 1];
}
// want: not read: line 8: 'elsewhere', a pointer of the file, may point anywhere

// case: refused
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
const dim3 t = threadIdx; out[i] = x[i] * t.x;
}
// want: not read: line 8: 'threadIdx' is used other than by its .x, .y and .z

// case: refused (2)
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
const auto &t = threadIdx; out[i] = x[i] * t.x;
}
// want: not read: line 8: 'threadIdx' is used other than by its .x, .y and .z

// case: refused: a jump
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
if (x[i] < 0) goto end; out[i] = 1; end: ;
}
// want: not read: line 8: 'goto end;' is not understood

// case: refused: a helper that counts
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
out[i] = counted(x[i]);
}
// want: not read: line 2: 'seen', a variable of the file, is written to

// case: turns that depend on each other stay with their thread: a store to the next turn's element
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
for (int i = 0; i < d; i++) { out[row * d + i] = x[row * d + i]; out[row * d + i + 1] = 0; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int i = 0; i < d; i++) {
// want:         out[row * d + i] = x[row * d + i];
// want:         out[row * d + i + 1] = 0;
// want:     }
// want: store out[row * d + i]: None
// want: load x[row * d + i]: None
// want: store out[row * d + i + 1]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'i' depend on each other: 'out' is written at 'out[row * d + i + 1]' and touched at 'out[row * d + i]'
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns that depend on each other stay with their thread: a stride that may be nothing
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
for (int i = 0; i < d; i++) out[row * d + i * (rows - 5)] = x[row * d + i];
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int i = 0; i < d; i++)
// want:         out[row * d + i * (rows - 5)] = x[row * d + i];
// want: store out[row * d + i * (rows - 5)]: None
// want: load x[row * d + i]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'i' depend on each other: 'out[row * d + i * (rows - 5)]' may be the same element in different turns
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns that depend on each other stay with their thread: an index that is cut off
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
for (int i = 0; i < d; i++) out[row * d + (unsigned char)i] = x[row * d + i];
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int i = 0; i < d; i++)
// want:         out[row * d + (unsigned char)i] = x[row * d + i];
// want: store out[row * d + (unsigned char)i]: None
// want: load x[row * d + i]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'i' depend on each other: 'out[row * d + (unsigned char)i]' may be the same element in different turns
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns that depend on each other stay with their thread: an index that is one bit
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
for (int i = 0; i < d; i++) out[row * d + (bool)i] = x[row * d + i];
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     for (int i = 0; i < d; i++)
// want:         out[row * d + (bool)i] = x[row * d + i];
// want: store out[row * d + (bool)i]: None
// want: load x[row * d + i]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 3: the turns of the loop over 'i' depend on each other: 'out[row * d + (bool)i]' may be the same element in different turns
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: turns that depend on each other stay with their thread: a return
// with: launch = { grid = ["ceildiv(rows, 64)"], block = ["64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;
for (int i = 0; i < d; i++) { if (x[row * d + i] < 0) return; out[row * d + i] = x[row * d + i]; }
}
// want: not read: line 3: it returns from inside a loop

// case: read: a variable that every task sets first
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
float v;
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{ v = x[row]; for (int i = threadIdx.x; i < d; i += 32) out[row * d + i] = v; }
}
// want: block: row<rows | let v; each 0..d
// want: let v:
// want:     const float v = x[row];
// want: each 0..d:
// want:     out[row * d + i] = v;
// want: load x[row]: None
// want: store out[row * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 9)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a task that goes on early
// with: launch = { grid = ["64"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int row = blockIdx.x; row < rows; row += gridDim.x)
{float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
if (s < 0) continue; if (threadIdx.x == 0) out[row] = s; }
}
// want: block: row<rows | each 0..d +s; when !(s < 0) {once 1}
// want: each 0..d +s (s from 0.0f):
// want:     s += x[row * d + i];
// want: once 1:
// want:     out[row] = s;
// want: load x[row * d + i]: 1
// want: store out[row]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: an integer that counts
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x;
float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[row * d + i];
for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
int n = 0; for (int i = threadIdx.x; i < d; i += 32) n += x[row * d + i] > 0;
for (int o = 16; o > 0; o /= 2) n += __shfl_xor_sync(~0u, n, o);
if (threadIdx.x == 0) out[row] = n;
}
// want: block: row<rows | each 0..d +s; each 0..d +n; once 1
// want: each 0..d +s (s from 0.0f):
// want:     s += x[row * d + i];
// want: each 0..d +n (n from 0):
// want:     n += x[row * d + i_2] > 0;
// want: once 1:
// want:     out[row] = n;
// want: load x[row * d + i]: 1
// want: load x[row * d + i_2]: 1
// want: store out[row]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 8, line 10)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   'n' may be joined in another order: proved (line 10)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a pointer that is tested
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
out[i] = x != nullptr && x ? x[i] : 0;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x ? x[i] : 0;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: how a pointer is aligned
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
out[i] = ((unsigned long long)x & 15) == 0 ? x[i] : 0;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = ((unsigned long long)x & 15) == 0 ? x[i] : 0;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: an atomic by pointer
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
atomicAdd(out + i % 8, x[i]);
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     atomicAdd(out + i % 8, x[i]);
// want: atomic out[i % 8]: 1 within 8
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: read: a trap that is never come to
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
if (x[i] < 0) __trap(); assert(x[i] > 0); out[i] = x[i];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     if (x[i] < 0)
// want:         __trap();
// want:     assert(x[i] > 0);
// want:     out[i] = x[i];
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   the kernel does not stop itself: the contract's word (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: a bound that the body computes
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 32 + threadIdx.x, n = (int)x[i]; if (i >= n) return; out[i] = 1;
}
// want: grid: | each 0..rows * 32
// want: each 0..rows * 32:
// want:     const int n = (int)x[i];
// want:     if (!(i >= n))
// want:         out[i] = 1;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: a start that depends on a size
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int i = (d == 5001 ? 2 : 1) * threadIdx.x; i < d; i += 32) out[r + i] = 1;
}
// want: grid: block<rows | each 0..32
// want: each 0..32:
// want:     for (int i = (d == 5001 ? 2 : 1) * thread; i < d; i += 32)
// want:         out[(int)(block * d) + i] = 1;
// want: store out[(int)(block * d) + i]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: a step that depends on a size
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d;
for (int i = threadIdx.x; i < d; i += d == 5001 ? 64 : 32) out[r + i] = 1;
}
// want: grid: block<rows | each 0..32
// want: each 0..32:
// want:     for (int i = thread; i < d; i += d == 5001 ? 64 : 32)
// want:         out[(int)(block * d) + i] = 1;
// want: store out[(int)(block * d) + i]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: rounds that depend on a size
// with: launch = { block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int r = blockIdx.x * d; const int rounds = d == 5001 ? 1 : (d + 31) / 32;
for (int k = 0; k < rounds; k++) { const int i = k * 32 + threadIdx.x; if (i < d) out[r + i] = 1; }
}
// want: grid: block<rows | each 0..32
// want: each 0..32:
// want:     for (int k = 0; k < (d == 5001 ? 1 : (d + 31) / 32); k++) {
// want:         if ((int)(k * 32 + thread) < d)
// want:             out[(int)(block * d) + (int)(k * 32 + thread)] = 1;
// want:     }
// want: store out[(int)(block * d) + (int)(k * 32 + thread)]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: a sum in memory that may never be touched
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
for (int j = 0; j < 8; j++) if (x[j] > 0) out[i / 2] += x[j];
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     for (int j = 0; j < 8; j++) {
// want:         if (x[j] > 0)
// want:             out[i / 2] += x[j];
// want:     }
// want: load x[j]: 0
// want: update out[i / 2]: 0 within 2
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved stays in the text: an argument that counts
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
__device__ int seen; __device__ float *elsewhere;
__device__ float counted(float a) { seen++; return a; }
__device__ float twice(float a) { return 2 * a; }
__device__ float pick(const float *p, int k, bool c) { return c ? p[k] : 0.0f; }

extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows * d) return;
int j = 0; float v = pick(x, j++, x[i] > 0); out[i] = v + j;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     int j = 0;
// want:     const int k_2 = j++;
// want:     const bool c = x[i] > 0;
// want:     const float pick_result = c ? x[k_2] : 0.0f;
// want:     float v = pick_result;
// want:     out[i] = v + j;
// want: load x[i]: 1
// want: load x[k_2]: None
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)
