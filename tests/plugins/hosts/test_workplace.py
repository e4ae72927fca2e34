from __future__ import annotations

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tunesmith.plugins.hosts.transport import host_greeting
from tunesmith.session.place import HERE, one_thread, usable_cores


def threads() -> int:
    np.linalg.inv(np.eye(2))
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_with_the_last_of_runs_that_overlap_the_threads_come_back() -> None:
    with threadpool_limits(2):
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == 1
        first.__exit__(None, None, None)
        assert threads() == 1
        second.__exit__(None, None, None)
        assert threads() == 2


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("", {}, 16),
        ("0::/\n", {}, 16),
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "250000 100000\n", "cpu.max": "x"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000\n", "a/cpu.max": "800000 100000\n"}, 1),
        ("0::/host/path\n", {"cpu.max": "200000 100000\n"}, 2),  # a container that sees only its own
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, 16),
        *(
            ("0::/\n", {"cpu.max": text}, 16)
            for text in ("", "max\n", "100000\n", "-1 100000\n", "1 0\n", "1 2 3\n", "\u00b2 1\n")
        ),
        ("0::/\nnonsense\n:\n7:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1"}, 16),
        (
            "4:memory:/m\n3:cpu,cpuacct:/a\n",
            {"cpu/a/cpu.cfs_quota_us": "150000\n", "cpu/a/cpu.cfs_period_us": "50000\n"},
            3,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16),
    ],
)
def test_quotas_of_control_groups_limit_the_cores(tmp_path, monkeypatch, groups, files, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)), raising=False)
    for name, text in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{n}": t for n, t in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores


def test_affinity_limits_the_cores_here_and_of_a_host(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3}, raising=False)
    assert (HERE.cores, host_greeting().cores) == (1, 1)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(tmp_path) == 64
