// Moves that change how the work is shared: their domains, defaults and conditions, and what refuses them.

// case: widths up to one turn of the row with the block of today as default
// with: moves = ["lanes", "lanes tasks", "lanes tasks vector", "lanes vector items", "lanes tasks vector items split", "beside", "lanes vector keep", "lanes tasks vector items hints persistent bounds registers"]
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
// want: -- lanes
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: -- lanes tasks
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: -- lanes tasks vector
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: -- lanes vector items
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: -- lanes tasks vector items split
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: split: SPLIT = 0 of 0, 1; 1: a task's elements are spread over several blocks
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers split_rows_are_long: SPLIT == 0 or TASKS == 1
// want: prefers something_to_split: SPLIT == 0 or LANES * VEC * ITEMS < d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1 or SPLIT == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: answers split_rows: SPLIT == 1
// want: -- beside
// want: beside is refused: a task is one loop: there is no other to run beside it
// want: -- lanes vector keep
// want: keep is refused: there is one loop over the row only: nothing is read again
// want: -- lanes tasks vector items hints persistent bounds registers
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: bounds: BOUNDS = 1 of 1, 2, 4; blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD
// want: registers: REGS = 255 of 32, 64, 128, 255; registers of a thread, at most
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and BOUNDS == 1 and REGS == 255 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or rows >= 2 * PERSIST * TASKS * device.sms
// want: prefers bounds_fit: BOUNDS == 1 or BOUNDS * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers bounds_or_persist: BOUNDS == 1 or PERSIST == 0
// want: prefers regs_or_persist: REGS == 255 or PERSIST == 0
// want: prefers one_setting: (BOUNDS != 1) + (REGS != 255) <= 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers persistent_grid: PERSIST > 0
// want: answers launch_bounds: BOUNDS > 1
// want: answers register_cap: REGS < 255

// case: short rows take parts of a warp
// with: moves = ["lanes"]
// with: launch = { block = ["128"] }
// with: workloads = { one = { rows = 1024, d = 128 } }
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
// want: -- lanes
// want: lanes: LANES = 128 of 4, 8, 16, 32, 64, 128; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 128
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: the default is as near to the original as the domain has it
// with: moves = ["lanes"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    for (int i = 0; i < d; i += 1) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes
// want: lanes: LANES = 32 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers share_serial_work: LANES > 1
// want: answers block_size: LANES != 32
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: the default is as near to the original as the domain has it (2)
// with: moves = ["lanes"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows)
        return;
    for (int i = threadIdx.x % 32; i < d; i += 32) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / (1.0f + expf(-v)));
    }
}
// want: -- lanes
// want: lanes: LANES = 32 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 32
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: on a cpu work items are few
// with: moves = ["lanes", "lanes vector", "lanes vector items"]
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
// want: -- lanes
// want: lanes: LANES = 256 of 1, 8, 64, 256; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: answers block_size: LANES != 256
// want: -- lanes vector
// want: lanes: LANES = 256 of 1, 8, 64, 256; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: answers block_size: LANES != 256
// want: answers wide_access: VEC * 2 >= 16
// want: -- lanes vector items
// want: lanes: LANES = 256 of 1, 8, 64, 256; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 4, 16; vectors a thread has under way at once
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_items: ITEMS == 1 or LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 1024
// want: answers block_size: LANES != 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1

// case: widths that make a row a few whole turns are added
// with: moves = ["lanes"]
// with: workloads = { one = { rows = 1024, d = 11008 } }
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
// want: -- lanes
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 352, 384, 512, 704, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: answers say where the remedies are
// with: moves = ["lanes", "lanes vector items", "lanes split", "beside", "lanes tasks vector keep", "lanes vector items keep", "lanes tasks persistent", "lanes tasks vector items hints persistent bounds registers"]
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
// want: -- lanes
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: -- lanes vector items
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: -- lanes split
// want: split is refused: a task has to stay in one block: its total sum is known to its own threads alone
// want: -- beside
// want: beside is refused: no two loops in a row stand alone: they total something, or touch what the other writes
// want: -- lanes tasks vector keep
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: keep: KEEP = 0 of 0, 1, 2, 3, 4, 6, 8, 16; vectors of its row a thread keeps in registers; 0: none
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires row_fits: KEEP == 0 or LANES * VEC * KEEP >= d
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: prefers registers: LANES * TASKS * (KEEP * VEC * 2 // 4 + 32) <= (device.registers_per_sm if device.registers_per_sm else 65536)
// want: prefers no_idle_part: KEEP <= 1 or LANES * VEC * (KEEP - 1) < d
// want: prefers wide_if_kept: KEEP == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers kept_if_several: KEEP > 0 or TASKS <= 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers row_in_registers: KEEP > 0
// want: answers items_in_flight: KEEP > 1
// want: answers less_shared: KEEP > 0
// want: -- lanes vector items keep
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: keep: KEEP = 0 of 0, 1, 2, 3, 4, 6, 8, 16; vectors of its row a thread keeps in registers; 0: none
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires row_fits: KEEP == 0 or LANES * VEC * KEEP >= d
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers registers: LANES * (KEEP * VEC * 2 // 4 + 32) <= (device.registers_per_sm if device.registers_per_sm else 65536)
// want: prefers no_idle_part: KEEP <= 1 or LANES * VEC * (KEEP - 1) < d
// want: prefers wide_if_kept: KEEP == 0 or VEC >= 4 or not d % (2 * VEC) == 0
// want: prefers one_way_at_a_time: KEEP == 0 or ITEMS == 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1 or KEEP > 1
// want: answers unroll: ITEMS > 1
// want: answers row_in_registers: KEEP > 0
// want: answers less_shared: KEEP > 0
// want: -- lanes tasks persistent
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES < 2 * d
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or rows >= 2 * PERSIST * TASKS * device.sms
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers persistent_grid: PERSIST > 0
// want: -- lanes tasks vector items hints persistent bounds registers
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: bounds: BOUNDS = 1 of 1, 2, 4; blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD
// want: registers: REGS = 255 of 32, 64, 128, 255; registers of a thread, at most
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and BOUNDS == 1 and REGS == 255 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or rows >= 2 * PERSIST * TASKS * device.sms
// want: prefers bounds_fit: BOUNDS == 1 or BOUNDS * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers bounds_or_persist: BOUNDS == 1 or PERSIST == 0
// want: prefers regs_or_persist: REGS == 255 or PERSIST == 0
// want: prefers one_setting: (BOUNDS != 1) + (REGS != 255) <= 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers persistent_grid: PERSIST > 0
// want: answers launch_bounds: BOUNDS > 1
// want: answers register_cap: REGS < 255

// case: answers say where the remedies are (2)
// with: moves = ["lanes"]
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
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < d; i += 1) {
        const float v = __half2float(x[row * d + i]);
        sum += v * v;
    }
    const float scale = sqrtf(sum / d + 1e-6f);
    for (int i = 0; i < d; i += 1) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / scale);
    }
}
// want: -- lanes
// want: lanes: LANES = 32 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers share_serial_work: LANES > 1
// want: answers block_size: LANES != 32
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: a grid on one task has none to put side by side
// with: moves = ["lanes tasks", "lanes split", "lanes vector persistent", "lanes vector items hints persistent bounds registers"]
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
// want: -- lanes tasks
// want: tasks is refused: the whole grid works on one task: there are none to put side by side
// want: -- lanes split
// want: split is refused: the loop is spread over the whole grid already
// want: -- lanes vector persistent
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES * VEC < 2 * n
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or n >= 2 * PERSIST * LANES * VEC * device.sms
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers persistent_grid: PERSIST > 0
// want: -- lanes vector items hints persistent bounds registers
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: persistent: PERSIST = 0 of 0, 1, 2, 4, 8; blocks to a multiprocessor that go on; 0: a block ends
// want: bounds: BOUNDS = 1 of 1, 2, 4; blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD
// want: registers: REGS = 255 of 32, 64, 128, 255; registers of a thread, at most
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * n
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 256
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 and BOUNDS == 1 and REGS == 255 or VEC >= 8
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: prefers room_to_persist: PERSIST == 0 or 512 <= PERSIST * LANES <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers many_to_go_on: PERSIST == 0 or n >= 2 * PERSIST * LANES * VEC * ITEMS * device.sms
// want: prefers bounds_fit: BOUNDS == 1 or BOUNDS * LANES <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers bounds_or_persist: BOUNDS == 1 or PERSIST == 0
// want: prefers regs_or_persist: REGS == 255 or PERSIST == 0
// want: prefers one_setting: (BOUNDS != 1) + (REGS != 255) <= 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: answers persistent_grid: PERSIST > 0
// want: answers launch_bounds: BOUNDS > 1
// want: answers register_cap: REGS < 255

// case: what the contract grants is not asked for
// with: moves = ["lanes vector"]
// with: contract = { rows = { min = 1, max = 9000 }, d = { min = 8, max = 4096, multiple_of = 8 } }
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
// want: -- lanes vector
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16

// case: another stride must be whole as well
// with: moves = ["lanes vector"]
// with: signature = "out: float16*[rows, d]; x: float16*[rows, d]; rows: int32 = rows; d: int32 = d; stride: int64 = 3 * d + 8"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d, long long stride)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * stride + i];
    }
}
// want: -- lanes vector
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: (3 * d + 8) % VEC == 0 and d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16

// case: the wider of two types may take two accesses
// with: moves = ["lanes vector"]
// with: signature = "out: uint8*[rows, d]; x: float16*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(unsigned char *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i];
    }
}
// want: -- lanes vector
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8, 16; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16

// case: arrays that may start anywhere are refused with what to write
// with: moves = ["lanes vector"]
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
// want: -- lanes vector
// want: vector is refused: out is promised at multiples of 2 bytes only: say align = 16 in the problem file if callers give that

// case: half the alignment is half the width
// with: moves = ["lanes vector"]
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
// want: -- lanes vector
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16

// case: on a cpu totals are for vectors or for lanes
// with: moves = ["lanes vector", "lanes vector items", "lanes keep", "lanes persistent"]
// with: device = "cpu"
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
// want: -- lanes vector
// want: lanes: LANES = 256 of 1, 8, 64, 256; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers lanes_or_vectors: LANES == 1 or VEC == 1
// want: answers block_size: LANES != 256
// want: answers wide_access: VEC * 2 >= 16
// want: -- lanes vector items
// want: lanes: LANES = 256 of 1, 8, 64, 256; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 4, 16; vectors a thread has under way at once
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers lanes_or_vectors: LANES == 1 or VEC == 1
// want: prefers enough_sums: 2 * LANES * VEC * ITEMS >= 256
// want: prefers no_idle_items: ITEMS == 1 or LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 1024
// want: answers block_size: LANES != 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1
// want: -- lanes keep
// want: keep is refused: a CPU has too few registers for a row; its cache holds it as well
// want: -- lanes persistent
// want: persistent is refused: a CPU takes up work-groups as they come: there are no waves to fill

// case: values that no workload allows are left out
// with: moves = ["lanes vector fast"]
// with: workloads = { one = { rows = 1024, d = 2730 } }
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
// want: -- lanes vector fast
// want: lanes: LANES = 256 of 32, 64, 96, 128, 192, 256, 352, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2; elements in one load or store
// want: fast: FAST = 0 of 0, 1; 1: fast forms of exp, quotient
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: prefers touches_if_wide: FAST == 0 or VEC >= 2 or not d % (2 * VEC) == 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers fast_intrinsics: FAST == 1

// case: values that no workload allows are left out (2)
// with: moves = ["lanes vector"]
// with: workloads = { one = { rows = 1024, d = 2731 } }
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
// want: -- lanes vector
// want: vector is refused: rows are no whole number of vectors at any workload, or start at odd places

// case: sixteen bytes already are wide enough
// with: moves = ["lanes vector"]
// with: signature = "out: uint32*[rows, 4 * d]; x: uint32*[rows, 4 * d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(uint4 *out, const uint4 *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i];
    }
}
// want: -- lanes vector
// want: vector is refused: x is accessed 16 bytes at once already, of 16

// case: what not every turn does is left alone
// with: moves = ["lanes vector"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        if (i % 3 == row)
            out[row * d + i] = x[row * d + i];
    }
}
// want: -- lanes vector
// want: vector is refused: no access to neighbours happens in every turn of its loop

// case: on a cpu there are enough sums as the original has
// with: moves = ["lanes vector items"]
// with: device = "cpu"
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
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < d; i += 1) {
        const float v = __half2float(x[row * d + i]);
        sum += v * v;
    }
    const float scale = sqrtf(sum / d + 1e-6f);
    for (int i = 0; i < d; i += 1) {
        const float v = __half2float(x[row * d + i]);
        out[row * d + i] = __float2half(v / scale);
    }
}
// want: -- lanes vector items
// want: lanes: LANES = 1 of 1, 8, 64; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: items: ITEMS = 1 of 1, 4, 16; vectors a thread has under way at once
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers lanes_or_vectors: LANES == 1 or VEC == 1
// want: prefers no_idle_items: ITEMS == 1 or LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 2 <= 1024
// want: answers share_serial_work: LANES > 1
// want: answers block_size: LANES != 1
// want: answers wide_access: VEC * 2 >= 16
// want: answers items_in_flight: ITEMS > 1
// want: answers unroll: ITEMS > 1

// case: independent loops are one and rows are as long as both
// with: moves = ["beside lanes split"]
// with: signature = "out: float16*[rows, d]; other: float16*[rows, e]; x: float16*[rows, d]; rows: int32 = rows; d: int32 = d; e: int32 = e"
// with: contract = { rows = { min = 1, max = 65536 }, d = { min = 1, max = 65536 }, e = { min = 1, max = 65536 } }
// with: workloads = { one = { rows = 1024, d = 1024, e = 256 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, __half *other, const __half *x, int rows, int d, int e)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i];
    }
    for (int i = threadIdx.x; i < e; i += blockDim.x) {
        other[row * e + i] = x[row * d];
    }
}
// want: -- beside lanes split
// want: beside: BESIDE = 0 of 0, 1; 1: loops that do not depend on each other run side by side
// want: lanes: LANES = 256 of 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024; threads to a task
// want: split: SPLIT = 0 of 0, 1; 1: a task's elements are spread over several blocks
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * (d + e if BESIDE else max(d, e))
// want: prefers something_to_split: BESIDE == 1 or SPLIT == 0 or LANES < (d + e if BESIDE else max(d, e))
// want: prefers split_as_one: SPLIT == 0 or BESIDE == 1 and LANES < 2 * (d + e if BESIDE else max(d, e))
// want: prefers no_loop_of_one_turn: BESIDE == 0 or SPLIT == 1 or LANES < (d + e if BESIDE else max(d, e))
// want: answers items_in_flight: BESIDE == 1
// want: answers more_blocks: BESIDE == 1 or SPLIT == 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers split_rows: SPLIT == 1

// case: on a cpu nothing waits
// with: moves = ["beside"]
// with: signature = "out: float16*[rows, d]; other: float16*[rows, e]; x: float16*[rows, d]; rows: int32 = rows; d: int32 = d; e: int32 = e"
// with: contract = { rows = { min = 1, max = 65536 }, d = { min = 1, max = 65536 }, e = { min = 1, max = 65536 } }
// with: workloads = { one = { rows = 1024, d = 1024, e = 256 } }
// with: device = "cpu"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, __half *other, const __half *x, int rows, int d, int e)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[row * d + i];
    }
    for (int i = threadIdx.x; i < e; i += blockDim.x) {
        other[row * e + i] = x[row * d];
    }
}
// want: -- beside
// want: beside is refused: a CPU runs a group's work-items one after the other: nothing waits

// case: nothing to keep
// with: moves = ["lanes vector keep"]
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
        sum += v;
    }
    sum = block_sum(sum);
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = __float2half(sum);
    }
}
// want: -- lanes vector keep
// want: keep is refused: no later loop over the same range reads what an earlier one has read, element by element

// case: nothing to keep (2)
// with: moves = ["lanes vector keep"]
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
    for (int i = threadIdx.x; i < d / 2; i += blockDim.x) {
        const float v = __half2float(x[row * d + i]);
        sum += v;
    }
    sum = block_sum(sum);
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = __hadd(x[row * d + i], __float2half(sum));
    }
}
// want: -- lanes vector keep
// want: keep is refused: no later loop over the same range reads what an earlier one has read, element by element
