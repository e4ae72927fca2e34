"""The client as the model of a run: requests in the run's mailbox that nobody has answered, and replies."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.models import EXPERT, parse_models, reaching
from tunesmith.models.letters import has_reply, letter
from tunesmith.run.dialogue import LONGEST, Request
from tunesmith.run.files import explained, write_whole
from tunesmith.run.store import RunFolder
from tunesmith.session.problems import state_of
from tunesmith.session.strategies.casting import own_mailbox

_LONG_AGO = 60.0  # seconds: a reply that is whole when it gets its name need not settle


def check_models(text: str, permitted: Sequence[str]) -> None:
    """Kernels and keys go to nobody whom only a client, or a run's folder, names: BadInput for models that
    are neither the run's own mailbox nor among those the server was started with."""
    if text:
        parse_models(text)
    for one in reaching(text):
        if one in permitted:
            continue
        named = ", ".join(["mailbox", EXPERT, *permitted])
        hint = (
            "name one of them, in roles: planner=mailbox,author=mailbox; others: tunesmith mcp --model SPEC"
        )
        raise BadInput(f"models through this server are {named}; got {one!r}", hint=hint)


def check_run(folder: Path, permitted: Sequence[str]) -> str:
    """The same of a run that somebody else may have begun. Its models, which may be asked."""
    started = state_of(RunFolder.open(folder)).started
    models = started.settings.models if started is not None else ""
    check_models(models, permitted)
    return models


def open_requests(folder: Path) -> tuple[Request, ...]:
    """In the order they were asked."""
    state = state_of(RunFolder.open(folder))
    if state.stopped is not None:
        return ()
    box = own_mailbox(folder)
    waiting = (exchange.request for exchange in state.dialogue if exchange.is_open)
    return tuple(request for request in waiting if not has_reply(box / f"{request.name}.reply.md"))


def text_of(request: Request) -> str:
    return letter(request, f"{request.name}.reply.md")


def hand_in(folder: Path, name: str, text: str) -> None:
    """As the reply to an open request, whole or not at all."""
    waiting = [request.name for request in open_requests(folder)]
    if name not in waiting:
        hint = f"open are: {', '.join(waiting)}" if waiting else "none is open: look at the run with status"
        fault = f"a reply is to a request that is open; got {name!r}"
        raise BadInput(fault, where=str(folder), hint=hint)
    if not text.strip() or len(text) > LONGEST:
        hint = "send what the request asks for: one JSON object, or one whole file in a fence"
        raise BadInput(f"a reply has 1 to {LONGEST} characters, got {len(text)}", where=name, hint=hint)
    target = own_mailbox(folder) / f"{name}.reply.md"
    with explained("write the reply", target):
        target.parent.mkdir(exist_ok=True)
        write_whole(target, text.encode("utf-8", "replace"))
        then = time.time() - _LONG_AGO
        os.utime(target, (then, then))
