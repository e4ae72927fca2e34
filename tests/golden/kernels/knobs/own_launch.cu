// Kernels without a constant to open: caps of blocks, grids that show the block in a factor or a number.

// case: a block that rows cut short has its cap opened
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 1024 of 256, 512, 768, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 1024
// want: note: kernel.cu keeps its own text, with its own choices open

// case: threads go on by the blocks extent in several ways
// with: launch = { grid = ["n"], block = ["min(n, 512)"] }
__global__ void work(float *out, const float *x, int n)
{
    const int step = blockDim.x * 4;
    for (int i = 4 * threadIdx.x; i < n; i += step) out[i] = x[i];
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (n) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu is beyond the expert: the blocks along x of the grid all do the same work. Its own text is kept, with local moves only

// case: threads go on by the blocks extent in several ways (2)
// with: launch = { grid = ["n"], block = ["min(n, 512)"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = threadIdx.x;
    while (i < n) { out[i] = x[i]; i = i + blockDim.x; }
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (n) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu is beyond the expert: the blocks along x of the grid all do the same work. Its own text is kept, with local moves only

// case: threads go on by the blocks extent in several ways (3)
// with: launch = { grid = ["n"], block = ["min(n, 512)"] }
__global__ void work(float *out, const float *x, int n)
{
    copy_row(out, x, n, threadIdx.x, blockDim.x);
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (n) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu is beyond the expert: line 3: copy_row is called, whose text is not in the file. Its own text is kept, with local moves only

// case: threads go on by the blocks extent in several ways (4)
// with: launch = { grid = ["n"], block = ["min(n, 512)"] }
__global__ void work(float *out, const float *x, int n)
{
    int turns = (n + blockDim.x - 1) / blockDim.x;
    for (int k = 0; k < turns; k++) out[0] += x[turns];
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (n) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu is beyond the expert: the blocks along x of the grid all do the same work. Its own text is kept, with local moves only

// case: a block that is the row stays
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: with n = 65536 the launch comes to 1024 values of 'threadIdx.x', and the kernel's own test allows 65536. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a block that is the row stays (2)
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    int warps = blockDim.x / 32;
    if (threadIdx.x < n) out[threadIdx.x] = warps;
}
// want: declined: kernel.cu is beyond the expert: with n = 65536 the launch comes to 1024 values of 'threadIdx.x', and the kernel's own test allows 65536. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a block that is the row stays (3)
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] += x[blockDim.x - 1];
}
// want: declined: kernel.cu is beyond the expert: with n = 65536 the launch comes to 1024 values of 'threadIdx.x', and the kernel's own test allows 65536. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a block that is the row stays (4)
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] += blockDim.x / 32;
}
// want: declined: kernel.cu is beyond the expert: with n = 65536 the launch comes to 1024 values of 'threadIdx.x', and the kernel's own test allows 65536. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a block that is the row stays (5)
// with: launch = { grid = ["1"], block = ["n"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a block that is the row stays (6)
// with: launch = { grid = ["1"], block = ["round_up(n, 32)"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: grid and shared memory follow a cap
// with: launch = { grid = ["ceildiv(n, 1024)"], block = ["min(n, 1024)"], shared = "min(n, 1024) * 4" }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float none[1];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 1024 of 256, 512, 768, 1024
// want: launch work: (ceildiv(n, KNOB_BLOCK_X)) blocks of (min(n, KNOB_BLOCK_X)) with min(n, KNOB_BLOCK_X) * 4 bytes
// want: answers block_size: KNOB_BLOCK_X != 1024
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 5: a branch depends on the thread and on a size at once; as tiles: the shape of a block is no number. Its own text is kept, with local moves only

// case: grid and shared memory follow a cap (2)
// with: launch = { grid = ["min(n // min(n, 1024), 4096)"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += blockDim.x * gridDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 1024 of 256, 512, 768, 1024
// want: launch work: (min(n // min(n, KNOB_BLOCK_X), 4096)) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 1024
// want: note: kernel.cu keeps its own text, with its own choices open

// case: grid and shared memory follow a cap (3)
// with: launch = { grid = ["min(n, 1024) // 1024 + 1"], block = ["min(n // 8, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 1024 of 256, 512, 768, 1024
// want: launch work: (min(n, 1024) // 1024 + 1) blocks of (min(n // 8, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 1024
// want: note: kernel.cu is beyond the expert: the blocks along x of the grid all do the same work. Its own text is kept, with local moves only

// case: a grid that does not show the cap keeps it
// with: launch = { grid = ["ceildiv(n, 512)"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2.0f * x[i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: BLOCK_X of the launch stays as it is: blocks along x are counted by the launch's block, and the grid, 'ceildiv(n, 512)', does not show how it follows)

// case: a grid that is cut short keeps the block unless blocks go on
// with: launch = { grid = ["min(ceildiv(n, 256), 512)"], block = ["256"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2.0f * x[i];
}
// want: declined: kernel.cu is beyond the expert: with n = 1000000 the launch comes to 131072 values of 'i', and the kernel's own test allows 1000000. Its own text is kept, with local moves only, and none applies (knobs: BLOCK_X of the launch stays as it is: blocks along x are counted by the launch's block, and the grid, 'min(ceildiv(n, 256), 512)', does not show how it follows)

// case: a grid that is cut short keeps the block unless blocks go on (2)
// with: launch = { grid = ["min(ceildiv(n, 256), 512)"], block = ["256"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += blockDim.x * gridDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256, 384, 512, 1024
// want: launch work: (min(ceildiv(n, KNOB_BLOCK_X), 512)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 256
// want: note: kernel.cu keeps its own text, with its own choices open

// case: what no workload comes to stays
// with: launch = { grid = ["1"], block = ["min(n // 2048, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: BLOCK_X of the launch stays as it is: what blocks come to at the workloads leaves it one value)

// case: more threads than memory was asked for are not tried
// with: launch = { grid = ["1"], block = ["min(n, 256)"], shared = "1024" }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X)) with 1024 bytes
// want: answers block_size: KNOB_BLOCK_X != 256
// want: note: kernel.cu keeps its own text, with its own choices open

// case: more threads than memory was asked for are not tried (2)
// with: launch = { grid = ["1"], block = ["min(n, 256)"] }
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256, 384, 512, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 256
// want: note: kernel.cu keeps its own text, with its own choices open

// case: launch bounds follow a cap
// with: launch = { grid = ["1"], block = ["min(n, 512)"] }
__global__ __launch_bounds__(512) void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: changed: __global__ __launch_bounds__(KNOB_BLOCK_X) void work(float *out, const float *x, int n)
// want: note: kernel.cu keeps its own text, with its own choices open

// case: launch bounds follow a cap (2)
// with: launch = { grid = ["1"], block = ["min(n, 512)"] }
__global__ __launch_bounds__(640) void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: require within_bounds: KNOB_BLOCK_X <= 640
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a constant that speaks for the block is its cap
// with: launch = { grid = ["1"], block = ["min(n, 512)"] }
struct Sums { template <int N> float all(float); };
#define BLOCK_THREADS 512
__global__ void work(float *out, const float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = 2.0f * x[i];
    out[0] = Sums().all<BLOCK_THREADS>(out[0]);
}
// want: KNOB_BLOCK_THREADS = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_THREADS))
// want: answers block_size: KNOB_BLOCK_THREADS != 512
// want: changed: #define BLOCK_THREADS KNOB_BLOCK_THREADS
// want: note: kernel.cu is beyond the expert: Sums has no method all whose text is in the file (line 7). Its own text is kept, with local moves only

// case: a grid that counts elements of vectors follows the block
// with: launch = { grid = ["ceildiv(n, 2048)"], block = ["256"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i < n)
        out[8 * i] = x[8 * i];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256, 384, 512, 1024
// want: launch work: (ceildiv(n, KNOB_BLOCK_X * 8)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 256
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a grid that counts elements of vectors follows the block (2)
// with: launch = { grid = ["(n + 2047) // 2048"], block = ["256"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i < n)
        out[8 * i] = x[8 * i];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256, 384, 512, 1024
// want: launch work: ((n + (KNOB_BLOCK_X * 8 - 1)) // (KNOB_BLOCK_X * 8)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 256
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a grid that counts elements of vectors follows the block (3)
// with: launch = { grid = ["ceildiv(n // 512, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i < n)
        out[8 * i] = x[8 * i];
}
// want: KNOB_BLOCK_X = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n // 512, KNOB_BLOCK_X * 8)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 128
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a grid that counts elements of vectors follows the block (4)
// with: launch = { grid = ["ceildiv(n, 2000)"], block = ["256"] }
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i < n)
        out[8 * i] = x[8 * i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: BLOCK_X of the launch stays as it is: blocks along x are counted by the launch's block, and the grid, 'ceildiv(n, 2000)', does not show how it follows)

// case: what a threads number is multiplied with is in the grid too
// with: launch = { grid = ["ceildiv(n, 1024)"], block = ["256"] }
constexpr int ITEMS = 4;
__global__ void work(float *out, const float *x, int n)
{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
    for (int k = 0; k < ITEMS; k++)
        if (first + k < n)
            out[first + k] = x[first + k];
}
// want: KNOB_BLOCK_X = 256 of 64, 128, 192, 256, 384, 512, 1024
// want: KNOB_ITEMS = 4 of 1, 2, 4, 8, 16
// want: launch work: (ceildiv(n, KNOB_BLOCK_X * KNOB_ITEMS)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 256
// want: answers more_blocks: KNOB_ITEMS < 4
// want: answers rows_per_block: KNOB_ITEMS > 4
// want: changed: constexpr int ITEMS = KNOB_ITEMS;
// want: note: kernel.cu keeps its own text, with its own choices open

// case: what a threads number is multiplied with is in the grid too (2)
// with: launch = { grid = ["ceildiv(n, 4096)"], block = ["64"] }
constexpr int ITEMS = 64;
__global__ void work(float *out, const float *x, int n)
{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
    for (int k = 0; k < ITEMS; k++)
        if (first + k < n)
            out[first + k] = x[first + k];
}
// want: KNOB_BLOCK_X = 64 of 32, 64
// want: KNOB_ITEMS = 64 of 16, 32, 64, 128, 256
// want: launch work: (ceildiv(n, KNOB_BLOCK_X * KNOB_ITEMS)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 64
// want: answers more_blocks: KNOB_ITEMS < 64
// want: answers rows_per_block: KNOB_ITEMS > 64
// want: changed: constexpr int ITEMS = KNOB_ITEMS;
// want: note: kernel.cu keeps its own text, with its own choices open

// case: a number of blocks is a size of the text by what a block takes
// with: launch = { grid = ["40"] }
#define LENGTH 5000
#define THREADS 128
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    for (int k = i; k < LENGTH; k += LENGTH)
        out[k] = x[k];
}
// want: KNOB_THREADS = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(5000, KNOB_THREADS)) blocks of (KNOB_THREADS)
// want: answers block_size: KNOB_THREADS != 128
// want: changed: #define THREADS KNOB_THREADS
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: LENGTH (line 1) stays as it is: by the grid, 40 blocks along x, it is a size

// case: a number of blocks is a size of the text by what a block takes (2)
// with: launch = { grid = ["41"] }
#define LENGTH 5000
#define THREADS 128
__global__ void work(float *out, const float *x, int n)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    for (int k = i; k < LENGTH; k += LENGTH)
        out[k] = x[k];
}
// want: KNOB_LENGTH = 5000 of 1250, 2500, 5000, 10000, 20000
// want: launch work: (41) blocks of (128)
// want: answers items_in_flight: KNOB_LENGTH > 5000
// want: changed: #define LENGTH KNOB_LENGTH
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: THREADS (line 2) stays as it is: blocks along x are counted by THREADS, and the grid, '41', does not show how it follows

// case: blocks that step by all of a constant grid take any extent
// with: launch = { grid = ["64"] }
#define BLOCKS 64
#define THREADS 128
__global__ void work(float *out, const float *x, int n)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS)
        out[i] = x[i];
}
// want: KNOB_THREADS = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_BLOCKS = 64 of 16, 32, 64, 128, 256
// want: launch work: (64) blocks of (KNOB_THREADS)
// want: answers block_size: KNOB_THREADS != 128
// want: answers items_in_flight: KNOB_BLOCKS > 64
// want: changed: #define BLOCKS KNOB_BLOCKS
// want: changed: #define THREADS KNOB_THREADS
// want: note: kernel.cu keeps its own text, with its own choices open

// case: blocks that step by all of a constant grid take any extent (2)
// with: launch = { grid = ["64"] }
#define BLOCKS 64
#define THREADS 128
__global__ void work(float *out, const float *x, int n)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += n)
        out[i] = x[i];
}
// want: declined: kernel.cu keeps its own text, with its own choices open, and none applies (knobs: THREADS (line 2) stays as it is: blocks along x are counted by THREADS, and the grid, '64', does not show how it follows)

// case: methods of a block are its places
// with: launch = { grid = ["1"], block = ["min(n, 512)"] }
__global__ void work(float *out, const float *x, int n)
{
    auto tb = cooperative_groups::this_thread_block();
    for (int i = tb.thread_index().x; i < n; i += tb.group_dim().x)
        out[i] = 2.0f * x[i];
}
// want: KNOB_BLOCK_X = 512 of 128, 256, 384, 512, 768, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 512
// want: note: kernel.cu keeps its own text, with its own choices open

// case: another cap gives the same
// long
// with: launch = { grid = ["1"], block = ["min(n, 1024)"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[1024];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i] * x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < blockDim.x; i++)
        sum += part[i];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = x[i] / sqrtf(sum);
}
// want: KNOB_BLOCK_X = 1024 of 256, 512, 768, 1024
// want: launch work: (1) blocks of (min(n, KNOB_BLOCK_X))
// want: answers block_size: KNOB_BLOCK_X != 1024
// want: note: kernel.cu is beyond the expert: line 11: playing through its threads takes too long; as tiles: the shape of a block is no number. Its own text is kept, with local moves only
