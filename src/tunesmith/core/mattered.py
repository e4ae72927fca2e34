"""What mattered in a run: how its search went, and an explanation for every configuration it delivers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tunesmith.core.candidates import TemplateOf
from tunesmith.core.choose import Choice
from tunesmith.core.device import Device
from tunesmith.core.explain import Explanation, Row, explain
from tunesmith.core.history import History, history, score_at
from tunesmith.core.outcome import Outcome
from tunesmith.core.problem import Problem, Workload
from tunesmith.core.racing import SOUND, sound_scores
from tunesmith.core.scores import noise
from tunesmith.core.space import Config
from tunesmith.core.space.hardware import hardware_constraints
from tunesmith.core.state import State
from tunesmith.core.template import Template


def history_of(problem: Problem, state: State) -> History:
    tried = [t for t in sound_scores(problem, state) if state.searched().count(t.config)]
    return history(tried, [w.name for w in problem.workloads])


def explanations(
    problem: Problem, template_of: TemplateOf, state: State, choice: Choice
) -> tuple[Explanation, ...]:
    """Of the general configuration, then of those that workloads have of their own, by their own times."""
    tried = sound_scores(problem, state)
    found: list[Explanation] = []
    if choice.general is not None:
        rows = [(t.config, t.score) for t in tried]
        found.append(_of(problem, template_of(choice.general), state, choice.general, rows, None))
    for place, (workload, pick) in enumerate(zip(problem.workloads, choice.picks, strict=True)):
        if pick.config is not None and pick.config != choice.general:
            rows = [(t.config, score_at(t, place)) for t in tried]
            found.append(_of(problem, template_of(pick.config), state, pick.config, rows, workload))
    return tuple(found)


def _of(
    problem: Problem,
    template: Template,
    state: State,
    winner: Config,
    rows: Sequence[Row],
    workload: Workload | None,
) -> Explanation:
    """Other templates have other parameters, and tell nothing of these."""
    where = (workload,) if workload else problem.workloads
    own = winner.candidate
    found = [*rows, *_twins(state, dict(rows))]
    return explain(
        template.space,
        winner,
        [row for row in found if row[0].candidate == own],
        {c: status for c, status in _failures(state, workload).items() if c.candidate == own},
        _excluded(template, state.device, where),
        workload.name if workload else "",
        noise(state),
    )


def _twins(state: State, scored: dict[Config, float | None]) -> list[Row]:
    """Those that were not measured because they are the same code as one that was, launched alike."""
    built = {s.config: s.what_runs for s in state.surveyed}
    known = {built[config]: score for config, score in scored.items() if config in built}
    same = [p.config for p in state.pruned if p.rule == "same_code" and built.get(p.config) in known]
    return [(config, known[built[config]]) for config in same]


def _failures(state: State, workload: Workload | None) -> dict[Config, str]:
    found = {s.config: str(s.status) for s in state.unable if s.config is not None}
    for outcome in (*state.searched(), *state.finalists(), *(v.outcome for v in state.verified)):
        if outcome.trial.config is not None and (status := _status(outcome, workload)):
            found[outcome.trial.config] = status
    return found


def _status(outcome: Outcome, workload: Workload | None) -> str:
    """Why there is no time; empty where there is one."""
    own = [r for r in outcome.results if workload is None or r.workload == workload.name]
    bad = [r for r in own if r.status not in SOUND] or [r for r in own if not r.ok]
    return str(bad[0].status) if bad else ""


def _excluded(template: Template, device: Device, workloads: Sequence[Workload]) -> Callable[[Config], str]:
    """The constraint that keeps a configuration out of the search at all of these workloads."""
    limits = hardware_constraints(template, device.limits)
    space = replace(template.space, constraints=template.space.constraints + limits)
    known = device.limits.names()

    def excluded(config: Config) -> str:
        broken = [space.violations(config, workload.as_dict(), known) for workload in workloads]
        return broken[0][0].constraint.name if broken and all(broken) else ""

    return excluded
