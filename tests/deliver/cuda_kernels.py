"""CUDA sources that are hard to put into one file: same names and macros, own headers, several kernels."""

from __future__ import annotations

SIZES = """
[contract]
rows = { min = 1, max = 4096 }
int = { min = 8, max = 4096, multiple_of = 8 }
[workloads]
small = { rows = 16, int = 256 }
wide = { rows = 4, int = 2048 }
"""
SCALARS = """
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int64"
value = "int"
"""


def an_array(name: str, kind: str, role: str, more: str = "") -> str:
    return (
        f'[[argument]]\nname = "{name}"\ntype = "{kind}*"\nrole = "{role}"\nshape = ["rows", "int"]\n{more}\n'
    )


ARGUMENTS = (
    an_array("out", "float32", "output")
    + an_array("x", "float32", "input", "align = 16")
    + '[[argument]]\nname = "class"\ntype = "float16"\nvalue = 0.5\n'
    + SCALARS
)
KERNEL = """\
#pragma once
#include <cuda_fp16.h>
#include <cmath>
#ifdef NOT_HERE
#include <not/here.h>
#endif
#define SQUARE(x) ((x) * (x))
extern "C" __global__ void scale(float* out, const float* x, __half half, int rows, long long d);
struct Part { float value; };
static __device__ Part twice(float x) { return {2 * x}; }
// extern "C" in a comment, and #include <not/here/either.h>
extern "C" __global__ void scale(float* out, const float* x, __half half, int rows, long long d) {
    const char* told = R"(
#include <nor/here.h>
)";
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        out[blockIdx.x * d + i] = twice(x[blockIdx.x * d + i]).value + SQUARE(float(half)) * (told != nullptr)
            + 0 * float(M_PI);
}
"""
LAUNCH = '[launch]\ngrid = ["rows"]\nblock = ["64"]\n'
HEAD = """\
// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "int % (8 * VEC) == 0"
"""
TEMPLATE = (
    HEAD
    + """\
// [launch]
// grid = ["ceildiv(rows * int, BLOCK * VEC)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
#if VEC > 1
#include <cuda_bf16.h>
#else
#include <cuda_fp16.h>
#endif
#ifndef M_PI
#define M_PI 3.0f
#endif
#define SQUARE(x) \\
    ((x) * (x))
struct Part { float value, tag; };
static __device__ Part twice(float x) { return {2 * x, BLOCK}; }
extern "C" {
__global__ void scale(float* out, const float* x, __half half, int rows, long long d) {
    long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * VEC;
    for (int k = 0; k < VEC && i + k < rows * d; ++k)
        out[i + k] = twice(x[i + k]).value + SQUARE(float(half)) + twice(0).tag;
}
}
// the last line goes on \\"""
)

PROGRAM = """\
#include <cstdio>
#include <vector>
// What a variant adds tells which one ran: nothing the original, the block the others.
static int check(long long rows, long long d, cudaError_t expected, float added) {
    const long long n = 0 < rows && rows < 10000 ? rows * d : 1;
    std::vector<float> x(n), out(n);
    for (long long i = 0; i < n; ++i) x[i] = float(i % 97);
    float *dx, *dout;
    cudaMalloc(&dx, n * 4);
    cudaMalloc(&dout, n * 4);
    cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice);
    const cudaError_t got = k2_scale_launch(dout, dx, 0.5f, rows, d, 0);
    cudaMemcpy(out.data(), dout, n * 4, cudaMemcpyDeviceToHost);
    if (got != expected) return printf("%lld %lld: error %d\\n", rows, d, int(got)), 1;
    for (long long i = 0; got == cudaSuccess && i < n; ++i)
        if (out[i] != 2 * x[i] + 0.25f + added) return printf("%lld %lld: %f\\n", rows, d, out[i]), 1;
    return 0;
}
int main() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
    return check(16, 256, cudaSuccess, 64) + check(16, 512, cudaSuccess, 128) + check(3, 8, cudaSuccess, 0)
        + check(5000, 8, cudaSuccess, 0) + check(0, 8, cudaErrorInvalidValue, 0)
        + check(1LL << 40, 8, cudaErrorInvalidValue, 0)
        + check(-9223372036854775807LL, 8, cudaErrorInvalidValue, 0);
}
"""

SILU = """\
#include <cuda_fp16.h>
namespace act {
template <typename T, int D>
__global__ void silu(T* out, const T* x, int rows, long long d) { if (d == D) out[0] = x[0]; }
}
"""
SILU_TEMPLATE = (
    HEAD
    + """\
// [launch]
// grid = ["rows"]
// block = ["BLOCK"]
// entry = "::act::silu<Pair<Half, {VEC}>,
//   THREADS>"
// ///
""".replace(",\n//   THREADS", ", THREADS")
    + """\
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
"""
)

TWO = (
    HEAD
    + """\
// [workspace]
// part = { type = "float32*", shape = ["rows", "BLOCK"], init = 0.5, align = 16 }
// [[launch]]
// grid = ["rows", "ceildiv(int, BLOCK)"]
// block = ["BLOCK"]
// shared = "BLOCK * 1024 if BLOCK > 64 else 16"
// cluster = [1, 1]
// entry = "first"
// args = ["part", "x", "rows"]
// [[launch]]
// grid = ["min(rows, device.sms)"]
// block = ["BLOCK"]
// entry = "second"
// args = ["again", "part", "d", "x"]
// when = "rows % 8 != 7"
// cooperative = true
// pdl = true
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
extern __shared__ float scratch[];
__global__ void first(float* part, const float* x, int rows) { scratch[threadIdx.x] = x[0]; part[0] = VEC; }
__global__ void second(float* again, const float* part, long long d, const float* x)
{
    cudaGridDependencySynchronize();
}
"""
)

HEADERS = (
    ("math/all.h", '#pragma once\n#include "math/twice.h"\n#include <math/twice.h>\n#include <cstdint>\n'),
    ("math/twice.h", "#ifndef T_H\n#define T_H\n#include <cuda_fp16.h>\n#include \"math/all.h\"\n"
     "#define TIMES (KIND)\nstatic __device__ float twice(float x) { return TIMES * x; }\n#endif\n"),
    ("list.inc", "ITEM(1) ITEM(2)\n"),
)  # fmt: skip
WITH_HEADERS = """\
#define KIND 2
#if KIND == 2
#include "math/all.h"
#endif
#include <math/all.h>
#define ITEM(n) + n
static __device__ int sum() { return 0
#include "list.inc"
    ; }
#undef ITEM
#define ITEM(n) * n
static __device__ uint32_t prod() { return 1
#include "list.inc"
    ; }
extern "C" __global__ void scale(float* out, const float* x, __half half, int rows, long long d) {
    out[0] = twice(x[0]) + sum() + prod() + float(half);
}
"""
