// What a kernel's text alone says of its problem: shapes, launch, roles, and what it leaves to say.

// case: local memory is as long as threads store
__kernel void total(__global float *out, __global const float *x, int n, __local float *part) {
  int lid = get_local_id(0);
  float sum = 0.0f;
  for (int i = lid; i < n; i += get_local_size(0)) sum += x[get_group_id(0) * n + i];
  part[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
    if (lid < s) part[lid] += part[lid + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) out[get_group_id(0)] = part[0];
}
// want: total: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "total", language = "opencl", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows"], role = "output"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: argument: name = "part", type = "float32*", shape = ["256"], role = "local"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:total", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:total"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def total(*, x, rows, n):

// case: local memory is as long as threads store (2)
__kernel void total(__global float *out, __global const float *x, int n, __local float *part) {
  int lid = get_local_id(0);
  float sum = 0.0f;
  for (int i = lid; i < n; i += get_local_size(0)) sum += x[get_group_id(0) * n + i];
  part[2 * lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
    if (lid < s) part[2 * lid] += part[2 * (lid + s)];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) out[get_group_id(0)] = part[2 * 0];
}
// want: total: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "total", language = "opencl", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows"], role = "output"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: argument: name = "part", type = "float32*", shape = ["FILL"], role = "local"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:total", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:total"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def total(*, x, rows, n):
