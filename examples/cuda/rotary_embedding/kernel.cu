// Rotary position embedding in the NeoX layout, in place: in every head of query and key the element i of the
// first half of the rotated part and the element i of its second half turn by the angle (position, i):
//     x' = x * cos - y * sin,  y' = y * cos + x * sin
// A row of the cache holds the cosines of one position, then its sines.
// One block per token: grid tokens, block min(heads * rot_dim / 2, 512).
#include <cuda_bf16.h>

template <typename T>
__device__ inline void rotate(T *head, const T *cos_row, const T *sin_row, int i, int half)
{
    const float c = static_cast<float>(__ldg(cos_row + i));
    const float s = static_cast<float>(__ldg(sin_row + i));
    const float x = static_cast<float>(head[i]);
    const float y = static_cast<float>(head[half + i]);
    head[i] = static_cast<T>(x * c - y * s);
    head[half + i] = static_cast<T>(y * c + x * s);
}

template <typename T>
__global__ void rotary_embedding(const long long *__restrict__ positions,
                                 T *__restrict__ query,
                                 T *__restrict__ key,
                                 const T *__restrict__ cos_sin_cache,
                                 int rot_dim, long long query_stride, long long key_stride,
                                 int heads, int kv_heads, int head_dim)
{
    const int half = rot_dim / 2;
    const long long token = blockIdx.x;
    const T *cos_row = cos_sin_cache + positions[token] * rot_dim;
    const T *sin_row = cos_row + half;

    for (int i = threadIdx.x; i < heads * half; i += blockDim.x)
        rotate(query + token * query_stride + i / half * head_dim, cos_row, sin_row, i % half, half);
    for (int i = threadIdx.x; i < kv_heads * half; i += blockDim.x)
        rotate(key + token * key_stride + i / half * head_dim, cos_row, sin_row, i % half, half);
}
