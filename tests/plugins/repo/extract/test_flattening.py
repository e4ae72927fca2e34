"""Kernels that take structs and tensor accessors by value: their fields become arguments."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import arguments_of, of_text, problem_of
from tests.plugins.repo.extract.test_seen import kernel, launch, pointed
from tunesmith.plugins.repo.capture.records import ArgumentPointer, CapturedArgument
from tunesmith.plugins.repo.extract.flatten import NoFields, fields_of, kernel_in_parts
from tunesmith.plugins.repo.extract.items import items_of
from tunesmith.plugins.repo.extract.tree import Includes, TextTree, read_sources

STRUCTS = """
struct Shape { int rows, cols; };
template <typename T, int N>
struct Params : public Shape {
  using index_t = long;
  static constexpr int kHeads = 2;
  const T* __restrict__ in;
  T *out, *other;
  bool fast = true;
  index_t stride{1};
  float scale[kHeads];
  Shape inner[N];
  Params() : fast(false) {}
  __device__ int size() const { return rows * cols; }
 private:
  char last;
};
enum class Mode : unsigned char { slow, fast };
enum Other { none };
struct Modes { Mode mode; Other other; };
struct Odd { int& reference; };
struct alignas(32) Aligned { int a; };
struct Late { int n; alignas(16) float w[4]; float s; };
struct Wide { int n; __align__(8) int m; };
struct Said { decltype(1) a; int b; };
struct Pointing { int a; float (*fn)(float); };
struct Called { int a; T (*fn)(float); };
struct Bracketed { int (a); int b; };
struct Virtual { int a; virtual int f() { return 1; } };
struct __attribute__((packed)) Packed { char a; int b; };
struct Behind { char a; int b; } __attribute__((packed));
struct Hidden { FIELDS(int, a); int b; };
struct Padded { Padded() {} int a; char b; };
struct OnPadded : Padded { char c; };
struct Empty {};
struct OnEmpty : Empty {
  float first;
  int second;
  explicit __device__ OnEmpty(int n) : first(n), second{n} {}
  OnEmpty& operator=(const OnEmpty&) = default;
  template <typename U> __device__ U as(int i) const { return U(first); }
  ~OnEmpty();
  static_assert(sizeof(int) == 4, "so");
};
"""


def fields(type_: str) -> list[tuple[str, str, int, int]]:
    tree = TextTree((("a.cu", STRUCTS),))
    sources = read_sources(tree, ("a.cu",), Includes(tree))
    known = {item.name: item for item in items_of(sources.files[0], sources.macros)}
    return [(f.path, f.type, f.offset, f.size) for f in fields_of(type_, known.get)]


def test_fields_lie_as_in_memory() -> None:
    assert fields("Params<float, 2>") == [
        (".rows", "int", 0, 4),
        (".cols", "int", 4, 4),
        (".in", "const float*", 8, 8),
        (".out", "float*", 16, 8),
        (".other", "float*", 24, 8),
        (".fast", "bool", 32, 1),
        (".stride", "long", 40, 8),
        (".scale[0]", "float", 48, 4),
        (".scale[1]", "float", 52, 4),
        (".inner[0].rows", "int", 56, 4),
        (".inner[0].cols", "int", 60, 4),
        (".inner[1].rows", "int", 64, 4),
        (".inner[1].cols", "int", 68, 4),
        (".last", "char", 72, 1),
    ]
    assert fields("Modes") == [(".mode", "unsigned char", 0, 1), (".other", "int", 4, 4)]
    assert fields("float") == []
    assert fields("at::PackedTensorAccessor32<const float, 2, at::RestrictPtrTraits>") == [
        (".data_", "const float*", 0, 8),
        (".sizes_[0]", "int", 8, 4),
        (".sizes_[1]", "int", 12, 4),
        (".strides_[0]", "int", 16, 4),
        (".strides_[1]", "int", 20, 4),
    ]
    assert [f[2] for f in fields("torch::PackedTensorAccessor64<float, 1>")] == [0, 8, 16]


@pytest.mark.parametrize("type_", [
    "Odd", "Aligned", "Unknown", "Params<float, n>", "Late", "Wide", "Said", "Pointing", "Called",
    "Bracketed", "Virtual", "Packed", "Behind", "Hidden", "OnPadded",
])  # fmt: skip
def test_what_cannot_be_taken_apart_is_said(type_: str) -> None:
    with pytest.raises(NoFields):
        fields(type_)


def test_an_empty_base_takes_no_room_and_functions_are_no_fields() -> None:
    assert fields("OnEmpty") == [(".first", "float", 0, 4), (".second", "int", 4, 4)]


BY_VALUE = """
namespace own {
enum class Sign { plus, minus };
struct Params {
  const float* in;
  float* out;
  int rows, cols;
  float factor;
  Sign sign;
};
template <int WIDTH>
__global__ void __launch_bounds__(64 * WIDTH) scaled(Params params, int shift) {
  int row = blockIdx.x;
  for (int i = threadIdx.x; i < params.cols; i += blockDim.x)
    params.out[row * params.cols + i] =
        (params.sign == Sign::plus ? params.factor : -params.factor) * params.in[row * params.cols + i]
        + shift + WIDTH;
}
void run(torch::Tensor x, torch::Tensor out, float factor) {
  Params params;
  params.in = x.data_ptr<float>();
  params.out = out.data_ptr<float>();
  params.rows = x.size(0);
  params.cols = x.size(1);
  params.factor = factor;
  params.sign = Sign::plus;
  scaled<4><<<params.rows, 256>>>(params, 3);
}
}
"""
PACKED = """
#pragma pack(push, 1)
struct Params { char first; float* out; };
#pragma pack(pop)
__global__ void marked(Params params) { params.out[threadIdx.x] = params.first; }
"""
DERIVED = """
struct None {};
template <typename T> struct Base : None { const T* in; int rows, cols; };
struct Params : Base<float> { float* out; double factor; int last[2]; };
__global__ void derived(Params params) {
  params.out[threadIdx.x] = params.factor * params.in[threadIdx.x] + params.last[1] + params.rows;
}
"""


WIDE = """
enum Choice { small, large = 1LL << 40 };
struct Params { float* out; Choice choice; };
__global__ void chosen(Params params) { params.out[threadIdx.x] = params.choice == large; }
"""


@needs_nvrtc
def test_the_compiler_holds_fields_to_where_they_were_read() -> None:
    found = of_text(DERIVED, "derived")
    assert found.entry == "derived_of_fields", found.report
    text = dict(found.files)["kernel.cu"]
    assert "static_assert(sizeof(Params) == 40" in text
    assert "__builtin_offsetof(Params, last[1]) == 36" in text
    wide = of_text(WIDE, "chosen")
    assert wide.entry == "chosen"
    assert any(
        "does not compile" in line and "choice lies where it was read" in line for line in wide.report
    ), wide.report


@needs_nvrtc
def test_structs_that_a_pragma_packs_are_not_read() -> None:
    found = of_text(PACKED, "marked")
    assert found.entry == "marked"
    assert "it takes a struct by value, and a.cu packs structs by a pragma: not read" in found.report


ACCESSORS = """
template <typename scalar_t>
__global__ void add_bias(
    torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> out,
    const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
    const torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> bias) {
  const int row = blockIdx.x;
  const int i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i < x.size(1)) out[row][i] = x[row][i] + bias[i];
}
torch::Tensor run(torch::Tensor x, torch::Tensor bias) {
  auto out = torch::empty_like(x);
  const dim3 blocks(x.size(0), (x.size(1) + 127) / 128);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "add_bias", ([&] {
    add_bias<scalar_t><<<blocks, 128>>>(
        out.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
        x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
        bias.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>());
  }));
  return out;
}
"""


@needs_nvrtc
def test_a_struct_becomes_its_fields() -> None:
    found = of_text(BY_VALUE, "scaled")
    assert found.stands_alone
    assert found.entry == "own::scaled_of_fields"
    assert found.parts == (((0, 8), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4)), ())
    text = dict(found.files)["kernel.cu"]
    assert "__device__ __forceinline__ void  scaled(Params params, int shift)" in text.replace("\n", " ")
    assert "__global__ void __launch_bounds__(64 * 4) scaled_of_fields(" in text
    assert "  scaled<4>(params_whole, shift);" in text
    own = arguments_of(found)
    assert list(own) == ["in_", "out", "rows", "cols", "factor", "sign", "shift"]
    assert "params_whole.sign = static_cast<Sign>(sign);" in text
    assert (own["in_"]["role"], own["out"]["role"]) == ("input", "output")
    assert (own["rows"]["value"], own["cols"]["value"], own["shift"]["value"]) == ("rows", "cols", 3)
    assert any("passed by value" in line for line in found.report)


@needs_nvrtc
def test_accessors_are_pointers_sizes_and_strides() -> None:
    found = of_text(ACCESSORS, "add_bias", workloads=())
    assert found.stands_alone, found.missing
    own = arguments_of(found)
    assert list(own) == [
        "out", "out_size_0", "out_size_1", "out_stride_0", "out_stride_1",
        "x", "x_size_0", "x_size_1", "x_stride_0", "x_stride_1", "bias", "bias_size_0", "bias_stride_0",
    ]  # fmt: skip
    assert (own["out"]["role"], own["x"]["role"], own["bias"]["role"]) == ("output", "input", "input")
    assert own["out_size_0"]["value"] == own["x_size_0"]["value"]  # of the same tensor's axis
    assert own["out"]["shape"] == own["x"]["shape"]
    assert len(own["x"]["shape"]) == 2
    assert own["x_stride_0"]["value"] == own["x_size_1"]["value"]
    assert own["x_stride_1"]["value"] == 1
    assert own["out_stride_0"]["value"] == own["x_stride_0"]["value"]
    read = problem_of(found)
    assert read["launch"]["grid"] == ["x_size_0", "ceildiv(x_size_1, 128)"]
    assert list(read["contract"]) == ["x_size_0", "x_size_1", "bias_size_0"]


@needs_nvrtc
def test_captured_structs_are_taken_apart_alike() -> None:
    def call(number: int, rows: int, cols: int) -> Any:
        nbytes = 4 * rows * cols
        addresses = [pointed(nbytes).pointers[0].memory for _ in range(2)]
        data = struct.pack("<QQiif", 0x7F0000000000, 0x7F0000000000, rows, cols, 0.5) + struct.pack("<i", 1)
        pointers = tuple(ArgumentPointer(8 * at, memory) for at, memory in enumerate(addresses))
        params = CapturedArgument(0, 32, data.hex(), pointers)
        shift = CapturedArgument(32, 4, struct.pack("<i", 3).hex())
        return launch(number, rows, 256, (params, shift), 10, 0.001)

    seen = kernel("void own::scaled<4>(own::Params, int)", call(0, 64, 512), call(1, 128, 1024))
    found = of_text(BY_VALUE, "scaled", seen=seen)
    assert found.fills == 0, dict(found.files)["problem.toml"]
    own = arguments_of(found)
    assert (own["factor"]["value"], own["sign"]["value"]) == (0.5, 1)
    assert own["in_"]["shape"] == own["out"]["shape"] == ["rows", "cols"]
    divided = kernel_in_parts(seen, found.parts).launches[0].arguments
    assert [one.size for one in divided] == [8, 8, 4, 4, 4, 4, 4]
    assert divided[1].memory is not None


@needs_nvrtc
def test_a_struct_that_cannot_be_taken_apart_is_said() -> None:
    text = BY_VALUE.replace("float factor;", "float factor; float4 vector;")
    found = of_text(text, "scaled")
    assert found.stands_alone
    assert found.parts == ()
    assert any("passed by value that problem files do not have: float4" in line for line in found.report)


POINTERS = """
struct Shape { int rows, cols; };
__global__ void scaled(float* __restrict__ out, const float* const __restrict__ in, Shape shape) {
  out[blockIdx.x * shape.cols + threadIdx.x] = in[blockIdx.x * shape.cols + threadIdx.x];
}
"""


@needs_nvrtc
def test_pointers_with_restrict_are_no_structs() -> None:
    found = of_text(POINTERS, "scaled")
    assert found.stands_alone
    assert list(arguments_of(found)) == ["out", "in_", "rows", "cols"]
    plain = of_text(POINTERS.replace("Shape shape", "int cols").replace("shape.", ""), "scaled")
    assert list(arguments_of(plain)) == ["out", "in_", "cols"]
    assert not any("passed by value" in line for line in plain.report)
