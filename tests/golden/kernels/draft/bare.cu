// What a kernel's text alone says of its problem: shapes, launch, roles, and what it leaves to say.

// case: only sizes and workloads of a row kernel are left to say
__global__ void scale_rows(float* out, const float* in, const float* gain, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i];
}
// want: scale_rows: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "scale_rows", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "d"], role = "output"
// want: argument: name = "in_", type = "float32*", shape = ["rows", "d"], role = "input"
// want: argument: name = "gain", type = "float32*", shape = ["d"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, d = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:scale_rows", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:scale_rows"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def scale_rows(*, in_, gain, rows, d):

// case: a size that the host passes has the name of the kernel
__global__ void twice(float *out, const float *x, int rows, int cols) {
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        out[blockIdx.x * cols + i] = 2 * x[blockIdx.x * cols + i];
}
void run(float *o, float *x, int r, int c) { twice<<<r, 256>>>(o, x, r, c); }
// want: twice: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "twice", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "cols"], role = "output"
// want: argument: name = "x", type = "float32*", shape = ["rows", "cols"], role = "input"
// want: argument: name = "rows", type = "int32", value = "rows"
// want: argument: name = "cols", type = "int32", value = "cols"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, cols = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", cols = "FILL" }
// want: accuracy: reference = "reference.py:twice", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # as launched in line 5
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:twice"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def twice(*, x, rows, cols):

// case: wide accesses say alignment and what divides a size
__global__ void twice(float* out, const float* in, int rows, int d) {
    const float4* from = reinterpret_cast<const float4*>(in + blockIdx.x * d);
    float4* to = reinterpret_cast<float4*>(out + blockIdx.x * d);
    for (int i = threadIdx.x; i < d / 4; i += blockDim.x) {
        float4 v = from[i];
        to[i] = make_float4(v.x * 2.0f, v.y * 2.0f, v.z * 2.0f, v.w * 2.0f);
    }
}
// want: twice: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "twice", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "d"], role = "output", align = 16
// want: argument: name = "in_", type = "float32*", shape = ["rows", "d"], role = "input", align = 16
// want: argument: name = "rows", type = "int32", value = "rows"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, d = { min = 4, max = "FILL", multiple_of = 4 }
// want: workloads: example = { rows = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:twice", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: align = 16  # bytes of its widest access
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: align = 16  # bytes of its widest access
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:twice"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def twice(*, in_, rows, d):

// case: what only data tell is left open
__global__ void take(float* out, const float* table, const int* ids, int dim) { int token = blockIdx.x; for (int i = threadIdx.x; i < dim; i += blockDim.x) out[token * dim + i] = table[(long long)ids[token] * dim + i]; }
// want: take: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "take", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["tokens", "dim"], role = "output"
// want: argument: name = "table", type = "float32*", shape = ["FILL", "dim"], role = "input"
// want: argument: name = "ids", type = "int32*", shape = ["tokens"], role = "input"
// want: argument: name = "dim", type = "int32", value = "dim"
// want: launch: grid = ["tokens"], block = ["256"]
// want: contract: tokens = { min = 1, max = "FILL" }, dim = { min = 1, max = "FILL" }
// want: workloads: example = { tokens = "FILL", dim = "FILL" }
// want: accuracy: reference = "reference.py:take", rtol = 0.0001, atol = 1e-05, independent = "tokens"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:take"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def take(*, table, ids, tokens, dim):

// case: strides that nothing orders make no shape
__global__ void f(float* out, int a_step, int b_step, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * a_step + blockIdx.y * b_step + i] = 1.0f; }
// want: f: 10 times FILL
// want: kernel: source = "kernel.cu", entry = "f", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "a_step", type = "int32", value = "FILL"
// want: argument: name = "b_step", type = "int32", value = "FILL"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["rows", "count_y"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, count_y = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", count_y = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:f", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:f"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def f(*, a_step, b_step, rows, count_y, n):

// case: rows that read their neighbours are not independent
__global__ void f(float* out, const float* in, int h, int w) { int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (y < h && x < w) out[y * w + x] = in[y * w + x];}
// want: f: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "f", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["h", "w"], role = "output"
// want: argument: name = "in_", type = "float32*", shape = ["h", "w"], role = "input"
// want: argument: name = "h", type = "int32", value = "h"
// want: argument: name = "w", type = "int32", value = "w"
// want: launch: grid = ["ceildiv(w, 32)", "ceildiv(h, 8)"], block = ["32", "8"]
// want: contract: h = { min = 1, max = "FILL" }, w = { min = 1, max = "FILL" }
// want: workloads: example = { h = "FILL", w = "FILL" }
// want: accuracy: reference = "reference.py:f", rtol = 0.0001, atol = 1e-05, independent = "h"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:f"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def f(*, in_, h, w):

// case: rows that read their neighbours are not independent (2)
__global__ void f(float* out, const float* in, int h, int w) { int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (y < h && x < w) out[y * w + x] = in[y * w + x] + (y > 0 ? in[(y - 1) * w + x] : 0.0f);}
// want: f: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "f", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["h", "w"], role = "output"
// want: argument: name = "in_", type = "float32*", shape = ["h", "w"], role = "input"
// want: argument: name = "h", type = "int32", value = "h"
// want: argument: name = "w", type = "int32", value = "w"
// want: launch: grid = ["ceildiv(w, 32)", "ceildiv(h, 8)"], block = ["32", "8"]
// want: contract: h = { min = 1, max = "FILL" }, w = { min = 1, max = "FILL" }
// want: workloads: example = { h = "FILL", w = "FILL" }
// want: accuracy: reference = "reference.py:f", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:f"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def f(*, in_, h, w):

// case: scattered stores leave the rest as it was
__global__ void put(float* cache, const float* in, const int* slots, int d) { for (int i = threadIdx.x; i < d; i += blockDim.x) cache[slots[blockIdx.x] * d + i] = in[blockIdx.x * d + i]; }
// want: put: 6 times FILL
// want: kernel: source = "kernel.cu", entry = "put", language = "cuda", flags = []
// want: argument: name = "cache", type = "float32*", shape = ["FILL", "d"], role = "inout"
// want: argument: name = "in_", type = "float32*", shape = ["rows", "d"], role = "input"
// want: argument: name = "slots", type = "int32*", shape = ["rows"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, d = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:put", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:put"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def put(*, cache, in_, slots, rows, d):

// case: a kernel beyond reading is drafted as before
// Greedy sampling: the largest logit of each row and where it is; of equals the first.
#define THREADS 512
#define NEG_MAX (-3.402823466e+38f)

__device__ bool better(float a, int ia, float b, int ib)
{
    return a > b || (a == b && ia < ib);
}

extern "C" __global__ void argmax_rows(const float *logits, float *value, int *index, int vocab)
{
    __shared__ float best_v[THREADS];
    __shared__ int best_i[THREADS];
    const int tid = threadIdx.x;
    const float *row = logits + (size_t)blockIdx.x * vocab;

    float v = NEG_MAX;
    int at = vocab;
    for (int i = tid; i < vocab; i += THREADS) {
        float x = row[i];
        if (better(x, i, v, at)) {
            v = x;
            at = i;
        }
    }
    best_v[tid] = v;
    best_i[tid] = at;
    __syncthreads();

    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (tid < half) {
            if (better(best_v[tid + half], best_i[tid + half], best_v[tid], best_i[tid])) {
                best_v[tid] = best_v[tid + half];
                best_i[tid] = best_i[tid + half];
            }
        }
        __syncthreads();
    }

    if (tid == 0) {
        value[blockIdx.x] = best_v[0];
        index[blockIdx.x] = best_i[0];
    }
}
// want: argmax_rows: 8 times FILL
// want: kernel: source = "kernel.cu", entry = "argmax_rows", language = "cuda", flags = []
// want: argument: name = "logits", type = "float32*", shape = ["FILL"], role = "input"
// want: argument: name = "value", type = "float32*", shape = ["FILL"], role = "output"
// want: argument: name = "index", type = "int32*", shape = ["FILL"], role = "output"
// want: argument: name = "vocab", type = "int32", value = "vocab"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: vocab = { min = 1, max = "FILL" }
// want: workloads: example = { vocab = "FILL" }
// want: accuracy: reference = "reference.py:argmax_rows", rtol = 0.0001, atol = 1e-05
// want: remark: # The expert could not read the kernel: line 19: 'at' is carried from one element to the next in a way that is no sum, product, maximum or minimum; as tiles: line 30: a loop with barriers turns differently for different threads
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:argmax_rows"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def argmax_rows(*, logits, vocab):

// case: a size in the entry is a size of the draft
// with: entry = "rotate<float, {head_dim}>"
template <typename T, int HEAD_DIM>
__global__ void rotate(T *q, const float *angle, int heads) {
  int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  T *row = q + (token * heads + head) * HEAD_DIM;
  if (i < HEAD_DIM / 2) {
    float c = cosf(angle[token * (HEAD_DIM / 2) + i]), s = sinf(angle[token * (HEAD_DIM / 2) + i]);
    float a = row[i], b = row[i + HEAD_DIM / 2];
    row[i] = a * c - b * s;
    row[i + HEAD_DIM / 2] = b * c + a * s;
  }
}
// want: rotate: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "rotate<float, {head_dim}>", language = "cuda", flags = []
// want: argument: name = "q", type = "float32*", shape = ["tokens", "heads", "head_dim"], role = "inout"
// want: argument: name = "angle", type = "float32*", shape = ["tokens", "head_dim // 2"], role = "input"
// want: argument: name = "heads", type = "int32", value = "heads"
// want: launch: grid = ["tokens", "heads"], block = ["256"]
// want: contract: tokens = { min = 1, max = "FILL" }, heads = { min = 1, max = "FILL" }, head_dim = { min = 1, max = "FILL" }
// want: workloads: example = { tokens = "FILL", heads = "FILL", head_dim = "FILL" }
// want: accuracy: reference = "reference.py:rotate", rtol = 0.0001, atol = 1e-05, independent = "tokens"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:rotate"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def rotate(*, q, angle, tokens, heads):

// case: two halves of a row are the whole of it
// with: entry = "rotate<float, 128>"
template <typename T, int HEAD_DIM>
__global__ void rotate(T *q, const float *angle, int heads) {
  int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  T *row = q + (token * heads + head) * HEAD_DIM;
  if (i < HEAD_DIM / 2) {
    float c = cosf(angle[token * (HEAD_DIM / 2) + i]), s = sinf(angle[token * (HEAD_DIM / 2) + i]);
    float a = row[i], b = row[i + HEAD_DIM / 2];
    row[i] = a * c - b * s;
    row[i + HEAD_DIM / 2] = b * c + a * s;
  }
}
// want: rotate: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "rotate<float, 128>", language = "cuda", flags = []
// want: argument: name = "q", type = "float32*", shape = ["tokens", "heads", "128"], role = "inout"
// want: argument: name = "angle", type = "float32*", shape = ["tokens", "64"], role = "input"
// want: argument: name = "heads", type = "int32", value = "heads"
// want: launch: grid = ["tokens", "heads"], block = ["256"]
// want: contract: tokens = { min = 1, max = "FILL" }, heads = { min = 1, max = "FILL" }
// want: workloads: example = { tokens = "FILL", heads = "FILL" }
// want: accuracy: reference = "reference.py:rotate", rtol = 0.0001, atol = 1e-05, independent = "tokens"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:rotate"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def rotate(*, q, angle, tokens, heads):

// case: two halves of a row are the whole of it (2)
// with: entry = "rotate<float, 128>"
template <typename T, int HEAD_DIM>
__global__ void rotate(T *q, const float *angle, int heads) {
  int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  T *row = q + (token * heads + head) * HEAD_DIM;
  if (i < HEAD_DIM / 4) {
    float c = cosf(angle[token * (HEAD_DIM / 4) + i]), s = sinf(angle[token * (HEAD_DIM / 4) + i]);
    float a = row[i], b = row[i + HEAD_DIM / 4];
    row[i] = a * c - b * s;
    row[i + HEAD_DIM / 4] = b * c + a * s;
  }
}
// want: rotate: 7 times FILL
// want: kernel: source = "kernel.cu", entry = "rotate<float, 128>", language = "cuda", flags = []
// want: argument: name = "q", type = "float32*", shape = ["FILL"], role = "inout"
// want: argument: name = "angle", type = "float32*", shape = ["FILL"], role = "input"
// want: argument: name = "heads", type = "int32", value = "heads"
// want: launch: grid = ["FILL"], block = ["FILL"]
// want: contract: heads = { min = 1, max = "FILL" }
// want: workloads: example = { heads = "FILL" }
// want: accuracy: reference = "reference.py:rotate", rtol = 0.0001, atol = 1e-05
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:rotate"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def rotate(*, q, angle, heads):

// case: vector classes say how arrays lie and what divides rows
template <typename T, int N> struct alignas(sizeof(T) * N) vec_t {
  T at[N];
  __device__ T &operator[](int i) { return at[i]; }
  __device__ void load(const T *p) { *this = *reinterpret_cast<const vec_t *>(p); }
  __device__ void store(T *p) const { *reinterpret_cast<vec_t *>(p) = *this; }
};
__global__ void twice(float *out, const float *in, int d) {
  for (int i = threadIdx.x * 4; i < d; i += blockDim.x * 4) {
    vec_t<float, 4> v;
    v.load(in + blockIdx.x * d + i);
    for (int k = 0; k < 4; ++k) v[k] = v[k] * 2.0f;
    v.store(out + blockIdx.x * d + i);
  }
}
// want: twice: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "twice", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "d"], role = "output", align = 16
// want: argument: name = "in_", type = "float32*", shape = ["rows", "d"], role = "input", align = 16
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, d = { min = 4, max = "FILL", multiple_of = 4 }
// want: workloads: example = { rows = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:twice", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: align = 16  # bytes of its widest access
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: align = 16  # bytes of its widest access
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:twice"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def twice(*, in_, rows, d):

// case: vector classes say how arrays lie and what divides rows (2)
template <typename T, int N> struct  vec_t {
  T at[N];
  __device__ T &operator[](int i) { return at[i]; }
  __device__ void load(const T *p) { *this = *reinterpret_cast<const vec_t *>(p); }
  __device__ void store(T *p) const { *reinterpret_cast<vec_t *>(p) = *this; }
};
__global__ void twice(float *out, const float *in, int d) {
  for (int i = threadIdx.x * 4; i < d; i += blockDim.x * 4) {
    vec_t<float, 4> v;
    v.load(in + blockIdx.x * d + i);
    for (int k = 0; k < 4; ++k) v[k] = v[k] * 2.0f;
    v.store(out + blockIdx.x * d + i);
  }
}
// want: twice: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "twice", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "d"], role = "output"
// want: argument: name = "in_", type = "float32*", shape = ["rows", "d"], role = "input"
// want: argument: name = "d", type = "int32", value = "d"
// want: launch: grid = ["rows"], block = ["256"]
// want: contract: rows = { min = 1, max = "FILL" }, d = { min = 4, max = "FILL", multiple_of = 4 }
// want: workloads: example = { rows = "FILL", d = "FILL" }
// want: accuracy: reference = "reference.py:twice", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:twice"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def twice(*, in_, rows, d):

// case: places that are kept inside tell how far an array goes
__global__ void blur(float *dst, const float *src, int width, int height) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; if (x >= width || y >= height) return; float sum = 0.0f; for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx)  sum += src[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)]; dst[y * width + x] = sum; }
// want: blur: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "blur", language = "cuda", flags = []
// want: argument: name = "dst", type = "float32*", shape = ["height", "width"], role = "output"
// want: argument: name = "src", type = "float32*", shape = ["height", "width"], role = "input"
// want: argument: name = "width", type = "int32", value = "width"
// want: argument: name = "height", type = "int32", value = "height"
// want: launch: grid = ["ceildiv(width, 16)", "ceildiv(height, 16)"], block = ["16", "16"]
// want: contract: width = { min = 1, max = "FILL" }, height = { min = 1, max = "FILL" }
// want: workloads: example = { width = "FILL", height = "FILL" }
// want: accuracy: reference = "reference.py:blur", rtol = 0.0001, atol = 1e-05
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # the block follows from the kernel's text
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:blur"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def blur(*, src, width, height):

// case: what a loop has stored in every turn is no input
__global__ void softmax(float *out, const float *x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float e = expf(x[blockIdx.x * n + i]);
    out[blockIdx.x * n + i] = e;
    sum += e;
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] /= sum;
}
// want: softmax: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "softmax", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "n"], role = "output"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["rows"], block = ["32"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:softmax", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:softmax"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def softmax(*, x, rows, n):

// case: what a loop has stored in every turn is no input (2)
__global__ void softmax(float *out, const float *x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float e = expf(x[blockIdx.x * n + i]);
    if (e > 1.0f) out[blockIdx.x * n + i] = e;
    sum += e;
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] /= sum;
}
// want: softmax: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "softmax", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "n"], role = "inout"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["rows"], block = ["32"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:softmax", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:softmax"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def softmax(*, out, x, rows, n):

// case: what a loop has stored in every turn is no input (3)
__global__ void softmax(float *out, const float *x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float e = expf(x[blockIdx.x * n + i]);
    out[blockIdx.x * n + i] += e;
    sum += e;
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] /= sum;
}
// want: softmax: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "softmax", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "n"], role = "inout"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["rows"], block = ["32"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:softmax", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:softmax"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def softmax(*, out, x, rows, n):

// case: what a loop has stored in every turn is no input (4)
__global__ void softmax(float *out, const float *x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float e = expf(x[blockIdx.x * n + i]);

    sum += e;
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] /= sum;
}
// want: softmax: 5 times FILL
// want: kernel: source = "kernel.cu", entry = "softmax", language = "cuda", flags = []
// want: argument: name = "out", type = "float32*", shape = ["rows", "n"], role = "inout"
// want: argument: name = "x", type = "float32*", shape = ["rows", "n"], role = "input"
// want: argument: name = "n", type = "int32", value = "n"
// want: launch: grid = ["rows"], block = ["32"]
// want: contract: rows = { min = 1, max = "FILL" }, n = { min = 1, max = "FILL" }
// want: workloads: example = { rows = "FILL", n = "FILL" }
// want: accuracy: reference = "reference.py:softmax", rtol = 0.0001, atol = 1e-05, independent = "rows"
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: # values = "normal"  # if like this; else 1e-3 to 1e3 is tested too
// want: remark: # align = 16  # if so: what is not promised is not loaded in vectors
// want: remark: [launch]  # say what callers launch, the measure of what is tuned: the file has no launch
// want: remark: [contract]  # what callers promise: the smallest and the largest, and multiple_of where true; add sizes that only shapes or the launch have
// want: remark: [workloads]  # where it must be fast: one line each, with real sizes
// want: remark: reference = "reference.py:softmax"  # fill it in, or remove this line and reference.py: results are then compared with the original's
// want: reference: def softmax(*, out, x, rows, n):
