"""The state of a run: a fold over its events, and nothing more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tunesmith.core.device import Device
from tunesmith.core.events import (
    Admitted,
    Asked,
    Attached,
    Baseline,
    Decided,
    Measured,
    Primed,
    Pruned,
    Recorded,
    Settings,
    Started,
    Stopped,
    Surveyed,
    Verified,
)
from tunesmith.core.outcome import Outcome, Trial


@dataclass(frozen=True)
class State:
    events: int = 0
    elapsed: float = 0.0
    started: Started | None = None
    surveyed: tuple[Surveyed, ...] = ()  # by the compiler in force
    attached: Attached | None = None
    attached_at: float = 0.0  # what a budget in seconds counts from
    baseline: Baseline | None = None
    admitted: Admitted | None = None
    decided: tuple[Decided, ...] = ()
    primed: tuple[Primed, ...] = ()
    asked: tuple[Trial, ...] = ()
    gains: tuple[float | None, ...] = ()  # what the searcher expected of each batch it was asked for
    pruned: tuple[Pruned, ...] = ()
    outcomes: tuple[Outcome, ...] = ()  # in the order they arrived; sentinels and finalists among them
    verified: tuple[Verified, ...] = ()
    stopped: Stopped | None = None

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
    def in_flight(self) -> tuple[Trial, ...]:
        """On their way to the device."""
        done = {o.trial.id for o in self.outcomes}
        return tuple(t for t in self.asked if t.effort != "build" and t.id not in done)

    @property
    def building(self) -> tuple[Trial, ...]:
        """On their way to the compiler alone."""
        done = {s.config for s in self.surveyed}
        return tuple(t for t in self.asked if t.effort == "build" and t.config not in done)

    @property
    def pool(self) -> tuple[Surveyed, ...]:
        """Built, and neither measured nor on the way there nor pruned."""
        known = {t.config for t in self.asked if t.purpose == "search" and t.effort != "build"}
        known.update(p.config for p in self.pruned)
        known.update(s.config for s in self.unable)
        known.add(None)
        return tuple(s for s in self.surveyed if s.config not in known)

    @property
    def next_trial(self) -> int:
        return len(self.asked)

    @property
    def searching(self) -> bool:
        return bool(self.decided) and self.decided[-1].decision == "search"

    def searched(self) -> tuple[Outcome, ...]:
        return tuple(o for o in self.outcomes if o.trial.purpose == "search")

    def finalists(self) -> tuple[Outcome, ...]:
        return tuple(o for o in self.outcomes if o.trial.purpose == "finalist")

    def sentinels(self) -> tuple[Outcome, ...]:
        """Every timing of the original as it is, the baseline first."""
        first = (self.baseline.outcome,) if self.baseline else ()
        return first + tuple(o for o in self.outcomes if o.trial.purpose == "sentinel")

    def statuses(self) -> Counter[str]:
        return Counter([*(str(s.status) for s in self.unable), *(str(o.status) for o in self.searched())])


def apply(state: State, record: Recorded) -> State:
    state = replace(state, events=record.number + 1, elapsed=record.at)
    match record.event:
        case Started() as event:
            return replace(state, started=event)
        case Surveyed() as event:
            return replace(state, surveyed=(*state.surveyed, event))
        case Attached() as event:
            # What was said for another device holds only where it has been looked at again for this one.
            surveyed = tuple(s for s in state.surveyed if s.config in event.unable)
            return replace(state, surveyed=surveyed, attached=event, attached_at=record.at, admitted=None)
        case Baseline() as event:
            return replace(state, baseline=event)
        case Admitted() as event:
            return replace(state, admitted=event)
        case Decided() as event:
            return replace(state, decided=(*state.decided, event))
        case Primed() as event:
            return replace(state, primed=(*state.primed, event))
        case Asked(trials, gain):
            is_search = any(t.purpose == "search" and t.effort != "build" for t in trials)
            gains = (*state.gains, gain) if is_search else state.gains
            return replace(state, asked=(*state.asked, *trials), gains=gains)
        case Pruned() as event:
            return replace(state, pruned=(*state.pruned, event))
        case Measured(outcome):
            return replace(state, outcomes=(*state.outcomes, outcome))
        case Verified() as event:
            return replace(state, verified=(*state.verified, event))
        case Stopped() as event:
            return replace(state, stopped=event)


def fold(records: Iterable[Recorded]) -> State:
    state = State()
    for record in records:
        state = apply(state, record)
    return state
