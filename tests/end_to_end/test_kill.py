"""kill -9 at any moment, then resume: the run ends as the uninterrupted one and measures nothing twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.killing import (
    Command,
    kill,
    kill_at_random,
    on_opencl,
    resume,
    same_decisions,
    same_events,
    simulated,
)
from tests.opencl_here import needs_opencl
from tests.running import expect_success, facts, journal

KILLS = 5  # of one simulated run at most, one after the other


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.parametrize("points", [2, pytest.param(50, marks=pytest.mark.long)])
def test_killed_anywhere_on_the_simulated_device(points: int, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    command = simulated(tmp_path)
    expect_success(whole, *command)
    expected = facts(whole / "run")
    rng = random.Random(7)
    # A run is killed in each part of its life, once as it is started and then as it is resumed.
    kills = min(points, KILLS)
    part = len(expected) / kills
    runs = [
        [(int(part * (n + rng.random())), rng.uniform(0, 0.1)) for n in range(kills)]
        for _ in range(points // kills)
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
        fault = same_events(folder, whole)
        return f"killed with {killed} events: {fault}" if fault else None

    halfway: list[bool] = []
    with ThreadPoolExecutor(2) as pool:
        assert [fault for fault in pool.map(one, range(len(runs))) if fault] == []
    assert len(halfway) == points
    assert sum(halfway) > points * 0.7


@needs_opencl
@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.long
def test_killed_on_a_real_device(tmp_path: Path) -> None:
    points = 3
    whole = tmp_path / "whole"
    whole.mkdir()
    command = on_opencl(tmp_path)
    expect_success(whole, *command, "--json")
    total = len(journal(whole / "run"))
    rng = random.Random(11)
    folder = tmp_path / "killed"
    folder.mkdir()
    written, killed = 0, []
    for number in range(points):
        events = max(1 + int((total - 1) / points * (number + rng.random())), written + 1)
        written = kill(folder, ("resume", "run") if written else command, events, rng.uniform(0, 0.5))
        assert written
        killed.append(written)
    resume(folder)
    assert same_decisions(folder, whole) == "", f"killed with {killed} events"


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("make", "same", "kills"),
    [(simulated, same_events, 180), pytest.param(on_opencl, same_decisions, 20, marks=needs_opencl)],
    ids=["simulated", "opencl"],
)
def test_killed_at_any_time(
    make: Callable[[Path], Command], same: Callable[[Path, Path], str], kills: int, tmp_path: Path
) -> None:
    found = kill_at_random(tmp_path, make, same, kills, random.Random(1), print)
    assert found.equal == found.kills == kills
    assert found.halfway > kills * 0.5
