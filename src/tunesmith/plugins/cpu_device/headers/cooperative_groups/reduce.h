#pragma once
#include "../cooperative_groups.h"
namespace cooperative_groups {
template <unsigned N, typename Parent, typename T, typename F>
static inline T reduce(const thread_block_tile<N, Parent> &tile, T value, F joined)
{
    for (unsigned step = N / 2; step > 0; step /= 2)
        value = joined(value, tile.shfl_xor(value, step));
    return value;
}
}  // namespace cooperative_groups
