"""What a worker enters before it touches anything that is not ours: no network, no home, few system calls.

A few system calls of our own, and no rights are needed for them. What a machine does not permit is left out,
with the reason; the mode `required` does not go on without network and files.
"""

from __future__ import annotations

import contextlib
import glob
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.lab import seccomp
from tunesmith.lab.system_calls import CHANGE, MOVES_ALLOWED, READ, SIGNALS_KEPT, USE, LinuxCalls, Rule
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
    environment: Mapping[str, str],
    needed: Iterable[str] = (),
    devices: Iterable[str] = (),
    network: str = "",
) -> Sandbox:
    """By the variables a worker is started with; `needed` and `devices` (patterns) are its backend's. No path
    lets it see the home as a whole."""
    home = environment.get("TUNESMITH_HIDDEN", "")
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, sys.pycache_prefix or "")
    lists = (environment.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH"))
    searched = [path for paths in lists for path in paths.split(os.pathsep)]
    own = (*python, *searched, *_vendors(environment.get("OCL_ICD_VENDORS", "")), *needed)
    seen = [path for path in map(os.path.realpath, filter(os.path.isabs, own)) if not _holds(path, home)]
    package = str(Path(__file__).parents[1])
    return Sandbox(
        environment.get("TUNESMITH_SANDBOX", AUTO),
        environment.get("TMPDIR", ""),
        tuple(dict.fromkeys((*SYSTEM, package, *seen))),
        tuple(path for pattern in devices for path in glob.glob(pattern)),
        network,
    )


def _vendors(folder: str) -> Iterator[str]:
    """Where OpenCL's loader is pointed: what lies beside that folder, and beside the libraries it names."""
    if os.path.isabs(folder):
        yield from (folder, os.path.dirname(folder.rstrip("/")))
        for name in glob.glob(f"{glob.escape(folder)}/*.icd"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                yield os.path.dirname(Path(name).read_text().strip())


def _holds(folder: str, home: str) -> bool:
    return bool(home) and Path(os.path.realpath(home)).is_relative_to(folder)


class NotProtected(Exception):
    """`required`, and a layer that it needs is not in force."""


def enter(sandbox: Sandbox, calls: LinuxCalls | None = None) -> Protection:
    """From here on in this process and all that it starts; there is no way back."""
    listed = ProtectionLayer(ENVIRONMENT, True, "only variables on a list, and no home")
    calls = calls or (LinuxCalls() if sys.platform == "linux" else None)
    if sandbox.mode == OFF or calls is None:
        why = TURNED_OFF if sandbox.mode == OFF else NOT_LINUX
        found = [ProtectionLayer(name, False, why) for name in (NETWORK, FILES, CALLS, LIMITS)]
    else:
        found = _entered(sandbox, calls)
    protection = Protection((listed, *found))
    if sandbox.mode == REQUIRED and (missing := protection.missing(NEEDED)):
        raise NotProtected("; ".join(f"{layer.name}: {layer.detail}" for layer in missing))
    return protection


def _entered(sandbox: Sandbox, calls: LinuxCalls) -> list[ProtectionLayer]:
    apart = sandbox.network or _tried(calls.leave_network)
    limits = _tried(lambda: _limit(has_driver=bool(sandbox.devices), own_user=calls.has_own_user))
    _tried(calls.drop_capabilities)
    _tried(calls.give_up_privileges)
    version = 0
    with contextlib.suppress(OSError):
        version = calls.landlock_version()
    files = "this kernel has no Landlock, or has it turned off"
    if version:
        files = "the Landlock of kernels before 5.19 lets nobody move a file to another folder"
    if version >= MOVES_ALLOWED:
        files = _tried(lambda: calls.restrict_files(_rules(sandbox), version))
    alone = None if version >= SIGNALS_KEPT and not files else os.getpid()
    # NVIDIA's driver waits for others, and cannot be had otherwise.
    sockets = seccomp.ALL if sandbox.network else seccomp.LISTENING if sandbox.devices else seccomp.NONE
    filtered = _tried(lambda: calls.filter_calls(sockets, alone))
    by = [what for what, why in (("no sockets", filtered), ("a network of its own", apart)) if not why]
    network = sandbox.network or ("" if by else filtered)
    as_root = ", but processes are not counted for root" if os.getuid() == 0 else ""
    return [
        ProtectionLayer(NETWORK, not network, network or " and ".join(by)),
        ProtectionLayer(FILES, not files, files or f"Landlock {version}, one folder to write"),
        ProtectionLayer(CALLS, not filtered, filtered or "seccomp"),
        ProtectionLayer(LIMITS, not limits, limits or f"memory, processes, file size, time{as_root}"),
    ]


def _rules(sandbox: Sandbox) -> Iterator[Rule]:
    yield from ((path, READ) for path in sandbox.readable)
    # The last for names of threads, without which NVIDIA's driver does nothing.
    yield from ((path, USE) for path in (*DEVICES, *sandbox.devices, "/proc/self/task"))
    yield sandbox.scratch, CHANGE


def _limit(*, has_driver: bool, own_user: bool) -> None:
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


def _tried(step: Callable[[], None]) -> str:
    """Why it could not be done; empty where it was."""
    try:
        step()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except KeyError as error:
        return f"not for {error.args[0]}"
    return ""
