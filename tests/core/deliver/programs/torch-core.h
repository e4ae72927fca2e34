#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
namespace c10 {
enum class ScalarType { Half, BFloat16, Float, Double, Char, Short, Int, Long, Byte, UInt16, UInt32, UInt64,
                        Float8_e4m3fn, Float8_e5m2 };
inline const char* toString(ScalarType) { return "?"; }
enum class Layout { Strided, Sparse };
enum class DeviceType { CPU, CUDA };
struct Device { std::string str() const { return "cpu"; } };
struct IntArrayRef {
    IntArrayRef(std::initializer_list<int64_t>);
    const int64_t* data() const;
};
struct TensorImpl { void bump_version(); };
struct TensorOptions {
    TensorOptions dtype(ScalarType) const;
    TensorOptions device(DeviceType) const;
};
namespace cuda {
struct OptionalCUDAGuard { explicit OptionalCUDAGuard(std::optional<Device>) {} };
}
}
namespace at {
using c10::DeviceType;
using c10::IntArrayRef;
using c10::ScalarType;
using c10::TensorOptions;
constexpr auto kHalf = ScalarType::Half, kBFloat16 = ScalarType::BFloat16, kFloat = ScalarType::Float,
               kDouble = ScalarType::Double, kChar = ScalarType::Char, kShort = ScalarType::Short,
               kInt = ScalarType::Int, kLong = ScalarType::Long, kByte = ScalarType::Byte,
               kUInt16 = ScalarType::UInt16, kUInt32 = ScalarType::UInt32, kUInt64 = ScalarType::UInt64,
               kFloat8_e4m3fn = ScalarType::Float8_e4m3fn, kFloat8_e5m2 = ScalarType::Float8_e5m2;
constexpr auto kStrided = c10::Layout::Strided;
constexpr auto kCUDA = DeviceType::CUDA, kCPU = DeviceType::CPU;
class Tensor {
public:
    ScalarType scalar_type() const;
    bool is_cuda() const;
    bool is_inference() const;
    c10::Device device() const;
    int64_t get_device() const;
    c10::Layout layout() const;
    void* mutable_data_ptr() const;
    const void* const_data_ptr() const;
    IntArrayRef sizes() const;
    IntArrayRef strides() const;
    int64_t dim() const;
    TensorOptions options() const;
    c10::TensorImpl* unsafeGetTensorImpl() const;
};
std::optional<c10::Device> device_of(const Tensor&);
Tensor empty(IntArrayRef, TensorOptions);
Tensor empty_strided(IntArrayRef, IntArrayRef, TensorOptions);
enum class Tag { pt2_compliant_tag, needs_exact_strides, needs_fixed_stride_order };
}
namespace torch {
using at::kCPU;
using at::kCUDA;
using at::Tensor;
struct Library {
    template <class Schema> void def(Schema&&, const std::vector<at::Tag>& = {});
    template <class Schema, class Function>
    void def(Schema&&, Function&& function, const std::vector<at::Tag>& = {}) {
        function();  // an operator with its function at once: tags alone must not be taken for one
    }
    template <class Function> void impl(const char*, c10::DeviceType, Function*);
};
}
#define TORCH_CHECK(condition, ...) \
    do { if (!(condition)) throw std::runtime_error(__VA_ARGS__); } while (false)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK(condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK(condition, __VA_ARGS__)
#define TORCH_LIBRARY_FRAGMENT(space, ops) void registered_in_##space(torch::Library& ops)
