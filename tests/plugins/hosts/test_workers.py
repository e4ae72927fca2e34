"""Whole runs over workers that a command reaches, with no folder in common, and what befalls them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.backends.test_sanitizers import RACE
from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly
from tests.opencl_here import needs_opencl
from tests.plugins.hosts import hosts_elsewhere
from tests.running import Ended, facts, processes_in, start, tunesmith, tunesmith_afresh, wait_for_events


def hosts_file(folder: Path, first: str = "", wait: float = 60, path: str = os.defpath) -> Path:
    """`first` is done by a shell before the host is there, in the host's folder; `path` is its PATH."""
    words = hosts_elsewhere.real(folder / "there")
    host = shlex.join(f"PATH={path}" if word.startswith("PATH=") else word for word in words)
    script = f"cd {folder / 'there'}; echo $$ > pid; {first}\nexec {host}"
    path = folder / "hosts.toml"
    command = json.dumps(["sh", "-c", script])
    path.write_text(f'[[worker]]\nname = "there"\ncommand = {command}\nwait = {wait}\n')
    return path


def tune(folder: Path, out: str, *more: object) -> list[object]:
    problem = folder / "tiny"
    if not problem.exists():
        tiny.fake(problem)
    return ["tune", problem, "--template", problem / "template.fake", "--out", out, "--no-cache", *more]


def placeless(value: Any) -> Any:
    """Without what says where: a local run has no such thing."""
    if isinstance(value, dict):
        return {k: placeless(v) for k, v in value.items() if k not in ("device", "notes", "sanitized")}
    return [placeless(v) for v in value] if isinstance(value, list | tuple) else value


def outcomes(run: Path) -> list[dict[str, Any]]:
    events = [event for kind, event in facts(run) if kind in ("Baseline", "Measured", "Verified")]
    return [event["outcome"] for event in events]


def winner(run: Path) -> Any:
    return [event["outcome"]["trial"]["config"] for kind, event in facts(run) if kind == "Verified"]


@pytest.mark.slow
def test_a_run_elsewhere_is_the_run_that_it_is_here(tmp_path: Path) -> None:
    assert tunesmith(tmp_path, *tune(tmp_path, "here")).code == 0
    ended = tunesmith(tmp_path, *tune(tmp_path, "far", "--workers", hosts_file(tmp_path)))
    assert ended.code == 0, ended.err
    assert placeless(facts(tmp_path / "far")) == placeless(facts(tmp_path / "here"))
    assert all(one["device"] == "" for one in outcomes(tmp_path / "here"))
    far = {one["device"] for one in outcomes(tmp_path / "far")}
    assert far == {f"there ({os.uname().nodename}) 0"}
    assert list((tmp_path / "there/tmp").iterdir()) == []
    assert processes_in(tmp_path / "there") == []


def killed_once(folder: Path, *arguments: object, after: int) -> Ended:
    run = start(folder, *arguments)
    wait_for_events(folder / "run", after, run)
    os.kill(int((folder / "there/pid").read_text()), signal.SIGKILL)
    out, err = run.communicate(timeout=100)
    return Ended(run.returncode, out, err)


@pytest.mark.long
@pytest.mark.parametrize("after", [2, 3, 5, 7])
def test_a_host_that_is_killed_costs_nothing_but_time(tmp_path: Path, after: int) -> None:
    assert tunesmith_afresh(tmp_path, *tune(tmp_path, "here")).code == 0
    own = tune(tmp_path, "run", "--workers", hosts_file(tmp_path))
    ended = killed_once(tmp_path, *own, after=after)
    assert ended.code == 0, ended.err
    assert winner(tmp_path / "run") == winner(tmp_path / "here")
    assert [one["results"][0]["status"] for one in outcomes(tmp_path / "run")] == [
        one["results"][0]["status"] for one in outcomes(tmp_path / "here")
    ], "no configuration is charged with it"


@pytest.mark.long
def test_a_host_that_stays_away_is_waited_for_and_the_run_goes_on_later(tmp_path: Path) -> None:
    hosts = hosts_file(tmp_path, "test -e gone && { echo no route >&2; exit 255; }; touch gone", wait=20)
    ended = killed_once(tmp_path, *tune(tmp_path, "run", "--workers", hosts), after=3)
    assert ended.code == 5, ended.err
    assert "waiting for worker 'there'" in ended.err
    assert "no route" in ended.err
    before = facts(tmp_path / "run")
    (tmp_path / "there/gone").unlink()
    again = tunesmith_afresh(tmp_path, "resume", "run", "--workers", hosts)
    assert again.code == 0, again.err
    assert facts(tmp_path / "run")[: len(before)] == before


def test_hosts_that_are_none_are_refused(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    for text, words in [
        ("", "one [[worker]] is needed"),
        ('[[worker]]\nname = "a"\n', "command must be"),
        ('[[worker]]\nname = "a"\ncommand = "x \'y"\n', "command cannot be read"),
        ('[[worker]]\nname = "a"\ncommand = ["a\\u0000b"]\n', "hosts.toml: command has a NUL"),
        ('[[worker]]\nname = "a"\ncommand = "x a\\u0000b"\n', "hosts.toml: command has a NUL"),
        ('[[worker]]\nname = "a"\ncommand = "x"\nhost = "b"\n', "known are name, command, device, wait"),
        ('[[worker]]\nname = "a"\ncommand = "x"\nwait = -1\n', "wait must be"),
        ('[[worker]]\nname = "a"\ncommand = "x"\n' * 2, "2 workers are called 'a'"),
    ]:
        hosts.write_text(text)
        ended = quickly(tmp_path, *tune(tmp_path, "run", "--workers", hosts))
        assert ended.code == 2, ended.err
        assert words in ended.err
    ended = quickly(tmp_path, *tune(tmp_path, "run", "--workers", "nowhere.toml"))
    assert ended.code == 2


# In the place of oclgrind: it starts the worker that it is given, which finds that it is no device, and may
# say that the winner has a race.
WATCHER = """#!{python}
import subprocess, sys
if "--version" in sys.argv:
    sys.exit(print("Oclgrind 21.10"))
place = sys.argv.index("--log") + 1
log, worker = sys.argv[place], sys.argv[place + 1 :]
is_winner = b"BLOCK" in open(worker[-2], "rb").read()
subprocess.run(worker, check=False)
if is_winner and {has_race}:
    open(log, "w").write({race!r})
"""


@needs_opencl
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("has_race", [False, True])
def test_winners_are_watched_by_the_sanitizer_of_their_host(tmp_path: Path, has_race: bool) -> None:
    tool = tmp_path / "there/bin/oclgrind"
    tool.parent.mkdir(parents=True)
    tool.write_text(WATCHER.format(python=sys.executable, has_race=has_race, race=RACE))
    tool.chmod(0o755)
    hosts = hosts_file(tmp_path, path=f"{tool.parent}:{os.defpath}")
    problem = tiny.opencl(tmp_path / "tiny")
    waits = "    for (volatile int wait = 0; wait < 50000; ++wait) {}\n"  # so that anything wins
    tiny.spoil(problem / "kernel.cl", "    if (i < n)", f"{waits}    if (i < n)")
    own = ["tune", problem, "--template", problem / "template.cl", "--out", "run", "--no-cache"]
    ended = tunesmith_afresh(tmp_path, *own, "--workers", hosts, "--evals", 4)
    assert "sanitizer: oclgrind 21.10 (oclgrind)" in ended.err
    found = [event for kind, event in facts(tmp_path / "run") if kind == "Verified"]
    assert found, ended.err
    absent = [["oclgrind", "the kernel does not run under oclgrind: the tool shows no device"]]
    assert all(one["sanitized"]["by"] == "oclgrind 21.10" for one in found)
    assert has_race or all(one["sanitized"]["absent"] == absent for one in found), (
        "it is none: nobody is convicted"
    )
    outcomes = {one["outcome"]["results"][0]["status"] for one in found}
    assert outcomes == ({"wrong"} if has_race else {"ok"})
    assert ("data race" in str(found)) == has_race
    assert processes_in(tmp_path / "there") == []
