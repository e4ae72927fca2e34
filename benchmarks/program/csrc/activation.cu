#include <cuda_runtime.h>

#include <algorithm>

#include "reduce.cuh"

namespace program {

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

// out = silu(first half of each row) * its second half.
template <typename scalar_t>
__global__ void silu_and_mul_kernel(scalar_t* __restrict__ out,          // [num_tokens, d]
                                    const scalar_t* __restrict__ input,  // [num_tokens, 2 * d]
                                    const int num_tokens, const int d) {
  for (int idx = threadIdx.x; idx < d; idx += blockDim.x) {
    const float gate = to_float(input[blockIdx.x * 2 * d + idx]);
    const float up = to_float(input[blockIdx.x * 2 * d + d + idx]);
    out[blockIdx.x * d + idx] = from_float<scalar_t>(silu(gate) * up);
  }
}

}  // namespace program

#define LAUNCH_SILU_AND_MUL(scalar_t)                                                \
  program::silu_and_mul_kernel<scalar_t><<<grid, block, 0, stream>>>(                \
      static_cast<scalar_t*>(out), static_cast<const scalar_t*>(input), num_tokens, d)

extern "C" int program_silu_and_mul(void* out, const void* input, int num_tokens, int d, int is_half,
                                    cudaStream_t stream) {
  dim3 grid(num_tokens);
  dim3 block(std::min(d, 1024));
  if (is_half) {
    LAUNCH_SILU_AND_MUL(__half);
  } else {
    LAUNCH_SILU_AND_MUL(__nv_bfloat16);
  }
  return cudaGetLastError();
}
