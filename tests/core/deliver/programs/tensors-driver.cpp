
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
static int depth = 0;
static bool initialised = false;  // nobody has used the device yet
static long long place(CUdeviceptr data) { return static_cast<long long>(data); }
extern "C" {
CUresult cuInit(unsigned) { initialised = true; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuCtxGetDevice(CUdevice* device) {
    *device = 3;
    return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { *context = nullptr; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { ++depth; std::puts("push"); return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext*) { --depth; std::puts("pop"); return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { *text = "a driver's words"; return CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream) { return CUDA_ERROR_UNKNOWN; }
CUresult cuMemsetD16Async(CUdeviceptr, unsigned short, size_t, CUstream) { return CUDA_ERROR_UNKNOWN; }
CUresult cuMemsetD32Async(CUdeviceptr data, unsigned value, size_t count, CUstream) {
    std::printf("fill %lld with %#x, %zu times\n", place(data), value, count);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD2D32Async(CUdeviceptr data, size_t pitch, unsigned value, size_t, size_t count, CUstream) {
    std::printf("fill %lld with %#x every %zu, %zu times\n", place(data), value, pitch, count);
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    static CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    std::puts(own == CU_STREAM_CAPTURE_MODE_RELAXED ? "relaxed" : "as before");
    return CUDA_SUCCESS;
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    const char* const target = std::strstr(static_cast<const char*>(code), "\n.target ");
    if (std::memcmp(code, "\x7f" "ELF", 4) == 0) std::puts("load");
    else if (target != nullptr) std::printf("load PTX of %.5s\n", target + 9);
    else std::puts("load what is no code");
    *library = reinterpret_cast<CUlibrary>(const_cast<void*>(code));
    return std::getenv("NO_CODE") == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    std::printf("kernel %s\n", name);
    *kernel = reinterpret_cast<CUkernel>(library);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    const int own = std::getenv("CAPABILITY") == nullptr ? 90 : std::atoi(std::getenv("CAPABILITY"));
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? own / 10 : own % 10;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void** args, void**) {
    std::printf("launch %u on stream %lld, by %g, d %d\n", config->gridDimX,
                reinterpret_cast<long long>(config->hStream), *static_cast<float*>(args[4]),
                *static_cast<int*>(args[6]));
    return CUDA_SUCCESS;
}
}
