"""The loop: look at the state, do the next thing, write down what happened, look again.

Each step follows from the state alone, a fold over the journal: a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tunesmith.errors import BadInput
from tunesmith.problem.problem import Problem
from tunesmith.run import devices, events
from tunesmith.run.baked import baked_services
from tunesmith.run.budget import asked_to_finish, exhausted_budget, exhausted_share, noun, pace
from tunesmith.run.candidates import Checks, Faulty, Passed, Templates, examine
from tunesmith.run.delivery import builds_known, delivery
from tunesmith.run.outcome import Effort, Purpose, Trial
from tunesmith.run.ports import Inbox, Lab, RunLog, Searcher
from tunesmith.run.prior import Answers, ToProfile, next_step, to_look_at, without_profiles
from tunesmith.run.racing import heat, timing_of, unverified, verified_choice
from tunesmith.run.rounds import to_check
from tunesmith.run.scores import OneSearch, prune, scores
from tunesmith.run.serving import baked_probes, next_calls
from tunesmith.run.state import Candidate, State
from tunesmith.run.talking import Talking, has_unsearched, is_by_program, may_mend_draft
from tunesmith.space.params import Config

SENTINEL_EVERY = 16  # trials between two looks at the original
CHOICE = 4  # built ones to choose from, as long as more are being built


def _with_remedy(error: BadInput) -> str:
    """Of several faults each has its remedy beside it already."""
    return f"{error} ({error.hint})" if error.hint and "\n" not in error.message else str(error)


@dataclass
class Loop:
    problem: Problem
    templates: Templates
    settings: events.Settings
    lab: Lab
    searcher: Searcher
    talk: Talking
    log: RunLog
    heeds_words: bool = True  # whether the author can make use of what is said of its draft
    inbox: Inbox | None = None

    def run(self) -> State:
        """Go on from whatever the log holds until the run has stopped, or whoever watches stops it."""
        self._issued: set[int] = set()
        self._at_lab: set[str] = set()
        said = without_profiles(self.settings, self.lab.no_profiles)
        if said and self._state.stopped is None:
            self.log.listener.note(said)
        self._issue()
        while self._state.stopped is None:
            self._take_instructions()
            if not (self._state.instructed and self._is_stopping()):
                self._step()
            elif self._state.in_flight:
                self._collect()
            else:
                break
        return self._state

    # -- whoever watches ----------------------------------------------------------------------------

    def _take_instructions(self) -> None:
        """Each becomes an event; what follows from it is decided by the state."""
        for given in self.inbox.waiting() if self.inbox is not None else ():
            from tunesmith.run.instructions import taken_up  # which few runs need

            if not self._is_taken(given.id):
                event = taken_up(given, self._state, self._of_one() if self._state.searching else None)
                if event is None:
                    continue
                self._append(event)
            assert self.inbox is not None, "it has given something"
            self.inbox.drop(given.id)

    def _is_taken(self, id: str) -> bool:
        return any(id == known.id for known in self._state.instructed)

    def _is_stopping(self) -> bool:
        from tunesmith.run.instructions import is_stopping

        return is_stopping(self._state)

    def _ask_hinted(self) -> bool:
        if not self._state.instructed:
            return False
        from tunesmith.run.instructions import hints

        wanted = hints(self._state)
        if wanted:
            self._ask(wanted, "short", "search")
        return bool(wanted)

    def _collect(self) -> None:
        outcome = self.lab.collect()
        if event := self.lab.changed() if outcome is None else devices.measured(self._state, outcome):
            self._append(event)

    # -- steps --------------------------------------------------------------------------------------

    def _step(self) -> None:
        state = self._state
        if state.devices and self._look_after_devices():
            pass
        elif (said := self.talk.next_event(state)) is not None:
            self._append(said)
        elif state.baseline is None:
            self._append(self.lab.baseline())
        elif self.talk.tester is not None and state.extended is None:
            found = self.talk.cases(state)
            self._append(self.lab.extend(found) if isinstance(found, events.Extended) else found)
        elif self.templates.given is not None and state.admitted is None:
            # Nobody drafted it, so there is no author to send it back to, and no gate.
            self._append(self.templates.admitted(Candidate("", self.templates.given.digest)))
        elif beside := [c for c in self.templates.beside if c not in {k.id for k in state.candidates}]:
            self._append(self.templates.admitted(Candidate(beside[0], self.templates.beside[beside[0]])))
        elif state.under_way is None:
            self._decide()
        elif state.under_way.decision == "refactor":
            self._refactor()
        elif state.searching:
            self._search()
        else:
            self._finish()

    def _look_after_devices(self) -> bool:
        """Of several: who is gone, has joined or is better left out, and who is to time the original."""
        event = self.lab.changed() or devices.next_event(self.problem, self._state)
        if event is not None:
            self._append(event)
            self._issue()
        if isinstance(event, events.LeftOut):
            self.lab.leave_out(event.device)
        return event is not None

    def _decide(self) -> None:
        """Where templates are written, what is known of the best so far tells what is written next: whether
        it is right where it is looked at for long, and what bounds it."""
        state = self._state
        if state.in_flight:
            self._collect()
            return
        is_new_round = self.templates.given is None and not has_unsearched(state)
        goes_on = is_new_round and self.talk.used_up(state) is None
        if goes_on and (unchecked := to_check(self.problem, state)) is not None:
            config, workloads = unchecked
            self._ask([config], "long", "finalist", [workloads])
        elif goes_on and not self.lab.no_profiles and (wanted := to_look_at(self.problem, state)) is not None:
            self._look_at(wanted)
        else:
            self._append(self.talk.decided(state))

    # -- refactoring --------------------------------------------------------------------------------

    def _refactor(self) -> None:
        """The gate, until a draft is let in or turned away."""
        state = self._state
        if state.in_flight:
            self._collect()
        else:
            assert state.draft is not None, "what is written is written without a device"
            if (asked := asked_to_finish(state)) is not None:
                self._append(events.Rejected(state.draft.id, f"it was not looked at any further: {asked}"))
            else:
                self._gate(state.draft)

    def _gate(self, draft: Candidate) -> None:
        for other in takewhile(lambda c: c.id != draft.id, self._state.candidates):
            if other.drafted and other.drafted.template == draft.template:
                why = f"it is the same text as {noun(self.settings)} {other.id}"
                self._append(events.Rejected(draft.id, why, same_as=other.id))
                return
        is_foreign = bool(draft.drafted and draft.drafted.author)
        may_mend = may_mend_draft(self._state, self.settings, draft)
        is_model = not is_by_program(self._state, draft)
        try:
            template = self.templates.of(draft)
            # Nothing that a model wrote is built by a run that cannot judge it, whenever it was written.
            if is_foreign and (fault := self.talk.draft_fault(self._state, draft, template)) is not None:
                raise BadInput(fault)
            configs = self.templates.configs(draft)
            done = self._state.gated(draft.id)
            step = examine(template.space.params, template.default, configs, done, may_mend)
            if isinstance(step, Passed):
                self._append(self.templates.admitted(draft, step.rules))
                return
        except BadInput as error:
            step = Faulty(_with_remedy(error), ())
        if isinstance(step, Checks):
            # What is made on a plain kernel has its faults: it is checked as a winner is.
            self._ask(step.configs, "long" if self._state.is_plain(draft) else "short", "gate")
            return
        again = may_mend and (self.heeds_words or is_model or bool(step.without))
        self._append(events.Rejected(draft.id, step.reason, step.trials, step.without, again))

    # -- searching ----------------------------------------------------------------------------------

    def _search(self) -> None:
        """Ask for a batch when the device is about to run out of work; meanwhile build what may be next."""
        state, search = self._state, self._of_one()
        if search.template.is_concrete:
            self._search_one(search)
            return
        batch, enough = pace(search.known, max(1, len(state.devices)), self.settings.width)
        is_hungry = len(state.in_flight) <= enough
        cut = exhausted_share(state)
        reason = exhausted_budget(state) or cut or search.nothing_to_gain()
        if reason is None:
            if self._ask_hinted():
                return
            if is_hungry and self._change_prior():
                return
            asked = self._state.asked
            after = asked.last("sentinel") + 1
            if not state.devices and len(asked) - after - asked.count("build", after) >= SENTINEL_EVERY:
                self._ask([None], "short", "sentinel")
                return
            if (is_hungry and self._ask_batch(max(CHOICE, batch), batch)) or self._ask_builds():
                return
            if is_hungry and state.building:
                self._append(self.lab.built())
                return
            if is_hungry and self._ask_batch(1, batch):
                return
            reason = None if state.in_flight else search.nothing_left()
        if state.in_flight:
            self._collect()
        else:
            assert reason is not None
            self._append(events.Searched(search.candidate.id, reason, reason == cut))
            self.lab.drop_builds()

    def _search_one(self, search: OneSearch) -> None:
        """A kernel without parameters: it is measured, where the gate has not done so, and that is all."""
        if self._state.in_flight:
            self._collect()
        elif not search.tried():
            self._ask([search.template.default], "short", "search")
        elif search.sentinel_missing() and self._state.devices:
            self._append(devices.sentinel(self.problem, self._state))
            self._issue()
        elif search.sentinel_missing():
            self._ask([None], "short", "sentinel")
        else:
            why = "it has no parameters: there is nothing to search"
            self._append(events.Searched(search.candidate.id, why))

    def _of_one(self) -> OneSearch:
        return OneSearch(self.problem, self._state, self.templates)

    def _change_prior(self) -> bool:
        """Profile a kernel, or change the prior, where that is due. Nothing is profiled while anything is
        measured: what is under way is waited for."""
        if self.lab.no_profiles:
            return False
        search = self._of_one()
        template = search.template
        answers = Answers(dict(template.answers), template.space.params, search.configs)
        step = next_step(self.problem, self._state, answers, search.tried())
        if step is None:
            return False
        if not isinstance(step, ToProfile):
            self._append(step)
        elif self._state.in_flight:
            self._collect()
        else:
            self._look_at(step)
        return True

    def _look_at(self, wanted: ToProfile) -> None:
        if wanted.config is not None:
            self._admit(wanted.config)
        self._append(self.lab.profile(wanted.config, wanted.workload, wanted.seconds))

    def _ask_batch(self, least: int, most: int) -> bool:
        """Of what is built, the most promising, if there is enough of it; where nothing is built ahead, of
        everything. Before that, what need not be measured is left out."""
        state, pool = self._state, None
        if self.settings.ahead:
            if self.settings.prune and (len(state.pool) >= least or state.pruning):
                # One verdict a step, so that each follows from the state alone.
                verdict = next(prune(state, lambda: scores(self.problem, state)), None)
                if verdict is not None:
                    self._append(verdict)
                    return True
            if len(state.pool) < least:
                return False
            pool = tuple(found.config for found in state.pool if found.config is not None)
        return self._propose(pool, most, "short")

    def _ask_builds(self) -> bool:
        """Keep builders busy with what is likely to be asked for, many at once: each order costs thought."""
        search = self._of_one()
        ahead, possible = self.settings.ahead, search.may_build()
        missing = min(possible, ahead - search.ahead())
        if missing <= 0 or missing < min(possible, ahead // 2):
            return False
        return self._propose(None, missing, "build")

    def _propose(self, pool: tuple[Config, ...] | None, count: int, effort: Effort) -> bool:
        proposal = self.searcher.ask(self._of_one().view(pool), count)
        if proposal.configs:
            gain = None if pool else proposal.gain
            self._ask(proposal.configs, effort, "search", gain=gain, followed=proposal.followed)
        return bool(proposal.configs)

    # -- finishing ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        state = self._state
        if state.in_flight:
            self._collect()
            return
        if entered := heat(self.problem, state):
            self._ask([c for c, _ in entered], "long", "finalist", [names for _, names in entered])
            return
        trials: list[Trial] = []
        for config, workloads in unverified(self.problem, state):
            if not trials:
                self.log.listener.note(f"verifying {config.label} in a fresh process")
            self._admit(config)
            digest = self._digest(config)
            trials.append(Trial(state.next_trial, config, workloads, "long", "finalist", digest))
        if trials:
            self._append(self.lab.verify(trials[0], trials[1:]))
            return
        if self._serve():
            return
        if self._profile_winner():
            return
        self._append(events.Stopped(state.decided[-1].reason))

    def _serve(self) -> bool:
        """Call what is delivered through its own dispatch, at the workloads and at sizes nobody timed."""
        if self.lab.no_calls:
            return False
        state, template_of = self._state, self.templates.lookup(self._state)
        choice = verified_choice(self.problem, state)
        services = baked_services(self.problem, state, template_of, choice)
        parts = (self.problem, template_of, state.device, choice, builds_known(state), state.compiler)
        made = delivery(*parts, services)
        if untried := [s for s in services if not s.shown and not baked_probes(self.problem, state, made, s)]:
            services = tuple(s for s in services if s not in untried)  # there is no other size to try
            made = delivery(*parts, services)
        general = None
        if choice.general is not None and not template_of(choice.general).bakes_sizes(choice.general):
            general = template_of(choice.general).render(self.problem, choice.general)
        calls = next_calls(self.problem, state, choice, made, general, services)
        if calls:
            self._append(self.lab.serve(made, calls))
        return bool(calls)

    def _profile_winner(self) -> bool:
        """What is delivered beside the original: what bounds it now, and how far from its floor it is."""
        state = self._state
        if self.lab.no_profiles or not any(p.config is None for p in state.profiled):
            return False
        done = {(p.config, p.workload) for p in state.profiled}
        for pick in verified_choice(self.problem, state).picks:
            if pick.config is None or (pick.config, pick.workload) in done:
                continue
            timed = timing_of(state, pick.config, pick.workload)
            if timed is not None and timed.timing is not None:
                self._look_at(ToProfile(pick.config, pick.workload, timed.timing.seconds))
                return True
        return False

    # -- small parts --------------------------------------------------------------------------------

    def _ask(
        self,
        configs: Sequence[Config | None],
        effort: Effort,
        purpose: Purpose,
        workloads: Sequence[tuple[str, ...]] | None = None,
        gain: float | None = None,
        followed: frozenset[Config] = frozenset(),
    ) -> None:
        """At the workloads given for each, or at all. In one event, which follows from those before it."""
        where = workloads or [tuple(w.name for w in self.problem.workloads)] * len(configs)
        trials: list[Trial] = []
        for number, (config, names) in enumerate(zip(configs, where, strict=True), self._state.next_trial):
            digest = self._digest(config) if config else ""
            trials.append(Trial(number, config, names, effort, purpose, digest, config in followed))
        self._append(events.Asked(tuple(trials), gain))
        self._issue()

    def _issue(self) -> None:
        """Give the lab what it has not been given yet by this process."""
        builds = self._state.building if self._state.searching else ()  # nobody waits for them afterwards
        bound = {trial: (device,) for trial, device in self._state.bound}
        for trial in (*builds, *self._state.in_flight):
            if trial.id in self._issued:
                continue
            self._issued.add(trial.id)
            if trial.config is not None:
                self._admit(trial.config)
            if trial.effort == "build":
                self.lab.build(trial)
            else:
                self.lab.submit(trial, *bound.get(trial.id, ()))

    def _digest(self, config: Config) -> str:
        return self._state.candidate(config.candidate).template

    def _admit(self, config: Config) -> None:
        """The lab knows a template before it is asked about a configuration of it."""
        digest = self._digest(config)
        if digest not in self._at_lab:
            self._at_lab.add(digest)
            self.lab.admit(self.templates.of(self._state.candidate(config.candidate)))

    def _append(self, event: events.Event) -> None:
        self.log.write(event)

    @property
    def _state(self) -> State:
        return self.log.state
