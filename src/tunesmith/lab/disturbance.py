"""Which rounds of a timing others have disturbed, by what was recorded with every sample.

On a processor Linux says it: for how long a thread of ours stood ready and had none. A GPU says nothing, but
it is shared in slices of time: a sample comes in parts, and one that met another's slice has a part that is
longer by all of it, than the same part of other rounds or, where all of these met one, than its other parts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from tunesmith.problem.device import Device

TAKEN = 0.05  # of a sample's time, that others had: it is taken again
DRIFT = 1.10  # the original's samples, from the first third of a timing to its last
UNEVEN = 1.3  # times as long as another may a part of a chain be by itself
EXCESS = 2  # rounds in which the candidate alone may be slower, beyond twice those of the original
RETAKEN = 2  # times the rounds that were wanted: so many are taken at most


@dataclass(frozen=True)
class Sample:
    seconds: float  # of one launch
    parts: tuple[float, ...] = ()  # the same by part of its chain, one after the other
    waited: float = 0.0  # share of its time for which threads of ours waited for a processor


@dataclass(frozen=True)
class Sensitivity:
    """What evidence there is on a device."""

    slack: float | None  # a part this many times its shortest is no evidence yet; None: parts vary freely
    drifts: bool  # whether a drift of the original is evidence


def sensitivity_of(device: Device) -> Sensitivity:
    """Samples of a processor come in two sizes now and then with nobody else there: they are no evidence."""
    if device.kind != "gpu":
        return BY_WAITS
    return PRECISE if device.inspects else COARSE


PRECISE, COARSE, BY_WAITS = Sensitivity(1.15, True), Sensitivity(1.5, False), Sensitivity(None, False)

Round = Sequence[Sample]  # one of each contender, the original first


@dataclass(frozen=True)
class Judgement:
    kept: tuple[int, ...]  # rounds that count
    disturbance: str = ""  # why they are no quiet measurement; empty: they are


def disturbed_rounds(rounds: Sequence[Round], by: Sensitivity) -> dict[int, float]:
    """The rounds that others had more than a little of, and the largest share of them in each. Where the
    candidate is slower in many more rounds than the original beside it, in samples as long, that is its own
    doing: such rounds count."""
    found = {
        number: share
        for number, taken in enumerate(rounds)
        if (share := max(sample.waited for sample in taken)) > TAKEN
    }
    if by.slack is None or len(rounds) < 2 or len(rounds[0]) < 2:
        return found
    columns = [_excess_shares([taken[i] for taken in rounds], by.slack) for i in range(len(rounds[0]))]
    original, *others = ({n: s for n, s in enumerate(column) if s > TAKEN} for column in columns)
    for slow in (original, *(o for o in others if len(o) <= 2 * len(original) + EXCESS)):
        for number, share in slow.items():
            found[number] = max(share, found.get(number, 0.0))
    return found


def _excess_shares(samples: Sequence[Sample], slack: float) -> list[float]:
    """Of each sample, the share by which its parts exceed what they take undisturbed."""
    count = min(len(sample.parts) for sample in samples)
    if count == 0:
        return [0.0] * len(samples)
    shortest = [min(sample.parts[k] for sample in samples) for k in range(count)]
    usual = [slack * min(least, UNEVEN * min(shortest)) for least in shortest]
    return [
        sum(max(0.0, sample.parts[k] - usual[k]) for k in range(count)) / sum(sample.parts)
        for sample in samples
    ]


def judge_rounds(rounds: Sequence[Round], least: int, by: Sensitivity) -> Judgement:
    """The quiet rounds, where there are enough of them; else all, and what was seen."""
    disturbed = disturbed_rounds(rounds, by)
    kept = tuple(n for n in range(len(rounds)) if n not in disturbed)
    if len(kept) < min(least, len(rounds)):
        what = "launches waited for a processor" if by.slack is None else "launches were held up"
        share = f"{100 * median(disturbed.values()):.0f} % of the time"
        words = f"in {len(disturbed)} of {len(rounds)} rounds {what} for {share}"
        return Judgement(tuple(range(len(rounds))), words)
    return Judgement(kept, _describe_drift([rounds[n][0].seconds for n in kept]) if by.drifts else "")


def _describe_drift(seconds: Sequence[float]) -> str:
    third = len(seconds) // 3
    if third < 3:
        return ""
    first, last = median(seconds[:third]), median(seconds[-third:])
    if max(first / last, last / first) <= DRIFT:
        return ""
    return f"the original drifted from {first * 1e6:.4g} to {last * 1e6:.4g} µs while it was timed"


_TASKS = "/proc/self/task"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Waits:
    """At a moment; nothing is known where nobody counts."""

    by_thread: dict[str, int] = field(default_factory=dict)  # nanoseconds
    stolen: int = 0  # ticks of all processors that a virtual machine was not given
    at: float = field(default_factory=time.perf_counter)

    def share_until(self, later: Waits) -> float:
        """Of the time between, what the thread that waited longest has waited; or what was stolen, where
        that is more. A tick is as coarse as a sample is long: one is no evidence."""
        wall = max(later.at - self.at, 1e-6)
        waited = (later.by_thread[t] - ns for t, ns in self.by_thread.items() if t in later.by_thread)
        stolen = max(0, later.stolen - self.stolen - 1) / _TICKS / (os.cpu_count() or 1)
        return min(1.0, max(max(waited, default=0) * 1e-9, stolen) / wall)


def read_waits() -> Waits:
    found: dict[str, int] = {}
    with suppress(OSError):
        for thread in os.listdir(_TASKS):
            with suppress(OSError, ValueError, IndexError):  # a thread that has ended meanwhile
                found[thread] = int(_read_small_file(f"{_TASKS}/{thread}/schedstat").split()[1])
    return Waits(found, processor_ticks()[1])


def processor_ticks() -> tuple[int, int]:
    """Of all processors so far, and those that others were given; zeros where nobody counts."""
    try:
        fields = [int(field) for field in _read_small_file("/proc/stat").split(b"\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return (sum(fields), fields[7]) if len(fields) == 8 else (0, 0)


def _read_small_file(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 256)
    finally:
        os.close(file)
