// The driver's functions, found when they are first called: what has them loads where there is no driver, and
// is linked with nothing. Without a driver each says so.
namespace driver {
inline void* found(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr ? dlsym(library, name) : nullptr;
}
#define TUNESMITH_TEXT(name) #name
#define TUNESMITH_DRIVER(name)                                                                         \
    template <class... Args>                                                                           \
    inline CUresult name(Args... args) {                                                               \
        static const auto function = reinterpret_cast<decltype(&::name)>(found(TUNESMITH_TEXT(name))); \
        return function != nullptr ? function(args...) : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;         \
    }
TUNESMITH_DRIVER(cuCtxGetCurrent)
TUNESMITH_DRIVER(cuCtxGetDevice)
TUNESMITH_DRIVER(cuCtxPopCurrent)
TUNESMITH_DRIVER(cuCtxPushCurrent)
TUNESMITH_DRIVER(cuCtxSetCurrent)
TUNESMITH_DRIVER(cuDeviceGet)
TUNESMITH_DRIVER(cuDeviceGetAttribute)
TUNESMITH_DRIVER(cuDevicePrimaryCtxRetain)
TUNESMITH_DRIVER(cuGetErrorString)
TUNESMITH_DRIVER(cuInit)
TUNESMITH_DRIVER(cuKernelSetAttribute)
TUNESMITH_DRIVER(cuLaunchKernelEx)
TUNESMITH_DRIVER(cuLibraryGetKernel)
TUNESMITH_DRIVER(cuLibraryLoadData)
TUNESMITH_DRIVER(cuLibraryUnload)
TUNESMITH_DRIVER(cuMemsetD16Async)
TUNESMITH_DRIVER(cuMemsetD2D32Async)
TUNESMITH_DRIVER(cuMemsetD32Async)
TUNESMITH_DRIVER(cuMemsetD8Async)
TUNESMITH_DRIVER(cuThreadExchangeStreamCaptureMode)
#undef TUNESMITH_DRIVER
#undef TUNESMITH_TEXT
}  // namespace driver
