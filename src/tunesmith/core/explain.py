"""What mattered: for every parameter of a winner, what other values would cost, and how that is known.

By preference from a measured neighbour, which differs in this parameter alone; else from a model of all that
was measured, where it is convincing; else nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.core.history import known, ratio
from tunesmith.core.space import Config, Param, Space
from tunesmith.core.surrogate import Surrogate

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
        return _importance(param) > math.log(self.noticed)


def explain(
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
    measured = {config: log for config, score in rows if (log := known(score)) is not None}
    failed = dict.fromkeys((config for config, _ in rows if config not in measured), "")
    failed.update((config, status) for config, status in (failures or {}).items() if config not in measured)
    facts = _Facts(winner, measured, failed, excluded)
    model = Surrogate.fit(space, measured, winner) if winner in measured else None
    params = [_param(param, facts, model) for param in space.params if len(param.values) > 1]
    params.sort(key=lambda p: -_importance(p))
    return Explanation(
        workload,
        winner.as_dict(),
        tuple(params),
        model.rows if model else 0,
        round(model.explained, 3) if model else None,
        max(NOTICED, ratio(CHANCE * noise)),
    )


@dataclass(frozen=True)
class _Facts:
    winner: Config
    measured: Mapping[Config, float]
    failed: Mapping[Config, str]
    excluded: Callable[[Config], str]


def _param(param: Param, facts: _Facts, model: Surrogate | None) -> ParamEffect:
    values = tuple(_value(param, value, facts, model) for value in param.values)
    told = [v for v in values if v.source in ("measured", "model")]
    most = max(told, key=_weight, default=None)
    own = facts.winner[param.name]
    if most is None:
        return ParamEffect(param.name, own, None, None, "unknown", values)
    return ParamEffect(param.name, own, most.slower, most.value, most.source, values)


def _value(param: Param, value: int, facts: _Facts, model: Surrogate | None) -> ValueEffect:
    winner, measured = facts.winner, facts.measured
    other = winner.replace(param.name, value)
    own = measured.get(winner)
    scores = [log for config, log in measured.items() if config[param.name] == value]
    best = ratio(own - max(scores)) if scores and own is not None else None
    tried = len(scores) + sum(config[param.name] == value for config in facts.failed)

    def is_known(
        source: Source, log: float | None = None, deviation: float = 0.0, why: str = ""
    ) -> ValueEffect:
        interval = None
        if log is not None and source == "model":
            reach = DEVIATIONS * deviation
            interval = (ratio(-log - reach), ratio(-log + reach))
        slower = None if log is None else ratio(-log)
        return ValueEffect(value, source, slower, interval, why, best, tried)

    if other == winner:
        return is_known("winner", 0.0)
    if own is not None and other in measured:
        return is_known("measured", measured[other] - own)
    if other in facts.failed:
        return is_known("failed", why=facts.failed[other])
    if constraint := facts.excluded(other):
        return is_known("excluded", why=constraint)
    if model is not None and scores:
        (estimate,) = model.differences([other])
        if estimate.deviation < min(CERTAIN * model.spread, PRECISE):
            return is_known("model", estimate.value, estimate.deviation)
    return is_known("unknown")


def _weight(effect: ValueEffect) -> float:
    """How much a value matters at least: of a model's range, the end that is nearer to no effect."""
    assert effect.slower is not None
    if effect.interval is None:
        return abs(math.log(effect.slower))
    low, high = (math.log(end) for end in effect.interval)
    return max(low, -high, 0.0)


def _importance(param: ParamEffect) -> float:
    return max((_weight(v) for v in param.others if v.slower is not None), default=-1.0)  # unknown: last
