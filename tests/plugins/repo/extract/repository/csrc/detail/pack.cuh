#pragma once
#include <torch/headeronly/util/BFloat16.h>

#include "../compat.h"

namespace own {

// A few numbers that are moved at once.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
};

template <typename T, int N>
OWN_INLINE Pack<float, N> widened(const Pack<T, N>& pack) {
  Pack<float, N> wide;
#pragma unroll
  for (int i = 0; i < N; ++i) wide.at[i] = static_cast<float>(pack.at[i]);
  return wide;
}

// Nobody needs this one.
template <typename T, int N>
OWN_INLINE T largest(const Pack<T, N>& pack) {
  T found = pack.at[0];
  for (int i = 1; i < N; ++i) found = found < pack.at[i] ? pack.at[i] : found;
  return found;
}

}  // namespace own
