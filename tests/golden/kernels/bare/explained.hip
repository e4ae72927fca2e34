// Kernels before there is a problem, in words: read or not and why, and what a draft would say.

// case: macros of the build settle types
__global__ void twice(T* out, int n) { int i = threadIdx.x; if (i < n) out[i] *= FACTOR; }
// want: twice: not read
// want: obstacle: line 1: the type of out, T*, is not known (to change: say it, as in --define T=float)
// want: filled in: out: inout
// want: filled in: n: int32, value n
// want: filled in: sizes: n
// want: left: out, type: T* in the kernel; an element type such as "float32*"
// want: left: out, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: accuracy, rtol: without quotes, e.g. 0.0001 for float32, 0.004 for float16
// want: left: accuracy, atol: without quotes, e.g. 1e-5 for float32, 0.002 for float16
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: not said: the type of out, T*, is not known

// case: macros of the build settle types (2)
// with: defines = { T = "float", FACTOR = "2.0f" }
__global__ void twice(T* out, int n) { int i = threadIdx.x; if (i < n) out[i] *= FACTOR; }
// want: twice: read
// want: twice: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 1: for each i from 0 to n, over all threads
// want: out: updated as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 1)
// want: Read with blocks of 512 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: out: float32*, inout, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [1], block [512]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: a helper is told by template arguments that nothing else could say
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

template <typename T, int X, int Y> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, X, hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Sums::TempStorage first, second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

template <typename T> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, 256>;
    __shared__ typename Sums::TempStorage first;
    __shared__ typename Sums::TempStorage second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

__global__ void __launch_bounds__(256)
moments(const float *x, float *sum, float *squares, int channels, int n) {
    float one = 0.0f, two = 0.0f;
    for (int i = hipThreadIdx_x; i < n; i += hipBlockDim_x) {
        float v = x[i * channels + hipBlockIdx_x];
        one += v;
        two += v * v;
    }
    join<float>(one, two);
    if (hipThreadIdx_x == 0) {
        sum[hipBlockIdx_x] = one;
        squares[hipBlockIdx_x] = two;
    }
}
// want: moments: read
// want: moments: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 22: for each i from 0 to n, shared by the team; adds up one (from 0.0f), adds up two (from 0.0f)
// want:   line 29: one thread of the team stores sum[block], squares[block]
// want: x: read as float at [i * channels + block], neighbours at no constant distance
// want: sum: written as float at [block], once for a task
// want: squares: written as float at [block], once for a task
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 22)
// want:   'one' may be joined in another order: the contract's word ([accuracy])
// want:   'two' may be joined in another order: the contract's word ([accuracy])
// want:   x, sum, squares do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, which the file says; every integer argument is taken for a size.
// want: filled in: x: float32*, input, shape [n, channels]
// want: filled in: sum: float32*, output, shape [rows]
// want: filled in: squares: float32*, output, shape [rows]
// want: filled in: channels: int32, value channels
// want: filled in: n: int32, value n
// want: filled in: launch: grid [rows], block [256]
// want: filled in: sizes: rows, channels, n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: helpers that could both be meant are not chosen between
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

template <typename T, int X = 16, int Y = 16> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, X, hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Sums::TempStorage first, second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

template <typename T> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, 256>;
    __shared__ typename Sums::TempStorage first;
    __shared__ typename Sums::TempStorage second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

__global__ void __launch_bounds__(256)
moments(const float *x, float *sum, float *squares, int channels, int n) {
    float one = 0.0f, two = 0.0f;
    for (int i = hipThreadIdx_x; i < n; i += hipBlockDim_x) {
        float v = x[i * channels + hipBlockIdx_x];
        one += v;
        two += v * v;
    }
    join<float>(one, two);
    if (hipThreadIdx_x == 0) {
        sum[hipBlockIdx_x] = one;
        squares[hipBlockIdx_x] = two;
    }
}
// want: moments: not read
// want: obstacle: line 27: join stays a call: which join is called cannot be told from its arguments (to change: call it in a statement of its own, with arguments whose types are written)
// want: filled in: x: float32*, input
// want: filled in: sum: float32*, output
// want: filled in: squares: float32*, output
// want: filled in: channels: int32, value channels
// want: filled in: n: int32, value n
// want: filled in: sizes: channels, n
// want: left: x, shape: one entry per axis, over the sizes, outermost first
// want: left: sum, shape: one entry per axis, over the sizes, outermost first
// want: left: squares, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(channels, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]; __launch_bounds__ allows 256
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: a warp as wide as the device says is not taken for one of 32
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

template <typename T, int X, int Y> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, X, hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Sums::TempStorage first, second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

template <typename T> __device__ void join(T &one, T &two) {
    using Sums = hipcub::WarpReduce<T>;
    __shared__ typename Sums::TempStorage first;
    __shared__ typename Sums::TempStorage second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

__global__ void __launch_bounds__(256)
moments(const float *x, float *sum, float *squares, int channels, int n) {
    float one = 0.0f, two = 0.0f;
    for (int i = hipThreadIdx_x; i < n; i += hipBlockDim_x) {
        float v = x[i * channels + hipBlockIdx_x];
        one += v;
        two += v * v;
    }
    join<float>(one, two);
    if (hipThreadIdx_x == 0) {
        sum[hipBlockIdx_x] = one;
        squares[hipBlockIdx_x] = two;
    }
}
// want: moments: not read
// want: obstacle: line 15: 'hipcub::WarpReduce<float>(first).Sum(one)' is not understood, and hipcub::WarpReduce is called, whose text is not in the file (to change: a sum, maximum or minimum of the library, or shuffles written out)
// want: obstacle: line 16: 'hipcub::WarpReduce<float>(second).Sum(two)' is not understood, and hipcub::WarpReduce is called, whose text is not in the file (to change: a sum, maximum or minimum of the library, or shuffles written out)
// want: filled in: x: float32*, input
// want: filled in: sum: float32*, output
// want: filled in: squares: float32*, output
// want: filled in: channels: int32, value channels
// want: filled in: n: int32, value n
// want: filled in: sizes: channels, n
// want: left: x, shape: one entry per axis, over the sizes, outermost first
// want: left: sum, shape: one entry per axis, over the sizes, outermost first
// want: left: squares, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(channels, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]; __launch_bounds__ allows 256
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
