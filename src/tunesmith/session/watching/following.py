"""A run that is followed: its journal read as it grows, and its report made again now and then."""

from __future__ import annotations

import math
import os
import time
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
from tunesmith.session.watching.pace import Clock, Pace
from tunesmith.text import sha256

MOST_AT_ONCE = 1 << 26  # bytes of a journal that are read at a time
FEW = 8  # events that are read between two looks at what that has taken
LONGEST_LAG = 10.0  # seconds after which all is read, whatever it takes


@dataclass(frozen=True)
class RunSeen:
    """A run as it is seen now."""

    state: State
    live: bool
    since: float = 0.0  # seconds since the last event that was read
    is_behind: bool = False  # whether more were written by then
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
        clock: Clock = time.monotonic,
        processor: Clock = time.process_time,
    ) -> None:
        self.path = path
        self._clock, self._processor = clock, processor
        self.pace = Pace(clock, processor)
        self._texts = FolderTexts(RunFolder(path))
        self._begin()
        self._report: Run | None = None
        self._reported = (-1, True)  # events, and whether it was live

    def _begin(self) -> None:
        self._state = State()
        self._offset = 0  # behind the last line that was read
        self._file: tuple[int, int] | None = None
        self._is_behind = False
        self._all_read = -math.inf  # when all that was there had been read last,
        self._zero = 0.0  # and when the run's own clock stood at 0, by that
        self._fault = ""
        self._head = chain.FIRST
        self._is_chained = True
        self._unread: list[Event] = []  # what no page has been made of yet
        self._templates: tuple[Device, Templates] | None = None  # and the device that they are for

    def look(self, most: float = math.inf) -> RunSeen:
        """Reading for about so many seconds of a processor; the first time to the end."""
        live = is_locked(self.path / LOCK)
        if not self._fault:
            self._read_on(most)
        since = 0.0
        if live and self._state.stopped is None:
            since = max(0.0, time.time() - self._zero - self._state.elapsed)
        asked = not_taken(FolderInbox(self.path).waiting(), self._state) if live else ()
        words = tuple(_asked(i.what, i.text) for i in asked)
        return RunSeen(self._state, live, since, self._is_behind, words, self._fault)

    def report(self, seen: RunSeen) -> Run:
        """As it stood a moment ago: what takes long is not done again for everybody who looks. BadInput where
        it cannot be read."""
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

    def _read_on(self, most: float) -> None:
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
            if self._clock() - self._all_read >= LONGEST_LAG:
                most = math.inf
            end = self._processor() + most
            is_whole = self._read_some(descriptor, end)
            while not is_whole and not self._fault and self._processor() < end:
                is_whole = self._read_some(descriptor, end)
        finally:
            os.close(descriptor)
        self._is_behind = not is_whole and not self._fault
        if is_whole:
            self._all_read, self._zero = self._clock(), stat.st_mtime - self._state.elapsed

    def _read_some(self, descriptor: int, end: float) -> bool:
        """Whether that was all. `end`: of the processor's time."""
        data = os.pread(descriptor, MOST_AT_ONCE, self._offset)
        lines = data.split(b"\n")[:-1]  # what is torn is cut off by the run, and read when it is whole
        for place, line in enumerate(lines, 1):
            self._take(line)
            if self._fault:
                return False
            self._offset += len(line) + 1
            if place % FEW == 0 and self._processor() >= end:
                return place == len(lines)
        return len(data) < MOST_AT_ONCE or not lines

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
        if isinstance(record.event, (Requested, Replied)):
            return replace(record, event=with_long_texts(record.event, self._texts.get))
        return record


def _asked(what: str, text: str) -> str:
    return f"{what} {text}".strip()
