// One source, several compilers: it is one kernel to all of them, or the expert does not read it.
// with: launch = { grid = ["ceildiv(rows * d, 256)"] }

// case: the compilers state decides which kernel it is
#if __CUDA_ARCH__ >= 900
#define FACTOR 2.0f
#else
#define FACTOR 3.0f
#endif
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * FACTOR;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 2.0f;
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 1: #if __CUDA_ARCH__ >= 900 holds: __CUDA_ARCH__ is 900 (assumed, since no compiler was asked: NVRTC, C++17, sm_90)
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: the compilers state decides which kernel it is (2)
// with: compilers = { nvcc = { __CUDA_ARCH__ = "800", __cplusplus = "201402L" } }
#if __CUDA_ARCH__ >= 900
#define FACTOR 2.0f
#else
#define FACTOR 3.0f
#endif
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * FACTOR;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 3.0f;
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 1: #if __CUDA_ARCH__ >= 900 does not hold: __CUDA_ARCH__ is 800 (nvcc)
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: compilers that agree are both named
// with: compilers = { nvrtc = { __CUDA_ARCH__ = "800", __cplusplus = "201703L", __CUDACC_RTC__ = "1" }, nvcc = { __CUDA_ARCH__ = "800", __cplusplus = "201402L" } }
#if __CUDA_ARCH__ >= 900
#define FACTOR 2.0f
#else
#define FACTOR 3.0f
#endif
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * FACTOR;
}
// want: grid: | each 0..rows * d
// want: each 0..rows * d:
// want:     out[i] = x[i] * 3.0f;
// want: store out[i]: 1
// want: load x[i]: 1
// want: note: line 1: #if __CUDA_ARCH__ >= 900 does not hold: __CUDA_ARCH__ is 800 (nvrtc; nvcc)
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a source that is two kernels is refused
// with: compilers = { nvrtc = { __CUDA_ARCH__ = "800", __cplusplus = "201703L", __CUDACC_RTC__ = "1" }, nvcc = { __CUDA_ARCH__ = "800", __cplusplus = "201402L" } }
#ifdef __CUDACC_RTC__
#define FACTOR 2.0f
#else
#define FACTOR 3.0f
#endif
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * 256 + threadIdx.x;
if (i < rows * d) out[i] = x[i] * FACTOR;
}
// want: not read: it is another kernel to nvrtc than to nvcc: say which is meant by `compiler` in [kernel]
