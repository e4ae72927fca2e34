// Tiles in shared memory: read as the values they hold, and left alone where that cannot be proved.

// case: what a tile holds is read: a copy
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     out[y0 * d + x0] = x[y0 * d + x0];
// want: store out[y0 * d + x0]: 1
// want: load x[y0 * d + x0]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: zero first
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = 0; if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();
const float v = t[ty][tx]; if (x0 < d && y0 < rows) out[y0 * d + x0] = v;
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     const float v = x[y0 * d + x0];
// want:     out[y0 * d + x0] = v;
// want: load x[y0 * d + x0]: 1
// want: store out[y0 * d + x0]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: a branch for the edge
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 >= d - 1 || y0 >= rows) t[ty][tx] = 1; else t[ty][tx] = x[y0 * d + x0 + 1];
__syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     out[y0 * d + x0] = x0 + 1 < d ? x[y0 * d + (x0 + 1)] : (float)1;
// want: store out[y0 * d + x0]: 1
// want: load x[y0 * d + (x0 + 1)]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: a value by a branch
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float v = 2.0f; if (x0 + 3 < d && y0 < rows) v = x[y0 * d + x0 + 3]; t[ty][tx] = v;
__syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     out[y0 * d + x0] = x0 + 3 < d ? x[y0 * d + (x0 + 3)] : 2.0f;
// want: store out[y0 * d + x0]: 1
// want: load x[y0 * d + (x0 + 3)]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: a block larger than its elements
// with: launch = { grid = ["ceildiv(d, 14)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[8 * 18];
const int c = (int)(blockIdx.x * 14 + threadIdx.x) - 1, r = blockIdx.y * 8 + threadIdx.y;
t[threadIdx.y * 18 + threadIdx.x] = c >= 0 && c < d && r < rows ? x[r * d + c] : 0.0f;
__syncthreads();
if (threadIdx.x > 0 && threadIdx.x < 15 && c < d && r < rows)
  out[r * d + c] = t[threadIdx.y * 18 + threadIdx.x - 1] + t[threadIdx.y * 18 + threadIdx.x + 1];
}
// want: grid: r<rows | each 0..d
// want: each 0..d:
// want:     out[r * d + c] = (c >= 1 ? x[r * d + (c - 1)] : 0.0f) + (c + 1 < d ? x[r * d + (c + 1)] : 0.0f);
// want: store out[r * d + c]: 1
// want: load x[r * d + (c - 1)]: 1
// want: load x[r * d + (c + 1)]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 7)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: a tile filled twice
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();
const float v = t[ty][tx]; __syncthreads();
if (x0 < d && y0 < rows) t[ty][tx] = 2 * x[y0 * d + x0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = v + t[ty][tx];
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     const float v = x[y0 * d + x0];
// want:     out[y0 * d + x0] = v + 2 * x[y0 * d + x0];
// want: load x[y0 * d + x0]: 1
// want: store out[y0 * d + x0]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what a tile holds is read: a variable set anew
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
int a = ty; if (x0 < d && y0 < rows) t[a][tx] = x[y0 * d + x0]; __syncthreads();
a = tx; if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][a];
}
// want: grid: y0<rows | each 0..d
// want: each 0..d:
// want:     out[y0 * d + x0] = x[y0 * d + x0];
// want: store out[y0 * d + x0]: 1
// want: load x[y0 * d + x0]: 1
// want:   every place of 't' that is read was written by one thread, a barrier before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is not proved is left alone: no barrier
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[ty]; if (x0 < d && y0 < rows) out[y0 * d + x0] = t[7 - ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: shared memory 't' is written and read with no barrier between

// case: what is not proved is left alone: a place that nobody wrote
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[ty]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx + 1];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: shared memory 't' is read at a place that nobody wrote before the barrier

// case: what is not proved is left alone: a halo with a hole
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx + 1] = x[y0]; if (tx == 0 && ty > 0) t[ty][0] = x[y0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 6: a branch depends on the thread and on a size at once; as tiles: shared memory 't' is read at a place that nobody wrote before the barrier

// case: what is not proved is left alone: two writers
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx / 2] = x[y0 * d + x0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx / 2];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: line 5: two threads write one place of 't' with no barrier between

// case: what is not proved is left alone: a test weaker at the read
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d - 1 && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: 't' may be read where a test has kept it from being written

// case: what is not proved is left alone: a test of another thread
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d && y0 < rows) t[ty][tx] = x[y0 * d + x0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = tx < 15 ? t[ty][tx + 1] : 0.0f;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: 't' may be read where a test has kept it from being written

// case: what is not proved is left alone: a test by data
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x[y0] > 0) t[ty][tx] = x[y0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: a tile is written under a test that is not followed

// case: what is not proved is left alone: what is copied changes
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = out[y0 * d + x0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: 'out' is read and written by a kernel with barriers

// case: what is not proved is left alone: a variable that changes
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float s = 0; for (int i = 0; i < 4; i++) { s += x[i]; } t[ty][tx] = s; s = 1;
__syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = s + t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 6: a branch depends on the thread and on a size at once; as tiles: line 5: 't' holds what depends on 's', which changes

// case: what is not proved is left alone: a barrier for some
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[y0]; if (tx < 8) __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a barrier where not all threads of the block arrive; as tiles: line 5: not every thread of a block comes to the barrier

// case: what is not proved is left alone: a return before the barrier
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 >= d) return; t[ty][tx] = x[y0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: line 5: not every thread of a block comes to the barrier

// case: what is not proved is left alone: barriers as often as a thread likes
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
for (int i = 0; i < tx; i++) { t[ty][tx] = x[i]; __syncthreads(); } if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a barrier where not all threads of the block arrive; as tiles: line 5: a loop with barriers turns differently for different threads

// case: what is not proved is left alone: one barrier to a turn
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float s = 0; for (int k = 0; k < d; k++) { t[ty][tx] = x[k]; __syncthreads();
s += t[7 - ty][tx]; } if (x0 < d && y0 < rows) out[y0 * d + x0] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: __syncthreads inside a loop over elements; as tiles: line 5: a turn fills shared memory that the turn before may still read

// case: what is not proved is left alone: a tile from the turn before
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float s = 0; for (int k = 0; k < d; k++) { s += t[ty][tx]; __syncthreads();
t[ty][tx] = x[k]; __syncthreads(); } if (x0 < d && y0 < rows) out[y0 * d + x0] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: __syncthreads inside a loop over elements; as tiles: shared memory 't' is read at a place that nobody wrote before the barrier

// case: what is not proved is left alone: a tile from before a loop that may not turn
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float u[8][16];
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[y0];
for (int k = 0; k < d; k++) { u[ty][tx] = x[k]; __syncthreads(); } if (x0 < d && y0 < rows) out[y0 * d + x0] = t[7 - ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 7: __syncthreads inside a loop over elements; as tiles: shared memory 't' is written and read with no barrier between

// case: what is not proved is left alone: turns that a thread leaves
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float s = 0; for (int k = 0; k < d; k++) { if (k == tx) break; t[ty][tx] = x[k];
__syncthreads(); s += t[ty][tx]; __syncthreads(); } if (x0 < d && y0 < rows) out[y0 * d + x0] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: __syncthreads inside a loop over elements; as tiles: line 5: a loop with barriers turns differently for different threads

// case: what is not proved is left alone: turns that data count
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
float s = 0; int n = (int)x[x0]; for (int k = 0; k < n; k++) { t[ty][tx] = x[k];
__syncthreads(); s += t[ty][tx]; __syncthreads(); } if (x0 < d && y0 < rows) out[y0 * d + x0] = s;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: the range of the loop over 'k' differs between threads: a value that differs from thread to thread; as tiles: line 5: a loop with barriers turns differently for different threads

// case: what is not proved is left alone: a place that is left out
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
for (int j = 0; j < 1; j++) { if (x[j] > 0) break; t[ty][tx + j] = x[j]; }
__syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: 'break' is not understood; as tiles: line 5: shared memory is written in a way that is not followed

// case: what is not proved is left alone: one value in shared memory
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float one;
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (tx == 3) one = x[ty]; t[ty][tx] = x[y0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[7 - ty][tx] + one;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: 'one' in shared memory is no array

// case: what is not proved is left alone: a tile read as vectors
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float u[128];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
u[ty * 16 + tx] = x[y0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = ((float2 *)u)[(ty * 16 + tx) / 2].x;
}
// want: not read: threads cooperate other than by totals over a row's elements: line 6: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element

// case: what is not proved is left alone: a sum in the tile
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = 0; __syncthreads(); t[ty][tx] += x[y0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: line 5: shared memory is written in a way that is not followed

// case: what is not proved is left alone: an unsigned number below zero
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = threadIdx.x - 1 < 20u ? x[y0] : 0.0f; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: an unsigned number below zero in 'threadIdx.x - 1 < 20u'; as tiles: 'threadIdx.x - 1 < 20u' may be of an unsigned number below zero

// case: what is not proved is left alone: a block turned round
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d && y0 < rows) t[ty][15 - tx] = x[y0 * d + x0]; __syncthreads();
if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: 't' may be read where a test has kept it from being written

// case: what is not proved is left alone: elements of several threads
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[y0 + tx]; __syncthreads(); if (y0 < rows) out[y0 * d + x0 / 2] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: 'out[y0 * d + x0 / 2]' is stored to at a place that depends on the thread, outside a loop over elements (a value that differs from thread to thread); as tiles: '(blockIdx.x * 16 + threadIdx.x) / 2' differs between threads in a way not followed

// case: what is not proved is left alone: a store before the barrier
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
if (x0 < d && y0 < rows) out[y0 * d + x0] = 1; t[ty][tx] = x[y0]; __syncthreads(); if (x0 < d && y0 < rows) out[y0 * d + x0] = t[ty][tx];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: global memory is written before and after a barrier

// case: what is not proved is left alone: an atomic
// with: launch = { grid = ["ceildiv(d, 16)", "ceildiv(rows, 8)"], block = ["16", "8"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[10][18];
const int tx = threadIdx.x, ty = threadIdx.y;
const int x0 = blockIdx.x * 16 + tx, y0 = blockIdx.y * 8 + ty;
t[ty][tx] = x[y0]; __syncthreads(); atomicAdd(&out[y0 * d + x0], t[ty][tx]);
}
// want: not read: threads cooperate other than by totals over a row's elements: line 5: atomicAdd on global memory by several threads, outside a loop over elements; as tiles: threads of a block cooperate other than by tiles

// case: a block whose shape is a size is left alone
// with: launch = { block = ["min(d, 1024)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float t[1024]; const int i = blockIdx.x * blockDim.x + threadIdx.x;
t[threadIdx.x] = x[i]; __syncthreads(); out[i] = t[blockDim.x - 1 - threadIdx.x];
}
// want: not read: threads cooperate other than by totals over a row's elements: line 3: 'out[i]' is stored to at a place that depends on the thread, outside a loop over elements (a value that differs from thread to thread); as tiles: the shape of a block is no number

// case: a row that all threads read is loaded by each
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = (i > 0 ? row[i - 1] : 0.0f) + (i + 1 < d ? row[i + 1] : 0.0f);
}
// want: block: r<rows | each 0..d
// want: each 0..d:
// want:     out[r * d + i_2] = (i_2 > 0 ? x[r * d + (i_2 - 1)] : 0.0f) + (i_2 + 1 < d ? x[r * d + (i_2 + 1)] : 0.0f);
// want: store out[r * d + i_2]: 1
// want: load x[r * d + (i_2 - 1)]: 1
// want: load x[r * d + (i_2 + 1)]: 1
// want:   every place of 'row' that is read was filled before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a row that all threads read is loaded by each: an edge that repeats
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = row[max(i - 1, 0)] - row[min(i + 1, d - 1)];
}
// want: block: r<rows | each 0..d
// want: each 0..d:
// want:     out[r * d + i_2] = x[r * d + max(i_2 - 1, 0)] - x[r * d + min(i_2 + 1, d - 1)];
// want: store out[r * d + i_2]: 1
// want: load x[r * d + max(i_2 - 1, 0)]: None
// want: load x[r * d + min(i_2 + 1, d - 1)]: None
// want:   every place of 'row' that is read was filled before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a row that all threads read is loaded by each: all of it
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) {
float s = 0; for (int j = 0; j <= i; j++) s += row[j]; out[r * d + i] = s; }
}
// want: block: r<rows | each 0..d
// want: each 0..d:
// want:     float s = 0;
// want:     for (int j = 0; j <= i_2; j++)
// want:         s += x[r * d + j];
// want:     out[r * d + i_2] = s;
// want: load x[r * d + j]: 0
// want: store out[r * d + i_2]: 1
// want:   every place of 'row' that is read was filled before: proved (line 2)
// want:   the turns of a loop may come in any order: the kernel's own (line 5)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a row that is not proved whole is left alone: behind its end
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = row[i + 1];
}
// want: not read: line 5: shared memory is read as 'row[i + 1]', which no loop over the same elements wrote; as tiles: line 2: not every thread of a block comes to the barrier

// case: a row that is not proved whole is left alone: before its start
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = row[i - 1];
}
// want: not read: line 5: shared memory is read as 'row[i - 1]', which no loop over the same elements wrote; as tiles: line 2: not every thread of a block comes to the barrier

// case: a row that is not proved whole is left alone: no barrier
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;

}
// want: not read: line 4: shared memory is read as 'row[i - 1]', which no loop over the same elements wrote; as tiles: shared memory 'row' is written and read with no barrier between

// case: a row that is not proved whole is left alone: what is loaded changes
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = out[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;

}
// want: not read: line 5: shared memory is read as 'row[i - 1]', which no loop over the same elements wrote; as tiles: 'out' is read and written by a kernel with barriers

// case: a row that is not proved whole is left alone: threads that leave
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (threadIdx.x >= d) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;

}
// want: not read: line 2: a branch depends on the thread and on a size at once; as tiles: line 2: not every thread of a block comes to the barrier

// case: a row that is not proved whole is left alone: half the threads
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += 512) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;

}
// want: not read: line 3: a branch depends on the thread and on a size at once; as tiles: line 2: not every thread of a block comes to the barrier

// case: a row that is not proved whole is left alone: each thread's own
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[i] + threadIdx.x;
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;

}
// want: not read: line 3: the loop reads 'threadIdx.x': it differs from thread to thread; as tiles: line 2: not every thread of a block comes to the barrier

// case: a row that is not proved whole is left alone: filled twice
// with: contract = { d = { min = 1, max = 512 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = i > 0 ? row[i - 1] : 0.0f;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];

}
// want: not read: line 5: shared memory is read as 'row[i - 1]', which no loop over the same elements wrote; as tiles: line 2: not every thread of a block comes to the barrier
