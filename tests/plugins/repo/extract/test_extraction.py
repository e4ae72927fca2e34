"""Problem folders from a repository: instances, arguments, launches and conditions as the host has them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import arguments_of, here, of_text, problem_of
from tunesmith.expert.drafts.bare import KnownWorkload
from tunesmith.plugins.repo.extract.draft import Extraction, ExtractionWish
from tunesmith.plugins.repo.extract.extract import extract_kernel
from tunesmith.plugins.repo.extract.tree import Repository

ROOT = Path(__file__).parent / "repository"


@cache
def taken(kernel: str, file: str | None = None, workloads: tuple[KnownWorkload, ...] = ()) -> Extraction:
    wish = ExtractionWish(kernel, file, workloads=workloads, trim=False)
    return extract_kernel(Repository(ROOT), wish, compilers=here)


@needs_nvrtc
@pytest.mark.long
def test_the_instance_is_that_of_the_hosts_dispatch() -> None:
    found = taken("scale_rows_kernel")
    assert found.stands_alone
    assert found.entry == "own::scale_rows_kernel<c10::BFloat16, 8>"
    assert any("scalar_t may be float, c10::Half, c10::BFloat16" in line for line in found.report)
    assert any("launched in csrc/norm.cu:52, one of 2 launches" in line for line in found.report)
    assert set(dict(found.files)) == {"kernel.cu", "framework_types.cuh", "problem.toml"}


@needs_nvrtc
def test_arguments_shapes_and_launch_are_filled_in() -> None:
    found = taken("scale_rows_kernel")
    listed = arguments_of(found)
    assert listed["out"]["type"] == "bfloat16*"
    assert listed["out"]["shape"] == listed["input"]["shape"] == ["rows", "hidden"]
    assert listed["weight"]["shape"] == ["hidden"]
    assert {name: listed[name]["role"] for name in ("out", "input", "weight")} == {
        "out": "output",
        "input": "input",
        "weight": "input",
    }
    assert listed["hidden"]["value"] == "hidden"
    assert listed["epsilon"]["value"] == "FILL"
    text = dict(found.files)["problem.toml"]
    assert "the host passes epsilon" in text
    launch = problem_of(found)["launch"]
    assert launch["grid"] == ["rows"]
    assert launch["block"] == ["min(hidden, 1024)"]


@needs_nvrtc
def test_checks_and_dispatch_are_the_contract() -> None:
    contract = problem_of(taken("scale_rows_kernel"))["contract"]
    assert contract["hidden"]["multiple_of"] == 8  # the check says 4, the branch of this instance 8
    assert set(contract) == {"rows", "hidden"}


@needs_nvrtc
@pytest.mark.long
def test_another_instance_takes_the_other_branch() -> None:
    found = taken("scale_rows_kernel<float, 4>")
    assert found.entry == "own::scale_rows_kernel<float, 4>"
    assert arguments_of(found)["out"]["type"] == "float32*"
    contract = problem_of(found)["contract"]
    assert contract["hidden"]["multiple_of"] == 4
    assert contract["require"] == ["not hidden % 8 == 0"]


@needs_nvrtc
@pytest.mark.long
def test_workloads_that_are_given_leave_one_fill() -> None:
    workload = KnownWorkload("decode", (("rows", 16), ("hidden", 4096)))
    found = taken("scale_rows_kernel", None, (workload,))
    assert found.fills == 1  # epsilon
    read = problem_of(found)
    assert read["workloads"] == {"decode": {"rows": 16, "hidden": 4096}}
    assert read["contract"]["hidden"] == {"min": 8, "max": 4096, "multiple_of": 8}


@needs_nvrtc
def test_a_plain_launch_with_a_rounded_division() -> None:
    found = taken("twice", "csrc/more.cu")
    assert found.stands_alone
    launch = problem_of(found)["launch"]
    assert launch["grid"] == ["ceildiv(n, 256)"]
    assert launch["block"] == ["256"]
    assert arguments_of(found)["out"]["shape"] == ["n"]


@needs_nvrtc
def test_a_helper_that_is_nowhere_is_named_with_its_line() -> None:
    found = taken("lost_helper")
    assert not found.stands_alone
    assert found.missing[0] == (
        "nowhere_to_be_found, used in csrc/more.cu:30, is defined nowhere in what csrc/more.cu includes"
    )
    assert "lost.h (csrc/more.cu:2)" in found.missing[1]


@needs_nvrtc
def test_a_kernel_that_nobody_launches_is_said() -> None:
    found = taken("twice", "csrc/more.cu")
    assert "no launch of it was found in the repository's host code" not in found.report
    other = taken("twice", "csrc/again.cu")  # what more.cu launches is its own kernel of that name
    assert "no launch of it was found in the repository's host code" in other.report
    alone = of_text(
        "__global__ void k(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 0; }", "k"
    )
    assert "no launch of it was found in the repository's host code" in alone.report


@needs_nvrtc
def test_template_arguments_that_nobody_says_are_a_fill() -> None:
    found = of_text("template <typename T> __global__ void k(T* out) { *out = 0; }", "k")
    assert found.entry == "k<FILL>"
    assert not found.stands_alone
    assert any("nobody says what T is" in line for line in found.report)


@needs_nvrtc
def test_unreadable_host_code_keeps_nobody_from_the_slice() -> None:
    text = """
    __global__ void k(float* out, int n) { int i = threadIdx.x; if (i < n) out[i] = 1.0f; }
    void host(float* out, int n) { k<<<1, n, 0>>>(out, n ) ) ) }
    """
    found = of_text(text, "k")
    assert found.stands_alone


@needs_nvrtc
@pytest.mark.parametrize(
    ("passed", "line"), [("nullptr", 'type = "uint64"'), ("x.data_ptr<float>()", 'type = "float32*"')]
)
def test_null_pointers_are_numbers(passed: str, line: str) -> None:
    text = f"""
    __global__ void k(float* out, const float* bias, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = bias ? bias[i] : 0.0f;
    }}
    void host(torch::Tensor out, torch::Tensor x) {{
      int n = out.numel();
      k<<<(n + 127) / 128, 128>>>(out.data_ptr<float>(), {passed}, n);
    }}
    """
    drafted = dict(of_text(text, "k").files)["problem.toml"]
    assert line in drafted[drafted.index('name = "bias"') :].split("\n\n")[0]


@needs_nvrtc
def test_a_launch_through_a_variable_is_the_kernels() -> None:
    text = """
    template <typename T> __global__ void k(T* out, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = T(1);
    }
    void host(float* out, int n) {
      auto kernel = &k<float>;
      kernel<<<(n + 63) / 64, 64>>>(out, n);
    }
    """
    found = of_text(text, "k")
    assert found.entry == "k<float>"
    assert problem_of(found)["launch"] == {"grid": ["ceildiv(n, 64)"], "block": ["64"]}


@needs_nvrtc
def test_a_macro_that_is_handed_a_launch_is_followed() -> None:
    text = """
    template <typename T, int N> __global__ void k(T* out, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = T(N);
    }
    #define CALL(T, N) k<T, N><<<(n + 63) / 64, 64>>>((T*)out, n)
    #define BY_WIDTH(width, FN) \\
      if (width == 8) { FN(__half, 8); } else { FN(float, 4); }
    void host(void* out, int n, int width) { BY_WIDTH(width, CALL); }
    """
    found = of_text(text, "k")
    assert found.entry == "k<__half, 8>"
    assert any("one of 2 launches" in line for line in found.report)


@needs_nvrtc
def test_types_of_a_template_that_launches_are_those_it_is_instantiated_for() -> None:
    text = """
    template <typename T> __global__ void k(T* out, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = T(1.0f);
    }
    template <typename T> void launch_k(T* out, int n) { k<<<(n + 63) / 64, 64>>>(out, n); }
    #define INSTANTIATE(T) template void launch_k<T>(T*, int);
    INSTANTIATE(float)
    INSTANTIATE(__half)
    """
    found = of_text(text, "k")
    assert found.entry == "k<__half>"
    assert "T may be float, __half; choose another with --entry" in found.report
    guessed = of_text(text.replace("INSTANTIATE(float)", "").replace("INSTANTIATE(__half)", ""), "k")
    assert guessed.entry == "k<__half>"
    assert any("nobody says what T is" in line for line in guessed.report)


@needs_nvrtc
def test_a_macro_is_what_it_is_where_it_stands() -> None:
    text = """
    __global__ void k(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 1.0f; }
    __global__ void other(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 2.0f; }
    #define LAUNCH(THREADS) k<<<1, THREADS>>>(out, n)
    void first(float* out, int n) { LAUNCH(96); }
    #undef LAUNCH
    #define LAUNCH(THREADS) other<<<1, THREADS>>>(out, n)
    void second(float* out, int n) { LAUNCH(64); }
    #undef LAUNCH
    """
    assert problem_of(of_text(text, "k"))["launch"]["block"] == ["96"]
    assert problem_of(of_text(text, "other"))["launch"]["block"] == ["64"]


@needs_nvrtc
def test_the_general_template_stands_for_its_specialisations() -> None:
    text = """
    template <typename T> __global__ void k(T* out) { *out = T(1); }
    template <> __global__ void k(double* out) { *out = 2.0; out[1] = 3.0; out[2] = 4.0; }
    template <typename T> void launch_k(T* out) { k<<<1, 1>>>(out); }
    """
    assert of_text(text, "k").entry == "k<__half>"
