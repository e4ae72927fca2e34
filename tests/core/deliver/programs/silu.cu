#include <cuda_fp16.h>
namespace act {
template <typename T, int D>
__global__ void silu(T* out, const T* x, int rows, long long d) { if (d == D) out[0] = x[0]; }
}
