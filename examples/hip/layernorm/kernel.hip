// out[t, i] = (x[t, i] - mean(x[t, :])) * rsqrt(var(x[t, :]) + eps) * weight[i] + bias[i], in half precision
// One block per row; sums of values and of squares in one pass, in shared memory: no wave is asked its width.
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

#define THREADS 256

extern "C" __global__ __launch_bounds__(THREADS) void layernorm(__half *__restrict__ out,
                                                                const __half *__restrict__ x,
                                                                const __half *__restrict__ weight,
                                                                const __half *__restrict__ bias,
                                                                float eps, int tokens, int d)
{
    __shared__ float sums[THREADS], squares[THREADS];
    const __half *row = x + (long long)blockIdx.x * d;

    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < d; i += THREADS) {
        const float value = __half2float(row[i]);
        sum += value;
        square += value * value;
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
            squares[threadIdx.x] += squares[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float mean = sums[0] / d;
    const float scale = rsqrtf(fmaxf(squares[0] / d - mean * mean, 0.0f) + eps);

    for (int i = threadIdx.x; i < d; i += THREADS) {
        const float value = (__half2float(row[i]) - mean) * scale;
        out[(long long)blockIdx.x * d + i] =
            __float2half(value * __half2float(weight[i]) + __half2float(bias[i]));
    }
}
