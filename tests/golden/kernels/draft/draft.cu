// Drafted problems: faithful where the source speaks, FILL where only the user knows.

// case: how to say that floats are tame stands beside each float that is read
#define BLOCK 128
extern "C" __global__ void saxpy(int n, float alpha, const float* x, float* y) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] += alpha * x[i];
}
void run(int count) {
    dim3 grid((count + BLOCK - 1) / BLOCK);
    saxpy<<<grid, BLOCK>>>(count, 2.0f, x, y);
}
// want: saxpy: 4 times FILL
// want: kernel: source = "kernel.cu", entry = "saxpy", language = "cuda", flags = []
// want: argument: name = "n", type = "int32", value = "n"
// want: argument: name = "alpha", type = "float32", value = "FILL"
// want: argument: name = "x", type = "float32*", shape = ["n"], role = "input"
// want: argument: name = "y", type = "float32*", shape = ["n"], role = "inout"
// want: launch: grid = ["ceildiv(n, 128)"], block = ["128"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:saxpy", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 8
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:saxpy"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def saxpy(*, x, y, alpha, n):

// case: every fill has a comment
template <typename T>
__global__ void silu_and_mul(T* __restrict__ out, const T* __restrict__ in, const int d) {
    const T* x = in + blockIdx.x * 2 * d;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[i] * x[i + d];
}
void run(half* out, half* in, int tokens, int width) {
    silu_and_mul<half><<<tokens, std::min(width, 1024)>>>(out, in, width);
}
// want: silu_and_mul: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "silu_and_mul<half>", language = "cuda", flags = []
// want: argument: name = "out", type = "float16*", shape = ["tokens", "d"], role = "output"
// want: argument: name = "in_", type = "float16*", shape = ["tokens", "2 * d"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["tokens"], block = ["min(d, 1024)"]
// want: contract: tokens = { min = 1, max = "FILL" }, d = { min = 1, max = "FILL" }
// want: workloads: example = { tokens = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:silu_and_mul", rtol = 0.004, atol = 0.002, independent = "tokens"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 7
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:silu_and_mul"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def silu_and_mul(*, in_, tokens, d):

// case: template
template <typename T>
__global__ void silu_and_mul(T* __restrict__ out, const T* __restrict__ in, const int d) {
    const T* x = in + blockIdx.x * 2 * d;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[i] * x[i + d];
}
void run(half* out, half* in, int tokens, int width) {
    silu_and_mul<half><<<tokens, std::min(width, 1024)>>>(out, in, width);
}
void other() { silu_and_mul<float><<<8, 32>>>(out, in, 8); }
// want: silu_and_mul: 11 times FILL
// want: kernel: source = "kernel.cu", entry = "silu_and_mul<FILL>", language = "cuda", flags = []
// want: argument: name = "out", type = "FILL*", shape = ["FILL"], role = "output"
// want: argument: name = "in_", type = "FILL*", shape = ["FILL"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["FILL"], block = ["min(d, 1024)"]
// want: contract: d = { min = 1, max = "FILL" }
// want: workloads: example = { d = "FILL" }
// want: accuracy: reference = "reference.py:silu_and_mul", rtol = "FILL", atol = "FILL"
// want: remark: # The expert could not read the kernel: its template arguments are not known: say them, as in --entry 'silu_and_mul<half>'; line 7 launches it so
// want: remark: entry = "silu_and_mul<FILL>"  # template arguments for T; line 7 launches silu_and_mul<half>
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 7; also launched in line 9
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 7 says tokens
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:silu_and_mul"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def silu_and_mul(*, in_, d):

// case: template arguments chosen
// with: entry = "silu_and_mul<__half>"
template <typename T>
__global__ void silu_and_mul(T* __restrict__ out, const T* __restrict__ in, const int d) {
    const T* x = in + blockIdx.x * 2 * d;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[i] * x[i + d];
}
void run(half* out, half* in, int tokens, int width) {
    silu_and_mul<half><<<tokens, std::min(width, 1024)>>>(out, in, width);
}
// want: silu_and_mul: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "silu_and_mul<__half>", language = "cuda", flags = []
// want: argument: name = "out", type = "float16*", shape = ["tokens", "d"], role = "output"
// want: argument: name = "in_", type = "float16*", shape = ["tokens", "2 * d"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["tokens"], block = ["min(d, 1024)"]
// want: contract: tokens = { min = 1, max = "FILL" }, d = { min = 1, max = "FILL" }
// want: workloads: example = { tokens = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:silu_and_mul", rtol = 0.004, atol = 0.002, independent = "tokens"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 7
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:silu_and_mul"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def silu_and_mul(*, in_, tokens, d):

// case: a launch that is not plain is not guessed
__global__ void k(float* p, int n) { p[n] = 1; }
void run(int c) { int g = c / 2; if (c) g = 1; k<<<g, 64>>>(p, c); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says g
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: a launch that is not plain is not guessed (2)
__global__ void k(float* p, int n) { p[n] = 1; }
void run(int c) { int g = c / 2; c = 7; k<<<g, 64>>>(p, c); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says c / 2
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: a launch that is not plain is not guessed (3)
__global__ void k(float* p, int n) { p[n] = 1; }
void run(int c) { int g; cudaOccupancy(&g); k<<<g, 64>>>(p, c); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says g
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: a launch that is not plain is not guessed (4)
__global__ void k(float* p, int n) { p[n] = 1; }
void run(int c) { dim3 g; g.x = c; k<<<g, 64>>>(p, c); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says g
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: a launch that is not plain is not guessed (5)
__global__ void k(float* p, int n) { p[n] = 1; }
const int g = 4; void run(int g, int c) { k<<<g, 64>>>(p, c); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says g
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: a launch that is not plain is not guessed (6)
__global__ void k(float* p, int n) { p[n] = 1; }
void run(int c) { k<<<c, 64>>>(p, next_pow2(c)); }
// want: k: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says c
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: one host name for two sizes means neither
__global__ void k(float* p, int m, int n) { p[n] = m; }
void run(int c) { k<<<c, 64>>>(p, c, c); }
// want: k: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "m", type = "int32", value = "m"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["64"]
// want: contract: m = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { m = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 2
// want: remark: grid = ["FILL"]  # blocks, over the sizes; line 2 says c
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, m, n):

// case: what cannot be known
__global__ void k(Params p, float4 v, float* x, int* idx, int stride){ mystery(x); use(idx[0]); }
// want: k: 14 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "FILL", value = "FILL"
// want: argument: name = "v", type = "FILL", value = "FILL"
// want: argument: name = "x", type = "float32*", shape = ["FILL"], role = "FILL"
// want: argument: name = "idx", type = "int32*", shape = ["FILL"], role = "FILL"
// want: argument: name = "stride", type = "int32", value = "FILL"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: FILL = { min = 1, max = "FILL" }
// want: workloads: example = { FILL = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: # No parameter looks like a size: name one here, for the shapes and the launch.
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, x, idx, p, v, stride):

// case: dynamic shared memory without a launch
__global__ void k(int* p, int n) { extern __shared__ int s[]; p[n] = s[0]; }
// want: k: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "int32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["FILL"], shared = "FILL"
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k"
// want: remark: # The expert could not read the kernel: threads cooperate other than by totals over a row's elements: line 1: what is stored to 'p' is not the same for the team: 's[0]' is read before anything is there; as tiles: the blocks along x of the grid all do the same work
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: tolerances by type
__global__ void k(int* p, int n) { p[n] = 1; }
// want: k: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "int32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: tolerances by type (2)
__global__ void k(float* p, __half* q, int* r, int n) { p[n] = q[n] = r[n] = 1; }
// want: k: 8 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "p", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "q", type = "float16*", shape = ["FILL"], role = "output", rtol = 0.004, atol = 0.002
// want: argument: name = "r", type = "int32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: several outputs
__global__ void k(float* a, float* b, int n) { a[n] = b[n] = 1; }
// want: k: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "k", language = "cuda", flags = []
// want: argument: name = "a", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "b", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: n = { min = 1, max = "FILL" }
// want: workloads: example = { n = "FILL" }
// want: accuracy: reference = "reference.py:k", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:k"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def k(*, n):

// case: several kernels need a choice
__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }
// want: refused: kernel.cu: a draft is of one kernel; this file defines 2: one, s::two
// want: hint: choose one, for example: --entry one; where a call has several of them, add a [[launch]] for each to the draft

// case: chosen
// with: entry = "one"
__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }
// want: one: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "one", language = "cuda", flags = []
// want: argument: name = "p", type = "int32*", shape = ["FILL"], role = "output"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: FILL = { min = 1, max = "FILL" }
// want: workloads: example = { FILL = "FILL" }
// want: accuracy: reference = "reference.py:one"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # Does a call launch other kernels of the file too (two)? Then write [[launch]] for each,
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: # No parameter looks like a size: name one here, for the shapes and the launch.
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:one"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def one():

// case: chosen (2)
// with: entry = "two"
__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }
// want: two: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "s::two", language = "cuda", flags = []
// want: argument: name = "p", type = "int32*", shape = ["FILL"], role = "output"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: FILL = { min = 1, max = "FILL" }
// want: workloads: example = { FILL = "FILL" }
// want: accuracy: reference = "reference.py:two"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # Does a call launch other kernels of the file too (one)? Then write [[launch]] for each,
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: # No parameter looks like a size: name one here, for the shapes and the launch.
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:two"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def two():

// case: chosen (3)
// with: entry = "s::two"
__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }
// want: two: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "s::two", language = "cuda", flags = []
// want: argument: name = "p", type = "int32*", shape = ["FILL"], role = "output"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: FILL = { min = 1, max = "FILL" }
// want: workloads: example = { FILL = "FILL" }
// want: accuracy: reference = "reference.py:two"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # Does a call launch other kernels of the file too (one)? Then write [[launch]] for each,
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: # No parameter looks like a size: name one here, for the shapes and the launch.
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:two"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def two():

// case: unknown
// with: entry = "three"
__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }
// want: refused: kernel.cu: --entry must name a kernel of this file; got 'three', it defines one, s::two
// want: hint: for example: --entry one
