"""Workspaces of a winner in C++: what the caller gives is looked at as arrays are."""

from __future__ import annotations

from pathlib import Path

from tests.core.deliver.programs import read_program
from tests.plugins.exports import operators
from tests.plugins.exports.silu import without_compiler, written
from tests.plugins.exports.test_cuda_cpp import DRIVER, compiled, needs_gxx, run
from tunesmith.plugins.exports.cuda_cpp import CUBIN

pytestmark = [needs_gxx]

# 4 rows: 16 bytes of class, 20 of x, 4 of seen, 32 of work and 32 of more, which the original does not take.
_MAIN = read_program("workspaces-program.cpp")


def test_misaligned_or_overlapping_workspaces_leave_the_call_to_the_original(tmp_path: Path) -> None:
    with without_compiler():
        written(CUBIN.export(operators.artefact()).files, tmp_path)
    stub = DRIVER.replace("silu_and_mul.h", "sum.h")
    (tmp_path / "main.cpp").write_text(stub + _MAIN)
    compiled(tmp_path, "c++14", "main.cpp", "sum.cpp", "-o", "program", "-ldl")
    kernels = [line.split()[0] for line in run(tmp_path).splitlines()]
    tuned, original = kernels[0], kernels[1]
    assert tuned != original
    assert kernels == [tuned, *[original] * 5, tuned]
