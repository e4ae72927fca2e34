// Which tasks a team takes at once, and what refuses it.

// case: rows that share nothing and are long
// with: moves = ["lanes vector blocking"]
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
// want: -- lanes vector blocking
// want: blocking is refused: neighbouring tasks read nothing alike, and their rows are long enough to load ahead in

// case: flat loops have no neighbours
// with: moves = ["lanes blocking"]
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
// want: -- lanes blocking
// want: blocking is refused: the whole grid works on one task: it has no neighbours

// case: a cpu has too few registers
// with: moves = ["lanes blocking"]
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
// want: -- lanes blocking
// want: blocking is refused: a CPU has too few registers for a tile, and its caches hold what tasks read alike

// case: its values and the registers they take
// with: folder = "zoo/bias_relu_2d"
// with: moves = ["lanes tasks vector items blocking"]
// see there
// want: -- lanes tasks vector items blocking
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 704, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: blocking: BLOCKED = 1 of 1, 2, 4, 8; neighbouring tasks that a team takes at once
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: cols % VEC == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * cols
// want: prefers loads_under_way: VEC * ITEMS * 8 <= 256
// want: prefers tile_in_registers: BLOCKED == 1 or VEC * ITEMS * (BLOCKED * 4 + 4) <= 256
// want: prefers teams_for_all: BLOCKED == 1 or rows >= BLOCKED * TASKS * device.sms
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1 or BLOCKED > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 4 >= 16
// want: answers items_in_flight: ITEMS > 1 or BLOCKED > 1
// want: answers unroll: ITEMS > 1
// want: answers hoist_invariants: BLOCKED > 1

// case: a row for each of several tasks is kept
// with: folder = "zoo/layernorm"
// with: moves = ["lanes tasks vector items keep blocking"]
// see there
// want: -- lanes tasks vector items keep blocking
// want: lanes: LANES = 256 of 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4; elements in one load or store
// want: items: ITEMS = 1 of 1, 2, 4; vectors a thread has under way at once
// want: keep: KEEP = 0 of 0, 1, 2, 3, 4, 6, 8, 16; vectors of its row a thread keeps in registers; 0: none
// want: blocking: BLOCKED = 1 of 1, 2, 4, 8; neighbouring tasks that a team takes at once
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: requires row_fits: KEEP == 0 or LANES * VEC * KEEP >= d
// want: requires whole_blocks: (ceildiv(rows, BLOCKED)) % TASKS == 0
// want: requires whole_teams: rows % BLOCKED == 0
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES * VEC * ITEMS < 2 * d
// want: prefers loads_under_way: VEC * ITEMS * 12 <= 256
// want: prefers registers: LANES * TASKS * (BLOCKED * KEEP * VEC * 4 // 4 + 32) <= (device.registers_per_sm if device.registers_per_sm else 65536)
// want: prefers no_idle_part: KEEP <= 1 or LANES * VEC * (KEEP - 1) < d
// want: prefers wide_if_kept: KEEP == 0 or VEC >= 2 or not d % (2 * VEC) == 0
// want: prefers kept_if_several: KEEP > 0 or TASKS <= 1
// want: prefers one_way_at_a_time: KEEP == 0 or ITEMS == 1
// want: prefers tile_in_registers: BLOCKED == 1 or VEC * ITEMS * (BLOCKED * 4 + 8) <= 256
// want: prefers teams_for_all: BLOCKED == 1 or rows >= BLOCKED * TASKS * device.sms
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1 or BLOCKED > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 4 >= 16
// want: answers items_in_flight: ITEMS > 1 or KEEP > 1 or BLOCKED > 1
// want: answers unroll: ITEMS > 1
// want: answers row_in_registers: KEEP > 0
// want: answers less_shared: KEEP > 0
// want: answers hoist_invariants: BLOCKED > 1
