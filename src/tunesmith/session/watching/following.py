"""A run that is followed: its journal read as it grows, and its report made again now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tunesmith.errors import TunesmithError, bug_text
from tunesmith.problem.codec import Malformed
from tunesmith.problem.device import Device
from tunesmith.run import chain
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Event, Recorded, Replied, Requested
from tunesmith.run.files import is_locked, open_plain
from tunesmith.run.inbox import FolderInbox
from tunesmith.run.instructions import not_taken
from tunesmith.run.journal_lines import decode_line, with_long_texts
from tunesmith.run.plausible import fault_of, misfit
from tunesmith.run.standing import Standing, standing
from tunesmith.run.state import State, apply
from tunesmith.run.store import JOURNAL, LOCK, FolderTexts, RunFolder
from tunesmith.session.problems import templates_of
from tunesmith.session.run_result import Run, as_it_stands, run_of
from tunesmith.text import sha256

MOST_AT_ONCE = 1 << 26  # bytes of a journal that are read at a time
LEAST_PAUSE = 3.0  # seconds between two pages of a run at work,
SHARE = 200  # so many for each second of a processor that the server has taken since the last,
MOST = 1000  # and at most so many for each that this took itself


class Pace:
    """How often a page is made: what the server takes is paid for by a pause."""

    def __init__(self, clock: Callable[[], float], processor: Callable[[], float]) -> None:
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


@dataclass(frozen=True)
class RunSeen:
    """A run as it is seen now."""

    state: State
    live: bool
    since: float = 0.0  # seconds since its last event
    waiting: tuple[str, ...] = ()  # what was asked of it and is not in its journal yet
    fault: str = ""  # why no more of it can be read

    @cached_property
    def now(self) -> Standing:
        return standing(self.state, self.since)

    @property
    def ended(self) -> bool:
        return self.state.stopped is not None


class FollowedRun:
    """Not for several threads at once."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self.path = path
        self.pace = Pace(clock, processor)
        self._texts = FolderTexts(RunFolder(path))
        self._begin()
        self._report: Run | None = None
        self._reported = (-1, True)  # events, and whether it was live

    def _begin(self) -> None:
        self._state = State()
        self._offset = 0  # behind the last whole line
        self._file: tuple[int, int] | None = None
        self._fault = ""
        self._head = chain.FIRST
        self._is_chained = True
        self._unread: list[Event] = []  # what no page has been made of yet
        self._templates: tuple[Device, Templates] | None = None  # and the device that they are for

    def look(self) -> RunSeen:
        live = is_locked(self.path / LOCK)
        if not self._fault:
            self._read_on()
        since = self._age() if live and self._state.stopped is None else 0.0
        asked = not_taken(FolderInbox(self.path).waiting(), self._state) if live else ()
        words = tuple(_asked(i.what, i.text) for i in asked)
        return RunSeen(self._state, live, since, words, self._fault)

    def report(self) -> Run:
        """As it stood a moment ago: what takes long is not done again for everybody who looks. BadInput where
        it cannot be read."""
        seen = self.look()
        stands = (seen.state.events, seen.live)
        # Of a run that has ended the page asks once more, and then never again.
        is_due = seen.ended or not seen.live or self.pace.is_due
        if self._report is None or (self._reported != stands and is_due):
            self._report, self._reported = self._made(seen), stands
        return self._report

    @property
    def report_is_due(self) -> bool:
        return self._reported[0] != self._state.events and self.pace.is_due

    def _made(self, seen: RunSeen) -> Run:
        """While it runs, from what has been read of it; where something is claimed, or wrong, from the whole
        journal, with its certificate."""
        folder, state = RunFolder.open(self.path), seen.state
        if not seen.live or seen.ended or seen.fault or state.started is None or not self._is_chained:
            return as_it_stands(folder)
        if self._templates is None or self._templates[0] != state.device:
            self._templates = (state.device, templates_of(folder, state))
        own = self._templates[1]
        if any(misfit(own, state, event) is not None for event in self._unread):
            return as_it_stands(folder)
        self._unread.clear()
        return run_of(folder, own, state)

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
            record, before = decode_line(line)
            record = self._whole(record)
            fault = "it is not the next" if record.number != place else fault_of(self._state, record)
            if fault is None:
                self._state = apply(self._state, record)
                self._unread.append(record.event)
                self._is_chained &= before == self._head
                self._head = sha256(line)
        except (Malformed, TunesmithError) as error:
            fault = str(error)
        except Exception as error:  # whatever a journal does to its readers, the others are still served
            fault = bug_text(error)
        if fault is not None:
            self._fault = f"event {place} of the journal cannot be meant: {fault}"

    def _whole(self, record: Recorded) -> Recorded:
        """With the texts of models that stand beside the journal."""
        if isinstance(record.event, Requested | Replied):
            return replace(record, event=with_long_texts(record.event, self._texts.get))
        return record

    def _age(self) -> float:
        try:
            return max(0.0, time.time() - (self.path / JOURNAL).stat().st_mtime)
        except OSError:
            return 0.0


def _asked(what: str, text: str) -> str:
    return f"{what} {text}".strip()
