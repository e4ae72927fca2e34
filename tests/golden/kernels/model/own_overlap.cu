// A kernel whose own launch overlaps: what a launch ahead may still write is not read before the wait.
// with: argument = { x = { align = 16 }, out = { align = 16 } }

// case: what is not kept is said
// with: launch = { grid = ["ceildiv(rows * d, 256)"], pdl = true }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * 2.0f;
asm volatile("griddepcontrol.launch_dependents;");
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 2.0f;
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 7: that the launch behind may start is not kept: it starts when this one ends
// want: note: line 2: #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 holds: __CUDA_ARCH__ is 900 (assumed, since no compiler was asked: NVRTC, C++17, sm_90)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)
// want: waits for the launch ahead

// case: what is not kept is said (2)
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * 2.0f;
asm volatile("griddepcontrol.launch_dependents;");
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 2.0f;
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 3: the wait is not kept: the launch does not say `pdl`, so that it starts when the one ahead has ended
// want: note: line 7: that the launch behind may start is not kept: it starts when this one ends
// want: note: line 2: #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 holds: __CUDA_ARCH__ is 900 (assumed, since no compiler was asked: NVRTC, C++17, sm_90)
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   x, out do not overlap: the contract's word (no alias)
