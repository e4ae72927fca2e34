// CUDA's and HIP's words for a kernel that is compiled for the host. What is not here does not compile, and the
// compiler's words are the user's: nothing is silently left out.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef TUNESMITH_WARP
#define TUNESMITH_WARP 32
#endif
#define __shared__ static thread_local  // what is thread local lies together, and can be poisoned at once
#define __device__
#define __host__
#define __global__
#define __constant__ static
#define __grid_constant__
#define __managed__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __nv_is_extended_device_lambda_closure_type(x) false
#define __trap() __tunesmith_refuse("a kernel trapped")
#define __brkpt() __trap()
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)
#undef assert
#define assert(condition) ((condition) ? (void)0 : __tunesmith_refuse("an assertion fails: " #condition))

// -- vectors

#define TUNESMITH_VECTORS(name, type, two, four)                                             \
    struct name##1 { type x; };                                                              \
    struct __align__(two) name##2 { type x, y; };                                            \
    struct name##3 { type x, y, z; };                                                        \
    struct __align__(four) name##4 { type x, y, z, w; };                                     \
    static inline name##1 make_##name##1(type x) { return {x}; }                             \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                  \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }       \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TUNESMITH_VECTORS(char, signed char, 2, 4)
TUNESMITH_VECTORS(uchar, unsigned char, 2, 4)
TUNESMITH_VECTORS(short, short, 4, 8)
TUNESMITH_VECTORS(ushort, unsigned short, 4, 8)
TUNESMITH_VECTORS(int, int, 8, 16)
TUNESMITH_VECTORS(uint, unsigned, 8, 16)
TUNESMITH_VECTORS(long, long, 16, 16)
TUNESMITH_VECTORS(ulong, unsigned long, 16, 16)
TUNESMITH_VECTORS(longlong, long long, 16, 16)
TUNESMITH_VECTORS(ulonglong, unsigned long long, 16, 16)
TUNESMITH_VECTORS(float, float, 8, 16)
TUNESMITH_VECTORS(double, double, 16, 16)
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
extern const uint3 threadIdx, blockIdx;
extern const uint3 blockDim, gridDim;
static const int warpSize = TUNESMITH_WARP;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

// -- what threads do together

#if TUNESMITH_WARP > 32
typedef unsigned long long __tunesmith_lanes;
#else
typedef unsigned __tunesmith_lanes;
#endif
extern "C" {
int printf(const char *, ...);
int __tunesmith_current();
unsigned char *__tunesmith_slot();
unsigned char *__tunesmith_dynamic();
unsigned long long __tunesmith_ticks();
[[noreturn]] void __tunesmith_refuse(const char *why);
void __tunesmith_barrier(int id, int count);
void __tunesmith_arrive(int id, int count);
int __tunesmith_count(int holds);
unsigned long long __tunesmith_active(unsigned line);
void __tunesmith_meet(unsigned long long mask, int operation);
[[noreturn]] void __tunesmith_unseen();
void __tunesmith_fence();
const unsigned char *__tunesmith_seen(int lane);
void __tunesmith_atomic(const void *at, size_t bytes, int reads);
void __tunesmith_copy(void *to, const void *from, size_t bytes, size_t zeros);
void __tunesmith_commit();
void __tunesmith_finish(int left);
unsigned __tunesmith_place(const void *at);
unsigned char *__tunesmith_at(unsigned place);
void __tunesmith_copy_to(unsigned place, const void *from, size_t bytes, size_t zeros);
void __tunesmith_make_arrival(unsigned at, unsigned count);
void __tunesmith_fence_copies();
void __tunesmith_expect(unsigned at, int bytes);
void __tunesmith_bulk_copy(unsigned to, const void *from, int bytes, unsigned at);
unsigned __tunesmith_arrived(unsigned at, unsigned phase);
}

// Two barriers in two branches stay two.
#if defined(__clang__)
#define TUNESMITH_APART __attribute__((nomerge))
#else
#define TUNESMITH_APART
#endif
TUNESMITH_APART static inline void __syncthreads() { __tunesmith_barrier(0, 0); }
TUNESMITH_APART static inline int __syncthreads_count(int holds) { return __tunesmith_count(holds); }
TUNESMITH_APART static inline int __syncthreads_or(int holds) { return __tunesmith_count(holds) > 0; }
TUNESMITH_APART static inline int __syncthreads_and(int holds) { return __tunesmith_count(!holds) == 0; }
namespace __tunesmith {
enum Operation { SYNC = 1, SHUFFLE, SHUFFLE_XOR, SHUFFLE_UP, SHUFFLE_DOWN, VOTE, MATCH, REDUCE };  // which must agree
}
static inline void __syncwarp(unsigned long long mask = ~0ull) { __tunesmith_meet(mask, __tunesmith::SYNC); }
static inline void __threadfence() { __tunesmith_fence(); }
static inline void __threadfence_block() { __tunesmith_fence(); }
static inline void __threadfence_system() { __tunesmith_fence(); }

namespace __tunesmith {
enum { WARP = TUNESMITH_WARP };
static inline int lane() { return __tunesmith_current() % WARP; }
template <typename T>
static inline void meet(unsigned long long mask, const T &value, Operation operation)
{
    static_assert(sizeof(T) <= 32, "a warp operation takes at most 32 bytes a thread");
    memcpy(__tunesmith_slot(), &value, sizeof(T));
    __tunesmith_meet(mask, operation);
}
template <typename T>
static inline T of_lane(int lane)
{
    const unsigned char *from = __tunesmith_seen(lane);
    if (!from)
        __tunesmith_unseen();
    T value;
    memcpy(&value, from, sizeof(T));
    return value;
}
template <typename T>
static inline T shuffle(unsigned long long mask, T value, Operation operation, int other, bool inside)
{
    meet(mask, value, operation);
    return inside ? of_lane<T>(other) : value;
}
template <typename T, typename F>
static inline T together(unsigned long long mask, T value, Operation operation, F joined)
{
    meet(mask, value, operation);
    bool first = true;
    for (int lane = 0; lane < WARP; lane++)
        if (__tunesmith_seen(lane)) {
            value = first ? of_lane<T>(lane) : joined(value, of_lane<T>(lane));
            first = false;
        }
    return value;
}
static inline void check_width(int width)
{
    if (width < 1 || width > WARP || (width & (width - 1)))
        __tunesmith_refuse("the width of a shuffle is a power of two, at most that of a warp");
}
}  // namespace __tunesmith

template <typename T>
static inline T __shfl_xor_sync(unsigned long long mask, T value, int step, int width = TUNESMITH_WARP)
{
    __tunesmith::check_width(width);
    const int lane = __tunesmith::lane(), other = lane ^ step;
    const bool inside = other < (lane & ~(width - 1)) + width;
    return __tunesmith::shuffle(mask, value, __tunesmith::SHUFFLE_XOR, other & (TUNESMITH_WARP - 1), inside);
}
template <typename T>
static inline T __shfl_down_sync(unsigned long long mask, T value, unsigned step, int width = TUNESMITH_WARP)
{
    __tunesmith::check_width(width);
    const int lane = __tunesmith::lane(), other = lane + (int)step;
    const bool inside = (lane & (width - 1)) + (int)step < width && (mask >> (other & (TUNESMITH_WARP - 1)) & 1);
    __tunesmith::meet(mask, value, __tunesmith::SHUFFLE_DOWN);
    return inside && __tunesmith_seen(other) ? __tunesmith::of_lane<T>(other) : value;
}
template <typename T>
static inline T __shfl_up_sync(unsigned long long mask, T value, unsigned step, int width = TUNESMITH_WARP)
{
    __tunesmith::check_width(width);
    const int lane = __tunesmith::lane();
    return __tunesmith::shuffle(mask, value, __tunesmith::SHUFFLE_UP, lane - (int)step, (lane & (width - 1)) >= (int)step);
}
template <typename T>
static inline T __shfl_sync(unsigned long long mask, T value, int from, int width = TUNESMITH_WARP)
{
    __tunesmith::check_width(width);
    const int lane = __tunesmith::lane();
    return __tunesmith::shuffle(mask, value, __tunesmith::SHUFFLE, (lane & ~(width - 1)) | (from & (width - 1)), true);
}
static inline __tunesmith_lanes __ballot_sync(unsigned long long mask, int holds)
{
    const unsigned long long own = (unsigned long long)(holds != 0) << __tunesmith::lane();
    return (__tunesmith_lanes)__tunesmith::together(
        mask, own, __tunesmith::VOTE, [](unsigned long long a, unsigned long long b) { return a | b; });
}
static inline int __any_sync(unsigned long long mask, int holds) { return __ballot_sync(mask, holds) != 0; }
static inline int __all_sync(unsigned long long mask, int holds) { return __ballot_sync(mask, !holds) == 0; }
static inline __tunesmith_lanes __activemask(unsigned line = __builtin_LINE()) { return (__tunesmith_lanes)__tunesmith_active(line); }
template <typename T>
static inline __tunesmith_lanes __match_any_sync(unsigned long long mask, T value)
{
    __tunesmith::meet(mask, value, __tunesmith::MATCH);
    unsigned long long same = 0;
    for (int lane = 0; lane < TUNESMITH_WARP; lane++)
        if (__tunesmith_seen(lane) && __tunesmith::of_lane<T>(lane) == value)
            same |= 1ull << lane;
    return (__tunesmith_lanes)same;
}
template <typename T>
static inline __tunesmith_lanes __match_all_sync(unsigned long long mask, T value, int *all)
{
    __tunesmith::meet(mask, value, __tunesmith::MATCH);
    unsigned long long here = 0;
    *all = 1;
    for (int lane = 0; lane < TUNESMITH_WARP; lane++)
        if (__tunesmith_seen(lane)) {
            here |= 1ull << lane;
            *all = *all && __tunesmith::of_lane<T>(lane) == value;
        }
    return *all ? (__tunesmith_lanes)here : 0;
}
#define TUNESMITH_REDUCE(name, type, expression)                                                  \
    static inline type name(unsigned long long mask, type value)                                  \
    {                                                                                             \
        return __tunesmith::together(mask, value, __tunesmith::REDUCE, [](type a, type b) { return (type)(expression); }); \
    }
TUNESMITH_REDUCE(__reduce_add_sync, unsigned, a + b)
TUNESMITH_REDUCE(__reduce_add_sync, int, (unsigned)a + (unsigned)b)
TUNESMITH_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
TUNESMITH_REDUCE(__reduce_min_sync, int, a < b ? a : b)
TUNESMITH_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
TUNESMITH_REDUCE(__reduce_max_sync, int, a > b ? a : b)
TUNESMITH_REDUCE(__reduce_and_sync, unsigned, a & b)
TUNESMITH_REDUCE(__reduce_or_sync, unsigned, a | b)
TUNESMITH_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

// -- special registers, clocks, asynchronous copies

static inline unsigned __tunesmith_laneid() { return __tunesmith::lane(); }
static inline unsigned __tunesmith_warpid() { return __tunesmith_current() / TUNESMITH_WARP; }
static inline unsigned __tunesmith_smid() { return blockIdx.x % 132; }
static inline unsigned __tunesmith_clock() { return (unsigned)__tunesmith_ticks(); }
static inline __tunesmith_lanes __tunesmith_lanemask_lt() { return ((__tunesmith_lanes)1 << __tunesmith::lane()) - 1; }
static inline __tunesmith_lanes __tunesmith_lanemask_eq() { return (__tunesmith_lanes)1 << __tunesmith::lane(); }
static inline __tunesmith_lanes __tunesmith_lanemask_le() { return __tunesmith_lanemask_lt() | __tunesmith_lanemask_eq(); }
static inline __tunesmith_lanes __tunesmith_lanemask_gt() { return ~__tunesmith_lanemask_le(); }
static inline __tunesmith_lanes __tunesmith_lanemask_ge() { return ~__tunesmith_lanemask_lt(); }
static inline long long clock64() { return (long long)__tunesmith_ticks(); }
#define clock() ((int)clock64())
static inline void __nanosleep(unsigned) {}
static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0)
{
    __tunesmith_copy(to, from, bytes, zeros);
}
static inline void __pipeline_commit() { __tunesmith_commit(); }
static inline void __pipeline_wait_prior(int left) { __tunesmith_finish(left); }
static inline size_t __cvta_generic_to_shared(const void *at) { return __tunesmith_place(at); }
static inline size_t __cvta_generic_to_global(const void *at) { return (size_t)at; }
static inline void *__cvta_shared_to_generic(size_t place) { return __tunesmith_at((unsigned)place); }
static inline void cudaGridDependencySynchronize() {}
static inline void cudaTriggerProgrammaticLaunchCompletion() {}

// -- memory

#define TUNESMITH_LOAD(name) template <typename T> static inline T name(const T *from) { return *from; }
TUNESMITH_LOAD(__ldg)
TUNESMITH_LOAD(__ldca)
TUNESMITH_LOAD(__ldcs)
TUNESMITH_LOAD(__ldcg)
TUNESMITH_LOAD(__ldcv)
TUNESMITH_LOAD(__ldlu)
#define TUNESMITH_STORE(name) \
    template <typename T, typename U> static inline void name(T *to, U value) { *to = (T)value; }
TUNESMITH_STORE(__stcs)
TUNESMITH_STORE(__stcg)
TUNESMITH_STORE(__stwb)
TUNESMITH_STORE(__stwt)

#if defined(__clang__)
#define TUNESMITH_UNWATCHED __attribute__((no_sanitize("thread"), noinline))
#else
#define TUNESMITH_UNWATCHED __attribute__((no_sanitize_thread, noinline))
#endif
// What an instruction moves: so many of a type, aligned as a whole; and bits as they are.
namespace __tunesmith {
template <typename T, int N> struct alignas(sizeof(T) * N) Moved { T item[N]; };
template <typename A, typename B> static inline void put(A &to, const B &from)
{
    if constexpr (sizeof(A) == sizeof(B))
        memcpy((void *)&to, (const void *)&from, sizeof(A));
    else
        to = (A)from;
}
}  // namespace __tunesmith

// Atomics are told to whoever watches as what they are.
template <typename T, typename F>
TUNESMITH_UNWATCHED static T __tunesmith_update(T *to, F changed, bool reads = true)
{
    __tunesmith_atomic(to, sizeof(T), reads);
    T old;
    memcpy((void *)&old, (const void *)to, sizeof(T));
    const T now = changed(old);
    memcpy((void *)to, (const void *)&now, sizeof(T));
    return old;
}
#define TUNESMITH_ATOMIC(name, expression) TUNESMITH_ATOMIC_OF(name, expression, true)
#define TUNESMITH_ATOMIC_OF(name, expression, reads)                                     \
    template <typename T, typename U> static inline T name(T *to, U given)               \
    {                                                                                    \
        const T value = (T)given;                                                        \
        return __tunesmith_update(to, [value](T old) { return (T)(expression); }, reads); \
    }                                                                                    \
    template <typename T, typename U> static inline T name##_block(T *to, U given) { return name(to, given); } \
    template <typename T, typename U> static inline T name##_system(T *to, U given) { return name(to, given); }
static inline int __tunesmith_sum(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
template <typename T> static inline T __tunesmith_sum(T a, T b) { return a + b; }
TUNESMITH_ATOMIC(atomicAdd, __tunesmith_sum(old, value))
TUNESMITH_ATOMIC(atomicSub, old - value)
TUNESMITH_ATOMIC(atomicMax, old > value ? old : value)
TUNESMITH_ATOMIC(atomicMin, old < value ? old : value)
TUNESMITH_ATOMIC(atomicAnd, old & value)
TUNESMITH_ATOMIC(atomicOr, old | value)
TUNESMITH_ATOMIC(atomicXor, old ^ value)
TUNESMITH_ATOMIC_OF(atomicExch, value, false)
TUNESMITH_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
TUNESMITH_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T, typename U, typename V> static inline T atomicCAS(T *to, U expected, V value)
{
    return __tunesmith_update(to, [=](T old) { return old == (T)expected ? (T)value : old; });
}
#define unsafeAtomicAdd atomicAdd

#include "tunesmith_math.h"
#if defined(__HIP__) || defined(__HIPCC__)
#include "tunesmith_hip.h"
#endif
