// residual[t, :] += input[t, :], then input[t, i] = residual[t, i] * rsqrt(mean(residual[t, :]^2) + eps) * weight[i]
// One block of whole warps per row, eight elements per thread in turn; d must be a multiple of 8. The sum is
// kept in shared memory in float32: what is normalised is not rounded, only what is stored.
#include <cuda_fp16.h>

__device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

extern "C" __global__ void fused_add_rmsnorm(__half *__restrict__ input, __half *__restrict__ residual,
                                             const __half *__restrict__ weight, float eps, int tokens, int d)
{
    extern __shared__ __align__(16) float shared[];  // 32 sums, then the row
    float *row = shared + 32;

    const long long token = blockIdx.x;
    if (token >= tokens)
        return;
    const int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
    const int thread = warp * 32 + lane, threads = warps * 32;
    uint4 *inputs = (uint4 *)(input + token * d);
    uint4 *residuals = (uint4 *)(residual + token * d);

    float sum = 0.0f;
    for (int i = thread; i < d / 8; i += threads) {
        uint4 added = inputs[i];
        uint4 stored = residuals[i];
        float x[8];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 a = __half22float2(((const __half2 *)&added)[j]);
            const float2 b = __half22float2(((const __half2 *)&stored)[j]);
            x[2 * j] = a.x + b.x;
            x[2 * j + 1] = a.y + b.y;
            sum += x[2 * j] * x[2 * j];
            sum += x[2 * j + 1] * x[2 * j + 1];
            ((__half2 *)&stored)[j] = __floats2half2_rn(x[2 * j], x[2 * j + 1]);
        }
        residuals[i] = stored;
        ((float4 *)row)[2 * i] = make_float4(x[0], x[1], x[2], x[3]);
        ((float4 *)row)[2 * i + 1] = make_float4(x[4], x[5], x[6], x[7]);
    }

    sum = warp_sum(sum);
    if (lane == 0)
        shared[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < warps ? shared[lane] : 0.0f);
        if (lane == 0)
            shared[0] = sum;
    }
    __syncthreads();
    const float scale = rsqrtf(shared[0] / d + eps);

    for (int i = thread; i < d / 8; i += threads) {
        const uint4 weights = ((const uint4 *)weight)[i];
        const float4 low = ((const float4 *)row)[2 * i], high = ((const float4 *)row)[2 * i + 1];
        const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        uint4 result;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 w = __half22float2(((const __half2 *)&weights)[j]);
            ((__half2 *)&result)[j] = __floats2half2_rn(x[2 * j] * scale * w.x, x[2 * j + 1] * scale * w.y);
        }
        inputs[i] = result;
    }
}
