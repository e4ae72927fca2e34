"""Who wins: scores during the search, finalists, the general configuration and the best per workload."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass

from tunesmith.core.digest import seed_of
from tunesmith.core.outcome import Outcome, Result
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.stats import Interval, geometric_mean, median, median_interval

CLAIM = 1.01  # a speed-up is claimed only where its interval lies above this
SPECIAL = 1.02  # a workload gets its own configuration only for at least this much over the general one
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
    """The original's time around each trial: the sentinels before and after it, averaged."""

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
        near = self._seconds[workload][max(0, after - 1) : after + 1]
        return math.prod(near) ** (1 / len(near))

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
    yardstick = Yardstick(state)
    return tuple(
        (o.trial.config, score(problem, yardstick.speedups(o)))
        for o in state.searched()
        if o.trial.config is not None
    )


def finalists(problem: Problem, state: State, count: int) -> tuple[Config, ...]:
    """Those worth a long look: the best in general, then the best of each workload."""
    yardstick = Yardstick(state)
    ranked = [(s, o) for o in state.searched() if (s := score(problem, yardstick.speedups(o))) is not None]
    ranked.sort(key=lambda pair: -pair[0])
    chosen: dict[Config, None] = {}
    _take(chosen, [o for _, o in ranked], count)
    for workload in problem.workloads:
        here = [(t, o) for _, o in ranked if (t := yardstick.speedups(o).get(workload.name)) is not None]
        here.sort(key=lambda pair: -pair[0])
        _take(chosen, [o for _, o in here], PER_WORKLOAD)
    return tuple(chosen)


def _take(chosen: dict[Config, None], outcomes: list[Outcome], count: int) -> None:
    """The first `count` distinct binaries: equal code under two names is one contender."""
    codes: set[str] = set()
    for outcome in outcomes:
        if len(codes) == count:
            return
        if outcome.code_digest not in codes and outcome.trial.config is not None:
            codes.add(outcome.code_digest)
            chosen.setdefault(outcome.trial.config)


def choose(problem: Problem, state: State) -> Choice:
    """The winners by the long alternating measurements, without those that failed verification."""
    barred = {v.outcome.trial.config for v in state.verified if any(not r.ok for r in v.outcome.results)}
    field = [o for o in state.finalists() if o.trial.config not in barred]
    ranked = [(s, o) for o in field if (s := score(problem, _medians(o))) is not None]
    general = max(ranked, key=lambda pair: pair[0])[1] if ranked else None
    picks = [_pick(state, w.name, field, general) for w in problem.workloads]
    if general is not None and all(pick.config is None for pick in picks):
        general = None
    return Choice(general.trial.config if general else None, tuple(picks))


def _pick(state: State, workload: str, field: list[Outcome], general: Outcome | None) -> Pick:
    """The general configuration, unless another is clearly better here; else the original."""
    best, to_beat = general, SPECIAL * _medians(general).get(workload, 1.0)
    for outcome in field:
        here = _medians(outcome).get(workload, 0.0)
        if here > to_beat:
            best, to_beat = outcome, here
    speedup = _speedup(state, best, workload)
    if best is None or speedup is None or speedup.low <= CLAIM:
        return _stays(workload)
    return Pick(workload, best.trial.config, speedup)


def verified_choice(problem: Problem, state: State) -> Choice:
    """The same winners with the speed-ups of the verification; the original stays where they do not hold."""
    choice = choose(problem, state)
    proven = {v.outcome.trial.config: v.outcome for v in state.verified}
    picks = []
    for pick in choice.picks:
        speedup = _speedup(state, proven.get(pick.config), pick.workload) if pick.config else None
        holds = speedup is not None and speedup.low > CLAIM
        picks.append(
            Pick(pick.workload, pick.config, speedup) if holds and speedup else _stays(pick.workload)
        )
    general = choice.general if any(p.config is not None for p in picks) else None
    return Choice(general if general in proven else None, tuple(picks))


def unverified(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """What still has to be verified: configurations with the workloads they are delivered for."""
    choice = choose(problem, state)
    done = {v.outcome.trial.config for v in state.verified}
    wanted: dict[Config, tuple[str, ...]] = {}
    for config in choice.configs():
        if config in done:
            continue
        outcome = next(o for o in state.finalists() if o.trial.config == config)
        runs = tuple(r.workload for r in outcome.results if r.ok)
        picked = tuple(p.workload for p in choice.picks if p.config == config)
        wanted[config] = runs if config == choice.general else picked
    return tuple(wanted.items())


def timing_of(state: State, config: Config, workload: str) -> Result | None:
    """The verified result of a configuration at a workload."""
    found = [v.outcome.result(workload) for v in state.verified if v.outcome.trial.config == config]
    return found[-1] if found else None


def _medians(outcome: Outcome | None) -> dict[str, float]:
    if outcome is None:
        return {}
    return {r.workload: median(r.timing.ratios) for r in outcome.results if r.timing and r.timing.ratios}


def _speedup(state: State, outcome: Outcome | None, workload: str) -> Interval | None:
    result = outcome.result(workload) if outcome else None
    if result is None or result.timing is None or not result.timing.ratios:
        return None
    seed = state.started.settings.seed if state.started else 0
    return median_interval(result.timing.ratios, seed_of(seed, "interval", workload))


def _stays(workload: str) -> Pick:
    return Pick(workload, None, Interval(1.0, 1.0, 1.0))
