"""A run on a Ray cluster, of which a node is lost while another comes, and a GPU is held by others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.replaying import course, events_of, replayed
from tests.end_to_end.test_devices import of_kind
from tests.running import environment

# Ray believes what a node says of its GPUs, and the simulated device needs none. The run ends when the node
# that came has measured.
CLUSTER = """
import subprocess, sys, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from tunesmith.run.folder import FolderInbox

def has(run, *words):
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.is_file() else []
    return any(all(word in line for word in words) for line in lines)

def wait_for(process, run, *words):
    while process.poll() is None and not has(run, *words):
        time.sleep(0.05)

def gpu_node(cluster):
    return cluster.add_node(num_cpus=1, num_gpus=1, **OWN)

OWN = {"object_store_memory": 80 << 20}
run = Path("run")
head = {"num_cpus": 1, "num_gpus": 1, "include_dashboard": False, **OWN}
cluster = Cluster(initialize_head=True, head_node_args=head)
first = gpu_node(cluster)
process = subprocess.Popen([sys.executable, "-m", "tunesmith", *sys.argv[1:], "--ray", cluster.address])
wait_for(process, run, '"Measured"', first.node_id[:6])
came = gpu_node(cluster)
cluster.remove_node(first)
wait_for(process, run, '"LeftOut"', first.node_id[:6])
wait_for(process, run, '"Measured"', came.node_id[:6])
FolderInbox(run).put("finish")
code = process.wait()
cluster.shutdown()
sys.exit(code)
"""

# One GPU, which is asked for while it is held and given up again: nobody may be in the queue for it then.
HELD = """
import os, socket, sys, time
import ray
from tunesmith.plugins.hosts.ray import Driver

ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20)

@ray.remote(num_gpus=1)
class Holder:
    def there(self):
        return True

holder = Holder.remote()
ray.get(holder.there.remote())
driver = Driver(ray, os.dup(2))
driver.look()
(place,) = driver._places.values()
ours, theirs = socket.socketpair()
import threading
carries = threading.Thread(target=driver._carry, args=(theirs, theirs.makefile("rb"), place))
carries.start()
ours.sendall(b"what it is sent first")
time.sleep(2)
assert carries.is_alive(), "it waits for the GPU"
ours.shutdown(socket.SHUT_WR)
carries.join(10)
assert not carries.is_alive(), "it has been given up"
ray.kill(holder)
until = time.monotonic() + 20
while ray.available_resources().get("GPU") != 1.0:
    assert time.monotonic() < until
    time.sleep(0.1)
time.sleep(1.5)
assert ray.available_resources().get("GPU") == 1.0, "nobody has taken it"
"""


def ran(folder: Path, script: str, *arguments: str) -> str:
    """What it prints; no pipe: Ray's own processes would keep it open."""
    (folder / "script.py").write_text(script)
    printed = folder / "printed"
    with tempfile.TemporaryDirectory(dir="/tmp") as short, printed.open("w") as file:
        # Sockets need short names, and without bytecode every process starts seconds later.
        own = {**environment(folder), "RAY_TMPDIR": short, "TMPDIR": short}
        own.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "script.py", *arguments]
        ended = subprocess.run(
            command, check=False, timeout=380, cwd=folder, env=own, stdout=file, stderr=file
        )
    assert ended.returncode == 0, printed.read_text()
    return printed.read_text()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_node_that_is_lost_costs_its_trials_and_one_that_comes_measures(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install -e '.[ray]'")
    problem = tiny.fake_many(tmp_path / "problem")
    own = ["tune", str(problem), "--template", str(problem / "template.fake"), "--out", "run", "--no-cache"]
    ran(tmp_path, CLUSTER, *own, "--search", "random", "--evals", "2000")
    run = tmp_path / "run"
    (lost,) = of_kind(run, "LeftOut")
    assert lost["lost"]
    assert "left the cluster" in lost["reason"]
    measured = {e["outcome"]["device"] for e in of_kind(run, "Measured")}
    assert lost["device"] in measured
    assert len(measured) == 3, "those that were there at first, and the one that came"
    assert len(of_kind(run, "Verified")) > 0
    assert course(replayed(run)) == course(events_of(run))


@pytest.mark.long
@pytest.mark.timeout(200)
def test_who_no_longer_waits_for_a_busy_gpu_does_not_take_it_later(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install -e '.[ray]'")
    ran(tmp_path, HELD)
