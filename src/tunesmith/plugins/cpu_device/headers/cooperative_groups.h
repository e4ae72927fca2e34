// Cooperative groups: blocks, tiles of a warp; grids and clusters only as far as nobody waits for another block.
#pragma once
#include "tunesmith_cpu.h"
namespace cooperative_groups {
struct thread_block {
    static unsigned thread_rank() { return (unsigned)__tunesmith_current(); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    static dim3 group_dim() { return dim_threads(); }
    static void sync() { __syncthreads(); }
};
static inline thread_block this_thread_block() { return {}; }

struct grid_group {
    static unsigned long long block_rank() { return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned long long size() { return num_blocks() * thread_block::size(); }
    static unsigned long long num_threads() { return size(); }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static bool is_valid() { return false; }
    static void sync() { __tunesmith_refuse("the cpu device runs block after block and knows no barrier of a grid: check this kernel on a GPU"); }
};
static inline grid_group this_grid() { return {}; }

template <unsigned N, typename Parent = void>
struct thread_block_tile {
    thread_block_tile() = default;
    template <typename Other> thread_block_tile(const thread_block_tile<N, Other> &) {}
    static_assert(N >= 1 && N <= TUNESMITH_WARP && (N & (N - 1)) == 0, "a tile is a power of two, at most a warp");
    static unsigned long long mask()
    {
        const unsigned long long all = N >= 64 ? ~0ull : (1ull << (N & 63)) - 1;
        return all << (__tunesmith::lane() / N * N);
    }
    static unsigned thread_rank() { return (unsigned)__tunesmith::lane() % N; }
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    static unsigned meta_group_rank() { return (unsigned)__tunesmith_current() / N; }
    static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
    static void sync() { __syncwarp(mask()); }
    template <typename T> static T shfl(T v, int from) { return __shfl_sync(mask(), v, from, N); }
    template <typename T> static T shfl_xor(T v, unsigned step) { return __shfl_xor_sync(mask(), v, (int)step, N); }
    template <typename T> static T shfl_down(T v, unsigned step) { return __shfl_down_sync(mask(), v, step, N); }
    template <typename T> static T shfl_up(T v, unsigned step) { return __shfl_up_sync(mask(), v, step, N); }
    static int any(int holds) { return __any_sync(mask(), holds); }
    static int all(int holds) { return __all_sync(mask(), holds); }
    static __tunesmith_lanes ballot(int holds) { return (__tunesmith_lanes)(__ballot_sync(mask(), holds) >> (__tunesmith::lane() / N * N)); }
    template <typename T> static __tunesmith_lanes match_any(T v) { return (__tunesmith_lanes)(__match_any_sync(mask(), v) >> (__tunesmith::lane() / N * N)); }
};
template <unsigned N, typename Parent>
static inline thread_block_tile<N, Parent> tiled_partition(const Parent &) { return {}; }
template <typename Group> static inline void sync(const Group &group) { group.sync(); }

template <typename T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
}  // namespace cooperative_groups
