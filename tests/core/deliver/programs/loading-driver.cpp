
#include "silu_and_mul.h"
#include <cstdio>
#include <cstdlib>
static int left(const char* name) {
    static int faults = std::atoi(std::getenv("FAULTS"));
    return std::getenv(name) != nullptr && faults-- > 0 ? std::atoi(std::getenv(name)) : 0;
}
static const char* name_of(const void* symbol) { return symbol != nullptr ? "kernel" : "no kernel"; }

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
    *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    static CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    std::puts(own == CU_STREAM_CAPTURE_MODE_RELAXED ? "relaxed" : "as before");
    return CUDA_SUCCESS;
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    std::puts("load");
    *library = (CUlibrary)image;
    return (CUresult)left("LOADING");
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char*) {
    *kernel = (CUkernel)library;
    return (CUresult)left("LOOKING");
}
CUresult cuLibraryUnload(CUlibrary) { std::puts("unload"); return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
    std::printf("launch %u of a %s\n", config->gridDimX, name_of(function));
    return CUDA_SUCCESS;
}
}
