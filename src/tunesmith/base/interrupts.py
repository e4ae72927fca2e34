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


@contextmanager
def counted_requests() -> Iterator[Callable[[], int]]:
    """For whoever may not be interrupted between two things: how often it was asked to end, and nothing is
    raised. What comes within a few seconds counts once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    count, handle = 0, once()

    def note(number: int, frame: object) -> None:
        nonlocal count
        try:
            handle(number, frame)
        except KeyboardInterrupt:
            count += 1

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    heeded = [number for number, own in before.items() if own is not signal.SIG_IGN]  # nohup says so
    for number in heeded:
        signal.signal(number, note)
    try:
        yield lambda: count
    finally:
        for number in heeded:
            signal.signal(number, before[number])
