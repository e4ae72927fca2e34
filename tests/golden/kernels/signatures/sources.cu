// Kernels, their parameters and launches, as the source has them.

// case: cuda template
namespace ops { namespace {
template <typename T, int VEC = 4>
__global__ void __launch_bounds__(256, 2)
act(T* __restrict__ out, const T *__restrict__ in, const int64_t d) { out[d] = in[d]; }
} }
// want: line 3: ops::act: name 'act', template_params ('T', 'VEC'), launch_bounds ('256', '2')
// want:   out: name 'out', type 'T*', base 'T', element None, vector 1, pointer True, const False, space None, restrict True, written True, read False
// want:   in: name 'in', type 'const T*', base 'T', element None, vector 1, pointer True, const True, space None, restrict True, written False, read True
// want:   d: name 'd', type 'const int64_t', base 'int64_t', element 'int64', vector 1, pointer False, const True, space None, restrict False, written False, read True

// case: one kernel whatever stands around it
extern "C" __global__ void k(float* p) {}
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (2)
extern "C" {
__global__ void k(float* p) {}
}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (3)
static __global__ __launch_bounds__(128) void k(float* p) {}
// want: line 1: k: name 'k', template_params (), launch_bounds ('128',)
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (4)
__global__ void MY_BOUNDS(128) k(float* p) {}
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (5)
#define KERNEL __global__
KERNEL void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (6)
__global__ void k(float* p);
__global__ void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (7)
template __global__ void k<float>(float*);
__global__ void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (8)
#if 0
__global__ void old(int* x) {}
#endif
__global__ void k(float* p) {}
// want: line 4: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (9)
const char* s = "__global__ void s(int* x) {}";
__global__ void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (10)
auto s = R"x(__global__ void s(int* x) {})x";
__global__ void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (11)
#define MAKE(n) __global__ void n(int* x) {}
__global__ void k(float* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (12)
@@ $ ((( 
; __global__ void k(float* p) { $$ @ }
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: one kernel whatever stands around it (13)
__global__ void k(float* p) { if (
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: kernels under conditions keep their own bodies
#ifdef WIDE
__global__ void k(double* a) {
#else
__global__ void k(float* a) {
#endif
  a[0] = 1;
}
__global__ void after(int* b) { b[0] = 1; }
// want: line 2: k: name 'k', template_params (), definitions 2
// want:   a: name 'a', type 'double*', base 'double', element 'float64', vector 1, pointer True, const False, space None, restrict False, written True, read False
// want: line 8: after: name 'after', template_params ()
// want:   b: name 'b', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space None, restrict False, written True, read False

// case: a stub for old hardware is not the kernel
#if OLD
__global__ void k(int* p) {}
#else
__global__ void k(int* p) { *p = 1; }
#endif
// want: line 4: k: name 'k', template_params (), definitions 2
// want:   p: name 'p', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space None, restrict False, written True, read False

// case: a condition inside the header is reported
__global__ void k(int* p
#ifdef BIAS
, int* b
#else
, char* c
#endif
) {}
// want: line 1: k: name 'k', template_params (), conditional True
// want:   p: name 'p', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space None, restrict False, written False, read False
// want:   b: name 'b', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: parameter
__global__ void k(float const* const __restrict__ x) {}
// want: line 1: k: name 'k', template_params ()
// want:   x: name 'x', type 'const float*', base 'float', element 'float32', vector 1, pointer True, const True, space None, restrict True, written False, read False

// case: parameter (2)
__global__ void k(const float *x) {}
// want: line 1: k: name 'k', template_params ()
// want:   x: name 'x', type 'const float*', base 'float', element 'float32', vector 1, pointer True, const True, space None, restrict False, written False, read False

// case: parameter (3)
__global__ void k(float x[]) {}
// want: line 1: k: name 'k', template_params ()
// want:   x: name 'x', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: parameter (4)
__global__ void k(unsigned n) {}
// want: line 1: k: name 'k', template_params ()
// want:   n: name 'n', type 'unsigned', base 'unsigned', element 'uint32', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: parameter (5)
__global__ void k(long unsigned int n) {}
// want: line 1: k: name 'k', template_params ()
// want:   n: name 'n', type 'long unsigned int', base 'long unsigned int', element 'uint64', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: parameter (6)
__global__ void k(float** rows) {}
// want: line 1: k: name 'k', template_params ()
// want:   rows: name 'rows', type 'float**', base 'float', element None, vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: parameter (7)
__global__ void k(const at::Half* h) {}
// want: line 1: k: name 'k', template_params ()
// want:   h: name 'h', type 'const at::Half*', base 'at::Half', element 'float16', vector 1, pointer True, const True, space None, restrict False, written False, read False

// case: parameter (8)
__global__ void k(std::array<float*, 2> x) {}
// want: line 1: k: name 'k', template_params ()
// want:   x: name 'x', type 'std::array<float*,2>', base 'std::array<float*,2>', element None, vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: parameter (9)
__global__ void k(Params<T, 4> p) {}
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'Params<T,4>', base 'Params<T,4>', element None, vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: parameter (10)
__global__ void k(float* RESTRICT x = nullptr) {}
// want: line 1: k: name 'k', template_params ()
// want:   x: name 'x', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict True, written False, read False

// case: parameter (11)
__global__ void k(float*) {}
// want: line 1: k: name 'k', template_params ()
// want:   argument0: name 'argument0', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: parameter (12)
__global__ void k(unsigned int) {}
// want: line 1: k: name 'k', template_params ()
// want:   argument0: name 'argument0', type 'unsigned int', base 'unsigned int', element 'uint32', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: parameter (13)
__global__ void k(float* local) {}
// want: line 1: k: name 'k', template_params ()
// want:   local: name 'local', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: parameter (14)
__global__ void k(const __grid_constant__ int n) {}
// want: line 1: k: name 'k', template_params ()
// want:   n: name 'n', type 'const int', base 'int', element 'int32', vector 1, pointer False, const True, space None, restrict False, written False, read True

// case: a type with two meanings has none
using real = __half;
__global__ void k(real* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'real*', base 'real', element 'float16', vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: a template parameter hides a typedef
typedef float T;
template <typename T> __global__ void k(T* p) {}
// want: line 2: k: name 'k', template_params ('T',)
// want:   p: name 'p', type 'T*', base 'T', element None, vector 1, pointer True, const False, space None, restrict False, written False, read False

// case: dynamic shared memory
__global__ void k(int n) { extern __shared__ __align__(16) char smem[]; }
// want: line 1: k: name 'k', template_params (), dynamic_shared True
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: dynamic shared memory (2)
__global__ void k(int n) { __shared__ int s[4]; }
// want: line 1: k: name 'k', template_params ()
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: triple chevron
constexpr int kThreads = 256;
template <typename T> __global__ void k(T* p, int n) { p[n] = 1; }
void run(float* p, int rows, cudaStream_t stream) {
  dim3 grid((rows + kThreads - 1) / kThreads, 2);
  const dim3 block = dim3(kThreads);
  int calls = 0; calls++;
  k<float><<<grid, block, 64 * sizeof(float), stream>>>(p, rows);
}
// want: line 2: k: name 'k', template_params ('T',)
// want:   p: name 'p', type 'T*', base 'T', element None, vector 1, pointer True, const False, space None, restrict False, written True, read False
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 7: kernel 'k', template_args 'float', grid ('(rows + kThreads - 1) / kThreads', '2'), block ('kThreads',), shared '64 * sizeof(float)', arguments ('p', 'rows'), settled (('grid', '((rows + kThreads - 1) / kThreads, 2)'), ('block', 'dim3(kThreads)')), local ['block', 'calls', 'grid', 'p', 'rows', 'stream'], changed ['calls'], function 'run'

// case: the innermost declaration counts
__global__ void k(int n) {}
void run(int n) {
  int threads = 32;
  if (n > 8) { int threads = 64; k<<<n, threads>>>(n); }
  k<<<dim3(n), dim3(threads)>>>(n);
}
// want: line 1: k: name 'k', template_params ()
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 4: kernel 'k', template_args None, grid ('n',), block ('64',), shared None, arguments ('n',), settled (('threads', '64'),), local ['n', 'threads'], changed [], conditions ('n > 8',), function 'run'
// want: launch, line 5: kernel 'k', template_args None, grid ('n',), block ('32',), shared None, arguments ('n',), settled (('threads', '32'),), local ['n', 'threads'], changed [], function 'run'

// case: no kernel
void host() {}
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source

// case: no kernel (2)
// __global__ void k() {}
/* __kernel void k() {} */
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source

// case: only a declaration
__global__ void k(int* p);
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it only declares k
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source
