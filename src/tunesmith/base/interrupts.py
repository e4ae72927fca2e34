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
    for number in _heeded_signals():
        signal.signal(number, handle)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """For one call inside somebody's program, whose own handler is left alone where it has one."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, once())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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

    before = {number: signal.getsignal(number) for number in _heeded_signals()}
    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: count
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded_signals() -> list[signal.Signals]:
    """Those that ask a program to end, as far as it was not told to ignore them, as nohup does."""
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in asking if signal.getsignal(number) is not signal.SIG_IGN]
