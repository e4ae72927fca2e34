"""What code in a worker tries that it must not: each attempt fails in the sandbox, and works without one."""

from __future__ import annotations

import errno
import json
import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.core.lab.test_process import LONG, python, scale_plan
from tests.opencl_here import needs_opencl
from tunesmith.backends.messages import Build, Built, Draw, Load, Ran, RunCase, TellProtection, Unit
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.process import WorkerDied, WorkerProcess
from tunesmith.lab.worker import sandbox
from tunesmith.lab.worker.sandbox import ALLOW, DENY, FAIL, KILL, LinuxCalls, assemble_filter
from tunesmith.run.protection import CALLS, FILES, LIMITS, NEEDED, NETWORK, Protection, ProtectionLayer
from tunesmith.session import place as machine
from tunesmith.session import place as workplace

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux's system calls")
SECRET = "x7Kq-not-for-workers"
LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
RAISED = "\nif failed < 0: raise OSError(ctypes.get_errno(), 'refused')"

# Each is refused with an OSError. {place} has files of the user's beside the worker's own folder, {lab} is
# the process that the worker belongs to.
ATTEMPTS = {
    "tcp": "socket.create_connection(('127.0.0.1', {port}), 5).close()",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'key', ('127.0.0.1', 9))",
    "unix": "s = socket.socket(socket.AF_UNIX); s.connect('{place}/socket')",
    "datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "home": "open('{place}/home/.ssh/id').read()",
    "names": "os.listdir('{place}/home')",
    "run folder": "open('{place}/run/journal.jsonl').read()",
    "other workers": "os.listdir('{place}/run/scratch')",
    "write": "open('{place}/run/written', 'w').write('x')",
    "link": "os.symlink('{place}/run/journal.jsonl', 'link'); open('link', 'a').write('x')",
    "environment": "open('/proc/{lab}/environ').read()",
    "environment of the parent": "open(f'/proc/{{os.getppid()}}/environ').read()",
    "memory": "open('/proc/{lab}/mem', 'rb').close()",
    "ptrace": LIBC + "failed = libc.ptrace(0x4206, {lab}, 0, 0)" + RAISED,
    "signal": "os.kill({lab}, 0)",
    "new session": "subprocess.run(['/bin/sh', '-c', ':'], start_new_session=True)",
    "namespace": LIBC + "failed = libc.unshare(0x10000000)" + RAISED,
    "large file": "open('large', 'wb').truncate(2 << 30)",
}
# A name is looked up over the network, which need not be there.
ALWAYS_REFUSED = {"dns": "socket.getaddrinfo('tunesmith.example', 80)"}
ALLOWED = {
    "scratch": "open('own', 'w').write('x'); os.mkdir('e'); os.rename('own', 'e/own')",
    "programs": "subprocess.run(['/bin/sh', '-c', 'ls / >/dev/null || true; echo > /dev/null'], check=True)",
    "threads": "t = threading.Thread(target=print); t.start(); t.join()",
    "pairs": "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
    "packages": "import numpy.fft, unittest.mock",
    "deep": "at = os.open('.', 0)\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\nos.fchdir(at)",
    "facts": "open('/proc/self/status').read(); os.listdir('/sys/devices/system/cpu')",
}


@dataclass(frozen=True)
class Target:
    """A machine with something to steal, and a worker on it."""

    worker: WorkerProcess
    place: Path
    port: int

    def attempt(self, code: str) -> str:
        """`done`, or the kind of OSError."""
        filled = code.format(place=self.place, port=self.port, lab=os.getpid())
        body = "import ctypes, socket, threading\ntry:\n"
        body += "".join(f"    {line}\n" for line in filled.splitlines())
        body += (
            "except OSError as error:\n    raise ValueError(f'refused: {error!r}')\nraise ValueError('done')"
        )
        reply, _ = self.worker.request(python(body), deadline=LONG)
        return reply.message.partition("ValueError: ")[2].split("(")[0]


def _target(place: Path, sandbox: str) -> Iterator[Target]:
    with pytest.MonkeyPatch.context() as patch, socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        for folder in ("home/.ssh", "run/scratch"):
            (place / folder).mkdir(parents=True)
        (place / "home/.ssh/id").write_text(SECRET)
        (place / "run/journal.jsonl").write_text("{}\n")
        unix.bind(str(place / "socket"))
        unix.listen()
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        patch.setenv("HOME", str(place / "home"))
        patch.setenv("SOME_API_KEY", SECRET)
        worker = machine.WorkerSite("fake", place / "run/scratch", sandbox).spawn("test")
        yield Target(worker, place, tcp.getsockname()[1])
        worker.kill()
        assert list((place / "run/scratch").iterdir()) == [], "nothing of a worker is left"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from _target(tmp_path_factory.mktemp("s"), "auto")


@pytest.fixture(scope="module")
def held(target: Target) -> Protection:
    found, _ = target.worker.request(TellProtection(), deadline=LONG)
    assert isinstance(found, Protection)
    return found


@on_linux
@pytest.mark.parametrize("name", [*ATTEMPTS, *ALWAYS_REFUSED])
def test_refused(target: Target, held: Protection, name: str) -> None:
    if missing := held.missing((NETWORK, FILES, CALLS, LIMITS)):
        pytest.skip(f"not in force here: {missing}")
    assert target.attempt({**ATTEMPTS, **ALWAYS_REFUSED}[name]).startswith("refused: ")


@on_linux
@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(target: Target, name: str) -> None:
    assert target.attempt(ALLOWED[name]) == "done"


@on_linux
@pytest.mark.long
def test_all_of_it_works_without_a_sandbox(tmp_path: Path) -> None:
    """Else the attempts would say nothing."""
    (tmp_path / "s").mkdir()
    for target in _target(tmp_path / "s", "off"):
        # Who may look at another process is the system's to say, too.
        others = {"memory", "ptrace", "environment", "namespace"}
        refused = {name: target.attempt(code) for name, code in ATTEMPTS.items() if name not in others}
        assert {name: said for name, said in refused.items() if said != "done"} == {}


def test_keys_do_not_reach_a_worker(target: Target) -> None:
    told, _ = target.worker.request(python("raise ValueError(dict(os.environ))"), deadline=LONG)
    assert "PATH" in told.message
    assert "SOME_API_KEY" not in told.message
    assert told.message.count(f"{target.place}/home") == 1, "what is hidden is named, once"
    where, _ = target.worker.request(python("raise ValueError(os.path.expanduser('~'))"), deadline=LONG)
    assert f"{target.place}/run/scratch/worker-" in where.message


def test_keys_are_cut_out_of_what_a_worker_says(target: Target) -> None:
    said = target.worker.request(python(f"open('{target.place}/home/.ssh/id')"), deadline=LONG)[0]
    assert "--sandbox" in said.message, "whoever reads a file in a reference learns why it cannot"
    reply, _ = target.worker.request(python(f"raise ValueError('it is {SECRET}!')"), deadline=LONG)
    assert reply.message.endswith("ValueError: it is …!")
    words = (
        f"print('x' * 400, '{SECRET}', 'sk-ant-0123456789abcdefgh', file=sys.stderr, flush=True); os._exit(3)"
    )
    with pytest.raises(WorkerDied, match="exit status 3") as died:
        target.worker.request(python(words), deadline=LONG)
    assert SECRET not in str(died.value)
    assert "sk-ant" not in str(died.value)


# Native code that runs in the worker: what a kernel on the CPU is.
CALL = {
    "x86_64": ('"syscall"', '"=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory"', (41, 2, 39)),
    "aarch64": ('"svc 0"', '"=r"(x0) : "r"(x8), "0"(x0), "r"(x1), "r"(x2) : "memory"', (198, 56, 172)),
}
KERNEL = """
static long call(long n, long a, long b, long c) {{
    {before}
    __asm__ volatile ({instruction} : {operands});
    return {result};
}}
__kernel void scale(__global float *out, __global const float *x, int rows, int d) {{
    if (get_global_id(0) != 0) return;
    char path[] = "{path}";
    out[0] = call({socket}, 2, 1, 0);
    out[1] = {open};
    out[2] = call({pid}, 0, 0, 0) > 0;
}}
"""


@on_linux
@needs_opencl
@pytest.mark.skipif(platform.machine() not in CALL, reason="no system call in this machine's language")
def test_refused_from_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "scratch").mkdir()
    device = machine.pick_device(
        machine.list_devices(machine.WorkerSite("opencl", tmp_path / "scratch")), None
    )
    instruction, operands, (make_socket, opens, pid) = CALL[platform.machine()]
    arm = platform.machine() == "aarch64"
    registers = [
        f'register long x{r} __asm__("x{r}") = {v};' for r, v in ((8, "n"), (0, "a"), (1, "b"), (2, "c"))
    ]
    text = KERNEL.format(
        before="".join(registers) if arm else "long r;",
        instruction=instruction,
        operands=operands,
        result="x0" if arm else "r",
        path=tmp_path / "key",
        socket=make_socket,
        open=f"call({opens}, -100, (long)path, 0)" if arm else f"call({opens}, (long)path, 0, 0)",
        pid=pid,
    )
    worker = machine.WorkerSite("opencl", tmp_path / "scratch").spawn("device")
    try:
        unit = Unit("kernel.cl", text, "opencl", (), ("scale",))
        built, (binary,) = worker.request(Build(unit, device), deadline=LONG)
        assert isinstance(built, Built)
        worker.request(Load(unit, "code", device), (binary,), deadline=LONG)
        ran, (out,) = worker.request(RunCase("code", scale_plan(), Draw("normal", 1)), deadline=LONG)
        assert isinstance(ran, Ran)
    finally:
        worker.kill()
    no_socket, no_file, has_pid = np.frombuffer(out, np.float32)[:3]
    assert (no_socket, no_file, has_pid) == (-1, -13, 1), "EPERM, EACCES, and a call that is let through"


# As whoever starts it without rights; in a process of its own, which then stays there.
AS_NOBODY = """
import json, os, socket, sys
from tunesmith.lab.worker import sandbox
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sandbox.OTHERS = 8
held = sandbox.confine_process(sandbox.for_worker({"TUNESMITH_SANDBOX": "auto"}))
children, stopped = [], ""
try:
    while len(children) < 4000:
        child = os.fork()
        if not child:
            os.read(0, 1)
            os._exit(0)
        children.append(child)
except OSError as error:
    stopped = type(error).__name__
try:
    socket.socket()
except OSError as error:
    stopped += type(error).__name__
print(json.dumps([len(children), stopped, [layer.name for layer in held.layers if layer.in_force]]))
"""


@on_linux
def test_an_ordinary_user_is_held_as_well() -> None:
    command = [sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, timeout=LONG, check=True)
    children, stopped, held = json.loads(done.stdout)
    if {CALLS, LIMITS} <= set(held):
        assert stopped == "BlockingIOErrorPermissionError"
        assert children < 4000


class Refusing(LinuxCalls):
    """A machine that permits nothing, or all but the calls named."""

    def __init__(self, *lacking: str) -> None:
        self.has_own_user = False
        self.filtered: tuple[object, ...] = ()
        for name in ("leave_network", "drop_capabilities", "give_up_privileges", "restrict_files", *lacking):
            setattr(self, name, self._refuse if name in lacking else lambda *_: None)
        if "filter_calls" not in lacking:
            setattr(self, "filter_calls", self._filter)  # noqa: B010 (a method)

    def landlock_version(self) -> int:
        return 7

    def _filter(self, *given: object) -> None:
        self.filtered = given

    def _refuse(self, *_: object) -> None:
        raise OSError(1, "Operation not permitted")


def entered(
    calls: LinuxCalls, monkeypatch: pytest.MonkeyPatch, mode: str = "auto"
) -> dict[str, ProtectionLayer]:
    monkeypatch.setattr(sandbox, "_limit_resources", lambda **_: None)
    held = sandbox.confine_process(sandbox.Sandbox(mode, "/scratch", ()), calls)
    return {layer.name: layer for layer in held.layers}


class TestWhatAMachineLacks:
    def test_no_namespaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = entered(Refusing("leave_network"), monkeypatch, "required")
        assert all(layer.in_force for layer in held.values())
        assert held[NETWORK].detail == "no sockets"

    def test_no_filter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = entered(Refusing("filter_calls"), monkeypatch)
        assert held[NETWORK].in_force
        assert (held[CALLS].in_force, held[CALLS].detail) == (False, "operation not permitted")

    def test_no_landlock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = Refusing("landlock_version")
        held = entered(calls, monkeypatch)
        assert not held[FILES].in_force
        assert "Landlock" in held[FILES].detail
        assert calls.filtered == ("none", os.getpid()), "then signals are kept by the filter"
        with pytest.raises(sandbox.NotProtected, match="files"):
            entered(Refusing("landlock_version"), monkeypatch, "required")

    def test_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = ("leave_network", "filter_calls", "landlock_version")
        held = entered(Refusing(*names), monkeypatch)
        assert [name for name, layer in held.items() if layer.in_force] == ["environment", LIMITS]

    def test_another_system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        held = sandbox.confine_process(sandbox.Sandbox("auto", "/scratch", ()))
        assert [layer.name for layer in held.missing((NETWORK, FILES, CALLS, LIMITS))] == [
            *(NETWORK, FILES, CALLS, LIMITS)
        ]
        assert "Linux" in held.sentence

    def test_a_run_that_requires_it_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bare = Protection((ProtectionLayer(FILES, False, "this kernel has no Landlock"),))

        class Told(WorkerProcess):
            def request(self, *_: object, **__: object) -> object:  # type: ignore[override]
                return bare, ()

        monkeypatch.setattr(workplace, "WorkerProcess", Told)
        assert machine.worker_protection(machine.WorkerSite("fake", tmp_path)) == bare
        with pytest.raises(DeviceMissing, match="no Landlock") as refused:
            machine.worker_protection(machine.WorkerSite("fake", tmp_path, "required"))
        assert refused.value.exit_code == 5
        assert "--sandbox auto" in (refused.value.hint or "")
        assert [layer.name for layer in bare.missing(NEEDED)] == [NETWORK, FILES]


class TestWhatIsReadable:
    def test_not_the_home_as_a_whole(self) -> None:
        own = {"TUNESMITH_HIDDEN": "/usr/me", "LD_LIBRARY_PATH": "/usr/me:/usr/me/lib:relative"}
        found = sandbox.for_worker({**own, "TMPDIR": "/scratch"}, needed=["/usr/me/cuda", "/"])
        assert {"/usr/me/lib", "/usr/me/cuda"} <= set(found.readable)
        assert not {"/usr/me", "/", "relative"} & set(found.readable)
        assert found.scratch == "/scratch"

    def test_what_python_needs(self) -> None:
        found = sandbox.for_worker({})
        assert os.path.realpath(sys.prefix) in found.readable
        assert str(Path(sandbox.__file__).parents[2]) in found.readable
        assert found.mode == "auto"


@pytest.mark.gpu
def test_a_gpu_is_seen_from_the_sandbox(tmp_path: Path) -> None:
    """Its driver needs a socket to wait at, and to name its threads."""
    assert machine.list_devices(machine.WorkerSite("cuda", tmp_path))
    assert machine.worker_protection(machine.WorkerSite("cuda", tmp_path)).missing((CALLS, LIMITS)) == ()


UNKNOWN = FAIL | errno.ENOSYS
OWN = 4321


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    shown = struct.pack("<iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    steps, at, value = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        what, if_so, if_not, operand = steps[at]
        at += 1
        if what == 0x20:
            (value,) = struct.unpack_from("<I", shown, operand)
        elif what == 0x54:
            value &= operand
        elif what == 0x06:
            return int(operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[what]
            at += if_so if holds else if_not


CASES = [
    # x86-64, aarch64, arguments, what becomes of it
    (0, 63, (), ALLOW),  # read
    (59, 221, (), ALLOW),  # execve
    (16, 29, (), ALLOW),  # ioctl
    (41, 198, (1,), DENY),  # socket, of any kind
    (42, 203, (), DENY),  # connect
    (53, 199, (1, 1 | 0o2000000), ALLOW),  # socketpair of streams, closed when a program starts
    (53, 199, (1, 2), DENY),  # of datagrams
    (53, 199, (2, 1), DENY),  # of another family
    (101, 117, (), DENY),  # ptrace
    (321, 280, (), DENY),  # bpf
    (425, 425, (), DENY),  # io_uring_setup
    (272, 97, (), DENY),  # unshare
    (435, 435, (), UNKNOWN),  # clone3
    (56, 220, (0x11,), ALLOW),  # clone, as fork does
    (56, 220, (0x10000011,), DENY),  # with a user namespace
    (302, 261, (0,), ALLOW),  # prlimit64 of itself
    (302, 261, (1,), DENY),
    (62, 129, (1,), ALLOW),  # kill: Landlock's to refuse
]


@pytest.mark.parametrize("machine", sandbox.MACHINES)
def test_calls(machine: str) -> None:
    audit, column = sandbox.MACHINES[machine]
    program = assemble_filter(machine)
    for *numbers, arguments, wanted in CASES:
        assert verdict(program, audit, numbers[column], *arguments) == wanted, numbers
    assert verdict(program, audit ^ 1, 0) == KILL, "of another machine"
    assert len(program) // 8 < 4096, "what a kernel takes"


def test_the_third_kind_of_calls_is_none() -> None:
    assert verdict(assemble_filter("x86_64"), 0xC000003E, 0x40000000) == KILL
    assert verdict(assemble_filter("x86_64"), 0xC000003E, -1) == KILL


def test_where_the_network_is_let_through() -> None:
    program = assemble_filter("x86_64", sockets="all")
    assert [verdict(program, 0xC000003E, number, 2, 2) for number in (41, 42, 53)] == [ALLOW] * 3
    assert verdict(program, 0xC000003E, 101) == DENY


def test_a_driver_may_wait_and_lets_nobody_in() -> None:
    program = assemble_filter("x86_64", sockets="listening")
    wait = [(41, 1, 5 | 0o2000000), (49,), (50,)]  # socket of sequenced packets, bind, listen
    assert [verdict(program, 0xC000003E, *call) for call in wait] == [ALLOW] * 3
    refused = [(41, 1, 1), (41, 1, 2), (41, 2, 5), (42,), (43,), (288,), (53, 1, 2)]
    assert [verdict(program, 0xC000003E, *call) for call in refused] == [DENY] * 7


@pytest.mark.parametrize("number", [62, 200, 234, 129, 297])
def test_signals_that_reach_nobody_else(number: int) -> None:
    program = assemble_filter("x86_64", own_process=OWN)
    verdicts = {who: verdict(program, 0xC000003E, number, who) for who in (OWN, 0, 1, 0xFFFFFFFF)}
    assert verdicts == {OWN: ALLOW, 0: ALLOW, 1: DENY, 0xFFFFFFFF: DENY}
    assert verdict(program, 0xC000003E, 424) == DENY


def test_a_machine_that_nobody_numbered() -> None:
    with pytest.raises(KeyError):
        assemble_filter("riscv64")
