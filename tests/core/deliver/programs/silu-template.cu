// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "int % (8 * VEC) == 0"
// [launch]
// grid = ["rows"]
// block = ["BLOCK"]
// entry = "::act::silu<Pair<Half, {VEC}>, THREADS>"
// ///
#include <cuda_fp16.h>
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
#define THREADS (BLOCK)
using Half = __half;
template <typename T, int N> struct Pair { T item[N]; };
namespace act {
template <typename P, int N>
__global__ void silu(__half* out, const uint4* x, int rows, long long d) { ((P*)out)[N] = ((P*)x)[0]; }
}
