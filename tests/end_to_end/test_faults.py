"""What a machine can do to a run: said for what it is, nothing lost, resumed to the same decisions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import refused
from tests.running import Begun, environment, facts, journal, tunesmith, wait_for_events, wait_until_alone
from tests.wording import says
from tunesmith import api
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.lab import LocalLab
from tunesmith.run.outcome import Outcome

COMMAND = ("tune", "problem", "--template", "problem/template.fake", "--no-cache", "--seed", 3)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return tiny.fake(tmp_path / "problem")


def without_home(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """As a service starts it: nothing says where a home could be."""
    own = environment(folder)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TUNESMITH_CACHE_DIR", "TUNESMITH_LIBRARY_DIR"):
        own.pop(name, None)
    command = [sys.executable, "-m", "tunesmith", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=120)


@pytest.mark.long
def test_without_a_home_nothing_lands_in_the_current_folder(tmp_path: Path, problem: Path) -> None:
    ended = without_home(tmp_path, *COMMAND[:4], "--evals", 1, "--out", "run")
    assert ended.returncode == 0, ended.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"problem", "run", "tmp"}
    private = tmp_path / "tmp" / f"tunesmith-{os.getuid()}"
    says(ended.stderr, "HOME is not set", str(private))
    assert (private / "tunesmith" / "results.sqlite").exists()
    assert private.stat().st_mode & 0o077 == 0


class TestVanishedDevice:
    @pytest.fixture
    def vanishing(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
        """The device is gone after so many outcomes."""

        def after(count: int) -> None:
            collect, seen = LocalLab.collect, []

            def until_it_is_gone(self: LocalLab) -> Outcome:
                if len(seen) >= count:
                    raise DeviceMissing("the device cannot be opened any more")
                seen.append(1)
                return collect(self)

            monkeypatch.setattr(LocalLab, "collect", until_it_is_gone)

        return after

    @pytest.mark.long
    def test_ends_the_run_which_goes_on_where_it_is_back(
        self, tmp_path: Path, problem: Path, vanishing: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own: dict[str, Any] = {"template": problem / "template.fake", "seed": 3, "cache": False}
        own |= {"library": False, "builders": 1}
        whole = api.tune(problem, out=tmp_path / "whole", **own)
        vanishing(2)
        with pytest.raises(DeviceMissing) as gone:
            api.tune(problem, out=tmp_path / "run", **own)
        assert gone.value.exit_code == 5
        says(f"{gone.value} {gone.value.hint}", "cannot be opened", "tunesmith resume")
        before = journal(tmp_path / "run")
        assert not any("crashed" in str(line) for line in before), "no kernel is blamed"
        monkeypatch.undo()
        resumed = api.resume(tmp_path / "run")
        assert resumed.result.finished
        assert journal(tmp_path / "run")[: len(before)] == before
        assert facts(tmp_path / "run") == facts(tmp_path / "whole")
        assert whole.result.finished


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_asked_to_end_it_ends_like_after_ctrl_c_and_goes_on(
    tmp_path: Path, problem: Path, number: signal.Signals
) -> None:
    shutil.copytree(problem, tmp_path / "whole" / "problem")
    assert tunesmith(tmp_path / "whole", *COMMAND, "--out", "run").code == 0
    process = Begun(tmp_path, *COMMAND, "--out", "run")
    wait_for_events(tmp_path / "run", 4, process)
    os.kill(process._process.pid, number)
    ended = process.end(60)
    assert ended.code in (130, 0), ended.err
    assert wait_until_alone(tmp_path) == []
    assert tunesmith(tmp_path, "resume", "run").code == 0
    assert facts(tmp_path / "run") == facts(tmp_path / "whole" / "run")


@pytest.mark.long
def test_two_writers_of_one_run(tmp_path: Path, problem: Path) -> None:
    assert tunesmith(tmp_path, *COMMAND, "--evals", 1, "--out", "run").code == 0
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from tunesmith.run.folder import RunFolder\n"
            "RunFolder(Path('run')).lock(); print('held', flush=True); sys.stdin.read()",
        ],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        refused(tunesmith(tmp_path, "resume", "run"), 2, f"process {holder.pid} is working", "wait for it")
    finally:
        holder.kill()
        holder.communicate()
