#pragma once
#include <cuda_fp16.h>
#include <cmath>
#ifdef NOT_HERE
#include <not/here.h>
#endif
#define SQUARE(x) ((x) * (x))
extern "C" __global__ void scale(float* out, const float* x, __half half, int rows, long long d);
struct Part { float value; };
static __device__ Part twice(float x) { return {2 * x}; }
// extern "C" in a comment, and #include <not/here/either.h>
extern "C" __global__ void scale(float* out, const float* x, __half half, int rows, long long d) {
    const char* told = R"(
#include <nor/here.h>
)";
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        out[blockIdx.x * d + i] = twice(x[blockIdx.x * d + i]).value + SQUARE(float(half)) * (told != nullptr)
            + 0 * float(M_PI);
}
