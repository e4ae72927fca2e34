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
