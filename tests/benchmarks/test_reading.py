"""The count of what the expert reads: kernels that are read, beyond, refused, and a reader that hangs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import reading

_PROBLEM = """
name = "{name}"
[kernel]
source = "kernel.cu"
entry = "{name}"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "inout"
align = 16
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 256)"]
block = ["256"]
[contract]
n = {{ min = 1, max = 1048576 }}
[workloads]
all = {{ n = 65536 }}
"""
_INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"
KERNELS = {
    "twice": f"{_INDEX} if (i < n) x[i] *= 2.0f;",
    "clocked": f"{_INDEX} if (i < n) x[i] = (float)clock64();",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    for name, body in KERNELS.items():
        (place / name).mkdir()
        (place / name / "problem.toml").write_text(_PROBLEM.format(name=name))
        (place / name / "kernel.cu").write_text(f"__global__ void {name}(float *x, int n) {{ {body} }}\n")
    (place / "faulty").mkdir()
    (place / "faulty" / "problem.toml").write_text("name = 3\n")
    return place


@pytest.mark.long
def test_every_kernel_is_counted_with_its_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "figures.json"
    reading.main([str(folder), "--jobs", "2", "--out", str(out), "--templates", str(folder / "templates")])
    found = {one["name"]: one for one in json.loads(out.read_text())["kernels"]}
    assert {name: one["outcome"] for name, one in found.items()} == {
        "clocked": "beyond",
        "faulty": "failed",
        "twice": "read",
    }
    assert found["twice"]["vectors"] == "VEC"
    assert "VEC" in (folder / "templates" / "twice.cu").read_text()
    assert "clock64" in found["clocked"]["why"]
    assert found["clocked"]["knobs"] == ["KNOB_BLOCK_X"]
    said = capsys.readouterr().out
    assert said.endswith(
        "3 kernels: 1 read (33 %), 1 with vectors (33 %), 2 with knobs (67 %), 1 failed (33 %)\n"
    )


def test_a_reader_that_does_not_end_is_counted(folder: Path) -> None:
    found = reading.examined(folder / "twice", 0.01, None, 0)
    assert (found.outcome, found.failed) == ("failed", "not read after 0.01 s")


def test_reasons_are_alike_but_for_names_and_lines() -> None:
    assert reading.kind("'a' is written (line 3)") == reading.kind("'total' is written (line 17)")
