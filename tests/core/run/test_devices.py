"""Several devices in one run: what the journal has of them decides, in whatever order they answer."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.core.run.test_library import NoTexts
from tests.core.run.test_loop import BEST, Climber, FakeLab, Run, delivered
from tests.core.run.test_steered_loop import ANSWERED, diagnosed
from tests.samples import DEVICE, a_problem, a_template, config, finalist, outcome, state_of
from tunesmith.problem.plan import Status
from tunesmith.run import devices
from tunesmith.run import events as ev
from tunesmith.run.candidates import Templates
from tunesmith.run.figures import best_so_far
from tunesmith.run.journal import broken_rule
from tunesmith.run.library import timings_of
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.scores import SpeedupScale, measurement_noise
from tunesmith.run.state import State, apply_record, fold_records
from tunesmith.search.simple import Focused
from tunesmith.space.configset import Config

PACES = {"a": 1.0, "b": 1.04, "c": 0.97}


def at_pace(found: Outcome, device: str, pace: float, discarded: int = 0) -> Outcome:
    """The same on a device that takes so many times as long."""
    results = []
    for result in found.results:
        timing = result.timing
        if timing is not None:
            samples = tuple(pace * s for s in timing.samples)
            paired = tuple(pace * s for s in timing.paired)
            timing = replace(timing, samples=samples, paired=paired, discarded=discarded)
        results.append(replace(result, timing=timing))
    return replace(found, results=tuple(results), device=device)


@dataclass
class ManyLab(FakeLab):
    """Several devices, each with a pace; which is done first is drawn. `loses`: after so many outcomes a
    device is gone. `late`: what one that is left out has begun it ends."""

    paces: dict[str, float] = field(default_factory=lambda: dict(PACES))
    seed: int = 0
    loses: dict[int, str] = field(default_factory=dict)
    bound: dict[int, str] = field(default_factory=dict)
    gone: list[ev.LeftOut] = field(default_factory=list)
    held_down: str = ""
    late: bool = False

    def __post_init__(self) -> None:
        self.there = list(self.paces)
        self.draw = random.Random(self.seed)

    def baseline(self):
        found = super().baseline()
        return replace(found, outcome=replace(found.outcome, device=self.there[0]))

    def submit(self, trial: Trial, device: str = "") -> None:
        super().submit(trial)
        if device:
            assert device in self.there
            self.bound[trial.id] = device

    def changed(self) -> ev.LeftOut | None:
        return self.gone.pop(0) if self.gone else None

    def leave_out(self, device: str) -> None:
        if device in self.there:
            self.there.remove(device)
        if not self.late:
            self.queue = type(self.queue)(t for t in self.queue if self.bound.get(t.id) != device)

    def collect(self) -> Outcome | None:
        device = self.loses.pop(len(self.evaluated), None)
        if device is not None and len(self.there) > 1:
            self.gone.append(ev.LeftOut(device, "it fell off the bus", lost=True))
            self.leave_out(device)
            return None
        trial = self.draw.choice(list(self.queue))
        self.queue.remove(trial)
        self.queue.appendleft(trial)
        found = super().collect()
        where = self.bound.get(trial.id) or self.draw.choice(self.there)
        where = self.there[0] if trial.purpose == "finalist" else where
        return at_pace(found, where, self.paces[where], 12 * (where == self.held_down))

    def verify(self, trial: Trial, later: Sequence[Trial] = ()) -> ev.Verified:
        found = super().verify(trial, later)
        return replace(found, outcome=replace(found.outcome, device=self.there[0]))


class ReplayingLab(FakeLab):
    """What a journal says was measured, when it says so."""

    def __init__(self, told: Sequence[ev.Recorded], written: Callable[[], int]) -> None:
        super().__init__()
        self.told, self.written = told, written

    def _next(self) -> ev.Event:
        return self.told[self.written()].event

    def baseline(self):
        return self._next()

    def submit(self, trial: Trial, device: str = "") -> None:
        super().submit(trial)

    def changed(self) -> ev.LeftOut | None:
        event = self._next()
        return event if isinstance(event, ev.LeftOut) and event.lost else None

    def leave_out(self, device: str) -> None: ...

    def collect(self) -> Outcome | None:
        event = self._next()
        return event.outcome if isinstance(event, ev.Measured) else None

    def profile(self, chosen: Config | None, workload: str, seconds: float) -> ev.Profiled:
        event = self._next()
        assert isinstance(event, ev.Profiled)
        return event

    def verify(self, trial: Trial, later: Sequence[Trial] = ()) -> ev.Verified:
        event = self._next()
        assert isinstance(event, ev.Verified)
        return event


def begun(settings: ev.Settings, names: Sequence[str], **more: Any) -> list[ev.Recorded]:
    first = Run(settings, **more).journal.records
    return [*first, ev.Recorded(1, 0.0, ev.Enlisted(tuple(names)))]


def go(lab: ManyLab, ahead: int = 0, evals: int | None = 40) -> tuple[Run, State]:
    settings = ev.Settings(evals=evals, ahead=ahead)
    run = Run(settings, Climber(), lab=lab, records=begun(settings, lab.paces))
    return run, run.go()


CHAOS: dict[str, tuple[int, dict[str, Any]]] = {
    "orders": (0, {"seed": 1}),
    "one is lost": (12, {"seed": 2, "loses": {9: "b"}}),
    "two are lost, which time finalists": (0, {"seed": 3, "loses": {0: "a", 20: "c"}}),
    "one is lost while it times the original": (0, {"seed": 7, "loses": {1: "b"}, "late": True}),
    "slow and throttled": (12, {"seed": 4, "paces": {**PACES, "d": 3.1, "e": 1.2}, "held_down": "e"}),
}


@pytest.mark.parametrize("chaos", CHAOS)
def test_the_best_wins_and_every_decision_follows_from_the_journal(chaos: str) -> None:
    ahead, about = CHAOS[chaos]
    run, state = go(ManyLab(**deepcopy(about)), ahead)
    assert delivered(state).general == BEST
    searched = [t.id for t in state.asked if t.effort != "build" and t.config is not None]
    assert sorted(o.trial.id for o in state.outcomes if o.trial.config is not None) == searched
    assert state.in_flight == ()
    assert len({o.device for o in state.outcomes.of("finalist")}) == 1, "they are timed by one device"
    left_out = {one.device: one.lost for one in state.left_out}
    assert left_out == {**dict.fromkeys(about.get("loses", {}).values(), True), **left_out}
    if "held_down" in about:
        assert left_out == {"d": False, "e": False}
    records = run.journal.records
    again = Run(run.settings, Climber(), records=records[:2])
    again.lab = ReplayingLab(records, lambda: len(again.journal.records))
    assert again.go() == state
    assert [r.event for r in again.journal.records] == [r.event for r in records]
    before = fold_records(records[:1])
    for record in records[1:]:
        assert broken_rule(before, record) is None
        before = apply_record(before, record)


@pytest.mark.parametrize("chaos", ["orders", "two are lost, which time finalists"])
def test_the_original_is_looked_at_before_anything_is_tried_and_steers(chaos: str) -> None:
    """Though each device has timed it by then."""
    settings, about = ev.Settings(evals=60, steer=True, seed=3), deepcopy(CHAOS[chaos][1])
    lab = ManyLab(no_profiles="", diagnosis=diagnosed, **about)
    more: dict[str, Any] = {"searcher": Focused(Climber()), "template": ANSWERED}
    run = Run(settings, lab=lab, records=begun(settings, lab.paces, **more), **more)
    state = run.go()
    kinds = [type(r.event) for r in run.journal.records]
    assert (
        kinds.index(ev.AskedOf) < kinds.index(ev.Profiled) < kinds.index(ev.Steered) < kinds.index(ev.Asked)
    )
    assert [chosen for chosen, _, _ in lab.profiled[:2]] == [None, None]
    assert delivered(state).general == BEST
    again = Run(settings, records=run.journal.records[:2], **more)
    again.lab = ReplayingLab(run.journal.records, lambda: len(again.journal.records))
    again.lab.no_profiles = ""
    assert again.go() == state


def test_a_run_that_was_killed_goes_on_with_other_devices() -> None:
    lab = ManyLab(seed=5, dies_after=15)
    run = Run(ev.Settings(evals=40), Climber(), lab=lab, records=begun(ev.Settings(evals=40), PACES))
    with pytest.raises(KeyboardInterrupt):
        run.go()
    left = {"c": PACES["c"], "d": 1.01}
    records = [*run.journal.records]
    records.append(ev.Recorded(len(records), records[-1].at, ev.Enlisted(tuple(left))))
    state = Run(run.settings, Climber(), lab=ManyLab(paces=left, seed=6), records=records).go()
    assert state.devices == ("c", "d")
    assert delivered(state).general == BEST
    assert {o.device for o in state.outcomes} <= {*PACES, "d"}


def test_speedups_are_over_the_original_on_the_same_device() -> None:
    """By raw times the kernel that ran on the fast device would win."""
    slow, quick = config(64), config(128)
    state = state_of(
        ev.Enlisted(("a", "b")),
        ev.AskedOf(Trial(0, None, ("small", "wide"), "short", "sentinel"), "a"),
        ev.Measured(at_pace(outcome(0, None, {"small": 1.0, "wide": 1.0}, "sentinel"), "a", 1.04)),
        ev.AskedOf(Trial(1, None, ("small", "wide"), "short", "sentinel"), "b"),
        ev.Measured(at_pace(outcome(1, None, {"small": 1.0, "wide": 1.0}, "sentinel"), "b", 0.97)),
        at_pace(outcome(2, quick, {"small": 0.50, "wide": 0.50}), "a", 1.04),
        at_pace(outcome(3, slow, {"small": 0.52, "wide": 0.52}), "b", 0.97),
    )
    assert best_so_far(state).config == quick
    yardstick = SpeedupScale(state)
    assert yardstick.seconds("small", 2, "a") == pytest.approx(1.04)
    assert yardstick.seconds("small", 2, "b") == pytest.approx(0.97)
    assert yardstick.speedups(state.outcomes[-1]) == pytest.approx({"small": 1 / 0.52, "wide": 1 / 0.52})


def test_what_is_stored_for_others_is_by_the_original_on_the_same_device() -> None:
    at = {"small": 0.5, "wide": 0.5}
    state = state_of(
        ev.Enlisted(("a", "b")),
        ev.Measured(at_pace(outcome(0, None, {"small": 1.0, "wide": 1.0}, "sentinel"), "a", 1.0)),
        ev.Measured(at_pace(outcome(1, None, {"small": 1.0, "wide": 1.0}, "sentinel"), "b", 0.9)),
        at_pace(outcome(2, config(64), at), "a", 1.0),
        at_pace(outcome(3, config(128), at), "b", 0.9),
    )
    problem = a_problem()
    timings, _ = timings_of(problem, state, Templates(problem, DEVICE, a_template(problem), NoTexts()))
    assert [one.original for each in timings for one in each.at] == pytest.approx([1.0, 1.0, 0.9, 0.9])
    gains = [math.log(one.original / one.seconds) for each in timings for one in each.at]
    assert gains == pytest.approx([each.score for each in timings for _ in each.at])


def test_a_device_that_has_not_timed_the_original_at_a_workload_is_as_slow_there_as_elsewhere() -> None:
    failed = outcome(1, None, {"small": 1.0, "wide": Status.TIMED_OUT}, "sentinel")
    state = state_of(
        ev.Enlisted(("a", "b")),
        at_pace(outcome(0, None, {"small": 1.0, "wide": 3.0}, "sentinel"), "a", 1.0),
        at_pace(failed, "b", 1.1),
        original={"small": 1.0, "wide": 3.0},
    )
    assert SpeedupScale(state).seconds("wide", 5, "b") == pytest.approx(3.3)


def looks(*times: tuple[str, float], discarded: int = 0) -> State:
    """The original's times, device by device, on top of a baseline of the first."""
    found = [
        at_pace(outcome(n, None, {"small": 1.0, "wide": 1.0}, "sentinel"), device, pace, discarded)
        for n, (device, pace) in enumerate(times)
    ]
    return state_of(ev.Enlisted(tuple(dict.fromkeys(device for device, _ in times))), *found)


def timed_in_turn(values: Callable[[int, str], float], devices: str) -> list[tuple[str, float]]:
    return [(device, values(n, device)) for n in range(5) for device in devices]


def held_down_clock() -> State:
    found = [
        at_pace(outcome(n, None, {"small": 1.0}, "sentinel"), d, 1.1, 20 * (d == "b"))
        for n, d in enumerate("ab" * 8)
    ]
    return state_of(ev.Enlisted(("a", "b")), *found)


def failing_original(device: str, *devices: str) -> State:
    bad = replace(outcome(1, None, {"small": Status.CRASHED}, "sentinel"), device=device)
    return state_of(ev.Enlisted(devices), bad)


@pytest.mark.parametrize(
    ("state", "device", "reason"),
    [
        (looks(("a", 1.0), ("b", 1.07), ("c", 0.95), ("b", 1.05)), None, "a few per cent"),
        (looks(("a", 1.0), ("b", 1.02), ("c", 2.9)), "c", "2.9 times"),
        (looks(*timed_in_turn(lambda n, d: 1.0 + 0.3 * (n % 2) * (d == "b"), "abc")), "b", "changes by 30%"),
        (looks(*timed_in_turn(lambda n, d: 1.0 + 0.3 * (n % 2), "ab")), None, "all are unsteady"),
        (held_down_clock(), "b", "held down in 62%"),
        (failing_original("b", "a", "b"), "b", "the original fails there: crashed"),
        (failing_original("a", "a"), None, "the last one never"),
    ],
)
def test_who_is_left_out(state: State, device: str | None, reason: str) -> None:
    gone = devices.find_unfit_device(state)
    if device is None:
        assert gone is None, reason
    else:
        assert (gone.device, gone.lost) == (device, False)
        assert reason in gone.reason


def test_who_is_enlisted_again_begins_anew() -> None:
    state, enlisted = looks(("a", 1.0), ("b", 1.02), ("c", 2.9)), ev.Enlisted(("a", "b", "c"))
    again = apply_record(state, ev.Recorded(99, 99.0, enlisted))
    assert devices.find_unfit_device(again) is None
    assert devices.untimed_device(again) == "a"


def test_the_original_is_timed_before_the_first_trial_and_now_and_then() -> None:
    first = replace(outcome(0, None, {"small": 1.0}, "sentinel"), device="a")
    state = state_of(ev.Enlisted(("a", "b")), first)
    assert devices.untimed_device(state) == "b"
    asked = ev.AskedOf(Trial(1, None, ("small",), "short", "sentinel"), "b")
    more = [replace(outcome(2 + n, config(64), {"small": 1.0}), device="a") for n in range(16)]
    waiting = state_of(ev.Enlisted(("a", "b")), first, asked)
    assert devices.untimed_device(waiting) is None
    assert devices.to_gauge(state_of(ev.Enlisted(("a", "b")), first, asked, *more[:15])) is None
    assert devices.to_gauge(state_of(ev.Enlisted(("a", "b")), first, asked, *more)) == "a"


def test_what_was_asked_of_a_device_that_is_left_out_nobody_waits_for() -> None:
    asked = ev.AskedOf(Trial(0, None, ("small",), "short", "sentinel"), "b")
    state = state_of(ev.Enlisted(("a", "b")), asked, ev.LeftOut("b", "lost", lost=True))
    assert (state.devices, state.in_flight, state.bound) == (("a",), (), ())


def test_finalists_are_timed_anew_where_their_device_is_left_out() -> None:
    raced = replace(finalist(3, config(64), {"small": 2.0, "wide": 2.0}), device="a")
    state = state_of(ev.Enlisted(("a", "b", "c")), raced)
    assert state.finalists() == (raced,)
    assert state_of(ev.Enlisted(("a", "b", "c")), raced, ev.LeftOut("a", "slow")).finalists() == ()


def test_two_devices_that_differ_are_no_noise() -> None:
    times = [(d, {"a": 1.0, "b": 1.3}[d] + 0.001 * (n % 3)) for n in range(6) for d in "ab"]
    assert measurement_noise(looks(*times)) < 0.005


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (ev.Enlisted(()), "are some"),
        (ev.Enlisted(("a", "a")), "a name of its own"),
        (ev.LeftOut("z", "?"), "cannot be left out"),
        (ev.AskedOf(Trial(0, None, ("small",), "short", "sentinel"), "z"), "one device, which is in force"),
        (ev.Measured(replace(outcome(0, None, {"small": 1.0}, "sentinel"), device="z")), "not enlisted"),
    ],
)
def test_what_cannot_have_happened_is_refused(event: ev.Event, words: str) -> None:
    waiting = [ev.AskedOf(event.outcome.trial, "a")] if isinstance(event, ev.Measured) else []
    state = state_of(ev.Enlisted(("a", "b")), *waiting)
    assert words in str(broken_rule(state, ev.Recorded(9, 9.0, event)))


def test_who_is_left_out_may_end_what_it_has_begun_though_others_are_enlisted_meanwhile() -> None:
    begun = outcome(0, config(64), {"small": 1.0}).trial
    state = state_of(
        ev.Enlisted(("a", "b")), ev.Asked((begun,)), ev.LeftOut("b", "slow"), ev.Enlisted(("a", "c"))
    )
    ends = ev.Measured(replace(outcome(0, config(64), {"small": 1.0}), device="b"))
    assert broken_rule(state, ev.Recorded(9, 9.0, ends)) is None


def test_what_each_device_did_is_told() -> None:
    state = looks(("a", 1.0), ("b", 1.03), ("a", 1.0))
    state = replace(state, left_out=(ev.LeftOut("b", "lost"),), devices=("a",))
    told = {use.name: use for use in devices.device_uses(state)}
    assert (told["a"].measured, told["a"].slower, told["a"].left_out) == (2, 1.0, "")
    assert told["b"].slower == pytest.approx(1.03)
    assert told["b"].left_out == "lost"
