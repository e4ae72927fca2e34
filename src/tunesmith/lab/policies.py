"""How long to measure: one table, so that two figures under the same policy can be compared."""

from __future__ import annotations

from tunesmith.core.device import Device
from tunesmith.core.messages import TimingPolicy

BASELINE = TimingPolicy(rounds=9, min_rounds=5, chain_seconds=0.02, max_seconds=1.5)
SHORT = TimingPolicy(rounds=5, min_rounds=3, chain_seconds=0.01, max_seconds=0.4)
LONG = TimingPolicy(rounds=17, min_rounds=9, chain_seconds=0.015, max_seconds=1.2)
VERIFY = TimingPolicy(rounds=25, min_rounds=11, chain_seconds=0.02, max_seconds=2.0)

BUILD_SECONDS = 120.0
ORIGINAL_SECONDS = 20.0  # for one case of the original, whose speed is not known yet
DATA_RATE = 50e6  # bytes per second a worker draws, digests, copies and sends at the very least
GIVE_UP_FACTOR = 5.0  # a launch this many times slower than the original is looked at once


def data_seconds(nbytes: int) -> float:
    """What handling a case's arrays may take, whatever the kernel does."""
    return nbytes / DATA_RATE


def case_deadline(original_seconds: float, device: Device, build_seconds: float, nbytes: int) -> float:
    """What a candidate may take for one case: its launches, and everything around them."""
    return launch_deadline(original_seconds, device, build_seconds) + data_seconds(nbytes)


def launch_deadline(original_seconds: float, device: Device, build_seconds: float) -> float:
    """What a candidate may take for one launch: 100 × the original, a second at least.

    Drivers that finish compiling at the first launch get time for that as well, in proportion to the build.
    """
    allowance = 2.0 + 5.0 * build_seconds if device.finishes_compiling_at_launch else 0.0
    return max(1.0, 100.0 * original_seconds) + allowance


def timing_deadline(
    original_seconds: float, device: Device, build_seconds: float, policy: TimingPolicy, contenders: int
) -> float:
    one = launch_deadline(original_seconds, device, build_seconds)
    return 2 * one + contenders * 4 * policy.max_seconds + _layout_seconds(device, 0)


def baseline_deadline(device: Device, nbytes: int) -> float:
    """For an original of unknown speed, of which two launches within ORIGINAL_SECONDS have been seen."""
    launches = 2 + BASELINE.min_rounds
    return launches * ORIGINAL_SECONDS / 2 + _layout_seconds(device, nbytes)


def _layout_seconds(device: Device, nbytes: int) -> float:
    """The first request of a workload lays out its data."""
    return 5.0 + data_seconds(nbytes + 3 * device.limits.llc)
