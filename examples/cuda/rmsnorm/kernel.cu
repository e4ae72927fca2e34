// out[t, i] = bfloat16(input[t, i] * rsqrt(mean(input[t, :]^2) + eps)) * weight[i]
// One block per row, which is read twice; one element per thread in turn.
#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm(__nv_bfloat16 *__restrict__ out,
                                   const __nv_bfloat16 *__restrict__ input,
                                   const __nv_bfloat16 *__restrict__ weight,
                                   float eps, int tokens, int d)
{
    __shared__ float of_warp[32];
    __shared__ float scale;

    const long long token = blockIdx.x;
    if (token >= tokens)
        return;
    const __nv_bfloat16 *row = input + token * d;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float x = __bfloat162float(row[i]);
        sum += x * x;
    }

    // The last warp may have fewer than 32 threads: those that are missing add nothing.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    const int width = min(32, (int)blockDim.x - 32 * warp);
    const unsigned here = width == 32 ? 0xffffffffu : (1u << width) - 1;
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_down_sync(here, sum, step);
        sum += lane + step < width ? other : 0.0f;
    }
    if (lane == 0)
        of_warp[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < warps; w++)
            sum += of_warp[w];
        scale = rsqrtf(sum / d + eps);
    }
    __syncthreads();

    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float x = __bfloat162float(row[i]);
        out[token * d + i] = __hmul(__float2bfloat16(x * scale), weight[i]);
    }
}
