std::string type_name(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kChar: return "int8";
    case at::kShort: return "int16";
    case at::kInt: return "int32";
    case at::kLong: return "int64";
    case at::kByte: return "uint8";
    default: return c10::toString(type);
  }
}

void check_tensor(const torch::Tensor& tensor, const char* name, const char* wanted,
                  std::initializer_list<at::ScalarType> types, const torch::Tensor& first) {
  bool fits = false;
  for (const at::ScalarType type : types) fits = fits || tensor.scalar_type() == type;
  if (!fits) refuse_type(name, wanted, type_name(tensor.scalar_type()));
  if (!tensor.is_cuda()) refuse_device(name, tensor.device().str());
  check_same_device(name, static_cast<int>(tensor.get_device()), static_cast<int>(first.get_device()));
  if (tensor.layout() != at::kStrided) {
    throw Refused(Refused::value, operator_name + ": " + name + " is a strided tensor, got another "
                                  "layout: use .to_dense()");
  }
}

View view_of(const torch::Tensor& tensor, const char* name, const char* rule, bool is_written) {
  void* data = is_written ? tensor.mutable_data_ptr() : const_cast<void*>(tensor.const_data_ptr());
  return {name, rule, data, tensor.sizes().data(), tensor.strides().data(), static_cast<int>(tensor.dim())};
}

[[noreturn]] void raise_refused(const Refused& refused) {
  TORCH_CHECK_TYPE(refused.kind != Refused::type, refused.what());
  TORCH_CHECK_VALUE(refused.kind != Refused::value, refused.what());
  TORCH_CHECK(false, refused.what());
}

// Autograd must notice that what it may have saved has changed.
void note_written(std::initializer_list<const torch::Tensor*> tensors) {
  for (const torch::Tensor* tensor : tensors) {
    if (!tensor->is_inference()) tensor->unsafeGetTensorImpl()->bump_version();
  }
}

// Compilers must bring tensors in the layout in which they were traced.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
constexpr at::Tag layout_tag = at::Tag::needs_exact_strides;
#else
constexpr at::Tag layout_tag = at::Tag::needs_fixed_stride_order;
#endif
