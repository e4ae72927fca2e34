"""What models have cost a run so far, and whether they may be asked again. What nobody told is unknown."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.counted import counted
from tunesmith.core.dialogue import Exchange, tokens_of
from tunesmith.core.state import State

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Spent:
    """None: not every reply came with the number."""

    requests: int
    replies: int
    sent: int | None
    received: int | None
    dollars: float | None

    @property
    def tokens(self) -> int | None:
        return None if self.sent is None or self.received is None else self.sent + self.received


def spent(state: State) -> Spent:
    used = [e.reply.usage for e in state.dialogue if e.reply is not None]
    sent, received, dollars = 0, 0, 0.0
    known_sent = known_received = known_dollars = bool(used)
    for usage in used:
        known_sent, sent = known_sent and usage.sent is not None, sent + (usage.sent or 0)
        known_received, received = (
            known_received and usage.received is not None,
            received + (usage.received or 0),
        )
        known_dollars, dollars = known_dollars and usage.dollars is not None, dollars + (usage.dollars or 0.0)
    return Spent(
        len(state.dialogue),
        len(used),
        sent if known_sent else None,
        received if known_received else None,
        dollars if known_dollars else None,
    )


def tokens_used(state: State) -> int:
    """As reported; where nobody reports, by length."""
    return sum(map(_tokens, state.dialogue))


def _tokens(exchange: Exchange) -> int:
    if exchange.reply is None:
        return 0
    usage = exchange.reply.usage
    sent = usage.sent
    if sent is None:
        sent = sum(tokens_of(message.text) for message in exchange.request.messages)
    return sent + (tokens_of(exchange.reply.text) if usage.received is None else usage.received)


def rounds_begun(state: State) -> int:
    return sum(d.decision == "refactor" for d in state.decided)


def no_more_rounds(state: State, asks_models: bool = True) -> str | None:
    """Why no further round is begun; searches that were decided on still run."""
    rounds = state.settings.rounds
    if rounds is not None and rounds_begun(state) >= rounds:
        return f"the budget of {counted(rounds, 'round')} is used up"
    return no_more_requests(state) if asks_models else None


def no_more_requests(state: State) -> str | None:
    tokens, dollars = state.settings.tokens, state.settings.dollars
    if tokens is not None and tokens_used(state) >= tokens:
        return f"the budget of {counted(tokens, 'token')} is used up"
    if dollars is not None:
        cost = spent(state)
        if cost.replies and cost.dollars is None:
            return f"what the model costs is unknown, so the budget of ${dollars:g} cannot be kept"
        if (cost.dollars or 0.0) >= dollars:
            return f"the budget of ${dollars:g} is used up"
    return None


def spent_text(state: State) -> str:
    """For a line of progress or a report; empty where no model was asked."""
    if not state.dialogue:
        return ""
    cost, limits = spent(state), state.settings
    tokens = UNKNOWN if cost.tokens is None else str(cost.tokens)
    if limits.tokens is not None:  # where nobody reports, the estimate that the budget goes by
        tokens = (
            f"{cost.tokens if cost.tokens is not None else f'about {tokens_used(state)}'} of {limits.tokens}"
        )
    dollars = UNKNOWN if cost.dollars is None else f"${cost.dollars:.2f}"
    of = "" if limits.dollars is None else f" of ${limits.dollars:g}"
    rounds = f"round {rounds_begun(state)}" + (f" of {limits.rounds}" if limits.rounds is not None else "")
    return f"{rounds}, {counted(cost.requests, 'request')}, {tokens} tokens, cost {dollars}{of}"
