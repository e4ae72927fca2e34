#include <cuda_runtime.h>

#include <algorithm>

#include "reduce.cuh"

namespace program {

// residual += input; input = residual / rms(residual) * weight, row by row, in place.
template <typename scalar_t>
__global__ void fused_add_rms_norm_kernel(scalar_t* __restrict__ input,         // [num_tokens, hidden_size]
                                          scalar_t* __restrict__ residual,      // [num_tokens, hidden_size]
                                          const scalar_t* __restrict__ weight,  // [hidden_size]
                                          const float epsilon, const int num_tokens, const int hidden_size) {
  __shared__ float s_variance;
  float variance = 0.0f;
  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const scalar_t z = from_float<scalar_t>(to_float(input[blockIdx.x * hidden_size + idx]) +
                                            to_float(residual[blockIdx.x * hidden_size + idx]));
    const float x = to_float(z);
    variance += x * x;
    residual[blockIdx.x * hidden_size + idx] = z;
  }
  variance = block_sum(variance);
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / hidden_size + epsilon);
  __syncthreads();
  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const float x = to_float(residual[blockIdx.x * hidden_size + idx]);
    input[blockIdx.x * hidden_size + idx] = from_float<scalar_t>(x * s_variance * to_float(weight[idx]));
  }
}

}  // namespace program

template <typename scalar_t>
static int fused_add_rms_norm(void* input, void* residual, const void* weight, float epsilon, int num_tokens,
                              int hidden_size, cudaStream_t stream) {
  PROGRAM_CHECK(hidden_size % 32 == 0);  // whole warps
  dim3 grid(num_tokens);
  dim3 block(std::min(hidden_size, 1024));
  program::fused_add_rms_norm_kernel<scalar_t><<<grid, block, 0, stream>>>(
      static_cast<scalar_t*>(input), static_cast<scalar_t*>(residual), static_cast<const scalar_t*>(weight),
      epsilon, num_tokens, hidden_size);
  return cudaGetLastError();
}

extern "C" int program_fused_add_rms_norm(void* input, void* residual, const void* weight, float epsilon,
                                          int num_tokens, int hidden_size, int is_half, cudaStream_t stream) {
  if (is_half)
    return fused_add_rms_norm<__half>(input, residual, weight, epsilon, num_tokens, hidden_size, stream);
  return fused_add_rms_norm<__nv_bfloat16>(input, residual, weight, epsilon, num_tokens, hidden_size, stream);
}
