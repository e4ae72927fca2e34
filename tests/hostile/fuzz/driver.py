"""A fuzzer of readers: inputs are changed at random, those that reach new lines of ours are kept and changed
further, and whatever is not read must be refused in words.

Everything derives from a seed. A fault is an exception that is no refusal, or an input that takes too long.
"""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import tunesmith

WATCHED = 64  # calls of a function, before it is left alone
AGAIN = 200  # inputs, after which it is watched as often again
FIRST = 24  # of the inputs to begin from are read as they are
DEADLINE = 5.0  # seconds of processor time for one input
OURS = str(Path(tunesmith.__file__).parent)

Mutate = Callable[[Random, bytes, Sequence[bytes]], bytes]


@dataclass(frozen=True)
class Reader:
    """`read` takes any bytes; what it cannot read it refuses with one of `refusals`."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], object]
    mutate: Mutate
    refusals: tuple[type[BaseException], ...]


@dataclass
class Findings:
    tried: int = 0
    refused: int = 0
    pool: int = 0  # inputs that reached something new
    lines: int = 0  # of ours that were reached
    faults: dict[str, tuple[bytes, str]] = field(default_factory=dict)  # by kind and place


class TooSlow(BaseException):
    """No reader of ours catches it."""


class Coverage:
    """Lines of ours that have ever been reached. Watching is slow: a function is watched until all of its
    lines were reached, or often enough."""

    def __init__(self) -> None:
        self.lines = 0
        self._left: dict[CodeType, set[int]] = {}
        self._calls: Counter[CodeType] = Counter()

    def _unreached(self, code: CodeType) -> set[int]:
        if code not in self._left:
            own = code.co_filename.startswith(OURS)
            self._left[code] = {line for _, _, line in code.co_lines() if line} if own else set()
        return self._left[code]

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        left = self._unreached(frame.f_code)
        if not left or self._calls[frame.f_code] >= WATCHED:
            return None
        self._calls[frame.f_code] += 1
        line = self._line_of(left)
        line(frame, "line", None)
        return line

    def _line_of(self, left: set[int]) -> Callable[..., Any]:
        def line(frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
            if frame.f_lineno in left:
                left.discard(frame.f_lineno)
                self.lines += 1
            return line if left else None

        return line

    def look_again(self) -> None:
        """As if nothing had been watched yet: what is rare comes late."""
        self._calls.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)  # again, where a handler of ours swallowed the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(reader: Reader, data: bytes, seconds: float = DEADLINE) -> BaseException | None:
    """What reading it raises that is no refusal. MemoryError and RecursionError are faults like any other."""
    try:
        with deadline(seconds):
            reader.read(data)
    except reader.refusals:
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def place_of(error: BaseException) -> str:
    """Kind, and the innermost line of ours: faults that have these in common are one."""
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(OURS)]
    at = f"{Path(ours[-1].filename).relative_to(OURS)}:{ours[-1].lineno}" if ours else "elsewhere"
    if isinstance(error, TooSlow | RecursionError | MemoryError):  # where it ends is chance
        at = str(Path(ours[min(6, len(ours) - 1)].filename).relative_to(OURS)) if ours else "elsewhere"
    return f"{type(error).__name__} {at}"


def fuzz(
    reader: Reader,
    *,
    seed: int,
    seconds: float = 1e9,
    count: int = sys.maxsize,
    before: Callable[[bytes], None] = lambda data: None,
    found: Callable[[str, bytes, str], None] = lambda place, data, trace: None,
) -> Findings:
    """Until time or inputs are used up. `before` sees each input, `found` each new fault with its trace."""
    rng, findings, coverage = Random(seed), Findings(), Coverage()
    pool = reader.seeds()
    assert pool, f"{reader.name} has nothing to begin from"
    waiting = rng.sample(pool, min(FIRST, len(pool)))
    end = time.process_time() + seconds
    while findings.tried < count and time.process_time() < end:
        is_seed = bool(waiting)
        data = waiting.pop() if is_seed else reader.mutate(rng, rng.choice(pool), pool)
        before(data)
        if findings.tried % AGAIN == 0:
            coverage.look_again()
        reached = coverage.lines
        with coverage.watching():
            error = attempt(reader, data)
        if isinstance(error, TooSlow):  # it was watched, which takes time
            error = attempt(reader, data)
        findings.tried += 1
        if error is not None:
            place = place_of(error)
            if place not in findings.faults:
                trace = "".join(traceback.format_exception(error))
                findings.faults[place] = (data, trace)
                found(place, data, trace)
        elif coverage.lines > reached and not is_seed:
            pool.append(data)
    findings.pool, findings.lines = len(pool), coverage.lines
    return findings
