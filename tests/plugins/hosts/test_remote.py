"""Workers behind a command: as good as local ones, and what becomes of a host that fails in any way."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.plugins.hosts import hosts_elsewhere as hosts
from tests.samples import a_device
from tunesmith.backends import messages as m
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.process import WorkerDied, WorkerReplaced, WorkerTimedOut
from tunesmith.plugins.hosts.hosts import HostWorkers, WorkerEntry
from tunesmith.plugins.hosts.transport import CommandChannel, Connection, RemoteWorkers, StartWorker

FAKE = StartWorker("fake", "device", "auto")
RECORDING = b'{"params": {"X": [1, 2]}, "configs": [[1], [2]], "time_ms": [1.0, 2.0]}'
Reach = Callable[..., RemoteWorkers]


@pytest.fixture(name="reach")
def _reach() -> Iterator[Reach]:
    made: list[RemoteWorkers] = []

    def make(command: list[str], wait: float = 30.0, silence: float = 60.0) -> RemoteWorkers:
        made.append(RemoteWorkers("there", command, notes.append, wait, silence))
        return made[-1]

    notes: list[str] = []
    make.notes = notes  # type: ignore[attr-defined]
    yield make
    for workers in made:
        workers.close()


def host_pid(workers: RemoteWorkers) -> int:
    channel = workers._connection._channel
    assert isinstance(channel, CommandChannel)
    return channel.process.pid  # `env` has become the host


def worker_pids(folder: Path) -> list[int]:
    """Of the workers of a host, each of which works in a folder of its own."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and str(folder / "tmp") in os.readlink(entry / "cwd"):
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_a_worker_elsewhere_answers_as_one_here_and_leaves_nothing(reach: Reach, tmp_path: Path) -> None:
    workers = reach(hosts.real(tmp_path))
    worker = workers.worker(FAKE)
    reply, _ = worker.request(m.ListDevices(), deadline=60)
    assert isinstance(reply, m.Devices)
    assert reply.devices[0].backend == "fake"
    # Much at once, while another worker is asked.
    unit = m.Unit("k.fake", "", "fake", (), ())
    load = m.Load(unit, "d", reply.devices[0])
    other = workers.worker(FAKE)
    asked = threading.Thread(target=lambda: other.request(m.ListCompilers(), deadline=60))
    asked.start()
    answer, _ = worker.request(load, [bytes(9 << 20)], deadline=60)
    asked.join()
    assert isinstance(answer, m.Failed | m.Done)
    before = worker.generation
    worker.kill()
    assert not worker.alive
    again, _ = worker.request(m.ListCompilers(), deadline=60)
    assert again == m.Compilers(())
    assert worker.generation == before + 1
    with pytest.raises(WorkerDied, match="unknown backend 'nothing'"):
        workers.worker(StartWorker("nothing", "device", "auto")).request(m.ListDevices(), deadline=60)
    workers.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.raises(WorkerDied, match="closing"):
        worker.request(m.ListDevices(), deadline=60)


SLOW = """
import time
from tunesmith.plugins.hosts import transport

def slowly(environment, made=transport.start_in_folder):
    return lambda *own: (time.sleep(2.5), made(environment)(*own))[1]

transport.start_in_folder = slowly
transport.serve_standard_streams()
"""


@pytest.mark.slow
def test_a_worker_may_be_killed_while_its_host_starts_it(reach: Reach, tmp_path: Path) -> None:
    workers = reach(hosts.command(tmp_path, "-c", SLOW))
    workers.connect()
    patient, killed = workers.worker(FAKE), workers.worker(FAKE)
    replies: list[object] = []
    asked = threading.Thread(target=lambda: replies.append(patient.request(m.ListCompilers(), deadline=60)))

    def start_killed() -> None:
        with pytest.raises(WorkerDied):
            killed.ensure_started()

    starts = threading.Thread(target=start_killed)
    asked.start()
    starts.start()
    time.sleep(0.5)
    began = time.monotonic()
    killed.close()
    assert time.monotonic() - began < 2
    asked.join()
    starts.join()
    assert replies == [(m.Compilers(()), ())]
    workers.close()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_one_that_dies_between_two_requests_is_replaced_and_dies_of_nothing_in_the_next(reach, tmp_path):
    worker = reach(hosts.real(tmp_path)).worker(FAKE)
    worker.request(m.ListCompilers(), deadline=60)
    for number in worker_pids(tmp_path):
        os.kill(number, signal.SIGKILL)
    time.sleep(1.0)  # until its host has seen it
    with pytest.raises(WorkerReplaced) as replaced:
        worker.request(m.ListCompilers(), deadline=60, generation=worker.generation)
    assert str(replaced.value) == "", "nobody was lost"
    assert worker.request(m.ListCompilers(), deadline=60)[0] == m.Compilers(())


@pytest.mark.slow
def test_the_host_keeps_the_deadline_and_what_hangs_is_gone(reach: Reach, tmp_path: Path) -> None:
    worker = reach(hosts.real(tmp_path)).worker(FAKE)
    worker.request(m.ListCompilers(), deadline=60)
    for number in worker_pids(tmp_path):
        os.kill(number, signal.SIGSTOP)
    with pytest.raises(WorkerTimedOut, match="the deadline passed"):
        worker.request(m.ListCompilers(), deadline=0.5)
    assert worker_pids(tmp_path) == []


LYING = """
import os, sys
from tunesmith.lab.process import start_command
from tunesmith.plugins.hosts import transport

WORKER = '''
import os
from tunesmith.plugins.hosts.transport import EndedWorker, message_parts
os.read(0, 1 << 16)
os.write(1, b"".join(message_parts(EndedWorker("died before it was asked"))))
os.read(0, 1)
'''
transport.start_in_folder = lambda _made: lambda command, _, *own: start_command(command, os.environ, *own)
transport.worker_command = lambda *_: [sys.executable, "-c", WORKER]
transport.serve_standard_streams()
"""


@pytest.mark.slow
def test_a_worker_cannot_speak_for_its_host(reach: Reach, tmp_path: Path) -> None:
    worker = reach(hosts.command(tmp_path, "-c", LYING)).worker(FAKE)
    with pytest.raises(WorkerDied, match="spoke nonsense: a reply that only its host gives"):
        worker.request(m.ListDevices(), deadline=60)


@pytest.mark.slow
def test_a_host_that_nobody_asks_any_more_ends(tmp_path: Path) -> None:
    serve = "from tunesmith.plugins.hosts import transport as t; t.IDLE = 0.5; t.serve_standard_streams()"
    host = subprocess.Popen(
        hosts.command(tmp_path, "-c", serve), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert host.wait(timeout=60) == 0
    host.communicate()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_file_goes_along_once_by_its_digest(reach, tmp_path, monkeypatch):
    workers = reach(hosts.real(tmp_path))
    given: list[bytes] = []
    monkeypatch.setattr(Connection, "_send", lambda *a, send=Connection._send: (given.append(a[1]), send(*a)))
    digest = hashlib.sha256(RECORDING).hexdigest()
    for _ in range(2):
        worker = workers.worker(StartWorker("replay", "device", "auto", digest), RECORDING)
        reply, _ = worker.request(m.ListDevices(), deadline=60)
        assert isinstance(reply, m.Devices)
        assert reply.devices[0].backend == "replay"
    assert sum(RECORDING in parts for parts in given) == 1
    wrong = workers.worker(StartWorker("replay", "device", "auto", "0" * 64), RECORDING + b" ")
    with pytest.raises(WorkerDied, match="a file with the digest '000000000000' did not come"):
        wrong.request(m.ListDevices(), deadline=60)


@pytest.mark.slow
def test_what_is_lost_is_reached_again_and_asked_again(reach: Reach, tmp_path: Path) -> None:
    workers = reach(hosts.real(tmp_path))
    worker, told = workers.worker(FAKE), workers.worker(FAKE)
    first, _ = worker.request(m.ListDevices(), deadline=60)
    told.request(m.ListDevices(), deadline=60)
    known = told.generation
    os.kill(host_pid(workers), signal.SIGKILL)
    with pytest.raises(WorkerReplaced):
        told.request(m.ListDevices(), deadline=60, generation=known)
    assert worker.request(m.ListDevices(), deadline=60)[0] == first
    assert any("was lost, and is tried again" in note for note in reach.notes)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_stall_is_nobodys_deadline(reach: Reach, tmp_path: Path) -> None:
    workers = reach(hosts.real(tmp_path))
    worker = workers.worker(FAKE)
    worker.request(m.ListDevices(), deadline=60)
    process = host_pid(workers)
    os.kill(process, signal.SIGSTOP)
    threading.Timer(2.3, os.kill, (process, signal.SIGCONT)).start()
    begun = time.monotonic()
    reply, _ = worker.request(m.ListDevices(), deadline=1.7)
    assert isinstance(reply, m.Devices)
    assert worker.generation == 1
    assert time.monotonic() - begun > 2.0, "it did stall"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('Welcome to gpu1', flush=True); idle()", "nonsense: not a frame: b'Welcome to gpu1"),
        ("print('TX', flush=True); idle()", "nonsense: not a frame: b'TX"),
        ("sys.exit('tunesmith: not found')", "exit status 1; tunesmith: not found"),
        ("os.kill(os.getpid(), 35)", "killed by signal 35"),
        ("greet('9.9'); idle()", "it is Tunesmith 9.9 (protocol 5), and this is"),
        ("greet(protocol=7); idle()", "protocol 7"),
        ("say(0, Greeting('lab', __version__)); idle()", "sends back what"),
        ("os.write(1, sys.stdin.buffer.peek())", "sends back what"),
        ("say(1, StopWorker()); idle()", "a reply before a greeting"),
        ("say(0, EndedWorker('died')); idle()", "EndedWorker, of no worker"),
        ("say(0, KeepFile()); idle()", "unknown message 'KeepFile'"),
        ("say(0, LostHost('its node is gone')); idle()", "its node is gone"),
        (
            "os.write(1, struct.pack('>4sII4sdII', b'TSW2', 0, 0, b'TSF1', 0, 1 << 31, 0))",
            "nonsense: not a frame",
        ),
        ("idle()", "no answer within 1 s"),
        ("os.write(1, framed(0, b'{}')[:-3])", "ended inside a frame"),
    ],
)
def test_who_cannot_be_used_is_named_at_once(reach: Reach, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DeviceMissing) as refused:
        reach(hosts.scripted(tmp_path, text), wait=1.0 if text == "idle()" else 60.0).connect()
    assert words in str(refused.value)
    assert refused.value.hint
    is_other = "it is Tunesmith" in words or "protocol" in words
    assert refused.value.hint.startswith("install the same there" if is_other else "try it in a shell")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("os.write(1, b'x' * 50)", "nonsense"),
        ("greet()", "Greeting, of no worker"),
        ("os.write(1, framed(call, b'x' * 99)[:-9]); sys.exit(7)", "ended inside a frame; exit status 7"),
        ("sys.exit(7)", "exit status 7"),
    ],
)
def test_a_host_that_speaks_nonsense_is_lost_and_said_to_be(reach, tmp_path, answer, words):
    text = f"greet()\nfor call, frame in calls():\n    {answer}\n"
    worker = reach(hosts.scripted(tmp_path, text)).worker(FAKE)
    request = m.Load(m.Unit("k", "", "fake", (), ()), "d", a_device())
    with pytest.raises(DeviceMissing, match="3 times") as lost:
        worker.request(request, [bytes(1 << 20)], deadline=60)
    assert words in str(lost.value)


def test_a_host_that_starts_nothing_is_lost_and_said_to_be(reach: Reach, tmp_path: Path) -> None:
    text = """
greet()
while found := read_call(sys.stdin.buffer):
    if found[0]:
        os.write(1, framed(found[0], b'{"type":"Compilers","value":{"found":[]}}'))
"""
    with pytest.raises(DeviceMissing, match=r"not the reply to what it was asked.*3 times while a worker"):
        reach(hosts.scripted(tmp_path, text)).worker(FAKE).request(m.ListDevices(), deadline=60)


def test_a_host_is_believed_that_a_worker_ended(reach: Reach, tmp_path: Path) -> None:
    text = """
greet()
for call, frame in calls():
    say(call, EndedWorker("died", "killed by signal 1000" + "x" * 9999))
"""
    with pytest.raises(WorkerDied, match="killed by signal 1000") as died:
        reach(hosts.scripted(tmp_path, text)).worker(FAKE).request(m.ListDevices(), deadline=60)
    assert len(str(died.value)) <= 3000


def test_a_host_that_answers_something_else_has_no_compilers(tmp_path: Path) -> None:
    text = """
greet()
for call, frame in calls():
    os.write(1, framed(call, b'{"type":"Done","value":{}}'))
"""
    host = HostWorkers(WorkerEntry("there", tuple(hosts.scripted(tmp_path, text))), lambda _text: None)
    try:
        with pytest.raises(DeviceMissing, match="spoke nonsense: Done in reply to ListCompilers"):
            host.compilers("fake")
    finally:
        host.close()


def test_silence_ends_a_connection_and_another_machine_is_not_taken_for_it(reach, tmp_path):
    text = """
seen = Path("seen")
greet(machine="second" if seen.exists() else "first")
seen.touch()
for call, frame in calls():
    pass
"""
    workers = reach(hosts.scripted(tmp_path, text), silence=1.0)
    worker = workers.worker(FAKE)
    with pytest.raises(DeviceMissing, match="another machine"):
        worker.request(m.ListDevices(), deadline=0.1)
    assert any("nothing was heard" in note for note in reach.notes)  # type: ignore[attr-defined]


def test_a_command_that_is_none(reach: Reach) -> None:
    with pytest.raises(DeviceMissing, match="cannot be started: no-such-program"):
        reach(["no-such-program"]).connect()
