#include <cuda_fp16.h>
#define BLOCK 77
namespace mine {
template <typename T, int UNUSED>
__global__ void scale(T* out, const T* x, float alpha, int rows, long long twice) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * (twice / 2); i += gridDim.x * blockDim.x)
        out[i] = T(alpha * float(x[i]));
}
// each element times alpha
template <typename T>
void run(T* out, T* x, int rows, int d, cudaStream_t stream) {
    if (rows > 0)
        scale<T, 3><<<rows, BLOCK - 13, 0, stream>>>(out, x, 2.0f, rows, 2 * d);
    else
        scale<T, 4><<<1, 64>>>(out, x, 2.0f, rows, 2 * d);
}
}  // namespace mine
void both(float* a, __half* b, int rows, int d) {
    mine::run(a, a + rows * d, rows, d, 0);
    mine::run(b, b + rows * d, rows, d, 0);
}
