"""A run on two nodes of a Ray cluster, of which one is lost while another comes."""

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

CLUSTER = """
import subprocess, sys, time
from pathlib import Path
from ray.cluster_utils import Cluster

run, *command = sys.argv[1:]
own = {"object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **own})
first = cluster.add_node(num_cpus=2, **own)
cluster.add_node(num_cpus=2, **own)
process = subprocess.Popen([sys.executable, "-m", "tunesmith", *command, "--ray", cluster.address])
journal = Path(run) / "journal.jsonl"
while process.poll() is None and not (journal.is_file() and journal.read_text().count('"Measured"') > 8):
    time.sleep(0.05)
cluster.remove_node(first)
cluster.add_node(num_cpus=2, **own)
code = process.wait()
cluster.shutdown()
sys.exit(code)
"""


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_node_that_is_lost_costs_its_trials_and_one_that_comes_measures(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install -e '.[ray]'")
    problem = tiny.fake_many(tmp_path / "problem")
    (tmp_path / "cluster.py").write_text(CLUSTER)
    own = ["tune", str(problem), "--template", str(problem / "template.fake"), "--out", "run", "--no-cache"]
    command = [sys.executable, "cluster.py", "run", *own, "--search", "random", "--evals", "250"]
    printed = tmp_path / "printed"  # no pipe: Ray's own processes would keep it open
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as short,
        printed.open("w") as file,
    ):  # sockets need short names
        folders = {**environment(tmp_path), "RAY_TMPDIR": short, "TMPDIR": short}
        ended = subprocess.run(
            command, check=False, timeout=380, cwd=tmp_path, env=folders, stdout=file, stderr=file
        )
    assert ended.returncode == 0, printed.read_text()
    run = tmp_path / "run"
    (lost,) = of_kind(run, "LeftOut")
    assert lost["lost"]
    assert "left the cluster" in lost["reason"]
    assert len({e["outcome"]["device"] for e in of_kind(run, "Measured")}) > 1
    assert len(of_kind(run, "Verified")) > 0
    assert course(replayed(run)) == course(events_of(run))
