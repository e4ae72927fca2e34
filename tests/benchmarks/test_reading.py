"""Counts over kernels: what the expert reads, and what the cpu device's watch finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import alarms, reading
from benchmarks.alarms import WatchCount, summary
from tests.cpu_here import needs_cpu

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


WATCHED = {
    "twice": f"{_INDEX} if (i < n) x[i] *= 2.0f;",
    "beyond": f"{_INDEX} if (i <= n) x[i] *= 2.0f;",
    "clustered": f'{_INDEX} asm volatile("wgmma.fence.sync;"); if (i < n) x[i] *= 2.0f;',
}


def write_kernels(place: Path, kernels: dict[str, str]) -> None:
    for name, body in kernels.items():
        (place / name).mkdir()
        (place / name / "problem.toml").write_text(_PROBLEM.format(name=name))
        (place / name / "kernel.cu").write_text(f"__global__ void {name}(float *x, int n) {{ {body} }}\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    write_kernels(place, KERNELS)
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


def test_the_summary_counts_each_outcome() -> None:
    found = [WatchCount("a"), WatchCount("b", ("watch finds it",)), WatchCount("c", unknown="clusters")]
    assert summary([*found, WatchCount("d", failed="it hangs")]) == (
        "4 kernels: 2 watched, 1 of them without a finding, 1 with; 1 not known here, 1 failed"
    )


@needs_cpu
@pytest.mark.long
def test_every_kernel_is_watched_and_counted(tmp_path: Path) -> None:
    write_kernels(tmp_path, WATCHED)
    out = tmp_path / "figures.json"
    alarms.main([str(tmp_path), "--jobs", "2", "--out", str(out)])
    found = {one["name"]: one for one in json.loads(out.read_text())["kernels"]}
    outcomes = {name: one["outcome"] for name, one in found.items()}
    assert outcomes == {"twice": "clean", "beyond": "found", "clustered": "unknown"}
    assert "outside its array" in found["beyond"]["findings"][0]
