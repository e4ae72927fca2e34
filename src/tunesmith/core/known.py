"""What a run knows of a template: scores of its configurations, and those worth trying first elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tunesmith.core.candidates import Row
from tunesmith.core.choose import verified_choice
from tunesmith.core.history import score_at
from tunesmith.core.ports import Tried
from tunesmith.core.problem import Problem
from tunesmith.core.racing import sound_scores
from tunesmith.core.space import Config
from tunesmith.core.state import State

FIRST = 8  # configurations of a run that are tried first elsewhere
RUNNERS_UP = 3  # of these, the best in general by short measurements
ROWS = 400  # of one run: its best half, and of the rest every so many


def rows_of(problem: Problem, state: State, candidate: str) -> list[Row]:
    """Every configuration that was tried, as that of a template without a name, and its log speed-up."""
    tried = sound_scores(problem, state)
    return [(_nameless(t.config), t.score) for t in tried if t.config.candidate == candidate]


def best_of(problem: Problem, state: State, candidate: str) -> tuple[Config, ...]:
    """What was delivered, the general one first; the best of each workload; the next in general."""
    tried = [t for t in sound_scores(problem, state) if t.config.candidate == candidate]
    delivered = verified_choice(problem, state).configs() if state.stopped else ()
    general = _ranked(tried, [t.score for t in tried])
    found = [config for config in delivered if config.candidate == candidate]
    found += general[:1]
    for place in range(len(problem.workloads)):
        found += _ranked(tried, [score_at(t, place) for t in tried])[:1]
    found += general[1:RUNNERS_UP]
    return tuple(dict.fromkeys(_nameless(config) for config in found))[:FIRST]


def thinned(rows: Sequence[Row], most: int = ROWS) -> Iterator[Row]:
    if len(rows) <= most:
        yield from rows
        return
    ranked = sorted(rows, key=lambda row: (row[1] is None, -(row[1] or 0.0)))
    yield from ranked[: most // 2]
    rest = ranked[most // 2 :]
    yield from rest[:: -(-len(rest) // (most // 2))]


def _ranked(tried: Sequence[Tried], scores: Sequence[float | None]) -> list[Config]:
    right = [(score, t.config) for t, score in zip(tried, scores, strict=True) if score is not None]
    return [config for _, config in sorted(right, key=lambda pair: -pair[0])]


def _nameless(config: Config) -> Config:
    return replace(config, candidate="")
