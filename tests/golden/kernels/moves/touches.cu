// Finishing touches: hints, fast forms, conversions, sizes and compiler settings, and what refuses them.

// case: a draft says what the hardware does instead
// with: moves = ["lanes convert"]
// with: signature = "out: uint8*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(sign | code);
}
extern "C" __global__ void it(unsigned char *out, const float *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = to_e4m3(x[row * d + i]);
    }
}
// want: -- lanes convert
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: convert: CONVERT = 0 of 0, 1; 1: the hardware's own conversion for to_e4m3 to float8_e4m3
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers hardware_conversions: CONVERT == 1
// want: to_e4m3 by hardware: return (unsigned char)__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);

// case: a draft says what the hardware does instead (2)
// with: moves = ["lanes convert"]
// with: signature = "out: uint8*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d"
#include <cuda_fp16.h>
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(sign | code);
}
extern "C" __global__ void it(unsigned char *out, const float *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = to_e4m3(x[row * d + i]);
    }
}
// want: -- lanes convert
// want: convert is refused: no helper of the source computes a conversion that the hardware has

// case: a loop that stores again what was stored is left out
// with: moves = ["redundant", "rows", "lanes vector hints", "lanes fast", "lanes reciprocal", "lanes bake", "lanes unroll"]
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
// want: -- redundant
// want: redundant is refused: no loop only stores again what an earlier one has stored
// want: -- rows
// want: rows is refused: the work is in rows already
// want: -- lanes vector hints
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: load_hint: LOAD = 0 of 0, 1, 2, categorical; 1: loads leave L1 alone; 2: loads are evicted first
// want: store_hint: STORE = 0 of 0, 1, categorical; 1: results are evicted first
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: d % VEC == 0
// want: prefers no_idle_lanes: LANES * VEC < 2 * d
// want: prefers touches_if_wide: LOAD == 0 and STORE == 0 or VEC >= 8 or not d % (2 * VEC) == 0
// want: prefers hints_agree: LOAD == 0 or STORE == LOAD // 2
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers wide_access: VEC * 2 >= 16
// want: answers cache_hints: LOAD > 0 or STORE > 0
// want: -- lanes fast
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: fast: FAST = 0 of 0, 1; 1: fast forms of exp, quotient
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers fast_intrinsics: FAST == 1
// want: -- lanes reciprocal
// want: reciprocal is refused: no float is divided by what is the same for a whole loop
// want: -- lanes bake
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: bake: BAKE = 0 of 0, 1; 1: sizes are constants, with a build for each workload
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers bake_sizes: BAKE == 1
// want: answers cheap_division: BAKE == 1
// want: -- lanes unroll
// want: unroll is refused: no thread runs a loop of its own inside a turn

// case: the index becomes a row and a place in it
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)tokens * d; i += gridDim.x * blockDim.x) {
        size_t token = i / d;
        size_t at = i % d;
        out[i] = x[token * 2 * d + at];
    }
}
// want: -- rows

// case: of several lengths the one that leaves nothing to divide
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * tokens * d; i += gridDim.x * blockDim.x) {
        size_t plane = i / d / tokens * 3 + i / d % tokens;
        size_t at = i - i / d * d;
        size_t two = i % (tokens * d);
        out[i] = x[plane * d + at + two];
    }
}
// want: -- rows

// case: what does not divide the whole stays
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * d; i += gridDim.x * blockDim.x) {
        size_t at = i / d / 7;
        out[i] = x[i % d + at];
    }
}
// want: -- rows

// case: what does not divide the whole stays (2)
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * d; i += gridDim.x * blockDim.x) {
        size_t at = i / (d * 7);
        out[i] = x[i % d + at];
    }
}
// want: -- rows

// case: what does not divide the whole stays (3)
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * d; i += gridDim.x * blockDim.x) {
        size_t at = (unsigned char)i / d;
        out[i] = x[i % d + at];
    }
}
// want: -- rows

// case: what does not divide the whole stays (4)
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * d; i += gridDim.x * blockDim.x) {
        size_t at = i % (7 * d);
        out[i] = x[i % d + at];
    }
}
// want: -- rows

// case: rows too short for a team stay flat
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["tokens"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 3 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)tokens * d; i += gridDim.x * blockDim.x) {
        size_t token = i / d;
        size_t at = i % d;
        out[i] = x[token * 2 * d + at];
    }
}
// want: -- rows
// want: rows is refused: rows of fewer than 8 elements do not keep a team busy, or their length is unknown

// case: what is no whole number of rows stays flat
// with: moves = ["rows"]
// with: signature = "out: float16*[tokens, d]; x: float16*[tokens, 2 * d]; tokens: int32 = tokens; d: int32 = d"
// with: launch = { grid = ["ceildiv(tokens * d, 256)"] }
// with: contract = { tokens = { min = 1, max = 9999 }, d = { min = 1, max = 9999 } }
// with: workloads = { one = { tokens = 100, d = 2730 } }
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int tokens, int d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * d + 1; i += gridDim.x * blockDim.x) {
        size_t token = i / d;
        size_t at = i % d;
        out[i] = x[token * 2 * d + at];
    }
}
// want: -- rows
// want: rows is refused: the index is not taken apart by a length that divides the whole

// case: what is no whole number of rows stays flat (2)
// with: moves = ["rows", "lanes fast", "lanes bake"]
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
// want: -- rows
// want: rows is refused: the index is not taken apart by a length that divides the whole
// want: -- lanes fast
// want: fast is refused: no function or division of floats has a fast form here
// want: -- lanes bake
// want: bake is refused: no length or stride of a row is an argument that follows from the problem's sizes

// case: fast forms name what they replace
// with: moves = ["lanes fast"]
// with: kernel = { flags = ["-use_fast_math"] }
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
// want: -- lanes fast
// want: fast is refused: -use_fast_math is among the problem's flags: the intrinsics are used already

// case: reciprocals are for divisors that stay the same
// with: moves = ["lanes reciprocal"]
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
// want: -- lanes reciprocal
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: reciprocal: RECIP = 0 of 0, 1, 2, categorical; divisions by one number: 1: products; 2: products set right
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers reciprocal: RECIP > 0
// want: answers hoist_invariants: RECIP > 0

// case: index divisions by what only the call knows
// with: moves = ["lanes divide"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[i / rows * d + i % rows];
    }
}
// want: -- lanes divide
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: divide: DIVIDE = 0 of 0, 1, 2; 1: shifts, divisors are powers of two; 2: products with a reciprocal
// want: requires block_fits: LANES <= device.max_threads
// want: requires shifts: DIVIDE != 1 or is_pow2(rows)
// want: requires products: DIVIDE != 2 or rows > 1 and (d) * (rows) < 4294967296
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers cheap_division: DIVIDE > 0

// case: index divisions by what only the call knows (2)
// with: moves = ["lanes divide"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        out[row * d + i] = x[i / 8];
    }
}
// want: -- lanes divide
// want: divide is refused: no index is divided by a number that only the call knows

// case: unrolling is for long inner loops
// with: moves = ["lanes unroll"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        float s = 0.0f;
        for (int k = 0; k < rows; k++)
            s += k;
        out[row * d + i] = s;
    }
}
// want: -- lanes unroll
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: unroll: UNROLL = 0 of 0, 1, 2, 4, 8; turns of an inner loop at once; 0: as the compiler likes
// want: requires block_fits: LANES <= device.max_threads
// want: prefers no_idle_lanes: LANES < 2 * d
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers unroll: UNROLL > 1
// want: answers items_in_flight: UNROLL > 1

// case: unrolling is for long inner loops (2)
// with: moves = ["lanes unroll"]
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void it(__half *out, const __half *x, int rows, int d)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        float s = 0.0f;
        for (int k = 0; k < 4; k++)
            s += k;
        out[row * d + i] = s;
    }
}
// want: -- lanes unroll
// want: unroll is refused: every inner loop has a pragma of its own, or is short and unrolled whole anyway

// case: compiler settings are tried one at a time
// with: moves = ["lanes tasks bounds registers flags"]
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
// want: -- lanes tasks bounds registers flags
// want: lanes: LANES = 256 of 32, 64, 128, 192, 256, 384, 512, 768, 1024; threads to a task
// want: tasks: TASKS = 1 of 1, 2, 4, 8, 16; tasks to a block
// want: bounds: BOUNDS = 1 of 1, 2, 4; blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD
// want: registers: REGS = 255 of 32, 64, 128, 255; registers of a thread, at most
// want: flags: LEVEL = 5 of 0, 5, 10; how hard ptxas saves registers
// want: requires block_fits: LANES * TASKS <= device.max_threads
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: prefers no_idle_lanes: LANES < 2 * d
// want: prefers bounds_fit: BOUNDS == 1 or BOUNDS * LANES * TASKS <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefers one_setting: (BOUNDS != 1) + (REGS != 255) + (LEVEL != 5) <= 1
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers launch_bounds: BOUNDS > 1
// want: answers register_cap: REGS < 255
// want: answers compiler_flags: LEVEL != 5

// case: flags cap registers already
// with: moves = ["registers"]
// with: kernel = { flags = ["-maxrregcount=64"] }
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
// want: -- registers
// want: registers is refused: the problem's own flags cap registers already
