"""kill -9 at any moment, then resume: the run ends as the uninterrupted one and measures nothing twice."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.replaying import events_of, replayed
from tests.opencl_here import needs_opencl
from tests.running import FIXTURES, Begun, facts, journal, tunesmith, wait_for_events, wait_until_alone

KILLS = 5  # of one simulated run, one after the other
TEMPLATE = """\
// /// tunesmith
// [params]
// BLOCK = [32, 64]
// VEC = [1, 2, 4, 8]
// FAULT = [0, 1, 2]
// [default]
// BLOCK = 64
// VEC = 1
// FAULT = 0
// [require]
// few_faults = "FAULT == 0 or VEC == 1"
// [launch]
// grid = ["rows"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
int choices[] = {BLOCK, VEC, FAULT};
// /// fake
// args = ["out", "x", "rows", "d"]
// op = "scale"
// time = "100 * (9000 + rows * d // VEC + 50 * (BLOCK - 64))"
// fault = "FAULT"
// ///
"""


def tune(problem: Path, template: Path, *more: object) -> tuple[object, ...]:
    return ("tune", problem, "--template", template, "--no-cache", "--seed", 3, "--out", "run", *more)


def kill(folder: Path, command: tuple[object, ...], events: int, pause: float) -> int:
    """How many events the journal had when the process was killed."""
    process = Begun(folder, *command)
    wait_for_events(folder / "run", events, process)
    time.sleep(pause)
    process.kill()
    assert wait_until_alone(folder) == []
    return len(journal(folder / "run"))


def resume(folder: Path) -> None:
    ended = tunesmith(folder, "resume", "run", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["unproven"] == "", "its journal is one chain, whenever it was killed"
    assert (folder / "run" / "certificate.json").exists()


def kill_and_resume(folder: Path, command: tuple[object, ...], events: int, pause: float) -> int:
    written = kill(folder, command, events, pause)
    if written:  # killed before it began: nothing to lose, nothing to resume
        resume(folder)
    return written


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.parametrize("points", [5, pytest.param(50, marks=pytest.mark.long)])
def test_killed_anywhere_on_the_simulated_device(points: int, tmp_path: Path) -> None:
    template = tmp_path / "template.fake"
    template.write_text(TEMPLATE)
    whole = tmp_path / "whole"
    whole.mkdir()
    problem = shutil.copytree(FIXTURES / "scale", tmp_path / "problem")
    text = (problem / "problem.toml").read_text()
    for larger, smaller in (("max = 64 }", "max = 16 }"), ("max = 2048,", "max = 256,")):
        assert larger in text
        text = text.replace(larger, smaller)
    one_workload = [line for line in text.splitlines() if not line.startswith("wide")]
    (problem / "problem.toml").write_text("\n".join(one_workload) + "\n")
    command = tune(problem, template, "--search", "random")
    ended = tunesmith(whole, *command)
    assert ended.code == 0, ended.err
    expected = facts(whole / "run")
    delivered = _delivered(whole)
    rng = random.Random(7)
    # A run is killed in each part of its life, once as it is started and then as it is resumed.
    part = len(expected) / KILLS
    runs = [
        [(int(part * (n + rng.random())), rng.uniform(0, 0.1)) for n in range(KILLS)]
        for _ in range(points // KILLS)
    ]

    def one(number: int) -> str | None:
        folder = tmp_path / str(number)
        folder.mkdir()
        written, killed = 0, []
        for events, pause in runs[number]:
            if written:  # a process that goes on has to get somewhere before it is killed
                written = kill(folder, ("resume", "run"), max(events, written + 1), pause)
            else:
                written = kill(folder, command, events, pause)
            killed.append(written)
            halfway.append(0 < written < len(expected))
        resume(folder)
        same = facts(folder / "run") == expected and _delivered(folder) == delivered
        left = [p.name for p in (folder / "run").iterdir() if p.name == "scratch" or ".new" in p.name]
        return None if same and not left else f"killed with {killed} events: {left}"

    halfway: list[bool] = []
    with ThreadPoolExecutor(2) as pool:
        assert [fault for fault in pool.map(one, range(len(runs))) if fault] == []
    assert len(halfway) == points
    assert sum(halfway) > points * 0.7


def _delivered(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (folder / "run" / "tuned").iterdir()}


@needs_opencl
@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.long
def test_killed_on_a_real_device(tmp_path: Path) -> None:
    points = 3
    problem = shutil.copytree(FIXTURES / "hostile_opencl", tmp_path / "problem")
    smaller = (problem / "problem.toml").read_text().replace("1000000", "20000").replace("262144", "16384")
    (problem / "problem.toml").write_text(smaller)
    template = tmp_path / "template.cl"
    text = (problem / "template.cl").read_text()
    # Good ones, crashes and wrong ones; endless loops are another test's subject.
    template.write_text(text.replace("[0, 1, 2, 3, 4, 5, 6, 7, 8]", "[0, 1, 4]").replace("few_hangs", "few")
                        .replace('"KIND != 2 or COPY <= 4"', '"KIND == 0 or COPY == 1"'))  # fmt: skip
    whole = tmp_path / "whole"
    whole.mkdir()
    command = tune(problem, template, "--search", "exhaustive")  # which ends when all have been tried
    ended = tunesmith(whole, *command, "--json")
    assert ended.code == 0, ended.err
    total = len(journal(whole / "run"))
    rng = random.Random(11)
    folder, run = tmp_path / "killed", tmp_path / "killed" / "run"
    folder.mkdir()
    written, killed = 0, []
    for number in range(points):
        events = max(1 + int((total - 1) / points * (number + rng.random())), written + 1)
        written = kill(folder, ("resume", "run") if written else command, events, rng.uniform(0, 0.5))
        assert written
        killed.append(written)
    resume(folder)
    lines = journal(run)
    measured = Counter(e["event"]["outcome"]["trial"]["id"] for e in lines if e["type"] == "Measured")
    assert set(measured.values()) == {1}, f"killed with {killed} events"
    # Times differ between two runs of a real device; what was tried, and how it went, does not.
    assert _statuses(run) == _statuses(whole / "run"), f"killed with {killed} events"
    # And every decision is the one an uninterrupted run makes on the same measurements.
    assert replayed(run) == events_of(run), f"killed with {killed} events"


def _statuses(run: Path) -> dict[str, list[str]]:
    found = {}
    for line in journal(run):
        if line["type"] == "Measured" and line["event"]["outcome"]["trial"]["purpose"] == "search":
            outcome = line["event"]["outcome"]
            found[str(outcome["trial"]["config"])] = [r["status"] for r in outcome["results"]]
    return found
