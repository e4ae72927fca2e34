"""One tiny request to each model behind a network: whether it answers, how soon, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tunesmith.backends.port import DoctorFinding
from tunesmith.errors import WaitingForModel
from tunesmith.run.config import RunConfig
from tunesmith.run.dialogue import Message, NoReply, Reply, Request, Usage
from tunesmith.session.strategies import casting
from tunesmith.text import counted, one_line

if TYPE_CHECKING:
    from tunesmith.models.hosted import Hosted
    from tunesmith.models.streaming import Arrival

ASKED = (
    Message("system", "You test a connection. Answer in one line."),
    Message("user", "Count from 1 to 20, with a space between two numbers."),
)
MOST_TOKENS = 2048  # some models think before they count


def try_out(spec: str, config: RunConfig, note: Callable[[str], None]) -> list[DoctorFinding]:
    """WaitingForModel where one does not answer, with what to do next."""
    findings: list[DoctorFinding] = []
    for model in casting.hosted(spec, config.reply_seconds, note):
        found, arrival = model.ask(Request(1, "planner", ASKED, "turn", most_tokens=MOST_TOKENS))
        if isinstance(found, NoReply):
            raise WaitingForModel(found.reason, hint=_next_step(model, arrival))
        findings += _findings(model, found, arrival)
    return findings


def _findings(model: Hosted, reply: Reply, arrival: Arrival) -> list[DoctorFinding]:
    said = f'it says "{one_line(reply.text, 60)}"' if reply.text.strip() else "it thought until its limit"
    came = f"{said} after {arrival.seconds:.1f} s" + (f"; {reply.note}" if reply.note else "")
    first = f"the first character after {arrival.first or 0.0:.1f} s, {counted(arrival.pieces, 'piece')}"
    usage, dollars = reply.usage, reply.usage.dollars
    price = f"${dollars:.6f} for this request" if dollars is not None else ""
    return [
        DoctorFinding(model.name, True, came),
        DoctorFinding("streaming", arrival.pieces > 1, first),
        DoctorFinding("usage", usage.sent is not None, _used(usage)),
        DoctorFinding("price", bool(price), price or "neither reported nor known: --money cannot be kept"),
    ]


def _used(usage: Usage) -> str:
    parts = (
        (usage.sent, "tokens sent"),
        (usage.cached, "of them from its cache"),
        (usage.received, "received"),
        (usage.reasoning, "of them thought"),
    )
    known = [f"{count} {what}" for count, what in parts if count is not None]
    return ", ".join(known) or "not reported: --tokens goes by the length of texts"


def _next_step(model: Hosted, arrival: Arrival) -> str:
    from tunesmith.models.hosted import KEYS

    place = model.url or f"the address of {model.provider}"
    status = getattr(arrival.error, "status_code", None)
    if arrival.elsewhere:
        return f"name the address that answers: {model.provider}:{model.model}@URL"
    if status in (401, 403):
        return f"set {KEYS[model.provider]} to a key that {place} takes"
    if status == 404:
        return f"check the name {model.model!r}, and the address, which usually ends in /v1"
    if status is not None and 400 <= status < 429:
        return "change what it complains of: the name, or the effort after #"
    if status is not None:
        return "try again later: this passes"
    if arrival.length or arrival.kind:
        return f"check that {place} speaks {model.provider}'s protocol, and streams"
    return f"check that something answers at {place}; a proxy is named with HTTPS_PROXY"
