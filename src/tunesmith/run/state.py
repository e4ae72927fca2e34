"""The state of a run: a fold over its events, and nothing more."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from typing import Any, Generic, Literal, TypeVar, overload

from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.run import events as ev
from tunesmith.run import outcome as oc
from tunesmith.run.events import Exchange, Lost, Role, Started, Usage
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.protection import Protection
from tunesmith.space.configset import Config
from tunesmith.space.space import Focus

T = TypeVar("T")
Keys = Callable[[T], Iterable[Hashable]]


class Shared(Generic[T]):
    """What all versions of a sequence share: the items, and an index of them that follows when asked for."""

    def __init__(self, items: Iterable[T], keys: Keys[T]) -> None:
        self.items = list(items)
        self.keys = keys
        self._places: dict[Hashable, list[int]] = {}
        self._indexed = 0

    @property
    def places(self) -> dict[Hashable, list[int]]:
        for place in range(self._indexed, len(self.items)):
            for key in self.keys(self.items[place]):
                self._places.setdefault(key, []).append(place)
        self._indexed = len(self.items)
        return self._places


class IndexedLog(Sequence[T]):
    """One version of a sequence that grows without being copied. It never changes, and equals a tuple of its
    items. Adding to the newest takes constant time; adding to an older one copies it first."""

    __slots__ = ("_length", "shared")

    def __init__(self, items: Iterable[T] | Shared[T] = (), keys: Keys[T] = lambda item: ()) -> None:
        self.shared = items if isinstance(items, Shared) else Shared(items, keys)
        self._length = len(self.shared.items)  # others may make the list longer

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self.shared.items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        places = range(self._length)[index]
        if isinstance(places, range):
            return tuple(self.shared.items[place] for place in places)
        return self.shared.items[places]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexedLog | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a is b or a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def plus(self, *items: T) -> IndexedLog[T]:
        shared = self.shared
        if len(shared.items) != self._length:
            shared = Shared(self, shared.keys)
        shared.items.extend(items)
        return IndexedLog(shared)

    def where(self, holds: Callable[[T], bool]) -> IndexedLog[T]:
        """Those of which it is true; the same where it is true of all."""
        found = [item for item in self if holds(item)]
        return self if len(found) == self._length else IndexedLog(found, self.shared.keys)

    def of(self, key: Hashable) -> tuple[T, ...]:
        """The items that have a key, in order."""
        return tuple(self.shared.items[place] for place in self._places_of(key))

    def count(self, key: Hashable, since: int = 0) -> int:
        """How many have a key, from a place on."""
        places = self._places_of(key)
        return len(places) - bisect_left(places, since)

    def last(self, key: Hashable) -> int:
        """The place of the last that has a key; -1 where none has."""
        places = self._places_of(key)
        return places[-1] if places else -1

    def _places_of(self, key: Hashable) -> list[int]:
        places = self.shared.places.get(key, [])
        is_newest = not places or places[-1] < self._length
        return places if is_newest else places[: bisect_left(places, self._length)]


def _grown_by(keys: Keys[T]) -> Callable[[], IndexedLog[T]]:
    """Makes an empty one, with an index by these keys."""
    return lambda: IndexedLog(keys=keys)


@dataclass(frozen=True)
class Candidate:
    """A template of the run. Candidates form a tree: each goes on from another, or from the original."""

    id: str  # empty: the one given
    template: str  # digest of its text
    parent: str = ""
    status: Literal["drafted", "rejected", "admitted", "searched"] = "drafted"
    drafted: ev.Drafted | None = None  # None: it was given
    rejected: ev.Rejected | None = None
    admitted: ev.Admitted | None = None
    searched: ev.Searched | None = None
    round: int = 0  # the number of the decision it comes from
    branch: int = 0  # of its plans, in a journal where a round has several

    @property
    def moves(self) -> tuple[str, ...]:
        return self.drafted.moves if self.drafted else ()

    @property
    def is_open(self) -> bool:
        """Whether its round still works on it: it is at the gate, or is to be mended."""
        return self.status == "drafted" or (self.rejected is not None and self.rejected.again)


@dataclass(frozen=True)
class PriorChange:
    event: ev.Steered
    tried: int  # outcomes
    asked: int  # trials
    moved: bool  # False: a second look changed nothing


def _of_surveyed(found: ev.Surveyed) -> Iterator[Hashable]:
    yield found.status
    if found.config is None:
        yield "original"
        return
    yield from oc.keys_of_config(found.config)
    yield "unable" if found.unable else found.what_runs


def _of_pruned(verdict: ev.Pruned) -> tuple[Hashable, ...]:
    return verdict.rule, ("of", verdict.config.candidate)


@dataclass(frozen=True)
class State:
    events: int = 0
    unproven: str = ""  # why the journal's chain does not carry all of it
    elapsed: float = 0.0
    waited: float = 0.0  # of these, for others to leave the device, or to leave it quiet: no budget counts it
    started: ev.Started | None = None
    surveyed: IndexedLog[ev.Surveyed] = field(
        default_factory=_grown_by(_of_surveyed)
    )  # by the compiler in force
    rehearsed: tuple[ev.Rehearsed, ...] = ()  # on the host, where the device is absent
    attached: ev.Attached | None = None
    attached_at: float = 0.0  # what a budget in seconds counts from
    devices: tuple[str, ...] = ()  # in force, the first for finalists; empty: the run has one
    enlisted: ev.Enlisted | None = None
    enlisted_after: int = 0  # so many outcomes
    left_out: tuple[ev.LeftOut, ...] = ()
    baseline: ev.Baseline | None = None
    extended: ev.Extended | None = None  # by a tester
    admitted: ev.Admitted | None = None
    decided: tuple[ev.Decided, ...] = ()
    decided_at: float = 0.0  # the last of them, in seconds worked,
    decided_after: int = 0  # and how many trials had been asked for by then,
    decided_used: float = 0.0  # and for how long trials had had the device
    # Of the original, gates and searches: what a budget counts. Races and verifications come after it.
    device_seconds: float = 0.0
    under_way: ev.Decided | None = None  # what was decided last, until it is done
    candidates: tuple[Candidate, ...] = ()  # in the order they were drafted
    declined: tuple[tuple[int, ev.Declined], ...] = ()  # with the number of the decision that led to it
    dialogue: tuple[Exchange, ...] = ()  # with models, the open request last
    primed: tuple[ev.Primed, ...] = ()
    protected: tuple[ev.Protected, ...] = ()  # since it began
    profiled: tuple[ev.Profiled, ...] = ()
    prior_changes: tuple[PriorChange, ...] = ()
    earlier_changes: int = 0  # so many of them in earlier searches
    asked: IndexedLog[Trial] = field(default_factory=_grown_by(oc.keys_of_trial))
    gains: IndexedLog[float | None] = field(
        default_factory=IndexedLog
    )  # expected by the searcher, of each batch
    pruned: IndexedLog[ev.Pruned] = field(default_factory=_grown_by(_of_pruned))
    outcomes: IndexedLog[Outcome] = field(default_factory=_grown_by(oc.keys_of_outcome))  # finalists', too
    verified: tuple[ev.Verified, ...] = ()
    served: tuple[ev.Served, ...] = ()
    instructed: tuple[ev.Instructed, ...] = ()  # by whoever watches
    stopped: ev.Stopped | None = None
    # What follows from the rest, kept because every step of the loop asks for it.
    in_flight: tuple[Trial, ...] = ()  # on their way to the device
    bound: tuple[tuple[int, str], ...] = ()  # of these, the device that a trial is for
    building: tuple[Trial, ...] = ()  # on their way to the compiler alone
    pool: IndexedLog[ev.Surveyed] = field(
        default_factory=IndexedLog
    )  # built; neither asked for since, nor pruned
    known: IndexedLog[Config] = field(default_factory=_grown_by(oc.keys_of_config))  # built or asked for
    # Short measurements of configurations, by search and gate; a template that was turned away has none.
    searched: IndexedLog[Outcome] = field(default_factory=_grown_by(oc.keys_of_tried))
    sentinels: IndexedLog[Outcome] = field(default_factory=_grown_by(oc.keys_of_sentinel))  # baseline first
    # Configurations that need no trial: the compiler has said that they cannot run on this device.
    unable: IndexedLog[ev.Surveyed] = field(default_factory=_grown_by(_of_surveyed))
    pruning: bool = False  # whether the last event was a verdict: there may be more

    def is_plain(self, candidate: Candidate) -> bool:
        """Whether it was asked for as the kernel, written plainly."""
        return candidate.drafted is not None and self.decided[candidate.round].plain

    @property
    def worked(self) -> float:
        """Seconds, as budgets count them."""
        return self.elapsed - self.waited

    @property
    def plain_kernel(self) -> Candidate | None:
        """The plain rewrite that the gate let in: the expert's moves are made on it from then on."""
        if not any(decided.plain for decided in self.decided):
            return None
        sound = (c for c in self.candidates if c.status in ("admitted", "searched"))
        return next((c for c in sound if self.is_plain(c)), None)

    @property
    def device(self) -> Device:
        """The one in force."""
        return self.attached.device if self.attached else self._begun.device

    @property
    def compiler(self) -> str:
        """Name and version of the one in force; empty where the backend has but one."""
        return self.attached.compiler if self.attached else self._begun.compiler

    @property
    def settings(self) -> ev.Settings:
        chosen = self._begun.settings
        return replace(chosen, ahead=self.attached.ahead) if self.attached else chosen

    @property
    def _begun(self) -> ev.Started:
        assert self.started is not None, "the run has not begun"
        return self.started

    @property
    def focus(self) -> Focus | None:
        """Where the search that is under way looks first: its prior."""
        return self.own_changes[-1].event.focus if self.own_changes else None

    @property
    def own_changes(self) -> tuple[PriorChange, ...]:
        return self.prior_changes[self.earlier_changes :]

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
        """The first at the gate: drafted by what is under way, and neither admitted nor rejected."""
        return next((c for c in self.candidates if c.status == "drafted"), None)

    @property
    def written(self) -> tuple[Candidate, ...]:
        """Drafts of what was decided last, each but the first in place of the one before it."""
        here = len(self.decided) - 1
        return tuple(c for c in self.candidates if c.drafted and c.round == here)

    @property
    def open_branches(self) -> tuple[int, ...]:
        """Plans of the refactoring that is under way whose template is neither let in nor given up."""
        if self.under_way is None or self.under_way.decision != "refactor":
            return ()
        here = len(self.decided) - 1
        given_up = {declined.branch for place, declined in self.declined if place == here}
        last = {c.branch: c for c in self.written}
        open_ = (b for b in self.under_way.branches if b not in given_up)
        return tuple(b for b in open_ if b not in last or last[b].is_open)

    @property
    def is_to_write(self) -> bool:
        return self.draft is None and bool(self.open_branches)

    @property
    def open_request(self) -> Exchange | None:
        last = self.dialogue[-1] if self.dialogue else None
        return last if last is not None and last.is_open else None

    def this_turn(self, *roles: Role) -> tuple[Exchange, ...]:
        """What has been said with these roles since the last decision."""
        turn = len(self.decided)
        return tuple(e for e in self.dialogue if e.turn == turn and e.request.role in roles)

    def drafts(self, branch: int | None = None) -> int:
        """How many were ever written; of old journals by plan, too."""
        return sum(c.drafted is not None and branch in (None, c.branch) for c in self.candidates)

    def gated(self, candidate: str) -> tuple[Outcome, ...]:
        return self.outcomes.of(("gate", candidate))

    def finalists(self) -> tuple[Outcome, ...]:
        """Of several devices, those that the one has timed that times them all now."""
        raced = self.outcomes.of("finalist")
        return tuple(o for o in raced if o.device == self.devices[0]) if self.devices else raced

    def statuses(self) -> Counter[str]:
        """Of what was tried, or needed no trial."""
        counts = {str(status): self.unable.count(status) + self.searched.count(status) for status in Status}
        return Counter({status: count for status, count in counts.items() if count})


def _update_state(copy: State, **changes: Any) -> State:
    """In place: it is the copy that `apply_record` has made, and nobody else has it yet."""
    assert changes.keys() <= copy.__dict__.keys(), changes.keys()
    copy.__dict__.update(changes)
    return copy


def apply_record(state: State, record: ev.Recorded) -> State:
    pruning = isinstance(record.event, ev.Pruned)
    others = ev.Protected | ev.Instructed | ev.OfDevices
    pruning = pruning or (state.pruning and isinstance(record.event, others))
    before, state = state, object.__new__(State)  # as `dataclasses.replace`, in less time
    state.__dict__.update(before.__dict__, unproven=before.unproven or record.fault)
    _update_state(state, events=record.number + 1, elapsed=record.at, pruning=pruning)
    match record.event:
        case ev.Measured(outcome):  # the first three are nearly all of a journal
            return _apply_measured(state, outcome)
        case ev.Asked(trials, gain):
            return _apply_asked(state, trials, gain)
        case ev.Surveyed() as event:
            return _apply_surveyed(state, event)
        case ev.Started() | ev.Extended() | ev.Stopped() as event:
            return _update_state(state, **{type(event).__name__.lower(): event})
        case ev.Verified() as event:
            return _charge_outcome(_update_state(state, verified=(*state.verified, event)), event.outcome)
        case (ev.Primed() | ev.Profiled() | ev.Served() | ev.Protected()
              | ev.Rehearsed() | ev.Instructed()) as event:  # fmt: skip
            name = type(event).__name__.lower()
            return _update_state(state, **{name: (*getattr(state, name), event)})
        case ev.Attached() as event:
            # What was said for another device holds only where it has been looked at again for this one.
            again = set(event.unable)
            surveyed = state.surveyed.where(lambda s: s.config in again)
            known = IndexedLog(event.unable, oc.keys_of_config)
            _update_state(state, surveyed=surveyed, unable=surveyed, known=known, pool=IndexedLog())
            return _update_state(state, attached=event, attached_at=record.at, admitted=None)
        case ev.Enlisted(devices) as event:
            state = _update_state(state, enlisted=event, enlisted_after=len(state.outcomes))
            return _with_devices(state, devices)
        case ev.LeftOut(device) as event:
            state = _update_state(state, left_out=(*state.left_out, event))
            return _with_devices(state, tuple(d for d in state.devices if d != device))
        case ev.AskedOf(trial, device):
            state = _apply_asked(state, (trial,), None)
            return _update_state(state, bound=(*state.bound, (trial.id, device)))
        case ev.Baseline() as event:
            sentinels = IndexedLog((event.outcome, *state.outcomes.of("sentinel")), oc.keys_of_sentinel)
            return _charge_outcome(_update_state(state, baseline=event, sentinels=sentinels), event.outcome)
        case ev.Admitted() as event:
            return _apply_admitted(state, event)
        case ev.Decided() as event:
            # What earlier batches were expected to gain says nothing of another search.
            if event.decision == "search":
                _update_state(state, gains=IndexedLog(), earlier_changes=len(state.prior_changes))
            _update_state(state, decided_after=len(state.asked), decided_used=state.device_seconds)
            decided = (*state.decided, event)
            return _update_state(state, decided=decided, under_way=event, decided_at=state.worked)
        case ev.Drafted() as event:
            new = Candidate(event.candidate, event.template, event.parent, drafted=event)
            new = replace(new, round=len(state.decided) - 1, branch=event.branch)
            return _update_state(state, candidates=(*state.candidates, new))
        case ev.Declined() as event:
            declined = (*state.declined, (len(state.decided) - 1, event))
            return _close_refactoring(_update_state(state, declined=declined))
        case ev.Rejected() as event:
            wrong = event.candidate
            searched = state.searched.where(lambda o: not o.trial.config or o.trial.config.candidate != wrong)
            _update_candidate(state, wrong, status="rejected", rejected=event)
            return _close_refactoring(_update_state(state, searched=searched))
        case ev.Searched() as event:
            # Nobody waits for what is still being built, or was built and not measured.
            state = _update_candidate(state, event.candidate, status="searched", searched=event)
            return _update_state(state, under_way=None, building=(), pool=IndexedLog())
        case ev.Requested(request):
            asked = Exchange(request, len(state.decided), state.drafts(request.branch))
            return _update_state(state, dialogue=(*state.dialogue, asked))
        case ev.Replied(number, reply):
            return _update_exchange(state, number, reply=reply)
        case ev.Unanswered() as event:
            return _apply_unanswered(state, event)
        case ev.Steered() as event:
            # What a searcher expected was of the part it was shown.
            change = PriorChange(event, len(state.searched), len(state.asked), event.focus != state.focus)
            return _update_state(state, prior_changes=(*state.prior_changes, change), gains=IndexedLog())
        case ev.Pruned() as event:
            config, unable = event.config, state.unable
            pool = state.pool.where(lambda s: s.config != config)
            if event.rule == "cannot_run" and not unable.count(config):
                unable = unable.plus(*state.surveyed.of(config))
            return _update_state(state, pruned=state.pruned.plus(event), pool=pool, unable=unable)


def _apply_surveyed(state: State, event: ev.Surveyed) -> State:
    _update_state(state, surveyed=state.surveyed.plus(event))
    if event.config is None:
        return state
    building = tuple(t for t in state.building if t.config != event.config)
    known = _with_known(state.known, (event.config,))
    return _update_state(state, building=building, pool=state.pool.plus(event), known=known)


def _update_exchange(state: State, number: int, **known: Any) -> State:
    found = tuple(replace(e, **known) if e.request.number == number else e for e in state.dialogue)
    return _update_state(state, dialogue=found)


def _apply_unanswered(state: State, event: ev.Unanswered) -> State:
    """What it took is lost, and counts."""
    known = next((e for e in state.dialogue if e.request.number == event.number), None)
    lost = known.lost if known is not None else ()
    if event.came or event.usage != Usage():
        lost = (*lost, Lost(event.usage, event.came))
    failed = event.reason if event.final else ""
    return _update_exchange(state, event.number, failed=failed, attempts=event.attempt, lost=lost)


def _charge_outcome(state: State, outcome: Outcome) -> State:
    """What it took of budgets. Where several devices measure, the run waits for one of them in part."""
    used = outcome.seconds - outcome.waited if outcome.trial.purpose != "finalist" else 0.0
    waited = outcome.waited / max(1, len(state.devices))
    return _update_state(state, device_seconds=state.device_seconds + used, waited=state.waited + waited)


def _apply_measured(state: State, outcome: Outcome) -> State:
    trial = outcome.trial
    in_flight = tuple(t for t in state.in_flight if t.id != trial.id)
    bound = tuple(pair for pair in state.bound if pair[0] != trial.id)
    _update_state(state, outcomes=state.outcomes.plus(outcome), in_flight=in_flight, bound=bound)
    _charge_outcome(state, outcome)
    if trial.purpose == "sentinel":
        return _update_state(state, sentinels=state.sentinels.plus(outcome))
    rejected = [c.id for c in state.candidates if c.status == "rejected"]
    is_sound = trial.config is None or trial.config.candidate not in rejected
    is_new = is_sound and trial.purpose != "finalist"
    return _update_state(state, searched=state.searched.plus(outcome)) if is_new else state


def _with_devices(state: State, devices: tuple[str, ...]) -> State:
    """Nobody waits for the original's time on one that is not in force."""
    dropped = {trial for trial, device in state.bound if device not in devices}
    in_flight = tuple(t for t in state.in_flight if t.id not in dropped)
    bound = tuple(pair for pair in state.bound if pair[0] not in dropped)
    return _update_state(state, devices=devices, in_flight=in_flight, bound=bound)


def _update_candidate(state: State, candidate: str, **known: Any) -> State:
    found = tuple(replace(c, **known) if c.id == candidate else c for c in state.candidates)
    return _update_state(state, candidates=found)


def _apply_admitted(state: State, event: ev.Admitted) -> State:
    known = {c.id: c for c in state.candidates}
    if event.candidate not in known:
        given = Candidate(event.candidate, event.template, status="admitted", admitted=event)
        return _update_state(state, admitted=event, candidates=(*state.candidates, given))
    _update_candidate(state, event.candidate, status="admitted", admitted=event, template=event.template)
    _update_state(state, admitted=event)
    # A template that was given is admitted before anything is decided.
    return state if known[event.candidate].drafted is None else _close_refactoring(state)


def _close_refactoring(state: State) -> State:
    return state if state.open_branches else _update_state(state, under_way=None)


def _with_known(known: IndexedLog[Config], configs: Iterable[Config | None]) -> IndexedLog[Config]:
    new = [c for c in dict.fromkeys(configs) if c is not None and not known.count(c)]
    return known.plus(*new) if new else known


def _apply_asked(state: State, trials: tuple[Trial, ...], gain: float | None) -> State:
    builds = tuple(t for t in trials if t.effort == "build")
    others = tuple(t for t in trials if t.effort != "build")
    searched = {t.config for t in others if t.purpose == "search"}
    # Of a pool the searcher cannot tell what all the rest may add.
    is_whole = bool(builds) if state.started and state.settings.ahead else bool(searched)
    return _update_state(
        state,
        asked=state.asked.plus(*trials),
        gains=state.gains.plus(gain) if is_whole else state.gains,
        in_flight=(*state.in_flight, *others),
        building=(*state.building, *builds),
        pool=state.pool.where(lambda s: s.config not in searched) if searched else state.pool,
        known=_with_known(state.known, (t.config for t in trials)),
    )


def run_protections(state: State) -> tuple[Protection, ...]:
    """Those of its workers that a run has had, the one in force last; none of an older run."""
    begun = state.started.protection if state.started else None
    return (*([begun] if begun else []), *(later.protection for later in state.protected))


def fold_records(records: Iterable[ev.Recorded]) -> State:
    return reduce(apply_record, records, State())


UNKNOWN_AUTHOR = "an unknown author"  # may have been a model: what it wrote is vetted as a model's is
TEMPLATE_HEADER = "template-header:"  # begins the name of a file: a header of the template that was given


def author_of(started: Started, given: str) -> str:
    """Of a template that was given, the first one's name is empty; nobody: the user, or the expert."""
    return dict(started.authors).get(given, "")
