"""What a worker enters before it touches anything that is not ours: no network, no home, few system calls.

A few system calls of our own, and no rights are needed for them. What a machine does not permit is left out,
with the reason; the mode `required` does not go on without network and files.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import platform
import resource
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.run.protection import (
    AUTO,
    CALLS,
    ENVIRONMENT,
    FILES,
    LIMITS,
    NEEDED,
    NETWORK,
    OFF,
    REQUIRED,
    Protection,
    ProtectionLayer,
)

Number = int | tuple[int, int | None]
# By name: the numbers on x86-64 and on aarch64; one where it is the same on both.
_NETWORK = {"connect": (42, 203), "accept": (43, 202), "accept4": (288, 242)}
_LISTENING = {"bind": (49, 200), "listen": (50, 201)}
_DENIED: dict[str, Number] = {
    # other processes, and what would let a child outlive the group it is killed with
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": 438, "process_madvise": 440, "process_mrelease": 448,
    "setsid": (112, 157), "setpgid": (109, 154),
    # another view of the machine
    "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41),
    "mount": (165, 40), "umount2": (166, 39), "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "quotactl": (179, 60), "quotactl_fd": 443, "acct": (163, 89),
    "swapon": (167, 224), "swapoff": (168, 225),
    # wide doors into the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "syslog": (103, 116), "reboot": (169, 142), "vhangup": (153, 58), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
}  # fmt: skip
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3, _PRLIMIT = (41, 198), (53, 199), (56, 220), 435, (302, 261)
# Which process each of these reaches is its first argument.
_SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}  # fmt: skip
_PIDFD_SEND_SIGNAL = 424
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # as an audit names them, and our column
_X32 = 0x40000000  # the first number of the calls of a third kind
_NAMESPACES = 0x7E020000  # CLONE_NEW*
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 1, 5, 0xF
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
KILL, FAIL, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
DENY, UNKNOWN = FAIL | errno.EPERM, FAIL | errno.ENOSYS
_NUMBER, _ARCHITECTURE = 0, 4  # where they lie in what a filter is shown
NONE, LISTENING, ALL = "none", "listening", "all"  # of sockets
Instruction = tuple[int, int, int, int]  # what, then how far to jump if so, if not, and the operand


def assemble_filter(machine: str, *, sockets: str = NONE, own_process: int | None = None) -> bytes:
    """`sockets` that may be made: none; such as NVIDIA's driver waits at, where nobody is ever let in; all.
    With `own_process` signals reach that one alone, and none of its children: for kernels whose Landlock
    does not keep them in. KeyError for other machines."""
    audit, column = MACHINES[machine]

    def on_it(number: Number) -> int | None:
        return number if isinstance(number, int) else number[column]

    def when(number: Number, *then: Instruction) -> list[Instruction]:
        numbered = on_it(number)
        return [] if numbered is None else [(_EQUAL, 0, len(then), numbered), *then]

    code: list[Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, KILL)]
    code += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, KILL)]
    deny, allow = (_RETURN, 0, 0, DENY), (_RETURN, 0, 0, ALLOW)
    for denied in _denied_calls(sockets):
        code += when(denied, deny)
    # Its arguments lie in memory, where a filter does not look: callers go on with clone.
    code += when(_CLONE3, (_RETURN, 0, 0, UNKNOWN))
    code += when(_CLONE, _load_argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), deny, allow)
    code += when(_PRLIMIT, _load_argument(0), (_EQUAL, 1, 0, 0), deny, allow)
    if sockets != ALL:
        local = [_load_argument(0), (_EQUAL, 0, 3, _AF_UNIX), _load_argument(1), (_AND, 0, 0, _SOCK_TYPES)]
        # Pairs of streams: a datagram of a pair could be sent elsewhere.
        code += when(_SOCKETPAIR, *local, (_EQUAL, 1, 0, _SOCK_STREAM), deny, allow)
    if sockets == LISTENING:
        code += when(_SOCKET, *local, (_EQUAL, 1, 0, _SOCK_SEQPACKET), deny, allow)
    if own_process is not None:
        code += when(_PIDFD_SEND_SIGNAL, deny)
        own_or_group = [(_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, own_process)]
        for signal in _SIGNALS.values():
            code += when(signal, _load_argument(0), *own_or_group, deny, allow)
    return b"".join(struct.pack("<HBBI", *step) for step in [*code, allow])


def _denied_calls(sockets: str) -> list[Number]:
    more = {NONE: [_SOCKET, *_NETWORK.values(), *_LISTENING.values()], LISTENING: list(_NETWORK.values())}
    return [*_DENIED.values(), *more.get(sockets, [])]


def _load_argument(place: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * place)  # its lower half: that of every argument we look at


_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x40000000, 0x08000000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2  # of prctl
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock's calls, the same on every machine
_ONLY_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_TRUNCATE, _CONTROL = 1 << 14, 1 << 15
# How many rights a version of Landlock knows; later ones know no more of files than the last.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP, _SCOPES = 3, 3  # to bind and connect; abstract sockets and signals
MOVES_ALLOWED, TCP_KEPT, SIGNALS_KEPT = 2, 4, 6  # the first versions that can, or keep these in the sandbox
_CAPABILITIES = 0x20080522  # of the version with two words
_READS_ANY = 1 << 1 | 1 << 2  # for root, whose files may be another's: what may be reached is Landlock's
READ, CHANGE, USE = (
    _EXECUTE | _READ | _LIST,
    ~(_EXECUTE | _MAKE_DEVICES),
    _READ | _WRITE | _LIST | _TRUNCATE | _CONTROL,
)
Rule = tuple[str, int]  # a path, and READ, CHANGE or USE of all below it


class LinuxCalls:
    """Of this process, and of what it starts from now on."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.has_own_user = False  # as far as namespaces go

    def leave_network(self) -> None:
        """For a network and shared memory of its own; whoever may not have them alone has them as a user of
        its own, with the same number."""
        try:
            self._done(self._libc.unshare(_NEW_NETWORK | _NEW_IPC))
        except PermissionError:
            user, group = os.geteuid(), os.getegid()
            self._done(self._libc.unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC))
            self.has_own_user = True
            maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
            with contextlib.suppress(OSError):  # nameless, where a machine forbids even that
                for name, text in maps.items():
                    Path("/proc/self", name).write_text(text)

    def drop_capabilities(self) -> None:
        header = struct.pack("<Ii", _CAPABILITIES, 0)
        held = ctypes.create_string_buffer(24)
        self._done(self._libc.capget(header, held))
        _, permitted, _ = struct.unpack("<3I", held.raw[:12])
        kept = 0 if self.has_own_user else permitted & _READS_ANY
        self._done(self._libc.capset(header, struct.pack("<6I", kept, kept, 0, 0, 0, 0)))

    def give_up_privileges(self) -> None:
        """No program gives more rights from now on; the kernel takes filters from nobody else."""
        self._done(self._libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))

    def landlock_version(self) -> int:
        return self._done(self._libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ONLY_VERSION))

    def restrict_files(self, rules: Iterable[Rule], version: int) -> None:
        """To these paths; where the version can, signals to this sandbox, and TCP to nobody."""
        known = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
        parts = [known, *[_TCP][: version >= TCP_KEPT], *[_SCOPES][: version >= SIGNALS_KEPT]]
        attributes = struct.pack(f"<{len(parts)}Q", *parts)
        size = ctypes.c_size_t(len(attributes))
        ruleset = self._done(self._libc.syscall(_CREATE_RULESET, attributes, size, 0))
        try:
            for path, rights in rules:
                self._allow_path(ruleset, path, rights & known)
            self._done(self._libc.syscall(_RESTRICT_SELF, ruleset, 0))
        finally:
            os.close(ruleset)

    def filter_calls(self, sockets: str, own_process: int | None) -> None:
        program = assemble_filter(platform.machine(), sockets=sockets, own_process=own_process)
        steps = ctypes.create_string_buffer(program, len(program))
        listed = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
        self._done(self._libc.prctl(_SECCOMP, _FILTER, listed, 0, 0))

    def _allow_path(self, ruleset: int, path: str, rights: int) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return  # it is not there, or not for us
        try:
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                rights &= _EXECUTE | _READ | _WRITE | _TRUNCATE | _CONTROL
            rule = struct.pack("<Qi", rights, place)
            self._done(self._libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        finally:
            os.close(place)

    def _done(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/sys", "/nix/store", "/gnu/store",
    "/run/opengl-driver",
    *(f"/etc/{name}" for name in (
        "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "OpenCL", "nvidia",
        "localtime", "timezone", "nsswitch.conf", "passwd", "group", "os-release", "locale.alias",
        "ssl/openssl.cnf", "pki/tls/openssl.cnf", "crypto-policies",
    )),
    *(f"/proc/{name}" for name in (
        "self", "cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "devices",
        "modules", "driver", "sys",
    )),
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LARGEST_FILE = 1 << 30
ADDRESSES = 16 << 30  # beside twice the memory
OTHERS = 512  # processes and threads, beside eight a core
NOT_LINUX = "only Linux has what it takes"
TURNED_OFF = "--sandbox off"


@dataclass(frozen=True)
class Sandbox:
    """What a worker may reach. Paths that are not there are left out."""

    mode: str
    scratch: str  # the only folder it writes
    readable: tuple[str, ...]  # and what may be executed
    devices: tuple[str, ...] = ()  # beside the usual ones: read and written
    network: str = ""  # why sockets are let through; empty: they are not


def for_worker(
    environment: Mapping[str, str], needed: Iterable[str] = (), devices: Iterable[str] = (), network: str = ""
) -> Sandbox:
    """By the variables a worker is started with; `needed` and `devices` (patterns) are its backend's. No path
    lets it see the home as a whole."""
    home = environment.get("TUNESMITH_HIDDEN", "")
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, sys.pycache_prefix or "")
    lists = (environment.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH"))
    searched = [path for paths in lists for path in paths.split(os.pathsep)]
    wanted = (*python, *searched, *_vendor_folders(environment.get("OCL_ICD_VENDORS", "")), *needed)
    seen = [
        path
        for path in map(os.path.realpath, filter(os.path.isabs, wanted))
        if not _is_home_within(path, home)
    ]
    package = str(Path(__file__).parents[2])
    return Sandbox(
        environment.get("TUNESMITH_SANDBOX", AUTO),
        environment.get("TMPDIR", ""),
        tuple(dict.fromkeys((*SYSTEM, package, *seen))),
        tuple(path for pattern in devices for path in glob.glob(pattern)),
        network,
    )


def _vendor_folders(folder: str) -> Iterator[str]:
    """Where OpenCL's loader is pointed: what lies beside that folder, and beside the libraries it names."""
    if os.path.isabs(folder):
        yield from (folder, os.path.dirname(folder.rstrip("/")))
        for name in glob.glob(f"{glob.escape(folder)}/*.icd"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                yield os.path.dirname(Path(name).read_text().strip())


def _is_home_within(folder: str, home: str) -> bool:
    return bool(home) and Path(os.path.realpath(home)).is_relative_to(folder)


class NotProtected(Exception):
    """`required`, and a layer that it needs is not in force."""


def confine_process(sandbox: Sandbox, calls: LinuxCalls | None = None) -> Protection:
    """From here on in this process and all that it starts; there is no way back."""
    listed = ProtectionLayer(ENVIRONMENT, True, "only variables on a list, and no home")
    calls = calls or (LinuxCalls() if sys.platform == "linux" else None)
    if sandbox.mode == OFF or calls is None:
        why = TURNED_OFF if sandbox.mode == OFF else NOT_LINUX
        found = [ProtectionLayer(name, False, why) for name in (NETWORK, FILES, CALLS, LIMITS)]
    else:
        found = _apply_layers(sandbox, calls)
    protection = Protection((listed, *found))
    if sandbox.mode == REQUIRED and (missing := protection.missing(NEEDED)):
        raise NotProtected("; ".join(f"{layer.name}: {layer.detail}" for layer in missing))
    return protection


def _apply_layers(sandbox: Sandbox, calls: LinuxCalls) -> list[ProtectionLayer]:
    apart = sandbox.network or _try_step(calls.leave_network)
    limits = _try_step(
        lambda: _limit_resources(has_driver=bool(sandbox.devices), own_user=calls.has_own_user)
    )
    _try_step(calls.drop_capabilities)
    _try_step(calls.give_up_privileges)
    version = 0
    with contextlib.suppress(OSError):
        version = calls.landlock_version()
    files = "this kernel has no Landlock, or has it turned off"
    if version:
        files = "the Landlock of kernels before 5.19 lets nobody move a file to another folder"
    if version >= MOVES_ALLOWED:
        files = _try_step(lambda: calls.restrict_files(_landlock_rules(sandbox), version))
    alone = None if version >= SIGNALS_KEPT and not files else os.getpid()
    # NVIDIA's driver waits for others, and cannot be had otherwise.
    sockets = ALL if sandbox.network else LISTENING if sandbox.devices else NONE
    filtered = _try_step(lambda: calls.filter_calls(sockets, alone))
    by = [what for what, why in (("no sockets", filtered), ("a network of its own", apart)) if not why]
    network = sandbox.network or ("" if by else filtered)
    as_root = ", but processes are not counted for root" if os.getuid() == 0 else ""
    return [
        ProtectionLayer(NETWORK, not network, network or " and ".join(by)),
        ProtectionLayer(FILES, not files, files or f"Landlock {version}, one folder to write"),
        ProtectionLayer(CALLS, not filtered, filtered or "seccomp"),
        ProtectionLayer(LIMITS, not limits, limits or f"memory, processes, file size, time{as_root}"),
    ]


def _landlock_rules(sandbox: Sandbox) -> Iterator[Rule]:
    yield from ((path, READ) for path in sandbox.readable)
    # The last for names of threads, without which NVIDIA's driver does nothing.
    yield from ((path, USE) for path in (*DEVICES, *sandbox.devices, "/proc/self/task"))
    yield sandbox.scratch, CHANGE


def _limit_resources(*, has_driver: bool, own_user: bool) -> None:
    """As far as they are not lower already. Drivers of GPUs reserve more addresses than there is memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    processes = OTHERS + 8 * (os.cpu_count() or 1)
    if not own_user:  # all of the user's are counted: no more than all there are now
        processes += int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    most = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: LARGEST_FILE, resource.RLIMIT_DATA: memory}
    most |= {resource.RLIMIT_NPROC: processes}
    most |= {} if has_driver else {resource.RLIMIT_AS: 2 * memory + ADDRESSES}
    for which, value in most.items():
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def limit_time(seconds: float) -> None:
    """For what is asked now, of processors too: what it has started ends as well, should nobody kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 1
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def _try_step(step: Callable[[], None]) -> str:
    """Why it could not be done; empty where it was."""
    try:
        step()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except KeyError as error:
        return f"not for {error.args[0]}"
    return ""
