// What of CUDA's driver is used, declared here: nothing of a toolkit is needed to compile this. Layouts are those
// of CUDA 12 and 13.
typedef void* cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess = 0 };
// A caller of the driver gets each error at once: none is left behind.
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

struct dim3 {
    unsigned x, y, z;
    dim3(long long x_ = 1, long long y_ = 1, long long z_ = 1)
        : x(static_cast<unsigned>(x_)), y(static_cast<unsigned>(y_)), z(static_cast<unsigned>(z_)) {}
};

struct LaunchAttribute {
    int id;
    char pad[4];
    union { char room[64]; int flag; unsigned cluster[3]; } value;
};
struct LaunchConfig {
    unsigned grid[3], block[3], shared;
    void* stream;
    LaunchAttribute* attributes;
    unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "the driver's layout");
enum { ATTRIBUTE_IGNORE = 0, ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_CLUSTER_POLICY = 5,
       ATTRIBUTE_PDL = 6 };
enum { FUNCTION_MOST_SHARED = 8, FUNCTION_LARGE_CLUSTER = 14, DEVICE_MAJOR = 75, DEVICE_MINOR = 76 };

static struct {
    int (*cuCtxGetDevice)(int*);
    int (*cuDeviceGetAttribute)(int*, int, int);
    int (*cuLibraryLoadData)(void**, const void*, void*, void*, unsigned, void*, void*, unsigned);
    int (*cuLibraryGetKernel)(void**, void*, const char*);
    int (*cuKernelGetFunction)(void**, void*);
    int (*cuKernelSetAttribute)(int, int, void*, int);
    int (*cuLaunchKernelEx)(const LaunchConfig*, void*, void**, void**);
    int (*cuThreadExchangeStreamCaptureMode)(int*);
    int (*cuStreamIsCapturing)(void*, int*);
    int (*cuFuncLoad)(void*);
    int (*cuFuncGetName)(const char**, void*);
    int (*cuKernelGetName)(const char**, void*);
    int (*cuFuncGetParamInfo)(void*, size_t, size_t*, size_t*);
    int (*cuKernelGetParamInfo)(void*, size_t, size_t*, size_t*);
    bool is_whole;  // it has all that a kernel is loaded and launched with
} driver;

// While one lives, this thread may load code although a stream records a graph: nothing is queued for that.
struct Relaxed {
    int mode = 2;
    const bool exchanged = driver.cuThreadExchangeStreamCaptureMode(&mode) == 0;
    ~Relaxed() {
        if (exchanged) driver.cuThreadExchangeStreamCaptureMode(&mode);
    }
};

static __thread bool driver_refused;  // the tuned kernel was wanted, and could not be loaded or launched

struct Shape {
    dim3 grid, block, cluster;
    long long shared;
    bool clustered, cooperative, pdl;
};

constexpr int most_devices = 64;

// A kernel, and the dynamic shared memory that it may have by now on each device.
struct Kernel {
    void* handle;
    std::atomic<long long> allowed[most_devices];
};

inline int current_device() {
    int device = -1;
    return driver.cuCtxGetDevice(&device) == 0 && device < most_devices ? device : -1;
}

// The compute capability of the current device, as 90; 0 where nobody says.
inline int architecture(int device) {
    static std::atomic<int> known[most_devices];
    if (device < 0) return 0;
    int found = known[device].load(std::memory_order_relaxed);
    if (found == 0) {
        int major = 0, minor = 0;
        if (driver.cuDeviceGetAttribute(&major, DEVICE_MAJOR, device) != 0) return 0;
        if (driver.cuDeviceGetAttribute(&minor, DEVICE_MINOR, device) != 0) return 0;
        known[device].store(found = 10 * major + minor, std::memory_order_relaxed);
    }
    return found;
}

inline int start_refused(int error) {
    driver_refused = error != 0;
    return error;
}

inline int start(Kernel& kernel, const Shape& shape, void** args, int device, cudaStream_t stream) {
    LaunchAttribute attributes[3] = {};
    LaunchConfig config = {{shape.grid.x, shape.grid.y, shape.grid.z},
                           {shape.block.x, shape.block.y, shape.block.z},
                           static_cast<unsigned>(shape.shared), stream, attributes, 0};
    // Only raised, so that a launch on another thread keeps what it needs.
    if (shape.shared > 0 && kernel.allowed[device].load() < shape.shared) {
        static pthread_mutex_t permission = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&permission);
        int error = 0;
        if (kernel.allowed[device].load() < shape.shared) {
            const Relaxed relaxed;
            const int bytes = static_cast<int>(shape.shared);
            error = driver.cuKernelSetAttribute(FUNCTION_MOST_SHARED, bytes, kernel.handle, device);
            if (error == 0) kernel.allowed[device].store(shape.shared);
        }
        pthread_mutex_unlock(&permission);
        if (error != 0) return start_refused(error);
    }
    if (shape.clustered) {
        if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 8) {
            const Relaxed relaxed;
            const int error = driver.cuKernelSetAttribute(FUNCTION_LARGE_CLUSTER, 1, kernel.handle, device);
            if (error != 0) return start_refused(error);
        }
        LaunchAttribute& attribute = attributes[config.count++];
        attribute.id = ATTRIBUTE_CLUSTER;
        attribute.value.cluster[0] = shape.cluster.x;
        attribute.value.cluster[1] = shape.cluster.y;
        attribute.value.cluster[2] = shape.cluster.z;
    }
    const bool wanted[] = {shape.cooperative, shape.pdl};
    const int ids[] = {ATTRIBUTE_COOPERATIVE, ATTRIBUTE_PDL};
    for (int i = 0; i < 2; i++) {
        if (!wanted[i]) continue;
        LaunchAttribute& attribute = attributes[config.count++];
        attribute.id = ids[i];
        attribute.value.flag = 1;
    }
    return start_refused(driver.cuLaunchKernelEx(&config, kernel.handle, args, nullptr));
}

// A kernel of machine code that is part of this library. It is loaded once; the driver puts it into each context
// that launches it.
struct EmbeddedKernel {
    Kernel kernel;
    std::atomic<int> state;  // 0: not loaded yet, 1: loaded, -1: it cannot be
};

// It, loaded; null where it cannot be.
inline Kernel* embedded_kernel(EmbeddedKernel& own, const void* image, const char* symbol) {
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    int state = own.state.load(std::memory_order_acquire);
    if (state == 0) {
        pthread_mutex_lock(&loading);
        state = own.state.load(std::memory_order_relaxed);
        if (state == 0) {
            const Relaxed relaxed;
            void* library = nullptr;
            int error = driver.cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
            if (error == 0) error = driver.cuLibraryGetKernel(&own.kernel.handle, library, symbol);
            void* function = nullptr;  // whole, so that nothing is left to load while a stream is captured
            if (error == 0 && driver.cuKernelGetFunction && driver.cuFuncLoad &&
                driver.cuKernelGetFunction(&function, own.kernel.handle) == 0)
                driver.cuFuncLoad(function);
            own.state.store(state = error == 0 ? 1 : -1, std::memory_order_release);
        }
        pthread_mutex_unlock(&loading);
    }
    driver_refused = state < 0;
    return state > 0 ? &own.kernel : nullptr;
}
