// Drafted problems: faithful where the source speaks, FILL where only the user knows.

// case: hip with shared memory
__global__ void rows(const float* in, float* out, int rows, int cols) { out[rows] = in[cols]; }
void run(int r, int c) {
    const int threads = 64;
    int shared = threads * sizeof(float);
    hipLaunchKernelGGL(rows, dim3(r, 1, 1), dim3(threads), shared, 0, in, out, r, c);
}
// want: rows: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "rows", language = "hip", flags = []
// want: argument: name = "in_", type = "float32*", shape = ["FILL"], role = "input"
// want: argument: name = "out", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "rows", type = "int32", value = "rows"
// want: argument: name = "cols", type = "int32", value = "cols"
// want: launch: grid = ["rows"], block = ["64"], shared = "256"
// want: contract: rows = { min = 1, max = "FILL" }, cols = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", cols = "FILL" }
// want: accuracy: reference = "reference.py:rows", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 5
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:rows"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def rows(*, in_, rows, cols):
