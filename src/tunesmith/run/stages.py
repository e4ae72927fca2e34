"""The stages of a run, in their order: the first with an answer says what is done next.

Each answer follows from the state. A stage that needs what the lab lacks is passed over; when no other has an
answer either, the run is blocked. So without the device a run is planned and written, its builds are surveyed
and rehearsed on the host, and what is to be timed waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from tunesmith.base.errors import BadInput
from tunesmith.base.text import seed_of
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run import budget, devices, events
from tunesmith.run.candidates import (
    GATE_SECONDS,
    Checks,
    Faulty,
    HostGate,
    NextRehearsal,
    Passed,
    Templates,
    examine_draft,
    gate_sentence,
)
from tunesmith.run.delivery import assemble_delivery, baked_probes, baked_services, builds_known, next_calls
from tunesmith.run.outcome import Effort, Purpose, Rehearsed, Trial
from tunesmith.run.ports import Inbox, Lab, Power, Searcher, SearchView
from tunesmith.run.prior import Answers, PriorStep, ToProfile, to_look_at
from tunesmith.run.race import plan_heat, timing_of, unverified_winners, verified_choice
from tunesmith.run.rounds import to_check
from tunesmith.run.scores import OneSearch, prune_pool, score_configs
from tunesmith.run.state import Candidate, State
from tunesmith.run.talk import (
    STOPPED,
    ModelDialogue,
    has_unsearched,
    is_by_program,
    is_stopping,
    may_mend_draft,
    not_taken,
    pending_hints,
    taken_up,
)
from tunesmith.space.configset import Config

SENTINEL_EVERY = 16  # trials between two looks at the original
CHOICE = 4  # built ones to choose from, as long as more are being built


@dataclass(frozen=True)
class Write:
    """What follows from the state by itself."""

    event: events.Event


@dataclass(frozen=True)
class OrderBuild:
    """A build of which the journal says nothing until it is there: without a device nothing waits for it."""

    config: Config | None


@dataclass(frozen=True)
class Collect:
    """The outcome of a trial that is under way."""


@dataclass(frozen=True)
class Experiment:
    """An experiment that is over when the lab returns; what came of it is written down."""

    perform: Callable[[Lab], events.Event | None]
    configs: tuple[Config, ...] = ()  # whose templates the lab knows by then
    note: str = ""


@dataclass(frozen=True)
class Blocked:
    """Nothing more can be done here, and the run has not stopped."""

    reason: str


Action = Write | OrderBuild | Collect | Experiment | Blocked
Rehearse = Callable[[Template | None, NextRehearsal | None], Rehearsed | None]


@dataclass
class World:
    """What stages look at beside the state. Of what it remembers nothing matters: a process that goes on
    finds it out again."""

    problem: Problem
    templates: Templates
    lab: Lab
    searcher: Searcher  # one that needs no scores where nothing is timed
    talk: ModelDialogue
    inbox: Inbox | None = None
    heeds_words: bool = True  # whether the author can make use of what is said of its draft
    rehearse: Rehearse = lambda _template, _wanted: None  # on the host; None: it has nothing to say
    surveying: list[Config | None] = field(default_factory=list, init=False)  # in the order they were asked
    unrehearsed: set[Config | None] = field(default_factory=set, init=False)  # the host said nothing of them
    gates: dict[str, HostGate | None] = field(default_factory=dict, init=False)  # on the host, of drafts

    def search_of(self, state: State) -> OneSearch:
        return OneSearch(self.problem, state, self.templates)

    def rehearsal(self, candidate: Candidate | None, wanted: NextRehearsal | None) -> Experiment | None:
        """Of the original, or of a template by one configuration, unless the host has nothing to say."""
        config = None if wanted is None else wanted.config
        if config in self.unrehearsed:
            return None

        def perform(_lab: Lab) -> Rehearsed | None:
            template = None if candidate is None else self.templates.of(candidate)
            if (found := self.rehearse(template, wanted)) is None:
                self.unrehearsed.add(config)
            return found

        return Experiment(perform)


class Stage(NamedTuple):
    name: str
    next: Callable[[State, World], Action | None]  # None: it has nothing to do
    needs: tuple[Power, ...] = ()
    is_offline: bool = False  # only where the device is absent


def _take_instruction(state: State, world: World) -> Action | None:
    """Each becomes an event; what follows from it is decided by the state."""
    waiting = world.inbox.waiting() if world.inbox is not None else ()
    if not (waiting or state.instructed):
        return None
    for given in not_taken(waiting, state, world.inbox):
        event = taken_up(given, state, world.search_of(state) if state.searching else None)
        if event is not None:
            return Write(event)
    if not is_stopping(state):
        return None
    return Collect() if state.in_flight else Blocked(STOPPED)


def _look_after_devices(state: State, world: World) -> Action | None:
    """Of several: who is gone, has joined or is better left out, and who is to time the original."""
    if not state.devices:
        return None
    event = world.lab.changed() or devices.next_event(world.problem, state)
    return None if event is None else Write(event)


def _talk_to_models(state: State, world: World) -> Action | None:
    event = world.talk.next_event(state)
    return None if event is None else Write(event)


def _time_original(state: State, _world: World) -> Action | None:
    return Experiment(lambda lab: lab.baseline()) if state.baseline is None else None


def _add_cases(state: State, world: World) -> Action | None:
    if world.talk.tester is None or state.extended is not None:
        return None
    found = world.talk.cases(state)
    if not isinstance(found, events.Extended):
        return Write(found)
    wanted = found
    return Experiment(lambda lab: lab.extend(wanted))


def _admit_given(state: State, world: World) -> Action | None:
    """Nobody drafted it, so there is no author to send it back to, and no gate."""
    if world.templates.given is None or state.admitted is not None:
        return None
    return Write(world.templates.admitted(Candidate("", world.templates.given.digest)))


def _admit_beside(state: State, world: World) -> Action | None:
    known = {candidate.id for candidate in state.candidates}
    for name, digest in world.templates.beside.items():
        if name not in known:
            return Write(world.templates.admitted(Candidate(name, digest)))
    return None


def _collect_rest(state: State, _world: World) -> Action | None:
    """Only a search goes on beside what is measured."""
    return Collect() if state.in_flight and not state.searching else None


def _is_between_rounds(state: State, world: World) -> bool:
    """Whether a further template may be written: what is known of the best so far tells which."""
    if state.under_way is not None or world.templates.given is not None or has_unsearched(state):
        return False
    return world.talk.used_up(state) is None


def _check_best(state: State, world: World) -> Action | None:
    if not _is_between_rounds(state, world) or (unchecked := to_check(world.problem, state)) is None:
        return None
    config, workloads = unchecked
    return _ask_trials(state, world, [config], "long", "finalist", [workloads])


def _diagnose_best(state: State, world: World) -> Action | None:
    if not _is_between_rounds(state, world) or (wanted := to_look_at(world.problem, state)) is None:
        return None
    return _profile_kernel(wanted)


def _decide_next(state: State, world: World) -> Action | None:
    """Before anything is measured there is no second round."""
    if state.under_way is not None:
        return None
    if state.device.absent and (world.templates.given is not None or state.decided or state.dialogue):
        return None
    return Write(world.talk.decided(state))


def _with_remedy(error: BadInput) -> str:
    """Of several faults each has its remedy beside it already."""
    return f"{error} ({error.hint})" if error.hint and "\n" not in error.message else str(error)


def _check_draft(state: State, world: World) -> Action | None:
    """The gate, until a draft is let in or turned away."""
    if state.under_way is None or state.under_way.decision != "refactor":
        return None
    draft = state.draft
    assert draft is not None, "what is written is written without a device"
    if (asked := budget.asked_to_finish(state)) is not None:
        return Write(events.Rejected(draft.id, f"it was not looked at any further: {asked}"))
    for other in takewhile(lambda c: c.id != draft.id, state.candidates):
        if other.drafted and other.drafted.template == draft.template:
            why = f"it is the same text as {budget.candidate_noun(state.settings)} {other.id}"
            return Write(events.Rejected(draft.id, why, same_as=other.id))
    is_foreign = bool(draft.drafted and draft.drafted.author)
    may_mend = may_mend_draft(state, draft)
    try:
        template = world.templates.of(draft)
        # Nothing that a model wrote is built by a run that cannot judge it, whenever it was written.
        if is_foreign and (fault := world.talk.draft_fault(state, draft, template)) is not None:
            raise BadInput(fault)
        configs = world.templates.configs(draft)
        step = examine_draft(
            template.space.params, template.default, configs, state.gated(draft.id), may_mend
        )
        if isinstance(step, Passed):
            return Write(world.templates.admitted(draft, step.rules))
    except BadInput as error:
        step = Faulty(_with_remedy(error), ())
    if isinstance(step, Checks):
        # What is made on a plain kernel has its faults: it is checked as a winner is.
        return _ask_trials(state, world, step.configs, "long" if state.is_plain(draft) else "short", "gate")
    return _reject_draft(state, draft, step, world.heeds_words)


def _reject_draft(state: State, draft: Candidate, fault: Faulty, heeds_words: bool) -> Write:
    """Back to its author, as long as that may mend it and can make something of what was found."""
    is_heard = heeds_words or not is_by_program(state, draft) or bool(fault.without)
    again = may_mend_draft(state, draft) and is_heard
    return Write(events.Rejected(draft.id, fault.reason, fault.trials, fault.without, again))


def _search_template(state: State, world: World) -> Action | None:
    """Ask for a batch when the device is about to run out of work; meanwhile build what may be next."""
    if not state.searching:
        return None
    search = world.search_of(state)
    if search.template.is_concrete:
        return _search_one(state, world, search)
    cut = budget.exhausted_share(state)
    reason = budget.exhausted_budget(state) or cut or search.nothing_to_gain()
    if reason is None:
        if (action := _next_of_search(state, world, search)) is not None:
            return action
        reason = None if state.in_flight else search.nothing_left()
    if state.in_flight:
        return Collect()
    assert reason is not None
    return Write(events.Searched(search.candidate.id, reason, reason == cut))


def _next_of_search(state: State, world: World, search: OneSearch) -> Action | None:
    count = max(1, len(state.devices))
    batch, enough = budget.plan_batches(search.outcome_count, count, state.settings.width)
    is_hungry = len(state.in_flight) <= enough
    if (action := _ask_hinted(state, world)) is not None:
        return action
    if is_hungry and (action := _change_prior(state, world, search)) is not None:
        return action
    asked = state.asked
    after = asked.last("sentinel") + 1
    if not state.devices and len(asked) - after - asked.count("build", after) >= SENTINEL_EVERY:
        return _ask_trials(state, world, [None], "short", "sentinel")
    if is_hungry and (action := _ask_batch(state, world, search, max(CHOICE, batch), batch)) is not None:
        return action
    if (action := _ask_builds(state, world, search)) is not None:
        return action
    if is_hungry and state.building:
        return Experiment(lambda lab: lab.built())
    return _ask_batch(state, world, search, 1, batch) if is_hungry else None


def _search_one(state: State, world: World, search: OneSearch) -> Action:
    """A kernel without parameters: it is measured, where the gate has not done so, and that is all."""
    if state.in_flight:
        return Collect()
    if not search.tried():
        return _ask_trials(state, world, [search.template.default], "short", "search")
    if search.sentinel_missing() and state.devices:
        return Write(devices.sentinel_trial(world.problem, state))
    if search.sentinel_missing():
        return _ask_trials(state, world, [None], "short", "sentinel")
    return Write(events.Searched(search.candidate.id, "it has no parameters: there is nothing to search"))


def _ask_hinted(state: State, world: World) -> Action | None:
    if not state.instructed:
        return None
    wanted = pending_hints(state)
    return _ask_trials(state, world, wanted, "short", "search") if wanted else None


def _change_prior(state: State, world: World, search: OneSearch) -> Action | None:
    """Profile a kernel, or change the prior, where that is due. Nothing is profiled while anything is
    measured: what is under way is waited for."""
    if world.lab.lacks.get("profile"):
        return None
    template = search.template
    answers = Answers(dict(template.answers), template.space.params, search.configs)
    step = PriorStep(world.problem, state, answers, search.tried()).next()
    if step is None:
        return None
    if not isinstance(step, ToProfile):
        return Write(step)
    return Collect() if state.in_flight else _profile_kernel(step)


def _ask_batch(state: State, world: World, search: OneSearch, least: int, most: int) -> Action | None:
    """Of what is built, the most promising, if there is enough of it; where nothing is built ahead, of
    everything. Before that, what need not be measured is left out."""
    if not state.settings.ahead:
        return _propose_configs(state, world, search, None, most, "short")
    if state.settings.prune and (len(state.pool) >= least or state.pruning):
        # One verdict a step, so that each follows from the state alone.
        verdict = next(prune_pool(state, lambda: score_configs(world.problem, state)), None)
        if verdict is not None:
            return Write(verdict)
    if len(state.pool) < least:
        return None
    pool = tuple(found.config for found in state.pool if found.config is not None)
    return _propose_configs(state, world, search, pool, most, "short")


def _ask_builds(state: State, world: World, search: OneSearch) -> Action | None:
    """Keep builders busy with what is likely to be asked for, many at once: each order costs thought."""
    ahead, possible = state.settings.ahead, search.may_build()
    missing = min(possible, ahead - search.ahead())
    if missing <= 0 or missing < min(possible, ahead // 2):
        return None
    return _propose_configs(state, world, search, None, missing, "build")


def _propose_configs(
    state: State, world: World, search: OneSearch, pool: tuple[Config, ...] | None, count: int, effort: Effort
) -> Action | None:
    proposal = world.searcher.ask(search.view(pool), count)
    if not proposal.configs:
        return None
    gain = None if pool else proposal.gain
    return _ask_trials(
        state, world, proposal.configs, effort, "search", gain=gain, followed=proposal.followed
    )


def _race_finalists(state: State, world: World) -> Action | None:
    entered = plan_heat(world.problem, state) if budget.is_finishing(state) else None
    if not entered:
        return None
    return _ask_trials(
        state, world, [c for c, _ in entered], "long", "finalist", [names for _, names in entered]
    )


def _verify_winners(state: State, world: World) -> Action | None:
    trials = [
        Trial(state.next_trial, config, workloads, "long", "finalist", _template_digest(state, config))
        for config, workloads in unverified_winners(world.problem, state)
    ]
    if not trials:
        return None
    configs = tuple(trial.config for trial in trials if trial.config is not None)
    note = f"verifying {configs[0].label} in a fresh process"
    return Experiment(lambda lab: lab.verify(trials[0], trials[1:]), configs, note)


def _serve_delivery(state: State, world: World) -> Action | None:
    """Call what is delivered through its own dispatch, at the workloads and at sizes nobody timed."""
    problem, template_of = world.problem, world.templates.lookup(state)
    choice = verified_choice(problem, state)
    services = baked_services(problem, state, template_of, choice)
    parts = (problem, template_of, state.device, choice, builds_known(state), state.compiler)
    made = assemble_delivery(*parts, services)
    if untried := [s for s in services if not s.shown and not baked_probes(problem, state, made, s)]:
        services = tuple(s for s in services if s not in untried)  # there is no other size to try
        made = assemble_delivery(*parts, services)
    general = None
    if choice.general is not None and not template_of(choice.general).bakes_sizes(choice.general):
        general = template_of(choice.general).render(problem, choice.general)
    calls = next_calls(problem, state, choice, made, general, services)
    return Experiment(lambda lab: lab.serve(made, calls)) if calls else None


def _profile_winner(state: State, world: World) -> Action | None:
    """What is delivered beside the original: what bounds it now, and how far from its floor it is."""
    if not any(p.config is None for p in state.profiled):
        return None
    done = {(p.config, p.workload) for p in state.profiled}
    for pick in verified_choice(world.problem, state).picks:
        if pick.config is None or (pick.config, pick.workload) in done:
            continue
        timed = timing_of(state, pick.config, pick.workload)
        if timed is not None and timed.timing is not None:
            return _profile_kernel(ToProfile(pick.config, pick.workload, timed.timing.seconds))
    return None


def _stop_run(state: State, _world: World) -> Action | None:
    return Write(events.Stopped(state.decided[-1].reason))


def _survey_original(state: State, world: World) -> Action | None:
    """What the compiler says of it is told to whoever plans."""
    if world.templates.given is not None or state.surveyed:
        return None
    return Experiment(lambda lab: lab.built()) if world.surveying else OrderBuild(None)


def _rehearse_original(state: State, world: World) -> Action | None:
    if any(one.config is None for one in state.rehearsed):
        return None
    return world.rehearsal(None, None)


def _rehearse_template(state: State, world: World) -> Action | None:
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
    return _reject_draft(state, draft, step, False)


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
    return [one for one in state.rehearsed if one.config and one.config.candidate == candidate.id]


def _step_of_host_gate(gate: HostGate, state: State, draft: Candidate) -> NextRehearsal | Faulty | Passed:
    may_mend = may_mend_draft(state, draft)
    return gate.step(_candidate_rehearsals(state, draft), may_mend, not is_by_program(state, draft))


def end_of_host_gate(state: State, world: World) -> str:
    """What was tried of a draft, once there is no more to try; else empty."""
    draft = state.draft
    gate = _host_gate(state, draft, world) if draft is not None else None
    if draft is None or gate is None or isinstance(_step_of_host_gate(gate, state, draft), NextRehearsal):
        return ""
    return gate_sentence(_candidate_rehearsals(state, draft))


def _survey_configs(state: State, world: World) -> Action | None:
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


STAGES = (
    Stage("instructions", _take_instruction),
    Stage("devices", _look_after_devices, ("time",)),
    Stage("dialogue", _talk_to_models),
    Stage("baseline", _time_original, ("time",)),
    Stage("survey of the original", _survey_original, ("build",), is_offline=True),
    Stage("rehearsal of the original", _rehearse_original, ("rehearse",), is_offline=True),
    Stage("cases", _add_cases, ("time",)),
    Stage("given", _admit_given),
    Stage("given beside", _admit_beside, ("time",)),
    Stage("collect", _collect_rest, ("time",)),
    Stage("check", _check_best, ("time",)),
    Stage("diagnose", _diagnose_best, ("profile",)),
    Stage("decide", _decide_next),
    Stage("rehearsal", _rehearse_template, ("rehearse",), is_offline=True),
    Stage("gate", _check_draft, ("time",)),
    Stage("search", _search_template, ("time",)),
    Stage("survey", _survey_configs, ("build",), is_offline=True),
    Stage("race", _race_finalists, ("time",)),
    Stage("verify", _verify_winners, ("time",)),
    Stage("serve", _serve_delivery, ("serve",)),
    Stage("profile", _profile_winner, ("profile",)),
    Stage("stop", _stop_run, ("time",)),
)


def next_action(state: State, world: World) -> Action:
    lacks, missing = world.lab.lacks, ""
    for stage in STAGES:
        if lacking := [lacks[power] for power in stage.needs if lacks.get(power)]:
            missing = missing or lacking[0]
        elif stage.is_offline and not state.device.absent:
            continue
        elif (action := stage.next(state, world)) is not None:
            return action
    return Blocked(missing)


def _ask_trials(
    state: State,
    world: World,
    configs: Sequence[Config | None],
    effort: Effort,
    purpose: Purpose,
    workloads: Sequence[tuple[str, ...]] | None = None,
    gain: float | None = None,
    followed: frozenset[Config] = frozenset(),
) -> Write:
    """At the workloads given for each, or at all."""
    where = workloads or [tuple(w.name for w in world.problem.workloads)] * len(configs)
    trials: list[Trial] = []
    for number, (config, names) in enumerate(zip(configs, where, strict=True), state.next_trial):
        digest = _template_digest(state, config) if config else ""
        trials.append(Trial(number, config, names, effort, purpose, digest, config in followed))
    return Write(events.Asked(tuple(trials), gain))


def _profile_kernel(wanted: ToProfile) -> Experiment:
    configs = () if wanted.config is None else (wanted.config,)
    return Experiment(lambda lab: lab.profile(wanted.config, wanted.workload, wanted.seconds), configs)


def _template_digest(state: State, config: Config) -> str:
    return state.candidate(config.candidate).template
