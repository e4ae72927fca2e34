// Quantisation to float8 (e4m3), with a scale of its own for each group of neighbours in a row:
//     scale = max(eps, largest |x| of the group) / fp8_max,  q = x / scale, held within fp8_min and fp8_max
// 16 threads per group walk it twice, once for the largest value and once to write:
// grid ceil(num_groups / 16), block 256.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

constexpr int GROUPS = 16;   // in a block
constexpr int THREADS = 16;  // for a group

// The nearest float8, ties to even, in integer arithmetic, as a framework's own number type does it; value within
// +-448.
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {  // below 2^-6 in steps of 2^-9, which are the last bits of a sum with 2^14
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(sign | code);
}

template <typename T>
__global__ void per_token_group_quant(const T *__restrict__ input,
                                      __nv_fp8_e4m3 *__restrict__ output_q,
                                      float *__restrict__ output_s,
                                      int group_size, int num_groups,
                                      float eps, float fp8_min, float fp8_max)
{
    __shared__ float largest[GROUPS][THREADS + 1];
    const int local_group = threadIdx.x / THREADS;
    const int lane = threadIdx.x % THREADS;
    const long long group = static_cast<long long>(blockIdx.x) * GROUPS + local_group;
    const bool is_inside = group < num_groups;
    const T *x = input + group * group_size;
    __nv_fp8_e4m3 *q = output_q + group * group_size;

    float absmax = eps;
    if (is_inside)
        for (int i = lane; i < group_size; i += THREADS)
            absmax = fmaxf(absmax, fabsf(static_cast<float>(x[i])));

    largest[local_group][lane] = absmax;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (lane < step)
            largest[local_group][lane] = fmaxf(largest[local_group][lane], largest[local_group][lane + step]);
        __syncthreads();
    }
    if (!is_inside)
        return;

    const float scale = largest[local_group][0] / fp8_max;
    if (lane == 0)
        output_s[group] = scale;
    for (int i = lane; i < group_size; i += THREADS)
        q[i].__x = to_e4m3(fminf(fmaxf(static_cast<float>(x[i]) / scale, fp8_min), fp8_max));
}
