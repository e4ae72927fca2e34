"""Files of kernels before there is a problem: explained, and drafted."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.running import FIXTURES, expect_success, tunesmith
from tunesmith import api
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import language_of
from tunesmith.run.config import RunConfig
from tunesmith.session import check

ADD = """#include <hip/hip_runtime.h>
#include "shapes.h"
__global__ void add(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += BY * a[i];
}
"""


def file_in(folder: Path, text: str = ADD, name: str = "add.cu") -> Path:
    (folder / "shapes.h").write_text("#define BY 2.0f\n")
    (folder / name).write_text(text)
    return folder / name


def test_a_file_is_explained_with_its_own_headers_and_the_moves_of_its_language(tmp_path: Path) -> None:
    found = check.explain_source(file_in(tmp_path), None, (), RunConfig())
    assert (found.language, found.device) == ("hip", "AMD Instinct MI300X (assumed)")
    (kernel,) = found.kernels
    assert kernel.read, kernel.obstacles
    assert {"lanes", "items"} <= set(kernel.moves)
    assert dict(kernel.refused)["rows"]


def test_the_command_lists_all_kernels_and_says_the_same_as_json(tmp_path: Path) -> None:
    second = "__global__ void odd(float* out) { out[threadIdx.x] = elsewhere(); }\n"
    file = file_in(tmp_path, ADD + second)
    ended = expect_success(tmp_path, "explain", file)
    first, read, *_ = ended.out.splitlines()
    assert first.endswith("add.cu defines 2 kernels: add (line 3), odd (line 7)")
    assert read == "read: 1 of 2"
    assert "  line 7: elsewhere is called, whose text is not in the file (to change:" in ended.out
    assert "--entry add would fill in:\n  a: float32*, input, shape [n]" in ended.out
    (kernel,) = tunesmith(tmp_path, "explain", file, "--entry", "odd", "--json").json["kernels"]
    assert (kernel["entry"], kernel["line"], kernel["read"]) == ("odd", 7, False)


def test_python_explains_a_file_as_the_command_does(tmp_path: Path) -> None:
    file = file_in(tmp_path, ADD.replace("BY *", "TIMES *"))
    found = api.explain_file(file, entry="add", defines={"TIMES": 3})
    assert [(kernel.entry, kernel.line, kernel.read) for kernel in found.kernels] == [("add", 3, True)]
    said = tunesmith(tmp_path, "explain", file, "--define", "TIMES=3", "--json").json
    assert said["kernels"][0]["moves"] == list(found.kernels[0].moves)
    with pytest.raises(BadInput, match="--define is NAME=VALUE with a C identifier"):
        api.explain_file(file, defines={"1": 2})


@pytest.mark.long
def test_the_command_says_which_kernel_of_a_call_a_move_leaves_out(tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "explain", FIXTURES / "zoo" / "rows_int8_two_pass")
    assert "  split leaves out absmax_of_rows: a task has to stay in one block" in ended.out


@pytest.mark.parametrize(
    ("name", "text", "entry", "fault"),
    [
        ("a.cu", "int main() { return 0; }", None, "must define a function marked __global__; it has none"),
        ("a.hip", "\0\0\0 not C at all }}} __global__", None, "must define a function marked __global__"),
        ("a.txt", "hello", None, "must end in .cl, .cu, .cuh, .hip; got '.txt'"),
        ("a.cu", ADD, "ad", "got 'ad', it defines add"),
    ],
)
def test_what_is_no_kernel_file_is_said(
    tmp_path: Path, name: str, text: str, entry: str | None, fault: str
) -> None:
    with pytest.raises(BadInput) as caught:
        check.explain_source(file_in(tmp_path, text, name), entry, (), RunConfig())
    assert fault in str(caught.value)
    assert caught.value.hint


def test_an_entry_that_is_nearly_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        check.explain_source(file_in(tmp_path), "hip_add", (), RunConfig())
    assert caught.value.hint == "did you mean: --entry add"


def test_defines_are_names_with_values() -> None:
    assert check.given_defines(["T=float", "FAST", "E="]) == (("T", "float"), ("FAST", "1"), ("E", ""))
    with pytest.raises(BadInput, match="C identifier; got '9=1'"):
        check.given_defines(["9=1"])


def test_a_problem_takes_no_entry(tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "explain", tmp_path, "--entry", "add")
    assert ended.code == 2
    assert "--entry and --define go with a kernel file" in ended.err


def test_a_draft_has_the_defines_it_was_read_with(tmp_path: Path) -> None:
    text = "__kernel void twice(__global T *x, int n) { int i = get_global_id(0); if (i < n) x[i] *= 2; }"
    made = check.write_problem_draft(
        file_in(tmp_path, text, "twice.cl"), tmp_path / "made", None, (("T", "float"),)
    )
    problem = tomllib.loads((made.folder / "problem.toml").read_text())
    assert problem["kernel"]["defines"] == {"T": "float"}
    assert problem["argument"][0]["type"] == "float32*"
    assert problem["argument"][0]["shape"] == ["n"]


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.cu", "", "cuda"),
        ("a.cu", "#include <hip/hip_runtime.h>", "hip"),
        ("a.hip", "", "hip"),
        ("a.cpp", '#include "hip/hip_runtime.h"', "hip"),
        ("a.cpp", "__global__ void k() {}", "cuda"),
        ("a.h", "__kernel void k() {}", "opencl"),
        ("a.cl", "#include <hip/hip_runtime.h>", "opencl"),
    ],
)
def test_the_language_of_a_file(name: str, text: str, language: str) -> None:
    assert language_of(name, text) == language
