inline void check_scratch(const TensorView& tensor, const char* name, long long bytes) {
    if (bytes == 0) return;
    if (tensor.IsContiguous() && tensor.numel() * tensor.dtype().bits / 8 >= bytes) return;
    throw Refused(Refused::value, operator_name + ": the workspace " + name + " is dense and has at least " +
                                      std::to_string(bytes) + " bytes, got less: allocate it anew");
}

inline void* scratch_of(const TensorView& tensor) { return tensor.numel() > 0 ? tensor.data_ptr() : nullptr; }

