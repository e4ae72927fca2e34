"""Problem folders of what a program launched."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import here, problem_of
from tests.running import FIXTURES
from tunesmith.plugins.repo.capture.records import (
    ArgumentPointer,
    Capture,
    CapturedArgument,
    CapturedCopies,
    CapturedKernel,
    CapturedLaunch,
    CapturedProgram,
    PointedMemory,
    read_capture,
)
from tunesmith.plugins.repo.extract.draft import Extraction, ExtractionWish
from tunesmith.plugins.repo.extract.extract import extract_kernel
from tunesmith.plugins.repo.extract.seen import captured_kernel, fit_expression, fit_extent, instance_of
from tunesmith.plugins.repo.extract.slice import Build, Pairs
from tunesmith.plugins.repo.extract.tree import Repository, TextTree

ROOT = Path(__file__).parent / "repository"
NAME = "void own::scale_rows_kernel<c10::BFloat16, (int)8>(c10::BFloat16*, c10::BFloat16 const*, float, int)"


def pointer(size: int) -> CapturedArgument:
    memory = PointedMemory(0x7F0000000000, size, 0)
    return CapturedArgument(0, 8, "", (ArgumentPointer(0, memory),))


def pointed(size: int) -> CapturedArgument:
    argument = pointer(size)
    return CapturedArgument(0, 8, struct.pack("<Q", 0x7F0000000000).hex(), argument.pointers)


def number(form: str, value: float) -> CapturedArgument:
    data = struct.pack(f"<{form}", value)
    return CapturedArgument(0, len(data), data.hex())


def launch(
    at: int, grid: int, block: int, arguments: tuple[CapturedArgument, ...], count: int, seconds: float
) -> CapturedLaunch:
    shape = ((grid, 1, 1), (block, 1, 1), 0, (0, 0, 0), 0, (0,))
    return CapturedLaunch(at, *shape, count, count, seconds, seconds / count, arguments)


def kernel(name: str, *launches: CapturedLaunch, code: str = "") -> CapturedKernel:
    seconds = sum(one.seconds for one in launches)
    count = sum(one.count for one in launches)
    return CapturedKernel("_Z", name, "", code, count, count, seconds, launches)


def rows_kernel(name: str = NAME) -> CapturedKernel:
    def call(at: int, rows: int, hidden: int, count: int, seconds: float) -> CapturedLaunch:
        whole, line = pointed(2 * rows * hidden), pointed(2 * hidden)
        given = (whole, whole, line, number("f", 1e-6), number("i", hidden))
        return launch(at, rows, min(hidden, 1024), given, count, seconds)

    return kernel(name, call(0, 16, 4096, 100, 0.001), call(1, 4096, 4096, 10, 0.003))


def capture(*kernels: CapturedKernel) -> Capture:
    program = CapturedProgram(("bench",), "2026-01-01T00:00:00", 1.0, 0)
    return Capture(1, program, 13000, (), kernels, (), (), (), (), CapturedCopies(), 1.0)


def taken(seen: CapturedKernel) -> Extraction:
    wish = ExtractionWish("scale_rows_kernel", trim=False, seen=seen)
    return extract_kernel(Repository(ROOT), wish, compilers=here)


@needs_nvrtc
def test_nothing_is_left_to_fill_in() -> None:
    found = taken(rows_kernel())
    assert found.entry == "own::scale_rows_kernel<c10::BFloat16, 8>"
    assert found.fills == 0
    read = problem_of(found)
    by_name = {argument["name"]: argument for argument in read["argument"]}
    assert by_name["epsilon"]["value"] == 1e-6
    assert by_name["out"]["align"] == 16
    assert read["launch"]["grid"] == ["rows"]
    assert read["launch"]["block"] == ["min(hidden, 1024)"]
    assert read["contract"]["rows"] == {"min": 1, "max": 4096}
    assert read["workloads"]["seen_1"] == {"rows": 4096, "hidden": 4096, "weight": 1.5}
    assert read["workloads"]["seen_2"]["weight"] == 0.5


@needs_nvrtc
@pytest.mark.long
def test_the_instance_is_the_one_that_ran() -> None:
    found = taken(rows_kernel("void own::scale_rows_kernel<float, 4>(float*)"))
    assert found.entry == "own::scale_rows_kernel<float, 4>"
    assert any("hidden % 8 == 0 did not hold" in line for line in found.report)
    assert "require" not in problem_of(found)["contract"]


@needs_nvrtc
def test_without_host_code_all_is_fitted() -> None:
    text = """
    __device__ float hidden_from_view(const float* x, int i);
    __global__ void k(float* out, const float* x, const float* none, int n, int stride, bool fast) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = x[i] + (fast ? 1 : 0);
    }
    """

    def call(at: int, n: int) -> CapturedLaunch:
        blocks = -(-n // 128)
        null = CapturedArgument(0, 8, "00" * 8)
        whole = pointed(-(-4 * n // 512) * 512)
        given = (whole, whole, null, number("i", n), number("i", blocks * 128), number("B", 1))
        return launch(at, blocks, 128, given, 1, 0.001)

    wish = ExtractionWish("k", trim=False, seen=kernel("k(float*)", call(0, 1000), call(1, 70000)))
    found = extract_kernel(TextTree((("a.cu", text),)), wish, compilers=here)
    read = problem_of(found)
    by_name = {argument["name"]: argument for argument in read["argument"]}
    assert read["launch"] == {"grid": ["ceildiv(n, 128)"], "block": ["128"]}
    assert by_name["none"] == {"name": "none", "type": "uint64", "value": 0}
    assert by_name["fast"]["value"] == 1
    assert by_name["out"]["shape"] == ["n"]
    assert by_name["stride"]["value"] == "stride"  # nothing gives it: a size of its own


def said_of_code(found: Extraction) -> str:
    (line,) = [line for line in found.report if "machine code" in line and "left out" not in line]
    return line


@needs_nvrtc
@pytest.mark.long
def test_other_machine_code_is_said() -> None:
    unknown = taken(rows_kernel())
    assert "the machine code that ran was not to be had" in said_of_code(unknown)
    built = unknown.attempt.code
    same = taken(replace(rows_kernel(), code=built, binary_version=90))
    assert said_of_code(same) == "its machine code is that of the kernel that ran"
    other = taken(replace(rows_kernel(), code="0" * 64, binary_version=70))
    words = f"the kernel that ran: sm_{unknown.attempt.capability} instead of sm_70, another compiler"
    assert f"its machine code differs from that of {words}" in said_of_code(other)


@needs_nvrtc
@pytest.mark.long
def test_the_compiler_that_gives_what_ran_is_taken() -> None:
    @contextmanager
    def two(entry: str, defines: Pairs) -> Iterator[tuple[Build, Build]]:
        with here(entry, defines) as (first,):
            yield first, lambda cut, flags: replace(first(cut, flags), compiler="nvcc", code="c0de")

    seen = replace(rows_kernel(), code="c0de")
    wish = ExtractionWish("scale_rows_kernel", trim=False, seen=seen)
    found = extract_kernel(Repository(ROOT), wish, compilers=two)
    assert said_of_code(found) == "its machine code is that of the kernel that ran"
    assert problem_of(found)["kernel"]["compiler"] == "nvcc"


@needs_nvrtc
def test_a_capture_that_was_recorded_leaves_nothing_to_fill_in() -> None:
    text = """
    template <typename T, int W>
    __global__ void scale_rows(T* out, const T* x, const T* w, int rows, int d) {
      for (int row = blockIdx.x; row < rows; row += gridDim.x)
        for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[row * d + i] * w[i];
    }
    """
    seen = captured_kernel(read_capture(FIXTURES / "captures" / "h200"), "scale_rows")
    wish = ExtractionWish("scale_rows", trim=False, seen=seen)
    found = extract_kernel(TextTree((("a.cu", text),)), wish, compilers=here)
    assert (found.entry, found.fills) == ("scale_rows<float, 1>", 0)
    read = problem_of(found)
    assert read["launch"] == {"grid": ["rows"], "block": ["256"]}
    assert {a["name"]: a["shape"] for a in read["argument"] if "shape" in a} == {
        "out": ["rows", "d"],
        "x": ["rows", "d"],
        "w": ["d"],
    }
    sizes = {(one["rows"], one["d"]) for one in read["workloads"].values()}
    assert sizes == {(4096, 4096), (2048, 4096)}
    assert seen.code
    assert "differs from that of the kernel that ran" in said_of_code(found)  # these are other sources


def test_names_that_the_driver_says_are_taken_apart() -> None:
    assert instance_of(NAME) == ("c10::BFloat16", "8")
    assert instance_of("void k<(bool)1, a::b<float, 2> >(float*)") == ("true", "a::b<float, 2>")
    assert instance_of("k(float*)") == ()


ROWS, HIDDEN, N = [16, 128, 4096], [4096, 4096, 8192], [1000, 2048, 77]
SIZES = {"rows": ROWS, "hidden": HIDDEN, "n": N}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (ROWS, "rows"),
        ([r * h for r, h in zip(ROWS, HIDDEN, strict=True)], "rows * hidden"),
        ([r * (h // 2) for r, h in zip(ROWS, HIDDEN, strict=True)], "rows * (hidden // 2)"),
        ([-(-n // 256) for n in N], "ceildiv(n, 256)"),
        ([-(-r * h // 128) for r, h in zip(ROWS, HIDDEN, strict=True)], "ceildiv(rows * hidden, 128)"),
        ([h // 8 for h in HIDDEN], "hidden // 8"),
        ([n + 1 for n in N], "n + 1"),
        ([min(n, 1024) for n in N], "min(n, 1024)"),
        ([7, 7, 7], "7"),
        ([5, 6, 8], None),
    ],
)
def test_the_simplest_that_gives_all(target: list[int], text: str | None) -> None:
    assert fit_expression(target, SIZES) == text


def test_a_number_that_never_changes_is_itself_where_that_is_likelier() -> None:
    sizes = {"rows": [256, 256]}
    assert fit_expression([256, 256], sizes) == "rows"
    assert fit_expression([256, 256], sizes, constant_first=True) == "256"
    assert fit_expression([1, 1], {"one": [1, 1]}) == "1"


def test_sizes_that_change_go_before_those_that_happen_to_be_equal() -> None:
    assert fit_expression([8, 16], {"heads": [8, 8], "rows": [8, 16]}) == "rows"
    assert fit_expression([8], {"rows": [8], "heads": [8]}) == "rows"


def test_extents_are_rounded_up_by_allocators() -> None:
    exact = [r * h for r, h in zip(ROWS, HIDDEN, strict=True)]
    assert fit_extent(exact, SIZES) == "rows * hidden"
    assert fit_extent([1024, 2048, 256], {"n": N}, grain=256) == "n"
    assert fit_extent([1024, 2048, 512], {"n": N}, grain=256) is None
    assert fit_extent([0], {"n": [0]}) is None


def test_what_has_no_value_somewhere_is_no_fit() -> None:
    assert fit_expression([3, 3, 4], {"a": [0, 1, 2], "b": [3, 3, 8]}) is None
