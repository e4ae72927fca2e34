// out[t, i] = silu(input[t, i]) * input[t, d + i], with silu(x) = x / (1 + exp(-x))
// One block per row, eight elements per thread in turn; d must be a multiple of 8. What a last, incomplete
// round of the block would leave is computed one element at a time as well.
#include <cuda_fp16.h>

__device__ __forceinline__ float silu(float x)
{
    return __fdividef(x, 1.0f + __expf(-x));
}

__device__ __forceinline__ unsigned gated(unsigned x, unsigned gate)  // two halves each
{
    const float2 a = __half22float2(*(const __half2 *)&x);
    const float2 b = __half22float2(*(const __half2 *)&gate);
    const __half2 c = __floats2half2_rn(silu(a.x) * b.x, silu(a.y) * b.y);
    return *(const unsigned *)&c;
}

extern "C" __global__ void silu_and_mul(__half *__restrict__ out, const __half *__restrict__ input,
                                        int tokens, int d)
{
    const long long token = blockIdx.x;
    if (token >= tokens)
        return;
    const __half *x_row = input + token * 2 * d;
    const __half *gate_row = x_row + d;
    __half *out_row = out + token * d;

#pragma unroll 1
    for (int i = threadIdx.x; i < d / 8; i += blockDim.x) {
        const uint4 x = ((const uint4 *)x_row)[i];
        const uint4 gate = ((const uint4 *)gate_row)[i];
        uint4 result;
        result.x = gated(x.x, gate.x);
        result.y = gated(x.y, gate.y);
        result.z = gated(x.z, gate.z);
        result.w = gated(x.w, gate.w);
        ((uint4 *)out_row)[i] = result;
    }

    const int rest = d % (8 * blockDim.x);
#pragma unroll 1
    for (int i = d - rest + threadIdx.x; i < d; i += blockDim.x)
        out_row[i] = __float2half(silu(__half2float(x_row[i])) * __half2float(gate_row[i]));
}
