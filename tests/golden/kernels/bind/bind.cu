// Entries with their template arguments: constants, types and branches as the kernel has them.

// case: template arguments constants and types are filled in
// with: entries = ["kernel<__half, 128>", "ns::kernel<float, 2 * 32, 3, true>", "other", "kernel", "kernel<a, b, c, d, e>", "kernel<float, {d} / 2>", "kernel<float, ]>"]
#define WARP 32
constexpr int ROWS = 2;
constexpr int ITEMS = ROWS * WARP;
typedef float real;
using Vec = float4;
template <typename T, unsigned THREADS, int PER = 16 / sizeof(T), bool CHECK = false>
__global__ void kernel(const T *in, real *out, int n)
{
    using Local = Vec;
    constexpr int PACK = sizeof(Local) / sizeof(T);
    __shared__ T tile[ITEMS][PACK + 1];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int STEP = PER * 2;
    if constexpr (CHECK)
        if (i >= n) return;
    Local v = reinterpret_cast<const Local *>(in)[i];
    float w[STEP];
    for (int k = 0; k < PACK; k++)
        out[i * PACK + k] = static_cast<T>(helper<T, PACK>(v.x, sizeof(v))) + ROWS;
}
// want: -- kernel<__half, 128>
// want: with T = __half, THREADS = 128, PER = 16 / sizeof(__half), CHECK = false
// want: __global__ void kernel(const __half *in, float *out, int n)
// want: {
// want:     __shared__ __half tile[64][9];
// want:     const int i = blockIdx.x * 128u + threadIdx.x;
// want:     float4 v = ((const float4 *)in)[i];
// want:     float w[16];
// want:     for (int k = 0; k < 8; k++)
// want:         out[i * 8 + k] = (__half)helper<__half, 8>(v.x, 16) + 2;
// want: }
// want: -- ns::kernel<float, 2 * 32, 3, true>
// want: with T = float, THREADS = 2 * 32, PER = 3, CHECK = true
// want: __global__ void kernel(const float *in, float *out, int n)
// want: {
// want:     __shared__ float tile[64][5];
// want:     const int i = blockIdx.x * 64u + threadIdx.x;
// want:     if (i >= n)
// want:         return;
// want:     float4 v = ((const float4 *)in)[i];
// want:     float w[6];
// want:     for (int k = 0; k < 4; k++)
// want:         out[i * 4 + k] = (float)helper<float, 4>(v.x, 16) + 2;
// want: }
// want: -- other
// want: the source has no kernel other; it has kernel
// want: -- kernel
// want: the kernel kernel takes 4 template arguments, and the entry kernel gives 0
// want: -- kernel<a, b, c, d, e>
// want: the kernel kernel takes 4 template arguments, and the entry kernel<a, b, c, d, e> gives 5
// want: -- kernel<float, {d} / 2>
// want: the entry kernel<float, {d} / 2> computes with a size; a size alone, or a fixed argument, is needed
// want: -- kernel<float, ]>
// want: kernel could not be bound to its template arguments: `]` is not understood as an expression

// case: the reason why a kernel was not read is passed on
// with: entries = ["k"]
__global__ void k()
{
    int x = ;
}
// want: line 3: k could not be read, it stumbles here: `=`

// case: overloads with different templates are distinguished
// with: entries = ["k<float>", "k<float, 7>"]
template <typename T> __global__ void k(T *p) { p[0] = 1; }
template <typename T, int N> __global__ void k(T *p) { p[0] = N; }
// want: -- k<float>
// want: with T = float
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1;
// want: }
// want: -- k<float, 7>
// want: with T = float, N = 7
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 7;
// want: }

// case: names of the function hide the file
// with: entries = ["k"]
constexpr int N = 4;
__global__ void k(float *p, int M) { for (int N = 0; N < M; N++) p[N] = 1; p[N] = 2; }
// want: __global__ void k(float *p, int M)
// want: {
// want:     for (int N = 0; N < M; N++)
// want:         p[N] = 1;
// want:     p[4] = 2;
// want: }

// case: shared memory of the file is declared in the kernel that uses it
// with: entries = ["k"]
extern __shared__ float pool[];
__global__ void k(float *p) { p[0] = pool[0]; }
// want: __global__ void k(float *p)
// want: {
// want:     extern __shared__ float pool[];
// want:     p[0] = pool[0];
// want: }

// case: a type may be asked for
// with: entries = ["k<float>", "k<half>"]
template <typename T> __global__ void k(T *p)
{
    if constexpr (std::is_same<T, float>::value) p[0] = 1; else p[0] = 2;
    if constexpr (std::is_same_v<T, __half>) p[1] = 1; else p[1] = 2;
}
// want: -- k<float>
// want: with T = float
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1;
// want:     p[1] = 2;
// want: }
// want: -- k<half>
// want: with T = __half
// want: __global__ void k(__half *p)
// want: {
// want:     p[0] = 2;
// want:     p[1] = 1;
// want: }

// case: a template argument may be a function
// with: entries = ["k<float, twice<float>>"]
template <typename T> __device__ T twice(const T &x) { return x + x; }
template <typename T, T (*F)(const T &)> __device__ T both(T x, T y) { return F(x) * F(y); }
template <typename T, T (*F)(const T &)>
__global__ void k(T *p) { p[0] = F(p[1]) + both<T, F>(p[2], p[3]); }
// want: with T = float, F = twice<float>
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = twice<float>(p[1]) + both<float, twice<float>>(p[2], p[3]);
// want: }

// case: a local type of a library is written out
// with: entries = ["k<8>"]
template <int N> __global__ void k(float *p)
{
    typedef cub::BlockReduce<float, N> BlockReduce;
    __shared__ typename BlockReduce::TempStorage temp;
    p[0] = BlockReduce(temp).Sum(p[1]);
    float x[N];
    int count = sizeof(x) / sizeof(x[0]);
}
// want: with N = 8
// want: __global__ void k(float *p)
// want: {
// want:     __shared__ typename cub::BlockReduce<float, 8>::TempStorage temp;
// want:     p[0] = cub::BlockReduce<float, 8>(temp).Sum(p[1]);
// want:     float x[8];
// want:     int count = 8;
// want: }

// case: enumerators as template arguments
// with: entries = ["k<FAST>"]
enum Mode { SLOW, FAST = 3 };
template <Mode mode> __global__ void k(int *p) { if (mode > 2) p[0] = (int)mode; }
// want: with mode = FAST
// want: __global__ void k(int *p)
// want: {
// want:     p[0] = 3;
// want: }

// case: enumerators as template arguments (2)
// with: entries = ["k<FAST>"]
typedef enum Mode { SLOW = 1, MEDIUM, FAST } Mode;
template <Mode mode> __global__ void k(int *p) { if (mode > 2) p[0] = (int)mode; }
// want: with mode = FAST
// want: __global__ void k(int *p)
// want: {
// want:     p[0] = 3;
// want: }

// case: enumerators as template arguments (3)
// with: entries = ["k<of::Mode::FAST>"]
namespace of { enum class Mode : int { SLOW = 1 << 1, FAST }; } using of::Mode;
template <Mode mode> __global__ void k(int *p) { if (mode > 2) p[0] = (int)mode; }
// want: with mode = Mode::FAST
// want: __global__ void k(int *p)
// want: {
// want:     p[0] = 3;
// want: }

// case: what is written for some arguments goes before the template
// with: entries = ["k<int>", "k<float>", "k<float, 4>", "k<float, 8>", "k<__half>", "k<__half, 8>"]
template <typename T, int N = 4> __global__ void k(T *p) { p[0] = N; }
template <> __global__ void k<float>(float *p) { p[0] = 1.0f; }
template <> __global__ void k<__half, 2 + 6>(__half *p) { p[0] = 2.0f; }
// want: -- k<int>
// want: with T = int, N = 4
// want: __global__ void k(int *p)
// want: {
// want:     p[0] = 4;
// want: }
// want: -- k<float>
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1.0f;
// want: }
// want: -- k<float, 4>
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1.0f;
// want: }
// want: -- k<float, 8>
// want: with T = float, N = 8
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 8;
// want: }
// want: -- k<__half>
// want: with T = __half, N = 4
// want: __global__ void k(__half *p)
// want: {
// want:     p[0] = 4;
// want: }
// want: -- k<__half, 8>
// want: __global__ void k(__half *p)
// want: {
// want:     p[0] = 2.0f;
// want: }

// case: what is written for arguments of a declared template
// with: entries = ["k<float>", "k<int>"]
template <typename T, int N = 4> __global__ void k(T *p) ;
template <> __global__ void k<float>(float *p) { p[0] = 1.0f; }
template <> __global__ void k<__half, 2 + 6>(__half *p) { p[0] = 2.0f; }
// want: -- k<float>
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1.0f;
// want: }
// want: -- k<int>
// want: 2 kernels are called k, and the entry k<int> does not say which one

// case: a switch that a template argument decides
// with: entries = ["k<1>", "k<2>", "k<3>", "k<7>"]
template <int MODE> __global__ void k(int *p) {
  switch (MODE) {
    case 1:
    case 2: p[0] = 12; break;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0;
  }
}
// want: -- k<1>
// want: with MODE = 1
// want: __global__ void k(int *p)
// want: {
// want:     {
// want:         p[0] = 12;
// want:     }
// want: }
// want: -- k<2>
// want: with MODE = 2
// want: __global__ void k(int *p)
// want: {
// want:     {
// want:         p[0] = 12;
// want:     }
// want: }
// want: -- k<3>
// want: with MODE = 3
// want: __global__ void k(int *p)
// want: {
// want:     {
// want:         {
// want:             p[0] = 3;
// want:             if (p[1])
// want:                 return;
// want:             for (int i = 0; i < 2; ++i) {
// want:                 if (p[i])
// want:                     break;
// want:             }
// want:         }
// want:     }
// want: }
// want: -- k<7>
// want: with MODE = 7
// want: __global__ void k(int *p)
// want: {
// want:     {
// want:         p[0] = 0;
// want:     }
// want: }

// case: a switch that stays text
// with: entries = ["k<3>"]
template <int MODE> __global__ void k(int *p) {
  switch (MODE) {
    case 1:
    case 2: p[0] = 12;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0;
  }
}
// want: with MODE = 3
// want: __global__ void k(int *p)
// want: {
// want:     switch ((3)) {
// want:       case 1:
// want:       case 2: p[0] = 12;
// want:       case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
// want:       default: p[0] = 0;
// want:     }
// want: }

// case: a switch that stays text (2)
// with: entries = ["k<3>"]
template <int MODE> __global__ void k(int *p) {
  switch (MODE) {
    case 1:
    case 2: if (p[1]) break; p[0] = 12; break;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0;
  }
}
// want: with MODE = 3
// want: __global__ void k(int *p)
// want: {
// want:     switch ((3)) {
// want:       case 1:
// want:       case 2: if (p[1]) break; p[0] = 12; break;
// want:       case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
// want:       default: p[0] = 0;
// want:     }
// want: }

// case: a switch that stays text (3)
// with: entries = ["k<3>"]
template <int MODE> __global__ void k(int *p) {
  switch (p[0]) {
    case 1:
    case 2: p[0] = 12; break;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0;
  }
}
// want: with MODE = 3
// want: __global__ void k(int *p)
// want: {
// want:     switch (p[0]) {
// want:       case 1:
// want:       case 2: p[0] = 12; break;
// want:       case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
// want:       default: p[0] = 0;
// want:     }
// want: }

// case: a switch that stays text (4)
// with: entries = ["k<3>"]
template <int MODE> __global__ void k(int *p) {
  switch (MODE) {
    case 1:
    case 2: p[0] = 12; break;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0; case 4: p[0] = 4;
  }
}
// want: with MODE = 3
// want: __global__ void k(int *p)
// want: {
// want:     switch ((3)) {
// want:       case 1:
// want:       case 2: p[0] = 12; break;
// want:       case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
// want:       default: p[0] = 0; case 4: p[0] = 4;
// want:     }
// want: }

// case: a constant that asks for one of several types
// with: entries = ["k<float>", "k<int>", "k<double>"]
template <typename T, typename... Ts> inline constexpr bool is_any = (std::is_same_v<T, Ts> || ...);
template <typename T> __global__ void k(T *p) {
  if constexpr (is_any<T, float, int>) { p[0] = 1; } else { p[0] = 2; }
}
// want: -- k<float>
// want: with T = float
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = 1;
// want: }
// want: -- k<int>
// want: with T = int
// want: __global__ void k(int *p)
// want: {
// want:     p[0] = 1;
// want: }
// want: -- k<double>
// want: with T = double
// want: __global__ void k(double *p)
// want: {
// want:     p[0] = 2;
// want: }

// case: a constant that asks for something else is not understood
// with: entries = ["k<float>"]
template <typename T, typename... Ts> inline constexpr bool is_any = (std::is_same_v<T, Ts> && ...);
template <typename T> __global__ void k(T *p) { if constexpr (is_any<T, float, int>) { p[0] = 1; } }
// want: with T = float
// want: __global__ void k(float *p)
// want: {
// want:     if constexpr (is_any<float, float, int>)
// want:         p[0] = 1;
// want: }

// case: types with products in their arguments and members behind them
// with: entries = ["k<float, 2>"]
template <typename T, int N> struct Wide { using one = T; T all[N]; };
template <typename T, int N> __global__ void k(T *p) {
  using Pack = Wide<T, 2 * N>;
  typedef typename Wide<T, N * N>::one One;
  p[0] = (One)sizeof(Pack);
}
// want: with T = float, N = 2
// want: __global__ void k(float *p)
// want: {
// want:     p[0] = (Wide<float, 2 * 2>::one)sizeof(Wide<float, 2 * 2>);
// want: }
