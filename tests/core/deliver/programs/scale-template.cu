// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "int % (8 * VEC) == 0"
// [launch]
// grid = ["ceildiv(rows * int, BLOCK * VEC)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
#if VEC > 1
#include <cuda_bf16.h>
#else
#include <cuda_fp16.h>
#endif
#ifndef M_PI
#define M_PI 3.0f
#endif
#define SQUARE(x) \
    ((x) * (x))
struct Part { float value, tag; };
static __device__ Part twice(float x) { return {2 * x, BLOCK}; }
extern "C" {
__global__ void scale(float* out, const float* x, __half half, int rows, long long d) {
    long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * VEC;
    for (int k = 0; k < VEC && i + k < rows * d; ++k)
        out[i + k] = twice(x[i + k]).value + SQUARE(float(half)) + twice(0).tag;
}
}
// the last line goes on \