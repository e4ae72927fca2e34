// What stands in the way of a reading: all of it, with lines. And launches that overlap.

// case: obstacles have the names of the source
struct Two { float a, b; __device__ Two(float v) : a(v), b(v) {} };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
Two t(x[0]); for (int i = threadIdx.x; i < d; i += 256) { t.a = x[i] - t.a; out[i] = t.a; }
}
// want: not read: line 3: 't.a' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: the next launch may start when this one ends
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
asm volatile("griddepcontrol.wait;" ::: "memory");const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i];asm volatile("griddepcontrol.launch_dependents;");
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 2: the wait is not kept: the launch does not say `pdl`, so that it starts when the one ahead has ended
// want: note: line 2: that the launch behind may start is not kept: it starts when this one ends
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: the next launch may start when this one ends (2)
// with: launch = { grid = ["ceildiv(rows * d, 256)"], pdl = true }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
asm volatile("griddepcontrol.wait;" ::: "memory");const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i];asm volatile("griddepcontrol.launch_dependents;");
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i];
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 2: that the launch behind may start is not kept: it starts when this one ends
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)
// want: waits for the launch ahead

// case: memory that is touched before the wait is refused
// with: launch = { grid = ["ceildiv(rows * d, 256)"], pdl = true }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const float v = x[0]; cudaGridDependencySynchronize();const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i];
}
// want: not read: memory is touched before the launch ahead has ended
