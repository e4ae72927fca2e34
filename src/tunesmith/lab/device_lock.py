"""Turns at a device, over all processes and users of a machine: whoever times has it alone, others who run
kernels on it share it.

The locks are advisory record locks on `/dev/null`, a pair of bytes for each device: every user may open it
for writing, nobody can replace it, fill it or take it away, a sandbox lets it through, and the system
releases what a process held however that ended. The second byte is the queue: whoever waits for a turn holds
it, so that nobody who comes later, and nobody who has just had a turn, gets in between.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tunesmith.problem.device import Device

TURN_WAIT = 2.0  # seconds in one request; whoever times asks again, whoever checks goes on
BUSY = "busy"  # how a worker says so
POLL_SECONDS = 0.002
_FILE = os.devnull
_FIRST_BYTE = 1 << 50  # beyond what anybody would lock for a reason of his own
_SET = getattr(fcntl, "F_OFD_SETLK", None)  # None: no Linux
_RECORD = "hhqqi4x"


class DeviceBusy(Exception):
    """Another process times on the device; nothing was done."""


def lock_name(device: Device, card: str) -> str:
    """What has to be had alone: a card by its UUID, or this machine's processors; empty: nothing."""
    if device.kind == "simulated" or device.untimed or device.absent:
        return ""
    return "processors" if device.is_host else card or f"{device.platform} {device.name} {device.id}"


class DeviceLock:
    """Of one process. Without a name, and where the system has no such locks, every turn is granted."""

    def __init__(self, name: str = "") -> None:
        self._file = -1
        self.waited = 0.0  # seconds for turns
        self._place = _FIRST_BYTE + 2 * int(hashlib.sha256(name.encode()).hexdigest()[:10], 16)
        if name and _SET is not None:
            with suppress(OSError):
                self._file = os.open(_FILE, os.O_RDWR | os.O_CLOEXEC)

    @contextmanager
    def alone(self, seconds: float = TURN_WAIT) -> Iterator[None]:
        """A turn to time in; DeviceBusy where it does not come within so many seconds."""
        if not self._taken(fcntl.F_WRLCK, seconds):
            raise DeviceBusy("another Tunesmith process times on this device")
        try:
            yield
        finally:
            self._release_lock(self._place)

    @contextmanager
    def shared(self, seconds: float = TURN_WAIT) -> Iterator[None]:
        """Beside others that do not time. Who times is waited for, but no longer than that."""
        self._taken(fcntl.F_RDLCK, seconds)
        try:
            yield
        finally:
            self._release_lock(self._place)

    def _taken(self, kind: int, seconds: float) -> bool:
        began, queue = time.monotonic(), self._place + 1
        try:
            if not self._wait(fcntl.F_WRLCK, queue, began + seconds):
                return False
            try:
                return self._wait(kind, self._place, began + seconds)
            finally:
                self._release_lock(queue)
        finally:
            self.waited += time.monotonic() - began

    def _wait(self, kind: int, place: int, deadline: float) -> bool:
        while not self._try_lock(kind, place):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _try_lock(self, kind: int, place: int) -> bool:
        if self._file < 0 or _SET is None:
            return True
        try:
            fcntl.fcntl(self._file, _SET, struct.pack(_RECORD, kind, os.SEEK_SET, place, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks
            self._file = -1
        return True

    def _release_lock(self, place: int) -> None:
        self._try_lock(fcntl.F_UNLCK, place)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)
