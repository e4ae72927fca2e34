"""A worker seen from outside, and the runner that asks it: answers, and what its owner learns without one."""

from __future__ import annotations

import errno
import math
import os
import signal
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.core.lab.labs import device_of, fake_kernel, plan_at, scale_problem
from tests.core.lab.process_list import gone, running
from tunesmith.backends.messages import (
    REQUEST_TYPES,
    Build,
    Devices,
    Done,
    Draw,
    Expected,
    ListDevices,
    Load,
    Open,
    Ran,
    Refer,
    Reply,
    Request,
    RunCase,
    TellProtection,
    Timed,
    TimingPolicy,
    Unit,
)
from tunesmith.base.codec import frame_parts
from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.lab import process
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.process import (
    ChildProcess,
    ForkServer,
    WorkerDied,
    WorkerProcess,
    WorkerReplaced,
    WorkerTimedOut,
    start_command,
    start_worker,
    worker_command,
)
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Plan, Status
from tunesmith.problem.problem import PythonFunction
from tunesmith.run.config import worker_environment

FAKE = worker_command("fake", "test")
DRAW = Draw("normal", 1)
DEVICE = device_of("fake")
LONG = 60.0  # for what should not take any time; the machine may be busy

# Without the binary.
BUILT = b"""{"type":"Built","value":{"code_digest":"d","log":"",
 "resources":{"registers":1,"shared":0,"spills":0,"private":0}}}"""

# The worker program with another handler in it: what it is sent comes back.
ECHO = """
from tunesmith.lab.worker import main, requests
from tunesmith.backends.messages import Done

class Echo:
    def handle(self, request, blobs):
        return Done(), tuple(blobs)

requests.RequestHandler = lambda backend: Echo()
main.main()
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    made: list[WorkerProcess] = []

    def start(program: str = "", *arguments: str) -> WorkerProcess:
        """Of a program in Python; a worker of ours where there is none."""
        command = (sys.executable, "-c", program, *arguments) if program else FAKE
        way = start_command if program else start_worker
        made.append(WorkerProcess(command, worker_environment(tmp_path), None, way))
        return made[-1]

    yield start
    for worker in made:
        worker.kill()


@pytest.fixture
def worker(make: Callable[..., WorkerProcess]) -> WorkerProcess:
    return make()


def python(text: str) -> Refer:
    """A request that runs a function's body in the worker."""
    body = "".join(f"    {line}\n" for line in text.strip().splitlines())
    function = PythonFunction(
        "user.py", "run", f"import os, subprocess, sys, time, signal\ndef run(x):\n{body}"
    )
    return Refer(function, scale_plan(), DRAW, (), None, ())


def scale_plan() -> Plan:
    return plan_at(scale_problem(), rows=2, d=8)


def load(worker: WorkerProcess, **kernel: str) -> None:
    unit = Unit("kernel.fake", fake_kernel(**kernel), "fake", (), ("scale",))
    assert worker.request(Load(unit, "code", DEVICE), (b"",), deadline=LONG)[0] == Done()


class TestAnswers:
    def test_starts_by_itself_and_answers_again_and_again(self, worker: WorkerProcess) -> None:
        assert (worker.generation, worker.alive) == (0, False)
        for _ in range(3):
            reply, blobs = worker.request(ListDevices(), deadline=LONG)
            assert isinstance(reply, Devices)
            assert blobs == ()
        assert (worker.generation, worker.alive) == (1, True)

    def test_a_whole_case(self, worker: WorkerProcess) -> None:
        load(worker)
        reply, blobs = worker.request(RunCase("code", scale_plan(), DRAW), deadline=LONG)
        assert isinstance(reply, Ran)
        assert [len(b) for b in blobs] == [2 * 8 * 4]

    def test_what_cannot_be_done_is_a_reply(self, worker: WorkerProcess) -> None:
        load(worker, op="unheard of")
        reply, _ = worker.request(RunCase("code", scale_plan(), DRAW), deadline=LONG)
        assert reply.what == "launch"
        assert "unheard of" in reply.message

    def test_a_bug_inside_tunesmith_is_our_error(self, worker: WorkerProcess) -> None:
        with pytest.raises(TunesmithError, match="nothing has been loaded") as failure:
            worker.request(RunCase("code", scale_plan(), DRAW), deadline=LONG)
        assert failure.value.exit_code == 1
        assert isinstance(worker.request(ListDevices(), deadline=LONG)[0], Devices), "the worker goes on"
        assert worker.generation == 1

    def test_big_arrays_travel_both_ways(self, make: Callable[..., WorkerProcess]) -> None:
        worker = make(ECHO, "fake")
        block = os.urandom(1 << 20)
        sent = (block * 200, b"", block[:7])
        reply, back = worker.request(Open(DEVICE), sent, deadline=LONG)
        assert reply == Done()
        assert [len(b) for b in back] == [200 << 20, 0, 7]
        assert back == sent

    def test_kill_and_ensure_started(self, worker: WorkerProcess) -> None:
        worker.ensure_started()
        worker.ensure_started()
        assert worker.generation == 1
        worker.kill()
        worker.kill()
        assert not worker.alive
        worker.ensure_started()
        assert (worker.generation, worker.alive) == (2, True)


class TestDeadline:
    def test_passes_and_the_next_request_starts_anew(self, worker: WorkerProcess) -> None:
        load(worker, fault="5")
        start = time.monotonic()
        with pytest.raises(WorkerTimedOut):
            worker.request(RunCase("code", scale_plan(), DRAW), deadline=0.5)
        assert 0.5 <= time.monotonic() - start < 10
        assert not worker.alive
        assert isinstance(worker.request(ListDevices(), deadline=LONG)[0], Devices)
        assert worker.generation == 2

    def test_takes_the_whole_process_group_along(self, worker: WorkerProcess, tmp_path: Path) -> None:
        """Also what a child of the worker has started, and one that ignores every signal it may."""
        pids = tmp_path / "pids"
        script = f"trap '' HUP INT TERM; sleep 600 & echo $$ $! $PPID > {pids}; wait"
        worker.request(ListDevices(), deadline=LONG)
        with pytest.raises(WorkerTimedOut):
            worker.request(python(f"subprocess.run(['sh', '-c', {script!r}])"), deadline=0.8)
        started = [int(pid) for pid in pids.read_text().split()]
        assert len(started) == 3
        assert all(gone(pid) for pid in started)

    def test_a_worker_that_reads_nothing(self, make: Callable[..., WorkerProcess]) -> None:
        worker = make("import time; time.sleep(600)")
        with pytest.raises(WorkerTimedOut, match="did not take the request"):
            worker.request(ListDevices(), (bytes(10 << 20),), deadline=0.5)
        assert not worker.alive

    def test_a_reply_that_stops_halfway(self, make: Callable[..., WorkerProcess]) -> None:
        worker = make("import os, time; os.write(1, b'TSF1' + bytes(8)); time.sleep(600)")
        with pytest.raises(WorkerTimedOut):
            worker.request(ListDevices(), deadline=0.5)

    @pytest.mark.parametrize(
        ("stood_still", "stolen", "took"), [(0.0, 0.0, 1.0), (30.0, 0.0, 31.0), (0.0, 0.75, 3.7)]
    )
    def test_while_the_machine_stands_still_none_passes(
        self, stood_still: float, stolen: float, took: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor for the share of the processors that others are given."""
        now, pauses = [0.0], [stood_still]
        ticks = count(step=100)
        monkeypatch.setattr(process, "processor_ticks", lambda: (n := next(ticks), stolen * n))

        def wait(_r: object, _w: object, _x: object, seconds: float) -> tuple[list[int], ...]:
            now[0] += seconds + (pauses.pop() if pauses else 0.0)
            return [], [], []

        monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr(process, "select", SimpleNamespace(select=wait))
        assert not process.RequestDeadline(1.0).waits_for(to_read=[0])
        assert now[0] == pytest.approx(took, abs=2 * process.MOMENT)

    @pytest.mark.long
    def test_a_worker_that_answers_in_crumbs(self, make: Callable[..., WorkerProcess]) -> None:
        size = 1_000_000
        head = frame_parts(bytes(size))[0][:-size]
        crumbs = f"import os, time\nos.write(1, {head!r})\nwhile os.write(1, b' '): time.sleep(0.005)"
        worker = make(crumbs)
        start = time.monotonic()
        with pytest.raises(WorkerTimedOut):
            worker.request(ListDevices(), deadline=0.5)
        assert 0.5 <= time.monotonic() - start < 10

    def test_an_interrupt_kills_the_worker(
        self, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its half-read reply would answer the next request."""
        worker.request(ListDevices(), deadline=LONG)

        def interrupted(*_: object) -> bytes:
            raise KeyboardInterrupt

        monkeypatch.setattr(worker, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.request(ListDevices(), deadline=LONG)
        assert not worker.alive


class TestDeath:
    @pytest.mark.parametrize(("fault", "name"), [("3", "SIGABRT"), ("4", "SIGSEGV")])
    def test_says_which_signal(self, worker: WorkerProcess, fault: str, name: str) -> None:
        load(worker, fault=fault)
        with pytest.raises(WorkerDied, match=f"killed by {name}"):
            worker.request(RunCase("code", scale_plan(), DRAW), deadline=LONG)
        assert not worker.alive
        assert isinstance(worker.request(ListDevices(), deadline=LONG)[0], Devices)
        assert worker.generation == 2

    def test_by_a_signal_without_a_name(self, make: Callable[..., WorkerProcess]) -> None:
        number = signal.SIGRTMIN + 1
        worker = make(f"import os; os.kill(os.getpid(), {number})")
        with pytest.raises(WorkerDied, match=f"killed by signal {number}"):
            worker.request(ListDevices(), deadline=LONG)

    def test_last_words(self, worker: WorkerProcess) -> None:
        says = (
            "print('first')\nfor i in range(100): print(f'line {i}')\nprint('failed: n < 4', file=sys.stderr)"
        )
        with pytest.raises(WorkerDied) as failure:
            worker.request(
                python(f"{says}\nsys.stdout.flush()\nsys.stderr.flush()\nos._exit(7)"), deadline=LONG
            )
        words = str(failure.value)
        assert words.startswith("exit status 7; ")
        assert "failed: n < 4" in words
        assert "line 99" in words
        assert "first" not in words
        assert len(words) < 1000

    def test_a_line_without_end_is_cut(self, worker: WorkerProcess) -> None:
        with pytest.raises(WorkerDied) as failure:
            worker.request(python("os.write(2, b'x' * 1000000)\nos.abort()"), deadline=LONG)
        assert len(str(failure.value)) < 1000

    def test_words_of_an_earlier_life_are_forgotten(self, worker: WorkerProcess) -> None:
        for word in ("one", "two"):
            with pytest.raises(WorkerDied, match=word) as failure:
                worker.request(python(f"os.write(2, b'{word}')\nos.abort()"), deadline=LONG)
        assert "one" not in str(failure.value)

    def test_killed_from_outside_while_working(self, worker: WorkerProcess) -> None:
        with pytest.raises(WorkerDied, match="killed by SIGKILL"):
            worker.request(python("os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)"), deadline=LONG)

    def test_killed_from_outside_while_idle_costs_no_request(
        self, worker: WorkerProcess, tmp_path: Path
    ) -> None:
        """Whoever asks next has done nothing wrong."""
        pid = worker_pid(worker, tmp_path)
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, reaped_by=worker)
        assert isinstance(worker.request(ListDevices(), deadline=LONG)[0], Devices)
        assert worker.generation == 2

    def test_an_exit_without_reply(self, make: Callable[..., WorkerProcess]) -> None:
        with pytest.raises(WorkerDied, match="exit status 0"):
            make("pass").request(ListDevices(), deadline=LONG)

    def test_a_program_that_cannot_start(self, make: Callable[..., WorkerProcess]) -> None:
        with pytest.raises(WorkerDied, match=r"exit status 1; .*no such backend"):
            make("raise SystemExit('there is no such backend')").request(
                ListDevices(), (bytes(10 << 20),), deadline=LONG
            )


class TestNonsense:
    @pytest.mark.parametrize(
        "bytes_",
        [
            b"Segmentation fault, core dumped, and so on and so forth\n",
            b"TSF1" + bytes(8) + (1 << 30).to_bytes(4, "big") + bytes(4),  # a message of a gigabyte
            b"TSF1" + bytes(8) + (2).to_bytes(4, "big") + bytes(4) + b"{]",
            b"TSF1" + bytes(8) + (30).to_bytes(4, "big") + bytes(4) + b'{"type":"Nothing","value":{}} ',
            b"TSF1" + bytes(8) + (27).to_bytes(4, "big") + bytes(4) + b'{"type":"Ran","value":null}',
            b"TSF1"
            + bytes(8)
            + (2).to_bytes(4, "big")
            + (1).to_bytes(4, "big")
            + b"\xff" * 8,  # a blob of 16 EiB
            b"TSF1"
            + bytes(8)
            + (10).to_bytes(4, "big")
            + bytes(4)
            + b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6",
        ],
    )
    def test_is_a_death(self, make: Callable[..., WorkerProcess], bytes_: bytes) -> None:
        worker = make(f"import os, sys; os.write(1, {bytes_!r}); sys.stdin.buffer.read(10)")
        with pytest.raises(WorkerDied, match="exit status 0"):
            worker.request(ListDevices(), deadline=LONG)
        assert not worker.alive

    @pytest.mark.parametrize(
        ("request_", "json"),
        [
            (TellProtection(), b'{"type":"Failed","value":{"what":"unsupported","message":"no"}}'),
            (ListDevices(), b'{"type":"Done","value":{}}'),
            (python("return x"), b'{"type":"OutputCompared","value":{}}'),
            (Build(Unit("k", "", "fake", (), ()), DEVICE), BUILT),
        ],
    )
    def test_another_reply_than_was_asked_for_is_a_death(
        self, make: Callable[..., WorkerProcess], request_: Request, json: bytes
    ) -> None:
        said = b"".join(frame_parts(json))
        worker = make(f"import os, time; os.write(1, {said!r}); time.sleep(0.5); os._exit(0)")
        with pytest.raises(WorkerDied):
            worker.request(request_, deadline=LONG)
        assert not worker.alive

    def test_what_each_request_is_answered_with_is_known(self) -> None:
        assert set(process.REPLIES) == set(REQUEST_TYPES.values())

    @pytest.mark.long
    def test_of_one_that_lives_on(self, make: Callable[..., WorkerProcess]) -> None:
        worker = make("import os, time; os.write(1, b'hello' * 100); time.sleep(600)")
        with pytest.raises(WorkerDied, match="spoke nonsense: not a frame"):
            worker.request(ListDevices(), deadline=LONG)
        assert not worker.alive

    def test_a_hundred_megabytes_on_descriptor_1(self, make: Callable[..., WorkerProcess]) -> None:
        """They neither block the worker, nor land in the protocol, nor in our memory."""
        loud = (
            "import tunesmith.lab.worker.main as w, tunesmith.backends.fake as f\nf.PRINTED "
            "= 50 << 20\nw.main()"
        )
        worker = make(loud, "fake")
        load(worker, fault="8")  # a case runs its kernel twice
        tracemalloc.start()
        try:
            reply, blobs = worker.request(RunCase("code", scale_plan(), DRAW), deadline=LONG)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert isinstance(reply, Ran)
        assert len(blobs[0]) == 64
        assert peak < 4 << 20
        assert process.STDERR_BYTES <= 1 << 20

    def test_what_user_code_prints_or_reads_stays_out_of_the_protocol(self, worker: WorkerProcess) -> None:
        reply, _ = worker.request(
            python("print('TSF1' * 1000, flush=True)\nassert sys.stdin.read() == ''\nreturn 2 * x"),
            deadline=LONG,
        )
        assert isinstance(reply, Expected)


def worker_pid(worker: WorkerProcess, tmp_path: Path) -> int:
    path = tmp_path / "pid"
    worker.request(python(f"open({str(path)!r}, 'w').write(str(os.getpid()))\nreturn x"), deadline=LONG)
    pid = int(path.read_text())
    assert running(pid)
    return pid


def test_one_that_is_closed_while_it_starts_does_not_stay(tmp_path: Path) -> None:
    started: list[ChildProcess] = []

    def closing(*arguments: Any) -> ChildProcess:
        started.append(start_worker(*arguments))
        worker.close()  # as another thread does
        return started[0]

    worker = WorkerProcess(FAKE, worker_environment(tmp_path), None, closing)
    with pytest.raises(WorkerDied, match="closing"):
        worker.ensure_started()
    assert started[0].poll() == -signal.SIGKILL


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")
class TestForking:
    def test_children_share_a_server_and_start_from_nothing_but_its_modules(
        self, make: Callable[..., WorkerProcess], tmp_path: Path
    ) -> None:
        one, other = make(), make()
        first = worker_pid(one, tmp_path)
        one.request(python("import builtins; builtins.left = 1; return x"), deadline=LONG)
        second = worker_pid(other, tmp_path)
        other.request(
            python("import builtins; assert not hasattr(builtins, 'left'); return x"), deadline=LONG
        )
        parents = {
            int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) for pid in (first, second)
        }
        assert len(parents) == 1
        assert first != second

    def test_a_server_that_dies_takes_its_workers_along_and_is_replaced(
        self, make: Callable[..., WorkerProcess], tmp_path: Path
    ) -> None:
        worker = make()
        pid = worker_pid(worker, tmp_path)
        os.kill(parent(pid), signal.SIGKILL)
        assert gone(pid)
        assert worker_pid(worker, tmp_path) != pid

    def test_a_child_that_never_began_is_no_process_to_kill_and_others_live_on(
        self, make: Callable[..., WorkerProcess], tmp_path: Path
    ) -> None:
        """Its exit status must not be taken for a process id."""
        other = make()
        pid = worker_pid(other, tmp_path)
        lost = WorkerProcess(FAKE, worker_environment(tmp_path), tmp_path / "gone", start_worker)
        with pytest.raises(FileNotFoundError):
            lost.ensure_started()
        assert not lost.alive
        assert worker_pid(other, tmp_path) == pid

    def test_an_idle_server_is_replaced(self, tmp_path: Path) -> None:
        code = "from tunesmith.lab.process import run_fork_server as go; go(lambda: print('here'), idle=0.05)"
        server = ForkServer([sys.executable, "-c", code], dict(os.environ))
        with open(os.devnull, "r+") as null:
            streams = null.fileno(), null.fileno(), null.fileno()
            child = server.start([], os.environ, tmp_path, streams)
            assert child.wait(timeout=30) == 0
            child.close()
            assert server._process.wait(timeout=30) == 0
            with pytest.raises(OSError, match=r"Broken pipe|not answer|reset|Bad file"):
                server.start([], os.environ, tmp_path, streams)
        server.close()

    def test_arguments_environment_folder_streams_and_status_are_the_childs(self, tmp_path: Path) -> None:
        code = (
            "import os, sys\nfrom tunesmith.lab.process import run_fork_server\n"
            "def run():\n"
            "    leads = os.getsid(0) == os.getpid()\n"
            "    print(sys.argv[1:], os.environ['OWN'], os.getcwd(), sys.stdin.read(), leads)\n"
            "    sys.exit(7)\n"
            "run_fork_server(run)"
        )
        server = ForkServer([sys.executable, "-c", code], dict(os.environ))
        (tmp_path / "in").write_text("words")
        with open(tmp_path / "in") as into, open(tmp_path / "out", "w") as out:
            child = server.start(
                ["a", "b"], {**os.environ, "OWN": "1"}, tmp_path, (into.fileno(), out.fileno(), out.fileno())
            )
            assert child.wait(timeout=30) == 7
            assert child.poll() == 7
            child.close()
        server.close()
        assert (tmp_path / "out").read_text() == f"['a', 'b'] 1 {tmp_path} words True\n"


class TestFullDisk:
    """A compiler that could not write has said nothing about the kernel."""

    @pytest.fixture(autouse=True)
    def full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def check(_folder: Path) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(process, "check_room", check)

    def test_is_not_told_as_a_worker_that_died(self, make: Callable[..., WorkerProcess]) -> None:
        dying = make("raise SystemExit(3)")
        with pytest.raises(BadInput, match="No space left") as full:
            dying.request(ListDevices(), deadline=LONG)
        assert "free some room" in str(full.value.hint)

    def test_nor_as_a_build_that_failed(self, worker: WorkerProcess) -> None:
        bad = Unit("kernel.fake", "// no block", "fake", (), ("scale",))
        with pytest.raises(BadInput, match="No space left"):
            worker.request(Build(bad, DEVICE), deadline=LONG)


PLAN = Plan((), (), (), (), (), ())
POLICY = TimingPolicy(rounds=1, min_rounds=1, chain_seconds=0.01, max_seconds=1.0)


class Dying:
    """Forgets everything after each of its first `deaths` loads, as a killed process does."""

    def __init__(self, deaths: int, second: float = 2.0) -> None:
        self._second = second
        self.generation = 0
        self._deaths = deaths
        self._alive = False
        self._loaded: set[str] = set()

    def ensure_started(self) -> None:
        if not self._alive:
            self._alive, self._loaded = True, set()
            self.generation += 1

    def request(
        self, request: Request, blobs: Sequence[bytes] = (), *, deadline: float, generation: int | None = None
    ) -> tuple[Reply, tuple[bytes, ...]]:
        self.ensure_started()
        if generation != self.generation:
            raise WorkerReplaced
        if isinstance(request, Load):
            self._loaded.add(request.code_digest)
            self._deaths -= 1
            self._alive = self._deaths < 0
            return Done(), ()
        assert {c.code_digest for c in request.contenders} <= self._loaded, "asked of one that was never told"
        return Timed(((1.0,), (self._second,))), ()


def timed(deaths: int, second: float = 2.0, backend: str = "fake") -> object:
    unit = Unit("k.fake", "", "fake", (), ("k",))
    pair = [(BuiltCode(unit, b"", name, Resources(), 0.1), PLAN) for name in ("original", "candidate")]
    device = replace(device_of("fake"), backend=backend)
    runner = Runner(Dying(deaths, second), device)  # type: ignore[arg-type]
    return runner.time(Race(tuple(pair), Draw("normal", 0), POLICY, True), 1.0)


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_the_successor_is_sent_everything_again(deaths: int) -> None:
    assert timed(deaths) == RaceRun(Timed(((1.0,), (2.0,))), ())


def test_workers_that_all_die_are_no_kernels_fault() -> None:
    with pytest.raises(TunesmithError, match="die as soon as they are started"):
        timed(9)


@pytest.mark.parametrize("second", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_cannot_be_is_not_believed(second: float) -> None:
    verdict = timed(0, second)
    assert verdict.status is Status.SUSPECT


def test_launches_do_not_take_longer_than_the_request() -> None:
    verdict = timed(0, backend="opencl")
    assert verdict.status is Status.SUSPECT
    assert "launches took 3 s of" in verdict.detail
