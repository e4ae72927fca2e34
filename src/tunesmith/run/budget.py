"""The strategies of a run, found by name, and what is asked of every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from tunesmith.base.text import format_count
from tunesmith.run import events as ev
from tunesmith.run.state import Candidate, State


@dataclass(frozen=True)
class StrategyKind:
    name: ev.Strategy
    is_concrete: bool = True  # whole kernels are written, without parameters: then nobody searches
    who: str = "kernels are written"
    roles: tuple[ev.Role, ...] = ev.ROLES
    needed: tuple[ev.Role, ...] = ()  # that a model must play
    prompts: Mapping[ev.Role, str] = field(default_factory=dict)  # files of words other than the role's own
    is_chain: bool | None = False  # each goes on from the last, better or not; None: with --linear


STRATEGIES: Mapping[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        StrategyKind("template", is_concrete=False),
        StrategyKind(
            "rewrite",
            who="models plan and write kernels",
            needed=("planner", "author"),
            prompts={"planner": "planner_rewrite", "author": "author_rewrite"},
            is_chain=None,
        ),
        StrategyKind(
            "single", who="one conversation plans and writes kernels", roles=(ev.SINGLE,), is_chain=True
        ),
    )
}


def strategy_words(strategy: str) -> str:
    """How kernels came about that are no templates, and to what their gain is due."""
    return (
        f"Strategy {strategy}: {STRATEGIES[strategy].who}. Each stands as it was written: "
        "refactoring gave all of the gain, nobody searched."
    )


def is_concrete(state: State) -> bool:
    """Whether whole kernels are written, without parameters: then nobody searches."""
    return state.started is not None and STRATEGIES[state.settings.strategy].is_concrete


def is_chain(state: State) -> bool:
    """Whether what was written last is what is looked at next, be it better or not."""
    chained = STRATEGIES[state.settings.strategy].is_chain
    return is_concrete(state) and (state.settings.linear if chained is None else chained)


def candidate_noun(settings: ev.Settings) -> str:
    """What is written in the rounds of a run."""
    return "kernel" if STRATEGIES[settings.strategy].is_concrete else "template"


def last_written(state: State) -> Candidate | None:
    """The end of the chain, right or not; None: nothing has been written."""
    return next((c for c in reversed(state.candidates) if c.drafted is not None), None)


def last_right(state: State) -> Candidate | None:
    return next((c for c in reversed(state.candidates) if c.admitted is not None and c.drafted), None)


# Unless the user says otherwise. Rounds: where each is one concrete kernel, and in comparisons.
KERNEL_ROUNDS = 5
SEVERAL_EVALS = 400  # where templates are written as the run goes on: of all of them together
LEAST_SHARE = 40  # evaluations of a search, if the budget has them
SMALL = 4 * LEAST_SHARE  # a smaller budget gives each search less, where the number of rounds is limited,
SMALLEST = 10  # but at least this many
MAX_PARTS = 3  # that a budget is shared into, however many rounds are to come: models stop before the last


@dataclass(frozen=True)
class Spent:
    """None: not every reply came with the number."""

    requests: int
    replies: int
    sent: int | None
    received: int | None
    dollars: float | None
    cached: int | None = None  # of those sent, from the other side's cache
    reasoning: int | None = None  # of those received, thought
    lost: int = 0  # tokens of all these that attempts without a reply took, as reported
    uncounted: int = 0  # attempts that broke off in the middle, of which nobody says what they took

    @property
    def tokens(self) -> int | None:
        return None if self.sent is None or self.received is None else self.sent + self.received


def sum_model_usage(state: State) -> Spent:
    """What failed counts as far as somebody says: a stream that broke off seldom does."""
    used = [e.reply.usage for e in state.dialogue if e.reply is not None]
    failed = [lost.usage for e in state.dialogue for lost in e.lost]

    def total(of: Callable[[ev.Usage], int | None]) -> int | None:
        known = [count for usage in used if (count := of(usage)) is not None]
        if len(known) != len(used) or not (used or failed):
            return None
        return sum(known) + sum(of(usage) or 0 for usage in failed)

    dollars = [usage.dollars for usage in used if usage.dollars is not None]
    lost = [usage.dollars for usage in failed if usage.dollars is not None]
    return Spent(
        requests=len(state.dialogue),
        replies=len(used),
        sent=total(lambda usage: usage.sent),
        received=total(lambda usage: usage.received),
        dollars=sum(dollars) + sum(lost) if (used or lost) and len(dollars) == len(used) else None,
        cached=total(lambda usage: usage.cached),
        reasoning=total(lambda usage: usage.reasoning),
        lost=sum((usage.sent or 0) + (usage.received or 0) for usage in failed),
        uncounted=sum(usage.sent is None and usage.received is None for usage in failed),
    )


def tokens_used(state: State) -> int:
    """As reported; where nobody reports, by length."""
    return sum(sum(exchange_tokens(e)) for e in state.dialogue)


def exchange_tokens(exchange: ev.Exchange) -> tuple[int, int]:
    """Sent and received: as reported, else by length; with what attempts took that failed after something
    had come."""
    used = [(lost.usage, lost.came / ev.PER_TOKEN) for lost in exchange.lost]
    if exchange.reply is not None:
        used.append((exchange.reply.usage, ev.tokens_of(exchange.reply.text)))
    asked = sum(ev.tokens_of(message.text) for message in exchange.request.messages) if used else 0
    return (
        sum(asked if usage.sent is None else usage.sent for usage, _ in used),
        sum(int(length) if usage.received is None else usage.received for usage, length in used),
    )


def rounds_begun(state: State) -> int:
    return sum(d.decision == "refactor" for d in state.decided)


def no_more_rounds(state: State, asks_models: bool = True) -> str | None:
    """Why no further round is begun; searches that were decided on still run."""
    rounds = state.settings.rounds
    if rounds is not None and rounds_begun(state) >= rounds:
        return f"the budget of {format_count(rounds, 'round')} is used up"
    return no_more_requests(state) if asks_models else None


def asked_to_finish(state: State) -> str | None:
    asked = any(i.what == "finish" and not i.refused for i in state.instructed)
    return "whoever watches it asked it to finish" if asked else None


def no_more_requests(state: State) -> str | None:
    if (asked := asked_to_finish(state)) is not None:
        return asked
    tokens, dollars = state.settings.tokens, state.settings.dollars
    if tokens is not None and tokens_used(state) >= tokens:
        return f"the budget of {format_count(tokens, 'token')} is used up"
    if dollars is not None:
        cost = sum_model_usage(state)
        if cost.replies and cost.dollars is None:
            return f"what the model costs is unknown, so the budget of ${dollars:g} cannot be kept"
        if (cost.dollars or 0.0) >= dollars:
            return f"the budget of ${dollars:g} is used up"
    return None


def spent_text(state: State) -> str:
    """For a line of progress or a report; empty where no model was asked."""
    if not state.dialogue:
        return ""
    cost, limits = sum_model_usage(state), state.settings
    tokens = "unknown" if cost.tokens is None else str(cost.tokens)
    if limits.tokens is not None:  # where nobody reports, the estimate that the budget goes by
        used = f"about {tokens_used(state)}" if cost.tokens is None else tokens
        tokens = f"{used} of {limits.tokens}"
    among = [f"{n} {what}" for n, what in ((cost.cached, "from a cache"), (cost.reasoning, "thought")) if n]
    among += [f"{cost.lost} lost with attempts that failed"] if cost.lost else []
    among += [f"without {format_count(cost.uncounted, 'attempt')} that broke off"] if cost.uncounted else []
    within = f" ({', '.join(among)})" if among else ""
    dollars = "unknown" if cost.dollars is None else f"${cost.dollars:.2f}"
    of = "" if limits.dollars is None else f" of ${limits.dollars:g}"
    rounds = f"round {rounds_begun(state)}" + (f" of {limits.rounds}" if limits.rounds is not None else "")
    return f"{rounds}, {format_count(cost.requests, 'request')}, {tokens} tokens{within}, cost {dollars}{of}"


def count_evaluations(state: State, since: int = 0, candidate: str | None = None) -> int:
    """What searches have asked for, of one candidate or of all. What the gate tries is extra, unless kernels
    are all there is to try."""
    counted = ("search", "gate") if is_concrete(state) else ("search",)
    kinds = counted if candidate is None else [(kind, candidate) for kind in counted]
    return sum(state.asked.count(kind, since) for kind in kinds)


def beside_budget(state: State) -> int:
    """Of what was tried, how much the gate has tried and no budget counts."""
    return 0 if is_concrete(state) else state.searched.count("gate")


def evals_left(state: State) -> int | None:
    """Of the budget, and of the share of the search that is under way."""
    evals, share = state.settings.evals, state.under_way.evals if state.under_way else None
    left = [] if share is None else [share - count_evaluations(state, state.decided_after)]
    if evals is not None:
        left.append(evals - count_evaluations(state))
    return max(0, min(left)) if left else None


@dataclass(frozen=True)
class BudgetShare:
    """Of a budget, for a search or a round; None: no limit."""

    evals: int | None = None
    seconds: float | None = None
    device_seconds: float | None = None  # in which its trials have the device

    def parted(self, parts: int) -> BudgetShare:
        """One of so many equal parts, of evaluations at least one."""
        return BudgetShare(
            None if self.evals is None else max(1, self.evals // parts),
            None if self.seconds is None else self.seconds / parts,
            None if self.device_seconds is None else self.device_seconds / parts,
        )

    def search(self, reason: str, moves: tuple[str, ...], candidate: str) -> ev.Decided:
        decided = ev.Decided("search", reason, moves, candidate)
        return replace(decided, **asdict(self))


def _remaining_budget(state: State) -> BudgetShare:
    evals, seconds, device = state.settings.evals, state.settings.seconds, state.settings.device_seconds
    return BudgetShare(
        None if evals is None else evals - count_evaluations(state),
        None if seconds is None else max(0.0, seconds - (state.worked - state.attached_at)),
        None if device is None else max(0.0, device - state.device_seconds),
    )


@dataclass(frozen=True)
class BudgetUse:
    """What a run has used of one budget."""

    what: str  # rounds, evaluations, seconds, device_seconds, tokens or dollars
    used: float | None  # None: nobody says
    limit: float | None  # None: there is none
    by_length: bool = False  # estimated so, at least in part


def is_finishing(state: State) -> bool:
    """Whether searching is over: finalists are raced, winners verified."""
    return state.under_way is not None and state.under_way.decision == "finish"


def budget_uses(state: State, with_models: bool = False) -> tuple[BudgetUse, ...]:
    """Of every budget, whether there is a limit or not; what models cost only where one was asked, or is to
    be."""
    limits, cost = state.settings, sum_model_usage(state)
    # Finalists are raced and winners verified beside it.
    until = state.decided_at if is_finishing(state) else state.worked
    found = [
        BudgetUse("rounds", rounds_begun(state), limits.rounds),
        BudgetUse("evaluations", count_evaluations(state), limits.evals),
        BudgetUse("seconds", round(max(0.0, until - state.attached_at), 3), limits.seconds),
        BudgetUse("device_seconds", round(state.device_seconds, 3), limits.device_seconds),
    ]
    if state.dialogue or with_models:
        found.append(BudgetUse("tokens", tokens_used(state), limits.tokens, cost.tokens is None))
        found.append(BudgetUse("dollars", cost.dollars, limits.dollars))
    return tuple(found)


def part_of(state: State, parts: int) -> BudgetShare:
    """For the next of several searches that count the same."""
    return _remaining_budget(state).parted(parts)


def share_of(state: State, rounds: int | None = None) -> BudgetShare:
    """For the search of a round: half of what is left, because the next round may be the better one; where
    three rounds or more are left to come, a third, so that the second has as much as the first. The last
    round takes all that is left. `rounds`: as if so many were begun."""
    settings, left = state.settings, _remaining_budget(state)
    rounds = rounds_begun(state) if rounds is None else rounds
    parts = 2 if settings.rounds is None else min(MAX_PARTS, max(1, settings.rounds - rounds + 1))
    part = left.parted(parts)
    if left.evals is None:
        return part
    least = _least_share(settings)
    share = max(least, left.evals // parts) if parts > 1 else left.evals
    return replace(part, evals=share if left.evals - share >= least else max(1, left.evals))


def next_share(state: State) -> int | None:
    """Evaluations that the search of the next round's template will have."""
    return share_of(state, rounds=1 + rounds_begun(state)).evals


def _least_share(settings: ev.Settings) -> int:
    """40 evaluations. A small budget with a limited number of rounds is halved round by round instead: what
    that leaves for the last round, but at least 10."""
    if settings.rounds is None or settings.evals is None or settings.evals >= SMALL:
        return LEAST_SHARE
    return max(SMALLEST, min(LEAST_SHARE, settings.evals >> max(0, settings.rounds - 1)))


def exhausted_budget(state: State) -> str | None:
    if (asked := asked_to_finish(state)) is not None:
        return asked
    evals, start = count_evaluations(state), state.attached_at
    return _exhaustion_reason("the budget", state, state.settings, evals, start, 0.0)


def exhausted_share(state: State) -> str | None:
    assert state.under_way is not None, "nothing is under way"
    evals, start, used = count_evaluations(state, state.decided_after), state.decided_at, state.decided_used
    return _exhaustion_reason("its share", state, state.under_way, evals, start, used)


def _exhaustion_reason(
    what: str, state: State, limit: ev.Settings | ev.Decided, evals: int, start: float, used: float
) -> str | None:
    """Whether so many evaluations, the seconds from a time on, or those in which trials had the device,
    beyond so many, use it up."""
    if limit.evals is not None and evals >= limit.evals:
        return f"{what} of {format_count(limit.evals, 'evaluation')} is used up"
    if limit.seconds is not None and state.worked - start > limit.seconds:
        return f"{what} of {format_count(float(limit.seconds), 'second')} is used up"
    if limit.device_seconds is not None and state.device_seconds - used >= limit.device_seconds:
        return f"{what} of {format_count(float(limit.device_seconds), 'second')} on the device is used up"
    return None


BLIND = 16  # trials in flight at most before anything is known, however many devices there are
PER_SPARE = 16  # known outcomes for each trial that waits behind those on several devices,
PER_SPARE_ALONE = 64  # and behind that on one: the searcher thinks while one waits


def plan_batches(known: int, devices: int, width: int) -> tuple[int, int]:
    """Configurations asked for at a time, and the trials in flight down to which nobody asks.

    Each device has a trial, and some wait, so that no device does while a searcher thinks. What is in flight
    teaches a searcher nothing, so while little is known few wait, and no more are in flight than are known.
    The more is known the longer it thinks, and the less one outcome more matters: then it is asked for
    several at once. `width` is the most in flight where there is one device.
    """
    spare = known // PER_SPARE if devices > 1 else max(1, known // PER_SPARE_ALONE)
    spare = min(spare, max(width - 1, devices // 2))
    most = min(devices + spare, max(BLIND, known))
    batch = min(most, max(1, spare // 2, devices // 16))
    return batch, most - batch
