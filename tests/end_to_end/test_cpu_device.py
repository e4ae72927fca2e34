"""A machine without a GPU: CUDA kernels are checked on the cpu device, watched there, and never timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.cuda_here import needs_no_driver, needs_nvrtc
from tests.end_to_end import tiny
from tests.end_to_end.asking import refused
from tests.end_to_end.test_no_device import cuda
from tests.running import journal, tunesmith
from tests.wording import says

pytestmark = [needs_cpu, needs_no_driver]


@needs_nvrtc
def test_check_takes_it_by_itself_and_with_its_name(tmp_path: Path) -> None:
    problem = cuda(tmp_path / "problem")
    ended = tunesmith(tmp_path, "check", "problem", "--sanitize")
    assert ended.code == 0, ended.err
    right, sanitized, built, untimed = ended.out.splitlines()
    says(right, "tiny is right on", "on cpu (")
    says(sanitized, "sanitized: cpu", "watch", "small cases")
    says(built, "tiny builds with nvrtc", "which is not here")
    says(untimed, "times none")
    # What is read in vain changes no result.
    tiny.spoil(problem / "kernel.cu", "if (i < n) ", "volatile float v = x[i < n ? i : n];\n    if (i < n) ")
    ended = tunesmith(tmp_path, "check", "problem", "--device", "cpu", "--sanitize")
    refused(ended, 3, "watch finds a read of 4 bytes outside its array in scale at kernel.cu:4")


@needs_nvrtc
@pytest.mark.long
def test_a_run_is_checked_and_waits_for_a_gpu(tmp_path: Path) -> None:
    cuda(tmp_path / "problem")
    more = ("--template", "problem/template.cu", "--device", "cpu", "--evals", 2, "--out", "run")
    ended = tunesmith(tmp_path, "tune", "problem", *more)
    assert ended.code == 5, ended.out
    says(ended.err.splitlines()[-2], "right here, not timed: resume where a GPU is")
    events = [line["type"] for line in journal(tmp_path / "run")]
    assert events[:4] == ["Started", "Rehearsed", "Admitted", "Rehearsed"]
    found = [line["event"] for line in journal(tmp_path / "run") if line["type"] == "Rehearsed"]
    assert [one["status"] for one in found] == ["ok", "ok"]
    assert all(one["cases"] > 5 for one in found)
    assert not {"Baseline", "Measured", "Verified"} & {*events}
    says(tunesmith(tmp_path, "report", "run").out, "checked", "not timed")


@needs_nvrtc
@pytest.mark.long
def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    problem = cuda(tmp_path / "problem")
    tiny.spoil(problem / "kernel.cu", "twice(x[i])", "twice(x[i]) + 1.0f")
    for command in (("check",), ("tune", "--template", "problem/template.cu", "--out", "run")):
        ended = tunesmith(tmp_path, command[0], "problem", *command[1:])
        refused(ended, 3, "the kernel is wrong already")
