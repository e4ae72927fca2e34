"""Steering where a run has several templates: each search by itself, and a look at the best between them."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.problem import Problem
from tunesmith.core.profile.findings import Diagnosis
from tunesmith.core.racing import sound_scores
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.steering_steps import ToProfile, missing
from tunesmith.core.strategy import is_chain, last_right


def of_search(state: State, candidate: str) -> State:
    """The run as if it had this candidate alone: what steers its search depends on nothing else."""
    decision = state.under_way
    assert state.started is not None
    assert decision is not None, "nothing is under way"
    settings = state.started.settings
    if decision.evals is not None:
        settings = replace(settings, evals=decision.evals)
    own = replace(
        state,
        started=replace(state.started, settings=settings),
        profiled=tuple(p for p in state.profiled if _is_of(p.config, candidate)),
        asked=state.asked.where(lambda t: _is_of(t.config, candidate)),
        tried=state.tried.where(lambda o: _is_of(o.trial.config, candidate)),
        steered=state.steered[state.steered_before :],
    )
    others = len(state.searched()) - len(own.searched())
    counts = tuple(count - others for count in state.steered_at[state.steered_before :])
    return replace(own, steered_at=counts, steered_before=0)


def to_look_at(problem: Problem, state: State) -> ToProfile | None:
    """What has to be profiled before it is decided what comes next: what is in view, or else the original."""
    return missing(problem, state, in_view(problem, state))


def diagnoses(problem: Problem, state: State) -> dict[str, Diagnosis]:
    """Of the kernel in view, by workload, as far as they are known; before that of the original."""
    seen = in_view(problem, state)
    own = [p for p in state.profiled if p.config == seen] or [p for p in state.profiled if p.config is None]
    return {p.workload: p.diagnosis for p in own if p.diagnosis is not None}


def in_view(problem: Problem, state: State) -> Config | None:
    """The kernel by which the next round is decided: the best so far, in a chain its last that is right."""
    if not is_chain(state):
        return best_config(problem, state)
    last = last_right(state)
    return Config((), last.id) if last is not None else None


def best_config(problem: Problem, state: State) -> Config | None:
    """By the short measurements; None: the original is still the best."""
    scored = [
        (t.score, t.config) for t in sound_scores(problem, state) if t.score is not None and t.score > 0
    ]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def _is_of(config: Config | None, candidate: str) -> bool:
    return config is None or config.candidate == candidate
