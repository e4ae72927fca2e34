"""The stages of a run without its device: builds are surveyed and rehearsed on the host, nothing is timed."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.base.errors import BadInput
from tunesmith.base.text import seed_of
from tunesmith.run import events
from tunesmith.run.actions import Action, Experiment, OrderBuild, World, Write
from tunesmith.run.candidates import GATE_SECONDS, Faulty, HostGate, NextRehearsal, Passed
from tunesmith.run.outcome import Rehearsed
from tunesmith.run.ports import SearchView
from tunesmith.run.report import gate_sentence
from tunesmith.run.state import Candidate, State
from tunesmith.run.talk import is_by_program, may_mend_draft
from tunesmith.space.configset import Config


def survey_original(state: State, world: World) -> Action | None:
    """What the compiler says of it is told to whoever plans."""
    if world.templates.given is not None or state.surveyed:
        return None
    return Experiment(lambda lab: lab.built()) if world.surveying else OrderBuild(None)


def rehearse_original(state: State, world: World) -> Action | None:
    if any(one.config is None for one in state.rehearsed):
        return None
    return world.rehearsal(None, None)


def rehearse_template(state: State, world: World) -> Action | None:
    """What is given by one configuration, a draft by all that the gate on the device
    tries, where it begins from nothing. What the host finds wrong is turned away."""
    if (given := world.templates.given) is not None:
        candidate = Candidate("", given.digest)
        if _candidate_rehearsals(state, candidate):
            return None
        configs = world.templates.configs(candidate)
        first = given.default if given.default in configs else configs[0]
        return world.rehearsal(candidate, NextRehearsal(first, True, 0))
    draft = state.draft
    if draft is None or (gate := _host_gate(state, draft, world)) is None:
        return None
    step = _step_of_host_gate(gate, state, draft)
    if isinstance(step, NextRehearsal):
        return world.rehearsal(draft, step)
    if isinstance(step, Passed):
        return None
    is_heard = not is_by_program(state, draft) or bool(step.without)
    again = may_mend_draft(state, state.settings, draft) and is_heard
    return Write(events.Rejected(draft.id, step.reason, (), step.without, again))


def _host_gate(state: State, draft: Candidate, world: World) -> HostGate | None:
    """None: nothing of it may be built."""
    if draft.id not in world.gates:
        try:
            world.gates[draft.id] = _make_host_gate(state, draft, world)
        except BadInput:
            world.gates[draft.id] = None  # the gate on the device will say so
    return world.gates[draft.id]


def _make_host_gate(state: State, draft: Candidate, world: World) -> HostGate | None:
    if draft.drafted is None:
        return None
    template, limit = world.templates.of(draft), state.settings.seconds
    # Nothing that a model wrote is built before it is vetted.
    if draft.drafted.author and world.talk.draft_fault(state, draft, template) is not None:
        return None
    configs = world.templates.configs(draft)
    seconds = GATE_SECONDS if limit is None else min(GATE_SECONDS, limit)
    return HostGate.of(template, configs, seconds) if len(configs) else None


def _candidate_rehearsals(state: State, candidate: Candidate) -> list[Rehearsed]:
    """What the host has said of it."""
    return [one for one in state.rehearsed if one.config and one.config.candidate == candidate.id]


def _step_of_host_gate(gate: HostGate, state: State, draft: Candidate) -> NextRehearsal | Faulty | Passed:
    may_mend = may_mend_draft(state, state.settings, draft)
    return gate.step(_candidate_rehearsals(state, draft), may_mend, not is_by_program(state, draft))


def end_of_host_gate(state: State, world: World) -> str:
    """What was tried of a draft, once there is no more to try; else empty."""
    draft = state.draft
    gate = _host_gate(state, draft, world) if draft is not None else None
    if draft is None or gate is None or isinstance(_step_of_host_gate(gate, state, draft), NextRehearsal):
        return ""
    return gate_sentence(_candidate_rehearsals(state, draft))


def survey_configs(state: State, world: World) -> Action | None:
    """Builders have as many configurations as they can use, as far as the budget goes."""
    if len(world.surveying) < state.settings.ahead:
        looked_at = [*(one.config for one in state.surveyed), *world.surveying]
        if not looked_at:
            return OrderBuild(None)
        for config in _next_to_survey(state, world, tuple(c for c in looked_at if c is not None)):
            return OrderBuild(config)
    return Experiment(lambda lab: lab.built()) if world.surveying else None


def _next_to_survey(state: State, world: World, seen: tuple[Config, ...]) -> Sequence[Config]:
    """At most one of the template that is given, or of the first draft that may be built."""
    if (given := world.templates.given) is not None:
        candidate = Candidate("", given.digest)
    elif (draft := state.draft) is not None and _host_gate(state, draft, world) is not None:
        candidate = draft
    else:
        return ()
    settings = state.settings
    checked = sum(one.seconds for one in state.rehearsed)  # which has a limit of its own
    if settings.seconds is not None and state.elapsed - state.attached_at - checked > settings.seconds:
        return ()
    template = world.templates.of(candidate)
    view = SearchView(
        space=template.space,
        configs=world.templates.configs(candidate),
        default=template.default,
        tried=(),
        in_flight=seen,
        budget_left=None if settings.evals is None else max(0, settings.evals - len(seen)),
        seed=seed_of(settings.seed, "survey", len(seen)),
    )
    return world.searcher.ask(view, 1).configs


STAGES_WITHOUT_DEVICE = {
    "survey of the original": survey_original,
    "rehearsal of the original": rehearse_original,
    "rehearsal": rehearse_template,
    "survey": survey_configs,
}
