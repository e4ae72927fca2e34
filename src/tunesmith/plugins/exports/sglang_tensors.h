using tvm::ffi::TensorView;

inline std::string type_name(DLDataType type) {
    const std::string kind = type.code == 0   ? "int"
                             : type.code == 1 ? "uint"
                             : type.code == 2 ? "float"
                             : type.code == 4 ? "bfloat"
                                              : "DLPack code " + std::to_string(int(type.code)) + ", bits ";
    return kind + std::to_string(int(type.bits));
}

struct Kind {
    int code, bits;
};

// Strides of a tensor that tells none: DLPack means a dense one.
inline const int64_t* strides_of(const TensorView& tensor, int64_t (&room)[64]) {
    if (tensor.ndim() == 0) return room;
    if (tensor.ndim() > 64) return tensor.strides().data();
    int64_t step = 1;
    for (int i = tensor.ndim() - 1; i >= 0; --i) {
        room[i] = step;
        step *= tensor.shape()[i];
    }
    return tensor.IsContiguous() ? room : tensor.strides().data();
}

inline View view_of(const TensorView& tensor, const char* name, const char* rule, int64_t (&room)[64]) {
    void* const data = static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
    return {name, rule, data, tensor.shape().data(), strides_of(tensor, room), tensor.ndim()};
}

template <std::size_t count>
inline void check_kind(const TensorView& tensor, const char* name, const char* wanted,
                       const Kind (&kinds)[count]) {
    const DLDataType type = tensor.dtype();
    for (const Kind& kind : kinds) {
        if (type.code == kind.code && type.bits == kind.bits && type.lanes == 1) return;
    }
    refuse_type(name, wanted, type_name(type));
}

inline void check_device(const TensorView& tensor, const char* name, DLDevice first) {
    if (tensor.device().device_type != kDLCUDA) {
        refuse_device(name, tensor.device().device_type == kDLCPU ? "cpu" : "another kind of device");
    }
    check_same_device(name, tensor.device().device_id, first.device_id);
}

[[noreturn]] inline void raise_refused(const Refused& refused) {
    if (refused.kind == Refused::type) TVM_FFI_THROW(TypeError) << refused.what();
    if (refused.kind == Refused::value) TVM_FFI_THROW(ValueError) << refused.what();
    TVM_FFI_THROW(RuntimeError) << refused.what();
    throw refused;
}
