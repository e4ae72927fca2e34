#include <cstdio>
#include <vector>
// What a variant adds tells which one ran: nothing the original, the block the others.
static int check(long long rows, long long d, cudaError_t expected, float added) {
    const long long n = 0 < rows && rows < 10000 ? rows * d : 1;
    std::vector<float> x(n), out(n);
    for (long long i = 0; i < n; ++i) x[i] = float(i % 97);
    float *dx, *dout;
    cudaMalloc(&dx, n * 4);
    cudaMalloc(&dout, n * 4);
    cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice);
    const cudaError_t got = k2_scale_launch(dout, dx, 0.5f, rows, d, 0);
    cudaMemcpy(out.data(), dout, n * 4, cudaMemcpyDeviceToHost);
    if (got != expected) return printf("%lld %lld: error %d\n", rows, d, int(got)), 1;
    for (long long i = 0; got == cudaSuccess && i < n; ++i)
        if (out[i] != 2 * x[i] + 0.25f + added) return printf("%lld %lld: %f\n", rows, d, out[i]), 1;
    return 0;
}
int main() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
    return check(16, 256, cudaSuccess, 64) + check(16, 512, cudaSuccess, 128) + check(3, 8, cudaSuccess, 0)
        + check(5000, 8, cudaSuccess, 0) + check(0, 8, cudaErrorInvalidValue, 0)
        + check(1LL << 40, 8, cudaErrorInvalidValue, 0)
        + check(-9223372036854775807LL, 8, cudaErrorInvalidValue, 0);
}
