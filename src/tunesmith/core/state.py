"""The state of a run: a fold over its events, and nothing more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from tunesmith.core.device import Device
from tunesmith.core.dialogue import Exchange, Role
from tunesmith.core.events import (
    Admitted,
    Asked,
    Attached,
    Baseline,
    Decided,
    Declined,
    Drafted,
    Extended,
    Measured,
    Primed,
    Profiled,
    Pruned,
    Recorded,
    Rejected,
    Replied,
    Requested,
    Searched,
    Settings,
    Started,
    Steered,
    Stopped,
    Surveyed,
    Unanswered,
    Verified,
)
from tunesmith.core.focus import Focus
from tunesmith.core.outcome import Outcome, Trial
from tunesmith.core.space import Config


@dataclass(frozen=True)
class Candidate:
    """A template of the run. Candidates form a tree: each goes on from another, or from the original."""

    id: str  # empty: the one given
    template: str  # digest of its text
    parent: str = ""
    status: Literal["drafted", "rejected", "admitted", "searched"] = "drafted"
    drafted: Drafted | None = None  # None: it was given
    rejected: Rejected | None = None
    admitted: Admitted | None = None
    searched: Searched | None = None
    round: int = 0  # the number of the decision it comes from

    @property
    def moves(self) -> tuple[str, ...]:
        return self.drafted.moves if self.drafted else ()


@dataclass(frozen=True)
class State:
    events: int = 0
    elapsed: float = 0.0
    started: Started | None = None
    surveyed: tuple[Surveyed, ...] = ()  # by the compiler in force
    attached: Attached | None = None
    attached_at: float = 0.0  # what a budget in seconds counts from
    baseline: Baseline | None = None
    extended: Extended | None = None  # by a tester
    admitted: Admitted | None = None
    decided: tuple[Decided, ...] = ()
    decided_at: float = 0.0  # the last of them,
    decided_after: int = 0  # and how many trials had been asked for by then
    under_way: Decided | None = None  # what was decided last, until it is done
    candidates: tuple[Candidate, ...] = ()  # in the order they were drafted
    declined: tuple[tuple[int, Declined], ...] = ()  # with the number of the decision that led to it
    dialogue: tuple[Exchange, ...] = ()  # with models, the open request last
    primed: tuple[Primed, ...] = ()
    profiled: tuple[Profiled, ...] = ()
    steered: tuple[Steered, ...] = ()
    asked: tuple[Trial, ...] = ()
    gains: tuple[float | None, ...] = ()  # what the searcher expected of each batch it was asked for
    pruned: tuple[Pruned, ...] = ()
    outcomes: tuple[Outcome, ...] = ()  # in the order they arrived; sentinels and finalists among them
    verified: tuple[Verified, ...] = ()
    stopped: Stopped | None = None
    # What follows from the rest, kept because every step of the loop asks for it.
    in_flight: tuple[Trial, ...] = ()  # on their way to the device
    building: tuple[Trial, ...] = ()  # on their way to the compiler alone
    pool: tuple[Surveyed, ...] = ()  # built, and neither measured nor on the way there nor pruned
    known: frozenset[Config] = frozenset()  # built, asked for, or on the way
    steered_at: tuple[int, ...] = ()  # outcomes of the search that were there at each `Steered`
    steered_before: int = 0  # in earlier searches
    moved: tuple[bool, ...] = ()  # whether each `Steered` moved the focus,
    moved_after: int = 0  # and how many trials had been asked for when one last did
    pruning: bool = False  # whether the last event was a verdict: there may be more

    @property
    def device(self) -> Device:
        """The one in force."""
        assert self.started is not None, "the run has not begun"
        return self.attached.device if self.attached else self.started.device

    @property
    def compiler(self) -> str:
        """Name and version of the one in force; empty where the backend has but one."""
        assert self.started is not None, "the run has not begun"
        return self.attached.compiler if self.attached else self.started.compiler

    @property
    def settings(self) -> Settings:
        assert self.started is not None, "the run has not begun"
        chosen = self.started.settings
        return replace(chosen, ahead=self.attached.ahead) if self.attached else chosen

    @property
    def unable(self) -> tuple[Surveyed, ...]:
        """Configurations that need no trial: the compiler has said that they cannot run on this device."""
        known = set(self.attached.unable) if self.attached else set()
        known.update(p.config for p in self.pruned if p.rule == "cannot_run")
        return tuple(s for s in self.surveyed if s.config in known)

    @property
    def focus(self) -> Focus | None:
        """Where the search that is under way looks first."""
        return self.steered[-1].focus if len(self.steered) > self.steered_before else None

    @property
    def next_trial(self) -> int:
        return len(self.asked)

    @property
    def searching(self) -> bool:
        return self.under_way is not None and self.under_way.decision == "search"

    def candidate(self, id: str) -> Candidate:
        return {c.id: c for c in self.candidates}[id]

    @property
    def draft(self) -> Candidate | None:
        """The one at the gate: drafted by what is under way, and neither admitted nor rejected."""
        last = self.candidates[-1] if self.candidates else None
        return last if last is not None and last.status == "drafted" else None

    @property
    def open_request(self) -> Exchange | None:
        """What a model has been asked and has not answered."""
        last = self.dialogue[-1] if self.dialogue else None
        return last if last is not None and last.is_open else None

    def this_turn(self, role: Role) -> tuple[Exchange, ...]:
        """What has been said with a role since the last decision."""
        return tuple(e for e in self.dialogue if e.request.role == role and e.turn == len(self.decided))

    @property
    def drafts(self) -> int:
        return sum(c.drafted is not None for c in self.candidates)

    def searched(self) -> tuple[Outcome, ...]:
        """Short measurements of configurations: what the search asked for, and what the gate tried before it.
        A template that was turned away has none."""
        rejected = {c.id for c in self.candidates if c.status == "rejected"}
        return tuple(
            o
            for o in self.outcomes
            if o.trial.purpose in ("search", "gate")
            and (o.trial.config is None or o.trial.config.candidate not in rejected)
        )

    @property
    def gate_tried(self) -> int:
        """How many of `searched` the gate has tried."""
        return sum(o.trial.purpose == "gate" for o in self.searched())

    def gated(self, candidate: str) -> tuple[Outcome, ...]:
        return tuple(
            o
            for o in self.outcomes
            if o.trial.purpose == "gate" and o.trial.config and o.trial.config.candidate == candidate
        )

    def finalists(self) -> tuple[Outcome, ...]:
        return tuple(o for o in self.outcomes if o.trial.purpose == "finalist")

    def sentinels(self) -> tuple[Outcome, ...]:
        """Every timing of the original as it is, the baseline first."""
        first = (self.baseline.outcome,) if self.baseline else ()
        return first + tuple(o for o in self.outcomes if o.trial.purpose == "sentinel")

    def statuses(self) -> Counter[str]:
        return Counter([*(str(s.status) for s in self.unable), *(str(o.status) for o in self.searched())])


def apply(state: State, record: Recorded) -> State:
    pruning = isinstance(record.event, Pruned)
    state = replace(state, events=record.number + 1, elapsed=record.at, pruning=pruning)
    match record.event:
        case Started() as event:
            return replace(state, started=event)
        case Surveyed() as event:
            return _surveyed(state, event)
        case Attached() as event:
            # What was said for another device holds only where it has been looked at again for this one.
            surveyed = tuple(s for s in state.surveyed if s.config in event.unable)
            attached = replace(state, surveyed=surveyed, attached=event, attached_at=record.at, admitted=None)
            return replace(attached, pool=(), known=frozenset(event.unable))
        case Baseline() as event:
            return replace(state, baseline=event)
        case Extended() as event:
            return replace(state, extended=event)
        case Admitted() as event:
            return _admitted(state, event)
        case Decided() as event:
            # What earlier batches were expected to gain says nothing of another search.
            decided = (*state.decided, event)
            state = replace(state, decided_at=record.at, decided_after=len(state.asked))
            if event.decision == "search":
                state = replace(state, gains=(), steered_before=len(state.steered))
            return replace(state, decided=decided, under_way=event)
        case Drafted() as event:
            drafted = Candidate(
                event.candidate, event.template, event.parent, drafted=event, round=len(state.decided) - 1
            )
            return replace(state, candidates=(*state.candidates, drafted))
        case Declined() as event:
            declined = (*state.declined, (len(state.decided) - 1, event))
            return replace(state, declined=declined, under_way=None)
        case Rejected() as event:
            changed = replace(state.candidate(event.candidate), status="rejected", rejected=event)
            return replace(_changed(state, changed), under_way=state.under_way if event.again else None)
        case Searched() as event:
            changed = replace(state.candidate(event.candidate), status="searched", searched=event)
            # Nobody waits for what is still being built, or was built and not measured.
            return replace(_changed(state, changed), under_way=None, building=(), pool=())
        case Requested(request):
            asked = Exchange(request, len(state.decided), state.drafts)
            return replace(state, dialogue=(*state.dialogue, asked))
        case Replied(number, reply):
            return _answered(state, number, reply=reply)
        case Unanswered(number, reason, attempt=attempt, final=final):
            return _answered(state, number, failed=reason if final else "", attempts=attempt)
        case Primed() as event:
            return replace(state, primed=(*state.primed, event))
        case Profiled() as event:
            return replace(state, profiled=(*state.profiled, event))
        case Steered() as event:
            # What a searcher expected was of the part it was shown.
            at, moved = (*state.steered_at, len(state.searched())), event.focus != state.focus
            after = len(state.asked) if moved else state.moved_after
            state = replace(state, moved=(*state.moved, moved), moved_after=after)
            return replace(state, steered=(*state.steered, event), steered_at=at, gains=())
        case Asked(trials, gain):
            return _asked(state, trials, gain)
        case Pruned() as event:
            pool = tuple(s for s in state.pool if s.config != event.config)
            return replace(state, pruned=(*state.pruned, event), pool=pool)
        case Measured(outcome):
            in_flight = tuple(t for t in state.in_flight if t.id != outcome.trial.id)
            return replace(state, outcomes=(*state.outcomes, outcome), in_flight=in_flight)
        case Verified() as event:
            return replace(state, verified=(*state.verified, event))
        case Stopped() as event:
            return replace(state, stopped=event)


def _answered(state: State, number: int, **known: Any) -> State:
    found = tuple(replace(e, **known) if e.request.number == number else e for e in state.dialogue)
    return replace(state, dialogue=found)


def _changed(state: State, changed: Candidate) -> State:
    return replace(state, candidates=tuple(changed if c.id == changed.id else c for c in state.candidates))


def _admitted(state: State, event: Admitted) -> State:
    state = replace(state, admitted=event)
    known = [c for c in state.candidates if c.id == event.candidate]
    if not known:
        given = Candidate(event.candidate, event.template, status="admitted", admitted=event)
        return replace(state, candidates=(*state.candidates, given))
    changed = replace(known[0], status="admitted", admitted=event, template=event.template)
    # A template that was given is admitted before anything is decided.
    return replace(_changed(state, changed), under_way=state.under_way if known[0].drafted is None else None)


def _surveyed(state: State, event: Surveyed) -> State:
    surveyed = (*state.surveyed, event)
    if event.config is None:
        return replace(state, surveyed=surveyed)
    return replace(
        state,
        surveyed=surveyed,
        building=tuple(t for t in state.building if t.config != event.config),
        pool=(*state.pool, event),
        known=state.known | {event.config},
    )


def _asked(state: State, trials: tuple[Trial, ...], gain: float | None) -> State:
    builds = tuple(t for t in trials if t.effort == "build")
    others = tuple(t for t in trials if t.effort != "build")
    searched = {t.config for t in others if t.purpose == "search"}
    # Of a pool the searcher cannot tell what all the rest may add.
    is_whole = bool(builds) if state.started and state.settings.ahead else bool(searched)
    return replace(
        state,
        asked=(*state.asked, *trials),
        gains=(*state.gains, gain) if is_whole else state.gains,
        in_flight=(*state.in_flight, *others),
        building=(*state.building, *builds),
        pool=tuple(s for s in state.pool if s.config not in searched) if searched else state.pool,
        known=state.known.union(t.config for t in trials if t.config is not None),
    )


def fold(records: Iterable[Recorded]) -> State:
    state = State()
    for record in records:
        state = apply(state, record)
    return state
