// What a file is made of: functions with their heads, and what stands around them.

// case: a type of the file is known in casts
template <typename T> __device__ T f(T x, T y) { return (T)-x * y; }
// want: line 1: template [TemplateParameter(T type)] <T> f(Parameter(<T> x), Parameter(<T> y))
// want:   line 1: Return(Binary(* Cast(<T> Unary(- x)) y))

// case: a type of the file is known in casts (2)
template <typename T> __device__ T f(T x, T y) { return (T)&x; }
// want: line 1: template [TemplateParameter(T type)] <T> f(Parameter(<T> x), Parameter(<T> y))
// want:   line 1: Return(Cast(<T> Unary(& x)))

// case: a type of the file is known in casts (3)
template <typename T> __device__ T f(T x, T y) { return (float)(T)x; }
// want: line 1: template [TemplateParameter(T type)] <T> f(Parameter(<T> x), Parameter(<T> y))
// want:   line 1: Return(Cast(<float> Cast(<T> x)))

// case: a type of the file is known in casts (4)
template <typename T> __device__ T f(T x, T y) { return (x)-y; }
// want: line 1: template [TemplateParameter(T type)] <T> f(Parameter(<T> x), Parameter(<T> y))
// want:   line 1: Return(Binary(- x y))

// case: a type of the file is known in casts (5)
template <typename T> __device__ T f(T x, T y) { return T(x); }
// want: line 1: template [TemplateParameter(T type)] <T> f(Parameter(<T> x), Parameter(<T> y))
// want:   line 1: Return(Cast(<T> x))

// case: an address may stand on the right
__device__ float f(const float *p, int i) { return *(i + p); }
// want: line 1: <float> f(Parameter(<const float *> p), Parameter(<int> i))
// want:   line 1: Return(Index(p i))

// case: a lambda is a function that is given what it captures
__device__ int f(int a) { int n = a; auto add = [&](int q) { n += q; return n; }; return add(3); }
// want: line 1: <auto> lambda_add_1(Parameter(<int> q), Parameter(<int &> n))
// want:   line 1: Evaluate(Assign(+= n q))
// want:   line 1: Return(n)
// want: line 1: <int> f(Parameter(<int> a))
// want:   line 1: Declare(<int> n a)
// want:   line 1: Return(Call(lambda_add_1 [3 n]))

// case: a function has its head its text and its line
// comment
template <typename T, int N = 4, class U = float>
__global__ void __launch_bounds__(128, 2) kernel(const T *__restrict__ x, T *const y, int (&r)[4],
                                                 const U &u, float z[], unsigned)
{
}
// want: line 3: template [TemplateParameter(T type) TemplateParameter(N value <int> 4) TemplateParameter(U type default=float)] kernel <void> kernel(Parameter(<const T *__restrict__> x), Parameter(<T *> y), Parameter(<int *> r), Parameter(<const U &> u), Parameter(<float *> z), Parameter(<unsigned int> ))
// want:   said of it: ['comment']

// case: what stands around the functions
#include <cuda_fp16.h>
#include "own.h"
using V = float4;
typedef const __half *P;
typedef unsigned int u32;
constexpr int N = 4, M = N * 2;
static const float scale = 1.5f;
__constant__ float table[4];
enum { A = 3, B };
struct Pair { float x, y; };
extern __shared__ float pool[];
__device__ int later(int);
int host(int n) { return n; }
__device__ int later(int x) { return x; }
// want: line 14: <int> later(Parameter(<int> x))
// want:   line 14: Return(x)
// want: includes: <cuda_fp16.h>
// want: includes: "own.h"
// want: preamble: using V = float4;
// want: preamble: typedef const __half *P;
// want: preamble: typedef unsigned int u32;
// want: preamble: constexpr int N = 4, M = N * 2;
// want: preamble: static const float scale = 1.5f;
// want: preamble: __constant__ float table[4];
// want: preamble: enum { A = 3, B };
// want: preamble: struct Pair { float x, y; };
// want: shared: Declare(<float> pool storage=dynamic shared)
// want: records: Pair
// want: constant N: 4
// want: constant M: Cast(<int> Binary(* N 2))
// want: constant scale: 1.5f=1.5
// want: constant A: 3
// want: constant B: 4
// want: alias V: float4
// want: alias u32: unsigned int

// case: namespaces of the file are taken away
namespace own { namespace { __device__ float f(float x) { return x; } }
__global__ void k(float *p) { p[0] = own::f(1.0f) + std::max(1, 2); } }
// want: line 1: <float> f(Parameter(<float> x))
// want:   line 1: Return(x)
// want: line 2: kernel <void> k(Parameter(<float *> p))
// want:   line 2: Evaluate(Assign(= Index(p 0) Binary(+ Call(f [1.0f=1.0]) Call(std::max [1 2]))))
// want: spellings: [own::f f]
// want: spellings: [own::k k]

// case: static functions of a struct are read
struct Op { static __device__ float apply(float a) { return -a; } };
// want: line 1: <float> Op::apply(Parameter(<float> a))
// want:   line 1: Return(Unary(- a))
// want: preamble: struct Op { static __device__ float apply(float a) { return -a; } };
// want: records: Op

// case: one broken function does not hide the others
__device__ int one() { return 1; }
__global__ void two() {
  int x = ;
}
__device__ int three() { return 3; }
// want: line 1: <int> one()
// want:   line 1: Return(1)
// want: line 5: <int> three()
// want:   line 5: Return(3)
// want: unread: line 3: two could not be read, it stumbles here: `=`

// case: lines are those of the file
#define TWICE(x) \
    (x) + \
    (x)
__device__ int f(int a)
{
    a = TWICE(
  a);
    return a;
}
// want: line 4: <int> f(Parameter(<int> a))
// want:   line 6: Evaluate(Assign(= a Binary(+ a a)))
// want:   line 8: Return(a)

// case: operators are left to the compiler
__device__ float2 operator+(float2 a, float2 b) { return a; }
// want: preamble: __device__ float2 operator+(float2 a, float2 b) { return a; }

// case: a struct may have operators
template <class T> struct alignas(16) Pack {
    __device__ T &operator[](int i) { return payload[i]; }
    __device__ const T &operator[](int i) const { return payload[i]; }
    __device__ T operator()(T a) const { return a; }
    __device__ bool operator<(const Pack &b) const { return payload[0] < b.payload[0]; }
    T payload[4];
};
// want: preamble: template <class T> struct alignas(16) Pack { __device__ T &operator[](int i) { return payload[i]; } __device__ const T &operator[](int i) const { return payload[i]; } __device__ T operator()(T a) const { return a; } __device__ bool operator<(const Pack &b) const { return payload[0] < b.payload[0]; } T payload[4]; };
// want: records: Pack

// case: broken host code does not hide the kernels
namespace own {
template <typename T> __global__ void k(T *p) { p[0] = 1; }
struct S { int a; };
}
STRANGE(x, #x { "a" ...
__device__ int f(int a)
{
    return a;
}
// want: line 2: template [TemplateParameter(T type)] kernel <void> k(Parameter(<T *> p))
// want:   line 2: Evaluate(Assign(= Index(p 0) 1))
// want: line 6: <int> f(Parameter(<int> a))
// want:   line 8: Return(a)
// want: preamble: struct S { int a; };
// want: records: S
// want: spellings: [own::k k]
// want: spellings: [own::S S]
// want: unread: line 5: this could not be read: `STRANGE(x, #x { "a" ... __device__ int f(int a) { return a; `

// case: what only names a kernel is left out
template <typename T> __global__ void k(T *p, int n);
template <typename T> __device__ T twice(T x);
template <typename T> __global__ void k(T *p, int n) { p[n] = T(1); }
template __global__ void k<float>(float *p, int n);
// want: line 3: template [TemplateParameter(T type)] kernel <void> k(Parameter(<T *> p), Parameter(<int> n))
// want:   line 3: Evaluate(Assign(= Index(p n) Cast(<T> 1)))
// want: preamble: template <typename T> __device__ T twice(T x);
// want: prototypes: k
// want: prototypes: twice

// case: a function has the comments before it
int a;
// adds
__device__ void f() {}
// want: line 3: <void> f()
// want:   said of it: ['adds']
// want: preamble: int a;
