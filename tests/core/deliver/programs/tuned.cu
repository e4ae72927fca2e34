#define BLOCK 128
#define VEC 4
#line 1 "template.cu"
#include <cuda_fp16.h>
struct Part { float value; };
static __device__ Part times(float x, float alpha) { return {alpha * x}; }
extern "C" __global__ void scale(float* out, const float* x, float alpha, int rows, long long twice) {
    long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * VEC;
    for (int k = 0; k < VEC && i + k < rows * (twice / 2); ++k) out[i + k] = times(x[i + k], alpha).value;
}
