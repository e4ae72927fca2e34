"""A whole fleet of real processes on the simulated device, with cells and once the head killed.

    python -m benchmarks.fleet_processes [--problems 200] [--devices 4] [--slots 4] [--every 5]

Each problem is a template of 24 configurations whose times are computed, so that its best is known: the
winners are held against that. All kinds of devices are the one simulated device under several names. Every
few seconds the process of a cell is killed with all its workers (`kill -9`), as a node that dies; once the
head is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

BLOCKS, LANES = (32, 64, 96, 128, 192, 256), (1, 2, 4, 8)
PROBLEM = """\
name = "{name}"
[kernel]
source = "kernel.fake"
entry = "scale"
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 64)"]
block = ["64"]
[contract]
n = {{ one_of = [8, 64] }}
[workloads]
only = {{ n = 64, cache = "warm" }}
[accuracy]
reference = "reference.py:scale"
"""
KERNEL = '// /// fake\n// args = ["out", "x", "n"]\n// op = "scale"\n// time = "{time}"\n// ///\n'
TEMPLATE = """\
// /// tunesmith
// [params]
// BLOCK = {blocks}
// LANES = {lanes}
// [default]
// BLOCK = 64
// LANES = 1
// [launch]
// grid = ["ceildiv(n, BLOCK)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef LANES
#define LANES 1
#endif
int used[] = {{BLOCK, LANES}};
"""
Best = dict[str, int]


def write(folder: Path, problems: int, devices: int, slots: int, seed: int) -> dict[str, Best]:
    """The plan and what it names; of each problem what is best."""
    draw, bests = random.Random(seed), dict[str, Best]()
    for number in range(problems):
        name = f"op{number:03d}"
        best = bests[name] = {"BLOCK": draw.choice(BLOCKS), "LANES": draw.choice(LANES)}
        far = "max({0} - {1}, {1} - {0})"
        cost = (
            f"1000 + 50 * {far.format('BLOCK', best['BLOCK'])} + 900 * {far.format('LANES', best['LANES'])}"
        )
        own = folder / "ops" / name
        own.mkdir(parents=True)
        template = TEMPLATE.format(blocks=list(BLOCKS), lanes=list(LANES)) + KERNEL.format(time=cost)
        files = {"kernel.fake": KERNEL.format(time="20000"), "template.fake": template}
        files |= {
            "problem.toml": PROBLEM.format(name=name),
            "reference.py": "def scale(x):\n    return 2.0 * x\n",
        }
        for file, text in files.items():
            (own / file).write_text(text)
    lines = ["device_hours = 100", "[[problem]]", 'path = "ops/*"', 'template = "template.fake"']
    for place in range(devices):
        lines += ["[[device]]", f'name = "kind{place}"', f"slots = {slots}"]
    lines += ["[tune]", "cache = false", "library = false", "builders = 1", 'search = "exhaustive"']
    (folder / "plan.toml").write_text("\n".join(lines) + "\n")
    return bests


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tunesmith", "fleet", "plan.toml", "--out", "fleet"]
    with open(folder / "head.log", "ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def cells_of(head: int) -> list[int]:
    """Processes that it started."""
    try:
        return [int(word) for word in Path(f"/proc/{head}/task/{head}/children").read_text().split()]
    except OSError:
        return []


def chaos(folder: Path, every: float, kill_head_after: float, seed: int) -> tuple[int, int]:
    """Runs it to its end; how many cells were killed, and how it ended."""
    head, draw, killed, begun = start(folder), random.Random(seed), 0, time.monotonic()
    has_head = False
    while head.poll() is None:
        time.sleep(draw.uniform(0.5, 1.5) * every)
        own = [pid for pid in cells_of(head.pid) if os.getpgid(pid) == pid]
        if own and head.poll() is None:
            os.killpg(draw.choice(own), signal.SIGKILL)
            killed += 1
        if not has_head and time.monotonic() - begun > kill_head_after:
            has_head = True
            head.kill()
            head.wait()
            head = start(folder)
    return killed, head.returncode


def told(folder: Path, bests: dict[str, Best]) -> dict[str, object]:
    events = [json.loads(line) for line in (folder / "fleet" / "fleet.jsonl").read_bytes().splitlines()]
    ends = Counter(line["ended"]["how"] for line in events if line["ended"])
    again = Counter(e["ended"]["cell"] for e in events if e["ended"] and e["ended"]["how"] == "finished")
    right = 0
    for report in (folder / "fleet" / "runs").glob("*/report.json"):
        (workload,) = json.loads(report.read_text())["workloads"]
        right += workload["config"] == bests[report.parent.name.partition("@")[0]]
    data = json.loads((folder / "fleet" / "fleet-data.json").read_text())
    statuses = Counter(row["status"] for row in data["rows"])
    return {
        "cells": len(data["rows"]),
        "statuses": dict(statuses),
        "right winners": right,
        "sessions": sum(line["began"] is not None for line in events),
        "ended": dict(ends),
        "finished twice": sum(count > 1 for count in again.values()),
        "heads": sum(line["head"] is not None for line in events),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_processes")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--slots", type=int, default=4, help="of each device")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two deaths, in the mean")
    parser.add_argument(
        "--head-after", type=float, default=60.0, help="seconds after which the head is killed"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fleet-") as scratch:
        folder = Path(scratch)
        bests = write(folder, given.problems, given.devices, given.slots, given.seed)
        begun = time.monotonic()
        killed, code = chaos(folder, given.every, given.head_after, given.seed)
        found = {**told(folder, bests), "killed": killed, "exit": code}
        found["seconds"] = round(time.monotonic() - begun)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stderr.write((folder / "head.log").read_text()[-1500:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
