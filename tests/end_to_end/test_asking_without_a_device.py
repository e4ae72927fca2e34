"""Questions to the laboratory where the device is absent: builds and references are told, times wait."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cuda_here import needs_no_driver, needs_nvrtc
from tests.end_to_end import written
from tests.end_to_end.test_no_device import cuda
from tests.running import Ended, journal, tunesmith
from tests.talkers import file, plan
from tests.wording import says

pytestmark = pytest.mark.long
ASKING = ("--model", "planner=mailbox:box,author=mailbox:box", "--tools", 3, "--rounds", 1, "--evals", 12)


def ask(tool: str, text: str = "", **more: object) -> str:
    return json.dumps({"tool": tool, **more}) + (f"\n{file(text)}" if text else "")


def said(folder: Path, replies: dict[str, str]) -> None:
    (folder / "box").mkdir()
    for name, text in replies.items():
        answer(folder, name, text)


def answer(folder: Path, name: str, text: str) -> None:
    target = folder / "box" / f"{name}.reply.md"
    target.write_text(text)
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more


def tuned(folder: Path, *more: object) -> Ended:
    return tunesmith(folder, "tune", "problem", "--out", "run", *ASKING, "--no-wait", "--no-prior", *more)


def request(folder: Path, name: str) -> str:
    return (folder / "box" / f"{name}.request.md").read_text()


def used(folder: Path) -> list[str]:
    return [e["event"]["tool"] for e in journal(folder / "run") if e["type"] == "ToolUsed"]


def test_builds_and_references_are_told_and_a_time_waits_for_the_device(tmp_path: Path) -> None:
    written.problem(tmp_path / "problem")
    replies = {
        "0001-planner": ask("compile", base="original"),
        "0002-planner": ask("reference", sizes={"n": 64}, values="ones"),
        "0003-planner": plan(),
        "0004-author": ask("compile", written.WIDE, config={"VEC": 7}),
        "0005-author": ask("time", written.WIDE),
        "0006-author": file(written.WIDE),
    }
    said(tmp_path, replies)
    ended = tuned(tmp_path, "--backend", "fake:absent")
    assert ended.code == 5, ended.err
    says(ended.err, "the reply to request 5 asks for `time`, which waits for it")
    assert used(tmp_path) == ["compile", "reference", "compile"]
    says(request(tmp_path, "0002-planner"), "It builds. At only")
    says(request(tmp_path, "0003-planner"), "out, by the reference", "2, 2, 2")
    says(request(tmp_path, "0005-author"), "VEC = 7 is not among its values: 1, 2, 4; choose one of them")

    here = tunesmith(tmp_path, "resume", "run", "--no-wait")  # where the simulated device is
    assert here.code == 0, here.err
    assert used(tmp_path) == ["compile", "reference", "compile", "time"], "nothing is done twice"
    says(request(tmp_path, "0006-author"), "as fast as the original")


@needs_no_driver
@needs_nvrtc
def test_nvrtc_compiles_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    cuda(tmp_path / "problem")
    said(
        tmp_path,
        {
            "0001-planner": ask("compile", base="original", listing=[1, 9]),
            "0002-planner": ask("reference", sizes={"n": 64}),
            "0003-planner": ask("profile", base="original"),
        },
    )
    ended = tuned(tmp_path, "--device", "sm_90")
    assert ended.code == 5, ended.err
    says(request(tmp_path, "0002-planner"), "scale", "blocks of", "registers", "% occupancy")
    says(request(tmp_path, "0002-planner"), "machine code", "instructions")
    says(request(tmp_path, "0003-planner"), "out, by the reference")
    says(ended.err, "the reply to request 3 asks for `profile`, which waits for it")
