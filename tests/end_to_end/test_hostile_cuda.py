"""Fifty hostile CUDA kernels in one run: each gets its status, the right one wins, nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cuda.hostile import table
from benchmarks.cuda.journals import read_run
from tests.cuda_here import needs_no_driver, needs_nvrtc
from tests.running import FIXTURES, expect_success, journal, tunesmith, wait_until_alone
from tunesmith.backends.cuda.devices import describe_all

HOSTILE = FIXTURES / "hostile_cuda"
EXPECTED = json.loads((HOSTILE / "expected.json").read_text(encoding="utf-8"))
NEEDED = 32 << 30  # bytes of device memory: arrays of more than 2^31 elements, several times
TUNE = ("tune", HOSTILE, "--template", HOSTILE / "template.cu", "--out", "run", "--no-cache", "--json")


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_gets_its_status_and_the_right_one_wins(tmp_path: Path) -> None:
    memory = describe_all()[0].limits.memory
    if memory < NEEDED:
        pytest.skip(f"needs {NEEDED} bytes of device memory, there are {memory}")
    ended = expect_success(tmp_path, *TUNE, timeout=590)
    rows = table(read_run(tmp_path / "run"), EXPECTED)
    assert [row for row in rows if not row["right"]] == []
    assert sum(row["kind"] not in EXPECTED["right"] for row in rows) >= 40
    assert ended.json["general"] == {"KIND": EXPECTED["winner"]}
    assert {row["config"]["KIND"] for row in ended.json["workloads"]} == {EXPECTED["winner"]}
    assert wait_until_alone(tmp_path) == []
    assert [p.name for p in (tmp_path / "tmp").iterdir()] == []


@needs_nvrtc
@needs_no_driver
@pytest.mark.slow
@pytest.mark.long
def test_what_needs_no_device_is_reported_without_one(tmp_path: Path) -> None:
    """The compiler's refusals and the device's limits; nothing else fails before it runs."""
    ended = tunesmith(tmp_path, *TUNE)
    assert ended.code == 5, ended.err
    statuses = {f["config"]["KIND"]: f["status"] for f in ended.json["report"]["failures"]}
    static = ("build_failed", "over_limits")
    assert statuses == {
        int(kind): row["status"][0] for kind, row in EXPECTED["kinds"].items() if row["status"][0] in static
    }
    assert kinds_surveyed(journal(tmp_path / "run")) == set(map(int, EXPECTED["kinds"]))


def kinds_surveyed(lines: list[dict[str, Any]]) -> set[int]:
    configs = [line["event"]["config"] for line in lines if line["type"] == "Surveyed"]
    return {value for config in configs if config for _, value in config["items"]}
