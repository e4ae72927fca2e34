"""The state of a run: a fold over its events, and nothing more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tunesmith.core.events import (
    Admitted,
    Asked,
    Baseline,
    Decided,
    Measured,
    Recorded,
    Started,
    Stopped,
    Verified,
)
from tunesmith.core.outcome import Outcome, Trial


@dataclass(frozen=True)
class State:
    events: int = 0
    elapsed: float = 0.0
    started: Started | None = None
    baseline: Baseline | None = None
    admitted: Admitted | None = None
    decided: tuple[Decided, ...] = ()
    asked: tuple[Trial, ...] = ()
    outcomes: tuple[Outcome, ...] = ()  # in the order they arrived; sentinels and finalists among them
    verified: tuple[Verified, ...] = ()
    stopped: Stopped | None = None

    @property
    def in_flight(self) -> tuple[Trial, ...]:
        done = {o.trial.id for o in self.outcomes}
        return tuple(t for t in self.asked if t.id not in done)

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
        return Counter(str(o.status) for o in self.searched())


def apply(state: State, record: Recorded) -> State:
    state = replace(state, events=record.number + 1, elapsed=record.at)
    match record.event:
        case Started() as event:
            return replace(state, started=event)
        case Baseline() as event:
            return replace(state, baseline=event)
        case Admitted() as event:
            return replace(state, admitted=event)
        case Decided() as event:
            return replace(state, decided=(*state.decided, event))
        case Asked(trial):
            return replace(state, asked=(*state.asked, trial))
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
