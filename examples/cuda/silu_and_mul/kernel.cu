// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// One row per block in turn, one element per thread in turn. Strides are in elements.
#include <cuda_fp16.h>

template <typename T>
__device__ float silu(T value)
{
    float x = (float)value;
    return x / (1.0f + expf(-x));
}

template <typename T>
__global__ void silu_and_mul(T *out, const T *input, int tokens, int d,
                             long long out_stride, long long input_stride)
{
    for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
        for (long long i = threadIdx.x; i < d; i += blockDim.x) {
            T x = input[token * input_stride + i];
            T gate = input[token * input_stride + d + i];
            out[token * out_stride + i] = (T)(silu(x) * (float)gate);
        }
    }
}
