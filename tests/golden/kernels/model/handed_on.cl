// What passes from turn to turn, task to task or pointer to pointer: found, and refused with the line.
// with: launch = { grid = ["ceildiv(rows * d, 64)"], block = ["64"] }

// case: vectors of opencl are accesses
__kernel void k(__global const float *x, __global float *out, int rows, int d) {
const int i = get_global_id(0);
if (i < rows * d / 4) vstore4(vload4(i, x), i, out); }
// want: grid: | each 0..rows * d / 4
// want: each 0..rows * d / 4:
// want:     vstore4(vload4(i, x), i, out);
// want: store out[i]: None
// want: load x[i]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: vectors of opencl are accesses (2)
__kernel void k(__global const float *x, __global float *out, int rows, int d) {
const int i = get_global_id(0);
if (i < rows * d / 4) vstore4(vload4(i, out), i, out); }
// want: grid: | each 0..rows * d / 4
// want: each 0..rows * d / 4:
// want:     vstore4(vload4(i, out), i, out);
// want: store out[i]: None
// want: load out[i]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: vectors of opencl are accesses (3)
__kernel void k(__global const float *x, __global float *out, int rows, int d) {
const int i = get_global_id(0);
if (i < rows * d / 4) vstore4(vload4(i + 1, out), i, out); }
// want: not read: threads depend on each other: 'out' is written at 'out[i]' and touched at 'out[i + 1]'

// case: vectors of opencl are accesses (4)
__kernel void k(__global const float *x, __global float *out, int rows, int d) {
const int i = get_global_id(0);
if (i < rows * d / 4) out[i] = vload4(i, out).x; }
// want: not read: threads depend on each other: 'out' is written at 'out[i]' and touched at 'out[i]'
