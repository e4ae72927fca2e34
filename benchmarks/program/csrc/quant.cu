#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "reduce.cuh"

namespace program {

// Each row in steps of its largest absolute value / 127.
template <typename scalar_t>
__global__ void quant_per_token_kernel(int8_t* __restrict__ out,            // [num_tokens, hidden_size]
                                       float* __restrict__ scales,          // [num_tokens]
                                       const scalar_t* __restrict__ input,  // [num_tokens, hidden_size]
                                       const int num_tokens, const int hidden_size) {
  __shared__ float s_largest;
  float largest = 0.0f;
  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x)
    largest = fmaxf(largest, fabsf(to_float(input[blockIdx.x * hidden_size + idx])));
  largest = block_max(largest);
  if (threadIdx.x == 0) {
    s_largest = fmaxf(largest, 1e-10f);
    scales[blockIdx.x] = s_largest / 127.0f;
  }
  __syncthreads();
  const float inverse = 127.0f / s_largest;
  for (int idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const float x = to_float(input[blockIdx.x * hidden_size + idx]) * inverse;
    out[blockIdx.x * hidden_size + idx] = static_cast<int8_t>(fminf(fmaxf(rintf(x), -127.0f), 127.0f));
  }
}

}  // namespace program

template <typename scalar_t>
static int quant_per_token(void* out, void* scales, const void* input, int num_tokens, int hidden_size,
                           cudaStream_t stream) {
  PROGRAM_CHECK(hidden_size % 32 == 0);  // whole warps
  dim3 grid(num_tokens);
  dim3 block(std::min(hidden_size, 256));
  program::quant_per_token_kernel<scalar_t><<<grid, block, 0, stream>>>(
      static_cast<int8_t*>(out), static_cast<float*>(scales), static_cast<const scalar_t*>(input), num_tokens,
      hidden_size);
  return cudaGetLastError();
}

extern "C" int program_quant_per_token(void* out, void* scales, const void* input, int num_tokens,
                                       int hidden_size, int is_half, cudaStream_t stream) {
  if (is_half) return quant_per_token<__half>(out, scales, input, num_tokens, hidden_size, stream);
  return quant_per_token<__nv_bfloat16>(out, scales, input, num_tokens, hidden_size, stream);
}
