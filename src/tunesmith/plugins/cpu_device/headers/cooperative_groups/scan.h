#pragma once
#include "../cooperative_groups.h"
namespace cooperative_groups {
template <unsigned N, typename Parent, typename T, typename F>
static inline T inclusive_scan(const thread_block_tile<N, Parent> &tile, T value, F joined)
{
    for (unsigned step = 1; step < N; step *= 2) {
        const T other = tile.shfl_up(value, step);
        if (tile.thread_rank() >= step)
            value = joined(other, value);
    }
    return value;
}
template <unsigned N, typename Parent, typename T>
static inline T inclusive_scan(const thread_block_tile<N, Parent> &tile, T value) { return inclusive_scan(tile, value, plus<T>()); }
template <unsigned N, typename Parent, typename T>
static inline T exclusive_scan(const thread_block_tile<N, Parent> &tile, T value)
{
    const T before = tile.shfl_up(inclusive_scan(tile, value), 1);
    return tile.thread_rank() ? before : T(0);
}
}  // namespace cooperative_groups
