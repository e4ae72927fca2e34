"""From a running program to a proven problem folder, on a real GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tunesmith
from tests.plugins.repo.capture.test_on_gpu import PROGRAM
from tunesmith.base.errors import KernelWrong
from tunesmith.session.problems import load_problem

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __global__ void triple(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = FACTOR * x[i];
}
"""


def test_what_ran_is_extracted_and_proven(tmp_path: Path) -> None:
    seen = tunesmith.capture_program([sys.executable, "-c", PROGRAM], out=tmp_path / "seen", keep=["triple"])
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "triple.cu").write_text(SOURCE.replace("FACTOR", "3.0f"))
    found = tunesmith.extract(sources, kernel="triple", capture=seen.folder, out=tmp_path / "problem")
    assert found.fills == 0
    assert found.proof
    launches = [line for line in found.proof if line.startswith("launch")]
    assert all("as captured" in line for line in launches), found.proof
    assert any(file.startswith("recorded_") for file in found.files), found.proof
    assert load_problem(tmp_path / "problem").definition.recorded
    (sources / "triple.cu").write_text(SOURCE.replace("FACTOR", "2.0f"))
    with pytest.raises(KernelWrong, match="x differs from what was captured"):
        tunesmith.extract(sources, kernel="triple", capture=seen.folder, out=tmp_path / "wrong")
