"""Turns at a device over processes: one at a time, in order, given back however a process ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, fault_template, lab, scale_problem
from tunesmith.lab.device_lock import DeviceBusy, DeviceLock, lock_name
from tunesmith.lab.worker import requests, sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no such locks")
FORK = multiprocessing.get_context("fork")
NAME = f"a test, process {os.getpid()}"


def hold(pipe: Connection) -> None:
    with DeviceLock(NAME).alone(5):
        pipe.send("mine")
        time.sleep(30)


def test_one_times_at_a_time_and_others_share() -> None:
    one, other, third = (DeviceLock(NAME) for _ in range(3))
    with one.alone():
        with pytest.raises(DeviceBusy), other.alone(0.02):
            pass
        started = time.monotonic()
        with other.shared(0.05):  # who does not time goes on in the end
            assert time.monotonic() - started >= 0.05
        with DeviceLock("another device").alone(0):
            pass
    with other.shared(), third.shared(0), pytest.raises(DeviceBusy), one.alone(0.02):
        pass
    with one.alone(0):
        pass


def test_a_process_that_is_killed_gives_its_turn_back() -> None:
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=hold, args=(theirs,))
    process.start()
    assert ours.recv() == "mine"
    with pytest.raises(DeviceBusy), DeviceLock(NAME).alone(0):
        pass
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    with DeviceLock(NAME).alone(5):
        pass
    process.join()


def test_closing_the_file_elsewhere_in_the_process_gives_nothing_back() -> None:
    """As a compiler's start does, whose input is /dev/null."""
    with DeviceLock(NAME).alone():
        os.close(os.open(os.devnull, os.O_RDWR))
        with pytest.raises(DeviceBusy), DeviceLock(NAME).alone(0):
            pass


def take_turns(pipe: Connection, seconds: float) -> None:
    lock, waits, end = DeviceLock(NAME), list[float](), time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        with lock.alone(10):
            waits.append(time.monotonic() - asked)
            time.sleep(0.02)
    pipe.send(waits)


def test_turns_are_fair() -> None:
    """Four who want it again at once after each turn."""
    pipes = [FORK.Pipe() for _ in range(4)]
    processes = [FORK.Process(target=take_turns, args=(theirs, 2.0)) for _, theirs in pipes]
    for process in processes:
        process.start()
    found = [ours.recv() for ours, _ in pipes]
    for process in processes:
        process.join()
    counts = [len(waits) for waits in found]
    assert min(counts) * 4 > max(counts), counts
    assert max(map(max, found)) < 2.0


def test_what_has_to_be_had_alone() -> None:
    fake = device_of("fake")
    assert lock_name(fake, "GPU-1") == ""
    gpu, processor = replace(fake, kind="gpu"), replace(fake, kind="cpu")
    assert lock_name(gpu, "GPU-1") == "GPU-1"
    assert lock_name(gpu, "") == f"{gpu.platform} {gpu.name} {gpu.id}"
    assert lock_name(processor, "") == "processors"
    assert lock_name(replace(processor, untimed=True), "") == lock_name(replace(gpu, absent=True), "x") == ""


def try_in_sandbox(pipe: Connection, scratch: str) -> None:
    sandbox.confine_process(sandbox.for_worker({"TMPDIR": scratch}))
    lock = DeviceLock(NAME)
    try:
        with lock.alone(0.05):
            pipe.send("granted")
    except DeviceBusy:
        pipe.send("busy")


def test_a_worker_in_its_sandbox_takes_turns_too(tmp_path: Path) -> None:
    found = []
    for holder in (DeviceLock(NAME), DeviceLock("another device")):
        ours, theirs = FORK.Pipe()
        with holder.alone():
            process = FORK.Process(target=try_in_sandbox, args=(theirs, str(tmp_path)))
            process.start()
            found.append(ours.recv())
            process.join()
    assert found == ["busy", "granted"]


def test_what_a_trial_waits_for_its_turn_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what one request waits, and less: both are no work."""
    monkeypatch.setattr(requests, "lock_name", lambda *_given: NAME)

    def hold_for(seconds: float, mine: threading.Event) -> None:
        with DeviceLock(NAME).alone():
            mine.set()
            time.sleep(seconds)

    with lab(scale_problem(), fault_template("0")) as own:
        for number, held in enumerate((0.3, 2.3)):
            mine = threading.Event()
            holder = threading.Thread(target=hold_for, args=(held, mine))
            holder.start()
            mine.wait()
            outcome = own.outcome(KIND=number)
            holder.join()
            assert held - 0.2 < outcome.waited <= outcome.seconds < held + 2.0
