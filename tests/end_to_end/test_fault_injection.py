"""Hostile kernels in one run: each gets its status, the right one wins, nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.opencl_here import needs_opencl
from tests.running import FIXTURES, expect_success, journal, wait_until_alone

HOSTILE = FIXTURES / "hostile_opencl"
# By KIND: good, illegal address, endless loop, trap, past the end, garbage, poison, printing, copying.
EXPECTED = dict(enumerate(["ok", "crashed", "timed_out", "crashed", *["wrong"] * 5]))

FAKE_TEMPLATE = """\
// /// tunesmith
// [params]
// FAULT = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]
// COPY = [1, 2, 3, 4, 5, 6]
// [default]
// FAULT = 0
// COPY = 6
// [require]
// few_hangs = "FAULT != 5 or COPY == 1"
// [launch]
// grid = ["rows"]
// block = ["64"]
// ///
#ifndef FAULT
#define FAULT 0
#endif
#ifndef COPY
#define COPY 6
#endif
int choices[] = {FAULT, COPY};
// /// fake
// args = ["out", "x", "rows", "d"]
// op = "scale"
// time = "100 * (1000 * COPY + rows * d // 4)"
// fault = "FAULT"
// ///
"""
FAKE_EXPECTED = {
    0: {"ok"},
    1: {"build_failed"},
    2: {"wrong"},
    3: {"crashed"},
    4: {"crashed"},
    5: {"timed_out"},
    6: {"unstable"},
    7: {"wrong"},
    9: {"unstable", "wrong"},  # garbage that differs from run to run is both
    10: {"wrong"},
}


def searched(run: Path) -> dict[tuple[int, ...], str]:
    """Status by configuration, as the journal has it: measured, or unable to run by its build."""
    found = {}
    for line in journal(run):
        event = line["event"]
        if line["type"] == "Pruned":
            assert event["rule"] == "cannot_run"
            status, _, _ = event["reason"].partition(":")
            found[_values(event["config"])] = status
        elif line["type"] == "Measured" and event["outcome"]["trial"]["purpose"] == "search":
            statuses = {result["status"] for result in event["outcome"]["results"]}
            assert len(statuses) == 1
            found[_values(event["outcome"]["trial"]["config"])] = statuses.pop()
    return found


def _values(config: dict[str, Any]) -> tuple[int, ...]:
    return tuple(value for _, value in config["items"])


def nothing_left(folder: Path) -> None:
    assert wait_until_alone(folder) == []
    assert [p.name for p in (folder / "tmp").iterdir()] == []
    expected = {
        "journal.jsonl",
        "lock",
        "objects",
        "plots",
        "report.html",
        "report.json",
        "report.md",
        "tuned",
    }
    expected |= {"certificate.json", "template.cl", "template.fake"}
    assert {p.name for p in (folder / "run").iterdir()} <= expected


@needs_opencl
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("copies", "hostile"), [(1, 8), pytest.param(8, 50, marks=pytest.mark.long)])
@pytest.mark.long
def test_hostile_opencl_kernels(copies: int, hostile: int, tmp_path: Path) -> None:
    text = (HOSTILE / "template.cl").read_text()
    rule = "// few_good = "
    template = tmp_path / "template.cl"
    template.write_text(text.replace(rule, f'// few = "KIND == 0 or COPY <= {copies}"\n{rule}'))
    named = ("--template", template, "--search", "exhaustive", "--out", "run")
    ended = expect_success(tmp_path, "tune", HOSTILE, *named, "--no-cache", "--json", timeout=390)
    statuses = searched(tmp_path / "run")
    assert sum(kind != 0 for kind, _ in statuses) == hostile
    wrong = {config: status for config, status in statuses.items() if status != EXPECTED[config[0]]}
    assert wrong == {}
    assert ended.json["workloads"][0]["config"] == {"KIND": 0, "COPY": 1}
    assert ended.json["workloads"][0]["speedup"] > 2
    nothing_left(tmp_path)


@pytest.mark.timeout(200)
@pytest.mark.long
def test_hostile_simulated_kernels(tmp_path: Path) -> None:
    template = tmp_path / "template.fake"
    template.write_text(FAKE_TEMPLATE)
    scale = FIXTURES / "scale"
    named = ("--template", template, "--search", "exhaustive", "--out", "run")
    ended = expect_success(tmp_path, "tune", scale, *named, "--no-cache", "--json")
    statuses = searched(tmp_path / "run")
    assert len(statuses) == 55
    wrong = {config: status for config, status in statuses.items() if status not in FAKE_EXPECTED[config[0]]}
    assert wrong == {}
    assert ended.json["general"] == {"FAULT": 0, "COPY": 1}
    nothing_left(tmp_path)
