"""What steering does next, by the state alone: look at a kernel, move the focus, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.core.events import Steered
from tunesmith.core.ports import Tried
from tunesmith.core.problem import Problem
from tunesmith.core.scores import noise
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.steering import Steerable, doubt, focus_of, weighed, widened

PART = 1 / 3  # of the budget, after which the best so far is looked at,
SOONEST, USUALLY = 16, 48  # after so many outcomes at least; where there is no budget, after so many
CHANGED = math.log(1.1)  # if it is so much better than the original: else there is nothing new to see
NO_ANSWERS = "the template has no [answers]: nothing tells which configurations have which remedy"


@dataclass(frozen=True)
class ToProfile:
    config: Config | None  # None: the original
    workload: str
    seconds: float  # what it is known to take


def next_step(
    problem: Problem, state: State, offered: Steerable, tried: Sequence[Tried]
) -> ToProfile | Steered | None:
    """The original is looked at before anything is tried, the best so far once, later on. What the gate
    tried before the search began does not count."""
    if not state.settings.steer:
        return None
    wanted = _to_profile(problem, state, offered, tried)
    if wanted is not None:
        return wanted
    if len(state.profiled) > max((steered.profiled for steered in state.steered), default=0):
        return _decided(problem, state, offered, tried)
    if state.focus is None:
        return None
    before = len(tried) - (len(state.searched()) - state.steered_at[-1])
    found = doubt(state.focus, tried, noise(state), before)
    if found is None:
        return None
    return Steered(widened(state.focus, found, offered), found.reason, dropped=tuple(sorted(found.remedies)))


def _to_profile(
    problem: Problem, state: State, offered: Steerable, tried: Sequence[Tried]
) -> ToProfile | None:
    if not state.asked:
        return missing(problem, state, None)
    # From before there was steering; or nothing would follow, and what is under way need not be waited for.
    if not state.profiled or not offered.answers:
        return None
    subject = state.profiled[-1].config
    if subject is None:
        subject = _changed(state, tried)
    return missing(problem, state, subject) if subject is not None else None


def _changed(state: State, tried: Sequence[Tried]) -> Config | None:
    """The best so far, when it is time to look at it and there is something new to see."""
    evals = state.settings.evals
    due = USUALLY if evals is None else max(SOONEST, evals * PART)
    right = [(t.score, t.config) for t in tried if t.score is not None]
    if len(tried) - state.gate_tried < due or not right:
        return None
    score, config = max(right, key=lambda pair: pair[0])
    return config if score >= CHANGED else None


def missing(problem: Problem, state: State, subject: Config | None) -> ToProfile | None:
    done = {p.workload for p in state.profiled if p.config == subject}
    known = _seconds(state, subject)
    for workload in problem.workloads:
        if workload.name in known and workload.name not in done:
            return ToProfile(subject, workload.name, known[workload.name])
    return None


def _seconds(state: State, subject: Config | None) -> dict[str, float]:
    assert state.baseline is not None, "the original is timed before anything is searched"
    outcomes = state.searched().of(subject) if subject else ()
    found = outcomes[0] if outcomes else state.baseline.outcome
    return {r.workload: r.timing.seconds for r in found.results if r.timing is not None}


def _decided(problem: Problem, state: State, offered: Steerable, tried: Sequence[Tried]) -> Steered:
    """What follows from the last kernel that was looked at."""
    subject, count = state.profiled[-1].config, len(state.profiled)
    looked = [p for p in state.profiled if p.config == subject]
    diagnoses = {p.workload: p.diagnosis for p in looked if p.diagnosis is not None}
    whose = "the original" if subject is None else f"the best so far, {subject},"
    if not offered.answers:
        return Steered(None, NO_ANSWERS, count)
    if not diagnoses:
        why = "; ".join(dict.fromkeys(note for p in looked for note in p.notes)) or "nothing is known of it"
        return Steered(state.focus, f"{whose} could not be profiled: {why}", count)
    weights = {w.name: w.weight for w in problem.workloads}
    dropped = frozenset(remedy for steered in state.steered for remedy in steered.dropped)
    base = state.focus
    focus = focus_of(diagnoses, weights, offered, base=base, dropped=dropped, subject=subject)
    # Much may have been tried by now that answers what this one suffers from.
    found = doubt(focus, tried, noise(state), len(tried)) if focus is not None else None
    if focus is not None and found is not None:
        focus = widened(focus, found, offered)
        if focus is None or focus.texts == (base.texts if base else ()):
            why = f"{whose} shows what has been answered: {found.reason}"
            return Steered(focus, why, count, tuple(sorted(found.remedies)))
    if focus == base:
        said = [f"{f.kind.value} ({score:.2f})" for f, _, score in weighed(diagnoses, weights)]
        findings = f"shows {', '.join(said)}" if said else "shows no fault"
        return Steered(base, f"{whose} {findings}: nothing more that the template answers", count)
    old = base.conditions if base else ()
    new = [c for c in (focus.conditions if focus else ()) if c not in old]
    reasons = [f"{c.finding}, {c.evidence}: {c.remedy}" for c in new]
    dropped_now = tuple(sorted(found.remedies)) if found else ()
    return Steered(focus, f"{whose} shows {'; '.join(reasons)}", count, dropped_now)
