// `warpSize` is as wide as the waves of the device that a kernel is read for.
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }

// case: without a device it is what the language assumes
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 64;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: gfx942 has waves of 64
// with: compiled_for = "gfx942"
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 64;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: gfx1100 has waves of 32
// with: compiled_for = "gfx1100"
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 32;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: 64 by a flag
// with: compiled_for = "gfx1100"
// with: kernel = { flags = ["-mwavefrontsize64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 64;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: the last flag counts
// with: compiled_for = "gfx1100"
// with: kernel = { flags = ["-mwavefrontsize64", "-mno-wavefrontsize64"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) out[i] = x[i] * warpSize;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 32;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)
