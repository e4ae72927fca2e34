#pragma once
#include <vector>

#include "compat.h"

namespace own {
namespace detail {

constexpr int kMostWarps = 1024 / OWN_LANES;

OWN_INLINE float warp_sum(float value) {
  for (int lanes = OWN_LANES / 2; lanes > 0; lanes /= 2) value += OWN_SHUFFLE(value, lanes);
  return value;
}

OWN_INLINE double warp_sum(double value) {
  for (int lanes = OWN_LANES / 2; lanes > 0; lanes /= 2) value += OWN_SHUFFLE(value, lanes);
  return value;
}

}  // namespace detail

OWN_INLINE float block_sum(float value) {
  __shared__ float partial[detail::kMostWarps];
  value = detail::warp_sum(value);
  if (threadIdx.x % OWN_LANES == 0) partial[threadIdx.x / OWN_LANES] = value;
  __syncthreads();
  const int warps = (blockDim.x + OWN_LANES - 1) / OWN_LANES;
  value = threadIdx.x < warps ? partial[threadIdx.x] : 0.0f;
  if (threadIdx.x < OWN_LANES) value = detail::warp_sum(value);
  if (threadIdx.x == 0) partial[0] = value;
  __syncthreads();
  return partial[0];
}

inline std::vector<int> of_the_host(int n) { return std::vector<int>(n); }

}  // namespace own
