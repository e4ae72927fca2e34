"""The few system calls of Linux that a sandbox is made of. Each takes something away, or raises OSError."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from tunesmith.lab import seccomp

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
                self._allow(ruleset, path, rights & known)
            self._done(self._libc.syscall(_RESTRICT_SELF, ruleset, 0))
        finally:
            os.close(ruleset)

    def filter_calls(self, sockets: str, own_process: int | None) -> None:
        program = seccomp.assemble(platform.machine(), sockets=sockets, own_process=own_process)
        steps = ctypes.create_string_buffer(program, len(program))
        listed = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
        self._done(self._libc.prctl(_SECCOMP, _FILTER, listed, 0, 0))

    def _allow(self, ruleset: int, path: str, rights: int) -> None:
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
