"""Ways in which hosts choose an instance: macros that are handed code, templates that are called."""

from __future__ import annotations

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import of_text, problem_of
from tunesmith.plugins.repo.extract.draft import Extraction
from tunesmith.plugins.repo.extract.host import host_launches
from tunesmith.plugins.repo.extract.slice import FRAMEWORK, find_kernel
from tunesmith.plugins.repo.extract.tree import TextTree

KERNEL = """
template <int WIDTH, typename T, typename A>
__global__ void scaled(T* out, const T* x, A factor, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
  for (int j = 0; j < WIDTH; ++j)
    if (i + j < n) out[i + j] = T(A(x[i + j]) * factor);
}
"""
PASTED = """
typedef uint4 vector_t;
#define DISPATCH(TYPE, LEVEL, NAME, ...)                              \\
  switch (TYPE) {                                                     \\
    case at::ScalarType::Float: {                                     \\
      using number_##LEVEL = float;                                   \\
      __VA_ARGS__;                                                    \\
      break;                                                          \\
    }                                                                 \\
    case at::ScalarType::Half: {                                      \\
      using number_##LEVEL = at::Half;                                \\
      __VA_ARGS__;                                                    \\
      break;                                                          \\
    }                                                                 \\
  }
void run(torch::Tensor out, torch::Tensor x, float factor, bool wide) {
  int n = x.numel();
  DISPATCH(x.scalar_type(), 0, "scaled", using sum_t = at::acc_type<number_0, true>;
    const int WIDE = sizeof(vector_t) / sizeof(number_0); if (wide) {
      scaled<WIDE, number_0, sum_t><<<(n + 255) / 256, 256>>>(
          out.data_ptr<number_0>(), x.data_ptr<number_0>(), factor, n);
    });
}
"""
CALLED = """
enum Kind { PLAIN, FANCY };
template <int WIDTH, typename T>
void launch(T* out, const T* x, float factor, int n) {
  scaled<WIDTH, T, float><<<(n + 255) / 256, 256>>>(out, x, factor, n);
}
"""


def taken(text: str) -> Extraction:
    return of_text(KERNEL + text, "scaled")


@needs_nvrtc
def test_code_that_a_macro_is_handed_is_read_for_each_of_its_types() -> None:
    found = taken(PASTED)
    assert found.entry == "scaled<8, at::Half, at::acc_type<at::Half, true>>"
    assert found.stands_alone, found.missing
    read = problem_of(found)
    assert read["launch"]["grid"] == ["ceildiv(n, 256)"]


@needs_nvrtc
def test_a_template_is_instantiated_where_it_is_called() -> None:
    found = taken(CALLED + "void run(float* o, float* x, int n) { launch<4, float>(o, x, 2.0f, n); }\n")
    assert found.entry == "scaled<4, float, float>"


def test_macros_give_template_arguments_in_an_order_of_their_own() -> None:
    text = KERNEL + CALLED + (
        "#define MAKE(type, width) template void launch<width, type>(type*, const type*, float, int);\n"
        "MAKE(float, 2)\nMAKE(half, 8)\n"
        "#define RUN(t, w) launch<w, t>(o, x, 1.0f, n);\n"
        "void run(double* o, double* x, int n) { RUN(double, 1) }\n"
        "void all(int* o, int* x, int n) { BY_TYPE(o, RUN); }\n"  # handed on, not called
    )  # fmt: skip
    tree = TextTree((("a.cu", text),))
    (launch,) = host_launches(tree, find_kernel(tree, "scaled")).launches
    assert launch.around.params == ("WIDTH", "T")
    assert set(launch.around.instances) == {("2", "float"), ("8", "half"), ("1", "double")}


@needs_nvrtc
@pytest.mark.long
def test_a_switch_names_its_constant_by_an_argument() -> None:
    text = """
    #define SWITCH(CONDITION, NAME, ...)        \\
      [&] {                                     \\
        if (CONDITION) {                        \\
          constexpr bool NAME = true;           \\
          return __VA_ARGS__();                 \\
        } else {                                \\
          constexpr bool NAME = false;          \\
          return __VA_ARGS__();                 \\
        }                                       \\
      }()
    template <bool EVEN, int N, typename T>
    __global__ void summed(T* out, int n) { if (EVEN || n % 2 == 0) out[0] = N; }
    template <int N, typename T>
    void launch(T* out, int n) {
      SWITCH(n % 2 == 0, kEven, [&] { summed<kEven, N, T><<<1, 1>>>(out, n); });
    }
    void run(float* out, int n) { if (n) { launch<32, input_t>(out, n); } }
    """
    found = of_text(text, "summed")
    assert found.entry == "summed<true, 32, __half>"
    assert found.stands_alone, found.missing


def test_templates_of_templates_have_their_parameters() -> None:
    text = KERNEL + (
        "template <template <typename, typename> class E, int N>\n"
        "std::vector<Tensor> launch(float* o, float* x, int n) {\n"
        "  scaled<N, float, float><<<n, 32>>>(o, x, 1.0f, n);\n}\n"
        "template <typename A, typename B> struct Epilogue {};\n"
        "void run(float* o, float* x, int n) { launch<Epilogue, 4>(o, x, n); }\n"
        "void again(float* o, float* x, int n) { launch<scalar_t, 4>(o, x, n); }\n"
    )
    tree = TextTree((("a.cu", text),))
    (launch,) = host_launches(tree, find_kernel(tree, "scaled")).launches
    assert launch.around.params == ("E", "N")
    assert launch.around.instances == (("Epilogue", "4"), ("", "4"))


@needs_nvrtc
def test_a_struct_whose_name_comes_last_is_found() -> None:
    text = """
    struct { int first; int count; } typedef Span;
    __global__ void scaled(float* out, const Span* spans) { out[spans[blockIdx.x].first] = spans[0].count; }
    """
    found = of_text(text, "scaled")
    assert found.stands_alone, found.missing


@needs_nvrtc
@pytest.mark.long
def test_a_frameworks_types_are_for_devices_alone() -> None:
    text = """
    template <typename T>
    __global__ void scaled(T* out, int n) {
      if (threadIdx.x < n) out[threadIdx.x] = -at::numeric_limits<T>::max();
    }
    """
    found = of_text(text, "scaled<c10::BFloat16>")
    assert found.stands_alone, found.missing
    assert "__host__ __device__" not in dict(found.files)[FRAMEWORK]


@needs_nvrtc
@pytest.mark.long
def test_the_standards_limits_of_a_frameworks_types() -> None:
    text = """
    template <typename T>
    C10_HOST_DEVICE static constexpr T most = std::numeric_limits<T>::max();
    template <typename T>
    __global__ void scaled(T* out, int n) {
      if (threadIdx.x < n) out[threadIdx.x] = most<T>;
    }
    """
    found = of_text(text, "scaled<c10::Float8_e4m3fn>")
    assert found.stands_alone, found.missing
