"""What a run may still spend: of the whole budget, and of the share that a search was given."""

from __future__ import annotations

from tunesmith.core.counted import counted
from tunesmith.core.events import Settings
from tunesmith.core.spending import rounds_begun
from tunesmith.core.state import State
from tunesmith.core.strategy import is_concrete


def evaluations(state: State, since: int = 0, candidate: str | None = None) -> int:
    """What searches have asked for, of one candidate or of all. What the gate tries is extra, unless kernels
    are all there is to try."""
    counted = ("search", "gate") if is_concrete(state) else ("search",)
    kinds = counted if candidate is None else [(kind, candidate) for kind in counted]
    return sum(state.asked.count(kind, since) for kind in kinds)


def beside_budget(state: State) -> int:
    """Of what was tried, how much the gate has tried and no budget counts."""
    return 0 if is_concrete(state) else state.gate_tried


def evals_left(state: State) -> int | None:
    """Of the budget, and of the share of the search that is under way."""
    evals, share = state.settings.evals, state.under_way.evals if state.under_way else None
    left = [] if share is None else [share - evaluations(state, state.decided_after)]
    if evals is not None:
        left.append(evals - evaluations(state))
    return max(0, min(left)) if left else None


def part_of(state: State, parts: int) -> tuple[int | None, float | None]:
    """Evaluations and seconds for the next of several searches that count the same."""
    settings, evals, seconds = state.settings, None, None
    if settings.evals is not None:
        evals = max(1, (settings.evals - evaluations(state)) // parts)
    if settings.seconds is not None:
        seconds = max(0.0, settings.seconds - (state.elapsed - state.attached_at)) / parts
    return evals, seconds


LEAST_SHARE = 40  # evaluations of a search, if the budget has them
SMALL = 4 * LEAST_SHARE  # budgets below it are shared out further, among the rounds that were promised,
SMALLEST = 10  # down to so many: what the gate has tried by then is extra


def share_of(state: State) -> tuple[int | None, float | None]:
    """Evaluations and seconds for a search: half of what is left, as the next round may be the better one;
    after the last round that was promised nothing would be left to spend it on."""
    settings, evals, seconds = state.settings, None, None
    is_last = settings.rounds is not None and rounds_begun(state) >= settings.rounds
    if settings.evals is not None:
        left, least = settings.evals - evaluations(state), _least_share(settings)
        share = left if is_last else max(least, left // 2)
        evals = share if left - share >= least else max(1, left)
    if settings.seconds is not None:
        left_seconds = max(0.0, settings.seconds - (state.elapsed - state.attached_at))
        seconds = left_seconds if is_last else left_seconds / 2
    return evals, seconds


def _least_share(settings: Settings) -> int:
    """What halving leaves for the last of the rounds, where a small budget is for a number of them."""
    if settings.rounds is None or settings.evals is None or settings.evals >= SMALL:
        return LEAST_SHARE
    return max(SMALLEST, min(LEAST_SHARE, settings.evals >> max(0, settings.rounds - 1)))


def exhausted_budget(state: State) -> str | None:
    evals, seconds = state.settings.evals, state.settings.seconds
    if evals is not None and evaluations(state) >= evals:
        return f"the budget of {counted(evals, 'evaluation')} is used up"
    if seconds is not None and state.elapsed - state.attached_at > seconds:
        return f"the budget of {counted(float(seconds), 'second')} is used up"
    return None


def exhausted_share(state: State) -> str | None:
    assert state.under_way is not None, "nothing is under way"
    evals, seconds = state.under_way.evals, state.under_way.seconds
    if evals is not None and evaluations(state, state.decided_after) >= evals:
        return f"its share of {counted(evals, 'evaluation')} is used up"
    if seconds is not None and state.elapsed - state.decided_at > seconds:
        return f"its share of {counted(float(seconds), 'second')} is used up"
    return None
