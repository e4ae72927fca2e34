"""A machine without a GPU: CUDA kernels are checked on the cpu device, watched there, and never timed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.cuda_here import needs_no_driver, needs_nvrtc
from tests.end_to_end import tiny
from tests.end_to_end.asking import refused
from tests.end_to_end.test_no_device import cuda
from tests.running import journal, tunesmith
from tests.talkers import file, plan
from tests.wording import says

pytestmark = [needs_cpu, needs_no_driver]


def long_with_nvrtc(function: Callable[..., None]) -> Callable[..., None]:
    return needs_nvrtc(pytest.mark.long(function))


def said(folder: Path, replies: dict[str, str]) -> None:
    (folder / "box").mkdir()
    for name, text in replies.items():
        answer(folder, name, text)


def answer(folder: Path, name: str, text: str) -> None:
    target = folder / "box" / f"{name}.reply.md"
    target.write_text(text)
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more


def request(folder: Path, name: str) -> str:
    return (folder / "box" / f"{name}.request.md").read_text()


@needs_nvrtc
def test_check_takes_it_by_itself(tmp_path: Path) -> None:
    cuda(tmp_path / "problem")
    ended = tunesmith(tmp_path, "check", "problem", "--sanitize")
    assert ended.code == 0, ended.err
    right, sanitized, built, untimed = ended.out.splitlines()
    says(right, "tiny is right on", "on cpu (")
    says(sanitized, "sanitized: cpu", "watch", "small cases")
    says(built, "tiny builds with nvrtc", "which is not here")
    says(untimed, "times none")


@long_with_nvrtc
def test_check_watches_it_there(tmp_path: Path) -> None:
    problem = cuda(tmp_path / "problem")
    # What is read in vain changes no result.
    tiny.spoil(problem / "kernel.cu", "if (i < n) ", "volatile float v = x[i < n ? i : n];\n    if (i < n) ")
    ended = tunesmith(tmp_path, "check", "problem", "--device", "cpu", "--sanitize")
    refused(ended, 3, "watch finds a read of 4 bytes outside its array in scale at kernel.cu:4")


@long_with_nvrtc
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


@long_with_nvrtc
def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    problem = cuda(tmp_path / "problem")
    tiny.spoil(problem / "kernel.cu", "twice(x[i])", "twice(x[i]) + 1.0f")
    for command in (("check",), ("tune", "--template", "problem/template.cu", "--out", "run")):
        ended = tunesmith(tmp_path, command[0], "problem", *command[1:])
        refused(ended, 3, "the kernel is wrong already")


@long_with_nvrtc
@pytest.mark.timeout(600)
def test_a_model_mends_its_draft_without_a_gpu(tmp_path: Path) -> None:
    problem = cuda(tmp_path / "problem")
    right = (problem / "template.cu").read_text()
    (problem / "template.cu").unlink()
    wrong = right.replace("if (i < n)", "if (i < n && BLOCK != 256)")
    assert wrong != right
    said(tmp_path, {"0001-planner": plan(), "0002-author": file(wrong)})
    asked = ("--model", "planner=mailbox:box,author=mailbox:box", "--rounds", 1, "--evals", 4, "--no-prior")
    ended = tunesmith(tmp_path, "tune", "problem", "--out", "run", *asked, "--no-wait", "--device", "cpu")
    assert ended.code == 4, ended.err
    says(request(tmp_path, "0003-author"), "BLOCK=256 is wrong", "on cpu (")
    answer(tmp_path, "0003-author", file(right))
    ended = tunesmith(tmp_path, "resume", "run", "--no-wait")
    assert ended.code == 5, ended.err
    says(ended.err, "the gate of 2 on cpu (", "4 of 4 configurations right", "again on a GPU")
    says(ended.err.splitlines()[-2], "right here, not timed: resume where a GPU is")
    events = [(line["type"], line["event"]) for line in journal(tmp_path / "run")]
    kinds = [kind for kind, _ in events]
    assert kinds.count("Rejected") == 1
    assert not {"Admitted", "Baseline", "Measured"} & {*kinds}, "only a GPU lets it in"
    tried = [
        (e["config"]["candidate"], e["left"]) for kind, e in events if kind == "Rehearsed" and e["config"]
    ]
    assert tried == [(own, left) for own in ("1", "2") for left in (3, 2, 1, 0)]
    says(tunesmith(tmp_path, "report", "run").out, "the gate of 2 on cpu", "not timed")
