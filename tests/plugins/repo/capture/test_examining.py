"""What `doctor` says of capturing."""

from __future__ import annotations

import pytest

from tests.plugins.repo.capture.played import needs_compiler, with_played_gpu
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.capture.capture import examine_capture


@needs_compiler
def test_a_program_is_watched_for_a_try(monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)
    found = examine_capture()
    assert (found.usable, found.detail) == (
        True,
        "compiler, driver and CUPTI are here, and a program was watched",
    )
    monkeypatch.setenv("PLAYED_REFUSES", "1")
    refused = examine_capture()
    assert (refused.usable, "another profiler may be at work" in refused.detail) == (False, True)


@needs_compiler
def test_another_tool_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/other.so")
    found = examine_capture()
    assert (found.usable, "/opt/other.so watches programs here already" in found.detail) == (False, True)


@needs_compiler
def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)
    monkeypatch.setattr("tunesmith.plugins.repo.capture.capture._PROGRAM", "import sys; sys.exit(3)")
    assert examine_capture().detail == "a C compiler is here, an NVIDIA driver with a device is not"


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_folder: object) -> None:
        raise BadInput("no C compiler is here", hint="install gcc")

    monkeypatch.setattr("tunesmith.plugins.repo.capture.capture.build_watcher", none)
    found = examine_capture()
    assert (found.usable, found.detail, found.fix) == (False, "no C compiler is here", "install gcc")
