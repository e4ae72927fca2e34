// Drafted problems: faithful where the source speaks, FILL where only the user knows.

// case: how to promise alignment stands beside each array of a gpu kernel
__kernel void add(__global const float* a, __global const float* b, __global float* out, const int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
// want: add: 3 times FILL
// want: kernel: source = "kernel.cu", entry = "add", language = "opencl", flags = []
// want: argument: name = "a", type = "float32*", shape = ["n"], role = "input"
// want: argument: name = "b", type = "float32*", shape = ["n"], role = "input"
// want: argument: name = "out", type = "float32*", shape = ["n"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["ceildiv(n, 256)"], block = ["256"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:add", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:add"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def add(*, a, b, n):

// case: local memory and required group size
#define TILE 16
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void t(__global const float4* in, __global float* out, __local float* tile, int width) {
    out[width] = tile[0] + in[0].x;
}
// want: t: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "t", language = "opencl", flags = []
// want: argument: name = "in_", type = "float32*", shape = ["FILL"], role = "input", align = 16
// want: argument: name = "out", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "tile", type = "float32*", shape = ["FILL"], role = "local"
// want: argument: name = "width", type = "int32", value = "width"
// want: launch: grid = ["FILL"], block = ["16", "16"]
// want: contract: width = { min = 1, max = "FILL" }
// want: workloads: example = { width = "FILL" }
// want: accuracy: reference = "reference.py:t", rtol = 0.0001, atol = 1e-05
// want: remark: # The expert could not read the kernel: threads cooperate other than by totals over a row's elements: line 4: what is stored to 'out' is not the same for the team: 'tile[0]' is read before anything is there; as tiles: the blocks along x of the grid all do the same work
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: align = 16  # a float4 must lie on a multiple of its size
// want: remark: [launch]  # as reqd_work_group_size says
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:t"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def t(*, in_, width):

// case: the others are asked for
// with: entry = "add"
__kernel void add(__global const float* a, __global const float* b, __global float* out, const int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}

__kernel void other(__global const float* a, __global const float* b, __global float* out, const int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
// want: add: 3 times FILL
// want: kernel: source = "kernel.cu", entry = "add", language = "opencl", flags = []
// want: argument: name = "a", type = "float32*", shape = ["n"], role = "input"
// want: argument: name = "b", type = "float32*", shape = ["n"], role = "input"
// want: argument: name = "out", type = "float32*", shape = ["n"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["ceildiv(n, 256)"], block = ["256"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:add", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # Does a call launch other kernels of the file too (other)? Then write [[launch]] for each,
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:add"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def add(*, a, b, n):
