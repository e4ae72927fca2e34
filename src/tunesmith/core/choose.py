"""Who wins: the general configuration and the best of each workload, by the race of the finalists."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.digest import seed_of
from tunesmith.core.outcome import Result
from tunesmith.core.problem import Problem
from tunesmith.core.racing import failed_verification, general_entries, medians, merged
from tunesmith.core.scores import score
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.stats import Interval, median_interval

Finalists = dict[Config, dict[str, Result]]

CLAIM = 1.01  # a speed-up is claimed only where its interval lies above this
SPECIAL = 1.01  # a workload gets its own configuration only for at least this much over the general one


@dataclass(frozen=True)
class Pick:
    """What serves one workload; `config` None: the original stays."""

    workload: str
    config: Config | None
    speedup: Interval


@dataclass(frozen=True)
class Winners:
    general: Config | None
    picks: tuple[Pick, ...]

    def configs(self) -> tuple[Config, ...]:
        """Every configuration delivered, the general one first."""
        picked = [self.general, *(pick.config for pick in self.picks)]
        return tuple(dict.fromkeys(config for config in picked if config is not None))


def choose(problem: Problem, state: State) -> Winners:
    """The winners by the alternating measurements, without those that failed verification."""
    barred = failed_verification(state)
    field = {config: results for config, results in merged(state).items() if config not in barred}
    # The general one also serves sizes nobody timed: one that failed anywhere inside its domain is no such.
    sound = {
        config: found
        for config in general_entries(problem, state)
        if config in field and all(r.ok for r in field[config].values()) and (found := medians(field[config]))
    }
    ranked = {config: s for config, found in sound.items() if (s := score(problem, found)) is not None}
    general = max(ranked, key=lambda config: ranked[config]) if ranked else None
    picks = [_pick(state, w.name, field, general) for w in problem.workloads]
    gains = general is not None and any(_claim(state, result) for result in field[general].values())
    return Winners(general if gains else None, tuple(picks))


def _pick(state: State, workload: str, field: Finalists, general: Config | None) -> Pick:
    """The general configuration, unless another is clearly better here; else the original."""
    times = {config: medians(results).get(workload, 0.0) for config, results in field.items()}
    best, to_beat = general, SPECIAL * (times[general] or 1.0 if general else 1.0)
    for config, here in times.items():
        if here > to_beat:
            best, to_beat = config, here
    speedup = _claim(state, field[best].get(workload)) if best else None
    return Pick(workload, best, speedup) if best and speedup else _stays(workload)


def verified_choice(problem: Problem, state: State) -> Winners:
    """The same winners with the speed-ups of the verification; the original stays where they do not hold."""
    choice = choose(problem, state)
    picks = []
    for pick in choice.picks:
        speedup = _claim(state, timing_of(state, pick.config, pick.workload))
        picks.append(Pick(pick.workload, pick.config, speedup) if speedup else _stays(pick.workload))
    gains = any(_claim(state, timing_of(state, choice.general, w.name)) for w in problem.workloads)
    return Winners(choice.general if gains else None, tuple(picks))


def unverified(problem: Problem, state: State) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    """What still has to be verified: configurations with the workloads they are delivered for."""
    choice, raced = choose(problem, state), merged(state)
    done = {(v.outcome.trial.config, name) for v in state.verified for name in v.outcome.trial.workloads}
    wanted: dict[Config, tuple[str, ...]] = {}
    for config in choice.configs():
        runs = [name for name, result in raced[config].items() if result.ok]
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


def _claim(state: State, result: Result | None) -> Interval | None:
    """The speed-up by the paired measurements, where it may be claimed."""
    if result is None or result.timing is None or not result.timing.ratios:
        return None
    seed = state.started.settings.seed if state.started else 0
    speedup = median_interval(result.timing.ratios, seed_of(seed, "interval", result.workload))
    return speedup if speedup.low > CLAIM else None


def _stays(workload: str) -> Pick:
    return Pick(workload, None, Interval(1.0, 1.0, 1.0))
