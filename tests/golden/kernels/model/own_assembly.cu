// A kernel whose own body has assembly that only computes is read, written, and builds.
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }

// case: it is a value of which nothing else is known
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) { float y; asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x[i])); out[i] = y; }
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     float y = ex2_approx_ftz_f32(x[i]);
// want:     out[i] = y;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what does more is refused in words about assembly
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) { float y; asm("{ mul.f32 %0, %2, %2; mul.f32 %1, %2, %2; }" : "=f"(y), "=f"(out[i]) : "f"(x[i])); out[i] = y; }
}
// want: not read: line 3: 'asm("{ mul.f32 %0, %2, %2; mul.f32 %1, %2, %2; }" : "=f"(...' is not understood, and it contains assembly that is not one value computed from numbers in registers

// case: what does more is refused in words about assembly (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) { float y; asm volatile("mov.f32 %0, %%clock;" : "=f"(y)); out[i] = y; }
}
// want: not read: line 3: 'asm volatile("mov.f32 %0, %%clock;" : "=f"(y));' is not understood, and it contains assembly that reads %clock
