"""The count of what the cpu device's watch finds: kernels with and without a fault, and those not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import alarms
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
    "beyond": f"{_INDEX} if (i <= n) x[i] *= 2.0f;",
    "clustered": f'{_INDEX} asm volatile("wgmma.fence.sync;"); if (i < n) x[i] *= 2.0f;',
}


def test_the_summary_counts_each_outcome() -> None:
    found = [WatchCount("a"), WatchCount("b", ("watch finds it",)), WatchCount("c", unknown="clusters")]
    assert summary([*found, WatchCount("d", failed="it hangs")]) == (
        "4 kernels: 2 watched, 1 of them without a finding, 1 with; 1 not known here, 1 failed"
    )


@needs_cpu
@pytest.mark.long
def test_every_kernel_is_counted(tmp_path: Path) -> None:
    for name, body in KERNELS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "problem.toml").write_text(_PROBLEM.format(name=name))
        (tmp_path / name / "kernel.cu").write_text(f"__global__ void {name}(float *x, int n) {{ {body} }}\n")
    out = tmp_path / "figures.json"
    alarms.main([str(tmp_path), "--jobs", "2", "--out", str(out)])
    found = {one["name"]: one for one in json.loads(out.read_text())["kernels"]}
    assert {name: one["outcome"] for name, one in found.items()} == {
        "twice": "clean",
        "beyond": "found",
        "clustered": "unknown",
    }
    assert "outside its array" in found["beyond"]["findings"][0]
