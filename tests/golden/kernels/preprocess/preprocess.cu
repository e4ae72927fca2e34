// Macros, conditions and headers, as the preprocessor leaves them.

// case: macros are expanded in place
#define N 4
int a[N];
// want: int a[4];

// case: macros are expanded in place (2)
#define N (M + 1)
#define M 2
N
// want: (2 + 1)

// case: macros are expanded in place (3)
#define MAX(a, b) ((a) > (b) ? (a) : (b))
MAX(x, f(y, z))
// want: ((x) > (f(y, z)) ? (x) : (f(y, z)))

// case: macros are expanded in place (4)
#include <climits>
INT_MAX
// want: 2147483647
// want: include: <climits>

// case: macros are expanded in place (5)
#include <cfloat>
-FLT_MAX
// want: -3.402823466e+38F
// want: include: <cfloat>

// case: macros are expanded in place (6)
#include <cstdint>
UINT32_C(7) << 20 | INT64_C(1)
// want: 7U << 20 | 1LL
// want: include: <cstdint>

// case: macros are expanded in place (7)
#include <math.h>
M_PI + INFINITY
// want: 3.14159265358979323846 + INFINITY
// want: include: <math.h>

// case: macros are expanded in place (8)
INT_MAX
// want: INT_MAX

// case: macros are expanded in place (9)
#define FLT_MAX 1
#include <float.h>
FLT_MAX
// want: 1
// want: include: <float.h>

// case: macros are expanded in place (10)
#define F(x) x
F
// want: F

// case: macros are expanded in place (11)
#define F() 7
F()
// want: 7

// case: macros are expanded in place (12)
#define X X + 1
X
// want: X + 1

// case: macros are expanded in place (13)
#define F(x) F(x + 1)
F(2)
// want: F(2 + 1)

// case: macros are expanded in place (14)
#define CAT(a, b) a##b
CAT(x, 1)
// want: x1

// case: macros are expanded in place (15)
#define STR(a) #a
STR(x + 1)
// want: "x + 1"

// case: macros are expanded in place (16)
#define V(f, ...) f(__VA_ARGS__)
V(g, 1, 2)
// want: g(1, 2)

// case: macros are expanded in place (17)
#define N 4
#undef N
N
// want: N

// case: macros are expanded in place (18)
#define A \
 1 + \
 2
A
// want: 1 + 2

// case: macros are expanded in place (19)
#define N 4
"N" // N
// want: "N"

// case: conditions are decided
// with: defines = [["GIVEN", "7"]]
#define N 4
#if 1
yes
#endif
// want: yes

// case: conditions are decided (2)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if 0
yes
#endif
// want:

// case: conditions are decided (3)
// with: defines = [["GIVEN", "7"]]
#define N 4
#ifdef N
yes
#endif
// want: yes

// case: conditions are decided (4)
// with: defines = [["GIVEN", "7"]]
#define N 4
#ifndef N
yes
#endif
// want:

// case: conditions are decided (5)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if defined(N) && N == 4
yes
#endif
// want: yes

// case: conditions are decided (6)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if defined N && !defined(M)
yes
#endif
// want: yes

// case: conditions are decided (7)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if N > 2 ? 0 : 1
yes
#endif
// want:

// case: conditions are decided (8)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if UNKNOWN
yes
#endif
// want:

// case: conditions are decided (9)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
yes
#endif
// want: yes
// want: decided: line 2: #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 holds: __CUDA_ARCH__ is 900

// case: conditions are decided (10)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if (N << 1) == 8 && -7 / 2 == -3
yes
#endif
// want: yes

// case: conditions are decided (11)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if GIVEN == 7
yes
#endif
// want: yes

// case: conditions are decided (12)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if 0
#elif N == 4
yes
#endif
// want: yes

// case: conditions are decided (13)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if 1
#elif 1
yes
#endif
// want:

// case: conditions are decided (14)
// with: defines = [["GIVEN", "7"]]
#define N 4
#if 0
#if 1
#else
yes
#endif
#endif
// want:

// case: lines stay where they were
#define F(x) (x)

a = F(1 +
  2);
b;
// want: a = (1 + 2)
// want: ;
// want: b;

// case: includes of what is compiled are collected
#include <a.h>
#ifdef __HIPCC__
#include "b.h"
#else
#include<c.h>
#endif
#pragma once
#pragma unroll
// want: #pragma unroll
// want: include: <a.h>
// want: include: <c.h>
// want: decided: line 2: #ifdef __HIPCC__ does not hold: __HIPCC__ is not defined

// case: trouble is said with its line
#if 1 / 0
#endif
#else
#error no
#if 1
// want:
// want: problem: line 1: #if 1 / 0 was taken as false: it divides by zero
// want: problem: line 3: this #else has no #if
// want: problem: line 4: the file says #error no
// want: problem: line 5: this #if has no #endif

// case: what cannot be expanded is refused
#define F(a, b) a
F(1)
// want: refused: the macro F takes 2 arguments and got 1

// case: what cannot be expanded is refused (2)
#define F(a) a
F(1
// want: refused: the call of the macro F has no end

// case: what cannot be expanded is refused (3)
#define CAT(a, b) a##b
CAT(+, x)
// want: refused: ## in the macro CAT does not make one word

// case: the compilers version is what every supported one says
#if __CUDACC_VER_MAJOR__ >= 12 && defined(__CUDACC_VER_MINOR__)
new
#else
old
#endif
// want: new
// want: decided: line 1: #if __CUDACC_VER_MAJOR__ >= 12 && defined(__CUDACC_VER_MINOR__) holds: __CUDACC_VER_MAJOR__ is 13, __CUDACC_VER_MINOR__ is 0

// case: what versions do not agree on is never taken as false
#if __CUDACC_VER_MAJOR__ >= 13
a
#endif
// want: refused: #if __CUDACC_VER_MAJOR__ >= 13 depends on which version of the compiler it is

// case: what versions do not agree on is never taken as false (2)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
a
#endif
// want: refused: #if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205 depends on which version of the compiler it is

// case: what versions do not agree on is never taken as false (3)
#if CUDART_VERSION >= 12000
a
#endif
// want: refused: #if CUDART_VERSION >= 12000 depends on what a header defines

// case: what versions do not agree on is never taken as false (4)
#ifdef CUDA_VERSION
a
#endif
// want: refused: #ifdef CUDA_VERSION depends on what a header defines

// case: a version that is given decides
// with: defines = [["__CUDACC_VER_MAJOR__", "13"]]
#if __CUDACC_VER_MAJOR__ >= 13
new
#endif
// want: new

// case: the users own headers are put in place
// with: headers = { "a.cuh" = '''
// with: #pragma once
// with: #include "deep/b.cuh"
// with: #define TWICE(x) (2 * x)
// with: int a;
// with: ''', "deep/b.cuh" = '''
// with: #ifndef B
// with: #define B
// with: #include <cuda_fp16.h>
// with:
// with:
// with: int b;
// with: #endif
// with: ''', "../a.cuh" = '''
// with: #include <a.cuh>
// with: ''' }
#include "a.cuh"
#include "../a.cuh"
#include <deep/b.cuh>
int c = TWICE(3);
// want: int b;int a;
// want:
// want:
// want: int c = (2 * 3);
// want: include: <cuda_fp16.h>

// case: a header under a condition is read where it holds
// with: headers = { "a.cuh" = "int a;", "b.cuh" = "int b;" }
#if 0
#include "a.cuh"
#else
#include "b.cuh"
#endif
// want: int b;

// case: headers that cannot be followed are refused
// with: headers = { "a.cuh" = '''
// with: #include "a.cuh"
// with: ''' }
#if 1
#include "a.cuh"
#endif
// want: refused: "a.cuh" is included by what it includes

// case: headers that cannot be followed are refused (2)
// with: headers = { "a.cuh" = '''
// with: #if 1
// with: int a;
// with: ''' }
#if 1
#include "a.cuh"
#endif
// want: refused: an #if in "a.cuh" does not end there

// case: headers that cannot be followed are refused (3)
// with: headers = { "a.cuh" = '''
// with: #endif
// with: #if 1
// with: ''' }
#if 1
#include "a.cuh"
#endif
// want: refused: an #if in "a.cuh" does not end there

// case: headers that cannot be followed are refused (4)
// with: headers = { "a.cuh" = '''
// with: #if CUDART_VERSION >= 12000
// with: #endif
// with: ''' }
#if 1
#include "a.cuh"
#endif
// want: refused: #if CUDART_VERSION >= 12000 depends on what a header defines

// case: the state decides and not a table
#if __CUDA_ARCH__ >= 900
hopper
#elif __CUDA_ARCH__ >= 800
ampere
#endif
#ifdef __CUDACC_RTC__
rtc
#endif
// want: hopper
// want:
// want:
// want:
// want:
// want: rtc
// want: decided: line 1: #if __CUDA_ARCH__ >= 900 holds: __CUDA_ARCH__ is 900
// want: decided: line 6: #ifdef __CUDACC_RTC__ holds: __CUDACC_RTC__ is 1

// case: the state decides and not a table (2)
// with: compiler = { __CUDACC__ = "1", __CUDACC_RTC__ = "1", __CUDA_ARCH__ = "800", __cplusplus = "201703L", __CUDACC_VER_MAJOR__ = "13", __CUDACC_VER_MINOR__ = "0", __CUDACC_VER_BUILD__ = "0" }
#if __CUDA_ARCH__ >= 900
hopper
#elif __CUDA_ARCH__ >= 800
ampere
#endif
#ifdef __CUDACC_RTC__
rtc
#endif
// want: ampere
// want:
// want:
// want: rtc
// want: decided: line 1: #if __CUDA_ARCH__ >= 900 does not hold: __CUDA_ARCH__ is 800
// want: decided: line 3: #if __CUDA_ARCH__ >= 800 holds: __CUDA_ARCH__ is 800
// want: decided: line 6: #ifdef __CUDACC_RTC__ holds: __CUDACC_RTC__ is 1

// case: the state decides and not a table (3)
// with: compiler = { __CUDA_ARCH__ = "800" }
#if __CUDA_ARCH__ >= 900
hopper
#elif __CUDA_ARCH__ >= 800
ampere
#endif
#ifdef __CUDACC_RTC__
rtc
#endif
// want: ampere
// want: decided: line 1: #if __CUDA_ARCH__ >= 900 does not hold: __CUDA_ARCH__ is 800
// want: decided: line 3: #if __CUDA_ARCH__ >= 800 holds: __CUDA_ARCH__ is 800
// want: decided: line 6: #ifdef __CUDACC_RTC__ does not hold: __CUDACC_RTC__ is not defined

// case: the state decides and not a table (4)
// with: compiler = { __CUDA_ARCH__ = "750" }
__CUDA_ARCH__
// want: 750

// case: conditions on own macros are told where the compiler is in them
#define NEW (__CUDA_ARCH__ > 800)
#define OLD 3
#if NEW
#endif
#if OLD
#endif
// want:
// want: decided: line 3: #if NEW holds: __CUDA_ARCH__ is 900

// case: what the user defines is the users
// with: defines = [["__CUDA_ARCH__", "700"], ["__CUDACC_RTC__", "1"]]
#if __CUDA_ARCH__ >= 900
hopper
#elif __CUDA_ARCH__ >= 800
ampere
#endif
#ifdef __CUDACC_RTC__
rtc
#endif
// want: rtc

// case: macros that are no numbers are only defined
// with: compiler = { M_PI = "3.14" }
#ifndef __forceinline__
#define __forceinline__ inline
#endif
__forceinline__ M_PI F(1)
// want: inline 3.14 F(1)
