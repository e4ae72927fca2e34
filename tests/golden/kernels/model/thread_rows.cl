// Rows that one work-item takes in turn, as tasks; and those that must stay its own.
// with: base = "image"

// case: rows are tasks: until the smaller of two ends
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);} }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     ((__global float *)(dst + (y * dst_step + 4 * x + 16)))[0] = 2.0f
// want:         * ((__global const float *)(src + (y * src_step + 4 * x + 16)))[0];
// want: store dst[0]: 1
// want: load src[0]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: the same as a choice
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0; y < (y0 + per < rows ? y0 + per : rows); ++y) {
int at = y * dst_step + 4 * x; *(__global float *)(dst + at) = 1.0f; } }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     ((__global float *)(dst + (y * dst_step + 4 * x)))[0] = 1.0f;
// want: store dst[0]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: as long as there are rows left
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int i = 0; i < 4; ++i) if (y0 < rows) {*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);++y0; from += src_step;
to += dst_step; } }
}
// want: grid: y0<rows | each 0..cols
// want: each 0..cols:
// want:     ((__global float *)(dst + (y0 * dst_step + 4 * x + 16)))[0] = 2.0f
// want:         * ((__global const float *)(src + (y0 * src_step + 4 * x + 16)))[0];
// want: store dst[0]: 1
// want: load src[0]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: tested by the sum
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int i = 0; i < 4; ++i) if (y0 + i < rows)
*(__global float *)(dst + (y0 + i) * dst_step + 4 * x) = i + y0; }
}
// want: grid: y0<rows | each 0..cols
// want: each 0..cols:
// want:     ((__global float *)(dst + (y0 * dst_step + 4 * x)))[0] = y0;
// want: store dst[0]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: left once there are none
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int i = 0; i < 4; ++i) { const int y = y0 + i; if (y >= rows) break;
dst[y * dst_step + x] = src[y * src_step + x]; } }
}
// want: grid: y0<rows | each 0..cols
// want: each 0..cols:
// want:     dst[y0 * dst_step + x] = src[y0 * src_step + x];
// want: store dst[y0 * dst_step + x]: 1
// want: load src[y0 * src_step + x]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: passed over where there are none
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0; y < y0 + 4; ++y) { if (y >= rows) continue;
dst[y * dst_step + x] = src[y * src_step + x]; } }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     dst[y * dst_step + x] = src[y * src_step + x];
// want: store dst[y * dst_step + x]: 1
// want: load src[y * src_step + x]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: in place
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
__global float *p = (__global float *)(dst + to);
p[0] += 1.0f; p[0] *= 3.0f; } }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     ((__global float *)(dst + (y * dst_step + 4 * x + 16)))[0] += 1.0f;
// want:     ((__global float *)(dst + (y * dst_step + 4 * x + 16)))[0] *= 3.0f;
// want: update dst[0]: 1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: several to a pixel
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
__global uchar *p = dst + y * dst_step + 4 * x;
for (int c = 0; c < 4; ++c) p[c] += 2; } }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     for (int c = 0; c < 4; ++c)
// want:         dst[y * dst_step + (4 * x + c)] += 2;
// want: update dst[y * dst_step + (4 * x + c)]: 4
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows are tasks: mirrored in its row
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
dst[y * dst_step + x] = 1; dst[y * dst_step + cols - 1 - x] = 2; } }
}
// want: grid: y<rows | each 0..cols
// want: each 0..cols:
// want:     dst[y * dst_step + x] = 1;
// want:     dst[y * dst_step + cols - 1 - x] = 2;
// want: store dst[y * dst_step + x]: 1
// want: store dst[y * dst_step + cols - 1 - x]: -1
// want:   rows that a thread takes in turn do not depend on each other: proved (line 6)
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: rows that overlap
// with: argument = { dst_step = { value = "2" } }
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);} }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y)
// want:         ((__global float *)(dst + (y0_step * 4 * dst_step + (x * 4 + 16) + (y - y0_step * 4) * dst_step)))[0] = 2.0f
// want:             * ((__global const float *)(src
// want:                                         + (y0_step * 4 * src_step + (x * 4 + 16) + (y - y0_step * 4) * src_step)))[0];
// want: store dst[0]: 1
// want: load src[0]: 1
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: '((float *)(dst + (y * dst_step + 4 * x + 16)))[0]' in one row may meet '((float *)(dst + (y * dst_step + 4 * x + 16)))[0]' in another
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: rows that are one
// with: argument = { dst_step = { value = "0" } }
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);} }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y)
// want:         ((__global float *)(dst + (y0_step * 4 * dst_step + (x * 4 + 16) + (y - y0_step * 4) * dst_step)))[0] = 2.0f
// want:             * ((__global const float *)(src
// want:                                         + (y0_step * 4 * src_step + (x * 4 + 16) + (y - y0_step * 4) * src_step)))[0];
// want: store dst[0]: 1
// want: load src[0]: 1
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: '((float *)(dst + (y * dst_step + 4 * x + 16)))[0]' in one row may meet '((float *)(dst + (y * dst_step + 4 * x + 16)))[0]' in another
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: a pixel that reaches into the next row
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
dst[y * dst_step + x] = 1; dst[y * dst_step + 9 * cols - x] = 2; } }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y) {
// want:         dst[y * dst_step + x] = 1;
// want:         dst[y * dst_step + 9 * cols - x] = 2;
// want:     }
// want: store dst[y * dst_step + x]: 1
// want: store dst[y * dst_step + 9 * cols - x]: -1
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: 'dst[y * dst_step + x]' in one row may meet 'dst[y * dst_step + 9 * cols - x]' in another
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: a place that is loaded
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
int at = src[y * src_step + x]; dst[y * dst_step + at] = 1; } }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y) {
// want:         int at = src[y * src_step + x];
// want:         dst[y * dst_step + at] = 1;
// want:     }
// want: load src[y * src_step + x]: 1
// want: store dst[y * dst_step + at]: None
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: where 'dst[y * dst_step + at]' lies in its row is computed there
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: a value that is carried
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
float sum = 0;for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
sum += src[y * src_step + x];
dst[y * dst_step + x] = sum; } }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     float sum = 0;
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y) {
// want:         sum += src[y * src_step + x];
// want:         dst[y * dst_step + x] = sum;
// want:     }
// want: load src[y * src_step + x]: 1
// want: store dst[y * dst_step + x]: 1
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: 'sum' is carried from row to row
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: a row that the others stop at
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
if (src[y * src_step + x] == 0) break; dst[y * dst_step + x] = 1; } }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y) {
// want:         if (src[y * src_step + x] == 0)
// want:             break;
// want:         dst[y * dst_step + x] = 1;
// want:     }
// want: load src[y * src_step + x]: 1
// want: store dst[y * dst_step + x]: 1
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: line 7: a loop over elements stops early
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
atomic_add((__global int *)(dst + 4 * y), 1); } }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y)
// want:         atomic_add((__global int *)(dst + 4 * y), 1);
// want: atomic dst[0]: 0
// want: note: line 6: a thread takes 4 rows in turn, which stay its own: a row does more than load, compute and store
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: fewer rows than the work-items are apart
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0; y < min(rows, y0 + 3); ++y) dst[y * dst_step + x] = 1; }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + 3); ++y)
// want:         dst[y * dst_step + x] = 1;
// want: store dst[y * dst_step + x]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: more rows than the work-items are apart
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0; y < min(rows, y0 + 5); ++y) dst[y * dst_step + x] += 1; }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + 5); ++y)
// want:         dst[y * dst_step + x] += 1;
// want: update dst[y * dst_step + x]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: a launch that leaves rows out
// with: launch = { grid = ["ceildiv(cols, 64)", "ceildiv(rows, 20)"] }
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
*(__global float *)(dst + to) = 2.0f * *(__global const float *)(src + from);} }
}
// want: grid: y0_step<ceildiv(rows, 20) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min(rows, y0_step * 4 + per); ++y)
// want:         ((__global float *)(dst + (y0_step * 4 * dst_step + (x * 4 + 16) + (y - y0_step * 4) * dst_step)))[0] = 2.0f
// want:             * ((__global const float *)(src
// want:                                         + (y0_step * 4 * src_step + (x * 4 + 16) + (y - y0_step * 4) * src_step)))[0];
// want: store dst[0]: 1
// want: load src[0]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that stay their work items own: rows that end where the data says
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0; y < min((int)src[0], y0 + per); ++y)
dst[y * dst_step + x] = 1; }
}
// want: grid: y0_step<ceildiv(rows, 16) * 4 | each 0..cols
// want: each 0..cols:
// want:     for (int y = y0_step * 4; y < min((int)src[0], y0_step * 4 + per); ++y)
// want:         dst[y * dst_step + x] = 1;
// want: load src[0]: 0
// want: store dst[y * dst_step + x]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   src, dst do not overlap: the contract's word (no alias)

// case: rows that read what others store
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
dst[y * dst_step + x] = dst[(y - 1) * dst_step + x]; } }
}
// want: not read: threads depend on each other: 'dst' is written at 'dst[y * dst_step + x]' and touched at 'dst[(y - 1) * dst_step + x]'

// case: rows that read what others store (2)
__kernel void k(__global const uchar *src, int src_step, __global uchar *dst, int dst_step, int rows, int cols, int per) {
int x = get_global_id(0); int y0 = get_global_id(1) * per;
if (x < cols) {
    int from = mad24(y0, src_step, mad24(x, 4, 16));
    int to = mad24(y0, dst_step, mad24(x, (int)sizeof(float), 16));
for (int y = y0, y1 = min(rows, y0 + per); y < y1; ++y, from += src_step, to += dst_step) {
dst[y * dst_step + x] = dst[y * dst_step + dst[x]]; } }
}
// want: not read: threads depend on each other: 'dst' is written at 'dst[y * dst_step + x]' and touched at 'dst[y * dst_step + dst[x]]'
