// Half precision, two numbers at a time; by itself, since it needs a header that may not be there.
#include <cuda_fp16.h>

extern "C" __global__ void fp16(float *out, float a, float b, int rounds)
{
    const __half2 by = __float2half2_rn(a), plus = __float2half2_rn(b);
    __half2 x[16];
#pragma unroll
    for (int k = 0; k < 16; k++)
        x[k] = __float2half2_rn(1.0f + 0.01f * k);
    for (int i = 0; i < rounds; i++)
#pragma unroll
        for (int k = 0; k < 16; k++)
            x[k] = __hfma2(x[k], by, plus);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k++)
        sum += __low2float(x[k]) + __high2float(x[k]);
    if (sum == -1.0f)
        out[0] = sum;
}
