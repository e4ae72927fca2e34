#include <cstdio>
#include <cuda_runtime.h>
int device_here = 0;
extern "C" {
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = device_here, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
    return *value = what == cudaDevAttrComputeCapabilityMajor ? 9 - device : 0, cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void*, void** args) {
    printf("tuned %u %u %d\n", how->gridDim.x, how->blockDim.x, *(int*)args[3]);
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void** args, size_t, cudaStream_t) {
    printf("original %u %u %d\n", grid.x, block.x, *(int*)args[3]);
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void** args, size_t, cudaStream_t) {
    return cudaLaunchKernel(0, grid, block, args, 0, 0);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) { return *kernel = 0, cudaSuccess; }
static dim3 kept_grid, kept_block;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t, void*) {
    return kept_grid = grid, kept_block = block, 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t*, void*) {
    return *grid = kept_grid, *block = kept_block, cudaSuccess;
}
void** __cudaRegisterFatBinary(void*) { return 0; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {}
char __cudaInitModule(void**) { return 0; }
}
