struct Shape {
    dim3 grid, block, cluster;
    long long shared;
    bool clustered, cooperative, pdl;
};

constexpr int most_devices = 64;

// A kernel, and the dynamic shared memory that it may have by now on each device.
struct Kernel {
    const void* handle;
    std::atomic<long long> allowed[most_devices];
};

inline int current_device() {
    int device = -1;
    return cudaGetDevice(&device) == cudaSuccess && device < most_devices ? device : -1;
}

// The compute capability of the current device, as 90; 0 where nobody says.
inline int architecture(int device) {
    static std::atomic<int> known[most_devices];
    if (device < 0) return 0;
    int found = known[device].load(std::memory_order_relaxed);
    if (found == 0) {
        int major = 0, minor = 0;
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) return 0;
        if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) return 0;
        known[device].store(found = 10 * major + minor, std::memory_order_relaxed);
    }
    return found;
}

inline cudaError_t start(Kernel& kernel, const Shape& shape, void** args, int device, cudaStream_t stream) {
    cudaLaunchAttribute attributes[3] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = static_cast<size_t>(shape.shared);
    config.stream = stream;
    config.attrs = attributes;
    // Static and dynamic shared memory together may need the permission to pass 48 KiB. It is only raised, so
    // that a launch on another thread keeps what it needs.
    if (shape.shared > 0 && (device < 0 || kernel.allowed[device].load() < shape.shared)) {
        static std::mutex permission;
        const std::lock_guard<std::mutex> alone(permission);
        if (device < 0 || kernel.allowed[device].load() < shape.shared) {
            const cudaError_t error = cudaFuncSetAttribute(
                kernel.handle, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared));
            if (error != cudaSuccess) return error;
            if (device >= 0) kernel.allowed[device].store(shape.shared);
        }
    }
    if (shape.clustered) {
        if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 8) {
            const cudaError_t error =
                cudaFuncSetAttribute(kernel.handle, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
            if (error != cudaSuccess) return error;
        }
        cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = shape.cluster.x;
        attribute.val.clusterDim.y = shape.cluster.y;
        attribute.val.clusterDim.z = shape.cluster.z;
    }
    if (shape.cooperative) {
        cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
    }
    if (shape.pdl) {
        cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    return cudaLaunchKernelExC(&config, kernel.handle, args);
}
