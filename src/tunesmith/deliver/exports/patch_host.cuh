// The value where it lies within these bounds.
inline long long within(long long value, long long low, long long high, bool& undefined) {
    return value < low || value > high ? no_value(undefined) : value;
}
inline bool same_bits(const void* value, unsigned long long bits, size_t bytes) {
    return memcmp(value, &bits, bytes) == 0;
}
struct Shape {
    dim3 grid, block, cluster;
    long long shared;
    bool clustered, cooperative, pdl;
};
inline cudaError_t start(const void* kernel, const Shape& shape, void** args, cudaStream_t stream) {
    cudaLaunchAttribute attributes[3] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = static_cast<size_t>(shape.shared);
    config.stream = stream;
    config.attrs = attributes;
    // The permission to pass 48 KiB belongs to the kernel: nobody may change it between here and the launch.
    static std::mutex permission;
    std::unique_lock<std::mutex> alone(permission, std::defer_lock);
    if (shape.shared > 0) {
        alone.lock();
        const cudaError_t error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared));
        if (error != cudaSuccess) return error;
    }
    if (shape.clustered) {
        if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 8) {
            const cudaError_t error =
                cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
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
    return cudaLaunchKernelExC(&config, kernel, args);
}
// The compute capability of the device that a launch would go to, as 90; 0 where nobody knows.
inline int capability() {
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) return 0;
    if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) return 0;
    return 10 * major + minor;
}
inline bool overlap(const void* a, long long a_bytes, const void* b, long long b_bytes) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
    return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}
inline void* pointer(void* const* values, int number) { return *static_cast<void* const*>(values[number]); }
