"""Calls that launch several kernels: one problem, a launch for each, what lies between them a workspace."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.extract.compiling import here, problem_of
from tests.plugins.repo.extract.test_seen import capture, kernel, launch
from tunesmith.base.errors import BadInput
from tunesmith.expert.drafts.bare import KnownWorkload
from tunesmith.plugins.repo.capture.records import Succession
from tunesmith.plugins.repo.extract.draft import (
    Extraction,
    ExtractionWish,
    LaunchDraft,
    merge_drafts,
    tensor_identity,
)
from tunesmith.plugins.repo.extract.extract import extract_call, followed_by
from tunesmith.plugins.repo.extract.tree import TextTree

SOURCE = """
__device__ inline float squared(float x) { return x * x; }

__global__ void sum_rows(float* sums, const float* x, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < cols; ++i) sum += squared(x[row * cols + i]);
  sums[row] = sum;
}

__global__ void divide(
    float* out, const float* input, const float* norms, float epsilon, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) out[i] = input[i] * rsqrtf(norms[i / cols] + epsilon);
}

__global__ void elsewhere(float* out) { out[0] = 1.0f; }

torch::Tensor normalized(torch::Tensor x, bool other) {
  int rows = x.size(0);
  int cols = x.size(1);
  TORCH_CHECK(cols <= 8192);
  auto out = torch::empty_like(x);
  auto sums = torch::empty({rows}, x.options());
  if (other) {
    elsewhere<<<1, 1>>>(out.data_ptr<float>());
    return out;
  }
  sum_rows<<<(rows + 127) / 128, 128>>>(sums.data_ptr<float>(), x.data_ptr<float>(), rows, cols);
  divide<<<(rows * cols + 255) / 256, 256>>>(
      out.data_ptr<float>(), x.data_ptr<float>(), sums.data_ptr<float>(), 1e-6f, rows, cols);
  return out;
}
"""
WORKLOAD = KnownWorkload("usual", (("rows", 512), ("cols", 1024)))


def taken(name: str = "divide", text: str = SOURCE, **wish: Any) -> Extraction:
    wished = ExtractionWish(name, trim=False, workloads=(WORKLOAD,), **wish)
    return extract_call(TextTree((("norm.cu", text),)), wished, compilers=here)


@needs_nvrtc
def test_a_call_is_one_problem_with_several_launches() -> None:
    found = taken()
    assert found.stands_alone, found.missing
    assert found.fills == 0, dict(found.files)["problem.toml"]
    text = dict(found.files)["kernel.cu"]
    assert ("sum_rows" in text, "divide" in text, "squared" in text, "elsewhere" in text) == (
        True, True, True, False,
    )  # fmt: skip
    read = problem_of(found)
    assert [(one["entry"], one["args"]) for one in read["launch"]] == [
        ("sum_rows", ["sums", "x", "rows", "cols"]),
        ("divide", ["out", "x", "sums", "epsilon", "rows", "cols"]),
    ]
    assert read["launch"][1]["grid"] == ["ceildiv(rows * cols, 256)"]
    roles = {one["name"]: one.get("role", "scalar") for one in read["argument"]}
    assert roles == {
        "sums": "workspace", "x": "input", "rows": "scalar", "cols": "scalar", "out": "output",
        "epsilon": "scalar",
    }  # fmt: skip
    assert read["contract"]["cols"] == {"min": 1, "max": 8192}
    assert read["workloads"] == {"usual": {"rows": 512, "cols": 1024}}
    assert [part.entry for part in found.members] == ["sum_rows", "divide"]


@needs_nvrtc
def test_the_folder_is_read_as_a_problem(tmp_path: Any) -> None:
    from tunesmith.plugins.repo.extract.extract import read_back, write_folder
    from tunesmith.session.problems import load_problem

    found = taken()
    write_folder(tmp_path, found.files)
    assert read_back(tmp_path, found) == []
    assert len(load_problem(tmp_path).definition.launches) == 2


@needs_nvrtc
def test_a_kernel_that_is_launched_alone_stays_alone() -> None:
    alone = SOURCE.replace("sum_rows<<<", "// sum_rows<<<")
    found = taken(text=alone)
    assert found.members == ()
    assert any("launches no other kernel with it" in line for line in found.report)
    with pytest.raises(BadInput, match="no launch of divide was found"):
        taken(text=SOURCE[: SOURCE.index("torch::Tensor normalized")])


def test_words_of_the_host_say_what_is_the_same() -> None:
    assert tensor_identity("reinterpret_cast<float*>(x.data_ptr())") == "x"
    assert tensor_identity("x.mutable_data_ptr<float>()") == "x"
    assert tensor_identity("(float*)buffer") == "buffer"
    assert tensor_identity("rows * cols") == "rows*cols"


def draft(name: str, text: str, **passed: str) -> LaunchDraft:
    return LaunchDraft(name, name, text, passed, {"tmp": "zeroed"})


ONE = """
name = "one"
[kernel]
source = "kernel.cu"
entry = "one"
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "inout"
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["n"]
block = ["32"]
[contract]
n = { min = 1, max = 64 }
require = ["n % 2 == 0"]
[workloads]
example = { n = "FILL" }
"""


def test_names_that_mean_something_else_are_told_apart() -> None:
    other = ONE.replace("max = 64", "min = 4, max = 4096").replace("min = 1, min = 4", "min = 4")
    text = merge_drafts([
        draft("one", ONE, out="tmp", n="rows"),
        draft("two", other, out="result", n="cols"),
        draft("three", other.replace("inout", "input"), out="tmp", n="rows"),
    ])  # fmt: skip
    read = tomllib.loads(text)
    assert [one["args"] for one in read["launch"]] == [["out", "n"], ["two_out", "two_n"], ["out", "n"]]
    assert read["launch"][1]["grid"] == ["two_n"]
    assert read["contract"] == {
        "n": {"min": 4, "max": 64},
        "require": ["n % 2 == 0", "two_n % 2 == 0"],
        "two_n": {"min": 4, "max": 4096},
    }
    arguments = {one["name"]: one for one in read["argument"]}
    assert arguments["two_out"]["shape"] == ["two_n"]
    assert (arguments["out"]["role"], arguments["out"]["init"]) == ("workspace", 0)
    assert arguments["two_out"]["role"] == "inout"
    assert read["workloads"]["example"] == {"n": "FILL", "two_n": "FILL"}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (
            "min = 1, max = 64, multiple_of = 4",
            "min = 2, max = 96, multiple_of = 6",
            {"min": 2, "max": 64, "multiple_of": 12},
        ),
        ("one_of = [1, 2]", "one_of = [2, 4]", {"one_of": [2]}),
        ("one_of = [8, 12, 24]", "min = 10, max = 20, multiple_of = 4", {"one_of": [12]}),
        ("one_of = [1, 2]", "one_of = [4]", None),
        ("min = 1, max = 4", "min = 5, max = 9", None),
        ("min = 1, max = 10, multiple_of = 4", "min = 1, max = 10, multiple_of = 6", None),
    ],
)
def test_what_both_launches_promise_is_kept(one: str, other: str, both: dict[str, Any] | None) -> None:
    drafts = [
        draft(name, ONE.replace("min = 1, max = 64", rule), out="tmp", n="rows")
        for name, rule in (("one", one), ("two", other))
    ]
    if both is None:
        with pytest.raises(BadInput, match="promise of n what no number keeps"):
            merge_drafts(drafts)
    else:
        assert tomllib.loads(merge_drafts(drafts))["contract"]["n"] == both


def test_sizes_that_are_no_arguments_are_one_where_their_numbers_are() -> None:
    bare = ONE.replace('value = "n"', "value = 3").replace('name = "n"', 'name = "k"')
    one, two = (bare.replace('"FILL"', number) for number in ("32", "64"))
    same = tomllib.loads(merge_drafts([draft("one", one, out="a"), draft("two", one, out="b")]))
    assert same["workloads"]["example"] == {"n": 32}
    read = tomllib.loads(merge_drafts([draft("one", one, out="a"), draft("two", two, out="b")]))
    assert read["workloads"]["example"] == {"n": 32, "two_n": 64}
    assert [launch["grid"] for launch in read["launch"]] == [["n"], ["two_n"]]
    assert {a["name"]: a.get("shape") for a in read["argument"]}["two_out"] == ["two_n"]
    assert read["contract"]["require"] == ["n % 2 == 0", "two_n % 2 == 0"]


def test_what_was_seen_stays_beside_what_is_open() -> None:
    open_one = ONE.replace('shape = ["n"]', 'shape = ["FILL"]  # the host passes tmp').replace(
        'block = ["32"]', 'block = ["FILL"]  # threads; line 7 says block'
    )
    other = open_one.replace("the host passes tmp", "another").replace("line 7", "line 8")
    drafts = [draft("one", open_one, out="tmp", n="n"), draft("two", other, out="tmp", n="n")]
    text = merge_drafts(drafts, ["Drafted."])
    assert text.startswith("# Drafted.\n")
    assert 'shape = ["FILL"]  # the host passes tmp' in text
    assert text.index("line 7 says block") < text.index("line 8 says block")


def test_what_always_comes_next_is_seen_in_a_capture() -> None:
    def launched(name: str, number: int) -> Any:
        return kernel(f"void {name}(float*)", launch(number, 1, 32, (), 10, 0.001))

    first, second, third = (
        replace(launched(name, number), name=name) for number, name in enumerate(("a", "b", "c"))
    )
    seen = replace(
        capture(first, second, third),
        successions=(Succession(0, 1, 10), Succession(1, 2, 5), Succession(1, 0, 5), Succession(2, 0, 5)),
    )
    assert followed_by(seen, first) == ["b"]
    assert followed_by(seen, second) == []
