"""Workers behind a command: as good as local ones, and what becomes of a host that fails in any way."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab import hosts_elsewhere as hosts
from tests.samples import a_device
from tunesmith.backends import messages as m
from tunesmith.errors import DeviceMissing
from tunesmith.lab.process import WorkerDied, WorkerReplaced
from tunesmith.lab.remote import RemoteWorkers
from tunesmith.lab.wire import OpenWorker
from tunesmith.session.hosts import HostWorkers, WorkerEntry

FAKE = OpenWorker("fake", "device", "auto")
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
    assert workers._connection is not None
    return workers._connection._process.pid  # `env` has become the host


@pytest.mark.slow
def test_a_worker_elsewhere_answers_as_one_here_and_leaves_nothing(reach: Reach, tmp_path: Path) -> None:
    workers = reach(hosts.real(tmp_path))
    worker = workers.worker(FAKE)
    reply, _ = worker.request(m.ListDevices(), deadline=60)
    assert isinstance(reply, m.Devices)
    assert reply.devices[0].backend == "fake"
    # More than a window, both ways at once with another channel that asks meanwhile.
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
        workers.worker(OpenWorker("nothing", "device", "auto")).request(m.ListDevices(), deadline=60)
    workers.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.raises(WorkerDied, match="closing"):
        worker.request(m.ListDevices(), deadline=60)


SLOW = """
import time
from tunesmith.session import worker_host

def slowly(environment, made=worker_host.start_in_folder):
    return lambda *own: (time.sleep(2.5), made(environment)(*own))[1]

worker_host.start_in_folder = slowly
worker_host.serve()
"""


@pytest.mark.slow
def test_a_host_is_heard_while_it_starts_a_worker_and_one_may_be_killed_meanwhile(
    reach: Reach, tmp_path: Path
) -> None:
    workers = reach(hosts.command(tmp_path, "-c", SLOW))
    workers.connect()
    connection = workers._connection
    assert connection is not None
    patient, killed = workers.worker(FAKE), workers.worker(FAKE)
    replies: list[object] = []
    asked = threading.Thread(target=lambda: replies.append(patient.request(m.ListCompilers(), deadline=60)))
    asked.start()
    killed.ensure_started()
    began, silent = time.monotonic(), 0.0
    killed.kill()
    assert time.monotonic() - began < 2
    while asked.is_alive():
        silent = max(silent, connection.exchange.silent)
        time.sleep(0.05)
    assert silent < 1.5
    assert replies == [(m.Compilers(()), ())]
    assert time.monotonic() - began > 2, "it was slow indeed"
    workers.close()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_file_goes_along_by_its_digest_and_no_other_does(reach: Reach, tmp_path: Path) -> None:
    own = tmp_path / "recording.json"
    own.write_bytes(RECORDING)
    workers = reach(hosts.real(tmp_path / "there"))
    digest = hashlib.sha256(RECORDING).hexdigest()
    for _ in range(2):
        worker = workers.worker(OpenWorker("replay", "device", "auto", digest), own)
        reply, _ = worker.request(m.ListDevices(), deadline=60)
        assert isinstance(reply, m.Devices)
        assert reply.devices[0].backend == "replay"
        own.unlink(missing_ok=True)  # the host has it by now
    other = tmp_path / "other.json"
    other.write_bytes(RECORDING + b" ")
    wrong = workers.worker(OpenWorker("replay", "device", "auto", "0" * 64), other)
    with pytest.raises(WorkerDied, match="came with the digest"):
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
        ("print('Welcome to gpu1', flush=True); idle()", "nonsense: not a packet: b'Welcome to gpu1"),
        ("sys.exit('tunesmith: not found')", "exit status 1; tunesmith: not found"),
        ("os.kill(os.getpid(), 35)", "killed by signal 35"),
        ("greet('9.9'); idle()", "it is Tunesmith 9.9 (protocol 4), and this is"),
        ("greet(protocol=7); idle()", "protocol 7"),
        ("send(said(PacketKind.HELLO, Hello('lab', __version__))); idle()", "sends back what"),
        ("send(Packet(PacketKind.NEED)); idle()", "NEED before a greeting"),
        ("idle()", "no answer within 1 s"),
        ("os.write(1, packed(said(PacketKind.HELLO, Hello('host', '1')))[:-3])", "ended inside a packet"),
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
        ("send(Packet(PacketKind.NEED, 1, b'/etc/passwd'))", "a file that was not offered"),
        ("send(Packet(PacketKind.DATA, 1, bytes(MAX_BODY + 1)))", "allowed are"),
        ("[send(Packet(PacketKind.DATA, 1, bytes(MAX_BODY))) for _ in range(99)]", "before there was room"),
        ("send(credit(1, 1 << 30))", "under way"),
        ("send(Packet(PacketKind.ENDED, 1, b'{'))", "not a EndedWorker"),
        ("sys.exit(7)", "exit status 7"),
    ],
)
def test_a_host_that_speaks_nonsense_is_lost_and_said_to_be(
    reach: Reach, tmp_path: Path, answer: str, words: str
) -> None:
    text = f"greet()\nfor packet in packets():\n    if packet.kind == PacketKind.OPEN:\n        {answer}\n"
    worker = reach(hosts.scripted(tmp_path, text)).worker(FAKE)
    request = m.Load(m.Unit("k", "", "fake", (), ()), "d", a_device())
    with pytest.raises(DeviceMissing, match="3 times") as lost:
        worker.request(request, [bytes(1 << 20)], deadline=60)
    assert words in str(lost.value)


def test_a_host_that_makes_up_a_signal_is_believed_that_the_worker_ended(
    reach: Reach, tmp_path: Path
) -> None:
    text = """
greet()
for packet in packets():
    if packet.kind == PacketKind.OPEN:
        send(said(PacketKind.ENDED, EndedWorker(-1000), packet.channel))
"""
    with pytest.raises(WorkerDied, match="killed by signal 1000"):
        reach(hosts.scripted(tmp_path, text)).worker(FAKE).request(m.ListDevices(), deadline=60)


def test_a_host_that_answers_something_else_has_no_compilers(tmp_path: Path) -> None:
    text = """
from tunesmith.problem.codec import frame_parts
greet()
for packet in packets():
    if packet.kind is PacketKind.OPEN:
        send(Packet(PacketKind.DATA, packet.channel, b"".join(frame_parts(b'{"type":"Done","value":{}}'))))
    if packet.kind is PacketKind.KILL:
        send(said(PacketKind.ENDED, EndedWorker(-9), packet.channel))
"""
    host = HostWorkers(WorkerEntry("there", tuple(hosts.scripted(tmp_path, text))), lambda _text: None)
    try:
        with pytest.raises(DeviceMissing, match="spoke nonsense: Done in reply to ListCompilers"):
            host.compilers("fake")
    finally:
        host.close()


def test_silence_ends_a_connection_and_another_machine_is_not_taken_for_it(
    reach: Reach, tmp_path: Path
) -> None:
    text = """
seen = Path("seen")
greet(machine="second" if seen.exists() else "first")
seen.touch()
idle()
"""
    workers = reach(hosts.scripted(tmp_path, text), silence=1.0)
    worker = workers.worker(FAKE)
    with pytest.raises(DeviceMissing, match="another machine"):
        worker.request(m.ListDevices(), deadline=0.1)
    assert any("nothing was heard" in note for note in reach.notes)  # type: ignore[attr-defined]


def test_a_command_that_is_none(reach: Reach) -> None:
    with pytest.raises(DeviceMissing, match="cannot be started: no-such-program"):
        reach(["no-such-program"]).connect()
