"""A kernel with the device code it needs and no more."""

from __future__ import annotations

import pytest

from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.extract.slice import (
    FRAMEWORK,
    BuildAttempt,
    KernelSlice,
    compiled_slice,
    find_kernel,
    trim_slice,
)
from tunesmith.plugins.repo.extract.tree import Repository, TextTree


def sliced(texts: dict[str, str], kernel: str, words: tuple[str, ...] = (), **given: str) -> KernelSlice:
    defines = tuple(given.items())
    found = find_kernel(TextTree(tuple(texts.items())), kernel, None, (), defines)
    return found.slicer.slice(found.item, words)


def compiled(entry: str, found: KernelSlice) -> BuildAttempt:
    headers = ((FRAMEWORK, found.framework_text()),) if found.uses_framework else ()
    device = absent_device(None)
    assert device is not None
    unit = Unit("kernel.cu", found.text(), "cuda", (), (entry,), headers, "nvrtc")
    return BuildAttempt(build_cubin(unit, device).code_digest)


def test_a_slice_has_what_the_kernel_needs_and_no_more(repository: Repository) -> None:
    found = find_kernel(repository, "scale_rows_kernel")
    assert found.item.place == "csrc/norm.cu:13"
    cut = found.slicer.slice(found.item, ("c10::BFloat16",))
    assert cut.kernel.qualified_name == "own::scale_rows_kernel"
    text = cut.text()
    for wanted in (
        "struct alignas(sizeof(T) * N) Pack",
        "widened(",
        "block_sum(",
        "kMostWarps",
        "#define OWN_LOAD",
    ):
        assert wanted in text
    for other in (
        "largest(",
        "of_the_host",
        "LAUNCH_SCALE_ROWS",
        "OWN_UNUSED_MACRO",
        "OWN_DISPATCH",
        "USE_ROCM",
    ):
        assert other not in text
    assert "*(pointer)" not in text  # the other compiler's branch
    assert "// A few numbers that are moved at once." in text  # a comment right above stays
    assert [item.name for item in cut.items if item.path == FRAMEWORK and item.scope == ("c10",)] == [
        "BFloat16"
    ]


@needs_nvrtc
def test_a_slice_compiles_and_framework_types_are_ours(repository: Repository) -> None:
    found = find_kernel(repository, "scale_rows_kernel")
    for scalar in ("c10::BFloat16", "c10::Half", "float"):
        cut = found.slicer.slice(found.item, (scalar,))
        assert compiled(f"own::scale_rows_kernel<{scalar}, 8>", cut).ok
        assert cut.uses_framework == (scalar != "float")


@needs_nvrtc
def test_what_leaves_the_code_as_it_is_goes(repository: Repository) -> None:
    found = find_kernel(repository, "scale_rows_kernel")
    words = ("c10::BFloat16",)
    entry = "own::scale_rows_kernel<c10::BFloat16, 8>"

    def built(cut: KernelSlice, _flags: tuple[str, ...]) -> BuildAttempt:
        try:
            return compiled(entry, cut)
        except Exception as refused:
            return BuildAttempt("", str(refused))

    fitted = compiled_slice(found.slicer, found.item, words, (), built)
    small = trim_slice(found.slicer, fitted, words, built, lambda: True)
    assert "double warp_sum" in fitted.slice.text()
    assert "double warp_sum" not in small.slice.text()  # an overload that nobody calls
    assert "float warp_sum" in small.slice.text()
    assert small.left_out >= 1


def test_conditions_on_the_device_stay(repository: Repository) -> None:
    found = find_kernel(repository, "twice", "csrc/more.cu")
    text = found.slicer.slice(found.item).text()
    assert "#if __CUDA_ARCH__ >= 900" in text
    assert text.count("__device__ float doubled") == 2
    assert "#if __CUDA_ARCH__ >= 800" in text
    assert "#if !(__CUDA_ARCH__ >= 800)" in text


def test_a_kernel_that_a_macro_writes_is_written_out(repository: Repository) -> None:
    found = find_kernel(repository, "shift_by_two")
    text = found.slicer.slice(found.item).text()
    assert "x[i] + 2.0f;" in text
    assert "shift_by_one" not in text
    assert "SHIFT_KERNEL" not in text
    assert max(map(len, text.splitlines())) < 100  # not all on one line


def test_names_of_variables_are_not_taken_for_functions() -> None:
    text = """
    __device__ float scale(float x) { return x * 2; }
    __device__ float used(float x) { return x; }
    __global__ void k(float* out, const float* scale, int n) { float bias = used(scale[0]); out[n] = bias; }
    """
    assert "x * 2" not in sliced({"a.cu": text}, "k").text()


def test_overloads_operators_specialisations_and_members_come_along() -> None:
    text = """
    template <typename T> struct Wide;
    template <> struct Wide<float> { using type = double; __device__ double of(float x) const; };
    __device__ double Wide<float>::of(float x) const { return x; }
    struct Pair { float a, b; };
    __device__ Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
    __device__ Pair operator+(float2 x, float2 y) { return {x.x + y.x, x.y + y.y}; }
    typedef enum { FIRST = 0, SECOND = 1 } Mode;
    enum class Other { A };
    __global__ void k(Pair* out, int n) {
      out[n] = out[n] + out[n + 1];
      if (n == SECOND) out[n].a = Wide<float>().of(1.0f);
    }
    """
    cut = sliced({"a.cu": text}, "k")
    shown = cut.text()
    for wanted in ("struct Wide;", "struct Wide<float> {", "Wide<float>::of", "operator+(Pair", "SECOND = 1"):
        assert wanted in shown
    assert "enum class Other" not in shown


def test_namespaces_aliases_and_using_are_followed() -> None:
    texts = {
        "include/deep/math.cuh": """
        namespace deep { namespace math {
        __device__ float half_of(float x) { return 0.5f * x; }
        }}
        namespace other { __device__ float half_of(float x) { return x / 2; } }
        """,
        "src/a.cu": """
        #include <deep/math.cuh>
        namespace dm = deep::math;
        using number = float;
        static constexpr int kThreads = 128;
        namespace { __global__ void __launch_bounds__(kThreads) k(number* out) { *out = dm::half_of(*out); } }
        """,
    }
    text = sliced(texts, "k").text()
    assert "0.5f * x" in text
    assert "x / 2" not in text
    assert "namespace dm = deep::math;" in text
    assert "using number = float;" in text
    assert "kThreads = 128" in text


def test_flags_decide_conditions() -> None:
    text = """
    #ifdef WITH_BIAS
    __device__ float bias() { return 1.0f; }
    #else
    __device__ float bias() { return 0.0f; }
    #endif
    __global__ void k(float* out) { *out = bias(); }
    """
    assert "return 0.0f" in sliced({"a.cu": text}, "k").text()
    with_bias = sliced({"a.cu": text}, "k", WITH_BIAS="1").text()
    assert "return 1.0f" in with_bias
    assert "return 0.0f" not in with_bias
    found = find_kernel(TextTree((("a.cu", text),)), "k")
    assert dict(found.sources.undefined) == {"WITH_BIAS": "a.cu:2"}


def test_headers_of_the_system_are_those_that_words_need() -> None:
    text = """
    #include <cub/cub.cuh>
    #include <vector>
    #include <cuda_fp16.h>
    __global__ void k(float* out, int64_t n) {
      using Sum = cub::BlockReduce<float, 128>;
      __shared__ typename Sum::TempStorage room;
      out[n] = Sum(room).Sum(std::max(out[n], FLT_MIN));
    }
    """
    cut = sliced({"a.cu": text}, "k")
    assert set(cut.headers) == {"<cstdint>", "<cfloat>", "<algorithm>", "<cub/block/block_reduce.cuh>"}


def test_no_such_kernel_is_said_with_what_there_is(repository: Repository) -> None:
    with pytest.raises(BadInput, match="no kernel called scale_row_kernel") as error:
        find_kernel(repository, "scale_row_kernel")
    assert error.value.hint == "did you mean: --kernel scale_rows_kernel"
    with pytest.raises(BadInput, match="no kernel called k") as error:
        find_kernel(TextTree((("a.h", "int x;"),)), "k")
    assert "no file of it has a function marked __global__" in (error.value.hint or "")


def test_several_kernels_of_a_name_are_listed(repository: Repository) -> None:
    with pytest.raises(BadInput, match=r"2 kernels .*: csrc/again\.cu:1 .*csrc/more\.cu:19") as error:
        find_kernel(repository, "twice")
    assert error.value.hint == "choose one with --file, for example: --file csrc/again.cu"
    assert find_kernel(repository, "twice", "again.cu").item.line == 1


def test_a_file_that_is_not_there_is_said(repository: Repository) -> None:
    with pytest.raises(BadInput, match=r"no file csrc/nrm\.cu") as error:
        find_kernel(repository, "scale_rows_kernel", "csrc/nrm.cu")
    assert error.value.hint == "did you mean: --file csrc/norm.cu"


def test_a_name_that_the_repository_defines_needs_no_header() -> None:
    text = """
    using __nv_bfloat162 = float2;
    __global__ void k(__nv_bfloat162* out) { out->x = 0.0f; }
    """
    assert sliced({"a.cu": text}, "k").headers == ()
