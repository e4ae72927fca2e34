#include <ATen/cuda/CUDAContext.h>
#include <torch/all.h>

#include <iostream>

#include "detail/pack.cuh"
#include "detail/reduce.cuh"
#include "dispatch.h"

namespace own {

// Divides each row by its root mean square, and multiplies by the weights.
template <typename scalar_t, int WIDTH>
__global__ void scale_rows_kernel(
    scalar_t* __restrict__ out,           // [rows, hidden]
    const scalar_t* __restrict__ input,   // [rows, hidden]
    const scalar_t* __restrict__ weight,  // [hidden]
    const float epsilon, const int hidden) {
  using pack_t = Pack<scalar_t, WIDTH>;
  const pack_t* row = reinterpret_cast<const pack_t*>(input + int64_t(blockIdx.x) * hidden);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden / WIDTH; i += blockDim.x) {
    const Pack<float, WIDTH> wide = widened(row[i]);
    for (int j = 0; j < WIDTH; ++j) sum += wide.at[j] * wide.at[j];
  }
  const float factor = rsqrtf(block_sum(sum) / hidden + epsilon);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float x = static_cast<float>(OWN_LOAD(&input[int64_t(blockIdx.x) * hidden + i]));
    out[int64_t(blockIdx.x) * hidden + i] = static_cast<scalar_t>(x * factor) * weight[i];
  }
}

}  // namespace own

#define LAUNCH_SCALE_ROWS(width)                                                             \
  OWN_DISPATCH(input.scalar_type(), "scale_rows", [&] {                                       \
    own::scale_rows_kernel<scalar_t, width><<<grid, block, 0, stream>>>(                      \
        out.data_ptr<scalar_t>(), input.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(),    \
        static_cast<float>(epsilon), hidden);                                                 \
  });

void scale_rows(torch::Tensor& out, torch::Tensor& input, torch::Tensor& weight, double epsilon) {
  TORCH_CHECK(input.is_contiguous());
  TORCH_CHECK(weight.size(0) == input.size(-1), "one weight for each column");
  int hidden = input.size(-1);
  int rows = input.numel() / hidden;
  TORCH_CHECK(hidden % 4 == 0, "rows are read four at a time");
  dim3 grid(rows);
  dim3 block(std::min(hidden, 1024));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (hidden % 8 == 0) {
    LAUNCH_SCALE_ROWS(8);
  } else {
    LAUNCH_SCALE_ROWS(4);
  }
}
