"""Whole runs on several devices, of this machine and behind commands, and what befalls them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.killing import simulated
from tests.end_to_end.replaying import course, events_of, replayed
from tests.plugins.hosts import hosts_elsewhere
from tests.running import (
    Ended,
    expect_success,
    facts,
    report_in,
    start,
    tunesmith,
    tunesmith_afresh,
    wait_for_events,
)

HEAR_NONSENSE = """
greet(cores=2)
for call, frame in calls():
    os.write(1, b"a shell's greeting")
    break
idle()
"""


def winner(run: Path) -> Any:
    return [event["outcome"]["trial"]["config"] for kind, event in facts(run) if kind == "Verified"]


def of_kind(run: Path, kind: str) -> list[dict[str, Any]]:
    return [event for own, event in facts(run) if own == kind]


def command(folder: Path, name: str, first: str = "") -> list[str]:
    """`first` is done by a shell before the host is there, in the host's folder."""
    own = folder / name
    script = f"cd {own}; echo $$ > pid; {first}\nexec {shlex.join(hosts_elsewhere.real(own))}"
    return ["sh", "-c", script]


def hosts(folder: Path, wait: float = 60, **commands: list[str]) -> Path:
    """A device of its own for each: they are of one machine, and would be one card."""
    entry = '[[worker]]\nname = "{}"\ncommand = {}\ndevice = "{}"\nwait = {}\n'
    path = folder / "hosts.toml"
    both = enumerate(commands.items())
    path.write_text("".join(entry.format(name, json.dumps(c), n, wait) for n, (name, c) in both))
    return path


def tune(folder: Path, out: str, *more: object) -> list[object]:
    given = simulated(folder) if not (folder / "problem").exists() else ()
    own = ["tune", folder / "problem", "--template", folder / "template.fake", "--seed", 3]
    assert not given or given[0] == "tune"
    return [*own, "--no-cache", "--search", "random", "--out", out, *more]


@pytest.mark.long
def test_a_run_on_several_devices_has_the_winner_of_one_and_replays(tmp_path: Path) -> None:
    assert tunesmith(tmp_path, *tune(tmp_path, "one")).code == 0
    ended = expect_success(tmp_path, *tune(tmp_path, "run", "--device", "fake:0-3,5"))
    run = tmp_path / "run"
    assert winner(run) == winner(tmp_path / "one")
    assert "measuring on 5 devices" in ended.err
    assert [(e["device"], e["lost"]) for e in of_kind(run, "LeftOut")] == [("fake 5", False)]
    assert "fake 5 is left out: the original takes" in ended.err
    assert len({e["outcome"]["device"] for e in of_kind(run, "Measured")}) > 2
    assert course(replayed(run)) == course(events_of(run))
    told = report_in(run)["devices"]
    assert [one["name"] for one in told] == [f"fake {n}" for n in (0, 1, 2, 3, 5)]
    assert "fake 2" in (run / "report.md").read_text()


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_with_the_same_devices(tmp_path: Path) -> None:
    assert tunesmith_afresh(tmp_path, *tune(tmp_path, "one")).code == 0
    process = start(tmp_path, *tune(tmp_path, "run", "--device", "0-2"))
    wait_for_events(tmp_path / "run", 14, process)
    process.kill()
    process.communicate()
    again = tunesmith_afresh(tmp_path, "resume", "run")
    assert again.code == 0, again.err
    assert winner(tmp_path / "run") == winner(tmp_path / "one")
    assert len(of_kind(tmp_path / "run", "Enlisted")) == 1, "they are the same"
    assert course(replayed(tmp_path / "run")) == course(events_of(tmp_path / "run"))


def ended_well(folder: Path, ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert tunesmith_afresh(folder, *tune(folder, "one")).code == 0
    assert winner(folder / "run") == winner(folder / "one")
    asked = [t["id"] for e in of_kind(folder / "run", "Asked") for t in e["trials"] if t["effort"] != "build"]
    measured = [e["outcome"]["trial"] for e in of_kind(folder / "run", "Measured")]
    assert sorted(t["id"] for t in measured if t["config"] is not None) == sorted(asked)
    assert course(replayed(folder / "run")) == course(events_of(folder / "run"))


def befallen(folder: Path, file: Path, after: int, *signals: int, pause: float = 0.0) -> Ended:
    """The second host is sent the signals when the run has so many events."""
    run = start(folder, *tune(folder, "run", "--workers", file))
    wait_for_events(folder / "run", after, run)
    for place, number in enumerate(signals):
        time.sleep(pause if place else 0.0)
        os.kill(int((folder / "second/pid").read_text()), number)
    out, err = run.communicate(timeout=200)
    return Ended(run.returncode, out, err)


@pytest.mark.long
@pytest.mark.parametrize("after", [3, 9, 15])
def test_a_host_that_is_killed_and_comes_back_costs_nothing_but_time(tmp_path: Path, after: int) -> None:
    file = hosts(tmp_path, first=command(tmp_path, "first"), second=command(tmp_path, "second"))
    ended_well(tmp_path, befallen(tmp_path, file, after, signal.SIGKILL))
    assert of_kind(tmp_path / "run", "LeftOut") == []


@pytest.mark.long
@pytest.mark.parametrize("names", ["first second", "second first"])
def test_a_host_that_stays_away_is_left_out(tmp_path: Path, names: str) -> None:
    """Also the one that times finalists."""
    gone = "test -e gone && { echo no route >&2; exit 255; }; touch gone"
    made = {name: command(tmp_path, name, gone if name == "second" else "") for name in names.split()}
    ended = befallen(tmp_path, hosts(tmp_path, wait=20, **made), 12, signal.SIGKILL)
    ended_well(tmp_path, ended)
    (left,) = of_kind(tmp_path / "run", "LeftOut")
    assert left["device"].startswith("second ")
    assert left["lost"]
    assert "is left out" in ended.err


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_network_that_stands_still_for_a_minute_is_waited_for(tmp_path: Path) -> None:
    file = hosts(tmp_path, first=command(tmp_path, "first"), second=command(tmp_path, "second"))
    ended = befallen(tmp_path, file, 12, signal.SIGSTOP, signal.SIGCONT, pause=61.0)
    ended_well(tmp_path, ended)
    assert "waiting for worker 'second': nothing heard for" in ended.err
    assert of_kind(tmp_path / "run", "LeftOut") == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('greet(version="0.0.1")\nidle()\n', "the run does without it"),
        ("os.write(1, b'Welcome to second')\nidle()\n", "the run does without it"),
    ],
)
def test_a_host_that_cannot_be_used_is_done_without(tmp_path: Path, text: str, words: str) -> None:
    bad = hosts_elsewhere.scripted(tmp_path / "second", text)
    file = hosts(tmp_path, wait=20, first=command(tmp_path, "first"), second=bad)
    ended = tunesmith_afresh(tmp_path, *tune(tmp_path, "run", "--workers", file))
    ended_well(tmp_path, ended)
    assert words in ended.err
    assert of_kind(tmp_path / "run", "Enlisted") == [], "it is a run on one device"


@pytest.mark.long
def test_a_host_that_begins_to_speak_nonsense_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    bad = hosts_elsewhere.scripted(tmp_path / "second", HEAR_NONSENSE)
    file = hosts(tmp_path, wait=20, first=command(tmp_path, "first"), second=bad)
    ended = tunesmith_afresh(tmp_path, *tune(tmp_path, "run", "--workers", file))
    assert ended.code == 5, ended.err
    assert "worker 'second' was lost" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_run_goes_on_without_a_device_that_is_not_there_any_more(tmp_path: Path) -> None:
    """Whoever had it: here the first. A run that begins, and a check, want all of them."""
    made = {name: command(tmp_path, name) for name in ("first", "second")}
    file = hosts(tmp_path, wait=20, **made)
    run = start(tmp_path, *tune(tmp_path, "run", "--workers", file))
    wait_for_events(tmp_path / "run", 10, run)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert f"go on with: tunesmith resume run --workers {file}" in err
    checked = tunesmith_afresh(
        tmp_path, "check", tmp_path / "problem", "--backend", "fake", "--workers", file
    )
    assert checked.code == 0, checked.err
    assert "a run measures on first (vm) 0, second (vm) 1".replace("vm", socket.gethostname()) in checked.out
    file.write_text(file.read_text().replace('device = "0"', 'device = "99"'))
    for began in (["check", tmp_path / "problem", "--backend", "fake"], tune(tmp_path, "other")):
        refused = tunesmith_afresh(tmp_path, *began, "--workers", file)
        assert refused.code == 5, refused.err
        assert "device '99' matches no device" in refused.err
    ended = tunesmith_afresh(tmp_path, "resume", "run", "--workers", file)
    assert ended.code == 0, ended.err
    assert "worker 'first': device '99' matches no device" in ended.err
    assert "the run does without it" in ended.err
    assert [len(e["devices"]) for e in of_kind(tmp_path / "run", "Enlisted")] == [2, 1]
    assert tunesmith_afresh(tmp_path, *tune(tmp_path, "one")).code == 0
    assert winner(tmp_path / "run") == winner(tmp_path / "one")


@pytest.mark.long
def test_a_host_that_only_builds_and_refuses_everything_costs_no_configuration(tmp_path: Path) -> None:
    """Its compiler may not be there at all: whoever has a device is believed."""
    refusing = hosts_elsewhere.refusing(tmp_path / "builder")
    builder = hosts(tmp_path, builder=refusing).read_text()
    file = hosts(tmp_path, first=command(tmp_path, "first"))
    file.write_text(f"{builder}measures = false\n{file.read_text()}")
    ended = tunesmith_afresh(tmp_path, *tune(tmp_path, "run", "--workers", file))
    assert ended.code == 0, ended.err
    assert "worker 'builder' refuses what builds elsewhere" in ended.err
    assert tunesmith_afresh(tmp_path, *tune(tmp_path, "one")).code == 0
    assert winner(tmp_path / "run") == winner(tmp_path / "one")


@pytest.mark.long
def test_where_all_hosts_stay_away_the_run_goes_on_later(tmp_path: Path) -> None:
    gone = "test -e gone && { echo no route >&2; exit 255; }; touch gone"
    made = {name: command(tmp_path, name, gone) for name in ("first", "second")}
    file = hosts(tmp_path, wait=20, **made)
    run = start(tmp_path, *tune(tmp_path, "run", "--workers", file))
    wait_for_events(tmp_path / "run", 10, run)
    for name in made:
        os.kill(int((tmp_path / name / "pid").read_text()), signal.SIGKILL)
    _, err = run.communicate(timeout=100)
    assert run.returncode == 5, err
    before = facts(tmp_path / "run")
    for name in made:
        (tmp_path / name / "gone").unlink()
    again = tunesmith_afresh(tmp_path, "resume", "run", "--workers", file)
    assert again.code == 0, again.err
    assert facts(tmp_path / "run")[: len(before)] == before
    assert tunesmith_afresh(tmp_path, *tune(tmp_path, "one")).code == 0
    assert winner(tmp_path / "run") == winner(tmp_path / "one")


@pytest.mark.long
def test_lists_of_devices_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    for wanted, code, words in (
        ("7-0", 2, "no range"),
        ("0,99", 5, "device '99' matches no device"),
        ("cuda:0-1", 2, "names devices of cuda, and the kernel is timed by fake"),
    ):
        ended = tunesmith(tmp_path, *tune(tmp_path, "run", "--device", wanted))
        assert ended.code == code, ended.err
        assert words in ended.err
        assert not (tmp_path / "run").exists()
