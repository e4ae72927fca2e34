// Local moves on sources as they come: what is inserted, what is refused and why.
// read: local moves

// case: all of them make one template of a plain kernel
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: BLOCK = 128 of 32, 64, 128, 192, 256, 384, 512, 768, 1024
// want: KNOB_UNROLL = 2 of 1, 2, 4, 8, 16
// want: RESTRICT = 0 of 0, 1
// want: UNROLL = 0 of 0, 1, 2, 4, 8
// want: FAST = 0 of 0, 1
// want: BOUNDS = 0 of 0, 1, 2, 4
// want: REGS = 255 of 32, 64, 128, 255
// want: LEVEL = 5 of 0, 5, 10
// want: launch blur<__half>: (ceildiv(n, BLOCK)) blocks of (BLOCK)
// want: require block_fits: BLOCK <= device.max_threads
// want: prefer bounds_fit: BOUNDS == 0 or BOUNDS * BLOCK <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefer one_setting: (UNROLL != 0) + (BOUNDS != 0) + (REGS != 255) + (LEVEL != 5) <= 1
// want: answers unroll: KNOB_UNROLL > 1 or UNROLL > 1
// want: answers fast_intrinsics: FAST == 1
// want: answers items_in_flight: UNROLL > 1
// want: answers launch_bounds: BOUNDS > 0
// want: answers register_cap: REGS < 255
// want: answers compiler_flags: LEVEL != 5
// want: answers block_size: BLOCK != 128
// want: answers hoist_invariants: RESTRICT == 1
// want: changed: #if RESTRICT
// want: changed: #define NO_ALIAS __restrict__
// want: changed: #else
// want: changed: #define NO_ALIAS
// want: changed: #if BOUNDS
// want: changed: #define LAUNCH_BOUNDS __launch_bounds__(BLOCK, BOUNDS)
// want: changed: #else
// want: changed: #define LAUNCH_BOUNDS
// want: changed: #if FAST
// want: changed: #define expf __expf
// want: changed: __global__ LAUNCH_BOUNDS void blur(T *NO_ALIAS out, const T *__restrict__ in, const float* NO_ALIAS weights, int n, int taps)
// want: changed: #if UNROLL
// want: changed: #pragma unroll UNROLL
// want: changed: #pragma unroll KNOB_UNROLL

// case: restrict respects what the contract says of overlap
// with: moves = "restrict"
// with: argument = { result = { alias = "in", shape = [] }, in = { role = "inout" } }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: RESTRICT = 0 of 0, 1
// want: launch blur<__half>: (ceildiv(n, 128)) blocks of (128)
// want: answers hoist_invariants: RESTRICT == 1
// want: changed: #if RESTRICT
// want: changed: #define NO_ALIAS __restrict__
// want: changed: #else
// want: changed: #define NO_ALIAS
// want: changed: __global__ void blur(T *out, const T *__restrict__ in, const float* NO_ALIAS weights, int n, int taps)

// case: restrict respects what the contract says of overlap (2)
// with: moves = "restrict"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *__restrict__ out, const T *__restrict__ in, const float* __restrict__ weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: restrict is refused: every pointer is __restrict__ already, or may share memory with another (alias)

// case: the block stays where the kernel may look at it
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __shared__ float tile[128]; float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __shared__ is used

// case: the block stays where the kernel may look at it (2)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = __shfl_xor_sync(~0u, 1.0f, 16);
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __shfl_xor_sync is used

// case: the block stays where the kernel may look at it (3)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = threadIdx.x;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: threadIdx.x is used outside the forms that are known to be safe

// case: the block stays where the kernel may look at it (4)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = blockDim.x;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: blockDim.x is used outside the forms that are known to be safe

// case: the block stays where the kernel may look at it (5)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = blockIdx.x;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: blockIdx.x is used outside the forms that are known to be safe

// case: the block stays where the kernel may look at it (6)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = __lane_id();
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __lane_id is used

// case: the block stays where the kernel may look at it (7)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = __builtin_amdgcn_workitem_id_x();
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __builtin_amdgcn_workitem_id_x is used

// case: the block stays where the kernel may look at it (8)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = __clusterIdx().x;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __clusterIdx is used

// case: the block stays where the kernel may look at it (9)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
#define LANE threadIdx.x
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: threadIdx.x is used outside the forms that are known to be safe

// case: the block stays where the kernel may look at it (10)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
__device__ void wait() { __syncthreads(); }
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: blur may depend on the size of its block: __syncthreads is used

// case: the block stays where the kernel may look at it (11)
// with: moves = "block"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void __launch_bounds__(128) blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: the launch is cooperative, in clusters, or its block is fixed by launch bounds

// case: the block stays where the grid does not follow from it
// with: moves = "block"
// with: launch = { grid = ["(n + 127) // 128"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: the grid, '(n + 127) // 128', does not say how it follows from the block

// case: the block stays where the grid does not follow from it (2)
// with: moves = "block"
// with: launch = { grid = ["min(ceildiv(n, 128), 3)"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: the grid, 'min(ceildiv(n, 128), 3)', does not say how it follows from the block

// case: the block stays where the grid does not follow from it (3)
// with: moves = "block"
// with: launch = { block = ["min(n, 128)"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: block is refused: the block's size depends on sizes of the problem

// case: rows by block stay rows whatever the block
// with: moves = "block"
// with: launch = { grid = ["taps"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum; }
}
// want: BLOCK = 128 of 32, 64, 128, 192, 256, 384, 512, 768, 1024
// want: launch blur<__half>: (taps) blocks of (BLOCK)
// want: require block_fits: BLOCK <= device.max_threads
// want: answers block_size: BLOCK != 128

// case: bounds of a block that depends on sizes allow the largest
// with: moves = "bounds"
// with: launch = { block = ["min(n, 128)"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: BOUNDS = 0 of 0, 1, 2, 4
// want: launch blur<__half>: (ceildiv(n, 128)) blocks of (min(n, 128))
// want: prefer bounds_fit: BOUNDS == 0 or BOUNDS * 1024 <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: answers launch_bounds: BOUNDS > 0
// want: changed: #if BOUNDS
// want: changed: #define LAUNCH_BOUNDS __launch_bounds__(1024, BOUNDS)
// want: changed: #else
// want: changed: #define LAUNCH_BOUNDS
// want: changed: __global__ LAUNCH_BOUNDS void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)

// case: bounds of a block that depends on sizes allow the largest (2)
// with: moves = "bounds"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void __launch_bounds__(128) blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: bounds is refused: blur has __launch_bounds__ already (line 7)

// case: fast forms are refused where they are there already or a macro cannot reach
// with: moves = "fast"
// with: kernel = { flags = ["-use_fast_math"] }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: fast is refused: -use_fast_math is among the problem's flags: the intrinsics are used already

// case: fast forms are refused where they are there already or a macro cannot reach (2)
// with: moves = "fast"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * std::expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: fast is refused: expf is called with its namespace, where a macro cannot replace it

// case: fast forms are refused where they are there already or a macro cannot reach (3)
// with: moves = "fast"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * fabsf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: fast is refused: no function is called that has a fast form

// case: a name of the source is never made a parameter
// with: moves = "unroll"
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int UNROLL = 3; float sum = UNROLL;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: UNROLL_ = 0 of 0, 1, 2, 4, 8
// want: launch blur<__half>: (ceildiv(n, 128)) blocks of (128)
// want: answers unroll: UNROLL_ > 1
// want: answers items_in_flight: UNROLL_ > 1
// want: changed: #if UNROLL_
// want: changed: #pragma unroll UNROLL_

// case: sizes in the entry become defines
// with: moves = "unroll"
// with: kernel = { entry = "blur<__half, {taps}>" }
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T, int TAPS>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: UNROLL = 0 of 0, 1, 2, 4, 8
// want: launch blur<__half, {taps}>: (ceildiv(n, 128)) blocks of (128)
// want: answers unroll: UNROLL > 1
// want: answers items_in_flight: UNROLL > 1
// want: changed: #if UNROLL
// want: changed: #pragma unroll UNROLL

// case: a text with two definitions is left alone
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps, int more)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: left alone: kernel.cu has 2 definitions of blur that can be seen without the preprocessor

// case: a condition inside the header is left alone
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, 
#ifdef WIDE
 int n,
#else
 long n,
#endif
 int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
// want: left alone: an #if stands inside the header of blur: what its parameters are depends on flags
