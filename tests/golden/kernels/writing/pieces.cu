// What texts define, and where they may be parted.
// read: pieces

// case: what a text defines
#define CHUNK (LANES * 4)
#define OVER(x, y) ((x) / (y))
// want: defines CHUNK, OVER

// case: what a text defines (2)
__device__ __forceinline__ float twice(float x) { return 2 * x; }
// want: defines twice

// case: what a text defines (3)
template <typename W>
__device__ W fetch(const W *from) { return *from; }
// want: defines fetch

// case: what a text defines (4)
template <>
__device__ uint4 fetch<uint4>(const uint4 *from) { return *from; }
// want: defines fetch

// case: what a text defines (5)
template <int N> struct word_of;
template <> struct word_of<4> { typedef int type; };
// want: defines word_of, word_of

// case: what a text defines (6)
typedef float8 vec;
typedef struct __attribute__((packed)) { vec v; } unaligned;
// want: defines vec, unaligned

// case: what a text defines (7)
struct __align__(16) Pair { float a, b; };
// want: defines Pair

// case: what a text defines (8)
static constexpr int kRows = 4;
__constant__ float table[3] = {1, 2, 3};
// want: defines kRows, table

// case: what a text defines (9)
extern "C" __global__ void __launch_bounds__(LANES * 2) scale(float *x) { x[0] = 1; }
// want: defines scale

// case: what a text defines (10)
using word = unsigned int;
using namespace cub;
// want: defines word

// case: what a text defines (11)
namespace own { __device__ int one() { return 1; } }
// want: defines one

// case: what a text defines (12)
extern "C" { __device__ int one() { return 1; } }
// want: defines one

// case: what a text defines (13)
float sum_of(vec x)
{
#if VEC > 1
    return x.lo + x.hi;
#else
    return x;
#endif
}
// want: defines sum_of

// case: what a text defines (14)
__device__ float Pair::length() const { return a; }
// want: defines nothing

// case: pieces are parted where nothing is open
int a;

#if X
int b;

int c;
#endif

void f()
{
    one();

    two();
}
// want: defines a, b, c, f
// want: piece 1: int a;
// want: piece 2: #if X int b; int c; #endif
// want: piece 3: void f() { one(); two(); }
