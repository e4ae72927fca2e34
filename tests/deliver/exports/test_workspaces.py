"""Workspaces of a winner in C++: what the caller gives is looked at as arrays are."""

from __future__ import annotations

from pathlib import Path

from tests.cuda_here import needs_nvrtc
from tests.deliver.exports import operators
from tests.deliver.exports.silu import written
from tests.deliver.exports.test_cuda_cpp import DRIVER, compiled, needs_gxx, run
from tunesmith.deliver.exports.cuda_cpp import CUBIN

pytestmark = [needs_nvrtc, needs_gxx]

# 4 rows: 16 bytes of class, 20 of x, 4 of seen, 32 of work and 32 of more, which the original does not take.
_MAIN = """
static void call(long long work, long long more) {
    const int error = sum_tuned::launch((float*)0x10000, (const unsigned char*)0x20000, (int*)0x30000,
                                        (long long*)work, 2.0f, 0, 4, 4, 0, (float*)more, nullptr);
    std::printf("%s\\n", error != 0 ? "an error" : last);
}
int main() {
    call(0x40000, 0x50000);  // as it was verified
    call(0x40000, 0);        // none
    call(0x40000, 0x50002);  // misaligned
    call(0x40000, 0x10008);  // in an output
    call(0x40000, 0x20008);  // in an input, which it would write to
    call(0x40000, 0x40018);  // in a workspace of the original's
    call(0x40000, 0x40020);  // right behind it
}
"""


def test_misaligned_or_overlapping_workspaces_leave_the_call_to_the_original(tmp_path: Path) -> None:
    made = CUBIN.export(operators.artefact())
    written(made.files, tmp_path)
    stub = DRIVER.replace("silu_and_mul.h", "sum.h")
    (tmp_path / "main.cpp").write_text(stub + _MAIN)
    compiled(tmp_path, "c++14", "main.cpp", "sum.cpp", "-o", "program", "-ldl")
    kernels = [line.split()[0] for line in run(tmp_path).splitlines()]
    tuned, original = kernels[0], kernels[1]
    assert tuned != original
    assert kernels == [tuned, *[original] * 5, tuned]


def test_the_header_says_who_fills_what() -> None:
    header = CUBIN.export(operators.artefact()).files["sum.h"].decode()
    assert (
        "float* work_more: workspace of float32 [rows, 2], aligned to 4 bytes, you fill it with 0.25"
        in header
    )
    assert "output of float32 [rows], aligned to 4 bytes, you fill it with 0.5 before each call" in header
    assert "arrays and workspaces are aligned as said" in header
