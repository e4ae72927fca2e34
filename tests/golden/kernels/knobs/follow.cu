// How launches follow knobs: which number stands for which constant, and what is required of other values.

// case: a block that the text asks for is a knob of the launch
// with: launch = { shared = "128 * 4" }
__global__ void work(float *out, const float *x, int n)
{
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[blockDim.x - 1 - threadIdx.x];
}
// want: KNOB_BLOCK_X = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK_X)) blocks of (KNOB_BLOCK_X) with KNOB_BLOCK_X * 4 bytes
// want: answers block_size: KNOB_BLOCK_X != 128
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a block that the text asks for is a knob of the launch (2)
// with: launch = { grid = ["(n + 127) // 128"], shared = "512" }
__global__ void work(float *out, const float *x, int n)
{
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[blockDim.x - 1 - threadIdx.x];
}
// want: KNOB_BLOCK_X = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: ((n + (KNOB_BLOCK_X - 1)) // KNOB_BLOCK_X) blocks of (KNOB_BLOCK_X) with KNOB_BLOCK_X * 4 bytes
// want: answers block_size: KNOB_BLOCK_X != 128
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a block that the text asks for is a knob of the launch (3)
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[blockDim.x - 1 - threadIdx.x];
}
// want: KNOB_BLOCK_X = 128 of 32, 64, 96, 128
// want: launch work: (ceildiv(n, KNOB_BLOCK_X)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 128
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only
// want: note: knobs: 128 in the text stays: it asks for the block along x as well

// case: an axis that the block does not say is one thread wide
// with: launch = { grid = ["ceildiv(n, 128)", "1"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int plane = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && plane < 1)
        out[i] = x[i];
}
// want: KNOB_BLOCK_X = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK_X), 1) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 128
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a block goes with a constant that is named like it
// with: launch = { grid = ["n"] }
#define BLOCK_THREADS 128
#define DEPTH 128
template <typename T, int N> struct Sums { float all(float value); };
__global__ void work(float *out, const float *x, int n)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        for (int k = 0; k < DEPTH; k++)
            sum += x[i] * k;
    sum = Sums<float, BLOCK_THREADS>().all(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
// want: KNOB_BLOCK_THREADS = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_DEPTH = 128 of 32, 64, 128, 256, 512
// want: launch work: (n) blocks of (KNOB_BLOCK_THREADS)
// want: answers block_size: KNOB_BLOCK_THREADS != 128
// want: answers items_in_flight: KNOB_DEPTH > 128
// want: changed: #define BLOCK_THREADS KNOB_BLOCK_THREADS
// want: changed: #define DEPTH KNOB_DEPTH
// want: note: kernel.cu is beyond the expert: Sums<float, 128> has no method all whose text is in the file (line 10). Its own text is kept, with local moves only

// case: a grid that does not show the block keeps it
// with: launch = { grid = ["n"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __syncthreads();
    if (i < n) out[i] = x[i];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once. Its own text is kept, with local moves only, and none applies (knobs: BLOCK_X of the launch stays as it is: blocks along x are counted by the launch's block, and the grid, 'n', does not show how it follows)

// case: axes tell constants of one value apart
// with: launch = { grid = ["256 // 16", "ceildiv(n, 16)"], block = ["16", "16"] }
constexpr int ROWS = 16;
constexpr int COLS = 16;
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float tile[ROWS][COLS];
    int i = (blockIdx.y * ROWS + threadIdx.y) * 256 + blockIdx.x * COLS + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = tile[threadIdx.y][threadIdx.x];
}
// want: KNOB_ROWS = 16 of 4, 8, 16, 32, 64
// want: KNOB_COLS = 16 of 4, 8, 16, 32, 64
// want: launch work: (256 // KNOB_COLS, ceildiv(n, KNOB_ROWS)) blocks of (KNOB_COLS, KNOB_ROWS)
// want: prefer a_warp_or_more: KNOB_COLS * KNOB_ROWS >= 32
// want: answers block_size: KNOB_ROWS != 16 or KNOB_COLS != 16
// want: answers less_shared: KNOB_ROWS < 16 or KNOB_COLS < 16
// want: changed: constexpr int ROWS = KNOB_ROWS;
// want: changed: constexpr int COLS = KNOB_COLS;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: the threads of a block do not come to every element of a box once. Its own text is kept, with local moves only

// case: constants between which nothing decides move together
// with: launch = { grid = ["ceildiv(n, 64)"], block = ["64"] }
constexpr int FIRST = 64;
constexpr int SECOND = 64;
__device__ int place(int block, int thread);
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float a[FIRST], b[SECOND];
    int i = place(blockIdx.x, threadIdx.x);
    a[FIRST - 1 - threadIdx.x] = b[SECOND - 1 - threadIdx.x] = x[i];
    __syncthreads();
    out[i] = a[threadIdx.x % FIRST] + b[threadIdx.x % SECOND];
}
// want: KNOB_FIRST = 64 of 32, 64, 96, 128, 256
// want: launch work: (ceildiv(n, KNOB_FIRST)) blocks of (KNOB_FIRST)
// want: answers block_size: KNOB_FIRST != 64
// want: answers less_shared: KNOB_FIRST < 64
// want: changed: constexpr int FIRST = KNOB_FIRST;
// want: changed: constexpr int SECOND = KNOB_FIRST;
// want: note: kernel.cu is beyond the expert: line 7: place is called, whose text is not in the file. Its own text is kept, with local moves only

// case: one row to a block may become several
// with: launch = { grid = ["n"], block = ["32"] }
// with: kernel = { entry = "work<1>" }
template <int ROWS>
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float first[32];
    for (int r = 0; r < ROWS; r++) {
        int row = blockIdx.x * ROWS + r;
        first[threadIdx.x] = row < n ? x[row] : 0.0f;
        __syncthreads();
        if (row < n)
            out[row] = first[31 - threadIdx.x];
    }
}
// want: KNOB_ROWS = 1 of 1, 2, 4
// want: launch work<{KNOB_ROWS}>: (ceildiv(n, KNOB_ROWS)) blocks of (32)
// want: answers more_blocks: KNOB_ROWS < 1
// want: answers rows_per_block: KNOB_ROWS > 1
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: 32 in the text stays: 31 is there as well, and may follow from it

// case: launch bounds follow the block or hold it
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void __launch_bounds__(256) work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: changed: __global__ void __launch_bounds__(KNOB_NT) work(float *out, const float *x, int n)
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: launch bounds follow the block or hold it (2)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void __launch_bounds__(256, 2) work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: KNOB_MIN_BLOCKS = 2 of 1, 2, 3, 4, 6, 8
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: answers launch_bounds: KNOB_MIN_BLOCKS != 2
// want: changed: #define NT KNOB_NT
// want: changed: __global__ void __launch_bounds__(KNOB_NT, KNOB_MIN_BLOCKS) work(float *out, const float *x, int n)
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: launch bounds follow the block or hold it (3)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void __launch_bounds__(512) work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: require within_bounds: KNOB_NT <= 512
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: launch bounds follow the block or hold it (4)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void __launch_bounds__(NT) work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the text asks of one knob is its domain
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
#if NT > 512
#error too many
#endif
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the text asks of one knob is its domain (2)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
static_assert(NT <= 512 && NT % 32 == 0, "a few whole warps");
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the text asks of one knob is its domain (3)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
static_assert((NT & (NT - 1)) == 0);
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the text asks of one knob is its domain (4)
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
constexpr int TURNS = 512 / NT;
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    n -= 0 * TURNS;
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 's' holds what depends on 'n', which changes. Its own text is kept, with local moves only

// case: what the text asks of two is required
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
constexpr int M = 4;
static_assert(NT % (32 * M) == 0, "whole");
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    for (int k = 0; k < M; k++) n -= 0;
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: KNOB_M = 4 of 1, 2, 4, 8, 16
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: require asserted: KNOB_NT % (32 * KNOB_M) == 0
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: answers items_in_flight: KNOB_M > 4
// want: changed: #define NT KNOB_NT
// want: changed: constexpr int M = KNOB_M;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: line 9: 's' holds what depends on 'n', which changes. Its own text is kept, with local moves only

// case: threads that count on their warp stay whole warps
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["8", "32"] }
#define NX 8
#define NY 32
#define NT (NX * NY)
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + (threadIdx.y * NX + threadIdx.x);
    s[(threadIdx.y * NX + threadIdx.x)] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = __shfl_down_sync(~0u, s[(threadIdx.y * NX + threadIdx.x)], 1);
}
// want: KNOB_NX = 8 of 2, 4, 8, 16, 32
// want: KNOB_NY = 32 of 8, 16, 32, 64, 128
// want: launch work: (ceildiv(n, KNOB_NX * KNOB_NY)) blocks of (KNOB_NX, KNOB_NY)
// want: require whole_warps: KNOB_NX * KNOB_NY % 32 == 0
// want: prefer a_warp_or_more: KNOB_NX * KNOB_NY >= 32
// want: answers block_size: KNOB_NX != 8 or KNOB_NY != 32
// want: answers less_shared: KNOB_NX < 8 or KNOB_NY < 32
// want: changed: #define NX KNOB_NX
// want: changed: #define NY KNOB_NY
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: threads of a block cooperate other than by tiles. Its own text is kept, with local moves only

// case: shared memory must fit
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT * 16];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed: #define NT KNOB_NT
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: unroll counts of one value are one knob
// with: launch = { grid = ["ceildiv(n, 256)"], block = ["256"] }
#define NT 256
__global__ void  work(float *out, const float *x, int n)
{
    __shared__ float s[NT];
#pragma unroll 4
    for (int k = 0; k < n; k++) n -= 0;
#pragma unroll 4
    for (int k = 0; k < n; k++) n -= 0;
#pragma unroll (8)
    for (int k = 0; k < n; k++) n -= 0;
#pragma unroll 
    for (int k = 0; k < n; k++) n -= 0;
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: KNOB_UNROLL = 4 of 1, 2, 4, 8, 16
// want: KNOB_UNROLL_2 = 8 of 1, 2, 4, 8, 16
// want: launch work: (ceildiv(n, KNOB_NT)) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: answers unroll: KNOB_UNROLL > 1 or KNOB_UNROLL_2 > 1
// want: changed: #define NT KNOB_NT
// want: changed: #pragma unroll KNOB_UNROLL
// want: changed: #pragma unroll KNOB_UNROLL
// want: changed: #pragma unroll (KNOB_UNROLL_2)
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 6: how often a loop turns depends on 'k < n'; as tiles: line 14: 's' holds what depends on 'n', which changes. Its own text is kept, with local moves only

// case: blocks that go on may be any number
// with: launch = { grid = ["132"], block = ["64"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float s[64];
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) {
        s[threadIdx.x] = x[i];
        __syncwarp();
        out[i] = s[threadIdx.x ^ 1];
    }
}
// want: KNOB_GRID_X = 132 of 33, 66, 132, 264, 528
// want: launch work: (KNOB_GRID_X) blocks of (64)
// want: answers more_blocks: KNOB_GRID_X > 132
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 4: the loop over 'i' is shared in a way not followed; as tiles: threads of a block cooperate other than by tiles. Its own text is kept, with local moves only
// want: note: knobs: 64 in the text stays: it may be the width of a warp

// case: an axis that the launch does not have is one
// with: launch = { grid = ["ceildiv(n, 16)", "ceildiv(n, 16)", "n"], block = ["16", "16"] }
__global__ void work(float *out, const float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < n && j < n && k < n)
        out[(k * n + j) * n + i] = x[(k * n + j) * n + i];
}
// want: KNOB_BLOCK_X = 16 of 4, 8, 16, 32, 64
// want: KNOB_BLOCK_Y = 16 of 4, 8, 16, 32, 64
// want: launch work: (ceildiv(n, KNOB_BLOCK_X), ceildiv(n, KNOB_BLOCK_Y), n) blocks of (KNOB_BLOCK_X, KNOB_BLOCK_Y)
// want: prefer a_warp_or_more: KNOB_BLOCK_X * KNOB_BLOCK_Y >= 32
// want: answers block_size: KNOB_BLOCK_X != 16 or KNOB_BLOCK_Y != 16
// want: note: kernel.cu keeps its own text, with its own choices open
