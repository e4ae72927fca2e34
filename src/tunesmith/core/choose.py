"""Who wins: scores during the search, finalists, the general configuration and the best per workload."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass

from tunesmith.core.digest import seed_of
from tunesmith.core.outcome import Outcome, Result, Status
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.stats import Interval, geometric_mean, median, median_interval

CLAIM = 1.01  # a speed-up is claimed only where its interval lies above this
SPECIAL = 1.02  # a workload gets its own configuration only for at least this much over the general one
NEAREST = 5  # sentinels that tell the original's time around a trial: drift is slow, noise is not
PATIENCE = 20  # finalists that may fail before the rest are given up: by then the template is at fault
PER_WORKLOAD = 2  # finalists taken for each workload beside the general ones


@dataclass(frozen=True)
class Pick:
    """What serves one workload; `config` None: the original stays."""

    workload: str
    config: Config | None
    speedup: Interval


@dataclass(frozen=True)
class Choice:
    general: Config | None
    picks: tuple[Pick, ...]

    def configs(self) -> tuple[Config, ...]:
        """Every configuration delivered, the general one first."""
        picked = [self.general, *(pick.config for pick in self.picks)]
        return tuple(dict.fromkeys(config for config in picked if config is not None))


class Yardstick:
    """The original's time around each trial: the median of the nearest sentinels forgives an outlier."""

    def __init__(self, state: State) -> None:
        self._ids: dict[str, list[int]] = {}
        self._seconds: dict[str, list[float]] = {}
        for outcome in state.sentinels():
            for result in outcome.results:
                if result.timing is not None:
                    self._ids.setdefault(result.workload, []).append(outcome.trial.id)
                    self._seconds.setdefault(result.workload, []).append(result.timing.seconds)

    def seconds(self, workload: str, trial: int) -> float:
        after = bisect(self._ids[workload], trial)
        start = max(0, min(after - NEAREST // 2, len(self._ids[workload]) - NEAREST))
        return median(self._seconds[workload][start : start + NEAREST])

    def speedups(self, outcome: Outcome) -> dict[str, float]:
        return {
            r.workload: self.seconds(r.workload, outcome.trial.id) / r.timing.seconds
            for r in outcome.results
            if r.timing is not None
        }


def score(problem: Problem, found: dict[str, float]) -> float | None:
    """Log of the weighted geometric mean; the original stays (1.0) where a configuration cannot run."""
    if not found:
        return None
    weights = [w.weight for w in problem.workloads]
    return math.log(geometric_mean([found.get(w.name, 1.0) for w in problem.workloads], weights))


def scores(problem: Problem, state: State) -> tuple[tuple[Config, float | None], ...]:
    """Every configuration tried; None where it failed, or needed no trial to."""
    yardstick = Yardstick(state)
    failed = [(s.config, None) for s in state.unable if s.config is not None]
    measured = [
        (o.trial.config, score(problem, yardstick.speedups(o)))
        for o in state.searched()
        if o.trial.config is not None
    ]
    return (*failed, *measured)


def finalists(problem: Problem, state: State, count: int) -> tuple[Config, ...]:
    """Those worth a long look: the best in general, then the best of each workload.

    One that fails that look gives its place to the next in line, as long as the patience lasts.
    """
    yardstick = Yardstick(state)
    looked_at = state.finalists()
    failed = {o.trial.config for o in looked_at if not any(r.ok for r in o.results)}
    if len(failed) > PATIENCE:
        return ()
    ranked = [
        (s, o)
        for o in state.searched()
        if o.trial.config not in failed and (s := score(problem, yardstick.speedups(o))) is not None
    ]
    ranked.sort(key=lambda pair: -pair[0])
    chosen: dict[Config, None] = {}
    _take(chosen, [o for _, o in ranked], count)
    for workload in problem.workloads:
        here = [(t, o) for _, o in ranked if (t := yardstick.speedups(o).get(workload.name)) is not None]
        here.sort(key=lambda pair: -pair[0])
        _take(chosen, [o for _, o in here], PER_WORKLOAD)
    return tuple(chosen)


def _take(chosen: dict[Config, None], outcomes: list[Outcome], count: int) -> None:
    """The first `count` distinct ones: equal code, launched alike, is one contender under two names."""
    taken: set[tuple[str, ...]] = set()
    for outcome in outcomes:
        if len(taken) == count:
            return
        what_ran = tuple(r.key for r in outcome.results if r.ok)
        if what_ran not in taken and outcome.trial.config is not None:
            taken.add(what_ran)
            chosen.setdefault(outcome.trial.config)


def choose(problem: Problem, state: State) -> Choice:
    """The winners by the long alternating measurements, without those that failed verification."""
    barred = {v.outcome.trial.config for v in state.verified if any(not r.ok for r in v.outcome.results)}
    field = [o for o in state.finalists() if o.trial.config not in barred]
    # The general one also serves sizes nobody timed: one that failed anywhere inside its domain is no such.
    sound = [o for o in field if all(r.ok or r.status is Status.INFEASIBLE for r in o.results)]
    ranked = [(s, o) for o in sound if (s := score(problem, _medians(o))) is not None]
    general = max(ranked, key=lambda pair: pair[0])[1] if ranked else None
    picks = [_pick(state, w.name, field, general) for w in problem.workloads]
    gains = general is not None and any(_claim(state, result) for result in general.results)
    return Choice(general.trial.config if general and gains else None, tuple(picks))


def _pick(state: State, workload: str, field: list[Outcome], general: Outcome | None) -> Pick:
    """The general configuration, unless another is clearly better here; else the original."""
    best, to_beat = general, SPECIAL * _medians(general).get(workload, 1.0)
    for outcome in field:
        here = _medians(outcome).get(workload, 0.0)
        if here > to_beat:
            best, to_beat = outcome, here
    speedup = _claim(state, best.result(workload)) if best else None
    return Pick(workload, best.trial.config, speedup) if best and speedup else _stays(workload)


def verified_choice(problem: Problem, state: State) -> Choice:
    """The same winners with the speed-ups of the verification; the original stays where they do not hold."""
    choice = choose(problem, state)
    picks = []
    for pick in choice.picks:
        speedup = _claim(state, timing_of(state, pick.config, pick.workload))
        picks.append(Pick(pick.workload, pick.config, speedup) if speedup else _stays(pick.workload))
    gains = any(_claim(state, timing_of(state, choice.general, w.name)) for w in problem.workloads)
    return Choice(choice.general if gains else None, tuple(picks))


def unverified(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """What still has to be verified: configurations with the workloads they are delivered for."""
    choice = choose(problem, state)
    done = {(v.outcome.trial.config, name) for v in state.verified for name in v.outcome.trial.workloads}
    wanted: dict[Config, tuple[str, ...]] = {}
    for config in choice.configs():
        outcome = next(o for o in state.finalists() if o.trial.config == config)
        runs = [r.workload for r in outcome.results if r.ok]
        picked = [p.workload for p in choice.picks if p.config == config]
        serves = runs if config == choice.general else picked
        if left := tuple(name for name in serves if (config, name) not in done):
            wanted[config] = left
    return tuple(wanted.items())


def timing_of(state: State, config: Config | None, workload: str) -> Result | None:
    """The verified result of a configuration at a workload."""
    outcomes = [v.outcome for v in state.verified if v.outcome.trial.config == config]
    found = [result for outcome in outcomes if (result := outcome.result(workload)) is not None]
    return found[-1] if found else None


def _medians(outcome: Outcome | None) -> dict[str, float]:
    if outcome is None:
        return {}
    return {r.workload: median(r.timing.ratios) for r in outcome.results if r.timing and r.timing.ratios}


def _claim(state: State, result: Result | None) -> Interval | None:
    """The speed-up by the paired measurements, where it may be claimed."""
    if result is None or result.timing is None or not result.timing.ratios:
        return None
    seed = state.started.settings.seed if state.started else 0
    speedup = median_interval(result.timing.ratios, seed_of(seed, "interval", result.workload))
    return speedup if speedup.low > CLAIM else None


def _stays(workload: str) -> Pick:
    return Pick(workload, None, Interval(1.0, 1.0, 1.0))
