// A whole draft.
// read: whole draft

// case: a sum of vectors
__kernel void add(__global const float* a, __global const float* b, __global float* out, const int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
// want: == problem.toml
// want: # Drafted by `tunesmith init`. Replace every "FILL"; the comment beside it says what is wanted.
// want: name = "add"
// want:
// want: [kernel]
// want: source = "kernel.cu"
// want: entry = "add"
// want: language = "opencl"
// want: flags = []  # how production builds it, e.g. ["-cl-fast-relaxed-math"]
// want:
// want: [[argument]]
// want: name = "a"
// want: type = "float32*"
// want: shape = ["n"]
// want: role = "input"
// want: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want:
// want: [[argument]]
// want: name = "b"
// want: type = "float32*"
// want: shape = ["n"]
// want: role = "input"
// want: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want:
// want: [[argument]]
// want: name = "out"
// want: type = "float32*"
// want: shape = ["n"]
// want: role = "output"
// want:
// want: [[argument]]
// want: name = "n"
// want: type = "int32"
// want: value = "n"
// want:
// want: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: grid = ["ceildiv(n, 256)"]
// want: block = ["256"]
// want:
// want: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: n = { min = 1, max = "FILL" }  # the largest that callers send
// want:
// want: [workloads]  # where it must be fast: one line each, with real sizes
// want: example = { n = "FILL" }  # integers, without quotes; rename it
// want:
// want: [accuracy]
// want: reference = "reference.py:add"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: rtol = 0.0001
// want: atol = 1e-5
// want: == reference.py
// want: """The expected result of add, in float64."""
// want:
// want: import numpy as np  # noqa: F401
// want:
// want:
// want: def add(*, a, b, n):
// want:     """Return the array out, shaped as in problem.toml.
// want:
// want:     Float arrays arrive as float64, integers as they are; drop the arguments you do not need.
// want:     """
// want:     raise NotImplementedError("FILL: compute out of add with NumPy here, in reference.py")
