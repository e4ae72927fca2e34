"""What earlier runs in the user's house have shown, for whoever plans: what won, on kernels like this one,
and what was tried on this device and did not pay.

Kernels are alike where their names share a word that says what they compute. What is told is data: names,
numbers, and words that a planner once wrote, each on a line of its own and short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tunesmith.problem.problem import Problem
from tunesmith.run.library import LibraryEntry, LibraryQuery, RunRecord, TimedConfig, kernel_digest
from tunesmith.run.rounds import RoundReport, round_reports
from tunesmith.run.state import State
from tunesmith.text import digest_of

FORMAT = 1
MOST = 4  # lines of each kind
KEPT = 12  # lessons of a kernel on a device: the last
FAR = 2  # a kernel of another kind
LONGEST = 220  # characters of a line's words
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]+|[A-Z]+(?![a-z])")
# Words that kernels of all kinds have in their names.
_COMMON = frozenset(
    (
        *("kernel", "cuda", "opencl", "hip", "gpu", "fused", "forward", "backward", "fwd", "bwd", "vec"),
        *("vector", "half", "float", "bfloat", "int", "char", "per", "token", "group", "row", "rows"),
        *("block", "warp", "thread", "launch", "impl", "device", "global", "the", "and", "with", "for"),
        *("new", "old", "fast", "naive", "add", "mul", "states", "state", "batch", "test", "problem"),
    )
)


@dataclass(frozen=True)
class Lesson:
    """One round that was tried and did not pay."""

    what: str  # moves, or words
    why: str


@dataclass(frozen=True)
class KernelLessons:
    """Of one kernel on one device."""

    format: int
    problem: str
    kernel: str  # digest of its text
    words: tuple[str, ...]  # of its names
    device: str
    date: str
    lessons: tuple[Lesson, ...]

    @property
    def name(self) -> str:
        """Names a file."""
        return digest_of(self.kernel, self.device)[:32]


def words_of(problem: Problem) -> tuple[str, ...]:
    """What the names of a problem and its entry say of the operator."""
    return _words(f"{problem.name} {problem.kernel.entry.partition('<')[0]}")


def _words(text: str) -> tuple[str, ...]:
    found = (word.lower() for word in _WORD.findall(text))
    return tuple(dict.fromkeys(word for word in found if len(word) > 2 and word not in _COMMON))


def lessons_of(problem: Problem, state: State, date: str) -> KernelLessons | None:
    """None where nothing failed."""
    # A plain kernel is not there to be fast.
    tried = [one for one in round_reports(problem, state) if not one.kept and one.drafts and not one.plain]
    found = [_lesson(one) for one in tried]
    if state.started is None or not found:
        return None
    own = (problem.name, kernel_digest(problem), words_of(problem), state.device.name, date)
    return KernelLessons(FORMAT, *own, tuple(found[-KEPT:]))


def _lesson(one: RoundReport) -> Lesson:
    what = f"moves {', '.join(one.moves)}" if one.moves else one.what or one.reason
    return Lesson(_short(what), _short(one.verdict))


def together(new: KernelLessons, old: KernelLessons) -> KernelLessons:
    """The last of both, each once."""
    every = dict.fromkeys((*old.lessons, *new.lessons))
    return KernelLessons(
        FORMAT, new.problem, new.kernel, new.words, new.device, new.date, tuple(every)[-KEPT:]
    )


def told(
    problem: Problem, device: str, entries: Sequence[LibraryEntry], lessons: Iterable[KernelLessons]
) -> str:
    """A few lines, the nearest first: this kernel before others, this device before others; empty where there
    is nothing to tell."""
    own, digest = set(words_of(problem)), kernel_digest(problem)

    def alike(kernel: str, words: Iterable[str]) -> int:
        return 0 if kernel == digest else 1 if own & set(words) else FAR

    won = [(alike(entry.kernel, _words(entry.problem)), entry) for entry in entries]
    won.sort(key=lambda pair: (pair[0], pair[1].device != device, -pair[1].speedup, pair[1].name))
    failed = [(alike(one.kernel, one.words), one) for one in lessons if one.device == device]
    failed.sort(key=lambda pair: (pair[0], pair[1].problem, pair[1].kernel))
    lines = [_won(near, entry) for near, entry in won if near < FAR][:MOST]
    lines += [
        f"- did not pay on this device, {_like(near, one.problem)}: {lesson.what}: {lesson.why}"
        for near, one in failed
        if near < FAR
        for lesson in reversed(one.lessons)
    ][:MOST]
    return "\n".join(lines)


def _won(near: int, entry: LibraryEntry) -> str:
    by = f"moves {', '.join(entry.moves)}" if entry.moves else "written by a model" if entry.author else ""
    best = f"at its best {entry.best[0]}" if entry.best else ""
    at = f"served {', '.join(one.workload for one in entry.served)}" if entry.served else ""
    more = "; ".join(filter(None, (by, best, at)))
    return f"- won, {_like(near, entry.problem)}: {entry.about}" + (f": {_short(more)}" if more else "")


def _like(near: int, problem: str) -> str:
    return "this kernel" if near == 0 else f"a kernel like it ({_short(problem)})"


def _short(text: str) -> str:
    """On one line."""
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 2]} …"


class Library(Protocol):
    """What outlives runs: templates that won, what was measured, what did not pay. None of it is believed: it
    says what to try first, and everything is checked and timed again. Writing the same twice changes nothing,
    whoever else writes."""

    where: str  # as people are told

    @property
    def is_shared(self) -> bool:
        """Whether others may have written to it."""
        ...

    def entries(self, note: Callable[[str], None], query: LibraryQuery) -> list[LibraryEntry]:
        """Templates that won, by name; of those that cannot be read it is said why."""
        ...

    def get(self, name: str) -> LibraryEntry: ...
    def __contains__(self, name: str) -> bool: ...
    def add(self, entry: LibraryEntry) -> None:
        """Together with what is known already."""
        ...

    def remove(self, name: str) -> None: ...
    def lessons(self, note: Callable[[str], None]) -> list[KernelLessons]: ...
    def learn(self, new: KernelLessons) -> None: ...
    def runs(self, note: Callable[[str], None], query: LibraryQuery) -> list[RunRecord]:
        """The newest first."""
        ...

    def timings(self, run: str) -> list[TimedConfig]: ...
    def timing_counts(self) -> Mapping[str, int]: ...
    def count(self) -> int:
        """Templates that won."""
        ...

    def record(self, run: RunRecord, timings: Sequence[TimedConfig], texts: Mapping[str, str]) -> int:
        """How many of the timings are new there."""
        ...

    def prune(self, before: str) -> int:
        """Take out the timings of runs that are older than this day; how many runs that were."""
        ...

    def close(self) -> None: ...
