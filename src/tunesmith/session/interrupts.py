"""Ctrl-C, however often it is pressed, interrupts once: the clean-up after it is left in peace."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 3.0  # seconds a clean-up may take before another Ctrl-C interrupts that too


def once() -> Callable[[int, object], None]:
    """A signal handler that raises KeyboardInterrupt, and not again while the first is being served."""
    last = -PATIENCE

    def handle(_number: int, _frame: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PATIENCE:
            last = now
            raise KeyboardInterrupt

    return handle


def end_when_asked() -> None:
    """For a whole program: whoever asks, however often, gets the same clean-up as for one Ctrl-C."""
    handle = once()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup says so
            signal.signal(number, handle)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """For one call inside somebody's program, whose own handler is left alone where it has one."""
    own = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or own is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, once())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, own)
