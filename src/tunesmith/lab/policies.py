"""How long to measure: one table, so that two figures under the same policy can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunesmith.backends.messages import TimingPolicy
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan


@dataclass(frozen=True)
class Policies:
    baseline: TimingPolicy
    short: TimingPolicy
    long: TimingPolicy
    verify: TimingPolicy


# Noisy: chains long enough to span several slices of a scheduler.
_QUEUED = Policies(
    baseline=TimingPolicy(rounds=9, min_rounds=5, chain_seconds=0.02, max_seconds=1.5),
    short=TimingPolicy(rounds=5, min_rounds=3, chain_seconds=0.01, max_seconds=0.4),
    long=TimingPolicy(rounds=17, min_rounds=9, chain_seconds=0.015, max_seconds=1.2),
    verify=TimingPolicy(rounds=25, min_rounds=11, chain_seconds=0.02, max_seconds=2.0),
)
# Replayed by the device alone: samples agree within a per cent when they take a millisecond.
_RECORDED = Policies(
    baseline=TimingPolicy(rounds=15, min_rounds=7, chain_seconds=0.003, max_seconds=1.0),
    short=TimingPolicy(rounds=6, min_rounds=4, chain_seconds=0.0006, max_seconds=0.1),
    long=TimingPolicy(rounds=25, min_rounds=11, chain_seconds=0.0015, max_seconds=0.5),
    verify=TimingPolicy(rounds=31, min_rounds=15, chain_seconds=0.002, max_seconds=0.8),
)


def policies_of(device: Device) -> Policies:
    return _RECORDED if device.inspects else _QUEUED


def give_up(original: float, best: float | None, device: Device) -> float:
    """How slow a launch may be to be worth more than a look, by the original and the best one so far."""
    factor = OUT_OF_RACE if device.inspects else OUT_OF_NOISY_RACE
    return min(GIVE_UP_FACTOR * original, factor * (original if best is None else best))


BUILD_SECONDS = 120.0
ORIGINAL_SECONDS = 20.0  # for one case of the original, whose speed is not known yet
DATA_RATE = 50e6  # bytes per second a worker draws, digests, copies, sends and judges at the very least
LAYOUT_RATE = 500e6  # at which a device that fills its memory by itself lays out what is timed
INPUT_SECONDS = 60.0  # for the user's function that makes inputs, where nobody has seen it at work yet
GIVE_UP_FACTOR = 5.0  # a launch this many times slower than the original is looked at once
OUT_OF_RACE = 1.4  # so is one this many times slower than the best seen, where samples agree within per cents
OUT_OF_NOISY_RACE = 3.0


def data_seconds(plan: Plan) -> float:
    """What handling a case's arrays may take, whatever the kernel does. Also where the device judges: what it
    does not find right at once, which may be right all the same, is read back and judged by the host."""
    return plan.nbytes / DATA_RATE


def case_deadline(original_seconds: float, device: Device, build_seconds: float, plan: Plan) -> float:
    """What a candidate may take for one case: its launches, and everything around them."""
    return launch_deadline(original_seconds, device, build_seconds) + data_seconds(plan)


def launch_deadline(original_seconds: float, device: Device, build_seconds: float) -> float:
    """What a candidate may take for one launch: 100 × the original, a second at least. Drivers that finish
    compiling at the first launch get time for that as well, in proportion to the build."""
    allowance = 2.0 + 5.0 * build_seconds if device.finishes_compiling_at_launch else 0.0
    return max(1.0, 100.0 * original_seconds) + allowance


def timing_deadline(
    original_seconds: float, device: Device, build_seconds: float, policy: TimingPolicy, contenders: int
) -> float:
    one = launch_deadline(original_seconds, device, build_seconds)
    return 2 * one + contenders * 4 * policy.max_seconds + _layout_seconds(device, 0)


def baseline_deadline(device: Device, nbytes: int) -> float:
    """For an original of unknown speed, of which two launches within ORIGINAL_SECONDS have been seen."""
    launches = 2 + policies_of(device).baseline.min_rounds
    return launches * ORIGINAL_SECONDS / 2 + _layout_seconds(device, nbytes)


def _layout_seconds(device: Device, nbytes: int) -> float:
    """The first request of a workload lays out its data."""
    rate = LAYOUT_RATE if device.inspects else DATA_RATE
    return (2.0 if device.inspects else 5.0) + (nbytes + 3 * device.limits.llc) / rate


def together(deadlines: Sequence[float], device: Device) -> float:
    """For several timings in one request: their data is laid out at most once each, usually long ago."""
    layout = _layout_seconds(device, 0)
    return layout + sum(deadline - layout for deadline in deadlines)


def all_deadlines(deadlines: Iterable[float]) -> float:
    """For several cases in one request: each has a second at the least, all together need it but once."""
    return 1.0 + sum(deadline - 1.0 for deadline in deadlines)
