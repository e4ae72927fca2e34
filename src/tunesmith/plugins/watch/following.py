"""A run that is followed: its journal read as it grows, and its report made again now and then."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import msgspec

from tunesmith.base.codec import Malformed, decode_json
from tunesmith.base.errors import TunesmithError, bug_text
from tunesmith.base.files import is_locked, open_plain, read_plain
from tunesmith.base.text import sha256_hex
from tunesmith.problem.device import Device
from tunesmith.run import journal
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Event, Replied, Requested, Started
from tunesmith.run.folder import FLEET, JOURNAL, LOCK, PLAN, FolderInbox, FolderTexts, RunFolder
from tunesmith.run.journal import broken_rule, decode_line, template_mismatch, with_long_texts
from tunesmith.run.progress import RunProgress, current_standing
from tunesmith.run.state import State, apply_record
from tunesmith.run.talk import not_taken
from tunesmith.session.problems import templates_of
from tunesmith.session.result import Run, as_it_stands, run_of

# What the server may take of a processor while it looks on at runs: what it takes is paid for by a pause.
Clock = Callable[[], float]

READING = 0.005  # of a processor, for all that the server does while runs are followed
MAX_SAVED = 2.0  # seconds of whose share is kept for later,
MAX_OWED = 5.0  # and is waited for at most

LEAST_PAUSE = 3.0  # seconds between two pages of a run at work,
SHARE = 200  # so many for each second of a processor that the server has taken since the last,
MAX = 1000  # and at most so many for each that this took itself


class ProcessorShare:
    """How much may be read now, by what the server has taken so far."""

    def __init__(self, clock: Clock = time.monotonic, processor: Clock = time.process_time) -> None:
        self._clock, self._processor = clock, processor
        self._at, self._used, self._left = clock(), processor(), 0.0

    def seconds(self) -> float:
        """Of a processor; none or fewer where it has to wait."""
        at, used = self._clock(), self._processor()
        left = self._left + READING * (at - self._at) - (used - self._used)
        self._left = max(-READING * MAX_OWED, min(READING * MAX_SAVED, left))
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
        wait = min(SHARE * (self._processor() - self._began), MAX * self._took)
        return self._clock() - self._ended >= max(LEAST_PAUSE, wait)

    def begin(self) -> None:
        self._began = self._processor()

    def end(self, costs_a_run: bool) -> None:
        """What was begun is done; of a run that nobody is at work on the next may come at once."""
        self._took = self._processor() - self._began
        self._ended = self._clock() if costs_a_run else None


MAX_AT_ONCE = 1 << 26  # bytes of a journal that are read at a time
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
    def now(self) -> RunProgress:
        return current_standing(self.state, self.since)

    @property
    def ended(self) -> bool:
        return self.state.stopped is not None


class FollowedRun:
    """Not for several threads at once."""

    def __init__(
        self, path: Path, clock: Clock = time.monotonic, processor: Clock = time.process_time
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
        self._head = journal.FIRST
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
        words = tuple(f"{one.what} {one.text}".strip() for one in asked)
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
        if any(template_mismatch(own, state, event) is not None for event in self._unread):
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
        data = os.pread(descriptor, MAX_AT_ONCE, self._offset)
        lines = data.split(b"\n")[:-1]  # what is torn is cut off by the run, and read when it is whole
        for place, line in enumerate(lines, 1):
            self._take(line)
            if self._fault:
                return False
            self._offset += len(line) + 1
            if place % FEW == 0 and self._processor() >= end:
                return place == len(lines)
        return len(data) < MAX_AT_ONCE or not lines

    def _take(self, line: bytes) -> None:
        place = self._state.events
        try:
            record, before = decode_line(line)
            if isinstance(record.event, (Requested, Replied)):  # their texts stand beside the journal
                record = replace(record, event=with_long_texts(record.event, self._texts.get))
            fault = "it is not the next" if record.number != place else broken_rule(self._state, record)
            if fault is None:
                self._state = apply_record(self._state, record)
                self._unread.append(record.event)
                self._is_chained &= before == self._head
                self._head = sha256_hex(line)
        except (Malformed, TunesmithError) as error:
            fault = str(error)
        except Exception as error:  # whatever a journal does to its readers, the others are still served
            fault = bug_text(error)
        if fault is not None:
            self._fault = f"event {place} of the journal cannot be meant: {fault}"


# The runs and comparisons below a folder, as far as an index needs to know them.
RunStatus = Literal["live", "finished", "stopped", "unreadable"]
STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
LONGEST_LINE = 1 << 24  # bytes of a journal's first line
LONGEST_TEXT = 1_000_000  # bytes that are read of what a comparison says, and of a picture
MAX_PICTURES = 8
MAX_NAME = 400


@dataclass(frozen=True)
class FoundRun:
    name: str  # below the folder, with / between its parts
    status: RunStatus
    changed: float  # seconds since the epoch
    problem: str = ""
    device: str = ""
    how: str = ""  # strategy and search
    speedup: str = ""  # verified, in words
    comparison: str = ""  # the one, or the fleet, that it is part of


@dataclass(frozen=True)
class FoundComparison:
    name: str
    changed: float


class _Brief(msgspec.Struct):
    """What an index needs of a report.json."""

    finished: bool
    headline: str = ""


@dataclass(frozen=True)
class RunFilter:
    """What of an index is shown; empty: all."""

    words: str = ""
    status: str = ""
    problem: str = ""
    device: str = ""
    within: str = ""  # a comparison

    def shows(self, run: FoundRun) -> bool:
        text = f"{run.name} {run.problem} {run.device} {run.how} {run.status}".lower()
        return (
            all(word in text for word in self.words.lower().split())
            and self.status in ("", run.status)
            and self.problem in ("", run.problem)
            and self.device in ("", run.device)
            and self.within in ("", run.comparison)
        )


class RunsBelow:
    """Of one folder, or of one run or comparison in it alone. What has not changed is not read again."""

    def __init__(self, root: Path, only: str = "") -> None:
        self.root = root
        self._only = only
        self._known: dict[tuple[str, int, int, bool], FoundRun] = {}

    def runs(self) -> tuple[FoundRun, ...]:
        """The newest first."""
        self._known = dict(self._look_at(path, comparison) for path, comparison in self._paths())
        return tuple(sorted(self._known.values(), key=lambda run: (-run.changed, run.name)))

    def comparisons(self) -> tuple[FoundComparison, ...]:
        served = [p for p in self._folders(self.root) if not self._only or p.name == self._only.split("/")[0]]
        plans = [path / PLAN for path in served if (path / PLAN).is_file()]
        found = [FoundComparison(plan.parent.name, _modified_time(plan)) for plan in plans]
        return tuple(sorted(found, key=lambda one: (-one.changed, one.name)))

    def run(self, name: str) -> Path | None:
        """The folder of a run by its name: only what is listed can be named."""
        return next((path for path, _ in self._paths() if self._name(path) == name), None)

    def comparison_text(self, name: str) -> str | None:
        """What its runs say together; None: there is no such comparison, or it says nothing yet."""
        if not any(name == known.name for known in self.comparisons()):
            return None
        try:
            text = read_plain(self.root / name / "compare.md", LONGEST_TEXT)
            return text.decode("utf-8", "replace")
        except OSError:
            return None

    def comparison_pictures(self, name: str) -> dict[str, bytes]:
        """By the names of their files, of a comparison that is served."""
        found, folder = dict[str, bytes](), self.root / name / "plots"
        if not folder.is_symlink():
            for file in sorted(folder.glob("*.svg"))[:MAX_PICTURES]:
                with contextlib.suppress(OSError):
                    found[file.name] = read_plain(file, LONGEST_TEXT)
        return found

    def _paths(self) -> Iterator[tuple[Path, str]]:
        """Runs, and the comparison or fleet that each is part of."""
        for folder in self._folders(self.root):
            if (folder / JOURNAL).is_file():
                if self._only in ("", folder.name):
                    yield folder, ""
            else:
                for path in self._members(folder):
                    if (path / JOURNAL).is_file() and self._only in ("", folder.name, self._name(path)):
                        yield path, folder.name

    def _members(self, folder: Path) -> Iterator[Path]:
        """Where the runs of a comparison, by problem, or of a fleet lie; of another folder none."""
        is_comparison = (folder / PLAN).is_file()
        if (is_comparison or (folder / FLEET).is_file()) and not (folder / "runs").is_symlink():
            for path in self._folders(folder / "runs"):
                yield from self._folders(path) if is_comparison else (path,)

    def _folders(self, below: Path) -> list[Path]:
        """No link is followed: what it leads to is not below."""
        try:
            with os.scandir(below) as entries:
                return sorted(Path(e.path) for e in entries if e.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _look_at(self, path: Path, comparison: str) -> tuple[tuple[str, int, int, bool], FoundRun]:
        name, journal = self._name(path), path / JOURNAL
        is_live = is_locked(path / LOCK)
        try:
            stat = journal.lstat()
            key = (name, stat.st_mtime_ns, stat.st_size, is_live)
        except OSError:
            return (name, 0, 0, is_live), FoundRun(name, "unreadable", 0.0, comparison=comparison)
        if key not in self._known:
            return key, _read_run_entry(path, name, comparison, stat.st_mtime, is_live)
        return key, self._known[key]


def _modified_time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _read_run_entry(path: Path, name: str, comparison: str, changed: float, is_live: bool) -> FoundRun:
    try:
        line, newline, _ = read_plain(path / JOURNAL, LONGEST_LINE).partition(b"\n")
        event = decode_line(line)[0].event if newline else None
    except (OSError, Malformed):
        event = None
    if not isinstance(event, Started):
        return FoundRun(name, "live" if is_live else "unreadable", changed, comparison=comparison)
    settings, brief = event.settings, None if is_live else _read_brief(path / "report.json")
    asked = f", {settings.models}" if settings.models else ""
    how = f"{settings.strategy}, search {settings.search}{asked}"
    is_finished = brief is not None and brief.finished
    return FoundRun(
        name,
        "live" if is_live else "finished" if is_finished else "stopped",
        changed,
        event.problem[:MAX_NAME],
        event.device.name[:MAX_NAME],
        how[:MAX_NAME],
        brief.headline if brief is not None and is_finished else "",
        comparison,
    )


def _read_brief(path: Path) -> _Brief | None:
    try:
        return decode_json(read_plain(path), _Brief, "report of a run")
    except (OSError, Malformed):
        return None
