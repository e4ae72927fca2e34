// Joins two partial attention results (of two parts of the keys) into one, by the log-sum-exp of their scores:
//     m = max(s_a, s_b),  w_a = exp(s_a - m),  w_b = exp(s_b - m)
//     v_merged = (w_a * v_a + w_b * v_b) / (w_a + w_b),  s_merged = log(w_a + w_b) + m
// A part without keys has the score -inf, from some attention kernels +inf; never both parts.
// One thread per pack of 16 bytes: grid ceil(tokens * heads * head_dim / pack / THREADS), block THREADS.
#include <cuda_fp16.h>

__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline void from_float(__half &to, float x) { to = __float2half(x); }

template <typename T, unsigned THREADS>
__global__ void merge_attn_states(const T *v_a, const float *s_a, const T *v_b, const float *s_b,
                                  T *v_merged, float *s_merged,
                                  unsigned tokens, unsigned heads, unsigned head_dim)
{
    constexpr unsigned PACK = sizeof(uint4) / sizeof(T);
    const unsigned packs_per_head = head_dim / PACK;
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= tokens * heads * packs_per_head)
        return;

    const unsigned token = i / packs_per_head / heads;
    const unsigned head = i / packs_per_head % heads;
    const unsigned pack = i % packs_per_head;

    const float minus_infinity = __int_as_float(0xff800000);
    float score_a = s_a[token * heads + head];
    float score_b = s_b[token * heads + head];
    score_a = isinf(score_a) ? minus_infinity : score_a;
    score_b = isinf(score_b) ? minus_infinity : score_b;

    const float m = fmaxf(score_a, score_b);
    const float exp_a = expf(score_a - m);
    const float exp_b = expf(score_b - m);
    const float sum = exp_a + exp_b;
    const float weight_a = exp_a / sum;
    const float weight_b = exp_b / sum;

    const unsigned offset = (token * heads + head) * head_dim + pack * PACK;
    const uint4 pack_a = *reinterpret_cast<const uint4 *>(v_a + offset);
    const uint4 pack_b = *reinterpret_cast<const uint4 *>(v_b + offset);
    uint4 merged;
#pragma unroll
    for (unsigned j = 0; j < PACK; j++) {
        const float a = to_float(reinterpret_cast<const T *>(&pack_a)[j]);
        const float b = to_float(reinterpret_cast<const T *>(&pack_b)[j]);
        from_float(reinterpret_cast<T *>(&merged)[j], weight_a * a + weight_b * b);
    }
    *reinterpret_cast<uint4 *>(v_merged + offset) = merged;
    if (pack == 0)
        s_merged[token * heads + head] = logf(sum) + m;
}
