// Whether a problem lists the kernel's own arguments, as far as reading the source can tell.

// case: arguments as the kernel takes them
// each line
out: float32* output; x: float32*; n: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: no fault

// case: another order is reported with both
// each line
x: float32*; out: float32* output; n: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: the arguments of k are in another order: the kernel takes (out, x, n), the problem gives (x, out, n) (kernel.cu:1)

// case: another count
// each line
out: float32* output; x: float32* | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: k takes 3 arguments, 2 are given: the kernel takes (out, x, n), the problem gives (out, x) (kernel.cu:1)
out: float32* output; x: float32*; n: int32; m: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: k takes 3 arguments, 4 are given: the kernel takes (out, x, n), the problem gives (out, x, n, m) (kernel.cu:1)

// case: other names in the same places are fine
// each line
y: float32* output; input: float32*; count: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: no fault

// case: a scalar where the kernel has an array
// each line
out: float32* output; a: int32; n: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: argument 2 of k: x is an array in the kernel, a is a scalar in problem.toml (kernel.cu:1)

// case: an array where the kernel has a scalar
// each line
out: float32* output; x: float32*; lengths: int32* | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: argument 3 of k: n is a scalar in the kernel, lengths is an array in problem.toml (kernel.cu:1)

// case: every argument is looked at
// each line
a: int32; b: int32; c: float32* | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: argument 1 of k: out is an array in the kernel, a is a scalar in problem.toml (kernel.cu:1) | argument 2 of k: x is an array in the kernel, b is a scalar in problem.toml (kernel.cu:1) | argument 3 of k: n is a scalar in the kernel, c is an array in problem.toml (kernel.cu:1)

// case: element types
// each line
out: float32* output | __global__ void k(float* out) { out[0] = 0; }  // want: no fault
out: float64* output | __global__ void k(float* out) { out[0] = 0; }  // want: argument 1 of k: out is float32 in the kernel, out is float64 in problem.toml (kernel.cu:1)
out: int32* output | __global__ void k(float* out) { out[0] = 0; }  // want: argument 1 of k: out is float32 in the kernel, out is int32 in problem.toml (kernel.cu:1)
out: float16* output | __global__ void k(float* out) { out[0] = 0; }  // want: argument 1 of k: out is float32 in the kernel, out is float16 in problem.toml (kernel.cu:1)
out: float64* output | __global__ void k(double* out) { out[0] = 0; }  // want: no fault
out: int64* output | __global__ void k(double* out) { out[0] = 0; }  // want: argument 1 of k: out is float64 in the kernel, out is int64 in problem.toml (kernel.cu:1)
out: int32* output | __global__ void k(int* out) { out[0] = 0; }  // want: no fault
out: uint32* output | __global__ void k(int* out) { out[0] = 0; }  // want: no fault
out: int64* output | __global__ void k(int* out) { out[0] = 0; }  // want: argument 1 of k: out is int32 in the kernel, out is int64 in problem.toml (kernel.cu:1)
out: int64* output | __global__ void k(size_t* out) { out[0] = 0; }  // want: no fault
out: int32* output | __global__ void k(size_t* out) { out[0] = 0; }  // want: argument 1 of k: out is uint64 in the kernel, out is int32 in problem.toml (kernel.cu:1)
out: float16* output | __global__ void k(unsigned short* out) { out[0] = 0; }  // want: no fault
out: float16* output | __global__ void k(ushort* out) { out[0] = 0; }  // want: no fault
out: bfloat16* output | __global__ void k(short* out) { out[0] = 0; }  // want: no fault
out: float32* output | __global__ void k(ushort* out) { out[0] = 0; }  // want: argument 1 of k: out is uint16 in the kernel, out is float32 in problem.toml (kernel.cu:1)
out: float16* output | __global__ void k(half* out) { out[0] = 0; }  // want: no fault
out: int16* output | __global__ void k(half* out) { out[0] = 0; }  // want: no fault
out: float32* output | __global__ void k(half* out) { out[0] = 0; }  // want: argument 1 of k: out is float16 in the kernel, out is float32 in problem.toml (kernel.cu:1)
out: int8* output | __global__ void k(unsigned char* out) { out[0] = 0; }  // want: no fault
out: float8_e4m3* output | __global__ void k(char* out) { out[0] = 0; }  // want: no fault
out: float32* output | __global__ void k(float4* out) { out[0] = 0; }  // want: no fault
out: float16* output | __global__ void k(float4* out) { out[0] = 0; }  // want: no fault
out: bfloat16* output | __global__ void k(uint4* out) { out[0] = 0; }  // want: no fault
out: float32* output | __global__ void k(uint8_t* out) { out[0] = 0; }  // want: no fault
out: int4* output | __global__ void k(uint32_t* out) { out[0] = 0; }  // want: no fault
out: int16* output | __global__ void k(uint32_t* out) { out[0] = 0; }  // want: argument 1 of k: out is uint32 in the kernel, out is int16 in problem.toml (kernel.cu:1)
out: float32* output | __global__ void k(Mystery* out) { out[0] = 0; }  // want: no fault
out: float32* output | __global__ void k(void* out) { out[0] = 0; }  // want: no fault

// case: scalar types
// each line
out: float32* output; a: float32 | __global__ void k(float* out, float a) { out[0] = a; }  // want: no fault
out: float32* output; a: int32 | __global__ void k(float* out, long long a) { out[0] = a; }  // want: argument 2 of k: a is int64 in the kernel, a is int32 in problem.toml (kernel.cu:1)

// case: what is certain is still reported
// with: arguments = "out: float32* output; n: int32"
// with: entry = "ops::gated<float, f, true>"
namespace ops {
template <typename E, E (*GATE)(const E&), bool FIRST>
__global__ void gated(
    E* __restrict__ out,
    const E* __restrict__ halves,
    const int d) { out[0] = GATE(halves[d]); }
}
// want: gated takes 3 arguments, 2 are given: the kernel takes (out, halves, d), the problem gives (out, n) (kernel.cu:3)

// case: what is certain is still reported (2)
// with: arguments = "out: float32* output; x: float32*; d: float32*"
// with: entry = "ops::gated<float, f, true>"
namespace ops {
template <typename E, E (*GATE)(const E&), bool FIRST>
__global__ void gated(
    E* __restrict__ out,
    const E* __restrict__ halves,
    const int d) { out[0] = GATE(halves[d]); }
}
// want: argument 3 of gated: d is a scalar in the kernel, d is an array in problem.toml (kernel.cu:3)

// case: a null pointer is an integer of its size
// each line
out: float32* output; x: uint64; n: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: no fault

// case: a vector by value is not a number
// each line
out: float32* output; a: float32 | __global__ void k(float* out, float4 a) { out[0] = a.x; }  // want: argument 2 of k: a is float4 in the kernel, a scalar argument is a single number in problem.toml (kernel.cu:1)

// case: a typedef is followed
// with: arguments = "out: float16* output"
typedef unsigned short half_bits;
__global__ void k(half_bits* out) { out[0] = 0; }
// want: no fault

// case: a typedef is followed (2)
// with: arguments = "out: float32* output"
typedef unsigned short half_bits;
__global__ void k(half_bits* out) { out[0] = 0; }
// want: argument 1 of k: out is uint16 in the kernel, out is float32 in problem.toml (kernel.cu:2)

// case: a language without a reader is left alone
// with: arguments = "x: float32*"
// with: kernel = { language = "fake" }
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: every launch is compared with its own kernel
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: launches = [["first", "out", "n"], ["second", "x", "out"]]
__global__ void first(float* out, int n) { out[n] = 0; }
__global__ void second(float* out, const float* x) { out[0] = x[0]; }
// want: the arguments of second are in another order: the kernel takes (out, x), the problem gives (x, out) (kernel.cu:2)

// case: every launch is compared with its own kernel (2)
// with: arguments = "out: float32* output; x: float32*; n: int32"
__global__ void first(float* out, int n) { out[n] = 0; }
__global__ void second(float* out, const float* x) { out[0] = x[0]; }
// want: no fault
// want: entry: entry 'k' is nowhere in kernel.cu, which defines first, second

// case: the entry is a name expression
// with: arguments = "out: float32* output; n: int32"
// with: entry = "k<float>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: no fault

// case: the entry is a name expression (2)
// with: arguments = "n: int32; out: float32* output"
// with: entry = "k<float>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: the arguments of k are in another order: the kernel takes (out, n), the problem gives (n, out) (kernel.cu:1)

// case: the entry is a name expression (3)
// with: arguments = "out: float32* output; n: int32"
// with: entry = "k<float, 4>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: no fault

// case: the entry is a name expression (4)
// with: arguments = "n: int32; out: float32* output"
// with: entry = "k<float, 4>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: the arguments of k are in another order: the kernel takes (out, n), the problem gives (n, out) (kernel.cu:1)

// case: the entry is a name expression (5)
// with: arguments = "out: float32* output; n: int32"
// with: entry = " k "
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: no fault

// case: the entry is a name expression (6)
// with: arguments = "n: int32; out: float32* output"
// with: entry = " k "
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: the arguments of k are in another order: the kernel takes (out, n), the problem gives (n, out) (kernel.cu:1)

// case: the entry is a name expression (7)
// with: arguments = "out: float32* output; n: int32"
// with: entry = "::k"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: no fault

// case: the entry is a name expression (8)
// with: arguments = "n: int32; out: float32* output"
// with: entry = "::k"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: the arguments of k are in another order: the kernel takes (out, n), the problem gives (n, out) (kernel.cu:1)

// case: the entry is a name expression (9)
// with: arguments = "out: float32* output; n: int32"
// with: entry = "k<ns::Type>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: no fault

// case: the entry is a name expression (10)
// with: arguments = "n: int32; out: float32* output"
// with: entry = "k<ns::Type>"
template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }
// want: the arguments of k are in another order: the kernel takes (out, n), the problem gives (n, out) (kernel.cu:1)

// case: a name that two namespaces have
// with: arguments = "out: float32* output"
// with: entry = "a::k"
namespace a { __global__ void k(float* out) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: no fault

// case: a name that two namespaces have (2)
// with: arguments = "out: float32* output; n: int32"
// with: entry = "b::k"
namespace a { __global__ void k(float* out) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: no fault

// case: a name that two namespaces have (3)
// with: arguments = "out: float32* output; n: int32"
// with: entry = "a::k"
namespace a { __global__ void k(float* out) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: k takes 1 arguments, 2 are given: the kernel takes (out), the problem gives (out, n) (kernel.cu:1)

// case: a name that two namespaces have (4)
// with: arguments = "out: float32* output"
// with: entry = "b::k"
namespace a { __global__ void k(float* out) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: k takes 2 arguments, 1 are given: the kernel takes (out, n), the problem gives (out) (kernel.cu:2)

// case: a name that two namespaces have (5)
// with: arguments = "out: float32* output"
namespace a { __global__ void k(float* out) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: no fault

// case: a conditional kernel is not taken for its namesake
// with: arguments = "out: float32* output; n: int32; m: int32"
// with: entry = "a::k"
namespace a { __global__ void k(float* out
#ifdef X
, int y
#endif
) { out[0] = 0; } }
namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }
// want: no fault

// case: an entry that stands nowhere
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault
// want: entry: entry 'scale' is nowhere in kernel.cu, which defines k

// case: an entry that stands nowhere (2)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "ns::scale<float>"
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault
// want: entry: entry 'ns::scale<float>' is nowhere in kernel.cu, which defines k

// case: an entry that stands nowhere (3)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "K"
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault
// want: entry: entry 'K' is nowhere in kernel.cu, which defines k

// case: an entry that may stand somewhere
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
__global__ void scale(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that may stand somewhere (2)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
#define k scale
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that may stand somewhere (3)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
#include "scale.cuh"
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that may stand somewhere (4)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
#define PASTE(a, b) a##b
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that may stand somewhere (5)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
int no_kernel_at_all;
// want: no fault

// case: an entry that the build makes
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
// with: kernel = { flags = ["-Dk=scale"] }
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that the build makes (2)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
// with: kernel = { defines = { k = "scale" } }
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that the build makes (3)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale"
// with: kernel = { language = "fake" }
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: an entry that the build makes (4)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "scale_{d}"
__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<float, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (2)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<__half, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: argument 1 of k: out is float16 by the entry k<__half, 8>, out is float32 in problem.toml (kernel.cu:1)
// want: argument 2 of k: x is float16 by the entry k<__half, 8>, x is float32 in problem.toml (kernel.cu:1)

// case: arrays of a type that the entry says have elements as wide (3)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<double, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: argument 1 of k: out is float64 by the entry k<double, 8>, out is float32 in problem.toml (kernel.cu:1)
// want: argument 2 of k: x is float64 by the entry k<double, 8>, x is float32 in problem.toml (kernel.cu:1)

// case: arrays of a type that the entry says have elements as wide (4)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<int, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (5)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<unsigned char, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (6)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<own::pack, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (7)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<float4, 1>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (8)
// with: arguments = "out: float32* output; x: float32*; n: int32"
// with: entry = "k<{t}, 8>"
template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }
// want: no fault

// case: arrays of a type that the entry says have elements as wide (9)
// each line
out: float32* output; x: float32*; n: int32 | template <typename T, int N> __global__ void k(T* out, const T* x, int n) { out[n] = x[n]; }  // want: no fault

// case: types that only the compiler knows
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<__half>"
template <typename T> __global__ void k(T* out, T const* __restrict__ x, int n) {}
// want: no fault

// case: types that only the compiler knows (2)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<half, 8>"
template <class T, int N = 4> __global__ void k(T* const out, const T* x, int n) {}
// want: no fault

// case: types that only the compiler knows (3)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<__half*>"
template <typename P> __global__ void k(P out, P x, int n) {}
// want: no fault

// case: types that only the compiler knows (4)
// with: arguments = "out: float16* output; x: float16*; n: int32"
using Ptr = __half*;
__global__ void k(Ptr out, Ptr x, int n) {}
// want: no fault

// case: types that only the compiler knows (5)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<A>"
template <class T> __global__ void k(typename T::type* out, Vec<T, 8> const* x, int n) {}
// want: no fault

// case: types that only the compiler knows (6)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<__half>"
typedef double T;
template <class T> __global__ void k(T* out, T* x, int n) {}
// want: no fault

// case: types that only the compiler knows (7)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "k<A>"
template <class T> __global__ void k(T* out, std::enable_if_t<1, T> const* x, int n) {}
// want: no fault

// case: types that only the compiler knows (8)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "ops::gated<__half, ops::silu<__half>, true>"
namespace ops {
template <typename E, E (*GATE)(const E&), bool FIRST>
__global__ void gated(
    E* __restrict__ out,
    const E* __restrict__ halves,
    const int d) { out[0] = GATE(halves[d]); }
}
// want: no fault

// case: types that only the compiler knows (9)
// with: arguments = "out: float16* output; x: float16*; n: int32"
// with: entry = "gated<c10::Half, silu_kernel<c10::Half>, true>"
namespace ops {
template <typename E, E (*GATE)(const E&), bool FIRST>
__global__ void gated(
    E* __restrict__ out,
    const E* __restrict__ halves,
    const int d) { out[0] = GATE(halves[d]); }
}
// want: no fault

// case: what the preprocessor decides is left to the compiler
// with: arguments = "x: float32*; out: float32* output; n: int32; m: int32"
__global__ void k(float* out
#ifdef WIDE
, int n
#endif
) { out[0] = 0; }
// want: no fault

// case: what the preprocessor decides is left to the compiler (2)
// with: arguments = "x: float32*; out: float32* output; n: int32; m: int32"
#ifdef A
__global__ void k(int a) { }
#else
__global__ void k(int a, int b) { }
#endif
// want: no fault

// case: what the preprocessor decides is left to the compiler (3)
// with: arguments = "x: float32*; out: float32* output; n: int32; m: int32"
#define ARGS float* a
__global__ void other(ARGS) { a[0] = 0; }
// want: no fault
// want: entry: entry 'k' is nowhere in kernel.cu, which defines other

// case: what the preprocessor decides is left to the compiler (4)
// each line
x: float32*; out: float32* output; n: int32; m: int32 | int no_kernel_at_all;  // want: no fault
x: float32*; out: float32* output; n: int32; m: int32 | MAKE_KERNEL(k)  // want: no fault
