"""One source, several compilers: it is one kernel to all of them, or the expert does not read it."""

from __future__ import annotations

from dataclasses import replace

from tests.expert.model.kernels import lifted, row_problem
from tunesmith.csource.predefined import Predefined
from tunesmith.expert.model.kernel import NotReadable
from tunesmith.expert.model.lift import lift
from tunesmith.problem.problem import Problem

NVCC = Predefined((("__CUDA_ARCH__", "800"), ("__cplusplus", "201402L")), "nvcc")
NVRTC = Predefined((("__CUDA_ARCH__", "800"), ("__cplusplus", "201703L"), ("__CUDACC_RTC__", "1")), "nvrtc")
STORE = "if (i < rows * d) out[i] = x[i] * FACTOR;"


def problem(condition: str, *states: Predefined) -> Problem:
    body = f"int i = blockIdx.x * 256 + threadIdx.x;\n{STORE}"
    before = f"{condition}\n#define FACTOR 2.0f\n#else\n#define FACTOR 3.0f\n#endif"
    found = row_problem(body, grid=("ceildiv(rows * d, 256)",), before=before)
    return replace(found, kernel=replace(found.kernel, predefined=states))


def test_the_compilers_state_decides_which_kernel_it_is() -> None:
    assert "2.0f" in str(lifted(problem("#if __CUDA_ARCH__ >= 900")).steps)
    model = lifted(problem("#if __CUDA_ARCH__ >= 900", NVCC))
    assert "3.0f" in str(model.steps)
    assert "line 1: #if __CUDA_ARCH__ >= 900 does not hold: __CUDA_ARCH__ is 800 (nvcc)" in model.notes


def test_an_assumption_is_told() -> None:
    (note,) = lifted(problem("#if __CUDA_ARCH__ >= 900")).notes
    assert note.endswith("(assumed, since no compiler was asked: NVRTC, C++17, sm_90)")


def test_compilers_that_agree_are_both_named() -> None:
    (note,) = lifted(problem("#if __CUDA_ARCH__ >= 900", NVRTC, NVCC)).notes
    assert note.endswith("(nvrtc; nvcc)")


def test_a_source_that_is_two_kernels_is_refused() -> None:
    found = lift(problem("#ifdef __CUDACC_RTC__", NVRTC, NVCC))
    assert isinstance(found, NotReadable)
    assert found.reason == (
        "it is another kernel to nvrtc than to nvcc: say which is meant by `compiler` in [kernel]"
    )


def test_the_problem_stays_what_it_is() -> None:
    assert problem("#if 1").digest == problem("#if 1", NVCC).digest
