struct dim3 {
    unsigned x, y, z;
    dim3(long long x_ = 1, long long y_ = 1, long long z_ = 1)
        : x(static_cast<unsigned>(x_)), y(static_cast<unsigned>(y_)), z(static_cast<unsigned>(z_)) {}
};

struct Shape {
    dim3 grid, block, cluster;
    long long shared;
    bool clustered, cooperative, pdl;
};

constexpr int most_devices = 64;

// A kernel, and the dynamic shared memory that it may have by now on each device.
struct Kernel {
    CUkernel handle;
    std::atomic<long long> allowed[most_devices];
};

inline int current_device() {
    CUdevice device = -1;
    return driver::cuCtxGetDevice(&device) == CUDA_SUCCESS && device < most_devices ? device : -1;
}

// The compute capability of the current device, as 90; 0 where nobody says.
inline int architecture(int device) {
    static std::atomic<int> known[most_devices];
    if (device < 0) return 0;
    int found = known[device].load(std::memory_order_relaxed);
    if (found == 0) {
        int major = 0, minor = 0;
        const CUresult first =
            driver::cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
        if (first != CUDA_SUCCESS) return 0;
        const CUresult second =
            driver::cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
        if (second != CUDA_SUCCESS) return 0;
        known[device].store(found = 10 * major + minor, std::memory_order_relaxed);
    }
    return found;
}

inline CUresult start(Kernel& kernel, const Shape& shape, void** args, int device, CUstream stream) {
    CUlaunchAttribute attributes[3] = {};
    CUlaunchConfig config = {};
    config.gridDimX = shape.grid.x;
    config.gridDimY = shape.grid.y;
    config.gridDimZ = shape.grid.z;
    config.blockDimX = shape.block.x;
    config.blockDimY = shape.block.y;
    config.blockDimZ = shape.block.z;
    config.sharedMemBytes = static_cast<unsigned>(shape.shared);
    config.hStream = stream;
    config.attrs = attributes;
    // Static and dynamic shared memory together may need the permission to pass 48 KiB. It is only raised, so
    // that a launch on another thread keeps what it needs.
    if (shape.shared > 0 && kernel.allowed[device].load() < shape.shared) {
        static std::mutex permission;
        const std::lock_guard<std::mutex> alone(permission);
        if (kernel.allowed[device].load() < shape.shared) {
            const CUresult error = driver::cuKernelSetAttribute(
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shape.shared), kernel.handle,
                device);
            if (error != CUDA_SUCCESS) return error;
            kernel.allowed[device].store(shape.shared);
        }
    }
    if (shape.clustered) {
        if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 8) {
            const CUresult error = driver::cuKernelSetAttribute(
                CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, kernel.handle, device);
            if (error != CUDA_SUCCESS) return error;
        }
        CUlaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = shape.cluster.x;
        attribute.value.clusterDim.y = shape.cluster.y;
        attribute.value.clusterDim.z = shape.cluster.z;
    }
    if (shape.cooperative) {
        CUlaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
    }
    if (shape.pdl) {
        CUlaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    return driver::cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel.handle), args, nullptr);
}

// Whether it lies in the code that a driver cannot load it; all else may pass.
inline bool is_final(CUresult error) {
    return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_INVALID_IMAGE ||
           error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           error == CUDA_ERROR_NOT_FOUND;
}

// The kernel of that symbol: 1 where it is loaded, 0 where it may be later, -1 where it never will be. It may be
// loaded while a stream is captured: nothing is queued for it. PTX may have a cap on registers.
inline int load_kernel(Kernel& kernel, const void* image, const char* symbol, int registers = 0) {
    CUjit_option cap = CU_JIT_MAX_REGISTERS;
    void* most = reinterpret_cast<void*>(static_cast<uintptr_t>(registers));
    const unsigned options = registers > 0 ? 1 : 0;
    CUlibrary library = nullptr;
    if (driver::cuInit(0) != CUDA_SUCCESS) return 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool exchanged = driver::cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
    CUresult error = driver::cuLibraryLoadData(&library, image, &cap, &most, options, nullptr, nullptr, 0);
    if (error == CUDA_SUCCESS) {
        error = driver::cuLibraryGetKernel(&kernel.handle, library, symbol);
        if (error != CUDA_SUCCESS) driver::cuLibraryUnload(library);
    }
    if (exchanged) driver::cuThreadExchangeStreamCaptureMode(&mode);
    return error == CUDA_SUCCESS ? 1 : is_final(error) ? -1 : 0;
}
