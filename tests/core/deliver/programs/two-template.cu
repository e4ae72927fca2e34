// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]
// VEC = [1, 2, 4]
// [default]
// BLOCK = 64
// VEC = 1
// [require]
// whole = "int % (8 * VEC) == 0"
// [workspace]
// part = { type = "float32*", shape = ["rows", "BLOCK"], init = 0.5, align = 16 }
// [[launch]]
// grid = ["rows", "ceildiv(int, BLOCK)"]
// block = ["BLOCK"]
// shared = "BLOCK * 1024 if BLOCK > 64 else 16"
// cluster = [1, 1]
// entry = "first"
// args = ["part", "x", "rows"]
// [[launch]]
// grid = ["min(rows, device.sms)"]
// block = ["BLOCK"]
// entry = "second"
// args = ["again", "part", "d", "x"]
// when = "rows % 8 != 7"
// cooperative = true
// pdl = true
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
extern __shared__ float scratch[];
__global__ void first(float* part, const float* x, int rows) { scratch[threadIdx.x] = x[0]; part[0] = VEC; }
__global__ void second(float* again, const float* part, long long d, const float* x)
{
    cudaGridDependencySynchronize();
}
