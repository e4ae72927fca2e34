"""Kernels in a framework's own repository, and ways of its hosts to choose an instance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import here
from tunesmith.plugins.repo.extract.draft import Extraction, ExtractionWish
from tunesmith.plugins.repo.extract.extract import extract_kernel
from tunesmith.plugins.repo.extract.slice import FRAMEWORK
from tunesmith.plugins.repo.extract.tree import TextTree

# Of a framework's headers: what our types stand for, device code that they lack, code of the host.
HALF = "namespace c10 { struct Half { C10_HOST_DEVICE Half(); int of_the_framework; }; }\n"
NUMBERS = """
#include <c10/util/Half.h>
namespace at {
template <typename T>
inline C10_HOST_DEVICE bool is_odd(T value) { return value != value; }
template <typename T>
inline C10_HOST_DEVICE bool is_odd(c10::pair_of<T> value) { return is_odd(value.first); }
namespace cuda { namespace detail {
constexpr int kThreads = 64;
using other_math::exp;
}}
}
"""
TENSOR = "namespace at { struct Tensor { void host(); }; int never(); }\n"
KERNEL = """
#include <ATen/core/Tensor.h>
#include <ATen/Numbers.h>
namespace at::native {
namespace {
using namespace at::cuda::detail;
using namespace at::elsewhere::detail;
template <typename T> struct Twice { using type = T; };
template <typename T, typename acc_t, bool flipped>
__global__ void __launch_bounds__(cuda::detail::kThreads) pick(T* out, const T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] > x[0] || at::is_odd(x[i]) ? T(acc_t(x[i])) : T(flipped ? -x[i] : x[i]);
}
}
HOST
}
"""
LAUNCH = "pick<T, acc_type<T, true>, flipped><<<(n + 63) / 64, 64>>>"
TEMPLATE = f"""
template <typename T, bool flipped = false>
void run(T* out, const T* x, int n) {{ {LAUNCH}(out, x, n); }}
"""


def taken(kernel: str, host: str, name: str = "pick", **wish: Any) -> Extraction:
    files = (
        ("aten/src/ATen/core/Tensor.h", TENSOR),
        ("aten/src/ATen/Numbers.h", NUMBERS),
        ("c10/util/Half.h", HALF),
        ("aten/src/ATen/native/cuda/Pick.cu", kernel.replace("HOST", host)),
    )
    return extract_kernel(TextTree(files), ExtractionWish(name, trim=False, **wish), compilers=here)


@needs_nvrtc
@pytest.mark.long
def test_what_our_types_lack_is_taken_from_the_frameworks_own_headers() -> None:
    found = taken(KERNEL, TEMPLATE)
    assert found.stands_alone, found.missing
    assert found.entry == "at::native::pick<c10::Half, at::acc_type<c10::Half, true>, false>"
    files = dict(found.files)
    text = files["kernel.cu"]
    assert "is_odd(T value)" in text
    assert "kThreads = 64" in text
    assert "struct alignas(2) Half" in files[FRAMEWORK]
    # What does not compile is an overload, a namespace that is not taken, or what is ours already.
    for other in ("pair_of", "elsewhere", "of_the_framework", "never"):
        assert other not in text
    assert any("nobody says what flipped is" in line for line in found.report)


@needs_nvrtc
@pytest.mark.long
def test_types_of_pointers_that_a_host_declares_are_the_instance() -> None:
    launch = "pick_plain<<<1, 64>>>"
    kernel = KERNEL.replace("typename acc_t, bool flipped>", "typename index_t>").replace(
        "pick(", "pick_plain("
    )
    kernel = (
        kernel.replace("int n)", "index_t n)").replace("T(acc_t(x[i]))", "x[i]").replace("flipped ?", "n ?")
    )
    host = f"""
void run(Tensor out, const Tensor& x, int64_t count) {{
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, x.scalar_type(), "pick a \\
      value", [&] {{
    const scalar_t *x_data = x.const_data_ptr<scalar_t>();
    auto out_data = static_cast<scalar_t*>(out.data_ptr());
    {launch}(out_data, x_data, static_cast<int>(count));
  }});
}}
"""
    found = taken(kernel, host, "pick_plain")
    assert found.entry == "at::native::pick_plain<c10::BFloat16, int>"
    assert found.stands_alone, found.missing


@needs_nvrtc
def test_index_types_functions_and_templates_are_template_arguments() -> None:
    kernel = """
#include <ATen/core/Tensor.h>
template <typename T> __device__ T nearest(T x) { return x; }
typedef int (*place_t)(int);
__device__ inline int at_floor(int i) { return i; }
template <typename T> struct Plain { __device__ T operator()(T x) { return x; } };
template <typename T, typename index_t, template <typename> class Epilogue, place_t place>
__global__ void pick(T* out, const index_t* where, int n) {
  int i = threadIdx.x;
  if (i < n) out[where[place(i)]] = Epilogue<T>()(T(1.0f));
}
HOST
"""
    host = """
template <template <typename> class Epilogue, place_t place>
void launch(Tensor out, Tensor where, int n) {
  AT_DISPATCH_FLOATING_TYPES_AND(kHalf, out.scalar_type(), "pick", [&] {
    AT_DISPATCH_INDEX_TYPES(where.scalar_type(), "pick", [&] {
      pick<scalar_t, index_t, Epilogue, place><<<1, 64>>>(
          out.data_ptr<scalar_t>(), where.data_ptr<index_t>(), n);
    });
  });
}
void run(Tensor out, Tensor where, int n) { launch<Plain, at_floor>(out, where, n); }
"""
    found = taken(kernel, host)
    assert found.entry == "pick<c10::Half, int64_t, Plain, at_floor>"
    assert found.stands_alone, found.missing


@needs_nvrtc
def test_attributes_ahead_of_structs_and_default_arguments() -> None:
    kernel = """
__align__(8) struct Pair { int first; float second; };
template <typename T> __device__ Pair pair_of(T x) { return {1, float(x)}; }
struct Step { int by; };
__global__ void pick(float* out, Step step, int n, const bool* mask = nullptr) {
  if (threadIdx.x < n) out[threadIdx.x] = pair_of(out[threadIdx.x]).second * step.by;
}
HOST
"""
    found = taken(kernel, "void run(float* x, Step s, int n) { pick<<<1, 64>>>(x, s, n, nullptr); }\n")
    assert found.stands_alone, found.missing
    assert found.entry == "pick_of_fields"
