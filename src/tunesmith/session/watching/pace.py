"""What the server may take of a processor while it looks on at runs: what it takes is paid for by a pause."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]

READING = 0.005  # of a processor, for all that the server does while runs are followed
MOST_SAVED = 2.0  # seconds of whose share is kept for later,
MOST_OWED = 5.0  # and is waited for at most

LEAST_PAUSE = 3.0  # seconds between two pages of a run at work,
SHARE = 200  # so many for each second of a processor that the server has taken since the last,
MOST = 1000  # and at most so many for each that this took itself


class ProcessorShare:
    """How much may be read now, by what the server has taken so far."""

    def __init__(self, clock: Clock = time.monotonic, processor: Clock = time.process_time) -> None:
        self._clock, self._processor = clock, processor
        self._at, self._used, self._left = clock(), processor(), 0.0

    def seconds(self) -> float:
        """Of a processor; none or fewer where it has to wait."""
        at, used = self._clock(), self._processor()
        left = self._left + READING * (at - self._at) - (used - self._used)
        self._left = max(-READING * MOST_OWED, min(READING * MOST_SAVED, left))
        self._at, self._used = at, used
        return self._left


class Pace:
    """How often a page is made."""

    def __init__(self, clock: Clock, processor: Clock) -> None:
        self._clock, self._processor = clock, processor
        self._ended: float | None = None  # when the last page was made; None: none costs a run anything
        self._began = self._took = 0.0

    @property
    def is_due(self) -> bool:
        if self._ended is None:
            return True
        wait = min(SHARE * (self._processor() - self._began), MOST * self._took)
        return self._clock() - self._ended >= max(LEAST_PAUSE, wait)

    def begin(self) -> None:
        self._began = self._processor()

    def end(self, costs_a_run: bool) -> None:
        """What was begun is done; of a run that nobody is at work on the next may come at once."""
        self._took = self._processor() - self._began
        self._ended = self._clock() if costs_a_run else None
