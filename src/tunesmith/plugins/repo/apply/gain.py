"""What Amdahl's law foretells: a kernel's share of a captured program, and its speed-up. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.apply.changes import Side
from tunesmith.plugins.repo.capture.ranking import amdahl_speedup
from tunesmith.plugins.repo.capture.records import Capture


@dataclass(frozen=True)
class ForetoldGain:
    kernel: str
    share: float  # of the time that the gain is of
    speedup: float  # of the kernel, verified, over its workloads by their weights
    gain: float  # from end to end
    of: str  # what is meant by end to end
    busy: float | None = None  # from end to end of what keeps the device busy all the time


def kernel_speedup(workloads: Sequence[tuple[float, float]]) -> float:
    """Of pairs of weight and speed-up: times add up, so the mean is harmonic."""
    total = sum(weight for weight, _ in workloads)
    return total / sum(weight / speedup for weight, speedup in workloads) if total > 0 else 1.0


def foretold_gain(
    capture: Capture, name: str, workloads: Sequence[tuple[float, float]], whole: bool
) -> ForetoldGain | None:
    """`name`: the captured kernel's own. `whole`: of the program from start to end, else from its first
    kernel to its last. None where the capture does not have the kernel, or no times."""
    kernel = next((one for one in capture.kernels if one.name == name), None)
    seconds = capture.program.seconds if whole else capture.span
    if kernel is None or seconds <= 0 or kernel.seconds <= 0:
        return None
    speedup = kernel_speedup(workloads)
    saving = kernel.seconds * (1 - 1 / speedup)
    gain = amdahl_speedup(seconds, saving)
    if gain is None:
        return None
    of = "the whole program" if whole else "the time from its first kernel to its last"
    busy = amdahl_speedup(capture.seconds, saving)
    return ForetoldGain(kernel.shown, kernel.seconds / seconds, speedup, gain, of, busy)


# A sign belongs to a number unless a word stands before it, as in `latency-12`.
_NUMBER = re.compile(r"(?:(?<!\w)[-+])?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?!\d|,)")  # thousands; other commas may be decimal ones


@dataclass(frozen=True)
class BenchMetric:
    """`pattern`: the number is its first group, or the first number in what it matches; without one, the wall
    time of the command."""

    pattern: str = ""
    higher: bool = False  # more is better

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            fault = f"--metric is no regular expression: {error}"
            raise BadInput(fault, hint=r"for example: --metric 'time: ([\d.]+) ms'") from error

    def read(self, output: str, seconds: float) -> float | None:
        """The last that is printed; None where none is."""
        if not self.pattern:
            return seconds
        found = None
        for match in re.finditer(self.pattern, output, re.MULTILINE):
            text = next((group for group in match.groups() if group), match[0])
            number = _NUMBER.search(text)
            if number is not None:
                found = _parse_metric(number[0])
        return found if found is not None and math.isfinite(found) and found > 0 else None


def _parse_metric(text: str) -> float | None:
    """None: it is not clear what its commas mean."""
    plain = text.rstrip(",_")
    if "," in plain and not _GROUPED.match(plain):
        return None
    return float(plain.replace(",", "").replace("_", ""))


@dataclass(frozen=True)
class BenchSeries:
    """Numbers that were measured in alternation."""

    before: tuple[float, ...]
    after: tuple[float, ...]
    unit: str  # "s", or empty: as the benchmark prints it
    higher: bool = False

    @property
    def gain(self) -> float:
        """How many times better the median is."""
        old, new = median(self.before), median(self.after)
        return new / old if self.higher else old / new

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the largest gain that two numbers of the two sides give, one round each."""
        pairs = list(zip(self.before, self.after, strict=True))
        gains = [new / old if self.higher else old / new for old, new in pairs]
        return min(gains), max(gains)


def alternate_sides(rounds: int) -> Iterator[Side]:
    """Each round has both; it begins where the one before ended, so that files change less often."""
    if rounds < 1:
        raise BadInput(f"rounds must be 1 or more, got {rounds}", hint="leave it out: 3 are usual")
    for number in range(rounds):
        yield from ("before", "after") if number % 2 == 0 else ("after", "before")


def alternate_measurements(
    rounds: int, metric: BenchMetric, measure: Callable[[Side], float], say: Callable[[Side, str], None]
) -> BenchSeries:
    found: dict[Side, list[float]] = {"before": [], "after": []}
    for number, side in enumerate(alternate_sides(rounds)):
        found[side].append(measure(side))
        say(side, f"{number // 2 + 1} of {rounds}: {found[side][-1]:.4g}")
    unit = "" if metric.pattern else "s"
    return BenchSeries(tuple(found["before"]), tuple(found["after"]), unit, metric.higher)


def spread_text(values: Sequence[float], unit: str) -> str:
    middle = f"{median(values):.4g}{f' {unit}' if unit else ''}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.4g} to {max(values):.4g})"
