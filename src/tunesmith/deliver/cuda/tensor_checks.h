// Why a call is not made; whoever calls makes an error of its framework of it.
struct Refused : std::runtime_error {
    enum Kind { type, value, launch } kind;
    Refused(Kind kind_, const std::string& words) : std::runtime_error(words), kind(kind_) {}
};

// What a tensor tells of itself. Strides count its elements.
struct View {
    const char* name;
    const char* rule;  // its shape as the kernel has it
    void* data;
    const std::int64_t* shape;
    const std::int64_t* strides;
    int axes;
};

template <class Number>
inline std::string listed(const Number* values, int count) {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
    return text + "]";
}

inline void check_axes(const View& view, int wanted) {
    if (view.axes == wanted) return;
    throw Refused(Refused::value, operator_name + ": " + view.name + " has the shape " + view.rule + ", " +
                                      std::to_string(wanted) + " axes, got " + std::to_string(view.axes) +
                                      ": reshape it before the call");
}

[[noreturn]] inline void refuse_type(const char* name, const char* wanted, const std::string& given) {
    throw Refused(Refused::type, operator_name + ": " + name + " has elements of type " + wanted + ", got " + given +
                                     ": convert it before the call");
}

[[noreturn]] inline void refuse_device(const char* name, const std::string& given) {
    throw Refused(Refused::value, operator_name + " runs on a CUDA device, got a tensor on " + given + " as " + name +
                                      ": move it with .to(\"cuda\")");
}

inline void check_same_device(const char* name, int device, int first) {
    if (device == first) return;
    throw Refused(Refused::value, operator_name + ": all tensors lie on one device, got " + name + " on cuda:" +
                                      std::to_string(device) + " and another on cuda:" + std::to_string(first) +
                                      ": move them to one before the call");
}

// The device of the context in which this is; the device's own context is current until the end.
class CurrentDevice {
public:
    explicit CurrentDevice(int ordinal) {
        CUdevice wanted = -1, current = -1;
        CUcontext context = nullptr;
        CUresult status = driver::cuDeviceGet(&wanted, ordinal);
        if (status == CUDA_ERROR_NOT_INITIALIZED && (status = driver::cuInit(0)) == CUDA_SUCCESS) {
            status = driver::cuDeviceGet(&wanted, ordinal);
        }
        if (status == CUDA_SUCCESS && driver::cuCtxGetDevice(&current) == CUDA_SUCCESS && current == wanted) return;
        if (status == CUDA_SUCCESS) status = driver::cuDevicePrimaryCtxRetain(&context, wanted);
        if (status == CUDA_SUCCESS) status = driver::cuCtxPushCurrent(context);
        if (status != CUDA_SUCCESS) {
            throw Refused(Refused::launch,
                          operator_name + ": the device cuda:" + std::to_string(ordinal) + " cannot be used");
        }
        pushed = true;
    }
    ~CurrentDevice() {
        CUcontext context = nullptr;
        if (pushed) driver::cuCtxPopCurrent(&context);
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
    bool pushed = false;
};

inline void check_status(CUresult status) {
    if (status == CUDA_SUCCESS) return;
    const char* words = nullptr;
    driver::cuGetErrorString(status, &words);
    std::string why = words != nullptr ? words : "error " + std::to_string(static_cast<int>(status));
    if (status == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        why += " (" + operator_devices + " Tune it on this device, and export both runs)";
    } else if (status == CUDA_ERROR_INVALID_VALUE) {
        why += " (no kernel serves these sizes: see the conditions in the header)";
    } else if (status == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED) {
        why += " (there is no CUDA driver here)";
    }
    throw Refused(Refused::launch, operator_name + ": " + why);
}

// Fills memory with copies of one element of 1, 2, 4 or 8 bytes, in the stream's order.
inline void fill(void* data, unsigned long long pattern, int bytes, long long count, CUstream stream) {
    if (count <= 0) return;
    const CUdeviceptr place = reinterpret_cast<CUdeviceptr>(data);
    const std::size_t items = static_cast<std::size_t>(count);
    const unsigned low = static_cast<unsigned>(pattern), high = static_cast<unsigned>(pattern >> 32);
    if (bytes == 1) {
        check_status(driver::cuMemsetD8Async(place, static_cast<unsigned char>(low), items, stream));
    } else if (bytes == 2) {
        check_status(driver::cuMemsetD16Async(place, static_cast<unsigned short>(low), items, stream));
    } else if (bytes == 4) {
        check_status(driver::cuMemsetD32Async(place, low, items, stream));
    } else if (low == high) {
        check_status(driver::cuMemsetD32Async(place, low, 2 * items, stream));
    } else {
        const std::size_t pitch = 8, one = 1;
        check_status(driver::cuMemsetD2D32Async(place, pitch, low, one, items, stream));
        check_status(driver::cuMemsetD2D32Async(place + 4, pitch, high, one, items, stream));
    }
}

// At these sizes the shape is the wanted one.
template <class Sizes>
inline void check_layout(const View& view, const long long* shape, const long long* strides, bool is_dense,
                         const Sizes& sizes) {
    bool is_same = true;
    for (int i = 0; i < view.axes; ++i) is_same = is_same && view.shape[i] == shape[i];
    if (!is_same) {
        throw Refused(Refused::value, operator_name + ": " + view.name + " has the shape " + view.rule +
                                          ", which is " + listed(shape, view.axes) + " for " + as_text(sizes) + "; got " +
                                          listed(view.shape, view.axes) + ": pass tensors whose shapes agree");
    }
    for (int i = 0; i < view.axes; ++i) is_same = is_same && (shape[i] <= 1 || view.strides[i] == strides[i]);
    if (!is_same) {
        throw Refused(Refused::value,
                      operator_name + ": " + view.name + " lies in memory " +
                          (is_dense ? "dense, the last axis fastest" : "with strides " + listed(strides, view.axes)) +
                          ", got strides " + listed(view.strides, view.axes) + " of shape " +
                          listed(view.shape, view.axes) + ": copy it before the call, e.g. with .contiguous()");
    }
}

inline void check_defined(bool undefined, const char* what) {
    if (!undefined) return;
    throw Refused(Refused::value, operator_name + ": " + what + " has no value for tensors of these shapes: pass "
                                      "tensors of another size");
}

inline bool has_none(const View& view) {
    for (int i = 0; i < view.axes; ++i) {
        if (view.shape[i] == 0) return true;
    }
    return false;
}

// A number as the kernel takes it.
template <class Wanted, class Given>
inline Wanted as_scalar(const char* name, Given value) {
    const Wanted number = static_cast<Wanted>(value);
    if (std::is_integral<Wanted>::value && sizeof(Wanted) < sizeof(Given) && static_cast<Given>(number) != value) {
        throw Refused(Refused::value, operator_name + ": " + name + " = " + std::to_string(value) +
                                          " does not fit its type: pass a smaller number");
    }
    return number;
}
