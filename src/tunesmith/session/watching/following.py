"""A run that is followed: its journal read as it grows, and its report made again now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import TunesmithError, bug_text
from tunesmith.problem.codec import Malformed
from tunesmith.run.files import is_locked, open_plain
from tunesmith.run.inbox import FolderInbox
from tunesmith.run.journal_lines import decode_line
from tunesmith.run.plausible import fault_of
from tunesmith.run.standing import Standing, standing
from tunesmith.run.state import State, apply
from tunesmith.run.store import JOURNAL, LOCK, RunFolder
from tunesmith.session.run_result import Run, as_it_stands

MOST_AT_ONCE = 1 << 26  # bytes of a journal that are read at a time
LEAST_PAUSE = 3.0  # seconds between two pages of a run at work,
SHARE = 300  # and so many times what one takes


@dataclass(frozen=True)
class RunSeen:
    """A run as it is seen now."""

    now: Standing
    state: State
    live: bool
    waiting: tuple[str, ...] = ()  # what was asked of it and is not in its journal yet
    fault: str = ""  # why no more of it can be read


class FollowedRun:
    """Not for several threads at once."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._begin()
        self._report: Run | None = None
        self._reported = (-1, True)  # events, and whether it was live
        self._next_report = 0.0

    def _begin(self) -> None:
        self._state = State()
        self._offset = 0  # behind the last whole line
        self._file: tuple[int, int] | None = None
        self._fault = ""

    def look(self) -> RunSeen:
        live = is_locked(self.path / LOCK)
        if not self._fault:
            self._read_on()
        since = self._age() if live and self._state.stopped is None else 0.0
        asked = tuple(_asked(i.what, i.text) for i in FolderInbox(self.path).waiting()) if live else ()
        return RunSeen(standing(self._state, since), self._state, live, asked, self._fault)

    def report(self) -> Run:
        """As it stood a moment ago: what takes long is not done again for everybody who looks. BadInput where
        it cannot be read."""
        seen = self.look()
        stands, now = (seen.state.events, seen.live), self._clock()
        # Of a run that has ended the page asks once more, and then never again.
        is_due = seen.now.ended or not seen.live or now >= self._next_report
        if self._report is None or (self._reported != stands and is_due):
            self._report, self._reported = as_it_stands(RunFolder.open(self.path)), stands
            self.took(self._clock() - now if seen.live else 0.0)
        return self._report

    def took(self, seconds: float) -> None:
        """So long a page has taken; 0: the next may come at once."""
        self._next_report = self._clock() + (max(LEAST_PAUSE, SHARE * seconds) if seconds else 0.0)

    @property
    def report_is_due(self) -> bool:
        return self._reported[0] != self._state.events and self._clock() >= self._next_report

    def _read_on(self) -> None:
        """Whole lines alone; a journal that was put in the place of another is read from its beginning."""
        try:
            descriptor = open_plain(self.path / JOURNAL, os.O_RDONLY)
        except OSError as error:
            self._fault = f"the journal cannot be read: {error.strerror}"
            return
        try:
            stat = os.fstat(descriptor)
            if self._file not in (None, (stat.st_dev, stat.st_ino)) or stat.st_size < self._offset:
                self._begin()
            self._file = stat.st_dev, stat.st_ino
            data = os.pread(descriptor, MOST_AT_ONCE, self._offset) if stat.st_size > self._offset else b""
        finally:
            os.close(descriptor)
        whole = data.rfind(b"\n") + 1  # what is torn is cut off by the run, and read when it is whole
        self._offset += whole
        for line in data[:whole].split(b"\n")[:-1]:
            self._take(line)
            if self._fault:
                return
        if whole and len(data) == MOST_AT_ONCE:
            self._read_on()

    def _take(self, line: bytes) -> None:
        place = self._state.events
        try:
            record = decode_line(line)[0]
            fault = "it is not the next" if record.number != place else fault_of(self._state, record)
            if fault is None:
                self._state = apply(self._state, record)
        except (Malformed, TunesmithError) as error:
            fault = str(error)
        except Exception as error:  # whatever a journal does to its readers, the others are still served
            fault = bug_text(error)
        if fault is not None:
            self._fault = f"event {place} of the journal cannot be meant: {fault}"

    def _age(self) -> float:
        try:
            return max(0.0, time.time() - (self.path / JOURNAL).stat().st_mtime)
        except OSError:
            return 0.0


def _asked(what: str, text: str) -> str:
    return f"{what} {text}".strip()
