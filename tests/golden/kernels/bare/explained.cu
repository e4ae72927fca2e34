// Kernels before there is a problem, in words: read or not and why, and what a draft would say.

// case: what is read is told with what a draft fills in and leaves
__global__ void scale_rows(float* out, const float* in, const float* gain, float by, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i] * by;
}
// want: scale_rows: read
// want: scale_rows: independent tasks, one for each row below rows. A block of 256 threads works on each.
// want:   line 3: for each i from 0 to d, shared by the team
// want: out: written as float at [row * d + i], neighbours side by side
// want: in: read as float at [row * d + i], neighbours side by side
// want: gain: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   out, in, gain do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: out: float32*, output, shape [rows, d]
// want: filled in: in_: float32*, input, shape [rows, d]
// want: filled in: gain: float32*, input, shape [d]
// want: filled in: by: float32
// want: filled in: d: int32, value d
// want: filled in: launch: grid [rows], block [256]
// want: filled in: sizes: rows, d
// want: filled in: independent: rows
// want: left: by, value: the number callers pass, without quotes
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: all obstacles are told at once each with its line and what to change
        __global__ void odd(float* out, int n) {
            int i = threadIdx.x;
            printf("here");
            if (i < n) out[i] = elsewhere(out[i]);
            asm volatile("bar.sync 0;");
        }
        
// want: odd: not read
// want: obstacle: line 3: printf is called, which prints, once for each thread that comes to it (to change: leave it out)
// want: obstacle: line 4: elsewhere is called, whose text is not in the file (to change: put its text into the file)
// want: obstacle: line 5: 'asm volatile("bar.sync 0;");' is not understood, and it contains assembly: bar.sync (to change: use the intrinsic for it, or a helper whose instructions only compute)
// want: filled in: out: float32*, inout
// want: filled in: n: int32, value n
// want: filled in: sizes: n
// want: left: out, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: what the text leaves open is told with what the body hides
        struct Shape { int rows, d; };
        __global__ void of(float* out, Shape shape, Texel by) { out[threadIdx.x] = elsewhere(shape.d); }
        
// want: of: not read
// want: obstacle: line 2: the type of shape, Shape, is not known (to change: pass its fields as arguments of their own)
// want: obstacle: line 2: the type of by, Texel, is not known (to change: say it, as in --define Texel=float)
// want: obstacle: line 2: elsewhere is called, whose text is not in the file (to change: put its text into the file)
// want: filled in: out: float32*, output
// want: left: out, shape: one entry per axis, over the sizes, outermost first
// want: left: shape, type: Shape in the kernel; an element type such as "float32"
// want: left: shape, value: an integer, or an expression over the sizes
// want: left: by, type: Texel in the kernel; an element type such as "float32"
// want: left: by, value: an integer, or an expression over the sizes
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: not said: the type of shape, Shape, is not known
// want: not said: the type of by, Texel, is not known

// case: a template asks for its arguments as a launch has them
    template <typename T, int N> __global__ void copy(T* out, const T* in) {
        out[blockIdx.x * N + threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    }
    void run() { copy<float, 64><<<1, 64>>>(a, b); copy<half, 64><<<1, 64>>>(c, d); }
    
// want: copy<FILL>: not read
// want: obstacle: line 1: its template arguments are not known: say them, as in --entry 'copy<float, 64>'; line 4 launches it so
// want: filled in: out: output
// want: filled in: in_: input
// want: filled in: launch: grid [1], block [64]
// want: left: kernel, entry: template arguments for T, N; line 4 launches copy<float, 64>
// want: left: out, type: T* in the kernel; an element type such as "float32*"
// want: left: out, shape: one entry per axis, over the sizes, outermost first
// want: left: in_, type: const T* in the kernel; an element type such as "float32*"
// want: left: in_, shape: one entry per axis, over the sizes, outermost first
// want: left: accuracy, rtol: without quotes, e.g. 0.0001 for float32, 0.004 for float16
// want: left: accuracy, atol: without quotes, e.g. 1e-5 for float32, 0.002 for float16
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: not said: its template arguments are not known: say them, as in --entry 'copy<float, 64>'; line 4 launches it so

// case: a template asks for its arguments as a launch has them (2)
// with: entry = "copy<float, 64>"
    template <typename T, int N> __global__ void copy(T* out, const T* in) {
        out[blockIdx.x * N + threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    }
    void run() { copy<float, 64><<<1, 64>>>(a, b); copy<half, 64><<<1, 64>>>(c, d); }
    
// want: copy<float, 64>: read
// want: copy: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 2: for each thread from 0 to 64, over all threads
// want: out: written as float at [thread], neighbours side by side
// want: in: read as float at [thread], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   out, in do not overlap: the contract's word (no alias)
// want: Read with blocks of 64 threads, which the file says; every integer argument is taken for a size.
// want: filled in: out: float32*, output, shape [rows, 64]
// want: filled in: in_: float32*, input, shape [rows, 64]
// want: filled in: launch: grid [1], block [64]
// want: filled in: sizes: rows
// want: filled in: independent: rows
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

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

// case: every kernel of a file
__global__ void scale_rows(float* out, const float* in, const float* gain, float by, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i] * by;
}

__global__ void other(float* out, const float* in, const float* gain, float by, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i] * by;
}
// want: scale_rows: read
// want: scale_rows: independent tasks, one for each row below rows. A block of 256 threads works on each.
// want:   line 3: for each i from 0 to d, shared by the team
// want: out: written as float at [row * d + i], neighbours side by side
// want: in: read as float at [row * d + i], neighbours side by side
// want: gain: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   out, in, gain do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: out: float32*, output, shape [rows, d]
// want: filled in: in_: float32*, input, shape [rows, d]
// want: filled in: gain: float32*, input, shape [d]
// want: filled in: by: float32
// want: filled in: d: int32, value d
// want: filled in: launch: grid [rows], block [256]
// want: filled in: sizes: rows, d
// want: filled in: independent: rows
// want: left: by, value: the number callers pass, without quotes
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: other: read
// want: other: independent tasks, one for each row below rows. A block of 256 threads works on each.
// want:   line 8: for each i from 0 to d, shared by the team
// want: out: written as float at [row * d + i], neighbours side by side
// want: in: read as float at [row * d + i], neighbours side by side
// want: gain: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   out, in, gain do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: out: float32*, output, shape [rows, d]
// want: filled in: in_: float32*, input, shape [rows, d]
// want: filled in: gain: float32*, input, shape [d]
// want: filled in: by: float32
// want: filled in: d: int32, value d
// want: filled in: launch: grid [rows], block [256]
// want: filled in: sizes: rows, d
// want: filled in: independent: rows
// want: left: by, value: the number callers pass, without quotes
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: what is assumed of the compiler is told where the text asks for it
__global__ void scale_rows(float* out, const float* in, const float* gain, float by, int d) {
#if __CUDA_ARCH__ >= 800
    by *= 2.0f;
#endif
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i] * by;
}
// want: scale_rows: read
// want: scale_rows: independent tasks, one for each row below rows. A block of 256 threads works on each.
// want:   line 3: the whole team knows by = by * 2.0f
// want:   line 6: for each i from 0 to d, shared by the team
// want: out: written as float at [row * d + i], neighbours side by side
// want: in: read as float at [row * d + i], neighbours side by side
// want: gain: read as float at [i], neighbours side by side
// want: Note: line 2: #if __CUDA_ARCH__ >= 800 holds: __CUDA_ARCH__ is 900 (assumed, since no compiler was asked: NVRTC, C++17, sm_90).
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   out, in, gain do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: What compilers define is assumed to be that of NVRTC, C++17, sm_90: no compiler was asked; a run asks the one that builds it, which `compiler` in [kernel] may name.
// want: filled in: out: float32*, output, shape [rows, d]
// want: filled in: in_: float32*, input, shape [rows, d]
// want: filled in: gain: float32*, input, shape [d]
// want: filled in: by: float32
// want: filled in: d: int32, value d
// want: filled in: launch: grid [rows], block [256]
// want: filled in: sizes: rows, d
// want: filled in: independent: rows
// want: left: by, value: the number callers pass, without quotes
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: a kernel of a header is found with the launch of the file
// with: headers = { "impl.cuh" = '''
// with: #pragma once
// with: #include "types.cuh"
// with: namespace own {
// with: template <typename T, int N> __global__ void twice(T *y, const T *x, size_int n)
// with: {
// with:     const size_int i = blockIdx.x * blockDim.x + threadIdx.x;
// with:     if (i < n) y[i] = x[i] * N;
// with: }
// with: }
// with: ''', "types.cuh" = '''
// with: #pragma once
// with: typedef int size_int;
// with: ''' }
#include "impl.cuh"
#include "types.cuh"

void run(float *y, const float *x, int n) { own::twice<float, 2><<<(n + 127) / 128, 128>>>(y, x, n); }
// want: own::twice<float, 2>: read
// want: twice: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 1: for each i from 0 to n, over all threads
// want: y: written as float at [i], neighbours side by side
// want: x: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 1)
// want:   y, x do not overlap: the contract's word (no alias)
// want: Read with blocks of 128 threads, which the file says; every integer argument is taken for a size.
// want: filled in: y: float32*, output, shape [n]
// want: filled in: x: float32*, input, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [ceildiv(n, 128)], block [128]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: a file with kernels of its own is asked for these
// with: headers = { "impl.cuh" = '''
// with: #pragma once
// with: #include "types.cuh"
// with: namespace own {
// with: template <typename T, int N> __global__ void twice(T *y, const T *x, size_int n)
// with: {
// with:     const size_int i = blockIdx.x * blockDim.x + threadIdx.x;
// with:     if (i < n) y[i] = x[i] * N;
// with: }
// with: }
// with: ''', "types.cuh" = '''
// with: #pragma once
// with: typedef int size_int;
// with: ''' }
#include "impl.cuh"
#include "types.cuh"

void run(float *y, const float *x, int n) { own::twice<float, 2><<<(n + 127) / 128, 128>>>(y, x, n); }
extern "C" __global__ void mine(float *y) { y[threadIdx.x] = 0.0f; }
// want: mine: read
// want: mine: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 5: for each thread from 0 to 256, over all threads
// want: y: written as float at [thread], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 5)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: y: float32*, output, shape [256]
// want: filled in: launch: grid [1], block [256]
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: without any kernel the fault is the files
// with: headers = { "types.cuh" = '''
// with: #pragma once
// with: typedef int size_int;
// with: ''' }
#include "impl.cuh"
#include "types.cuh"

void run(float *y, const float *x, int n) { own::twice<float, 2><<<(n + 127) / 128, 128>>>(y, x, n); }
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it has none; impl.cuh, which it includes, is not found
// want: hint: if the kernel is in impl.cuh, put that beside the file, or give it by itself

// case: an instantiation is the entry
template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
template __global__ void add<float>(float *, const float *, int);
// want: add<float>: read
// want: add: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 4: for each i from 0 to n, over all threads
// want: y: updated as float at [i], neighbours side by side
// want: x: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   y, x do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: y: float32*, inout, shape [n]
// want: filled in: x: float32*, input, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [ceildiv(n, 256)], block [256]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: an instantiation is the entry (2)
template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
template void add<float>(float *, const float *, int);
// want: add<float>: read
// want: add: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 4: for each i from 0 to n, over all threads
// want: y: updated as float at [i], neighbours side by side
// want: x: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   y, x do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: y: float32*, inout, shape [n]
// want: filled in: x: float32*, input, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [ceildiv(n, 256)], block [256]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: an instantiation is the entry (3)
template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
template __global__ void __launch_bounds__(256) add< float >(float *);
// want: add<float>: read
// want: add: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 4: for each i from 0 to n, over all threads
// want: y: updated as float at [i], neighbours side by side
// want: x: read as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   y, x do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: y: float32*, inout, shape [n]
// want: filled in: x: float32*, input, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [ceildiv(n, 256)], block [256]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: several instantiations are told and not chosen from
template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
template __global__ void add<float>(float *, const float *, int);
template __global__ void add<double>(double *, const double *, int);
// want: add<FILL>: not read
// want: obstacle: line 1: its template arguments are not known: say them, as in --entry 'add<float>'; line 6 instantiates it so
// want: filled in: y: inout
// want: filled in: x: input
// want: filled in: n: int32, value n
// want: filled in: sizes: n
// want: left: kernel, entry: template arguments for T
// want: left: y, type: T* in the kernel; an element type such as "float32*"
// want: left: y, shape: one entry per axis, over the sizes, outermost first
// want: left: x, type: const T* in the kernel; an element type such as "float32*"
// want: left: x, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: accuracy, rtol: without quotes, e.g. 0.0001 for float32, 0.004 for float16
// want: left: accuracy, atol: without quotes, e.g. 1e-5 for float32, 0.002 for float16
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: not said: its template arguments are not known: say them, as in --entry 'add<float>'; line 6 instantiates it so

// case: what is in a comment instantiates nothing
template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
// template __global__ void add<float>(float *, const float *, int);
// want: add<FILL>: not read
// want: obstacle: line 1: its template arguments are not known: say them, as in --entry 'add<float>'
// want: filled in: y: inout
// want: filled in: x: input
// want: filled in: n: int32, value n
// want: filled in: sizes: n
// want: left: kernel, entry: template arguments for T
// want: left: y, type: T* in the kernel; an element type such as "float32*"
// want: left: y, shape: one entry per axis, over the sizes, outermost first
// want: left: x, type: const T* in the kernel; an element type such as "float32*"
// want: left: x, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: accuracy, rtol: without quotes, e.g. 0.0001 for float32, 0.004 for float16
// want: left: accuracy, atol: without quotes, e.g. 1e-5 for float32, 0.002 for float16
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
// want: not said: its template arguments are not known: say them, as in --entry 'add<float>'

// case: a block that the text counts on is found
__global__ void f(float* u, int w, int h) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; if (x < w && y < h) u[y * w + x] *= 2.0f; }
// want: f: read
// want: f: independent tasks, one for each y below h. Its elements are independent: any thread may take any of them.
// want:   line 1: for each x from 0 to w, over all threads
// want: u: updated as float at [y * w + x], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 1)
// want: Read with blocks of 16 x 16 threads, which the file says; every integer argument is taken for a size.
// want: filled in: u: float32*, inout, shape [h, w]
// want: filled in: w: int32, value w
// want: filled in: h: int32, value h
// want: filled in: launch: grid [ceildiv(w, 16), ceildiv(h, 16)], block [16, 16]
// want: filled in: sizes: w, h
// want: filled in: independent: h
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: where types follow a size of the entry a number is asked for
// with: entry = "f<{n}>"
template <int N> struct some { float at[N]; __device__ float &operator[](int i) { return at[i]; } };
template <int N> __global__ void f(float *x) { some<N> *all = reinterpret_cast<some<N> *>(x); some<N> v = all[blockIdx.x * blockDim.x + threadIdx.x]; for (int k = 0; k < N; ++k) v[k] = v[k] + 1.0f; all[blockIdx.x * blockDim.x + threadIdx.x] = v; }
// want: f<{n}>: not read
// want: obstacle: types depend on {n}: say a number in its place to have it read, as in --entry 'f<128>'
// want: filled in: x: float32*, inout
// want: filled in: sizes: n
// want: left: x, shape: one entry per axis, over the sizes, outermost first
// want: left: launch, grid: blocks, up to three expressions, e.g. ["ceildiv(n, 256)"]
// want: left: launch, block: threads in a block, e.g. ["256"]
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original

// case: places that are kept inside tell how far an array goes
__global__ void blur(float *dst, const float *src, int width, int height) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; if (x >= width || y >= height) return; float sum = 0.0f; for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx)  sum += src[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)]; dst[y * width + x] = sum; }
// want: blur: read
// want: blur: independent tasks, one for each y below height. Its elements are independent: any thread may take any of them.
// want:   line 1: for each x from 0 to width, over all threads; inside it a loop of 3 turns (line 1) and a loop of 3 turns (line 1)
// want: dst: written as float at [y * width + x], neighbours side by side
// want: src: read as float at [min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)], neighbours at no constant distance
// want: It calls max, min.
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 1)
// want:   dst, src do not overlap: the contract's word (no alias)
// want: Read with blocks of 16 x 16 threads, which the file says; every integer argument is taken for a size.
// want: filled in: dst: float32*, output, shape [height, width]
// want: filled in: src: float32*, input, shape [height, width]
// want: filled in: width: int32, value width
// want: filled in: height: int32, value height
// want: filled in: launch: grid [ceildiv(width, 16), ceildiv(height, 16)], block [16, 16]
// want: filled in: sizes: width, height
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
