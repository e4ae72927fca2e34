// out[t, i] = gelu(x[t, i] + bias[i]), with gelu(v) = v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 v^3)))
// One element per thread.
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

template <typename T>
__global__ void bias_gelu(T *out, const T *x, const T *bias, long long count, int d)
{
    const long long i = (long long)hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
    if (i >= count)
        return;
    const float v = (float)x[i] + (float)bias[i % d];
    const float inner = 0.7978845608028654f * (v + 0.044715f * v * v * v);
    out[i] = (T)(0.5f * v * (1.0f + tanhf(inner)));
}
