"""Effects of parameters: for each one of a winner, what other values would cost, and how that is known.

By preference from a measured neighbour, which differs in this parameter alone; else from a model of all that
was measured, where it is convincing; else nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Template, hardware_constraints
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.outcome import Outcome
from tunesmith.run.race import SOUND, Winners, sound_scores
from tunesmith.run.rounds import History, finite_log, score_at, search_history, speedup_from_log
from tunesmith.run.scores import measurement_noise
from tunesmith.run.state import State
from tunesmith.space import features as gp
from tunesmith.space.configset import Config, Param
from tunesmith.space.space import Space

Source = Literal["winner", "measured", "model", "failed", "excluded", "unknown"]
Row = tuple[Config, float | None]  # a configuration and its log speed-up; None: it failed

NOTICED = 1.02  # an effect below that is none, however quiet the clock
CHANCE = 3  # times the noise: so far apart are two short measurements by chance alone, at most
CERTAIN = 0.5  # deviation of an estimate, in those of all measurements: above that a model knows nothing,
PRECISE = 0.25  # log: and above that nothing worth telling
DEVIATIONS = 2  # to either side of an estimate


@dataclass(frozen=True)
class ValueEffect:
    """The winner with another value of one parameter; times in units of the winner's, below 1 is faster."""

    value: int
    source: Source
    slower: float | None = None
    interval: tuple[float, float] | None = None  # of a model's estimate: two deviations to either side
    why: str = ""  # it failed, or is excluded: the status, or the constraint
    best: float | None = None  # of all tried with this value, whatever else they change
    tried: int = 0  # configurations with this value


@dataclass(frozen=True)
class ParamEffect:
    name: str
    value: int  # the winner's
    effect: float | None  # the time with the value that matters most; None: not known
    with_value: int | None  # which is that
    source: Source  # how it is known
    values: tuple[ValueEffect, ...]  # in the order of the domain

    @property
    def others(self) -> tuple[ValueEffect, ...]:
        return tuple(v for v in self.values if v.source != "winner")


@dataclass(frozen=True)
class Explanation:
    workload: str  # empty: of the general configuration
    config: dict[str, int]
    params: tuple[ParamEffect, ...]  # those with a choice, what matters most first
    modelled: int = 0  # configurations behind the model; 0: there is none
    explained: float | None = None  # share of the variance that it tells in advance
    noticed: float = NOTICED  # a ratio closer to 1 may be chance

    def is_clear(self, param: ParamEffect) -> bool:
        """Whether there is an effect to tell: noticed by measurements, or beyond a model's doubt."""
        return _param_importance(param) > math.log(self.noticed)


def explain_params(
    space: Space,
    winner: Config,
    rows: Sequence[Row],
    failures: Mapping[Config, str] | None = None,
    excluded: Callable[[Config], str] = lambda config: "",
    workload: str = "",
    noise: float = 0.0,
) -> Explanation:
    """`failures` has the status of those that failed; `excluded` tells the constraint that forbids one;
    `noise` is how far apart two short measurements of the same kernel usually are."""
    measured = {config: log for config, score in rows if (log := finite_log(score)) is not None}
    failed = dict.fromkeys((config for config, _ in rows if config not in measured), "")
    failed.update((config, status) for config, status in (failures or {}).items() if config not in measured)
    facts = _Facts(winner, measured, failed, excluded)
    model = Surrogate.fit(space, measured, winner) if winner in measured else None
    params = [_param_effect(param, facts, model) for param in space.params if len(param.values) > 1]
    params.sort(key=lambda p: -_param_importance(p))
    modelled: tuple[int, float | None] = (model.rows, round(model.explained, 3)) if model else (0, None)
    noticed = max(NOTICED, speedup_from_log(CHANCE * noise))
    return Explanation(workload, winner.as_dict(), tuple(params), *modelled, noticed)


@dataclass(frozen=True)
class _Facts:
    winner: Config
    measured: Mapping[Config, float]
    failed: Mapping[Config, str]
    excluded: Callable[[Config], str]


def _param_effect(param: Param, facts: _Facts, model: Surrogate | None) -> ParamEffect:
    values = tuple(_value_effect(param, value, facts, model) for value in param.values)
    known = [v for v in values if v.source in ("measured", "model")]
    most = max(known, key=_effect_weight, default=None)
    won = facts.winner[param.name]
    if most is None:
        return ParamEffect(param.name, won, None, None, "unknown", values)
    return ParamEffect(param.name, won, most.slower, most.value, most.source, values)


def _value_effect(param: Param, value: int, facts: _Facts, model: Surrogate | None) -> ValueEffect:
    winner, measured = facts.winner, facts.measured
    other = winner.replace(param.name, value)
    best_score = measured.get(winner)
    scores = [log for config, log in measured.items() if config[param.name] == value]
    best = speedup_from_log(best_score - max(scores)) if scores and best_score is not None else None
    tried = len(scores) + sum(config[param.name] == value for config in facts.failed)

    def effect(source: Source, log: float | None = None, why: str = "") -> ValueEffect:
        slower = None if log is None else speedup_from_log(-log)
        return ValueEffect(value, source, slower, None, why, best, tried)

    if other == winner:
        return effect("winner", 0.0)
    if best_score is not None and other in measured:
        return effect("measured", measured[other] - best_score)
    if other in facts.failed:
        return effect("failed", why=facts.failed[other])
    if constraint := facts.excluded(other):
        return effect("excluded", why=constraint)
    if model is not None and scores:
        log, deviation = model.difference(other)
        if deviation < min(CERTAIN * model.spread, PRECISE):
            reach = DEVIATIONS * deviation
            interval = (speedup_from_log(-log - reach), speedup_from_log(-log + reach))
            return replace(effect("model", log), interval=interval)
    return effect("unknown")


def _effect_weight(effect: ValueEffect) -> float:
    """How much a value matters at least: of a model's range, the end that is nearer to no effect."""
    assert effect.slower is not None
    if effect.interval is None:
        return abs(math.log(effect.slower))
    low, high = (math.log(end) for end in effect.interval)
    return max(low, -high, 0.0)


def _param_importance(param: ParamEffect) -> float:
    known = (_effect_weight(v) for v in param.others if v.slower is not None)
    return max(known, default=-1.0)  # unknown: last


def history_of(problem: Problem, state: State) -> History:
    tried = [t for t in sound_scores(problem, state) if state.searched.count(t.config)]
    starts: dict[str, int] = {}
    for number, one in enumerate(tried, 1):
        starts.setdefault(one.config.candidate, number)
    gate = {o.trial.config for o in state.outcomes if o.trial.purpose == "gate"}
    return replace(
        search_history(tried, [w.name for w in problem.workloads]),
        starts=tuple((number, candidate) for candidate, number in starts.items() if candidate),
        gated=tuple(number for number, one in enumerate(tried, 1) if one.config in gate),
    )


def explain_winners(
    problem: Problem, template_of: TemplateOf, state: State, choice: Winners
) -> tuple[Explanation, ...]:
    """Of the general configuration, then of those that workloads have of their own, by their own times."""
    tried = sound_scores(problem, state)
    found: list[Explanation] = []
    if choice.general is not None:
        rows = [(t.config, t.score) for t in tried]
        found.append(_explain_winner(problem, template_of(choice.general), state, choice.general, rows, None))
    for place, (workload, pick) in enumerate(zip(problem.workloads, choice.picks, strict=True)):
        if pick.config is not None and pick.config != choice.general:
            rows = [(t.config, score_at(t, place)) for t in tried]
            template = template_of(pick.config)
            found.append(_explain_winner(problem, template, state, pick.config, rows, workload))
    return tuple(found)


def _explain_winner(
    problem: Problem,
    template: Template,
    state: State,
    winner: Config,
    rows: Sequence[Row],
    workload: Workload | None,
) -> Explanation:
    """Other templates have other parameters, and tell nothing of these."""
    where = (workload,) if workload else problem.workloads
    candidate = winner.candidate
    found = [*rows, *_twin_rows(state, dict(rows))]
    return explain_params(
        template.space,
        winner,
        [row for row in found if row[0].candidate == candidate],
        {c: status for c, status in _failed_configs(state, workload).items() if c.candidate == candidate},
        _exclusion_lookup(template, state.device, where),
        workload.name if workload else "",
        measurement_noise(state),
    )


def _twin_rows(state: State, scored: dict[Config, float | None]) -> list[Row]:
    """Those that were not measured because they are the same code as one that was, launched alike."""
    built = {s.config: s.what_runs for s in state.surveyed}
    known = {built[config]: score for config, score in scored.items() if config in built}
    same = [p.config for p in state.pruned if p.rule == "same_code" and built.get(p.config) in known]
    return [(config, known[built[config]]) for config in same]


def _failed_configs(state: State, workload: Workload | None) -> dict[Config, str]:
    found = {s.config: str(s.status) for s in state.unable if s.config is not None}
    for outcome in (*state.searched, *state.finalists(), *(v.outcome for v in state.verified)):
        if outcome.trial.config is not None and (status := _failure_status(outcome, workload)):
            found[outcome.trial.config] = status
    return found


def _failure_status(outcome: Outcome, workload: Workload | None) -> str:
    """Why there is no time; empty where there is one."""
    results = [r for r in outcome.results if workload is None or r.workload == workload.name]
    bad = [r for r in results if r.status not in SOUND] or [r for r in results if not r.ok]
    return str(bad[0].status) if bad else ""


def _exclusion_lookup(
    template: Template, device: Device, workloads: Sequence[Workload]
) -> Callable[[Config], str]:
    """The constraint that keeps a configuration out of the search at all of these workloads."""
    limits = hardware_constraints(template, device.limits)
    space = replace(template.space, constraints=template.space.constraints + limits)
    known = device.limits.names()

    def excluded(config: Config) -> str:
        broken = [space.broken(config, workload.as_dict(), known) for workload in workloads]
        return broken[0][0].name if broken and all(broken) else ""

    return excluded


Array = NDArray[np.float64]

MAX = 96  # configurations it is fitted to: those nearest to the one in question
LEAST = 32  # below that there is nothing to learn from
FREE = 16  # so many must be left when each parameter has taken two to fit its lengths
CONVINCING = 0.5  # of the variance it must tell in advance, each measurement left out in turn


@dataclass(frozen=True)
class Surrogate:
    rows: int
    explained: float  # share of the variance, each measurement left out in turn
    spread: float  # standard deviation of what was measured
    _space: Space
    _settings: gp.Hyperparameters
    _at: gp.Positions
    _inverse: Array
    _pull: Array
    _best: float  # what was measured of the centre, over the mean
    _scale: float  # variance, for each 1 of the model's

    @classmethod
    def fit(cls, space: Space, measured: Mapping[Config, float], centre: Config) -> Surrogate | None:
        """None where there is too little to learn from, or where what was learnt does not hold.

        The centre is among those measured.
        """
        encoding = gp.Encoding.of(space)
        # The nearest, and not the best: a choice by what was measured would bend the model.
        same = set(centre.items)
        near = sorted(measured, key=lambda config: -len(same.intersection(config.items)))[:MAX]
        free = len(near) - 2 * len(encoding.params)
        if len(near) < LEAST or free < FREE:
            return None
        y = np.array([measured[config] for config in near])
        mean, spread = y.mean(), y.std()
        if not np.isfinite(spread) or spread <= 1e-9 * (1 + abs(mean)):
            return None
        z = (y - mean) / spread
        at = _config_positions(space, near)
        settings = gp.fit_hyperparameters(encoding, at, z[:, None])
        kernel = gp.covariance_matrix(encoding, settings, at, at)
        kernel.flat[:: len(kernel) + 1] += settings.noise + gp.JITTER
        inverse = np.asarray(np.linalg.inv(kernel), np.float64)
        pull = inverse @ z
        left_out = pull / np.diag(inverse)  # the errors, each measurement foretold by the others
        explained = float(1 - (left_out @ left_out) / (z @ z))
        if not explained >= CONVINCING:
            return None
        # Where the errors are larger than they should be, so are the deviations.
        scale = float(z @ pull) / free
        surprise = float(np.mean(left_out**2 * np.diag(inverse))) / scale
        scale *= max(1.0, surprise) * spread**2
        best, model = float(measured[centre] - mean), (settings, at, inverse, pull * spread)
        return cls(len(y), explained, float(spread), space, *model, best, scale)

    def difference(self, config: Config) -> tuple[float, float]:
        """How much better it would be measured than the centre was, and the standard deviation of that."""
        at, settings = _config_positions(self._space, [config]), self._settings
        (seen,) = gp.covariance_matrix(gp.Encoding.of(self._space), settings, at, self._at)
        left = settings.variance - seen @ self._inverse @ seen + settings.noise
        return float(seen @ self._pull - self._best), math.sqrt(self._scale * max(float(left), 0.0))


def _config_positions(space: Space, configs: Sequence[Config]) -> gp.Positions:
    rows = [[param.positions[config[param.name]] for param in space.params] for config in configs]
    return np.array(rows, dtype=np.uint32).reshape(len(configs), len(space.params))
