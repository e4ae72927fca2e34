// Which numbers of a text are knobs, however they are written, and which stay, with a sentence.

// case: a definition takes its value from a parameter
#define BLOCK 128
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (2)
#define BLOCK  (128)  // threads
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK  KNOB_BLOCK  // threads
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (3)
#define BLOCK 128u
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK (KNOB_BLOCK + 0u)
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (4)
#  define BLOCK 0x80 /* hex */
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #  define BLOCK KNOB_BLOCK /* hex */
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (5)
#ifndef BLOCK
#define BLOCK 128
#endif
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (6)
constexpr int BLOCK = 128;
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: constexpr int BLOCK = KNOB_BLOCK;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (7)
static const unsigned BLOCK{128};
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: static const unsigned BLOCK{KNOB_BLOCK};
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: 'out[i]' is stored: 'part' is read at a place that only the data tell; as tiles: line 7: a place of 'part' lies beyond its end. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (8)
static constexpr auto A = 3, BLOCK = 4 * 32;
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: static constexpr auto A = 3, BLOCK = KNOB_BLOCK;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: 'out[i]' is stored: 'part' is read at a place that only the data tell; as tiles: line 7: a place of 'part' lies beyond its end. Its own text is kept, with local moves only
// want: note: knobs: A (line 1) stays as it is: an odd number, 3, is seldom one that was chosen

// case: a definition takes its value from a parameter (9)
namespace own { constexpr int BLOCK = 128; }
__global__ void work(float *out, const float *x, int n)
{
    using own::BLOCK;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: namespace own { constexpr int BLOCK = KNOB_BLOCK; }
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (10)
enum { BLOCK = 128, OTHER = 3 };
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: enum { BLOCK = KNOB_BLOCK, OTHER = 3 };
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only
// want: note: knobs: OTHER (line 1) stays as it is: an odd number, 3, is seldom one that was chosen

// case: a definition takes its value from a parameter (11)
enum : int { BLOCK = 128 };
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: enum : int { BLOCK = KNOB_BLOCK };
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (12)
__global__ void work(float *out, const float *x, int n)
{
    const int BLOCK = 128;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed:     const int BLOCK = KNOB_BLOCK;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (13)
#if 0
#define BLOCK 64
#endif
#define BLOCK 128
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 12: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (14)
#define HALF 64
#define BLOCK (2 * HALF)
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_HALF = 64 of 16, 32, 64, 128, 256
// want: launch work: (ceildiv(n, 2 * KNOB_HALF)) blocks of (2 * KNOB_HALF)
// want: answers more_blocks: KNOB_HALF < 64
// want: answers rows_per_block: KNOB_HALF > 64
// want: answers less_shared: KNOB_HALF < 64
// want: changed: #define HALF KNOB_HALF
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a definition takes its value from a parameter (15)
#define LOG 7
#define BLOCK (1 << 7)
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what is not one plain definition is left with a sentence
#ifdef WIDE
#define BLOCK 128
#endif
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 12: 'out[i]' is stored: 'part' is read at a place that only the data tell; as tiles: line 9: a place of 'part' lies beyond its end. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 2) stays as it is: it is defined under an #if)

// case: what is not one plain definition is left with a sentence (2)
#ifdef WIDE
#define BLOCK 256
#else
#define BLOCK 128
#endif
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 13: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 2) stays as it is: it is defined more than once (lines 2, 4); BLOCK (line 4) stays as it is: it is defined more than once (lines 2, 4))

// case: what is not one plain definition is left with a sentence (3)
#if __CUDA_ARCH__ > 800
constexpr int BLOCK = 128;
#endif
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 2) stays as it is: it is defined under an #if)

// case: what is not one plain definition is left with a sentence (4)
#define BLOCK 64
#undef BLOCK
#define BLOCK 128
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: it is defined more than once (lines 1, 3); BLOCK (line 3) stays as it is: it is defined more than once (lines 1, 3))

// case: what is not one plain definition is left with a sentence (5)
#define BLOCK \
    128
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: its definition goes over lines or has remarks in it)

// case: what is not one plain definition is left with a sentence (6)
constexpr int BLOCK = 128;
static_assert(BLOCK == 128);
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: what the code asks for leaves it one value)

// case: what is not one plain definition is left with a sentence (7)
constexpr int BLOCK = 128;
#define BLOCK_MASK 127
static_assert(BLOCK < 129 && BLOCK > 127);
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: what the code asks for leaves it one value)

// case: macros that are no numbers are no knobs
static int count;
#define BLOCK (count++ * 0 + 128)
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: line 7: 'count', a variable of the file, is written to. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: macros that are no numbers are no knobs (2)
__device__ int blocks(); 
#define BLOCK blocks()
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: line 6: blocks is called, whose text is not in the file. Its own text is kept, with local moves only, and none applies (knobs: no number of the text or the launch is one that was chosen)

// case: a name that a variable has too is left alone
constexpr int BLOCK = 128;
__device__ int twice(int BLOCK) { return 2 * BLOCK; }
__global__ void work(float *out, const float *x, int n)
{
    n += 0 * twice(n);
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: a variable or parameter is called so too (line 2))

// case: constants that the kernel does not reach are no knobs
#define BLOCK 128
constexpr int OTHER = 64;
__global__ void other(float *p) { p[blockIdx.x * OTHER] = 0; }
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: names of the source are never taken
#define BLOCK 128
#define KNOB_BLOCK 3
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK_2 = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK_2)) blocks of (KNOB_BLOCK_2)
// want: answers block_size: KNOB_BLOCK_2 != 128
// want: answers less_shared: KNOB_BLOCK_2 < 128
// want: changed: #define BLOCK KNOB_BLOCK_2
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the problem defines is a knob
// with: kernel = { defines = { BLOCK = "128" } }
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #undef BLOCK
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 8: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what the problem defines is a knob (2)
// with: kernel = { defines = { BLOCK = "128" } }
#ifndef BLOCK
#define BLOCK 64
#endif
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #undef BLOCK
// want: changed: #define BLOCK KNOB_BLOCK
// want: changed: #if !defined(BLOCK)
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 11: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a header keeps its text
// with: headers = { "sizes.cuh" = '''
// with: #define BLOCK 128
// with: ''' }
#include "sizes.cuh"
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 1) stays as it is: it is defined in sizes.cuh, whose text is not changed)

// case: a header keeps its text (2)
// with: headers = { "sizes.cuh" = '''
// with: #pragma once
// with: constexpr int BLOCK = 128;
// with: ''' }
#include "sizes.cuh"
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: BLOCK (line 2) stays as it is: it is defined in sizes.cuh, whose text is not changed)

// case: a header keeps its text (3)
// with: headers = { "sizes.cuh" = '''
// with: #ifndef BLOCK
// with: #define BLOCK 128
// with: #endif
// with: ''' }
#include "sizes.cuh"
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 9: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: what is computed is left alone
#define BLOCK 128
#define FULL_MASK 0xffffffff
__global__ void work(float *out, const float *x, int n)
{
    __syncwarp(FULL_MASK);
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: threads of a block cooperate other than by tiles. Its own text is kept, with local moves only
// want: note: knobs: FULL_MASK (line 2) stays as it is: its value is 4294967295

// case: what is computed is left alone (2)
#define BLOCK 128
#define WARP_SIZE 32
__global__ void work(float *out, const float *x, int n)
{
    if (threadIdx.x % WARP_SIZE == 0) n = n;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: WARP_SIZE (line 2) stays as it is: it is the width of a warp

// case: what is computed is left alone (3)
#define BLOCK 128
#define CODE 4
__global__ void work(float *out, const float *x, int n)
{
    switch (n) { case CODE: return; }
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 5: 'switch (n) { case 4: return; }' is not understood; as tiles: 'switch (n) { case 4: return; }' is not understood. Its own text is kept, with local moves only
// want: note: knobs: CODE (line 2) stays as it is: it is a case of a switch (line 5)

// case: what is computed is left alone (4)
#define BLOCK 128
#define BITS_SET 12
__global__ void work(float *out, const float *x, int n)
{
    if (threadIdx.x & BITS_SET) n = n;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on what 'n' is set in some threads only (line 5); as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: BITS_SET (line 2) stays as it is: it takes part in arithmetic of bits (line 5)

// case: what is computed is left alone (5)
#define BLOCK 128
#define PARTS 8
__global__ void work(float *out, const float *x, int n)
{
    float y = threadIdx.x * 0.5f * PARTS;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only
// want: note: knobs: PARTS (line 2) stays as it is: it is computed with as a float (line 5)

// case: what is computed is left alone (6)
#define BLOCK 128
#define COUNT 8
__global__ void work(float *out, const float *x, int n)
{
    float y = threadIdx.x / (float)COUNT;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only
// want: note: knobs: COUNT (line 2) stays as it is: it is computed with as a float (line 5)

// case: what is computed is left alone (7)
#define BLOCK 128
#define STEPS 5
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < STEPS; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: STEPS (line 2) stays as it is: an odd number, 5, is seldom one that was chosen

// case: what is computed is left alone (8)
#define BLOCK 128
#define RADIUS 2
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < RADIUS; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: RADIUS (line 2) stays as it is: by its name (radius) it is part of what is computed

// case: what is computed is left alone (9)
#define BLOCK 128
#define ADDED 6
__global__ void work(float *out, const float *x, int n)
{
    n += ADDED - 6;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: ADDED (line 2) stays as it is: it is neither the extent of an array or a loop, nor in the launch or a thread's place

// case: what is computed is left alone (10)
#define BLOCK 128
#define OFF 0
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < OFF; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: OFF (line 2) stays as it is: it is 0, and what it would switch on is not known

// case: what is computed is left alone (11)
#define BLOCK 128
template <bool CAUSAL = true> __device__ int f(int n) { if (CAUSAL) return n; return 0; }
__global__ void work(float *out, const float *x, int n)
{
    n = f(n);
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on what a value that differs from thread to thread; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: CAUSAL (line 2) stays as it is: it switches something that may be part of what is computed

// case: a number that the contract fixes is left alone
#define BLOCK 128
#define WIDE 64
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < WIDE; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_WIDE = 64 of 16, 32, 64, 128, 256
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: answers items_in_flight: KNOB_WIDE > 64
// want: changed: #define BLOCK KNOB_BLOCK
// want: changed: #define WIDE KNOB_WIDE
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only

// case: a number that the contract fixes is left alone (2)
// with: contract = { d = { min = 64, max = 64 } }
// with: workloads = { one = { n = 65536, d = 64 } }
#define BLOCK 128
#define WIDE 64
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < WIDE; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: line 8: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: WIDE (line 2) stays as it is: it is the size d of the problem

// case: what is derived follows by itself
constexpr int WARPS = 4;
constexpr int BLOCK = WARPS * 32;
__global__ void work(float *out, const float *x, int n)
{
    
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_WARPS = 4 of 1, 2, 4, 8, 16
// want: launch work: (ceildiv(n, KNOB_WARPS * 32)) blocks of (KNOB_WARPS * 32)
// want: answers more_blocks: KNOB_WARPS < 4
// want: answers rows_per_block: KNOB_WARPS > 4
// want: answers less_shared: KNOB_WARPS < 4
// want: changed: constexpr int WARPS = KNOB_WARPS;
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: switches are knobs where their names say so
#define BLOCK 128
#define USE_PREFETCH 0
#if USE_PREFETCH
__device__ int f;
#endif
#define HAS_BIAS 1
#if HAS_BIAS
#endif
__global__ void work(float *out, const float *x, int n)
{
    n += 0 * USE_PREFETCH * HAS_BIAS;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_USE_PREFETCH = 0 of 0, 1
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: changed: #define USE_PREFETCH KNOB_USE_PREFETCH
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 16: a branch depends on the thread and on a size at once; as tiles: line 14: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: HAS_BIAS (line 6) stays as it is: it switches something that may be part of what is computed

// case: guarded defaults that are no knobs declare nothing
#define BLOCK 128
#ifndef RADIUS  // of the filter
#define RADIUS 2
#endif
__global__ void work(float *out, const float *x, int n)
{
    n += RADIUS - 2;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: launch work: (ceildiv(n, KNOB_BLOCK)) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 128
// want: answers less_shared: KNOB_BLOCK < 128
// want: changed: #define BLOCK KNOB_BLOCK
// want: changed: #if !defined(RADIUS)  // of the filter
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 12: a branch depends on the thread and on a size at once; as tiles: line 10: 'part' holds what depends on 'n', which changes. Its own text is kept, with local moves only
// want: note: knobs: RADIUS (line 3) stays as it is: by its name (radius) it is part of what is computed

// case: the blocks number written out is a knob wherever it stands
// with: launch = { grid = ["ceildiv(n, 96)"], block = ["96"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[96];
    int i = blockIdx.x * 96u + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[96 - 1 - threadIdx.x];
}
// want: KNOB_NUMBER_96 = 96 of 48, 96, 192, 384
// want: launch work: (ceildiv(n, KNOB_NUMBER_96)) blocks of (KNOB_NUMBER_96)
// want: answers block_size: KNOB_NUMBER_96 != 96
// want: answers less_shared: KNOB_NUMBER_96 < 96
// want: changed:     __shared__ float part[KNOB_NUMBER_96];
// want: changed:     int i = blockIdx.x * (KNOB_NUMBER_96 + 0u) + threadIdx.x;
// want: changed:         out[i] = part[KNOB_NUMBER_96 - 1 - threadIdx.x];
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only

// case: a number that others may follow from stays
// with: launch = { grid = ["ceildiv(n, 96)"], block = ["96"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[96];
    int i = blockIdx.x * 96u + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[95 - threadIdx.x];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: 96 in the text stays: 95 is there as well, and may follow from it)

// case: a number that others may follow from stays (2)
// with: launch = { grid = ["ceildiv(n, 96)"], block = ["96"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[96];
    int i = blockIdx.x * 96u + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[(threadIdx.x + 48) % 96];
}
// want: declined: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only, and none applies (knobs: 96 in the text stays: 48 is there as well, and may follow from it)

// case: a number that others may follow from stays (3)
// with: launch = { grid = ["ceildiv(n, 96)"], block = ["96"] }
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[96];
    int i = blockIdx.x * 96u + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[blockDim.x - 1 - threadIdx.x];
}
// want: KNOB_BLOCK_X = 96 of 48, 96
// want: launch work: (ceildiv(n, KNOB_BLOCK_X)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 96
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 7: a branch depends on the thread and on a size at once; as tiles: an index depends on the thread other than by its element. Its own text is kept, with local moves only
// want: note: knobs: 96 in the text stays: it asks for the block along x as well
