"""The worker program from inside: descriptors, signals and whom it outlives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, fake_kernel
from tests.core.lab.process_list import gone, running
from tests.core.lab.test_process import python, scale_plan
from tunesmith.backends.messages import REPLY_TYPES, Devices, Draw, ListDevices, Load, Request, RunCase, Unit
from tunesmith.base.codec import decode_tagged, encode_tagged, frame_parts, read_frame
from tunesmith.run.config import worker_environment

COMMAND = [sys.executable, "-m", "tunesmith.lab.worker.main", "fake", "test"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="dies with its parent only on Linux")


class Speaker:
    """Talks to a worker over plain pipes, with nothing of the lab in between."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def ask(self, request: Request, blobs: tuple[bytes, ...] = ()) -> object:
        self.send(request, blobs)
        assert self.process.stdout
        frame = read_frame(self.process.stdout.read)
        return decode_tagged(frame.json, REPLY_TYPES)

    def send(self, request: Request, blobs: tuple[bytes, ...] = (), deadline: float = 60.0) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"".join(frame_parts(encode_tagged(request), blobs, deadline)))
        self.process.stdin.flush()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Speaker]:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=worker_environment(tmp_path)
    ) as process:
        yield Speaker(process)
        process.kill()


def test_only_the_standard_descriptors_reach_a_child(worker: Speaker) -> None:
    """A compiler or linker started for a build must not hold the protocol open, or write into it."""
    body = """
there = [int(n) for n in os.listdir('/proc/self/fd')]
kept = [n for n in there if os.path.exists(f'/proc/self/fd/{n}') and os.get_inheritable(n)]
ends = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]
raise ValueError((sorted(kept), ends[0], ends[1] == ends[2]))
"""
    reply = worker.ask(python(body.strip()))
    assert reply.message.endswith("ValueError: ([0, 1, 2], '/dev/null', True)")


def test_ends_when_its_input_ends(worker: Speaker) -> None:
    assert isinstance(worker.ask(ListDevices()), Devices)
    assert worker.process.stdin
    worker.process.stdin.close()
    assert worker.process.wait(timeout=30) == 0


def test_an_interrupt_is_the_labs_to_handle(worker: Speaker) -> None:
    assert isinstance(worker.ask(ListDevices()), Devices)
    for _ in range(3):
        worker.process.send_signal(signal.SIGINT)
        assert isinstance(worker.ask(ListDevices()), Devices)


def test_requests_that_make_no_sense_end_it(worker: Speaker) -> None:
    assert worker.process.stdin
    worker.process.stdin.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    worker.process.stdin.flush()
    assert worker.process.wait(timeout=30) == 1


def test_ends_itself_when_nobody_stops_a_kernel(tmp_path: Path) -> None:
    """Started through a remote shell it cannot die with its parent, so an alarm ends it past the deadline."""
    code = "from tunesmith.lab.worker import main; main.GRACE = 0.2; main.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "fake"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(tmp_path),
    ) as process:
        speaker = Speaker(process)
        unit = Unit("kernel.fake", fake_kernel(fault="5"), "fake", (), ("scale",))
        speaker.ask(Load(unit, "code", device_of("fake")), (b"",))
        speaker.send(RunCase("code", scale_plan(), Draw("normal", 1)), deadline=0.1)
        assert process.wait(timeout=30) == -signal.SIGALRM


OWNER = """
import os, sys
from pathlib import Path
from tests.core.lab.test_process import scale_plan
from tunesmith.lab import process
from tests.core.lab.labs import device_of, fake_kernel
from tunesmith.run.config import worker_environment
from tunesmith.backends.messages import Draw, Load, RunCase, Unit
from tunesmith.lab.process import WorkerProcess

start = getattr(process, sys.argv[2])
command = process.worker_command("fake", "test")
worker = WorkerProcess(command, worker_environment(Path(sys.argv[1])), None, start)
unit = Unit("kernel.fake", fake_kernel(fault="5"), "fake", (), ("scale",))
worker.request(Load(unit, "code", device_of("fake")), (b"",), deadline=60)
os.write(1, f"{worker._process.pid}\\n".encode())
worker.request(RunCase("code", scale_plan(), Draw("normal", 1)), deadline=600)
"""


def with_tests() -> dict[str, str]:
    """An environment in which the modules of the tests can be imported."""
    folders = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


@LINUX
@pytest.mark.parametrize("way", ["start_command", "start_worker"])
@pytest.mark.few(1)
def test_dies_with_a_lab_that_is_killed_even_in_a_kernel_that_hangs(tmp_path: Path, way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), way], stdout=subprocess.PIPE, env=with_tests()
    ) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        time.sleep(0.3)  # until the kernel hangs
        assert running(pid)
        owner.kill()
    assert gone(pid)


@LINUX
@pytest.mark.parametrize("way", ["start_command", "start_worker"])
@pytest.mark.few(1)
def test_ctrl_c_reaches_the_lab_alone(tmp_path: Path, way: str) -> None:
    """A terminal signals the whole group in its foreground; workers are in sessions of their own."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), way],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=with_tests(),
        start_new_session=True,
    ) as owner:
        assert owner.stdout
        assert owner.stderr
        pid = int(owner.stdout.readline())
        assert os.getsid(pid) == pid
        time.sleep(0.3)
        os.killpg(owner.pid, signal.SIGINT)
        assert b"KeyboardInterrupt" in owner.stderr.read(), "the lab decides what becomes of it"
    assert gone(pid), "and has taken its worker along"
