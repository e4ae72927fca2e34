"""What the journal of one run tells an experiment beyond its speed-up: what was stopped before it could
count, what each template had before and after its search, and the tokens spent by the end of each round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Literal

from tunesmith.problem.plan import Status
from tunesmith.run.budget import exchange_tokens
from tunesmith.run.dialogue import SINGLE, Exchange
from tunesmith.run.outcome import DISTRUSTED, Outcome
from tunesmith.run.rounds import RoundReport
from tunesmith.run.state import Candidate, State

Fault = Literal["form", "build", "wrong", "broken", "unfit", "repeated"]
BROKEN = (Status.CRASHED, Status.TIMED_OUT)


@dataclass(frozen=True)
class StoppedCounts:
    """What was not let through. Each draft that was turned away is counted once, by what was found first."""

    replies: int = 0  # of models, questions to the laboratory not among them
    unusable: int = (
        0  # of these, those that were asked for again or given up: not the JSON or the file asked for
    )
    drafts: int = 0  # files that were written
    admitted: int = 0
    form: int = 0  # turned away by reader or vetting, before anything was built
    build: int = 0  # by the compiler
    wrong: int = 0  # by the oracle: wrong, unstable, or faster than can be
    broken: int = 0  # crashed, or did not come to an end
    unfit: int = 0  # nothing of it fits the device
    repeated: int = 0  # the same text as one before it
    forbidden: int = 0  # combinations of values, in templates that were let in
    tried: int = 0  # configurations and kernels, by gates and searches
    tried_build: int = 0  # of these, stopped by the compiler,
    tried_wrong: int = 0  # by the oracle,
    tried_broken: int = 0  # by a crash or a deadline
    late: int = 0  # right by the short check, stopped by a full one or by the verification

    @property
    def turned_away(self) -> int:
        return self.form + self.build + self.wrong + self.broken + self.unfit + self.repeated


@dataclass(frozen=True)
class SearchGain:
    """A template by the short measurements of one search: as it was written, and the best of it."""

    template: str  # its number
    default: float
    best: float
    evaluations: int


def added(counts: Iterable[StoppedCounts]) -> StoppedCounts:
    every = list(counts)
    return StoppedCounts(*(sum(getattr(one, field.name) for one in every) for field in fields(StoppedCounts)))


def stopped_counts(state: State) -> StoppedCounts:
    drafts = [c for c in state.candidates if c.drafted is not None]
    faults = Counter(fault for c in drafts if (fault := draft_fault(state, c)) is not None)
    tried = [*state.outcomes.of("search"), *state.outcomes.of("gate")]
    late = [*state.outcomes.of("finalist"), *(v.outcome for v in state.verified)]
    found = {(o.trial.config, _seen(o)) for o in late if _seen(o) in ("wrong", "broken")}
    how = Counter(map(_seen, tried))
    return StoppedCounts(
        replies=sum(e.reply is not None for e in state.dialogue),
        unusable=_unusable(state),
        drafts=len(drafts),
        admitted=sum(c.admitted is not None for c in drafts),
        **{str(fault): count for fault, count in faults.items()},
        forbidden=sum(len(c.admitted.rules) for c in drafts if c.admitted is not None),
        tried=len(tried),
        tried_build=how["build"],
        tried_wrong=how["wrong"],
        tried_broken=how["broken"],
        late=len({config for config, _ in found}),
    )


def draft_fault(state: State, draft: Candidate) -> Fault | None:
    """Why a draft was turned away; None: it was not, or not yet."""
    rejected = draft.rejected
    if rejected is None:
        return None
    if rejected.same_as:
        return "repeated"
    shown = [o for o in state.outcomes.of(("gate", draft.id)) if o.trial.id in rejected.trials]
    if not shown:
        return "form"
    return _seen(shown[0]) or "unfit"


def _seen(outcome: Outcome) -> Fault | None:
    """What stopped a trial: the first fault that is not that it does not fit."""
    for result in outcome.results:
        if result.status in DISTRUSTED:
            return "wrong"
        if result.status in BROKEN:
            return "broken"
        if result.status is Status.BUILD_FAILED:
            return "build"
    return None if any(r.ok for r in outcome.results) else "unfit"


def _unusable(state: State) -> int:
    """Replies without what was asked for: after them the same role was asked again though nothing was
    written, or the branch was given up."""
    by_place: dict[tuple[str, int, int], list[Exchange]] = {}
    for exchange in state.dialogue:
        if exchange.reply is not None:
            place = (exchange.request.role, exchange.turn, exchange.request.branch)
            by_place.setdefault(place, []).append(exchange)
    again = sum(one.drafts == two.drafts for own in by_place.values() for one, two in pairwise(own))
    given_up = {("author", place + 1, declined.branch) for place, declined in state.declined}
    last = [own[-1] for place, own in by_place.items() if place in given_up]
    return again + sum(not _wrote(state, exchange) for exchange in last)


def _wrote(state: State, exchange: Exchange) -> bool:
    """Whether a template of its branch and round came after it."""
    own = [c for c in state.candidates if c.drafted and c.branch == exchange.request.branch]
    return any(c.round + 1 == exchange.turn for c in own[exchange.drafts :])


def search_gains(rounds: Sequence[RoundReport]) -> tuple[SearchGain, ...]:
    """Of every template whose default is right and was measured."""
    every = [branch for r in rounds for branch in (r.branches or (r,))]
    return tuple(
        SearchGain(r.drafts[-1].template, r.default, r.speedup, r.evaluations)
        for r in every
        if r.drafts and r.default is not None and r.speedup is not None
    )


def tokens_by_round(state: State) -> tuple[int, ...]:
    """Spent by the end of each round, as told and else by length."""
    begun = (place for place, decision in enumerate(state.decided) if decision.decision == "refactor")
    return tuple(sum(sum(exchange_tokens(e)) for e in state.dialogue if _is_by(e, place)) for place in begun)


def _is_by(exchange: Exchange, place: int) -> bool:
    """Whether it was asked by the end of the round that a decision began: who writes is asked after it, who
    plans for the next one."""
    writes = exchange.request.role in ("author", SINGLE)
    return exchange.turn <= place or (writes and exchange.turn == place + 1)
