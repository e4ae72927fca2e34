// Copies ahead of their turn: where they apply, and what refuses them.

// case: rows that are only read are copied ahead
// with: moves = ["lanes tasks vector items hints ring", "lanes tasks vector items split ring", "lanes ring"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes tasks vector items hints ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 2 >= 512
// want: prefers copied_or_hinted: STAGES == 0 or LOAD == 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes tasks vector items split ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: split: SPLIT = 0 of 0, 1; 1: a task's elements are spread over several blocks
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires ring_or_split: STAGES == 0 or SPLIT == 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers split_rows_are_long: SPLIT == 0 or TASKS == 1
// want: prefers something_to_split: SPLIT == 0 or LANES * VEC * ITEMS < d
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 2 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1 or SPLIT == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers split_rows: SPLIT == 1
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes ring
// want: ring is refused: no loop reads neighbours of an array that is only read, in pieces of 4 bytes; without vectors pieces are single elements

// case: rows that are only read are copied ahead (2)
// with: moves = ["lanes tasks vector items hints ring"]
// with: capability = 80
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes tasks vector items hints ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers copied_or_hinted: STAGES == 0 or LOAD == 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers stage_in_shared: STAGES > 0

// case: rows that are only read are copied ahead (3)
// with: moves = ["lanes tasks vector items hints ring", "lanes tasks vector items ring", "lanes tasks vector items keep ring"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ float block_sum(float v)
{
    __shared__ float part[32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        sum += v * v;
    }
    sum = block_sum(sum);
    const float scale = sqrtf(sum / d + 1e-6f);
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / scale);
    }
}
// want: -- lanes tasks vector items hints ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 2 >= 512
// want: prefers copied_or_hinted: STAGES == 0 or LOAD == 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes tasks vector items ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 2 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes tasks vector items keep ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: keep: KEEP = 0 of 0, 1, 2, 3, 4, 6, 8, 16; vectors of its row a thread keeps in registers; 0: none
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires row_fits: KEEP == 0 or LANES * VEC * KEEP >= d
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires ring_or_keep: STAGES == 0 or KEEP == 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers registers: LANES * TASKS * (KEEP * VEC * 2 // 4 + 32) <= (device.registers_per_sm if device.registers_per_sm else 65536)
// want: prefers no_idle_part: KEEP <= 1 or LANES * VEC * (KEEP - 1) < d
// want: prefers wide_if_kept: KEEP == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers kept_if_several: KEEP > 0 or TASKS <= 1
// want: prefers one_way_at_a_time: KEEP == 0 or ITEMS == 1
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 2 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or KEEP > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers row_in_registers: KEEP > 0
// want: answers less_shared: KEEP > 0
// want: answers stage_in_shared: STAGES > 0

// case: rows that are only read are copied ahead (4)
// with: moves = ["lanes tasks vector items hints ring", "lanes tasks vector items ring"]
// with: capability = 80
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ float block_sum(float v)
{
    __shared__ float part[32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        sum += v * v;
    }
    sum = block_sum(sum);
    const float scale = sqrtf(sum / d + 1e-6f);
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / scale);
    }
}
// want: -- lanes tasks vector items hints ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers copied_or_hinted: STAGES == 0 or LOAD == 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes tasks vector items ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers stage_in_shared: STAGES > 0

// case: bulk copies need chunks in one piece and 16 bytes
// with: moves = ["lanes tasks vector items ring"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i % 64];
    }
}
// want: -- lanes tasks vector items ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers stage_in_shared: STAGES > 0

// case: bulk copies need chunks in one piece and 16 bytes (2)
// with: moves = ["lanes tasks vector items ring"]
// with: argument = { out = { align = 8 }, x = { align = 8 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes tasks vector items ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers stage_in_shared: STAGES > 0

// case: it is refused with a sentence
// with: moves = ["lanes tasks vector items ring"]
// with: capability = 75
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes tasks vector items ring
// want: ring is refused: asynchronous copies need sm_80, and this is sm_75

// case: it is refused with a sentence (2)
// with: moves = ["lanes ring"]
// with: device = "cpu"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes ring
// want: ring is refused: only CUDA's GPUs copy into shared memory while threads go on

// case: it is refused with a sentence (3)
// with: moves = ["lanes items ring"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i * 40];
    }
}
// want: -- lanes items ring
// want: ring is refused: no loop reads neighbours of an array that is only read, in pieces of 4 bytes; without vectors pieces are single elements

// case: it is refused with a sentence (4)
// with: moves = ["lanes tasks vector items ring"]
// with: signature = "x: float16*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        x[row * d + i] = x[row * d + i] + x[row * d + i];
    }
}
// want: -- lanes tasks vector items ring
// want: ring is refused: no loop reads neighbours of an array that is only read, in pieces of 4 bytes

// case: it is refused with a sentence (5)
// with: moves = ["lanes items ring"]
// with: argument = { out = { align = 2 }, x = { align = 2 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes items ring
// want: ring is refused: no loop reads neighbours of an array that is only read, in pieces of 4 bytes; without vectors pieces are single elements

// case: it is refused with a sentence (6)
// with: moves = ["lanes vector ring", "lanes vector persistent ring"]
// with: signature = "out: float16*[n]; x: float16*[n]; n: int32 = n"
// with: launch = { grid = ["ceildiv(n, 256)"] }
// with: contract = { n = { min = 1, max = 100000000 } }
// with: workloads = { one = { n = 1000000 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = x[i];
    }
}
// want: -- lanes vector ring
// want: ring is refused: every block takes one chunk: there is no next one to copy ahead
// want: -- lanes vector persistent ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES <= device.max_threads
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires whole_copies: STAGES == 0 or VEC * 2 % 4 == 0
// want: requires ring_goes_on: STAGES == 0 or PERSIST > 0
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 2 % 16 == 0
// want: requires memory_fits: round_up(STAGES * LANES * VEC * 2, 16) + 4096 <= device.shared
// want: prefers no_idle_lanes: LANES * VEC < 2 * n
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 8
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or n >= 2 * PERSIST * LANES * VEC * device.sms
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * PERSIST * device.sms < n
// want: prefers room_for_rings: STAGES * VEC * 2 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * 2 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers persistent_grid: PERSIST > 0
// want: answers items_in_flight: STAGES > 0
// want: answers stage_in_shared: STAGES > 0

// case: it is refused with a sentence (7)
// with: moves = ["lanes tasks vector items ring"]
// with: workloads = { one = { rows = 64, d = 2 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes tasks vector items ring
// want: ring is refused: a row is done in two turns at most: it has 2 elements

// case: the next loop is under way before totals that it does not wait for
// with: moves = ["lanes ring"]
// with: signature = "out: float32*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ float block_sum(float v)
{
    __shared__ float part[32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

extern "C" __global__ void it(float *out, const float *x, int rows, int d)
{
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        sum += x[row * d + i];
    }
    sum = block_sum(sum);
    const int count = sum > 1.0f ? d : 0;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i] + count;
    }
}
// want: -- lanes ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES <= device.max_threads
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires memory_fits: round_up(STAGES * LANES * 4, 16) + 4096 <= device.shared
// want: prefers no_idle_lanes: LANES < 2 * d
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES < d
// want: prefers room_for_rings: STAGES * 4 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers items_in_flight: STAGES > 0
// want: answers stage_in_shared: STAGES > 0

// case: the next loop is under way before totals that it does not wait for (2)
// with: moves = ["lanes ring"]
// with: signature = "out: float32*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ float block_sum(float v)
{
    __shared__ float part[32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

extern "C" __global__ void it(float *out, const float *x, int rows, int d)
{
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        sum += x[row * d + i];
    }
    sum = block_sum(sum);
    const int count = sum > 1.0f ? d : 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        out[row * d + i] = x[row * d + i] + count;
    }
}
// want: -- lanes ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: requires block_fits: LANES <= device.max_threads
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires memory_fits: round_up(STAGES * LANES * 4, 16) + 4096 <= device.shared
// want: prefers no_idle_lanes: LANES < 2 * d
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES < d
// want: prefers room_for_rings: STAGES * 4 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers items_in_flight: STAGES > 0
// want: answers stage_in_shared: STAGES > 0

// case: tasks that share registers may have one in their stead
// with: moves = ["lanes tasks vector items ring", "lanes tasks vector items blocking ring"]
// with: signature = "out: float32*[rows, d]; x: float32*[rows, d]; w: float32*[d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(float *out, const float *x, const float *w, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i] * w[i];
    }
}
// want: -- lanes tasks vector items ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 4 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 8, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 8 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 8 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 4 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 4 >= 16
// want: answers items_in_flight: ITEMS > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers stage_in_shared: STAGES > 0
// want: -- lanes tasks vector items blocking ring
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: blocking: BLOCKED = 1 of 1, 2, 4, 8; neighbouring tasks that a team takes at once
// want: ring: STAGES = 0 of 0, 2, 3, 4; chunks copied ahead into shared memory; 0: loads
// want: bulk: BULK = 0 of 0, 1, categorical; 1: one thread sends for a team's whole chunk
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires copies_ahead: STAGES == 0 or device.capability >= 80
// want: requires ring_or_blocked: STAGES == 0 or BLOCKED == 1
// want: requires bulk_copies: BULK == 0 or STAGES > 0 and device.capability >= 90
// want: requires bulk_by_warps: BULK == 0 or LANES % 32 == 0
// want: requires bulk_pieces: BULK == 0 or VEC * 4 % 16 == 0
// want: requires memory_fits: round_up(STAGES * ITEMS * LANES * TASKS * VEC * 8, 16) + 4096 <= device.shared
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 8 <= 256
// want: prefers touches_if_wide: STAGES == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers tile_in_registers: BLOCKED == 1 or VEC * ITEMS * (BLOCKED * 4 + 4) <= 256
// want: prefers teams_for_all: BLOCKED == 1 or rows >= BLOCKED * TASKS * device.sms
// want: prefers chunks_ahead: STAGES == 0 or 2 * LANES * VEC * ITEMS < d
// want: prefers room_for_rings: STAGES * VEC * ITEMS * 8 <= (device.shared_per_sm if device.shared_per_sm else 233472) // 1024
// want: prefers long_runs: BULK == 0 or LANES * VEC * ITEMS * 4 >= 512
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1 or BLOCKED > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 4 >= 16
// want: answers items_in_flight: ITEMS > 1 or BLOCKED > 1 or STAGES > 0
// want: answers unroll: ITEMS > 1
// want: answers hoist_invariants: BLOCKED > 1
// want: answers stage_in_shared: STAGES > 0
