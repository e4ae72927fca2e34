
#include "silu_and_mul.h"
#include <cstdio>
#include <cstdlib>
static int left(const char* name) {
    static int faults = std::atoi(std::getenv("FAULTS"));
    return std::getenv(name) != nullptr && faults-- > 0 ? std::atoi(std::getenv(name)) : 0;
}
static const char* name_of(const void* symbol) { return symbol != nullptr ? "kernel" : "no kernel"; }

extern "C" {
cudaError_t cudaGetDevice(int* device) { *device = 0; return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
    *value = what == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    static cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
    const cudaStreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    std::puts(own == cudaStreamCaptureModeRelaxed ? "relaxed" : "as before");
    return cudaSuccess;
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
    std::puts("load");
    *library = (cudaLibrary_t)image;
    return (cudaError_t)left("LOADING");
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
    *kernel = (cudaKernel_t)library;
    return (cudaError_t)left("LOOKING");
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { std::puts("unload"); return cudaSuccess; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void**) {
    std::printf("launch %u of a %s\n", config->gridDim.x, name_of(function));
    return cudaSuccess;
}
}
