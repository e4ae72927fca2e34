// out[r, i] = exp(x[r, i] - max(x[r, :])) / sum(exp(x[r, :] - max(x[r, :])))
// One block per row, which is read three times; waves of any width.
#include <hip/hip_runtime.h>

__device__ float wave_max(float value)
{
    for (int step = warpSize / 2; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor(value, step));
    return value;
}

__device__ float wave_sum(float value)
{
    for (int step = warpSize / 2; step > 0; step /= 2)
        value += __shfl_xor(value, step);
    return value;
}

extern "C" __global__ __launch_bounds__(256) void softmax(float *__restrict__ out,
                                                          const float *__restrict__ x,
                                                          int rows, int d)
{
    __shared__ float of_wave[8];
    __shared__ float largest, total;

    const long long row = blockIdx.x;
    const int wave = threadIdx.x / warpSize, lane = threadIdx.x % warpSize, waves = blockDim.x / warpSize;

    float most = -INFINITY;
    for (int i = threadIdx.x; i < d; i += blockDim.x)
        most = fmaxf(most, x[row * d + i]);
    most = wave_max(most);
    if (lane == 0)
        of_wave[wave] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < waves; w++)
            most = fmaxf(most, of_wave[w]);
        largest = most;
    }
    __syncthreads();

    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x)
        sum += expf(x[row * d + i] - largest);
    sum = wave_sum(sum);
    if (lane == 0)
        of_wave[wave] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < waves; w++)
            sum += of_wave[w];
        total = sum;
    }
    __syncthreads();

    for (int i = threadIdx.x; i < d; i += blockDim.x)
        out[row * d + i] = expf(x[row * d + i] - largest) / total;
}
