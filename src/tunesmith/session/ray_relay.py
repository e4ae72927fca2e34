"""The command that leads to a place of a Ray cluster, as `ssh HOST tunesmith worker` leads to a host. It
carries its standard streams to the driver's socket and back, and says last what became of the place."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading

CHUNK = 1 << 20


def main(path: str, place: str) -> int:
    try:
        _carry(path, place)
    except OSError as error:
        sys.stderr.write(f"the driver of the Ray cluster does not answer: {error.strerror}\n")
    return 1


def _carry(path: str, place: str) -> None:
    with socket.socket(socket.AF_UNIX) as driver:
        driver.connect(path)
        driver.sendall(f"{place}\n".encode())
        threading.Thread(target=_carry_up, args=(driver,), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := driver.recv(CHUNK):
                _write(data)
    with socket.socket(socket.AF_UNIX) as driver:
        driver.connect(path)
        driver.sendall(f"why {place}\n".encode())
        sys.stderr.write(driver.recv(1 << 16).decode(errors="replace") + "\n")


def _carry_up(driver: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, CHUNK):
            driver.sendall(data)
        driver.shutdown(socket.SHUT_WR)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
