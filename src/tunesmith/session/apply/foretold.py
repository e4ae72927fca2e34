"""What Amdahl's law foretells: a kernel's share of a captured program, and its speed-up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.capture.ranking import amdahl
from tunesmith.capture.records import Capture


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
    gain = amdahl(seconds, saving)
    if gain is None:
        return None
    of = "the whole program" if whole else "the time from its first kernel to its last"
    busy = amdahl(capture.seconds, saving)
    return ForetoldGain(kernel.shown, kernel.seconds / seconds, speedup, gain, of, busy)
