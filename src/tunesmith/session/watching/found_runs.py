"""The runs and comparisons below a folder, as far as an index needs to know them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tunesmith.problem.codec import Malformed, decode
from tunesmith.run.events import Started
from tunesmith.run.files import is_locked, read_plain
from tunesmith.run.journal_lines import decode_line
from tunesmith.run.store import FLEET, JOURNAL, LOCK, PLAN

RunStatus = Literal["live", "finished", "stopped", "unreadable"]
STATUSES: tuple[RunStatus, ...] = ("live", "finished", "stopped", "unreadable")
LONGEST_LINE = 1 << 24  # bytes of a journal's first line
LONGEST_TEXT = 1_000_000  # bytes that are read of what a comparison says, and of a picture
MOST_PICTURES = 8
MOST_NAME = 400


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
        known = {}
        for path, comparison in self._paths():
            key, found = self._looked(path, comparison)
            known[key] = found
        self._known = known
        return tuple(sorted(known.values(), key=lambda run: (-run.changed, run.name)))

    def comparisons(self) -> tuple[FoundComparison, ...]:
        found = [FoundComparison(path.name, _changed(path / PLAN)) for path in self._folders(self.root)
                 if (path / PLAN).is_file() and self._is_served(path.name)]  # fmt: skip
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
            for file in sorted(folder.glob("*.svg"))[:MOST_PICTURES]:
                with contextlib.suppress(OSError):
                    found[file.name] = read_plain(file, LONGEST_TEXT)
        return found

    def _is_served(self, name: str) -> bool:
        return not self._only or name == self._only.split("/")[0]

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

    def _looked(self, path: Path, comparison: str) -> tuple[tuple[str, int, int, bool], FoundRun]:
        name, journal = self._name(path), path / JOURNAL
        is_live = is_locked(path / LOCK)
        try:
            stat = journal.lstat()
            key = (name, stat.st_mtime_ns, stat.st_size, is_live)
        except OSError:
            return (name, 0, 0, is_live), FoundRun(name, "unreadable", 0.0, comparison=comparison)
        if key not in self._known:
            return key, _read(path, name, comparison, stat.st_mtime, is_live)
        return key, self._known[key]


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path, name: str, comparison: str, changed: float, is_live: bool) -> FoundRun:
    try:
        line, newline, _ = read_plain(path / JOURNAL, LONGEST_LINE).partition(b"\n")
        event = decode_line(line)[0].event if newline else None
    except (OSError, Malformed):
        event = None
    if not isinstance(event, Started):
        return FoundRun(name, "live" if is_live else "unreadable", changed, comparison=comparison)
    settings, brief = event.settings, None if is_live else _brief(path / "report.json")
    how = f"{settings.strategy}, search {settings.search}" + (
        f", {settings.models}" if settings.models else ""
    )
    is_finished = brief is not None and brief.finished
    return FoundRun(
        name,
        "live" if is_live else "finished" if is_finished else "stopped",
        changed,
        event.problem[:MOST_NAME],
        event.device.name[:MOST_NAME],
        how[:MOST_NAME],
        _gave(brief) if brief is not None and is_finished else "",
        comparison,
    )


def _gave(brief: _Brief) -> str:
    return brief.headline


def _brief(path: Path) -> _Brief | None:
    try:
        return decode(read_plain(path), _Brief, "report of a run")
    except (OSError, Malformed):
        return None
