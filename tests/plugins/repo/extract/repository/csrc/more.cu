#include "compat.h"
#include "lost.h"

#if __CUDA_ARCH__ >= 800
__device__ float doubled(float x) { return x + x; }
#else
__device__ float doubled(float x) { return 2.0f * x; }
#endif

#define SHIFT_KERNEL(name, amount)                              \
  __global__ void name(float* out, const float* x, int n) {     \
    int i = blockIdx.x * blockDim.x + threadIdx.x;              \
    if (i < n) out[i] = x[i] + amount;                          \
  }

SHIFT_KERNEL(shift_by_one, 1.0f)
SHIFT_KERNEL(shift_by_two, 2.0f)

__global__ void twice(float* out, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ >= 900
  if (i < n) out[i] = doubled(x[i]);
#else
  if (i < n) { out[i] = doubled(OWN_LOAD(&x[i])); }
#endif
}

__global__ void lost_helper(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = nowhere_to_be_found(out[i]);
}

void call_twice(float* out, const float* x, int count, cudaStream_t stream) {
  const int threads = 256;
  twice<<<(count + threads - 1) / threads, threads, 0, stream>>>(out, x, count);
}
