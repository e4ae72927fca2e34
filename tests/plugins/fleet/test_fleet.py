"""A fleet as its user runs it: processes on the simulated device, killed, stopped, resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly
from tests.running import environment, start, tunesmith

BESTS = {"op0": 32, "op1": 64, "op2": 128}  # BLOCK


def write(folder: Path, devices: str = '[[device]]\nname = "a"\n[[device]]\nname = "b"\nslots = 2\n') -> Path:
    """Three problems of four configurations, each with another one that is best."""
    for name, best in BESTS.items():
        own = tiny.fake(folder / "ops" / name)
        tiny.spoil(own / "problem.toml", '"tiny"', f'"{name}"')
        tiny.spoil(own / "template.fake", "100 * BLOCK", f"1000 + 50 * max(BLOCK - {best}, {best} - BLOCK)")
    text = 'device_hours = 1\n[[problem]]\npath = "ops/*"\ntemplate = "template.fake"\n'
    (folder / "plan.toml").write_text(f"{text}{devices}[tune]\ncache = false\nlibrary = false\n")
    return folder / "plan.toml"


def winners(fleet: Path) -> dict[str, int]:
    """BLOCK of each cell that is finished."""
    found = {}
    for report in sorted(fleet.glob("runs/*/report.json")):
        (workload,) = json.loads(report.read_text())["workloads"]
        found[report.parent.name] = workload["config"]["BLOCK"]
    return found


def expected(*devices: str) -> dict[str, int]:
    return {f"{name}@{device}+expert": best for name, best in BESTS.items() for device in devices}


def cells_at_work() -> list[int]:
    """Processes of cells, by what they are called."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"tunesmith.plugins.fleet.cell" in words and entry.name.isdecimal():
            found.append(int(entry.name))
    return found


def lines(fleet: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (fleet / "fleet.jsonl").read_bytes().split(b"\n")[:-1]]


def wait_for(what: Any, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.1)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_cells_and_the_head_are_killed_and_the_winners_are_right(tmp_path: Path) -> None:
    write(tmp_path)
    fleet, draw = tmp_path / "fleet", random.Random(7)
    before = set(cells_at_work())
    head = start(tmp_path, "fleet", "plan.toml", "--out", "fleet")
    for _ in range(2):
        wait_for(lambda: set(cells_at_work()) - before or head.poll() is not None)
        time.sleep(draw.uniform(0.5, 4.0))
        if own := sorted(set(cells_at_work()) - before):
            os.killpg(draw.choice(own), signal.SIGKILL)  # a node has died
    wait_for(lambda: (fleet / "fleet.jsonl").exists() and len(lines(fleet)) > 4)
    head.send_signal(signal.SIGKILL)
    head.communicate()
    done = tunesmith(tmp_path, "fleet", "fleet", "--json")
    assert done.code == 0, done.err
    assert winners(fleet) == expected("a", "b")
    found = done.json["fleet"]
    assert {row["status"] for row in found["rows"]} == {"finished"}
    events = lines(fleet)
    assert sum(line["head"] is not None for line in events) == 2
    assert any((line["ended"] or {}).get("how") == "lost" for line in events)
    ends = [line["ended"]["cell"] for line in events if (line["ended"] or {}).get("how") == "finished"]
    assert sorted(ends) == sorted(set(ends)), "what is finished is not repeated"
    at_once: set[str] = set()
    for line in events:
        if line["began"]:
            assert line["began"]["cell"] not in at_once, "no cell runs twice at once"
            at_once.add(line["began"]["cell"])
        elif line["ended"]:
            at_once.discard(line["ended"]["cell"])
    again = tunesmith(tmp_path, "fleet", "fleet", "--json")
    assert again.json["fleet"]["rows"] == found["rows"]
    assert [line for line in lines(fleet) if line["began"]] == [line for line in events if line["began"]]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_stopped_as_one_and_resumed_with_a_bad_kernel_among_them(tmp_path: Path) -> None:
    write(tmp_path, '[[device]]\nname = "a"\n')
    tiny.spoil(tmp_path / "ops" / "op1" / "kernel.fake", 'op = "scale"', 'op = "copy"')
    fleet = tmp_path / "fleet"
    tunesmith(tmp_path, "--version")  # so that the next of them is quick
    head = start(tmp_path, "fleet", "plan.toml", "--out", "fleet")
    wait_for(lambda: (fleet / "fleet.jsonl").exists() and len(lines(fleet)) > 1)
    asked = tunesmith(tmp_path, "fleet", "fleet", "--stop")
    assert asked.code == 0, asked.err
    _, err = head.communicate(timeout=120)
    assert head.returncode == 130, err
    assert "go on with: tunesmith fleet fleet" in err
    assert (fleet / "fleet.html").is_file()
    told = tunesmith(tmp_path, "report", "fleet")
    assert (told.code, "this is the folder of a fleet" in told.err) == (2, True)
    done = tunesmith(tmp_path, "resume", "fleet")
    assert done.code == 3, "the kernel is wrong already"
    assert winners(fleet) == {k: v for k, v in expected("a").items() if not k.startswith("op1")}
    assert "op1" in (fleet / "fleet.md").read_text()
    other = tunesmith(tmp_path, "fleet", "plan.toml", "--out", "fleet")
    assert (other.code, "as they were then" in other.err) == (3, False)
    tiny.spoil(tmp_path / "ops" / "op1" / "kernel.fake", 'op = "copy"', 'op = "scale"')
    other = tunesmith(tmp_path, "fleet", "plan.toml", "--out", "fleet")
    assert other.code == 2
    assert "as they were then" in other.err


# Ray believes what a node says of its GPUs, and the simulated device needs none. The node that came second is
# lost, with its raylet and workers, while a cell is at work there.
CLUSTER = """
import os, subprocess, sys, time
from pathlib import Path
from ray.cluster_utils import Cluster

def held_by(raylet):
    for lock in Path("fleet/runs").glob("*/lock"):
        try:
            environ = Path(f"/proc/{int(lock.read_text() or 0)}/environ").read_bytes()
        except (OSError, ValueError):
            continue
        if f"RAY_RAYLET_PID={raylet}\\0".encode() in environ and (lock.parent / "journal.jsonl").is_file():
            return lock.parent.name

size = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
second = cluster.add_node(**size)
raylet = second.all_processes["raylet"][0].process.pid
head = subprocess.Popen([sys.executable, "-m", "tunesmith", *sys.argv[1:], "--ray", cluster.address])
while (cell := held_by(raylet)) is None:
    assert head.poll() is None, "no cell has come to the second node"
    time.sleep(0.02)
cluster.remove_node(second, allow_graceful=False)
print("lost under:", cell, flush=True)
code = head.wait()
cluster.shutdown()
sys.exit(code)
"""


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_node_of_a_ray_cluster_is_lost_and_the_fleet_finishes(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install -e '.[ray]'")
    write(tmp_path, '[[device]]\nname = "a"\nslots = 2\n')
    (tmp_path / "script.py").write_text(CLUSTER)
    printed = tmp_path / "printed"
    with tempfile.TemporaryDirectory(dir="/tmp") as short, printed.open("w") as file:
        # Sockets need short names, and without bytecode every process starts seconds later.
        variables = {**environment(tmp_path), "RAY_TMPDIR": short, "TMPDIR": short}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "script.py", "fleet", "plan.toml", "--out", "fleet"]
        streams = {"stdout": file, "stderr": file}  # no pipe: Ray's own processes would keep it open
        done = subprocess.run(command, check=False, timeout=380, cwd=tmp_path, env=variables, **streams)
    assert done.returncode == 0, printed.read_text()
    assert winners(tmp_path / "fleet") == expected("a")
    cell = printed.read_text().partition("lost under: ")[2].split()[0]
    sessions = [
        line["began"] for line in lines(tmp_path / "fleet") if (line["began"] or {}).get("cell") == cell
    ]
    ends = [line["ended"]["how"] for line in lines(tmp_path / "fleet") if line["ended"]]
    assert (len(sessions), ends) == (1, ["finished"] * 3), "Ray repeats the cell, the head only waits"


def test_bad_plans_and_folders_are_told(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("device_hours = 1\n")
    (tmp_path / "empty").mkdir()
    for arguments, says in (
        (["gone.toml"], "there is no such file"),
        (["plan.toml"], "problem is missing"),
        (["empty"], "there is no fleet in this folder"),
        (["empty", "--stop"], "there is no fleet in this folder"),
        (["empty", "--stop", "--out", "x"], "leave out --out"),
    ):
        done = quickly(tmp_path, "fleet", *arguments)
        assert done.code == 2
        assert says in done.err
        assert "Traceback" not in done.err
