"""Several devices of one kind in a run: how far apart they are, which is to time the original, and which is
better left out. All of it follows from what the journal has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile

from tunesmith.problem.problem import Problem
from tunesmith.run.events import Measured
from tunesmith.run.outcome import AskedOf, LeftOut, Outcome, Trial, geometric_mean, median
from tunesmith.run.state import State

GAUGE_EVERY = 16  # trials of a device between two looks at the original there
SLOW = 2.0  # times what its peers take: its trials would hold up the rest
UNSTEADY = 0.1  # log: how far apart its looks at the original are, one after the other
LOOKS = 4  # at the original that tell it
WATCHED = 8  # trials that tell whether a clock is held down
HELD_DOWN = 0.5  # share of the rounds that were taken under a clock that is
RARELY = 0.25  # where that is less at its peers


def next_event(problem: Problem, state: State) -> LeftOut | AskedOf | None:
    """Whom to leave out, or who is to time the original: before its first trial, and now and then."""
    if (gone := find_unfit_device(state)) is not None:
        return gone
    if state.baseline is None or state.under_way is None:
        return None
    due = untimed_device(state) or (to_gauge(state) if state.searching else None)
    return sentinel_trial(problem, state, due) if due is not None else None


def sentinel_trial(problem: Problem, state: State, device: str | None = None) -> AskedOf:
    """By that device; else by the one that measured last, if it is still in force."""
    names = tuple(w.name for w in problem.workloads)
    last = state.outcomes[-1].device if state.outcomes else ""
    device = device or (last if last in state.devices else state.devices[0])
    return AskedOf(Trial(state.next_trial, None, names, "short", "sentinel"), device)


def measured_event(state: State, outcome: Outcome) -> Measured | None:
    """None for the original's time on one of several that was left out meanwhile: nobody waits for it."""
    return None if state.devices and outcome.trial not in state.in_flight else Measured(outcome)


def untimed_device(state: State) -> str | None:
    """A device that has not timed the original, and has not been asked to."""
    asked = {device for _, device in state.bound}
    return next((d for d in state.devices if d not in asked and not _sentinel_outcomes(state, d)), None)


def to_gauge(state: State) -> str | None:
    asked = {device for _, device in state.bound}
    for device in state.devices:
        measured = reversed(_outcomes_since_enlisted(state, device))
        since = sum(1 for _ in takewhile(lambda o: o.trial.purpose != "sentinel", measured))
        if device not in asked and since >= GAUGE_EVERY:
            return device
    return None


def _outcomes_since_enlisted(state: State, device: str) -> tuple[Outcome, ...]:
    """What it has measured since it was enlisted: one that was left out before begins anew."""
    measured = state.outcomes.of(("on", device))
    return measured[len(measured) - state.outcomes.count(("on", device), state.enlisted_after) :]


def _sentinel_outcomes(state: State, device: str) -> list[Outcome]:
    baseline = [state.baseline.outcome] if state.baseline is not None else []
    later = (o for o in _outcomes_since_enlisted(state, device) if o.trial.purpose == "sentinel")
    return [*(o for o in baseline if o.device == device), *later]


def find_unfit_device(state: State) -> LeftOut | None:
    """The first that is better left out, and why; never all of them."""
    return next(_unfit_devices(state), None) if len(state.devices) > 1 else None


def _unfit_devices(state: State) -> Iterator[LeftOut]:
    looks = {device: _sentinel_outcomes(state, device) for device in state.devices}
    for device, seen in looks.items():
        if seen and not any(r.ok for r in seen[-1].results):
            bad = seen[-1].results[0]
            yield LeftOut(device, f"the original fails there: {bad.status} {bad.detail}")
    newest = {device: _seconds_by_workload(seen[-1]) for device, seen in looks.items() if seen}
    for device, own_times in newest.items():
        apart = [slowdown_ratio(own_times, times) for other, times in newest.items() if other != device]
        # Of two, the slower one: its peer is all there is to compare it with.
        if apart and median(apart) > SLOW:
            yield LeftOut(device, f"the original takes {median(apart):.1f} times as long there as elsewhere")
    spread = {device: _sentinel_spread(seen) for device, seen in looks.items() if len(seen) >= LOOKS}
    for device, own_spread in spread.items():
        peers = [value for other, value in spread.items() if other != device]
        if peers and own_spread > UNSTEADY > 2 * median(peers):
            words = f"the original's time there changes by {math.expm1(own_spread):.0%} from one look to the"
            yield LeftOut(device, f"{words} next, elsewhere by {math.expm1(median(peers)):.1%}")
    held = {device: share for device in state.devices if (share := held_down(state, device)) is not None}
    for device, share in held.items():
        peers = [value for other, value in held.items() if other != device]
        if peers and share > HELD_DOWN and median(peers) < RARELY:
            words = f"its clock was held down in {share:.0%} of the rounds of its last {WATCHED} trials"
            yield LeftOut(device, words)


def _seconds_by_workload(outcome: Outcome) -> dict[str, float]:
    return {r.workload: r.timing.seconds for r in outcome.results if r.timing is not None}


def slowdown_ratio(times: Mapping[str, float], other: Mapping[str, float]) -> float:
    """How many times as long the one takes, over the workloads that both have timed."""
    both = [times[name] / other[name] for name in times if name in other]
    return geometric_mean(both) if both else 1.0


def _sentinel_spread(looks: list[Outcome]) -> float:
    """How far apart two of them in turn are, as a rule. The first are from when the device was cold."""
    recent = [_seconds_by_workload(one) for one in looks[-LOOKS:]]
    return median([abs(math.log(slowdown_ratio(after, before))) for before, after in pairwise(recent)])


def held_down(state: State, device: str) -> float | None:
    """The share of rounds that were taken under a held clock, of its last trials; None: there are few."""
    measured = _outcomes_since_enlisted(state, device)[-WATCHED:]
    timed = [r.timing for o in measured for r in o.results if r.timing is not None and not r.timing.cached]
    if len(measured) < WATCHED or not timed:
        return None
    discarded = sum(timing.discarded for timing in timed)
    return discarded / (discarded + sum(len(timing.samples) for timing in timed))


@dataclass(frozen=True)
class DeviceUse:
    """What one of several devices did in a run."""

    name: str
    measured: int  # trials, the original's too
    slower: float | None  # times what the first takes for the original; None: not known
    left_out: str = ""  # why


def device_uses(state: State) -> tuple[DeviceUse, ...]:
    """Of all that ever were enlisted, in the order in which they measured; none where there was one."""
    if state.enlisted is None:
        return ()
    baseline = [state.baseline.outcome] if state.baseline is not None else []
    measured = [*baseline, *state.outcomes]
    names = dict.fromkeys([*state.enlisted.devices, *(o.device for o in measured)])
    first = _median_times(state, next(iter(names)))
    gone = {one.device: one.reason for one in state.left_out if one.device not in state.devices}
    found = []
    for name in names:
        times = _median_times(state, name)
        apart = slowdown_ratio(times, first) if times and first else None
        found.append(DeviceUse(name, sum(o.device == name for o in measured), apart, gone.get(name, "")))
    return tuple(found)


def _median_times(state: State, device: str) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for one in _sentinel_outcomes(state, device):
        for name, seconds in _seconds_by_workload(one).items():
            times.setdefault(name, []).append(seconds)
    return {name: median(values) for name, values in times.items()}
